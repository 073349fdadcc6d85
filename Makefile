# Everything a newcomer needs: make reproduce, make test. For those who change the code: make lint.
VENV := .venv
PYTHON := python3
EXTRAS := test
MARK := $(VENV)/.installed
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: install install-lint reproduce test test-rest test-all lint bench

install: $(MARK)

$(MARK): pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[$(EXTRAS)]'
	touch $(MARK)

install-lint: install
	test -x $(VENV)/bin/ruff -a -x $(VENV)/bin/pyright || $(PIP) -e '.[lint]'

reproduce: install
	$(VENV)/bin/stagewise reproduce --preset quick

test: install
	$(VENV)/bin/python -m pytest -n 2

# Everything that make test leaves out: all claims, kills until the end, Ray, a browser, the README's commands.
test-rest: install
	$(VENV)/bin/python -m pytest -n 2 -m slow

test-all: install
	$(VENV)/bin/python -m pytest -n 2 -m ''

lint: install-lint
	$(VENV)/bin/ruff format --check src tests benchmarks
	$(VENV)/bin/ruff check src tests benchmarks
	$(VENV)/bin/pyright

bench: install
	$(PIP) -e '.[hf,ray,browser]'
	$(VENV)/bin/python -m benchmarks
