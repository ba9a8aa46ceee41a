"""Do conditional and marginal likelihood of ordered answers agree? `hausman` over thresholds.

With beta all thresholds and x = (beta, log sigma) of a normal population around zero, of which the thresholds are free,

    T = W' sum_l r_l,   r_l = g_l - H [J^-1 u_l]_beta,

with g_l = P(X_l >= k | s_l) - 1{x_l >= k} the score of the conditional likelihood, H its information, u_l the score of
the marginal likelihood and J its observed information: that of the answers and abilities together, less what is lost
because abilities are not seen (Louis, 1982). Directions W are those of `hausman` in the location of an item, for all of
its thresholds alike, and the distances of thresholds from it. But for the answer itself every term depends on the items
answered and the total score alone, so it is computed once for all people who share these.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.given_score import passed_given
from spectral_irt.conditional.likelihood import ExactLikelihood
from spectral_irt.conditional.patterns import PatternPart, padded, pattern_parts, threshold_codes
from spectral_irt.data.block import Block, Floats, Ints
from spectral_irt.data.design import estimable
from spectral_irt.data.responses import Responses
from spectral_irt.data.same_items import Patterns, distinct_rows
from spectral_irt.data.thresholds import Rows, Thresholds, answered_items
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError
from spectral_irt.estimators.marginal_em import marginal_difficulty
from spectral_irt.estimators.partial_credit import SpectralPartialCredit
from spectral_irt.estimators.population import Population, log_denominators, normal_population
from spectral_irt.inference.groups.hausman import (
    LEAST_PEOPLE,
    PASSES,
    STEP,
    Compared,
    HausmanTest,
    by_design,
    directions,
    parted,
)
from spectral_irt.model import above, category_probabilities
from spectral_irt.sparse_kernels import csr

MOST_ITEMS = 100  # with more a sample of them is compared: the information is a matrix over thresholds, node by node
MOST_RESPONSES = 30_000  # with more a sample of the people
NODES = 61  # a step of 0.2 standard deviations


def ordered_hausman(calibration: Calibration, responses: Responses, *, seed: int = 0) -> HausmanTest:
    """Test conditional against marginal thresholds.

    Parameters
    ----------
    calibration, responses
        The data that were calibrated, in the order of the calibration's items.
    seed : int
        Draws the samples of items (more than 100) and of people (more than 30,000 responses).

    Examples
    --------
    >>> from spectral_irt import SpectralPartialCredit, simulate
    >>> answers = simulate.partial_credit(500, 40, categories=3, design="adaptive", length=10, seed=1).responses
    >>> ordered_hausman(SpectralPartialCredit().fit(answers).calibration_, answers).p < 0.001
    True
    """
    start = np.where(np.repeat(calibration.measured, calibration.layout.max_score), calibration.thresholds, np.nan)
    return compare_ordered(responses, start, seed)


def quick_ordered_hausman(responses: Responses, start: Floats) -> HausmanTest | None:
    """`compare_ordered` where the data allow it; None otherwise."""
    try:
        return compare_ordered(responses, start)
    except (DesignError, np.linalg.LinAlgError):  # too few people or items, or directions that cannot be told apart
        return None


def rough_hausman(responses: Responses) -> HausmanTest | None:
    """`quick_ordered_hausman` from the thresholds of the chain alone."""
    chain = SpectralPartialCredit(weighting="persons", refine=False, se="none", tol=1e-6, unused="keep")
    try:
        return quick_ordered_hausman(responses, chain.fit(responses).thresholds_)
    except DesignError:  # nothing can be estimated, which other findings tell
        return None


def compare_ordered(responses: Responses, start: Floats, seed: int = 0) -> HausmanTest:
    """`ordered_hausman` from any rough thresholds, NaN for items to be left out."""
    steps = responses.thresholds
    chosen = np.flatnonzero(np.logical_and.reduceat(np.isfinite(start), steps.first))
    rng = np.random.default_rng(seed)
    if len(chosen) > MOST_ITEMS:
        chosen = np.sort(rng.choice(chosen, MOST_ITEMS, replace=False))
    rest: Any = responses if len(chosen) == steps.n_items else responses.take_items(chosen)
    share = min(1.0, MOST_RESPONSES / max(rest.n_responses, 1))
    if share < 1:
        rest = rest.take_persons(rng.random(rest.n_persons) < share)
    rest, kept, _ = estimable(rest)
    chosen = chosen[kept]
    patterns = distinct_rows(rest)
    n = int(patterns.count[patterns.rows.informative].sum())
    if n < LEAST_PEOPLE or len(chosen) < 3:
        raise DesignError(
            f"{responses.source}: {n:,} people have a total score between the lowest and the highest on the "
            f"{len(chosen):,} items that can be compared; a test of conditional against marginal likelihood needs "
            f"{LEAST_PEOPLE} and 3 items."
        )
    with one_blas_thread():
        return by_design(_tested(rest, patterns, start[steps.of_items(chosen)], n, share), responses)


def _tested(rest: Responses, patterns: Patterns, start: Floats, n: int, share: float) -> HausmanTest:
    steps = rest.thresholds
    begun = start - float(steps.averaging() @ start)
    fit = marginal_difficulty(rest.entries, start=begun, nodes=NODES, tol=STEP, max_iter=PASSES, steps=steps)
    beta, sigma = fit.difficulty - fit.population.mean, fit.population.sd
    names, W = _step_directions(rest, patterns, beta)
    likelihood = ExactLikelihood(rest)
    HW = likelihood.information(beta, exact=likelihood.exact_is_affordable()) @ W
    inverse: Any = np.linalg.inv(marginal_step_information(patterns, steps, beta, sigma))
    B = inverse[:, :-1] @ HW
    r = _contributions(rest, patterns, beta, sigma, W, B)
    to_items = np.where(np.arange(steps.n_items)[:, None] == steps.item, 1 / steps.max_score[:, None], 0.0)
    variance = np.einsum("is,st,it->i", to_items, inverse[:-1, :-1], to_items)
    what = f"conditional against marginal thresholds of {steps.n_items:,} items, {n:,} people"
    population = "abilities are not from one normal population, as when forms are for different people"
    finding = partial(parted, "Thresholds", population, "")
    found = Compared(
        names, W, HW, to_items @ beta, variance, n, share, what, finding, rest.frame_kind, to_items=to_items
    )
    return found.concluded(r)


def _step_directions(rest: Responses, patterns: Patterns, beta: Floats) -> tuple[list[str], Floats]:
    """Those of the items' locations, for all thresholds of an item alike; and the thresholds' distances from them."""
    steps, rows = rest.thresholds, patterns.rows
    location = np.add.reduceat(beta, steps.first) / steps.max_score
    person = np.repeat(np.arange(len(rows.counts)), rows.counts)
    mean = np.bincount(person, weights=location[rows.items], minlength=len(rows.counts)) / np.maximum(rows.counts, 1)
    people = patterns.count[person].astype(float)
    counts = np.bincount(rows.items, weights=people, minlength=steps.n_items)
    levels = np.bincount(rows.items, weights=people * mean[person], minlength=steps.n_items) / counts
    names, of_items = directions(location, levels, np.log(counts))
    W = of_items[steps.item]
    apart = beta - location[steps.item]
    if steps.widest > 1 and apart.std() > 0:
        names, W = [*names, "distance of thresholds"], np.column_stack([W, apart / apart.std()])
    return names, W


def marginal_step_information(patterns: Patterns, steps: Thresholds, beta: Floats, sigma: float) -> Floats:
    """The observed information of the marginal likelihood, of all thresholds and of log sigma."""
    grid = normal_population(sigma, NODES)
    theta = grid.nodes
    at = _at_nodes(patterns.rows, steps, beta, grid)
    answered, people = at.answered.toarray(), patterns.count.astype(float)
    w = at.weight * people[:, None]
    n = answered.T @ w  # items x nodes
    size = steps.n_entries
    same = steps.item[:, None] == steps.item
    higher = np.maximum(np.arange(size)[:, None], np.arange(size))  # of two thresholds of one item
    found = np.zeros((size + 1, size + 1))
    inner = found[:size, :size]
    for q in range(len(theta)):
        p = at.above[:, q]
        pairs = (answered * w[:, q : q + 1]).T @ answered
        inner += np.where(same, n[steps.item, q][:, None] * (p[higher] - np.outer(p, p)), 0.0)
        inner -= pairs[np.ix_(steps.item, steps.item)] * np.outer(p, p)
    expected = (at.weight @ at.above.T) * answered[:, steps.item]
    inner += (expected * people[:, None]).T @ expected
    # By log sigma: t = theta (s - E s) of the answers and the ability together, and its derivatives.
    t = theta * at.away
    mean = (at.weight * t).sum(axis=1)
    lost = (((w * t).T @ answered)[:, steps.item] * at.above.T).sum(axis=0) - expected.T @ (people * mean)
    found[:size, size] = found[size, :size] = -(n[steps.item] * theta * at.slope).sum(axis=1) - lost
    found[size, size] = np.sum(w * (theta**2 * at.variance - t - t**2)) + float(people @ mean**2)
    return found


class AtNodes(NamedTuple):
    """The posterior of every row at every node, who answered what, P(X >= k) there, how it rises with ability; and the
    total scores: observed less expected, and their variance."""

    weight: Floats
    answered: Any
    above: Floats
    slope: Floats
    away: Floats
    variance: Floats


def posterior(rows: Rows, steps: Thresholds, beta: Floats, grid: Population) -> tuple[Floats, Floats, Any]:
    """Posterior of each row on the nodes, its log-likelihood but for its own thresholds, and who answered what."""
    answered = csr(rows.indptr.astype(np.int32), rows.items, np.ones(len(rows.items)), steps.n_items)
    log = rows.scores[:, None] * grid.nodes - answered @ log_denominators(beta, grid, steps) + grid.log_weights
    most = log.max(axis=1, keepdims=True)
    weight = np.exp(log - most)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (most + np.log(total)).ravel(), answered


def _at_nodes(rows: Rows, steps: Thresholds, beta: Floats, grid: Population) -> AtNodes:
    theta, cumulated = grid.nodes, steps.cumulated(beta)
    weight, _, answered = posterior(rows, steps, beta, grid)
    p = category_probabilities(np.broadcast_to(theta, (steps.n_items, len(theta))), cumulated[:, None, :])
    k = np.arange(p.shape[2], dtype=float)
    mean = p @ k
    tails, weighted = above(p), above(p * k)
    passed = tails[steps.item, :, steps.level - 1]
    slope = weighted[steps.item, :, steps.level - 1] - passed * mean[steps.item]
    away = rows.scores[:, None] - answered @ mean
    return AtNodes(weight, answered, passed, slope, away, answered @ (p @ k**2 - mean**2))


def _contributions(rest: Responses, patterns: Patterns, beta: Floats, sigma: float, W: Floats, B: Floats) -> Floats:
    """W' r_l of every person."""
    steps, rows, grid = rest.thresholds, patterns.rows, normal_population(sigma, NODES)
    theta = grid.nodes
    at = _at_nodes(rows, steps, beta, grid)
    of_item = np.zeros((steps.n_items, len(theta), W.shape[1]))
    np.add.at(of_item, steps.item, at.above[:, :, None] * B[:-1][:, None, :])
    total = [(at.weight * (at.answered @ of_item[:, :, k])).sum(axis=1) for k in range(W.shape[1])]
    slope = (at.weight * theta * at.away).sum(axis=1)
    found = -np.stack(total, axis=1) - slope[:, None] * B[-1]
    parts = rest.engine.hold(pattern_parts(rows, np.ones(len(rows.counts), dtype=np.int64), steps))
    codes, expanded = threshold_codes(steps), np.concatenate([W, np.zeros((1, W.shape[1]))])
    for places, given in parts.map(_given_score, padded(steps, beta), codes, expanded):
        found[places] += given
    ends = ~rows.informative  # whatever they answered, they had no choice
    signed = np.where(ends[:, None], 0.0, 1.0)
    observed = rest.entries.gather(_observed, steps, _cumulated(steps, W), _cumulated(steps, B[:-1]))
    of_w, of_b = observed[:, : W.shape[1]], observed[:, W.shape[1] :]
    return found[patterns.of_person] - signed[patterns.of_person] * of_w + of_b


def _given_score(part: PatternPart, cumulated: Floats, codes: Ints, W: Floats) -> tuple[Ints, Floats]:
    """sum over thresholds of P(X >= k | s) times W, of every pattern."""
    passed = passed_given(part, cumulated)
    return part.which, np.einsum("rik,rikd->rd", passed, W[codes[part.items]])


def _cumulated(steps: Thresholds, W: Floats) -> Floats:
    """Sums of W over the thresholds up to each category: items x categories x directions."""
    found = np.zeros((steps.n_items, steps.widest + 1, W.shape[1]))
    found[steps.item, steps.level] = W
    return np.cumsum(found, axis=1)


def _observed(block: Block, steps: Thresholds, of_w: Floats, of_b: Floats) -> Floats:
    """The same of the categories answered, of every person."""
    indptr, item, category = answered_items(block, steps)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    each = np.concatenate([of_w[item, category], of_b[item, category]], axis=1)
    return np.stack([np.bincount(person, weights=column, minlength=block.n_persons) for column in each.T], axis=1)
