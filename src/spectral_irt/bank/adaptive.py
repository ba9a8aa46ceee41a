"""Adaptive testing with a bank: the next item for somebody's answers, and a run over simulated people.

The item that tells most about an ability is the one whose score varies most there: of right and wrong answers, the one
whose difficulty is nearest to it. Only items on one scale can be asked together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import index_of, positions
from spectral_irt.errors import BankError, OptionError, listed
from spectral_irt.model import above, category_probabilities
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns

POPULATION = (0.0, 1.5)  # mean and sd of abilities where the bank knows none: wide, so that answers soon count for more
GRID = np.linspace(-5.0, 5.0, 301)  # standard deviations at which the posterior is summed
FINE = 0.05  # logits between the abilities at which the information of items is tabulated


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


# ------------------------------------------------------------------------------------------------ a run


@dataclass(frozen=True, eq=False)
class Run:
    """An adaptive run over simulated people.

    Attributes
    ----------
    truth, ability, se : float arrays
    length : int array
        Items each person was asked.
    exposure : float array
        Share of the people that was asked each item.
    findings : tuple of Finding
    """

    truth: Floats
    ability: Floats
    se: Floats
    length: Ints
    exposure: Floats
    labels: NDArray[Any]
    findings: tuple[Finding, ...] = ()

    def columns(self) -> Columns:
        """A row for each person."""
        found = {"truth": self.truth, "ability": self.ability, "se": self.se, "length": self.length}
        return {"person": np.arange(1, len(self.truth) + 1), **found}

    @property
    def sentence(self) -> str:
        error = float(np.sqrt(np.mean((self.ability - self.truth) ** 2)))
        bias = float(np.mean(self.ability - self.truth))
        text = (
            f"{len(self.truth):,} simulated people were asked {self.length.mean():.1f} items on average "
            f"({self.length.min()} to {self.length.max()}); abilities err by {error:.2f} logits (root mean square; "
            f"bias {bias:+.2f}), and their standard errors are {np.sqrt(np.mean(self.se**2)):.2f}. "
            f"{np.mean(self.exposure > 0):.0%} of the items were used; the busiest by {self.exposure.max():.0%} of the "
            "people."
        )
        return " ".join([text, *(finding.sentence for finding in self.findings)])


def simulate_cat(
    bank: Bank,
    people: int = 1000,
    *,
    se: float | None = 0.3,
    max_items: int = 50,
    min_items: int = 1,
    population: tuple[float, float] | None = None,
    seed: int = 0,
) -> Run:
    """People drawn from a population take an adaptive test until the standard error, or the length, is reached.

    Parameters
    ----------
    se : float, optional
        Standard error (posterior standard deviation, in logits) at which a person is done; None: by length alone.
    max_items, min_items : int
        Items at most and at least.

    Examples
    --------
    >>> from spectral_irt import Bank, SpectralRasch, simulate
    >>> answers = simulate.rasch(500, 60, seed=1).responses
    >>> bank = Bank.from_fit(SpectralRasch().fit(answers), answers)
    >>> run = simulate_cat(bank, 50, se=0.5)
    >>> bool(run.length.mean() < 30)
    True
    """
    if people < 1 or max_items < 1 or min_items > max_items:
        raise OptionError("people and `max_items` are 1 or more, and `min_items` is no larger than `max_items`.")
    if se is not None and not se > 0:
        raise OptionError(f"the standard error to stop at is {se!r}; it must be above zero.")
    asked_items = _Asked.of(bank)
    home = asked_items.home(np.zeros(0, dtype=np.int64))
    usable = np.flatnonzero(asked_items.group == home)
    cumulated = asked_items.cumulated[usable]
    mean, sd = _population(bank, population)
    rng = generator(seed)
    truth = rng.normal(mean, sd, people)
    theta = mean + sd * GRID
    abilities = np.arange(theta[0], theta[-1] + FINE, FINE)
    told = _told(cumulated, abilities).T
    log = np.tile(-(GRID**2) / 2, (people, 1))
    center, spread = np.full(people, mean), np.full(people, sd)
    asked = np.zeros((people, len(usable)), dtype=bool)
    length = np.zeros(people, dtype=np.int64)
    going = np.arange(people)
    for _ in range(min(max_items, len(usable))):
        near = np.clip(np.rint((center[going] - abilities[0]) / FINE).astype(np.int64), 0, len(abilities) - 1)
        best = np.argmax(np.where(asked[going], -1.0, told[near]), axis=1)
        asked[going, best] = True
        passed = above(category_probabilities(truth[going], cumulated[best]))
        category = (rng.random(len(going))[:, None] < passed).sum(axis=1)
        log[going] += _log_likelihood(cumulated[best], category, theta)
        center[going], spread[going] = _moments(log[going], theta)
        length[going] += 1
        if se is not None:
            going = going[(spread[going] > se) | (length[going] < min_items)]
        if not len(going):
            break
    exposure = np.zeros(bank.n_items)
    exposure[usable] = asked.mean(axis=0)
    findings = _findings(bank, asked_items, home, np.zeros(0, dtype=np.int64))
    return Run(truth, center, spread, length, exposure, bank.items, findings)
