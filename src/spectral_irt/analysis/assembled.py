"""Columns that an analysis puts together: measures on another scale, contrasts of several groupings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spectral_irt.calibration import Scale
from spectral_irt.inference.groups.dif import Differential
from spectral_irt.tables import Columns


def with_measures(columns: Columns, name: str, scale: Scale) -> Columns:
    """The columns with what is reported on another scale after them; logits stay."""
    if scale.is_logits:
        return columns
    drawn = {f"measure_{pv}": scale.measure(values) for pv, values in columns.items() if pv[:2] == "pv"}
    return {**columns, "measure": scale.measure(columns[name]), "measure_se": scale.width(columns["se"]), **drawn}


def group_table(tables: Sequence[Columns], scale: Scale) -> Columns:
    """The means of groups of every grouping, with what is reported on another scale after them."""
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    if scale.is_logits:
        return columns
    widths = {f"measure_{name}": scale.width(columns[name]) for name in ("se", "sd", "latent_sd")}
    return {**columns, "measure_mean": scale.measure(columns["mean"]), **widths}


def contrast_columns(grouped: Mapping[str, Differential], which: str = "contrasts") -> Columns:
    """The rows of every grouping, with the column that it goes by; none without groupings."""
    tables = [
        {"grouping": np.full(len(getattr(one, which)["item"]), name, dtype=object), **getattr(one, which)}
        for name, one in grouped.items()
    ]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]} if tables else {}
