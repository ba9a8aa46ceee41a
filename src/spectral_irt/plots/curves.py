"""Curves of items: the expected answer and what was observed; the probability of each category; sheets of many."""

from __future__ import annotations

from collections.abc import Sequence
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
from spectral_irt.plots.labels import all_shown, as_is, shown
from spectral_irt.plots.style import BLUE, INK, RED, SMALL, dress, load_matplotlib, note, unit, whole_ticks
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis
    from spectral_irt.calibration import Calibration

AROUND = 2.5  # logits shown beyond the outermost thresholds, at least
POINTS = 201  # of a curve
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
        wanted = self.strata["expected"]
        return where_expected(wanted, np.broadcast_to(self.thresholds, (len(wanted), len(self.thresholds))))

    def columns(self) -> Columns:
        """`item, stratum, n, ability, observed, ci_low, ci_high, expected, place`.

        Answers count from 0, the lowest category. `ability` is the mean of the estimates, `place` where the stratum
        stands in the picture, both as reported.
        """
        others = {name: values for name, values in self.strata.items() if name != "item"}
        place, ability = self.scale.measure(self.place), self.scale.measure(others["ability"])
        return {"item": repeated(self.label, len(place)), **others, "ability": ability, "place": place}

    @property
    def span(self) -> tuple[float, float]:
        """The abilities that are drawn, in logits."""
        low, high = self.thresholds.min() - AROUND, self.thresholds.max() + AROUND
        return min(low, self.place.min(initial=np.inf) - 0.4), max(high, self.place.max(initial=-np.inf) + 0.4)

    def draw(self, ax: Axes, *, small: bool = False, span: tuple[float, float] | None = None) -> None:
        table, highest = self.columns(), len(self.thresholds)
        at = np.linspace(*(span or self.span), 41 if small else 161)
        x = self.scale.measure(at)
        if highest == 1:
            band = [self.expected(at + sign * self.half_width) for sign in (-1, 1)]
            ax.fill_between(x, band[0], band[1], color=BLUE, alpha=0.25, linewidth=0)
        ax.plot(x, self.expected(at), color=BLUE, linewidth=1.6)
        bars = np.array([table["observed"] - table["ci_low"], table["ci_high"] - table["observed"]])
        look: dict[str, Any] = {"markersize": 3 if small else 5, "elinewidth": 0.8 if small else 1.2}
        ax.errorbar(table["place"], table["observed"], np.maximum(bars, 0), fmt="o", color=RED, **look)
        ax.set_ylim(-0.03 * highest, 1.03 * highest)
        ax.set_xlim(x[0], x[-1])
        if highest > 1:
            whole_ticks(ax, "y")
        if small:
            dress_small(ax, shares=highest == 1)
            return
        what = "share of right answers" if highest == 1 else "mean answer, 0 = lowest category"
        dress(ax, item_title(self.label), self.axis, what, grid="both" if highest == 1 else "y")
        if highest == 1:
            ax.axhline(0.5, color=INK, linewidth=0.5, linestyle=":")
        mark_thresholds(ax, self.scale.measure(self.thresholds))
        people, groups = count(int(table["n"].sum()), "person"), count(len(table["n"]), "group")
        dotted = "" if highest == 1 else "; dotted: thresholds"
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
        before, after = np.where(k[:, None] > k, slope, -np.inf), np.where(k[:, None] < k, slope, np.inf)
        found: NDArray[np.bool_] = before.max(axis=1) < after.min(axis=1)
        return found

    def columns(self) -> Columns:
        """`item, category, code, ability, probability`: a row for each category and point of its curve."""
        at, size = np.linspace(*self.span, POINTS), len(self.thresholds) + 1
        return {
            "item": repeated(self.label, size * len(at)),
            "category": np.repeat(np.arange(size), len(at)),
            "code": np.repeat(self.codes, len(at)),
            "ability": np.tile(self.scale.measure(at), size),
            "probability": probabilities(self.thresholds, at).T.ravel(),
        }

    def draw(self, ax: Axes, *, small: bool = False, span: tuple[float, float] | None = None) -> None:
        from matplotlib import colormaps

        at = np.linspace(*(span or self.span), POINTS)
        x, p = self.scale.measure(at), probabilities(self.thresholds, at)
        palette = self.codes if self.palette is None else self.palette
        size = len(palette)
        colors = colormaps["viridis"](np.linspace(0, 0.65, size))  # from low to high; yellow is too pale on white
        named = {0, *np.linspace(0, size - 1, min(size, NAMED)).round().astype(int).tolist()}
        names = [f"{code:g}" for code in self.codes]
        if self.names and (self.in_legend or not small):
            names = [shown(name, 28) for name in self.names]
        for k, (code, name) in enumerate(zip(self.codes.tolist(), names, strict=True)):
            place = int(np.searchsorted(palette, code))
            look: dict[str, Any] = {"linestyle": LINES[place % len(LINES)], "linewidth": 1.0 if small else 1.8}
            ax.plot(x, p[:, k], color=colors[place], label=name if place in named else None, **look)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlim(x[0], x[-1])
        if small:
            dress_small(ax)
            return
        dress(ax, item_title(self.label), self.axis, "probability of the answer", grid="y")
        mark_thresholds(ax, self.scale.measure(self.thresholds))
        ax.legend(title="answer", loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=SMALL, frameon=False)
        hidden = self.codes[~self.modal]
        said = f"; never the most likely answer: {', '.join(f'{code:g}' for code in hidden)}" if len(hidden) else ""
        note(ax, f"dotted: thresholds, where neighbors are equally likely{said}")


def repeated(label: Any, n: int) -> Labels:
    """A column of one label, whatever it is."""
    return np.array([label, None], dtype=object)[np.zeros(n, dtype=np.int64)]


def probabilities(thresholds: Floats, at: Floats) -> Floats:
    """P(X = k) of one item: a row for each ability."""
    row = np.concatenate([[0.0], np.cumsum(thresholds)])
    return category_probabilities(at, np.broadcast_to(row, (len(at), len(row))))


def where_expected(wanted: Floats, thresholds: Floats) -> Floats:
    """The abilities at which these answers are expected, each to the item whose thresholds are in its row (+inf where
    items have fewer than others): by bisection, since the curve rises."""
    if thresholds.shape[1] == 1:  # in closed form
        p = np.clip(wanted, 1e-12, 1 - 1e-12)
        return np.asarray(thresholds[:, 0] + np.log(p / (1 - p)))
    low = thresholds.min(axis=1) - FAR
    high = np.where(np.isfinite(thresholds), thresholds, -np.inf).max(axis=1) + FAR
    cumulated = np.concatenate([np.zeros((len(wanted), 1)), np.cumsum(thresholds, axis=1)], axis=1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = category_probabilities(middle, cumulated) @ np.arange(cumulated.shape[1]) > wanted
        low, high = np.where(above, low, middle), np.where(above, middle, high)
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
    found = study._strata(place, strata)
    return [
        ItemCurve.about(
            study,
            label=calibration.labels[k],
            thresholds=calibration.thresholds_of(np.array([k]))[1],
            half_width=calibration.ci_width * float(np.nan_to_num(calibration.se[k], nan=0.0, posinf=0.0)),
            strata={name: values[found["item"] == k] for name, values in found.items()},
        )
        for k in place.tolist()
    ]


def category_curves(study: Analysis, items: Sequence[Any]) -> list[CategoryCurves]:
    """The category curves of these items."""
    calibration = study.calibration.own_items
    place = items_with_curves(calibration, items).tolist()
    codes = [calibration.codes[k, : calibration.layout.max_score[k] + 1] for k in place]
    names = [
        study.responses.answer_names(calibration.labels[k], own.tolist()) for k, own in zip(place, codes, strict=True)
    ]
    palette = np.unique(np.concatenate(codes))
    every_name = {name for of_item in names for name in of_item}
    in_legend = len(every_name) == len(palette) and sum(map(len, every_name)) <= IN_A_LEGEND
    return [
        CategoryCurves.about(
            study,
            label=calibration.labels[k],
            thresholds=calibration.thresholds_of(np.array([k]))[1],
            codes=own,
            names=of_item,
            palette=palette,
            in_legend=in_legend,
        )
        for k, own, of_item in zip(place, codes, names, strict=True)
    ]


def items_with_curves(calibration: Calibration, items: Sequence[Any]) -> Ints:
    """Positions of these items; an error where one has no place on the common scale."""
    place = np.array([item_position(calibration, item) for item in items], dtype=np.int64)
    off = place[~(calibration.known & (calibration.status != "unlinked"))[place]]
    if len(off):
        what = ", ".join(f"{listed([calibration.labels[k]])} ({calibration.status[k]})" for k in off[:5].tolist())
        raise OptionError(
            f"no place on the common scale, and so no curve: {what}. Look at the findings of the fit for why."
        )
    return place


def item_title(label: Any) -> str:
    """The title of a picture of one item."""
    name = shown(label, 60)
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


def sheet_of(every: Sequence[Any], title: str, x: str, y: str, *, names: float = 0.0) -> Figure:
    """Displays of many items, small, on one sheet over the same abilities; so many inches are free beside each for
    names. One legend stands for all where they have the same lines."""
    load_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(5, max(1, int(np.ceil(np.sqrt(len(every))))))
    down = -(-len(every) // across)
    wide, high = 1.9 * max(across, 3), 0.9 + 1.55 * down
    figure = Figure(figsize=(wide, high))  # laid out by hand: that of matplotlib takes seconds for so many axes
    FigureCanvasAgg(figure)
    grid = np.ravel(figure.subplots(down, across, squeeze=False))
    named = all_shown([curve.label for curve in every], IN_A_SHEET)
    lows, highs = zip(*(curve.span for curve in every), strict=True)
    for ax, curve, name in zip(grid, every, named, strict=False):
        curve.draw(ax, small=True, span=(min(lows), max(highs)))
        ax.set_title(name, loc="left", fontsize=7.5, **as_is())
    handles: dict[str, Any] = {}
    for ax in sorted(grid[: len(every)], key=lambda ax: -len(ax.lines)):  # the item with all categories gives the order
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    above = 0.55
    if handles and len(handles) <= NAMED:
        above += LEGEND_HEIGHT
        high += LEGEND_HEIGHT
        figure.set_size_inches(wide, high)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 1 - 0.28 / high), "ncols": len(handles)}
        figure.legend(handles.values(), handles.keys(), fontsize=6.5, frameon=False, **place)
    edges = {"left": 0.62 / wide, "right": 1 - (0.1 + names) / wide, "bottom": 0.5 / high, "top": 1 - above / high}
    figure.subplots_adjust(**edges, wspace=0.28 + names, hspace=0.42)
    for ax in grid[len(every) :]:
        ax.set_visible(False)
    figure.suptitle(title, fontsize=10, x=0.1 / wide, y=1 - 0.1 / high, ha="left", va="top", parse_math=False)
    figure.supxlabel(f"{x} ({unit(every[0].scale)})", fontsize=8, y=0.1 / high, va="bottom")
    figure.supylabel(y, fontsize=8, x=0.1 / wide, ha="left")
    return figure
