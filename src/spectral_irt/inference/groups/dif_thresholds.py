"""Differential functioning beyond the location of an item: threshold by threshold.

The location of an item (all its thresholds together, `dif.py`) says whether it is harder for a group. Each
threshold on its own says where: people of one group may hesitate before the highest category only. Thresholds are
estimated in each group by itself, and centered on the same anchors as the locations,

    contrast_ik = (b_ik - mean location of the anchors) in the focal group - the same in the reference group,

and a chi-square with K - 1 degrees of freedom asks whether the K contrasts of an item are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import positions
from spectral_irt.data.responses import Responses
from spectral_irt.errors import DesignError, listed
from spectral_irt.inference.groups.calibrations import GroupCalibrations, GroupModel, calibrate_groups, model_like
from spectral_irt.inference.groups.grouping import Split
from spectral_irt.inference.probability import benjamini_hochberg, chi2_tail, two_sided
from spectral_irt.tables import Columns

NAMED = 5
DIGITS = 1e-9


def threshold_contrasts(
    calibration: Calibration,
    responses: Responses,
    split: Split,
    items: NDArray[Any],
    anchors: NDArray[np.bool_],
    level: float,
) -> tuple[Columns, Columns, tuple[Finding, ...]]:
    """The thresholds of every item in every group against the first one; what they say of items; findings.

    A row for each threshold and focal group has `item, category, group, reference, threshold, threshold_reference,
    contrast, se, z, p, p_bh`. For each item and focal group, in the order of the contrasts of `items` (of which the
    locations are centered on the `anchors`), there are `threshold_dif, threshold_dif_df, threshold_dif_p,
    threshold_dif_p_bh`: whether the contrasts of its thresholds differ; NaN for items that have one threshold, or not
    all categories in each group.
    """
    shape = (split.n_groups - 1, len(items))
    statistic, df = np.full(shape, np.nan), np.zeros(shape)
    parts: list[Columns] = []
    groups = None
    if model_like(calibration).scales is None and responses.thresholds.widest > 1:
        try:
            kept = positions(responses.items, items) >= 0
            groups = calibrate_groups(responses.take_items(kept), split, GroupModel())
        except DesignError:  # too few items have all their categories in each group
            groups = None
    if groups is not None:
        place = positions(groups.everyone.items, items)
        weight = _weights(groups, anchors[place])
        for row in range(split.n_groups - 1):
            contrast, covariance = _apart(groups, row + 1, weight)
            parts.append(_rows(groups, row + 1, contrast, covariance))
            statistic[row, place], df[row, place] = _unlike(groups, contrast, covariance)
    p = np.where(df > 0, chi2_tail(statistic, np.maximum(df, 1)), np.nan).ravel()
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    if rows:
        rows["p_bh"] = benjamini_hochberg(rows["p"])
    columns: Columns = {
        "threshold_dif": statistic.ravel(),
        "threshold_dif_df": df.ravel().astype(np.int64),
        "threshold_dif_p": p,
        "threshold_dif_p_bh": benjamini_hochberg(p),
    }
    return rows, columns, _findings(rows, columns, np.tile(items, split.n_groups - 1), level)


def _weights(groups: GroupCalibrations, anchors: NDArray[np.bool_]) -> Floats:
    """Weights of the thresholds in the mean location of the anchors; of all items where none is left."""
    chosen = anchors if anchors.any() else np.ones(len(anchors), dtype=bool)
    layout = groups.layout
    return chosen[layout.item] / (chosen.sum() * layout.max_score[layout.item])


def _apart(groups: GroupCalibrations, k: int, weight: Floats) -> tuple[Floats, Floats]:
    """Contrasts of the thresholds, centered on the anchors, and their covariance."""
    raw = groups.thresholds[k] - groups.thresholds[0]
    c = groups.covariances[k] + groups.covariances[0]
    cross = c @ weight
    return raw - weight @ raw, c - cross[:, None] - cross[None, :] + weight @ cross


def _rows(groups: GroupCalibrations, k: int, contrast: Floats, covariance: Floats) -> Columns:
    layout = groups.layout
    se = np.sqrt(np.maximum(np.diag(covariance), 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(se > 0, contrast / se, 0.0)
    names = np.array(groups.names, dtype=object)
    return {
        "item": groups.everyone.items[layout.item],
        "category": layout.level,
        "group": np.repeat(names[[k]], layout.n_entries),
        "reference": np.repeat(names[:1], layout.n_entries),
        "threshold": groups.thresholds[k],
        "threshold_reference": groups.thresholds[0],
        "contrast": contrast,
        "se": se,
        "z": z,
        "p": two_sided(z),
    }


def _unlike(groups: GroupCalibrations, contrast: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Of every item: how far the contrasts of its thresholds are from their mean, and the degrees of freedom."""
    layout = groups.layout
    found, df = np.full(layout.n_items, np.nan), np.zeros(layout.n_items)
    for i in np.flatnonzero(layout.max_score > 1):
        mine = slice(layout.first[i], layout.first[i] + layout.max_score[i])
        inverse = np.linalg.pinv(covariance[mine, mine], rcond=DIGITS, hermitian=True)
        one = inverse.sum(axis=1)
        d = contrast[mine]
        found[i] = float(d @ inverse @ d - (one @ d) ** 2 / one.sum())
        df[i] = layout.max_score[i] - 1
    return found, df


def _findings(thresholds: Columns, columns: Columns, items: NDArray[Any], level: float) -> tuple[Finding, ...]:
    rows = np.flatnonzero(columns["threshold_dif_p_bh"] < level)
    if not len(rows):
        return ()
    rows = rows[np.argsort(columns["threshold_dif_p"][rows], kind="stable")]
    named = list(dict.fromkeys(items[rows].tolist()))
    told = []
    for item in named[:NAMED]:
        mine = np.flatnonzero(positions(thresholds["item"], [item]) >= 0)
        most = mine[np.argmax(np.abs(thresholds["z"][mine]))]
        told.append(
            f"{listed([item])} above all at category {thresholds['category'][most]} "
            f"({thresholds['contrast'][most]:+.2f} logits for {thresholds['group'][most]!r})"
        )
    more = f"; and {len(named) - NAMED:,} more" if len(named) > NAMED else ""
    one = len(named) == 1
    return (
        Finding(
            "threshold_dif",
            "warning",
            f"{len(named):,} item{' has' if one else 's have'} thresholds that differ between the groups by unequal "
            f"amounts: {'; '.join(told)}{more}.",
            "Look whether the groups understand the categories alike; dif_thresholds.csv has every threshold.",
            tuple(named),
        ),
    )
