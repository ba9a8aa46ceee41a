"""A calibration and responses together: people, fit, tests, groups, ranks, tables, each computed at most once."""

from spectral_irt.analysis.analysis import Analysis
from spectral_irt.analysis.folder import Parts

__all__ = ["Analysis", "Parts"]
