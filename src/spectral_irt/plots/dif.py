"""Differential functioning: contrasts between two groups with their intervals and ETS classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import Z95, t_quantile
from spectral_irt.errors import OptionError
from spectral_irt.inference.groups.dif import DELTA, LARGE, SMALL, Differential
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import NAMED, interval_rows, name_points, shown
from spectral_irt.plots.style import BLUE, GRAY, INK, PALE, RED, ROWS, cloud, dress, note, room_for, rows_height
from spectral_irt.plots.style import SMALL as SMALL_PRINT
from spectral_irt.tables import Columns
from spectral_irt.text import TEST, Words, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {"A": (GRAY, "o"), "B": (BLUE, "s"), "C": (RED, "D")}
MEANING = {"A": "A, negligible", "B": "B, moderate", "C": "C, large"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DifferentialPlot(Display):
    """How much harder each item is for one group than for the reference group, at the same ability.

    Up to 40 items by size of the contrast, with intervals; of more, contrast against standard error.
    """

    table: Columns
    group: str
    reference: str

    @classmethod
    def of(cls, found: Differential, group: Any = None, words: Words = TEST) -> DifferentialPlot:
        rows = found.contrasts
        names = list(dict.fromkeys(rows["group"].tolist()))
        chosen = names[0] if group is None else str(group)
        if chosen not in names:
            raise OptionError(
                f"there is no group {group!r}; those compared with {found.reference!r} are {listed(names)}."
            )
        mine = np.flatnonzero((rows["group"] == chosen) & np.isfinite(rows["contrast"]) & np.isfinite(rows["se"]))
        if not len(mine):
            raise OptionError(f"no item has a contrast with a finite standard error in group {chosen!r}.")
        mine = mine[np.argsort(-np.abs(rows["contrast"][mine]), kind="stable")]
        contrast, se = rows["contrast"][mine], rows["se"][mine]
        df = rows["df"][mine] if "df" in rows else np.full(len(mine), np.inf)
        half = se * np.array([t_quantile(each) for each in df])
        ends = {"ci_low": contrast - half, "ci_high": contrast + half}
        table = {name: rows[name][mine] for name in ("item", "contrast", "se")} | ends
        table |= {name: rows[name][mine] for name in ("p_bh", "class", "flagged")}
        kind = found.groups.everyone.frame_kind
        return cls(table=table, group=chosen, reference=found.reference, frame_kind=kind, words=words)

    def columns(self) -> Columns:
        """`item, contrast, se, ci_low, ci_high, p_bh, class, flagged`, in logits; the largest contrast first."""
        return self.table

    def size(self) -> tuple[float, float]:
        m = len(self.table["item"])
        return 6.4, rows_height(m) if m <= ROWS else 5.6

    def draw(self, ax: Axes) -> None:
        table, m = self.table, len(self.table["item"])
        contrast, classes = table["contrast"], table["class"]
        who = (shown(self.group, 30), shown(self.reference, 30))
        title = f"Harder for {who[0]} than for {who[1]} of the same {self.words.trait}?"
        text = f"contrast (logits): right of 0, harder for {who[0]}"
        for limit in (SMALL / DELTA, LARGE / DELTA):
            for sign in (-1, 1):
                ax.axvline(sign * limit, color=GRAY, linewidth=0.7, linestyle=":" if limit < LARGE / DELTA else "--")
        ax.axvspan(-SMALL / DELTA, SMALL / DELTA, color=PALE, alpha=0.5, linewidth=0, zorder=0)
        ax.axvline(0, color=INK, linewidth=0.8)
        few = m <= min(ROWS, room_for(ax))
        kinds = [(classes == name, color, mark) for name, (color, mark) in LOOKS.items()]
        for name, (chosen, color, mark) in zip(LOOKS, kinds, strict=True):
            label = f"{MEANING[name]} ({int(chosen.sum()):,})"
            if few:
                ax.plot([], [], mark, color=color, markersize=5, label=label)
            elif name == "A":
                cloud(ax, contrast[chosen], table["se"][chosen], color=GRAY, label=label)
            else:
                ax.plot(contrast[chosen], table["se"][chosen], mark, color=color, mec="white", mew=0.4, label=label)
        if few:
            dress(ax, title, text, "")
            names, marked = table["item"].tolist(), table["flagged"].tolist()
            interval_rows(ax, names, contrast, table["ci_low"], table["ci_high"], kinds, marked=marked)
        else:
            dress(ax, title, text, "standard error of the contrast (logits)")
            reach = float(np.abs(contrast).max()) * 1.08
            ax.set_xlim(-reach, reach)
            top = float(table["se"].max()) * 1.1
            ax.set_ylim(top, max(0.0, float(table["se"].min()) - 0.15 * top))
            for sign in (-1, 1):
                ax.plot([0, sign * Z95 * top], [0, top], color=INK, linewidth=0.7)
            worst = np.lexsort((-np.abs(contrast), ~table["flagged"].astype(bool)))[:NAMED]
            names, se = table["item"][worst].tolist(), table["se"]
            name_points(ax, contrast[worst], se[worst], names, among=(contrast, se))
        ax.legend(
            loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=SMALL_PRINT, frameon=False, title="ETS class"
        )  # beside the axes, where no name stands
        bold = "bold: flagged after adjustment" if table["flagged"].any() else ""
        note(ax, bold if few else "below the thin lines, within chance (95%)")
