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

STEP = 1e-7  # logits; steps square, so the error left after one of this size is beyond the last digit
FAR = 600.0  # exponents up to here neither overflow nor vanish
# Trapezoidal rule in steps of 0.8 standard deviations at the mode: exact to 2 exp(-2 pi^2 / 0.8^2) = 1e-13 for a normal
# posterior. Under a wide prior a step is at most 0.6 logits: the logistic function itself has poles pi from the real
# line, and an answer in categories 0 to K has them at least pi / K from it. The rule goes on until the density has
# fallen by exp(-32), so that skewed posteriors are covered too.
NODES, WIDEST, FALL = 0.8, 0.6, 32.0
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
        run = rows.part(start, stop)
        some = np.flatnonzero(run.counts)
        if not len(some):
            continue
        indptr, items = np.append(run.indptr[some], run.indptr[-1]), run.items
        met, few = beta, layout
        if not layout.binary and layout.n_items > len(items):
            used, place = np.unique(items.astype(np.int64), return_inverse=True)
            met, few, items = beta[layout.of_items(used)], Thresholds(layout.max_score[used]), place.astype(np.int32)
        rows_met = Rows(indptr, items, run.counts[some], run.scores[some], run.max_scores[some])
        yield start + some, Run(rows_met, few, met)


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
    pi, bounds, first = np.exp(beta), rows.indptr.astype(np.int32), rows.indptr[:-1]

    def of_two(theta: Floats) -> Floats:
        sums, p = np.empty((order, len(theta))), np.empty(len(rows.items))
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

    return of_two


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
    away = k.reshape(-1, *(1,) * (p.ndim - 1)) - mean
    p *= away
    p *= away
    variance = p.sum(axis=0)
    if not all_four:
        return mean, variance
    p *= away
    third = p.sum(axis=0)
    p *= away
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
    first, passed = rows.indptr[:-1], np.ascontiguousarray(layout.cumulated(beta)[rows.items].T)
    k, weight = np.arange(len(passed), dtype=float), np.exp(-passed)
    reach = float(np.max(np.abs(passed), initial=0.0, where=np.isfinite(passed)))

    def at(theta: Floats) -> Floats:
        if k[-1] * float(np.abs(theta).max(initial=0.0)) + reach < FAR:  # sum_k weight_k e^(k theta), by Horner
            odds, total = np.repeat(np.exp(theta), rows.counts), weight[-1].copy()
            for each in weight[-2::-1]:
                total *= odds
                total += each
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
        low, high = np.minimum(low, mean) - reach, np.maximum(high, mean) + reach
    theta, information = _climb(run, theta, low, high, warm, mean, precision)
    if warm and len(beside := beside_a_gap(run)):
        _take_higher(run, beside, theta, information, low, high)
    return theta, information


def _climb(
    run: Run, theta: Floats, low: Floats, high: Floats, warm: bool, mean: float | Floats = 0.0, precision: float = 0.0
) -> tuple[Floats, Floats]:
    """Newton's steps from `theta`; one that would leave the bracket gives way to its middle."""
    s, moments = run.rows.scores, score_cumulants(run, 4 if warm else 2)
    endless = np.zeros(len(s), dtype=bool) if warm or precision else (s == 0) | (s == run.rows.max_scores)
    done, information = endless.copy(), np.zeros(len(s))
    for _ in range(MOST_STEPS):
        expected, at_theta, *further = moments(theta)
        information = np.where(done, information, at_theta)
        slope, pull = -at_theta - precision, s - expected - precision * (theta - mean)
        if warm:
            third, fourth = further
            lean = third / at_theta
            pull += lean / 2
            # The correction may bend the wrong way between far-apart thresholds; Fisher's scoring never does.
            bent = slope + fourth / (2 * at_theta) - lean**2 / 2
            slope = np.where(bent < slope / 2, bent, slope)
        low, high = np.where(pull > 0, theta, low), np.where(pull > 0, high, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = theta - pull / slope
        step = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2) - theta
        theta = np.where(done, theta, theta + step)
        done |= np.abs(step) <= STEP
        if done.all():
            break
    return np.where(endless, np.where(s > 0, np.inf, -np.inf), theta), information


def _start(run: Run) -> tuple[Floats, Floats, Floats]:
    """PROX, the closed form of normal difficulties, and a bracket that holds every finite likelihood estimate: at
    theta = min(beta) - log(2 n + 2) the expected score of n answers is below 1/2 - p, which is less than Warm's
    correction, and likewise at the other end. Of ordered answers n is the highest score, and a logit more is enough."""
    rows, layout, beta = run
    n, s, first = rows.max_scores, rows.scores, rows.indptr[:-1]
    beyond = np.log(2 * n + 2)
    if layout.binary:
        b = least = greatest = beta[rows.items]
    else:
        b = layout.mean(beta)[rows.items]
        least = layout.table(beta, np.inf).min(axis=1)[rows.items]
        greatest = layout.table(beta, -np.inf).max(axis=1)[rows.items]
        beyond += 1
    mean = np.add.reduceat(b, first) / rows.counts
    spread = np.maximum(np.add.reduceat(b * b, first) / rows.counts - mean**2, 0)
    theta = prox(mean, spread, np.log((s + 0.4) / (n - s + 0.4)))
    low = np.minimum.reduceat(least, first) - beyond
    high = np.maximum.reduceat(greatest, first) + beyond
    return np.clip(theta, low, high), low, high


# With t = q - p and weights v / V, the slope of the equation is (Var(t) - 2 mean(v)) / 2 - V. Between two maxima it is
# positive somewhere. That takes items on both sides and none near: a gap of 4.126 logits (2 asinh(sqrt(1.5)) either
# way) when there is one item on each side, and a wider one when there are more. There V < 1/2, so that the expected
# score is within 1 of the number k of items below the gap; and at a root it is within 1/2 of the observed score.
# Thresholds of an item count as items do. Where they are in reverse order, categories are skipped: w of them stand
# together in one place, as an item with score w would, to whom everything is w times as near and counts w times.
GAP = 4.0
MOST_BINS = 60
SCAN = 0.2  # logits between the points at which the equation is looked at
EQUAL = 1e-9  # of two maxima this close in log-likelihood the lower ability is taken, whatever rounding says


def _take_higher(run: Run, persons: Ints, theta: Floats, information: Floats, low: Floats, high: Floats) -> None:
    """Write the higher maximum of the weighted likelihood to `theta`, for those who may have more than one."""
    mine, low, high = run.rows.take(persons), low[persons], high[persons]
    moments = score_cumulants(run._replace(rows=mine))
    points = int(np.ceil(np.max(high - low) / SCAN))
    step = (high - low) / points
    positive = [np.ones(len(persons), dtype=bool)]  # the equation is, at the lower end of the bracket
    for k in range(1, points + 1):
        expected, variance, third, _ = moments(low + k * step)
        positive.append(mine.scores - expected + third / (2 * variance) > 0)
    left, who = np.nonzero(np.array(positive[:-1]) & ~np.array(positive[1:]))
    theirs, start = run._replace(rows=mine.take(who)), low[who] + left * step[who]
    stop = start + step[who]
    found, known = _climb(theirs, (start + stop) / 2, start, stop, True)
    height = log_likelihood(theirs)(found) + np.log(known) / 2
    highest = np.full(len(persons), -np.inf)
    np.maximum.at(highest, who, height)
    best = np.flatnonzero(height >= highest[who] - EQUAL)
    best = best[np.argsort(-found[best])]  # a person's lowest is written last, and stays
    theta[persons[who[best]]], information[persons[who[best]]] = found[best], known[best]


def beside_a_gap(run: Run) -> Ints:
    """People who answered nothing within a gap, with as many points as thresholds below it, or one more or less."""
    (rows, layout, beta), slack = run, 1
    if not layout.binary:
        beta, together = _standing_together(layout, beta)
        beta, slack = beta * together, 2 * together - 1
        most_each, passed = rows.max_scores, layout.of_items(rows.items.astype(np.int64)).astype(np.int32)
        ends = np.concatenate([[0], np.cumsum(most_each)])
        rows = Rows(ends, passed, most_each, rows.scores, most_each)  # as if every threshold were an item
    known = beta[np.isfinite(beta)]
    least, most = known.min(), known.max()
    if most - least < GAP:
        return np.empty(0, dtype=np.int64)
    persons = np.arange(rows.n_persons)
    if most - least < MOST_BINS - 2:
        # A bit for every logit in which a person has an item; a gap leaves three in a row empty.
        bit = np.left_shift(1, (np.where(np.isfinite(beta), beta, least) - least).astype(np.int64))
        bits = np.bitwise_or.reduceat(bit[rows.items], rows.indptr[:-1])
        filled = bits | bits << 1 | bits << 2
        persons = np.flatnonzero((filled + (filled & -filled)) & filled)  # a single run of ones adds up to one bit
    if not len(persons):
        return persons
    some = rows.take(persons)
    person = np.repeat(np.arange(len(persons)), some.counts)
    b = beta[some.items]
    b = b[np.lexsort((b, person))]  # the persons stay where they are
    below = np.arange(1, len(b)) - some.indptr[person[1:]]
    wide = (np.diff(b) >= GAP) & (below > 0) & (np.abs(some.scores[person[1:]] - below) <= slack)
    return persons[np.unique(person[1:][wide])]


def _standing_together(layout: Thresholds, beta: Floats) -> tuple[Floats, int]:
    """Thresholds with those in reverse order at their common mean, and how many of an item there are in one place."""
    passed, widest = layout.cumulated(beta), layout.widest
    pooled = np.full((layout.n_items, widest), -np.inf)
    with np.errstate(invalid="ignore"):
        for i in range(widest):  # the largest over i of the smallest over j of the means of thresholds i to j
            means = (passed[:, i + 1 :] - passed[:, i : i + 1]) / np.arange(1, widest - i + 1)
            smallest = np.fmin.accumulate(means[:, ::-1], axis=1)[:, ::-1]
            pooled[:, i:] = np.fmax(pooled[:, i:], smallest)
        alike = np.abs(np.diff(pooled, axis=1)) < EQUAL
    run, longest = np.ones(layout.n_items, dtype=np.int64), 1
    for column in alike.T:
        run = np.where(column, run + 1, 1)
        longest = max(longest, int(run.max(initial=1)))
    return pooled[layout.item, layout.level - 1], longest


def posterior_moments(run: Run, mean: float | Floats, sd: float) -> tuple[Floats, Floats]:
    """Mean and standard deviation of these people's abilities under a normal prior, of one mean or one for each."""
    mode, width, heights = posterior_density(run, mean, sd, NODES, FALL)
    mass, first, second = np.ones(len(mode)), np.zeros(len(mode)), np.zeros(len(mode))
    for k, height in heights.items():
        # Nothing beyond the fall: a person's numbers do not depend on how far the nodes go on account of others.
        weight = np.where(height < -FALL, 0, np.exp(np.minimum(height, 0)))
        mass += weight
        first += k * weight
        second += k**2 * weight
    first, second = first / mass, second / mass
    return mode + width * first, width * np.sqrt(np.maximum(second - first**2, 0))


def posterior_density(
    run: Run, mean: float | Floats, sd: float, step: float, fall: float, beyond: int = 0
) -> tuple[Floats, Floats, dict[int, Floats]]:
    """Where each posterior is highest, the width of a step away from there, `step` of its standard deviation, and the
    logarithm of the density after k steps up (or -k down), less that at the mode.

    The steps go on until it has fallen so far for everybody, and then to so many nodes beyond."""
    mode, information = solve(run, mean=mean, precision=sd**-2)
    width = np.minimum(step / np.sqrt(information + sd**-2), WIDEST / run.layout.widest)
    likelihood, heights = log_likelihood(run), {}
    top = likelihood(mode) - ((mode - mean) / sd) ** 2 / 2
    for side in (-1, 1):
        after = 0
        for k in range(side, side * MOST_NODES, side):
            theta = mode + k * width
            heights[k] = likelihood(theta) - ((theta - mean) / sd) ** 2 / 2 - top
            after += bool(np.all(heights[k] < -fall))
            if after > beyond:
                break
    return mode, width, heights


def estimated(run: Run, warm: bool, prior: tuple[float, float] | None = None) -> tuple[Floats, Floats]:
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
    layout, scores = layout or Thresholds.ones(len(beta)), np.arange(len(beta) + 1) if scores is None else scores
    ability, se = np.empty(len(scores)), np.empty(len(scores))
    for some, run in complete_runs(layout, beta, scores):
        ability[some], se[some] = estimated(run, warm, prior)
    return ability, se


def form_information(beta: Floats, theta: Floats, layout: Thresholds) -> Floats:
    """The variance of the total score on all of these items at each ability."""
    found = np.empty(len(theta))
    for some, run in complete_runs(layout, beta, np.zeros(len(theta), dtype=np.int64)):
        found[some] = score_cumulants(run, 2)(theta[some])[1]
    return found


def complete_runs(layout: Thresholds, beta: Floats, scores: Ints) -> Iterator[tuple[slice, Run]]:
    """People with these total scores on all of these items, in runs, each with their positions."""
    m = layout.n_items
    size = max(1, 4 * CACHED // layout.widest // max(m, 1))  # larger: each has the thresholds of all items
    for start in range(0, len(scores), size):
        own = scores[start : start + size]
        n, items = len(own), np.tile(np.arange(m, dtype=np.int32), len(own))
        rows = Rows(np.arange(n + 1) * m, items, np.full(n, m), own, np.full(n, layout.n_entries))
        yield slice(start, start + n), Run(rows, layout, beta)
