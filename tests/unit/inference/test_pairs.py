"""Pairs of items given the score: the sums against enumeration of all answers with the same score."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from spectral_irt import ConditionalPartialCredit, simulate
from spectral_irt.data import Responses
from spectral_irt.inference.dimensions import pairs
from spectral_irt.inference.dimensions.pairs import apart, both, pair_sums, rank_one

Floats = NDArray[np.float64]
BETA = np.array([-1.0, 0.3, 0.3, 2.0, -0.2])  # two are equal


def given_score(beta: Floats, score: int) -> tuple[Floats, Floats]:
    """Mean and covariance of the answers given their sum, over all of them."""
    every = np.array([x for x in product((0, 1), repeat=len(beta)) if sum(x) == score], dtype=float)
    weight = np.exp(-every @ beta)
    weight /= weight.sum()
    mean = weight @ every
    return mean, (every - mean).T @ ((every - mean) * weight[:, None])


def table(n: int = 40) -> Floats:
    rng = np.random.default_rng(3)
    x = (rng.random((n, 5)) < 1 / (1 + np.exp(BETA - rng.normal(size=(n, 1))))).astype(float)
    x[rng.random((n, 5)) < 0.2] = np.nan
    return x


def by_enumeration(x: Floats, half: NDArray[np.int64]) -> dict[str, Floats]:
    """Residuals centered by a Newton step; then S of each half, the score vectors and the information."""
    m = x.shape[1]
    e, p, cov = np.zeros(x.shape), np.zeros(x.shape), np.zeros((len(x), m, m))
    for person, row in enumerate(x):
        seen = np.flatnonzero(~np.isnan(row))
        score = int(np.nansum(row))
        if not 0 < score < len(seen):
            continue
        mean, c = given_score(BETA[seen], score)
        p[person, seen], e[person, seen] = mean, row[seen] - mean
        cov[person][np.ix_(seen, seen)] = c
    v = np.einsum("lii->li", cov)
    free = e - v * (e.sum(axis=0) / v.sum(axis=0))
    shared = np.einsum("li,lj->lij", free, free) - cov
    return {"shared": np.array([shared[half == k].sum(axis=0) for k in (0, 1)])}


def test_pair_sums_are_those_of_enumeration() -> None:
    x = table()
    half = np.arange(len(x)) % 2
    expected = by_enumeration(x, half)
    responses = Responses.from_wide(x)
    halves = pair_sums(responses, apart(BETA), half)[1]
    off = ~np.eye(5, dtype=bool)
    for found, wanted in zip(halves, expected["shared"], strict=True):
        np.testing.assert_allclose(found.shared[off], wanted[off], atol=1e-4)  # difficulties were moved by 1e-5


def test_pair_sums_of_ordered_answers_by_enumeration() -> None:
    data = simulate.partial_credit(150, thresholds=[[-0.5, 0.7], [0.2], [-1.0, 0.3, 1.1], [0.0, 0.4]], seed=3)
    answers, layout = data.responses, data.responses.thresholds
    beta = ConditionalPartialCredit().fit(answers).thresholds_  # where residuals add to zero for every item
    every = np.array(list(product(*(range(k + 1) for k in layout.max_score))), dtype=float)
    weight = np.exp(-layout.cumulated(beta)[np.arange(4), every.astype(int)].sum(axis=1))
    shared = np.zeros((4, 4))
    for row in answers.to_dense()[answers.informative]:
        same = every.sum(axis=1) == row.sum()
        p = weight[same] / weight[same].sum()
        mean = p @ every[same]
        away = every[same] - mean
        shared += np.outer(row - mean, row - mean) - away.T @ (away * p[:, None])
    halves = pair_sums(answers, beta, np.arange(150) % 2)[1]
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(both(*halves).shared[off], shared[off], atol=1e-6)


def test_the_series_of_long_records_gives_the_exact_covariances(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simulate.partial_credit(200, 14, categories=4, seed=5)
    x = data.responses.to_dense()
    x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    answers, half = Responses.from_wide(x, ordered=True), np.arange(200) % 2
    series = both(*pair_sums(answers, data.thresholds, half)[1])
    monkeypatch.setattr(pairs, "LONG", np.inf)
    exact = both(*pair_sums(answers, data.thresholds, half)[1])
    # The standard error of S is about 10: its z is right to 0.001.
    np.testing.assert_allclose(series.shared, exact.shared, atol=0.01)
    assert np.abs(series.shared - exact.shared).max() > 0


def test_variance_is_that_of_simulation() -> None:
    """20,000 people of score 2 on 5 items: the model's variance of e_i e_j and what is seen agree."""
    rng = np.random.default_rng(0)
    every = np.array([x for x in product((0, 1), repeat=5) if sum(x) == 2], dtype=float)
    weight = np.exp(-every @ BETA)
    x = every[rng.choice(len(every), 20_000, p=weight / weight.sum())]
    halves = pair_sums(Responses.from_wide(x), apart(BETA), np.arange(len(x)) % 2)[1]
    mean, cov = given_score(BETA, 2)
    e = every - mean
    products = np.einsum("li,lj->lij", e, e)
    exact = np.einsum("l,lij->ij", weight / weight.sum(), products**2) - cov**2
    off = ~np.eye(5, dtype=bool)
    found = both(*halves).variance[off] / len(x)
    assert np.all(found >= 0.9 * exact[off])
    np.testing.assert_allclose(found, exact[off], rtol=0.15)  # the covariance of rank one is not exact


def test_covariance_of_rank_one_has_the_right_row_sums() -> None:
    mean, cov = given_score(BETA, 2)
    v = (mean * (1 - mean))[None, :]
    c = rank_one(v, np.ones((1, 5)))[0]
    np.testing.assert_allclose(c * (c.sum() - c), v[0], rtol=0.05)
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(-np.outer(c, c)[off], cov[off], rtol=0.35)


def test_apart_moves_equal_difficulties_only() -> None:
    beta = np.array([0.5, -1.0, 0.5, 3.0, 0.5])
    moved = apart(beta, 1e-3)
    np.testing.assert_allclose(np.diff(np.sort(moved)).min(), 1e-3)
    assert moved[[0, 1, 3]].tolist() == pytest.approx([0.5, -1.0, 3.0])
    np.testing.assert_allclose(moved, beta, atol=2.1e-3)
