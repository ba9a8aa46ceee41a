"""What the test tells about people of every ability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.calibration import form_information
from spectral_irt.data.block import Floats
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.plots.base import Display, on_scale
from spectral_irt.plots.style import BLUE, PALE, RED, ability_edges, dress, note, unit
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

STEPS = 201
BEYOND = 1.5  # logits shown beyond the items


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TestInformation(Display):
    """I(theta) = the variance of the total score, and 1 / sqrt(I), the standard error of an ability there.

    Attributes
    ----------
    layout, thresholds : Thresholds, float array
        Of the items, in logits; of items that are right or wrong I(theta) = sum of p (1 - p).
    ability : float array
        Of people, where there are any: shown in gray, for where information is needed.
    """

    __test__ = False  # or pytest takes it for a test

    layout: Thresholds
    thresholds: Floats
    ability: Floats

    @classmethod
    def of(cls, study: Analysis) -> TestInformation:
        calibration = study.calibration
        found = study.abilities().ability if study.responses.n_persons else np.zeros(0)
        layout, thresholds = calibration.thresholds_of(on_scale(calibration))
        return cls.about(study, layout=layout, thresholds=thresholds, ability=found[np.isfinite(found)])

    def columns(self) -> Columns:
        """`ability, information, se` as they are reported: on another scale, information is per its unit squared."""
        ends = np.array([self.thresholds.min() - BEYOND, self.thresholds.max() + BEYOND])
        if len(self.ability):
            ends = np.concatenate([ends, np.quantile(self.ability, [0.001, 0.999])])
        at = np.linspace(ends.min(), ends.max(), STEPS)
        found = form_information(self.thresholds, at, self.layout)
        return {
            "ability": self.scale.measure(at),
            "information": found / self.scale.unit**2,
            "se": self.scale.width(1 / np.sqrt(found)),
        }

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        at, found, se = table["ability"], table["information"], table["se"]
        dress(ax, "Test information and standard error", f"ability ({unit(self.scale)})", "information (solid)")
        if len(self.ability):
            shown = np.clip(self.scale.measure(self.ability), at[0], at[-1])
            heights, edges = np.histogram(shown, ability_edges(shown, at[0], at[-1]))
            ax.stairs(heights / max(heights.max(), 1) * found.max() * 0.25, edges, fill=True, color=PALE)
        ax.plot(at, found, color=BLUE, linewidth=2)
        ax.set_xlim(at[0], at[-1])
        ax.set_ylim(0, found.max() * 1.08)
        ax.yaxis.label.set_color(BLUE)
        other = ax.twinx()
        other.plot(at, se, "--", color=RED, linewidth=1.6)
        other.set_ylim(0, min(se.max(), 4 * se.min()) * 1.08)  # far off the test it grows without limit
        other.set_ylabel("standard error of ability (dashed)", color=RED)
        other.spines["top"].set_visible(False)
        people = f"; gray: {count(len(self.ability), 'person')}" if len(self.ability) else ""
        note(ax, f"to somebody who answers all {count(self.layout.n_items, 'item')}{people}")
