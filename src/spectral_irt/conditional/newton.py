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
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from spectral_irt.conditional.exact import padded
from spectral_irt.conditional.information import PatternRows, Point, SharedRows, balanced, by_blocks, from_levels
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.design import Mask, SharedSets
from spectral_irt.data.responses import Responses
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
RENEWALS, STEADY_PRIOR = 8, 0.05  # of the prior's precision in one evaluation, until it changes by no more than 5%
SETTLING = 10  # evaluations after which it stays as it is
STEADY = 0.08  # a step leaves at most this share of itself to the next, where it is short and the matrix is good
LONGEST = 2.0  # logits that a threshold may move at once: one with few answers may point much too far
SOLVED, MAX_ITERATIONS = 1e-3, 1000  # of each linear system
ROUGHLY = 0.05  # where several steps are taken, and each mends what the last one left
CERTAIN = 1e12  # information on a threshold that is given
DENSE_PARAMETERS = 2000  # of a design: up to here its systems are solved directly
SLOW = 5  # evaluations after which steps are accelerated: few items of many categories, where the matrix is rough
SHORTEST = 2.0**-30  # logits: of a step that is halved no more
ROUNDING = 1e-12  # of a log-likelihood, which near the top is all that moves
FEW_PEOPLE = 30  # to an item, on average: tables for every ability and item are larger than the answers
MANY_COMBINATIONS = 20_000  # of items and raters, whose tables would take a gigabyte
QUICK_ANSWERS = 100_000  # up to so many accuracy costs nothing to speak of
ALLOWED, FINER = 0.01, 1e-4  # standard errors by which series may move a threshold; where there are few answers


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
        self.responses, self.layout, self.weights = responses, responses.thresholds, weights
        self.shared = shared
        single = responses if shared is None else shared.rest
        few = single is None or single.n_responses <= QUICK_ANSWERS
        self.fine = few or fine
        allowed = FINER if self.fine else ALLOWED
        if shared is not None:
            self.rows = responses.engine.hold([SharedRows(shared.sets, shared.n_items)])
        if single is not None and self.layout.binary:
            from spectral_irt.conditional.series_binary import prepare_people  # people on shared sets do without

            rows = prepare_people(single, beta, allowed, weights)
            self.rows = rows if shared is None else self.rows.with_more(rows)
        elif single is not None:
            self._prepare_ordered(beta, allowed, few)

    def _prepare_ordered(self, beta: Floats, allowed: float, few: bool) -> None:
        """People with much information share tables of the items; where few meet an item they have their own series."""
        from spectral_irt.conditional import series_tables  # right and wrong answers do without

        responses, n, facets = self.responses, self.layout.n_items, self.responses.facets
        self.passed = passed_counts(responses, self.weights)
        many = responses.n_responses > FEW_PEOPLE * n and (facets is None or n <= MANY_COMBINATIONS)
        if few or many:
            self.rows, self.tables = series_tables.prepare_people(responses, beta, allowed, self.weights)
        else:
            each = responses.n_responses / (n if facets is None else len(facets.items))
            least = float((np.sqrt(each / 0.18) * series_tables.SERIES_ERROR / allowed) ** (1 / 3))
            self.rows = responses.entries.prepare(PatternRows.of_block, self.layout, least, persons=(self.weights,))

    def at(self, beta: Floats) -> Point:
        """The likelihood there; the memory of the last point is used again."""
        if self.point is not None and np.array_equal(self.point.beta, beta):
            return self.point
        self.point, layout = None, self.layout
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
        self.rows, self.point = point.rows, point
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
    few = block.take(np.flatnonzero(~informative))
    return np.bincount(few.items[few.right()], minlength=layout.n_entries).astype(np.float64)


def _weights_of_items(block: Block, weight: Floats | None, layout: Thresholds) -> tuple[Floats, ...]:
    rows, passed = rows_of(block, layout), block.halves(layout.n_entries)[0]
    each: Floats = np.where(rows.informative, 1.0 if weight is None else weight, 0.0)
    met = csr(rows.indptr.astype(np.int32), np.asarray(rows.items), shared_ones(len(rows.items)), layout.n_items)
    return onto_items(met, each), onto_items(met, each**2), onto_items(passed, each)


@dataclass(frozen=True, eq=False)
class Newton:
    """Where the steps ended, and Newton's matrix there.

    `eta` are the parameters, beta = A eta, with the `design` A, or the thresholds themselves; `fixed` ones are given.
    `point` is the likelihood at the last evaluation, a step before `beta`. `floating` says which thresholds are
    linked without a fixed one among them, each part with a mean of its own, or -1. With a design, `levels` are the
    directions, orthonormal, that move all thresholds of a part alike (`unidentified`), and `ridge` is a prior on its
    parameters. `noise` is what squared scores are to the information under the model (`Likelihood.noise`), `move` how
    far, in standard errors, another step would have moved the parameter that moves most."""

    beta: Floats
    eta: Floats
    point: Point
    design: sparse.csr_array | None
    prior: Prior | None
    fixed: Mask | None
    floating: Ints
    levels: Any = None
    ridge: Ridge | None = None
    noise: Floats | float = 1.0
    evaluations: int = 0
    move: float = 0.0

    @cached_property
    def diagonal(self) -> Floats:
        """Of Newton's matrix, about; 0 for fixed parameters."""
        if self.design is None:
            blocks = self.point.own + (self.prior.within() if self.prior else 0.0)
            # A series may put a probability that is next to 0 or 1 just beyond it, and a variance just below zero.
            diagonal = np.maximum(from_levels(self.point.layout, np.einsum("ikk->ik", blocks)), 0)
        else:
            diagonal = np.maximum(self.matrix.diagonal(), 0) + (self.ridge.precision if self.ridge else 0.0)
        return diagonal if self.fixed is None else np.where(self.fixed, 0.0, diagonal)

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """A' H A."""
        assert self.design is not None
        return self.point.of_parameters(self.design)

    def dense_inverse(self, matrix: Floats | None = None) -> Floats:
        """Of A' H A, or of this information of the parameters, and the prior: 0 for fixed ones, and along `levels`."""
        matrix = self.matrix.toarray() if matrix is None else matrix
        if self.ridge:
            matrix = matrix + self.ridge @ np.eye(len(matrix))
        free = np.arange(len(matrix)) if self.fixed is None else np.flatnonzero(~self.fixed)
        own, levels, inverse = matrix[np.ix_(free, free)], self.levels[free], np.zeros_like(matrix)
        c = np.trace(own) / max(len(own), 1) or 1.0
        inverse[np.ix_(free, free)] = np.linalg.inv(own + c * levels @ levels.T) - levels @ levels.T / c
        return inverse

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
        return np.maximum(total - (self.ridge.precision if self.ridge else 0.0), 0)

    @cached_property
    def inverse(self) -> Floats:
        """The inverses of the blocks; 0 for fixed thresholds and levels that an item does not have."""
        layout = self.point.layout
        if layout.binary:
            return np.divide(1.0, self.diagonal, out=np.zeros(len(self.beta)), where=self.diagonal > 0)[:, None, None]
        mine = np.ones(layout.n_entries) if self.fixed is None else (~self.fixed).astype(np.float64)
        free = layout.table(mine, 0.0)
        both = free[:, :, None] * free[:, None, :]
        blocks = self.point.own + (self.prior.within() if self.prior else 0.0)
        size = np.einsum("ikk->ik", blocks)
        nothing = (free == 0) | (size <= 0)
        ridge = np.where(nothing, 1.0, 1e-10 * size)
        inverse = np.linalg.inv(blocks * both + ridge[:, :, None] * np.eye(layout.widest))
        return inverse * both * ~(nothing[:, :, None] | nothing[:, None, :])

    def __matmul__(self, v: Floats) -> Floats:
        """Newton's matrix times v, which is 0 on fixed parameters; one vector, or the columns of a matrix."""
        image = self.point @ v if self.design is None else self.matrix @ v
        if self.prior:
            image += self.prior @ v
        if self.ridge:
            image += self.ridge @ v
        if self.fixed is not None:
            image[self.fixed] = 0
        return image

    def pull(self) -> Floats:
        """The derivative of the penalized log-likelihood by the parameters, with its sign turned; 0 for fixed ones."""
        pull = self.point.gradient.copy() if self.design is None else self.design.T @ self.point.gradient
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
        return (scale if b.ndim == 1 else scale[:, None]) * b

    def solve(self, b: Floats, tol: float = SOLVED) -> Floats:
        """The matrix's solution for b, or for its columns; what b says about the level of a part is ignored."""
        if self.design is not None and len(b) <= DENSE_PARAMETERS:
            return self._dense_inverse @ b
        centered = self.fixed is None and self.design is None
        step, _ = conjugate_gradients(
            self.__matmul__, self.roughly, self.leveled(b), tol=tol, most=MAX_ITERATIONS, centered=centered
        )
        return self.leveled(step)

    def moved(self, step: Floats) -> float:
        """By how many logits a step moves the threshold that moves most."""
        thresholds = step if self.design is None else self.design @ step
        return float(np.abs(thresholds).max(initial=0.0))

    def limited(self, step: Floats) -> Floats:
        """A step of which no parameter moves a threshold by more than `LONGEST`, and that moves no part as a whole. A
        step that moves no threshold so far stays as it is, whatever the unit of a parameter."""
        if self.moved(step) <= LONGEST:
            return step
        if self.design is None:
            return self.leveled(np.clip(step, -LONGEST, LONGEST))
        reach = np.abs(self.design).max(axis=0).toarray().ravel()  # one row, or a vector, by the version of scipy
        bound = np.divide(LONGEST, reach, out=np.zeros(len(step)), where=reach > 0)
        return self.leveled(np.clip(step, -bound, bound))

    def leveled(self, v: Floats) -> Floats:
        """v without what moves all thresholds of a floating part alike; one vector, or the columns of a matrix."""
        if self.design is None:
            return centered_within(v, self.floating)
        return v - self.levels @ (self.levels.T @ v)


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

    found: Floats = lsqr(design, beta, atol=1e-14, btol=1e-14, iter_lim=10 * max(design.shape))[0]
    return found


def newton(
    likelihood: Likelihood,
    start: Floats,
    *,
    design: sparse.csr_array | None = None,
    prior: Prior | None = None,
    fixed: Mask | None = None,
    parts: Ints | None = None,
    levels: Floats | None = None,
    ridge: Ridge | None = None,
    tol: float | None = None,
    max_evaluations: int = MAX_EVALUATIONS,
    tell: Callable[[str], None] = lambda text: None,
) -> Newton:
    """Newton steps on the penalized conditional likelihood from the parameters `start`.

    `design` is A, thresholds x parameters (default: the identity), `prior` one on the thresholds, `fixed` are
    parameters that keep their value and give the scale, `parts` says which thresholds are linked (default: all), and
    `levels` are the design's `unidentified` directions, where they are known. `tol` is the largest derivative by a
    parameter at which to stop, instead of the next step in standard errors."""
    layout = likelihood.layout
    floating = np.zeros(layout.n_entries, dtype=np.int64) if parts is None else parts
    if design is not None:
        design = sparse.csr_array(design)
        from spectral_irt.conditional.linear import unidentified

        levels = unidentified(design, floating, fixed) if levels is None else levels
    elif fixed is not None:
        floating = np.where(np.isin(floating, floating[fixed]), -1, floating)
    renews = (prior is not None and prior.estimated) or ridge is not None
    close = CLOSER if likelihood.fine and not renews else CLOSE  # under a prior nobody compares digits
    if design is not None and likelihood.fine:
        close = CLOSER / 100  # few parameters of many answers: their errors are small
    eta = start if fixed is not None or design is not None else centered_within(start, floating)
    noise = likelihood.noise if prior else 1.0
    step, last_move, accepted = np.zeros(len(eta)), np.inf, None
    speed, settled = Anderson(), SETTLING if renews else SLOW
    for k in range(1, max_evaluations + 1):
        point = likelihood.at(eta if design is None else design @ eta)
        here = Newton(point.beta, eta, point, design, prior, fixed, floating, levels, ridge, noise, k)
        if tol is not None and np.abs(here.leveled(here.pull())).max() <= tol:
            return here
        here, full, gain = _aimed(here, likelihood)
        prior, ridge = here.prior, here.ridge
        if accepted is not None and _too_far(here, gain, accepted, step):  # half the way back
            speed.forget()
            step = step / 2
            eta = eta - step
            if here.moved(step) < SHORTEST:
                break
            continue
        accepted = here, gain
        step = here.limited(full)
        move = float(np.max(np.abs(step) * np.sqrt(here.diagonal), initial=0.0))
        share = min(max(move / last_move, STEADY), 1.0) if last_move < np.inf else STEADY
        if k >= settled:
            step = here.limited(speed.next(eta, eta + full) - eta)
        eta, last_move = eta + step, move
        if k == 1 and fixed is None and design is None and not likelihood.fine and point.tables is not None:
            from spectral_irt.conditional.table_sums import far_items  # where there are many answers

            eta = centered_within(far_items(point, eta, step, prior), floating)
        tell(f"conditional likelihood: Newton step {k}, {move:.2f} SE at most")
        if tol is None and move * share < close:
            break
    assert accepted is not None
    if accepted[0].evaluations < k:  # the budget ended on the way back: what counts is the last good point
        return replace(accepted[0], point=likelihood.at(accepted[0].beta), evaluations=k, move=last_move)
    if tol is not None:
        return replace(here, move=last_move)
    return replace(here, beta=eta if design is None else design @ eta, eta=eta, move=move * share)


def _too_far(here: Newton, gain: float, accepted: tuple[Newton, float], step: Floats) -> bool:
    """Whether the step was too long: the likelihood fell; or, where that is not known, what is to be gained grew."""
    now, before = here.point.loglik, accepted[0].point.loglik
    if np.isfinite(now) and not (here.prior or here.ridge):
        return now < before - ROUNDING * abs(before)
    return gain > 2 * accepted[1] and here.moved(step) > 1e-3


def _aimed(here: Newton, likelihood: Likelihood) -> tuple[Newton, Floats, float]:
    """The Newton step from here, with the prior's precisions taken where the step leads; and what it gains."""
    settling = here.evaluations < SETTLING
    for _ in range(RENEWALS if settling else 1):
        pulled = here.pull()
        step = here.solve(pulled, SOLVED if likelihood.fine or here.point.layout.binary else ROUGHLY)
        there = here.eta + here.limited(step)
        if settling and here.ridge:
            ridge = here.ridge.renewed(there, here.matrix.diagonal(), here.information)
            renewed, change = replace(here, ridge=ridge), here.ridge.distance(ridge)
        elif settling and here.prior and here.prior.estimated:
            own = here.point.own
            if here.fixed is not None and here.design is None:  # what is fixed is certain
                own, layout = own.copy(), here.point.layout
                item, level = layout.item[here.fixed], layout.level[here.fixed] - 1
                own[item, level, level] = CERTAIN
            prior = here.prior.renewed(there, own, likelihood.share(here.point))
            renewed = replace(here, prior=prior)
            change = float(np.abs(np.log(prior.precisions / here.prior.precisions)).max())
        else:
            break
        if change < STEADY_PRIOR:
            break
        here = renewed
    return here, step, float(pulled @ step)
