"""Small studies whose pictures are looked at."""

import numpy as np
import pytest

import spectral_irt as si
from drawn import drawn

ODD = ["$x^2$", "<script>alert(1)</script>", "_a_", "A very long label of an item about ferns and mosses", "two\nlines"]


def make_study(n, m, *, share=1.0, seed=5):
    """Two misfitting items, one that differs between groups (odd and even people), one pair that depends, odd names."""
    rng = np.random.default_rng(seed)
    theta, beta = rng.normal(0.3, 1.1, (n, 1)), rng.normal(0, 1.2, m)
    slope = np.where(np.arange(m) == 3, 0.3, np.where(np.arange(m) == 7, 2.5, 1.0))
    shift = np.outer(np.arange(n) % 2, np.arange(m) == 5) * 1.2
    answers = drawn(rng, slope * (theta - beta - shift))
    answers[: n // 2, 11] = answers[: n // 2, 12]
    answers[rng.random((n, m)) >= share] = np.nan
    labels = [*ODD, *(f"Item {k}" for k in range(len(ODD) + 1, m + 1))]
    responses = si.Responses.from_wide(answers, items=labels)
    return si.SpectralRasch().fit(responses).analyse(responses)


@pytest.fixture(scope="session")
def study():
    return make_study(800, 20)


@pytest.fixture(scope="session")
def wide_study():
    return make_study(1500, 500, share=0.1)


def make_ordered_study(thresholds, n, labels, *, share=1.0):
    """Answers drawn category by category; the item at 2 is noise."""
    rng = np.random.default_rng(4)
    ability = rng.normal(0.2, 1.2, n)
    answers = si.simulate.partial_credit(n, thresholds=thresholds, ability=ability, seed=4).responses.to_dense()
    answers[: n // 2, 2] = rng.integers(0, len(thresholds[2]) + 1, n // 2)
    answers[rng.random(answers.shape) >= share] = np.nan
    responses = si.Responses.from_wide(answers, items=labels, ordered=True)
    return si.SpectralPartialCredit().fit(responses).analyse(responses)


@pytest.fixture(scope="session")
def ordered_study():
    """Six items with two to five categories; the thresholds of the fourth are out of order."""
    beta = [[-1.0, 0.0, 1.0], [-0.5, 0.5, 1.0, 2.0], [-1.0, 1.0], [1.0, -1.0], [0.3], [-2.0, -1.0, 0.0]]
    return make_ordered_study(beta, 600, [*ODD[:3], ODD[4], ODD[3], "q6"])


@pytest.fixture(scope="session")
def wide_ordered_study():
    beta = (np.random.default_rng(0).normal(0, 1, (60, 1)) + np.array([-1.0, 0.0, 1.0])).tolist()
    return make_ordered_study(beta, 500, ["$x^2$", *(f"Item {k}" for k in range(2, 61))], share=0.3)
