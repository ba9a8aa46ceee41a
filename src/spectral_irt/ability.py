"""Abilities by Newton's method, many people at once: maximum likelihood, Warm's weighted likelihood, posterior mode.

With E, V and J the mean, the variance and the third central moment of the total score over the items that a person
answered, the ability theta of somebody with total score s solves

    s - E + J / (2 V) - (theta - mu) / sigma^2 = 0.

The first two terms are the likelihood; J / (2 V) is Warm's correction of its bias, and the last a normal prior. V is
the information on theta, and J its derivative. Of right and wrong answers, with p_i = 1 / (1 + exp(beta_i - theta)),

    E = sum p_i,   V = sum p_i q_i,   J = sum p_i q_i (q_i - p_i),

of ordered answers see `total_score`. Some thousand answers go through all iterations while in the cache.

Warm's correction is the derivative of log(V) / 2, so that his estimate maximizes a weighted likelihood, L sqrt(V).
Where no threshold lies near, V is small, and the weighted likelihood may have a maximum on either side: the higher one
is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.packing import CACHED, person_chunks
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.model import prox
from spectral_irt.sparse_kernels import fill_scaled
from spectral_irt.total_score import Answers, log_likelihood, numbers_each, score_cumulants

STEP = 1e-7  # logits; steps square, so the error left after one of this size is beyond the last digit
MOST_STEPS = 200  # six are usual; the bracket halves at worst, and no bracket needs more


def solve(
    answers: Answers, beta: Floats, *, warm: bool = False, mean: float | Floats = 0.0, precision: float = 0.0
) -> tuple[Floats, Floats]:
    """Abilities of these people, and the information V at them.

    Parameters
    ----------
    warm : bool
        With Warm's correction: finite for every score.
    mean, precision : float
        Of a normal prior (`mean` may have a number for each person); precision 0 is none. Without either, people with
        the highest score get inf, with the lowest -inf, and no information.
    """
    n, s = answers.max_scores, answers.scores
    theta, low, high = _start(answers, beta)
    if precision:
        # E never exceeds n, so the pull of the prior ends within n / precision of its mean.
        low, high = np.minimum(low, mean) - n / precision, np.maximum(high, mean) + n / precision
    endless = np.zeros(len(n), dtype=bool) if warm or precision else (s == 0) | (s == n)
    theta, information = _climb(answers, beta, theta, low, high, endless, warm, mean, precision)
    if warm and not precision:
        _take_higher(answers, beta, theta, information, low, high)
    theta[endless] = np.where(s[endless] > 0, np.inf, -np.inf)
    information[endless] = 0
    return theta, information


def _climb(
    answers: Answers,
    beta: Floats,
    theta: Floats,
    low: Floats,
    high: Floats,
    settled: NDArray[np.bool_],
    warm: bool,
    mean: float | Floats = 0.0,
    precision: float = 0.0,
) -> tuple[Floats, Floats]:
    """Newton's steps from `theta`; one that would leave the bracket gives way to its middle. `settled` people stay."""
    s, done, moments = answers.scores, settled.copy(), score_cumulants(answers, beta, warm)
    information = np.zeros(len(s))
    for _ in range(MOST_STEPS):
        expected, at_theta, third, fourth = moments(theta)
        information = np.where(done, information, at_theta)
        slope, pull = -at_theta - precision, s - expected - precision * (theta - mean)
        if warm:
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
    return theta, information


def _start(answers: Answers, beta: Floats) -> tuple[Floats, Floats, Floats]:
    """PROX, the closed form of normal difficulties, and a bracket that holds every finite likelihood estimate.

    At theta = min(beta) - log(2 n + 2) the expected score of n answers is below 1/2 - p, which is less than Warm's
    correction, and likewise at the other end. Of ordered answers n is the highest score, and a logit more is enough.
    """
    counts, n, s = answers.counts, answers.max_scores, answers.scores
    beyond = np.log(2 * n + 2)
    if answers.ordered is None:
        b = least = greatest = beta[answers.items]
    else:
        steps = answers.ordered
        b = steps.mean(beta)[answers.items]
        least = steps.table(beta, np.inf).min(axis=1)[answers.items]
        greatest = steps.table(beta, -np.inf).max(axis=1)[answers.items]
        beyond += 1
    mean = answers.sums(b) / counts
    spread = np.maximum(answers.sums(b * b) / counts - mean**2, 0)
    theta = prox(mean, spread, np.log((s + 0.4) / (n - s + 0.4)))
    low = np.minimum.reduceat(least, answers.indptr[:-1]) - beyond
    high = np.maximum.reduceat(greatest, answers.indptr[:-1]) + beyond
    return np.clip(theta, low, high), low, high


# --------------------------------------------------------------------- maximum and weighted likelihood at once

NEAR = 0.01  # logits within which the series below is good to the last digits
BOLD = 1.0  # logits that one evaluation may be trusted to tell about
ROUNDS = 8  # evaluations; two are usual for people with many answers, and whoever needs more goes step by step


def likelihoods(answers: Answers, beta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Maximum likelihood and Warm's estimate of these people, each with the information at it: what `solve` gives.

    One evaluation at theta gives the cumulants k1 to k6 of the score there, and with them the whole neighborhood:

        sum p at theta + d = k1 + k2 d + k3 d^2 / 2 + ... + k6 d^5 / 120,    V = k2 + k3 d + ...,    J = dV / d theta.

    Both equations are solved in that series, without looking at the answers again, and the next evaluation is where
    they lead; one within a hundredth of a logit is final. Ordered answers take steps of their own for each.
    """
    if answers.ordered is not None:
        return *solve(answers, beta), *solve(answers, beta, warm=True)
    n, s = answers.counts, answers.scores
    theta = _prox(answers, beta)
    found = np.full((4, len(n)), np.nan)  # ability and information: maximum likelihood, then Warm's
    endless = (s == 0) | (s == n)
    found[0, endless], found[1, endless] = np.where(s[endless] > 0, np.inf, -np.inf), 0.0
    persons, mine, pi = np.arange(len(n)), answers, np.exp(beta)
    for _ in range(ROUNDS):
        k = _cumulants(mine, pi, theta)
        there = [theta]
        for row, warm in ((0, False), (2, True)):
            d, v = _solved_near(mine.scores, k, warm)
            close = (np.abs(d) <= NEAR) & np.isnan(found[row, persons])
            found[row, persons[close]], found[row + 1, persons[close]] = (theta + d)[close], v[close]
            there.append(theta + d)
        ml, warm_one = (np.isnan(found[row, persons]) for row in (0, 2))
        left = np.flatnonzero(ml | warm_one)
        if not len(left):
            break
        # Where one evaluation can serve both it is between them.
        halfway = ml & warm_one & (np.abs(there[1] - there[2]) < NEAR)
        theta = np.where(halfway, (there[1] + there[2]) / 2, np.where(ml, there[1], there[2]))[left]
        if len(left) < len(persons):
            persons, mine = persons[left], mine.take(left)
    for row, warm in ((0, False), (2, True)):
        slow = np.flatnonzero(np.isnan(found[row]))
        if len(slow):
            found[row, slow], found[row + 1, slow] = solve(answers.take(slow), beta, warm=warm)
    several = _beside_a_gap(answers, beta)
    if len(several):
        found[2, several], found[3, several] = solve(answers.take(several), beta, warm=True)
    return found[0], found[1], found[2], found[3]


def _prox(answers: Answers, beta: Floats) -> Floats:
    n, s = answers.counts, answers.scores
    mean, square = (answers.totals(values) / n for values in (beta, beta * beta))
    return np.asarray(prox(mean, np.maximum(square - mean**2, 0), np.log((s + 0.4) / (n - s + 0.4))))


def _cumulants(answers: Answers, pi: Floats, theta: Floats) -> Floats:
    """Cumulants 1 to 6 of the score at these abilities, some thousand answers at a time.

    Those of a single answer are p, v, v c, v (1 - 6 v), v c (1 - 12 v), v (1 - 30 v + 120 v^2), with v = p (1 - p) and
    c = 1 - 2 p.
    """
    sums = np.empty((6, len(theta)))  # of p, v, v c, v^2, v^2 c, v^3
    with np.errstate(over="ignore"):
        inverse = np.exp(-theta)
    for start, stop in person_chunks(answers.indptr.astype(np.int64), CACHED):
        low, high = answers.indptr[start], answers.indptr[stop]
        bounds = answers.indptr[start : stop + 1] - low
        p, v = np.empty(high - low), np.empty(high - low)
        with np.errstate(over="ignore"):
            fill_scaled(bounds, answers.items[low:high], inverse[start:stop], pi, p)
        p += 1
        np.reciprocal(p, out=p)
        np.subtract(1, p, out=v)
        v *= p
        out, first = sums[:, start:stop], bounds[:-1]
        np.add.reduceat(p, first, out=out[0])
        np.add.reduceat(v, first, out=out[1])
        p *= -2
        p += 1
        p *= v
        np.add.reduceat(p, first, out=out[2])
        p *= v
        np.add.reduceat(p, first, out=out[4])
        np.multiply(v, v, out=p)
        np.add.reduceat(p, first, out=out[3])
        p *= v
        np.add.reduceat(p, first, out=out[5])
    _, v, vc, v2, v2c, v3 = sums.copy()
    sums[3:] = v - 6 * v2, vc - 12 * v2c, v - 30 * v2 + 120 * v3
    return sums


def _solved_near(s: Ints, k: Floats, warm: bool) -> tuple[Floats, Floats]:
    """How far away the estimate is, at most `BOLD`, and the information there."""
    k1, k2, k3, k4, k5, k6 = k
    d = np.zeros(len(s))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(MOST_STEPS):
            missing = s - (k1 + d * (k2 + d / 2 * (k3 + d / 3 * (k4 + d / 4 * (k5 + d / 5 * k6)))))
            v = k2 + d * (k3 + d / 2 * (k4 + d / 3 * (k5 + d / 4 * k6)))
            slope = -v
            if warm:
                lean = k3 + d * (k4 + d / 2 * (k5 + d / 3 * k6))
                missing = missing + lean / (2 * v)
                bent = slope + ((k4 + d * (k5 + d / 2 * k6)) / v - (lean / v) ** 2) / 2
                slope = np.where(bent < slope / 2, bent, slope)
            step = -missing / slope
            step = np.clip(np.where(np.isfinite(step), step, 0.0), -BOLD - d, BOLD - d)
            d = d + step
            if np.all((np.abs(step) <= STEP) | (np.abs(d) > 2 * NEAR)):
                break
        v = k2 + d * (k3 + d / 2 * (k4 + d / 3 * (k5 + d / 4 * k6)))
    return np.where(np.isfinite(d), d, 0.0), v


# ------------------------------------------------------------------- two maxima of the weighted likelihood

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


def _take_higher(answers: Answers, beta: Floats, theta: Floats, information: Floats, low: Floats, high: Floats) -> None:
    """Write the higher maximum of the weighted likelihood to `theta`, where there may be more than one."""
    persons = _beside_a_gap(answers, beta)
    if not len(persons):
        return
    mine = answers.take(persons)
    moments = score_cumulants(mine, beta)
    points = int(np.ceil(np.max(high[persons] - low[persons]) / SCAN))
    step = (high[persons] - low[persons]) / points
    owner, left = [], []
    before = np.ones(len(persons), dtype=bool)  # the equation is positive at the lower end of the bracket
    for k in range(1, points + 1):
        expected, variance, third, _ = moments(low[persons] + k * step)
        after = mine.scores - expected + third / (2 * variance) > 0
        fell = np.flatnonzero(before & ~after)
        owner.append(fell)
        left.append(low[persons[fell]] + (k - 1) * step[fell])
        before = after
    who, start = np.concatenate(owner), np.concatenate(left)
    theirs = mine.take(who)
    stop = start + step[who]
    found, known = _climb(theirs, beta, (start + stop) / 2, start, stop, np.zeros(len(who), dtype=bool), True)
    height = log_likelihood(theirs, beta)(found) + np.log(known) / 2
    order = np.lexsort((found, who))
    best: dict[int, int] = {}
    for k in order.tolist():
        one = int(who[k])
        if one not in best or height[k] > height[best[one]] + EQUAL:
            best[one] = k
    chosen = np.array(list(best.values()), dtype=np.int64)
    theta[persons[who[chosen]]], information[persons[who[chosen]]] = found[chosen], known[chosen]


def _beside_a_gap(answers: Answers, beta: Floats) -> Ints:
    """People who answered nothing within a gap, with as many points as thresholds below it, or one more or less."""
    slack = 1
    if answers.ordered is not None:
        beta, together = _standing_together(answers.ordered, beta)
        beta, slack = beta * together, 2 * together - 1
        ends = np.concatenate([[0], np.cumsum(answers.max_scores)]).astype(np.int32)
        passed = answers.ordered.of_items(answers.items.astype(np.int64)).astype(np.int32)
        answers = Answers(ends, passed, answers.scores)  # as if every threshold were an item
    known = beta[np.isfinite(beta)]
    least, most = known.min(), known.max()
    if most - least < GAP:
        return np.empty(0, dtype=np.int64)
    persons = np.arange(len(answers.scores))
    if most - least < MOST_BINS - 2:
        # A bit for every logit in which a person has an item; a gap leaves three in a row empty.
        bit = np.left_shift(1, (np.where(np.isfinite(beta), beta, least) - least).astype(np.int64))
        bits = np.bitwise_or.reduceat(bit[answers.items], answers.indptr[:-1])
        filled = bits | bits << 1 | bits << 2
        persons = np.flatnonzero((filled + (filled & -filled)) & filled)  # a single run of ones adds up to one bit
    if not len(persons):
        return persons
    some = answers.take(persons)
    person = np.repeat(np.arange(len(persons)), some.counts)
    b = beta[some.items]
    b = b[np.lexsort((b, person))]  # the persons stay where they are
    below = np.arange(1, len(b)) - some.indptr[person[1:]]
    wide = (np.diff(b) >= GAP) & (below > 0) & (np.abs(some.scores[person[1:]] - below) <= slack)
    return persons[np.unique(person[1:][wide])]


def _standing_together(steps: Thresholds, beta: Floats) -> tuple[Floats, int]:
    """Thresholds with those in reverse order at their common mean, and how many of an item there are in one place.

    >>> _standing_together(Thresholds(np.array([3, 1])), np.array([1.0, -1.0, 2.0, 5.0]))
    (array([0., 0., 2., 5.]), 2)
    """
    passed, widest = steps.cumulated(beta), steps.widest
    pooled = np.full((steps.n_items, widest), -np.inf)
    with np.errstate(invalid="ignore"):
        for i in range(widest):  # the largest over i of the smallest over j of the means of thresholds i to j
            means = (passed[:, i + 1 :] - passed[:, i : i + 1]) / np.arange(1, widest - i + 1)
            smallest = np.fmin.accumulate(means[:, ::-1], axis=1)[:, ::-1]
            pooled[:, i:] = np.fmax(pooled[:, i:], smallest)
        alike = np.abs(np.diff(pooled, axis=1)) < EQUAL
    run, longest = np.ones(steps.n_items, dtype=np.int64), 1
    for column in alike.T:
        run = np.where(column, run + 1, 1)
        longest = max(longest, int(run.max(initial=1)))
    return pooled[steps.item, steps.level - 1], longest


# ------------------------------------------------------------------------------ one set of items, every score

SCORE_CELLS = 200_000  # scores x items x categories at a time


def score_abilities(beta: Floats, steps: Thresholds | None = None, *, warm: bool = True) -> tuple[Floats, Floats]:
    """Ability and standard error of every total score on a complete set of items.

    Parameters
    ----------
    beta : float array
        Difficulties, or thresholds of items with as many as `steps` says.
    """
    steps = steps or Thresholds.ones(len(beta))
    ability, se = np.empty(len(beta) + 1), np.empty(len(beta) + 1)
    for scores, answers in every_score(steps):
        ability[scores], information = solve(answers, beta, warm=warm)
        with np.errstate(divide="ignore"):
            se[scores] = 1 / np.sqrt(information)
    return ability, se


def every_score(steps: Thresholds) -> Iterator[tuple[Ints, Answers]]:
    """Every total score on all of these items, as somebody's answers; some of the scores at a time."""
    m, most = steps.n_items, steps.n_entries
    rows = max(1, SCORE_CELLS // max(m * numbers_each(steps), 1))
    for start in range(0, most + 1, rows):
        scores = np.arange(start, min(start + rows, most + 1))
        items = np.tile(np.arange(m, dtype=np.int32), len(scores))
        yield scores, Answers(np.arange(len(scores) + 1, dtype=np.int32) * np.int32(m), items, scores, steps)
