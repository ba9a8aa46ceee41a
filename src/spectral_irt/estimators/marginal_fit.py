"""The iterations of marginal likelihood for thresholds and populations of abilities, and its observed information."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from spectral_irt.conditional.information import block_diagonal, from_levels
from spectral_irt.conditional.penalized import parameters
from spectral_irt.data import Block
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.data.design import Mask
from spectral_irt.estimators.estimable import DENSE_ITEMS
from spectral_irt.estimators.population import (
    MOST_NODES,
    ExpectedCounts,
    Members,
    Population,
    chances_of_passing,
    distribution,
    enough_nodes,
    expected_counts,
    expected_passes,
    marginal_scores,
    normal_population,
    passed_last,
    posteriors,
)
from spectral_irt.numerics import Anderson, gram, safe_divide

# The first rounds, in which the spread of abilities is found.
ROUGH_NODES = 41
ROUGH_STEP = 1e-2
ROUGH_PASSES = 50
FREE_STEP = 0.01  # gradient, in standard errors, at which a free distribution is left alone
# Degrees of the polynomial that log density is: 4 for one hump or two, skewed or not; 6 for an edge, as of an
# exponential distribution. Eight changed nothing (adaptive, two-stage and stopping designs, 600 to 1,500 people), and
# ten nothing with 6,000.
DEGREES = (4, 6)
# A standard deviation outside this is reported, and held there.
NO_SPREAD = 0.01
WIDE_SPREAD = 50.0
LOWEST_LOG_SD = np.log(NO_SPREAD)
HIGHEST_LOG_SD = np.log(WIDE_SPREAD)
ROUNDING = 1e-10  # of a log-likelihood
LONGEST_LEAP = 2.0  # by which an accelerated parameter may lie beyond the plain step
ITEM_STEPS = 5  # of Newton in each M step: the next one mends what is left
ITEM_SETTLED = 1e-8  # logits
SMALL_RIDGE = 1e-10  # of an information: a block that tells nothing stays invertible
MANY_ANSWERS = 50  # of a person, on average


@dataclass(frozen=True, eq=False)
class MarginalFit:
    """Difficulties, and a population for each group, on the scale of mean-zero difficulties."""

    difficulty: Floats
    populations: tuple[Population, ...]
    loglik: float
    n_iter: int
    residual: float
    better: float = 0.0  # by how much AIC prefers a free distribution to a normal one


def marginal_difficulty(
    groups: Sequence[Members],
    *,
    start: Floats,
    sigma: float | None = None,
    design: Any = None,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> MarginalFit:
    """Difficulties, or thresholds, that maximize the marginal likelihood of normal populations, one for each group.

    loglik = sum_l log sum_k w_k P(answers of l | theta_k)

    Every threshold must be passed by one and failed by another person, and groups need items in common, directly or
    through other groups. Thresholds may be A eta with a known matrix A, the sparse `design`.
    """
    n_groups = len(groups)
    layout = groups[0].responses.thresholds
    n_thresholds = len(start)
    passed = np.zeros(n_thresholds)
    longest = 1
    for group in groups:
        passed += layout.at_or_above(group.sum(passed_last, n_thresholds))
        longest = max(longest, int(group.responses.counts.max(initial=1)))
    longest *= layout.widest**2  # an answer tells at most K^2 / 4
    em = _NormalEM(groups, passed, sigma is None, design)
    beta = start if design is None else design @ parameters(design, start)
    log_sigma = np.log(1.0 if sigma is None else sigma)
    x = np.concatenate([beta, np.zeros(n_groups - 1), np.full(n_groups, log_sigma)])
    rough = em.solve(x, ROUGH_NODES, ROUGH_STEP, ROUGH_PASSES)
    _, _, log_sigmas = em.split(rough.x)
    n_nodes = enough_nodes(float(np.exp(log_sigmas.max())), longest)
    end = em.solve(rough.x, n_nodes, tol, max_iter)
    beta, means, log_sigmas = em.split(end.x)
    center = float(layout.mean_weights() @ beta)
    populations = tuple(
        normal_population(sd, n_nodes, mean) for sd, mean in zip(np.exp(log_sigmas), means - center, strict=True)
    )
    return MarginalFit(beta - center, populations, end.loglik, rough.passes + end.passes, end.change)


class EMEnd(NamedTuple):
    """Where EM ended: the parameters, their log-likelihood, the passes, and the last change."""

    x: Floats
    loglik: float
    passes: int
    change: float


class _NormalEM(NamedTuple):
    """EM on x = (thresholds, means of all groups but the first, which is at zero, log sigmas).

    `passed` is how many passed each threshold; `with_sigma`: whether the sigmas are estimated.
    """

    groups: Sequence[Members]
    passed: Floats
    with_sigma: bool
    design: Any

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """The thresholds, the means of all groups, and the logs of their standard deviations."""
        n_groups = len(self.groups)
        n_thresholds = len(self.passed)
        return x[:n_thresholds], np.append(0.0, x[n_thresholds:-n_groups]), x[-n_groups:].copy()

    def step(self, x: Floats, n_nodes: int) -> tuple[Floats, float]:
        """The parameters after one round of EM, and the log-likelihood before it."""
        layout = self.groups[0].responses.thresholds
        beta, means, log_sigmas = self.split(x)
        counts = []
        nodes = []
        loglik = 0.0
        for g, group in enumerate(self.groups):
            population = normal_population(np.exp(log_sigmas[g]), n_nodes, means[g])
            expected = ExpectedCounts(*group.sum(expected_counts, beta, population, layout))
            share = expected.persons / expected.persons.sum()
            means[g] = share @ population.nodes
            if self.with_sigma:
                log_sd = np.log(share @ (population.nodes - means[g]) ** 2) / 2
                log_sigmas[g] = np.clip(log_sd, LOWEST_LOG_SD, HIGHEST_LOG_SD)
            counts.append(expected.answers)
            nodes.append(population.nodes)
            loglik += float(expected.loglik)
        beta = _item_step(beta, np.concatenate(counts, axis=1), self.passed, np.concatenate(nodes), layout, self.design)
        # A first mean other than zero is the same model with everything shifted: parameter-expanded EM.
        return np.concatenate([beta - means[0], means[1:] - means[0], log_sigmas]), loglik

    def solve(self, x: Floats, n_nodes: int, tol: float, max_passes: int) -> EMEnd:
        """EM until no parameter changes by more than `tol`.

        Anderson's acceleration proposes; a proposal that lowers the likelihood gives way to the plain EM step.
        """
        n_groups = len(self.groups)
        accelerate = Anderson()
        highest = -np.inf
        plain_step = best = x
        passes = 0
        change = np.inf
        while passes < max_passes:
            image, loglik = self.step(x, n_nodes)
            passes += 1
            if loglik < highest - ROUNDING * abs(highest):
                if x is plain_step:
                    break  # what it lost is rounding, and there is nothing more to gain
                accelerate.forget()
                x = plain_step
                continue
            highest = loglik
            plain_step = image
            best = x
            change = float(np.abs(image - x).max())
            if change <= tol:
                break
            leap = accelerate.next(x, image) - image
            x = image + leap / max(1.0, float(np.abs(leap).max()) / LONGEST_LEAP)  # stays of the form A eta
            x[-n_groups:] = np.clip(x[-n_groups:], LOWEST_LOG_SD, HIGHEST_LOG_SD)
        return EMEnd(best, highest, passes, change)


def free_population(
    people: Members, normal: MarginalFit, start: Floats, *, design: Any = None, max_iter: int = 500
) -> MarginalFit:
    """The fit with a population of free shape, or the normal one where AIC does not prefer the former.

    Where answers decide what comes next the likelihood can have two maxima, a narrow population with items close
    together and a wide one with items far apart: the search begins at the normal fit, and at half the conditional
    estimates (`start`), which such designs stretch about twofold.
    """
    (population,) = normal.populations
    sd = max(1.0, population.sd)
    n_nodes = min(MOST_NODES, round(len(population.nodes) * sd / population.sd))  # as close together as the normal's
    starts = [(normal.difficulty, population), (start / 2, normal_population(sd, n_nodes))]
    best = normal
    gain = 0.0
    passes = normal.n_iter
    for degree in DEGREES:
        fits = [_polynomial_weights(people, beta, shape, degree, design, max_iter) for beta, shape in starts]
        passes += sum(fit.n_iter for fit in fits)
        fit = max(fits, key=lambda fit: fit.loglik)
        starts = [(fit.difficulty, fit.populations[0])]
        gain_in_aic = 2 * (fit.loglik - normal.loglik) - 2 * (degree - 2)
        if gain_in_aic > gain and _is_a_maximum(people, fit, design):
            best = fit
            gain = gain_in_aic
    return replace(best, n_iter=passes, better=gain)


def _is_a_maximum(people: Members, fit: MarginalFit, design: Any) -> bool:
    """Whether the likelihood falls on all sides, so that the fit has standard errors."""
    information = marginal_information([people], fit.difficulty, fit.populations, design=design)
    try:
        np.linalg.cholesky(information.whole)
    except np.linalg.LinAlgError:
        return False
    return True


def _polynomial_weights(
    people: Members, beta: Floats, start: Population, degree: int, design: Any, max_iter: int
) -> MarginalFit:
    """Thresholds and the polynomial together, by a limited-memory quasi-Newton method.

    The polynomials are orthonormal under a normal population with the mean and spread of the one begun with: under that
    one itself they are huge beyond an edge of it, where nobody is, and the search ends before the maximum. Parameters
    are scaled to a gradient in standard errors.
    """
    from scipy.optimize import minimize

    layout = people.responses.thresholds
    nodes = start.nodes
    log_weights = start.log_weights
    a = sparse.eye_array(len(beta), format="csr") if design is None else design
    eta = beta if design is None else parameters(a, beta)
    n_eta = a.shape[1]
    z = (nodes - start.mean) / start.sd
    root = np.exp(-(z**2) / 4)[:, None]
    basis = np.linalg.qr(np.vander(z, degree + 1, increasing=True) * root)[0][:, 1:] / root
    passed = layout.at_or_above(people.sum(passed_last, len(beta)))
    size = people.size

    def objective(scaled: Floats) -> tuple[float, Floats]:
        """Minus the log-likelihood, and its gradient."""
        x = scaled * scale
        thresholds = a @ x[:n_eta]
        shape = distribution(nodes, log_weights + basis @ x[n_eta:], basis)
        expected = ExpectedCounts(*people.sum(expected_counts, thresholds, shape, layout))
        answers = expected.answers[layout.item]
        of_thresholds = (answers * chances_of_passing(thresholds, nodes, layout)).sum(axis=1) - passed
        of_shape = basis.T @ (expected.persons - size * np.exp(shape.log_weights))
        return -float(expected.loglik), -np.concatenate([a.T @ of_thresholds, of_shape]) * scale

    p = chances_of_passing(beta, nodes, layout)
    answers = people.sum(expected_counts, beta, start, layout)[0][layout.item]
    of_eta = (a * a).T @ (answers * p * (1 - p)).sum(axis=1)
    information = np.concatenate([of_eta, np.full(degree, 0.1 * size)])
    scale = 1 / np.sqrt(np.maximum(information, 1e-6))
    minimum = minimize(
        objective,
        np.concatenate([eta, np.zeros(degree)]) / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": max_iter, "maxcor": 20, "ftol": 1e-15, "gtol": FREE_STEP},
    )
    x = minimum.x * scale
    beta = a @ x[:n_eta]
    center = float(layout.mean_weights() @ beta)
    shape = distribution(nodes - center, log_weights + basis @ x[n_eta:], basis)
    residual = float(np.abs(minimum.jac).max())
    return MarginalFit(beta - center, (shape,), -float(minimum.fun), int(minimum.nfev) + 1, residual)


def _item_step(beta: Floats, counts: Floats, passed: Floats, nodes: Floats, layout: Thresholds, design: Any) -> Floats:
    """The M step of every item at once: sum_q counts_iq P(X >= k | node_q) = passed_k, by Newton's method."""
    for _ in range(ITEM_STEPS):
        p = chances_of_passing(beta, nodes, layout)
        excess = np.einsum("ik,ik->i", counts[layout.item], p) - passed
        blocks = given_ability(counts, p, layout)
        if design is not None:
            information = (design.T @ block_diagonal(layout, blocks) @ design).toarray()
            ridge = SMALL_RIDGE * np.eye(len(information))
            move = design @ np.linalg.solve(information + ridge, design.T @ excess)
            move = move / max(1.0, np.abs(move).max())
        else:
            move = np.clip(_item_moves(blocks, excess, layout), -1, 1)
        beta = beta + move
        if np.abs(move).max() < ITEM_SETTLED:
            break
    return beta


def _item_moves(blocks: Floats, excess: Floats, layout: Thresholds) -> Floats:
    """Newton's step of each item by itself, whose information is its block."""
    if layout.binary:
        return excess / np.maximum(blocks[:, 0, 0], SMALL_RIDGE)
    # The levels that an item does not have stand still.
    absent = np.arange(layout.widest) >= layout.max_score[:, None]
    blocks = blocks + (absent + SMALL_RIDGE)[:, :, None] * np.eye(layout.widest)
    moves = np.linalg.solve(blocks, layout.table(excess, 0.0)[:, :, None])[:, :, 0]
    return from_levels(layout, np.asarray(moves, dtype=np.float64))


def given_ability(counts: Floats, p: Floats, layout: Thresholds) -> Floats:
    """The information of the thresholds of each item, items x K x K, if abilities were seen.

    sum over nodes of counts (P(X >= the higher) - P(X >= one) P(X >= the other)); p (1 - p) of a single threshold.
    """
    if layout.binary:
        return np.einsum("ik,ik->i", counts, p * (1 - p))[:, None, None]
    place = (layout.item, layout.level - 1)
    tails = np.zeros((layout.n_items, layout.widest, p.shape[1]))
    weighted = np.zeros_like(tails)
    tails[place] = p
    weighted[place] = counts[layout.item] * p
    higher = np.maximum(np.arange(layout.widest)[:, None], np.arange(layout.widest))
    return weighted.sum(axis=2)[:, higher] - np.einsum("iak,ibk->iab", weighted, tails)


class InformationSums(NamedTuple):
    """Shares of the observed information: the thresholds' block (or its diagonal), the cross terms, and that of the
    population."""

    thresholds: Floats
    cross: Floats
    population: Floats


def information(
    block: Block,
    weight: Floats | None,
    beta: Floats,
    population: Population,
    order: int,
    dense: bool,
    layout: Thresholds,
) -> InformationSums:
    """The block's share of the observed information of thresholds and population, by Louis' formula.

    From the information given theta the posterior covariance of each person's scores, functions of theta, is taken
    off: P(X >= k), and the statistics, projected on the first `order` polynomials that are orthonormal under the
    posterior; what is left out falls with the posterior variance to the power `order`.
    """
    p = chances_of_passing(beta, population.nodes, layout)
    statistics = population.statistics
    n_thresholds = len(beta)
    n_statistics = statistics.shape[1]
    counts = np.zeros((layout.n_items, p.shape[1]))
    at_node = np.zeros(p.shape[1])
    lost = np.zeros((n_thresholds, n_thresholds)) if dense else np.zeros(n_thresholds)
    cross = np.zeros((n_thresholds, n_statistics))
    of_population = np.zeros((n_statistics, n_statistics))
    for some in posteriors(block, weight, beta, population, layout):
        posterior = some.p
        for projection in _polynomials(posterior, population.nodes, order):
            projection *= np.sqrt(some.weight)[:, None]
            of_passes = expected_passes(some.rows, p, projection, layout)
            of_statistics = projection @ statistics
            if dense:
                lost += gram(of_passes)
            else:
                lost += np.bincount(of_passes.indices, weights=of_passes.data**2, minlength=n_thresholds)
            cross -= of_passes.T @ of_statistics
            of_population -= of_statistics.T @ of_statistics
        posterior *= some.weight[:, None]
        counts += some.answered.T @ posterior
        at_node += posterior.sum(axis=0)
    n_people = float(at_node.sum())
    if not population.free:  # mean and log sigma are no natural parameters: away from the maximum they bend
        of_mean, of_log_sd = at_node @ statistics
        bend = [[n_people / population.sd**2, 2 * of_mean], [2 * of_mean, 2 * (n_people + of_log_sd)]]
        of_population += np.array(bend)
    else:
        of_population += n_people * (statistics.T * np.exp(population.log_weights)) @ statistics
    blocks = given_ability(counts, p, layout)
    if dense:
        return InformationSums(block_diagonal(layout, blocks).toarray() - lost, cross, of_population)
    diagonal = blocks[layout.item, layout.level - 1, layout.level - 1]
    return InformationSums(diagonal - lost, cross, of_population)


def _polynomials(posterior: Floats, nodes: Floats, order: int) -> Iterator[Floats]:
    """posterior times the orthonormal polynomials of degree 1 to `order` under each of its rows (degree 0 is
    constant)."""
    basis = [np.ones_like(posterior)]
    for _ in range(order):
        new = basis[-1] * nodes
        for old in basis:
            new -= (posterior * old * new).sum(axis=1, keepdims=True) * old
        size = np.sqrt((posterior * new**2).sum(axis=1, keepdims=True))
        basis.append(safe_divide(new, size, where_above=1e-8))
        yield posterior * basis[-1]


@dataclass(frozen=True, eq=False)
class MarginalInformation:
    """The observed information of the thresholds and of the others, which describe the populations.

    The others are the parameters of a free population; or mean and log sigma of each normal one, without the first
    mean, which gives the scale its origin, and without sigmas that were given or of which the data say nothing.
    """

    whole: Floats  # of both; where both can be shifted, the mean threshold is held; of beta = A eta, that of eta
    single: Floats | None  # with more than 5,000 thresholds: that of each by itself, and `whole` has the others only
    estimated: Mask  # which parameters of the populations there are
    weights: Floats  # of the thresholds in the mean that is zero
    design: Any = None

    def inverse(self, ridge: float = 0.0) -> Floats:
        """Of the whole, for thresholds and populations."""
        size = len(self.whole)
        inverse = np.linalg.inv(self.whole + ridge * np.trace(self.whole) / size * np.eye(size))
        if self.design is None:
            return inverse
        of_all = sparse.block_diag([self.design, np.eye(int(self.estimated.sum()))], format="csr")
        return of_all @ inverse @ of_all.T

    def places(self, populations: Sequence[Population]) -> list[Floats]:
        """For each population, its parameters x the others: where they stand among them."""
        ends = np.cumsum([population.statistics.shape[1] for population in populations])
        return np.split(np.eye(len(self.estimated))[:, self.estimated], ends[:-1])


def marginal_information(
    groups: Sequence[Members],
    beta: Floats,
    populations: Sequence[Population],
    *,
    with_sigma: bool = True,
    design: Any = None,
) -> MarginalInformation:
    """The information of all groups; an entry of the populations of which the data say nothing is left out."""
    layout = groups[0].responses.thresholds
    free = populations[0].free
    order = _order(groups)
    if free:
        order = max(order, populations[0].statistics.shape[1])  # statistics of this degree are projected without a rest
    dense = len(beta) <= DENSE_ITEMS
    of_thresholds: Any = 0.0
    crosses = []
    of_populations = []
    for group, population in zip(groups, populations, strict=True):
        sums = InformationSums(*group.sum(information, beta, population, order, dense, layout))
        of_thresholds = of_thresholds + sums.thresholds
        crosses.append(sums.cross)
        of_populations.append(sums.population)
    cross = np.concatenate(crosses, axis=1)
    of_others = sparse.block_diag(of_populations).toarray()
    estimated = np.diag(of_others) > 0
    if not free:
        estimated[0] = False
        estimated[1::2] &= with_sigma
    of_others = of_others[np.ix_(estimated, estimated)]
    weights = layout.mean_weights()
    if not dense:
        return MarginalInformation(of_others, of_thresholds, estimated, weights, design)
    to_mean = weights
    if design is not None:
        of_thresholds = design.T @ of_thresholds @ design
        cross = design.T @ cross
        to_mean = design.T @ weights
    if estimated[0]:
        of_thresholds = of_thresholds + np.trace(of_thresholds) * np.outer(to_mean, to_mean)
    cross = cross[:, estimated]
    matrix = np.block([[of_thresholds, cross], [cross.T, of_others]])
    return MarginalInformation(matrix, None, estimated, weights, design)


def _order(groups: Sequence[Members]) -> int:
    """Of the polynomials in Louis' formula: with many answers posteriors are so narrow that all is straight."""
    n_answers = sum(group.responses.n_responses for group in groups)
    n_people = sum(int(np.sum(group.responses.counts > 0)) for group in groups)
    return 3 if n_answers / max(n_people, 1) < MANY_ANSWERS else 1


def score_squares(
    block: Block, weight: Floats, beta: Floats, population: Population, layout: Thresholds, others: Floats
) -> Floats:
    """The sum over people of the squared weight times s s', with s the scores of thresholds and populations."""
    return gram(sparse.csr_array(sparse.diags_array(weight) @ marginal_scores(block, beta, population, layout, others)))


class MarginalErrors(NamedTuple):
    """Variances of thresholds, with mean-zero difficulties, and their covariance where it was formed; variances of the
    mean and of the log sigma of each group, NaN without; and how many parameters the populations have."""

    variance: Floats
    covariance: Floats | None
    of_mean: Floats
    of_log_sd: Floats
    n_of_populations: int


def errors_at(groups: Sequence[Members], fit: MarginalFit, *, with_sigma: bool, design: Any) -> MarginalErrors:
    """From the observed information; where people have weights, which count twice, from the sandwich around it."""
    populations = fit.populations
    information = marginal_information(groups, fit.difficulty, populations, with_sigma=with_sigma, design=design)
    # Of a free population one parameter is its origin.
    n_of_populations = int(information.estimated.sum()) - int(information.estimated[0])
    covariance = information.inverse()
    if groups[0].weights is not None and information.single is None:
        middle: Any = 0.0
        for group, population, places in zip(groups, populations, information.places(populations), strict=True):
            layout = group.responses.thresholds
            middle = middle + group.sum(score_squares, fit.difficulty, population, layout, places)
        covariance = covariance @ middle @ covariance
    of_mean, of_log_sd = _population_variances(information, populations, covariance)
    if information.single is not None:
        unknown = np.full(len(populations), np.nan)
        return MarginalErrors(1 / np.maximum(information.single, 1e-300), None, unknown, of_log_sd, n_of_populations)
    weights = information.weights
    of_thresholds = covariance[: len(weights), : len(weights)]
    with_mean = of_thresholds @ weights  # covariance of the thresholds with the mean one
    centered = of_thresholds - with_mean[:, None] - with_mean + weights @ with_mean
    return MarginalErrors(np.diag(centered).copy(), centered, of_mean, of_log_sd, n_of_populations)


def _population_variances(
    found: MarginalInformation, populations: Sequence[Population], covariance: Floats
) -> tuple[Floats, Floats]:
    """Variances of the mean, over the mean threshold, and of log sigma of each population; NaN without."""
    weights = found.weights if found.single is None else np.empty(0)
    of_mean = np.full(len(populations), np.nan)
    of_log_sd = np.full(len(populations), np.nan)
    for g, (population, places) in enumerate(zip(populations, found.places(populations), strict=True)):
        share = np.exp(population.log_weights)
        distance = population.nodes - population.mean
        estimated = places.sum(axis=1) > 0
        estimated[0] |= g == 0  # which is where the origin is
        # How the mean and log sigma move with the population's parameters.
        mean_slope = (share * distance) @ population.statistics
        if not _rests_on_unknown(mean_slope, estimated):
            slopes = np.append(-weights, mean_slope @ places)
            of_mean[g] = slopes @ covariance @ slopes
        log_sd_slope = (share * distance**2 / (2 * population.sd**2)) @ population.statistics
        if not _rests_on_unknown(log_sd_slope, estimated):
            slopes = np.append(0.0 * weights, log_sd_slope @ places)
            of_log_sd[g] = slopes @ covariance @ slopes
    return of_mean, of_log_sd


def _rests_on_unknown(slope: Floats, estimated: Mask) -> bool:
    """Whether something moves with parameters that were not estimated."""
    return bool(np.any(np.abs(slope[~estimated]) > 1e-6))
