"""The data of the battery, the numbers from outside, and our fits: each read or made once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import spectral_irt as si
from spectral_irt.analysis.analysis import Analysis
from spectral_irt.estimators.base import RaschEstimator

ROOT = Path(__file__).parent.parent
FOLDERS = (Path(__file__).parent / "reference", ROOT / "tests" / "reference")
ABSENT = ["NA", "NaN", ""]
# How the tables of the books name their items.
ITEMS_OF = {"transreas": "task_", "liking_for_science": "i", "science24": "i", "style_ratings": "rater_"}
# Tables without some columns: nobody used the lowest category of i12, and the book leaves it out of the rating scale.
PARTS = {"science24": ("liking_for_science", "i12")}

ESTIMATORS: Mapping[str, Callable[[], RaschEstimator]] = {
    "spectral": si.SpectralRasch,
    "conditional": si.ConditionalRasch,
    "marginal": si.MarginalRasch,
    "pairwise": si.PairwiseRasch,
    "partial credit": si.ConditionalPartialCredit,
    "spectral partial credit": si.SpectralPartialCredit,
    "marginal partial credit": si.MarginalPartialCredit,
    "rating scale": si.ConditionalRatingScale,
    "marginal rating scale": si.MarginalRatingScale,
}


class Lab:
    """Reads data by name and fits them; `estimators` may be others, to see that rows fail where one is wrong."""

    def __init__(self, estimators: Mapping[str, Callable[[], RaschEstimator]] = ESTIMATORS, draws: int = 200) -> None:
        self.estimators = estimators
        self.draws = draws  # data sets of each simulation
        self._studies: dict[tuple[str, str], Analysis] = {}

    @cached_property
    def _documents(self) -> dict[str, Any]:
        return {}

    def path(self, file: str) -> Path:
        """A file with numbers or data from outside."""
        for folder in FOLDERS:
            if (folder / file).exists():
                return folder / file
        raise FileNotFoundError(f"{file} is in none of {', '.join(map(str, FOLDERS))}")

    def sha256(self, file: str) -> str:
        """The first signs of the hash of a file; nothing of a formula."""
        if not file:
            return ""
        return hashlib.sha256(self.path(file).read_bytes()).hexdigest()[:12]

    def said(self, name: str) -> Any:
        """What a program said, from its JSON file."""
        file = f"{name}.json"
        if file not in self._documents:
            self._documents[file] = json.loads(self.path(file).read_text(encoding="utf-8"))
        return self._documents[file]

    def table(self, name: str) -> pl.DataFrame:
        """A table as it is, with empty cells where a number is missing."""
        file = f"{name}.csv"
        if file not in self._documents:
            self._documents[file] = pl.read_csv(self.path(file), null_values=ABSENT)
        table: pl.DataFrame = self._documents[file]
        return table

    def items(self, name: str) -> pl.DataFrame:
        """The columns of a table that are items."""
        file, left_out = PARTS.get(name, (name, ""))
        start = ITEMS_OF.get(name, "")
        table = self.table(file)
        return table.select([each for each in table.columns if each.startswith(start) and each != left_out])

    def responses(self, name: str) -> si.Responses:
        return si.Responses.from_wide(self.items(name))

    def study(self, estimator: str, name: str) -> Analysis:
        """The analysis of a fit of the data of this name."""
        key = (estimator, name)
        if key not in self._studies:
            responses = self.responses(name)
            self._studies[key] = self.estimators[estimator]().fit(responses).analyse(responses)
        return self._studies[key]


def by_label(labels: Any, values: Any) -> dict[str, float]:
    """Numbers by the text of their labels."""
    return {str(label): float(value) for label, value in zip(labels, np.asarray(values, dtype=float), strict=True)}


def number(value: Any) -> dict[str, float]:
    """A single number."""
    return {"": float(value)}
