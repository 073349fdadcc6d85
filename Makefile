# Everything a newcomer needs: make reproduce, make test.
VENV := .venv
PYTHON := python3
EXTRAS := test
MARK := $(VENV)/.installed

.PHONY: install reproduce test test-all bench

install: $(MARK)

$(MARK): pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $(MARK)

reproduce: install
	$(VENV)/bin/stagewise reproduce --preset quick

test: install
	$(VENV)/bin/python -m pytest -n 2

test-all: install
	$(VENV)/bin/python -m pytest -n 2 -m ''

bench: install
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[hf,ray,browser]'
	$(VENV)/bin/python -m benchmarks
