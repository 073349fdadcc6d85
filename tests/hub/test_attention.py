"""Attention entropies of a tiny Qwen2 made on the spot: patterns as the library gives them, resuming, the
command, bad input."""

import builtins
import json

import numpy as np
import pytest

from stagewise.commands.main import main
from stagewise.errors import Refused
from stagewise.hub import attention
from stagewise.hub.questions import Question, read_questions
from stagewise.lab.execute.progress import Progress

QUESTIONS = [
    {"question": "Ann has 2 pens and buys 3 . How many ?", "answer": "Ann has 2 + 3 = 5 pens . \n#### 5"},
    {
        "question": "Bob had 1,234 pens and lost 4 . How many ?",
        "answer": "Bob has 1,234 - 4 = 1,230 pens . \n#### 1,230",
    },
    {"question": "How many is 2 - 3 ?", "answer": "2 - 3 = -1 so it is -1 . \n#### -1"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model folder with random weights and a tokenizer that knows a few words."""
    import os

    if not os.environ.get("STAGEWISE_ALL_ORACLES"):
        pytest.importorskip("transformers")
        pytest.importorskip("torch")
    import tokenizers
    import torch
    import transformers

    path = tmp_path_factory.mktemp("model")
    words = sorted(
        {word for q in QUESTIONS for text in q.values() for word in text.split()}
        | {"The", "answer", "is", "?"}
    )
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({w: i for i, w in enumerate([*words, "[UNK]"])}, unk_token="[UNK]")
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]").save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    transformers.Qwen2ForCausalLM(config).save_pretrained(path)
    return path


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(q) + "\n" for q in QUESTIONS))
    return path


def test_patterns_are_those_the_library_gives_out(folder):
    import torch

    model, _ = attention.load(str(folder))
    tokens = [3, 1, 4, 1, 5, 9]
    taken = list(attention.patterns(model, tokens))
    given = model(torch.tensor([tokens]), output_attentions=True).attentions
    assert len(taken) == len(given) == 2
    for ours, theirs in zip(taken, given):
        np.testing.assert_allclose(ours, theirs[0].detach().numpy(), atol=1e-7)
        np.testing.assert_allclose(ours.sum(-1), 1, atol=1e-6)


def test_entropies_have_their_shape_and_range_and_a_stopped_run_goes_on(folder, data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    whole = attention.probe(attention.Probe(str(folder), data), out, Progress())
    # Random weights: nearly uniform.
    assert whole.shape == (3, 3, 2, 4) and (whole > 0.9).all() and (whole <= 1 + 1e-6).all()
    assert (whole[:, 2] >= whole[:, 1] - 1e-6).all()  # a minimum over fewer places is not lower
    kept = out / "entropies.jsonl"
    first, second, _ = kept.read_text().splitlines(keepends=True)
    kept.write_text(first + second[: len(second) // 2])  # killed while writing
    asked, real = [], attention._measuring

    def counting(settings):
        measure = real(settings)
        return lambda question, i: (asked.append(i), measure(question, i))[1]

    monkeypatch.setattr(attention, "_measuring", counting)
    again = attention.probe(attention.Probe(str(folder), data), out, Progress())
    assert asked == [1, 2]
    np.testing.assert_allclose(again, whole, atol=1e-5)
    with pytest.raises(Refused, match="another probe"):
        attention.probe(attention.Probe(str(folder), data, places="answer"), out, Progress())


def test_the_command_prints_a_table_and_draws(folder, data, tmp_path, capsys):
    assert (
        main(
            [
                "probe-attention",
                str(folder),
                str(data),
                "--items",
                "2",
                "--places",
                "answer",
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    assert "lower when matched" in capsys.readouterr().out
    assert (tmp_path / "out" / "entropy.png").stat().st_size > 1000
    layers = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert layers["questions"] == 2 and [row["layer"] for row in layers["layers"]] == [1, 2]


def test_results_are_what_stands_behind_the_mark(data):
    questions = read_questions(data)
    assert [q.result for q in questions] == ["5", "1,230", "-1"]
    assert questions[1].without_reasoning.endswith("The answer is 1,230.")
    assert Question("a", "b #### 2").with_reasoning == "a b #### 2"


@pytest.mark.parametrize(
    "line, says",
    [
        ("{", "line 2 of .* is not JSON"),
        ('{"question": "a"}', "line 2 of .* has no text under 'answer'"),
        ("[1]", "line 2 .* 'question'"),
        ('{"question": "a", "answer": "b"}', "line 2 of .* has no result after ####"),
    ],
)
def test_bad_lines_are_named(data, line, says):
    lines = data.read_text().splitlines()
    data.write_text("\n".join([lines[0], line, lines[1]]))
    with pytest.raises(Refused, match=says):
        read_questions(data)


def test_a_folder_without_weights_is_refused(folder, data, tmp_path):
    with pytest.raises(Refused, match="no config.json"):
        attention.load(str(tmp_path))
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(Refused, match="has no weights"):
        attention.load(str(tmp_path))


def test_bad_settings_are_refused(data, tmp_path, capsys):
    for more, says in ((["--items", "0"], "items must be"), (["--places", "some"], "places must be")):
        assert main(["probe-attention", "x", str(data), "--out", str(tmp_path / "o"), *more]) == 2
        assert says in capsys.readouterr().err
    assert main(["probe-attention", "x", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "o")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_without_the_extra_it_says_how_to_install_it(data, tmp_path, monkeypatch, capsys):
    real = builtins.__import__

    def missing(name, *rest, **more):
        if name.split(".")[0] in ("torch", "transformers"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert main(["probe-attention", "x", str(data), "--out", str(tmp_path / "o")]) == 2
    assert "[hf]" in capsys.readouterr().err
