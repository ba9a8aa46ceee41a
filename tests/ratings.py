"""Ratings for tests: responses with facets, simulated and from tables."""

import itertools
from dataclasses import replace

import numpy as np

from spectral_irt import Responses
from spectral_irt.data.block import Thresholds
from spectral_irt.data.facets import Facets


def ratings(person, item, facets, x):
    """Responses of these columns; `facets` maps names to columns."""
    found = [np.unique(np.asarray(column), return_inverse=True) for column in (item, *facets.values())]
    codes = np.stack([code.ravel() for _, code in found], axis=1)
    virtual, place = np.unique(codes, axis=0, return_inverse=True)
    made = Facets(("item", *facets), tuple(labels.astype(object) for labels, _ in found), virtual)
    highest = np.zeros(len(made.items), dtype=int)
    np.maximum.at(highest, codes[:, 0], np.asarray(x))
    persons, who = np.unique(np.asarray(person), return_inverse=True)
    named = {"persons": persons.astype(object), "items": made.labels(), "thresholds": Thresholds(highest[made.item])}
    return replace(Responses.from_codes(who, place.ravel(), np.asarray(x), **named), facets=made)


def simulated(meets, n_items, categories, seed, severity=None, sd=1.2):
    """Each person is rated by the raters of `meets` on all items; the ratings, severities, thresholds and abilities."""
    rng = np.random.default_rng(seed)
    n_raters = 1 + max(max(own) for own in meets)
    rho = rng.normal(0, 0.6, n_raters) if severity is None else np.asarray(severity, dtype=float)
    rho = rho - rho.mean()
    beta = np.sort(rng.normal(0, 1, (n_items, categories - 1)), axis=1)
    beta -= beta.mean()
    theta = rng.normal(0, sd, len(meets))
    who = np.repeat(np.arange(len(meets)), [n_items * len(own) for own in meets])
    rater = np.concatenate([np.repeat(own, n_items) for own in meets])
    item = np.tile(np.arange(n_items), sum(map(len, meets)))
    logit = np.cumsum((theta[who] - rho[rater])[:, None] - beta[item], axis=1)
    p = np.exp(np.concatenate([np.zeros((len(who), 1)), logit], axis=1))
    p /= p.sum(axis=1, keepdims=True)
    x = (rng.random((len(who), 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return ratings(who, item, {"rater": rater}, x), rho, beta, theta


def given_totals(calibration, responses):
    """Of every person: virtual items, ratings, and all ratings with the same total, with their probabilities."""
    layout = calibration.layout
    for row in responses.to_dense():
        rated = np.flatnonzero(~np.isnan(row))
        x = row[rated]
        patterns = np.array(list(itertools.product(*(range(m + 1) for m in layout.max_score[rated]))))
        patterns = patterns[patterns.sum(axis=1) == x.sum()]
        cumulated = layout.cumulated(calibration.facets.likeliest)[rated]
        weight = np.exp(-np.array([[cumulated[k, c] for k, c in enumerate(one)] for one in patterns]).sum(axis=1))
        yield rated, x, weight / weight.sum(), patterns
