"""Agreement of raters: how often two gave the same rating where they met, beside what the model expects.

Given a person's total, P(X_a = X_b | total) is a contour sum of q_ac q_bc over the categories c, as of
`fit/level_fit.py`. `Analysis.facet` shows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.exact import Contour, PatternPart, padded_sums, pattern_parts
from spectral_irt.data import Responses
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, answered_items, rows_of
from spectral_irt.data.patterns import distinct_sets
from spectral_irt.inference.fit.level_fit import at_points
from spectral_irt.tables import Columns


def agreement(calibration: Calibration, responses: Responses, name: str) -> Columns:
    """How often two levels of a facet gave the same rating where they met, over the same person and item.

    For each level: `pairs`, `agreement` (share of pairs that are exactly alike) and `expected`, by the model given the
    person's total.
    """
    assert calibration.facets is not None
    facets = calibration.facets.facets
    layout = responses.thresholds
    beta = np.nan_to_num(calibration.facets.likeliest)
    labels, level = facets.column(name)
    # What was rated: virtual items that differ in the level of this facet alone have the same thing.
    other_facets = [k for k, facet in enumerate(facets.names) if facet != name]
    thing = np.unique(facets.codes[:, other_facets], axis=0, return_inverse=True)[1].ravel()
    pairs, alike, extreme = responses.entries.sum(_observed_pairs, layout, thing, level, len(labels))
    patterns = distinct_sets(responses)
    parts = responses.engine.hold(pattern_parts(patterns.rows, patterns.count, layout))
    with_padding = (np.append(thing, thing.max(initial=-1) + 1), np.append(level, len(labels)))
    expected = extreme  # where the total is the lowest or the highest, all ratings are alike
    for part in parts.map(_expected_pairs, padded_sums(layout, beta), *with_padding):
        expected = expected + part[:-1]
    with np.errstate(invalid="ignore"):
        return {"pairs": pairs.astype(np.int64), "agreement": alike / pairs, "expected": expected / pairs}


def _observed_pairs(block: Block, layout: Thresholds, thing: Ints, level: Ints, n_levels: int) -> Floats:
    """Pairs of ratings of one person and thing by two levels, by level: how many, how many alike, and how many of
    people with an extreme total."""
    rows = rows_of(block, layout)
    indptr, items, x = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    meeting = number_of(person * np.int64(thing.max(initial=0) + 1) + thing[items])  # of raters, over person and thing
    pairs = np.bincount(meeting)[meeting] - 1.0  # of each rating, with the others there
    rating = number_of(meeting * np.int64(layout.widest + 1) + x)
    alike = np.bincount(rating)[rating] - 1.0
    extreme = np.where(rows.informative[person], 0.0, alike)
    return np.array([np.bincount(level[items], each, n_levels) for each in (pairs, alike, extreme)])


def number_of(keys: NDArray[Any]) -> Ints:
    """Equal keys have the same number, from 0."""
    return np.unique(keys, return_inverse=True)[1].ravel()


def _expected_pairs(part: PatternPart, cumulated: Floats, thing: Ints, level: Ints) -> Floats:
    """Pairs that are expected to be alike given the total, by level; the last is that of the padding."""
    items = part.items.T
    contour = Contour.of(cumulated.T[1:, items], part.scores, part.max_scores)
    person = np.arange(items.shape[1])
    meeting = number_of((person * (thing.max(initial=0) + 1) + thing[items]).ravel())
    alike = np.zeros(items.shape)
    for weight, q in zip(contour.weight, at_points(contour), strict=True):
        for q_of_category in q:
            flat = q_of_category.ravel()
            together = np.bincount(meeting, flat.real) + 1j * np.bincount(meeting, flat.imag)
            others = together[meeting].reshape(q_of_category.shape) - q_of_category
            alike += (weight * q_of_category * others).real
    by_level = np.bincount(level[items].ravel(), (alike * part.people).ravel(), minlength=int(level.max()) + 1)
    return by_level.astype(np.float64)
