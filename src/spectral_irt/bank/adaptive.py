"""Adaptive testing with a bank: the next item for a person's answers.

The most informative item at an ability is the one whose score varies most there: of right and wrong answers, the one
whose difficulty is nearest to it. Only items on one scale can be asked together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import BankError, OptionError
from spectral_irt.model import category_probabilities
from spectral_irt.text import listed

POPULATION = (0.0, 1.5)  # mean and sd of abilities where the bank knows none: wide, so that answers soon count for more
GRID = np.linspace(-5.0, 5.0, 301)  # standard deviations at which the posterior is summed


@dataclass(frozen=True)
class Next:
    """What to ask now: `item` is None when nothing is left; `ability` and `se` are what the answers say so far."""

    item: Any
    ability: float
    se: float
    findings: tuple[Finding, ...] = ()


def next_item(bank: Bank, answers: Mapping[Any, float], *, population: tuple[float, float] | None = None) -> Next:
    """The most informative item after these answers (item -> 1 or 0, or its category). Nothing is kept between calls.

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
    if not isinstance(bank, Bank):
        raise OptionError(
            f"the first argument is a bank, not {type(bank).__name__}; make one with "
            "`fit.analyse(responses).to_bank()`, or open a saved one with `spectral_irt.load(folder)`."
        )
    known = POPULATION if bank.population is None else (bank.population.mean, bank.population.sd)
    prior = np.asarray(known if population is None else population, dtype=float)
    if prior.shape != (2,) or not np.isfinite(prior).all() or prior[1] <= 0:
        raise OptionError(f"`population` is {population!r}; it is a mean and a standard deviation above zero.")
    mean, sd = prior.tolist()
    made, labels = bank.calibration, list(answers)
    group = np.where(bank.estimated, bank.evidence.link_group, -1)
    sums = made.layout.cumulated(made.thresholds)
    place = positions(labels, bank.items.tolist())
    unknown = [label for label, k in zip(labels, place.tolist(), strict=True) if k < 0 or group[k] < 0]
    if unknown:
        raise BankError(f"the bank has no difficulty for {listed(unknown)}, so answers to it say nothing.")
    given = np.array([_category(answers[label], made.codes[k]) for label, k in zip(labels, place, strict=True)])
    of = group[place] if labels else group[group >= 0]
    if not len(of):
        raise BankError("the bank has no item with a difficulty of its own.")
    home = int(np.argmax(np.bincount(of)))  # the scale that most of the answers are on; without any, of most items
    here = group[place] == home
    theta, log = mean + sd * GRID, -(GRID**2) / 2
    for k, category in zip(place[here], given[here], strict=True):
        log = log + np.log(category_probabilities(theta, np.tile(sums[k], (len(theta), 1)))[:, category])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    center = float(weight @ theta)
    free = group == home
    free[place] = False
    p, k = category_probabilities(np.full(bank.n_items, center), sums), np.arange(sums.shape[1])
    best = int(np.argmax(np.where(free, p @ k**2 - (p @ k) ** 2, -1.0)))
    found = _findings(bank, int(np.sum((group >= 0) & (group != home))), place[~here])
    se = float(np.sqrt(weight @ (theta - center) ** 2))
    return Next(bank.items.item(best) if free.any() else None, center, se, found)


def _category(value: Any, codes: Floats) -> int:
    """Which category of the item this answer is."""
    own = codes[np.isfinite(codes)]
    if not isinstance(value, int | float | np.number | np.bool_) or value not in own:
        what = "1 for right or 0 for wrong" if own.tolist() == [0, 1] else f"one of {', '.join(f'{c:g}' for c in own)}"
        raise OptionError(f"an answer is {value!r}; it is {what}.")
    return int(np.flatnonzero(own == value)[0])


def _findings(bank: Bank, outside: int, others: Ints) -> tuple[Finding, ...]:
    if not outside:
        return ()
    sentence = f"{outside:,} items are on other scales, which no answers link with this one, and are not asked."
    if len(others):
        sentence += f" Answers to {listed(bank.items[others])} do not count."
    remedy = "Collect answers of people who take items of both, and update the bank."
    return (Finding("several_scales", "warning", sentence, remedy, tuple(bank.items[others].tolist())),)
