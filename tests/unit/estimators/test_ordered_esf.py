"""Probabilities given the total score against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from dense_ordered import conditional
from spectral_irt.estimators.ordered_esf import given_score
from spectral_irt.responses.ordered import Steps

CASES = {
    "mixed": [[-0.5, 0.7], [0.2], [-1.0, -0.2, 1.1], [0.0, 0.4]],
    "wide": [[-8.0, 9.0], [5.0], [-6.0, 6.0, 7.0]],
    "factors that vanish": [[0.0, 0.0, 0.0]] * 4,
    "binary": [[-1.0], [0.5], [0.0], [2.0]],
}


@pytest.mark.parametrize("name", CASES)
def test_against_enumeration(name):
    thresholds = CASES[name]
    steps = Steps(np.array([len(own) for own in thresholds]))
    cumulated = steps.cumulated(np.concatenate(thresholds))
    most = steps.n_steps
    for score in range(1, most):
        found = given_score(cumulated[None], np.array([score]), np.array([most]))
        x, p = conditional(thresholds, score)
        factors = found.pair_factors()[0]
        pairs = (factors @ factors.T).real
        for i, own in enumerate(thresholds):
            for k in range(len(own) + 1):
                assert abs(found.p[0, i, k] - p[x[:, i] == k].sum()) < 1e-13
            for j in range(len(thresholds)):
                if i == j:
                    continue
                for k in range(1, len(own) + 1):
                    for kk in range(1, len(thresholds[j]) + 1):
                        there = pairs[i * steps.widest + k - 1, j * steps.widest + kk - 1]
                        assert abs(there - p[(x[:, i] >= k) & (x[:, j] >= kk)].sum()) < 1e-13
        weight = sum(np.exp(-sum(sum(own[:k]) for own, k in zip(thresholds, row, strict=True))) for row in x)
        assert abs(found.log_gamma[0] - np.log(weight)) < 1e-11


def test_a_thousand_items():
    steps = Steps(np.full(1000, 4))
    beta = np.random.default_rng(0).normal(size=4000)
    for score in (1, 700, 3999):
        found = given_score(steps.cumulated(beta)[None], np.array([score]), np.array([4000]))
        assert abs((found.p[0] @ np.arange(5)).sum() - score) < 1e-9 * score
        assert np.isfinite(found.log_gamma[0])
