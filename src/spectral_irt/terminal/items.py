"""Items on a terminal: all of an ordinary test; of a long one the hardest, the easiest, the misfits, the least sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from spectral_irt.tables import Columns
from spectral_irt.terminal.bars import BAR_HEAD, bar, span_of
from spectral_irt.terminal.table import APART, COMFORT, READ, WHOLE, Column, labelled
from spectral_irt.text import number

SHOW_ALL = 60  # a test of so many items is shown whole
SHOW_EACH = 5  # of a longer one: so many hardest, easiest, least sure
SHOW_MISFITS = 10  # and so many of those that do not fit
FOLD = 3  # so many items that are equally hard share a line there
EQUAL = 0.01  # logits: solvers leave items of the same score that far apart, and less
DIRECTION = "larger = harder"
FIT = "infit, outfit: above 1 noisier than the model, below steeper"
INTERVAL, MEASURE = "95% interval", "point\nmeasure"

Groups = list[tuple[str, list[list[int]]]]


def legend(fit: Columns | None = None) -> str:
    """What the numbers mean, on a line."""
    return DIRECTION if fit is None else f"{DIRECTION}; {FIT}"


def choose(columns: Columns, fit: Columns | None = None) -> Groups:
    """Which items to show, under which heading; items that share a line are in one list."""
    difficulty, se = columns["difficulty"], columns["se"]
    known = np.flatnonzero(np.isfinite(difficulty))
    # As they are shown: the last bits, by which items of the same score may differ, put none before another.
    hardest_first = known[np.argsort(-np.round(difficulty[known], 3), kind="stable")]
    if len(difficulty) <= SHOW_ALL:
        rows = [*hardest_first.tolist(), *np.flatnonzero(~np.isfinite(difficulty)).tolist()]
        return [("", [[row] for row in rows])]
    hardest, easiest = (folded(columns, order, SHOW_EACH) for order in (hardest_first, hardest_first[::-1]))
    groups = [("hardest", hardest), ("easiest", easiest)]
    if fit is not None and "misfit" in fit:
        misfits = np.flatnonzero(fit["misfit"] != "")
        worst = misfits[np.argsort(fit["misfit_p"][misfits], kind="stable")][:SHOW_MISFITS].tolist()
        some = f" ({len(worst)} of {len(misfits):,})" if len(misfits) > len(worst) else ""
        groups.append((f"misfit{some}", [[row] for row in worst]))
    shown = {row for _, rows in groups[:2] for together in rows for row in together}
    sure = known[np.isfinite(se[known])]
    least_sure = [row for row in sure[np.argsort(-se[sure], kind="stable")].tolist() if row not in shown]
    groups.append(("least sure", [[row] for row in least_sure[:SHOW_EACH]]))
    return [(name, rows) for name, rows in groups if rows]


def folded(columns: Columns, order: NDArray[np.int64], most: int) -> list[list[int]]:
    """The first lines of this order: several items that were answered alike are one."""
    difficulty, n, right = columns["difficulty"], columns["n"], columns["p_correct"]
    lines: list[list[int]] = []
    start = 0
    while start < len(order) and len(lines) < most:
        first, end = order[start], start + 1
        while end < len(order) and (
            abs(difficulty[order[end]] - difficulty[first]) < EQUAL
            and n[order[end]] == n[first]
            and right[order[end]] == right[first]
        ):
            end += 1
        alike = order[start:end].tolist()
        lines += [alike] if len(alike) >= FOLD else [[row] for row in alike]
        start = end
    return lines[:most]


def item_table(
    columns: Columns,
    width: int,
    fit: Columns | None = None,
    *,
    name: tuple[str, str] = ("item", "items"),
    unicode: bool = True,
    whole: bool = False,
) -> Table:
    """The items that say most, with how they fit; labels get the room that the numbers leave.

    Parameters
    ----------
    columns, fit
        The items of a calibration; and their fit, where it is known.
    name : (str, str)
        What an item is called, and several.
    unicode, whole : bool
        Whether the terminal can show lines; never cut a label.
    """
    groups = choose(columns, fit)
    lines = [together for _, rows in groups for together in rows]
    rows = [together[0] for together in lines]
    shown = {key: values[rows] for key, values in columns.items()}
    low, high = shown["ci_low"].tolist(), shown["ci_high"].tolist()
    intervals = [f"{a:.2f} to {b:.2f}" if np.isfinite(a) else "" for a, b in zip(low, high, strict=True)]
    span = span_of(shown)
    bars = [bar(*ends, span, unicode=unicode) for ends in zip(low, shown["difficulty"], high, strict=True)]
    table = [
        Column("difficulty", numbers(shown["difficulty"], 3)),
        Column("se", numbers(shown["se"], 3), spare=APART),
        Column(INTERVAL, intervals, spare=COMFORT),
        Column(BAR_HEAD, bars, left=True, style="blue", spare=WHOLE),
        Column("n", [f"{n:,}" for n in shown["n"].tolist()], spare=COMFORT),
        Column("right", [f"{100 * p:.1f}%" if np.isfinite(p) else "" for p in shown["p_correct"]], spare=READ),
    ]
    if fit is not None:
        table += _fit_columns(fit, lines)
    marks = [_mark(columns, fit, together) for together in lines]
    if any(marks):
        table.append(Column("", marks, left=True, style="yellow"))
    same_n = len(set(shown["n"].tolist())) == 1
    middle = ["n", INTERVAL] if same_n else [INTERVAL, "n"]
    return labelled(
        name[0],
        shown["item"].tolist(),
        table,
        width,
        groups=[(head, len(rows)) for head, rows in groups] if len(groups) > 1 else (),
        spared=[BAR_HEAD, *middle, "right", MEASURE, "outfit", "infit", "se"],
        whole=whole,
        said=[_said(columns, together, name[1]) for together in lines],
    )


def _fit_columns(fit: Columns, lines: list[list[int]]) -> list[Column]:
    """The fit of single items: given the scores where that is known, as it is what the verdict goes by."""
    given = "_conditional" if "infit_conditional" in fit else ""
    heads = {"infit": f"infit{given}", "outfit": f"outfit{given}", MEASURE: "point_measure"}
    return [
        Column(
            head,
            [numbers(fit[name][together], 2)[0] if len(together) == 1 else "" for together in lines],
            spare=READ if head == MEASURE else APART,
        )
        for head, name in heads.items()
        if name in fit
    ]


def _mark(columns: Columns, fit: Columns | None, together: list[int]) -> str:
    """What is to be said about an item, or about those that share a line."""
    status = str(columns["status"][together[0]])
    if status != "ok":
        return status
    if fit is None or "misfit" not in fit:
        return ""
    if len(together) == 1:
        return str(fit["misfit"][together[0]])
    misfits = int(np.count_nonzero(fit["misfit"][together] != ""))
    return f"{misfits:,} misfit{'s' if misfits == 1 else ''}" if misfits else ""


def _said(columns: Columns, together: list[int], items: str) -> tuple[str, str] | None:
    """How several items on a line are called, in short and in full."""
    if len(together) == 1:
        return None
    short = f"{len(together):,} {items}"
    n, right = int(columns["n"][together[0]]), float(columns["p_correct"][together[0]])
    who = {0.0: "nobody got right", 1.0: "everybody got right"}.get(right, f"{round(n * right):,} of {n:,} got right")
    return short, f"{short} {who}"


def numbers(values: Sequence[float] | NDArray[Any], digits: int) -> list[str]:
    """Numbers with so many digits, never "-0.00"; nothing where there is no number."""
    return [number(x, digits, none="") for x in values]
