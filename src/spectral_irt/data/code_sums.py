"""Total scores in the codes of the questionnaire: ten items coded 1 to 5 have sums from 10 to 50, where categories are
counted from 0 to 4 and scores from 0 to 40.

Category k of item i has the code c_ik. Where codes rise by one, c_ik = c_i0 + k, a score s is the sum s + sum_i c_i0.
Where a category that nobody used was renumbered (codes 1, 2, 3, 5), several sums may have one score: the excess
c_ik - c_i0 - k is added, and the sums of a score run from the least to the largest excess with which it can be had.
Items that were turned round, or recoded, have the codes that they were given by that. Where categories were merged
(`--collapse`) one of them has several codes, and the sums of a score run from the lowest of these to the highest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectral_irt.data.block import Block, Floats, Ints, Thresholds, rows_of
from spectral_irt.data.labels import Labels
from spectral_irt.errors import Finding
from spectral_irt.text import listed


class CodeSums(NamedTuple):
    """The lowest and the highest sum of codes with which each score from 0 on can be had."""

    low: Ints
    high: Ints

    @property
    def ambiguous(self) -> bool:
        """Whether some sum of codes belongs to several scores."""
        return bool((self.low < self.high).any())

    def score_of(self, total: int) -> int | None:
        """The score of a sum of codes; None where there is no such sum, or it belongs to several scores."""
        places = np.flatnonzero((self.low <= total) & (total <= self.high))
        return int(places[0]) if len(places) == 1 else None


def counted_from_zero(codes: Floats, max_score: Ints) -> bool:
    """Whether all categories of these items are coded 0, 1, ..., so that sums of codes are the scores."""
    categories = np.arange(codes.shape[1])
    is_category = categories <= max_score[:, None]
    return bool(np.all((codes == categories) | ~is_category))


def code_sums(codes: Floats, max_score: Ints, codes_high: Floats | None = None) -> CodeSums | None:
    """The sums of codes of every total score on these items; None where an item has a category without a code.
    `codes_high` are the highest codes of the categories, where several were merged.

    >>> code_sums(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 5.0]]), np.array([2, 2]))
    CodeSums(low=array([2, 3, 4, 5, 8]), high=array([2, 3, 6, 7, 8]))
    """
    categories = np.arange(codes.shape[1])
    is_category = categories <= max_score[:, None]
    if not np.isfinite(codes[is_category]).all():
        return None
    highest = codes if codes_high is None else codes_high
    excess = np.where(is_category, codes - codes[:, :1] - categories, 0.0)
    excess_high = np.where(is_category, highest - codes[:, :1] - categories, 0.0)
    low = np.zeros(1)
    high = np.zeros(1)
    for row, row_high, most in zip(excess, excess_high, max_score.tolist(), strict=True):
        low = _extended(low, row[: most + 1], np.minimum, np.inf)
        high = _extended(high, row_high[: most + 1], np.maximum, -np.inf)
    score = np.arange(len(low)) + codes[:, 0].sum()
    return CodeSums((score + low).astype(np.int64), (score + high).astype(np.int64))


def _extended(sums: Floats, item: Floats, better: np.ufunc, worst: float) -> Floats:
    """The least, or largest, excess of every score with one more item."""
    longer = np.full(len(sums) + len(item) - 1, worst)
    for category, excess in enumerate(item.tolist()):
        place = slice(category, category + len(sums))
        longer[place] = better(longer[place], sums + excess)
    return longer


def code_findings(
    labels: Labels, codes: Floats, max_score: Ints, codes_high: Floats | None = None
) -> tuple[Finding, ...]:
    """Sums of codes that may have several scores, and sums that cannot be had because nobody chose an end category.
    Where categories were merged (`codes_high`) the record of moves says so."""
    if codes_high is not None:
        return ()
    sums = code_sums(codes, max_score)
    if sums is None:
        return ()
    findings = []
    lowest = codes[:, 0]
    highest = np.take_along_axis(codes, max_score[:, None], axis=1)[:, 0]
    has_gap = highest - lowest > max_score
    if sums.ambiguous:
        sentence = (
            "A raw score as coded may go with two scores: categories that nobody used were renumbered at "
            f"{listed(labels[has_gap])}. In scores.csv code_sum and code_sum_high are the lowest and the highest sum "
            "of codes with a score."
        )
        remedy = "With `unused='keep'` each sum has one score; thresholds without responses then rest on the prior."
        findings.append(Finding("several_code_sums", "note", sentence, remedy, tuple(labels[has_gap].tolist())))
    without_end = (lowest > lowest.min()) | (highest < highest.max())
    if without_end.any():
        have = "has" if without_end.sum() == 1 else "have"
        ends = f"({lowest.min():g} and {highest.max():g})"
        sentence = (
            f"Raw scores as coded run from {sums.low[0]:,} to {sums.high[-1]:,}: {listed(labels[without_end])} {have} "
            f"no response in the lowest or the highest code of the other items {ends}."
        )
        remedy = "If these categories can be chosen, sums beyond have no row in scores.csv."
        findings.append(
            Finding("codes_without_responses", "note", sentence, remedy, tuple(labels[without_end].tolist()))
        )
    return tuple(findings)


def person_code_sums(block: Block, layout: Thresholds, codes: Floats) -> Floats:
    """The sum of the codes of each person's responses; items whose codes are NaN do not count."""
    rows = rows_of(block, layout)
    category = rows.category
    if category is None:  # right responses stand first
        category = (np.arange(len(rows.items)) < np.repeat(block.split, rows.counts)).astype(np.int16)
    return rows.sums(np.nan_to_num(codes[rows.items, category]))
