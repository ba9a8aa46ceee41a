"""How much each person counts in the chain on thresholds: the weightings of `weights.py` for ordered answers.

Any weight that is symmetric, and depends on the person only through the items answered and the total score, gives an
unbiased chain. Where every item of a person is right or wrong, these are the weights of `weights.py` to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spectral_irt.chain.weights import AbilityWeighting, Halves, Weighting, _fill_probabilities, weighting_named
from spectral_irt.model import prox
from spectral_irt.responses.block import Block, Floats, Ints
from spectral_irt.responses.ordered import Rows, Steps, rows_of

COARSE, FINE = 0.1, 0.01  # logits between abilities at which moments of items are tabulated: weights need not be exact
CELLS = 100_000  # of such a table, where it can be as large as it likes
BEYOND = 2.0  # logits that the table goes beyond the outermost thresholds
NEWTON = 2  # steps from the closed form towards the ability of a total score; a third one changes nothing measurable
LONGEST = 1.5  # logits of such a step
LEAST = 1e-12


@dataclass(frozen=True)
class StepWeighting(Weighting):
    """Each person counts w_l, by the items answered, not by the entries."""

    steps: Steps = field(kw_only=True)

    def weights(self, block: Block) -> Floats:
        rows = rows_of(block, self.steps)
        return np.where(rows.informative, self.weight(rows), 0.0)  # type: ignore[arg-type]


@dataclass(frozen=True)
class StepAbility(AbilityWeighting):
    """h = (t_l / U_l) a a with a = 1 / (t_l + pi).

    U_l adds p q P(X in {k - 1, k}) over the thresholds of the items answered, p = t / (t + pi): what each threshold
    tells by itself. For right and wrong answers that is the variance of the score. Any U_l that depends on the items
    answered and the total score alone leaves the chain unbiased.
    """

    steps: Steps = field(kw_only=True)

    @property
    def first(self) -> Weighting:
        return step_weighting(super().first.name, self.steps)

    def fill(self, block: Block, beta: Floats, halves: Halves) -> Floats:
        return self.fill_at(block, beta, halves, Moments.at(self.steps, beta))[0]

    def fill_at(self, block: Block, beta: Floats, halves: Halves, moments: Moments | None) -> tuple[Floats, Floats]:
        """w_l and 1 / t_l of every person; the factors go into the halves."""
        rows = rows_of(block, self.steps)
        theta, told = step_abilities(rows, self.steps, beta, moments)
        pi, t = np.exp(beta), np.exp(theta)
        information = np.zeros(block.n_users)
        for half, p in zip(block.halves(len(beta)), halves, strict=True):
            information += _fill_probabilities(half, 1 / t, pi, p.data)
        information = np.where(rows.most > rows.counts, told, information)
        return np.divide(1, t * information, out=np.zeros(block.n_users), where=rows.informative), 1 / t


def step_weighting(name: str, steps: Steps) -> Weighting:
    """The weighting of this name for ordered answers."""
    known = weighting_named(name)
    kind = StepAbility if known.moving else StepWeighting
    return kind(known.name, known.weight, steps=steps)


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of the answer to each item on a grid of abilities, and what its thresholds tell one by one.

    Items x abilities, flattened.
    """

    grid: Floats
    mean: Floats
    variance: Floats
    told: Floats

    @classmethod
    def at(cls, steps: Steps, beta: Floats) -> Moments | None:
        """Made once for all blocks; nothing where every item is right or wrong."""
        if steps.binary:
            return None
        low, high = float(beta.min()) - BEYOND, float(beta.max()) + BEYOND
        apart = np.clip((high - low) * steps.n_items / CELLS, FINE, COARSE)
        grid = np.linspace(low, high, int(np.ceil((high - low) / apart)) + 1)
        # Categories x items x abilities: sums over the few categories then run along memory, which halves the time.
        cumulated = steps.cumulated(beta).T[:, :, None]
        k = np.arange(len(cumulated), dtype=float)[:, None, None]
        p = k * grid - cumulated
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        mean, square = np.zeros(p.shape[1:]), np.zeros(p.shape[1:])
        told = np.zeros(p.shape[1:])
        for level in range(1, len(p)):
            here, below = p[level], p[level - 1]
            mean += level * here
            square += level**2 * here
            told += here * below / np.maximum(here + below, np.finfo(float).tiny)
        return cls(grid, mean.ravel(), np.maximum(square - mean**2, 0.0).ravel(), told.ravel())

    def nearest(self, theta: Floats) -> Ints:
        grid = self.grid
        return np.clip(np.rint((theta - grid[0]) / (grid[1] - grid[0])), 0, len(grid) - 1).astype(np.int64)


def step_abilities(rows: Rows, steps: Steps, beta: Floats, moments: Moments | None) -> tuple[Floats, Floats]:
    """About the ability at which the expected total score is the observed one, and U_l there.

    The closed form of `prox` over the thresholds of the items answered; where an item has several, two Newton steps
    from there with the moments of items tabulated on a grid, so that a step costs two look-ups an answer. U_l is
    given for these rows only. 0 for people at the ends of the scale, whose ability is not needed.
    """
    sums = (np.bincount(steps.item, weights=beta**power, minlength=steps.n_items) for power in (1, 2))
    most = np.maximum(rows.most, 1)
    mean, square = (rows.sums(of_item[rows.items]) / most for of_item in sums)
    ok = rows.informative
    odds = np.divide(rows.scores, rows.most - rows.scores, out=np.ones(len(most)), where=ok)
    theta = np.where(ok, prox(mean, np.maximum(square - mean**2, 0), np.log(odds)), 0.0)
    if moments is None:
        return theta, np.ones(len(most))
    several = (rows.most > rows.counts) & ok
    place = rows.items.astype(np.int64) * len(moments.grid)
    for _ in range(NEWTON):
        at = moments.nearest(theta)
        where = place + np.repeat(at, rows.counts)
        variance = np.maximum(rows.sums(moments.variance.take(where)), LEAST)
        missing = (rows.scores - rows.sums(moments.mean.take(where))) / variance
        theta = np.where(several, moments.grid[at] + np.clip(missing, -LONGEST, LONGEST), theta)
    where = place + np.repeat(moments.nearest(theta), rows.counts)
    return theta, np.maximum(rows.sums(moments.told.take(where)), LEAST)
