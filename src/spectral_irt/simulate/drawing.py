"""Answers drawn under the Rasch model (or the two-parameter model), and the truth behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.errors import OptionError, Words, option
from spectral_irt.model import sigmoid
from spectral_irt.responses.block import Block, Floats, Ints
from spectral_irt.responses.pack import Repeats, pack
from spectral_irt.responses.responses import Responses
from spectral_irt.simulate.designs import Design, as_count, as_design, check_spread
from spectral_irt.simulate.responsive import Responsive
from spectral_irt.simulate.successive import limits_of

# Slots of packed responses are `2 * item + wrong` in four bytes.
MOST_ITEMS = 2**30 - 1


@dataclass(frozen=True, eq=False)
class Simulated:
    """Responses drawn under a known truth.

    Attributes
    ----------
    responses : Responses
        Items are labeled 0 to n_items - 1, people 0 to n_users - 1.
    difficulty : array, n_items
        Larger = harder; mean zero.
    ability : array, n_users
        On the same scale.
    slopes : array, n_items
        Discriminations; all 1 under the Rasch model.
    design : Design
        Who was shown what.
    """

    responses: Responses
    difficulty: Floats
    ability: Floats
    slopes: Floats
    design: Design

    def information(self) -> Floats:
        """What the data say about each item's difficulty if abilities were known: sum_l a_i^2 p_li (1 - p_li)."""
        total = self.responses.sum(_information, self.difficulty, self.slopes, persons=(self.ability,))
        return self.slopes**2 * total

    def floor_rmse(self) -> float:
        """sqrt(mean_i 1 / information_i) over the items with any: the least root mean square error.

        The Cramér-Rao bound for unbiased estimates with known abilities; no estimator has these, so none reaches it.
        """
        information = self.information()
        return float(np.sqrt(np.mean(1 / information[information > 0])))


def rasch(
    n_users: int,
    n_items: int | None = None,
    *,
    design: str | Design = "complete",
    ability: ArrayLike | None = None,
    ability_mean: float = 0.0,
    ability_sd: float = 1.0,
    difficulty: ArrayLike | None = None,
    difficulty_sd: float = 1.0,
    slopes: ArrayLike | None = None,
    seed: int | np.random.Generator | None = None,
    **options: Any,
) -> Simulated:
    """Responses of `n_users` people to `n_items` items under the Rasch model, with the truth behind them.

    P(X_li = 1) = 1 / (1 + exp(beta_i - theta_l)), or 1 / (1 + exp(a_i (beta_i - theta_l))) with slopes.

    Parameters
    ----------
    n_users, n_items : int
        `n_items` may be left out where `difficulty` or the design says it.
    design : "complete", "sampled", "popularity", "booklets", "linked", "adaptive", "two-stage", "stopping", or a Design
        Who is shown what; in the last three by the answers so far. A name takes the parameters of its design as further
        keywords: `design="sampled", p=0.1` is `design=Sampled(p=0.1)`.
    ability, difficulty : array, optional
        Given truth. A given difficulty and the abilities are shifted together so that the difficulties average zero.
    ability_mean, ability_sd, difficulty_sd : float
        Otherwise both are normal; the difficulties are centered after the draw.
    slopes : array, optional
        Item discriminations, for data under the two-parameter model. (A single number stands for an array of it, as
        in `ability`.)
    seed : int or numpy Generator, optional
        The same seed gives the same bits. Difficulties, abilities, design and answers have streams of their own: the
        same seed with another design keeps the truth.

    Examples
    --------
    >>> data = rasch(500, 20, design="sampled", p=0.5, seed=1)
    >>> data.responses
    Responses(500 persons x 20 items, 5,021 responses, 49.8% right)
    >>> rasch(3000, design="linked", forms=30, length=40, anchors=2, seed=1).responses.n_items
    1142
    """
    plan = as_design(design, options)
    n_users = as_count("n_users", n_users)
    for_difficulty, for_ability, for_design, for_answers = _streams(seed)

    if n_items is None:
        n_items = plan.n_items
    if n_items is None and difficulty is not None:
        n_items = np.size(difficulty)
    if n_items is None:
        raise OptionError(option("n_items"), " is missing; say how many items there are.")
    n_items = as_count("n_items", n_items, most=MOST_ITEMS)
    plan.check(n_users, n_items)

    check_spread("ability_sd", ability_sd)
    check_spread("difficulty_sd", difficulty_sd)
    theta = ability_mean + ability_sd * for_ability.standard_normal(n_users)
    beta = difficulty_sd * for_difficulty.standard_normal(n_items)
    beta -= beta.mean()
    theta = _as_parameters("ability", theta if ability is None else ability, n_users)
    if difficulty is not None:
        beta = _as_parameters("difficulty", difficulty, n_items)
        theta, beta = theta - beta.mean(), beta - beta.mean()
    a = np.ones(n_items) if slopes is None else _as_parameters("slopes", slopes, n_items)

    blocks: list[Block] = []
    for counts, items, wrong in _answered(plan, for_design, for_answers, theta, beta, a):
        slots = 2 * items
        slots += wrong
        blocks += pack(limits_of(counts), slots, duplicates="error", repeats=Repeats())
    responses = Responses(tuple(blocks), np.arange(n_items), np.arange(n_users), source=f"simulated data ({plan})")
    return Simulated(responses, beta, theta, a, plan)


def _answered(
    plan: Design,
    for_design: np.random.Generator,
    for_answers: np.random.Generator,
    theta: Floats,
    beta: Floats,
    a: Floats,
) -> Iterator[tuple[Ints, NDArray[np.int32], NDArray[np.bool_]]]:
    """For runs of people: how many items each is given, these items, and which of them are answered wrong."""
    if isinstance(plan, Responsive):
        for counts, items, right in plan.administered(for_answers, beta, theta, a):
            yield counts, items, ~right
        return
    start = 0
    for counts, items in plan.shown(for_design, len(theta), len(beta)):
        x = a[items] * (np.repeat(theta[start : start + len(counts)], counts) - beta[items])
        yield counts, items, for_answers.random(len(items)) >= sigmoid(x)
        start += len(counts)


def _information(block: Block, ability: Floats, difficulty: Floats, slopes: Floats) -> Floats:
    x = slopes[block.items] * (np.repeat(ability, block.counts) - difficulty[block.items])
    return np.bincount(block.items, weights=sigmoid(x) * sigmoid(-x), minlength=len(difficulty)).astype(np.float64)


def _as_parameters(name: str, values: ArrayLike, size: int) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(f"{name} holds values that are not numbers ({error}).") from None
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        raise OptionError(f"{name} has shape {array.shape}; it must hold {size:,} numbers.")
    if not np.all(np.isfinite(array)):
        raise OptionError(f"{name} holds values that are not finite.")
    return array


def _streams(seed: int | np.random.Generator | None) -> list[np.random.Generator]:
    try:
        return np.random.default_rng(seed).spawn(4)
    except (TypeError, ValueError):
        what = Words("a whole number, zero or more, or a numpy Generator", "a whole number, zero or more")
        raise OptionError(option("seed"), f" is {seed!r}; it can be ", what, ".") from None
