"""Mean ability of the persons in each category of every item, observed and expected (Wright & Masters 1982, ch. 5).

The observed averages should rise with the category and stand near those that the model expects: Winsteps' tables 2.5 to
2.7. `study.plot.category_means()` makes it of `study.categories()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.data.block import Ints, Mask
from spectral_irt.data.responses import Labels
from spectral_irt.errors import OptionError
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import as_is, name_rows
from spectral_irt.plots.style import GRAY, INK, RED, ROWS, SMALL, dress, note, room_for, rows_height
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.analysis import Analysis


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CategoryMeans(Display):
    """A row for each item, the hardest on top: the code of each category at the mean ability of its persons, and a tick
    where the model expects it. Items whose averages do not rise with the category are marked."""

    table: Columns  # of `study.categories()`, rows of categories that somebody chose
    items: Labels  # in the order of the rows of the picture
    row: Ints  # of each row of the table, the row of the picture

    @classmethod
    def of(cls, study: Analysis) -> CategoryMeans:
        if study.facets:
            raise OptionError(
                "averages by category are of items here, and these are ratings; `study.category_use()` has those of "
                "each rater."
            )
        categories = columns_of(study.categories)
        chosen = np.isfinite(categories["mean_ability"])
        if not chosen.any():
            raise OptionError("no category was chosen by a person with an ability, so there are no averages to show.")
        calibration = study.calibration
        place = calibration.positions(categories["item"].tolist())
        hardest_first = np.argsort(-np.nan_to_num(calibration.difficulty), kind="stable")
        shown = hardest_first[np.isin(hardest_first, place[chosen])]
        row_of_item = np.full(len(calibration.labels), -1)
        row_of_item[shown] = np.arange(len(shown))
        return cls.about(
            study,
            table={name: values[chosen] for name, values in categories.items()},
            items=calibration.labels[shown],
            row=row_of_item[place[chosen]],
        )

    def columns(self) -> Columns:
        """`item, category, code, n, mean_ability, expected_ability, rises`, the hardest item first; `rises`: the mean
        ability is above that of the category below."""
        order = np.lexsort((self.table["category"], self.row))
        table = {name: self.table[name][order] for name in ("item", "category", "code", "n")}
        table["mean_ability"] = self.scale.measure(self.table["mean_ability"][order])
        table["expected_ability"] = self.scale.measure(self.table["expected_ability"][order])
        table["rises"] = self._rises[order]
        return table

    @property
    def _rises(self) -> Mask:
        """Whether the mean ability in a category is above that in the category below, if the item has one."""
        order = np.lexsort((self.table["category"], self.row))
        mean = self.table["mean_ability"][order]
        row = self.row[order]
        rises = np.ones(len(order), dtype=bool)
        rises[1:] = (np.diff(mean) > 0) | (np.diff(row) != 0)
        out = np.empty(len(order), dtype=bool)
        out[order] = rises
        return out

    @property
    def disordered(self) -> Mask:
        """Items, in the order of the picture, whose averages do not rise from category to category."""
        return np.bincount(self.row, ~self._rises, len(self.items)) > 0

    def size(self) -> tuple[float, float]:
        return 6.8, rows_height(min(len(self.items), ROWS))

    def draw(self, ax: Axes) -> None:
        rows = min(max(room_for(ax), 1), ROWS)
        disordered = self.disordered
        shown = np.arange(len(self.items))
        if len(shown) > rows:  # those out of order first, then the others from the hardest down
            shown = np.sort(np.argsort(~disordered, kind="stable")[:rows])
        place = np.full(len(self.items), -1)
        place[shown] = np.arange(len(shown))
        height = place[self.row]
        drawn = height >= 0
        observed = self.scale.measure(self.table["mean_ability"][drawn])
        expected = self.scale.measure(self.table["expected_ability"][drawn])
        codes = self.table["code"][drawn].tolist()
        title = "Mean ability of the persons in each category"
        dress(ax, title.replace("ability", self.words.trait), self.axis, "", grid="")
        ax.hlines(np.arange(len(shown)), *_span(observed, expected), color="0.93", linewidth=0.7, zorder=0)
        ax.plot(expected, height[drawn], "|", color=GRAY, markersize=10, mew=1.6)
        style: dict[str, Any] = {"fontsize": SMALL + 1, "ha": "center", "va": "center", **as_is()}
        for x, y, code in zip(observed.tolist(), height[drawn].tolist(), codes, strict=True):
            if disordered[shown[y]]:
                ax.text(x, y, f"{code:g}", color=RED, weight="bold", **style)
            else:
                ax.text(x, y, f"{code:g}", color=INK, **style)
        ax.set_xlim(*_span(observed, expected))
        name_rows(ax, self.items[shown].tolist(), marked=disordered[shown].tolist())
        left_out = len(self.items) - len(shown)
        note(
            ax,
            "number: a category at the observed mean; tick: the expected mean",
            f"bold: out of order ({int(disordered.sum())})" if disordered.any() else "",
            f"{count(left_out, 'item')} not shown" if left_out else "",
        )


def _span(observed: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """Limits of the axis: all means, and a little more."""
    both = np.concatenate([observed, expected[np.isfinite(expected)]])
    margin = 0.05 * max(float(np.ptp(both)), 0.5)
    return float(both.min()) - margin, float(both.max()) + margin
