"""Adaptive testing with a bank: the next item for somebody's answers, a run over simulated people, files for others.

Under the Rasch model the item that tells most about an ability is the one whose difficulty is nearest to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of, right_or_wrong
from spectral_irt.bank.export import catsim_text
from spectral_irt.bank.file_format import readable
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import index_of, positions
from spectral_irt.errors import BankError, OptionError, listed
from spectral_irt.model import sigmoid
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns, guarded

POPULATION = (0.0, 1.5)  # mean and sd of abilities where the bank knows none: wide, so that answers soon count for more
ADAPTIVE = "adaptive tests are"
GRID = np.linspace(-4.0, 4.0, 61)  # standard deviations at which the posterior is summed


@dataclass(frozen=True)
class Next:
    """What to ask now: `item` is None when nothing is left; `ability` and `se` are what the answers say so far."""

    item: Any
    ability: float
    se: float


def next_item(bank: Bank, answers: Mapping[Any, int], *, population: tuple[float, float] | None = None) -> Next:
    """The item that tells most after these answers (item -> 1 or 0). Nothing is kept between calls.

    Parameters
    ----------
    bank : Bank
        Only items with an estimate of their own are asked.
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
    index, measured = _index(bank)
    place = _places(bank, list(answers), index, measured)
    given = np.array([_right(value) for value in answers.values()], dtype=float)
    mean, se = _posterior(bank.difficulty[place], given, *_population(bank, population))
    far = np.abs(bank.difficulty - mean)
    far[~measured] = np.inf
    far[place] = np.inf
    best = int(np.argmin(far))
    return Next(bank.items[best] if np.isfinite(far[best]) else None, mean, se)


def _index(bank: Bank) -> tuple[dict[Any, int], NDArray[np.bool_]]:
    """Where each item is, and which can be asked; made once for a bank, which never changes."""
    found: tuple[dict[Any, int], NDArray[np.bool_]] | None = bank.__dict__.get("_asked_by")
    if found is None:
        right_or_wrong(bank.calibration, ADAPTIVE)
        found = index_of(bank.items), bank.measured
        object.__setattr__(bank, "_asked_by", found)
    return found


def _places(bank: Bank, labels: list[Any], index: Mapping[Any, int], measured: NDArray[np.bool_]) -> Ints:
    found = [index.get(label, -1) for label in labels]
    if -1 in found:
        found = positions(labels, bank.items.tolist()).tolist()
    unknown = [label for label, k in zip(labels, found, strict=True) if k < 0 or not measured[k]]
    if unknown:
        raise BankError(f"the bank has no difficulty for {listed(unknown)}, so answers to it say nothing.")
    return np.array(found, dtype=np.int64)


def _right(value: Any) -> int:
    if value not in (0, 1):
        raise OptionError(f"an answer is {value!r}; it is 1 for right or 0 for wrong.")
    return int(value)


def _population(bank: Bank, given: tuple[float, float] | None) -> tuple[float, float]:
    if given is not None:
        return given
    return POPULATION if bank.population is None else (bank.population.mean, bank.population.sd)


def _posterior(difficulty: Floats, right: Floats, mean: float, sd: float) -> tuple[float, float]:
    theta = mean + sd * GRID
    log = -(GRID**2) / 2
    if len(right):
        eta = theta - difficulty[:, None]
        log = log + right @ eta - np.logaddexp(0, eta).sum(axis=0)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    center = float(weight @ theta)
    return center, float(np.sqrt(weight @ (theta - center) ** 2))


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
    """

    truth: Floats
    ability: Floats
    se: Floats
    length: Ints
    exposure: Floats
    labels: NDArray[Any]

    def columns(self) -> Columns:
        """A row for each person."""
        return {
            "person": np.arange(1, len(self.truth) + 1),
            "truth": self.truth,
            "ability": self.ability,
            "se": self.se,
            "length": self.length,
        }

    @property
    def sentence(self) -> str:
        error = float(np.sqrt(np.mean((self.ability - self.truth) ** 2)))
        bias = float(np.mean(self.ability - self.truth))
        return (
            f"{len(self.truth):,} simulated people were asked {self.length.mean():.1f} items on average "
            f"({self.length.min()} to "
            f"{self.length.max()}); abilities err by {error:.2f} logits (root mean square; bias {bias:+.2f}), and "
            "their "
            f"standard errors are {np.sqrt(np.mean(self.se**2)):.2f}. {np.mean(self.exposure > 0):.0%} of the items "
            "were used; the "
            f"busiest by {self.exposure.max():.0%} of the people."
        )


def simulate_cat(
    bank: Bank,
    people: int = 1000,
    *,
    se: float | None = 0.3,
    most: int = 50,
    least: int = 1,
    population: tuple[float, float] | None = None,
    seed: int = 0,
) -> Run:
    """People drawn from a population take an adaptive test until the standard error, or the length, is reached.

    Parameters
    ----------
    se : float, optional
        Standard error (posterior standard deviation, in logits) at which a person is done; None: by length alone.
    most, least : int
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
    if people < 1 or most < 1 or least > most:
        raise OptionError("people and `most` are 1 or more, and `least` is no larger than most.")
    if se is not None and not se > 0:
        raise OptionError(f"`se` is {se!r}; a standard error is above zero.")
    right_or_wrong(bank.calibration, ADAPTIVE)
    usable = np.flatnonzero(bank.measured)
    if not len(usable):
        raise BankError("the bank has no item with a difficulty of its own.")
    mean, sd = _population(bank, population)
    rng = generator(seed)
    truth = rng.normal(mean, sd, people)
    beta = bank.difficulty[usable]
    theta = mean + sd * GRID
    log = np.tile(-(GRID**2) / 2, (people, 1))
    center, spread = np.full(people, mean), np.full(people, sd)
    asked = np.zeros((people, len(beta)), dtype=bool)
    length = np.zeros(people, dtype=np.int64)
    going = np.arange(people)
    for _ in range(min(most, len(beta))):
        far = np.abs(beta - center[going, None])
        far[asked[going]] = np.inf
        best = np.argmin(far, axis=1)
        asked[going, best] = True
        right = rng.random(len(going)) < sigmoid(truth[going] - beta[best])
        eta = theta - beta[best][:, None]
        log[going] += np.where(right[:, None], eta, 0.0) - np.logaddexp(0, eta)
        weight = np.exp(log[going] - log[going].max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        center[going] = weight @ theta
        spread[going] = np.sqrt(np.maximum(weight @ theta**2 - center[going] ** 2, 0))
        length[going] += 1
        if se is not None:
            going = going[(spread[going] > se) | (length[going] < least)]
        if not len(going):
            break
    exposure = np.zeros(bank.n_items)
    exposure[usable] = asked.mean(axis=0)
    return Run(truth, center, spread, length, exposure, bank.items)


# ------------------------------------------------------------------------------------- for other programs


def cat_text(items: Any, program: str) -> str:
    """The items as another program for adaptive tests reads them.

    "catsim": CSV item, a, b, c, d. "adaptivetesting": CSV ids, a, b, c, d (`ItemPool.load_from_dataframe`). "jscat": a
    JSON list of stimuli with difficulty, discrimination, guessing and slipping. "mirtcat": CSV item, a1, d, g, u, where
    d = -difficulty (`generate.mirt_object`). Items without a difficulty are left out.
    """
    made = right_or_wrong(calibration_of(items), "files for adaptive tests are")
    beta, labels = made.difficulty[made.known], made.labels[made.known]
    if program == "catsim":
        return catsim_text(items)
    if program == "jscat":
        rows = [
            {"id": label, "difficulty": b, "discrimination": 1, "guessing": 0, "slipping": 1}
            for label, b in zip(readable(labels), beta.tolist(), strict=True)
        ]
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    heads = {"adaptivetesting": "ids,a,b,c,d", "mirtcat": "item,a1,d,g,u"}
    if program not in heads:
        raise OptionError(f"{program!r} is not among catsim, adaptivetesting, jscat and mirtcat.")
    numbers = beta if program == "adaptivetesting" else -beta
    names = ['"' + guarded(name).replace('"', '""') + '"' for name in readable(labels)]
    rows_of = [f"{name},1.0,{number!r},0.0,1.0" for name, number in zip(names, numbers.tolist(), strict=True)]
    return "\n".join([heads[program], *rows_of]) + "\n"
