"""The classical analysis of every item: how many got it right, and whether those are the ones who do well otherwise.

All of it comes from sums over the answers, one pass. With x the answer (1 or 0), n_l the answers of a person and s_l
how many of them are right, the rest of an answer is

    r = (s_l - x) / (n_l - 1),

the share of the person's other answers that are right. On complete data r goes with the rest score s_l - x, and the
correlation of x with r is the corrected point-biserial correlation of the textbooks. People with a single answer have
no rest and are left out of it.

An item that abler people fail has its answers turned round: right and wrong are swapped, or its key is wrong. Whether
somebody is able is told by the other items, as PROX, so that forms of different difficulty can be compared. Under the
model, and under any model in which abler people do better, the mean of those who are right is the higher one: a
difference the other way beyond chance cannot come from an item that is just noisy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import NAMED, listed
from spectral_irt.inference.items.rest import own_rest_ability, rest_shares, runs
from spectral_irt.inference.probability import holm, student_two_sided
from spectral_irt.inference.results import EACH
from spectral_irt.tables import Columns

FEWEST = 5  # people on either side of a comparison of means


@dataclass(frozen=True, eq=False)
class Groups:
    """How many people there are in each of several groups, and their mean ability on the other items with variance."""

    n: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, n: Floats, total: Floats, squares: Floats) -> Groups:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n
            return cls(n, mean, np.maximum(squares - n * mean**2, 0) / (n - 1))


def abler(a: Groups, b: Groups) -> Floats:
    """One-sided p of Welch's test that the people of `a` are abler than those of `b`; NaN with fewer than five."""
    enough = (a.n >= FEWEST) & (b.n >= FEWEST)
    with np.errstate(divide="ignore", invalid="ignore"):
        va, vb = a.variance / a.n, b.variance / b.n
        t = (a.mean - b.mean) / np.sqrt(va + vb)
        df = (va + vb) ** 2 / (va**2 / (a.n - 1) + vb**2 / (b.n - 1))
    known = enough & np.isfinite(t) & np.isfinite(df)
    tail = student_two_sided(np.where(known, t, 0.0), np.where(known, df, 1.0)) / 2
    return np.where(known, np.where(t > 0, tail, 1 - tail), np.nan)


@dataclass(frozen=True, eq=False)
class ItemAnalysis:
    """What `item_analysis` found, one number an item; NaN where there is none.

    Attributes
    ----------
    point_biserial : float array
        Correlation of the answers with the share right of each person's other answers.
    alpha_if_deleted : float array
        Cronbach's alpha (KR-20) of the test without the item; NaN unless everybody answered every item.
    right, wrong : Groups
        Those who answered it right and wrong, by their other answers.
    rest : Floats, 4 rows
        Answers with a rest, and the sums of x, r and r^2 over them.
    """

    point_biserial: Floats
    alpha_if_deleted: Floats
    right: Groups
    wrong: Groups
    rest: Floats

    @property
    def reversed_p(self) -> Floats:
        """How sure it is that abler people fail the item: p-values, adjusted for asking of every item (Holm)."""
        return holm(abler(self.wrong, self.right))


def item_analysis(responses: Responses, difficulty: Floats) -> ItemAnalysis:
    """The classical analysis of every item; `difficulty` only tells how able the other answers make a person."""
    m = responses.n_items
    sums = responses.sum(_sums, difficulty)
    n, x, r, r2, xr = sums[:5]
    with np.errstate(divide="ignore", invalid="ignore"):
        point = (n * xr - x * r) / (np.sqrt(n * x - x * x) * np.sqrt(np.maximum(n * r2 - r * r, 0)))
    groups = [Groups.of(*part) for part in sums[5:].reshape(2, 3, m)]
    return ItemAnalysis(
        np.where(np.isfinite(point), point, np.nan), _alphas(responses, r, r2), groups[0], groups[1], sums[:4]
    )


def _sums(block: Block, difficulty: Floats) -> Floats:
    m = len(difficulty)
    total = np.zeros((11, m))
    for _, _, rest, known in runs(block, difficulty):
        if rest.n_persons:
            right, share = rest.right().astype(np.float64), rest_shares(rest)
            for row, value in zip(total, (None, right, share, share**2, right * share), strict=False):
                row += np.bincount(rest.items, weights=value, minlength=m)
        if known.n_persons:
            ability = own_rest_ability(known, difficulty)
            slot = known.items + m * ~known.right()
            for k, value in enumerate((None, ability, ability**2)):
                total[[5 + k, 8 + k]] += np.bincount(slot, weights=value, minlength=2 * m).reshape(2, m)
    return total


def _alphas(responses: Responses, r: Floats, r2: Floats) -> Floats:
    """Alpha of all items but one: k / (k - 1) (1 - sum p (1 - p) of the others / variance of the rest score)."""
    alpha = np.full(responses.n_items, np.nan)
    asked = responses.item_counts > 0
    m, n = int(asked.sum()), int(np.sum(responses.counts > 0))
    if m < 3 or n < 2 or responses.n_responses != m * n:
        return alpha
    k = m - 1
    p = responses.item_scores[asked] / n
    variance = k * k * (r2[asked] / n - (r[asked] / n) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = k / (k - 1) * (1 - (np.sum(p * (1 - p)) - p * (1 - p)) / variance)
    alpha[asked] = np.where(np.isfinite(found), found, np.nan)
    return alpha


def item_analysis_columns(
    calibration: Calibration, responses: Responses, found: ItemAnalysis, discrimination: Floats | None = None
) -> Columns:
    """`item, n, p_correct, point_biserial, alpha_if_deleted`, and `discrimination, omitted, not_reached` if known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = responses.item_scores / responses.item_counts
    columns: Columns = {
        "item": calibration.labels,
        "n": responses.item_counts,
        "p_correct": share,
        "point_biserial": found.point_biserial,
        "alpha_if_deleted": found.alpha_if_deleted,
    }
    if discrimination is not None:
        columns["discrimination"] = np.where(calibration.measured, discrimination, np.nan)
    raw = responses.raw
    if raw is not None and raw.blanks is not None:
        blanks = np.array([raw.blanks.get(label, (0, 0)) for label in responses.items.tolist()], dtype=np.int64)
        columns |= {"omitted": blanks[:, 0], "not_reached": blanks[:, 1]}
    return columns


def reversed_findings(calibration: Calibration, found: ItemAnalysis, explained: set[object]) -> tuple[Finding, ...]:
    """A warning that names the items that abler people fail, but for those that are explained already."""
    p = found.reversed_p
    labels = calibration.labels.tolist()
    with np.errstate(invalid="ignore"):
        hit = [k for k in np.flatnonzero(p < EACH).tolist() if labels[k] not in explained]
    if not hit:
        return ()
    hit.sort(key=lambda k: float(found.right.mean[k] - found.wrong.mean[k]))
    named = [
        f"{listed([labels[k]])} (mean ability on the other items {found.right.mean[k]:z.2f} of those who are right, "
        f"{found.wrong.mean[k]:z.2f} of those who are wrong)"
        for k in hit[:NAMED]
    ]
    more = f", and {len(hit) - NAMED:,} more" if len(hit) > NAMED else ""
    items = "1 item" if len(hit) == 1 else f"{len(hit):,} items"
    return (
        Finding(
            "reversed_items",
            "warning",
            f"Abler people fail {items}: {', '.join(named)}{more}.",
            "Right and wrong may be swapped there, by a wrong key or by a statement that is worded the other way "
            "round; correct that and calibrate again.",
            tuple(labels[k] for k in hit),
        ),
    )
