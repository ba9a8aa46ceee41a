"""Calibrate tests with the spectral Rasch estimator."""

__version__ = "0.1.0"
