"""Abilities of people whose answers are in ordered categories: maximum likelihood, Warm's estimate, posterior mean.

With E, V and M the mean, the variance and the third central moment of the total score at theta, over the items that a
person answered, the ability solves

    s - E = 0 (maximum likelihood),      s - E + M / (2 V) = 0 (Warm's weighted likelihood),

since V is the information on theta, and M its derivative. The standard error is 1 / sqrt(V).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.model import category_probabilities, prox
from spectral_irt.responses.block import Floats
from spectral_irt.responses.ordered import Rows, Steps
from spectral_irt.responses.pack import user_chunks

STEP = 1e-9  # logits
MOST_STEPS = 200
CELLS = 200_000  # answers x categories at a time
FARTHEST = 40.0  # logits beyond the thresholds; no finite estimate lies farther


def answer_moments(theta: Floats, items: NDArray[Any], cumulated: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and third central moment of each answer."""
    p = category_probabilities(theta, cumulated[items])
    k = np.arange(cumulated.shape[1], dtype=float)
    mean = p @ k
    away = k - mean[:, None]
    weighted = p * away**2
    return mean, weighted.sum(axis=1), (weighted * away).sum(axis=1)


def _runs(rows: Rows, width: int) -> Iterator[tuple[int, int]]:
    return user_chunks(rows.indptr, max(1, CELLS // width))


def score_moments(rows: Rows, theta: Floats, cumulated: Floats) -> tuple[Floats, Floats, Floats]:
    """E, V and M of the total score of each person at these abilities."""
    found = np.zeros((3, len(rows.counts)))
    for start, stop in _runs(rows, cumulated.shape[1]):
        part = rows.part(start, stop)
        each = answer_moments(np.repeat(theta[start:stop], part.counts), part.items, cumulated)
        for k, values in enumerate(each):
            found[k, start:stop] = part.sums(values)
    return found[0], found[1], found[2]


def ordered_abilities(rows: Rows, steps: Steps, thresholds: Floats, *, warm: bool = True) -> tuple[Floats, Floats]:
    """Ability and standard error of each row; NaN without answers, infinite at the ends of the scale without `warm`."""
    cumulated = steps.cumulated(thresholds)
    n = len(rows.counts)
    theta, se = np.full(n, np.nan), np.full(n, np.nan)
    bottom, top = (rows.scores == 0) & (rows.counts > 0), (rows.scores == rows.most) & (rows.counts > 0)
    active = rows.counts > 0
    if not warm:
        theta[bottom], theta[top], se[bottom | top] = -np.inf, np.inf, np.inf
        active = active & ~bottom & ~top
    who = np.flatnonzero(active)
    if not len(who):
        return theta, se
    mine = rows.take(who)
    share = (mine.scores + 0.5) / (mine.most + 1)
    mean = mine.sums(steps.mean(thresholds)[mine.items]) / mine.counts
    x = prox(mean, 1.0, np.log(share / (1 - share)))
    low = np.full(len(who), thresholds.min() - FARTHEST)
    high = np.full(len(who), thresholds.max() + FARTHEST)
    for _ in range(MOST_STEPS):
        expected, variance, third = score_moments(mine, x, cumulated)
        safe = np.maximum(variance, 1e-300)
        pull = mine.scores - expected + (third / (2 * safe) if warm else 0.0)
        low, high = np.where(pull > 0, x, low), np.where(pull > 0, high, x)
        newton = x + np.clip(pull / safe, -2, 2)
        there = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        moved = np.max(np.abs(there - x))
        x = there
        if moved < STEP:
            break
    theta[who] = x
    with np.errstate(divide="ignore"):
        se[who] = 1 / np.sqrt(score_moments(mine, x, cumulated)[1])
    return theta, se


def form_rows(steps: Steps) -> Rows:
    """Every total score on a complete set of items."""
    most = steps.n_steps
    items = np.tile(np.arange(steps.n_items, dtype=np.int32), most + 1)
    counts = np.full(most + 1, steps.n_items)
    indptr = np.arange(most + 2) * steps.n_items
    return Rows(indptr, items, counts, np.arange(most + 1), np.full(most + 1, most))


def ordered_information(steps: Steps, thresholds: Floats, theta: Floats) -> Floats:
    """The information of a form at each ability: the variance of its total score."""
    cumulated = steps.cumulated(thresholds)
    k = np.arange(cumulated.shape[1], dtype=float)
    total = np.zeros(len(theta))
    for row in cumulated:
        p = category_probabilities(theta, np.broadcast_to(row, (len(theta), len(row))))
        total += p @ k**2 - (p @ k) ** 2
    return total


# ------------------------------------------------------------------------------- posterior means

NODES = 81  # of the posterior; 12 standard deviations of the population, finer than any posterior of a test
SPAN = 6.0
EM_STEPS, SETTLED = 500, 1e-7


def posterior(rows: Rows, steps: Steps, thresholds: Floats, mean: float, sd: float) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each person's ability under a normal population."""
    nodes = mean + sd * np.linspace(-SPAN, SPAN, NODES)
    weight = posterior_weights(rows, steps, thresholds, nodes, mean, sd)
    first = weight @ nodes
    return first, np.sqrt(np.maximum(weight @ nodes**2 - first**2, 0))


def posterior_weights(rows: Rows, steps: Steps, thresholds: Floats, nodes: Floats, mean: float, sd: float) -> Floats:
    """The posterior of each person on the nodes, rows x nodes."""
    log = log_likelihoods(rows, steps, thresholds, nodes)
    log -= ((nodes - mean) / sd) ** 2 / 2
    log -= log.max(axis=1, keepdims=True)
    np.exp(log, out=log)
    log /= log.sum(axis=1, keepdims=True)
    return log


def log_likelihoods(rows: Rows, steps: Steps, thresholds: Floats, nodes: Floats) -> Floats:
    """Logarithm of the likelihood of each person at the nodes, but for the thresholds passed: rows x nodes."""
    cumulated = steps.cumulated(thresholds)
    k = np.arange(cumulated.shape[1], dtype=float)
    # log of the denominators, items x nodes
    x = nodes[None, :, None] * k - cumulated[:, None, :]
    top = x.max(axis=2)
    size = top + np.log(np.exp(x - top[:, :, None]).sum(axis=2))
    out = np.empty((len(rows.counts), len(nodes)))
    for start, stop in _runs(rows, len(nodes)):
        part = rows.part(start, stop)
        away = np.zeros((stop - start, len(nodes)))
        some = np.flatnonzero(part.counts)
        if len(some):
            away[some] = np.add.reduceat(size[part.items], part.indptr[some], axis=0)
        out[start:stop] = part.scores[:, None] * nodes - away
    return out


def fit_population(rows: Rows, steps: Steps, thresholds: Floats, weight: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the normal population of these people, by EM."""
    mean, sd = 0.0, 1.0
    who = rows.counts > 0
    total = float(weight[who].sum())
    if not total:
        return mean, sd
    for _ in range(EM_STEPS):
        m, s = posterior(rows, steps, thresholds, mean, sd)
        new_mean = float(weight[who] @ m[who]) / total
        new_sd = float(np.sqrt(weight[who] @ (s[who] ** 2 + (m[who] - new_mean) ** 2) / total))
        moved = abs(new_mean - mean) + abs(new_sd - sd)
        mean, sd = new_mean, max(new_sd, 1e-3)
        if moved < SETTLED:
            break
    return mean, sd
