"""The first contrast of the residuals, and how much variance the measures explain: Winsteps' table 23.

Eigenvalues of the correlations of standardized residuals are in units of items: all of them add up to the number of
items. The variance of the responses, sum of (x - mean of all)^2, is what the measures leave, sum of (x - E)^2, and what
they explain; persons and items share the latter in proportion to the variance of their mean expected responses. What is
left counts as many units as there are items, so a contrast is a share of it, and of the whole (Linacre 1998). A part
of `dimensionality`, with its p-value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats
from spectral_irt.inference.dimensions.residual_table import ResidualTable
from spectral_irt.tables import Columns

CONTRASTS = 5  # that are reported


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Principal components of standardized residuals.

    Attributes
    ----------
    items, eigenvalues, loadings : labels, float array, items x contrasts
        Eigenvalues of the first five contrasts, falling, in units of items; the correlation of each item's residuals
        with the contrast, the largest of each contrast positive.
    critical, p : float arrays
        Of each contrast the eigenvalue that a test that fits exceeds in 1% of data sets, and the chance under the model
        of one as large as here: from draws given the score; NaN without draws.
    variance : dict
        Share of the variance of responses: explained by `measures` (`persons`, `items`), and `unexplained`.
    """

    items: NDArray[Any]
    eigenvalues: Floats
    loadings: Floats
    critical: Floats
    p: Floats
    variance: dict[str, float]

    @property
    def variance_columns(self) -> Columns:
        """`part, eigenvalue, percent, critical, p`: the variance of the responses in units of items and in percent, and
        the contrasts, with the critical value of each and its p-value."""
        unit = self.variance["unexplained"] / len(self.items)  # share of the variance that one item has
        shares = {"total": 1.0, **self.variance}
        shares |= {f"contrast_{k}": value * unit for k, value in enumerate(self.eigenvalues, 1)}
        share = np.array(list(shares.values()))
        others = np.full(len(share) - len(self.eigenvalues), np.nan)
        return {
            "part": np.array(list(shares), dtype=object),
            "eigenvalue": share / unit,
            "percent": 100 * share,
            "critical": np.concatenate([others, self.critical]),
            "p": np.concatenate([others, self.p]),
        }

    @property
    def loading_columns(self) -> Columns:
        """`item, contrast_1, ...`: the loadings, from the highest on the first contrast down."""
        order = np.argsort(-self.loadings[:, 0], kind="stable")
        columns = {f"contrast_{k}": values for k, values in enumerate(self.loadings[order].T, 1)}
        return {"item": self.items[order], **columns}

    def to_dict(self) -> dict[str, Any]:
        """The result as data, but for the loadings."""
        return {
            "eigenvalue": float(self.eigenvalues[0]),
            "eigenvalue_critical": float(self.critical[0]) if np.isfinite(self.critical[0]) else None,
            "variance_explained": self.variance["measures"],
            "variance_persons": self.variance["persons"],
            "variance_items": self.variance["items"],
            "variance_contrast": float(self.eigenvalues[0] / len(self.items)) * self.variance["unexplained"],
        }


def contrasts_of(correlations: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and loadings of the first contrasts; the largest loading of each is positive."""
    eigenvalues, vectors = np.linalg.eigh(correlations)
    eigenvalues = eigenvalues[::-1][:CONTRASTS]
    loadings = vectors[:, ::-1][:, :CONTRASTS] * np.sqrt(np.maximum(eigenvalues, 0))
    largest = loadings[np.abs(loadings).argmax(axis=0), np.arange(len(eigenvalues))]
    return eigenvalues, loadings * np.where(largest < 0, -1.0, 1.0)


def variance_explained(table: ResidualTable) -> dict[str, float]:
    """Shares of the variance of the responses: by measures (persons, items), and unexplained."""
    x = table.category[table.seen]
    expected = table.mean[table.seen]
    person, item = np.nonzero(table.seen)
    total = float(((x - x.mean()) ** 2).sum())
    unexplained = float(((x - expected) ** 2).sum()) / total
    between_persons = _between(expected, person)
    between_items = _between(expected, item)
    by_persons = between_persons / (between_persons + between_items)
    measures = 1 - unexplained
    return {
        "measures": measures,
        "persons": measures * by_persons,
        "items": measures * (1 - by_persons),
        "unexplained": unexplained,
    }


def _between(expected: Floats, group: NDArray[np.intp]) -> float:
    """Sum of squares of the groups' means around the mean of all."""
    size = np.bincount(group)
    mean = np.bincount(group, weights=expected) / np.maximum(size, 1)
    return float((size * (mean - expected.mean()) ** 2).sum())
