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
