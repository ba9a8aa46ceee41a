"""Differential item functioning: is an item harder for one group of people than for another of the same ability?

Each group is calibrated on its own, and difficulties are compared after both are centered on common items:

    contrast_i = (b_i - mean of anchors) in the focal group - the same in the reference group,   se^2 = se_f^2 + se_r^2.

Where persons have weights or come in clusters, errors are those of the sandwich, with what the groups have in common
where classes are divided among them, and Student's t where clusters are few (`sampling.py`).

Anchors are the items that agree on one difference between the groups (`robust_center.py`): with all items as anchors a
few strong differences in one direction show up as small opposite ones everywhere else.

The effect on the delta scale of the Educational Testing Service is -2.35 contrast: negative when the item is harder for
the focal group. Their classes: A, |delta| < 1 or not different from 0; C, |delta| >= 1.5 and beyond 1 by more than
chance; B otherwise.

`study.dif` calls `differential`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration, t_quantile
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, check_option
from spectral_irt.inference.groups.calibrations import (
    Combination,
    GroupCalibrations,
    GroupModel,
    calibrate_groups,
    contrast,
    locations_like,
)
from spectral_irt.inference.groups.dif_details import (
    mean_location,
    nonuniform_columns,
    nonuniform_findings,
    threshold_contrasts,
)
from spectral_irt.inference.groups.grouping import Split, by_label, large_enough
from spectral_irt.inference.groups.mantel_haenszel import matched_columns
from spectral_irt.inference.groups.model_tests import WaldTest, compare_groups, weighted_spread
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.groups.slope_shifts import SlopeShifts, slope_shifts
from spectral_irt.inference.results import MIN_PEOPLE, adjust_p, chi2_tail, first_few, p_columns, two_sided, wald_tail
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.joint_errors import JointErrors
from spectral_irt.tables import Columns, Table, as_html, make_table
from spectral_irt.text import count, listed, p_value

DELTA = 2.35  # units of the ETS delta scale in a logit: 4 / 1.7
SMALL = 1.0  # |delta| below which an item is class A
LARGE = 1.5  # |delta| from which an item may be class C
CLASS_C_LEVEL = 0.05  # of the test that |delta| is beyond `SMALL`
FEWEST_ANCHORS = 0.25  # of the items
MOST_DIFFER = 0.4  # share of items that may differ, for the others to say where zero is
ANCHOR_LIMIT = (
    2.7  # standard errors beyond which an item is not an anchor: one too few costs less than one that differs
)


@dataclass(frozen=True, eq=False, repr=False)
class Differential:
    """What `differential` found.

    Attributes
    ----------
    contrasts, items, by_threshold : mappings of columns
        Those of `table`, `overall` and `thresholds`.
    test : WaldTest
        All items together: are there any differences at all?
    groups : GroupCalibrations
        Difficulties in each group, centered on the `anchors`; the others are compared with the `reference`.
    findings : tuple of Finding
    """

    contrasts: Columns
    items: Columns
    test: WaldTest
    groups: GroupCalibrations
    reference: str
    anchors: NDArray[Any]
    findings: tuple[Finding, ...]
    by_threshold: Columns = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """For notebooks: the groups, the findings, and the first items."""
        return as_html(repr(self).strip("<>"), self.items, lines=map(str, self.findings))

    def table(self) -> Table:
        """Every item in every focal group against the reference group.

        `item, group, reference, difficulty, difficulty_reference, contrast, se, z, p, p_holm, p_bh, delta, class,
        flagged, mh_delta, mh_se, mh_p, interaction, interaction_se, interaction_p, interaction_p_bh, nonuniform`.
        `contrast` (logits) is positive, `delta` negative when the item is harder for `group` than for `reference`; the
        p-values of Holm and of Benjamini and Hochberg take in all rows. The class goes by `p`, as it is defined;
        `flagged` rows are class B or C with `p_bh` below the level as well, beyond what the item's slope explains in
        groups of unlike ability (`slopes.slope_shifts`). `mh_` is Mantel and Haenszel's statistic on
        the delta scale, people matched on the anchors and the item itself, NaN where too few can be. `interaction` is
        the contrast among the more able minus that among the less able (logits), NaN where that cannot be told;
        `nonuniform` rows have an `interaction_p_bh` below the level.
        """
        return make_table(self.contrasts, self.groups.everyone.frame_kind)

    def overall(self) -> Table:
        """Every item over all groups.

        `item, statistic, df, p, p_holm, p_bh, largest, harder_for, easier_for, delta, class, flagged`. `largest` is the
        largest contrast between any two groups, `harder_for` and `easier_for`, and `delta` the same in ETS units.
        """
        return make_table(self.items, self.groups.everyone.frame_kind)

    def thresholds(self) -> Table:
        """Of ordered answers, every threshold in every focal group against the reference group.

        `item, category, group, reference, threshold, threshold_reference, contrast, se, z, p, p_bh`, on the items that
        have somebody in every category in each group. `table()` has `threshold_dif, threshold_dif_df, threshold_dif_p,
        threshold_dif_p_bh`: whether the contrasts of an item's thresholds differ.
        """
        return make_table(self.by_threshold, self.groups.everyone.frame_kind)

    @property
    def nonuniform_tested(self) -> bool:
        """Whether it was asked, of any item, if its difference depends on ability."""
        return bool(np.isfinite(self.contrasts.get("interaction_p", np.empty(0))).any())

    @property
    def classes(self) -> dict[str, int]:
        """How many items are in each class."""
        highest = highest_class(self.items, self.contrasts)
        return {letter: int(np.sum(highest == letter)) for letter in "ABC"}

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        n_named = {finding.code: len(finding.items) for finding in self.findings}
        nonuniform = None
        if self.nonuniform_tested:
            nonuniform = n_named.get("nonuniform_items", 0)
        return {
            "reference": self.reference,
            "groups": dict(zip(self.groups.names, self.groups.sizes.tolist(), strict=True)),
            "statistic": self.test.statistic,
            "df": self.test.df,
            "p": self.test.p,
            "items_compared": len(self.items["item"]),
            "anchors": len(self.anchors),
            "classes": self.classes,
            "flagged": n_named.get("differential_items", 0),
            "by_slope": n_named.get("differences_by_slope", 0),
            "nonuniform": nonuniform,
            "mantel_haenszel": bool(np.isfinite(self.contrasts["mh_p"]).any()),
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {letter}" for letter, n in self.classes.items())
        flagged = self.to_dict()["flagged"]
        return (
            f"<Differential functioning of {len(self.items['item'])} items ({counts}; {flagged} flagged); "
            f"{self.groups}; p = {self.test.p:.3g}>"
        )


def differential(
    calibration: Calibration,
    responses: Responses,
    groups: Any,
    *,
    reference: Any = None,
    anchors: str | Iterable[Any] = "purified",
    min_people: int = MIN_PEOPLE,
    level: float = 0.05,
    nonuniform: bool = True,
    sampling: Sampling = SIMPLE,
) -> Differential:
    """Which items are harder for one group than for another, by how much, and whether that may be chance.

    Parameters
    ----------
    calibration, responses
        The groups are calibrated by the method of the calibration, without a prior.
    groups : array of labels, one per person in order; or mapping from person to label
        None, NaN and "" are people in no group.
    reference : label, optional
        The group that the others are compared with; the first in order by default.
    anchors : "purified", "all" or item labels
        What the groups are centered on. "purified" (default): the items that agree on one difference between the
        groups, which up to 40% of items that do not cannot move. "all": all compared items; then a few strong
        differences in one direction show up as small opposite ones everywhere else.
    min_people : int
        A group with fewer people of mixed success is left out, with a finding; when fewer than two are left that is an
        error.
    level : float
        Of the classes and findings.
    nonuniform : bool
        Whether to ask too if differences depend on ability (`dif_details.py`), which takes as long again.
    sampling : Sampling
        Weights and clusters of the persons.

    References
    ----------
    Zwick (2012), A review of ETS differential item functioning assessment procedures, ETS RR-12-08; Holland & Thayer
    (1988).
    """
    if not 0 < level < 1:
        raise OptionError(f"`level` is {level}; it must lie between 0 and 1.")
    split, group_findings = large_enough(responses, by_label(responses, groups), min_people)
    if reference is not None:
        split = _with_reference(split, reference)
    compared = _compare(calibration, responses, split, anchors, level, sampling)
    items = compared.groups.items
    contrasts = compared.tables.contrasts
    findings = [*group_findings, *compared.findings]
    if nonuniform:
        contrasts |= nonuniform_columns(calibration, responses, split, items, min_people, level, sampling)
        findings += nonuniform_findings(contrasts)
    if isinstance(anchors, str):
        findings += _too_many_differ(compared.tables.items)
    by_threshold: Columns = {}
    if not responses.thresholds.binary:
        details = threshold_contrasts(calibration, responses, split, items, compared.anchors, level, sampling)
        by_threshold = details.thresholds
        contrasts |= details.items
        findings += details.findings
    anchor_items = items[compared.anchors]
    origin = mean_location(calibration, anchor_items)
    for name in ("difficulty", "difficulty_reference"):
        contrasts[name] = contrasts[name] + origin
    return Differential(
        contrasts=contrasts,
        items=compared.tables.items,
        test=compared.test,
        groups=compared.groups,
        reference=split.names[0],
        anchors=anchor_items,
        findings=tuple(findings),
        by_threshold=by_threshold,
    )


class _Tables(NamedTuple):
    """Every item in every focal group against the reference, and every item over all groups."""

    contrasts: Columns
    items: Columns

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Items that are flagged over all groups, or in one of them against the reference."""
        rows = np.vstack([self.items["flagged"], self.contrasts["flagged"].reshape(-1, len(self.items["item"]))])
        return np.asarray(rows.any(axis=0), dtype=bool)


class _Compared(NamedTuple):
    """Groups centered on the anchors, the differences between them as tables, the test of all items together, and what
    to know of these."""

    groups: GroupCalibrations
    anchors: NDArray[np.bool_]
    tables: _Tables
    test: WaldTest
    findings: list[Finding]


def _compare(
    calibration: Calibration,
    responses: Responses,
    split: Split,
    anchors: str | Iterable[Any],
    level: float,
    sampling: Sampling,
) -> _Compared:
    model = locations_like(calibration)
    groups = calibrate_groups(responses, split, model, sampling)
    is_anchor = _anchors(groups, anchors)
    centered = groups.centered_on(is_anchor)
    tables = _Tables(_contrasts(centered, level), _overall(centered, level))
    by_slope = np.zeros(len(groups.items), dtype=bool)
    if tables.flagged.any():
        shifts = _slope_shifts(responses, split, model, groups, is_anchor)
        by_slope = _take_off_slopes(tables, groups, shifts, anchors, level)
    matched, matching_findings = matched_columns(groups.everyone, split, is_anchor, DELTA, sampling)
    findings = [*groups.findings, *matching_findings, *_findings(tables, centered, by_slope, level)]
    test = compare_groups(groups)
    if not (tables.flagged.any() or by_slope.any()) and test.p < level:
        findings.append(_all_together(test.p))
    if not sampling.simple:
        findings.append(_sampling_finding(centered, sampling))
    tables = _Tables({**tables.contrasts, **matched}, tables.items)
    return _Compared(centered, is_anchor, tables, test, findings)


def _with_reference(split: Split, reference: Any) -> Split:
    """The groups with this one first."""
    if str(reference) not in split.names:
        raise OptionError(f"`reference` is {reference!r}; the groups are {listed(split.names)}.")
    first = split.names.index(str(reference))
    order = [first, *(k for k in range(split.n_groups) if k != first)]
    code = np.append(np.argsort(order), -1)  # the last of those in no group
    return Split(tuple(split.names[k] for k in order), code[split.group])


def _slope_shifts(
    responses: Responses, split: Split, model: GroupModel, groups: GroupCalibrations, anchors: NDArray[np.bool_]
) -> SlopeShifts:
    """What slopes alone make of the comparison."""
    compared = np.flatnonzero(positions(responses.items, groups.items) >= 0)
    model_of_compared = model.of_items(responses.thresholds, compared)
    return slope_shifts(groups, split.group[split.group >= 0], model_of_compared, anchors)


def _take_off_slopes(
    tables: _Tables, groups: GroupCalibrations, shifts: SlopeShifts, anchors: str | Iterable[Any], level: float
) -> NDArray[np.bool_]:
    """Flags only what goes beyond the slopes; which items are no longer flagged.

    Slopes also moved items into or out of the anchors, which are chosen anew without what slopes explain.
    """
    before = tables.flagged
    is_anchor = _anchors(groups, anchors, shifts)
    centered = groups.centered_on(is_anchor)
    shifts = shifts.centered_on(is_anchor)
    for table, without_slopes in (
        (tables.contrasts, _contrasts(centered, level, shifts)),
        (tables.items, _overall(centered, level, shifts)),
    ):
        table["flagged"] = table["flagged"] & _beyond_slopes(table, without_slopes)
    return before & ~tables.flagged


def _anchors(
    groups: GroupCalibrations, anchors: str | Iterable[Any], shifts: SlopeShifts | None = None
) -> NDArray[np.bool_]:
    """Which of the items the groups are centered on; purified without what slopes explain, if that is given."""
    if isinstance(anchors, str):
        check_option("anchors", anchors, ("all", "purified"))
        if anchors == "purified":
            return purified_anchors(groups, shifts)
        return np.ones(len(groups.items), dtype=bool)
    named = list(anchors)
    place = positions(named, groups.items)
    unknown = [label for label, k in zip(named, place.tolist(), strict=True) if k < 0]
    if unknown or not named:
        what = f"{listed(unknown)} not among the items compared" if unknown else "none named"
        raise OptionError(f"anchors: {what}; those are {listed(groups.items)}.")
    return np.isin(np.arange(len(groups.items)), place)


def purified_anchors(groups: GroupCalibrations, shifts: SlopeShifts | None = None) -> NDArray[np.bool_]:
    """The items that agree in every focal group on how far it is from the reference group."""
    n_items = len(groups.items)
    largest_z = np.zeros(n_items)
    anchors = np.ones(n_items, dtype=bool)
    for focal in range(1, len(groups.names)):
        coefficients = contrast(len(groups.names), focal, 0)
        errors = groups.combined_errors(coefficients)
        difference = coefficients @ groups.difficulty
        if shifts is not None:
            difference = difference - coefficients @ shifts.shift
            errors = errors + JointErrors.independent(np.sqrt(coefficients**2 @ shifts.se**2))
        df = float(np.median(groups.combine(coefficients).df))
        agreement = robust_center(difference, errors, limit=as_t(ANCHOR_LIMIT, df), excess=False)
        anchors &= agreement.agrees
        largest_z = np.maximum(largest_z, np.abs(agreement.z))
    fewest = max(2, int(np.ceil(FEWEST_ANCHORS * n_items)))
    if anchors.sum() < fewest:  # many groups, each with other items that differ: those that differ least
        anchors = largest_z <= np.partition(largest_z, fewest - 1)[fewest - 1]
    return anchors


def as_t(limit: float, df: float) -> float:
    """The value that Student's t exceeds as often as a standard normal variable exceeds this one."""
    if np.isinf(df):
        return limit
    return t_quantile(df, tail=float(two_sided(limit)) / 2)


def ets_class(delta: Floats, se: Floats, p: Floats, level: float = 0.05, df: Floats | float = np.inf) -> NDArray[Any]:
    """A, B or C: see the head of this module; `df` are the degrees of freedom of the standard errors.

    >>> ets_class(np.array([0.5, 1.2, 1.2, 1.6, 2.5]), np.array([0.1, 0.1, 0.9, 0.5, 0.5]), np.array([0, 0, 0.2, 0, 0]))
    array(['A', 'B', 'A', 'B', 'C'], dtype=object)
    """
    size = np.abs(delta)
    classes = np.full(len(delta), "B", dtype=object)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond_small = two_sided((size - SMALL) / se, df) / 2 < CLASS_C_LEVEL
    classes[(size >= LARGE) & beyond_small] = "C"
    classes[(size < SMALL) | ~(p < level)] = "A"
    return classes


def _pair(groups: GroupCalibrations, group: int, other: int, shifts: SlopeShifts | None) -> Combination:
    """The difficulties in one group less those in another; less what slopes explain, if that is given."""
    difference = groups.combine(contrast(len(groups.names), group, other))
    if shifts is None:
        return difference
    explained = shifts.shift[group] - shifts.shift[other]
    explained_se = np.hypot(shifts.se[group], shifts.se[other])
    return Combination(difference.value - explained, np.hypot(difference.se, explained_se), difference.df)


def _contrasts(groups: GroupCalibrations, level: float, shifts: SlopeShifts | None = None) -> Columns:
    """Each item in each focal group against the reference."""
    names = np.array(groups.names, dtype=object)
    n_items = len(groups.items)
    n_focal = len(names) - 1
    pairs = [_pair(groups, focal, 0, shifts) for focal in range(1, len(names))]
    size = np.concatenate([pair.value for pair in pairs])
    se = np.concatenate([pair.se for pair in pairs])
    p = np.concatenate([pair.p for pair in pairs])
    df = np.concatenate([pair.df for pair in pairs])
    columns: Columns = {
        "item": np.tile(groups.items, n_focal),
        "group": np.repeat(names[1:], n_items),
        "reference": np.repeat(names[:1], n_items * n_focal),
        "difficulty": groups.difficulty[1:].ravel(),
        "difficulty_reference": np.tile(groups.difficulty[0], n_focal),
        "contrast": size,
        "se": se,
        "z": np.concatenate([pair.z for pair in pairs]),
        **p_columns(p),
        **_class_columns(-size, se, p, level, df),
    }
    if np.isfinite(df).any():
        columns["df"] = df
    return columns


def _class_columns(size: Floats, se: Floats, p: Floats, level: float, df: Floats) -> Columns:
    """`delta, class, flagged` of differences in logits."""
    classes = ets_class(DELTA * size, DELTA * se, p, level, df)
    return {"delta": DELTA * size, "class": classes, "flagged": (classes != "A") & (adjust_p(p, "bh") < level)}


def _beyond_slopes(table: Columns, without_slopes: Columns) -> NDArray[np.bool_]:
    """Rows that are flagged without what slopes explain, too, and in the same direction: where taking that off turns a
    difference round, nobody can tell which of the two it is."""
    if "contrast" in table:
        turned = table["contrast"] * without_slopes["contrast"] < 0
    else:
        turned = table["harder_for"] != without_slopes["harder_for"]
    return np.asarray(without_slopes["flagged"] & ~np.asarray(turned), dtype=bool)


def _overall(groups: GroupCalibrations, level: float, shifts: SlopeShifts | None = None) -> Columns:
    """Each item over all groups, with the largest contrast between any two."""
    n_groups, n_items = groups.difficulty.shape
    difficulty = groups.difficulty
    shift_se = np.zeros_like(groups.se)
    if shifts is not None:
        difficulty = difficulty - shifts.shift
        shift_se = shifts.se
    hardest = difficulty.argmax(axis=0)
    easiest = difficulty.argmin(axis=0)
    largest = np.zeros(n_items)
    se = np.zeros(n_items)
    df = np.full(n_items, np.inf)
    for high, low in sorted(set(zip(hardest.tolist(), easiest.tolist(), strict=True))):
        if high != low:
            items = (hardest == high) & (easiest == low)
            pair = _pair(groups, high, low, shifts)
            largest[items] = pair.value[items]
            se[items] = pair.se[items]
            df[items] = pair.df[items]
    if n_groups == 2:
        pair = _pair(groups, 1, 0, shifts)
        statistic = pair.z**2
        p = pair.p
    elif groups.sandwiches is None:
        statistic = weighted_spread(difficulty, np.hypot(groups.se, shift_se) ** 2)
        p = chi2_tail(statistic, n_groups - 1)
    else:
        statistic = groups.item_statistics(difficulty, shift_se)
        p = wald_tail(statistic, n_groups - 1, groups.df_joint)
    names = np.array(groups.names, dtype=object)
    return {
        "item": groups.items,
        "statistic": statistic,
        "df": np.full(n_items, n_groups - 1),
        **p_columns(p),
        "largest": largest,
        "harder_for": names[hardest],
        "easier_for": names[easiest],
        **_class_columns(largest, se, p, level, df),
    }


def highest_class(items: Columns, contrasts: Columns) -> NDArray[Any]:
    """The class of each item: the highest of any comparison, of the two groups that differ most, and of each group with
    the reference."""
    letters: NDArray[Any] = np.vstack([items["class"], contrasts["class"].reshape(-1, len(items["item"]))])
    return letters.max(axis=0)


def _sampling_finding(groups: GroupCalibrations, sampling: Sampling) -> Finding:
    """What the comparison allows for, and what it leaves out."""
    sentence = f"The comparison of the groups {listed(groups.names)} allows for {sampling.words} of people"
    if groups.sandwiches is not None and np.isfinite(groups.df_joint):
        df = f"{groups.df_joint:.3g} degrees of freedom"
        across = ", some of which have people of several groups" if groups.sandwiches.shared else ""
        sentence += f" ({sampling.name}{across}; t with up to {df})"
    sentence += "; Mantel and Haenszel's statistic does not, and is left out."
    return Finding("groups_sampled", "note", sentence)


def _too_many_differ(items: Columns) -> list[Finding]:
    """A warning where anchors cannot be found in the data, because most of the items may not differ."""
    n_differ = int(items["flagged"].sum())
    n_items = len(items["item"])
    if n_differ <= MOST_DIFFER * n_items:
        return []
    sentence = (
        f"{n_differ:,} of {n_items:,} items differ between the groups: with so many, nobody can tell from the answers "
        "alone which ones are harder for one group and which are easier for the other."
    )
    remedy = "Center on items known to be fair: in Python, name them as the anchors of study.dif."
    return [Finding("too_many_differ", "warning", sentence, remedy)]


def _findings(tables: _Tables, groups: GroupCalibrations, by_slope: NDArray[np.bool_], level: float) -> list[Finding]:
    """What both tables say, over all groups and against the reference; and which items only differ by their slopes."""
    between = f"between the groups {listed(groups.names)}"
    if tables.flagged.any():
        findings = [_differential_items(tables, groups, between)]
    else:
        findings = [_no_differential_items(tables, groups, by_slope, level, between)]
    if by_slope.any():
        findings.append(_differences_by_slope(tables.items, by_slope))
    return findings


def _differential_items(tables: _Tables, groups: GroupCalibrations, between: str) -> Finding:
    items, contrasts = tables.items, tables.contrasts
    n_items = len(items["item"])
    differ = np.flatnonzero(tables.flagged)
    flagged = np.vstack([items["flagged"], contrasts["flagged"].reshape(-1, n_items)])
    p_bh = np.vstack([items["p_bh"], contrasts["p_bh"].reshape(-1, n_items)])
    p = np.where(flagged, p_bh, 1.0).min(axis=0)
    return Finding(
        "differential_items",
        "warning",
        f"DIF in {len(differ):,} of {n_items:,} items {between}: {_largest_first(differ, tables, groups, p)}.",
        "Review these items; one that is unfair can be dropped, or given a difficulty for each group.",
        tuple(items["item"][_by_size(differ, items)].tolist()),
    )


def _all_together(p: float) -> Finding:
    """Beside "No DIF seen": the test of all items says otherwise, and can name none."""
    sentence = f"All items together do differ between the groups ({p_value(p)}), though no single one can be named."
    return Finding("items_differ_together", "note", sentence)


def _no_differential_items(
    tables: _Tables, groups: GroupCalibrations, by_slope: NDArray[np.bool_], level: float, between: str
) -> Finding:
    letters = highest_class(tables.items, tables.contrasts)
    before_adjustment = np.flatnonzero((letters != "A") & ~by_slope)
    which = "the other items" if by_slope.any() else f"all {len(letters):,} items"
    sentence = f"No DIF seen {between}: {which} are in class A (negligible)."
    if len(before_adjustment):
        sentence = (
            f"No DIF seen {between} after adjusting for {len(tables.contrasts['item']):,} comparisons. "
            f"{len(before_adjustment):,} would be in class B or C before adjustment, none with an adjusted p below "
            f"{level:g}: {_largest_first(before_adjustment, tables, groups)}."
        )
    return Finding("no_differential_items", "note", sentence)


def _differences_by_slope(items: Columns, by_slope: NDArray[np.bool_]) -> Finding:
    named = items["item"][_by_size(np.flatnonzero(by_slope), items)]
    predicted = "their slopes predict"
    if len(named) == 1:
        predicted = "its slope predicts"
    sentence = (
        f"{count(len(named), 'item differs', 'items differ')} between the groups as {predicted} for groups whose means "
        f"differ, which is not counted as DIF: {listed(named)}."
    )
    remedy = "A model with slopes (2PL, generalized partial credit) would fit better."
    return Finding("differences_by_slope", "note", sentence, remedy, tuple(named.tolist()))


def _by_size(chosen: Ints, items: Columns) -> Ints:
    return chosen[np.argsort(-items["largest"][chosen], kind="stable")]


def _largest_first(chosen: Ints, tables: _Tables, groups: GroupCalibrations, p: Floats | None = None) -> str:
    """'q3' is harder for 'm' than for 'f' by 1.21 logits (class C, adjusted p < 0.001); ..."""
    items = tables.items
    letters = highest_class(items, tables.contrasts)
    clauses = []
    for k in _by_size(chosen, items):
        than = ""
        if len(groups.names) > 2:
            than = f" than for {items['easier_for'][k]!r}"
        details = f"class {letters[k]}"
        if p is not None:
            details += f", adjusted {p_value(p[k])}"
        clauses.append(
            f"{listed(items['item'][[k]])} is harder for {items['harder_for'][k]!r}{than} by {items['largest'][k]:.2f} "
            f"logits ({details})"
        )
    return first_few(clauses)
