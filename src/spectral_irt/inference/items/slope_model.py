"""A slope for every item: the two-parameter model, or in several categories the generalized partial credit model.

    P(x = k | theta) ~ exp(k a_i theta - t_i1 - ... - t_ik),

by EM on a grid of abilities with free weights (Bock & Aitkin 1981; Muraki 1992). Answers drawn from it say what unequal
slopes alone make of residual correlations (`dimensions/unequal_slopes.py`) and of groups of unlike ability
(`groups/slope_shifts.py`), before that is called a second dimension, local dependence or differential functioning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Mask
from spectral_irt.engine.base import one_blas_thread
from spectral_irt.inference.fit.redraw import redraw

GRID = np.linspace(-4.5, 4.5, 19)  # abilities
EM_STEPS = 30  # slopes are then within a fraction of their standard errors
LIKE = 4.0  # precision of a prior on slopes around their mean, sd 0.5: the ability stays that of all items together
FLATTEST = 0.3  # of the mean slope: items flatter than that measure something else
FARTHEST = 1.0  # that a parameter moves in a step
RIDGE = 1e-9  # which keeps the information of a threshold that nobody is near invertible
CELLS = 2_000_000  # people x items that the slopes of a group rest on, at most


@dataclass(frozen=True, eq=False)
class SlopeModel:
    """What `slope_model` found: the slope of each item, their mean being 1, with standard errors; t of every threshold,
    where difficulties or thresholds would stand; mean and standard deviation of each person's ability."""

    slope: Floats
    slope_se: Floats
    intercepts: Floats
    ability: Floats
    ability_sd: Floats

    def redraw(self, responses: Responses, seed: np.random.SeedSequence) -> Responses:
        """The same people shown the same items, with answers drawn from this model."""
        return redraw(responses, self.intercepts, self.ability, self.ability_sd, seed, slope=self.slope)


class Newton(NamedTuple):
    """A step of every item's parameters, and the information where it began."""

    step: Floats
    information: Floats


class CurveModel(NamedTuple):
    """Response curves that are linear in the parameters of their item: at ability q

        P(x_i = k) ~ exp(sum_j value_ij features_kjq)

    for the categories that the item has; the parameters of an item that are not free stay where they are.
    """

    features: Floats  # categories x parameters x abilities
    has_category: Mask  # items x categories
    is_free: Mask  # items x parameters

    def probabilities(self, value: Floats) -> Floats:
        """Items x categories x abilities."""
        logit = np.einsum("ij,kjq->ikq", value, self.features)
        logit = np.where(self.has_category[:, :, None], logit, -np.inf)
        p = np.exp(logit - logit.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def newton(self, value: Floats, counts: Floats, *, center: Floats | float, precision: float) -> Newton:
        """One step of Newton's method of every item on its own, from numbers of people by category and ability; slopes,
        the first parameter, have a normal prior of this precision around `center`."""
        p = self.probabilities(value)
        n = counts.sum(axis=1, keepdims=True)
        gradient = np.einsum("ikq,kjq->ij", counts - n * p, self.features)
        mean = np.einsum("ikq,kjq->ijq", p, self.features)
        information = np.einsum("ikq,kjq,klq->ijl", n * p, self.features, self.features, optimize=True)
        information -= np.einsum("iq,ijq,ilq->ijl", n[:, 0], mean, mean, optimize=True)
        gradient[:, 0] -= precision * (value[:, 0] - center)
        information[:, 0, 0] += precision
        information += _ridge(self.is_free)
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        return Newton(np.where(self.is_free, np.clip(step, -FARTHEST, FARTHEST), 0.0), information)


def _ridge(is_free: Mask) -> Floats:
    """Items x parameters x parameters: 1 for those that are not free, whose information is zero."""
    diagonal = np.where(is_free, RIDGE, 1.0)
    return np.asarray(np.eye(is_free.shape[1]) * diagonal[:, None, :])


@one_blas_thread()
def slope_model(responses: Responses) -> SlopeModel:
    """Slopes and thresholds of the items, and abilities of the people, of a table that fits into memory."""
    layout = responses.thresholds
    categories = range(layout.widest + 1)
    has_category = np.array(categories) <= layout.max_score[:, None]
    answers = responses.to_dense()
    chosen = np.array([answers == category for category in categories], dtype=float)  # categories x people x items
    curves = CurveModel(
        features=np.stack([_features_of_category(category, layout.widest) for category in categories]),
        has_category=has_category,
        is_free=np.concatenate([np.ones((layout.n_items, 1), bool), has_category[:, 1:]], axis=1),
    )
    number = chosen.sum(axis=1).T
    value = np.where(has_category, np.log((number + 0.5) / (number[:, :1] + 0.5)), 0.0)
    value[:, 0] = 1.0  # the slope, before the intercepts of categories 1, 2, ...
    weight = np.exp(-(GRID**2) / 2)
    for _ in range(EM_STEPS):
        posterior = _posterior(chosen, curves.probabilities(value), has_category, weight)
        weight = posterior.sum(axis=0)
        # Items x categories x abilities: how many people chose the category, as far as is known where they are.
        counts = np.array([of_category.T @ posterior for of_category in chosen]).transpose(1, 0, 2)
        value = value + curves.newton(value, counts, center=value[:, 0].mean(), precision=LIKE).step
        value[:, 0] = np.maximum(value[:, 0], FLATTEST * value[:, 0].mean())
    p = curves.probabilities(value)
    posterior = _posterior(chosen, p, has_category, weight)
    mean = posterior @ GRID
    information = _information_of_answers(chosen, p, posterior, mean) + _ridge(curves.is_free)
    slope_variance = np.linalg.inv(information)[:, 0, 0]
    cumulated = np.concatenate([np.zeros((layout.n_items, 1)), -value[:, 1:]], axis=1)
    # In units of the mean slope.
    mean_slope = float(value[:, 0].mean())
    return SlopeModel(
        slope=value[:, 0] / mean_slope,
        slope_se=np.sqrt(np.maximum(slope_variance, 0.0)) / mean_slope,
        intercepts=np.diff(cumulated, axis=1)[layout.item, layout.level - 1],
        ability=mean_slope * mean,
        ability_sd=mean_slope * np.sqrt(np.maximum(posterior @ GRID**2 - mean**2, 0.0)),
    )


def _features_of_category(category: int, widest: int) -> Floats:
    """Parameters x abilities: k theta, and which of the categories 1, 2, ... it is."""
    which = np.arange(1, widest + 1) == category
    return np.stack([category * GRID, *(np.full(len(GRID), float(is_this)) for is_this in which)])


def _posterior(chosen: Floats, p: Floats, has_category: Mask, weight: Floats) -> Floats:
    """People x abilities."""
    log_p = np.log(np.where(has_category[:, :, None], np.maximum(p, 1e-300), 1.0))
    log_likelihood = sum(of_category @ log_p[:, k] for k, of_category in enumerate(chosen))
    log_posterior = log_likelihood + np.log(np.maximum(weight, 1e-300))
    posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def _information_of_answers(chosen: Floats, p: Floats, posterior: Floats, mean: Floats) -> Floats:
    """The information that the answers themselves have, items x parameters x parameters: squares of the scores of every
    person, the derivatives of his or her marginal likelihood, added up (Louis 1982)."""
    answered = chosen.sum(axis=0)
    categories = range(len(chosen))
    of_slope = sum(k * (chosen[k] * mean[:, None] - answered * (posterior @ (GRID * p[:, k]).T)) for k in categories)
    scores = [of_slope, *(chosen[k] - answered * (posterior @ p[:, k].T) for k in categories[1:])]
    return np.array([[(a * b).sum(axis=0) for a in scores] for b in scores]).transpose(2, 0, 1)
