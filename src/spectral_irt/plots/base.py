"""What every picture is: a table and its drawing, and files of it; and what it needs of an analysis."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError
from spectral_irt.files import write_each
from spectral_irt.plots.style import INK, TITLE, new_axes, unit
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import TEST, Words, did_you_mean, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis
    from spectral_irt.calibration import Calibration

DPI = 150
KINDS = ("svg", "png", "pdf")
PROGRAM = "spectral-irt"  # written into every picture, so that it is known again as ours


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Display(ABC):
    """What every display offers: `frame()`, `plot()`, `save()`; a notebook shows the picture.

    `scale` is how measures are reported, `frame_kind` the library that the data came in, `words` how what is measured
    is called.
    """

    scale: Scale = LOGITS
    frame_kind: str | None = None
    words: Words = TEST

    @classmethod
    def about(cls, study: Analysis, **fields: Any) -> Self:
        """A display of an analysis, on its scale."""
        return cls(scale=study.calibration.scale, frame_kind=study.responses.frame_kind, words=study._words, **fields)

    @property
    def axis(self) -> str:
        """What an axis of people is called, such as "ability (logits)"."""
        return f"{self.words.trait} ({unit(self.scale)})"

    @abstractmethod
    def columns(self) -> Columns:
        """The columns of `frame`."""

    @abstractmethod
    def draw(self, ax: Axes) -> None:
        """Draw into these axes."""

    def size(self) -> tuple[float, float]:
        """Inches of a figure of its own."""
        return 6.4, 4.6

    def frame(self) -> Table:
        """The numbers of the picture as a dataframe of the library that the data came in."""
        return make_table(self.columns(), self.frame_kind)

    def plot(
        self, ax: Axes | None = None, *, title: str | None = None, figsize: tuple[float, float] | None = None
    ) -> Axes:
        """The picture, in these axes or in a figure of its own (`.figure` of what is returned).

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default a new figure.
        title : str, optional
            In place of the title of the picture; "" is none.
        figsize : (float, float), optional
            Width and height of the new figure in inches; by default what its names need.
        """
        if ax is None:
            ax = new_axes(*(figsize or self.size()))
        elif figsize is not None:
            raise OptionError("`figsize` is of a new figure, and `ax` has one: give either.")
        self.draw(ax)
        if title is not None:
            ax.set_title(title, fontsize=TITLE, color=INK, loc="left", parse_math=False)
        return ax

    def save(self, path: str | Path) -> Path:
        """Write the picture as .svg, .png or .pdf; the same data give the same bytes."""
        target = Path(path)
        kind_of(target)
        figure = cast("Figure", self.plot().figure)
        write_each({target: lambda draft: write_figure(figure, draft, target)})
        return target

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(next(iter(self.columns().values()))):,} rows; frame(), plot(), save(path)>"
        )

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        figure: Any = self.plot().figure
        figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def kind_of(path: Path) -> str:
    """What the ending of a name says, or an error."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise OptionError(f"{str(path)!r} ends in none of .svg, .png and .pdf, which say what a picture is written as.")
    return kind


def write_figure(figure: Figure, draft: Path, target: Path) -> None:
    """Write the figure to `draft` as what the ending of `target` says."""
    import matplotlib

    kind = kind_of(target)
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Creator": PROGRAM, "Date": None},
        "png": {"Software": PROGRAM},
        "pdf": {"Creator": PROGRAM, "Producer": None, "CreationDate": None},
    }
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # everything has its place now, and keeps it in the next file
    with matplotlib.rc_context({"svg.hashsalt": PROGRAM, "svg.fonttype": "path"}):
        figure.savefig(draft, format=kind, dpi=DPI, metadata=metadata[kind])


def item_position(calibration: Calibration, item: Any) -> int:
    """Where this item is; an error that suggests similar names when there is none of this name."""
    place = int(positions([item], calibration.labels)[0])
    if place < 0:
        near = did_you_mean(item, calibration.labels.tolist(), 3) or f" The items are {listed(calibration.labels)}."
        raise OptionError(f"there is no item {listed([item])}.{near}")
    return place


def check_strata(strata: int) -> None:
    if strata < 2:
        raise OptionError(f"`strata` is {strata}; it takes two groups of people or more to see a curve.")


def on_scale(calibration: Calibration) -> Ints:
    """Positions of the items that have a place on the common scale; an error when there is none."""
    items = np.flatnonzero(calibration.known & (calibration.status != "unlinked"))
    if not len(items):
        raise OptionError(
            "no item has a finite difficulty on a common scale, so there is nothing to show. Look at the status of the "
            "items; an estimator with a prior gives every answered item a difficulty."
        )
    return items


def with_errors(calibration: Calibration) -> Ints:
    """Those that also have a finite standard error; an error when there is none."""
    items = on_scale(calibration)
    items = items[np.isfinite(calibration.se[items])]
    if not len(items):
        raise OptionError(
            "no item has a finite standard error, so there are no intervals to show. Fit with standard errors, and use "
            "items that are linked by people who answered several of them."
        )
    return items


def known_abilities(study: Analysis) -> Floats:
    """Finite abilities of the people; an error when there is none."""
    if not study.responses.n_persons:
        raise OptionError("the analysis has no people, so their abilities cannot be shown. Give it responses.")
    ability = study.abilities().ability
    ability = ability[np.isfinite(ability)]
    if not len(ability):
        raise OptionError(
            "nobody has a finite ability, so people cannot be shown: nobody answered an item that has a difficulty, or "
            "every score is extreme and abilities are by maximum likelihood ('ml'); 'wle' gives finite ones."
        )
    return ability
