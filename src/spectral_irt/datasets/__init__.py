"""Small bundled tables, and readers of files the user already has."""

from spectral_irt.datasets.catalog import Source
from spectral_irt.datasets.lsat import load_lsat, lsat_text
from spectral_irt.datasets.opening import Dataset, available, open_dataset
from spectral_irt.datasets.quiz import load_quiz, quiz_files

__all__ = ["Dataset", "Source", "available", "load_lsat", "load_quiz", "lsat_text", "open_dataset", "quiz_files"]
