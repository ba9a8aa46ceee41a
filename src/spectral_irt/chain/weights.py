"""How much each person counts in the chain: a table of weightings.

Any weight h_ij^l that is symmetric in the items i, j, and depends on person l only through the items answered and the
number right, gives an unbiased chain (docs/explanation/estimator.md). All here are products h_ij^l = w_l a_li a_lj, so
that one pass stays one pass:

- "pairs":   h = 1, the paper's. A person with n answers makes up to n^2 / 4 comparisons, so long records drown others.
- "persons": h = 1 / n_l. Fully efficient when items are equally hard.
- "ability": h = (t_l / V_l) a_li a_lj with a_li = 1 / (t_l + pi_i), t_l = exp(theta_l), V_l = sum_i p_li (1 - p_li).
  Nearly as accurate as conditional maximum likelihood.

A new weighting is one more entry of `WEIGHTINGS`; nothing else in the package asks for a weighting by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from spectral_irt.errors import check_option
from spectral_irt.model import prox
from spectral_irt.responses.block import Block, Floats, csr, fill_scaled
from spectral_irt.responses.pack import CACHED, user_chunks

Halves = tuple[sparse.csr_array, sparse.csr_array]


# ------------------------------------------------------------------------------------------ the table


@dataclass(frozen=True)
class Weighting:
    """Each person counts w_l, whatever the items: a_li = 1.

    The flow of such a chain has a unit of its own. What the answers push an item with does not fade as the item gets
    harder, so the prior's pull must grow, or an item that nobody got right would run away: it is 2 sinh(beta / 2).

    Attributes
    ----------
    weight : callable
        w_l of every person of a block; persons who are all right or all wrong are left out afterwards.
    moving : bool
        Whether weights are taken at difficulties: the chain is then solved in rounds, which start from `first`.
    in_information : bool
        Whether the flow through an item is the information on it, so that Omega and J agree under the model.
    """

    name: str
    weight: Callable[[Block], Floats]
    moving: ClassVar[bool] = False
    in_information: ClassVar[bool] = False

    @property
    def first(self) -> Weighting:
        """The weighting of the first round."""
        return self

    def halves(self, block: Block, n_items: int) -> Halves:
        """Where the factors a of right and of wrong answers are kept; here the shared patterns of ones."""
        return block.halves(n_items)

    def fill(self, block: Block, beta: Floats, halves: Halves) -> Floats:
        """w_l of every person; the factors a, at these difficulties, go into the halves."""
        return self.weights(block)

    def weights(self, block: Block) -> Floats:
        """w_l of every person, 0 for those who are all right or all wrong."""
        return np.where(block.informative, self.weight(block), 0.0)

    def rough(self) -> Weighting:
        """As this, where the result is only a place to start from."""
        return self

    def tie(self, pi: Floats) -> Floats:
        """h of the tie to a virtual item at 1: its flow h (pi - 1) is the prior's pull, an odd function of beta."""
        return 1 / np.sqrt(pi)

    def slope(self, beta: Floats) -> Floats:
        """Derivative of the prior's pull."""
        return np.cosh(beta / 2)

    def unit(self, flow: Floats, information: Floats) -> float:
        """Flow per information."""
        known = float(information.sum())
        return float(np.sum(flow)) / known if known > 0 else 1.0

    def information(self, flow: Floats, rough: Floats) -> Floats:
        """What the answers tell about each item, from the flow through it and from the counts (`rough`)."""
        return rough


@dataclass(frozen=True)
class AbilityWeighting(Weighting):
    """Each pair of answers counts by its information at the person's ability: flows are in units of information.

    The prior's pull is linear, alpha (beta_i - mean beta), as that of a normal distribution. With factors in `single`
    precision, half the bytes, the weights are others in their seventh digit, and balance as these do.
    """

    single: bool = False
    moving: ClassVar[bool] = True
    in_information: ClassVar[bool] = True

    @property
    def first(self) -> Weighting:
        return PERSONS

    def halves(self, block: Block, n_items: int) -> Halves:
        kind = np.float32 if self.single else np.float64
        right, wrong = (
            csr(half.indptr, half.indices, np.empty(half.nnz, dtype=kind), n_items) for half in block.halves(n_items)
        )
        return right, wrong

    def rough(self) -> Weighting:
        return replace(self, single=True)

    def fill(self, block: Block, beta: Floats, halves: Halves) -> Floats:
        return ability_factors(block, beta, halves[0].data, halves[1].data)

    def tie(self, pi: Floats) -> Floats:
        return log_mean_weight(pi)

    def slope(self, beta: Floats) -> Floats:
        return np.ones(len(beta))

    def unit(self, flow: Floats, information: Floats) -> float:
        return 1.0

    def information(self, flow: Floats, rough: Floats) -> Floats:
        return flow


def _once(block: Block) -> Floats:
    return np.ones(block.n_users)


def _by_length(block: Block) -> Floats:
    return 1 / np.maximum(block.counts, 1)


ABILITY = AbilityWeighting("ability", _once)
PERSONS = Weighting("persons", _by_length)
PAIRS = Weighting("pairs", _once)
WEIGHTINGS: Mapping[str, Weighting] = {one.name: one for one in (ABILITY, PERSONS, PAIRS)}
COUNTED = {name: one for name, one in WEIGHTINGS.items() if not one.moving}  # those with a matrix of pair counts
ALIASES = {"users": "persons"}


def weighting_named(name: str, among: Mapping[str, Weighting] = WEIGHTINGS) -> Weighting:
    """The weighting of this name; an error that lists the table if there is none."""
    known = ALIASES.get(name, name) if isinstance(name, str) else name
    if known not in list(among):
        check_option("weighting", name, among)
    return among[known]


def count_weights(block: Block, weighting: str) -> Floats:
    """w_l under "pairs" (1) and "persons" (1 / n_l); 0 for persons who are all right or all wrong."""
    return weighting_named(weighting, COUNTED).weights(block)


# ------------------------------------------------------------------------------------ ability weights


def log_mean_weight(pi: Floats) -> Floats:
    """h with h (pi - 1) = log(pi): a tie to an item at 1 that pulls linearly in difficulty, as a normal prior does."""
    beta = np.log(pi)
    small = np.abs(beta) < 1e-6
    safe = np.where(small, 1.0, beta)
    return np.where(small, 1 - beta / 2, safe / np.expm1(safe))


def prox_ability(block: Block, beta: Floats) -> Floats:
    """Closed-form abilities: theta_l = mean(beta) + sqrt(1 + var(beta) / 2.89) logit(s_l / n_l), over the items of l.

    A function of the items answered and the score alone, which is all that the weights ask for. 0 for persons who are
    all right or all wrong (their ability is not needed).
    """
    right, wrong = block.halves(len(beta))
    counts = np.maximum(block.counts, 1)
    mean, square = ((right @ values + wrong @ values) / counts for values in (beta, beta**2))
    variance = np.maximum(square - mean**2, 0)
    ok = block.informative
    odds = np.divide(block.scores, block.counts - block.scores, out=np.ones(block.n_users), where=ok)
    theta = prox(mean, variance, np.log(odds))
    return np.where(ok, theta, 0.0)


def ability_factors(block: Block, beta: Floats, right: Floats, wrong: Floats) -> Floats:
    """w_l of every person; p_li of every right and of every wrong answer go into the two arrays (ordered as `halves`).

    a_li = p_li / t_l, so h_ij = w_l p_li p_lj with w_l = 1 / (t_l V_l).
    """
    pi, t = np.exp(beta), np.exp(prox_ability(block, beta))
    information = np.zeros(block.n_users)
    for half, p in zip(block.halves(len(beta)), (right, wrong), strict=True):
        information += _fill_probabilities(half, 1 / t, pi, p)
    return np.divide(1, t * information, out=np.zeros(block.n_users), where=block.informative)


def _fill_probabilities(half: sparse.csr_array, inverse_t: Floats, pi: Floats, p: Floats) -> Floats:
    """Write p = 1 / (1 + pi / t) for every answer; return sum of p (1 - p) over each person's.

    Memory costs more than arithmetic here: a few thousand answers at a time go through all steps while in the cache.
    """
    sums = np.zeros(half.shape[0])
    inverse_t, pi = inverse_t.astype(p.dtype, copy=False), pi.astype(p.dtype, copy=False)
    for start, stop in user_chunks(half.indptr, CACHED):
        indptr = half.indptr[start : stop + 1]
        low, high = indptr[0], indptr[-1]
        rows = np.flatnonzero(np.diff(indptr))
        if not len(rows):
            continue
        piece = p[low:high]
        fill_scaled(indptr - low, half.indices[low:high], inverse_t[start:stop], pi, piece)
        piece += 1
        np.reciprocal(piece, out=piece)
        sums[start + rows] = np.add.reduceat(piece * (1 - piece), indptr[rows] - low)
    return sums
