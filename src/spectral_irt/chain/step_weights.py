"""How much each person counts in the chain on thresholds: the weightings of `weights.py` for ordered answers.

Any weight that is symmetric, and depends on the person only through the items answered and the total score, gives an
unbiased chain. Where every item of a person is right or wrong, these are the weights of `weights.py` to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spectral_irt.chain.weights import AbilityWeighting, Halves, Weighting, _fill_probabilities, weighting_named
from spectral_irt.model import category_probabilities, prox
from spectral_irt.responses.block import Block, Floats
from spectral_irt.responses.ordered import Rows, Steps, rows_of

GRID = 0.1  # logits between abilities at which moments of items are tabulated: weights need not be exact
BEYOND = 2.0  # logits that the table goes beyond the outermost thresholds
NEWTON = 2  # steps from the closed form towards the ability of a total score
LONGEST = 1.5  # logits of such a step


@dataclass(frozen=True)
class StepWeighting(Weighting):
    """Each person counts w_l: 1 under "pairs", one over the number of items answered under "persons"."""

    steps: Steps = field(kw_only=True)

    def weights(self, block: Block) -> Floats:
        rows = rows_of(block, self.steps)
        weight = 1 / np.maximum(rows.counts, 1) if self.name == "persons" else np.ones(block.n_users)
        return np.where(rows.informative, weight, 0.0)


@dataclass(frozen=True)
class StepAbility(AbilityWeighting):
    """h = (t_l / V_l) a a with a = 1 / (t_l + pi) and V_l the variance of the total score at the ability theta_l."""

    steps: Steps = field(kw_only=True)

    @property
    def first(self) -> Weighting:
        return step_weighting("persons", self.steps)

    def fill(self, block: Block, beta: Floats, halves: Halves) -> Floats:
        return self.fill_at(block, beta, halves)[0]

    def fill_at(self, block: Block, beta: Floats, halves: Halves) -> tuple[Floats, Floats]:
        """w_l and 1 / t_l of every person; the factors go into the halves."""
        rows = rows_of(block, self.steps)
        theta, variance = step_abilities(rows, self.steps, beta)
        pi, t = np.exp(beta), np.exp(theta)
        information = np.zeros(block.n_users)
        for half, p in zip(block.halves(len(beta)), halves, strict=True):
            information += _fill_probabilities(half, 1 / t, pi, p.data)
        information = np.where(rows.most > rows.counts, variance, information)
        return np.divide(1, t * information, out=np.zeros(block.n_users), where=rows.informative), 1 / t


def step_weighting(name: str, steps: Steps) -> Weighting:
    """The weighting of this name for ordered answers."""
    known = weighting_named(name)
    kind = StepAbility if known.moving else StepWeighting
    return kind(known.name, known.weight, steps=steps)


def step_abilities(rows: Rows, steps: Steps, beta: Floats) -> tuple[Floats, Floats]:
    """About the ability at which the expected total score is the observed one, and the variance of the score there.

    The closed form of `prox` over the thresholds of the items answered; where an item has several, two Newton steps
    from there with the moments of items tabulated on a grid, so that a step costs two look-ups an answer. The variance
    is given for these rows only. 0 for people at the ends of the scale, whose ability is not needed.
    """
    sums = (np.bincount(steps.item, weights=beta**power, minlength=steps.n_items) for power in (1, 2))
    most = np.maximum(rows.most, 1)
    mean, square = (rows.sums(of_item[rows.items]) / most for of_item in sums)
    ok = rows.informative
    odds = np.divide(rows.scores, rows.most - rows.scores, out=np.ones(len(most)), where=ok)
    theta = np.where(ok, prox(mean, np.maximum(square - mean**2, 0), np.log(odds)), 0.0)
    variance = np.ones(len(most))
    several = rows.most > rows.counts
    if not several.any():
        return theta, variance
    low, high = float(beta.min()) - BEYOND, float(beta.max()) + BEYOND
    grid = np.linspace(low, high, int(np.ceil((high - low) / GRID)) + 1)
    expected, spread = moment_tables(grid, steps.cumulated(beta))
    place = rows.items.astype(np.int64) * len(grid)
    for k in range(NEWTON + 1):
        at = np.clip(np.rint((theta - low) / (grid[1] - grid[0])), 0, len(grid) - 1).astype(np.int64)
        where = place + np.repeat(at, rows.counts)
        variance = np.maximum(rows.sums(spread.take(where)), 1e-12)
        if k < NEWTON:
            missing = (rows.scores - rows.sums(expected.take(where))) / variance
            theta = np.where(several & ok, grid[at] + np.clip(missing, -LONGEST, LONGEST), theta)
    return theta, variance


def moment_tables(grid: Floats, cumulated: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the answer to each item at each ability, items x abilities, flattened."""
    p = category_probabilities(np.broadcast_to(grid, (len(cumulated), len(grid))), cumulated[:, None, :])
    k = np.arange(cumulated.shape[1])
    mean = p @ k
    return mean.ravel(), np.maximum(p @ k**2 - mean**2, 0.0).ravel()
