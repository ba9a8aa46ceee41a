"""The classical analysis of every item: how it was answered, and whether it goes with the others.

With x the answer, K the highest category of its item, s and n the total and the highest possible score of a person, the
rest of an answer is r = (s - x) / (n - K), the share of the other points; on complete data its correlation with x is
the corrected item-total correlation. An item that abler people answer lower is worded the other way, or its key is
wrong. Whether somebody is able is told by the other items that have a difficulty, as PROX, so that forms of unlike
difficulty can be compared; a slope of mean abilities against the category beyond chance cannot come from an item that
is just noisy."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds, answered_items, person_chunks, rows_of
from spectral_irt.inference.results import EACH, adjusted
from spectral_irt.model import category_probabilities, prox
from spectral_irt.persons.abilities import answers_with_difficulty, checked
from spectral_irt.persons.residuals import LEAST, answers_at
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed

CACHED = 65_536  # answers whose few numbers each stay in a core's second-level cache
FEWEST = 5  # people on either side of a comparison of means
COMPLETE = 0.5  # of the people must have answered every item for an alpha over these
FLAT = 1e-9  # a spread below this is one of rounding
PEOPLE, MOST_ITEMS = 4_000, 500  # of the first component: a sample, and items beyond which it is not looked at
CLEAR = 1.5  # times the largest eigenvalue of noise
LEAST_LOADING, SEVERAL = 0.2, 3  # below it an item is on neither side; items on the other side that are no accident


def rises(n: Floats, total: Floats, squares: Floats) -> Floats:
    """One-sided p of a slope of ability by group (last axis, in order) above zero, from the people of each group, the
    sum of their abilities and that of the squares; NaN unless two have five people.

    The regression of ability on the number of the group, with a variance of its own in each, and the degrees of freedom
    of Satterthwaite: of two groups, Welch's test.
    """
    used = n >= FEWEST
    kept, k = np.where(used, n, 0.0), np.arange(n.shape[-1], dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / n
        variance = np.maximum(squares - n * mean**2, 0) / (n - 1)
        away = k - (kept @ k / kept.sum(axis=-1))[..., None]
        weight = kept * away / (kept * away**2).sum(axis=-1)[..., None]
        part = np.where(used, weight**2 * variance / n, 0.0)
        slope, error = np.where(used, weight * mean, 0.0).sum(axis=-1), part.sum(axis=-1)
        t, df = slope / np.sqrt(error), error**2 / np.where(used, part**2 / (n - 1), 0.0).sum(axis=-1)
    known = (used.sum(axis=-1) > 1) & np.isfinite(t) & np.isfinite(df)
    return np.where(known, scipy.special.stdtr(np.where(known, df, 1.0), np.where(known, -t, 0.0)), np.nan)


@dataclass(frozen=True, eq=False)
class ItemAnalysis:
    """What `item_analysis` found, one number an item; NaN where there is none.

    The correlation of the answers with the share of each person's other points; Cronbach's alpha of the test without
    the item, where there is an alpha; of those who gave each answer (3 x items x categories) how many there are, with
    the sums of their abilities by the other answers and of the squares; and how many answers have a rest, with the sums
    of r and r^2 over them.
    """

    item_rest: Floats
    alpha_if_deleted: Floats
    chose: Floats
    rest: Floats


def item_analysis(responses: Responses, thresholds: Floats) -> ItemAnalysis:
    """The classical analysis of every item; thresholds only tell how able the other answers make a person."""
    layout, beta = responses.thresholds, checked(responses, thresholds)
    location = beta if layout.binary else layout.mean(beta)
    (n, x, xx, r, rr, xr), by_category = responses.entries.sum(_sums, beta, location, layout)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.maximum(n * xx - x * x, 0)) * np.sqrt(np.maximum(n * rr - r * r, 0))
        item_rest = np.where(spread > FLAT * np.maximum(n, 1), (n * xr - x * r) / spread, np.nan)
    return ItemAnalysis(item_rest, cronbach_alpha(responses)[1], by_category, np.array([n, r, rr]))


def _sums(block: Block, beta: Floats, location: Floats, layout: Thresholds) -> tuple[Floats, Floats]:
    """Over the answers with a rest, by item: 1, x, x^2, r, r^2, x r. By item and category, over the answers to items
    with a difficulty: 1, the ability by the others, its square."""
    m, width = layout.n_items, layout.widest + 1
    total, groups = np.zeros((6, m)), np.zeros((3, m * width))
    for _, _, rest, known in runs(block, beta, location, layout):
        x, r = rest.x, rest.points / rest.most
        for row, value in zip(total, (None, x, x * x, r, r * r, x * r), strict=True):
            row += np.bincount(rest.item, weights=value, minlength=m)
        ability = known.ability(known.points)
        slot = known.item.astype(np.int64) * width + known.x.astype(np.int64)
        for row, value in zip(groups, (None, ability, ability**2), strict=True):
            row += np.bincount(slot, weights=value, minlength=m * width)
    return total, groups.reshape(3, m, width)


class Rest(NamedTuple):
    """Answers of people who have others: the block that they are in, item and answer, the points of the person on the
    other items and how many could be had there, and mean and variance of the locations of these items."""

    block: Block
    item: NDArray[np.int32]
    x: Floats
    points: Floats
    most: Floats
    mean: Floats
    spread: Floats

    def ability(self, points: Floats) -> Floats:
        """PROX by the other items, with these points on them."""
        return np.asarray(prox(self.mean, self.spread, np.log((points + 0.5) / (self.most - points + 0.5))))


def rest_of(block: Block, location: Floats, layout: Thresholds) -> Rest:
    """The answers of a block that have a rest: somebody with a single answer has none."""
    rows = rows_of(block, layout)
    if (rows.counts < 2).any():
        block = block.take(np.flatnonzero(rows.counts > 1))
        rows = rows_of(block, layout)
    _, item, category = answered_items(block, layout)
    own, others = location[item], np.repeat(rows.counts - 1.0, rows.counts)
    mean = (np.repeat(rows.sums(own), rows.counts) - own) / others
    spread = (np.repeat(rows.sums(own * own), rows.counts) - own * own) / others - mean * mean
    most = others if layout.binary else np.repeat(rows.max_scores, rows.counts) - layout.max_score[item].astype(float)
    x = category.astype(np.float64)
    return Rest(block, item, x, np.repeat(rows.scores, rows.counts) - x, most, mean, np.maximum(spread, 0.0))


def runs(block: Block, beta: Floats, location: Floats, layout: Thresholds) -> Iterator[tuple[Ints, Block, Rest, Rest]]:
    """People in runs that fit the cache: positions, all their answers, the rest of these, and that of their answers to
    items with a difficulty, by these items alone."""
    location = np.where(np.isfinite(location), location, np.nan)
    for start, stop in person_chunks(block.indptr, CACHED):
        part = block.take(np.arange(start, stop))
        known, rest = answers_with_difficulty(part, beta), rest_of(part, location, layout)
        yield np.arange(start, stop), part, rest, rest if known is part else rest_of(known, location, layout)


def cronbach_alpha(responses: Responses, weights: Floats | None = None) -> tuple[float | None, Floats]:
    """alpha = k / (k - 1) (1 - sum of the items' variances / variance of the total), over the people who answered
    every item; and that of all items but each. Of right and wrong answers it is KR-20.

    None for fewer than two items or people, for equal scores, and where fewer than half of the people answered all.
    """
    without = np.full(responses.n_items, np.nan)
    asked = responses.item_counts > 0
    complete = (responses.counts == asked.sum()) & (responses.counts > 0)
    m, n = int(asked.sum()), int(complete.sum())
    if m < 2 or n < 2 or n < COMPLETE * np.count_nonzero(responses.counts):
        return None, without
    weight = complete * (np.ones(len(complete)) if weights is None else weights)
    weight = weight / weight.sum()
    scores = responses.scores.astype(np.float64)
    first, square, cross = responses.entries.sum(_with_score, responses.thresholds, persons=(weight, scores))
    own = square - first**2
    mean = float(weight @ scores)
    total = float(weight @ (scores - mean) ** 2)
    if total <= FLAT:
        return None, without
    if m > 2:
        rest = total + own - 2 * (cross - first * mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (m - 1) / (m - 2) * (1 - (own.sum() - own) / rest)
        without[asked] = np.where(np.isfinite(found), found, np.nan)[asked]
    return float(m / (m - 1) * (1 - own.sum() / total)), without


def _with_score(block: Block, weight: Floats, scores: Floats, layout: Thresholds) -> Floats:
    """Weighted sums over the answers to each item: x, x^2, x times the total score."""
    indptr, item, category = answered_items(block, layout)
    counts = np.diff(indptr)
    x, total = np.repeat(weight, counts) * category, np.zeros((3, layout.n_items))
    for row, value in zip(total, (x, x * category, x * np.repeat(scores, counts)), strict=True):
        row += np.bincount(item, weights=value, minlength=layout.n_items)
    return total


def item_analysis_columns(
    calibration: Calibration,
    responses: Responses,
    found: ItemAnalysis,
    discrimination: Floats | None = None,
    blanks: Ints | None = None,
) -> Columns:
    """`item, n, p_correct` (in several categories `mean_score, max_score`), `item_rest, alpha_if_deleted`, where known
    `discrimination, omitted, not_reached`, and in several categories `share_0, share_1, ...`."""
    layout, n = responses.thresholds, responses.item_counts
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, shares = responses.item_scores / n, responses.category_counts / n[:, None]
    columns: Columns = {"item": calibration.labels, "n": n}
    columns |= {"p_correct": mean} if layout.binary else {"mean_score": mean, "max_score": layout.max_score}
    columns |= {"item_rest": found.item_rest, "alpha_if_deleted": found.alpha_if_deleted}
    if discrimination is not None:
        columns["discrimination"] = np.where(calibration.measured, discrimination, np.nan)
    if blanks is not None:
        columns |= {"omitted": blanks[0], "not_reached": blanks[1]}
    if not layout.binary:
        columns |= {f"share_{k}": shares[:, k] for k in range(shares.shape[1])}
    return columns


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
    layout, beta = responses.thresholds, checked(responses, thresholds)
    return CategorySums(*responses.entries.sum(_category_sums, beta, layout, persons=(ability,)))


def category_columns(responses: Responses, thresholds: Floats, ability: Floats) -> Columns:
    """`item, category, code, n, share, mean_ability, expected_ability, infit, outfit`: a row for each category of each
    item.

    `n` people gave the answer, a `share` of those who answered the item. `mean_ability`, in logits, should rise with
    the category, and be near `expected_ability`, the mean that the model expects. Infit of category k compares how far
    its answers are from what is expected with how far the model lets them be,

        sum over answers k of (k - E)^2 / sum over all answers of P(k) (k - E)^2,

    1 where the model holds; outfit has both over the variance of the answer. All are of people with neither the lowest
    nor the highest score, whatever these do fits.

    References
    ----------
    Wright & Masters (1982), Rating Scale Analysis, ch. 5; Linacre (2002), Optimizing rating scale category
    effectiveness, Journal of Applied Measurement, 3, 85-106.
    """
    sums = category_sums(responses, thresholds, ability)
    counts, codes = responses.category_counts, responses.category_codes()
    item, category = np.nonzero(np.isfinite(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {
            "code": codes,
            "n": counts,
            "share": counts / np.nansum(counts, axis=1, keepdims=True),
            "mean_ability": sums.ability / sums.n,
            "expected_ability": sums.expected_ability / sums.expected_n,
            "infit": sums.square / sums.expected_square,
            "outfit": sums.square_over_v / sums.expected_square_over_v,
        }
    columns = {name: values[item, category] for name, values in found.items()}
    return {"item": responses.items[item], "category": category, **columns, "n": columns["n"].astype(np.int64)}


def _category_sums(block: Block, ability: Floats, beta: Floats, layout: Thresholds) -> Floats:
    """The fields of `CategorySums`."""
    size = layout.widest + 1
    total, cumulated = np.zeros((8, layout.n_items, size)), layout.cumulated(np.nan_to_num(beta))
    observed, expected = total[:4], total[4:]
    for one in answers_at(block, ability, beta, layout):
        place = one.item.astype(np.int64) * size + one.x.astype(np.int64)
        v = np.maximum(one.variance, LEAST)
        square = (one.x - one.mean) ** 2
        for row, values in zip(observed, (None, one.theta, square, square / v), strict=True):
            row += np.bincount(place, values, layout.n_items * size).reshape(-1, size)
        p = category_probabilities(one.theta, cumulated[one.item])
        for k in range(size):
            weighted = p[:, k] * (k - one.mean) ** 2
            for row, values in zip(expected, (p[:, k], p[:, k] * one.theta, weighted, weighted / v), strict=True):
                row[:, k] += np.bincount(one.item, values, layout.n_items)
    return total


def first_component(responses: Responses) -> Floats | None:
    """The loading of every item on the first principal component of the answers, most of them positive; None where
    chance explains it, many answers are missing, or items are very many.

    Where half of the items are worded the other way round no total score says who is able; this still has the two
    kinds on different sides.
    """
    people, m = np.flatnonzero(responses.counts), responses.n_items
    if m > MOST_ITEMS or responses.n_responses < COMPLETE * len(people) * m:
        return None
    x = responses.sample(PEOPLE, np.random.default_rng(0), people)[0].to_dense()
    seen = np.isfinite(x)
    n = seen.sum(axis=0)
    off = np.where(seen, x - np.nansum(x, axis=0) / np.maximum(n, 1), 0.0)
    z = off / np.sqrt(np.maximum((off**2).sum(axis=0) / np.maximum(n, 1), FLAT))
    both = seen.T.astype(float) @ seen
    values, vectors = np.linalg.eigh(z.T @ z / np.maximum(both, 1))
    if values[-1] < CLEAR * (1 + np.sqrt(m / max(len(x), 1))) ** 2:
        return None
    found = vectors[:, -1] * np.sqrt(values[-1])
    found = np.where(np.abs(found) >= max(LEAST_LOADING, 3 / np.sqrt(max(len(x), 1))), found, 0.0)
    sides = np.sign(found).sum() or np.sign(found[np.abs(found) > 0][:1].sum())  # of equal ones, that of the first item
    return np.asarray(found * (-1.0 if sides < 0 else 1.0))


def reversed_findings(
    calibration: Calibration, responses: Responses, found: ItemAnalysis, explained: Collection[object] = ()
) -> tuple[Finding, ...]:
    """A warning that names all items that abler people answer lower, but for those that are explained already.

    A test of every item says whether there are any, or three on the other side of the first component; which they are
    is said by the component where it is clear.
    """
    labels = calibration.labels
    with np.errstate(invalid="ignore"):
        hit = adjusted(1 - rises(*found.chose), "holm") < EACH  # for asking of every item
    loading = first_component(responses)
    if loading is not None and (hit.any() or np.sum(loading < 0) >= SEVERAL):
        other = (hit & (loading <= 0)) | (loading < 0)
        hit = other if other.any() else hit
    # An item that goes with the others is worded as they are, whatever side of a second trait it is on.
    hit &= ~(found.item_rest > 0)
    if explained:
        hit &= np.array([label not in explained for label in labels.tolist()], dtype=bool)
    if not hit.any():
        return ()
    named, lowest, binary = labels[hit], float(np.nanmin(found.item_rest[hit])), calibration.layout.binary
    half = loading is not None and 2 * len(named) >= np.count_nonzero(loading)
    what = (
        f"High scorers {'fail' if binary else 'answer'} {count(len(named), 'item')}{'' if binary else ' lower'}: "
        f"{listed(named)} (correlation with the other items{' down to' if len(named) > 1 else ''} {lowest:.2f})."
    )
    if half:
        what += " Half of the items go one way and half the other: either half may be the reversed one."
    if binary:
        remedy = (
            "Right and wrong may be swapped there, by a wrong key or by a statement that is worded the other way "
            "round; correct that and calibrate again."
        )
    else:
        plain = ",".join(map(str, named.tolist()))
        pasted = repr(plain) if plain.count(",") == len(named) - 1 else [str(label) for label in named.tolist()]
        remedy = (
            f"Statements that are worded the other way round have their categories turned: `reverse={pasted}`. What "
            "other checks find may follow from them, so look at it again after that."
        )
    return (Finding("reversed_items", "warning", what, remedy, tuple(named.tolist())),)
