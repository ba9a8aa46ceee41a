"""The classical analysis of items with ordered answers: does an item go with the others?

With x the answer, s and n the total and the highest possible score of a person, and K the highest category of the
item, the rest of an answer is r = (s - x) / (n - K), the share of the other points that the person has. On complete
data the correlation of x with r is the corrected item-total correlation of the textbooks.

An item that abler people answer lower is worded or keyed the other way round. How able somebody is by the other items
is told by PROX from r and the mean location of these, so that forms of different difficulty can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding
from spectral_irt.data.block import Block, Floats
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds, answered_items, rows_of
from spectral_irt.errors import listed
from spectral_irt.inference.probability import holm, two_sided
from spectral_irt.inference.results import EACH
from spectral_irt.model import prox
from spectral_irt.tables import Columns

FEWEST = 10  # people from whom a correlation is judged


@dataclass(frozen=True, eq=False)
class OrderedItemAnalysis:
    """One number an item; NaN where there is none.

    Attributes
    ----------
    n : float array
        Answers of people with other answers.
    item_rest : float array
        Correlation of the answers with the share of the other points.
    with_ability : float array
        Correlation with the ability by the other items.
    alpha_if_deleted : float array
        Cronbach's alpha without the item; NaN unless everybody answered every item.
    """

    n: Floats
    item_rest: Floats
    with_ability: Floats
    alpha_if_deleted: Floats

    @property
    def reversed_p(self) -> Floats:
        """How sure it is that abler people answer lower: one-sided, adjusted for asking of every item (Holm)."""
        enough = (self.n >= FEWEST) & np.isfinite(self.with_ability)
        z = np.arctanh(np.clip(np.where(enough, self.with_ability, 0.0), -1 + 1e-12, 1 - 1e-12))
        z = z * np.sqrt(np.maximum(self.n - 3, 1))
        half = two_sided(z) / 2
        return holm(np.where(enough, np.where(z < 0, half, 1 - half), np.nan))


def ordered_item_analysis(responses: Responses, thresholds: Floats) -> OrderedItemAnalysis:
    """The classical statistics of every item; thresholds only tell how able other answers make a person."""
    steps = responses.thresholds
    place = np.nan_to_num(steps.mean(thresholds))
    sums = responses.entries.sum(_sums, steps, place)
    n, x, xx, r, rr, xr, t, tt, xt = sums
    return OrderedItemAnalysis(
        n, _correlation(n, x, xx, r, rr, xr), _correlation(n, x, xx, t, tt, xt), _alphas(responses)
    )


def _sums(block: Block, steps: Thresholds, place: Floats) -> Floats:
    """Over the answers to each item: 1, x, x^2, r, r^2, x r, ability by the others, its square, x times it."""
    rows = rows_of(block, steps)
    _, item, category = answered_items(block, steps)
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    kept = rows.counts[person] > 1
    person, item, x = person[kept], item[kept], category[kept].astype(float)
    others = rows.counts[person] - 1
    points, most = rows.scores[person] - x, (rows.most[person] - steps.max_score[item]).astype(float)
    total, squares = rows.sums(place[rows.items]), rows.sums(place[rows.items] ** 2)
    mean = (total[person] - place[item]) / others
    spread = np.maximum((squares[person] - place[item] ** 2) / others - mean**2, 0.0)
    r = points / most
    t = prox(mean, spread, np.log((points + 0.5) / (most - points + 0.5)))
    values = (None, x, x * x, r, r * r, x * r, t, t * t, x * t)
    return np.array([np.bincount(item, weights=each, minlength=steps.n_items) for each in values], dtype=np.float64)


def _correlation(n: Floats, x: Floats, xx: Floats, y: Floats, yy: Floats, xy: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.maximum(n * xx - x * x, 0)) * np.sqrt(np.maximum(n * yy - y * y, 0))
        return np.where(spread > 1e-9 * np.maximum(n, 1), (n * xy - x * y) / spread, np.nan)


def _alphas(responses: Responses) -> Floats:
    """k / (k - 1) (1 - sum of the other items' variances / variance of the rest score)."""
    alpha = np.full(responses.n_items, np.nan)
    m, someone = responses.n_items, responses.counts > 0
    n = int(someone.sum())
    if m < 3 or n < 2 or responses.n_responses != m * n:
        return alpha
    scores = responses.scores.astype(float)
    first, square, cross = responses.entries.sum(_with_score, responses.thresholds, persons=(scores,))
    own = square / n - (first / n) ** 2
    total = scores[someone]
    rest = total.var() + own - 2 * (cross / n - first / n * total.mean())
    k = m - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        found = k / (k - 1) * (1 - (own.sum() - own) / rest)
    return np.where(np.isfinite(found), found, np.nan)


def _with_score(block: Block, scores: Floats, steps: Thresholds) -> Floats:
    rows = rows_of(block, steps)
    _, item, category = answered_items(block, steps)
    x, s = category.astype(float), np.repeat(scores, rows.counts)
    return np.array([np.bincount(item, weights=w, minlength=steps.n_items) for w in (x, x * x, x * s)], dtype=float)


def ordered_item_columns(calibration: Calibration, responses: Responses, found: OrderedItemAnalysis) -> Columns:
    """`item, n, mean_score, max_score, item_rest, alpha_if_deleted`, `share_0, share_1, ...`: how many chose each."""
    counts = responses.category_counts
    n = responses.item_counts
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, shares = responses.item_scores / n, counts / n[:, None]
    return {
        "item": calibration.labels,
        "n": n,
        "mean_score": mean,
        "max_score": responses.thresholds.max_score,
        "item_rest": found.item_rest,
        "alpha_if_deleted": found.alpha_if_deleted,
        **{f"share_{k}": shares[:, k] for k in range(shares.shape[1])},
    }


def turned_findings(calibration: Calibration, found: OrderedItemAnalysis) -> tuple[Finding, ...]:
    """A warning that names the items that abler people answer lower."""
    with np.errstate(invalid="ignore"):
        hit = np.flatnonzero(found.reversed_p < EACH)
    if not len(hit):
        return ()
    hit = hit[np.argsort(found.with_ability[hit], kind="stable")]
    names = calibration.labels[hit]
    many = "1 item" if len(hit) == 1 else f"{len(hit):,} items"
    worst = f"(correlation with the other items{' down to' if len(hit) > 1 else ''} {found.item_rest[hit[0]]:.2f})"
    return (
        Finding(
            "reversed_items",
            "warning",
            f"Abler people answer {many} lower: {listed(names)} {worst}.",
            "A statement that is worded the other way round has its categories turned: name it in `reverse=` and "
            "calibrate again.",
            tuple(names.tolist()),
        ),
    )
