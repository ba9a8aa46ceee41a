"""The order of people by ability, and how sure it is: for a few people who answered much, such as language models."""

from __future__ import annotations

import numpy as np

from spectral_irt.calibration import Z95
from spectral_irt.data.block import Floats
from spectral_irt.inference.ranks.difficulty_distribution import LEAST_SE
from spectral_irt.inference.ranks.intervals import simultaneous_ranks
from spectral_irt.model import ALIKE
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns


def person_ranks(ability: Floats, se: Floats, *, seed: int = 0) -> Columns:
    """`ci_low, ci_high, rank, rank_low, rank_high` of every person; 1 = the ablest.

    `ci_low` to `ci_high` is a 95% interval of the ability, ability ± 1.96 se, of each person on their own. `rank` is
    the place by the estimate; those who share it are equally able. `rank_low` to `rank_high` hold the true ranks of all
    people at once in 95% of samples (`inference.ranks.intervals`): one more than the number of people who are surely
    abler, up to the number of those who are not surely less able. Errors of different people are independent given the
    difficulties, which are taken as known. Somebody without an ability or its error has the rank 0.
    """
    n = len(ability)
    half = Z95 * np.where(np.isfinite(ability), se, np.nan)
    known = np.isfinite(ability) & np.isfinite(se)
    rank, low, high = np.zeros((3, n), dtype=np.int64)
    if known.any():
        there = ability[known]
        equal = -np.round(there, ALIKE)
        rank[known] = 1 + np.searchsorted(np.sort(equal), equal, side="left")
        low[known], high[known] = simultaneous_ranks(there, np.maximum(se[known], LEAST_SE), rng=generator(seed))
    return {"ci_low": ability - half, "ci_high": ability + half, "rank": rank, "rank_low": low, "rank_high": high}
