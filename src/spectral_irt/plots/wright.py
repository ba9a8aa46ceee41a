"""The Wright map: people, items and raters on one scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.responses import Labels
from spectral_irt.plots.base import Display, known_abilities, on_scale
from spectral_irt.plots.labels import all_shown, as_is
from spectral_irt.plots.style import (
    BLUE,
    INK,
    LINE,
    RED,
    ROWS,
    SMALL,
    ability_edges,
    dress,
    finite_range,
    new_axes,
    note,
    room_for,
    root_of,
    unit,
)
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis
    from spectral_irt.calibration import Calibration

ENDS = 5  # hardest and easiest items that are named where not all can be
BETWEEN = "   "  # between two labels on one line
FEWEST_LETTERS = 26  # room for a column of the map, in letters
MOST_LETTERS = 64  # of a line of labels; a column that would need more has bars, and the labels of its ends
LETTER_INCHES = 0.068  # of a letter of a label
PEOPLE_INCHES = 2.4  # of the longest bar of people
SIDE = 0.1  # room for the marks of means, of the longest bar
MARGIN = 1.5  # inches for the title, the axes and the note
PHONE = 3.7  # inches of the narrowest screen, 390 pixels, without its margins
PHONE_SIDE = 0.75  # of these for the axis and its numbers
FEWEST_SHOWN = 8  # letters of a column of labels, however narrow the picture
STRETCHES = (1.0, 1.4, 2.0, 2.8)  # times the height, until all labels have room on a narrow screen
PHONE_OUTER = 0.02  # as OUTER: people farther out are in the bars at the ends
OUTER = 0.0005  # share of people beyond each end of the scale that is drawn, unless items are there


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WrightMap(Display):
    """People to the left, items (or their thresholds) to the right, able people and hard items on top; of ratings, a
    column for each facet beside them, severe raters on top.

    A person beside an item has an even chance of answering it right. `left_out` people have no finite ability.
    """

    ability: Floats
    labels: Labels
    difficulty: Floats
    left_out: int = 0
    what: str = "item"
    facets: Mapping[str, tuple[Labels, Floats]] = field(default_factory=dict)  # labels and severities
    stretch: float = 1.0  # times the usual height
    outer: float = OUTER

    @classmethod
    def of(cls, study: Analysis, *, thresholds: bool = True) -> WrightMap:
        calibration = study.calibration.own_items
        ability = known_abilities(study)
        items = on_scale(calibration)
        if calibration.layout.binary or not thresholds:
            what = "item"
            labels = calibration.labels[items]
            heights = calibration.difficulty[items]
        else:
            what = "threshold"
            slots = calibration.layout.of_items(items)
            labels = threshold_labels(calibration, slots)
            heights = calibration.thresholds[slots]
        facets = {}
        for name in study.facets:
            table = columns_of(study.facet, name)
            has_severity = np.isfinite(table["severity"])
            facets[name] = (table[name][has_severity], table["severity"][has_severity])
        return cls.about(
            study,
            ability=ability,
            labels=labels,
            difficulty=heights,
            left_out=study.responses.n_persons - len(ability),
            what=what,
            facets=facets,
        )

    @property
    def beside(self) -> dict[str, tuple[Labels, Floats]]:
        """What stands beside the people, column by column."""
        return {self.what: (self.labels, self.difficulty), **self.facets}

    def edges(self) -> Floats:
        """Limits of the bins, in logits: all items and raters and all but a few people are within."""
        low, high = np.quantile(self.ability, [self.outer, 1 - self.outer])
        others = np.concatenate([values for _, values in self.beside.values()])
        ends = np.array([min(low, others.min()), max(high, others.max())])
        return ability_edges(self.ability, *finite_range(ends, margin=0.02))

    def columns(self) -> Columns:
        """`low, high` of each stretch of the scale, from the top down; `persons` and `items` in it, and which.

        Where thresholds stand for items, the column is called so; of ratings, each facet has a column with its levels.
        """
        edges = self.edges()
        limits = self.scale.measure(edges)

        items, *levels_of_facets = (_by_stretch(labels, values, edges) for labels, values in self.beside.values())
        columns: Columns = {
            "low": limits[:-1][::-1],
            "high": limits[1:][::-1],
            "persons": np.histogram(np.clip(self.ability, edges[0], edges[-1]), edges)[0][::-1],
            f"{self.what}s": np.array(list(map(len, items))),
        }
        for name, members in zip(("which", *self.facets), (items, *levels_of_facets), strict=True):
            columns[name] = np.array(list(map(listed, members)), dtype=object)
        return columns

    @property
    def _height(self) -> float:
        """Inches of a figure of its own."""
        return (6.4 + 1.6 * min(len(self.labels) / ROWS, 1)) * self.stretch

    @property
    def _rows(self) -> int:
        """Lines of text that fit one below the other in a figure of its own, beside its title, axis and note."""
        return int((self._height - MARGIN) * 72 / LINE)

    def on_a_phone(self) -> Axes:
        """The picture for a narrow screen: labels at their heights, with fewer on a line of a taller picture."""
        taller = self
        for stretch in STRETCHES:
            taller = replace(self, stretch=stretch, outer=PHONE_OUTER)
            if all(lines.all_named for lines in taller._every_line(taller._rows, PHONE - PHONE_SIDE)):
                break
        return taller.plot(new_axes(PHONE, taller._height))

    def _every_line(self, rows: int, inches: float) -> list[LabelLines]:
        """The lines of labels of each column beside the people, in axes of this width: a column that needs less than
        its share leaves the rest to the others."""
        columns = list(self.beside.values())
        letters = int((inches - (1 + 2 * SIDE) * self._people_inches(inches)) / LETTER_INCHES)
        edges = self.edges()
        limits = (float(edges[0]), float(edges[-1]))
        needed = [LabelLines.of(*column, limits, rows).width for column in columns]
        lines: dict[int, LabelLines] = {}
        for k in np.argsort(needed, kind="stable").tolist():
            share = int(np.clip(letters // (len(columns) - len(lines)), FEWEST_SHOWN, MOST_LETTERS))
            labels, values = columns[k]
            lines[k] = self._lines(labels, values, rows, share)
            letters -= lines[k].width
        return [lines[k] for k in range(len(columns))]

    def _people_inches(self, inches: float) -> float:
        """The longest bar of people in axes of this width: less where raters stand beside the items."""
        share = 0.4 if len(self.beside) == 1 else 0.25 / (len(self.beside) - 0.5)
        return min(PEOPLE_INCHES, share * inches)

    def size(self) -> tuple[float, float]:
        lines = [self._lines(labels, values, self._rows, MOST_LETTERS) for labels, values in self.beside.values()]
        letters = sum(max(each.width, FEWEST_LETTERS) for each in lines)
        return MARGIN + (1 + 2 * SIDE) * PEOPLE_INCHES + letters * LETTER_INCHES, self._height

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        low_end = table["low"]
        high_end = table["high"]
        height = np.abs(high_end - low_end)
        # The area of a bar is the number of persons in it: bars of a short test are of unequal height.
        density = table["persons"] / height
        length = density / max(density.max(), 1e-300)
        ax.barh((low_end + high_end) / 2, -length, height, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.set_ylim(low_end[-1], high_end[0])
        columns = self.beside
        root_of(ax).draw_without_rendering()  # now the axes are as large as they will be
        inches = ax.get_window_extent().width / root_of(ax).dpi
        people_inches = self._people_inches(inches)
        rows = max(min(self._rows, room_for(ax) - 1), 1)
        lines = self._every_line(rows, inches)
        letters = int((inches - (1 + 2 * SIDE) * people_inches) / LETTER_INCHES)
        spare = max(letters - sum(each.width for each in lines), 0) / len(lines)
        widths = [(each.width + spare) * LETTER_INCHES / people_inches for each in lines]
        starts = np.cumsum([0.0, *widths])
        ax.set_xlim(-1 - SIDE, starts[-1] + SIDE)
        for (labels, values), line, left, width in zip(columns.values(), lines, starts[:-1], widths, strict=True):
            self._column(ax, left, width, labels, values, line, inch=1 / people_inches)
        self._mean_and_sd(ax, self.ability, -1 - SIDE / 2, BLUE)
        if not self.facets:
            self._mean_and_sd(ax, self.difficulty, starts[-1] + SIDE / 2, RED)
        self._dress(ax)
        people = count(len(self.ability), "person")
        if self.left_out:
            people += f", {self.left_out:,} without a finite {self.words.trait} left out"
        ticks = [people, *(count(len(labels), name) for name, (labels, _) in columns.items())]
        middles = (starts[:-1] + starts[1:]) / 2
        ax.set_xticks([-0.5, *middles], ticks, color=INK)
        ax.tick_params(axis="x", length=0)
        note(ax, "M: mean; S, T: one and two standard deviations from it")

    def _dress(self, ax: Axes) -> None:
        """Title and axis, which name what stands on the map."""
        *first, last = map(plural, self.beside)
        title = f"{', '.join(['People', *first])} and {last} on one scale"
        measure = {"item": "difficulty", "threshold": "threshold"}[self.what]
        if self.facets:
            measure = "severity"
        dress(ax, title, "", f"{self.words.trait}, {measure} ({unit(self.scale)})", grid="y")

    def _lines(self, labels: Labels, values: Floats, rows: int, letters: int) -> LabelLines:
        """The labels by the line of text in which they stand, where so many lines of so many letters fit; only the
        hardest and the easiest where not all have room."""
        edges = self.edges()
        limits = (float(edges[0]), float(edges[-1]))
        lines = LabelLines.of(labels, values, limits, rows)
        if lines.width <= letters:
            return lines
        order = np.argsort(-values, kind="stable")
        ends = np.unique(np.concatenate([order[:ENDS], order[-ENDS:]]))
        return LabelLines.of(labels[ends], values[ends], limits, rows, letters=letters)

    def _column(
        self, ax: Axes, left: float, width: float, labels: Labels, values: Floats, lines: LabelLines, *, inch: float
    ) -> None:
        """Marks at their heights, with the labels in lines of text beside them: a label is at most half a line from its
        mark. Where there is no room for all, bars, and the labels of the ends. `inch` is one on the axis."""
        ax.axvline(left, color=INK, linewidth=0.8)
        place = self.scale.measure(values)
        text_start = left + 0.24 * inch
        if lines.all_named:
            ax.plot(np.full(len(place), left + 0.1 * inch), place, "D", color=RED, markersize=4, clip_on=False)
        else:
            edges = np.sort(self.scale.measure(self.edges()))
            counts = np.histogram(np.clip(place, edges[0], edges[-1]), edges)[0]
            density = counts / np.diff(edges)
            longest = 0.45 * width
            text_start = left + 0.50 * width
            look = {"color": RED, "edgecolor": "white", "linewidth": 0.4, "hatch": "////"}
            length = longest * density / max(density.max(), 1e-300)
            ax.barh(edges[:-1], length, np.diff(edges), left, align="edge", **look)  # type: ignore[arg-type]
        for height, text in zip(self.scale.measure(lines.height).tolist(), lines.text, strict=True):
            ax.text(text_start, height, text, fontsize=SMALL, va="center", color=INK, **as_is())

    def _mean_and_sd(self, ax: Axes, values: Floats, x: float, color: str) -> None:
        """M at the mean, S and T one and two standard deviations from it, as on the maps of other programs."""
        measures = self.scale.measure(values)
        spread = float(np.std(measures))
        low, high = sorted(ax.get_ylim())
        for letter, distance in (("M", 0.0), ("S", 1.0), ("S", -1.0), ("T", 2.0), ("T", -2.0)):
            height = float(measures.mean()) + distance * spread
            if low <= height <= high and (spread > 0 or letter == "M"):
                ax.text(x, height, letter, fontsize=SMALL, color=color, ha="center", va="center", weight="bold")


def threshold_labels(calibration: Calibration, slots: Ints) -> Labels:
    """Labels of thresholds: "q7 (2)" is the second of item q7."""
    layout = calibration.layout
    labels = calibration.labels[layout.item[slots]].astype(object)
    labels[:] = [f"{label} ({layout.level[k]})" for label, k in zip(labels, slots.tolist(), strict=True)]
    return labels


def _by_stretch(labels: Labels, values: Floats, edges: Floats) -> list[Labels]:
    """The labels in each stretch between two edges, from the top down, the highest value first."""
    n_stretches = len(edges) - 1
    stretch = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, n_stretches - 1)
    order = np.argsort(-values, kind="stable")
    return [labels[order][stretch[order] == k] for k in reversed(range(n_stretches))]


class LabelLines(NamedTuple):
    """Labels of one column of the map by the line of text in which they stand."""

    height: Floats  # of each line, in logits: at most half a line from every label in it
    text: list[str]
    all_named: bool

    @classmethod
    def of(
        cls, labels: Labels, values: Floats, limits: tuple[float, float], rows: int, *, letters: int | None = None
    ) -> LabelLines:
        """Labels whose heights are in the same of `rows` equal stretches of the scale share a line, hardest first.

        With `letters`, which is half as wide as the column of bars and labels, those that have no room are counted.
        """
        low, high = limits
        row = np.clip(((values - low) / (high - low) * rows).astype(np.int64), 0, rows - 1)
        names = all_shown(labels)
        by_row: dict[int, list[str]] = {}
        for k in np.argsort(-values, kind="stable").tolist():
            by_row.setdefault(int(row[k]), []).append(names[k])
        middle = low + (np.array(list(by_row), dtype=float) + 0.5) * (high - low) / rows
        if letters is None:
            return cls(middle, [BETWEEN.join(texts) for texts in by_row.values()], all_named=True)
        return cls(middle, [_that_fit(texts, letters // 2) for texts in by_row.values()], all_named=False)

    @property
    def width(self) -> int:
        """Letters of the longest line."""
        longest = max((len(text) - text.count(BETWEEN) for text in self.text), default=0)  # blanks are narrow
        return longest + 3 if self.all_named else 2 * longest + 3  # beside the marks, or in half of the column


def _that_fit(names: list[str], letters: int) -> str:
    """The names that fit on a line of so many letters, and how many more there are.

    >>> _that_fit(["Item 1", "Item 2", "Item 3"], 12)
    'Item 1   +2'
    """
    shown = len(names)
    while shown > 1 and len(_with_rest(names, shown)) > letters:
        shown -= 1
    return _with_rest(names, shown)


def _with_rest(names: list[str], shown: int) -> str:
    others = [f"+{len(names) - shown}"] if shown < len(names) else []
    return BETWEEN.join([*names[:shown], *others])
