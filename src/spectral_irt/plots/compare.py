"""Two calibrations against each other, on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.bank.bank import calibration_of
from spectral_irt.bank.linking import Link, link
from spectral_irt.calibration import Z95
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import NAMED, name_points
from spectral_irt.plots.style import BLUE, INK, RED, SKY, SMALL, cloud, dress, finite_range
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

BARS = 60  # items up to which each has an error bar of its own
GROUPS = 25  # neighbors whose median error makes the band


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Agreement(Display):
    """Difficulties of the common items in two calibrations, the second brought to the scale of the first.

    Items within the band around the identity differ by chance alone (95% of them).

    Attributes
    ----------
    link : Link
        How the second was brought to the scale of the first.
    """

    link: Link

    @classmethod
    def of(cls, study: Analysis, other: Any, method: str = "robust") -> Agreement:
        second = getattr(other, "calibration", None)
        found = link(study.calibration, calibration_of(other) if second is None else second, method)
        return cls.about(study, link=found)

    def columns(self) -> Columns:
        """`item, difficulty_a, difficulty_b, difference, se, z, robust_z, drift`, in logits of the first."""
        return self.link.columns()

    def size(self) -> tuple[float, float]:
        return 5.8, 5.8

    def draw(self, ax: Axes) -> None:
        a, b, se, drift = self.link.difficulty_a, self.link.difficulty_b, self.link.se, self.link.drift
        ends = np.array(finite_range(a, b))
        order = np.argsort(a, kind="stable")
        groups = np.array_split(order, max(1, min(GROUPS, len(a) // 4)))
        half = np.array([Z95 * np.median(se[g]) for g in groups])
        at = np.array([a[g].mean() for g in groups])
        at, half = np.concatenate([ends[:1], at, ends[1:]]), np.concatenate([half[:1], half, half[-1:]])
        ax.fill_between(at, at - half, at + half, color=SKY, alpha=0.3, linewidth=0)
        ax.plot(ends, ends, color=INK, linewidth=0.9)
        if len(a) <= BARS:
            ax.vlines(a, b - Z95 * se, b + Z95 * se, color=BLUE, linewidth=0.8, alpha=0.6)
        cloud(ax, a[~drift], b[~drift], color=BLUE)
        ax.plot(a[drift], b[drift], "D", color=RED, markersize=5, mec="white", mew=0.4)
        ax.set_xlim(*ends)
        ax.set_ylim(*finite_range(a, b, *([b - Z95 * se, b + Z95 * se] if len(a) <= BARS else [])))
        title = f"{count(len(a), 'common item')} in two calibrations"
        dress(ax, title, "difficulty, first (logits)", "difficulty, second, on the scale of the first")
        slope = "" if self.link.slope == 1 else f", slope {self.link.slope:.3f}"
        said = f"shift {self.link.shift:.3f} (se {self.link.shift_se:.3f}){slope}, {self.link.method}"
        said += f"\nr = {np.corrcoef(a, b)[0, 1]:.3f}; drifted (diamonds): {int(drift.sum()):,}"
        ax.text(0.02, 0.98, said, transform=ax.transAxes, va="top", fontsize=SMALL, color=INK)
        size = np.abs(self.link.robust_z)
        worst = np.flatnonzero(drift)[np.argsort(-size[drift], kind="stable")][:NAMED]
        name_points(ax, a[worst], b[worst], self.link.item[worst].tolist(), among=(a, b))
