"""Contestants from votes about two of them at a time: Bradley-Terry with ties, as a linear design."""

from spectral_irt.pairs.board import Pairs as Pairs
