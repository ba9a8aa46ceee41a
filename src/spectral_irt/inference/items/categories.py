"""The categories of ordered answers: how many people gave each, how able they are, and whether the model expects it."""

from __future__ import annotations

import numpy as np

from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.model import category_probabilities
from spectral_irt.persons.abilities import checked
from spectral_irt.persons.residuals import answers_at
from spectral_irt.tables import Columns


def category_columns(responses: Responses, thresholds: Floats, ability: Floats) -> Columns:
    """`item, category, code, n, share, mean_ability, infit`: a row for each category of each item.

    `n` people gave the answer, a `share` of those who answered the item. `mean_ability`, in logits, should rise with
    the category. Infit of category k compares how far its answers are from what is expected with how far the model
    lets them be,

        sum over answers k of (k - E)^2 / sum over all answers of P(k) (k - E)^2,

    1 where the model holds. Both are of people with neither the lowest nor the highest score, whatever these do fits.

    References
    ----------
    Wright & Masters (1982), Rating Scale Analysis, ch. 5; Linacre (2002), Optimizing rating scale category
    effectiveness, Journal of Applied Measurement, 3, 85-106.
    """
    layout, beta = responses.thresholds, checked(responses, thresholds)
    n, theta, square, expected = responses.entries.sum(_category_sums, beta, layout, persons=(ability,))
    counts, codes = responses.category_counts, responses.category_codes()
    item, category = np.nonzero(np.isfinite(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {
            "code": codes,
            "n": counts,
            "share": counts / np.nansum(counts, axis=1, keepdims=True),
            "mean_ability": theta / n,
            "infit": square / expected,
        }
    columns = {name: values[item, category] for name, values in found.items()}
    return {"item": responses.items[item], "category": category, **columns, "n": columns["n"].astype(np.int64)}


def _category_sums(block: Block, ability: Floats, beta: Floats, layout: Thresholds) -> Floats:
    """Of items x categories: answers, sums of abilities, of squared residuals, and of those the model expects."""
    size = layout.widest + 1
    total, cumulated = np.zeros((4, layout.n_items, size)), layout.cumulated(np.nan_to_num(beta))
    for one in answers_at(block, ability, beta, layout):
        place = one.item.astype(np.int64) * size + one.x.astype(np.int64)
        for row, values in zip(total, (None, one.theta, (one.x - one.mean) ** 2), strict=False):
            row += np.bincount(place, values, layout.n_items * size).reshape(-1, size)
        p = category_probabilities(one.theta, cumulated[one.item])
        for k in range(size):
            total[3, :, k] += np.bincount(one.item, p[:, k] * (k - one.mean) ** 2, layout.n_items)
    return total
