"""Differential functioning in detail: does the difference between two groups depend on ability, or on the threshold?

Each group is divided at one common ability into a less able and a more able half, by the score on the items answered;
the four parts are calibrated on their own, and

    interaction_i = contrast_i among the more able - contrast_i among the less able,

centered on the items that agree on it (`robust_center.py`), is zero under the model, whether or not the item has a
uniform difference. A positive one says that the item discriminates less in the focal group. Each threshold on its own
says where a difference lies: with thresholds estimated in each group and centered on the same anchors as the locations,
a chi-square with K - 1 degrees of freedom asks whether the K contrasts of an item are the same."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.data.labels import positions
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.calibrations import GroupModel, calibrate_groups, locations_like, model_like
from spectral_irt.inference.groups.grouping import Split, by_ability
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.results import adjusted, first_few, two_sided, wald_tail
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.joint_errors import JointErrors
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed

DIGITS = 1e-9  # eigenvalues below this share of the largest are zero


def nonuniform_columns(
    calibration: Calibration,
    responses: Responses,
    split: Split,
    items: NDArray[Any],
    min_people: int,
    level: float,
    sampling: Sampling = SIMPLE,
) -> Columns:
    """`interaction, interaction_se, interaction_p, interaction_p_bh, nonuniform` of every item in every group but the
    first, the reference.

    NaN where a half has fewer than `min_people` people of mixed success, or an item has no difficulty in one of them.
    """
    values = np.full((3, split.n_groups - 1, len(items)), np.nan)
    half = by_ability(responses, calibration.thresholds)  # cut at the same ability in all groups
    code = np.where((split.group >= 0) & (half.group >= 0), 2 * split.group + half.group, -1)
    cells = Split(tuple(f"{name}, {part}" for name in split.names for part in half.names), code)
    sizes = np.bincount(code[responses.informative & (code >= 0)], minlength=cells.n_groups).reshape(-1, 2)
    enough = sizes.min(axis=1) >= min_people
    if enough[0] and enough[1:].any():
        some = cells.keep(np.repeat(enough, 2))
        values[:, enough[1:]] = _interactions(calibration, responses, some, items, sampling)
    interaction, se, p = values.reshape(3, -1)
    p_bh = adjusted(p, "bh")
    columns: Columns = {"interaction": interaction, "interaction_se": se, "interaction_p": p}
    return {**columns, "interaction_p_bh": p_bh, "nonuniform": p_bh < level}


def _interactions(
    calibration: Calibration, responses: Responses, cells: Split, items: NDArray[Any], sampling: Sampling
) -> Floats:
    """Interaction, standard error and p, 3 x focal groups x items, from pairs of cells of which the first is that of
    the reference group."""
    values = np.full((3, cells.n_groups // 2 - 1, len(items)), np.nan)
    kept = np.flatnonzero(positions(responses.items, items) >= 0)
    model = locations_like(calibration).of_items(responses.thresholds, kept)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = calibrate_groups(responses.take_items(kept), cells, model, sampling)
    except DesignError:  # the halves are too thin to be calibrated on their own
        return values
    place = positions(found.items, items)
    for row in range(values.shape[1]):
        rise = np.zeros(cells.n_groups)  # from the less to the more able half: of the focal group, less the reference's
        rise[[0, 1, 2 * row + 2, 2 * row + 3]] = 1.0, -1.0, -1.0, 1.0
        agreed = robust_center(rise @ found.difficulty, found.combined_errors(rise), excess=False)
        interaction = found.combined(rise, agreed.agrees / agreed.agrees.sum())
        values[:, row, place] = interaction.value, interaction.se, interaction.p
    return values


def nonuniform_findings(columns: Columns) -> list[Finding]:
    """The items whose difference depends on ability; or that nobody looked."""
    known = np.isfinite(columns["interaction_p"])
    if not known.any():
        return [
            Finding(
                "nonuniform_not_tested",
                "note",
                "Whether differences change from low to high scorers (non-uniform DIF) was not tested: half of a group "
                "is too small.",
            )
        ]
    rows = np.flatnonzero(columns["nonuniform"])
    if not len(rows):
        return []
    rows = rows[np.argsort(-np.abs(columns["interaction"][rows]), kind="stable")]
    items = list(dict.fromkeys(columns["item"][rows].tolist()))
    parts = []
    for row in rows:
        pair = columns["group"][row], columns["reference"][row]
        harder, other = pair if columns["interaction"][row] > 0 else pair[::-1]
        size = abs(columns["interaction"][row])
        parts.append(f"{listed([columns['item'][row]])} harder for {harder!r} than for {other!r} by {size:.2f} logits")
    return [
        Finding(
            "nonuniform_items",
            "warning",
            f"The difference changes from low to high scorers for {count(len(items), 'item')} (non-uniform DIF). From "
            f"the lower to the upper half of the persons it grows: {first_few(parts)}.",
            "Check whether they measure something else in one of the groups, or can be guessed there.",
            tuple(items),
        )
    ]


def mean_location(calibration: Calibration, items: NDArray[Any]) -> float:
    """Where a calibration has these items on average.

    A comparison of groups knows differences alone. Both groups are written with the items that agree at this mean, so
    that their difficulties are on the scale of the calibration.
    """
    return float(calibration.difficulty[positions(items, calibration.labels)].mean())


def threshold_contrasts(
    calibration: Calibration,
    responses: Responses,
    split: Split,
    items: NDArray[Any],
    anchors: NDArray[np.bool_],
    level: float,
    sampling: Sampling = SIMPLE,
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
        with contextlib.suppress(DesignError):  # too few items have all their categories in each group
            kept = positions(responses.items, items) >= 0
            groups = calibrate_groups(responses.take_items(kept), split, GroupModel(), sampling)
    df2 = np.inf if groups is None else groups.df_joint
    if groups is not None:
        layout, place, names = groups.layout, positions(groups.items, items), np.array(groups.names, dtype=object)
        chosen = anchors[place] if anchors[place].any() else np.ones(len(place), dtype=bool)
        weight = chosen[layout.item] / (chosen.sum() * layout.max_score[layout.item])  # in the anchors' mean location
        origin = mean_location(calibration, groups.items[chosen])
        thresholds = groups.thresholds - (groups.thresholds @ weight)[:, None] + origin
        for row in range(split.n_groups - 1):
            contrast = thresholds[row + 1] - thresholds[0]
            errors = JointErrors.dense(groups.threshold_covariance(row + 1))
            cross = errors.times(weight)
            covariance = errors.full() - cross[:, None] - cross + weight @ cross
            se = np.sqrt(np.maximum(np.diag(covariance), 0))
            with np.errstate(divide="ignore", invalid="ignore"):
                z = np.where(se > 0, contrast / se, 0.0)
            one = {
                "item": groups.items[layout.item],
                "category": layout.level,
                "group": np.repeat(names[[row + 1]], layout.n_entries),
                "reference": np.repeat(names[:1], layout.n_entries),
                "threshold": thresholds[row + 1],
                "threshold_reference": thresholds[0],
            }
            parts.append(one | {"contrast": contrast, "se": se, "z": z, "p": two_sided(z, df2)})
            statistic[row, place], df[row, place] = _unlike(layout, contrast, covariance)
    p = np.where(df > 0, wald_tail(statistic, np.maximum(df, 1), df2), np.nan).ravel()
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
    if rows:
        rows["p_bh"] = adjusted(rows["p"], "bh")
    columns: Columns = {
        "threshold_dif": statistic.ravel(),
        "threshold_dif_df": df.ravel().astype(np.int64),
        "threshold_dif_p": p,
        "threshold_dif_p_bh": adjusted(p, "bh"),
    }
    return rows, columns, _threshold_findings(rows, columns, np.tile(items, split.n_groups - 1), level)


def _unlike(layout: Thresholds, contrast: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Of every item: how far the contrasts of its thresholds are from their mean, and the degrees of freedom."""
    found, df = np.full(layout.n_items, np.nan), np.maximum(layout.max_score - 1.0, 0.0)
    for i in np.flatnonzero(df):
        mine = slice(layout.first[i], layout.first[i] + layout.max_score[i])
        inverse, d = np.linalg.pinv(covariance[mine, mine], rcond=DIGITS, hermitian=True), contrast[mine]
        one = inverse.sum(axis=1)
        found[i] = float(d @ inverse @ d - (one @ d) ** 2 / one.sum())
    return found, df


def _threshold_findings(
    thresholds: Columns, columns: Columns, items: NDArray[Any], level: float
) -> tuple[Finding, ...]:
    rows = np.flatnonzero(columns["threshold_dif_p_bh"] < level)
    if not len(rows):
        return ()
    rows = rows[np.argsort(columns["threshold_dif_p"][rows], kind="stable")]
    named = list(dict.fromkeys(items[rows].tolist()))
    told = []
    for item in named:
        mine = np.flatnonzero(positions(thresholds["item"], [item]) >= 0)
        most = mine[np.argmax(np.abs(thresholds["z"][mine]))]
        told.append(
            f"{listed([item])} above all at category {thresholds['category'][most]} "
            f"({thresholds['contrast'][most]:+.2f} logits for {thresholds['group'][most]!r})"
        )
    return (
        Finding(
            "threshold_dif",
            "warning",
            f"{count(len(named), 'item has', 'items have')} thresholds that differ between the groups by unequal "
            f"amounts: {first_few(told)}.",
            "Check whether the groups understand the categories alike; dif_thresholds.csv has every threshold.",
            tuple(named),
        ),
    )
