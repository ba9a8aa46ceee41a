"""Differential functioning in detail: does the difference between two groups depend on ability, or on the threshold?

Each group is divided at one common ability into a less able and a more able half, by the score on the items answered;
the four parts are calibrated on their own, and

    interaction_i = contrast_i among the more able - contrast_i among the less able,

centered on the items that agree on it (`robust_center.py`), is zero under the model, whether or not the item has a
uniform difference. A positive one says that the item discriminates less in the focal group. Each threshold on its own
says where a difference lies: with thresholds estimated in each group and centered on the same anchors as the locations,
a chi-square with K - 1 degrees of freedom asks whether the K contrasts of an item are the same.

`dif.differential` asks for both."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.data.labels import positions
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups.calibrations import (
    RANK_DIGITS,
    GroupCalibrations,
    GroupModel,
    calibrate_groups,
    locations_like,
    model_like,
)
from spectral_irt.inference.groups.grouping import Split, by_ability
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.results import adjust_p, first_few, two_sided, wald_tail
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.joint_errors import JointErrors
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed


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
    interactions = np.full((len(Interaction._fields), split.n_groups - 1, len(items)), np.nan)
    half = by_ability(responses, calibration.thresholds)  # cut at the same ability in all groups
    code = np.where((split.group >= 0) & (half.group >= 0), 2 * split.group + half.group, -1)
    cells = Split(tuple(f"{name}, {part}" for name in split.names for part in half.names), code)
    sizes = np.bincount(code[responses.informative & (code >= 0)], minlength=cells.n_groups).reshape(-1, 2)
    enough = sizes.min(axis=1) >= min_people
    if enough[0] and enough[1:].any():
        large_cells = cells.keep(np.repeat(enough, 2))
        interactions[:, enough[1:]] = _interactions(calibration, responses, large_cells, items, sampling)
    size, se, p = interactions.reshape(len(interactions), -1)
    p_bh = adjust_p(p, "bh")
    return {
        "interaction": size,
        "interaction_se": se,
        "interaction_p": p,
        "interaction_p_bh": p_bh,
        "nonuniform": p_bh < level,
    }


class Interaction(NamedTuple):
    """How much more an item differs between two groups among the more able than among the less able (focal groups x
    items), with standard error and p."""

    size: Floats
    se: Floats
    p: Floats


def _interactions(
    calibration: Calibration, responses: Responses, cells: Split, items: NDArray[Any], sampling: Sampling
) -> Interaction:
    """From pairs of cells, the less and the more able of each group, of which the first is the reference group."""
    shape = (cells.n_groups // 2 - 1, len(items))
    interaction = Interaction(np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan))
    compared = np.flatnonzero(positions(responses.items, items) >= 0)
    model = locations_like(calibration).of_items(responses.thresholds, compared)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            groups = calibrate_groups(responses.take_items(compared), cells, model, sampling)
    except DesignError:  # the halves are too thin to be calibrated on their own
        return interaction
    place = positions(groups.items, items)
    for row in range(shape[0]):
        rise = np.zeros(cells.n_groups)  # from the less to the more able half: of the focal group, less the reference's
        rise[[0, 1]] = 1.0, -1.0
        rise[[2 * row + 2, 2 * row + 3]] = -1.0, 1.0
        agreement = robust_center(rise @ groups.difficulty, groups.combined_errors(rise), excess=False)
        difference = groups.combine(rise, agreement.agrees / agreement.agrees.sum())
        interaction.size[row, place] = difference.value
        interaction.se[row, place] = difference.se
        interaction.p[row, place] = difference.p
    return interaction


def nonuniform_findings(columns: Columns) -> list[Finding]:
    """The items whose difference depends on ability; or that nobody looked."""
    if not np.isfinite(columns["interaction_p"]).any():
        return [
            Finding(
                "nonuniform_not_tested",
                "note",
                "Whether differences change from low to high scorers (non-uniform DIF) was not tested: a group has "
                "too few low scorers or too few high scorers.",
            )
        ]
    rows = np.flatnonzero(columns["nonuniform"])
    if not len(rows):
        return []
    rows = rows[np.argsort(-np.abs(columns["interaction"][rows]), kind="stable")]
    items = list(dict.fromkeys(columns["item"][rows].tolist()))
    clauses = []
    for row in rows:
        size = columns["interaction"][row]
        harder = columns["group"][row]
        easier = columns["reference"][row]
        if size <= 0:
            harder, easier = easier, harder
        item = listed([columns["item"][row]])
        clauses.append(f"{item} harder for {harder!r} than for {easier!r} by {abs(size):.2f} logits")
    return [
        Finding(
            "nonuniform_items",
            "warning",
            f"The difference changes from low to high scorers for {count(len(items), 'item')} (non-uniform DIF). From "
            f"the lower to the upper half of the persons it grows: {first_few(clauses)}.",
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


class ThresholdContrasts(NamedTuple):
    """The thresholds of every item in every group against the first one; what they say of items; findings.

    `thresholds` has a row for each threshold and focal group: `item, category, group, reference, threshold,
    threshold_reference, contrast, se, z, p, p_bh`. `items` has for each item and focal group, in the order of the
    contrasts of items, `threshold_dif, threshold_dif_df, threshold_dif_p, threshold_dif_p_bh`: whether the contrasts of
    its thresholds differ; NaN for items that have one threshold, or not all categories in each group.
    """

    thresholds: Columns
    items: Columns
    findings: tuple[Finding, ...]


def threshold_contrasts(
    calibration: Calibration,
    responses: Responses,
    split: Split,
    items: NDArray[Any],
    anchors: NDArray[np.bool_],
    level: float,
    sampling: Sampling = SIMPLE,
) -> ThresholdContrasts:
    """Of the items compared, whose locations are centered on the `anchors`."""
    shape = (split.n_groups - 1, len(items))
    statistic = np.full(shape, np.nan)
    df = np.zeros(shape)
    thresholds: Columns = {}
    df_errors = np.inf
    groups = _free_thresholds(calibration, responses, split, items, sampling)
    if groups is not None:
        df_errors = groups.df_joint
        place = positions(groups.items, items)
        is_anchor = anchors[place] if anchors[place].any() else np.ones(len(place), dtype=bool)
        centered = _centered_thresholds(calibration, groups, is_anchor)
        rows = []
        for focal in range(1, split.n_groups):
            difference = _threshold_difference(groups, centered, focal)
            rows.append(_threshold_rows(groups, centered, focal, difference))
            statistic[focal - 1, place], df[focal - 1, place] = _unlike(groups.layout, *difference)
        thresholds = {name: np.concatenate([columns[name] for columns in rows]) for name in rows[0]}
        thresholds["p_bh"] = adjust_p(thresholds["p"], "bh")
    p = np.where(df > 0, wald_tail(statistic, np.maximum(df, 1), df_errors), np.nan).ravel()
    columns: Columns = {
        "threshold_dif": statistic.ravel(),
        "threshold_dif_df": df.ravel().astype(np.int64),
        "threshold_dif_p": p,
        "threshold_dif_p_bh": adjust_p(p, "bh"),
    }
    findings = _threshold_findings(thresholds, columns, np.tile(items, split.n_groups - 1), level)
    return ThresholdContrasts(thresholds, columns, findings)


def _free_thresholds(
    calibration: Calibration, responses: Responses, split: Split, items: NDArray[Any], sampling: Sampling
) -> GroupCalibrations | None:
    """The groups with every threshold free; None of a rating scale, where thresholds go together, and where too few
    items have all their categories in each group."""
    if model_like(calibration).scales is not None or responses.thresholds.widest == 1:
        return None
    compared = positions(responses.items, items) >= 0
    try:
        return calibrate_groups(responses.take_items(compared), split, GroupModel(), sampling)
    except DesignError:
        return None


class _CenteredThresholds(NamedTuple):
    """Thresholds of every group (groups x thresholds), on the scale of the calibration; and the weights of the
    thresholds in the mean location of the anchors, which all groups share."""

    thresholds: Floats
    weights: Floats


def _centered_thresholds(
    calibration: Calibration, groups: GroupCalibrations, anchors: NDArray[np.bool_]
) -> _CenteredThresholds:
    layout = groups.layout
    weights = anchors[layout.item] / (anchors.sum() * layout.max_score[layout.item])
    origin = mean_location(calibration, groups.items[anchors])
    return _CenteredThresholds(groups.thresholds - (groups.thresholds @ weights)[:, None] + origin, weights)


class _Difference(NamedTuple):
    """Thresholds of a focal group less those of the reference, and their covariance."""

    contrast: Floats
    covariance: Floats


def _threshold_difference(groups: GroupCalibrations, centered: _CenteredThresholds, focal: int) -> _Difference:
    errors = JointErrors.dense(groups.threshold_covariance(focal))
    with_mean = errors.times(centered.weights)
    covariance = errors.full() - with_mean[:, None] - with_mean + centered.weights @ with_mean
    return _Difference(centered.thresholds[focal] - centered.thresholds[0], covariance)


def _threshold_rows(
    groups: GroupCalibrations, centered: _CenteredThresholds, focal: int, difference: _Difference
) -> Columns:
    layout = groups.layout
    names = np.array(groups.names, dtype=object)
    se = np.sqrt(np.maximum(np.diag(difference.covariance), 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(se > 0, difference.contrast / se, 0.0)
    return {
        "item": groups.items[layout.item],
        "category": layout.level,
        "group": np.repeat(names[[focal]], layout.n_entries),
        "reference": np.repeat(names[:1], layout.n_entries),
        "threshold": centered.thresholds[focal],
        "threshold_reference": centered.thresholds[0],
        "contrast": difference.contrast,
        "se": se,
        "z": z,
        "p": two_sided(z, groups.df_joint),
    }


def _unlike(layout: Thresholds, contrast: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Of every item: how far the contrasts of its thresholds are from their mean, and the degrees of freedom.

    With d the contrasts of an item, V their covariance and 1 a vector of ones, d'V^-1 d - (1'V^-1 d)^2 / 1'V^-1 1.
    """
    statistic = np.full(layout.n_items, np.nan)
    df = np.maximum(layout.max_score - 1.0, 0.0)
    for item in np.flatnonzero(df):
        place = slice(layout.first[item], layout.first[item] + layout.max_score[item])
        d = contrast[place]
        inverse = np.linalg.pinv(covariance[place, place], rcond=RANK_DIGITS, hermitian=True)
        sums = inverse.sum(axis=1)
        statistic[item] = float(d @ inverse @ d - (sums @ d) ** 2 / sums.sum())
    return statistic, df


def _threshold_findings(
    thresholds: Columns, columns: Columns, items: NDArray[Any], level: float
) -> tuple[Finding, ...]:
    rows = np.flatnonzero(columns["threshold_dif_p_bh"] < level)
    if not len(rows):
        return ()
    rows = rows[np.argsort(columns["threshold_dif_p"][rows], kind="stable")]
    named = list(dict.fromkeys(items[rows].tolist()))
    clauses = []
    for item in named:
        of_item = np.flatnonzero(positions(thresholds["item"], [item]) >= 0)
        largest = of_item[np.argmax(np.abs(thresholds["z"][of_item]))]
        clauses.append(
            f"{listed([item])} above all at category {thresholds['category'][largest]} "
            f"({thresholds['contrast'][largest]:+.2f} logits for {thresholds['group'][largest]!r})"
        )
    return (
        Finding(
            "threshold_dif",
            "warning",
            f"{count(len(named), 'item has', 'items have')} thresholds that differ between the groups by unequal "
            f"amounts: {first_few(clauses)}.",
            "Check whether the groups understand the categories alike; dif_thresholds.csv has every threshold.",
            tuple(named),
        ),
    )
