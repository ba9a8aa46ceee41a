"""Very many intervals, sorted: bands that hold most of them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data.block import Floats
from spectral_irt.plots.look import BLUE, INK, SKY, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUPS = 120  # neighbors are put together in so many groups: finer than the eye follows
OUTER = 0.05  # share of ends beyond the wide band, on each side
BAND_NOTE = "dark: median interval of neighbors, light: 90% of their ends"


def sorted_bands(ax: Axes, middle: Floats, low: Floats, high: Floats) -> None:
    """Down the y axis by position (1 = first): the line of the middles, and bands of the ends of the intervals."""
    m = len(middle)
    starts = np.unique(np.linspace(0, m, min(GROUPS, m) + 1).astype(int))
    rank = np.arange(1, m + 1)
    groups = [slice(a, b) for a, b in pairwise(starts.tolist())]
    y = np.array([rank[g].mean() for g in groups])
    narrow = [np.array([np.median(ends[g]) for g in groups]) for ends in (low, high)]
    wide = [np.array([np.quantile(ends[g], q) for g in groups]) for ends, q in ((low, OUTER), (high, 1 - OUTER))]
    ax.fill_betweenx(y, wide[0], wide[1], color=SKY, alpha=0.35, linewidth=0)
    ax.fill_betweenx(y, narrow[0], narrow[1], color=BLUE, alpha=0.55, linewidth=0)
    ax.plot(middle, rank, color=INK, linewidth=1.1, rasterized=m > 5_000)
    ax.set_ylim(m * 1.03 + 1, -m * 0.03)
    whole_ticks(ax, "y")
