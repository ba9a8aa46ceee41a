"""A table in the width there is: numbers make way for labels, and labels keep what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from spectral_irt.model import ALIKE
from spectral_irt.tables import Columns
from spectral_irt.terminal.labels import LEAST, MOST, in_its_place, room_for, shortened, widest
from spectral_irt.text import number

BETWEEN = 2  # blanks between columns

# What labels have, as far as they need it, before a column has a place: enough to be told apart, to be read, or all.
APART, READ, COMFORT, WHOLE = 0, 16, 24, MOST


@dataclass(frozen=True, eq=False)
class Column:
    """A head (of one line or two) and its cells; the column goes where labels have less than `spare`: see APART."""

    head: str
    cells: Sequence[str]
    left: bool = False
    style: str | None = None
    spare: int = APART

    @property
    def width(self) -> int:
        return max(map(cell_len, [*self.head.split("\n"), *self.cells]))


def labelled(
    head: str,
    labels: Sequence[Any],
    columns: Sequence[Column],
    width: int,
    *,
    groups: Sequence[tuple[str, int]] = (),
    spared: Sequence[str] = (),
    whole: bool = False,
) -> Table:
    """Labels to the left, columns to the right of them in this width.

    Parameters
    ----------
    groups : (name, rows)
        Headings over so many rows each.
    spared : heads
        The columns that can be done without, those that go first before the others.
    whole : bool
        Never cut a label, but let the table be wider.
    """
    heads = [cell_len(head), *(len(name) for name, _ in groups)]
    whole_width = max([widest(labels), *heads])
    least = max([room_for(labels), min(LEAST, whole_width), *heads])
    kept = list(columns)
    for one in (column for name in spared for column in columns if column.head == name):
        if _room(kept, width) < max(least, min(whole_width, one.spare)):
            kept.remove(one)
    for one in reversed([column for column in columns if column not in kept]):  # a small one, where a large one went
        if _room([*kept, one], width) >= max(least, min(whole_width, one.spare)):
            kept = [column for column in columns if column in kept or column is one]
    room = whole_width if whole else max(_room(kept, width), LEAST)
    texts = [in_its_place(text) for text in shortened(labels, room)]

    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False)
    if whole:
        table.width = whole_width + sum(column.width + BETWEEN for column in kept)
    high = max(column.head.count("\n") for column in [Column(head, ()), *kept])
    for column in [Column(head, (), left=True), *kept]:
        above = "\n" * (high - column.head.count("\n"))
        justify: Any = "left" if column.left else "right"
        table.add_column(above + column.head, justify=justify, no_wrap=True, style=column.style)
    starts = _starts(groups)
    for k, cells in enumerate(zip(texts, *(column.cells for column in kept), strict=True)):
        if k in starts:
            if k:
                table.add_row()
            table.add_row(Text(starts[k], style="cyan"))
        table.add_row(*map(Text, cells))
    return table


def plain_table(heads: Sequence[str], columns: Sequence[Sequence[Any]], width: int, *, whole: bool = False) -> Table:
    """A table of texts: labels to the left in the room that the others leave, the others to the right."""
    others = [
        Column(head, cells, left=not head, style=None if head else "yellow")
        for head, cells in zip(heads[1:], columns[1:], strict=True)
    ]
    return labelled(heads[0], list(columns[0]), others, width, whole=whole)


def _room(columns: Sequence[Column], width: int) -> int:
    """Columns of the terminal that are left for the labels."""
    return width - sum(column.width + BETWEEN for column in columns)


def _starts(groups: Sequence[tuple[str, int]]) -> dict[int, str]:
    """The rows over which a heading stands."""
    starts, row = {}, 0
    for name, size in groups:
        if name:
            starts[row] = name
        row += size
    return starts


SHOW_ALL = 60  # a test of so many items is shown whole
SHOW_EACH = 5  # of a longer one: so many hardest, easiest, with the largest errors
SHOW_MISFITS = 10  # and so many of those that do not fit
DIRECTION = "larger = harder"
FIT = "infit, outfit: 1 expected, above 1 underfit, below 1 overfit"
INTERVAL, MEASURE = "95% interval", "point\nmeasure"


def legend(fit: Columns | None = None) -> str:
    """What the numbers mean, on a line."""
    return DIRECTION if fit is None else f"{DIRECTION}; {FIT}"


def choose(columns: Columns, fit: Columns | None = None) -> list[tuple[str, list[int]]]:
    """Which items to show, under which heading."""
    difficulty, se = columns["difficulty"], columns["se"]
    known = np.flatnonzero(np.isfinite(difficulty))
    # As they are shown: the last bits, by which items of the same score may differ, put none before another.
    hardest_first = known[np.argsort(-np.round(difficulty[known], 3), kind="stable")]
    if len(difficulty) <= SHOW_ALL:
        return [("", [*hardest_first.tolist(), *np.flatnonzero(~np.isfinite(difficulty)).tolist()])]
    ends = hardest_first[:SHOW_EACH].tolist(), hardest_first[::-1][:SHOW_EACH].tolist()
    groups = [("hardest", ends[0]), ("easiest", ends[1])]
    if fit is not None and "misfit" in fit:
        misfits = np.flatnonzero(fit["misfit"] != "")
        worst = misfits[np.argsort(fit["misfit_p"][misfits], kind="stable")][:SHOW_MISFITS].tolist()
        some = f" ({len(worst)} of {len(misfits):,})" if len(misfits) > len(worst) else ""
        groups.append((f"misfit{some}", worst))
    sure = known[np.isfinite(se[known])]
    largest = [row for row in sure[np.argsort(-se[sure], kind="stable")].tolist() if row not in {*ends[0], *ends[1]}]
    groups.append(("largest se", largest[:SHOW_EACH]))
    return [(name, rows) for name, rows in groups if rows]


def item_table(
    columns: Columns,
    width: int,
    fit: Columns | None = None,
    *,
    name: str = "item",
    thresholds: Sequence[Sequence[float]] = (),
    unicode: bool = True,
    whole: bool = False,
) -> Table:
    """The items that say most, with how they fit; labels get the room that the numbers leave.

    Parameters
    ----------
    columns, fit
        The items of a calibration; and their fit, where it is known.
    name : str
        What an item is called.
    thresholds : sequence of numbers for each item, optional
        Where items have more than two categories.
    unicode, whole : bool
        Whether the terminal can show lines; never cut a label.
    """
    groups = choose(columns, fit)
    rows = [row for _, chosen in groups for row in chosen]
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
    ]
    if thresholds:
        table.append(Column("mean", numbers(shown["mean_score"], 2), spare=READ))
    else:
        share = [f"{100 * p:.1f}%" if np.isfinite(p) else "" for p in shown["p_correct"]]
        table.append(Column("right", share, spare=READ))
    if fit is not None:
        table += _fit_columns(fit, rows)
    if thresholds:
        table.append(Column("thresholds", [" ".join(numbers(thresholds[row], 1)) for row in rows], spare=APART))
    misfit = np.full(len(columns["item"]), "") if fit is None or "misfit" not in fit else fit["misfit"]
    marks = [str(misfit[row] if columns["status"][row] == "ok" else columns["status"][row]) for row in rows]
    if any(marks):
        table.append(Column("", marks, left=True, style="yellow"))
    same_n = len(set(shown["n"].tolist())) == 1
    middle = ["n", INTERVAL] if same_n else [INTERVAL, "n"]
    return labelled(
        name,
        shown["item"].tolist(),
        table,
        width,
        groups=[(head, len(rows)) for head, rows in groups] if len(groups) > 1 else (),
        spared=[BAR_HEAD, *middle, "right", "mean", MEASURE, "outfit", "infit", "thresholds", "se"],
        whole=whole,
    )


def _fit_columns(fit: Columns, rows: list[int]) -> list[Column]:
    """The fit of single items: the conventional statistics; the verdict beside them goes by the conditional infit."""
    heads = {"infit": "infit", "outfit": "outfit", MEASURE: "point_measure"}
    return [
        Column(head, numbers(fit[name][rows], 2), spare=READ if head == MEASURE else APART)
        for head, name in heads.items()
        if name in fit
    ]


def numbers(values: Sequence[float] | NDArray[Any], digits: int) -> list[str]:
    """Numbers with so many digits, never "-0.00"; nothing where there is no number."""
    return [number(x, digits, none="") for x in values]


SHOW_PEOPLE = 15  # so many people are shown whole
SHOW_RANKED = 60  # or so many where they are ranked: language models, say
SHOW_SCALES = 3  # scales whose people are shown, where no answers link the items


LEGEND = "larger = abler; 95% intervals of each ability, and of the ranks of all at once"


def choose_people(persons: Columns) -> list[tuple[str, list[int]]]:
    """Which people to show, under which heading; those on different scales never in one order."""
    scales = sorted({str(scale) for scale in persons.get("scale", np.empty(0)) if scale}, key=int)
    if len(scales) < 2:
        return _people_chosen(persons)
    groups = []
    for scale in scales[:SHOW_SCALES]:
        there = np.flatnonzero(persons["scale"] == scale)
        some = {name: values[there] for name, values in persons.items()}
        for name, rows in _people_chosen(some):
            head = f"scale {scale}" + (f": {name}" if name else "")
            groups.append((head, there[rows].tolist()))
    return groups


def _people_chosen(persons: Columns) -> list[tuple[str, list[int]]]:
    ability = persons["ability"]
    known = np.flatnonzero(~np.isnan(ability))
    ablest = known[np.argsort(-np.round(ability[known], ALIKE), kind="stable")]
    if len(ability) <= (SHOW_RANKED if "rank" in persons else SHOW_PEOPLE):
        return [("", [*ablest.tolist(), *np.flatnonzero(np.isnan(ability)).tolist()])]
    z = persons["outfit_z"]
    odd = np.flatnonzero(np.isfinite(z))
    odd = odd[np.argsort(-z[odd], kind="stable")]
    groups = [("ablest", ablest[:SHOW_EACH]), ("least able", ablest[::-1][:SHOW_EACH])]
    groups.append(("largest outfit", odd[:SHOW_EACH]))
    return [(name, rows.tolist()) for name, rows in groups if len(rows)]


def person_table(
    persons: Columns, width: int, *, name: str = "person", whole: bool = False, points: bool = False
) -> Table:
    """Ability with its error, score, and how regular the answers are; ranks where they were computed.

    Parameters
    ----------
    persons
        The columns of `Analysis.persons`, or of `Analysis.person_ranking`.
    name : str
        What a person is called.
    whole : bool
        Never cut a label.
    points : bool
        Whether scores add categories, rather than count right answers.
    """
    groups = choose_people(persons)
    rows = [k for _, chosen in groups for k in chosen]
    shown = {key: values[rows] for key, values in persons.items()}
    table = []
    if "rank" in shown:
        ranks = zip(*(shown[key].tolist() for key in ("rank", "rank_low", "rank_high")), strict=True)
        texts = [
            ("", "") if rank == 0 else (f"{rank:,}", f"{low:,} to {high:,}" if low < high else f"{low:,}")
            for rank, low, high in ranks
        ]
        table.append(Column("rank", [rank for rank, _ in texts]))
        table.append(Column("rank\ninterval", [interval for _, interval in texts]))
    table += [Column("ability", numbers(shown["ability"], 2)), Column("se", numbers(shown["se"], 2))]
    if "ci_low" in shown:
        ends = zip(shown["ci_low"].tolist(), shown["ci_high"].tolist(), strict=True)
        intervals = [f"{low:z.2f} to {high:z.2f}" if np.isfinite(low) else "" for low, high in ends]
        table.append(Column(INTERVAL, intervals, spare=APART))
    if "measure" in shown:
        table.append(Column("measure", numbers(shown["measure"], 1), spare=APART))
        table.append(Column("± se", numbers(shown["measure_se"], 1), spare=APART))
    scores = zip(shown["score"].tolist(), shown["n"].tolist(), strict=True)
    if points:
        table.append(Column("score", [f"{score:,}" for score, _ in scores], spare=COMFORT))
    else:
        table.append(Column("right", [f"{score:,} of {n:,}" for score, n in scores], spare=COMFORT))
    table.append(Column("outfit", numbers(shown["outfit"], 2), spare=APART))
    marks = ["extreme" if extreme else "" for extreme in shown["extreme"]]
    if any(marks):
        table.append(Column("", marks, left=True, style="yellow"))
    return labelled(
        name,
        shown["person"].tolist(),
        table,
        width,
        groups=[(head, len(chosen)) for head, chosen in groups] if len(groups) > 1 else (),
        spared=["right", "outfit", "± se", "measure", INTERVAL],
        whole=whole,
    )


BAR_WIDTH = 24
BAR_HEAD = "easier" + " " * (BAR_WIDTH - 12) + "harder"


def span_of(shown: Columns) -> tuple[float, float]:
    """What the picture covers: every difficulty, and every interval as far as it is not absurdly wide."""
    mid = shown["difficulty"][np.isfinite(shown["difficulty"])]
    if not len(mid):
        return -1.0, 1.0
    reach = max(1.0, float(np.ptp(mid))) / 2
    ends = np.concatenate([shown["ci_low"], shown["ci_high"], mid])
    ends = ends[np.isfinite(ends)]
    low, high = max(float(ends.min()), float(mid.min()) - reach), min(float(ends.max()), float(mid.max()) + reach)
    return low, max(high, low + 1e-6)


def bar(low: float, mid: float, high: float, span: tuple[float, float], *, unicode: bool = True) -> str:
    """An interval as a line with its estimate on it.

    >>> bar(-1, 0, 1, (-2, 2))
    '     ───────●──────     '
    """
    if not np.isfinite(mid):
        return ""
    start, end = span
    line, dot = "─●" if unicode else "-o"
    low, mid, high = (
        float(np.clip((x - start) / (end - start), 0, 1)) * (BAR_WIDTH - 1) if np.isfinite(x) else np.nan
        for x in (low, mid, high)
    )
    cells = [" "] * BAR_WIDTH
    if np.isfinite(low) and np.isfinite(high):
        first, last = int(np.floor(low)), int(np.ceil(high))
        cells[first : last + 1] = line * (last - first + 1)
    cells[round(mid)] = dot
    return "".join(cells)
