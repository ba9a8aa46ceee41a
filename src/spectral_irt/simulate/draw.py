"""Answers drawn under the Rasch model and its kin, and the truth behind them: every answer is a category."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.data.block import AnswerRows, Block, Floats, Ints, Thresholds, pack_block, person_chunks
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import HIGHEST
from spectral_irt.errors import OptionError
from spectral_irt.numerics import generator
from spectral_irt.simulate.designs import Design, Items, as_count, as_design, check_spread

# Slots of packed responses are the item and the bits of the category in four bytes.
MOST_ITEMS = 2**30 - 1
MOST_CATEGORIES = HIGHEST + 1

Seed = int | np.random.Generator | None
Truth = Callable[[int, np.random.Generator], tuple[Thresholds, Floats]]


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

    def truth(n: int, rng: np.random.Generator) -> tuple[Thresholds, Floats]:
        drawn = difficulty_sd * rng.standard_normal(n)
        return Thresholds.ones(n), drawn if difficulty is None else _as_parameters("difficulty", difficulty, n)

    given = None if difficulty is None else np.size(difficulty)
    people: dict[str, Any] = {"ability": ability, "ability_mean": ability_mean, "ability_sd": ability_sd}
    return _drawn(n_persons, n_items, truth, given, design=design, slopes=slopes, seed=seed, **people, **options)


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

    def truth(n: int, rng: np.random.Generator) -> tuple[Thresholds, Floats]:
        max_score = None if categories is None else _categories_of_items(categories, n) - 1
        if thresholds is not None:
            layout, beta = _as_thresholds(thresholds, n)
            if max_score is not None and np.any(max_score != layout.max_score):
                raise OptionError("`categories` and `thresholds` disagree; an item has one category more. Say one.")
            return layout, beta
        layout = Thresholds(np.full(n, 3) if max_score is None else max_score)
        location = difficulty_sd * rng.standard_normal(n)
        apart = layout.level - (layout.max_score[layout.item] + 1) / 2
        return layout, location[layout.item] + apart + threshold_sd * rng.standard_normal(layout.n_entries)

    return _drawn(n_persons, n_items, truth, None if thresholds is None else len(thresholds), **options)


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
    k = as_count("categories", 5 if categories is None else categories, least=2, most=MOST_CATEGORIES) - 1
    tau = np.atleast_1d(np.arange(k) - (k - 1) / 2 if thresholds is None else np.asarray(thresholds, dtype=float))
    if categories is not None and len(tau) != k:
        raise OptionError(f"`thresholds` are {len(tau):,}, and {categories} `categories` have {k:,} between them.")

    def truth(n: int, rng: np.random.Generator) -> tuple[Thresholds, Floats]:
        drawn = difficulty_sd * rng.standard_normal(n)
        delta = drawn - drawn.mean() if difficulty is None else _as_parameters("difficulty", difficulty, n)
        return _as_thresholds(list(delta[:, None] + tau), n)

    given = None if difficulty is None else np.size(difficulty)
    return _drawn(n_persons, n_items, truth, given, items_from=4, shifted=True, **options)


def _drawn(
    n_persons: int,
    n_items: int | None,
    truth: Truth,
    given: int | None,
    *,
    design: str | Design = "complete",
    ability: ArrayLike | None = None,
    ability_mean: float = 0.0,
    ability_sd: float = 1.0,
    slopes: ArrayLike | None = None,
    seed: Seed = None,
    shifted: bool = False,
    items_from: int = 0,
    **options: Any,
) -> Simulated:
    """What all models share; `given` is the number of items whose thresholds were said, if they were. The truth about
    the items comes from the stream `items_from`; abilities are shifted with it if it was said, at least in part."""
    plan = as_design(design, options)
    n_persons = as_count("n_persons", n_persons)
    streams = generator(seed).spawn(5)
    n_items = next((n for n in (n_items, plan.n_items, given) if n is not None), None)
    if n_items is None:
        raise OptionError("`n_items` is missing; say how many items there are.")
    n_items = as_count("n_items", n_items, most=MOST_ITEMS)
    plan.check(n_persons, n_items)
    check_spread("ability_sd", ability_sd)
    theta = ability_mean + ability_sd * streams[1].standard_normal(n_persons)
    theta = _as_parameters("ability", theta if ability is None else ability, n_persons)
    layout, beta = truth(n_items, streams[items_from])
    shift = float(layout.averaging() @ beta)
    beta = beta - shift
    if shifted or given is not None:
        theta = theta - shift
    a = np.ones(n_items) if slopes is None else _as_parameters("slopes", slopes, n_items)
    blocks: list[Block] = []
    for counts, item, category in plan.answered(streams[2], streams[3], Items(layout.cumulated(beta), a), theta):
        slots, limits = (item << layout.bits) | category.astype(np.int32), np.append(0, np.cumsum(counts))
        for start, stop in person_chunks(limits):
            person = np.repeat(np.arange(stop - start), counts[start:stop])
            rows = AnswerRows(person, slots[limits[start] : limits[stop]])
            blocks.append(pack_block(rows, range(stop - start), layout))
    labels = (np.arange(n_items), np.arange(n_persons))
    responses = Responses(tuple(blocks), *labels, source=f"simulated data ({plan})", thresholds=layout)
    return Simulated(responses, beta, theta, a, plan)


def _categories_of_items(given: int | Sequence[int], n_items: int) -> Ints:
    """The number of categories of each item."""
    each = list(given) if isinstance(given, Iterable) else [given] * n_items
    if len(each) != n_items:
        raise OptionError(f"`categories` has {len(each):,} numbers; there are {n_items:,} items.")
    return np.array([as_count("categories", one, least=2, most=MOST_CATEGORIES) for one in each], dtype=np.int64)


def _as_thresholds(given: Sequence[ArrayLike], n_items: int) -> tuple[Thresholds, Floats]:
    own = [np.atleast_1d(np.asarray(one, dtype=float)) for one in given]
    if len(own) != n_items:
        raise OptionError(f"`thresholds` are given for {len(own):,} items; there are {n_items:,}.")
    if any(not len(one) or not np.all(np.isfinite(one)) for one in own):
        raise OptionError("`thresholds` holds an item without any, or values that are not finite.")
    if max(map(len, own)) >= MOST_CATEGORIES:
        raise OptionError(f"`thresholds` make an item with more than {MOST_CATEGORIES} categories.")
    return Thresholds(np.array([len(one) for one in own])), np.concatenate(own)


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
