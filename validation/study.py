"""What a simulation study draws and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

COVERED = 0.95  # of intervals
LEVEL = 0.05  # of tests
ERRORS = 3  # Monte Carlo errors that are chance
NORMAL = 1.959964


class Study(NamedTuple):
    """What is drawn and counted, and the nominal value of each; `share` of the data sets where it takes long.
    `at_most`: the nominal values are promises that may be kept by far, and what is below them counts as nothing."""

    name: str
    nominal: Mapping[str, float]
    draw: Callable[[int], Mapping[str, float]]
    share: float = 1.0
    at_most: bool = False


def covered(estimate: Any, se: Any, truth: Any) -> float:
    """The share of intervals that hold the truth, of estimates on the scale of mean zero."""
    estimate, se, truth = (np.asarray(each, dtype=float) for each in (estimate, se, truth))
    known = np.isfinite(se)
    return float(np.mean(np.abs(estimate - truth)[known] < NORMAL * se[known]))
