"""Differential item functioning: is an item harder for one group of people than for another of the same ability?

Each group is calibrated on its own, and difficulties are compared after both are centered on common items:

    contrast_i = (b_i - mean of anchors) in the focal group - the same in the reference group,   se^2 = se_f^2 + se_r^2.

Anchors are the items that agree on one difference between the groups (`robust_center.py`): with all items as anchors a
few strong differences in one direction show up as small opposite ones everywhere else.

The effect on the delta scale of the Educational Testing Service is -2.35 contrast: negative when the item is harder for
the focal group. Their classes: A, |delta| < 1 or not different from 0; C, |delta| >= 1.5 and beyond 1 by more than
chance; B otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, check_option
from spectral_irt.inference.groups.calibrations import GroupCalibrations, calibrate_groups, locations_like
from spectral_irt.inference.groups.dif_details import nonuniform_columns, nonuniform_findings, threshold_contrasts
from spectral_irt.inference.groups.grouping import Split, by_label, large_enough
from spectral_irt.inference.groups.mantel_haenszel import matched_columns
from spectral_irt.inference.groups.model_tests import WaldTest, compare_groups, weighted_spread
from spectral_irt.inference.items.slopes import slope_shifts
from spectral_irt.inference.results import MIN_PEOPLE, adjusted, chi2_tail, first_few, two_sided
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import count, listed, p_value

DELTA = 2.35  # units of the ETS delta scale in a logit: 4 / 1.7
SMALL, LARGE = 1.0, 1.5  # |delta| below which an item is class A, and from which it may be class C
Z95_ONE_SIDED = 1.6448536269514722
FEWEST_ANCHORS = 0.25  # of the items
MOST = 0.4  # share of items that may differ, for the others to say where zero is
APART = 2.7  # standard errors beyond which an item is not an anchor: one too few costs less than one that differs


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

    def to_dict(self) -> dict[str, Any]:
        """The result as data; the class of an item is its highest among the rows of the table."""
        m, named = len(self.items["item"]), {finding.code: len(finding.items) for finding in self.findings}
        classes = self.contrasts["class"].reshape(-1, m).max(axis=0)
        return {
            "reference": self.reference,
            "groups": dict(zip(self.groups.names, self.groups.sizes.tolist(), strict=True)),
            "statistic": self.test.statistic,
            "df": self.test.df,
            "p": self.test.p,
            "items_compared": m,
            "anchors": len(self.anchors),
            "classes": {letter: int(np.sum(classes == letter)) for letter in "ABC"},
            "flagged": named.get("differential_items", 0),
            "nonuniform": named.get("nonuniform_items", 0) if self.nonuniform_tested else None,
        }

    def __repr__(self) -> str:
        flags = self.items["class"]
        counts = ", ".join(f"{int((flags == c).sum())} {c}" for c in "ABC")
        flagged = int(self.items["flagged"].sum())
        return (
            f"<Differential functioning of {len(flags)} items ({counts}; {flagged} flagged); {self.groups}; "
            f"p = {self.test.p:.3g}>"
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

    References
    ----------
    Zwick (2012), A review of ETS differential item functioning assessment procedures, ETS RR-12-08; Holland & Thayer
    (1988).
    """
    if not 0 < level < 1:
        raise OptionError(f"`level` is {level}; it must lie between 0 and 1.")
    split, findings = large_enough(responses, by_label(responses, groups), min_people)
    if reference is not None:
        if str(reference) not in split.names:
            raise OptionError(f"`reference` is {reference!r}; the groups are {listed(split.names)}.")
        base = split.names.index(str(reference))
        order = [base, *(k for k in range(split.n_groups) if k != base)]
        code = np.append(np.argsort(order), -1)  # of those in no group
        split = Split(tuple(split.names[k] for k in order), code[split.group])
    found = calibrate_groups(responses, split, locations_like(calibration))
    test = compare_groups(found)
    chosen = _anchors(found, anchors)
    centered = found.centered_on(chosen)
    contrasts, items = _contrasts(centered, level), _overall(centered, level)
    matched, note = matched_columns(found.everyone, split, chosen, DELTA)
    contrasts |= matched
    by_slope = _explained_by_slopes(contrasts, items, centered, split, chosen, level)
    findings += [*found.findings, *note, *_findings(items, contrasts, centered, by_slope, level)]
    if nonuniform:
        contrasts |= nonuniform_columns(calibration, responses, split, found.items, min_people, level)
        findings += nonuniform_findings(contrasts)
    differ, m = int(items["flagged"].sum()), len(found.items)
    if isinstance(anchors, str) and differ > MOST * m:
        sentence = (
            f"{differ:,} of {m:,} items differ between the groups: with so many, nobody can tell from the answers "
            "alone which ones are harder for one group and which are easier for the other."
        )
        remedy = "Center on items known to be fair: in Python, name them as the anchors of study.dif."
        findings.append(Finding("too_many_differ", "warning", sentence, remedy))
    by_threshold: Columns = {}
    if not responses.thresholds.binary:
        by_threshold, further, told = threshold_contrasts(calibration, responses, split, found.items, chosen, level)
        contrasts |= further
        findings += told
    anchored = found.items[chosen]
    return Differential(contrasts, items, test, centered, split.names[0], anchored, tuple(findings), by_threshold)


def _anchors(groups: GroupCalibrations, anchors: str | Iterable[Any]) -> NDArray[np.bool_]:
    """Which of the items the groups are centered on."""
    if isinstance(anchors, str):
        check_option("anchors", anchors, ("all", "purified"))
        return _purified(groups) if anchors == "purified" else np.ones(len(groups.items), dtype=bool)
    named = list(anchors)
    place = positions(named, groups.items)
    unknown = [label for label, k in zip(named, place.tolist(), strict=True) if k < 0]
    if unknown or not named:
        what = f"{listed(unknown)} not among the items compared" if unknown else "none named"
        raise OptionError(f"anchors: {what}; those are {listed(groups.items)}.")
    return np.isin(np.arange(len(groups.items)), place)


def _purified(groups: GroupCalibrations) -> NDArray[np.bool_]:
    """The items that agree in every focal group on how far it is from the reference group."""
    size = np.zeros(len(groups.items))
    anchors = np.ones(len(groups.items), dtype=bool)
    for k in range(1, len(groups.names)):
        difference, errors = groups.difficulty[k] - groups.difficulty[0], groups.errors(k) + groups.errors(0)
        found = robust_center(difference, errors, limit=APART, excess=False)
        anchors &= found.agrees
        size = np.maximum(size, np.abs(found.z))
    fewest = max(2, int(np.ceil(FEWEST_ANCHORS * len(size))))
    if anchors.sum() < fewest:  # many groups, each with other items that differ: those that differ least
        anchors = size <= np.partition(size, fewest - 1)[fewest - 1]
    return anchors


def ets_class(delta: Floats, se: Floats, p: Floats, level: float = 0.05) -> NDArray[Any]:
    """A, B or C: see the head of this module.

    >>> ets_class(np.array([0.5, 1.2, 1.2, 1.6, 2.5]), np.array([0.1, 0.1, 0.9, 0.5, 0.5]), np.array([0, 0, 0.2, 0, 0]))
    array(['A', 'B', 'A', 'B', 'C'], dtype=object)
    """
    size = np.abs(delta)
    out = np.full(len(delta), "B", dtype=object)
    with np.errstate(divide="ignore", invalid="ignore"):
        out[(size >= LARGE) & ((size - SMALL) / se > Z95_ONE_SIDED)] = "C"
    out[(size < SMALL) | ~(p < level)] = "A"
    return out


def _contrasts(groups: GroupCalibrations, level: float) -> Columns:
    names = np.array(groups.names, dtype=object)
    m, focal = len(groups.items), len(names) - 1
    contrast = (groups.difficulty[1:] - groups.difficulty[0]).ravel()
    se = np.hypot(groups.se[1:], groups.se[0]).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):  # a single anchor is at zero in every group
        z = np.where(se > 0, contrast / se, 0.0)
    p = two_sided(z)
    return {
        "item": np.tile(groups.items, focal),
        "group": np.repeat(names[1:], m),
        "reference": np.repeat(names[:1], m * focal),
        "difficulty": groups.difficulty[1:].ravel(),
        "difficulty_reference": np.tile(groups.difficulty[0], focal),
        "contrast": contrast,
        "se": se,
        "z": z,
        "p": p,
        "p_holm": adjusted(p, "holm"),
        "p_bh": adjusted(p, "bh"),
        **_judged(-contrast, se, p, level),
    }


def _judged(size: Floats, se: Floats, p: Floats, level: float) -> Columns:
    """`delta, class, flagged` of differences in logits."""
    classes = ets_class(DELTA * size, DELTA * se, p, level)
    return {"delta": DELTA * size, "class": classes, "flagged": (classes != "A") & (adjusted(p, "bh") < level)}


def _explained_by_slopes(
    contrasts: Columns,
    items: Columns,
    groups: GroupCalibrations,
    split: Split,
    anchors: NDArray[np.bool_],
    level: float,
) -> NDArray[np.bool_]:
    """Items that differ by no more than their slopes and the abilities of the groups explain: flagged no longer."""

    def flagged() -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = items["flagged"] | contrasts["flagged"].reshape(-1, len(groups.items)).any(axis=0)
        return found

    before = flagged()
    if not before.any():
        return before
    shift, error = slope_shifts(groups.everyone, split.group[split.group >= 0], split.n_groups)
    shift -= shift[:, anchors].mean(axis=1, keepdims=True)
    fair = replace(groups, difficulty=groups.difficulty - shift, se=np.hypot(groups.se, error))
    contrasts["flagged"] &= _contrasts(fair, level)["flagged"]
    items["flagged"] &= _overall(fair, level)["flagged"]
    return before & ~flagged()


def _overall(groups: GroupCalibrations, level: float) -> Columns:
    """Each item over all groups, with the largest contrast between any two."""
    df = len(groups.names) - 1
    statistic = weighted_spread(groups.difficulty, groups.se**2)
    p = chi2_tail(statistic, df)
    high, low = groups.difficulty.argmax(axis=0), groups.difficulty.argmin(axis=0)
    item, names = np.arange(len(groups.items)), np.array(groups.names, dtype=object)
    largest = groups.difficulty[high, item] - groups.difficulty[low, item]
    se = np.hypot(groups.se[high, item], groups.se[low, item])
    return {
        "item": groups.items,
        "statistic": statistic,
        "df": np.full(len(item), df),
        "p": p,
        "p_holm": adjusted(p, "holm"),
        "p_bh": adjusted(p, "bh"),
        "largest": largest,
        "harder_for": names[high],
        "easier_for": names[low],
        **_judged(largest, se, p, level),
    }


def _findings(
    items: Columns, contrasts: Columns, groups: GroupCalibrations, by_slope: NDArray[np.bool_], level: float
) -> list[Finding]:
    """What both tables say, over all groups and against the reference; and which items only differ by their slopes."""
    m, found = len(groups.items), []
    flagged, letter = (np.vstack([items[k], contrasts[k].reshape(-1, m)]) for k in ("flagged", "class"))
    chosen = np.flatnonzero(flagged.any(axis=0))
    between = f"between the groups {listed(groups.names)}"
    if len(chosen):
        where = np.where(flagged, letter, "A")
        p = np.where(flagged, np.vstack([items["p_bh"], contrasts["p_bh"].reshape(-1, m)]), 1.0).min(axis=0)
        found.append(
            Finding(
                "differential_items",
                "warning",
                f"DIF in {len(chosen):,} of {m:,} items {between}: {_told(chosen, items, where, groups, p)}.",
                "Read them side by side; drop them, or calibrate them for each group on their own.",
                tuple(groups.items[_by_size(chosen, items)].tolist()),
            )
        )
    else:
        seen = np.flatnonzero((letter != "A").any(axis=0) & ~by_slope)
        which = "the other items" if by_slope.any() else f"all {m:,} items"
        sentence = f"No DIF seen {between}: {which} are in class A (negligible)."
        if len(seen):
            sentence = (
                f"No DIF seen {between} after adjusting for {m:,} comparisons. {len(seen):,} would be in class B or C "
                f"before adjustment, none with an adjusted p below {level:g}: {_told(seen, items, letter, groups)}."
            )
        found.append(Finding("no_differential_items", "note", sentence))
    if by_slope.any():
        named = groups.items[_by_size(np.flatnonzero(by_slope), items)]
        one = len(named) == 1
        sentence = (
            f"{count(len(named), 'item differs', 'items differ')} between the groups as "
            f"{'its slope predicts' if one else 'their slopes predict'} for groups of unlike ability, which is not "
            f"counted as DIF: {listed(named)}."
        )
        remedy = "A model with slopes (2PL, generalized partial credit) would fit better."
        found.append(Finding("differences_by_slope", "note", sentence, remedy, tuple(named.tolist())))
    return found


def _by_size(chosen: Ints, items: Columns) -> Ints:
    return chosen[np.argsort(-items["largest"][chosen], kind="stable")]


def _told(chosen: Ints, items: Columns, letter: Any, groups: GroupCalibrations, p: Floats | None = None) -> str:
    """The largest of them: 'q3' is harder for 'm' than for 'f' by 1.21 logits (class C, adjusted p < 0.001)."""
    parts = []
    for k in _by_size(chosen, items):
        worst = max(letter[:, k])
        than = "" if len(groups.names) == 2 else f" than for {items['easier_for'][k]!r}"
        parts.append(
            f"{listed(groups.items[[k]])} is harder for {items['harder_for'][k]!r}{than} by {items['largest'][k]:.2f} "
            f"logits (class {worst}{'' if p is None else f', adjusted {p_value(p[k])}'})"
        )
    return first_few(parts)
