"""Total scores in the codes of the questionnaire: ten items coded 1 to 5 have sums from 10 to 50, where categories are
counted from 0 to 4 and scores from 0 to 40.

Category k of item i has the code c_ik. Where codes rise by one, c_ik = c_i0 + k, a score s is the sum s + sum_i c_i0.
Where a category that nobody used was renumbered (codes 1, 2, 3, 5), several sums may have one score: the excess
c_ik - c_i0 - k is added, and the sums of a score run from the least to the largest excess with which it can be had.
Items that were turned round, or recoded, have the codes that they were given by that. Where categories were merged
(`--collapse`) one of them has several codes, and the sums of a score run from the lowest of these to the highest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.data.block import Block, Floats, Ints, Mask, Thresholds, rows_of
from spectral_irt.data.labels import SUSPECTS, Labels
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
        low = _with_item(low, row[: most + 1], np.minimum, np.inf)
        high = _with_item(high, row_high[: most + 1], np.maximum, -np.inf)
    score = np.arange(len(low)) + codes[:, 0].sum()
    return CodeSums((score + low).astype(np.int64), (score + high).astype(np.int64))


def _with_item(sums: Floats, item: Floats, better: np.ufunc, worst: float) -> Floats:
    """The least, or largest, excess of every score with one more item."""
    longer = np.full(len(sums) + len(item) - 1, worst)
    for category, excess in enumerate(item.tolist()):
        place = slice(category, category + len(sums))
        longer[place] = better(longer[place], sums + excess)
    return longer


class Unchosen(NamedTuple):
    """Which items lack a response in an end category; the sums of codes if these could be chosen; whether that is
    known of all of them from the labels of the categories; and whether some item has responses in each such code."""

    items: Mask
    low: int
    high: int
    known: bool
    used_elsewhere: bool


def _unchosen_ends(
    labels: Labels, codes: Floats, max_score: Ints, answer_labels: Mapping[Any, Mapping[float, str]]
) -> Unchosen | None:
    """End categories that nobody chose: those that the file labels; of an item without labels, the lowest and the
    highest code of the other items, which it may have or not. None where there are none."""
    lowest = codes[:, 0]
    highest = np.take_along_axis(codes, max_score[:, None], axis=1)[:, 0]
    low = np.full(len(labels), lowest.min())
    high = np.full(len(labels), highest.max())
    is_labeled = np.zeros(len(labels), dtype=bool)
    for k, label in enumerate(labels.tolist()):
        labeled = answer_labels.get(label, {})
        # Where one code alone has a label, the others are categories, too, and nothing says which there are.
        if len(labeled) < 2:
            continue
        is_labeled[k] = True
        low[k] = _end_of_labels(float(lowest[k]), labeled, -1.0)
        high[k] = _end_of_labels(float(highest[k]), labeled, 1.0)
    unchosen = (low < lowest) | (high > highest)
    if not unchosen.any():
        return None
    used_elsewhere = low.min() >= lowest.min() and high.max() <= highest.max()
    return Unchosen(unchosen, int(low.sum()), int(high.sum()), bool(is_labeled[unchosen].all()), bool(used_elsewhere))


def _end_of_labels(code: float, labeled: Mapping[float, str], step: float) -> float:
    """The last code of those with labels that follow one another; a label beyond a gap (8 after 5) is no category."""
    only_ends = len(labeled) == 2 and code not in labeled
    if only_ends:
        end = max(labeled) if step > 0 else min(labeled)
        return end if f"{end:g}" not in SUSPECTS and (end - code) * step > 0 else code
    while code + step in labeled:
        code += step
    return code


def code_findings(
    labels: Labels,
    codes: Floats,
    max_score: Ints,
    codes_high: Floats | None = None,
    answer_labels: Mapping[Any, Mapping[float, str]] | None = None,
) -> tuple[Finding, ...]:
    """Sums of codes that may have several scores, and sums that cannot be had because nobody chose an end category,
    by what others chose and the labels of the categories (`answer_labels`, of each item).
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
    unchosen = _unchosen_ends(labels, codes, max_score, answer_labels or {})
    if unchosen is not None:
        findings.append(_about_unchosen(labels[unchosen.items], sums, unchosen))
    return tuple(findings)


def _about_unchosen(items: Labels, sums: CodeSums, unchosen: Unchosen) -> Finding:
    measured = f"Raw scores as coded run from {sums.low[0]:,} to {sums.high[-1]:,}"
    possible = f"{unchosen.low:,} to {unchosen.high:,}"
    nobody = "nobody can be measured at the other sums, which have no row in the table of scores"
    at = f"nobody chose the lowest or the highest category of {listed(items)}"
    if unchosen.known:
        sentence = f"{measured}, those of the questionnaire from {possible}: {at}, so that {nobody}."
    else:
        sentence = f"{measured}: {at}. If these can be chosen, sums run from {possible}, and {nobody}."
    remedy = ""
    if unchosen.used_elsewhere:
        remedy = "With `unused='keep'` these sums have a row; thresholds without responses then rest on the prior."
    return Finding("codes_without_responses", "note", sentence, remedy, tuple(items.tolist()))


def person_code_sums(block: Block, layout: Thresholds, codes: Floats) -> Floats:
    """The sum of the codes of each person's responses; items whose codes are NaN do not count."""
    rows = rows_of(block, layout)
    category = rows.category
    if category is None:  # right responses stand first
        category = (np.arange(len(rows.items)) < np.repeat(block.split, rows.counts)).astype(np.int16)
    return rows.sums(np.nan_to_num(codes[rows.items, category]))
