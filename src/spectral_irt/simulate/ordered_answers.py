"""Ordered answers drawn under the partial credit and the rating scale model, and the truth behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.errors import OptionError, option
from spectral_irt.model import category_probabilities
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.responses.ordered import OrderedResponses, Steps, ordered_from_codes
from spectral_irt.simulate.designs import Design, as_count, as_design, check_spread
from spectral_irt.simulate.drawing import _as_parameters, _streams
from spectral_irt.simulate.responsive import NODES, Adaptive, Responsive

MOST_CATEGORIES = 100


@dataclass(frozen=True, eq=False)
class SimulatedOrdered:
    """Ordered responses drawn under a known truth.

    Attributes
    ----------
    responses : OrderedResponses
        Items are labeled 0 to n_items - 1, people 0 to n_users - 1.
    thresholds : array
        Item after item; the mean of the items' locations is zero.
    n_thresholds : int array
    ability : array, n_users
    design : Design
        Who was shown what.
    """

    responses: OrderedResponses
    thresholds: Floats
    n_thresholds: Ints
    ability: Floats
    design: Design


def partial_credit(
    n_users: int,
    n_items: int | None = None,
    *,
    categories: int | Sequence[int] = 4,
    thresholds: Sequence[ArrayLike] | None = None,
    design: str | Design = "complete",
    ability: ArrayLike | None = None,
    ability_mean: float = 0.0,
    ability_sd: float = 1.0,
    difficulty_sd: float = 1.0,
    step_sd: float = 0.5,
    seed: int | np.random.Generator | None = None,
    **options: Any,
) -> SimulatedOrdered:
    """Responses under the partial credit model, with the truth behind them.

    P(X_li = k) ~ exp(k theta_l - sum_{v <= k} beta_iv),  k = 0, ..., K_i.

    Parameters
    ----------
    n_users, n_items : int
    categories : int or sequence of int
        K_i + 1 of all items, or of each.
    thresholds : sequence of arrays, optional
        The thresholds of each item; by default a normal location (`difficulty_sd`), steps a logit apart around it, and
        a normal deviation of each (`step_sd`). They are shifted with the abilities so that the mean location is zero.
    design, ability, ability_mean, ability_sd, seed, options
        As for `simulate.rasch`; of the designs that look at the answers "adaptive", whose next item is the one with
        the largest variance at the ability estimated so far.

    Examples
    --------
    >>> partial_credit(200, 5, categories=[2, 3, 4, 5, 3], seed=1).responses.n_thresholds.tolist()
    [1, 2, 3, 4, 2]
    """
    plan = as_design(design, options)
    if isinstance(plan, Responsive) and not isinstance(plan, Adaptive):
        raise OptionError("designs that look at the answers are for right and wrong ones, but for 'adaptive'.")
    n_users = as_count("n_users", n_users)
    for_items, for_ability, for_design, for_answers = _streams(seed)
    if n_items is None:
        n_items = plan.n_items if thresholds is None else len(thresholds)
    if n_items is None:
        raise OptionError(option("n_items"), " is missing; say how many items there are.")
    n_items = as_count("n_items", n_items)
    plan.check(n_users, n_items)
    check_spread("ability_sd", ability_sd)
    check_spread("difficulty_sd", difficulty_sd)
    check_spread("step_sd", step_sd)
    steps, beta = _thresholds(n_items, categories, thresholds, difficulty_sd, step_sd, for_items)
    theta = ability_mean + ability_sd * for_ability.standard_normal(n_users)
    theta = _as_parameters("ability", theta if ability is None else ability, n_users)
    shift = float(steps.averaging() @ beta)
    beta = beta - shift
    if thresholds is not None:
        theta = theta - shift
    cumulated = steps.cumulated(beta)
    people: list[Any] = []
    shown: list[Any] = []
    answers: list[Any] = []
    start = 0
    if isinstance(plan, Adaptive):
        given = _adaptive(plan.length, cumulated, theta, for_answers)
        people, shown, answers = [np.repeat(np.arange(n_users), plan.length)], [given[0]], [given[1]]
    else:
        for counts, items in plan.shown(for_design, n_users, n_items):
            person = np.repeat(np.arange(start, start + len(counts)), counts)
            people.append(person)
            shown.append(items)
            answers.append(_drawn(theta[person], cumulated[items], for_answers))
            start += len(counts)
    responses = ordered_from_codes(
        np.concatenate(people),
        np.concatenate(shown),
        np.concatenate(answers),
        steps.counts,
        users=np.arange(n_users),
        items=np.arange(n_items),
        source=f"simulated data ({plan})",
    )
    return SimulatedOrdered(responses, beta, steps.counts, theta, plan)


def _drawn(theta: Floats, cumulated: Floats, rng: np.random.Generator) -> Ints:
    """A category for each ability and item."""
    p = category_probabilities(theta, cumulated)
    category: Ints = (rng.random(len(theta))[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return np.minimum(category, np.isfinite(cumulated).sum(axis=1) - 1)


def _adaptive(length: int, cumulated: Floats, theta: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """An adaptive test of everybody, with the true thresholds: items and categories, person after person."""
    p = category_probabilities(np.broadcast_to(NODES, (len(cumulated), len(NODES))), cumulated[:, None, :])
    k = np.arange(p.shape[2])
    variance = p @ k**2.0 - (p @ k) ** 2  # items x nodes
    with np.errstate(divide="ignore"):
        log = np.log(p)
    n, person = len(theta), np.arange(len(theta))
    used = np.zeros((n, len(cumulated)), dtype=bool)
    posterior = np.tile(-(NODES**2) / 2, (n, 1))
    items, answers = np.empty((n, length), dtype=np.int64), np.empty((n, length), dtype=np.int64)
    for step in range(length):
        weight = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        near = np.abs(NODES - (weight @ NODES / weight.sum(axis=1))[:, None]).argmin(axis=1)
        item = np.where(used, -1.0, variance[:, near].T).argmax(axis=1)
        used[person, item] = True
        category = _drawn(theta, cumulated[item], rng)
        posterior += log[item, :, category]
        items[:, step], answers[:, step] = item, category
    return items.ravel(), answers.ravel()


def rating_scale(
    n_users: int,
    n_items: int | None = None,
    *,
    categories: int = 5,
    difficulty: ArrayLike | None = None,
    steps: ArrayLike | None = None,
    difficulty_sd: float = 1.0,
    seed: int | np.random.Generator | None = None,
    **options: Any,
) -> SimulatedOrdered:
    """Responses under the rating scale model, beta_ik = delta_i + tau_k: all items share the distances of thresholds.

    Parameters
    ----------
    difficulty : array, optional
        delta_i; normal by default.
    steps : array, optional
        tau_k; by default one logit apart, with mean zero.

    The others are as for `partial_credit`.

    >>> data = rating_scale(100, 4, categories=3, seed=1)
    >>> bool(np.ptp(np.diff(data.thresholds.reshape(4, 2))) < 1e-12)
    True
    """
    if steps is None:
        k = as_count("categories", categories, most=MOST_CATEGORIES) - 1
        tau = np.arange(k) - (k - 1) / 2
    else:
        tau = np.atleast_1d(np.asarray(steps, dtype=float))
    if difficulty is None:
        if n_items is None:
            raise OptionError(option("n_items"), " is missing; say how many items there are.")
        check_spread("difficulty_sd", difficulty_sd)
        difficulty = difficulty_sd * np.random.default_rng(seed).spawn(5)[4].standard_normal(n_items)
        difficulty = difficulty - difficulty.mean()
    delta = np.atleast_1d(np.asarray(difficulty, dtype=float))
    thresholds = [d + tau for d in delta]
    return partial_credit(n_users, len(delta), thresholds=thresholds, seed=seed, **options)


def _thresholds(
    n_items: int,
    categories: int | Sequence[int],
    given: Sequence[ArrayLike] | None,
    spread: float,
    step_sd: float,
    rng: np.random.Generator,
) -> tuple[Steps, Floats]:
    if given is not None:
        own = [np.atleast_1d(np.asarray(one, dtype=float)) for one in given]
        if len(own) != n_items:
            raise OptionError(f"thresholds are given for {len(own):,} items; there are {n_items:,}.")
        if any(not len(one) or not np.all(np.isfinite(one)) for one in own):
            raise OptionError("thresholds holds an item without any, or values that are not finite.")
        return Steps(np.array([len(one) for one in own])), np.concatenate(own)
    counts = np.broadcast_to(np.asarray(categories, dtype=np.int64), (n_items,)) - 1
    if counts.min() < 1 or counts.max() >= MOST_CATEGORIES:
        raise OptionError(option("categories"), f" must lie between 2 and {MOST_CATEGORIES}.")
    steps = Steps(counts.copy())
    location = spread * rng.standard_normal(n_items)
    apart = steps.level - (steps.counts[steps.item] + 1) / 2
    return steps, location[steps.item] + apart + step_sd * rng.standard_normal(steps.n_steps)
