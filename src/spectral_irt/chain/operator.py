"""The Markov chain on thresholds, matrix-free: what flows into each and what flows out, one pass over the responses.

With c_li = sqrt(w_l) a_li the rates are Y_ij = sum_l c_li X_li c_lj (1 - X_lj), that is Y = R^T W with c on the right
answers in R and on the wrong ones in W. A pass is two sparse products; Y, which has m x m cells, is never formed.

Answers in categories: for items i != j the odds of (X_i = k, X_j = k' - 1) against (X_i = k - 1, X_j = k') are
pi_jk' / pi_ik whatever the ability, so the rates are the same, with the threshold passed last for a right answer and
the next one for a wrong answer. The only move within an item is from a threshold to the next, and is taken out:

    same_c = sum of w_l a_lc a_l,c-1 over the people who passed c - 1 and failed c, thresholds of the same item.

How much each person counts: any weight h_ij^l that is symmetric in the thresholds i, j, and depends on person l only
through the items answered and the total score, gives an unbiased chain (docs/explanation/estimator.md). All in the
table of weightings are products h_ij^l = w_l a_li a_lj, so that one pass stays one pass:

- "pairs":   h = 1, the paper's. A person with n answers makes up to n^2 / 4 comparisons, so long records dominate.
- "persons": h = 1 / n_l. Fully efficient when items are equally hard.
- "ability": h = (t_l / V_l) a_li a_lj with a_li = 1 / (t_l + pi_i), t_l = exp(theta_l), V_l = sum_i p_li (1 - p_li).
  Nearly as accurate as conditional maximum likelihood. Of answers in categories theta_l and V_l are the
  closed forms of `prox_ability`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from spectral_irt.data import Responses
from spectral_irt.data.block import BINARY, CACHED, EMPTY, Block, Floats, Rows, Thresholds, person_chunks, rows_of
from spectral_irt.data.design import Mask, SharedSets
from spectral_irt.engine import Prepared
from spectral_irt.errors import check_option
from spectral_irt.model import LOGISTIC_VARIANCE
from spectral_irt.numerics import csr, fill_scaled, gram, onto_items, row_sums, shared_ones

PROBES, FEWER, MANY = 16, 4, 1_000_000  # random signs for the mean squares; fewer for more answers than this
MOST = 0.7  # share of the people from which on leaving out the others is not worth a copy
Halves = tuple[sparse.csr_array, sparse.csr_array]


@dataclass(frozen=True)
class Weighting:
    """How much each person counts, and each of the answers.

    w_l = 1, or 1 / n_l (`by_length`), whatever the items: a_li = 1. The flow of such a chain has a unit of its own.
    What the answers push an item with does not fade as the item gets harder, so the prior's pull must grow: it is
    2 sinh(beta / 2).

    `moving`: each pair of answers counts by its information at the person's ability, taken at difficulties, so that the
    chain is solved in rounds. The flow through an item is the information on it, and the prior's pull is linear, alpha
    (beta_i - mean beta), as that of a normal distribution. With factors in `single` precision, half the bytes, the
    weights are others in their seventh digit, and balance as these do.
    """

    name: str
    by_length: bool = False
    moving: bool = False
    single: bool = False

    def halves(self, block: Block, n_items: int) -> Halves:
        """Where the factors a of right and of wrong answers are kept; the shared patterns of ones where they are 1."""
        right, wrong = block.halves(n_items)
        if not self.moving:
            return right, wrong
        kind = np.float32 if self.single else np.float64
        own = csr(right.indptr, right.indices, np.empty(right.nnz, dtype=kind), n_items)
        return own, csr(wrong.indptr, wrong.indices, np.empty(wrong.nnz, dtype=kind), n_items)

    def fill(self, block: Block, beta: Floats, halves: Halves, thresholds: Thresholds) -> tuple[Floats, Floats | None]:
        """w_l of every person, and 1 / t_l where items have several thresholds; p of every entry goes into the halves.

        a_li = p_li / t_l, so h_ij = w_l p_li p_lj with w_l = 1 / (t_l V_l).
        """
        rows = rows_of(block, thresholds)
        if not self.moving:
            return self.weights(rows), None
        theta, told = prox_ability(block, beta, thresholds)
        pi, t, information = np.exp(beta), np.exp(theta), np.zeros(block.n_persons)
        for half, p in zip(block.halves(len(beta)), halves, strict=True):
            information += _fill_probabilities(half, 1 / t, pi, p.data)
        information = np.where(rows.max_scores > rows.counts, told, information)
        weight = np.divide(1, t * information, out=np.zeros(block.n_persons), where=rows.informative)
        return weight, None if thresholds.binary else 1 / t

    def weights(self, rows: Rows) -> Floats:
        """w_l of every person, 0 for those with the lowest or the highest score."""
        return np.where(rows.informative, 1 / np.maximum(rows.counts, 1) if self.by_length else 1.0, 0.0)

    def tie(self, pi: Floats) -> Floats:
        """h of the tie to a virtual item at 1: its flow h (pi - 1) is the prior's pull, an odd function of beta."""
        if not self.moving:
            return 1 / np.sqrt(pi)
        beta = np.log(pi)
        small = np.abs(beta) < 1e-6
        safe = np.where(small, 1.0, beta)
        return np.where(small, 1 - beta / 2, safe / np.expm1(safe))  # h (pi - 1) = log(pi)

    def slope(self, beta: Floats) -> Floats:
        """Derivative of the prior's pull."""
        return np.ones(len(beta)) if self.moving else np.cosh(beta / 2)


ABILITY, PERSONS, PAIRS = Weighting("ability", moving=True), Weighting("persons", by_length=True), Weighting("pairs")
COUNTED = {"persons": PERSONS, "pairs": PAIRS}  # those with a matrix of pair counts
WEIGHTINGS: Mapping[str, Weighting] = {"ability": ABILITY, **COUNTED}
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


def prox_ability(block: Block, beta: Floats, thresholds: Thresholds = BINARY) -> tuple[Floats, Floats]:
    """Closed-form abilities, theta_l = mean(beta) + k logit(s_l / n_l) with k = sqrt(1 + var(beta) / 2.89), and their
    information s_l (n_l - s_l) / (n_l k); 0 for extreme scores.

    Mean and variance are over the thresholds of the items that l answered, n_l is the highest possible score.
    """
    rows = rows_of(block, thresholds)
    ok, scores, most = rows.informative, rows.scores, np.maximum(rows.max_scores, 1)
    cells, ones = (rows.n_persons, rows.indptr.astype(np.int32), np.asarray(rows.items)), shared_ones(len(rows.items))
    total, squares = (beta, beta**2) if thresholds.binary else (thresholds.sum(beta), thresholds.sum(beta**2))
    mean = row_sums(cells, ones, total) / most
    k = np.sqrt(1 + np.maximum(row_sums(cells, ones, squares) / most - mean**2, 0) / LOGISTIC_VARIANCE)
    odds = np.divide(scores, most - scores, out=np.ones(rows.n_persons), where=ok)
    return np.where(ok, mean + k * np.log(odds), 0.0), np.where(ok, scores * (most - scores) / (most * k), 0.0)


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


NOTHING = 1e-12  # of a rate: what rounding leaves where a threshold meets only its own item


# Anything with rates d_i = sum_j Y_ij (`rates`) and an `inflow` (Y^T v)_i = sum_j v_j Y_ji, of one vector or of
# the columns of a matrix, is a chain to the solver.
Chain: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Part:
    """One block made ready: people's weights, the factors a on right and wrong answers, and 1 / t_l and pi (`at`) that
    these were taken at; without `inverse_t` they are 1."""

    block: Block
    weight: Floats
    right: sparse.csr_array
    wrong: sparse.csr_array
    inverse_t: Floats | None
    at: Floats

    @classmethod
    def under(cls, of: Block | Part, weighting: Weighting, beta: Floats, thresholds: Thresholds) -> Part:
        """A block under this weighting, at these difficulties if it moves with them; or that of another part, in its
        memory, which is used up."""
        block = of.block if isinstance(of, Part) else of
        halves = (of.right, of.wrong) if isinstance(of, Part) else weighting.halves(of, len(beta))
        weight, inverse_t = weighting.fill(block, beta, halves, thresholds)
        return cls(block, weight, *halves, inverse_t, np.exp(beta))

    def beside(self, half: sparse.csr_array, side: int, thresholds: Thresholds) -> Floats:
        """a of the threshold before each entry (`side` -1) or after it (1), same person; 0 if it is of another item."""
        same = thresholds.below if side < 0 else np.append(thresholds.below[1:], False)
        values = same[half.indices].astype(np.float64)
        if self.inverse_t is not None:
            odds = np.empty(half.nnz)
            fill_scaled(half.indptr, half.indices, self.inverse_t, np.roll(self.at, -side), odds)
            values /= odds + 1
        return values


def flow_in(part: Part, flow: Floats) -> Floats:
    won = part.right @ flow
    return onto_items(part.wrong, won * (part.weight if won.ndim == 1 else part.weight[:, None]))


def total_rates(part: Part) -> Floats:
    return onto_items(part.right, part.weight * (part.wrong @ np.ones(part.wrong.shape[1])))


def pair_rates(part: Part) -> Floats:
    return gram(part.right, sparse.csr_array(sparse.diags_array(part.weight) @ part.wrong))


def same_item(part: Part, thresholds: Thresholds) -> Floats:
    """Rates from each threshold's lower neighbor of the same item: who failed c next has passed c - 1 last."""
    wrong = part.wrong
    if part.inverse_t is None:
        return thresholds.below * onto_items(wrong, part.weight)
    values = part.beside(wrong, -1, thresholds) * wrong.data
    return onto_items(csr(wrong.indptr, wrong.indices, values, thresholds.n_entries), part.weight)


class ItemChain:
    """The chain on items, or on their thresholds, under one weighting; make it with `under`."""

    def __init__(self, parts: Prepared, thresholds: Thresholds) -> None:
        self.parts, self.thresholds = parts, thresholds
        self.rates: Floats = parts.sum(total_rates)
        if not thresholds.binary:
            self.same: Floats = parts.sum(same_item, thresholds)
            rates = self.rates - np.append(self.same[1:], 0.0)
            self.rates = np.where(rates > NOTHING * self.rates, rates, 0.0)

    @classmethod
    def under(
        cls, responses: Responses, weighting: Weighting, beta: Floats | None = None, old: ItemChain | None = None
    ) -> ItemChain:
        """The chain under a weighting, at the difficulties `beta` if it moves with them; `old` gives its memory."""
        thresholds, of = responses.thresholds, responses.entries if old is None else old.parts
        beta = np.zeros(thresholds.n_entries) if beta is None else beta
        return cls(of.prepare(Part.under, weighting, beta, thresholds), thresholds)

    @classmethod
    def by_persons(cls, responses: Responses, shared: SharedSets) -> ItemChain:
        """The chain under the weighting "persons", 1 / n_l, where most people share their sets of items."""
        m, thresholds = shared.n_items, responses.thresholds
        rates, ones, every = np.zeros((m, m)), np.ones(m), np.arange(m + 1, dtype=np.int32)
        for one in shared.sets:
            rates[np.ix_(one.items, one.items)] += one.won / len(one.items)
        row, item = np.nonzero(rates)  # by hand: of a small matrix, scipy's checks cost more than its products
        wrong = csr(np.searchsorted(row, every).astype(np.int32), item.astype(np.int32), rates[row, item], m)
        of_sets = Part(EMPTY, ones, csr(every, every[:-1], ones, m), wrong, None, ones)  # with Y in the place of W
        sets = responses.engine.hold([of_sets])
        if shared.rest is not None:
            sets = sets.with_more(shared.rest.prepare(Part.under, PERSONS, np.zeros(m), thresholds))
        return cls(sets, thresholds)

    def inflow(self, flow: Floats) -> Floats:
        total: Floats = self.parts.sum(flow_in, flow)
        if not self.thresholds.binary:  # `same` is 0 where the threshold before is another item's
            total[1:] -= (self.same if flow.ndim == 1 else self.same[:, None])[1:] * flow[:-1]
        return total

    def matrix(self) -> Floats:
        """Y itself, m x m."""
        y: Floats = self.parts.sum(pair_rates)
        if not self.thresholds.binary:
            upper = np.flatnonzero(self.thresholds.below)
            y[upper - 1, upper] = 0.0
        return y


class TiedChain:
    """A chain with one more state, the last: the virtual item of average difficulty.

    Item i and it exchange at the rate `tie[i]` each way, so whatever the data, every state reaches every other.
    """

    def __init__(self, chain: Chain, tie: Floats) -> None:
        self.chain = chain
        self.tie = tie
        self.rates: Floats = np.append(chain.rates + tie, tie.sum())

    def inflow(self, flow: Floats) -> Floats:
        items, virtual = flow[:-1], flow[-1:]
        tie = self.tie if items.ndim == 1 else self.tie[:, None]
        # Sums, not dot products: on short vectors the threads of a matrix library cost more than the work.
        return np.concatenate([self.chain.inflow(items) + tie * virtual, np.sum(tie * items, axis=0, keepdims=True)])


class Neighbors:
    """W and L = I - W of the items of these responses, as operators: one pass over the answers each.

    W_ij = sum_{l answered i and j} (1 / n_i) (1 / n_j) / z_l, z_l = sum_{k answered by l} 1 / n_k, is symmetric, with
    rows that add to 1. Items that nobody who answered two answered are alone.
    """

    def __init__(self, responses: Responses) -> None:
        rows = responses.entries.prepare(_answered, responses.thresholds)
        m = responses.n_items
        self.n_items = m
        met = rows.sum(_times)
        self.share: Floats = np.divide(1.0, met, out=np.zeros(m), where=met > 0)
        self.alone = met == 0
        self.rows = rows.prepare(_shared, self.share)
        self.probes = PROBES if responses.n_responses <= MANY else FEWER
        self._squares: dict[bytes, Floats] = {}
        self._around: dict[bytes, Neighbors] = {}

    def deviation(self, v: Floats) -> Floats:
        """L v = v - W v, for one vector or for the columns of a matrix; what is alone is its own level."""
        share, alone = (self.share, self.alone) if v.ndim == 1 else (self.share[:, None], self.alone[:, None])
        return np.where(alone, 0.0, v - share * self.rows.sum(_averages, share * v))

    @cached_property
    def own(self) -> Floats:
        """W_ii: how much of its level an item is itself."""
        return np.where(self.alone, 1.0, self.share**2 * self.rows.sum(_inverse_sums))

    def around(self, chosen: Mask) -> Neighbors:
        """With the people of the chosen items only: the same L v on these, and for a v that is zero on the others."""
        key = chosen.tobytes()
        if key not in self._around:
            fewer = copy(self)
            fewer.rows = self.rows.prepare(_meeting, chosen.astype(float))
            self._around[key] = fewer
        return self._around[key]

    def mean_squares(self, scale: Floats) -> Floats:
        """About sum_j (scale_j L_ji)^2 for every item i: the mean of (L scale signs)_i^2 over random signs."""
        key = scale.tobytes()
        if key not in self._squares:
            signs = np.random.default_rng(0).integers(0, 2, (self.n_items, self.probes)) * 2.0 - 1
            self._squares[key] = np.mean(self.deviation(scale[:, None] * signs) ** 2, axis=1)
        return self._squares[key]

    def dense(self) -> Floats:
        """L itself, m x m."""
        w = self.rows.sum(_pairs, self.share)
        return np.diag((~self.alone).astype(float)) - w


Met = tuple[sparse.csr_array, Floats]  # people with two answers or more x items, 0/1, and 1 / z_l


def _answered(block: Block, thresholds: Thresholds) -> sparse.csr_array:
    rows = rows_of(block, thresholds)
    several = rows.counts > 1
    if not several.all():
        rows = rows.take(np.flatnonzero(several))
    ones = shared_ones(len(rows.items))
    return csr(rows.indptr.astype(np.int32), np.asarray(rows.items), ones, thresholds.n_items)


def _times(matrix: sparse.csr_array) -> Floats:
    return np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.float64)


def _shared(matrix: sparse.csr_array, share: Floats) -> Met:
    return matrix, 1 / (matrix @ share)


def _meeting(met: Met, chosen: Floats) -> Met:
    """Without the people who met none of the chosen items, where these are many."""
    meets = met[0] @ chosen > 0
    return met if meets.mean() > MOST else (met[0][np.flatnonzero(meets)], met[1][meets])


def _averages(met: Met, v: Floats) -> Floats:
    matrix, inverse = met
    return matrix.T @ ((matrix @ v) * (inverse if v.ndim == 1 else inverse[:, None]))


def _inverse_sums(met: Met) -> Floats:
    return met[0].T @ met[1]


def _pairs(met: Met, share: Floats) -> Floats:
    scale = sparse.diags_array(1 / np.sqrt(met[0] @ share))
    return gram(sparse.csr_array(scale @ met[0] @ sparse.diags_array(share)))
