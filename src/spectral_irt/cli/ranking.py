"""ranking.csv: the items of a fit in order, with how sure that order is."""

from __future__ import annotations

from pathlib import Path

from spectral_irt.cli.output import write_csv
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.ranking import ranking_columns


def write_ranking(path: Path, fit: RaschEstimator, *, top: int = 10, by: str = "lower") -> None:
    """Write the ranking of a fit's items; the columns are those of `fit.ranking()`."""
    write_csv(path, ranking_columns(fit, by, top))
