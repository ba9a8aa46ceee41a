"""What the exact methods take for granted of their parts: tilts, numbers of points, tiles, limits of the series."""

import numpy as np
import pytest

from spectral_irt.conditional import exact
from spectral_irt.conditional.exact import (
    ALIKE,
    CLOSE,
    MANY,
    NEGLIGIBLE,
    SHORT_ORDER,
    TILE_CELLS,
    answers_above,
    by_fewer_steps,
    chances,
    dtype_for,
    given_every_score,
    given_score,
    matched_factors,
    n_points,
    pattern_parts,
    rough_tilt,
    series_limit,
    tiles,
    tilt,
)
from spectral_irt.data.block import Rows, Thresholds


def score_moments(thresholds, theta):
    """Mean and variance of the score of one person, item by item and category by category."""
    mean, variance = 0.0, 0.0
    for own in thresholds:
        weight = np.exp([c * theta - sum(own[:c]) for c in range(len(own) + 1)])
        p = weight / weight.sum()
        first = sum(c * share for c, share in enumerate(p))
        mean += first
        variance += sum(c**2 * share for c, share in enumerate(p)) - first**2
    return mean, variance


def cumulated_of(thresholds, n_scores):
    """Categories x items x people, the same for every person; +inf where an item has fewer categories."""
    width = max(map(len, thresholds))
    sums = np.full((width, len(thresholds)), np.inf)
    for i, own in enumerate(thresholds):
        sums[: len(own), i] = np.cumsum(own)
    return np.repeat(sums[:, :, None], n_scores, axis=2)


SETS = {
    "right and wrong": [[b] for b in (-6.0, -1.0, 0.0, 0.5, 2.0, 7.0)],
    "unequal categories": [[-0.5, 0.7], [0.2], [-1.0, -0.2, 1.1], [4.0, 5.0]],
    "far apart": [[-15.0], [15.0], [-14.0], [14.0], [0.0], [0.5]],
    "alike": [[0.0, 0.0, 0.0]] * 5,
    "in reverse order": [[3.0, -3.0], [6.0, -7.0, 0.0], [0.3]],
}


@pytest.mark.parametrize("name", SETS)
def test_the_tilt_meets_every_score_within_its_bounds(name):
    thresholds = SETS[name]
    most = sum(map(len, thresholds))
    scores = np.arange(1, most)
    cumulated = cumulated_of(thresholds, len(scores))
    theta, low, high = rough_tilt(cumulated, scores, np.full(len(scores), most))
    assert np.all((low <= theta) & (theta <= high))
    final, p, variance = tilt(cumulated, scores, np.full(len(scores), most))
    np.testing.assert_allclose(p, chances(final, cumulated))
    for k, score in enumerate(scores):
        assert score_moments(thresholds, low[k])[0] <= score <= score_moments(thresholds, high[k])[0]
        mean, spread = score_moments(thresholds, final[k])
        assert abs(mean - score) <= CLOSE * np.sqrt(max(spread, 0.04))
        assert variance[k] == pytest.approx(spread, rel=1e-9)


@pytest.mark.parametrize("name", ["right and wrong", "unequal categories"])
def test_the_tilt_starts_at_prox_and_takes_few_steps(name, monkeypatch):
    thresholds = SETS[name]
    every = np.concatenate(thresholds)
    most = len(every)
    scores = np.arange(1, most)
    cumulated, tops = cumulated_of(thresholds, len(scores)), np.full(len(scores), most)
    theta, low, high = rough_tilt(cumulated, scores, tops)
    prox = every.mean() + np.sqrt(1 + every.var() / 2.89) * np.log(scores / (most - scores))
    np.testing.assert_allclose(theta, np.clip(prox, low, high), rtol=1e-3)  # 2.89 to two digits
    steps = []
    monkeypatch.setattr(exact, "chances", lambda *each: (steps.append(1), chances(*each))[1])
    tilt(cumulated, scores, tops)
    assert len(steps) <= 5
    # The tree has one ability for all scores, in the middle of the thresholds.
    tree = given_every_score(cumulated[:, :, 0])
    np.testing.assert_allclose(tree.theta, every.mean())


def test_people_of_one_set_share_a_tree_where_scores_are_many():
    """Eight people or more, with a quarter of the scores that a set has; the others in tiles, padded."""
    rng = np.random.default_rng(5)
    layout = Thresholds(np.array([1, 2, 1, 3, 1, 1, 2, 1]))
    kinds = {
        (0, 1, 2, 3): 40,  # 7 thresholds, 6 scores: at most 6 patterns, fewer than 8
        (0, 1, 2, 3, 4, 5, 6): 60,  # 11 thresholds, 10 scores
        (1, 3, 6, 7): 5,
        (2, 5): 3,
    }
    items, scores = [], []
    for own, number in kinds.items():
        most = int(layout.max_score[list(own)].sum())
        for score in range(most + 1) if number >= 40 else range(1, most)[:number]:
            items.append(rng.permutation(own))
            scores.append(score)
    counts = np.array([len(own) for own in items])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    most = np.array([layout.max_score[own].sum() for own in items])
    rows = Rows(indptr, np.concatenate(items).astype(np.int32), counts, np.array(scores), most)
    people = np.arange(len(items)) + 1
    parts = list(pattern_parts(rows, people, layout))
    together = np.sort(np.concatenate([part.which for part in parts]))
    np.testing.assert_array_equal(together, np.flatnonzero((rows.scores > 0) & (rows.scores < most)))
    assert [part.one_set for part in parts].count(True) == 1
    for part in parts:
        assert part.one_set == (counts[part.which[0]] == 7)
        np.testing.assert_array_equal(part.people, part.which + 1)
        np.testing.assert_array_equal(part.scores, rows.scores[part.which])
        np.testing.assert_array_equal(part.max_scores, most[part.which])
        for place, person in enumerate(part.which):
            inside = part.inside[place]
            assert sorted(part.items[place][inside]) == sorted(items[person])
            assert np.all(part.items[place][~inside] == 8)
    rest = np.concatenate([part.which for part in parts if not part.one_set])
    orders = np.minimum(rows.scores, most - rows.scores)[rest]
    assert np.all(np.diff(orders) >= 0)


@pytest.mark.parametrize("widest", [1, 4])
def test_points_of_the_contour_leave_out_what_is_below_rounding_and_no_more(widest):
    """Aliases a period away, by Bernstein; of right and wrong answers also points where the product has fallen."""
    variance = np.array([0.3, 2.0, 30.0, 400.0, 9000.0, 30.0])
    most = np.array([6, 40, 900, 4000, 90_000, 40])
    scores = np.array([1, 20, 100, 3990, 45_000, 39])
    period, used = n_points(variance, widest, scores, most)
    for v, top, s, n, points in zip(variance, most, scores, period, used, strict=True):
        assert n % 2 == 0

        def below_rounding(steps, v=v):
            return steps**2 / (2 * (v + widest * steps / 3)) >= NEGLIGIBLE * (1 - 1e-9)

        def enough(steps, s=s, top=top, below_rounding=below_rounding):
            return steps > max(s, top - s) or below_rounding(steps)

        assert enough(n)
        assert not enough(n - 2)
        angle = np.pi * (2 * np.arange(n // 2) + 1) / n
        if widest > 1:
            assert points == n // 2
        else:
            fallen = 2 * v * np.sin(angle / 2) ** 2 >= NEGLIGIBLE
            needed = np.count_nonzero(~fallen)
            assert needed <= points <= needed + 1


def test_short_ways_are_short(monkeypatch):
    """The recursion goes up or down, whichever takes fewer steps."""
    steps = []
    recursion = exact.by_recursion

    def recorded(p, scores):
        steps.extend(scores.tolist())
        return recursion(p, scores)

    monkeypatch.setattr(exact, "by_recursion", recorded)
    for name in ("right and wrong", "unequal categories"):
        thresholds = SETS[name]
        most = sum(map(len, thresholds))
        scores = np.arange(1, most)
        cumulated = cumulated_of(thresholds, len(scores))
        tops = np.full(len(scores), most)
        by_fewer_steps(chances(rough_tilt(cumulated, scores, tops)[0], cumulated), cumulated, scores, tops)
        assert steps == [min(score, most - score) for score in scores]
        steps.clear()


def test_few_steps_of_many_people_are_counted_and_long_ways_are_summed(monkeypatch):
    """The recursion up to 16 steps, where people are at least a quarter as many as items; else the contour sum."""
    taken = []
    for way in ("by_fewer_steps", "given_every_score"):
        method = getattr(exact, way)
        monkeypatch.setattr(exact, way, lambda *each, way=way, method=method: (taken.append(way), method(*each))[1])

    def methods(n_items, scores, one_set=False):
        taken.clear()
        scores = np.asarray(scores)
        cumulated = cumulated_of([[b] for b in np.linspace(-1, 1, n_items)], len(scores))
        given_score(cumulated, scores, np.full(len(scores), n_items), one_set=one_set)
        return list(taken)

    assert methods(40, [SHORT_ORDER] * 10) == ["by_fewer_steps"]
    assert methods(40, [40 - SHORT_ORDER] * 10) == ["by_fewer_steps"]
    assert methods(40, [SHORT_ORDER + 1] * 10) == []
    assert methods(40, [5] * 9) == []
    assert methods(41, np.arange(1, 11), one_set=True) == ["given_every_score"]  # a quarter of 40 scores
    assert methods(45, np.arange(1, 11), one_set=True) == []


@pytest.mark.parametrize("width", [1, 3])
def test_tiles_hold_people_of_like_length_and_order_that_fit_the_cache(width):
    rng = np.random.default_rng(3)
    counts = np.concatenate([np.sort(rng.integers(5, 400, 4_000)), np.full(3_000, 900)])
    orders = np.minimum(np.concatenate([rng.integers(1, 40, 5_000), np.full(2_000, 300)]), counts * width // 2)
    order = np.lexsort((counts, orders))
    counts, orders = counts[order], orders[order]
    limit = SHORT_ORDER * width
    end = 0
    for start, stop in tiles(counts, orders, width):
        assert start == end
        end = stop
        n, steps = counts[start:stop], orders[start:stop]
        assert n.min() * ALIKE >= n[0]
        assert n.max() <= ALIKE * n[0]
        assert np.all((steps <= limit) == (steps[0] <= limit))
        short = steps[0] <= limit
        most = steps[0] + 2 * width if short else ALIKE * steps[0]
        assert steps.max() <= most
        cells = n[0] * (steps[0] + 1 if short else 4 * (width + 1))
        room = max(MANY, TILE_CELLS // cells)
        assert stop - start <= room
        if stop < len(counts) and stop - start < room:  # the next one is unlike the first
            further, further_steps = counts[stop], orders[stop]
            assert (
                further > ALIKE * n[0]
                or further * ALIKE < n[0]
                or (further_steps <= limit) != short
                or further_steps > most
            )
    assert end == len(counts)


def test_answers_above_limits_and_the_limit_of_a_series():
    limits = np.array([1.0, 2.0, 4.0, 8.0])
    values = np.array([0.5, 1.0, 3.0, 4.0, 9.0])
    counts = np.array([7, 1, 2, 3, 5])
    answers = answers_above(limits, values, counts)
    np.testing.assert_array_equal(answers, [1, 2, 3, 5])  # none of those below the first limit

    error = np.array([1e-2, 1e-3, 1e-4, 1e-5])
    n = np.array([3, 11])
    total = sum(answers)

    def off(k):
        """Standard errors by which items move, if the series has all answers from this limit on."""
        return sum(answers[j] * error[j] for j in range(k, 4)) / total * np.sqrt(11 / 0.18)

    for k in range(4):
        limit, share = series_limit(answers, limits, error, n, off(k) * (1 + 1e-9))
        assert limit == limits[k]
        assert share == pytest.approx(sum(answers[:k]) / total)


def test_single_precision_where_a_thousandth_of_an_error_may_be_off():
    assert dtype_for(1e-3) == np.float32
    assert dtype_for(0.9e-3) == np.float64


def test_matched_factors_have_the_sums_of_the_covariances():
    """c_i sum of the other c_j is the variance; items beyond the length of a column are left out."""
    rng = np.random.default_rng(1)
    variance = rng.uniform(0.02, 0.25, (30, 2))
    counts = np.array([30, 20])
    variance[20:, 1] = 0
    c = matched_factors(variance, counts)
    for column, n in enumerate(counts):
        for i in range(n):
            others = sum(c[j, column] for j in range(n) if j != i)
            assert c[i, column] * others == pytest.approx(variance[i, column], rel=0.01)
        assert not c[n:, column].any()
