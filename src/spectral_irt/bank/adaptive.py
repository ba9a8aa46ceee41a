"""Adaptive testing with a bank: the next item for a person's answers.

The most informative item at an ability is the one whose score varies most there: of right and wrong answers, the one
whose difficulty is nearest to it. The ability is the mean of its posterior, summed on a grid,

    log posterior(theta) = -((theta - mean) / sd)^2 / 2 + sum over answers of log P(category | theta).

Only items on one scale can be asked together. `spectral_irt.next_item` is this; a program that gives the test calls it
after each answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    prior = _prior(bank, population)
    so_far = _Answers.of(bank, answers)
    group = _askable_groups(bank)
    scale = _scale_of_most(group, so_far.item)
    counts = group[so_far.item] == scale
    abilities, weight = _posterior(bank, prior, so_far.item[counts], so_far.category[counts])
    ability = float(weight @ abilities)
    se = float(np.sqrt(weight @ (abilities - ability) ** 2))
    can_be_asked = group == scale
    can_be_asked[so_far.item] = False
    item = None
    if can_be_asked.any():
        information = np.where(can_be_asked, _score_variances(bank, ability), -1.0)
        item = bank.items.item(int(np.argmax(information)))
    n_elsewhere = int(np.sum((group >= 0) & (group != scale)))
    return Next(item, ability, se, _findings(bank, n_elsewhere, so_far.item[~counts]))


class _Normal(NamedTuple):
    """A normal distribution of abilities."""

    mean: float
    sd: float


def _prior(bank: Bank, population: tuple[float, float] | None) -> _Normal:
    """As given, the bank's, or a wide one."""
    prior = _Normal(*POPULATION)
    if bank.population is not None:
        prior = _Normal(bank.population.mean, bank.population.sd)
    if population is None:
        return prior
    mean_and_sd = np.asarray(population, dtype=float)
    if mean_and_sd.shape != (2,) or not np.isfinite(mean_and_sd).all() or mean_and_sd[1] <= 0:
        raise OptionError(f"`population` is {population!r}; it is a mean and a standard deviation above zero.")
    return _Normal(*mean_and_sd.tolist())


class _Answers(NamedTuple):
    """The answers so far: positions of items in the bank, and categories."""

    item: Ints
    category: Ints

    @classmethod
    def of(cls, bank: Bank, answers: Mapping[Any, float]) -> _Answers:
        labels = list(answers)
        item = positions(labels, bank.items.tolist())
        group = _askable_groups(bank)
        unknown = [label for label, k in zip(labels, item.tolist(), strict=True) if k < 0 or group[k] < 0]
        if unknown:
            raise BankError(f"the bank has no difficulty for {listed(unknown)}, so answers to it say nothing.")
        codes = bank.calibration.codes
        categories = [_category(answers[label], codes[k]) for label, k in zip(labels, item, strict=True)]
        return cls(item, np.array(categories, dtype=np.int64))


def _askable_groups(bank: Bank) -> Ints:
    """The group of linked items that each item is in; -1 where it has no estimate of its own."""
    return np.where(bank.estimated, bank.evidence.link_group, -1)


def _scale_of_most(group: Ints, answered: Ints) -> int:
    """The group that most of the answers are in; without any, that of most items."""
    groups = group[answered] if len(answered) else group[group >= 0]
    if not len(groups):
        raise BankError("the bank has no item with a difficulty of its own.")
    return int(np.argmax(np.bincount(groups)))


def _posterior(bank: Bank, prior: _Normal, items: Ints, categories: Ints) -> tuple[Floats, Floats]:
    """Abilities, and how likely each is after these answers; weights add to one."""
    sums = bank.calibration.layout.cumulated(bank.calibration.thresholds)
    abilities = prior.mean + prior.sd * GRID
    log_weight = -(GRID**2) / 2
    for item, category in zip(items, categories, strict=True):
        probability = category_probabilities(abilities, np.tile(sums[item], (len(abilities), 1)))
        log_weight = log_weight + np.log(probability[:, category])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return abilities, weight


def _score_variances(bank: Bank, ability: float) -> Floats:
    """How much the score on each item varies at this ability: its information."""
    sums = bank.calibration.layout.cumulated(bank.calibration.thresholds)
    probability = category_probabilities(np.full(bank.n_items, ability), sums)
    category = np.arange(sums.shape[1])
    return probability @ category**2 - (probability @ category) ** 2


def _category(value: Any, codes: Floats) -> int:
    """Which category of the item this answer is."""
    codes = codes[np.isfinite(codes)]
    is_number = isinstance(value, int | float | np.number | np.bool_)
    if not is_number or value not in codes:
        allowed = f"one of {', '.join(f'{code:g}' for code in codes)}"
        if codes.tolist() == [0, 1]:
            allowed = "1 for right or 0 for wrong"
        raise OptionError(f"an answer is {value!r}; it is {allowed}.")
    return int(np.flatnonzero(codes == value)[0])


def _findings(bank: Bank, n_elsewhere: int, ignored: Ints) -> tuple[Finding, ...]:
    """That items are on other scales, and which answers (`ignored`) do not count for that."""
    if not n_elsewhere:
        return ()
    sentence = f"{n_elsewhere:,} items are on other scales, which no answers link with this one, and are not asked."
    labels = bank.items[ignored]
    if len(labels):
        sentence += f" Answers to {listed(labels)} do not count."
    remedy = "Collect answers of people who take items of both, and update the bank."
    return (Finding("several_scales", "warning", sentence, remedy, tuple(labels.tolist())),)
