"""Readers of the paper's data sets as their publishers ship them, for people who have the files."""

from reproduction.datasets.catalog import Source
from reproduction.datasets.opening import Dataset, available, open_dataset

__all__ = ["Dataset", "Source", "available", "open_dataset"]
