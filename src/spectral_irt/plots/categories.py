"""Category probability curves: which answer people of each ability are likely to give to an item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import OptionError, listed
from spectral_irt.model import category_probabilities
from spectral_irt.plots.asking import item_position
from spectral_irt.plots.display import Display
from spectral_irt.plots.look import INK, dress, note, root_of, unit
from spectral_irt.plots.names import apart
from spectral_irt.plots.one_item import dress_small, item_title
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
    from spectral_irt.calibration import Calibration

AROUND = 2.5  # logits shown beyond the outermost thresholds
POINTS = 201  # of a curve
NAMED = 12  # curves that get a name; of more, so many at equal distances
SIZE = 9.0  # points: of these names
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)))  # so that neighbors differ without color too


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CategoryCurves(Display):
    """P(X = k) ~ exp(k theta - sum_{v <= k} beta_v) of every category of one item.

    Neighboring curves cross at the thresholds. Where these are out of order, the category between them is nowhere the
    most likely answer.

    Attributes
    ----------
    label
        The item.
    thresholds : float array
        In logits.
    codes : array
        What stood in the data for each category.
    """

    label: Any
    thresholds: Floats
    codes: Floats
    scale: Scale = LOGITS

    @classmethod
    def of(cls, study: OrderedAnalysis, item: Any) -> CategoryCurves:
        return category_curves(study, [item])[0]

    @property
    def at(self) -> Floats:
        """Abilities at which the curves are drawn, in logits."""
        return np.linspace(self.thresholds.min() - AROUND, self.thresholds.max() + AROUND, POINTS)

    @property
    def modal(self) -> NDArray[np.bool_]:
        """Whether each category is the most likely one somewhere."""
        total = np.concatenate([[0.0], np.cumsum(self.thresholds)])
        return np.array([_on_the_hull(total, k) for k in range(len(total))])

    def columns(self) -> Columns:
        """`item, category, code, ability, probability`: a row for each category and point of its curve."""
        at, size = self.at, len(self.thresholds) + 1
        label = np.empty(size * len(at), dtype=object)
        label[:] = [self.label] * len(label)
        return {
            "item": label,
            "category": np.repeat(np.arange(size), len(at)),
            "code": np.repeat(self.codes, len(at)),
            "ability": np.tile(self.scale.measure(at), size),
            "probability": probabilities(self.thresholds, at).T.ravel(),
        }

    def draw(self, ax: Axes, *, small: bool = False) -> None:
        from matplotlib import colormaps

        x, p = self.scale.measure(self.at), probabilities(self.thresholds, self.at)
        size = p.shape[1]
        colors = colormaps["viridis"](np.linspace(0, 0.75, size))  # from low to high; yellow is too pale on white
        for k in range(size):
            ax.plot(x, p[:, k], color=colors[k], linestyle=LINES[k % len(LINES)], linewidth=1.0 if small else 1.8)
        ax.set_ylim(-0.03, 1.03)
        ax.set_xlim(x[0], x[-1])
        if small:
            dress_small(ax)
            return
        dress(ax, item_title(self.label), f"ability ({unit(self.scale)})", "probability of the answer", grid="y")
        mark_thresholds(ax, self.scale.measure(self.thresholds))
        chosen = np.unique(np.linspace(0, size - 1, min(size, NAMED)).round().astype(int))
        top = np.clip(p[:, chosen].argmax(axis=0), POINTS // 10, POINTS - 1 - POINTS // 10)  # clear of the frame
        names = [f"{code:g}" for code in self.codes[chosen].tolist()]
        room = 0.65 * SIZE * max(map(len, names)) + 3
        gap = room / (ax.get_window_extent().width / root_of(ax).dpi * 72) * (x[-1] - x[0])
        places = apart(x[top], gap, x[0] + gap, x[-1] - gap)
        for k, name, place, peak in zip(chosen.tolist(), names, places.tolist(), top.tolist(), strict=True):
            style: dict[str, Any] = {"fontsize": SIZE, "fontweight": "bold", "color": colors[k], "ha": "center"}
            above = (0, 5) if 0 < k < size - 1 else (8 if k == 0 else -8, 5)
            ax.annotate(name, (place, p[peak, k]), above, textcoords="offset points", **style)
        hidden = self.codes[~self.modal]
        said = f"; nowhere the most likely answer: {', '.join(f'{code:g}' for code in hidden)}" if len(hidden) else ""
        note(ax, f"numbers: the answers; dotted: thresholds, where neighbors are equally likely{said}")


def _on_the_hull(total: Floats, k: int) -> bool:
    """k theta - total_k is above all others for some theta: total lies below every chord over k."""
    before = [(total[k] - total[j]) / (k - j) for j in range(k)]
    after = [(total[j] - total[k]) / (j - k) for j in range(k + 1, len(total))]
    return max(before, default=-np.inf) < min(after, default=np.inf)


def mark_thresholds(ax: Axes, places: Floats) -> None:
    for place in places.tolist():
        ax.axvline(place, color=INK, linewidth=0.7, linestyle=":", zorder=0)


def probabilities(thresholds: Floats, at: Floats) -> Floats:
    """P(X = k) of one item: a row for each ability."""
    row = np.concatenate([[0.0], np.cumsum(thresholds)])
    return category_probabilities(at, np.broadcast_to(row, (len(at), len(row))))


def items_with_curves(calibration: Calibration, items: Sequence[Any]) -> Ints:
    """Positions of these items; an error where one has no thresholds on the common scale."""
    place = np.array([item_position(calibration, item) for item in items], dtype=np.int64)
    off = place[~(calibration.known & (calibration.status != "apart"))[place]]
    if len(off):
        what = ", ".join(f"{listed([calibration.labels[k]])} ({calibration.status[k]})" for k in off[:5].tolist())
        raise OptionError(
            f"no place on the common scale, and so no curve: {what}. Look at the findings of the fit for why."
        )
    return place


def thresholds_of(calibration: Calibration, k: int) -> Floats:
    return calibration.thresholds_of(np.array([k]))[1]


def category_curves(study: OrderedAnalysis, items: Sequence[Any]) -> list[CategoryCurves]:
    """The curves of these items."""
    calibration = study.calibration
    return [
        CategoryCurves(
            label=calibration.labels[k],
            thresholds=thresholds_of(calibration, k),
            codes=calibration.codes[k, : calibration.layout.max_score[k] + 1],
            scale=calibration.scale,
            frame_kind=study.responses.frame_kind,
        )
        for k in items_with_curves(calibration, items).tolist()
    ]
