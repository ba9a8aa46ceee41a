"""What a fit looks like on a terminal: a short table, a paragraph, the findings.

Labels are data, never markup: every text goes in as `rich.text.Text`, control characters spelled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spectral_irt.cli.errors import in_shell_words, printable
from spectral_irt.responses import Finding

SHOW_ALL = 15  # a test of so many items is shown whole
SHOW_EACH = 5  # of a longer one: so many hardest, easiest, least sure
LABEL_WIDTH = 32
BAR_WIDTH = 24
ROOM_FOR_BAR = 100  # columns of a terminal that has room for a picture of the intervals

COLOURS = {"note": "cyan", "warning": "yellow", "error": "bold red"}

Columns = Mapping[str, NDArray[Any]]


def console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)


def short(label: Any, width: int = LABEL_WIDTH) -> str:
    """A label for the terminal: on one line, and not too long."""
    text = printable(label)
    return text if len(text) <= width else text[: width - 1] + "…"


# ------------------------------------------------------------------------------------------ items


def choose(columns: Columns) -> list[tuple[str, list[int]]]:
    """Which items to show, under which heading: all of a short test, the extremes of a long one."""
    difficulty, se = columns["difficulty"], columns["se"]
    known = np.flatnonzero(np.isfinite(difficulty))
    hardest_first = known[np.argsort(-difficulty[known], kind="stable")]
    if len(difficulty) <= SHOW_ALL:
        return [("", [*hardest_first.tolist(), *np.flatnonzero(~np.isfinite(difficulty)).tolist()])]
    sure = known[np.isfinite(se[known])]
    least_sure = sure[np.argsort(-se[sure], kind="stable")]
    groups = [
        ("hardest", hardest_first[:SHOW_EACH].tolist()),
        ("easiest", hardest_first[::-1][:SHOW_EACH].tolist()),
        ("least sure", least_sure[:SHOW_EACH].tolist()),
    ]
    return [(name, rows) for name, rows in groups if rows]


def item_table(columns: Columns, width: int, *, unicode: bool = True) -> Table:
    """The items that say most, larger = harder."""
    groups = choose(columns)
    shown = [k for _, rows in groups for k in rows]
    odd = any(columns["status"][k] != "ok" for k in shown)
    with_bar = width >= ROOM_FOR_BAR
    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False)
    if len(groups) > 1:
        table.add_column("", style="cyan", no_wrap=True)
    table.add_column("\nitem", no_wrap=True, max_width=LABEL_WIDTH)
    table.add_column("larger = harder\ndifficulty", justify="right", no_wrap=True)
    for name in ("\nse", "\n95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    if with_bar:
        table.add_column("\neasier" + " " * (BAR_WIDTH - 12) + "harder", no_wrap=True, style="blue")
    for name in ("\nn", "\nright"):
        table.add_column(name, justify="right", no_wrap=True)
    if odd:
        table.add_column("\nstatus", no_wrap=True, style="yellow")
    span = _span(columns, shown)
    for name, rows in groups:
        for place, k in enumerate(rows):
            low, mid, high = (float(columns[c][k]) for c in ("ci_low", "difficulty", "ci_high"))
            cells = [name if place == 0 else ""] if len(groups) > 1 else []
            cells += [short(columns["item"][k]), _number(mid, 3), _number(float(columns["se"][k]), 3)]
            cells += [f"{_number(low, 2)} to {_number(high, 2)}" if np.isfinite(low) else "–"]
            if with_bar:
                cells.append(bar(low, mid, high, span, unicode=unicode))
            cells += [f"{columns['n'][k]:,}", _percent(float(columns["p_value"][k]))]
            if odd:
                status = str(columns["status"][k])
                cells.append("" if status == "ok" else status)
            table.add_row(*map(Text, cells))
        if name != groups[-1][0]:
            table.add_row()
    return table


def _number(x: float, digits: int) -> str:
    return f"{x:.{digits}f}".replace("-", "−") if np.isfinite(x) else "–"


def _percent(x: float) -> str:
    return f"{100 * x:.1f} %" if np.isfinite(x) else "–"


def _span(columns: Columns, rows: Sequence[int]) -> tuple[float, float]:
    """What the picture covers: every difficulty, and every interval as far as it is not absurdly wide."""
    mid = columns["difficulty"][rows]
    mid = mid[np.isfinite(mid)]
    if not len(mid):
        return -1.0, 1.0
    reach = max(1.0, float(np.ptp(mid))) / 2
    ends = np.concatenate([columns["ci_low"][rows], columns["ci_high"][rows], mid])
    ends = ends[np.isfinite(ends)]
    low, high = max(float(ends.min()), float(mid.min()) - reach), min(float(ends.max()), float(mid.max()) + reach)
    return low, max(high, low + 1e-6)


def bar(low: float, mid: float, high: float, span: tuple[float, float], *, unicode: bool = True) -> str:
    """An interval as a line with its estimate on it.

    >>> bar(-1, 0, 1, (-2, 2))
    '      ──────●─────      '
    """
    if not np.isfinite(mid):
        return ""
    start, end = span

    def cell(x: float) -> int:
        return int(np.clip(round((x - start) / (end - start) * (BAR_WIDTH - 1)), 0, BAR_WIDTH - 1))

    line, dot = "─●" if unicode else "-o"
    cells = [" "] * BAR_WIDTH
    if np.isfinite(low) and np.isfinite(high):
        cells[cell(low) : cell(high) + 1] = line * (cell(high) - cell(low) + 1)
    cells[cell(mid)] = dot
    return "".join(cells)


# --------------------------------------------------------------------------------------- findings


def show_findings(out: Console, findings: Iterable[Finding]) -> int:
    """Severity, sentence and remedy of each; returns how many."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    count = 0
    for finding in findings:
        text = Text(printable(in_shell_words(finding.sentence)))
        if finding.remedy:
            text.append(" " + printable(in_shell_words(finding.remedy)), style="dim")
        grid.add_row(Text(finding.severity, style=COLOURS[finding.severity]), text)
        count += 1
    if count:
        out.print(grid)
    return count
