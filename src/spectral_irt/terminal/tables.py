"""A table in the width there is: numbers make way for labels, and labels keep what tells them apart.

Of many items or people those at the ends are shown, with those that fit worst and those known worst. The summary of an
analysis (`analysis/summary.py`) and the commands show their tables with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from spectral_irt.data.block import Floats, Ints
from spectral_irt.model import ALIKE
from spectral_irt.tables import Columns
from spectral_irt.terminal.labels import LEAST, MOST, in_its_place, room_for, shorten
from spectral_irt.text import TEST, Words, number, printable

BETWEEN = 2  # blanks between columns

# What labels have, as far as they need it, before a column has a place.
APART = 0  # enough to be told apart
READ = 16  # to be read
COMFORT = 24
WHOLE = MOST

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
INTERVAL = "95% interval"
MEASURE = "point\nmeasure"
DISPLACEMENT = "displ."
BAR_WIDTH = 24
BAR_HEAD = f"easier{'harder':>{BAR_WIDTH - len('easier')}}"
DIGITS = 3  # of difficulties

Groups = Sequence[tuple[str, Sequence[int]]]  # headings, and the rows below each


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
        """The room that it takes, with the blanks before it."""
        return BETWEEN + max(map(cell_len, [*self.head.split("\n"), *self.cells]))


def table_with_labels(
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
    heads_width = max(map(cell_len, [head, *dict(groups)]))
    label_width = max(heads_width, min(max(map(cell_len, map(printable, labels)), default=0), MOST))

    def labels_have_room(beside: Sequence[Column], spare: int) -> bool:
        room = width - sum(column.width for column in beside)
        if room < max(heads_width, min(max(LEAST, spare), label_width)):
            return False
        return room >= label_width or room >= room_for(labels)  # in which they can be told apart

    shown = list(columns)
    for name, column in product(spared, columns):
        if column.head == name and not labels_have_room(shown, column.spare):
            shown.remove(column)
    for column in reversed(columns):  # a small one, where a large one went
        if column not in shown and labels_have_room([*shown, column], column.spare):
            shown = [each for each in columns if each in shown or each is column]
    columns_width = sum(column.width for column in shown)
    table_width = None
    room = max(width - columns_width, LEAST)
    if whole:
        table_width = label_width + columns_width
        room = label_width

    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False, width=table_width)
    table.add_column(head, no_wrap=True)
    for column in shown:
        table.add_column(column.head, justify="left" if column.left else "right", no_wrap=True, style=column.style)
    texts = map(in_its_place, shorten(labels, room))
    rows = iter(list(zip(texts, *(column.cells for column in shown), strict=True)))
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
    others = []
    for head, cells in zip(heads[1:], columns[1:], strict=True):
        others.append(Column(head, cells) if head else _marks(cells))
    return table_with_labels(heads[0], list(columns[0]), others, width, whole=whole)


def _marks(cells: Sequence[str]) -> Column:
    """Words about rows, without a head."""
    return Column("", cells, left=True, style="yellow")


def numbers(values: Sequence[float] | NDArray[Any], digits: int) -> list[str]:
    """Numbers with so many digits, never "-0.00"; nothing where there is no number."""
    return list(map(partial(number, digits=digits, none=""), values))


def intervals(low: Floats, high: Floats) -> list[str]:
    texts = np.full(len(low), "", dtype=object)
    for row in np.flatnonzero(np.isfinite(low)).tolist():
        texts[row] = f"{low[row]:z.2f} to {high[row]:z.2f}"
    return texts.tolist()


def choose_items(columns: Columns, fit: Columns | None = None) -> Groups:
    """Which items to show, under which heading."""
    difficulty = columns["difficulty"]
    estimated = np.flatnonzero(np.isfinite(difficulty))
    # As they are shown: the last bits, by which items of the same score may differ, put none before another.
    hardest_first = largest_first(np.round(difficulty, DIGITS), estimated)
    if len(difficulty) <= SHOW_ALL:
        return [("", [*hardest_first.tolist(), *np.flatnonzero(~np.isfinite(difficulty)).tolist()])]
    hardest = hardest_first[:SHOW_EACH].tolist()
    easiest = hardest_first[::-1][:SHOW_EACH].tolist()
    groups = [("hardest", hardest), ("easiest", easiest)]
    if fit is not None and "misfit" in fit:
        misfits = np.flatnonzero(fit["misfit"] != "")
        worst = largest_first(-fit["misfit_p"], misfits)[:SHOW_MISFITS].tolist()
        heading = f"misfit ({len(worst)} of {len(misfits):,})" if len(misfits) > len(worst) else "misfit"
        groups.append((heading, worst))
    if "displacement" in columns:
        anchors = np.flatnonzero(np.isfinite(columns["displacement"]))
        farthest_first = largest_first(np.abs(columns["displacement"]), anchors)
        groups.append(("largest displacement", farthest_first[:SHOW_EACH].tolist()))
    with_error = estimated[np.isfinite(columns["se"][estimated])]
    rows = largest_first(columns["se"], with_error).tolist()
    groups.append(("largest se", [row for row in rows if row not in {*hardest, *easiest}][:SHOW_EACH]))
    return [(heading, rows) for heading, rows in groups if rows]


def largest_first(values: NDArray[Any], rows: Ints) -> Ints:
    """These rows, those with the largest values first; of equal ones as they are."""
    return rows[np.argsort(-values[rows], kind="stable")]


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
    groups = choose_items(columns, fit)
    rows = [row for _, rows_below in groups for row in rows_below]
    shown = {key: values[rows] for key, values in columns.items()}
    moved = [moved_by_prior[row] for row in rows] if moved_by_prior else []
    table = _difficulty_columns(shown, [] if thresholds else moved, "─●" if unicode else "-o")
    table.append(Column("n", [f"{n:,}" for n in shown["n"].tolist()], spare=COMFORT))
    if thresholds:
        table.append(Column("mean", numbers(shown["mean_score"], 2), spare=READ))
    else:
        share = [f"{100 * p:.1f}%" if np.isfinite(p) else "" for p in shown["p_correct"]]
        table.append(Column("right", share, spare=READ))
    if fit is not None:
        table += _fit_columns(fit, rows)
    if "displacement" in shown:
        table.append(Column(DISPLACEMENT, numbers(shown["displacement"], 2)))
    if thresholds:
        table.append(_threshold_column([thresholds[row] for row in rows], moved))
    marks = shown["status"].astype(str)
    if fit is not None and "misfit" in fit:
        marks = np.where(shown["status"] == "ok", fit["misfit"][rows].astype(str), marks)
    else:
        marks = np.where(shown["status"] == "ok", "", marks)
    if any(marks):
        table.append(_marks(marks.tolist()))
    everybody_answered = len(set(shown["n"].tolist())) == 1
    first = ["n", INTERVAL] if everybody_answered else [INTERVAL, "n"]
    spared = [BAR_HEAD, *first, "right", "mean", MEASURE, "outfit", "infit", "thresholds", DISPLACEMENT, "se"]
    return table_with_labels(name, shown["item"].tolist(), table, width, groups=groups, spared=spared, whole=whole)


def _difficulty_columns(items: Columns, moved_by_prior: Sequence[Sequence[bool]], signs: str) -> list[Column]:
    """Difficulty with its error and interval, in numbers and as a bar; with a star where the prior moved it."""
    # An anchored difficulty is given, not estimated: it has no error of these data.
    anchored = items.get("anchored", np.zeros(len(items["difficulty"]), dtype=bool))
    low = np.where(anchored, np.nan, items["ci_low"])
    high = np.where(anchored, np.nan, items["ci_high"])
    difficulties = numbers(items["difficulty"], DIGITS)
    if moved_by_prior:
        stars = ["*" if moved[0] else " " for moved in moved_by_prior]
        difficulties = [f"{value}{star}" for value, star in zip(difficulties, stars, strict=True)]
    lines = bars(low, items["difficulty"], high, signs)
    return [
        Column("difficulty", difficulties),
        Column("se", numbers(np.where(anchored, np.nan, items["se"]), DIGITS)),
        Column(INTERVAL, intervals(low, high), spare=COMFORT),
        Column(BAR_HEAD, lines, left=True, style="blue", spare=WHOLE),
    ]


def _fit_columns(fit: Columns, rows: Sequence[int]) -> list[Column]:
    """The conventional statistics; the verdict beside them goes by the conditional infit."""
    columns = []
    for head, key, spare in (("infit", "infit", APART), ("outfit", "outfit", APART), (MEASURE, "point_measure", READ)):
        if key in fit:
            columns.append(Column(head, numbers(fit[key][rows], 2), spare=spare))
    return columns


def _threshold_column(thresholds: Sequence[Sequence[float]], moved_by_prior: Sequence[Sequence[bool]]) -> Column:
    """The thresholds of each item, with a star where the prior moved them."""
    cells = [numbers(of_item, 1) for of_item in thresholds]
    if moved_by_prior:
        cells = [with_stars(values, moved) for values, moved in zip(cells, moved_by_prior, strict=True)]
    return Column("thresholds", [" ".join(values) for values in cells])


def with_stars(values: Sequence[str], starred: Sequence[bool]) -> list[str]:
    return [f"{value}*" if star else value for value, star in zip(values, starred, strict=True)]


def bars(low: Floats, middle: Floats, high: Floats, signs: str) -> list[str]:
    """Intervals as lines with the estimates on them, over all estimates and no more than half as much on either side.

    >>> bars(np.array([-2.0, -1]), np.array([-2.0, 0]), np.array([2.0, 1]), "─●")
    ['●───────────────────────', '       ────────●────────']
    """
    estimates = middle[np.isfinite(middle)]
    if not len(estimates):
        return [""] * len(middle)
    reach = max(1.0, float(np.ptp(estimates))) / 2
    ends = np.concatenate([low, high, estimates])
    ends = np.clip(ends[np.isfinite(ends)], estimates.min() - reach, estimates.max() + reach)
    span = max(float(np.ptp(ends)), 1e-6)
    places = np.clip((np.stack([low, middle, high], axis=1) - ends.min()) / span, 0, 1) * (BAR_WIDTH - 1)
    return [_bar(start, dot, end, signs) for start, dot, end in places.tolist()]


def _bar(low: float, middle: float, high: float, signs: str) -> str:
    """An interval between these places as a line, and the estimate; empty without an estimate."""
    if not np.isfinite(middle):
        return ""
    cells = [" "] * BAR_WIDTH
    if np.isfinite(low) and np.isfinite(high):
        first = int(np.floor(low))
        last = int(np.ceil(high))
        cells[first : last + 1] = signs[0] * (last - first + 1)
    cells[round(middle)] = signs[1]
    return "".join(cells)


def choose_people(persons: Columns) -> Groups:
    """Which people to show, under which heading; those on different scales never in one order."""
    scales = sorted({str(scale) for scale in persons.get("scale", np.empty(0)) if scale}, key=int)
    if len(scales) > 1:
        return [group for scale in scales[:SHOW_SCALES] for group in _people_on_scale(persons, scale)]
    ability = persons["ability"]
    has_ability = ~np.isnan(ability)
    highest_first = largest_first(np.round(ability, ALIKE), np.flatnonzero(has_ability))
    if len(ability) <= (SHOW_RANKED if "rank" in persons else SHOW_PEOPLE):
        return [("", [*highest_first.tolist(), *np.flatnonzero(~has_ability).tolist()])]
    z = persons["outfit_z"]
    groups = {
        "highest": highest_first,
        "lowest": highest_first[::-1],
        "largest outfit": largest_first(z, np.flatnonzero(np.isfinite(z))),
    }
    return [(heading, rows[:SHOW_EACH].tolist()) for heading, rows in groups.items() if len(rows)]


def _people_on_scale(persons: Columns, scale: str) -> Groups:
    on_scale = np.flatnonzero(persons["scale"] == scale)
    people = {name: values[on_scale] for name, values in persons.items() if name != "scale"}
    groups = []
    for heading, rows in choose_people(people):
        heading = f"scale {scale}: {heading}" if heading else f"scale {scale}"
        groups.append((heading, on_scale[rows].tolist()))
    return groups


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
    rows = [row for _, rows_below in groups for row in rows_below]
    shown = {key: values[rows] for key, values in persons.items()}
    table = []
    if "rank" in shown:
        table += _rank_columns(shown)
    table += [Column(words.trait, numbers(shown["ability"], 2)), Column("se", numbers(shown["se"], 2))]
    if "ci_low" in shown:
        table.append(Column(INTERVAL, intervals(shown["ci_low"], shown["ci_high"])))
    if "measure" in shown:
        table += [Column("measure", numbers(shown["measure"], 1)), Column("± se", numbers(shown["measure_se"], 1))]
    if points:
        table.append(Column("score", [f"{score:,}" for score in shown["score"].tolist()], spare=COMFORT))
    else:
        scores = zip(shown["score"].tolist(), shown["n"].tolist(), strict=True)
        table.append(Column("right", [f"{score:,} of {n:,}" for score, n in scores], spare=COMFORT))
    table.append(Column("outfit", numbers(shown["outfit"], 2)))
    marks = ["extreme" if extreme else "" for extreme in shown["extreme"]]
    if any(marks):
        table.append(_marks(marks))
    spared = ["right", "outfit", "± se", "measure", INTERVAL]
    return table_with_labels(name, shown["person"].tolist(), table, width, groups=groups, spared=spared, whole=whole)


def _rank_columns(persons: Columns) -> list[Column]:
    """The rank and its interval; nothing for those who have none."""
    ranks = []
    intervals_of_ranks = []
    for rank, low, high in zip(*(persons[key].tolist() for key in ("rank", "rank_low", "rank_high")), strict=True):
        ranks.append(f"{rank:,}" if rank else "")
        interval = f"{low:,} to {high:,}" if low < high else f"{low:,}"
        intervals_of_ranks.append(interval if rank else "")
    return [Column("rank", ranks), Column("rank\ninterval", intervals_of_ranks)]
