"""Columns that an analysis puts together: measures on another scale, contrasts of several groupings, residuals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spectral_irt.calibration import Calibration, Scale
from spectral_irt.inference.differential import Differential
from spectral_irt.persons.residuals import probabilities
from spectral_irt.responses import Block, Responses
from spectral_irt.responses.block import Floats
from spectral_irt.tables import Columns


def with_measures(columns: Columns, name: str, scale: Scale) -> Columns:
    """The columns with what is reported on another scale after them; logits stay."""
    if scale.is_logits:
        return columns
    drawn = {f"measure_{pv}": scale.measure(values) for pv, values in columns.items() if pv[:2] == "pv"}
    return {**columns, "measure": scale.measure(columns[name]), "measure_se": scale.width(columns["se"]), **drawn}


def contrast_columns(grouped: Mapping[str, Differential]) -> Columns:
    """The rows of every grouping, with the column that it goes by."""
    tables = [
        {"grouping": np.full(len(one.contrasts["item"]), name, dtype=object), **one.contrasts}
        for name, one in grouped.items()
    ]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def residual_columns(calibration: Calibration, responses: Responses, ability: Floats) -> Columns:
    """Every answer: `person, item, response, expected, residual, z`."""
    person, item, right = responses.answers()
    p = responses.gather(_probabilities, calibration.difficulty, persons=(ability,))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (right - p) / np.sqrt(p * (1 - p))
    return {
        "person": responses.users[person],
        "item": calibration.labels[item],
        "response": right.astype(np.int64),
        "expected": p,
        "residual": right - p,
        "z": z,
    }


def _probabilities(block: Block, theta: Floats, difficulty: Floats) -> Floats:
    return probabilities(block, difficulty, theta)
