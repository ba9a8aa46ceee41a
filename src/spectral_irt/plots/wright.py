"""The Wright map: people, items and raters on one scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.data.block import Floats
from spectral_irt.data.responses import Labels
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
from spectral_irt.text import count, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

ENDS = 5  # hardest and easiest items that are named where not all can be
COLUMN = 1.45  # width of a column beside the people, whose bars have 1
OUTER = 0.0005  # share of people beyond each end of the scale that is drawn, unless items are there


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WrightMap(Display):
    """People to the left, items (or their thresholds) to the right, able people and hard items on top; of ratings, a
    column for each facet beside them, severe raters on top.

    A person beside an item has an even chance of answering it right. `left_out` people have no finite ability.
    """

    ability: Floats
    labels: Labels
    difficulty: Floats
    left_out: int = 0
    what: str = "item"
    facets: Mapping[str, tuple[Labels, Floats]] = field(default_factory=dict)  # labels and severities

    @classmethod
    def of(cls, study: Analysis) -> WrightMap:
        calibration, ability = study.calibration.own_items, known_abilities(study)
        layout = calibration.layout
        place = layout.of_items(on_scale(calibration))
        labels = calibration.labels[layout.item[place]]
        if not layout.binary:  # "q7 (2)" is the second threshold of item q7
            labels = labels.astype(object)
            labels[:] = [f"{label} ({layout.level[k]})" for label, k in zip(labels, place.tolist(), strict=True)]
        tables = {name: columns_of(study.facet, name) for name in study.facets}
        known = {name: np.isfinite(table["severity"]) for name, table in tables.items()}
        return cls.about(
            study,
            ability=ability,
            labels=labels,
            difficulty=calibration.thresholds[place],
            left_out=study.responses.n_persons - len(ability),
            what="item" if layout.binary else "threshold",
            facets={name: (table[name][known[name]], table["severity"][known[name]]) for name, table in tables.items()},
        )

    @property
    def beside(self) -> dict[str, tuple[Labels, Floats]]:
        """What stands beside the people, column by column."""
        return {self.what: (self.labels, self.difficulty), **self.facets}

    def edges(self) -> Floats:
        """Limits of the bins, in logits: all items and raters and all but a few people are within."""
        low, high = np.quantile(self.ability, [OUTER, 1 - OUTER])
        others = np.concatenate([values for _, values in self.beside.values()])
        ends = np.array([min(low, others.min()), max(high, others.max())])
        return ability_edges(self.ability, *finite_range(ends, margin=0.02))

    def columns(self) -> Columns:
        """`low, high` of each stretch of the scale, from the top down; `persons` and `items` in it, and which.

        Where thresholds stand for items, the column is called so; of ratings, each facet has a column with its levels.
        """
        edges = self.edges()
        limits = self.scale.measure(edges)

        def members(labels: Labels, values: Floats) -> list[Labels]:
            home = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
            order = np.argsort(-values, kind="stable")
            return [labels[order][home[order] == k] for k in range(len(edges) - 1)][::-1]

        items, *others = (members(*column) for column in self.beside.values())
        texts = [np.array([listed(each) for each in found], dtype=object) for found in (items, *others)]
        return {
            "low": limits[:-1][::-1],
            "high": limits[1:][::-1],
            "persons": np.histogram(np.clip(self.ability, edges[0], edges[-1]), edges)[0][::-1],
            f"{self.what}s": np.array([len(each) for each in items]),
            **dict(zip(("which", *self.facets), texts, strict=True)),
        }

    def size(self) -> tuple[float, float]:
        return 6.4 + 1.8 * len(self.facets), 6.4 + 1.6 * min(len(self.labels) / ROWS, 1)

    def draw(self, ax: Axes) -> None:
        table = self.columns()
        middle, tall = (table["low"] + table["high"]) / 2, np.abs(table["high"] - table["low"])
        persons = table["persons"] / max(table["persons"].max(), 1)
        ax.barh(middle, -persons, tall, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.set_ylim(table["low"][-1], table["high"][0])
        columns = self.beside
        ax.set_xlim(-1.08, COLUMN * len(columns))
        for k, (labels, values) in enumerate(columns.values()):
            self._column(ax, COLUMN * k, labels, self.scale.measure(values))
        means = [(self.scale.measure(self.ability).mean(), -1.04, ">", BLUE)]
        means += [] if self.facets else [(self.scale.measure(self.difficulty).mean(), COLUMN - 0.03, "<", RED)]
        for mean, x, mark, color in means:
            ax.plot([x], [mean], mark, color=color, markersize=8, mec="white", clip_on=False, zorder=5)
        height = "severity" if self.facets else "difficulty" if self.what == "item" else self.what
        others = [f"{name}s" for name in columns]
        named = f"{', '.join(['People', *others[:-1]])} and {others[-1]} on one scale"
        dress(ax, named, "", f"{self.words(f'ability, {height}')} ({unit(self.scale)})", grid="y")
        left = self.words(f", {self.left_out:,} without a finite ability left out") if self.left_out else ""
        ticks = [f"{count(len(self.ability), 'person')}{left}"]
        ticks += [count(len(labels), name) for name, (labels, _) in columns.items()]
        ax.set_xticks([-0.5, *(0.6 + COLUMN * np.arange(len(columns)))], ticks, color=INK)
        ax.tick_params(axis="x", length=0)
        ax.text(1, 1.01, "triangles: means", transform=ax.transAxes, ha="right", fontsize=SMALL, color=GRAY)

    def _column(self, ax: Axes, left: float, labels: Labels, place: Floats) -> None:
        """Marks at their heights, each with its name beside it or close by and a line to it; where they are many, bars,
        and the names of the ends."""
        ax.axvline(left, color=INK, linewidth=0.8)
        order, (low, high) = np.argsort(-place, kind="stable"), ax.get_ylim()
        if all_named := len(labels) <= min(ROWS, room_for(ax) - 1):
            ax.plot(np.full(len(place), left + 0.05), place, "D", color=RED, markersize=4)
        else:
            edges = np.sort(self.scale.measure(self.edges()))
            counts = np.histogram(np.clip(place, edges[0], edges[-1]), edges)[0]
            look = {"color": RED, "edgecolor": "white", "linewidth": 0.4, "hatch": "////"}
            ax.barh(edges[:-1], counts / max(counts.max(), 1), np.diff(edges), left, align="edge", **look)  # type: ignore[arg-type]
            order = np.concatenate([order[:ENDS], order[-ENDS:]])
        gap = (high - low) / max(room_for(ax), 1)
        at = apart(place[order], gap, low + gap / 2, high - gap / 2)
        start, x = (left + 0.07, left + 0.30) if all_named else (left + 0.10, left + 1.08)
        for k, y, name in zip(order.tolist(), at.tolist(), all_shown(labels[order]), strict=True):
            ax.plot([start, x - 0.10, x - 0.01], [place[k], y, y], color="0.6", linewidth=0.5, zorder=1)
            ax.text(x, y, name, fontsize=SMALL, va="center", color=INK, **as_is())
