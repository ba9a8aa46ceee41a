"""What pictures of one item share: the title, groups of people as marks, and the small form for a sheet of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import Scale
from spectral_irt.data.block import Floats
from spectral_irt.plots.look import RED, dress
from spectral_irt.plots.names import shown
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def item_title(label: Any) -> str:
    """The title of a picture of one item."""
    name = shown(label, 60)
    return name if name.casefold().startswith("item") else f"Item {name}"


def strata_table(item: Any, strata: Columns, place: Floats, scale: Scale) -> Columns:
    """The strata of one item as a table, with where they stand in the picture; both as reported."""
    label = np.empty(len(place), dtype=object)
    label[:] = [item] * len(label)
    others = {name: values for name, values in strata.items() if name != "item"}
    return {"item": label, **others, "ability": scale.measure(others["ability"]), "place": scale.measure(place)}


def mark_strata(ax: Axes, table: Columns, *, small: bool) -> None:
    """What was observed in each stratum, with its interval."""
    bars = np.array([table["observed"] - table["ci_low"], table["ci_high"] - table["observed"]])
    ax.errorbar(
        table["place"],
        table["observed"],
        np.maximum(bars, 0),
        fmt="o",
        color=RED,
        markersize=3 if small else 5,
        elinewidth=0.8 if small else 1.2,
    )


def dress_small(ax: Axes, *, shares: bool = True) -> None:
    """A picture of a sheet of many: without words, few ticks; `shares`: from 0 to 1."""
    dress(ax, "", "", "")
    ax.tick_params(labelsize=6.5, length=2)
    if shares:
        ax.set_yticks([0, 0.5, 1])
    ax.locator_params(axis="x", nbins=4)
