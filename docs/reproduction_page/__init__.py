"""Writes docs/reproduction.md from the tables and figures of `spectral-irt reproduce`; not part of the package."""
