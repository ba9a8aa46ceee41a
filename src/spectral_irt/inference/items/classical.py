"""The classical analysis of every item: how it was answered, and whether it goes with the others.

With x the answer, K the highest category of its item, s and n the total and the highest possible score of a person, the
rest of an answer is r = (s - x) / (n - K), the share of the other points; on complete data its correlation with x is
the corrected item-total correlation. Beside it stands Cronbach's alpha of the test without the item.

`Analysis.item_analysis` shows these; the test of reversed items (`reversed_items.py`) and the distractors go on from
the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, answered_items
from spectral_irt.inference.items.rest_ability import AbilitySums, person_runs
from spectral_irt.persons.abilities import thresholds_of
from spectral_irt.tables import Columns

COMPLETE = 0.5  # of the people must have answered every item for an alpha over these
FLAT = 1e-9  # a variance below this is one of rounding


@dataclass(frozen=True, eq=False)
class ItemAnalysis:
    """What `item_analysis` found, one number an item; NaN where there is none.

    `item_rest` is the correlation of the answers with the share of each person's other points; `alpha_if_deleted`
    Cronbach's alpha of the test without the item, where there is an alpha. `by_category`, items x categories, has those
    who gave each answer, with their abilities by the other answers; and of the answers with a rest there are `rest_n`,
    with the sums `rest` of r and `rest_square` of r^2 over them.
    """

    item_rest: Floats
    alpha_if_deleted: Floats
    by_category: AbilitySums
    rest_n: Floats
    rest: Floats
    rest_square: Floats


class RestSums(NamedTuple):
    """Sums over the answers with a rest, by item."""

    n: Floats
    x: Floats
    x2: Floats
    r: Floats
    r2: Floats
    x_r: Floats


def item_analysis(responses: Responses, thresholds: Floats) -> ItemAnalysis:
    """The classical analysis of every item; thresholds only tell how able the other answers make a person."""
    layout = responses.thresholds
    beta = thresholds_of(responses, thresholds)
    of_items, by_category = responses.entries.sum(_rest_sums, beta, layout.mean(beta), layout)
    sums = RestSums(*of_items)
    n = sums.n
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.maximum(n * sums.x2 - sums.x**2, 0)) * np.sqrt(np.maximum(n * sums.r2 - sums.r**2, 0))
        item_rest = np.where(spread > FLAT * np.maximum(n, 1), (n * sums.x_r - sums.x * sums.r) / spread, np.nan)
    return ItemAnalysis(
        item_rest=item_rest,
        alpha_if_deleted=cronbach_alpha(responses).if_deleted,
        by_category=AbilitySums(*by_category),
        rest_n=n,
        rest=sums.r,
        rest_square=sums.r2,
    )


def _rest_sums(block: Block, beta: Floats, location: Floats, layout: Thresholds) -> tuple[Floats, Floats]:
    """The fields of `RestSums`; and over the answers to items with a difficulty those of `AbilitySums`."""
    m = layout.n_items
    width = layout.widest + 1
    of_items = np.zeros((6, m))
    by_category = np.zeros((3, m * width))
    for run in person_runs(block, beta, location, layout):
        x = run.rest.x
        r = run.rest.share
        for row, values in zip(of_items, (None, x, x * x, r, r * r, x * r), strict=True):
            row += np.bincount(run.rest.item, weights=values, minlength=m)
        measured = run.measured
        ability = measured.ability
        cell = measured.item.astype(np.int64) * width + measured.x.astype(np.int64)
        for row, values in zip(by_category, (None, ability, ability**2), strict=True):
            row += np.bincount(cell, weights=values, minlength=m * width)
    return of_items, by_category.reshape(3, m, width)


class Alpha(NamedTuple):
    """Cronbach's alpha, None where there is none, and that of all items but each."""

    alpha: float | None
    if_deleted: Floats


def cronbach_alpha(responses: Responses, weights: Floats | None = None) -> Alpha:
    """alpha = k / (k - 1) (1 - sum of the items' variances / variance of the total), over the people who answered
    every item; and that of all items but each. Of right and wrong answers it is KR-20.

    None for fewer than two items or people, for equal scores, and where fewer than half of the people answered all.
    """
    if_deleted = np.full(responses.n_items, np.nan)
    answered = responses.item_counts > 0
    complete = (responses.counts == answered.sum()) & (responses.counts > 0)
    m = int(answered.sum())
    n = int(complete.sum())
    if m < 2 or n < 2 or n < COMPLETE * np.count_nonzero(responses.counts):
        return Alpha(None, if_deleted)
    weight = complete * (np.ones(len(complete)) if weights is None else weights)
    weight = weight / weight.sum()
    scores = responses.scores.astype(np.float64)
    mean, mean_square, mean_cross = responses.entries.sum(
        _sums_with_score, responses.thresholds, persons=(weight, scores)
    )
    variance = mean_square - mean**2
    mean_score = float(weight @ scores)
    score_variance = float(weight @ (scores - mean_score) ** 2)
    if score_variance <= FLAT:
        return Alpha(None, if_deleted)
    if m > 2:
        rest_variance = score_variance + variance - 2 * (mean_cross - mean * mean_score)
        with np.errstate(divide="ignore", invalid="ignore"):
            without = (m - 1) / (m - 2) * (1 - (variance.sum() - variance) / rest_variance)
        if_deleted[answered] = np.where(np.isfinite(without), without, np.nan)[answered]
    return Alpha(float(m / (m - 1) * (1 - variance.sum() / score_variance)), if_deleted)


def _sums_with_score(block: Block, weight: Floats, scores: Floats, layout: Thresholds) -> Floats:
    """Weighted sums over the answers to each item: x, x^2, x times the total score."""
    indptr, item, x = answered_items(block, layout)
    counts = np.diff(indptr)
    weighted = np.repeat(weight, counts) * x
    score = np.repeat(scores, counts)
    values = (weighted, weighted * x, weighted * score)
    return np.array([np.bincount(item, weights=each, minlength=layout.n_items) for each in values])


def item_analysis_columns(
    calibration: Calibration,
    responses: Responses,
    analysis: ItemAnalysis,
    discrimination: Floats | None = None,
    blanks: Ints | None = None,
) -> Columns:
    """`item, n, p_correct` (in several categories `mean_score, max_score`), `item_rest, alpha_if_deleted`, where known
    `discrimination, omitted, not_reached`, and in several categories `share_0, share_1, ...`."""
    layout = responses.thresholds
    n = responses.item_counts
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = responses.item_scores / n
        shares = responses.category_counts / n[:, None]
    columns: Columns = {"item": calibration.labels, "n": n}
    if layout.binary:
        columns |= {"p_correct": mean}
    else:
        columns |= {"mean_score": mean, "max_score": layout.max_score}
    columns |= {"item_rest": analysis.item_rest, "alpha_if_deleted": analysis.alpha_if_deleted}
    if discrimination is not None:
        columns["discrimination"] = np.where(calibration.measured, discrimination, np.nan)
    if blanks is not None:
        columns |= {"omitted": blanks[0], "not_reached": blanks[1]}
    if not layout.binary:
        columns |= {f"share_{k}": shares[:, k] for k in range(shares.shape[1])}
    return columns
