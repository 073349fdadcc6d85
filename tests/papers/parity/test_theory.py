"""The table form against plain weights, the construction against its formula, the lemmas' arithmetic,
rounding."""

import numpy as np
import pytest

from stagewise.papers.parity import lemmas, plain, precision, theory
from stagewise.papers.parity.asymptotics import first_sizes
from stagewise.papers.parity.construction import neurons
from stagewise.papers.parity.experiments import ThreeSteps
from stagewise.papers.parity.lemmas import correlations
from stagewise.papers.parity.three_steps import frozen
from stagewise.tasks.parity import Parity


def small(loss="hinge", chain_of_thought=True, dimension=40, bits=6):
    settings = ThreeSteps(
        task=Parity(bits, 3, chain_of_thought),
        dimension=dimension,
        neurons=8,
        batch=64,
        epsilon=1.0,
        signal=5.0,
        loss=loss,
    )
    return settings, *frozen(settings, 0)


def plain_weights(c, E, network):
    Eq = E[network.query_rows]
    return {"A": E.T @ c.A @ Eq, "W1": c.W1 @ Eq, "W2": c.W2 @ E}


@pytest.mark.parametrize("loss", ["hinge", "linear"])
@pytest.mark.parametrize("chain_of_thought", [True, False])
def test_three_steps_by_tables_are_those_of_plain_weights(loss, chain_of_thought):
    settings, network, c, E = small(loss, chain_of_thought)
    weights, rng = plain_weights(c, E, network), np.random.default_rng(1)
    for rate in (60.0, 60.0, 20.0):
        batch = network.draw(rng, settings.batch)
        weights, _ = plain.step(weights, E, network.signs, batch, network.first, loss, rate)
        c = c.moved(network.gradient(c, batch), rate)
    assert abs(c.A).max() > 0
    for name, value in plain_weights(c, E, network).items():
        np.testing.assert_allclose(
            value, weights[name], atol=1e-12 * float(abs(weights[name]).max()), err_msg=name
        )
    out = plain.outputs(weights, E, network.signs, batch, network.first)
    np.testing.assert_allclose(network.outputs(network.tables(c), batch), out, atol=1e-10)
    np.testing.assert_allclose(precision.outputs(network, c, E, batch, None), out, atol=1e-10)


def test_a_batch_that_counts_repeated_inputs_has_the_gradient_of_the_batch_written_out():
    _, network, c, _ = small()
    batch = network.draw(np.random.default_rng(0), 500)
    assert len(batch.bits) == 64 and np.isclose(batch.share.sum(), 1)
    times = np.round(batch.share * 500).astype(int)
    written = theory.Sequences(
        np.repeat(batch.bits, times, 0), np.repeat(batch.labels, times, 0), np.full(500, 1 / 500)
    )
    for counted, plainly in zip(network.gradient(c, batch), network.gradient(c, written)):
        np.testing.assert_allclose(counted, plainly, atol=1e-15)


def test_means_of_the_statistics_are_those_of_all_inputs():
    _, network, _, _ = small(dimension=0)
    every = network.tested(np.random.default_rng(0), 10**6)
    delta, alpha = lemmas.signed_counts(network, every)
    np.testing.assert_allclose(delta, 0, atol=1e-15)
    np.testing.assert_allclose(alpha, lemmas.mean_counts(network), atol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_the_neurons_of_theorem_1_alternate(k):
    thresholds, signs = neurons(k)
    s = np.arange(k + 1)
    np.testing.assert_allclose(np.maximum(thresholds + 2 * s[:, None], 0) @ signs, (-1.0) ** (s + 1))


def test_correlations_single_out_the_secret_bit():
    assert correlations(6, 2, True) == (1.0, 0.0)
    assert correlations(6, 2, False)[0] == 0.0


def test_no_size_that_fits_into_a_computer_satisfies_assumption_2():
    sizes = first_sizes()
    assert all(np.isfinite(list(sizes.values()))) and sizes["2"] > 1e46 and 60 < sizes["1_B_below_nk"] < 63
    assert np.isinf(first_sizes(dimension_power=0.9)["2"])


def test_rounding_keeps_the_largest_and_errs_by_half_a_step():
    values = np.random.default_rng(0).standard_normal(100)
    rounded = precision.rounded(values, 5)
    assert (
        len(np.unique(rounded)) <= 2**5 + 1
        and abs(rounded - values).max() <= abs(values).max() / 2**5 + 1e-12
    )
    assert np.isclose(abs(rounded).max(), abs(values).max()) and precision.rounded(values, None) is values
