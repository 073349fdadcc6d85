"""Settings on the command line: every one can be given, as it is written, and refusals say what to type."""

import re
import typing

import pytest

from stagewise.commands.settings import parse_settings, print_settings
from stagewise.errors import Refused
from stagewise.lab import catalogue
from stagewise.lab.spec.settings import flatten, hint_of

EXPERIMENTS = catalogue.experiments()
BOOLEANS = [
    (name, path)
    for name, cls in EXPERIMENTS.items()
    for path, value in flatten(cls.at("quick")).items()
    if isinstance(value, bool)
]


@pytest.mark.parametrize("name, path", BOOLEANS)
def test_every_boolean_can_be_switched_both_ways(name, path):
    cls = EXPERIMENTS[name]
    within, dot, last = path.rpartition(".")
    for words, value in (
        ([f"--{path}"], True),
        ([f"--{path}", "True"], True),
        ([f"--{path}=true"], True),
        ([f"--{within}{dot}no_{last}"], False),
        ([f"--{path}", "False"], False),
        ([f"--{path.replace('_', '-')}=False"], False),
    ):
        try:
            found = flatten(parse_settings(cls, cls.at("quick"), words))[path]
        except Refused as refusal:  # the experiment has no such form: then it says so of this very setting
            assert path in re.findall(r"--(\w+(?:\.\w+)*)", str(refusal).replace("no_", "")), refusal
        else:
            assert found is value


OUT_OF_RANGE = {
    int: (-7, 0, 10**19),
    float: (-7.0, 0.0, 1e300),
    str: ("E8", "(0 99)"),
    tuple: ("", "-3", "0+0"),
}


def kind(hint) -> type:
    if typing.get_origin(hint) is tuple:
        return tuple
    return next((each for each in (int, float, str) if each in (typing.get_args(hint) or (hint,))), object)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_refusal_names_options_as_they_are_typed(name):
    """Every range is broken once, and what the message says is typed."""
    cls = EXPERIMENTS[name]
    known, refused = flatten(cls.at("quick")), set()
    for path in known:
        for wrong in OUT_OF_RANGE.get(kind(hint_of(cls, path)), ()):
            try:
                parse_settings(cls, cls.at("quick"), [f"--{path}", *str(wrong).split("+")])
            except Refused as refusal:
                refused.add(path)
                said = re.findall(r"--([a-z]\w*(?:\.\w+)*)", str(refusal))
                assert said, refusal
                for option in said:
                    plain = option.replace("no_", "") if option not in known else option
                    assert plain in known, f"{refusal}: there is no --{option}"
    numbers = {path for path, value in known.items() if isinstance(value, (int, float)) and value is not True}
    assert refused & numbers


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_help_has_a_word_on_every_option_and_its_legal_values(name, capsys):
    cls = EXPERIMENTS[name]
    print_settings(cls, cls.at("quick"))
    told = capsys.readouterr().out
    for path in flatten(cls.at("quick")):
        words = re.search(rf"--{re.escape(path)} +(.*?)\(", told, re.S)
        assert words and len(words[1].strip()) > 0, path
        for choice in typing.get_args(hint_of(cls, path)):
            if isinstance(choice, str):
                assert choice in told
    assert all(f"preset {preset}:" in told for preset in ("quick", "standard", "long", "paper"))


def test_whole_numbers_may_be_written_with_an_exponent():
    cls = EXPERIMENTS["mixture.joint"]
    assert parse_settings(cls, cls.at("quick"), ["--steps", "1e3"]).steps == 1000
    with pytest.raises(Refused, match="--steps takes a whole number, not 1.5e0"):
        parse_settings(cls, cls.at("quick"), ["--steps", "1.5e0"])


def test_lists_are_written_with_spaces_or_plus_signs():
    cls = EXPERIMENTS["composition.encoding"]
    for words in (["1", "4"], ["1+4"]):
        assert parse_settings(cls, cls.at("quick"), ["--asked_hops", *words]).asked_hops == (1, 4)


def test_settings_that_are_given_last_count():
    cls = EXPERIMENTS["mixture.joint"]
    assert parse_settings(cls, cls.at("quick"), ["--steps", "10", "--steps=20"]).steps == 20


def test_a_part_does_not_know_of_what_it_is_a_part():
    from stagewise.lab.spec.settings import with_whole_options

    known = ["width", "gpt.width", "gpt.heads", "data.action.group"]
    assert with_whole_options("(set --heads or --width)", known) == "(set --gpt.heads or --width)"
    assert with_whole_options("(set --task.action.group)", known) == "(set --data.action.group)"
    assert with_whole_options("(set --nothing)", known) == "(set --nothing)"
