"""Intervals as pictures made of characters."""

from __future__ import annotations

import numpy as np

from spectral_irt.tables import Columns

BAR_WIDTH = 24
BAR_HEAD = "easier" + " " * (BAR_WIDTH - 12) + "harder"


def span_of(shown: Columns) -> tuple[float, float]:
    """What the picture covers: every difficulty, and every interval as far as it is not absurdly wide."""
    mid = shown["difficulty"][np.isfinite(shown["difficulty"])]
    if not len(mid):
        return -1.0, 1.0
    reach = max(1.0, float(np.ptp(mid))) / 2
    ends = np.concatenate([shown["ci_low"], shown["ci_high"], mid])
    ends = ends[np.isfinite(ends)]
    low, high = max(float(ends.min()), float(mid.min()) - reach), min(float(ends.max()), float(mid.max()) + reach)
    return low, max(high, low + 1e-6)


def bar(low: float, mid: float, high: float, span: tuple[float, float], *, unicode: bool = True) -> str:
    """An interval as a line with its estimate on it.

    >>> bar(-1, 0, 1, (-2, 2))
    '     ───────●──────     '
    """
    if not np.isfinite(mid):
        return ""
    start, end = span
    line, dot = "─●" if unicode else "-o"
    low, mid, high = (
        float(np.clip((x - start) / (end - start), 0, 1)) * (BAR_WIDTH - 1) if np.isfinite(x) else np.nan
        for x in (low, mid, high)
    )
    cells = [" "] * BAR_WIDTH
    if np.isfinite(low) and np.isfinite(high):
        first, last = int(np.floor(low)), int(np.ceil(high))
        cells[first : last + 1] = line * (last - first + 1)
    cells[round(mid)] = dot
    return "".join(cells)
