"""A table in the width there is: numbers make way for labels, and labels keep what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from spectral_irt.data.block import Floats
from spectral_irt.model import ALIKE
from spectral_irt.tables import Columns
from spectral_irt.terminal.labels import LEAST, MOST, in_its_place, room_for, shortened
from spectral_irt.text import TEST, Words, number, printable

BETWEEN = 2  # blanks between columns

# What labels have, as far as they need it, before a column has a place: enough to be told apart, to be read, or all.
APART, READ, COMFORT, WHOLE = 0, 16, 24, MOST

SHOW_ALL = 60  # a test of so many items is shown whole
SHOW_EACH = 5  # of a longer one: so many hardest, easiest, with the largest errors
SHOW_MISFITS = 10  # and so many of those that do not fit
SHOW_PEOPLE = 15  # so many people are shown whole
SHOW_RANKED = 60  # or so many where they are ranked: language models, say
SHOW_SCALES = 3  # scales whose people are shown, where no answers link the items
DIRECTION = "larger = harder"
BY_PRIOR = "* moved by the prior by more than 0.1 logits, or estimated by it alone"
FIT = "infit, outfit: 1 expected, above 1 underfit, below 1 overfit"
PEOPLE = "larger = higher {trait}; 95% intervals of each {trait}, and of the ranks of all at once"
INTERVAL, MEASURE, DISPLACEMENT = "95% interval", "point\nmeasure", "displ."
BAR_WIDTH = 24

Groups = Sequence[tuple[str, Sequence[int]]]  # headings, and the rows below each


@dataclass(frozen=True, eq=False)
class Column:
    """A head (of one line or two) and its cells; the column goes where labels have less than `spare`: see APART."""

    head: str
    cells: Sequence[str]
    left: bool = False
    style: str | None = None
    spare: int = APART


def _wide(column: Column) -> int:
    """The room that a column takes, with the blanks before it."""
    return BETWEEN + max(map(cell_len, [*column.head.split("\n"), *column.cells]))


def labelled(
    head: str,
    labels: Sequence[Any],
    columns: Sequence[Column],
    width: int,
    *,
    groups: Groups = (),
    spared: Sequence[str] = (),
    whole: bool = False,
) -> Table:
    """Labels to the left, columns to the right of them in this width; those that are `spared` go first. `whole` labels
    are never cut: the table is wider."""
    heads = max(map(cell_len, [head, *dict(groups)]))
    whole_width = max(heads, min(max(map(cell_len, map(printable, labels)), default=0), MOST))

    def fits(kept: Sequence[Column], spare: int) -> bool:
        room = width - sum(map(_wide, kept))
        enough = room >= max(heads, min(max(LEAST, spare), whole_width))
        return enough and (room >= whole_width or room >= room_for(labels))  # in which they can be told apart

    kept = list(columns)
    for name, column in product(spared, columns):
        if column.head == name and not fits(kept, column.spare):
            kept.remove(column)
    for one in reversed(columns):  # a small one, where a large one went
        if one not in kept and fits([*kept, one], one.spare):
            kept = [column for column in columns if column in kept or column is one]
    others = sum(map(_wide, kept))
    texts = map(in_its_place, shortened(labels, whole_width if whole else max(width - others, LEAST)))

    table_width = whole_width + others if whole else None
    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False, width=table_width)
    table.add_column(head, no_wrap=True)
    cells: list[Iterable[str]] = [texts]
    for column in kept:
        table.add_column(column.head, justify="left" if column.left else "right", no_wrap=True, style=column.style)
        cells.append(column.cells)
    rows = iter(list(zip(*cells, strict=True)))
    for name, below in groups or [("", labels)]:
        if table.row_count:
            table.add_row()
        if len(groups) > 1:
            table.add_row(Text(name, style="cyan"))
        for row in islice(rows, len(below)):
            table.add_row(*map(Text, row))
    return table


def plain_table(heads: Sequence[str], columns: Sequence[Sequence[Any]], width: int, *, whole: bool = False) -> Table:
    """A table of texts: labels to the left in the room that the others leave, the others to the right."""
    others = [
        Column(head, cells, left=not head, style=None if head else "yellow")
        for head, cells in zip(heads[1:], columns[1:], strict=True)
    ]
    return labelled(heads[0], list(columns[0]), others, width, whole=whole)


def numbers(values: Sequence[float] | NDArray[Any], digits: int) -> list[str]:
    """Numbers with so many digits, never "-0.00"; nothing where there is no number."""
    return list(map(partial(number, digits=digits, none=""), values))


def intervals(low: Floats, high: Floats) -> list[str]:
    return [f"{a:z.2f} to {b:z.2f}" if np.isfinite(a) else "" for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def choose(columns: Columns, fit: Columns | None = None) -> Groups:
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
    if "displacement" in columns:
        anchors = np.flatnonzero(np.isfinite(columns["displacement"]))
        farthest_first = anchors[np.argsort(-np.abs(columns["displacement"][anchors]), kind="stable")]
        groups.append(("largest displacement", farthest_first[:SHOW_EACH].tolist()))
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
    moved_by_prior: Sequence[Sequence[bool]] = (),
    unicode: bool = True,
    whole: bool = False,
) -> Table:
    """The items that say most, with how they fit where that is known; `thresholds` of each, where it has several.
    Those that are `moved_by_prior`, of each item, have a star."""
    groups = choose(columns, fit)
    easier, harder = "easier", "harder"
    bar_head = f"{easier}{harder:>{BAR_WIDTH - len(easier)}}"
    rows = [row for _, chosen in groups for row in chosen]
    shown = {key: values[rows] for key, values in columns.items()}
    low, middle, high = shown["ci_low"], shown["difficulty"], shown["ci_high"]
    se = shown["se"]
    if "anchored" in shown:  # given, not estimated: no error of these data
        low = np.where(shown["anchored"], np.nan, low)
        high = np.where(shown["anchored"], np.nan, high)
        se = np.where(shown["anchored"], np.nan, se)
    difficulties = numbers(middle, 3)
    if moved_by_prior and not thresholds:
        stars = ["*" if moved_by_prior[row][0] else " " for row in rows]
        difficulties = [f"{value}{star}" for value, star in zip(difficulties, stars, strict=True)]
    table = [
        Column("difficulty", difficulties),
        Column("se", numbers(se, 3)),
        Column(INTERVAL, intervals(low, high), spare=COMFORT),
        Column(bar_head, bars(low, middle, high, "─●" if unicode else "-o"), left=True, style="blue", spare=WHOLE),
        Column("n", [f"{n:,}" for n in shown["n"].tolist()], spare=COMFORT),
    ]
    if thresholds:
        table.append(Column("mean", numbers(shown["mean_score"], 2), spare=READ))
    else:
        share = [f"{100 * p:.1f}%" if np.isfinite(p) else "" for p in shown["p_correct"]]
        table.append(Column("right", share, spare=READ))
    if fit is not None:  # the conventional statistics; the verdict beside them goes by the conditional infit
        heads = {"infit": "infit", "outfit": "outfit", MEASURE: "point_measure"}
        found = {head: numbers(fit[key][rows], 2) for head, key in heads.items() if key in fit}
        table += [Column(head, cells, spare=READ if head == MEASURE else APART) for head, cells in found.items()]
    if "displacement" in shown:
        table.append(Column(DISPLACEMENT, numbers(shown["displacement"], 2)))
    if thresholds:
        cells = [numbers(thresholds[row], 1) for row in rows]
        if moved_by_prior:
            cells = [with_stars(values, moved_by_prior[row]) for values, row in zip(cells, rows, strict=True)]
        table.append(Column("thresholds", [" ".join(values) for values in cells]))
    misfit = np.full(len(columns["item"]), "") if fit is None or "misfit" not in fit else fit["misfit"]
    marks = [str(misfit[row] if columns["status"][row] == "ok" else columns["status"][row]) for row in rows]
    table += [Column("", marks, left=True, style="yellow")] if any(marks) else []
    spared = [bar_head, *(["n", INTERVAL] if len(set(shown["n"].tolist())) == 1 else [INTERVAL, "n"])]
    spared += ["right", "mean", MEASURE, "outfit", "infit", "thresholds", DISPLACEMENT, "se"]
    return labelled(name, shown["item"].tolist(), table, width, groups=groups, spared=spared, whole=whole)


def with_stars(values: Sequence[str], starred: Sequence[bool]) -> list[str]:
    return [f"{value}*" if star else value for value, star in zip(values, starred, strict=True)]


def bars(low: Floats, middle: Floats, high: Floats, signs: str) -> list[str]:
    """Intervals as lines with the estimates on them, over all estimates and no more than half as much on either side.

    >>> bars(np.array([-2.0, -1]), np.array([-2.0, 0]), np.array([2.0, 1]), "─●")
    ['●───────────────────────', '       ────────●────────']
    """
    known = middle[np.isfinite(middle)]
    if not len(known):
        return [""] * len(middle)
    reach, ends = max(1.0, float(np.ptp(known))) / 2, np.concatenate([low, high, known])
    ends = np.clip(ends[np.isfinite(ends)], known.min() - reach, known.max() + reach)
    start, wide = ends.min(), max(float(np.ptp(ends)), 1e-6)
    out = []
    for places in np.clip((np.stack([low, middle, high], axis=1) - start) / wide, 0, 1) * (BAR_WIDTH - 1):
        cells = [" "] * BAR_WIDTH
        if np.isfinite(places).all():
            first, last = int(np.floor(places[0])), int(np.ceil(places[2]))
            cells[first : last + 1] = signs[0] * (last - first + 1)
        if np.isfinite(places[1]):
            cells[round(places[1])] = signs[1]
        out.append("".join(cells) if np.isfinite(places[1]) else "")
    return out


def choose_people(persons: Columns) -> Groups:
    """Which people to show, under which heading; those on different scales never in one order."""
    scales = sorted({str(scale) for scale in persons.get("scale", np.empty(0)) if scale}, key=int)
    if len(scales) > 1:
        groups: list[tuple[str, Sequence[int]]] = []
        for scale in scales[:SHOW_SCALES]:
            there = np.flatnonzero(persons["scale"] == scale)
            some = {name: values[there] for name, values in persons.items() if name != "scale"}
            for name, rows in choose_people(some):
                groups.append((f"scale {scale}" + (f": {name}" if name else ""), there[rows].tolist()))
        return groups
    ability, z = persons["ability"], persons["outfit_z"]
    known, odd = np.flatnonzero(~np.isnan(ability)), np.flatnonzero(np.isfinite(z))
    highest_first = known[np.argsort(-np.round(ability[known], ALIKE), kind="stable")]
    if len(ability) <= (SHOW_RANKED if "rank" in persons else SHOW_PEOPLE):
        return [("", [*highest_first.tolist(), *np.flatnonzero(np.isnan(ability)).tolist()])]
    ends = {
        "highest": highest_first,
        "lowest": highest_first[::-1],
        "largest outfit": odd[np.argsort(-z[odd], kind="stable")],
    }
    return [(name, rows[:SHOW_EACH].tolist()) for name, rows in ends.items() if len(rows)]


def person_table(
    persons: Columns,
    width: int,
    *,
    name: str = "person",
    whole: bool = False,
    points: bool = False,
    words: Words = TEST,
) -> Table:
    """Ability with its error, score, and how regular the answers are; ranks where they were computed. `points`: scores
    add categories, rather than count right answers."""
    groups = choose_people(persons)
    shown = {key: values[[k for _, chosen in groups for k in chosen]] for key, values in persons.items()}
    table = []
    if "rank" in shown:
        ranks = zip(*(shown[key].tolist() for key in ("rank", "rank_low", "rank_high")), strict=True)
        texts = [
            ("", "") if rank == 0 else (f"{rank:,}", f"{low:,} to {high:,}" if low < high else f"{low:,}")
            for rank, low, high in ranks
        ]
        table += [Column("rank", [one for one, _ in texts]), Column("rank\ninterval", [one for _, one in texts])]
    table += [Column(words.trait, numbers(shown["ability"], 2)), Column("se", numbers(shown["se"], 2))]
    if "ci_low" in shown:
        table.append(Column(INTERVAL, intervals(shown["ci_low"], shown["ci_high"])))
    if "measure" in shown:
        table += [Column("measure", numbers(shown["measure"], 1)), Column("± se", numbers(shown["measure_se"], 1))]
    scores = zip(shown["score"].tolist(), shown["n"].tolist(), strict=True)
    if points:
        table.append(Column("score", [f"{score:,}" for score, _ in scores], spare=COMFORT))
    else:
        table.append(Column("right", [f"{score:,} of {n:,}" for score, n in scores], spare=COMFORT))
    table.append(Column("outfit", numbers(shown["outfit"], 2)))
    marks = ["extreme" if extreme else "" for extreme in shown["extreme"]]
    table += [Column("", marks, left=True, style="yellow")] if any(marks) else []
    spared = ["right", "outfit", "± se", "measure", INTERVAL]
    return labelled(name, shown["person"].tolist(), table, width, groups=groups, spared=spared, whole=whole)
