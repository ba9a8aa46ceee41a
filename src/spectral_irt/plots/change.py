"""Change over time: mean measures by wave and arm; and each person's first measure against the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.calibration import Z95
from spectral_irt.inference.groups.change import Change
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import label_text
from spectral_irt.plots.style import BLUE, GRAY, GREEN, INK, PALE, RED, SKY, SMALL, dress, finite_range, note
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

LOOKS = ((BLUE, "o"), (RED, "D"), (GREEN, "s"), (SKY, "^"), (GRAY, "v"), (INK, "P"))
GOLDEN = (5**0.5 - 1) / 2
JITTER = 0.035  # of the range, across
APART = 0.06  # of a wave, by which arms stand beside each other


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChangePlot(Display):
    """Mean measures by wave and arm, with 95% intervals."""

    change: Change

    @classmethod
    def of(cls, study: Analysis) -> ChangePlot:
        return cls.about(study, change=study.change)

    def columns(self) -> Columns:
        """`arm, wave, n, mean, se`: of the persons with responses in the wave, on the scale of report."""
        occasions = self.change.occasions
        stacked = self.change.stacked
        measure = self.scale.measure(self.change.measures.ability)
        rows = []
        for arm in range(len(occasions.arms)):
            for wave in range(len(occasions.waves)):
                inside = (occasions.arm_of[stacked.person] == arm) & (stacked.level == wave) & np.isfinite(measure)
                values = measure[inside]
                n = len(values)
                se = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
                rows.append((occasions.arms[arm], occasions.waves[wave], n, float(values.mean()) if n else np.nan, se))
        names = ("arm", "wave", "n", "mean", "se")
        kinds = (object, object, np.int64, float, float)
        columns = zip(names, zip(*rows, strict=True), kinds, strict=True)
        return {name: np.array(values, dtype=kind) for name, values, kind in columns}

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        occasions = self.change.occasions
        n_arms = len(occasions.arms)
        for k, arm in enumerate(occasions.arms):
            rows = table["arm"] == arm
            place = np.arange(len(occasions.waves)) + APART * (k - (n_arms - 1) / 2)
            color, mark = LOOKS[k % len(LOOKS)]
            ax.errorbar(
                place, table["mean"][rows], Z95 * table["se"][rows], color=color, marker=mark, markersize=5,
                linewidth=1.2, capsize=3, label=label_text(arm, 30),
            )  # fmt: skip
        dress(ax, f"Mean {self.words.trait} by wave", label_text(occasions.wave, 40), self.axis, grid="y")
        ax.set_xticks(range(len(occasions.waves)), [label_text(wave, 16) for wave in occasions.waves.tolist()])
        if n_arms > 1:
            ax.legend(fontsize=SMALL, frameon=False, title=label_text(occasions.arm, 30))
        note(ax, "95% intervals of the means; persons who miss a wave are not in its mean")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PersonChangePlot(Display):
    """Each person's first measure against the last; within the band a change may be error of measurement alone."""

    change: Change

    @classmethod
    def of(cls, study: Analysis) -> PersonChangePlot:
        return cls.about(study, change=study.change)

    def columns(self) -> Columns:
        """`person, arm, first, last, change_se, reliable`, on the scale of report."""
        table = self.change.person_columns
        waves = [f"measure_{wave}" for wave in self.change.occasions.waves.tolist()]
        measures = np.column_stack([table[name] for name in waves])
        is_measured = np.isfinite(measures)
        several = np.flatnonzero(np.isfinite(table["change"]))
        last = len(waves) - 1 - is_measured[:, ::-1].argmax(axis=1)
        return {
            "person": table["person"][several],
            "arm": np.array(self.change.occasions.arms, dtype=object)[self.change.occasions.arm_of[several]],
            "first": self.scale.measure(measures[several, is_measured.argmax(axis=1)[several]]),
            "last": self.scale.measure(measures[several, last[several]]),
            "change_se": self.scale.width(table["change_se"][several]),
            "reliable": table["reliable"][several],
        }

    def size(self) -> tuple[float, float]:
        return 6.4, 5.2

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        low, high = finite_range(table["first"], table["last"])
        line = np.array([low, high])
        half = Z95 * float(np.median(table["change_se"])) if len(table["person"]) else 0.0
        ax.fill_between(line, line - half, line + half, color=PALE, alpha=0.6, linewidth=0, zorder=0)
        ax.plot(line, line, color=INK, linewidth=0.8)
        # Measures on a short test are few: persons who share theirs are set apart a little, the same way each time.
        number = np.arange(len(table["person"]))
        apart_x = JITTER * (high - low) * ((number * GOLDEN) % 1 - 0.5)
        apart_y = JITTER * (high - low) * ((number * GOLDEN**2 * 10) % 1 - 0.5)
        for k, arm in enumerate(self.change.occasions.arms):
            color, mark = LOOKS[k % len(LOOKS)]
            for reliable in (False, True):
                inside = (table["arm"] == arm) & ((table["reliable"] != "") == reliable)
                face = color if reliable else "none"
                label = label_text(arm, 30) if not reliable and len(self.change.occasions.arms) > 1 else None
                x = (table["first"] + apart_x)[inside]
                y = (table["last"] + apart_y)[inside]
                ax.plot(x, y, mark, color=color, mfc=face, markersize=3.5, alpha=0.6, label=label)
        ax.set(xlim=(low, high), ylim=(low, high))
        dress(ax, "Persons: first wave against last", f"first {self.axis}", f"last {self.axis}")
        if len(self.change.occasions.arms) > 1:
            ax.legend(fontsize=SMALL, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        note(ax, "band: changes that a person of median error shows by error alone (95%); filled: reliable change")
