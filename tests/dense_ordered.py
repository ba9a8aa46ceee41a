"""Slow, obvious versions of what the package computes from ordered answers: loops over definitions, enumeration.

A table is people x items, whole numbers, NaN = not answered; `thresholds` is a list with the thresholds of each item.
"""

from __future__ import annotations

import itertools

import numpy as np


def states(thresholds):
    """The states of the chain: (item, k) for k = 1 to K_i, item after item."""
    return [(i, k) for i, own in enumerate(thresholds) for k in range(1, len(own) + 1)]


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


def patterns(K, score):
    return [x for x in itertools.product(*(range(k + 1) for k in K)) if sum(x) == score]


def conditional(thresholds, score):
    """Every pattern of this score, and its probability given the score."""
    K = [len(own) for own in thresholds]
    found = patterns(K, score)
    weight = np.array([np.exp(-sum(sum(own[:k]) for own, k in zip(thresholds, x, strict=True))) for x in found])
    return np.array(found), weight / weight.sum()


def conditional_loglik(X, thresholds):
    """log P(x_l | total score, items answered), added over people."""
    total = 0.0
    for row in X:
        seen = np.flatnonzero(~np.isnan(row))
        if not len(seen):
            continue
        found, p = conditional([thresholds[i] for i in seen], int(row[seen].sum()))
        total += np.log(p[np.all(found == row[seen], axis=1)][0])
    return total


def draw(rng, theta, thresholds, missing=0.0):
    """A table of answers under the partial credit model."""
    X = np.array([[rng.choice(len(own) + 1, p=categories(t, own)) for own in thresholds] for t in theta], dtype=float)
    X[rng.random(X.shape) < missing] = np.nan
    return X
