"""Adaptive testing with a bank: the next item for a person's answers.

The item that tells most about an ability is the one whose score varies most there: of right and wrong answers, the one
whose difficulty is nearest to it. Only items on one scale can be asked together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import index_of, positions
from spectral_irt.errors import BankError, OptionError, listed
from spectral_irt.model import category_probabilities

POPULATION = (0.0, 1.5)  # mean and sd of abilities where the bank knows none: wide, so that answers soon count for more
GRID = np.linspace(-5.0, 5.0, 301)  # standard deviations at which the posterior is summed


@dataclass(frozen=True)
class Next:
    """What to ask now: `item` is None when nothing is left; `ability` and `se` are what the answers say so far."""

    item: Any
    ability: float
    se: float
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class _Asked:
    """The items of a bank that can be asked: where each is, its group (-1: none), and sums of its thresholds."""

    index: dict[Any, int]
    group: Ints
    cumulated: Floats
    codes: Floats

    @classmethod
    @lru_cache(maxsize=4)  # a bank never changes
    def of(cls, bank: Bank) -> _Asked:
        made, group = bank.calibration, np.where(bank.estimated, bank.evidence.link_group, -1)
        return cls(index_of(bank.items), group, made.layout.cumulated(made.thresholds), made.codes)

    def home(self, place: Ints) -> int:
        """The scale that most of these items are on; without any, that of most items."""
        of = self.group[place] if len(place) else self.group[self.group >= 0]
        if not len(of):
            raise BankError("the bank has no item with a difficulty of its own.")
        return int(np.argmax(np.bincount(of)))


def next_item(bank: Bank, answers: Mapping[Any, float], *, population: tuple[float, float] | None = None) -> Next:
    """The item that tells most after these answers (item -> 1 or 0, or its category). Nothing is kept between calls.

    Parameters
    ----------
    bank : Bank
        Only items with an estimate of their own are asked, and of groups that no answers link only one: that of most of
        the answers so far. A finding says so.
    answers : mapping
        So far; may be empty.
    population : (mean, sd), optional
        Prior of the ability in logits; by default that of the bank.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> answers = datasets.load_lsat()
    >>> bank = SpectralRasch().fit(answers).analyse(answers).to_bank()
    >>> next_item(bank, {}).item, next_item(bank, {bank.items[2]: 1}).item != bank.items[2]
    ('item3', True)
    """
    asked = _Asked.of(bank)
    place = _places(bank, list(answers), asked)
    given = np.array([_category(value, asked.codes[k]) for value, k in zip(answers.values(), place, strict=True)])
    home = asked.home(place)
    here = asked.group[place] == home
    mean, sd = _population(bank, population)
    theta, log = mean + sd * GRID, -(GRID**2) / 2
    if here.any():
        log = log + _log_likelihood(asked.cumulated[place[here]], given[here].astype(np.int64), theta).sum(axis=0)
    center, spread = (float(each[0]) for each in _moments(log[None], theta))
    told = np.full(bank.n_items, -1.0)
    free = asked.group == home
    free[place] = False
    told[free] = _told(asked.cumulated[free], np.array([center]))[:, 0]
    best = int(np.argmax(told))
    return Next(bank.items[best] if free.any() else None, center, spread, _findings(bank, asked, home, place[~here]))


def _places(bank: Bank, labels: list[Any], asked: _Asked) -> Ints:
    found = [asked.index.get(label, -1) for label in labels]
    if -1 in found:
        found = positions(labels, bank.items.tolist()).tolist()
    unknown = [label for label, k in zip(labels, found, strict=True) if k < 0 or asked.group[k] < 0]
    if unknown:
        raise BankError(f"the bank has no difficulty for {listed(unknown)}, so answers to it say nothing.")
    return np.array(found, dtype=np.int64)


def _category(value: Any, codes: Floats) -> int:
    """Which category of the item this answer is."""
    own = codes[np.isfinite(codes)]
    number = isinstance(value, int | float | np.number | np.bool_)
    if not number or value not in own:
        what = "1 for right or 0 for wrong" if own.tolist() == [0, 1] else f"one of {', '.join(f'{c:g}' for c in own)}"
        raise OptionError(f"an answer is {value!r}; it is {what}.")
    return int(np.flatnonzero(own == value)[0])


def _population(bank: Bank, given: tuple[float, float] | None) -> tuple[float, float]:
    known = POPULATION if bank.population is None else (bank.population.mean, bank.population.sd)
    return given or known


def _log_likelihood(cumulated: Floats, category: Ints, theta: Floats) -> Floats:
    """Answers x abilities: the log-likelihood of each answer, log P(X = x) up to nothing."""
    k = np.arange(cumulated.shape[1])
    eta = k[:, None] * theta - cumulated[:, :, None]
    top = eta.max(axis=1, keepdims=True)
    total = top[:, 0] + np.log(np.exp(eta - top).sum(axis=1))
    return category[:, None] * theta - cumulated[np.arange(len(category)), category][:, None] - total


def _moments(log: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each row's density on the grid."""
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    center = weight @ theta
    return center, np.sqrt(np.maximum((weight * (theta - center[:, None]) ** 2).sum(axis=1), 0))


def _told(cumulated: Floats, theta: Floats) -> Floats:
    """Items x abilities: the variance of each answer."""
    k = np.arange(cumulated.shape[1], dtype=float)
    out = np.empty((len(cumulated), len(theta)))
    for j, ability in enumerate(theta):
        p = category_probabilities(np.full(len(cumulated), ability), cumulated)
        out[:, j] = p @ k**2 - (p @ k) ** 2
    return out


def _findings(bank: Bank, asked: _Asked, home: int, others: Ints) -> tuple[Finding, ...]:
    outside = int(np.sum((asked.group >= 0) & (asked.group != home)))
    if not outside:
        return ()
    sentence = f"{outside:,} items are on other scales, which no answers link with this one, and are not asked."
    if len(others):
        sentence += f" Answers to {listed(bank.items[others])} do not count."
    remedy = "Collect answers of people who take items of both, and update the bank."
    return (Finding("several_scales", "warning", sentence, remedy, tuple(bank.items[others].tolist())),)
