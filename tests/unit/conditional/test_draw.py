"""Draws given the score against enumeration of all patterns, and against exact conditional moments."""

from itertools import product

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.conditional import draw
from spectral_irt.conditional.draw import draws_given_score
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from split import in_blocks


def all_draws(responses, thresholds, draws, seed=0, first=0):
    """Draws x people x items, NaN where a person did not answer."""
    table = np.full((draws, responses.n_persons, responses.n_items), np.nan)
    for block in draws_given_score(responses, thresholds, draws=range(first, first + draws), seed=seed):
        table[:, block.persons[:, None], block.items] = block.categories
    table[:, np.isnan(responses.to_dense())] = np.nan
    return table


def random_table(rng):
    """Some people, items of one to four thresholds (some far off), missing responses, any scores; the thresholds."""
    steps = rng.integers(1, 5, rng.integers(2, 5))
    thresholds = [rng.normal(0, rng.choice([0.5, 2.0]), k) for k in steps]
    n = int(rng.integers(2, 5))
    x = np.array([[rng.integers(0, k + 1) for k in steps] for _ in range(n)], dtype=float)
    x[rng.random(x.shape) < 0.25] = np.nan
    # Every category occurs, so that the layout is that of the thresholds, whoever is drawn.
    whole = np.array([[min(level, k) for k in steps] for level in range(max(steps) + 1)], dtype=float)
    return np.vstack([x, whole]), thresholds


def patterns_given(score, thresholds):
    """All patterns of these items with this score, and the probability of each."""
    cumulated = [np.concatenate([[0.0], np.cumsum(each)]) for each in thresholds]
    every = [x for x in product(*(range(len(each)) for each in cumulated)) if sum(x) == score]
    weight = np.exp([-sum(each[c] for each, c in zip(cumulated, x, strict=True)) for x in every])
    return every, weight / weight.sum()


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 200), marks=pytest.mark.slow)])
def test_frequencies_are_those_of_enumeration(seeds):
    """In random designs with missing responses and mixed categories: chi-squared over all patterns of each person."""
    draws, statistic, df = 4000, 0.0, 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x, thresholds = random_table(rng)
        responses = si.Responses.from_wide(x, ordered=True)
        table = all_draws(responses, np.concatenate(thresholds), draws, seed=seed)
        for person, row in enumerate(x):
            seen = np.flatnonzero(~np.isnan(row))
            if not len(seen):
                continue
            every, p = patterns_given(row[seen].sum(), [thresholds[k] for k in seen])
            drawn = table[:, person, seen].astype(int)
            assert (drawn.sum(axis=1) == row[seen].sum()).all()
            counts = dict.fromkeys(every, 0)
            for pattern, number in zip(*np.unique(drawn, axis=0, return_counts=True), strict=True):
                counts[tuple(pattern.tolist())] += number
            number, expected = np.array(list(counts.values())), draws * p
            usual = expected >= 5
            # Rare patterns are one class, which must not be drawn more often than its chance allows.
            rare = expected[~usual].sum()
            assert number[~usual].sum() <= rare + 6 * np.sqrt(rare) + 6
            if usual.sum() > 1:
                statistic += ((number - expected)[usual] ** 2 / expected[usual]).sum()
                df += usual.sum() - (0 if rare > 0 else 1)
    assert abs(statistic - df) < 4 * np.sqrt(2 * df)


@pytest.mark.parametrize("ordered", [False, True])
def test_means_and_variances_are_the_exact_conditional_ones(ordered):
    rng = np.random.default_rng(5)
    data = si.simulate.partial_credit(200, 7, categories=4 if ordered else 2, seed=5)
    x = data.responses.to_dense()
    x[rng.random(x.shape) < 0.2] = np.nan
    responses = si.Responses.from_wide(x, ordered=ordered)
    draws = 2000
    table = all_draws(responses, data.thresholds, draws, seed=1)
    given = GivenScore.of(responses, data.thresholds, series_from=np.inf)
    (block,) = responses.blocks
    person, item, _, mean, variance, *_ = answers_with_moments(block, given.pattern, given)
    drawn = table[:, person, item]
    error = np.sqrt(variance / draws)
    certain = error < 1e-9
    np.testing.assert_allclose(drawn.mean(axis=0)[certain], mean[certain], atol=1e-9)
    assert np.abs((drawn.mean(axis=0) - mean)[~certain] / error[~certain]).max() < 5  # the largest of 1,100
    assert drawn.var(axis=0).sum() == pytest.approx(variance.sum(), rel=0.01)


def test_draws_do_not_depend_on_blocks_or_on_their_number(monkeypatch):
    data = si.simulate.partial_credit(80, 8, categories=3, seed=2)
    x = data.responses.to_dense()
    x[np.random.default_rng(2).random(x.shape) < 0.3] = np.nan
    responses = si.Responses.from_wide(x, ordered=True)
    whole = all_draws(responses, data.thresholds, 50, seed=3)
    monkeypatch.setattr(draw, "TABLE_CELLS", 500)
    monkeypatch.setattr(draw, "DRAWN_CELLS", 1000)
    monkeypatch.setattr(draw, "CACHED", 7)
    small = all_draws(in_blocks(responses, 100), data.thresholds, 20, seed=3)
    np.testing.assert_array_equal(small, whole[:20])
    np.testing.assert_array_equal(all_draws(responses, data.thresholds, 5, seed=3, first=30), whole[30:35])
    assert (all_draws(responses, data.thresholds, 20, seed=4) != small).any()


def test_blocks_bound_the_memory(monkeypatch):
    """No block has more draws than it may, whatever the numbers of people, patterns and items are."""
    monkeypatch.setattr(draw, "TABLE_CELLS", 20_000)
    monkeypatch.setattr(draw, "DRAWN_CELLS", 50_000)
    data = si.simulate.rasch(400, 30, design="sampled", p=0.3, seed=1)
    sizes, persons = [], []
    for block in draws_given_score(data.responses, data.thresholds, draws=range(100)):
        sizes.append(block.categories.size)
        persons += block.persons.tolist()
    assert max(sizes) <= 50_000
    assert sorted(persons) == np.flatnonzero(data.responses.counts).tolist()


def test_thresholds_many_logits_apart_and_long_tests():
    """Scores that are next to impossible at any one ability of all people have exact draws, too."""
    beta = np.linspace(-40, 40, 60)
    x = np.zeros((3, 60))
    x[0, ::2] = x[1, :5] = x[2, 3:] = 1
    table = all_draws(si.Responses.from_wide(x), beta, 20)
    np.testing.assert_array_equal(table.sum(axis=2), np.tile([30, 5, 57], (20, 1)))
    assert table[:, 0, :25].all()  # 30 of 60, of which the easiest are certain
    assert not table[:, 0, 35:].any()


def test_uniform_numbers_are_uniform():
    """Of neighboring cells, draws and seeds: mean, variance and correlation as independent ones have them."""
    cells = np.arange(100_000, dtype=np.uint64)
    u = np.stack([draw.uniforms(seed, cells) for seed in (0, 1, 2)])
    error = np.sqrt(1 / 12 / u.shape[1])
    assert np.abs(u.mean(axis=1) - 0.5).max() < 4 * error
    np.testing.assert_allclose(u.var(axis=1), 1 / 12, rtol=0.02)
    assert np.abs(np.corrcoef(np.vstack([u, u[0, np.r_[1 : len(cells), 0]]]))[np.triu_indices(4, 1)]).max() < 0.015


def test_items_without_thresholds_are_refused():
    data = si.simulate.rasch(10, 4, seed=1)
    with pytest.raises(OptionError, match="no thresholds"):
        next(draws_given_score(data.responses, np.array([0.0, np.nan, 0, 0]), draws=range(2)))


def splitmix(seed, cell):
    """The uniform number of a cell in integers: two rounds of SplitMix64."""
    mask = 2**64 - 1

    def mixed(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    start = mixed(((seed + 1) * golden) & mask)
    return (mixed((start + (cell + 1) * golden) & mask) >> 11) / 2**53


@pytest.mark.parametrize("seed", [0, 7])
def test_each_response_is_drawn_by_a_number_of_its_own(seed):
    """The same seed, the same data, in any version: by enumeration from the last item to the first."""
    rng = np.random.default_rng(seed)
    x, thresholds = random_table(rng)
    responses = si.Responses.from_wide(x, ordered=True)
    n_persons, n_items = x.shape
    table = all_draws(responses, np.concatenate(thresholds), 3, seed=seed, first=2)
    for draw_number in range(3):
        for person, row in enumerate(x):
            seen = np.flatnonzero(~np.isnan(row))
            left = row[seen].sum()
            for last in range(len(seen), 0, -1):
                item = seen[last - 1]
                every, p = patterns_given(left, [thresholds[k] for k in seen[:last]])
                u = splitmix(seed, ((draw_number + 2) * n_persons + person) * n_items + int(item))
                top = len(thresholds[item])
                above = [sum(b for a, b in zip(every, p, strict=True) if a[-1] >= c) for c in range(1, top + 1)]
                category = sum(u < chance for chance in above)
                assert table[draw_number, person, item] == category
                left -= category
