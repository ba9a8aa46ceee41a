"""Answers drawn under the Rasch model and its kin, and the truth behind them: every answer is a category.

    P(X_li = k) ~ exp(a_i (k theta_l - sum over v <= k of beta_iv)),      mean location of the items zero.

`simulate.rasch`, `partial_credit` and `rating_scale` differ in how the thresholds beta come about; `_simulate` draws
abilities and answers for all of them. The command `simulate` calls them, and so do tests and benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.data.block import AnswerRows, Block, Floats, Ints, Thresholds, pack_block, person_chunks
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import HIGHEST
from spectral_irt.errors import OptionError
from spectral_irt.numerics import generator
from spectral_irt.simulate.designs import Answers, Design, Items, as_count, as_design, check_spread

# Slots of packed responses are the item and the bits of the category in four bytes.
MOST_ITEMS = 2**30 - 1
MOST_CATEGORIES = HIGHEST + 1
DEFAULT_CATEGORIES = 4  # under the partial credit model
DEFAULT_SCALE = 5  # categories under the rating scale model

Seed = int | np.random.Generator | None


class _Truth(NamedTuple):
    """Where the thresholds come from: a function of the number of items and a source of random numbers; the number of
    items whose thresholds were given, if they were; and the random stream from which others are drawn.

    Abilities are shifted with thresholds that were given, at least in part (`shifts_ability`), so that the answers are
    those of the truth as given.
    """

    thresholds: Callable[[int, np.random.Generator], tuple[Thresholds, Floats]]
    n_items: int | None
    stream: int
    shifts_ability: bool


# Each model, the abilities, the design and the answers take random numbers from a stream of their own, so that the same
# seed gives the same truth under another design. These places must not change: a seed keeps its data.
N_STREAMS = 5
ITEM_STREAM = 0
ABILITY_STREAM = 1
DESIGN_STREAM = 2
ANSWER_STREAM = 3
RATING_SCALE_STREAM = 4


@dataclass(frozen=True, eq=False)
class Simulated:
    """Responses drawn under a known truth: thresholds item after item, larger = harder, with difficulties of mean zero;
    abilities, slopes (all 1 under the Rasch model) and the design. Labels are 0, 1, ... of items and of people."""

    responses: Responses
    thresholds: Floats
    ability: Floats
    slopes: Floats
    design: Design

    @property
    def difficulty(self) -> Floats:
        """Of each item: its threshold, or the mean of its thresholds."""
        return self.responses.thresholds.mean(self.thresholds)

    def information(self) -> Floats:
        """What the data say about each item's difficulty if abilities were known: sum_l a_i^2 Var(X_li)."""
        items = Items(self.responses.thresholds.cumulated(self.thresholds), self.slopes)
        person, item, _ = self.responses.answers()
        weights = items.at(item).information(self.ability[person])
        return np.bincount(item, weights=weights, minlength=self.responses.n_items).astype(np.float64)

    def floor_rmse(self) -> float:
        """sqrt(mean_i 1 / information_i) over the items with any: the Cramér-Rao bound with known abilities."""
        information = self.information()
        return float(np.sqrt(np.mean(1 / information[information > 0])))


def rasch(
    n_persons: int,
    n_items: int | None = None,
    *,
    design: str | Design = "complete",
    ability: ArrayLike | None = None,
    ability_mean: float = 0.0,
    ability_sd: float = 1.0,
    difficulty: ArrayLike | None = None,
    difficulty_sd: float = 1.0,
    slopes: ArrayLike | None = None,
    seed: Seed = None,
    **options: Any,
) -> Simulated:
    """Responses of `n_persons` people to `n_items` items under the Rasch model, with the truth behind them.

    P(X_li = 1) = 1 / (1 + exp(beta_i - theta_l)), or 1 / (1 + exp(a_i (beta_i - theta_l))) with slopes.

    Parameters
    ----------
    n_persons, n_items : int
        `n_items` may be left out where `difficulty` or the design says it.
    design : "complete", "sampled", "popularity", "booklets", "linked", "adaptive", "two-stage", "stopping", or a Design
        Who is shown what; in the last three by the answers so far. A name takes the parameters of its design as further
        keywords: `design="sampled", p=0.1` is `design=Sampled(p=0.1)`.
    ability, difficulty : array, optional
        Given truth. A given difficulty and the abilities are shifted together so that the difficulties average zero.
    ability_mean, ability_sd, difficulty_sd : float
        Otherwise both are normal; the difficulties are centered after the draw.
    slopes : array, optional
        Item discriminations, for data under the two-parameter model.
    seed : int or numpy Generator, optional
        The same seed gives the same answers, on any machine, and the same truth under another design.

    Examples
    --------
    >>> rasch(500, 20, design="sampled", p=0.5, seed=1).responses
    Responses(500 persons x 20 items, 5,021 responses, 49.8% right)
    """
    check_spread("difficulty_sd", difficulty_sd)

    def thresholds(n: int, rng: np.random.Generator) -> tuple[Thresholds, Floats]:
        beta = difficulty_sd * rng.standard_normal(n)
        if difficulty is not None:
            beta = _as_parameters("difficulty", difficulty, n)
        return Thresholds.ones(n), beta

    n_given = None if difficulty is None else np.size(difficulty)
    return _simulate(
        n_persons,
        n_items,
        _Truth(thresholds, n_given, ITEM_STREAM, shifts_ability=difficulty is not None),
        design=design,
        slopes=slopes,
        seed=seed,
        ability=ability,
        ability_mean=ability_mean,
        ability_sd=ability_sd,
        **options,
    )


def partial_credit(
    n_persons: int,
    n_items: int | None = None,
    *,
    categories: int | Sequence[int] | None = None,
    thresholds: Sequence[ArrayLike] | None = None,
    difficulty_sd: float = 1.0,
    threshold_sd: float = 0.5,
    **options: Any,
) -> Simulated:
    """Responses under the partial credit model, P(X_li = k) ~ exp(k theta_l - sum_{v <= k} beta_iv), with the truth.

    Parameters
    ----------
    n_persons, n_items : int
    categories : int or sequence of int, optional
        K_i + 1 of all items, or of each; 4 by default, or as the `thresholds` say.
    thresholds : sequence of arrays, optional
        The thresholds of each item; by default a logit apart around a normal location (`difficulty_sd`), each with a
        normal deviation (`threshold_sd`). They are shifted with the abilities so that the mean location is zero.
    **options
        `design` with its parameters, `ability`, `ability_mean`, `ability_sd` and `seed`, as for `simulate.rasch`.

    Examples
    --------
    >>> partial_credit(200, 5, categories=[2, 3, 4, 5, 3], seed=1).responses.thresholds.max_score.tolist()
    [1, 2, 3, 4, 2]
    """
    check_spread("difficulty_sd", difficulty_sd)
    check_spread("threshold_sd", threshold_sd)

    given: Sequence[ArrayLike] = () if thresholds is None else thresholds

    def drawn_thresholds(n: int, rng: np.random.Generator) -> tuple[Thresholds, Floats]:
        max_score = np.full(n, DEFAULT_CATEGORIES - 1)
        if categories is not None:
            max_score = _categories_of_items(categories, n) - 1
        layout = Thresholds(max_score)
        location = difficulty_sd * rng.standard_normal(n)
        distance = layout.level - (layout.max_score[layout.item] + 1) / 2  # a logit apart, around the location
        return layout, location[layout.item] + distance + threshold_sd * rng.standard_normal(layout.n_entries)

    def given_thresholds(n: int, rng: np.random.Generator) -> tuple[Thresholds, Floats]:
        max_score = None
        if categories is not None:
            max_score = _categories_of_items(categories, n) - 1
        layout, beta = _as_thresholds(given, n)
        if max_score is not None and np.any(max_score != layout.max_score):
            raise OptionError("`categories` and `thresholds` disagree; an item has one category more. Say one.")
        return layout, beta

    truth = _Truth(drawn_thresholds, None, ITEM_STREAM, shifts_ability=False)
    if thresholds is not None:
        truth = _Truth(given_thresholds, len(given), ITEM_STREAM, shifts_ability=True)
    return _simulate(n_persons, n_items, truth, **options)


def rating_scale(
    n_persons: int,
    n_items: int | None = None,
    *,
    categories: int | None = None,
    difficulty: ArrayLike | None = None,
    thresholds: ArrayLike | None = None,
    difficulty_sd: float = 1.0,
    **options: Any,
) -> Simulated:
    """Responses under the rating scale model, beta_ik = delta_i + tau_k: all items share the distances of thresholds.

    Parameters
    ----------
    n_persons, n_items : int
    categories : int, optional
        Of every item; 5 by default, or one more than there are `thresholds`.
    difficulty : array, optional
        delta_i; normal by default.
    thresholds : array, optional
        tau_k, the same for all items; by default one logit apart, with mean zero.
    **options
        As for `simulate.rasch`.
    """
    check_spread("difficulty_sd", difficulty_sd)
    n_categories = DEFAULT_SCALE if categories is None else categories
    k = as_count("categories", n_categories, least=2, most=MOST_CATEGORIES) - 1
    tau = np.arange(k) - (k - 1) / 2
    if thresholds is not None:
        tau = np.atleast_1d(np.asarray(thresholds, dtype=float))
    if categories is not None and len(tau) != k:
        raise OptionError(f"`thresholds` are {len(tau):,}, and {categories} `categories` have {k:,} between them.")

    def sums(n: int, rng: np.random.Generator) -> tuple[Thresholds, Floats]:
        delta = difficulty_sd * rng.standard_normal(n)
        delta = delta - delta.mean()
        if difficulty is not None:
            delta = _as_parameters("difficulty", difficulty, n)
        return _as_thresholds(list(delta[:, None] + tau), n)

    n_given = None if difficulty is None else np.size(difficulty)
    return _simulate(n_persons, n_items, _Truth(sums, n_given, RATING_SCALE_STREAM, shifts_ability=True), **options)


def _simulate(
    n_persons: int,
    n_items: int | None,
    truth: _Truth,
    *,
    design: str | Design = "complete",
    ability: ArrayLike | None = None,
    ability_mean: float = 0.0,
    ability_sd: float = 1.0,
    slopes: ArrayLike | None = None,
    seed: Seed = None,
    **options: Any,
) -> Simulated:
    """What all models share: abilities, the design, and answers under the truth about the items."""
    plan = as_design(design, options)
    n_persons = as_count("n_persons", n_persons)
    streams = generator(seed).spawn(N_STREAMS)
    n_items = _number_of_items(n_items, plan, truth)
    plan.check(n_persons, n_items)
    check_spread("ability_sd", ability_sd)
    theta = ability_mean + ability_sd * streams[ABILITY_STREAM].standard_normal(n_persons)
    theta = _as_parameters("ability", theta if ability is None else ability, n_persons)
    layout, beta = truth.thresholds(n_items, streams[truth.stream])
    shift = float(layout.mean_weights() @ beta)
    beta = beta - shift
    if truth.shifts_ability:
        theta = theta - shift
    a = np.ones(n_items)
    if slopes is not None:
        a = _as_parameters("slopes", slopes, n_items)
    items = Items(layout.cumulated(beta), a)
    blocks: list[Block] = []
    for answers in plan.administer(streams[DESIGN_STREAM], streams[ANSWER_STREAM], items, theta):
        blocks += _blocks_of(answers, layout)
    responses = Responses(
        tuple(blocks), np.arange(n_items), np.arange(n_persons), source=f"simulated data ({plan})", thresholds=layout
    )
    return Simulated(responses, beta, theta, a, plan)


def _number_of_items(n_items: int | None, plan: Design, truth: _Truth) -> int:
    """As it was said, else as the design, or the truth as given, has it."""
    for number in (n_items, plan.n_items, truth.n_items):
        if number is not None:
            return as_count("n_items", number, most=MOST_ITEMS)
    raise OptionError("`n_items` is missing; say how many items there are.")


def _blocks_of(answers: Answers, layout: Thresholds) -> Iterator[Block]:
    """The answers of a run of people in blocks."""
    slots = (answers.items << layout.bits) | answers.categories.astype(np.int32)
    first = np.append(0, np.cumsum(answers.counts))
    for start, stop in person_chunks(first):
        n_persons = stop - start
        person = np.repeat(np.arange(n_persons), answers.counts[start:stop])
        yield pack_block(AnswerRows(person, slots[first[start] : first[stop]]), range(n_persons), layout)


def _categories_of_items(given: int | Sequence[int], n_items: int) -> Ints:
    """The number of categories of each item."""
    numbers = list(given) if isinstance(given, Iterable) else [given] * n_items
    if len(numbers) != n_items:
        raise OptionError(f"`categories` has {len(numbers):,} numbers; there are {n_items:,} items.")
    checked = [as_count("categories", number, least=2, most=MOST_CATEGORIES) for number in numbers]
    return np.array(checked, dtype=np.int64)


def _as_thresholds(given: Sequence[ArrayLike], n_items: int) -> tuple[Thresholds, Floats]:
    of_items = [np.atleast_1d(np.asarray(thresholds, dtype=float)) for thresholds in given]
    if len(of_items) != n_items:
        raise OptionError(f"`thresholds` are given for {len(of_items):,} items; there are {n_items:,}.")
    if any(not len(thresholds) or not np.all(np.isfinite(thresholds)) for thresholds in of_items):
        raise OptionError("`thresholds` holds an item without any, or values that are not finite.")
    if max(map(len, of_items)) >= MOST_CATEGORIES:
        raise OptionError(f"`thresholds` make an item with more than {MOST_CATEGORIES} categories.")
    return Thresholds(np.array([len(thresholds) for thresholds in of_items])), np.concatenate(of_items)


def _as_parameters(name: str, values: ArrayLike, size: int) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(f"`{name}` holds values that are not numbers ({error}).") from None
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        raise OptionError(f"`{name}` has shape {array.shape}; it must hold {size:,} numbers.")
    if not np.all(np.isfinite(array)):
        raise OptionError(f"`{name}` holds values that are not finite.")
    return array
