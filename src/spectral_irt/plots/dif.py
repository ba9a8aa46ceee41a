"""Differential functioning: contrasts between two groups with their intervals and ETS classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import Z95, t_quantile
from spectral_irt.errors import OptionError
from spectral_irt.inference.groups.dif import DELTA, LARGE, SMALL, Differential
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import NAMED, interval_rows, label_text, name_points
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
    def of(cls, differential: Differential, group: Any = None, words: Words = TEST) -> DifferentialPlot:
        contrasts = differential.contrasts
        names = list(dict.fromkeys(contrasts["group"].tolist()))
        focal = names[0]
        if group is not None:
            focal = str(group)
        if focal not in names:
            raise OptionError(
                f"there is no group {group!r}; those compared with {differential.reference!r} are {listed(names)}."
            )
        has_interval = np.isfinite(contrasts["contrast"]) & np.isfinite(contrasts["se"])
        rows = np.flatnonzero((contrasts["group"] == focal) & has_interval)
        if not len(rows):
            raise OptionError(f"no item has a contrast with a finite standard error in group {focal!r}.")
        rows = rows[np.argsort(-np.abs(contrasts["contrast"][rows]), kind="stable")]
        of_group = {name: values[rows] for name, values in contrasts.items()}
        df = of_group.get("df", np.full(len(rows), np.inf))
        half = of_group["se"] * np.array([t_quantile(each) for each in df])
        table = {name: of_group[name] for name in ("item", "contrast", "se")}
        table["ci_low"] = of_group["contrast"] - half
        table["ci_high"] = of_group["contrast"] + half
        table |= {name: of_group[name] for name in ("p_bh", "class", "flagged")}
        kind = differential.groups.everyone.frame_kind
        return cls(table=table, group=focal, reference=differential.reference, frame_kind=kind, words=words)

    def columns(self) -> Columns:
        """`item, contrast, se, ci_low, ci_high, p_bh, class, flagged`, in logits; the largest contrast first."""
        return self.table

    def size(self) -> tuple[float, float]:
        n_items = len(self.table["item"])
        if n_items > ROWS:
            return 6.4, 5.6
        return 6.4, rows_height(n_items)

    def draw(self, ax: Axes) -> None:
        focal = label_text(self.group, 30)
        title = f"Harder for {focal} than for {label_text(self.reference, 30)} of the same {self.words.trait}?"
        x = f"contrast (logits): right of 0, harder for {focal}"
        for limit, line in ((SMALL / DELTA, ":"), (LARGE / DELTA, "--")):
            for sign in (-1, 1):
                ax.axvline(sign * limit, color=GRAY, linewidth=0.7, linestyle=line)
        ax.axvspan(-SMALL / DELTA, SMALL / DELTA, color=PALE, alpha=0.5, linewidth=0, zorder=0)
        ax.axvline(0, color=INK, linewidth=0.8)
        if len(self.table["item"]) <= min(ROWS, room_for(ax)):
            dress(ax, title, x, "")
            remark = self._draw_rows(ax)
        else:
            dress(ax, title, x, "standard error of the contrast (logits)")
            remark = self._draw_against_error(ax)
        ax.legend(
            loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=SMALL_PRINT, frameon=False, title="ETS class"
        )  # beside the axes, where no name stands
        note(ax, remark)

    def _draw_rows(self, ax: Axes) -> str:
        """A row with its interval for each item; a remark on the names."""
        table = self.table
        classes = table["class"]
        kinds = []
        for name, (color, mark) in LOOKS.items():
            members = classes == name
            kinds.append((members, color, mark))
            ax.plot([], [], mark, color=color, markersize=5, label=f"{MEANING[name]} ({int(members.sum()):,})")
        flagged = table["flagged"].tolist()
        interval_rows(
            ax, table["item"].tolist(), table["contrast"], table["ci_low"], table["ci_high"], kinds, marked=flagged
        )
        if any(flagged):
            return "bold: flagged after adjustment"
        return ""

    def _draw_against_error(self, ax: Axes) -> str:
        """Contrasts of many items against their standard errors, the largest by name; a remark on the lines."""
        contrast = self.table["contrast"]
        se = self.table["se"]
        for name, (color, mark) in LOOKS.items():
            members = self.table["class"] == name
            label = f"{MEANING[name]} ({int(members.sum()):,})"
            if name == "A":
                cloud(ax, contrast[members], se[members], color=GRAY, label=label)
            else:
                ax.plot(contrast[members], se[members], mark, color=color, mec="white", mew=0.4, label=label)
        reach = float(np.abs(contrast).max()) * 1.08
        ax.set_xlim(-reach, reach)
        top = float(se.max()) * 1.1
        ax.set_ylim(top, max(0.0, float(se.min()) - 0.15 * top))
        for sign in (-1, 1):
            ax.plot([0, sign * Z95 * top], [0, top], color=INK, linewidth=0.7)
        worst = np.lexsort((-np.abs(contrast), ~self.table["flagged"].astype(bool)))[:NAMED]
        names = self.table["item"][worst].tolist()
        name_points(ax, contrast[worst], se[worst], names, among=(contrast, se))
        return "below the thin lines, within chance (95%)"
