"""Newton steps on the penalized conditional likelihood, for thresholds beta = A eta.

    eta <- eta + (A' H A + P)^-1 ( A' gradient - P eta )

from the chain's estimate, which exists without a start and at a few passes, to the root of the equation in `penalized`.
Steps end where the next would move no parameter by more than `CLOSE` standard errors (`solve`: the spectral fit and the
designs), or where the derivative is small (`solve_to_gradient`: conditional maximum likelihood to the last digits)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.penalized import SOLVED, PenalizedPoint, centered_within
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.numerics import Anderson

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
SHORTEST_STEP = 2.0**-30  # logits: of a step that is halved no more
ROUGHLY_SOLVED = 0.05  # relative residual where several steps are taken, and each mends what the last one left
CERTAIN = 1e12  # information on a threshold that is given
SLOW = 5  # evaluations after which steps are accelerated: few items of many categories, where the matrix is rough
ROUNDING = 1e-12  # of a log-likelihood, which near the top is all that moves
GROWN_GAIN = 2.0  # a step went too far where what is left to gain has grown by this factor


def tell_nobody(text: str) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True, eq=False)
class Newton:
    """The penalized conditional likelihood as a problem that Newton steps solve.

    `design` is A, thresholds x parameters (default: the identity), `prior` one on the thresholds and `ridge` one on the
    parameters of a design, `fixed` are parameters that keep their value and give the scale, `parts` says which
    thresholds are linked (default: all), and `open_directions` are the `unidentified_directions` of the design,
    where they are known."""

    likelihood: Likelihood
    _: KW_ONLY
    design: sparse.csr_array | None = None
    prior: Prior | None = None
    fixed: Mask | None = None
    parts: Ints | None = None
    open_directions: Floats | None = None
    ridge: Ridge | None = None

    def solve(
        self, start: Floats, *, max_evaluations: int = MAX_EVALUATIONS, tell: Callable[[str], None] = tell_nobody
    ) -> PenalizedPoint:
        """Steps from the parameters `start` until the next would be short in standard errors."""
        steps = _Steps(self, start)
        while steps.evaluations < max_evaluations:
            current = steps.evaluate()
            if not steps.advance(current, tell) or steps.next_move < steps.close:
                break
        return steps.after_the_last()

    def solve_to_gradient(
        self,
        start: Floats,
        largest_derivative: float,
        *,
        max_evaluations: int = MAX_EVALUATIONS,
        tell: Callable[[str], None] = tell_nobody,
    ) -> PenalizedPoint:
        """Steps from the parameters `start` until no parameter has a larger derivative."""
        steps = _Steps(self, start)
        while steps.evaluations < max_evaluations:
            current = steps.evaluate()
            if current.largest_derivative() <= largest_derivative:
                return current
            if not steps.advance(current, tell):
                break
        return steps.at_the_last()

    @cached_property
    def matrix_of_design(self) -> sparse.csr_array | None:
        if self.design is None:
            return None
        return sparse.csr_array(self.design)

    @cached_property
    def part_of_threshold(self) -> Ints:
        """The part of each threshold, each with a mean of its own; -1 for those linked to a fixed one."""
        parts = self.parts
        if parts is None:
            parts = np.zeros(self.likelihood.layout.n_entries, dtype=np.int64)
        if self.design is None and self.fixed is not None:
            parts = np.where(np.isin(parts, parts[self.fixed]), -1, parts)
        return parts

    @cached_property
    def directions(self) -> Floats | None:
        """The open directions of the design, found where they were not given."""
        if self.matrix_of_design is None or self.open_directions is not None:
            return self.open_directions
        from spectral_irt.conditional.linear import unidentified_directions

        return unidentified_directions(self.matrix_of_design, self.part_of_threshold, self.fixed)

    @property
    def renews_prior(self) -> bool:
        """Whether the precisions of its prior are learned on the way."""
        return (self.prior is not None and self.prior.estimated) or self.ridge is not None

    @property
    def close(self) -> float:
        """How short the next step must be, in standard errors, for the steps to end."""
        if self.design is not None and self.likelihood.fine:
            return CLOSER / 100  # few parameters of many responses: their errors are small
        if self.likelihood.fine and not self.renews_prior:
            return CLOSER
        return CLOSE  # under a prior nobody compares digits


class Aim(NamedTuple):
    """A Newton step, full length: where it starts, with the prior that it is taken under, and what it gains."""

    start: PenalizedPoint
    step: Floats
    gain: float


class _Steps:
    """The steps so far: where the parameters are, under which prior, and how far the last step led.

    `move` is the length of the last step, and `next_move` the one that the next is expected to have, in standard errors
    of the parameter that moves most. A step after which less is likely than before is halved until it is not.
    """

    def __init__(self, problem: Newton, start: Floats) -> None:
        self.problem = problem
        self.likelihood = problem.likelihood
        self.prior = problem.prior
        self.ridge = problem.ridge
        self.noise = self.likelihood.noise if self.prior else 1.0
        self.close = problem.close
        self.eta = start
        if problem.fixed is None and problem.design is None:
            self.eta = centered_within(start, problem.part_of_threshold)
        self.step = np.zeros(len(start))
        self.move = np.inf
        self.next_move = np.inf
        self.accepted: Aim | None = None
        self.evaluations = 0
        self.accelerate = Anderson()
        self.accelerated_from = RENEWING_EVALUATIONS if problem.renews_prior else SLOW

    def beta(self) -> Floats:
        """The thresholds of the present parameters."""
        design = self.problem.matrix_of_design
        if design is None:
            return self.eta
        return design @ self.eta

    def evaluate(self) -> PenalizedPoint:
        """The likelihood and Newton's matrix at the present parameters."""
        self.evaluations += 1
        point = self.likelihood.at(self.beta())
        return PenalizedPoint(
            beta=point.beta,
            eta=self.eta,
            point=point,
            design=self.problem.matrix_of_design,
            prior=self.prior,
            fixed=self.problem.fixed,
            floating=self.problem.part_of_threshold,
            open_directions=self.problem.directions,
            ridge=self.ridge,
            noise=self.noise,
            evaluations=self.evaluations,
        )

    def advance(self, current: PenalizedPoint, tell: Callable[[str], None]) -> bool:
        """A step on; or half of the last one back, where it led too far. Whether there was any step to take."""
        aim = _aim(current, self.likelihood)
        if self.went_too_far(aim):
            self.turn_back()
            return current.largest_move(self.step) >= SHORTEST_STEP
        self.take(aim)
        tell(f"conditional likelihood: Newton step {self.evaluations}, {self.move:.2f} SE at most")
        return True

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
        return aim.gain > GROWN_GAIN * self.accepted.gain and aim.start.largest_move(self.step) > 1e-3

    def turn_back(self) -> None:
        """Half of the last step back."""
        self.accelerate.forget()
        self.step = self.step / 2
        self.eta = self.eta - self.step

    def take(self, aim: Aim) -> None:
        """Go there, not too far at once; or, where steps have been many, to where they seem to lead."""
        current = aim.start
        self.accepted = aim
        self.step = current.limit_step(aim.step)
        last_move = self.move
        self.move = float(np.max(np.abs(self.step) * np.sqrt(current.diagonal), initial=0.0))
        share = USUAL_SHARE
        if last_move < np.inf:
            share = min(max(self.move / last_move, USUAL_SHARE), 1.0)
        self.next_move = self.move * share
        if self.evaluations >= self.accelerated_from:
            proposal = self.accelerate.next(self.eta, self.eta + aim.step)
            self.step = current.limit_step(proposal - self.eta)
        self.eta = self.eta + self.step
        first_of_many = self.evaluations == 1 and not self.likelihood.fine and current.point.tables is not None
        if first_of_many and self.problem.fixed is None and self.problem.design is None:
            from spectral_irt.conditional.table_sums import far_items  # where there are many responses

            eta = far_items(current.point, self.eta, self.step, self.prior)
            self.eta = centered_within(eta, self.problem.part_of_threshold)

    def at_the_last(self) -> PenalizedPoint:
        """The last point from which a step was taken. Where the budget ended on the way back from a step too long, the
        likelihood is put there again."""
        assert self.accepted is not None
        last = self.accepted.start
        if last.evaluations < self.evaluations:
            point = self.likelihood.at(last.beta)
            last = replace(last, point=point, evaluations=self.evaluations)
        return replace(last, move=self.move)

    def after_the_last(self) -> PenalizedPoint:
        """The matrix of the last point, and the parameters a step on; the last point where that step was too long."""
        assert self.accepted is not None
        last = self.accepted.start
        if last.evaluations < self.evaluations:
            return self.at_the_last()
        return replace(last, beta=self.beta(), eta=self.eta, move=self.next_move)


def _aim(current: PenalizedPoint, likelihood: Likelihood) -> Aim:
    """The Newton step from here, with the prior's precisions taken where the step leads."""
    tol = SOLVED if likelihood.fine or current.point.layout.binary else ROUGHLY_SOLVED
    pull = current.pull()
    step = current.solve(pull, tol)
    if current.evaluations >= RENEWING_EVALUATIONS or not current.renews_prior:
        return Aim(current, step, float(pull @ step))
    for _ in range(RENEWALS - 1):
        renewal = _renewed_prior(current, current.eta + current.limit_step(step), likelihood)
        if renewal is None or renewal.change < STEADY_PRIOR:
            break
        current = renewal.current
        pull = current.pull()
        step = current.solve(pull, tol, start=None if likelihood.fine else step)
    return Aim(current, step, float(pull @ step))


class Renewal(NamedTuple):
    """Newton's matrix under a prior with renewed precisions, and by how much these changed, in their logarithms."""

    current: PenalizedPoint
    change: float


def _renewed_prior(current: PenalizedPoint, eta: Floats, likelihood: Likelihood) -> Renewal | None:
    """The prior with the precisions that these parameters speak for; None where there is none, or it is given."""
    if current.ridge:
        ridge = current.ridge.with_new_precision(eta, current.matrix.diagonal(), current.information)
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
    prior = current.prior.with_new_precision(eta, item_blocks, likelihood.share(current.point))
    change = float(np.abs(np.log(prior.precisions / current.prior.precisions)).max())
    return Renewal(replace(current, prior=prior), change)
