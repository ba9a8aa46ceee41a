"""Abilities by Newton's method, many people at once: maximum likelihood, Warm's weighted likelihood, posterior mode.

With E, V and J the mean, the variance and the third central moment of the total score over the items that a person
answered, the ability theta of somebody with total score s solves

    s - E + J / (2 V) - (theta - mu) / sigma^2 = 0:

the likelihood, Warm's correction of its bias, and a normal prior. V is the information on theta, J its derivative.
Warm's estimate maximizes L sqrt(V); where no threshold lies near, that may have two maxima: the higher one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import CACHED, Floats, Ints, Rows, Thresholds, person_chunks
from spectral_irt.model import prox
from spectral_irt.numerics import fill_scaled

LAST_STEP = 1e-7  # logits; steps square, so the error left after one of this size is beyond the last digit
SAFE_EXPONENT = 600.0  # up to here exponents neither overflow nor vanish
# Trapezoidal rule in steps of 0.8 standard deviations at the mode: exact to 2 exp(-2 pi^2 / 0.8^2) = 1e-13 for a normal
# posterior. Under a wide prior a step is at most 0.6 logits: the logistic function itself has poles pi from the real
# line, and an answer in categories 0 to K has them at least pi / K from it. The rule goes on until the density has
# fallen by exp(-32), so that skewed posteriors are covered too.
NODE_STEP = 0.8
WIDEST_STEP = 0.6
LOG_FALL = 32.0
MOST_NODES = 2000  # each way, a bound that no posterior needs
MOST_STEPS = 200  # six are usual; the bracket halves at worst, and no bracket needs more


class Run(NamedTuple):
    """People who all have answers, and the thresholds of the items."""

    rows: Rows
    layout: Thresholds
    beta: Floats


def cached_runs(rows: Rows, layout: Thresholds, beta: Floats) -> Iterator[tuple[Ints, Run]]:
    """People with answers, in runs whose numbers fit a core's cache, each with their positions.

    Where items are more than the answers of a run, as combinations with raters are, it has the items they met."""
    for start, stop in person_chunks(rows.indptr, CACHED // layout.widest):
        chunk = rows.part(start, stop)
        answered = np.flatnonzero(chunk.counts)
        if not len(answered):
            continue
        items = chunk.items
        run_beta = beta
        run_layout = layout
        if not layout.binary and layout.n_items > len(items):
            items_met, place = np.unique(items.astype(np.int64), return_inverse=True)
            items = place.astype(np.int32)
            run_beta = beta[layout.of_items(items_met)]
            run_layout = Thresholds(layout.max_score[items_met])
        indptr = np.append(chunk.indptr[answered], chunk.indptr[-1])
        run_rows = Rows(indptr, items, chunk.counts[answered], chunk.scores[answered], chunk.max_scores[answered])
        yield start + answered, Run(run_rows, run_layout, run_beta)


def score_cumulants(run: Run, order: int = 4) -> Callable[[Floats], Floats]:
    """Cumulants 1 to `order` (2 or 4) of each person's total score as a function of abilities, a row for each.

    Those of a single answer, right or wrong, are p, v, v c, v (1 - 6 v), with v = p (1 - p) and c = 1 - 2 p.
    """
    rows, layout, beta = run
    if not layout.binary:
        passed = np.ascontiguousarray(layout.cumulated(beta)[rows.items].T)

        def of_categories(theta: Floats) -> Floats:
            moments = central_moments(_chances(np.repeat(theta, rows.counts), passed), order > 2)
            if order > 2:
                moments = *moments[:3], moments[3] - 3 * moments[1] ** 2
            return np.stack([np.add.reduceat(each, rows.indptr[:-1]) for each in moments])

        return of_categories
    pi = np.exp(beta)
    bounds = rows.indptr.astype(np.int32)
    first = rows.indptr[:-1]

    def of_right_and_wrong(theta: Floats) -> Floats:
        sums = np.empty((order, len(theta)))
        p = np.empty(len(rows.items))
        with np.errstate(over="ignore"):
            fill_scaled(bounds, rows.items, np.exp(-theta), pi, p)
        p += 1
        np.reciprocal(p, out=p)
        v = 1 - p
        v *= p
        np.add.reduceat(p, first, out=sums[0])
        np.add.reduceat(v, first, out=sums[1])
        if order > 2:
            p *= -2
            p += 1
            p *= v
            np.add.reduceat(p, first, out=sums[2])
            v *= v
            sums[3] = sums[1] - 6 * np.add.reduceat(v, first)
        return sums

    return of_right_and_wrong


def _chances(theta: Floats, passed: Floats) -> Floats:
    """Probability of each category, categories x answers; `passed` has sums of each answer's item's thresholds."""
    p = np.arange(len(passed), dtype=float)[:, None] * theta - passed
    p -= p.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return p


def central_moments(p: Floats, all_four: bool = True) -> tuple[Floats, ...]:
    """Mean, variance, third and fourth central moment (or the first two) from probabilities with categories first,
    which are overwritten."""
    k = np.arange(len(p), dtype=float)
    mean = np.tensordot(k, p, 1)
    deviation = k.reshape(-1, *(1,) * (p.ndim - 1)) - mean
    p *= deviation
    p *= deviation
    variance = p.sum(axis=0)
    if not all_four:
        return mean, variance
    p *= deviation
    third = p.sum(axis=0)
    p *= deviation
    return mean, variance, third, p.sum(axis=0)


def answer_moments(theta: Floats, items: NDArray[np.generic], cumulated: Floats) -> tuple[Floats, ...]:
    """Of each answer at an ability: mean, variance, third and fourth central moment, and how likely the category
    nearest to the mean is."""
    p = _chances(theta, np.ascontiguousarray(cumulated[items].T))
    nearest = np.rint(np.arange(len(p), dtype=float) @ p).astype(np.int64)
    likely = p[nearest, np.arange(len(theta))]
    return *central_moments(p), likely


def log_likelihood(run: Run) -> Callable[[Floats], Floats]:
    """Logarithm of the likelihood of each person, but for a constant, as a function of abilities."""
    rows, layout, beta = run
    first = rows.indptr[:-1]
    passed = np.ascontiguousarray(layout.cumulated(beta)[rows.items].T)
    k = np.arange(len(passed), dtype=float)
    weight = np.exp(-passed)
    reach = float(np.max(np.abs(passed), initial=0.0, where=np.isfinite(passed)))

    def at(theta: Floats) -> Floats:
        if (
            k[-1] * float(np.abs(theta).max(initial=0.0)) + reach < SAFE_EXPONENT
        ):  # sum_k weight_k e^(k theta), by Horner
            odds = np.repeat(np.exp(theta), rows.counts)
            total = weight[-1].copy()
            for coefficient in weight[-2::-1]:
                total *= odds
                total += coefficient
            return rows.scores * theta - np.add.reduceat(np.log(total, out=total), first)
        x = k[:, None] * np.repeat(theta, rows.counts) - passed
        top = x.max(axis=0)
        x -= top
        np.exp(x, out=x)
        return rows.scores * theta - np.add.reduceat(top + np.log(x.sum(axis=0)), first)

    return at


def solve(run: Run, *, warm: bool = False, mean: float | Floats = 0.0, precision: float = 0.0) -> tuple[Floats, Floats]:
    """Abilities of these people, and the information V at them; with Warm's correction they are finite for every score.

    `mean` and `precision` are those of a normal prior, precision 0 none. Without it and without Warm's correction,
    people with the highest score get inf, with the lowest -inf, and no information."""
    theta, low, high = _start(run)
    if precision:
        # E never exceeds n, so the pull of the prior ends within n / precision of its mean.
        reach = run.rows.max_scores / precision
        low = np.minimum(low, mean) - reach
        high = np.maximum(high, mean) + reach
    theta, information = _climb(run, theta, low, high, warm, mean, precision)
    if warm:
        persons = beside_a_gap(run)
        if len(persons):
            _take_higher(run, persons, theta, information, low, high)
    return theta, information


def _climb(
    run: Run, theta: Floats, low: Floats, high: Floats, warm: bool, mean: float | Floats = 0.0, precision: float = 0.0
) -> tuple[Floats, Floats]:
    """Newton's steps from `theta`; one that would leave the bracket gives way to its middle."""
    s = run.rows.scores
    cumulants = score_cumulants(run, 4 if warm else 2)
    infinite = np.zeros(len(s), dtype=bool)
    if not (warm or precision):
        infinite = (s == 0) | (s == run.rows.max_scores)
    done = infinite.copy()
    information = np.zeros(len(s))
    for _ in range(MOST_STEPS):
        expected, variance, *third_and_fourth = cumulants(theta)
        information = np.where(done, information, variance)
        slope = -variance - precision
        gradient = s - expected - precision * (theta - mean)
        if warm:
            third, fourth = third_and_fourth
            ratio = third / variance
            gradient += ratio / 2
            # The correction may bend the wrong way between far-apart thresholds; Fisher's scoring never does.
            warm_slope = slope + fourth / (2 * variance) - ratio**2 / 2
            slope = np.where(warm_slope < slope / 2, warm_slope, slope)
        low = np.where(gradient > 0, theta, low)
        high = np.where(gradient > 0, high, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = theta - gradient / slope
        step = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2) - theta
        theta = np.where(done, theta, theta + step)
        done |= np.abs(step) <= LAST_STEP
        if done.all():
            break
    return np.where(infinite, np.where(s > 0, np.inf, -np.inf), theta), information


def _start(run: Run) -> tuple[Floats, Floats, Floats]:
    """PROX, the closed form of normal difficulties, and a bracket that holds every finite likelihood estimate: at
    theta = min(beta) - log(2 n + 2) the expected score of n answers is below 1/2 - p, which is less than Warm's
    correction, and likewise at the other end. Of ordered answers n is the highest score, and a logit more is enough."""
    rows, layout, beta = run
    n = rows.max_scores
    s = rows.scores
    first = rows.indptr[:-1]
    margin = np.log(2 * n + 2)
    if layout.binary:
        b = beta[rows.items]
        least = b
        greatest = b
    else:
        b = layout.mean(beta)[rows.items]
        least = layout.table(beta, np.inf).min(axis=1)[rows.items]
        greatest = layout.table(beta, -np.inf).max(axis=1)[rows.items]
        margin += 1
    mean = np.add.reduceat(b, first) / rows.counts
    spread = np.maximum(np.add.reduceat(b * b, first) / rows.counts - mean**2, 0)
    theta = prox(mean, spread, np.log((s + 0.4) / (n - s + 0.4)))
    low = np.minimum.reduceat(least, first) - margin
    high = np.maximum.reduceat(greatest, first) + margin
    return np.clip(theta, low, high), low, high


# With t = q - p and weights v / V, the slope of the equation is (Var(t) - 2 mean(v)) / 2 - V. Between two maxima it is
# positive somewhere. That takes items on both sides and none near: a gap of 4.126 logits (2 asinh(sqrt(1.5)) either
# way) when there is one item on each side, and a wider one when there are more. There V < 1/2, so that the expected
# score is within 1 of the number k of items below the gap; and at a root it is within 1/2 of the observed score.
# Thresholds of an item that are log 4 apart or more count as items do. Where they are in reverse order, categories are
# skipped: w of them stand together in one place, as an item with score w would, to whom everything is w times as near
# and counts w times. Where they are in order, but close, w of them are about 1 + (w - 1) / 4 times as near: by numbers,
# gaps of 3.29, 2.74, 2.33 and 2.01 logits make two maxima for w of 2 to 5.
GAP = 4.0
NEARER = 0.3  # for each further threshold of an item, a little more than that quarter
MOST_BINS = 60  # logits, a bit of an integer each
SCAN_STEP = 0.2  # logits between the points at which the equation is looked at
EQUAL = 1e-9  # of two maxima this close in log-likelihood the lower ability is taken, whatever rounding says


def _take_higher(run: Run, persons: Ints, theta: Floats, information: Floats, low: Floats, high: Floats) -> None:
    """Write the higher maximum of the weighted likelihood to `theta`, for those who may have more than one."""
    rows = run.rows.take(persons)
    low = low[persons]
    high = high[persons]
    cumulants = score_cumulants(run._replace(rows=rows))
    points = int(np.ceil(np.max(high - low) / SCAN_STEP))
    step = (high - low) / points
    positive = [np.ones(len(persons), dtype=bool)]  # the equation is, at the lower end of the bracket
    for k in range(1, points + 1):
        expected, variance, third, _ = cumulants(low + k * step)
        positive.append(rows.scores - expected + third / (2 * variance) > 0)
    # A maximum lies wherever the equation changes from positive to not: one run of the maxima, several of a person.
    point, person = np.nonzero(np.array(positive[:-1]) & ~np.array(positive[1:]))
    of_maxima = run._replace(rows=rows.take(person))
    start = low[person] + point * step[person]
    stop = start + step[person]
    maximum, information_there = _climb(of_maxima, (start + stop) / 2, start, stop, True)
    height = log_likelihood(of_maxima)(maximum) + np.log(information_there) / 2
    highest = np.full(len(persons), -np.inf)
    np.maximum.at(highest, person, height)
    best = np.flatnonzero(height >= highest[person] - EQUAL)
    best = best[np.argsort(-maximum[best])]  # a person's lowest is written last, and stays
    place = persons[person[best]]
    theta[place] = maximum[best]
    information[place] = information_there[best]


def beside_a_gap(run: Run) -> Ints:
    """People who answered nothing within a gap, with as many points as thresholds below it, or one more or less."""
    rows, layout, beta = run
    slack = 1
    if not layout.binary:
        beta, together = _standing_together(layout, beta)
        beta = beta * max(together, 1 + NEARER * (layout.widest - 1))
        slack = 2 * layout.widest - 1
        max_scores = rows.max_scores
        thresholds = layout.of_items(rows.items.astype(np.int64)).astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(max_scores)])
        rows = Rows(indptr, thresholds, max_scores, rows.scores, max_scores)  # as if every threshold were an item
    finite = beta[np.isfinite(beta)]
    least = finite.min()
    greatest = finite.max()
    if greatest - least < GAP:
        return np.empty(0, dtype=np.int64)
    persons = np.arange(rows.n_persons)
    if greatest - least < MOST_BINS - 2:
        # A bit for every logit in which a person has an item; a gap leaves three in a row empty.
        bit = np.left_shift(1, (np.where(np.isfinite(beta), beta, least) - least).astype(np.int64))
        bits = np.bitwise_or.reduceat(bit[rows.items], rows.indptr[:-1])
        filled = bits | bits << 1 | bits << 2
        persons = np.flatnonzero((filled + (filled & -filled)) & filled)  # a single run of ones adds up to one bit
    if not len(persons):
        return persons
    rows = rows.take(persons)
    person = np.repeat(np.arange(len(persons)), rows.counts)
    b = beta[rows.items]
    b = b[np.lexsort((b, person))]  # the persons stay where they are
    below = np.arange(1, len(b)) - rows.indptr[person[1:]]
    wide = (np.diff(b) >= GAP) & (below > 0) & (np.abs(rows.scores[person[1:]] - below) <= slack)
    return persons[np.unique(person[1:][wide])]


def _standing_together(layout: Thresholds, beta: Floats) -> tuple[Floats, int]:
    """Thresholds with those in reverse order at their common mean, and how many of an item there are in one place."""
    passed = layout.cumulated(beta)
    widest = layout.widest
    pooled = np.full((layout.n_items, widest), -np.inf)
    with np.errstate(invalid="ignore"):
        for i in range(widest):  # the largest over i of the smallest over j of the means of thresholds i to j
            means = (passed[:, i + 1 :] - passed[:, i : i + 1]) / np.arange(1, widest - i + 1)
            smallest = np.fmin.accumulate(means[:, ::-1], axis=1)[:, ::-1]
            pooled[:, i:] = np.fmax(pooled[:, i:], smallest)
        alike = np.abs(np.diff(pooled, axis=1)) < EQUAL
    length = np.ones(layout.n_items, dtype=np.int64)  # of the run of equal thresholds that ends here
    longest = 1
    for column in alike.T:
        length = np.where(column, length + 1, 1)
        longest = max(longest, int(length.max(initial=1)))
    return pooled[layout.item, layout.level - 1], longest


def posterior_moments(run: Run, mean: float | Floats, sd: float) -> tuple[Floats, Floats]:
    """Mean and standard deviation of these people's abilities under a normal prior, of one mean or one for each."""
    mode, width, heights = posterior_density(run, mean, sd, NODE_STEP, LOG_FALL)
    mass = np.ones(len(mode))
    first = np.zeros(len(mode))
    second = np.zeros(len(mode))
    for k, height in heights.items():
        # Nothing beyond the fall: a person's numbers do not depend on how far the nodes go on account of others.
        weight = np.where(height < -LOG_FALL, 0, np.exp(np.minimum(height, 0)))
        mass += weight
        first += k * weight
        second += k**2 * weight
    first /= mass
    second /= mass
    return mode + width * first, width * np.sqrt(np.maximum(second - first**2, 0))


def posterior_density(
    run: Run, mean: float | Floats, sd: float, step: float, fall: float, beyond: int = 0
) -> tuple[Floats, Floats, dict[int, Floats]]:
    """Where each posterior is highest, the width of a step away from there, `step` of its standard deviation, and the
    logarithm of the density after k steps up (or -k down), less that at the mode.

    The steps go on until it has fallen so far for everybody, and then to so many nodes beyond."""
    mode, information = solve(run, mean=mean, precision=sd**-2)
    width = np.minimum(step / np.sqrt(information + sd**-2), WIDEST_STEP / run.layout.widest)
    likelihood = log_likelihood(run)
    heights: dict[int, Floats] = {}
    top = likelihood(mode) - ((mode - mean) / sd) ** 2 / 2
    for side in (-1, 1):
        n_fallen = 0  # nodes at which the density has fallen so far for everybody
        for k in range(side, side * MOST_NODES, side):
            theta = mode + k * width
            heights[k] = likelihood(theta) - ((theta - mean) / sd) ** 2 / 2 - top
            if np.all(heights[k] < -fall):
                n_fallen += 1
            if n_fallen > beyond:
                break
    return mode, width, heights


def estimate_abilities(run: Run, warm: bool, prior: tuple[float, float] | None = None) -> tuple[Floats, Floats]:
    """Abilities of these people with their standard errors: by likelihood, or under a prior of this mean and sd."""
    if prior is not None:
        return posterior_moments(run, *prior)
    theta, information = solve(run, warm=warm)
    with np.errstate(divide="ignore"):
        return theta, 1 / np.sqrt(information)


def score_abilities(
    beta: Floats,
    layout: Thresholds | None = None,
    *,
    warm: bool = True,
    prior: tuple[float, float] | None = None,
    scores: Ints | None = None,
) -> tuple[Floats, Floats]:
    """Ability and standard error of every total score, or of these, on all items with these thresholds."""
    if layout is None:
        layout = Thresholds.ones(len(beta))
    if scores is None:
        scores = np.arange(len(beta) + 1)
    ability = np.empty(len(scores))
    se = np.empty(len(scores))
    for place, run in complete_runs(layout, beta, scores):
        ability[place], se[place] = estimate_abilities(run, warm, prior)
    return ability, se


def form_information(beta: Floats, theta: Floats, layout: Thresholds) -> Floats:
    """The variance of the total score on all of these items at each ability."""
    variance = np.empty(len(theta))
    for place, run in complete_runs(layout, beta, np.zeros(len(theta), dtype=np.int64)):
        variance[place] = score_cumulants(run, 2)(theta[place])[1]
    return variance


def complete_runs(layout: Thresholds, beta: Floats, scores: Ints) -> Iterator[tuple[slice, Run]]:
    """People with these total scores on all of these items, in runs, each with their positions."""
    m = layout.n_items
    size = max(1, 4 * CACHED // layout.widest // max(m, 1))  # larger: each has the thresholds of all items
    for start in range(0, len(scores), size):
        run_scores = scores[start : start + size]
        n = len(run_scores)
        items = np.tile(np.arange(m, dtype=np.int32), n)
        rows = Rows(np.arange(n + 1) * m, items, np.full(n, m), run_scores, np.full(n, layout.n_entries))
        yield slice(start, start + n), Run(rows, layout, beta)
