"""One ability, and a slope of its own for every item: what departures from the Rasch model it explains by itself.

    P(x = k | theta) ~ exp(k a_i theta - t_i1 - ... - t_ik),

the two-parameter model for right and wrong answers, the generalized partial credit model for ordered ones. Unequal
slopes make items share more than the Rasch model says (steep items with steep ones), and make them differ between
groups of unlike ability. Both are compared with what answers drawn from this model show before they are called a second
dimension, local dependence or differential functioning. Fitted by EM on a grid of abilities whose weights are free.

References
----------
Bock & Aitkin (1981), Psychometrika 46, 443-459; Muraki (1992), Applied Psychological Measurement 16, 159-176.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine.threads import one_blas_thread
from spectral_irt.inference.fit.answer_kinds import kind_of
from spectral_irt.persons.abilities import Abilities

GRID = np.linspace(-4.5, 4.5, 19)  # abilities
STEPS = 30  # of EM: slopes are then within a fraction of their standard errors
LIKE = 4.0  # precision of a prior on slopes around their mean, sd 0.5: the ability stays that of all items together
FLATTEST = 0.3  # of the mean slope: items flatter than that measure something else
CELLS = 2_000_000  # people x items that the slopes of a group rest on, at most
FARTHEST = 1.0  # that a parameter moves in a step


@dataclass(frozen=True, eq=False)
class SlopeModel:
    """What `slope_model` found.

    Attributes
    ----------
    slope, slope_se : float arrays
        Of each item, the mean slope being 1.
    intercepts : float array
        t of every threshold, where difficulties or thresholds would stand.
    ability, ability_sd : float arrays
        Mean and standard deviation of each person's ability given the answers.
    """

    slope: Floats
    slope_se: Floats
    intercepts: Floats
    ability: Floats
    ability_sd: Floats

    def redraw(self, responses: Responses, seed: np.random.SeedSequence) -> Responses:
        """The same people shown the same items, with answers drawn from this model."""
        none = np.zeros(len(self.ability), dtype=np.int64)
        people = Abilities(self.ability, self.ability_sd, none > 0, none, none, "eap")
        return kind_of(responses).redraw(responses, self.intercepts, people, seed, slope=self.slope)


@one_blas_thread()
def slope_model(responses: Responses) -> SlopeModel:
    """Slopes and thresholds of the items, and abilities of the people, of a table that fits into memory.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> data = simulate.rasch(2000, 10, slopes=[0.5] * 5 + [1.5] * 5, seed=1)
    >>> found = slope_model(data.responses)
    >>> bool(abs(found.slope[:5].mean() - 0.5) < 0.1)
    True
    """
    steps = responses.thresholds
    answers = responses.to_dense()
    k = np.arange(steps.widest + 1)
    there = k <= steps.max_score[:, None]  # items x categories
    chosen = np.array([answers == level for level in k], dtype=float)
    seen = chosen.sum(axis=0)
    number = chosen.sum(axis=1).T
    free = np.concatenate([np.ones((len(there), 1), bool), there[:, 1:]], axis=1)
    value = np.where(there, np.log((number + 0.5) / (number[:, :1] + 0.5)), 0.0)
    value[:, 0] = 1.0  # the slope, before the intercepts of categories 1, 2, ...
    # features of category k at ability q: k theta, and which of the categories it is
    features = np.stack([k[:, None] * GRID, *(np.outer(k == level, np.ones(len(GRID))) for level in k[1:])], axis=1)
    weight = np.exp(-(GRID**2) / 2)
    for _ in range(STEPS):
        p = _probabilities(value, features, there)
        posterior = _posterior(chosen, p, there, weight)
        weight = posterior.sum(axis=0)
        r = np.array([each.T @ posterior for each in chosen]).transpose(1, 0, 2)  # items x categories x abilities
        value = value + _newton(value, r, p, features, free)
        value[:, 0] = np.maximum(value[:, 0], FLATTEST * value[:, 0].mean())
    p = _probabilities(value, features, there)
    posterior = _posterior(chosen, p, there, weight)
    mean = posterior @ GRID
    # Scores of every person, whose squares add up to the information that the answers themselves have.
    scores = [sum(level * (chosen[level] * mean[:, None] - seen * (posterior @ (GRID * p[:, level]).T)) for level in k)]
    scores += [chosen[level] - seen * (posterior @ p[:, level].T) for level in k[1:]]
    information = np.array([[(a * b).sum(axis=0) for a in scores] for b in scores]).transpose(2, 0, 1)
    information += np.eye(len(k)) * np.where(free, 1e-9, 1.0)[:, None, :]
    common = float(value[:, 0].mean())
    variance = np.linalg.inv(information)[:, 0, 0]
    levels = np.diff(np.concatenate([np.zeros((len(value), 1)), -value[:, 1:]], axis=1), axis=1)
    return SlopeModel(
        value[:, 0] / common,
        np.sqrt(np.maximum(variance, 0.0)) / common,
        levels[steps.item, steps.level - 1],
        common * mean,
        common * np.sqrt(np.maximum(posterior @ GRID**2 - mean**2, 0.0)),
    )


def slope_shifts(everyone: Responses, group: Ints, base: int, n_groups: int) -> tuple[Floats, Floats]:
    """How much harder each item seems in each group than in the group `base` by its slope alone; standard errors.

    An item of slope a gains a D from people who are abler by D logits, where the average item gains D: it seems harder
    for them by (1 - a) D. Slopes are those within groups, so that an item that is harder for a group at any ability
    looks no steeper for that, and are drawn to their mean by as much as their errors explain how they differ.
    """
    most = max(1, CELLS // everyone.n_items)
    models = []
    for k in range(n_groups):
        people = np.flatnonzero((group == k) & everyone.mixed)
        if len(people) > most:
            people = np.sort(np.random.default_rng(k).choice(people, most, replace=False))
        models.append(slope_model(everyone.take_persons(people)))
    precision = np.array([1 / model.slope_se**2 for model in models])
    slope = (np.array([model.slope for model in models]) * precision).sum(axis=0) / precision.sum(axis=0)
    error = 1 / precision.sum(axis=0)
    differ = max(float(slope.var()) - float(error.mean()), 0.0)
    trust = differ / (differ + error)
    level = [float(np.mean(model.ability.mean() - everyone.thresholds.mean(model.intercepts))) for model in models]
    apart = np.array(level) - level[base]
    return -np.outer(apart, trust * (slope - 1)), np.outer(np.abs(apart), np.sqrt(trust * error))


def _probabilities(value: Floats, features: Floats, there: NDArray[np.bool_]) -> Floats:
    """Items x categories x abilities."""
    logit = np.einsum("ij,kjq->ikq", value, features)
    logit = np.where(there[:, :, None], logit - logit.max(axis=1, keepdims=True), -np.inf)
    p = np.exp(logit)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _posterior(chosen: Floats, p: Floats, there: NDArray[np.bool_], weight: Floats) -> Floats:
    """People x abilities."""
    log_p = np.log(np.where(there[:, :, None], np.maximum(p, 1e-300), 1.0))
    log = sum(each @ log_p[:, level] for level, each in enumerate(chosen)) + np.log(np.maximum(weight, 1e-300))
    log = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(log / log.sum(axis=1, keepdims=True))


def _newton(value: Floats, r: Floats, p: Floats, features: Floats, free: NDArray[np.bool_]) -> Floats:
    """One step of Newton's method of every item on its own, from numbers of people by category and ability."""
    n = r.sum(axis=1, keepdims=True)
    gradient = np.einsum("ikq,kjq->ij", r - n * p, features)
    mean = np.einsum("ikq,kjq->ijq", p, features)
    hessian = np.einsum("ikq,kjq,klq->ijl", n * p, features, features, optimize=True)
    hessian -= np.einsum("iq,ijq,ilq->ijl", n[:, 0], mean, mean, optimize=True)
    gradient[:, 0] -= LIKE * (value[:, 0] - value[:, 0].mean())
    hessian[:, 0, 0] += LIKE
    hessian += np.eye(value.shape[1]) * np.where(free, 1e-9, 1.0)[:, None, :]
    step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    return np.where(free, np.clip(step, -FARTHEST, FARTHEST), 0.0)
