"""A trained GPT-2 goes out as a folder that Hugging Face's library loads, with the same logits."""

import jax.numpy as jnp
import numpy as np
import pytest

import stagewise as sw
from stagewise.commands.main import main
from stagewise.models.sizes import Shape
from stagewise.papers.mixture.experiments import JointTraining
from stagewise.papers.parity.experiments import GPTTraining
from stagewise.tasks.parity import Parity


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    settings = GPTTraining(
        task=Parity(8, 3),
        gpt=Shape(2, 2, 16),
        batch=16,
        samples=64,
        validation=32,
        scale=0.3,
        embedding_scale=0.5,
        seeds=2,
    )
    return sw.run(settings, runs=tmp_path_factory.mktemp("runs"))


@pytest.mark.slow
def test_the_library_loads_what_is_exported(trained, tmp_path, oracle, capsys):
    torch, transformers = oracle("torch"), oracle("transformers")
    out = tmp_path / "model"
    assert (
        main(["export", str(trained.folders[0]), str(out), "--seed", "1"]) == 0
        and "seed 1" in capsys.readouterr().out
    )
    theirs = transformers.GPT2LMHeadModel.from_pretrained(out).eval()
    tokens = np.random.default_rng(0).integers(0, 2, (4, 11))
    with torch.no_grad():
        logits = theirs(torch.tensor(tokens)).logits.numpy()
    np.testing.assert_allclose(trained.model(1)(jnp.asarray(tokens)), logits, atol=1e-5)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["RUN", "OUT", "--seed", "5"], "seed 5 was not run"),
        (["/nowhere", "OUT"], "/nowhere"),
        (["RUN", "FULL"], "is not empty"),
    ],
)
def test_bad_exports_are_refused(trained, tmp_path, arguments, says, capsys):
    full = tmp_path / "full"
    full.mkdir()
    (full / "something").touch()
    names = {"RUN": str(trained.folders[0]), "OUT": str(tmp_path / "out"), "FULL": str(full)}
    assert main(["export", *(names.get(a, a) for a in arguments)]) == 2 and says in capsys.readouterr().err


def test_only_a_gpt_is_exported(tmp_path, capsys):
    run = sw.run(JointTraining(width=4, steps=5, seeds=1), runs=tmp_path / "runs")
    assert (
        main(["export", str(run.folders[0]), str(tmp_path / "out")]) == 2
        and "no GPT-2" in capsys.readouterr().err
    )
