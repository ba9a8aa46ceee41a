"""From the chain's estimate onto the conditional likelihood, by a few Newton steps.

Under the model the chain and conditional maximum likelihood (CML) agree to a fraction of a standard error. On data that
do not follow the model they need not, and on complete data it is CML that orders items as their shares of right answers
do. So the chain's estimate, which exists without a start and at a few passes, is where Newton's method begins:

    sum_l ( P(X_li = 1 | s_l) - X_li ) - (P beta)_i = 0,     P the prior's matrix, or 0.

The matrix is the matched information of `information` plus P. Standard errors are the sandwich where the steps end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectral_irt.chain.prior import Prior
from spectral_irt.conditional.rows import answers_to_items, evaluate, linked, prepare_rows
from spectral_irt.conditional.shared_rows import SharedRows
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.same_items import SharedSets
from spectral_irt.engine import Prepared
from spectral_irt.numerics import conjugate_gradients

LANDED = ", landed"  # what the solver's name ends with
CLOSE = 0.04  # steps end when the next would move no item by more than this many standard errors
ALLOWED = 0.01  # standard errors by which series in the place of exact sums may move an item
FEW, FINER = 100_000, 1e-4  # up to so many answers accuracy costs nothing to speak of, and both are this instead
KEPT = 8  # bytes of an answer that are kept; where these are few, twice that
MOST = 30  # evaluations
RENEWALS, STEADY_PRIOR = 8, 0.05  # of the prior's precision in one evaluation, until it changes by no more than 5%
SETTLING = 10  # evaluations after which it stays as it is
STEADY = 0.08  # a step leaves at most this share of itself to the next, where it is short and the matrix is good
LONGEST = 2.0  # logits at once for one item: an item with few answers may point much too far
SOLVED, MOST_ITERATIONS = 1e-3, 1000  # of each linear system
CERTAIN = 1e12  # information on an item whose difficulty is given


@dataclass(frozen=True, eq=False)
class Landed:
    """Where the steps ended.

    Attributes
    ----------
    beta : float array
        Difficulties; without fixed items they have mean zero within each part.
    rows : Prepared
        Every person's score and information at the last evaluation.
    degree, square : float arrays
        The information is diag(degree) - C' C, with `square` the diagonal of C' C.
    prior : Prior or None
    fixed : bool array or None
        Items whose difficulty is given.
    floating : int array
        Which items hang together without a fixed one among them: each such part has a mean of its own. -1 for others.
    evaluations : int
    move : float
        How far, in standard errors, another step would have moved the item that moves most.
    """

    beta: Floats
    rows: Prepared
    degree: Floats
    square: Floats
    prior: Prior | None
    fixed: NDArray[np.bool_] | None
    floating: Ints
    evaluations: int
    move: float

    @property
    def information(self) -> Floats:
        """What the answers tell about each item."""
        return self.degree - self.square

    @cached_property
    def diagonal(self) -> Floats:
        total = self.information + (self.prior.diagonal if self.prior else 0.0)
        return total if self.fixed is None else np.where(self.fixed, 0.0, total)

    def __matmul__(self, v: Floats) -> Floats:
        """The Newton matrix times v, which is 0 on fixed items."""
        degree = self.degree if v.ndim == 1 else self.degree[:, None]
        image = degree * v - self.rows.sum(linked, v)
        if self.prior:
            image += self.prior @ v
        if self.fixed is not None:
            image[self.fixed] = 0
        return image

    def solve(self, b: Floats, tol: float = SOLVED) -> Floats:
        """The matrix's solution for b, or for its columns; what b says about the level of a floating part is ignored.

        Exactly it says nothing, but probabilities by a series do not quite add up to the score.
        """
        b = centered_within(b, self.floating)
        step, _ = conjugate_gradients(
            self.__matmul__, self.diagonal, b, tol=tol, most=MOST_ITERATIONS, centered=self.fixed is None
        )
        return centered_within(step, self.floating)


def centered_within(v: Floats, floating: Ints) -> Floats:
    """v less its mean over each floating part; one vector, or the columns of a matrix."""
    if not floating.any():  # one part
        return v - v.mean(axis=0)
    if floating.max() < 0:
        return v
    columns = v if v.ndim == 2 else v[:, None]
    sizes = np.bincount(floating + 1)
    sums: Floats = np.stack([np.bincount(floating + 1, weights=column) for column in columns.T], axis=1, dtype=float)
    means = sums / np.maximum(sizes, 1)[:, None]
    means[0] = 0  # of those that do not float
    return (columns - means[floating + 1]).reshape(v.shape)


def land(
    responses: Responses,
    beta: Floats,
    *,
    prior: Prior | None = None,
    fixed: NDArray[np.bool_] | None = None,
    parts: Ints | None = None,
    weights: Floats | None = None,
    shared: SharedSets | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Landed:
    """Newton steps on the penalized conditional likelihood from the difficulties `beta`.

    Parameters
    ----------
    fixed : bool array, optional
        Items that keep their difficulty; they give the scale.
    parts : int array, optional
        Which items hang together; by default all do.
    weights : float array, optional
        How much each person counts; by default all count 1.
    shared : SharedSets, optional
        What people on shared sets of items told, `responses.shared`, to be used in the place of their answers.
    """
    m = responses.n_items
    floating = np.zeros(m, dtype=np.int64) if parts is None else parts
    if fixed is not None:
        floating = np.where(np.isin(floating, floating[fixed]), -1, floating)
    rows, few = _rows(responses, shared, beta, weights)
    renews = prior is not None and prior.estimated
    counts, right = rows.sum(answers_to_items) if renews else (np.ones(m), np.zeros(m))  # nobody else asks for shares
    close = FINER if few and not renews else CLOSE  # nobody compares digits there
    beta = beta if fixed is not None else centered_within(beta, floating)
    step, last_move, decrement = np.zeros(m), np.inf, np.inf
    for k in range(1, MOST + 1):
        rows, (score, degree, square) = rows.map_and_sum(evaluate, beta)
        here = Landed(beta, rows, degree, square, prior, fixed, floating, k, 0.0)
        here, full, gain = _aimed(here, score, (right + score) / np.maximum(counts, 1))
        prior = here.prior
        if gain > 2 * decrement and np.abs(step).max() > 1e-3:  # too far: half the way back
            step = step / 2
            beta = beta - step
            continue
        step, decrement = np.clip(full, -LONGEST, LONGEST), gain
        move = float(np.max(np.abs(step) * np.sqrt(here.diagonal), initial=0.0))
        share = min(max(move / last_move, STEADY), 1.0) if last_move < np.inf else STEADY
        beta, last_move = beta + step, move
        tell(f"landing on the conditional likelihood: step {k}, {move:.2f} standard errors at most")
        if move * share < close:
            break
    return Landed(beta, rows, degree, square, prior, fixed, floating, k, move * share)


def _rows(
    responses: Responses, shared: SharedSets | None, beta: Floats, weights: Floats | None
) -> tuple[Prepared, bool]:
    """All people ready to be evaluated, and whether so few are taken one by one that accuracy costs nothing."""
    single = responses if shared is None else shared.rest
    few = single is None or single.n_responses <= FEW
    sets = None if shared is None else responses.engine.hold([SharedRows.of_sets(shared)])
    if single is None:
        assert sets is not None
        return sets, few
    responses.engine.make_room(KEPT * single.n_responses)
    rows = prepare_rows(single, beta, FINER if few else ALLOWED, weights)
    return (rows if sets is None else sets.with_more(rows)), few


def _aimed(here: Landed, score: Floats, share: Floats) -> tuple[Landed, Floats, float]:
    """The Newton step from here, with the prior's precision taken where the step leads; and what it gains."""
    for _ in range(RENEWALS if here.evaluations < SETTLING else 1):
        pulled = score - here.prior @ here.beta if here.prior else score.copy()
        if here.fixed is not None:
            pulled[here.fixed] = 0
        step = here.solve(pulled)
        if here.prior is None or not here.prior.estimated or here.evaluations >= SETTLING:
            break
        known = here.information if here.fixed is None else np.where(here.fixed, CERTAIN, here.information)
        renewed = here.prior.renewed(here.beta + np.clip(step, -LONGEST, LONGEST), known, share)
        change = abs(np.log(renewed.alpha / here.prior.alpha))
        if change < STEADY_PRIOR:
            break
        here = replace(here, prior=renewed)
    return here, step, float(pulled @ step)
