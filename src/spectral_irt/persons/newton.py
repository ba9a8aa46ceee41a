"""Abilities by Newton's method, many users at once: maximum likelihood, Warm's weighted likelihood, posterior mode.

With p_i = 1 / (1 + exp(beta_i - theta)) over the items that a user answered, s of them right, the ability theta solves

    s - sum p_i + J / (2 V) - (theta - mu) / sigma^2 = 0,   V = sum p_i q_i,   J = sum p_i q_i (q_i - p_i).

The first two terms are the likelihood; J / (2 V) is Warm's correction of its bias, and the last a normal prior. Each
evaluation is one walk over the answers; some thousand of them go through all iterations while in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.weights import CACHED, LOGISTIC_VARIANCE
from spectral_irt.responses.block import Floats, Ints, fill_scaled
from spectral_irt.responses.pack import user_chunks

STEP = 1e-7  # logits; steps square, so the error left after one of this size is beyond the last digit
MOST_STEPS = 200  # six are usual; the bracket halves at worst, and no bracket needs more


@dataclass(frozen=True, eq=False)
class Answers:
    """The items that some users answered, and how many of them right; every user answered something.

    Attributes
    ----------
    indptr : int32 array, users + 1
    items : int32 array, responses
        Items of user `l`: `items[indptr[l]:indptr[l + 1]]`, in any order.
    scores : int array, users
    """

    indptr: NDArray[np.int32]
    items: NDArray[np.int32]
    scores: Ints

    @property
    def counts(self) -> Ints:
        return np.diff(self.indptr).astype(np.int64)

    def sums(self, values: Floats) -> Floats:
        """Sum over the answers of each user."""
        return np.add.reduceat(values, self.indptr[:-1])

    def fill(self, rows: Floats, columns: Floats, out: Floats) -> None:
        """Write rows[user] * columns[item] for every answer."""
        fill_scaled(self.indptr, self.items, rows, columns, out)


def cached_runs(indptr: Ints, items: NDArray[np.int32], scores: Ints) -> list[tuple[Ints, Answers]]:
    """Users with answers, in runs whose numbers fit a core's cache: positions, and their answers."""
    runs = []
    for start, stop in user_chunks(indptr, CACHED):
        limits = indptr[start : stop + 1]
        users = start + np.flatnonzero(np.diff(limits))
        if len(users):
            bounds = np.append(indptr[users], limits[-1]) - limits[0]
            runs.append((users, Answers(bounds.astype(np.int32), items[limits[0] : limits[-1]], scores[users])))
    return runs


def solve(
    answers: Answers, beta: Floats, *, warm: bool = False, mean: float = 0.0, precision: float = 0.0
) -> tuple[Floats, Floats]:
    """Abilities of these users, and the information sum p q at them.

    Parameters
    ----------
    warm : bool
        With Warm's correction: finite for every score.
    mean, precision : float
        Of a normal prior; precision 0 is none. Without either, users with everything right get inf, with everything
        wrong -inf, and no information.
    """
    n, s = answers.counts, answers.scores
    pi = np.exp(beta)
    theta, low, high = _start(answers, beta)
    if precision:
        # sum p never exceeds n, so the pull of the prior ends within n / precision of its mean.
        low, high = np.minimum(low, mean) - n / precision, np.maximum(high, mean) + n / precision
    endless = np.zeros(len(n), dtype=bool) if warm or precision else (s == 0) | (s == n)
    done = endless.copy()
    information = np.zeros(len(n))
    p, v = np.empty(len(answers.items)), np.empty(len(answers.items))
    for _ in range(MOST_STEPS):
        with np.errstate(over="ignore"):
            answers.fill(np.exp(-theta), pi, p)
        p += 1
        np.reciprocal(p, out=p)
        np.subtract(1, p, out=v)
        v *= p
        at_theta = answers.sums(v)
        information = np.where(done, information, at_theta)
        slope, pull = -at_theta - precision, s - answers.sums(p) - precision * (theta - mean)
        if warm:
            p *= -2
            p += 1
            p *= v
            lean = answers.sums(p) / at_theta
            pull += lean / 2
            np.multiply(v, v, out=p)
            p *= -6
            p += v
            # The correction may bend the wrong way between far-apart items; Fisher's scoring never does.
            bent = slope + answers.sums(p) / (2 * at_theta) - lean**2 / 2
            slope = np.where(bent < slope / 2, bent, slope)
        low, high = np.where(pull > 0, theta, low), np.where(pull > 0, high, theta)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = theta - pull / slope
        step = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2) - theta
        theta = np.where(done, theta, theta + step)
        done |= np.abs(step) <= STEP
        if done.all():
            break
    theta[endless] = np.where(s[endless] > 0, np.inf, -np.inf)
    information[endless] = 0
    return theta, information


def _start(answers: Answers, beta: Floats) -> tuple[Floats, Floats, Floats]:
    """PROX, the closed form of normal difficulties, and a bracket that holds every finite likelihood estimate.

    At theta = min(beta) - log(2 n + 2) the expected score is below 1/2 - p, which is less than Warm's correction, and
    likewise at the other end.
    """
    n, s = answers.counts, answers.scores
    b = beta[answers.items]
    mean = answers.sums(b) / n
    spread = np.maximum(answers.sums(b * b) / n - mean**2, 0)
    theta = mean + np.sqrt(1 + spread / LOGISTIC_VARIANCE) * np.log((s + 0.4) / (n - s + 0.4))
    beyond = np.log(2 * n + 2)
    low = np.minimum.reduceat(b, answers.indptr[:-1]) - beyond
    high = np.maximum.reduceat(b, answers.indptr[:-1]) + beyond
    return np.clip(theta, low, high), low, high
