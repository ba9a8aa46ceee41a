"""How far each anchored item is from where the data would put it, if it alone were set free.

With all others held, moving item a by delta multiplies every person's odds of category c, given the score, by
exp(-c delta): so sum_l ( E_la(delta) - X_la ) = 0 is solved exactly, person by person, in a few passes. When a is set
free the free items follow it. What comes back to it by way of them, `follow`, is taken from the matrices at the anchor
and grows with the square of the item's information, as what ties the item does.

Slope and noise of the item's equation, and hence its standard error, are taken where it would lie, not at the anchor:
off by three logits the slope at the anchor is many times too small or too large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.errors import Matrices
from spectral_irt.conditional.information import PeopleRows
from spectral_irt.conditional.newton import Newton
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.data.thresholds import Thresholds

STEPS, LONGEST = 40, 2.0  # Newton steps for all fixed items at once, and how far one may go
SETTLED = 1e-6  # logits
FARTHEST = 30.0  # logits: farther is nowhere
NOTHING = 1e-9  # of a score: the threshold was passed, or failed, for sure


@dataclass(frozen=True, eq=False)
class _Equation:
    """What an item's equation lacks, its slope and its squared noise, for every item at its delta."""

    missing: Floats
    slope: Floats
    noise: Floats


def displacements(found: Newton, matrices: Matrices | None) -> tuple[Floats, Floats]:
    """Displacement of every fixed item and its standard error.

    With matrices, the free items follow when a fixed item is set free; without them they are held. NaN for free items,
    for a single fixed one (set free, the whole scale would move with it), and where the data put no finite value on it.
    """
    assert found.fixed is not None
    m, fixed = found.layout.n_items, found.layout.sum((~found.fixed).astype(float)) == 0
    if fixed.sum() < 2:
        return np.full(m, np.nan), np.full(m, np.nan)
    answers = found.point.scored.prepare(_Answers.of, found.point.tables)

    def at(delta: Floats) -> _Equation:
        return _Equation(*answers.sum(_Answers.equation, delta))

    here = at(np.zeros(m))
    delta = np.zeros(m)
    there = here
    for _ in range(STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(fixed & (there.slope > 0), np.clip(there.missing / there.slope, -LONGEST, LONGEST), 0.0)
        delta = np.clip(delta + step, -FARTHEST, FARTHEST)
        there = at(delta)
        if np.all((np.abs(step) < SETTLED) | (np.abs(delta) == FARTHEST)):
            break
    back, extra = (np.zeros(m), np.zeros(m)) if matrices is None else _following(found.layout, fixed, matrices, here)
    with np.errstate(divide="ignore", invalid="ignore"):
        secant = np.where(delta == 0, here.slope, here.missing / delta)
        displacement = np.clip(delta / _left(back, secant / here.slope), -FARTHEST, FARTHEST)
        noise = np.maximum(there.noise + extra, 0)
        se = np.sqrt(noise) / (there.slope * _left(back, there.slope / here.slope))
    measured = fixed & (np.abs(delta) < FARTHEST) & np.isfinite(displacement) & (there.slope > 0)
    return np.where(measured, displacement, np.nan), np.where(measured, se, np.nan)


def _left(back: Floats, growth: Floats) -> Floats:
    """The share of an item's slope that is left of it when some comes back, which grows as the information does."""
    return np.maximum(1 - back * growth, 0.05)


def _following(layout: Thresholds, fixed: Mask, matrices: Matrices, here: _Equation) -> tuple[Floats, Floats]:
    """The share of each fixed item's slope that comes back by way of the free items; what they add to its noise.

    With T = H_AF H_FF^-1 the free ones answer to a change of fixed item a, whose own equation then has the slope
    H_aa - T_a H_Fa and the noise g_a - T_a g_F. What an item has several thresholds for is added up over these.
    """
    back, extra = np.zeros(layout.n_items), np.zeros(layout.n_items)
    bread, meat = (
        one[fixed] if layout.binary else np.add.reduceat(one, layout.first, axis=0)[fixed]
        for one in (matrices.bread, matrices.meat)
    )
    lever = bread @ matrices.inverse
    comes_back = np.einsum("af,af->a", lever, bread)
    slope = here.slope[fixed]
    back[fixed] = np.divide(comes_back, slope, out=np.zeros(len(slope)), where=slope > 0)
    extra[fixed] = np.einsum("af,af->a", lever, lever @ matrices.meat - 2 * meat)
    return np.clip(back, 0, 1), extra


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers of one block: item, category, P(X = c | s) at the thresholds (categories x answers), people's weights."""

    items: NDArray[np.int32]
    x: Ints
    p: Floats
    weight: Floats | float

    @classmethod
    def of(cls, rows: PeopleRows, tables: Any) -> _Answers:
        """From people's scores P(X >= k | s) - 1{X >= k}: those below zero are of thresholds that were passed.

        Where the score is zero the threshold was passed, or failed, for sure: passed if a higher one is open.
        """
        scores = rows.scores(tables)
        values, weight = scores.values, 1.0 if rows.weight is None else np.repeat(rows.weight, np.diff(scores.indptr))
        values = values / np.where(weight == 0, 1.0, weight)
        some = np.abs(values) > NOTHING
        passed = np.where(some, values < 0, np.logical_or.accumulate(some[::-1])[::-1])
        ends = np.ones((1, len(scores.items)))
        higher = np.concatenate([ends, values + passed, 0 * ends])
        return cls(scores.items, passed.sum(axis=0), np.maximum(higher[:-1] - higher[1:], 0), weight)

    def equation(self, delta: Floats) -> tuple[Floats, ...]:
        """Sums for `_Equation`."""
        category = np.arange(len(self.p))
        p = self.p * np.exp(-category[:, None] * delta)[:, self.items]
        p /= p.sum(axis=0)
        mean = category @ p
        lacking = self.weight * (mean - self.x)
        sums = (lacking, self.weight * (category**2 @ p - mean**2), lacking**2)
        return tuple(np.bincount(self.items, weights=each, minlength=len(delta)).astype(np.float64) for each in sums)
