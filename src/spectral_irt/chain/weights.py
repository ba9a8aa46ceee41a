"""How much each person counts in the chain: a table of weightings.

Any weight h_ij^l that is symmetric in the thresholds i, j, and depends on person l only through the items answered and
the total score, gives an unbiased chain (docs/explanation/estimator.md). All here are products h_ij^l = w_l a_li a_lj,
so that one pass stays one pass:

- "pairs":   h = 1, the paper's. A person with n answers makes up to n^2 / 4 comparisons, so long records dominate.
- "persons": h = 1 / n_l. Fully efficient when items are equally hard.
- "ability": h = (t_l / V_l) a_li a_lj with a_li = 1 / (t_l + pi_i), t_l = exp(theta_l), V_l = sum_i p_li (1 - p_li).
  Nearly as accurate as conditional maximum likelihood. Of answers in categories V_l adds p q P(X in {k - 1, k}) over
  the thresholds of the items answered, what each threshold tells by itself.

A new weighting is one more entry of `WEIGHTINGS`; nothing else in the package asks for a weighting by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.packing import BINARY, CACHED, person_chunks
from spectral_irt.data.thresholds import Rows, Thresholds, rows_of
from spectral_irt.errors import check_option
from spectral_irt.model import prox
from spectral_irt.sparse_kernels import csr, fill_scaled, row_sums, shared_ones

Halves = tuple[sparse.csr_array, sparse.csr_array]

COARSE, FINE = 0.1, 0.01  # logits between abilities at which moments of items are tabulated: weights need not be exact
CELLS = 100_000  # of such a table, where it can be as large as it likes
BEYOND = 2.0  # logits that the table goes beyond the outermost thresholds
NEWTON = 2  # steps from the closed form towards the ability of a total score; a third one changes nothing measurable
LONGEST = 1.5  # logits of such a step
LEAST = 1e-12


@dataclass(frozen=True)
class Weighting:
    """Each person counts w_l, by the items answered (`weight`), whatever the items: a_li = 1.

    The flow of such a chain has a unit of its own. What the answers push an item with does not fade as the item gets
    harder, so the prior's pull must grow: it is 2 sinh(beta / 2). Where weights are `moving`, taken at difficulties,
    the chain is solved in rounds from `first` on; `in_information`: the flow through an item is the information on it.
    """

    name: str
    weight: Callable[[Rows], Floats]
    moving: ClassVar[bool] = False
    in_information: ClassVar[bool] = False

    @property
    def first(self) -> Weighting:
        """The weighting of the first round."""
        return self

    def halves(self, block: Block, n_items: int) -> Halves:
        """Where the factors a of right and of wrong answers are kept; here the shared patterns of ones."""
        return block.halves(n_items)

    def fill(
        self, block: Block, beta: Floats, halves: Halves, thresholds: Thresholds, moments: Moments | None = None
    ) -> tuple[Floats, Floats | None]:
        """w_l of every person, and the 1 / t_l that the factors a were taken at, if any; a goes into the halves."""
        return self.weights(rows_of(block, thresholds)), None

    def weights(self, rows: Rows) -> Floats:
        """w_l of every person, 0 for those with the lowest or the highest score."""
        return np.where(rows.informative, self.weight(rows), 0.0)

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

    def fill(
        self, block: Block, beta: Floats, halves: Halves, thresholds: Thresholds, moments: Moments | None = None
    ) -> tuple[Floats, Floats | None]:
        """w_l of every person, and 1 / t_l where items have several thresholds; p of every entry goes into the halves.

        a_li = p_li / t_l, so h_ij = w_l p_li p_lj with w_l = 1 / (t_l V_l).
        """
        rows, theta = rows_of(block, thresholds), prox_ability(block, beta, thresholds)
        if moments is not None:
            theta, told = moments.abilities(rows, theta)
        pi, t = np.exp(beta), np.exp(theta)
        inverse_t, information = 1 / t, np.zeros(block.n_persons)
        for half, p in zip(block.halves(len(beta)), halves, strict=True):
            information += _fill_probabilities(half, inverse_t, pi, p.data)
        if moments is not None:
            information = np.where(rows.max_scores > rows.counts, told, information)
        weight = np.divide(1, t * information, out=np.zeros(block.n_persons), where=rows.informative)
        return weight, None if thresholds.binary else inverse_t

    def tie(self, pi: Floats) -> Floats:
        """h with h (pi - 1) = log(pi), which pulls linearly in difficulty, as a normal prior does."""
        beta = np.log(pi)
        small = np.abs(beta) < 1e-6
        safe = np.where(small, 1.0, beta)
        return np.where(small, 1 - beta / 2, safe / np.expm1(safe))

    def slope(self, beta: Floats) -> Floats:
        return np.ones(len(beta))

    def unit(self, flow: Floats, information: Floats) -> float:
        return 1.0

    def information(self, flow: Floats, rough: Floats) -> Floats:
        return flow


def _once(rows: Rows) -> Floats:
    return np.ones(rows.n_persons)


def _by_length(rows: Rows) -> Floats:
    return 1 / np.maximum(rows.counts, 1)


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
    """w_l of right and wrong answers under "pairs" (1) and "persons" (1 / n_l)."""
    return weighting_named(weighting, COUNTED).weights(rows_of(block, BINARY))


# ------------------------------------------------------------------------------------ ability weights


def prox_ability(block: Block, beta: Floats, thresholds: Thresholds = BINARY) -> Floats:
    """Closed-form abilities: theta_l = mean(beta) + sqrt(1 + var(beta) / 2.89) logit(s_l / n_l); 0 for extreme scores.

    Mean and variance are over the thresholds of the items that l answered, n_l is the highest possible score.
    """
    rows = rows_of(block, thresholds)
    most = np.maximum(rows.max_scores, 1)
    if thresholds.binary:
        right, wrong = block.halves(len(beta))
        mean, square = ((right @ values + wrong @ values) / most for values in (beta, beta**2))
    else:
        cells, ones = (rows.n_persons, rows.indptr.astype(np.int32), rows.items), shared_ones(len(rows.items))
        mean, square = (row_sums(cells, ones, thresholds.sum(values)) / most for values in (beta, beta**2))
    variance = np.maximum(square - mean**2, 0)
    ok = rows.informative
    odds = np.divide(rows.scores, rows.max_scores - rows.scores, out=np.ones(rows.n_persons), where=ok)
    return np.where(ok, prox(mean, variance, np.log(odds)), 0.0)


def _fill_probabilities(half: sparse.csr_array, inverse_t: Floats, pi: Floats, p: Floats) -> Floats:
    """Write p = 1 / (1 + pi / t) for every answer, a few thousand at a time; return each person's sum of p (1 - p)."""
    sums = np.zeros(half.shape[0])
    inverse_t, pi = inverse_t.astype(p.dtype, copy=False), pi.astype(p.dtype, copy=False)
    for start, stop in person_chunks(half.indptr, CACHED):
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


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of the answer to each item on a grid of abilities, items x abilities, flattened; and what its
    thresholds tell one by one."""

    grid: Floats
    mean: Floats
    variance: Floats
    told: Floats

    @classmethod
    def at(cls, thresholds: Thresholds, beta: Floats) -> Moments | None:
        """Made once for all blocks; nothing where every item is right or wrong."""
        if thresholds.binary:
            return None
        low, high = float(beta.min()) - BEYOND, float(beta.max()) + BEYOND
        apart = np.clip((high - low) * thresholds.n_items / CELLS, FINE, COARSE)
        grid = np.linspace(low, high, int(np.ceil((high - low) / apart)) + 1)
        # Categories x items x abilities: sums over the few categories then run along memory, which halves the time.
        cumulated = thresholds.cumulated(beta).T[:, :, None]
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

    def abilities(self, rows: Rows, theta: Floats) -> tuple[Floats, Floats]:
        """About the abilities at which the expected total scores are the observed ones, and V_l there.

        Two Newton steps from the closed form `theta`, for people with an item of several thresholds only.
        """
        several = (rows.max_scores > rows.counts) & rows.informative
        place = rows.items.astype(np.int64) * len(self.grid)
        for _ in range(NEWTON):
            at = self.nearest(theta)
            where = place + np.repeat(at, rows.counts)
            variance = np.maximum(rows.sums(self.variance.take(where)), LEAST)
            missing = (rows.scores - rows.sums(self.mean.take(where))) / variance
            theta = np.where(several, self.grid[at] + np.clip(missing, -LONGEST, LONGEST), theta)
        where = place + np.repeat(self.nearest(theta), rows.counts)
        return theta, np.maximum(rows.sums(self.told.take(where)), LEAST)
