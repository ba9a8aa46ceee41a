"""The categories of every item: how many chose each, how able they are, and how they fit.

Infit of category k compares how far its answers are from what is expected with how far the model lets them be,

    sum over answers k of (k - E)^2 / sum over all answers of P(k) (k - E)^2,

1 where the model holds; outfit has both over the variance of the answer (Wright & Masters 1982, ch. 5). All are of
people with neither the lowest nor the highest score, whatever these do fits. `Analysis.categories` shows them, and
`rating_tables.py` those of raters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.model import category_probabilities
from spectral_irt.persons.abilities import thresholds_of
from spectral_irt.persons.residuals import LEAST, answers_at
from spectral_irt.tables import Columns


class CategorySums(NamedTuple):
    """Sums over the answers in each category, items x categories, of people with neither the lowest nor the highest
    score: answers, abilities, squared residuals, and those over the variance; and what the model expects of each at
    these abilities, with the probability of the category for its answers."""

    n: Floats
    ability: Floats
    square: Floats
    square_over_v: Floats
    expected_n: Floats
    expected_ability: Floats
    expected_square: Floats
    expected_square_over_v: Floats


def category_sums(responses: Responses, thresholds: Floats, ability: Floats) -> CategorySums:
    beta = thresholds_of(responses, thresholds)
    return CategorySums(*responses.entries.sum(_category_sums, beta, responses.thresholds, persons=(ability,)))


def _category_sums(block: Block, ability: Floats, beta: Floats, layout: Thresholds) -> Floats:
    """The fields of `CategorySums`."""
    width = layout.widest + 1
    cumulated = layout.cumulated(np.nan_to_num(beta))
    sums = np.zeros((len(CategorySums._fields), layout.n_items, width))
    observed = sums[:4]
    expected = sums[4:]
    for answers in answers_at(block, ability, beta, layout):
        cell = answers.item.astype(np.int64) * width + answers.x.astype(np.int64)
        v = np.maximum(answers.variance, LEAST)
        square = (answers.x - answers.mean) ** 2
        for row, values in zip(observed, (None, answers.theta, square, square / v), strict=True):
            row += np.bincount(cell, values, layout.n_items * width).reshape(-1, width)
        p = category_probabilities(answers.theta, cumulated[answers.item])
        for k in range(width):
            p_square = p[:, k] * (k - answers.mean) ** 2
            expectations = (p[:, k], p[:, k] * answers.theta, p_square, p_square / v)
            for row, values in zip(expected, expectations, strict=True):
                row[:, k] += np.bincount(answers.item, values, layout.n_items)
    return sums


def category_columns(responses: Responses, thresholds: Floats, ability: Floats) -> Columns:
    """`item, category, code, n, share, mean_ability, expected_ability, infit, outfit`: a row for each category of each
    item.

    `n` people gave the answer, a `share` of those who answered the item. `mean_ability`, in logits, should rise with
    the category, and be near `expected_ability`, the mean that the model expects.

    References
    ----------
    Wright & Masters (1982), Rating Scale Analysis, ch. 5; Linacre (2002), Optimizing rating scale category
    effectiveness, Journal of Applied Measurement, 3, 85-106.
    """
    sums = category_sums(responses, thresholds, ability)
    counts = responses.category_counts
    item, category = np.nonzero(np.isfinite(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        tables = {
            "code": responses.category_codes(),
            "n": counts,
            "share": counts / np.nansum(counts, axis=1, keepdims=True),
            "mean_ability": sums.ability / sums.n,
            "expected_ability": sums.expected_ability / sums.expected_n,
            # NaN where only people with extreme scores gave the answer.
            "infit": np.where(sums.n > 0, sums.square / sums.expected_square, np.nan),
            "outfit": np.where(sums.n > 0, sums.square_over_v / sums.expected_square_over_v, np.nan),
        }
    columns = {name: values[item, category] for name, values in tables.items()}
    return {"item": responses.items[item], "category": category, **columns, "n": columns["n"].astype(np.int64)}
