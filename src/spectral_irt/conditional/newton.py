"""The conditional likelihood of answers given the scores, and Newton steps on it, for thresholds beta = A eta.

log L = sum_l ( -sum_i sum_{v <= x_li} beta_iv - log gamma_{s_l} ). Its derivative by beta_ik is the expected number of
people at or above k given their scores, less the observed number. `Likelihood` has it to a hundredth of a standard
error or better, by series where people have much information; `ExactLikelihood` to the last digits, by patterns.

From the chain's estimate, which exists without a start and at a few passes, they lead to

    A' ( sum_l ( P(X_li >= k | s_l) - 1{X_li >= k} ) - (P beta)_ik ) = 0,     P the prior's matrix, or 0.

The matrix is H + P with H the matched information of `information`, known by its products; conjugate gradients take the
blocks of the items for a conditioner. A is the identity for the Rasch and the partial credit model; some eta may be
fixed: anchors. With a design (rating scale; items and raters) the matrix is A' H A, formed, but sparse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import as_columns
from spectral_irt.conditional.exact import padded
from spectral_irt.conditional.information import PatternRows, Point, SharedRows, balanced, by_blocks, from_levels
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Mask
from spectral_irt.data.responses import Responses
from spectral_irt.data.shared_sets import SharedSets
from spectral_irt.engine import Prepared
from spectral_irt.numerics import Anderson, conjugate_gradients, csr, onto_items, shared_ones

if TYPE_CHECKING:
    from spectral_irt.chain.prior import Prior
    from spectral_irt.conditional.linear import Ridge

NEWTON = " + newton"  # what the solver's name ends with
LINEAR_DESIGN = "linear design"  # how it begins where thresholds are A eta, and no chain was solved
CLOSE = 0.04  # steps end when the next would move no threshold by more than this many standard errors ...
CLOSER = 1e-4  # ... or where the likelihood is fine: there nobody waits for it
MAX_EVALUATIONS = 30
RENEWALS = 8  # of the prior's precision in one evaluation ...
STEADY_PRIOR = 0.05  # ... until it changes by no more than 5%
RENEWING_EVALUATIONS = 10  # after which the precision stays as it is
USUAL_SHARE = 0.08  # a step leaves at most this share of itself to the next, where it is short and the matrix is good
LONGEST_STEP = 2.0  # logits that a threshold may move at once: one with few responses may point much too far
SHORTEST_STEP = 2.0**-30  # logits: of a step that is halved no more
SOLVED = 1e-3  # relative residual of each linear system ...
ROUGHLY_SOLVED = 0.05  # ... where several steps are taken, and each mends what the last one left
MAX_ITERATIONS = 1000  # of conjugate gradients
CERTAIN = 1e12  # information on a threshold that is given
DENSE_PARAMETERS = 2000  # of a design: up to here its systems are solved directly
SLOW = 5  # evaluations after which steps are accelerated: few items of many categories, where the matrix is rough
ROUNDING = 1e-12  # of a log-likelihood, which near the top is all that moves
GROWN_GAIN = 2.0  # a step went too far where what is left to gain has grown by this factor
FEW_PEOPLE = 30  # to an item, on average: tables for every ability and item are larger than the responses
MANY_COMBINATIONS = 20_000  # of items and raters, whose tables would take a gigabyte
QUICK_ANSWERS = 100_000  # up to so many responses accuracy costs nothing to speak of
SERIES_SHIFT = 0.01  # standard errors by which series may move a threshold ...
FINE_SERIES_SHIFT = 1e-4  # ... where there are few responses


class Likelihood:
    """The conditional likelihood of these responses, for thresholds near `beta`. `weights` say how much each person
    counts; `shared` is `responses.shared`, to be used in the place of the answers of people on shared sets of items;
    `fine`: as accurate as where answers are few, whatever their number."""

    tables: Any = None
    shared: SharedSets | None = None
    people: Callable[[Floats], Prepared] | None = None  # where all is exact: people's own scores
    point: Point | None = None  # the last one
    passed: Floats  # where not all are right or wrong: how many people without an extreme score passed each threshold

    def __init__(
        self,
        responses: Responses,
        beta: Floats,
        *,
        weights: Floats | None = None,
        shared: SharedSets | None = None,
        fine: bool = False,
    ) -> None:
        self.responses = responses
        self.layout = responses.thresholds
        self.weights = weights
        self.shared = shared
        not_shared = responses if shared is None else shared.rest
        few = not_shared is None or not_shared.n_responses <= QUICK_ANSWERS
        self.fine = few or fine
        allowed_shift = FINE_SERIES_SHIFT if self.fine else SERIES_SHIFT
        if shared is not None:
            self.rows = responses.engine.hold([SharedRows(shared.sets, shared.n_items)])
        if not_shared is not None and self.layout.binary:
            from spectral_irt.conditional.series_binary import prepare_people  # people on shared sets do without

            rows = prepare_people(not_shared, beta, allowed_shift, weights)
            self.rows = rows if shared is None else self.rows.with_more(rows)
        elif not_shared is not None:
            self._prepare_ordered(beta, allowed_shift, few)

    def _prepare_ordered(self, beta: Floats, allowed_shift: float, few: bool) -> None:
        """People with much information share tables of the items; where few meet an item they have their own series."""
        from spectral_irt.conditional import series_tables  # right and wrong answers do without

        responses = self.responses
        facets = responses.facets
        n_items = self.layout.n_items
        self.passed = passed_counts(responses, self.weights)
        tables_fit = facets is None or n_items <= MANY_COMBINATIONS
        if few or (tables_fit and responses.n_responses > FEW_PEOPLE * n_items):
            self.rows, self.tables = series_tables.prepare_people(responses, beta, allowed_shift, self.weights)
        else:
            if facets is not None:
                n_items = len(facets.items)
            people_of_item = responses.n_responses / n_items
            least = float((np.sqrt(people_of_item / 0.18) * series_tables.SERIES_ERROR / allowed_shift) ** (1 / 3))
            self.rows = responses.entries.prepare(PatternRows.of_block, self.layout, least, persons=(self.weights,))

    def at(self, beta: Floats) -> Point:
        """The likelihood there; the memory of the last point is used again."""
        if self.point is not None and np.array_equal(self.point.beta, beta):
            return self.point
        self.point = None  # its memory is free before the next is made
        layout = self.layout
        if layout.binary and not self.people:
            rows, (gradient, degree, square) = self.rows.map_and_sum(methodcaller("evaluated", beta))
            point = Point(beta, layout, rows, gradient, (degree - square)[:, None, None], degree[:, None, None])
        elif self.tables is None:
            rows, (log_gamma, expected, *blocks) = self.rows.map_and_sum(PatternRows.evaluated, padded(layout, beta))
            point = Point(beta, layout, rows, expected - self.passed, *balanced(layout, *blocks))
            if self.people:
                loglik = -float(self.passed @ beta) - log_gamma
                point = replace(point, loglik=loglik, people=partial(self.people, beta))
        else:
            from spectral_irt.conditional.series_tables import point_at

            point = point_at(self.tables, self.rows, beta, self.passed)
        self.rows = point.rows
        self.point = point
        return point

    @cached_property
    def _of_items(self) -> tuple[Floats, ...]:
        """Sums over the people without an extreme score who answered each item: of their weights, of the squares of
        these, and of the weights of those who passed it."""
        return self.responses.entries.sum(_weights_of_items, self.layout, persons=(self.weights,))

    def share(self, point: Point) -> Floats:
        """The share of an item's people who are expected to pass it; nothing where items have several thresholds."""
        if not self.layout.binary:
            return np.empty(0)
        people, _, passed = self._of_items
        return (passed + point.gradient) / np.maximum(people, 1)

    @cached_property
    def noise(self) -> Floats | float:
        """What squared scores of each threshold are to its information if the model holds: 1 without weights."""
        if self.weights is None:
            return 1.0
        sums, squares, _ = self._of_items
        return np.divide(squares, sums, out=np.ones(len(sums)), where=sums > 0)[self.layout.item]


def passed_counts(responses: Responses, weights: Floats | None = None) -> Floats:
    """How many people without an extreme score passed each threshold: those at or above its category."""
    layout = responses.thresholds
    last = responses.entries.sum(_passed_last, layout, persons=(weights,))
    if weights is None:
        last = responses.category_counts[layout.item, layout.level] - last
    return layout.at_or_above(last)


def _passed_last(block: Block, weight: Floats | None, layout: Thresholds) -> Floats:
    """Sums of weights for each threshold that is the last one passed; without weights, of the few extreme scores."""
    informative = rows_of(block, layout).informative
    if weight is not None:
        return onto_items(block.halves(layout.n_entries)[0], informative * weight)
    extreme = block.take(np.flatnonzero(~informative))
    return np.bincount(extreme.items[extreme.right()], minlength=layout.n_entries).astype(np.float64)


def _weights_of_items(block: Block, weight: Floats | None, layout: Thresholds) -> tuple[Floats, ...]:
    rows = rows_of(block, layout)
    passed = block.halves(layout.n_entries)[0]
    if weight is None:
        weight = np.ones(rows.n_persons)
    weight = np.where(rows.informative, weight, 0.0)
    answered = csr(rows.indptr.astype(np.int32), np.asarray(rows.items), shared_ones(len(rows.items)), layout.n_items)
    return onto_items(answered, weight), onto_items(answered, weight**2), onto_items(passed, weight)


@dataclass(frozen=True, eq=False)
class Newton:
    """Where the steps ended, and Newton's matrix there.

    `eta` are the parameters, beta = A eta, with the `design` A, or the thresholds themselves; `fixed` ones are given.
    `point` is the likelihood at the last evaluation, a step before `beta`. `floating` says which thresholds are
    linked without a fixed one among them, each part with a mean of its own, or -1. With a design, `open_directions` are
    those, orthonormal, that move all thresholds of a part alike (`unidentified`), and `ridge` is a prior on its
    parameters. `noise` is what squared scores are to the information under the model (`Likelihood.noise`), `move` how
    far, in standard errors, another step would have moved the parameter that moves most."""

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
        total = np.divide(1.0, variance, out=np.zeros(len(variance)), where=variance > 0)
        return np.maximum(total - self._ridge_precision, 0)

    @cached_property
    def inverse(self) -> Floats:
        """The inverses of the blocks; 0 for fixed thresholds and levels that an item does not have."""
        layout = self.point.layout
        if layout.binary:
            return np.divide(1.0, self.diagonal, out=np.zeros(len(self.beta)), where=self.diagonal > 0)[:, None, None]
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
        scale = np.divide(1.0, self.diagonal, out=np.zeros(len(b)), where=self.diagonal > 0)
        return as_columns(scale, b) * b

    def solve(self, b: Floats, tol: float = SOLVED, start: Floats | None = None) -> Floats:
        """The matrix's solution for b, or for its columns; what b says about the level of a part is ignored. `start`
        is near the solution, if that is known."""
        if self.design is not None and len(b) <= DENSE_PARAMETERS:
            return self._dense_inverse @ b
        centered = self.fixed is None and self.design is None
        step, _ = conjugate_gradients(
            self.__matmul__, self.roughly, self.leveled(b), tol=tol, most=MAX_ITERATIONS, centered=centered, start=start
        )
        return self.leveled(step)

    def moved(self, step: Floats) -> float:
        """By how many logits a step moves the threshold that moves most."""
        thresholds = step if self.design is None else self.design @ step
        return float(np.abs(thresholds).max(initial=0.0))

    def limited(self, step: Floats) -> Floats:
        """A step of which no parameter moves a threshold by more than `LONGEST_STEP`, and that moves no part as a
        whole. A step that moves no threshold so far stays as it is, whatever the unit of a parameter."""
        if self.moved(step) <= LONGEST_STEP:
            return step
        if self.design is None:
            return self.leveled(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
        reach = np.abs(self.design).max(axis=0).toarray().ravel()  # one row, or a vector, by the version of scipy
        bound = np.divide(LONGEST_STEP, reach, out=np.zeros(len(step)), where=reach > 0)
        return self.leveled(np.clip(step, -bound, bound))

    def leveled(self, v: Floats) -> Floats:
        """v without what moves all thresholds of a floating part alike; one vector, or the columns of a matrix."""
        if self.design is None:
            return centered_within(v, self.floating)
        return v - self.open_directions @ (self.open_directions.T @ v)

    def largest_derivative(self) -> float:
        """Of the penalized log-likelihood by a parameter, along directions that are not open."""
        return float(np.abs(self.leveled(self.pull())).max())


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


def newton(
    likelihood: Likelihood,
    start: Floats,
    *,
    design: sparse.csr_array | None = None,
    prior: Prior | None = None,
    fixed: Mask | None = None,
    parts: Ints | None = None,
    open_directions: Floats | None = None,
    ridge: Ridge | None = None,
    tol: float | None = None,
    max_evaluations: int = MAX_EVALUATIONS,
    tell: Callable[[str], None] = lambda text: None,
) -> Newton:
    """Newton steps on the penalized conditional likelihood from the parameters `start`.

    `design` is A, thresholds x parameters (default: the identity), `prior` one on the thresholds, `fixed` are
    parameters that keep their value and give the scale, `parts` says which thresholds are linked (default: all), and
    `open_directions` are the design's `unidentified` ones, where they are known. `tol` is the largest derivative by a
    parameter at which to stop, instead of the next step in standard errors."""
    floating = parts
    if floating is None:
        floating = np.zeros(likelihood.layout.n_entries, dtype=np.int64)
    if design is not None:
        design = sparse.csr_array(design)
        if open_directions is None:
            from spectral_irt.conditional.linear import unidentified

            open_directions = unidentified(design, floating, fixed)
    elif fixed is not None:
        floating = np.where(np.isin(floating, floating[fixed]), -1, floating)
    eta = start
    if fixed is None and design is None:
        eta = centered_within(start, floating)
    steps = _Steps(likelihood, design, fixed, floating, open_directions, eta=eta, prior=prior, ridge=ridge)
    while steps.evaluations < max_evaluations:
        current = steps.evaluate()
        if tol is not None and current.largest_derivative() <= tol:
            return current
        aim = _aim(current, likelihood)
        if steps.went_too_far(aim):
            steps.turn_back()
            if current.moved(steps.step) < SHORTEST_STEP:
                break
            continue
        steps.take(aim)
        tell(f"conditional likelihood: Newton step {steps.evaluations}, {steps.move:.2f} SE at most")
        if tol is None and steps.next_move < steps.close:
            break
    return steps.result(to_gradient=tol is not None)


class Aim(NamedTuple):
    """A Newton step, full length: where it starts, with the prior that it is taken under, and what it gains."""

    start: Newton
    step: Floats
    gain: float


class _Steps:
    """The steps so far: where the parameters are, under which prior, and how far the last step led.

    `move` is the length of the last step, and `next_move` the one that the next is expected to have, in standard errors
    of the parameter that moves most. A step after which less is likely than before is halved until it is not.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        design: sparse.csr_array | None,
        fixed: Mask | None,
        floating: Ints,
        open_directions: Floats | None,
        *,
        eta: Floats,
        prior: Prior | None,
        ridge: Ridge | None,
    ) -> None:
        self.likelihood = likelihood
        self.design = design
        self.fixed = fixed
        self.floating = floating
        self.open_directions = open_directions
        self.noise = likelihood.noise if prior else 1.0
        self.eta = eta
        self.prior = prior
        self.ridge = ridge
        self.step = np.zeros(len(eta))
        self.move = np.inf
        self.next_move = np.inf
        self.accepted: Aim | None = None
        self.evaluations = 0
        self.accelerate = Anderson()
        renews = (prior is not None and prior.estimated) or ridge is not None
        self.accelerated_from = RENEWING_EVALUATIONS if renews else SLOW
        self.close = CLOSER if likelihood.fine and not renews else CLOSE  # under a prior nobody compares digits
        if design is not None and likelihood.fine:
            self.close = CLOSER / 100  # few parameters of many responses: their errors are small

    def beta(self) -> Floats:
        """The thresholds of the present parameters."""
        if self.design is None:
            return self.eta
        return self.design @ self.eta

    def evaluate(self) -> Newton:
        """The likelihood and Newton's matrix at the present parameters."""
        self.evaluations += 1
        point = self.likelihood.at(self.beta())
        return Newton(
            point.beta,
            self.eta,
            point,
            self.design,
            self.prior,
            self.fixed,
            self.floating,
            self.open_directions,
            self.ridge,
            self.noise,
            self.evaluations,
        )

    def went_too_far(self, aim: Aim) -> bool:
        """Whether the last step was too long: the likelihood fell; or, where that is not known, more is to be gained
        than before it."""
        self.prior = aim.start.prior
        self.ridge = aim.start.ridge
        if self.accepted is None:
            return False
        loglik = aim.start.point.loglik
        loglik_before = self.accepted.start.point.loglik
        if np.isfinite(loglik) and not (self.prior or self.ridge):
            return loglik < loglik_before - ROUNDING * abs(loglik_before)
        return aim.gain > GROWN_GAIN * self.accepted.gain and aim.start.moved(self.step) > 1e-3

    def turn_back(self) -> None:
        """Half of the last step back."""
        self.accelerate.forget()
        self.step = self.step / 2
        self.eta = self.eta - self.step

    def take(self, aim: Aim) -> None:
        """Go there, not too far at once; or, where steps have been many, to where they seem to lead."""
        current = aim.start
        self.accepted = aim
        self.step = current.limited(aim.step)
        last_move = self.move
        self.move = float(np.max(np.abs(self.step) * np.sqrt(current.diagonal), initial=0.0))
        share = USUAL_SHARE
        if last_move < np.inf:
            share = min(max(self.move / last_move, USUAL_SHARE), 1.0)
        self.next_move = self.move * share
        if self.evaluations >= self.accelerated_from:
            proposal = self.accelerate.next(self.eta, self.eta + aim.step)
            self.step = current.limited(proposal - self.eta)
        self.eta = self.eta + self.step
        first_of_many = self.evaluations == 1 and not self.likelihood.fine and current.point.tables is not None
        if first_of_many and self.fixed is None and self.design is None:
            from spectral_irt.conditional.table_sums import far_items  # where there are many responses

            self.eta = centered_within(far_items(current.point, self.eta, self.step, self.prior), self.floating)

    def result(self, *, to_gradient: bool) -> Newton:
        """Where the steps ended: at the last point, if they went on until its derivative was small, or a step on."""
        assert self.accepted is not None
        last = self.accepted.start
        if last.evaluations < self.evaluations:  # the budget ended on the way back: what counts is the last good point
            point = self.likelihood.at(last.beta)
            return replace(last, point=point, evaluations=self.evaluations, move=self.move)
        if to_gradient:
            return replace(last, move=self.move)
        return replace(last, beta=self.beta(), eta=self.eta, move=self.next_move)


def _aim(current: Newton, likelihood: Likelihood) -> Aim:
    """The Newton step from here, with the prior's precisions taken where the step leads."""
    tol = SOLVED if likelihood.fine or current.point.layout.binary else ROUGHLY_SOLVED
    pull = current.pull()
    if current.evaluations >= RENEWING_EVALUATIONS or not current.renews_prior:
        step = current.solve(pull, tol)
        return Aim(current, step, float(pull @ step))
    # Of many responses a rough step says well enough which precisions it speaks for, and the next goes on from it.
    renewal_tol = tol if likelihood.fine else ROUGHLY_SOLVED
    step = current.solve(pull, renewal_tol)
    for _ in range(RENEWALS - 1):
        renewal = _renewed_prior(current, current.eta + current.limited(step), likelihood)
        if renewal is None or renewal.change < STEADY_PRIOR:
            break
        current = renewal.newton
        pull = current.pull()
        step = current.solve(pull, renewal_tol, start=None if likelihood.fine else step)
    if renewal_tol > tol:
        step = current.solve(pull, tol, start=step)
    return Aim(current, step, float(pull @ step))


class Renewal(NamedTuple):
    """Newton's matrix under a prior with renewed precisions, and by how much these changed, in their logarithms."""

    newton: Newton
    change: float


def _renewed_prior(current: Newton, eta: Floats, likelihood: Likelihood) -> Renewal | None:
    """The prior with the precisions that these parameters speak for; None where there is none, or it is given."""
    if current.ridge:
        ridge = current.ridge.renewed(eta, current.matrix.diagonal(), current.information)
        return Renewal(replace(current, ridge=ridge), current.ridge.distance(ridge))
    if current.prior is None or not current.prior.estimated:
        return None
    item_blocks = current.point.own
    if current.fixed is not None and current.design is None:  # what is fixed is certain
        layout = current.point.layout
        item = layout.item[current.fixed]
        place = layout.level[current.fixed] - 1
        item_blocks = item_blocks.copy()
        item_blocks[item, place, place] = CERTAIN
    prior = current.prior.renewed(eta, item_blocks, likelihood.share(current.point))
    change = float(np.abs(np.log(prior.precisions / current.prior.precisions)).max())
    return Renewal(replace(current, prior=prior), change)
