"""Writes docs/reproduction.md from the tables and figures of `python -m reproduction`."""
