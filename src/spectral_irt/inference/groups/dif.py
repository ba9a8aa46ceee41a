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
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration, t_quantile
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, check_option
from spectral_irt.inference.groups.calibrations import Combination, GroupCalibrations, calibrate_groups, locations_like
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
from spectral_irt.inference.results import MIN_PEOPLE, adjusted, chi2_tail, first_few, two_sided, wald_tail
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.joint_errors import JointErrors
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import count, listed, p_value

DELTA = 2.35  # units of the ETS delta scale in a logit: 4 / 1.7
SMALL, LARGE = 1.0, 1.5  # |delta| below which an item is class A, and from which it may be class C
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

    @property
    def classes(self) -> dict[str, int]:
        """How many items are in each class."""
        highest = highest_class(self.items, self.contrasts)
        return {letter: int(np.sum(highest == letter)) for letter in "ABC"}

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        m, named = len(self.items["item"]), {finding.code: len(finding.items) for finding in self.findings}
        return {
            "reference": self.reference,
            "groups": dict(zip(self.groups.names, self.groups.sizes.tolist(), strict=True)),
            "statistic": self.test.statistic,
            "df": self.test.df,
            "p": self.test.p,
            "items_compared": m,
            "anchors": len(self.anchors),
            "classes": self.classes,
            "flagged": named.get("differential_items", 0),
            "nonuniform": named.get("nonuniform_items", 0) if self.nonuniform_tested else None,
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
    split, findings = large_enough(responses, by_label(responses, groups), min_people)
    if reference is not None:
        if str(reference) not in split.names:
            raise OptionError(f"`reference` is {reference!r}; the groups are {listed(split.names)}.")
        base = split.names.index(str(reference))
        order = [base, *(k for k in range(split.n_groups) if k != base)]
        code = np.append(np.argsort(order), -1)  # of those in no group
        split = Split(tuple(split.names[k] for k in order), code[split.group])
    model = locations_like(calibration)
    found = calibrate_groups(responses, split, model, sampling)
    test = compare_groups(found)
    chosen = _anchors(found, anchors)
    centered = found.centered_on(chosen)
    contrasts, items = _contrasts(centered, level), _overall(centered, level)
    matched, note = matched_columns(found.everyone, split, chosen, DELTA, sampling)
    contrasts |= matched
    before = _flagged(items, contrasts)
    by_slope = np.zeros_like(before)
    if before.any():
        kept = positions(responses.items, found.items) >= 0
        own = model.of_items(responses.thresholds, np.flatnonzero(kept))
        shifts = slope_shifts(found, split.group[split.group >= 0], own, chosen)
        # Slopes also moved items into or out of the anchors, which are chosen anew without what slopes explain.
        fair_anchors = _anchors(found, anchors, shifts)
        fair = found.centered_on(fair_anchors)
        shifts = shifts.centered_on(fair_anchors)
        contrasts["flagged"] = contrasts["flagged"] & _beyond_slopes(contrasts, _contrasts(fair, level, shifts))
        items["flagged"] = items["flagged"] & _beyond_slopes(items, _overall(fair, level, shifts))
        by_slope = before & ~_flagged(items, contrasts)
    findings += [*found.findings, *note, *_findings(items, contrasts, centered, by_slope, level)]
    findings += [] if sampling.simple else [_sampling_finding(centered, sampling)]
    if nonuniform:
        contrasts |= nonuniform_columns(calibration, responses, split, found.items, min_people, level, sampling)
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
        by_threshold, further, told = threshold_contrasts(
            calibration, responses, split, found.items, chosen, level, sampling
        )
        contrasts |= further
        findings += told
    anchored = found.items[chosen]
    origin = mean_location(calibration, anchored)
    for name in ("difficulty", "difficulty_reference"):
        contrasts[name] = contrasts[name] + origin
    return Differential(contrasts, items, test, centered, split.names[0], anchored, tuple(findings), by_threshold)


def _anchors(
    groups: GroupCalibrations, anchors: str | Iterable[Any], shifts: SlopeShifts | None = None
) -> NDArray[np.bool_]:
    """Which of the items the groups are centered on; purified without what slopes explain, if that is given."""
    if isinstance(anchors, str):
        check_option("anchors", anchors, ("all", "purified"))
        return _purified(groups, shifts) if anchors == "purified" else np.ones(len(groups.items), dtype=bool)
    named = list(anchors)
    place = positions(named, groups.items)
    unknown = [label for label, k in zip(named, place.tolist(), strict=True) if k < 0]
    if unknown or not named:
        what = f"{listed(unknown)} not among the items compared" if unknown else "none named"
        raise OptionError(f"anchors: {what}; those are {listed(groups.items)}.")
    return np.isin(np.arange(len(groups.items)), place)


def _purified(groups: GroupCalibrations, shifts: SlopeShifts | None) -> NDArray[np.bool_]:
    """The items that agree in every focal group on how far it is from the reference group."""
    size = np.zeros(len(groups.items))
    anchors = np.ones(len(groups.items), dtype=bool)
    for k in range(1, len(groups.names)):
        coefficients = np.zeros(len(groups.names))
        coefficients[[k, 0]] = 1.0, -1.0
        errors = groups.combined_errors(coefficients)
        difference = coefficients @ groups.difficulty
        if shifts is not None:
            difference = difference - coefficients @ shifts.shift
            errors = errors + JointErrors.independent(np.sqrt(coefficients**2 @ shifts.se**2))
        df = float(np.median(groups.combined(coefficients).df))
        found = robust_center(difference, errors, limit=as_t(APART, df), excess=False)
        anchors &= found.agrees
        size = np.maximum(size, np.abs(found.z))
    fewest = max(2, int(np.ceil(FEWEST_ANCHORS * len(size))))
    if anchors.sum() < fewest:  # many groups, each with other items that differ: those that differ least
        anchors = size <= np.partition(size, fewest - 1)[fewest - 1]
    return anchors


def as_t(limit: float, df: float) -> float:
    """The value that Student's t exceeds as often as a standard normal variable exceeds this one."""
    return limit if np.isinf(df) else t_quantile(df, tail=float(two_sided(limit)) / 2)


def ets_class(delta: Floats, se: Floats, p: Floats, level: float = 0.05, df: Floats | float = np.inf) -> NDArray[Any]:
    """A, B or C: see the head of this module; `df` are the degrees of freedom of the standard errors.

    >>> ets_class(np.array([0.5, 1.2, 1.2, 1.6, 2.5]), np.array([0.1, 0.1, 0.9, 0.5, 0.5]), np.array([0, 0, 0.2, 0, 0]))
    array(['A', 'B', 'A', 'B', 'C'], dtype=object)
    """
    size = np.abs(delta)
    out = np.full(len(delta), "B", dtype=object)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = two_sided((size - SMALL) / se, df) / 2 < 0.05
        out[(size >= LARGE) & beyond] = "C"
    out[(size < SMALL) | ~(p < level)] = "A"
    return out


def _pair(groups: GroupCalibrations, one: int, other: int, shifts: SlopeShifts | None) -> Combination:
    """The difficulties in one group less those in another; less what slopes explain, if that is given."""
    coefficients = np.zeros(len(groups.names))
    coefficients[[one, other]] = 1.0, -1.0
    found = groups.combined(coefficients)
    if shifts is None:
        return found
    explained = shifts.shift[one] - shifts.shift[other]
    error = np.hypot(shifts.se[one], shifts.se[other])
    return Combination(found.value - explained, np.hypot(found.se, error), found.df)


def _contrasts(groups: GroupCalibrations, level: float, shifts: SlopeShifts | None = None) -> Columns:
    names = np.array(groups.names, dtype=object)
    m, focal = len(groups.items), len(names) - 1
    each = [_pair(groups, k, 0, shifts) for k in range(1, len(names))]
    contrast, se, z, p = (np.concatenate([getattr(one, name) for one in each]) for name in ("value", "se", "z", "p"))
    df = np.concatenate([one.df for one in each])
    columns: Columns = {
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
        **_judged(-contrast, se, p, level, df),
    }
    if np.isfinite(df).any():
        columns["df"] = df
    return columns


def _judged(size: Floats, se: Floats, p: Floats, level: float, df: Floats) -> Columns:
    """`delta, class, flagged` of differences in logits."""
    classes = ets_class(DELTA * size, DELTA * se, p, level, df)
    return {"delta": DELTA * size, "class": classes, "flagged": (classes != "A") & (adjusted(p, "bh") < level)}


def _flagged(items: Columns, contrasts: Columns) -> NDArray[np.bool_]:
    """Items that are flagged over all groups, or in one of them against the reference."""
    rows = np.vstack([items["flagged"], contrasts["flagged"].reshape(-1, len(items["item"]))])
    return np.asarray(rows.any(axis=0), dtype=bool)


def _beyond_slopes(found: Columns, fair: Columns) -> NDArray[np.bool_]:
    """Rows that are flagged without what slopes explain, too, and in the same direction: where taking that off turns a
    difference round, nobody can tell which of the two it is."""
    if "contrast" in found:
        turned = found["contrast"] * fair["contrast"] < 0
    else:
        turned = found["harder_for"] != fair["harder_for"]
    return np.asarray(fair["flagged"] & ~np.asarray(turned), dtype=bool)


def _overall(groups: GroupCalibrations, level: float, shifts: SlopeShifts | None = None) -> Columns:
    """Each item over all groups, with the largest contrast between any two."""
    n_groups, item = len(groups.names), np.arange(len(groups.items))
    difficulty, error = groups.difficulty, groups.se
    if shifts is not None:
        difficulty, error = difficulty - shifts.shift, np.hypot(error, shifts.se)
    high, low = difficulty.argmax(axis=0), difficulty.argmin(axis=0)
    largest, se = np.zeros((2, len(item)))
    df = np.full(len(item), np.inf)
    for one, other in sorted(set(zip(high.tolist(), low.tolist(), strict=True))):
        here = (high == one) & (low == other)
        if one != other:
            pair = _pair(groups, one, other, shifts)
            largest[here], se[here], df[here] = pair.value[here], pair.se[here], pair.df[here]
    if n_groups == 2:
        pair = _pair(groups, 1, 0, shifts)
        statistic, p = pair.z**2, pair.p
    elif groups.sandwiches is None:
        statistic = weighted_spread(difficulty, error**2)
        p = chi2_tail(statistic, n_groups - 1)
    else:
        statistic = groups.item_statistics(difficulty, np.zeros_like(error) if shifts is None else shifts.se)
        p = wald_tail(statistic, n_groups - 1, groups.df_joint)
    names = np.array(groups.names, dtype=object)
    return {
        "item": groups.items,
        "statistic": statistic,
        "df": np.full(len(item), n_groups - 1),
        "p": p,
        "p_holm": adjusted(p, "holm"),
        "p_bh": adjusted(p, "bh"),
        "largest": largest,
        "harder_for": names[high],
        "easier_for": names[low],
        **_judged(largest, se, p, level, df),
    }


def highest_class(items: Columns, contrasts: Columns) -> NDArray[Any]:
    """The class of each item: the highest of any comparison, of the two groups that differ most, and of each group with
    the reference."""
    m = len(items["item"])
    letters: NDArray[Any] = np.vstack([items["class"], contrasts["class"].reshape(-1, m)])
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


def _findings(
    items: Columns, contrasts: Columns, groups: GroupCalibrations, by_slope: NDArray[np.bool_], level: float
) -> list[Finding]:
    """What both tables say, over all groups and against the reference; and which items only differ by their slopes."""
    m, found = len(groups.items), []
    letter = highest_class(items, contrasts)
    flagged = np.vstack([items["flagged"], contrasts["flagged"].reshape(-1, m)])
    chosen = np.flatnonzero(flagged.any(axis=0))
    between = f"between the groups {listed(groups.names)}"
    if len(chosen):
        p = np.where(flagged, np.vstack([items["p_bh"], contrasts["p_bh"].reshape(-1, m)]), 1.0).min(axis=0)
        found.append(
            Finding(
                "differential_items",
                "warning",
                f"DIF in {len(chosen):,} of {m:,} items {between}: {_told(chosen, items, letter, groups, p)}.",
                "Review these items; one that is unfair can be dropped, or given a difficulty for each group.",
                tuple(groups.items[_by_size(chosen, items)].tolist()),
            )
        )
    else:
        seen = np.flatnonzero((letter != "A") & ~by_slope)
        which = "the other items" if by_slope.any() else f"all {m:,} items"
        sentence = f"No DIF seen {between}: {which} are in class A (negligible)."
        if len(seen):
            sentence = (
                f"No DIF seen {between} after adjusting for {len(contrasts['item']):,} comparisons. {len(seen):,} "
                f"would be in class B or C before adjustment, none with an adjusted p below {level:g}: "
                f"{_told(seen, items, letter, groups)}."
            )
        found.append(Finding("no_differential_items", "note", sentence))
    if by_slope.any():
        named = groups.items[_by_size(np.flatnonzero(by_slope), items)]
        one = len(named) == 1
        sentence = (
            f"{count(len(named), 'item differs', 'items differ')} between the groups as "
            f"{'its slope predicts' if one else 'their slopes predict'} for groups whose means differ, which is not "
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
        worst = letter[k]
        than = "" if len(groups.names) == 2 else f" than for {items['easier_for'][k]!r}"
        parts.append(
            f"{listed(groups.items[[k]])} is harder for {items['harder_for'][k]!r}{than} by {items['largest'][k]:.2f} "
            f"logits (class {worst}{'' if p is None else f', adjusted {p_value(p[k])}'})"
        )
    return first_few(parts)
