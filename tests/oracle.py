"""Plain likelihoods to compare with: every pattern of answers is listed, and Newton's method goes to the maximum.

A table is persons x items in whole numbers, NaN = not answered; `most` is the highest category of each item. Thresholds
stand item after item and are beta = A eta + offset. Nothing here is used outside the tests.
"""

from itertools import product
from typing import NamedTuple

import numpy as np


class Maximum(NamedTuple):
    """Where a likelihood is highest: parameters, thresholds, scores of persons (times weight) and information."""

    eta: np.ndarray
    beta: np.ndarray
    scores: np.ndarray
    information: np.ndarray


def thresholds_passed(rows, most):
    """1 for each threshold that an answer has passed."""
    level = np.concatenate([np.arange(1, k + 1) for k in most])
    return (np.repeat(np.nan_to_num(rows), most, axis=1) >= level).astype(float)


def conditional_point(table, most, beta, weights):
    """Scores of persons and information given the total scores, from all patterns of the same total."""
    passed = thresholds_passed(table, most)
    scores = np.zeros(passed.shape)
    information = np.zeros((len(beta), len(beta)))
    seen = ~np.isnan(table)
    for mask in np.unique(seen, axis=0):
        members = np.flatnonzero((seen == mask).all(axis=1))
        patterns = np.array(
            list(product(*(range(k + 1) if there else (0,) for k, there in zip(most, mask, strict=True))))
        )
        totals = patterns.sum(axis=1)
        every = thresholds_passed(patterns.astype(float), most)
        density = np.exp(-every @ beta)
        person_totals = np.nansum(table[members], axis=1)
        for total in np.unique(person_totals):
            alike = every[totals == total]
            p = density[totals == total] / density[totals == total].sum()
            mean = p @ alike
            who = members[person_totals == total]
            scores[who] = weights[who, None] * (mean - passed[who])
            information += weights[who].sum() * ((alike.T * p) @ alike - np.outer(mean, mean))
    return scores, information


def conditional_maximum(table, most, *, design=None, offset=0.0, weights=None):
    """The highest conditional likelihood; directions that change nothing stay at zero."""
    a = np.eye(sum(most)) if design is None else design
    weights = np.ones(len(table)) if weights is None else weights
    eta = np.zeros(a.shape[1])
    for _ in range(50):
        beta = a @ eta + offset
        scores, information = conditional_point(table, most, beta, weights)
        inside = a.T @ information @ a
        step = np.linalg.pinv(inside, rcond=1e-10, hermitian=True) @ (a.T @ scores.sum(axis=0))
        eta = eta + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-11:
            break
    beta = a @ eta + offset
    return Maximum(eta, beta, *conditional_point(table, most, beta, weights))


def middle_of(scores, cluster=None):
    """Sum of squared scores of persons, or of clusters with C / (C - 1)."""
    if cluster is None:
        return scores.T @ scores
    sums = np.array([scores[cluster == label].sum(axis=0) for label in np.unique(cluster)])
    return len(sums) / (len(sums) - 1) * sums.T @ sums


def covariance_of(found, *, design=None, robust=True, cluster=None):
    """Of the thresholds: the sandwich, or the inverse information."""
    a = np.eye(len(found.beta)) if design is None else design
    inverse = a @ np.linalg.pinv(a.T @ found.information @ a, rcond=1e-10, hermitian=True) @ a.T
    return inverse @ middle_of(found.scores, cluster) @ inverse if robust or cluster is not None else inverse


def centering(most):
    """Takes the mean location of the items away from thresholds."""
    mean = np.concatenate([np.full(k, 1 / (k * len(most))) for k in most])
    return np.eye(sum(most)) - mean


def averaging(most):
    """Locations of items, the means of their thresholds."""
    owner = np.repeat(np.arange(len(most)), most)
    return (owner == np.arange(len(most))[:, None]) / np.asarray(most)[:, None]


NODES = np.linspace(-6.0, 6.0, 121)  # in standard deviations of the population


def posterior_on_nodes(table, most, beta, mean, sd):
    """P(node | answers), persons x nodes; P(X >= k) at each node, thresholds x nodes; and log-likelihoods."""
    theta = mean + sd * NODES
    log_weight = -(NODES**2) / 2 - np.log(np.sum(np.exp(-(NODES**2) / 2)))
    log_p = np.tile(log_weight, (len(table), 1))
    passing = []
    first = np.concatenate([[0], np.cumsum(most)])
    for item, k in enumerate(most):
        cumulated = np.concatenate([[0.0], np.cumsum(beta[first[item] : first[item + 1]])])
        log_category = np.arange(k + 1)[:, None] * theta - cumulated[:, None]
        log_category = log_category - np.logaddexp.reduce(log_category, axis=0)
        p = np.exp(log_category)
        passing += [p[level:].sum(axis=0) for level in range(1, k + 1)]
        there = ~np.isnan(table[:, item])
        log_p[there] += log_category[table[there, item].astype(int)]
    top = np.logaddexp.reduce(log_p, axis=1)
    return np.exp(log_p - top[:, None]), np.array(passing), top


def marginal_scores(table, most, parameters, weights, design):
    """Scores of persons for eta (population with mean zero) and log sd."""
    beta = design @ parameters[:-1]
    posterior, passing, _ = posterior_on_nodes(table, most, beta, 0.0, np.exp(parameters[-1]))
    seen = np.repeat(~np.isnan(table), most, axis=1)
    score = np.where(seen, posterior @ passing.T, 0.0) - thresholds_passed(table, most)
    of_sd = posterior @ (NODES**2) - 1
    return weights[:, None] * np.column_stack([score @ design, of_sd])


def marginal_maximum(table, most, *, weights=None, design=None):
    """Parameters, scores and observed information (by differences of the gradient) of marginal likelihood."""
    weights = np.ones(len(table)) if weights is None else weights
    a = np.eye(sum(most)) if design is None else design

    def gradient(parameters):
        return marginal_scores(table, most, parameters, weights, a).sum(axis=0)

    def observed(parameters, step=1e-5):
        rows = [
            gradient(parameters - step * one) - gradient(parameters + step * one) for one in np.eye(len(parameters))
        ]
        return np.array(rows) / (2 * step)

    here = np.zeros(a.shape[1] + 1)
    for _ in range(50):
        step = np.linalg.solve(observed(here), gradient(here))
        here = here + step * min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-9:
            break
    return here, marginal_scores(table, most, here, weights, a), observed(here)


def latent_mean_and_sd(table, most, beta, weights):
    """The normal population under which answers are most likely, by EM to the end."""
    mean, sd = 0.0, 1.0
    for _ in range(3000):
        posterior, _, _ = posterior_on_nodes(table, most, beta, mean, sd)
        theta = mean + sd * NODES
        share = weights / weights.sum()
        new = float(share @ (posterior @ theta))
        spread = float(np.sqrt(share @ (posterior @ (theta - new) ** 2)))
        done = max(abs(new - mean), abs(spread - sd)) < 1e-10
        mean, sd = new, spread
        if done:
            break
    return mean, sd
