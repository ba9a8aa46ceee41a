"""What is kept of every answer: single precision, people in place or sorted, sums in double."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.conditional import likelihood, series_binary
from spectral_irt.conditional.exact import DOUBLE, SINGLE, Contour
from spectral_irt.conditional.series_binary import SeriesRows, with_abilities
from spectral_irt.data.block import Block

M = 40


def block_of(lengths: list[int], seed: int = 0) -> tuple[Block, np.ndarray]:
    """People with so many answers each; the first of every length is all right, the second all wrong."""
    rng = np.random.default_rng(seed)
    beta, packed, scores = rng.normal(size=M), [], []
    for k, n in enumerate(lengths):
        items = np.sort(rng.permutation(M)[:n])
        passed = rng.random(n) < 1 / (1 + np.exp(beta[items] - rng.normal()))
        before = lengths[:k].count(n)
        if before < 2:
            passed[:] = before == 0
        packed += [items[passed], items[~passed]]
        scores.append(passed.sum())
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return Block(indptr, indptr[:-1] + scores, np.concatenate(packed).astype(np.int32)), beta


def slowly(block: Block, beta: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Scores and their squares of every item: by the exact sum, one person after the other."""
    score, squares = np.zeros((2, M))
    for k in np.flatnonzero(block.informative):
        low, high = block.indptr[k], block.indptr[k + 1]
        items, s = block.items[low:high], block.split[k] - low
        x = np.arange(high - low) < s
        p = Contour.of(beta[items][None, :, None], np.array([s]), np.array([len(x)])).given.p[0, :, 0]
        score[items] += weight[k] * (p - x)
        squares[items] += (weight[k] * (p - x)) ** 2
    return score, squares


LENGTHS = [40, 38, 36] * 40 + [1, 2, 5, 1, 2, 5, 6, 7]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("precision", "close"), [(DOUBLE, 1e-10), (SINGLE, 1e-5)])
@pytest.mark.parametrize("without", [False, True])
def test_people_in_place_are_people_sorted(weighted, precision, close, without, monkeypatch) -> None:
    block, beta = block_of(LENGTHS + ([0] if without else []))
    weight = np.random.default_rng(1).uniform(0.5, 2, block.n_persons) if weighted else np.ones(block.n_persons)
    people = with_abilities(block, weight if weighted else None, beta)
    v = np.random.default_rng(2).normal(size=M)
    found = []
    for share in (0.5, -1.0):
        monkeypatch.setattr(series_binary, "IN_PLACE", share)
        made = SeriesRows.of(people, 3.0, M, precision)
        assert (made.block is block) == (share > 0 and not without)
        for at in (0 * beta, beta):  # the memory of the first is used again
            made, sums = made.evaluate(at)
        assert made.score.dtype == made.factor.dtype == precision
        assert all(each.dtype == np.float64 for each in sums)
        columns = made.factors_twice(None, np.stack([v, 2 * v], axis=1))
        here = made.factors_twice(None, v)
        assert np.allclose(columns, np.stack([here, 2 * here], axis=1), rtol=0, atol=1e-12)
        found.append([*sums, made.score_sums(None, v)[0][:, 0, 0], here, made.score_sums(None, v)[1]])
        # Its rows add to zero, whatever is kept.
        assert np.allclose(made.factors_twice(None, np.ones(M)), sums[1], rtol=1e-13)
    for a, b in zip(*found, strict=True):
        assert np.allclose(a, b, rtol=0, atol=close)
    score, squares = slowly(block, beta, weight)
    assert np.allclose(found[0][0], score, atol=2e-3)  # the series
    assert np.allclose(found[0][3], squares, atol=2e-3)


def test_all_are_exact_where_all_are_short() -> None:
    block, beta = block_of([4, 5, 6] * 50)
    made, (score, *_) = SeriesRows.of(with_abilities(block, None, beta), np.inf, M, DOUBLE).evaluate(beta)
    assert made.n_long == 0
    assert np.allclose(score, slowly(block, beta, np.ones(block.n_persons))[0], atol=1e-9)


@pytest.mark.parametrize("se", ["one-pass", "multiplier", "dense"])
def test_single_precision_moves_nothing_that_matters(se: str, monkeypatch: pytest.MonkeyPatch) -> None:
    responses = si.simulate.rasch(2500, 150, design="sampled", p=0.4, seed=3).responses
    assert responses.n_responses > likelihood.QUICK_ANSWERS
    single = si.SpectralRasch(se=se).fit(responses)
    monkeypatch.setattr("spectral_irt.conditional.exact.SINGLE", DOUBLE)
    monkeypatch.setattr("spectral_irt.chain.stationary.LARGE_DATA", 10**9)
    double = si.SpectralRasch(se=se).fit(responses)
    assert np.max(np.abs(single.difficulty_ - double.difficulty_) / double.se_) < 1e-4 < likelihood.SERIES_SHIFT / 10
    assert np.allclose(single.se_, double.se_, rtol=1e-5)
    assert not np.array_equal(single.difficulty_, double.difficulty_)
