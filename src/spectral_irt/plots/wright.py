"""The Wright map: people and items on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data.block import Floats
from spectral_irt.data.responses import Labels
from spectral_irt.errors import listed
from spectral_irt.plots.base import Display, known_abilities, on_scale
from spectral_irt.plots.labels import all_shown, apart, as_is
from spectral_irt.plots.style import (
    BLUE,
    GRAY,
    INK,
    RED,
    ROWS,
    SMALL,
    ability_edges,
    dress,
    finite_range,
    room_for,
    unit,
)
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

ENDS = 5  # hardest and easiest items that are named where not all can be
OUTER = 0.0005  # share of people beyond each end of the scale that is drawn, unless items are there


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WrightMap(Display):
    """People to the left, items to the right, able people and hard items on top.

    Somebody beside an item has an even chance of answering it right.

    Attributes
    ----------
    ability : float array
        Finite abilities of people, in logits.
    labels, difficulty : arrays
        Items on the common scale.
    left_out : int
        People without a finite ability.
    what : str
        What stands to the right: items, or thresholds of items.
    """

    ability: Floats
    labels: Labels
    difficulty: Floats
    left_out: int = 0
    what: str = "item"

    @classmethod
    def of(cls, study: Analysis) -> WrightMap:
        calibration, ability = study.calibration, known_abilities(study)
        layout = calibration.layout
        place = layout.of_items(on_scale(calibration))
        labels = calibration.labels[layout.item[place]]
        if not layout.binary:  # "q7 (2)" is the second threshold of item q7
            labels = labels.astype(object)
            labels[:] = [f"{label} ({layout.level[k]})" for label, k in zip(labels, place.tolist(), strict=True)]
        return cls.about(
            study,
            ability=ability,
            labels=labels,
            difficulty=calibration.thresholds[place],
            left_out=study.responses.n_persons - len(ability),
            what="item" if layout.binary else "threshold",
        )

    def edges(self) -> Floats:
        """Limits of the bins, in logits: all items and all but a few people are within."""
        low, high = np.quantile(self.ability, [OUTER, 1 - OUTER])
        ends = np.array([min(low, self.difficulty.min()), max(high, self.difficulty.max())])
        return ability_edges(self.ability, *finite_range(ends, margin=0.02))

    def columns(self) -> Columns:
        """`low, high` of each stretch of the scale, from the top down; `persons` and `items` in it, and which.

        Where thresholds stand for items, the column is called so.
        """
        edges = self.edges()
        bins = len(edges) - 1
        persons = np.histogram(np.clip(self.ability, edges[0], edges[-1]), edges)[0]
        home = np.clip(np.searchsorted(edges, self.difficulty, side="right") - 1, 0, bins - 1)
        order = np.argsort(-self.difficulty, kind="stable")
        members = [self.labels[order][home[order] == k].tolist() for k in range(bins)]
        limits = self.scale.measure(edges)
        return {
            "low": limits[:-1][::-1],
            "high": limits[1:][::-1],
            "persons": persons[::-1],
            f"{self.what}s": np.array([len(each) for each in members])[::-1],
            "which": np.array([listed(each) for each in members], dtype=object)[::-1],
        }

    def size(self) -> tuple[float, float]:
        return 6.4, 6.4 + 1.6 * min(len(self.labels) / ROWS, 1)

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        middle, tall = (table["low"] + table["high"]) / 2, np.abs(table["high"] - table["low"])
        persons = table["persons"] / max(table["persons"].max(), 1)
        ax.barh(middle, -persons, tall, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.set_ylim(table["low"][-1], table["high"][0])
        ax.set_xlim(-1.08, 1.45)
        ax.axvline(0, color=INK, linewidth=0.8)
        place = self.scale.measure(self.difficulty)
        order = np.argsort(-self.difficulty, kind="stable")
        if len(self.labels) <= min(ROWS, room_for(ax) - 1):
            ax.plot(np.full(len(place), 0.05), place, "D", color=RED, markersize=4)
            self._name(ax, order, place, 0.05)
        else:
            items = table[f"{self.what}s"] / max(table[f"{self.what}s"].max(), 1)
            ax.barh(middle, items, tall, color=RED, edgecolor="white", linewidth=0.4, hatch="////")
            self._name(ax, np.concatenate([order[:ENDS], order[-ENDS:]]), place, 0.08)
        for values, x, color in ((self.scale.measure(self.ability), -1.04, BLUE), (place, 1.42, RED)):
            style = "<" if color == RED else ">"
            ax.plot([x], [values.mean()], style, color=color, markersize=8, mec="white", clip_on=False, zorder=5)
        height = "difficulty" if self.what == "item" else self.what
        dress(ax, f"People and {self.what}s on one scale", "", f"ability, {height} ({unit(self.scale)})", grid="y")
        left = f", {self.left_out:,} without a finite ability left out" if self.left_out else ""
        labels = [f"{count(len(self.ability), 'person')}{left}", count(len(self.labels), self.what)]
        ax.set_xticks([-0.5, 0.6], labels, color=INK)
        ax.tick_params(axis="x", length=0)
        ax.text(1, 1.01, "triangles: means", transform=ax.transAxes, ha="right", fontsize=SMALL, color=GRAY)

    def _name(self, ax: Axes, which: np.ndarray, place: Floats, start: float) -> None:
        """Names of items at the right, each at its height or close to it, with a line to it."""
        low, high = ax.get_ylim()
        gap = (high - low) / max(room_for(ax), 1)
        at = apart(place[which], gap, low + gap / 2, high - gap / 2)
        x = 0.30 if len(which) == len(self.labels) else 1.08
        for k, y, name in zip(which.tolist(), at.tolist(), all_shown(self.labels[which]), strict=True):
            ax.plot([start + 0.02, x - 0.10, x - 0.01], [place[k], y, y], color="0.6", linewidth=0.5, zorder=1)
            ax.text(x, y, name, fontsize=SMALL, va="center", color=INK, **as_is())
