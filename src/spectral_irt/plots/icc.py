"""Item characteristic curves: how the chance of a right answer rises with ability, and what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import LOGITS, Z95, Scale
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError, listed
from spectral_irt.inference.fit.strata import STRATA
from spectral_irt.model import sigmoid
from spectral_irt.plots.asking import item_position, known_abilities
from spectral_irt.plots.display import Display
from spectral_irt.plots.look import BLUE, INK, dress, note, unit
from spectral_irt.plots.names import all_shown, as_is
from spectral_irt.plots.one_item import dress_small, item_title, mark_strata, strata_table
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spectral_irt.analysis import Analysis

AROUND = 2.5  # logits shown on either side of the item, at least
IN_A_SHEET = 24  # letters of a name over a small picture
SHEET = 30  # curves on a sheet


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ItemCurve(Display):
    """The model's curve of one item, and the share of right answers in strata of ability with 95% intervals.

    A stratum stands where the model expects the share that it expects of these very people, given their scores:
    difficulty + logit(expected). Under the model the marks then lie on the curve but for chance, in a test of any
    length; at the people's estimated abilities they would not.

    Attributes
    ----------
    label, difficulty, se
        The item.
    strata : mapping of columns
        `stratum, n, ability, observed, ci_low, ci_high, expected`; see `inference.strata.strata_columns`.
    """

    label: Any
    difficulty: float
    se: float
    strata: Columns
    scale: Scale = LOGITS

    @classmethod
    def of(cls, study: Analysis, item: Any, strata: int = STRATA) -> ItemCurve:
        return curves(study, [item], strata)[0]

    @property
    def place(self) -> Floats:
        """Where the strata stand, in logits."""
        p = np.clip(self.strata["expected"], 1e-12, 1 - 1e-12)
        return self.difficulty + np.log(p / (1 - p))

    def columns(self) -> Columns:
        """`item, stratum, n, ability, observed, ci_low, ci_high, expected, place`.

        `ability` is the mean of the estimates, `place` where the stratum stands in the picture, both as reported.
        """
        return strata_table(self.label, self.strata, self.place, self.scale)

    def draw(self, ax: Axes, *, small: bool = False) -> None:
        table = self.columns()
        place = self.place
        low = min(self.difficulty - AROUND, float(place.min(initial=np.inf)) - 0.4)
        high = max(self.difficulty + AROUND, float(place.max(initial=-np.inf)) + 0.4)
        at = np.linspace(low, high, 161)
        x = self.scale.measure(at)
        band = [sigmoid(at - self.difficulty + sign * Z95 * self.se) for sign in (-1, 1)]
        ax.fill_between(x, band[0], band[1], color=BLUE, alpha=0.25, linewidth=0)
        ax.plot(x, sigmoid(at - self.difficulty), color=BLUE, linewidth=1.6)
        mark_strata(ax, table, small=small)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlim(x[0], x[-1])
        if small:
            dress_small(ax)
            return
        dress(ax, item_title(self.label), f"ability ({unit(self.scale)})", "share of right answers")
        ax.axhline(0.5, color=INK, linewidth=0.5, linestyle=":")
        ax.axvline(float(self.scale.measure(self.difficulty)), color=INK, linewidth=0.5, linestyle=":")
        people = count(int(table["n"].sum()), "person")
        note(ax, f"line: the model; marks: {people} in {count(len(place), 'group')} by ability, with 95% intervals")


def curves(study: Analysis, items: Sequence[Any], strata: int = STRATA) -> list[ItemCurve]:
    """The curves of these items, one pass over the answers for all."""
    calibration = study.calibration
    if strata < 2:
        raise OptionError(f"`strata` is {strata}; it takes two groups of people or more to see a curve.")
    place = np.array([item_position(calibration, item) for item in items], dtype=np.int64)
    off = place[~(calibration.known & (calibration.status != "apart"))[place]]
    if len(off):
        what = ", ".join(f"{listed([calibration.labels[k]])} ({calibration.status[k]})" for k in off[:5].tolist())
        raise OptionError(
            f"no place on the common scale, and so no curve: {what}. Look at the findings of the fit for why."
        )
    known_abilities(study)
    found = study.strata_columns(place, strata)
    return [
        ItemCurve(
            label=calibration.labels[k],
            difficulty=float(calibration.difficulty[k]),
            se=float(np.nan_to_num(calibration.se[k], nan=0.0, posinf=0.0)),
            strata={name: values[found["item"] == k] for name, values in found.items()},
            scale=calibration.scale,
            frame_kind=study.responses.frame_kind,
        )
        for k in place.tolist()
    ]


def curve_sheet(every: Sequence[ItemCurve], title: str) -> Figure:
    """Small curves of many items on one sheet."""
    return sheet_of(every, title, "ability", "share of right answers", every[0].scale if every else LOGITS)


def sheet_of(every: Sequence[Any], title: str, x: str, y: str, scale: Scale, *, names: float = 0.0) -> Figure:
    """Displays of many items, small, on one sheet with common axes; so many inches are free beside each for names."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(5, max(1, int(np.ceil(np.sqrt(len(every))))))
    down = -(-len(every) // across)
    wide, high = 1.9 * max(across, 3), 0.9 + 1.55 * down
    figure = Figure(figsize=(wide, high))  # laid out by hand: that of matplotlib takes seconds for so many axes
    FigureCanvasAgg(figure)
    grid = np.ravel(figure.subplots(down, across, squeeze=False))
    edges = {"left": 0.62 / wide, "right": 1 - (0.1 + names) / wide, "bottom": 0.5 / high, "top": 1 - 0.55 / high}
    figure.subplots_adjust(**edges, wspace=0.28 + names, hspace=0.42)
    named = all_shown([curve.label for curve in every], IN_A_SHEET)
    for ax, curve, name in zip(grid, every, named, strict=False):
        curve.draw(ax, small=True)
        ax.set_title(name, loc="left", fontsize=7.5, **as_is())
    for ax in grid[len(every) :]:
        ax.set_visible(False)
    figure.suptitle(title, fontsize=10, y=1 - 0.1 / high, va="top", parse_math=False)
    figure.supxlabel(f"{x} ({unit(scale)})", fontsize=8, y=0.1 / high, va="bottom")
    figure.supylabel(y, fontsize=8, x=0.1 / wide, ha="left")
    return figure
