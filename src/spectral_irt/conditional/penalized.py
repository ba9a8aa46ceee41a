"""The penalized conditional likelihood at some parameters: its gradient, and Newton's matrix H + P as an operator.

    A' ( sum_l ( P(X_li >= k | s_l) - 1{X_li >= k} ) - (P beta)_ik ) = 0,   beta = A eta,

is what an estimate solves, P the prior's matrix, or 0. H is the matched information of `information`, known by its
products; conjugate gradients take the blocks of the items for a conditioner. A is the identity for the Rasch and the
partial credit model; some eta may be fixed: anchors. With a design (rating scale; items and raters) the matrix is
A' H A, formed, but sparse.
`newton` steps from one such point to the next, and `errors` has the standard errors at the last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import as_columns
from spectral_irt.conditional.information import Point, by_blocks, from_levels
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.numerics import conjugate_gradients, safe_divide

if TYPE_CHECKING:
    from spectral_irt.chain.prior import Prior
    from spectral_irt.conditional.linear import Ridge

LONGEST_STEP = 2.0  # logits that a threshold may move at once: one with few responses may point much too far
SOLVED = 1e-3  # relative residual of each linear system
MAX_ITERATIONS = 1000  # of conjugate gradients
DENSE_PARAMETERS = 2000  # of a design: up to here its systems are solved directly


@dataclass(frozen=True, eq=False)
class PenalizedPoint:
    """The penalized likelihood and Newton's matrix, at one point of the steps; at last, where they ended.

    `eta` are the parameters, beta = A eta, with the `design` A, or the thresholds themselves; `fixed` ones are given.
    `point` is the likelihood at the last evaluation: where the steps ended, one step before `beta`. `floating` says
    which thresholds are linked without a fixed one among them, each part with a mean of its own, or -1. With a design,
    `open_directions` are those, orthonormal, that move all thresholds of a part alike (`unidentified`), and `ridge` is
    a prior on its parameters. `noise` is what squared scores are to the information under the model
    (`Likelihood.noise`), `move` how far, in standard errors, another step would have moved the parameter that moves
    most."""

    beta: Floats
    eta: Floats
    point: Point
    design: sparse.csr_array | None
    prior: Prior | None
    fixed: Mask | None
    floating: Ints
    open_directions: Any = None
    ridge: Ridge | None = None
    noise: Floats | float = 1.0
    evaluations: int = 0
    move: float = 0.0

    @cached_property
    def diagonal(self) -> Floats:
        """Of Newton's matrix, about; 0 for fixed parameters."""
        if self.design is None:
            # A series may put a probability that is next to 0 or 1 just beyond it, and a variance just below zero.
            diagonal = np.maximum(from_levels(self.point.layout, np.einsum("ikk->ik", self._item_blocks)), 0)
        else:
            diagonal = np.maximum(self.matrix.diagonal(), 0) + self._ridge_precision
        if self.fixed is None:
            return diagonal
        return np.where(self.fixed, 0.0, diagonal)

    @property
    def _ridge_precision(self) -> Floats | float:
        if self.ridge is None:
            return 0.0
        return self.ridge.precision

    @cached_property
    def _item_blocks(self) -> Floats:
        """The items' blocks of Newton's matrix, where thresholds are the parameters."""
        if self.prior is None:
            return self.point.own
        return self.point.own + self.prior.within()

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """A' H A."""
        assert self.design is not None
        return self.point.of_parameters(self.design)

    def dense_inverse(self, matrix: Floats | None = None) -> Floats:
        """Of A' H A, or of this information of the parameters, and the prior: 0 for fixed ones, and along
        `open_directions`."""
        if matrix is None:
            matrix = self.matrix.toarray()
        if self.ridge:
            matrix = matrix + self.ridge @ np.eye(len(matrix))
        free = np.arange(len(matrix))
        if self.fixed is not None:
            free = np.flatnonzero(~self.fixed)
        of_free = matrix[np.ix_(free, free)]
        u = self.open_directions[free]
        c = np.trace(of_free) / max(len(of_free), 1) or 1.0
        inverse = np.zeros_like(matrix)
        inverse[np.ix_(free, free)] = np.linalg.inv(of_free + c * u @ u.T) - u @ u.T / c
        return inverse

    @property
    def renews_prior(self) -> bool:
        """Whether a step says which precisions its prior should have."""
        return bool(self.ridge) or (self.prior is not None and self.prior.estimated)

    @cached_property
    def _dense_inverse(self) -> Floats:
        return self.dense_inverse()

    @cached_property
    def information(self) -> Floats:
        """With a design, what the answers tell about each parameter where the others are not known; given the others
        where these are too many."""
        if len(self.eta) > DENSE_PARAMETERS:
            return np.maximum(self.matrix.diagonal(), 0)
        variance = np.diag(self._dense_inverse)
        total = safe_divide(1.0, variance)
        return np.maximum(total - self._ridge_precision, 0)

    @cached_property
    def inverse(self) -> Floats:
        """The inverses of the blocks; 0 for fixed thresholds and levels that an item does not have."""
        layout = self.point.layout
        if layout.binary:
            return safe_divide(1.0, self.diagonal)[:, None, None]
        free_thresholds = np.ones(layout.n_entries)
        if self.fixed is not None:
            free_thresholds = (~self.fixed).astype(np.float64)
        free = layout.table(free_thresholds, 0.0)
        both_free = free[:, :, None] * free[:, None, :]
        blocks = self._item_blocks
        size = np.einsum("ikk->ik", blocks)
        empty = (free == 0) | (size <= 0)
        ridge = np.where(empty, 1.0, 1e-10 * size)  # a block that is all but singular stays invertible
        inverse = np.linalg.inv(blocks * both_free + ridge[:, :, None] * np.eye(layout.widest))
        return inverse * both_free * ~(empty[:, :, None] | empty[:, None, :])

    def __matmul__(self, v: Floats) -> Floats:
        """Newton's matrix times v, which is 0 on fixed parameters; one vector, or the columns of a matrix."""
        if self.design is None:
            image = self.point @ v
        else:
            image = self.matrix @ v
        if self.prior:
            image += self.prior @ v
        if self.ridge:
            image += self.ridge @ v
        if self.fixed is not None:
            image[self.fixed] = 0
        return image

    def pull(self) -> Floats:
        """The derivative of the penalized log-likelihood by the parameters, with its sign turned; 0 for fixed ones."""
        if self.design is None:
            pull = self.point.gradient.copy()
        else:
            pull = self.design.T @ self.point.gradient
        if self.prior:
            pull -= self.prior @ self.point.beta
        if self.ridge:
            pull -= self.ridge @ self.eta
        if self.fixed is not None:
            pull[self.fixed] = 0
        return pull

    def roughly(self, b: Floats) -> Floats:
        """The conditioner: each item by itself, or each parameter."""
        if self.design is None:
            return by_blocks(self.point.layout, self.inverse, b)
        scale = safe_divide(1.0, self.diagonal)
        return as_columns(scale, b) * b

    def solve(self, b: Floats, tol: float = SOLVED, start: Floats | None = None) -> Floats:
        """The matrix's solution for b, or for its columns; what b says about the level of a part is ignored. `start`
        is near the solution, if that is known."""
        if self.design is not None and len(b) <= DENSE_PARAMETERS:
            return self._dense_inverse @ b
        centered = self.fixed is None and self.design is None
        step, _ = conjugate_gradients(
            self.__matmul__,
            self.roughly,
            self.within_parts(b),
            tol=tol,
            most=MAX_ITERATIONS,
            centered=centered,
            start=start,
        )
        return self.within_parts(step)

    def largest_move(self, step: Floats) -> float:
        """By how many logits a step moves the threshold that moves most."""
        thresholds = step if self.design is None else self.design @ step
        return float(np.abs(thresholds).max(initial=0.0))

    def limit_step(self, step: Floats) -> Floats:
        """A step of which no parameter moves a threshold by more than `LONGEST_STEP`, and that moves no part as a
        whole. A step that moves no threshold so far stays as it is, whatever the unit of a parameter."""
        if self.largest_move(step) <= LONGEST_STEP:
            return step
        if self.design is None:
            return self.within_parts(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
        reach = np.abs(self.design).max(axis=0).toarray().ravel()  # one row, or a vector, by the version of scipy
        bound = safe_divide(LONGEST_STEP, reach)
        return self.within_parts(np.clip(step, -bound, bound))

    def within_parts(self, v: Floats) -> Floats:
        """v without what moves all thresholds of a floating part alike; one vector, or the columns of a matrix."""
        if self.design is None:
            return centered_within(v, self.floating)
        return v - self.open_directions @ (self.open_directions.T @ v)

    def largest_derivative(self) -> float:
        """Of the penalized log-likelihood by a parameter, along directions that are not open."""
        return float(np.abs(self.within_parts(self.pull())).max())


def centered_within(v: Floats, floating: Ints) -> Floats:
    """v less its mean over each floating part; one vector, or the columns of a matrix."""
    if not floating.any():  # one part
        return v - v.mean(axis=0)
    sums = np.zeros((floating.max() + 2, *v.shape[1:]))
    np.add.at(sums, floating + 1, v)
    means = (sums.T / np.maximum(np.bincount(floating + 1), 1)).T
    means[0] = 0  # of those that do not float
    return v - means[floating + 1]


def parameters(design: sparse.csr_array, beta: Floats) -> Floats:
    """The eta for which A eta is nearest to these thresholds."""
    from scipy.sparse.linalg import lsqr

    eta: Floats = lsqr(design, beta, atol=1e-14, btol=1e-14, iter_lim=10 * max(design.shape))[0]
    return eta
