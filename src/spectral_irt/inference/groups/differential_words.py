"""What a comparison of groups found, in sentences: which items, harder for whom, by how much."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import listed
from spectral_irt.inference.groups.calibrations import GroupCalibrations
from spectral_irt.tables import Columns
from spectral_irt.text import p_value

NAMED = 5  # items that a sentence names
MOST = 0.4  # share of items that may differ, for the others to say where zero is


def differential_findings(
    items: Columns, contrasts: Columns, groups: GroupCalibrations, by_slope: NDArray[np.bool_], level: float
) -> tuple[Finding, ...]:
    """What both tables say, over all groups and against the reference; and which items only differ by their slopes."""
    found = _finding(items, contrasts, groups, by_slope, level)
    if not by_slope.any():
        return (found,)
    named = groups.items[_by_size(np.flatnonzero(by_slope), items)]
    one = len(named) == 1
    return (
        found,
        Finding(
            "differences_by_slope",
            "note",
            f"{len(named):,} item{' differs' if one else 's differ'} between the groups as "
            f"{'its slope predicts' if one else 'their slopes predict'} for groups of unlike ability, which is not "
            f"counted as DIF: {listed(named)}.",
            "A model with slopes (2PL, generalized partial credit) would fit better.",
            tuple(named.tolist()),
        ),
    )


def _finding(
    items: Columns, contrasts: Columns, groups: GroupCalibrations, by_slope: NDArray[np.bool_], level: float
) -> Finding:
    m = len(groups.items)
    flagged, letter = (np.vstack([items[k], contrasts[k].reshape(-1, m)]) for k in ("flagged", "class"))
    differs = flagged.any(axis=0)
    between = f"between the groups {listed(groups.names)}"
    if not differs.any():
        seen = np.flatnonzero((letter != "A").any(axis=0) & ~by_slope)
        if not len(seen):
            which = "the other items" if by_slope.any() else f"all {m:,} items"
            sentence = f"No DIF seen {between}: {which} are in class A (negligible)."
        else:
            one = len(seen) == 1
            sentence = (
                f"No DIF seen {between} by more than chance allows among {m:,} items. {len(seen):,} "
                f"{'is' if one else 'are'} in class B or C when looked at alone, none with a p below {level:g} once "
                f"adjusted: {_told(seen, items, letter, groups)}."
            )
        return Finding("no_differential_items", "note", sentence)
    chosen = np.flatnonzero(differs)
    where = np.where(flagged, letter, "A")
    p = np.where(flagged, np.vstack([items["p_bh"], contrasts["p_bh"].reshape(-1, m)]), 1.0).min(axis=0)
    return Finding(
        "differential_items",
        "warning",
        f"DIF in {len(chosen):,} of {m:,} items {between}: {_told(chosen, items, where, groups, p)}.",
        "Read them side by side; drop them, or calibrate them for each group on their own.",
        tuple(groups.items[_by_size(chosen, items)].tolist()),
    )


def too_many_differ(items: Columns) -> list[Finding]:
    """That so many items differ that the others may be the odd ones."""
    differ = int(items["flagged"].sum())
    if differ <= MOST * len(items["item"]):
        return []
    return [
        Finding(
            "too_many_differ",
            "warning",
            f"{differ:,} of {len(items['item']):,} items differ between the groups: with so many, nobody can tell from "
            "the answers alone which ones are harder for one group and which are easier for the other.",
            "Center on items known to be fair: in Python, name them as the anchors of study.dif.",
        )
    ]


def _by_size(chosen: Ints, items: Columns) -> Ints:
    return chosen[np.argsort(-items["largest"][chosen], kind="stable")]


def _told(chosen: Ints, items: Columns, letter: Any, groups: GroupCalibrations, p: Floats | None = None) -> str:
    """The largest of them: 'q3' is harder for 'm' than for 'f' by 1.21 logits (class C, adjusted p < 0.001)."""
    parts = []
    for k in _by_size(chosen, items)[:NAMED]:
        worst = max(letter[:, k])
        than = "" if len(groups.names) == 2 else f" than for {items['easier_for'][k]!r}"
        parts.append(
            f"{listed(groups.items[[k]])} is harder for {items['harder_for'][k]!r}{than} by {items['largest'][k]:.2f} "
            f"logits (class {worst}{'' if p is None else f', adjusted {p_value(p[k])}'})"
        )
    more = len(chosen) - len(parts)
    return "; ".join(parts) + (f"; and {more:,} more" if more else "")
