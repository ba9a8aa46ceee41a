"""Slow, obvious versions of what the package computes from ordered answers: loops over definitions, enumeration.

A table is people x items, whole numbers, NaN = not answered; `thresholds` is a list with the thresholds of each item.
"""

import itertools

import numpy as np


def categories(theta, own):
    """P(X = k), k = 0 to K."""
    weight = np.array([np.exp(k * theta - sum(own[:k])) for k in range(len(own) + 1)])
    return weight / weight.sum()


def dense_rates(X, K, weight=lambda person: 1.0, factor=lambda person, i, k: 1.0):
    """Y by definition: from (i, k) to (j, k') by people with X_i = k and X_j = k' - 1, j another item."""
    where = {state: c for c, state in enumerate((i, k) for i in range(len(K)) for k in range(1, K[i] + 1))}
    Y = np.zeros((len(where), len(where)))
    for person in range(len(X)):
        for i, j in itertools.permutations(range(len(K)), 2):
            x, y = X[person, i], X[person, j]
            if np.isnan(x) or np.isnan(y) or x == 0 or y == K[j]:
                continue
            k, kk = int(x), int(y) + 1
            Y[where[i, k], where[j, kk]] += weight(person) * factor(person, i, k) * factor(person, j, kk)
    return Y


def conditional(thresholds, score):
    """Every pattern of this score, and its probability given the score."""
    found = [x for x in itertools.product(*(range(len(own) + 1) for own in thresholds)) if sum(x) == score]
    weight = np.array([np.exp(-sum(sum(own[:k]) for own, k in zip(thresholds, x, strict=True))) for x in found])
    return np.array(found), weight / weight.sum()


class Enumerated:
    """Log-likelihood, scores of people and information by going through all answers with the same total score."""

    def __init__(self, table, max_scores):
        first = np.concatenate([[0], np.cumsum(max_scores)])
        self.rows = []
        for row in table:
            seen = np.flatnonzero(~np.isnan(row))
            ways = itertools.product(*(range(max_scores[i] + 1) for i in seen))
            alike = [way for way in ways if sum(way) == np.nansum(row)]
            passed = np.zeros((len(alike), first[-1]))
            for k, way in enumerate(alike):
                for i, x in zip(seen, way, strict=True):
                    passed[k, first[i] : first[i] + x] = 1
            self.rows.append((passed, passed[alike.index(tuple(int(row[i]) for i in seen))]))

    def at(self, beta):
        loglik, scores, information = 0.0, [], 0.0
        for passed, mine in self.rows:
            weight = np.exp(-passed @ beta)
            p = weight / weight.sum()
            loglik += -mine @ beta - np.log(weight.sum())
            expected = p @ passed
            scores.append(expected - mine)
            information = information + (passed.T * p) @ passed - np.outer(expected, expected)
        return loglik, np.array(scores), information


def draw(rng, theta, thresholds, missing=0.0):
    """A table of answers under the partial credit model."""
    X = np.array([[rng.choice(len(own) + 1, p=categories(t, own)) for own in thresholds] for t in theta], dtype=float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def pair_moments(thresholds, score):
    """P(X_i >= k | s) and P(X_i >= k, X_j >= k' | s) from symmetric functions, by products of polynomials."""
    polynomials = [np.exp(-np.concatenate([[0.0], np.cumsum(own)])) for own in thresholds]

    def without(*left_out):
        product = np.ones(1)
        for i, one in enumerate(polynomials):
            product = product if i in left_out else np.convolve(product, one)
        return product

    def at(polynomial, power):
        return polynomial[power] if 0 <= power < len(polynomial) else 0.0

    gamma = without()[score]
    places = [(i, k) for i, own in enumerate(thresholds) for k in range(1, len(own) + 1)]
    first, second = np.zeros(len(places)), np.zeros((len(places), len(places)))
    others = {(i, j): without(i, j) for i in range(len(thresholds)) for j in range(i, len(thresholds))}
    for a, (i, k) in enumerate(places):
        first[a] = sum(polynomials[i][x] * at(others[i, i], score - x) for x in range(k, len(polynomials[i]))) / gamma
    for a, (i, k) in enumerate(places):
        for b, (j, kk) in enumerate(places):
            if i == j:
                second[a, b] = first[max(a, b)]
                continue
            rest = others[min(i, j), max(i, j)]
            for x in range(k, len(polynomials[i])):
                for y in range(kk, len(polynomials[j])):
                    second[a, b] += polynomials[i][x] * polynomials[j][y] * at(rest, score - x - y) / gamma
    return first, second


def scores_and_information(table, max_scores, beta, weights=None):
    """Scores of people, times their weights, and the exact information, by items answered and score."""
    first = np.concatenate([[0], np.cumsum(max_scores)])
    weights = np.ones(len(table)) if weights is None else weights
    scores, information = np.zeros((len(table), first[-1])), np.zeros((first[-1], first[-1]))
    known = {}
    for person, row in enumerate(table):
        seen = tuple(np.flatnonzero(~np.isnan(row)))
        key = (seen, int(np.nansum(row)))
        where = np.concatenate([np.arange(first[i], first[i + 1]) for i in seen]) if seen else np.zeros(0, dtype=int)
        if key not in known:
            known[key] = pair_moments([beta[first[i] : first[i + 1]] for i in seen], key[1])
        expected, pairs = known[key]
        passed = np.concatenate([np.arange(1, max_scores[i] + 1) <= row[i] for i in seen]) if seen else np.zeros(0)
        scores[person, where] = weights[person] * (expected - passed)
        information[np.ix_(where, where)] += weights[person] * (pairs - np.outer(expected, expected))
    return scores, information


def sandwich(table, max_scores, beta, *, weights=None, design=None, fixed=None, robust=True):
    """H^+ M H^+ (or H^+) of the thresholds by exact pair moments: of the free ones beside fixed ones, of A eta, or with
    the mean location of the items at zero."""
    scores, information = scores_and_information(table, max_scores, beta, weights)
    a = np.eye(len(beta)) if design is None else np.asarray(design)
    if fixed is not None:
        a = a[:, ~fixed]
    inverse = a @ np.linalg.pinv(a.T @ information @ a, rcond=1e-10, hermitian=True) @ a.T
    covariance = inverse @ scores.T @ scores @ inverse if robust else inverse
    if fixed is not None:
        return covariance
    item = np.repeat(np.arange(len(max_scores)), max_scores)
    mean = 1 / (len(max_scores) * np.asarray(max_scores)[item])
    center = np.eye(len(beta)) - mean  # every row takes the mean location away
    return center @ covariance @ center.T
