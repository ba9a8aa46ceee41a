"""Names: plain text, short, and apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from spectral_irt.plots.labels import MISSING, apart, shown

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands


@pytest.mark.parametrize("seed", range(5))
def test_apart_is_the_least_move(seed: int) -> None:
    """Against a general solver of the same least squares."""
    rng = np.random.default_rng(seed)
    places, gap = rng.normal(0, 1, 7), 0.5
    found = apart(places, gap)
    order = np.argsort(places)
    assert (np.diff(found[order]) >= gap - 1e-12).all()
    limits = [{"type": "ineq", "fun": lambda x, i=i: x[i + 1] - x[i] - gap} for i in range(6)]
    start = gap * np.arange(7.0)
    best = minimize(lambda x: ((x - places[order]) ** 2).sum(), start, constraints=limits, tol=1e-12)
    assert ((found - places) ** 2).sum() == pytest.approx(best.fun, abs=1e-6)


def test_apart_stays_within() -> None:
    found = apart([9.9, 9.95, 10.0], 1.0, 0.0, 10.0)
    assert found.tolist() == [8.0, 9.0, 10.0]
    assert apart([], 1.0).tolist() == []


def test_shown_is_one_short_line_in_characters_that_the_font_has() -> None:
    assert shown("$x^2$") == "$x^2$"
    assert shown("a\tb\x1b[31m") == r"a\tb\x1b[31m"
    assert shown(17) == "17"
    assert shown("\U00012000\U00012001é") == MISSING * 2 + "é"
    long = "begin" + 100 * "x" + "end"
    assert len(shown(long)) == 26
    assert shown(long).startswith("begin")
    assert shown(long).endswith("end")
