"""The iterations of marginal likelihood for thresholds and populations of abilities, and its observed information."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.conditional.information import block_diagonal, from_levels
from spectral_irt.conditional.penalized import parameters
from spectral_irt.data import Block
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.estimators.estimable import DENSE_ITEMS
from spectral_irt.estimators.population import (
    MOST,
    Members,
    Population,
    distribution,
    enough_nodes,
    expected_counts,
    expected_passes,
    marginal_scores,
    normal_population,
    passed_last,
    passing,
    posteriors,
)
from spectral_irt.numerics import Anderson, gram

ROUGH_NODES, ROUGH_STEP = 41, 1e-2  # the first rounds, in which the spread of abilities is found
FREE_STEP = 0.01  # gradient, in standard errors, at which a free distribution is left alone
# Degrees of the polynomial that log density is: 4 for one hump or two, skewed or not; 6 for an edge, as of an
# exponential distribution. Eight changed nothing (adaptive, two-stage and stopping designs, 600 to 1,500 people).
DEGREES = (4, 6)
NO_SPREAD, WIDE_SPREAD = 0.01, 50.0  # a standard deviation outside this is reported, and held there


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
    n, m, layout, longest, score = len(groups), len(start), groups[0].responses.thresholds, 1, np.zeros(len(start))
    for group in groups:
        longest = max(longest, int(group.responses.counts.max(initial=1)))
        score += layout.at_or_above(group.sum(passed_last, m))
    longest *= layout.widest**2  # an answer tells at most K^2 / 4
    begin = start if design is None else design @ parameters(design, start)
    x = np.concatenate([begin, np.zeros(n - 1), np.full(n, np.log(1.0 if sigma is None else sigma))])
    how = (groups, score, sigma is None, design)
    x, _, passes, _ = _accelerated_em(*how, x, ROUGH_NODES, ROUGH_STEP, 50)
    nodes = enough_nodes(float(np.exp(x[-n:].max())), longest)
    x, loglik, more, step = _accelerated_em(*how, x, nodes, tol, max_iter)
    centre = float(layout.averaging() @ x[:m])
    means = np.append(0.0, x[m:-n]) - centre
    populations = tuple(map(normal_population, np.exp(x[-n:]), [nodes] * n, means))
    return MarginalFit(x[:m] - centre, populations, loglik, passes + more, step)


def _accelerated_em(
    groups: Sequence[Members],
    score: Floats,
    estimate_sigma: bool,
    design: Any,
    x: Floats,
    n_nodes: int,
    tol: float,
    max_iter: int,
) -> tuple[Floats, float, int, float]:
    """EM on x = (difficulties, means of all groups but the first, which is at zero, log sigmas); returns the point, its
    log-likelihood, the passes, the last step. `score` is how many passed each threshold.

    Anderson's acceleration proposes; a proposal that lowers the likelihood gives way to the plain EM step.
    """
    n, m, layout = len(groups), len(score), groups[0].responses.thresholds
    low, high = np.log(NO_SPREAD), np.log(WIDE_SPREAD)

    def step(x: Floats) -> tuple[Floats, float]:
        means, log_sigmas, loglik = np.append(0.0, x[m:-n]), x[-n:].copy(), 0.0
        counts, nodes = [], []
        for g, group in enumerate(groups):
            there = normal_population(np.exp(log_sigmas[g]), n_nodes, means[g])
            each, people, more = group.sum(expected_counts, x[:m], there, layout)
            share = people / people.sum()
            means[g] = share @ there.nodes
            if estimate_sigma:
                log_sigmas[g] = np.clip(np.log(share @ (there.nodes - means[g]) ** 2) / 2, low, high)
            counts.append(each)
            nodes.append(there.nodes)
            loglik += float(more)
        beta = _item_step(x[:m], np.concatenate(counts, axis=1), score, np.concatenate(nodes), layout, design)
        # A first mean other than zero is the same model with everything shifted: parameter-expanded EM.
        return np.concatenate([beta - means[0], means[1:] - means[0], log_sigmas]), loglik

    accelerate = Anderson()
    best, safe, good = -np.inf, x, x
    passes, change = 0, np.inf
    while passes < max_iter:
        image, loglik = step(x)
        passes += 1
        if loglik < best - 1e-10 * abs(best):
            if x is safe:
                break  # the plain step: what it lost is rounding, and there is nothing more to gain
            accelerate.forget()
            x = safe
            continue
        best, safe, good = loglik, image, x
        change = float(np.abs(image - x).max())
        if change <= tol:
            break
        bold = accelerate.next(x, image) - image
        x = image + bold / max(1.0, float(np.abs(bold).max()) / 2)  # stays of the form A eta
        x[-n:] = np.clip(x[-n:], low, high)
    return good, best, passes, change


def free_population(
    people: Members, normal: MarginalFit, start: Floats, *, design: Any = None, max_iter: int = 500
) -> MarginalFit:
    """The fit with a population of free shape, or the normal one where AIC does not prefer the former.

    Where answers decide what comes next the likelihood can have two maxima, a narrow population with items close
    together and a wide one with items far apart: the search begins at the normal fit, and at half the conditional
    estimates (`start`), which such designs stretch about twofold.
    """
    (one,) = normal.populations
    sd = max(1.0, one.sd)
    n_nodes = min(MOST, round(len(one.nodes) * sd / one.sd))  # as close together as those of the normal one
    begins = [(normal.difficulty, one), (start / 2, normal_population(sd, n_nodes))]
    best, gain, passes = normal, 0.0, normal.n_iter
    for degree in DEGREES:
        found = [_polynomial_weights(people, *begin, degree, design, max_iter) for begin in begins]
        passes += sum(fit.n_iter for fit in found)
        fit = max(found, key=lambda fit: fit.loglik)
        begins = [(fit.difficulty, fit.populations[0])]
        better = 2 * (fit.loglik - normal.loglik) - 2 * (degree - 2)
        if better > gain:
            around = marginal_information([people], fit.difficulty, fit.populations, design=design)
            with suppress(np.linalg.LinAlgError):  # it has errors where the likelihood falls on all sides
                np.linalg.cholesky(around.whole)
                best, gain = fit, better
    return replace(best, n_iter=passes, better=gain)


def _polynomial_weights(
    people: Members, beta: Floats, start: Population, degree: int, design: Any, max_iter: int
) -> MarginalFit:
    """Thresholds and the polynomial together, by a limited-memory quasi-Newton method.

    The polynomials are orthonormal under the population begun with, parameters scaled to a gradient in standard errors.
    """
    from scipy.optimize import minimize

    nodes, begun, layout = start.nodes, start.log_weights, people.responses.thresholds
    a = sparse.eye_array(len(beta), format="csr") if design is None else design
    eta, m = (beta if design is None else parameters(a, beta)), a.shape[1]
    root = np.exp(np.maximum(begun, -100.0) / 2)[:, None]
    z = (nodes - start.mean) / start.sd
    basis = np.linalg.qr(np.vander(z, degree + 1, increasing=True) * root)[0][:, 1:] / root
    score, size = layout.at_or_above(people.sum(passed_last, len(beta))), people.size

    def objective(scaled: Floats) -> tuple[float, Floats]:
        x = scaled * scale
        here, there = a @ x[:m], distribution(nodes, begun + basis @ x[m:], basis)
        counts, persons, loglik = people.sum(expected_counts, here, there, layout)
        of_beta = (counts[layout.item] * passing(here, nodes, layout)).sum(axis=1) - score
        of_shape = basis.T @ (persons - size * np.exp(there.log_weights))
        return -float(loglik), -np.concatenate([a.T @ of_beta, of_shape]) * scale

    p = passing(beta, nodes, layout)
    counts = people.sum(expected_counts, beta, start, layout)[0][layout.item]
    own = np.concatenate([(a * a).T @ (counts * p * (1 - p)).sum(axis=1), np.full(degree, 0.1 * size)])
    scale = 1 / np.sqrt(np.maximum(own, 1e-6))
    found = minimize(
        objective,
        np.concatenate([eta, np.zeros(degree)]) / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": max_iter, "maxcor": 20, "ftol": 1e-15, "gtol": FREE_STEP},
    )
    x = found.x * scale
    beta = a @ x[:m]
    centre = float(layout.averaging() @ beta)
    shape = distribution(nodes - centre, begun + basis @ x[m:], basis)
    residual = float(np.abs(found.jac).max())
    return MarginalFit(beta - centre, (shape,), -float(found.fun), int(found.nfev) + 1, residual)


def _item_step(beta: Floats, counts: Floats, score: Floats, nodes: Floats, layout: Thresholds, design: Any) -> Floats:
    """The M step of every item at once: sum_q counts_iq P(X >= k | node_q) = score_k, by Newton's method."""
    for _ in range(5):
        p = passing(beta, nodes, layout)
        excess = np.einsum("ik,ik->i", counts[layout.item], p) - score
        blocks = given_ability(counts, p, layout)
        if design is not None:
            inside = design.T @ block_diagonal(layout, blocks) @ design
            move = design @ np.linalg.solve(inside.toarray() + 1e-10 * np.eye(inside.shape[0]), design.T @ excess)
        elif layout.binary:
            move = excess / np.maximum(blocks[:, 0, 0], 1e-10)
        else:  # the levels that an item does not have stand still
            absent = np.arange(layout.widest) >= layout.max_score[:, None]
            blocks = blocks + (absent + 1e-10)[:, :, None] * np.eye(layout.widest)
            right = layout.table(excess, 0.0)[:, :, None]
            move = from_levels(layout, np.asarray(np.linalg.solve(blocks, right)[:, :, 0], dtype=np.float64))
        move = np.clip(move, -1, 1) if design is None else move / max(1.0, np.abs(move).max())
        beta = beta + move
        if np.abs(move).max() < 1e-8:
            break
    return beta


def given_ability(counts: Floats, p: Floats, layout: Thresholds) -> Floats:
    """The information of the thresholds of each item, items x K x K, if abilities were seen.

    sum over nodes of counts (P(X >= the higher) - P(X >= one) P(X >= the other)); p (1 - p) of a single threshold.
    """
    if layout.binary:
        return np.einsum("ik,ik->i", counts, p * (1 - p))[:, None, None]
    at, shape = (layout.item, layout.level - 1), (layout.n_items, layout.widest, p.shape[1])
    tails, weighted = np.zeros(shape), np.zeros(shape)
    tails[at], weighted[at] = p, counts[layout.item] * p
    higher = np.maximum(np.arange(layout.widest)[:, None], np.arange(layout.widest))
    return weighted.sum(axis=2)[:, higher] - np.einsum("iak,ibk->iab", weighted, tails)


def information(
    block: Block, weight: Floats | None, beta: Floats, there: Population, order: int, dense: bool, layout: Thresholds
) -> tuple[Floats, Floats, Floats]:
    """The block's share of the observed information of thresholds and population, by Louis' formula.

    From the information given theta the posterior covariance of each person's scores, functions of theta, is taken
    off: P(X >= k), and the statistics, projected on the first `order` polynomials that are orthonormal under the
    posterior; what is left out falls with the posterior variance to the power `order`. The thresholds' block (or its
    diagonal), the cross terms, and that of the population.
    """
    p, scores, size = passing(beta, there.nodes, layout), there.statistics, len(beta)
    counts, at_node = np.zeros((layout.n_items, p.shape[1])), np.zeros(p.shape[1])
    lost = np.zeros((size, size)) if dense else np.zeros(size)
    cross, own = np.zeros((size, scores.shape[1])), np.zeros((scores.shape[1],) * 2)
    for rows, answered, post, _, each in posteriors(block, weight, beta, there, layout):
        for q in _polynomials(post, there.nodes, order):
            q *= np.sqrt(each)[:, None]
            c = expected_passes(rows, p, q, layout)
            t = q @ scores
            lost += gram(c) if dense else np.bincount(c.indices, weights=c.data**2, minlength=size)
            cross -= c.T @ t
            own -= t.T @ t
        post *= each[:, None]
        counts += answered.T @ post
        at_node += post.sum(axis=0)
    n = float(at_node.sum())
    if not there.free:  # mean and log sigma are no natural parameters: away from the maximum they bend
        first, second = at_node @ scores
        own += np.array([[n / there.sd**2, 2 * first], [2 * first, 2 * (n + second)]])
    else:
        own += n * (scores.T * np.exp(there.log_weights)) @ scores
    blocks = given_ability(counts, p, layout)
    if dense:
        return block_diagonal(layout, blocks).toarray() - lost, cross, own
    return blocks[layout.item, layout.level - 1, layout.level - 1] - lost, cross, own


def _polynomials(post: Floats, nodes: Floats, order: int) -> Iterator[Floats]:
    """post times the orthonormal polynomials of degree 1 to `order` under each row of post (degree 0 is constant)."""
    basis = [np.ones_like(post)]
    for _ in range(order):
        new = basis[-1] * nodes
        for old in basis:
            new -= (post * old * new).sum(axis=1, keepdims=True) * old
        size = np.sqrt((post * new**2).sum(axis=1, keepdims=True))
        basis.append(np.divide(new, size, out=np.zeros_like(new), where=size > 1e-8))
        yield post * basis[-1]


@dataclass(frozen=True, eq=False)
class MarginalInformation:
    """The observed information of the thresholds and of the others, which describe the populations.

    The others are the parameters of a free population; or mean and log sigma of each normal one, without the first
    mean, which gives the scale its origin, and without sigmas that were given or of which the data say nothing.
    """

    whole: Floats  # of both; where both can be shifted, the mean threshold is held; of beta = A eta, that of eta
    single: Floats | None  # with more than 5,000 thresholds: that of each by itself, and `whole` has the others only
    there: NDArray[np.bool_]  # which of the others there are
    weights: Floats  # of the thresholds in the mean that is zero
    design: Any = None

    def inverse(self, ridge: float = 0.0) -> Floats:
        """Of the whole, for thresholds and populations."""
        found = np.linalg.inv(self.whole + ridge * np.trace(self.whole) / len(self.whole) * np.eye(len(self.whole)))
        if self.design is None:
            return found
        to = sparse.block_diag([self.design, np.eye(int(self.there.sum()))], format="csr")
        return to @ found @ to.T

    def places(self, populations: Sequence[Population]) -> list[Floats]:
        """For each population, its parameters x the others: where they stand among them."""
        ends = np.cumsum([one.statistics.shape[1] for one in populations])
        return np.split(np.eye(len(self.there))[:, self.there], ends[:-1])


def marginal_information(
    groups: Sequence[Members],
    beta: Floats,
    populations: Sequence[Population],
    *,
    with_sigma: bool = True,
    design: Any = None,
) -> MarginalInformation:
    """The information of all groups; an entry of the populations of which the data say nothing is left out."""
    m, layout, answers, people = len(beta), groups[0].responses.thresholds, 0, 0
    for group in groups:
        answers += group.responses.n_responses
        people += int(np.sum(group.responses.counts > 0))
    order = 3 if answers / max(people, 1) < 50 else 1  # with many answers posteriors are so narrow that all is straight
    if populations[0].free:
        order = max(order, populations[0].statistics.shape[1])  # statistics of this degree are projected without a rest
    items: Any = 0.0
    crosses, owns, dense = [], [], m <= DENSE_ITEMS
    for group, population in zip(groups, populations, strict=True):
        more, cross, own = group.sum(information, beta, population, order, dense, layout)
        items = items + more
        crosses.append(cross)
        owns.append(own)
    cross, own, weights = np.concatenate(crosses, axis=1), sparse.block_diag(owns).toarray(), layout.averaging()
    there = np.diag(own) > 0
    if not populations[0].free:
        there[0] = False
        there[1::2] &= with_sigma
    own = own[np.ix_(there, there)]
    if not dense:
        return MarginalInformation(own, items, there, weights, design)
    to_mean = weights
    if design is not None:
        items, cross, to_mean = design.T @ items @ design, design.T @ cross, design.T @ weights
    if there[0]:
        items = items + np.trace(items) * np.outer(to_mean, to_mean)
    whole = np.block([[items, cross[:, there]], [cross[:, there].T, own]])
    return MarginalInformation(whole, None, there, weights, design)


def score_squares(
    block: Block, weight: Floats, beta: Floats, population: Population, layout: Thresholds, others: Floats
) -> Floats:
    """The sum over people of the squared weight times s s', with s the scores of thresholds and populations."""
    return gram(sparse.csr_array(sparse.diags_array(weight) @ marginal_scores(block, beta, population, layout, others)))


def marginal_errors(
    found: MarginalInformation, populations: Sequence[Population], middle: Floats | None = None
) -> tuple[Floats, Floats | None, Floats, Floats]:
    """Variances of thresholds, with mean-zero difficulties, their covariance, and variances of mean and log sigma of
    each group, NaN without: from the information, or from the sandwich around `middle`."""
    m, cov = len(found.weights) if found.single is None else 0, found.inverse()
    cov = cov if middle is None else cov @ middle @ cov
    weights = found.weights[:m]
    to_mean = cov[:m, :m] @ weights  # covariance of the thresholds with the mean one
    covariance = cov[:m, :m] - to_mean[:, None] - to_mean + weights @ to_mean
    others = np.full((2, len(populations)), np.nan)
    for g, (population, places) in enumerate(zip(populations, found.places(populations), strict=True)):
        # How the mean, over the mean threshold, and log sigma move with the population's parameters.
        w, away, told = np.exp(population.log_weights), population.nodes - population.mean, places.sum(axis=1) > 0
        told[0] |= g == 0  # which is where the origin is
        for row, (level, moved) in enumerate(((-1.0, w * away), (0.0, w * away**2 / (2 * population.sd**2)))):
            slope = moved @ population.statistics
            if not np.any(np.abs(slope[~told]) > 1e-6):
                slopes = np.append(level * weights, slope @ places)
                others[row, g] = slopes @ cov @ slopes
    if found.single is None:
        return np.diag(covariance).copy(), covariance, others[0], others[1]
    return 1 / np.maximum(found.single, 1e-300), None, np.full(len(populations), np.nan), others[1]
