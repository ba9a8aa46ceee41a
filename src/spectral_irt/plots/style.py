"""How pictures look: colors, sizes, axes. matplotlib is imported when something is drawn, never its pyplot."""

from __future__ import annotations

import os
import sys
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.calibration import Scale
    from spectral_irt.data.block import Floats

# Okabe and Ito's colors, which the color-blind tell apart; dark enough, and always with a mark or line style of their
# own, so that they can be told apart in gray too.
BLUE, RED, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#56B4E9"
INK, GRAY, PALE = "0.15", "0.5", "0.87"
TITLE = 10.0  # points
SMALL = 8.0  # points: the size of names and notes
LINE = 1.3 * SMALL  # height of a line of names
ROWS = 40  # names one below the other that still make a picture of one page
NOTE = 96  # letters of a line of remarks
BARS = (15, 36)  # of people by ability: fewest where they are equal, most
MANY = 200  # marks beyond which each is small and pale
POINTS = 1_500  # marks beyond which they are shown by density


def load_matplotlib() -> None:
    """Import matplotlib, whatever MPLBACKEND says: a picture here needs no window, and matplotlib cannot be imported
    where the environment names a backend that it does not know."""
    if "matplotlib" in sys.modules:
        return
    backend = os.environ.pop("MPLBACKEND", "")
    try:
        import matplotlib
    finally:
        if backend:
            os.environ["MPLBACKEND"] = backend
    if backend:
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = backend  # as matplotlib does it


def new_axes(width: float = 6.4, height: float = 4.6) -> Axes:
    """Axes of a figure of their own, in inches; no window and no global state are needed."""
    load_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def rows_height(rows: int) -> float:
    """Inches that so many names need, one below the other, with the axis and a title."""
    return 1.3 + max(rows, 4) * 1.15 * LINE / 72


def root_of(ax: Axes) -> Any:
    """The whole figure that the axes are in, perhaps within a subfigure."""
    figure: Any = ax.figure
    return figure.figure


def room_for(ax: Axes) -> int:
    """How many names fit one below the other."""
    return int(ax.get_window_extent().height / root_of(ax).dpi * 72 / LINE)


def dress(ax: Axes, title: str, x: str, y: str, *, grid: str = "both") -> None:
    """Titles and a quiet grid."""
    ax.set_title(title, fontsize=TITLE, color=INK, loc="left", parse_math=False)
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    if grid:
        ax.grid(True, axis=grid, color=PALE, linewidth=0.7)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def note(ax: Axes, *remarks: str) -> None:
    """Remarks below the picture, at its right; "" is none."""
    if any(remarks):
        text = textwrap.fill("; ".join(filter(None, remarks)), NOTE)
        style: dict[str, Any] = {"fontsize": SMALL - 0.5, "color": GRAY, "ha": "right", "va": "top"}
        ax.annotate(
            text, (1, 0), (0, -34), xycoords="axes fraction", textcoords="offset points", parse_math=False, **style
        )


def unit(scale: Scale) -> str:
    """What the numbers along an axis are."""
    return "logits" if scale.is_logits else "scale of report"


def whole_ticks(ax: Axes, axis: str) -> None:
    """Ticks at whole numbers, with commas."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ticks = {"x": ax.xaxis, "y": ax.yaxis}[axis]
    ticks.set_major_locator(MaxNLocator(integer=True, nbins=7))
    ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def cloud(ax: Axes, x: Floats, y: Floats, *, color: str = BLUE, label: str | None = None, fixed: bool = False) -> None:
    """Points; where they are too many to be told apart, their density in hexagons. `fixed` limits stay as they are."""
    if len(x) <= POINTS:
        look: dict[str, Any] = {"markersize": 4.5, "alpha": 0.75}
        if len(x) > MANY:
            look = {"markersize": 3, "alpha": 0.45}
        ax.plot(x, y, "o", color=color, mew=0, label=label, **look)
        return
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("density", [PALE, color, INK])
    if color == BLUE:
        shades = LinearSegmentedColormap.from_list("density", ["#D6E6F2", BLUE, "#06263C"])
    scales: dict[str, Any] = {"xscale": ax.get_xscale(), "yscale": ax.get_yscale()}
    xlim = ax.get_xlim()
    ylim = ax.get_ylim()
    ax.hexbin(x, y, gridsize=55, bins="log", mincnt=1, cmap=shades, linewidths=0.1, **scales)
    ax.plot([], [], "h", color=color, markersize=7, label=label)
    if fixed:
        ax.set(xlim=xlim, ylim=ylim)


def finite_range(*values: Floats, margin: float = 0.06) -> tuple[float, float]:
    """From the least to the largest finite number, and a little more."""
    numbers = np.concatenate([np.ravel(array) for array in values])
    numbers = numbers[np.isfinite(numbers)]
    low = float(numbers.min())
    high = float(numbers.max())
    width = max(high - low, 0.5)
    return low - margin * width, high + margin * width


def ability_edges(ability: Floats, low: float, high: float) -> Floats:
    """Limits of the bars from `low` to `high`: equal ones (two times the cube root of the number of people, Rice's
    rule), or a bar for each ability where there are fewer of these: on a short test everybody with the same score has
    the same ability, and bars of equal width would hold one score here and two there.

    >>> ability_edges(np.array([-1.0, 0.0, 0.0, 2.0]), -3.0, 3.0).tolist()
    [-3.0, -0.5, 1.0, 3.0]
    """
    different = np.unique(np.clip(ability, low, high).round(4))
    bars = int(np.clip(np.ceil(2 * len(ability) ** (1 / 3)), *BARS))
    if len(different) > bars:
        return np.linspace(low, high, bars + 1)
    between = (different[1:] + different[:-1]) / 2
    return np.concatenate([[low], between, [high]])
