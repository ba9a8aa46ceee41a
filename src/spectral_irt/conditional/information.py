"""The information of the conditional likelihood: sums over people, or over patterns of items and score.

A person's information matrix is the covariance of the answers given the score, a graph Laplacian on the items. It is
exact, from the probabilities of pairs (`exact_likelihood`); or matched: off-diagonal -c_i c_j, with c such that the
diagonal is the exact P_i (1 - P_i), so that `H y = d y - C' (C y)` costs one light pass over the answers. That is what
Newton steps need. Both are equal where people answer two items right or wrong. In a sandwich the matched one makes
standard errors larger, at most by about

    items answered     3      5     10     20     40
    right or wrong     3%     3%   0.6%  0.05%  0.01%
    5 categories      13%     5%   0.7%   0.2%  0.03%    (two items: up to 56%)

so `exact_likelihood.information_at` takes the exact one for whoever answered few.

People who share their set of items, or their items and their score, are here; those with much information take a series
(`series_binary`, `series_tables`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import methodcaller
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.exact import PatternPart, given_every_score, matched_factors, part_given, pattern_parts
from spectral_irt.data.block import Block, Floats, Ints, Rows, Thresholds, person_chunks, rows_of, spans
from spectral_irt.data.patterns import same_rows
from spectral_irt.data.shared_sets import SharedSet
from spectral_irt.engine import Prepared
from spectral_irt.engine.base import budget
from spectral_irt.numerics import Places, chosen_or_none, csr, gram_of, is_small, onto_items, sums_by_item

Matrix: TypeAlias = sparse.csr_array


@dataclass(frozen=True, eq=False)
class ThresholdRows:
    """A matrix A, people x thresholds: where each person's answers begin, their items, and values, levels x answers, 0
    for levels that an item does not have."""

    indptr: NDArray[np.int32]
    items: NDArray[np.int32]
    values: Floats
    layout: Thresholds

    @cached_property
    def matrix(self) -> Matrix:
        """Kept within the budget of memory, for products that follow each other: of all people it is larger than the
        values."""
        matrix: Matrix = budget().keep(self.once())
        return matrix

    def once(self) -> Matrix:
        """The matrix for a single use: it is larger than the values."""
        layout = self.layout
        items = self.items
        if layout.binary:
            return csr(self.indptr, items, self.values[0], layout.n_items)
        first: Any = layout.first.astype(np.int32)[items]
        if layout.max_score.min() == layout.widest:  # every item has all levels
            of_all = first[:, None] + np.arange(layout.widest, dtype=np.int32)
            transposed = np.ascontiguousarray(self.values.T)
            return csr(self.indptr * np.int32(layout.widest), of_all.ravel(), transposed.ravel(), layout.n_entries)
        counts = layout.max_score[items]
        ends = np.concatenate([[0], np.cumsum(counts)])
        columns: Places = np.empty(ends[-1], dtype=np.int32)
        values = np.empty(ends[-1])
        columns[ends[:-1]] = first
        values[ends[:-1]] = self.values[0]
        for level in range(1, layout.widest):  # of which few items may have many
            where = np.flatnonzero(counts > level)
            place = ends[where] + level
            columns[place] = first[where] + np.int32(level)
            values[place] = self.values[level, where]
        return csr(ends[self.indptr].astype(np.int32), columns, values, layout.n_entries)

    def sums(self, weight: Floats) -> Floats:
        """A' w, thresholds, for a number w of every answer."""
        n_items = self.layout.n_items
        by_item = [sums_by_item(self.items, weight * of_level, n_items) for of_level in self.values]
        return from_levels(self.layout, np.stack(by_item, axis=1))

    def row_sums(self) -> Floats:
        """A 1 of every person; each answered an item."""
        return np.add.reduceat(self.values.sum(axis=0), self.indptr[:-1])

    def squares(self) -> Floats:
        """Items x levels x levels: of A' A, the part of each item."""
        return self._pairs(lambda level: self.values[level])

    def covariances(self, weight: Floats) -> Floats:
        """The same of sum_l w_l P(X >= k) (1 - P(X >= k')), k >= k', where the values are P(X >= k)."""
        return self._pairs(lambda level: weight * (1 - self.values[level]))

    def _pairs(self, of_lower: Callable[[int], Floats]) -> Floats:
        """Items x levels x levels: sums of the values of a level times what belongs to the lower of two levels."""
        n_items = self.layout.n_items
        width = self.layout.widest
        pairs = np.empty((n_items, width, width))
        for a in range(width):
            lower = of_lower(a)
            for b in range(a, width):
                sums = sums_by_item(self.items, lower * self.values[b], n_items)
                pairs[:, a, b] = sums
                pairs[:, b, a] = sums
        return pairs

    def less_passed(self, category: Any, weight: Any) -> ThresholdRows:
        """A less 1 for every threshold that was passed, by people's weights; `category` is that of each answer."""
        values = self.values - (category >= np.arange(1, self.layout.widest + 1)[:, None])
        if weight is not None and np.ndim(weight):
            values *= np.repeat(weight, np.diff(self.indptr))
        return replace(self, values=values)

    def with_more(self, other: ThresholdRows) -> ThresholdRows:
        """These people, and then others."""
        return ThresholdRows(
            np.concatenate([self.indptr, other.indptr[1:] + self.indptr[-1]]),
            np.concatenate([self.items, other.items]),
            np.concatenate([self.values, other.values], axis=1),
            self.layout,
        )


class PeopleRows(ABC):
    """Some people at some thresholds, as a `Point` sums over them: by two matrices, or better where there is a way.
    `tables` are those of `series_tables`, or None; `weight` says how much each person counts, if not all the same."""

    weight: Floats | None

    @abstractmethod
    def scores(self, tables: Any) -> ThresholdRows:
        """P(X >= k | s) - 1{X >= k}, by people's weights."""

    @abstractmethod
    def factors(self, tables: Any) -> ThresholdRows:
        """c, times the root of the weight."""

    def score_gram(self, tables: Any, single: bool, design: Matrix | None) -> Any:
        return gram_of(self.scores(tables).once(), design, single=single)

    def score_sums(self, tables: Any, v: Floats) -> tuple[Floats, Floats]:
        scores = self.scores(tables)
        return scores.squares(), onto_items(scores.matrix, scores.matrix @ v)

    def factor_gram(self, tables: Any, single: bool, design: Matrix | None) -> Any:
        return gram_of(self.factors(tables).once(), design, single=single)

    def factors_twice(self, tables: Any, v: Floats) -> Floats:
        matrix = self.factors(tables).matrix
        return onto_items(matrix, matrix @ v)


class BinarySums(NamedTuple):
    """Sums, by item, of P - X, of c C 1 and of c^2."""

    score: Floats
    degree: Floats
    square: Floats


class OrderedSums(NamedTuple):
    """Sums of log gamma; of P(X >= k | s), by threshold; of D and of c c', by item; and C' C 1."""

    log_gamma: float
    expected: Floats
    covariance: Floats
    outer: Floats
    around: Floats


@dataclass(frozen=True, eq=False)
class SharedRows:
    """People who share their set of items, right and wrong answers: what a `Point` asks of its rows, set by set. `p`
    and `c` hold P(X = 1 | s) and the c of the matched information, items x scores from 1 to k - 1. With R the right
    answers of the N people of a score, sum_l (X_l - P) (X_l - P)' = X' X - R P' - P R' + N P P'."""

    sets: tuple[SharedSet, ...]
    n_items: int
    p: tuple[Floats, ...] = ()
    c: tuple[Floats, ...] = ()

    def evaluate(self, beta: Floats) -> tuple[SharedRows, BinarySums]:
        """The rows at these difficulties, and their sums."""
        p_of_sets = []
        c_of_sets = []
        score = np.zeros(self.n_items)
        degree = np.zeros(self.n_items)
        square = np.zeros(self.n_items)
        for shared_set in self.sets:
            people = shared_set.people[1:-1]
            p = given_every_score(beta[None, shared_set.items]).p[0]
            c = matched_factors(p * (1 - p), np.full(len(people), len(shared_set.items)))
            score[shared_set.items] += p @ people - shared_set.right[1:-1].sum(axis=0)
            degree[shared_set.items] += (c * c.sum(axis=0)) @ people
            square[shared_set.items] += c**2 @ people
            p_of_sets.append(p)
            c_of_sets.append(c)
        return replace(self, p=tuple(p_of_sets), c=tuple(c_of_sets)), BinarySums(score, degree, square)

    def factor_gram(self, tables: Any, single: bool, design: Any) -> Floats:
        assert design is None  # linear designs look at people one by one
        total = np.zeros((self.n_items, self.n_items))
        for shared_set, c in zip(self.sets, self.c, strict=True):
            total[np.ix_(shared_set.items, shared_set.items)] += (c * shared_set.people[1:-1]) @ c.T
        return total

    def factors_twice(self, tables: Any, v: Floats) -> Floats:
        total = np.zeros(v.shape)
        for shared_set, c in zip(self.sets, self.c, strict=True):
            total[shared_set.items] += (c * shared_set.people[1:-1]) @ (c.T @ v[shared_set.items])
        return total

    def score_gram(self, tables: Any, single: bool, design: Any) -> Floats:
        total = np.zeros((self.n_items, self.n_items))
        for shared_set, p in zip(self.sets, self.p, strict=True):
            across = (shared_set.right[1:-1].T - shared_set.people[1:-1] * p / 2) @ p.T
            total[np.ix_(shared_set.items, shared_set.items)] += shared_set.together - across - across.T
        return total

    def score_sums(self, tables: Any, v: Floats) -> tuple[Floats, Floats]:
        gram = self.score_gram(tables, False, None)
        return np.diag(gram)[:, None, None].copy(), gram @ v


def by_item(rows: Rows) -> tuple[Rows, Ints]:
    """The same rows with the items of each in increasing order, and where these answers stood."""
    order = np.empty(len(rows.items), dtype=np.int64)
    for start, stop in person_chunks(rows.indptr):  # to sort everybody's at once would take 24 bytes more for each
        answers = slice(rows.indptr[start], rows.indptr[stop])
        person = np.repeat(np.arange(stop - start), rows.counts[start:stop])
        order[answers] = answers.start + np.argsort((person << 32) + rows.items[answers])
    category = chosen_or_none(rows.category, order)
    return replace(rows, items=rows.items[order], category=category), order


@dataclass(frozen=True, eq=False)
class PatternRows(PeopleRows):
    """Patterns of items and score, and the people who have them, who count by their weights. `people` says how many
    have each; `expected` is P(X >= k | s), `factor` c, times the root of that number; `of_person` is the pattern of
    each person, `category` that of each answer, by person and item. People whose answers count as `series_from` equal
    ones have a series; nobody by default."""

    layout: Thresholds
    patterns: list[PatternPart]
    indptr: NDArray[np.int32]
    items: NDArray[np.int32]
    people: Floats
    expected: Any = None
    factor: Any = None
    of_person: Ints | None = None
    category: NDArray[np.int16] | None = None
    weight: Floats | None = None
    series_from: float = np.inf

    @classmethod
    def of_patterns(cls, patterns: list[PatternPart], layout: Thresholds) -> PatternRows:
        """The patterns alone, by whose numbers of people sums are."""
        items = [np.empty(0, dtype=np.int32)]
        counts = [np.zeros(1, dtype=np.int64)]
        people = [np.empty(0)]
        for part in patterns:
            items.append(part.items[part.inside])
            counts.append(part.counts)
            people.append(part.people)
        indptr = np.cumsum(np.concatenate(counts)).astype(np.int32)
        return cls(layout, patterns, indptr, np.concatenate(items), np.concatenate(people))

    @classmethod
    def of(cls, rows: Rows, weight: Floats | None, layout: Thresholds) -> PatternRows:
        """People without extreme scores."""
        rows, _ = by_item(rows)
        patterns = same_rows(rows, layout)
        people = patterns.count
        if weight is not None:
            people = np.bincount(patterns.of_person, weights=weight)
        parts = list(pattern_parts(patterns.rows, people, layout))
        rank = np.empty(len(people), dtype=np.int64)  # of each pattern, in the order of the parts
        place = 0
        for part in parts:
            rank[part.which] = place + np.arange(len(part.which))
            place += len(part.which)
        of_person = rank[patterns.of_person]
        return replace(cls.of_patterns(parts, layout), of_person=of_person, category=rows.category, weight=weight)

    @classmethod
    def of_block(cls, block: Block, weight: Any, layout: Thresholds, series_from: float = np.inf) -> PatternRows:
        """The people of a block without extreme scores."""
        rows = rows_of(block, layout)
        if layout.binary:
            rows = replace(rows, category=block.right().astype(np.int16))
        who = np.flatnonzero(rows.informative)
        if weight is not None:
            weight = weight[who]
        return replace(cls.of(rows.take(who), weight, layout), series_from=series_from)

    def evaluate(self, cumulated: Floats) -> tuple[PatternRows, OrderedSums]:
        """At other thresholds (`padded`), and their sums."""
        layout = self.layout
        log_gamma = 0.0
        passed = np.empty((layout.widest, len(self.items)))
        c = np.empty((layout.widest, len(self.items)))
        start = 0
        for part in self.patterns:
            stop = start + int(part.counts.sum())
            answers = _given_score(part, cumulated, self.series_from)
            passed[:, start:stop] = answers.passed
            c[:, start:stop] = answers.c
            log_gamma += answers.log_gamma
            start = stop
        people = np.repeat(self.people, np.diff(self.indptr))
        c *= np.sqrt(people)
        expected = ThresholdRows(self.indptr, self.items, passed, layout)
        factor = replace(expected, values=c)
        around = factor.sums(np.repeat(factor.row_sums(), np.diff(self.indptr)))
        sums = OrderedSums(log_gamma, expected.sums(people), expected.covariances(people), factor.squares(), around)
        return replace(self, expected=expected, factor=factor), sums

    def scores(self, tables: Any = None) -> ThresholdRows:
        counts = np.diff(self.indptr)[self.of_person]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        where = spans(self.indptr[:-1].astype(np.int64)[self.of_person], counts)
        expected = ThresholdRows(indptr, self.items[where], self.expected.values[:, where], self.layout)
        return expected.less_passed(self.category, self.weight)

    def factors(self, tables: Any = None) -> ThresholdRows:
        return self.factor


class PatternAnswers(NamedTuple):
    """P(X >= k | s) and c of the answers of every pattern, levels x answers; and the sum of log gamma."""

    passed: Floats
    c: Floats
    log_gamma: float


def _given_score(part: PatternPart, cumulated: Floats, series_from: float) -> PatternAnswers:
    """Exact; or by the series, for people who have few patterns in common and answers that count as so many."""
    passed = None
    log_gamma = np.nan
    if series_from < np.inf and not part.one_set:  # imported here: few people have a series of their own
        from spectral_irt.conditional.table_sums import passed_by_series

        passed = passed_by_series(cumulated.T[1:, part.items.T], part.scores, part.max_scores, series_from)
    if passed is None:
        answers = part_given(part, cumulated)
        passed = answers.passed  # levels x items x patterns
        log_gamma = float(part.people @ answers.log_gamma)
    n = np.arange(1.0, len(passed) + 1)[:, None, None]
    # sum over k' of P(X >= max(k, k')) = (k) P(X >= k) + sum over k' > k of P(X >= k')
    higher = passed.sum(axis=0) - np.cumsum(passed, axis=0)
    w = n * passed + higher - passed * passed.sum(axis=0)
    variance = w.sum(axis=0)
    s = matched_factors(variance, part.counts)
    others = s.sum(axis=0) - s
    c = w * np.divide(1.0, others, out=np.zeros_like(others), where=(others > 0) & (variance > 0))
    inside = part.inside
    return PatternAnswers(passed.swapaxes(1, 2)[:, inside], c.swapaxes(1, 2)[:, inside], log_gamma)


def _cross(rows: PeopleRows, tables: Any, columns: Matrix, sums: Matrix, design: Matrix) -> tuple[Any, ...]:
    """The diagonals of B' C' C B and of B' C' C B S S', and B' C' C A, for columns B, their sums S and a design A."""
    factors = rows.factors(tables).once()
    cb = sparse.csr_array(factors @ columns)
    cbss = sparse.csr_array(cb @ sums) @ sums.T
    cross = sparse.csr_array(cb.T @ sparse.csr_array(factors @ design))
    return cb.multiply(cb).sum(axis=0), cb.multiply(cbss).sum(axis=0), cross


def _squares(rows: PeopleRows, tables: Any, design: Matrix) -> Floats:
    return _column_squares(rows.scores(tables).once() @ design)


def _factor_squares(rows: PeopleRows, tables: Any, design: Matrix) -> Floats:
    return _column_squares(rows.factors(tables).once() @ design)


def _column_squares(matrix: Matrix) -> Floats:
    """The sums of squares of the columns."""
    squares: Floats = np.bincount(matrix.indices, weights=matrix.data**2, minlength=matrix.shape[1]).astype(np.float64)
    return squares


def _signed_sums(rows: PeopleRows, seed: np.random.SeedSequence, tables: Any, columns: int, design: Any) -> Floats:
    """Columns of sums of people's scores with random signs; A' times them with a design."""
    scores = rows.scores(tables).once()
    signs = np.random.default_rng(seed).integers(0, 2, (scores.shape[0], columns)) * 2.0 - 1
    return (scores if design is None else sparse.csr_array(scores @ design)).T @ signs


@dataclass(frozen=True, eq=False)
class Point:
    """The conditional likelihood at some thresholds: its gradient, and its matched information as an operator.

    Given the score, thresholds of one item have the covariance D_i of the category probabilities, those of two items
    -c_i c_j'. Rows add to zero, so c_i (T - s_i) = D_i 1 with s_i the sum of c_i and T that of all s: the s are the
    `matched_factors` of the variances of the answers. `rows` are `PeopleRows`, whose memory is used again by the next
    evaluation; where these are patterns, `people` makes rows that know every person's score. `own` are the items'
    blocks D of the information, items x levels x levels, `inner` is D + sum c c' within items: the information is
    inner - C' C. `loglik` is NaN unless all sums are exact."""

    beta: Floats
    layout: Thresholds
    rows: Prepared
    gradient: Floats
    own: Floats
    inner: Floats
    tables: Any = None
    loglik: float = field(default=np.nan, kw_only=True)
    people: Callable[[], Prepared] | None = field(default=None, kw_only=True)

    @cached_property
    def information(self) -> Floats:
        """What the answers tell about each threshold, the others given."""
        return from_levels(self.layout, np.einsum("ikk->ik", self.own))

    def __matmul__(self, v: Floats) -> Floats:
        """The information times v; one vector, or the columns of a matrix."""
        return by_blocks(self.layout, self.inner, v) - self.rows.sum(methodcaller("factors_twice", self.tables, v))

    def dense(self, *, single: bool = False) -> Floats:
        """The information, thresholds x thresholds; for right and wrong answers each entry good to 1e-6 if `single`."""
        matrix = -self.rows.sum(methodcaller("factor_gram", self.tables, single, None))
        if self.layout.binary:
            np.fill_diagonal(matrix, 0)
            np.fill_diagonal(matrix, -matrix.sum(axis=1))
            return matrix
        return np.asarray(matrix + block_diagonal(self.layout, self.inner))

    def of_parameters(self, design: Matrix) -> Matrix:
        """A' H A, parameters x parameters: as sparse as there are parameters of which no person meets two. Summed once,
        as often as it is asked for."""
        last_design, matrix = self._last_of_parameters
        if last_design is not design:
            if is_small(design):
                within = design.T @ by_blocks(self.layout, self.inner, design.toarray())
            else:
                within = design.T @ (block_diagonal(self.layout, self.inner) @ design)
            gram = self.rows.sum(methodcaller("factor_gram", self.tables, False, design))
            matrix = sparse.csr_array(within - gram)
            self._last_of_parameters[:] = [design, matrix]
        return matrix

    @cached_property
    def _last_of_parameters(self) -> list[Any]:
        """The design that was asked about last, and its matrix."""
        return [None, None]

    def information_on(self, design: Matrix) -> Floats:
        """The diagonal of A' H A: what the answers tell about each parameter, the others given. Summed for itself, in
        less time than the whole."""
        within = block_diagonal(self.layout, self.inner) @ design
        diagonal = np.asarray(design.multiply(within).sum(axis=0)).ravel()
        return diagonal - self.rows.sum(_factor_squares, self.tables, design)

    def of_columns(self, columns: Matrix, sums: Matrix, design: Matrix) -> tuple[Floats, Floats, Matrix]:
        """For further columns B, no two of the same answers: the diagonals of B' H B and of B' H B S S', and B' H A.
        S are `sums` of the columns: those of a rater."""
        square, grouped, cross = self.rows.sum(_cross, self.tables, columns, sums, design)
        inner = sparse.csr_array(columns.T @ block_diagonal(self.layout, self.inner))
        within = (inner @ columns).diagonal()
        return within - square, within - grouped, sparse.csr_array(inner @ design - cross)

    @cached_property
    def rows_with_scores(self) -> Prepared:
        return self.people() if self.people else self.rows

    def score_gram(self, *, single: bool = False, design: Matrix | None = None) -> Floats:
        """The sum over people of their scores' squares g g', thresholds x thresholds; or with a design A' g g' A."""
        gram = self.rows_with_scores.sum(methodcaller("score_gram", self.tables, single, design))
        return gram.toarray() if sparse.issparse(gram) else gram

    def score_squares(self, design: Matrix) -> Floats:
        """The diagonal of that."""
        return self.rows_with_scores.sum(_squares, self.tables, design)

    def score_sums(self, v: Floats) -> tuple[Floats, Floats]:
        """Of that, the part of each item, levels x levels; and all of it times v."""
        return self.rows_with_scores.sum(methodcaller("score_sums", self.tables, v))

    def signed_scores(self, seed: int, columns: int, design: Matrix | None = None) -> Floats:
        """Columns of sums of people's scores with random signs: their covariance is that matrix; A' times them."""
        seeds = np.random.SeedSequence(seed).spawn(len(self.rows_with_scores.parts))
        return self.rows_with_scores.sum(_signed_sums, self.tables, columns, design, each=[seeds])


def by_blocks(layout: Thresholds, blocks: Floats, v: Floats) -> Floats:
    """A matrix with these blocks for the items, times v; one vector, or the columns of a matrix."""
    if layout.binary:
        return (blocks[:, 0, 0] if v.ndim == 1 else blocks[:, 0]) * v
    columns = v if v.ndim == 2 else v[:, None]
    return from_levels(layout, blocks @ to_levels(layout, columns).swapaxes(0, 1)).reshape(v.shape)


def balance_rows(layout: Thresholds, own: Floats, outer: Floats, around: Floats) -> tuple[Floats, Floats]:
    """`own` and `inner` of a `Point`, from sums of D and of c c' within items and from C' C 1. Rows of the whole must
    add to zero: what a series or a few rounds have left is spread over the thresholds of an item such that their
    contrasts, of which the answers may tell little, stay as they are."""
    ones = np.ones(layout.n_entries)
    left = layout.table(around - by_blocks(layout, own + outer, ones), 0.0)
    inside = layout.table(ones, 0.0)
    k = layout.max_score[:, None]
    even = inside[:, :, None] * (inside * (left - left.sum(axis=1, keepdims=True) / (2 * k)) / k)[:, None, :]
    blocks = own + even + even.transpose(0, 2, 1)
    return blocks, blocks + outer


def block_diagonal(layout: Thresholds, blocks: Floats) -> Matrix:
    """A sparse matrix with these blocks for the items, thresholds x thresholds."""
    inside = np.arange(layout.widest) < layout.max_score[:, None]
    item, row, column = np.nonzero(inside[:, :, None] & inside[:, None, :])
    places = (layout.first[item] + row, layout.first[item] + column)
    n = layout.n_entries
    return sparse.csr_array((blocks[item, row, column], places), shape=(n, n))


def blocks_of(layout: Thresholds, matrix: Floats) -> Floats:
    """The blocks of the items of a matrix, thresholds x thresholds; 0 for levels that an item does not have."""
    if layout.binary:
        return np.diag(matrix)[:, None, None]
    level = np.arange(layout.widest)
    inside = level < layout.max_score[:, None]
    place = np.where(inside, layout.first[:, None] + level, 0)
    both = inside[:, :, None] & inside[:, None, :]
    return np.where(both, matrix[place[:, :, None], place[:, None, :]], 0.0)


def to_levels(layout: Thresholds, v: Floats) -> Floats:
    """Thresholds (x columns) -> levels x items (x columns); 0 for levels that an item does not have."""
    if layout.binary:
        return v[None]
    levels = np.zeros((layout.widest, layout.n_items, *v.shape[1:]))
    levels[layout.level - 1, layout.item] = v
    return levels


def from_levels(layout: Thresholds, values: Floats) -> Floats:
    """Items x levels (x columns) -> thresholds (x columns)."""
    return values[:, 0] if layout.binary else values[layout.item, layout.level - 1]
