"""Persons before and after a change: the abilities of two fits, one against the other, on one scale.

`study.compare(other).plot()` makes it. Persons off the diagonal are those whom the change moved; with cut scores, those
in the shaded corners change class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.calibration import Scale
from spectral_irt.errors import OptionError
from spectral_irt.plots.base import Display
from spectral_irt.plots.style import BLUE, INK, RED, dress, note
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST, LARGEST = 8.0, 120.0  # areas of marks in square points: of one person among many, of the most in one place


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BeforeAfter(Display):
    """Abilities of the earlier fit across, of the later one up; `cuts` are points of the scale of report."""

    persons: Columns
    cuts: tuple[float, ...] = ()

    @classmethod
    def of(cls, persons: Columns, cuts: Sequence[float], scale: Scale, frame_kind: str | None) -> BeforeAfter:
        in_both = np.isfinite(persons["difference"])
        if in_both.sum() < 2:
            raise OptionError("a picture of persons before and after takes two whom both fits have.")
        chosen = {name: values[in_both] for name, values in persons.items()}
        return cls(persons=chosen, cuts=tuple(sorted(cuts)), scale=scale, frame_kind=frame_kind)

    def columns(self) -> Columns:
        """`person, ability_before, ability_after, difference`, on the scale of report; with cuts `class_before,
        class_after`, from 0 for the lowest."""
        before = self.scale.measure(self.persons["ability_before"])
        after = self.scale.measure(self.persons["ability_after"])
        columns: Columns = {
            "person": self.persons["person"],
            "ability_before": before,
            "ability_after": after,
            "difference": after - before,
        }
        if self.cuts:
            columns["class_before"] = np.searchsorted(self.cuts, before, side="right")
            columns["class_after"] = np.searchsorted(self.cuts, after, side="right")
        return columns

    def size(self) -> tuple[float, float]:
        return 5.6, 5.6

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        before = table["ability_before"]
        after = table["ability_after"]
        changed = np.zeros(len(before), dtype=bool)
        if self.cuts:
            changed = table["class_before"] != table["class_after"]
        # Persons with the same scores lie on each other: a mark is as large as there are persons.
        points, first, counts = np.unique(
            np.column_stack([before, after]).round(6), axis=0, return_index=True, return_counts=True
        )
        areas = SMALLEST + (LARGEST - SMALLEST) * counts / counts.max()
        colors = np.where(changed[first], RED, BLUE)
        ax.scatter(points[:, 0], points[:, 1], areas, color=colors, alpha=0.7, linewidths=0)
        both = np.concatenate([before, after])
        margin = 0.04 * max(float(np.ptp(both)), 1e-9)
        limits = (both.min() - margin, both.max() + margin)
        ax.plot(limits, limits, color=INK, linewidth=0.8, zorder=0)
        for cut in self.cuts:
            ax.axvline(cut, color=INK, linewidth=0.6, linestyle=(0, (4, 3)))
            ax.axhline(cut, color=INK, linewidth=0.6, linestyle=(0, (4, 3)))
        ax.set_xlim(limits)
        ax.set_ylim(limits)
        dress(ax, "Persons before and after", f"before: {self.axis}", f"after: {self.axis}")
        correlation = np.corrcoef(before, after)[0, 1]
        moved = f"{count(int(changed.sum()), 'person')} changed class (orange)" if self.cuts else ""
        note(ax, f"{count(len(before), 'person')}, correlation {correlation:.3f}", moved, "area of a mark: persons")
