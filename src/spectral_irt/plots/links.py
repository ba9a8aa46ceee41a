"""The map of weak links: groups of items, and how many people answered items of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.data.responses import Labels
from spectral_irt.errors import OptionError
from spectral_irt.inference.items.links import WEAK, ItemLinks
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import as_is, shown
from spectral_irt.plots.style import BLUE, INK, RED, SMALL, dress, note
from spectral_irt.tables import Columns, make_table
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinkMap(Display):
    """Groups of items that share most of their people; lines between groups that are linked, dashed where weakly.

    Attributes
    ----------
    found : ItemLinks
    labels : array of labels
    """

    found: ItemLinks
    labels: Labels

    @classmethod
    def of(cls, study: Analysis) -> LinkMap:
        found = study.item_links()
        if not len(found.items):
            raise OptionError("nobody answered two items, so that nothing links one item to another.")
        return cls.about(study, found=found, labels=study.calibration.labels)

    def columns(self) -> Columns:
        """Pairs of groups: `group_1, group_2, items_1, items_2, persons, crossing, weak`, and a row for a single group.

        `persons` answered items of both. `crossing`: of the answers of the people of the smaller group, the share that
        is to items of the other; below 5% the link is weak.
        """
        k = len(self.found.items)
        first, second = np.triu_indices(k, 1) if k > 1 else (np.zeros(1, int), np.zeros(1, int))
        letters = np.array(list(LETTERS), dtype=object)
        crossing = self.found.flow[first, second]
        return {
            "group_1": letters[first],
            "group_2": letters[second],
            "items_1": self.found.items[first],
            "items_2": self.found.items[second],
            "persons": self.found.persons[first, second],
            "crossing": crossing,
            "weak": crossing < WEAK,
        }

    def members(self) -> Any:
        """Which item is in which group: `item, group`; "" for items that nobody answered together with another."""
        group = np.array([*LETTERS, ""], dtype=object)[self.found.group]
        return make_table({"item": self.labels, "group": group}, self.frame_kind)

    def size(self) -> tuple[float, float]:
        return (6.4, 6.0) if len(self.found.items) > 1 else (6.4, 2.4)

    def draw(self, ax: Axes) -> None:
        found, k = self.found, len(self.found.items)
        angle = (np.pi if k == 2 else np.pi / 2) - 2 * np.pi * np.arange(k) / k
        x, y = (np.cos(angle), np.sin(angle)) if k > 1 else (np.zeros(1), np.zeros(1))
        table = self.columns()
        named = (table[name] for name in ("persons", "crossing", "weak"))
        pairs = zip(*(each.tolist() for each in np.triu_indices(k, 1)), *named, strict=False)
        for i, j, persons, crossing, weak in pairs if k > 1 else ():
            if not persons:
                continue
            color, style = (RED, "--") if weak else (BLUE, "-")
            wide = 1 + 10 * min(crossing, 0.5)
            ax.plot(x[[i, j]], y[[i, j]], style, color=color, linewidth=wide, alpha=0.65, zorder=1)
            if k <= 6 or weak or abs(i - j) in (1, k - 1):
                at = 0.5 if abs(i - j) in (1, k - 1) or k < 4 else 0.36
                px, py = x[i] + at * (x[j] - x[i]), y[i] + at * (y[j] - y[i])
                box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
                ax.text(px, py, f"{persons:,}", fontsize=SMALL, color=color, ha="center", va="center", bbox=box)
        ax.scatter(x, y, s=700, color="white", edgecolor=INK, linewidth=1.4, zorder=2)
        for i in range(k):
            ax.text(x[i], y[i], LETTERS[i], ha="center", va="center", fontsize=12, fontweight="bold", zorder=3)
            members = self.labels[found.group == i]
            first = shown(members[0], 14) + (f" … {shown(members[-1], 14)}" if len(members) > 1 else "")
            text = f"{count(int(found.items[i]), 'item')}\n{first}\n{count(int(found.persons[i, i]), 'person')}"
            ha = "center" if abs(x[i]) < 0.2 and k > 1 else "left" if x[i] >= 0 else "right"
            va = "center" if abs(y[i]) < 0.7 or k == 1 else "bottom" if y[i] > 0 else "top"
            shift = (24 * x[i], 22 * y[i]) if k > 1 else (24, 0)
            how: Any = {"textcoords": "offset points", "fontsize": SMALL, "color": INK, "ha": ha, "va": va}
            ax.annotate(text, (x[i], y[i]), shift, **how, **as_is())
        ax.set(xlim=(-2.0, 2.0), ylim=(-1.6, 1.6))
        title = "No weak link between the items" if k == 1 else f"{k} groups of items, and the people who link them"
        dress(ax, title, "", "", grid="")
        ax.set_axis_off()
        alone = int((found.group < 0).sum())
        said = f"numbers: people who answered both; dashed: less than {100 * WEAK:.0f}% of answers cross"
        note(ax, said if k > 1 else "", f"{count(alone, 'item')} answered with no other" if alone else "")
