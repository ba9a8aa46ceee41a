"""What stands for "not answered", and what often does."""

from __future__ import annotations

from typing import Any

import numpy as np

# Always: the empty cell, and what R, pandas and JSON write for it. Nobody is called that either.
NOT_ANSWERED = ("", "NA", "NaN", "nan", "null")

# What a cell of a spreadsheet shows when its formula fails: never an answer, right or wrong.
CELL_ERRORS = ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "#SPILL!", "#CALC!")

# fmt: off
# Never assumed, only suggested when they turn up where 0/1 is expected.
SUSPECTS = frozenset({
    *NOT_ANSWERED, "-1", "9", "-8", "-9", "99", "-99", "999", "-999", "9999", "-9999", "-99999",
    "N/A", "NULL", "None", "none", "na", "n/a", *CELL_ERRORS, ".", "-", "?", "*", "missing",
})
# fmt: on


def is_missing(value: Any) -> bool:
    """None, NaN, and what dataframe libraries use for them (pandas' NA cannot even be compared)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)
