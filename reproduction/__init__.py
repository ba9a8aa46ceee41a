"""The paper's figures and tables, and four more: `python -m reproduction NAME`, from the folder of the repository.

Not part of the installed package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from reproduction.experiment import Experiment

# The experiments of each module, which is imported when one of them is wanted.
MODULES = {
    "simulations": ("figure1a", "figure1b", "figure1c", "figure1d", "figure2"),
    "benchmark": ("table1", "table2", "table3"),
    "rates": ("rates",),
    "gap": ("gap",),
    "variants": ("variants",),
    "partial_credit": ("credit",),
}
NAMES = tuple(name for names in MODULES.values() for name in names)


def load(name: str) -> Experiment:
    """The experiment of this name.

    >>> load("figure2").title
    'Spectral against two older matrix methods, complete data'
    """
    if name not in NAMES:
        raise OptionError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}.")
    module = next(module for module, names in MODULES.items() if name in names)
    return import_module(f"reproduction.{module}").EXPERIMENTS[name]
