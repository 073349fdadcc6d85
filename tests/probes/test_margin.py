"""The margin against cases whose answer is known, and against a quadratic programme of scipy's."""

import numpy as np
import pytest
from scipy.optimize import minimize

from stagewise.probes.margin import maximum_margin


def test_margins_that_are_known():
    assert maximum_margin(np.eye(3)) == pytest.approx(1 / np.sqrt(3), rel=1e-9)
    assert maximum_margin(np.array([[2.0, 0.0], [5.0, 9.0]])) == pytest.approx(2, rel=1e-9)
    assert maximum_margin(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])) == 0


def test_margins_are_those_of_a_programme():
    rng = np.random.default_rng(0)
    for _ in range(5):
        rows = rng.normal(size=(6, 4)) + 1.5
        constraints = {"type": "ineq", "fun": lambda u, rows=rows: rows @ u - 1}
        found = minimize(lambda u: u @ u, np.ones(4), constraints=constraints, options={"ftol": 1e-14})
        assert maximum_margin(rows) == pytest.approx(1 / np.linalg.norm(found.x), rel=1e-5)
