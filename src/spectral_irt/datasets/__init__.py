"""Small bundled tables, and readers of files the user already has."""

from spectral_irt.datasets.lsat import load_lsat

__all__ = ["load_lsat"]
