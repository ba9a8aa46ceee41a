"""MarginalPartialCredit: marginal maximum likelihood for ordered answers, abilities from a normal population.

log L = sum_l log sum_q w_q prod_i P(x_li | sigma z_q),  with z_q on a fine grid of the standard normal.

EM: the posterior of each person on the grid, then for each item Newton's steps on its expected counts. What a person
contributes to the derivative is also what the standard errors are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from spectral_irt.errors import OptionError, check_option, option
from spectral_irt.estimators.adaptive import ADAPTIVE, DESIGNS, FIXED, adaptive_finding
from spectral_irt.estimators.base import Tell, convergence
from spectral_irt.estimators.checkpointing import Folder
from spectral_irt.estimators.ordered_base import (
    OrderedEstimator,
    StepEstimate,
    centered,
    location_errors,
    spread,
    spread_matrix,
)
from spectral_irt.estimators.partial_credit import SpectralPartialCredit
from spectral_irt.model import category_probabilities
from spectral_irt.numerics import Anderson
from spectral_irt.responses.block import Block, Floats
from spectral_irt.responses.ordered import OrderedResponses, Rows, Steps, rows_of
from spectral_irt.responses.step_design import estimable_items, examine_ordered

NODES, SPAN = 61, 6.0  # a step of 0.2 standard deviations: rounding error for likelihoods no narrower than a test's
INNER = 3  # Newton's steps on the expected counts of an item
MOST_STEPS = 3000


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Standard normal nodes and their log-weights."""

    nodes: Floats
    log_weight: Floats

    @classmethod
    def normal(cls) -> Quadrature:
        z = np.linspace(-SPAN, SPAN, NODES)
        log = -(z**2) / 2
        return cls(z, log - np.log(np.exp(log).sum()))


def posterior(rows: Rows, steps: Steps, cumulated: Floats, theta: Floats, log_weight: Floats) -> Any:
    """Posterior of each row on the nodes, its log-likelihood but for its own thresholds, and who answered what."""
    k = np.arange(cumulated.shape[1])
    x = theta[None, :, None] * k - cumulated[:, None, :]
    top = x.max(axis=2)
    size = top + np.log(np.exp(x - top[:, :, None]).sum(axis=2))  # items x nodes
    answered = sparse.csr_array(
        (np.ones(len(rows.items)), rows.items, rows.indptr), shape=(len(rows.counts), steps.n_items)
    )
    log = rows.scores[:, None] * theta - answered @ size + log_weight
    most = log.max(axis=1, keepdims=True)
    weight = np.exp(log - most)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (most + np.log(total)).ravel(), answered


def _expectation(
    block: Block, steps: Steps, cumulated: Floats, theta: Floats, log_weight: Floats
) -> tuple[float, Floats, Floats, Floats]:
    """Log-likelihood but for thresholds; people who passed each threshold last, and who answered each item, by node."""
    rows = rows_of(block, steps)
    weight, log, answered = posterior(rows, steps, cumulated, theta, log_weight)
    passed, _ = block.halves(steps.n_steps)
    there = rows.counts > 0
    return float(log.sum()), passed.T @ weight, answered.T @ weight, weight[there].sum(axis=0)


def _scores(block: Block, steps: Steps, cumulated: Floats, theta: Floats, log_weight: Floats, nodes: Floats) -> Floats:
    """sum_l g_l g_l^T, g the derivative of a person's log-likelihood by the thresholds and by log sigma."""
    rows = rows_of(block, steps)
    weight, _, answered = posterior(rows, steps, cumulated, theta, log_weight)
    p = category_probabilities(np.broadcast_to(theta, (steps.n_items, len(theta))), cumulated[:, None, :])
    tails = np.flip(np.cumsum(np.flip(p, 2), 2), 2)[:, :, 1:]  # P(X >= k), items x nodes x levels
    above = tails[steps.item, :, steps.level - 1]  # thresholds x nodes
    expected = weight @ above.T
    seen = answered.toarray()[:, steps.item]
    passed, _ = block.halves(steps.n_steps)
    x = passed.toarray()
    at_least = np.zeros_like(x)
    for c in range(steps.n_steps - 1, -1, -1):  # at or above: passed last here, or above in the same item
        at_least[:, c] = x[:, c]
        if c + 1 < steps.n_steps and steps.below[c + 1]:
            at_least[:, c] += at_least[:, c + 1]
    # By log sigma: theta times (score - its expectation), over the posterior.
    mean = p @ np.arange(cumulated.shape[1])
    slope = (weight * theta * (rows.scores[:, None] - answered @ mean)).sum(axis=1)
    g = np.concatenate([seen * expected - at_least, slope[:, None]], axis=1)
    return g.T @ g


class MarginalPartialCredit(OrderedEstimator):
    """Thresholds of the partial credit model with standard errors by marginal maximum likelihood (MML).

    Abilities are drawn from a normal population whose standard deviation is estimated. The answers may decide what a
    person is asked next; but where forms go to different populations, conditional estimates are right and these are
    not.

    Parameters
    ----------
    se : "scores" or "none"
        Standard errors from the products of the people's derivatives, or none.
    unused : "collapse", "error" or "keep"
    tol : float
        Largest step of a threshold, in logits, at which to stop.
    max_iter : int
    threads : int, optional

    Attributes
    ----------
    thresholds_, threshold_se_, difficulty_, se_, loglik_
    ability_mean_, ability_sd_ : float
        Of the population, on the scale whose mean location is zero.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = MarginalPartialCredit().fit(simulate.partial_credit(500, 5, categories=3, seed=1).responses)
    >>> bool(0.7 < fit.ability_sd_ < 1.3)
    True
    """

    ability_sd_: float
    ability_mean_: float

    def __init__(
        self,
        *,
        se: str = "scores",
        unused: str = "collapse",
        tol: float = 1e-7,
        max_iter: int = 2000,
        threads: int | None = None,
    ) -> None:
        self.se = se
        self.unused = unused
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads

    def fit(
        self,
        data: Any,
        y: object = None,
        *,
        design: str = FIXED,
        progress: Tell | None = None,
        checkpoint: Folder = None,
    ) -> Self:
        """Calibrate the items; `data`, `y`, `progress` and `checkpoint` as for every estimator of ordered answers.

        Parameters
        ----------
        design : "fixed" or "adaptive"
            "adaptive" where the answers decided what a person was asked next, or when to stop. The estimate is the
            same; what is computed given the scores is left out, and the findings say why.
        """
        check_option("design", design, DESIGNS)
        return self._fitted(data, progress, checkpoint=checkpoint, design=design)

    def _estimate_steps(
        self, responses: OrderedResponses, tell: Tell, design: str = FIXED, **further: Any
    ) -> StepEstimate:
        if self.se not in ("scores", "none"):
            raise OptionError(option("se"), f" is {self.se!r}; it can be 'scores', 'none'.")
        rest, kept, findings = estimable_items(responses)
        steps, mask = rest.steps, kept[responses.steps.item]
        if steps.n_steps > MOST_STEPS:
            raise OptionError(f"marginal maximum likelihood here is for up to {MOST_STEPS:,} thresholds.")
        grid = Quadrature.normal()
        start = SpectralPartialCredit(weighting="persons", se="none", tol=1e-6).fit(rest).thresholds_
        reached = marginal_thresholds(rest, np.where(np.isfinite(start), start, 0.0), self.tol, self.max_iter, tell)
        x, loglik, moved, n_iter = reached.x, reached.loglik, reached.moved, reached.n_iter
        status = examine_ordered(responses).item_status()
        mean = -float(steps.averaging() @ x[:-1])
        sigma = float(np.exp(x[-1]))
        matrix = None
        if self.se == "scores":
            theta = sigma * grid.nodes
            cumulated = steps.cumulated(x[:-1])
            total = rest.thresholds.sum(_scores, steps, cumulated, theta, grid.log_weight, grid.nodes)
            matrix = np.linalg.inv(total)[:-1, :-1]
        beta, matrix = centered(steps, x[:-1], matrix)
        if matrix is None:
            se, location = np.full(len(beta), np.nan), np.full(steps.n_items, np.nan)
        else:
            se, location = np.sqrt(np.maximum(np.diag(matrix), 0)), location_errors(steps, matrix)
        found = convergence("marginal likelihood", n_iter, "steps", "a move of", moved, self.tol)
        return StepEstimate(
            spread(beta, mask),
            spread(se, mask),
            spread(location, kept),
            status,
            n_iter,
            moved,
            covariance=None if matrix is None else spread_matrix(matrix, mask),
            loglik=loglik,
            findings=(*findings, *found, *([adaptive_finding(False, "thresholds")] if design == ADAPTIVE else [])),
            se_method=self.se,
            extra={"kept": kept, "ability_mean": mean, "ability_sd": sigma},
        )


class Reached(NamedTuple):
    """Thresholds and log sigma, the log-likelihood, and how the steps ended."""

    x: Floats
    loglik: float
    moved: float
    n_iter: int


def marginal_thresholds(
    rest: OrderedResponses, start: Floats, tol: float, max_iter: int, tell: Tell = lambda text: None
) -> Reached:
    """EM steps from these thresholds on, accelerated; the population has mean zero and thresholds float instead."""
    grid, accelerate = Quadrature.normal(), Anderson()
    own = rest.thresholds.sum(_passed_all, rest.steps)
    x = np.append(start, 0.0)
    moved, n_iter, loglik = np.inf, 0, -np.inf
    while n_iter < max_iter:
        image, new = _em(rest, x, grid, own)
        n_iter += 1
        moved = float(np.max(np.abs(image - x)))
        if new < loglik - 1e-9 * abs(new):  # an accelerated point that lost: go on from plain steps
            accelerate.forget()
        loglik = new
        tell(f"step {n_iter}: log-likelihood {loglik:,.2f}, moved {moved:.0e}")
        if moved < tol:
            return Reached(image, loglik, moved, n_iter)
        x = accelerate.next(x, image)
        x = np.where(np.abs(x - image) < 1.0, x, image)
    return Reached(x, loglik, moved, n_iter)


def _em(rest: OrderedResponses, x: Floats, grid: Quadrature, own: Floats) -> tuple[Floats, float]:
    """One EM step, and the log-likelihood before it."""
    steps, beta, sigma = rest.steps, x[:-1], float(np.exp(x[-1]))
    theta = sigma * grid.nodes
    log, passed, answered, population = rest.thresholds.sum(
        _expectation, steps, steps.cumulated(beta), theta, grid.log_weight
    )
    total = population.sum()
    # sigma: the spread of the posteriors around zero; thresholds float instead of the mean
    new_sigma = sigma * np.sqrt(float(population @ grid.nodes**2) / total)
    new = maximize_items(steps, beta, theta, passed, answered)
    return np.append(new, np.log(new_sigma)), log - float(own @ beta)


def maximize_items(steps: Steps, beta: Floats, theta: Floats, passed: Floats, answered: Floats) -> Floats:
    """Newton's steps on the expected counts: `passed` people per threshold and node, `answered` per item and node."""
    first = steps.first
    for _ in range(INNER):
        p = category_probabilities(
            np.broadcast_to(theta, (steps.n_items, len(theta))), steps.cumulated(beta)[:, None, :]
        )
        tails = np.flip(np.cumsum(np.flip(p, 2), 2), 2)[:, :, 1:]
        new = beta.copy()
        for i in range(steps.n_items):
            k = int(steps.counts[i])
            mine = slice(first[i], first[i] + k)
            t = tails[i, :, :k]
            seen = np.cumsum(passed[mine].sum(axis=1)[::-1])[::-1]
            gradient = answered[i] @ t - seen
            h = np.einsum("q,qa,qb->ab", answered[i], t, t)
            both = t[:, np.maximum(np.arange(k)[:, None], np.arange(k))]
            information = np.einsum("q,qab->ab", answered[i], both) - h
            new[mine] += np.clip(np.linalg.solve(information, gradient), -1, 1)
        if np.max(np.abs(new - beta)) < 1e-10:
            return new
        beta = new
    return beta


def _passed_all(block: Block, steps: Steps) -> Floats:
    """How many people are at or above each threshold."""
    right, _ = block.halves(steps.n_steps)
    total = np.cumsum((right.T @ np.ones(block.n_users))[::-1])[::-1]
    return total - np.append(total, 0.0)[steps.first + steps.counts][steps.item]
