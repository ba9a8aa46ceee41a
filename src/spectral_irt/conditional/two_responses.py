"""The conditional likelihood of persons who gave two responses each, in closed form: votes about two contestants.

Given the score s on the items i and j, only how it is shared between them is open. From one way to the next, i passes a
threshold more and j one less,

    log P(X_i = c + 1 | s) - log P(X_i = c | s) = beta_j,s-c - beta_i,c+1 = -d_c' beta,

so that with G_c = P(X_i > c | s) the gradient is the sum over persons and c of (G_c - 1{X_i > c}) d_c, and the
information that of Cov(1{X_i > c}, 1{X_i > c'}) d_c d_c' over c and c', where the covariance is G_max(c,c') (1 -
G_min(c,c')). `Pairs` fits with it; `ExactLikelihood` is the general case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.information import Matrix, Point
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, answered_items
from spectral_irt.data.design import Mask
from spectral_irt.data.responses import Responses
from spectral_irt.numerics import csr

FILLED = 0.1  # share of its rows from which a column of a design is kept dense, apart from those that few rows move


class TwoResponses(ExactLikelihood):
    """The conditional likelihood of persons with two responses each, exact."""

    def __init__(self, responses: Responses) -> None:
        self.responses = responses
        self.layout = responses.thresholds
        self.weights = None
        self.fine = True
        self.rows = responses.engine.hold([])
        self.sharing = Sharing.of(responses)
        self._last_design: tuple[Matrix, list[SplitColumns]] | None = None

    def at(self, beta: Floats) -> Point:
        """The likelihood there, all sums exact."""
        if self.point is not None and np.array_equal(self.point.beta, beta):
            return self.point
        sharing = self.sharing
        log_p = sharing.log_probabilities(beta)
        beyond = np.cumsum(np.exp(log_p[:, :0:-1]), axis=1)[:, ::-1]
        gradient = np.zeros(len(beta))
        for c, difference in enumerate(sharing.differences):
            gradient += difference.T @ (sharing.persons * (beyond[:, c] - (sharing.category > c)))
        own_blocks = sharing.item_blocks(beyond)
        self.point = PointOfTwo(
            beta,
            self.layout,
            self.rows,
            gradient,
            own_blocks,
            own_blocks,
            loglik=float(sharing.persons @ log_p[np.arange(len(log_p)), sharing.category]),
            people=partial(self.people, beta),
            likelihood=self,
            beyond=beyond,
        )
        return self.point

    def exact_is_affordable(self) -> bool:
        """Every step has it."""
        return True

    def information(self, beta: Floats, design: Matrix | None = None) -> Floats:
        """The information, thresholds x thresholds; A'HA with a design."""
        point = self.at(beta)
        return point.dense() if design is None else point.of_parameters(design).toarray()

    def differences_of(self, design: Matrix) -> list[SplitColumns]:
        """d_c' A of every row, for each c; kept for the next step."""
        if self._last_design is None or self._last_design[0] is not design:
            products = [sparse.csr_array(difference @ design) for difference in self.sharing.differences]
            self._last_design = (design, [SplitColumns.of(product) for product in products])
        return self._last_design[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class PointOfTwo(Point):
    """A point of this likelihood, with exact information; `beyond` is G_c, rows of the sharing x c."""

    likelihood: TwoResponses
    beyond: Floats

    def of_parameters(self, design: Matrix) -> Matrix:
        """A' H A."""
        differences = self.likelihood.differences_of(design)
        total = sparse.csr_array((design.shape[1], design.shape[1]))
        for c, d in _ordered_pairs(len(differences)):
            weight = self.likelihood.sharing.persons * covariance(self.beyond, c, d)
            product = differences[c].product(weight, differences[d])
            if c < d:
                product = product + product.T
            total = total + product
        return sparse.csr_array(total)

    def information_on(self, design: Matrix) -> Floats:
        """The diagonal of that."""
        return self.of_parameters(design).diagonal()

    def __matmul__(self, v: Floats) -> Floats:
        """The information times v; one vector, or the columns of a matrix."""
        sharing = self.likelihood.sharing
        differences = sharing.differences
        image = np.zeros_like(v)
        for c, left in enumerate(differences):
            for d, right in enumerate(differences):
                weight = sharing.persons * covariance(self.beyond, c, d)
                image += left.T @ (sparse.diags_array(weight) @ (right @ v))
        return image

    def dense(self, *, single: bool = False) -> Floats:
        """The information, thresholds x thresholds."""
        return self @ np.eye(len(self.beta))


def covariance(beyond: Floats, c: int, d: int) -> Floats:
    """Of 1{X_i > c} and 1{X_i > d}, for a person of every row."""
    return beyond[:, max(c, d)] * (1 - beyond[:, min(c, d)])


def _ordered_pairs(n: int) -> Iterator[tuple[int, int]]:
    for c in range(n):
        for d in range(c, n):
            yield c, d


@dataclass(frozen=True, eq=False)
class Sharing:
    """How a score can be shared between two items, and was: a row for all `persons` of one pair, score and response.

    `possible` are the ways, rows x c; `passed` is the threshold that the first item passes from way c to c + 1, and
    `lost` the one that the second passes no more, -1 where there is no such step; `category` is that of the first item.
    """

    layout: Thresholds
    persons: Floats  # how many
    possible: Mask
    passed: Ints
    lost: Ints
    category: Ints

    @classmethod
    def of(cls, responses: Responses) -> Sharing:
        layout = responses.thresholds
        every = responses.entries.gather(_two_responses, layout)
        sizes = (layout.n_items, layout.n_items, layout.widest + 1, layout.widest + 1)
        keys, persons = np.unique(np.ravel_multi_index(every, sizes), return_counts=True)
        first, second, category, category_of_second = np.unravel_index(keys, sizes)
        way = np.arange(layout.widest + 1)
        category_of_rest = (category + category_of_second)[:, None] - way
        possible = (
            (way <= layout.max_score[first, None])
            & (category_of_rest >= 0)
            & (category_of_rest <= layout.max_score[second, None])
        )
        is_step = possible[:, :-1] & possible[:, 1:]
        return cls(
            layout=layout,
            persons=persons.astype(np.float64),
            possible=possible,
            passed=np.where(is_step, layout.first[first, None] + way[:-1], -1),
            lost=np.where(is_step, layout.first[second, None] + category_of_rest[:, :-1] - 1, -1),
            category=category,
        )

    @cached_property
    def differences(self) -> list[Matrix]:
        """d_c of every row, rows x thresholds, for each c."""
        differences = []
        for passed, lost in zip(self.passed.T, self.lost.T, strict=True):
            is_step = passed >= 0
            indptr = np.concatenate([[0], np.cumsum(2 * is_step)]).astype(np.int32)
            columns = np.stack([passed, lost], axis=1)[is_step].astype(np.int32)
            signs = np.tile([1.0, -1.0], len(columns))
            differences.append(csr(indptr, columns.ravel(), signs, self.layout.n_entries))
        return differences

    def log_probabilities(self, beta: Floats) -> Floats:
        """Of the ways."""
        steps = [-(difference @ beta) for difference in self.differences]
        size = np.concatenate([np.zeros((len(self.category), 1)), np.cumsum(steps, axis=0).T], axis=1)
        size = np.where(self.possible, size, -np.inf)
        size -= size.max(axis=1, keepdims=True)
        log_p: Floats = size - np.log(np.exp(size).sum(axis=1, keepdims=True))
        return log_p

    def item_blocks(self, beyond: Floats) -> Floats:
        """The blocks of the items of the information, items x levels x levels."""
        layout = self.layout
        width = layout.widest
        blocks = np.zeros(layout.n_items * width * width)
        for c, d in _ordered_pairs(width):
            of_persons = self.persons * covariance(beyond, c, d)
            for thresholds in (self.passed, self.lost):
                inside = (thresholds[:, c] >= 0) & (thresholds[:, d] >= 0)
                row = thresholds[inside, c]
                column = thresholds[inside, d]
                item = layout.item[row]
                places = {(c, d): (row, column), (d, c): (column, row)}
                for left, right in places.values():
                    place = (item * width + layout.level[left] - 1) * width + layout.level[right] - 1
                    blocks += np.bincount(place, weights=of_persons[inside], minlength=len(blocks))
        return blocks.reshape(layout.n_items, width, width)


def _two_responses(block: Block, layout: Thresholds) -> tuple[Ints, Ints, Ints, Ints]:
    """Both items of every person, and their categories."""
    _, items, category = answered_items(block, layout)
    item_of = items.reshape(-1, 2).astype(np.int64)
    category_of = category.reshape(-1, 2).astype(np.int64)
    return item_of[:, 0], item_of[:, 1], category_of[:, 0], category_of[:, 1]


class SplitColumns(NamedTuple):
    """A matrix in two: `few` has the columns that few rows move, `many` the others, dense, and `place` (columns of
    `many` x columns) where these belong. Sparse products with a covariate would take twenty times as long."""

    few: Matrix
    many: Floats
    place: Matrix

    @classmethod
    def of(cls, matrix: Matrix) -> SplitColumns:
        n_rows, n_columns = matrix.shape
        is_filled = np.bincount(matrix.indices, minlength=n_columns) > FILLED * n_rows
        filled = np.flatnonzero(is_filled)
        few = sparse.csr_array(matrix @ sparse.diags_array((~is_filled).astype(np.float64)))
        few.eliminate_zeros()
        place = sparse.eye_array(n_columns, format="csr")[filled]
        return cls(few, (matrix @ place.T).toarray(), place)

    def product(self, weight: Floats, other: SplitColumns) -> Matrix:
        """Of the transpose of this matrix, rows that are weighted, and the other."""
        weighted = sparse.csr_array(sparse.diags_array(weight) @ other.few)
        weighted_many = weight[:, None] * other.many
        product = self.few.T @ weighted
        product = product + sparse.csr_array(self.few.T @ weighted_many) @ other.place
        product = product + self.place.T @ sparse.csr_array((weighted.T @ self.many).T)
        return product + self.place.T @ sparse.csr_array(self.many.T @ weighted_many) @ other.place
