"""Calibrate tests: item difficulties with standard errors by the spectral Rasch estimator, at any size.

>>> from spectral_irt import SpectralRasch, datasets
>>> fit = SpectralRasch().fit(datasets.load_lsat())
"""

from spectral_irt import datasets, simulate
from spectral_irt.estimators.spectral import SpectralRasch, spectral_difficulty
from spectral_irt.responses import Finding, Responses

__version__ = "0.1.0"

__all__ = ["Finding", "Responses", "SpectralRasch", "datasets", "simulate", "spectral_difficulty"]
