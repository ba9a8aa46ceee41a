"""The paper's figures and tables, and two more: each experiment is one runnable module that writes one tidy table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from spectral_irt.experiments.experiment import Experiment

NAMES = (
    "figure1a",
    "figure1b",
    "figure1c",
    "figure1d",
    "figure2",
    "table1",
    "table2",
    "table3",
    "rates",
    "gap",
    "variants",
)


def load(name: str) -> Experiment:
    """The experiment of this name.

    >>> load("figure2").title
    'Spectral against two older matrix methods, complete data'
    """
    if name not in NAMES:
        raise OptionError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}.")
    return import_module(f"spectral_irt.experiments.{name}").EXPERIMENT
