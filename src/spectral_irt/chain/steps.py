"""The Markov chain on thresholds, matrix-free: ordered answers as one chain, without moves inside an item.

For items i != j the odds of (X_i = k, X_j = k' - 1) against (X_i = k - 1, X_j = k') are pi_jk' / pi_ik whatever the
ability, for all k and k'. So the states are the thresholds, and the rates those of `operator.py`, with the threshold
passed last for a right answer and the next one for a wrong answer. Two thresholds of one item say nothing about each
other in one answer; the only such move is from a threshold to the next, so one number for each threshold takes it out:

    same_c = sum of w_l a_lc a_l,c-1 over the people who passed c - 1 and failed c, thresholds of the same item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.chain.covariance import CLOSE, MOST_PASSES, PROBES, Balance
from spectral_irt.chain.operator import ItemChain, Part, total_rates
from spectral_irt.chain.regularization import Regularization
from spectral_irt.chain.rounds import Rounds
from spectral_irt.chain.step_weights import Moments, StepAbility, step_weighting
from spectral_irt.chain.weights import Halves, Weighting
from spectral_irt.engines import Prepared
from spectral_irt.numerics import bicgstab, gram
from spectral_irt.responses.block import Block, Floats, csr
from spectral_irt.responses.ordered import OrderedResponses, Steps

NOTHING = 1e-12  # of a rate: what rounding leaves where a threshold meets only its own item


@dataclass(frozen=True, eq=False)
class StepPart(Part):
    """A block made ready, with what the factors were taken at: 1 / t_l of each person (none: factors are 1) and pi."""

    inverse_t: Floats | None
    at: Floats

    @classmethod
    def under(cls, block: Block, weighting: Weighting, beta: Floats, moments: Moments | None = None) -> StepPart:
        right, wrong = halves = weighting.halves(block, len(beta))
        weight, inverse_t = _filled(block, weighting, beta, halves, moments)
        return cls(block, weight, right, wrong, inverse_t, np.exp(beta))

    def again(self, weighting: Weighting, beta: Floats, moments: Moments | None = None) -> StepPart:
        weight, inverse_t = _filled(self.block, weighting, beta, (self.right, self.wrong), moments)
        return replace(self, weight=weight, inverse_t=inverse_t, at=np.exp(beta))

    def factor(self, person: Any, step: Any) -> Floats:
        """a of a threshold for a person, as those of the entries are."""
        if self.inverse_t is None:
            return np.ones(len(step))
        odds = self.at.take(step)
        odds *= self.inverse_t.take(person)
        odds += 1
        return np.reciprocal(odds, out=odds)


def _filled(
    block: Block, weighting: Weighting, beta: Floats, halves: Halves, moments: Moments | None
) -> tuple[Floats, Floats | None]:
    """w_l and 1 / t_l of every person; the factors go into the halves."""
    if isinstance(weighting, StepAbility):
        return weighting.fill_at(block, beta, halves, moments)
    return weighting.fill(block, beta, halves), None


def _inside(part: StepPart, steps: Steps) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Entries failed next whose item also has an entry passed last: where, whose, which threshold. Made once."""
    found = part.block._cache.get(("inside", steps.n_steps))
    if found is None:
        wrong = part.wrong
        where = np.flatnonzero(steps.below[wrong.indices])
        person = np.repeat(np.arange(wrong.shape[0], dtype=np.int32), np.diff(wrong.indptr))[where]
        found = part.block.remember(("inside", steps.n_steps), (where, person, wrong.indices[where]))
    return found


def _same(part: StepPart, steps: Steps) -> Floats:
    """Rates from each threshold's lower neighbor of the same item."""
    where, person, step = _inside(part, steps)
    if not len(where):
        return np.zeros(steps.n_steps)
    values = part.weight.take(person)
    if part.inverse_t is not None:
        values *= part.wrong.data.take(where)
        values *= part.factor(person, step - 1)
    return np.bincount(step, weights=values, minlength=steps.n_steps).astype(np.float64)


class StepChain(ItemChain):
    """The chain on thresholds under one weighting."""

    def __init__(self, parts: Prepared, steps: Steps) -> None:
        self.parts, self.steps = parts, steps
        self.same: Floats = parts.sum(_same, steps)
        full = parts.sum(total_rates)
        rates = full - self._ahead(self.same)
        self.rates = np.where(rates > NOTHING * full, rates, 0.0)

    @classmethod
    def of(
        cls, responses: OrderedResponses, weighting: Weighting, beta: Floats, old: StepChain | None = None
    ) -> StepChain:
        """The chain under a weighting at these thresholds; an old one of the same weighting gives its memory."""
        moments = Moments.at(responses.steps, beta) if weighting.moving else None
        if old is None:
            return cls(responses.thresholds.prepare(StepPart.under, weighting, beta, moments), responses.steps)
        return cls(old.parts.prepare(StepPart.again, weighting, beta, moments), responses.steps)

    def _ahead(self, values: Floats) -> Floats:
        """The value of the next threshold of the item, 0 for the last one."""
        below = self.steps.below if values.ndim == 1 else self.steps.below[:, None]
        out = np.zeros_like(values)
        out[:-1] = np.where(below, values, 0.0)[1:]
        return out

    def inflow(self, flow: Floats) -> Floats:
        same = self.same if flow.ndim == 1 else self.same[:, None]
        own = np.zeros_like(flow)
        own[1:] = flow[:-1]  # `same` is 0 where the threshold before is another item's
        return super().inflow(flow) - same * own

    def outflow(self, to: Floats) -> Floats:
        same = self.same if to.ndim == 1 else self.same[:, None]
        return super().outflow(to) - self._ahead(same * to)

    def matrix(self) -> Floats:
        y = super().matrix()
        upper = np.flatnonzero(self.steps.below)
        y[upper - 1, upper] = 0.0
        return y


# -------------------------------------------------------------------------------------- the sandwich


def half_contributions(part: StepPart, pi: Floats, steps: Steps) -> tuple[sparse.csr_array, sparse.csr_array]:
    """g_l on the thresholds failed next, and on those passed last, people x thresholds."""
    n, m = part.right.shape
    won, lost = part.weight * (part.right @ pi), part.weight * (part.wrong @ np.ones(m))
    halves = []
    for half, total, side in ((part.wrong, won, -1), (part.right, lost, 1)):
        person = np.repeat(np.arange(n, dtype=np.int32), np.diff(half.indptr))
        step = half.indices
        value = total.take(person)
        beside = np.flatnonzero(steps.below[step] if side < 0 else np.append(steps.below, False)[1:][step])
        if len(beside):
            who, which = person[beside], step[beside] + side
            own = part.factor(who, which) * part.weight[who]
            value[beside] -= own * pi[which] if side < 0 else own
        value *= half.data
        if side > 0:
            value *= -pi.take(step)
        halves.append(csr(half.indptr, step, value, m))
    return halves[0], halves[1]


def contributions(part: StepPart, pi: Floats, steps: Steps) -> sparse.csr_array:
    """g_l of every person, people x thresholds: what the person adds to the balance of flows."""
    failed, passed = half_contributions(part, pi, steps)
    return sparse.csr_array(failed + passed)


def _omega(part: StepPart, pi: Floats, steps: Steps) -> Floats:
    return gram(contributions(part, pi, steps))


def _spread(part: StepPart, pi: Floats, shift: Floats, steps: Steps) -> tuple[Floats, Floats, Floats]:
    g = contributions(part, pi, steps)
    common = g @ shift
    squares = np.bincount(g.indices, weights=g.data**2, minlength=len(pi)).astype(np.float64)
    return squares, g.T @ common, np.array(common @ common)


def _signed(part: StepPart, seed: np.random.SeedSequence, pi: Floats, steps: Steps, probes: int) -> Floats:
    signs = np.random.default_rng(seed).integers(0, 2, (len(part.weight), probes)) * 2.0 - 1
    return contributions(part, pi, steps).T @ signs


@dataclass(frozen=True, eq=False)
class StepBalance(Balance):
    """A solved chain on thresholds, ready for its sandwich."""

    @property
    def steps(self) -> Steps:
        return self.data.steps  # type: ignore[attr-defined]

    @cached_property
    def spread(self) -> tuple[Floats, Floats, Floats]:
        return self.data.parts.sum(_spread, self.pi, -self.scale / len(self.pi), self.steps)

    def omega(self) -> Floats:
        return self.data.parts.sum(_omega, self.pi, self.steps)

    def signed(self, seed: int, probes: int = PROBES) -> Floats:
        return self.data.parts.sum(_signed, self.pi, self.steps, probes, each=[self.data.parts.seeds(seed)])


# ----------------------------------------------------------------------------------------- the rounds


class StepRounds(Rounds):
    """`Rounds` for ordered answers; `beta` are the thresholds."""

    data: StepChain
    balanced = StepBalance

    def __init__(
        self,
        responses: OrderedResponses,
        weighting: str,
        plan: Regularization,
        information: Floats,
        *,
        tol: float,
        max_passes: int,
        tell: Callable[[str], None],
        rough: bool = False,
    ) -> None:
        super().__init__(
            responses.thresholds,
            weighting,
            plan,
            information,
            tol=tol,
            max_passes=max_passes,
            tell=tell,
            rough=rough,
        )
        self.ordered = responses
        self.weighting = step_weighting(weighting, responses.steps)
        self.current = self.weighting.first

    def _prepare(self, weighting: Weighting) -> None:
        old = self.data if weighting.moving and weighting is self.current else None
        self.data = StepChain.of(self.ordered, weighting, self.beta, old)
        self.chain = self.data
        self.current = weighting


# ----------------------------------------------------------------------------------- standard errors


FEW_PROBES = 20  # where the correction is a few per cent, a sixth of it as noise is nothing


def step_errors(balance: StepBalance, method: str, seed: int = 0, probes: int = PROBES) -> tuple[Floats, Floats]:
    """Standard errors of the thresholds and of the items' locations, whose mean is zero; without the whole matrix.

    "one-pass" takes J for its diagonal: then g_l / J_cc is what person l adds to a threshold, and an item's location
    adds its neighbors' products, since one answer has at most two entries. "multiplier" corrects that by solves.
    """
    steps, scale = balance.steps, balance.scale
    weight = steps.averaging()
    shift = -scale * weight
    omega, cross, common, beside = balance.data.parts.sum(_item_spread, balance.pi, shift, steps)
    meat = balance.prior_meat(omega)
    omega, cross, common = omega + meat, cross + meat * shift, common + meat @ shift**2
    variance = omega * scale**2 + 2 * scale * cross + common
    within = omega * scale**2 + 2 * _pair(beside * scale, scale)
    location = steps.mean(within) / steps.counts + 2 * steps.mean(scale * cross) + common
    if method == "multiplier":
        rng = np.random.default_rng(seed)
        b = balance.signed(seed, probes)
        b += np.sqrt(meat)[:, None] * rng.standard_normal(b.shape)
        zero = balance.scale[:, None] * b
        zero -= weight @ zero
        b -= b.mean(axis=0)
        delta = bicgstab(balance.apply, balance.roughly, b, tol=CLOSE, max_passes=MOST_PASSES)
        delta -= weight @ delta
        variance = np.maximum(variance + np.mean(delta**2 - zero**2, axis=1), 0.05 * variance)
        of_item = sparse.csr_array(
            (1 / steps.counts[steps.item], (steps.item, np.arange(steps.n_steps))), shape=(steps.n_items, steps.n_steps)
        )
        more = np.mean((of_item @ delta) ** 2 - (of_item @ zero) ** 2, axis=1)
        location = np.maximum(location + more, 0.05 * location)
    return np.sqrt(np.maximum(variance, 0)), np.sqrt(np.maximum(location, 0))


def _pair(values: Floats, scale: Floats) -> Floats:
    """values_c scale_{c - 1}; `values` are 0 for the first threshold of an item."""
    out = np.zeros_like(values)
    out[1:] = values[1:] * scale[:-1]
    return out


def _item_spread(part: StepPart, pi: Floats, shift: Floats, steps: Steps) -> tuple[Floats, Floats, Floats, Floats]:
    """`_spread`, and sums over persons of g_l,c-1 g_lc for thresholds of one item."""
    halves = half_contributions(part, pi, steps)
    common = halves[0] @ shift + halves[1] @ shift
    squares, cross = np.zeros(len(pi)), np.zeros(len(pi))
    for half in halves:
        squares += np.bincount(half.indices, weights=half.data**2, minlength=len(pi))
        cross += half.T @ common
    failed = halves[0]
    inside, person, step = _inside(part, steps)
    beside = np.zeros(len(pi))
    if len(inside):  # who failed c next has passed c - 1 last
        lost = part.weight * (part.wrong @ np.ones(len(pi)))
        others = lost[person] - part.weight[person] * part.wrong.data[inside]
        one = -part.factor(person, step - 1) * pi[step - 1] * others
        beside += np.bincount(step, weights=failed.data[inside] * one, minlength=len(pi))
    return squares, cross, np.array(common @ common), beside
