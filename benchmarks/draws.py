"""Data that several studies draw: answers under the models, who sees which items, spreads of abilities, ratings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from spectral_irt import Responses, simulate
from spectral_irt.data.block import Thresholds
from spectral_irt.data.facets import Facets
from spectral_irt.model import sigmoid
from spectral_irt.simulate import Simulated

Rng = np.random.Generator

# Abilities or difficulties with mean 0 and standard deviation 1 or so.
SPREADS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "exponential, crowded above": lambda rng, n: 1 - rng.exponential(size=n),
    "t with 3 degrees of freedom": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3),
}


def answers(rng: Rng, logit: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """Right (1.0) or wrong; with a floor, those who do not know are right by guessing."""
    return (rng.random(logit.shape) < floor + (1 - floor) * sigmoid(logit)).astype(float)


def categories(rng: Rng, logit: np.ndarray) -> np.ndarray:
    """Ordered answers: the last axis has the ability less each threshold of an item; -inf where there is none."""
    log = np.concatenate([np.zeros((*logit.shape[:-1], 1)), np.cumsum(logit, axis=-1)], axis=-1)
    p = np.exp(log - log.max(axis=-1, keepdims=True))
    total = np.cumsum(p / p.sum(axis=-1, keepdims=True), axis=-1)
    return (rng.random(logit.shape[:-1])[..., None] > total[..., :-1]).sum(axis=-1).astype(float)


def around(rng: Rng, location: np.ndarray, distances: Any) -> np.ndarray:
    """Thresholds at these distances from the location of each item, a little uneven."""
    return location[:, None] + np.array(distances) + 0.3 * rng.normal(size=(len(location), len(distances)))


def simulated(categories: int, people: int, location: np.ndarray, **options: Any) -> Simulated:
    """Right or wrong answers, or in so many categories, with thresholds up to a logit from the location of an item."""
    if categories == 2:
        return simulate.rasch(people, difficulty=location, **options)
    thresholds = location[:, None] + np.linspace(-1, 1, categories - 1)
    return simulate.partial_credit(people, thresholds=list(thresholds), **options)


def window(x: np.ndarray, first: Any, length: int) -> np.ndarray:
    """What each person sees: items from `first` (one number, or one a person) on, so many of them; the rest is NaN."""
    item, start = np.arange(x.shape[1]), np.asarray(first)[..., None]
    return np.where((item >= start) & (item < start + length), x, np.nan)


def common_items(groups: int, own: int, common: int) -> np.ndarray:
    """Which items each group sees: its own, and after all of those some that it shares with each neighbor."""
    seen = np.zeros((groups, groups * own + (groups - 1) * common), dtype=bool)
    for g in range(groups):
        seen[g, g * own : (g + 1) * own] = True
        for link in (g - 1, g):
            if 0 <= link < groups - 1:
                seen[g, groups * own + link * common : groups * own + (link + 1) * common] = True
    return seen


def ratings(meets: list[list[int]], severity: np.ndarray, thresholds: np.ndarray, theta: np.ndarray, rng: Rng) -> Any:
    """Each person is rated by the raters of `meets` on all items: responses with the facets item and rater."""
    who = np.repeat(np.arange(len(meets)), [len(own) for own in meets])
    logit = (theta[who] - severity[np.concatenate(meets)])[:, None, None] - thresholds
    x = categories(rng, logit).astype(int).ravel()
    return rated(meets, len(severity), thresholds.shape[1], x)


def rated(meets: list[list[int]], n_raters: int, highest: int, x: np.ndarray) -> Any:
    """Responses with the facets item and rater: `x` has all items of a person's first rater, then of the next."""
    n_items = len(x) // sum(map(len, meets))
    who = np.repeat(np.arange(len(meets)), [n_items * len(own) for own in meets])
    rater = np.concatenate([np.repeat(own, n_items) for own in meets])
    item = np.tile(np.arange(n_items), sum(map(len, meets)))
    pairs, place = np.unique(np.stack([item, rater], axis=1), axis=0, return_inverse=True)
    levels = tuple(np.arange(n).astype(object) for n in (n_items, n_raters))
    facets = Facets(("item", "rater"), levels, pairs)
    names = {"persons": np.arange(len(meets)).astype(object), "items": facets.labels()}
    drawn = Responses.from_codes(who, place.ravel(), x, thresholds=Thresholds(np.full(len(pairs), highest)), **names)
    return replace(drawn, facets=facets)
