"""What a comparison of groups found, in sentences: which items, harder for whom, by how much."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.errors import listed
from spectral_irt.inference.subgroups import Subgroups
from spectral_irt.responses import Finding
from spectral_irt.responses.block import Ints
from spectral_irt.tables import Columns

NAMED = 5  # items that a sentence names


def differential_finding(items: Columns, contrasts: Columns, groups: Subgroups, level: float) -> Finding:
    """What both tables say, over all groups and against the reference, in a sentence."""
    m = len(groups.items)
    flagged, letter = (np.vstack([items[k], contrasts[k].reshape(-1, m)]) for k in ("flagged", "class"))
    differs = flagged.any(axis=0)
    between = f"between the groups {listed(groups.names)}"
    if not differs.any():
        seen = np.flatnonzero((letter != "A").any(axis=0))
        if not len(seen):
            sentence = f"None of {m:,} items works differently {between}: all are in class A (negligible)."
        else:
            one = len(seen) == 1
            sentence = (
                f"None of {m:,} items works differently {between} by more than chance allows among so many. "
                f"{len(seen):,} {'is' if one else 'are'} in class B or C when looked at alone, none with a p below "
                f"{level:g} once adjusted: {_told(seen, items, letter, groups)}."
            )
        return Finding("no_differential_items", "note", sentence)
    chosen = np.flatnonzero(differs)
    one = len(chosen) == 1
    where = np.where(flagged, letter, "A")
    return Finding(
        "differential_items",
        "warning",
        f"{len(chosen):,} of {m:,} items {'works' if one else 'work'} differently {between}: "
        f"{_told(chosen, items, where, groups)}.",
        "Read them side by side; drop them, or calibrate them for each group on their own.",
        tuple(groups.items[_by_size(chosen, items)].tolist()),
    )


def _by_size(chosen: Ints, items: Columns) -> Ints:
    return chosen[np.argsort(-items["largest"][chosen], kind="stable")]


def _told(chosen: Ints, items: Columns, letter: Any, groups: Subgroups) -> str:
    """The largest of them: 'q3' is harder for 'm' than for 'f' by 1.21 logits (class C)."""
    parts = []
    for k in _by_size(chosen, items)[:NAMED]:
        worst = max(letter[:, k])
        than = "" if len(groups.names) == 2 else f" than for {items['easier_for'][k]!r}"
        parts.append(
            f"{listed(groups.items[[k]])} is harder for {items['harder_for'][k]!r}{than} by {items['largest'][k]:.2f} "
            f"logits (class {worst})"
        )
    more = len(chosen) - len(parts)
    return "; ".join(parts) + (f"; and {more:,} more" if more else "")
