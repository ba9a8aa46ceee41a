"""Curves of items: the expected answer and what was observed; the probability of each category; sheets of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.analysis.folder import CHOSEN_BY_ANSWERS
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.responses import Labels
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.strata import STRATA
from spectral_irt.model import category_probabilities
from spectral_irt.plots.base import Display, check_strata, item_position, known_abilities
from spectral_irt.plots.labels import all_shown, as_is, label_text
from spectral_irt.plots.style import BLUE, INK, RED, SMALL, dress, load_matplotlib, note, unit, whole_ticks
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis
    from spectral_irt.calibration import Calibration

AROUND = 2.5  # logits shown beyond the outermost thresholds, at least
POINTS = 201  # of the curve of a category
CURVE_POINTS = 161  # of the curve of an item, which bends less
SMALL_CURVE_POINTS = 41  # of one among many on a sheet
MARKS: dict[str, Any] = {"markersize": 5, "elinewidth": 1.2}  # of observed means
SMALL_MARKS: dict[str, Any] = {"markersize": 3, "elinewidth": 0.8}  # the same on a sheet
LEGEND_HEIGHT = 0.2  # inches of a legend that stands for all small pictures
IN_A_SHEET = 24  # letters of a name over a small picture
SHEET = 30  # curves on a sheet
IN_A_LEGEND = 60  # letters of all names in the legend of a sheet
NAMED = 12  # category curves in the legend; of more, so many at equal distances
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)))  # so that neighbors differ without color too
HALVINGS = 60  # of a stretch of some tens of logits: to the last digit
FAR = 40.0  # logits beyond the thresholds where the curve is at its end in every digit


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ItemCurve(Display):
    """The model's expected answer to one item, and mean answers in strata of ability with 95% intervals.

    Of an item that is right or wrong that is the item characteristic curve, and the share of right answers. A stratum
    stands where the model expects the mean that it expects of these very people, given their scores. Under the model
    the marks then lie on the curve but for chance, in a test of any length; at the people's estimated abilities they
    would not. `thresholds` are in logits, `strata` as in `inference.fit.strata`.
    """

    label: Any
    thresholds: Floats
    half_width: float  # of the difficulty's 95% interval: a band around the curve of an item with one threshold
    strata: Columns

    def expected(self, at: Floats) -> Floats:
        """The expected answer at these abilities, in categories counted from 0."""
        p = probabilities(self.thresholds, at)
        return p @ np.arange(p.shape[1])

    @property
    def place(self) -> Floats:
        """Where the strata stand, in logits."""
        expected = self.strata["expected"]
        thresholds = np.broadcast_to(self.thresholds, (len(expected), len(self.thresholds)))
        return where_expected(expected, thresholds)

    def columns(self) -> Columns:
        """`item, stratum, n, ability, observed, ci_low, ci_high, expected, place`.

        Answers count from 0, the lowest category. `ability` is the mean of the estimates, `place` where the stratum
        stands in the picture, both as reported.
        """
        columns = {name: values for name, values in self.strata.items() if name != "item"}
        columns["ability"] = self.scale.measure(columns["ability"])
        columns["place"] = self.scale.measure(self.place)
        return {"item": label_column(self.label, len(self.place)), **columns}

    @property
    def span(self) -> tuple[float, float]:
        """The abilities that are drawn, in logits."""
        low = self.thresholds.min() - AROUND
        high = self.thresholds.max() + AROUND
        return min(low, self.place.min(initial=np.inf) - 0.4), max(high, self.place.max(initial=-np.inf) + 0.4)

    @property
    def binary(self) -> bool:
        """Whether the item has one threshold, right or wrong."""
        return len(self.thresholds) == 1

    def draw(self, ax: Axes, *, small: bool = False, span: tuple[float, float] | None = None) -> None:
        self._draw_curve(ax, np.linspace(*(span or self.span), SMALL_CURVE_POINTS if small else CURVE_POINTS))
        self._draw_strata(ax, SMALL_MARKS if small else MARKS)
        max_score = len(self.thresholds)
        ax.set_ylim(-0.03 * max_score, 1.03 * max_score)
        if not self.binary:
            whole_ticks(ax, "y")
        if small:
            dress_small(ax, shares=self.binary)
        else:
            self._dress(ax)

    def _draw_curve(self, ax: Axes, ability: Floats) -> None:
        """The expected answer at these abilities; around that of one threshold a band for the error of it."""
        x = self.scale.measure(ability)
        if self.binary:
            low = self.expected(ability - self.half_width)
            high = self.expected(ability + self.half_width)
            ax.fill_between(x, low, high, color=BLUE, alpha=0.25, linewidth=0)
        ax.plot(x, self.expected(ability), color=BLUE, linewidth=1.6)
        ax.set_xlim(x[0], x[-1])

    def _draw_strata(self, ax: Axes, look: dict[str, Any]) -> None:
        """Observed means with their intervals."""
        table = self.columns()
        bars = np.array([table["observed"] - table["ci_low"], table["ci_high"] - table["observed"]])
        ax.errorbar(table["place"], table["observed"], np.maximum(bars, 0), fmt="o", color=RED, **look)

    def _dress(self, ax: Axes) -> None:
        """Title, axes and note of a picture of its own."""
        dotted = ""
        if self.binary:
            dress(ax, item_title(self.label), self.axis, "share of right answers", grid="both")
            ax.axhline(0.5, color=INK, linewidth=0.5, linestyle=":")
        else:
            dress(ax, item_title(self.label), self.axis, "mean answer, 0 = lowest category", grid="y")
            dotted = "; dotted: thresholds"
        mark_thresholds(ax, self.scale.measure(self.thresholds))
        people = count(int(self.strata["n"].sum()), "person")
        groups = count(len(self.strata["n"]), "group")
        marks = f"{people} in {groups} by {self.words.trait}, with 95% intervals"
        note(ax, f"line: the model; marks: {marks}{dotted}")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CategoryCurves(Display):
    """P(X = k) ~ exp(k theta - sum_{v <= k} beta_v) of every category of one item.

    Neighboring curves cross at the thresholds. Where these are out of order, the category between them is nowhere the
    most likely answer.
    """

    label: Any
    thresholds: Floats
    codes: Floats  # what stood in the data for each category
    names: Sequence[str] = ()  # how the codes are shown
    palette: Floats | None = None  # codes of all items of a sheet, each with a color of its own
    in_legend: bool = False  # whether the legend of a sheet has the names: all items have the same, and they are short

    @property
    def span(self) -> tuple[float, float]:
        """The abilities that are drawn, in logits."""
        return self.thresholds.min() - AROUND, self.thresholds.max() + AROUND

    @property
    def modal(self) -> NDArray[np.bool_]:
        """Whether each category is the most likely one somewhere: k theta - total_k is above all others for some theta
        if total lies below every chord over k."""
        total = np.concatenate([[0.0], np.cumsum(self.thresholds)])
        k = np.arange(len(total))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (total[:, None] - total) / (k[:, None] - k)
        steepest_before = np.where(k[:, None] > k, slope, -np.inf).max(axis=1)
        flattest_after = np.where(k[:, None] < k, slope, np.inf).min(axis=1)
        return np.asarray(steepest_before < flattest_after)

    def columns(self) -> Columns:
        """`item, category, code, ability, probability`: a row for each category and point of its curve."""
        ability = np.linspace(*self.span, POINTS)
        n_categories = len(self.thresholds) + 1
        return {
            "item": label_column(self.label, n_categories * POINTS),
            "category": np.repeat(np.arange(n_categories), POINTS),
            "code": np.repeat(self.codes, POINTS),
            "ability": np.tile(self.scale.measure(ability), n_categories),
            "probability": probabilities(self.thresholds, ability).T.ravel(),
        }

    def draw(self, ax: Axes, *, small: bool = False, span: tuple[float, float] | None = None) -> None:
        ability = np.linspace(*(span or self.span), POINTS)
        names = [f"{code:g}" for code in self.codes]
        if self.names and (self.in_legend or not small):
            names = [label_text(name, 28) for name in self.names]
        self._draw_curves(ax, ability, names, width=1.0 if small else 1.8)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlim(*self.scale.measure(ability[[0, -1]]))
        if small:
            dress_small(ax)
        else:
            self._dress(ax)

    def _draw_curves(self, ax: Axes, ability: Floats, names: Sequence[str], *, width: float) -> None:
        """The curve of every category, in the color that its code has on the whole sheet."""
        from matplotlib import colormaps

        palette = self.codes
        if self.palette is not None:
            palette = self.palette
        size = len(palette)
        colors = colormaps["viridis"](np.linspace(0, 0.65, size))  # from low to high; yellow is too pale on white
        in_legend = {0, *np.linspace(0, size - 1, min(size, NAMED)).round().astype(int).tolist()}
        x = self.scale.measure(ability)
        p = probabilities(self.thresholds, ability)
        for k, (code, name) in enumerate(zip(self.codes.tolist(), names, strict=True)):
            place = int(np.searchsorted(palette, code))
            look: dict[str, Any] = {"linestyle": LINES[place % len(LINES)], "linewidth": width}
            if place in in_legend:
                look["label"] = name
            ax.plot(x, p[:, k], color=colors[place], **look)

    def _dress(self, ax: Axes) -> None:
        """Title, axes, legend and note of a picture of its own."""
        dress(ax, item_title(self.label), self.axis, "probability of the answer", grid="y")
        mark_thresholds(ax, self.scale.measure(self.thresholds))
        ax.legend(title="answer", loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=SMALL, frameon=False)
        never_likely = ", ".join(f"{code:g}" for code in self.codes[~self.modal])
        remarks = ["dotted: thresholds, where neighbors are equally likely"]
        if never_likely:
            remarks.append(f"never the most likely answer: {never_likely}")
        note(ax, *remarks)


def label_column(label: Any, n: int) -> Labels:
    """A column of one label, whatever it is."""
    return np.array([label, None], dtype=object)[np.zeros(n, dtype=np.int64)]


def probabilities(thresholds: Floats, at: Floats) -> Floats:
    """P(X = k) of one item: a row for each ability."""
    row = np.concatenate([[0.0], np.cumsum(thresholds)])
    return category_probabilities(at, np.broadcast_to(row, (len(at), len(row))))


def where_expected(answer: Floats, thresholds: Floats) -> Floats:
    """The abilities at which these answers are expected, each to the item whose thresholds are in its row (+inf where
    items have fewer than others): by bisection, since the curve rises."""
    if thresholds.shape[1] == 1:  # in closed form
        p = np.clip(answer, 1e-12, 1 - 1e-12)
        return np.asarray(thresholds[:, 0] + np.log(p / (1 - p)))
    low = thresholds.min(axis=1) - FAR
    high = np.where(np.isfinite(thresholds), thresholds, -np.inf).max(axis=1) + FAR
    cumulated = np.concatenate([np.zeros((len(answer), 1)), np.cumsum(thresholds, axis=1)], axis=1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = category_probabilities(middle, cumulated) @ np.arange(cumulated.shape[1]) > answer
        low = np.where(above, low, middle)
        high = np.where(above, middle, high)
    return (low + high) / 2


def curves(study: Analysis, items: Sequence[Any], strata: int = STRATA) -> list[ItemCurve]:
    """The curves of these items, one pass over the answers for all."""
    check_strata(strata)
    calibration = study.calibration
    if calibration.adaptive:
        # Given the score, items chosen by the answers were answered as they were: marks would lie off any curve. The
        # posterior by the other answers is no way out, for an answer decides which others there are.
        raise OptionError(
            f"no curve beside what was observed: {CHOSEN_BY_ANSWERS}. `study.calibration.information()` and "
            "`study.plot.categories(item)` have the model's side alone."
        )
    place = items_with_curves(calibration, items)
    known_abilities(study)
    table = study._strata(place, strata)
    return [
        ItemCurve.about(
            study,
            label=calibration.labels[k],
            thresholds=calibration.thresholds_of(np.array([k]))[1],
            half_width=calibration.ci_width * float(np.nan_to_num(calibration.se[k], nan=0.0, posinf=0.0)),
            strata={name: values[table["item"] == k] for name, values in table.items()},
        )
        for k in place.tolist()
    ]


def category_curves(study: Analysis, items: Sequence[Any]) -> list[CategoryCurves]:
    """The category curves of these items."""
    calibration = study.calibration.own_items
    place = items_with_curves(calibration, items).tolist()
    codes = [calibration.codes[k, : calibration.layout.max_score[k] + 1] for k in place]
    names = [
        study.responses.answer_names(calibration.labels[k], codes_of_item.tolist())
        for k, codes_of_item in zip(place, codes, strict=True)
    ]
    palette = np.unique(np.concatenate(codes))
    every_name = {name for of_item in names for name in of_item}
    in_legend = len(every_name) == len(palette) and sum(map(len, every_name)) <= IN_A_LEGEND
    return [
        CategoryCurves.about(
            study,
            label=calibration.labels[k],
            thresholds=calibration.thresholds_of(np.array([k]))[1],
            codes=codes_of_item,
            names=names_of_item,
            palette=palette,
            in_legend=in_legend,
        )
        for k, codes_of_item, names_of_item in zip(place, codes, names, strict=True)
    ]


def items_with_curves(calibration: Calibration, items: Sequence[Any]) -> Ints:
    """Positions of these items; an error where one has no place on the common scale."""
    place = np.array([item_position(calibration, item) for item in items], dtype=np.int64)
    off_scale = place[~(calibration.known & (calibration.status != "unlinked"))[place]]
    if len(off_scale):
        culprits = [f"{listed([calibration.labels[k]])} ({calibration.status[k]})" for k in off_scale[:5].tolist()]
        raise OptionError(
            f"no place on the common scale, and so no curve: {', '.join(culprits)}. "
            "Look at the findings of the fit for why."
        )
    return place


def item_title(label: Any) -> str:
    """The title of a picture of one item."""
    name = label_text(label, 60)
    return name if name.casefold().startswith("item") else f"Item {name}"


def mark_thresholds(ax: Axes, places: Floats) -> None:
    for place in places.tolist():
        ax.axvline(place, color=INK, linewidth=0.7, linestyle=":", zorder=0)


def dress_small(ax: Axes, *, shares: bool = True) -> None:
    """A picture of a sheet of many: without words, few ticks; `shares`: from 0 to 1."""
    dress(ax, "", "", "")
    ax.tick_params(labelsize=6.5, length=2)
    if shares:
        ax.set_yticks([0, 0.5, 1])
    ax.locator_params(axis="x", nbins=4)


def sheet_of(displays: Sequence[Any], title: str, x: str, y: str, *, names: float = 0.0) -> Figure:
    """Displays of many items, small, on one sheet over the same abilities; so many inches are free beside each for
    names. One legend stands for all where they have the same lines."""
    load_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_across = min(5, max(1, int(np.ceil(np.sqrt(len(displays))))))
    n_down = -(-len(displays) // n_across)
    width = 1.9 * max(n_across, 3)
    height = 0.9 + 1.55 * n_down
    figure = Figure(figsize=(width, height))  # laid out by hand: that of matplotlib takes seconds for so many axes
    FigureCanvasAgg(figure)
    grid = np.ravel(figure.subplots(n_down, n_across, squeeze=False))
    drawn = grid[: len(displays)]
    labels = all_shown([display.label for display in displays], IN_A_SHEET)
    lows, highs = zip(*(display.span for display in displays), strict=True)
    for ax, display, label in zip(drawn, displays, labels, strict=True):
        display.draw(ax, small=True, span=(min(lows), max(highs)))
        ax.set_title(label, loc="left", fontsize=7.5, **as_is())
    for ax in grid[len(displays) :]:
        ax.set_visible(False)
    handles = _legend_handles(drawn)
    above = 0.55  # inches for the title
    if handles and len(handles) <= NAMED:
        above += LEGEND_HEIGHT
        height += LEGEND_HEIGHT
        figure.set_size_inches(width, height)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 1 - 0.28 / height), "ncols": len(handles)}
        figure.legend(handles.values(), handles.keys(), fontsize=6.5, frameon=False, **place)
    edges = {
        "left": 0.62 / width,
        "right": 1 - (0.1 + names) / width,
        "bottom": 0.5 / height,
        "top": 1 - above / height,
    }
    figure.subplots_adjust(**edges, wspace=0.28 + names, hspace=0.42)
    figure.suptitle(title, fontsize=10, x=0.1 / width, y=1 - 0.1 / height, ha="left", va="top", parse_math=False)
    figure.supxlabel(f"{x} ({unit(displays[0].scale)})", fontsize=8, y=0.1 / height, va="bottom")
    figure.supylabel(y, fontsize=8, x=0.1 / width, ha="left")
    return figure


def _legend_handles(drawn: Iterable[Axes]) -> dict[str, Any]:
    """The lines that one legend shows, by their names: the item with all categories gives the order."""
    handles: dict[str, Any] = {}
    for ax in sorted(drawn, key=lambda ax: -len(ax.lines)):
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles
