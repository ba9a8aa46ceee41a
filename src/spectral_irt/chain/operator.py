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
from typing import Protocol

import numpy as np
from scipy import sparse

from spectral_irt.data import Responses
from spectral_irt.data.block import BINARY, CACHED, EMPTY, Block, Floats, Rows, Thresholds, person_chunks, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.data.shared_sets import SharedSets
from spectral_irt.engine import Prepared
from spectral_irt.errors import check_option
from spectral_irt.model import LOGISTIC_VARIANCE
from spectral_irt.numerics import csr, fill_scaled, gram, onto_items, row_sums, safe_divide, shared_ones

SIGN_VECTORS = 16  # random signs from which mean squares are estimated: each is known to a quarter of itself
SIGN_VECTORS_OF_LARGE_DATA = 4  # where a pass costs more and the mean squares are steadier
LARGE_DATA = 1_000_000  # responses
WORTH_A_COPY = 0.7  # persons are left out only if at most this share of them stays
ROUNDING = 1e-12  # of a rate: what rounding leaves where a threshold meets only its own item

Halves = tuple[sparse.csr_array, sparse.csr_array]  # factors of right and of wrong responses, persons x thresholds


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
        dtype = np.float32 if self.single else np.float64

        def with_room(half: sparse.csr_array) -> sparse.csr_array:
            return csr(half.indptr, half.indices, np.empty(half.nnz, dtype=dtype), n_items)

        return with_room(right), with_room(wrong)

    def fill(self, block: Block, beta: Floats, halves: Halves, thresholds: Thresholds) -> tuple[Floats, Floats | None]:
        """w_l of every person, and 1 / t_l where items have several thresholds; p of every entry goes into the halves.

        a_li = p_li / t_l, so h_ij = w_l p_li p_lj with w_l = 1 / (t_l V_l).
        """
        rows = rows_of(block, thresholds)
        if not self.moving:
            return self.weights(rows), None
        theta, closed_form_information = prox_ability(block, beta, thresholds)
        pi = np.exp(beta)
        t = np.exp(theta)
        information = np.zeros(block.n_persons)
        for half, p in zip(block.halves(len(beta)), halves, strict=True):
            information += _fill_probabilities(half, 1 / t, pi, p.data)
        # The sum of p (1 - p) is a person's information only where every item has one threshold.
        has_ordered_items = rows.max_scores > rows.counts
        information = np.where(has_ordered_items, closed_form_information, information)
        weight = np.divide(1, t * information, out=np.zeros(block.n_persons), where=rows.informative)
        if thresholds.binary:
            return weight, None
        return weight, 1 / t

    def weights(self, rows: Rows) -> Floats:
        """w_l of every person, 0 for those with the lowest or the highest score."""
        weight = np.ones(rows.n_persons)
        if self.by_length:
            weight = 1 / np.maximum(rows.counts, 1)
        return np.where(rows.informative, weight, 0.0)

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
        if self.moving:
            return np.ones(len(beta))
        return np.cosh(beta / 2)


ABILITY = Weighting("ability", moving=True)
PERSONS = Weighting("persons", by_length=True)
PAIRS = Weighting("pairs")
COUNTED = {"persons": PERSONS, "pairs": PAIRS}  # those with a matrix of pair counts
WEIGHTINGS: Mapping[str, Weighting] = {"ability": ABILITY, **COUNTED}
ALIASES = {"users": "persons"}


def weighting_named(name: str, among: Mapping[str, Weighting] = WEIGHTINGS) -> Weighting:
    """The weighting of this name; an error that lists the table if there is none."""
    present_name = name
    if isinstance(name, str):
        present_name = ALIASES.get(name, name)
    if present_name not in list(among):
        check_option("weighting", name, among)
    return among[present_name]


def count_weights(block: Block, weighting: str) -> Floats:
    """w_l of right and wrong answers under "pairs" (1) and "persons" (1 / n_l)."""
    return weighting_named(weighting, COUNTED).weights(rows_of(block, BINARY))


def prox_ability(block: Block, beta: Floats, thresholds: Thresholds = BINARY) -> tuple[Floats, Floats]:
    """Closed-form abilities, theta_l = mean(beta) + k logit(s_l / n_l) with k = sqrt(1 + var(beta) / 2.89), and their
    information s_l (n_l - s_l) / (n_l k); 0 for extreme scores.

    Mean and variance are over the thresholds of the items that l answered, n_l is the highest possible score.
    """
    rows = rows_of(block, thresholds)
    scores = rows.scores
    max_scores = np.maximum(rows.max_scores, 1)
    cells = (rows.n_persons, rows.indptr.astype(np.int32), np.asarray(rows.items))
    ones = shared_ones(len(rows.items))
    item_sums = beta
    item_squares = beta**2
    if not thresholds.binary:
        item_sums = thresholds.sum(beta)
        item_squares = thresholds.sum(beta**2)
    mean = row_sums(cells, ones, item_sums) / max_scores
    variance = np.maximum(row_sums(cells, ones, item_squares) / max_scores - mean**2, 0)
    k = np.sqrt(1 + variance / LOGISTIC_VARIANCE)
    odds = np.divide(scores, max_scores - scores, out=np.ones(rows.n_persons), where=rows.informative)
    ability = np.where(rows.informative, mean + k * np.log(odds), 0.0)
    information = np.where(rows.informative, scores * (max_scores - scores) / (max_scores * k), 0.0)
    return ability, information


def _fill_probabilities(half: sparse.csr_array, inverse_t: Floats, pi: Floats, p: Floats) -> Floats:
    """Write p = 1 / (1 + pi / t) for every answer, a few thousand at a time; return each person's sum of p (1 - p)."""
    sums = np.zeros(half.shape[0])
    inverse_t = inverse_t.astype(p.dtype, copy=False)
    pi = pi.astype(p.dtype, copy=False)
    for start, stop in person_chunks(half.indptr, CACHED):
        indptr = half.indptr[start : stop + 1]
        low = indptr[0]
        high = indptr[-1]
        rows = np.flatnonzero(np.diff(indptr))
        if not len(rows):
            continue
        piece = p[low:high]
        fill_scaled(indptr - low, half.indices[low:high], inverse_t[start:stop], pi, piece)
        piece += 1
        np.reciprocal(piece, out=piece)
        sums[start + rows] = np.add.reduceat(piece * (1 - piece), indptr[rows] - low)
    return sums


class Chain(Protocol):
    """What the solver of the stationary distribution needs."""

    rates: Floats
    """d_i = sum_j Y_ij, what leaves each state."""

    def inflow(self, flow: Floats) -> Floats:
        """(Y^T v)_i = sum_j v_j Y_ji, of one vector or of the columns of a matrix."""
        ...


class MatrixChain(Chain, Protocol):
    """A chain whose rates can also be had as a matrix."""

    def matrix(self) -> Floats:
        """Y itself, m x m."""
        ...


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
    def under(cls, source: Block | Part, weighting: Weighting, beta: Floats, thresholds: Thresholds) -> Part:
        """A block under this weighting, at these difficulties if it moves with them; or that of another part, in its
        memory, which is used up."""
        if isinstance(source, Part):
            block = source.block
            halves = (source.right, source.wrong)
        else:
            block = source
            halves = weighting.halves(block, len(beta))
        weight, inverse_t = weighting.fill(block, beta, halves, thresholds)
        return cls(block, weight, *halves, inverse_t, np.exp(beta))

    def beside(self, half: sparse.csr_array, side: int, thresholds: Thresholds) -> Floats:
        """a of the threshold before each entry (`side` -1) or after it (1), same person; 0 if it is of another item."""
        same_item_as_neighbor = thresholds.below
        if side > 0:
            same_item_as_neighbor = np.append(thresholds.below[1:], False)
        values = same_item_as_neighbor[half.indices].astype(np.float64)
        if self.inverse_t is not None:
            odds = np.empty(half.nnz)
            fill_scaled(half.indptr, half.indices, self.inverse_t, np.roll(self.at, -side), odds)
            values /= odds + 1
        return values


def as_columns(v: Floats, like: Floats) -> Floats:
    """v as it multiplies `like`: as it is beside one vector, one row for each entry beside a matrix."""
    if like.ndim == 1:
        return v
    return v[:, None]


def flow_in(part: Part, flow: Floats) -> Floats:
    won = part.right @ flow
    return onto_items(part.wrong, won * as_columns(part.weight, won))


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
        self.parts = parts
        self.thresholds = thresholds
        self.rates: Floats = parts.sum(total_rates)
        if not thresholds.binary:
            self.same: Floats = parts.sum(same_item, thresholds)
            rates = self.rates - np.append(self.same[1:], 0.0)
            self.rates = np.where(rates > ROUNDING * self.rates, rates, 0.0)

    @classmethod
    def under(
        cls, responses: Responses, weighting: Weighting, beta: Floats | None = None, old: ItemChain | None = None
    ) -> ItemChain:
        """The chain under a weighting, at the difficulties `beta` if it moves with them; `old` gives its memory."""
        thresholds = responses.thresholds
        if beta is None:
            beta = np.zeros(thresholds.n_entries)
        source: Responses | Prepared = responses.entries
        if old is not None:
            source = old.parts
        return cls(source.prepare(Part.under, weighting, beta, thresholds), thresholds)

    @classmethod
    def by_persons(cls, responses: Responses, shared: SharedSets) -> ItemChain:
        """The chain under the weighting "persons", 1 / n_l, where most people share their sets of items."""
        m = shared.n_items
        thresholds = responses.thresholds
        ones = np.ones(m)
        rates = np.zeros((m, m))
        for item_set in shared.sets:
            rates[np.ix_(item_set.items, item_set.items)] += item_set.won / len(item_set.items)
        row, item = np.nonzero(rates)  # by hand: of a small matrix, scipy's checks cost more than its products
        starts = np.arange(m + 1, dtype=np.int32)
        y = csr(np.searchsorted(row, starts).astype(np.int32), item.astype(np.int32), rates[row, item], m)
        identity = csr(starts, starts[:-1], ones, m)
        # One part stands for all sets: its "persons" are the items, so that R is the identity and W is Y itself.
        part_of_sets = Part(EMPTY, ones, right=identity, wrong=y, inverse_t=None, at=ones)
        parts = responses.engine.hold([part_of_sets])
        if shared.rest is not None:
            parts = parts.with_more(shared.rest.prepare(Part.under, PERSONS, np.zeros(m), thresholds))
        return cls(parts, thresholds)

    def inflow(self, flow: Floats) -> Floats:
        total: Floats = self.parts.sum(flow_in, flow)
        if not self.thresholds.binary:  # `same` is 0 where the threshold before is another item's
            total[1:] -= as_columns(self.same, flow)[1:] * flow[:-1]
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
        items = flow[:-1]
        virtual = flow[-1:]
        tie = as_columns(self.tie, items)
        # Sums, not dot products: on short vectors the threads of a matrix library cost more than the work.
        return np.concatenate([self.chain.inflow(items) + tie * virtual, np.sum(tie * items, axis=0, keepdims=True)])


class Neighbors:
    """W and L = I - W of the items of these responses, as operators: one pass over the answers each.

    W_ij = sum_{l answered i and j} (1 / n_i) (1 / n_j) / z_l, z_l = sum_{k answered by l} 1 / n_k, is symmetric, with
    rows that add to 1. Items that nobody who answered two answered are alone.
    """

    def __init__(self, responses: Responses) -> None:
        rows = responses.entries.prepare(_answered_items, responses.thresholds)
        m = responses.n_items
        self.n_items = m
        n_answered = rows.sum(_times_answered)
        self.share: Floats = safe_divide(1.0, n_answered)
        self.alone = n_answered == 0
        self.rows = rows.prepare(_with_inverse_sums, self.share)
        self.n_sign_vectors = SIGN_VECTORS
        if responses.n_responses > LARGE_DATA:
            self.n_sign_vectors = SIGN_VECTORS_OF_LARGE_DATA
        self._squares: dict[bytes, Floats] = {}
        self._around: dict[bytes, Neighbors] = {}

    def deviation(self, v: Floats) -> Floats:
        """L v = v - W v, for one vector or for the columns of a matrix; what is alone is its own level."""
        share = as_columns(self.share, v)
        is_alone = as_columns(self.alone, v)
        return np.where(is_alone, 0.0, v - share * self.rows.sum(_sums_of_averages, share * v))

    @cached_property
    def self_weight(self) -> Floats:
        """W_ii: how much of its level an item is itself."""
        return np.where(self.alone, 1.0, self.share**2 * self.rows.sum(_inverse_sums))

    def around(self, chosen: Mask) -> Neighbors:
        """With the people of the chosen items only: the same L v on these, and for a v that is zero on the others."""
        key = chosen.tobytes()
        if key not in self._around:
            fewer = copy(self)
            fewer.rows = self.rows.prepare(_persons_of, chosen.astype(float))
            self._around[key] = fewer
        return self._around[key]

    def mean_squares(self, scale: Floats) -> Floats:
        """About sum_j (scale_j L_ji)^2 for every item i: the mean of (L scale signs)_i^2 over random signs."""
        key = scale.tobytes()
        if key not in self._squares:
            signs = np.random.default_rng(0).integers(0, 2, (self.n_items, self.n_sign_vectors)) * 2.0 - 1
            self._squares[key] = np.mean(self.deviation(scale[:, None] * signs) ** 2, axis=1)
        return self._squares[key]

    def dense(self) -> Floats:
        """L itself, m x m."""
        w = self.rows.sum(_pairs, self.share)
        return np.diag((~self.alone).astype(float)) - w


@dataclass(frozen=True, eq=False)
class PersonRows:
    """Persons with two responses or more: who answered which item (0/1, persons x items), and 1 / z_l."""

    answered: sparse.csr_array
    inverse_sum: Floats


def _answered_items(block: Block, thresholds: Thresholds) -> sparse.csr_array:
    rows = rows_of(block, thresholds)
    several = rows.counts > 1
    if not several.all():
        rows = rows.take(np.flatnonzero(several))
    ones = shared_ones(len(rows.items))
    return csr(rows.indptr.astype(np.int32), np.asarray(rows.items), ones, thresholds.n_items)


def _times_answered(answered: sparse.csr_array) -> Floats:
    return np.bincount(answered.indices, minlength=answered.shape[1]).astype(np.float64)


def _with_inverse_sums(answered: sparse.csr_array, share: Floats) -> PersonRows:
    return PersonRows(answered, 1 / (answered @ share))


def _persons_of(rows: PersonRows, chosen: Floats) -> PersonRows:
    """Without the persons who answered none of the chosen items, where these are many."""
    answered_some = rows.answered @ chosen > 0
    if answered_some.mean() > WORTH_A_COPY:
        return rows
    return PersonRows(rows.answered[np.flatnonzero(answered_some)], rows.inverse_sum[answered_some])


def _sums_of_averages(rows: PersonRows, v: Floats) -> Floats:
    """Each person's weighted sum of v over 1 / z_l, added up over the persons of each item."""
    person_sums = rows.answered @ v
    return rows.answered.T @ (person_sums * as_columns(rows.inverse_sum, v))


def _inverse_sums(rows: PersonRows) -> Floats:
    return rows.answered.T @ rows.inverse_sum


def _pairs(rows: PersonRows, share: Floats) -> Floats:
    scale = sparse.diags_array(1 / np.sqrt(rows.answered @ share))
    return gram(sparse.csr_array(scale @ rows.answered @ sparse.diags_array(share)))
