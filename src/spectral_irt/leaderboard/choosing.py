"""Which prompts measure best: greedy information over the range of abilities, with content balance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats, Ints
from spectral_irt.model import sigmoid

POINTS = 15  # abilities at which the list has to measure: quantiles of the models
PRIOR = 1.0  # information that is there before the first prompt, so that no point is worth everything


def choose(
    difficulty: Floats,
    ability: Floats,
    n: int,
    *,
    usable: NDArray[np.bool_],
    subject: NDArray[np.object_] | None = None,
) -> Ints:
    """Positions of `n` prompts, in the order in which they were chosen.

    Each next prompt is the one that lowers the mean error variance of ability, 1 / information, the most, over
    abilities like those of the models. With subjects, each has its share of the list.
    """
    theta = np.quantile(ability[np.isfinite(ability)], (np.arange(POINTS) + 0.5) / POINTS)
    p = sigmoid(theta - difficulty[:, None])
    told = np.where(usable[:, None], p * (1 - p), 0.0)
    free = usable.copy()
    room = None if subject is None else quotas(subject, usable, n)
    information = np.full(POINTS, PRIOR)
    chosen: list[int] = []
    while len(chosen) < n and free.any():
        gain = np.where(free, np.mean(1 / information - 1 / (information + told), axis=1), -1.0)
        if room is not None and subject is not None:
            full = [name for name, left in room.items() if left <= 0]
            allowed = free & ~np.isin(subject, np.array(full, dtype=object)) if full else free
            gain = np.where(allowed, gain, -1.0)
        best = int(np.argmax(gain))
        if gain[best] < 0:
            break
        chosen.append(best)
        free[best] = False
        information = information + told[best]
        if room is not None and subject is not None:
            room[subject[best]] -= 1
    return np.array(chosen, dtype=np.int64)


def quotas(subject: NDArray[np.object_], usable: NDArray[np.bool_], n: int) -> dict[object, int]:
    """How many prompts of each subject: its share of all prompts, by largest remainders.

    >>> quotas(np.array(["a", "a", "b"], dtype=object), np.array([True] * 3), 2)
    {'a': 1, 'b': 1}
    """
    names, counts = np.unique(subject.astype(str), return_counts=True)
    there = np.array([np.sum(usable & (subject.astype(str) == name)) for name in names])
    exact = n * counts / counts.sum()
    got = np.minimum(np.floor(exact).astype(int), there)
    while got.sum() < min(n, there.sum()):
        lacking = np.where(got < there, exact - got, -np.inf)
        got[int(np.argmax(lacking))] += 1
    known = {str(name): name for name in subject.tolist()}
    return {known[name]: int(k) for name, k in zip(names, got, strict=True)}


def spread_out(difficulty: Floats, n: int, *, subject: NDArray[np.object_] | None = None) -> Ints:
    """`n` prompts spread evenly over subjects and, within them, over difficulties: the middle one of each n-th part.

    >>> spread_out(np.array([0.0, 3.0, 1.0, 2.0]), 2).tolist()
    [2, 1]
    """
    first = np.zeros(len(difficulty)) if subject is None else np.unique(subject.astype(str), return_inverse=True)[1]
    order = np.lexsort((difficulty, first))
    ends = np.linspace(0, len(order), min(n, len(order)) + 1).astype(int)
    return order[(ends[:-1] + ends[1:]) // 2]
