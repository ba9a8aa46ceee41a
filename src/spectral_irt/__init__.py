"""Calibrate tests: item difficulties with standard errors by the spectral Rasch estimator, at any size.

>>> from spectral_irt import SpectralRasch, datasets
>>> fit = SpectralRasch().fit(datasets.load_lsat())
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# The public names, by the module that each comes from. Modules are loaded when one of their names is asked for, so that
# a command starts at once and can be interrupted at any time.
_NAMES = {
    "analysis": "Analysis",
    "analysis.change": "change",
    "analysis.comparison": "compare",
    "bank": "AnchoredRasch Bank anchored_fit equate link load",
    "bank.adaptive": "next_item",
    "calibration": "Calibration Scale",
    "chain.paper": "",
    "datasets": "",
    "engine": "set_memory",
    "estimators.conditional": "ConditionalPartialCredit ConditionalRasch ConditionalRatingScale",
    "estimators.joint": "JointRasch VariationalRasch",
    "estimators.linear_design": "LinearDesign SpectralRatingScale",
    "estimators.marginal": "MarginalPartialCredit MarginalRasch MarginalRatingScale",
    "estimators.pairwise": "ChoppinRasch EigenvectorRasch PairwiseRasch",
    "estimators.spectral": "SpectralPartialCredit SpectralRasch",
    "estimators.spectral_steps": "spectral_fit",
    "inference.groups.exact_tests": "exact_test",
    "inference.groups.martin_loef": "martin_loef",
    "inference.groups.model_tests": "andersen",
    "leaderboard": "Leaderboard",
    "leaderboard.judges": "JudgedLeaderboard",
    "leaderboard.race": "Race",
    "leaderboard.shortlist": "ShortList",
    "pairs": "Pairs",
    "persons": "",
    "data": "Finding Responses",
    "data.packed_file": "open_responses",
    "reading": "read",
    "simulate": "",
    "sql": "fit_in_database",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split() or [module.rpartition(".")[2]]}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from spectral_irt import datasets as datasets
    from spectral_irt import persons as persons
    from spectral_irt import simulate as simulate
    from spectral_irt.analysis import Analysis as Analysis
    from spectral_irt.analysis.change import change as change
    from spectral_irt.analysis.comparison import compare as compare
    from spectral_irt.bank import AnchoredRasch as AnchoredRasch
    from spectral_irt.bank import Bank as Bank
    from spectral_irt.bank import anchored_fit as anchored_fit
    from spectral_irt.bank import equate as equate
    from spectral_irt.bank import link as link
    from spectral_irt.bank import load as load
    from spectral_irt.bank.adaptive import next_item as next_item
    from spectral_irt.calibration import Calibration as Calibration
    from spectral_irt.calibration import Scale as Scale
    from spectral_irt.chain import paper as paper
    from spectral_irt.data import Finding as Finding
    from spectral_irt.data import Responses as Responses
    from spectral_irt.data.packed_file import open_responses as open_responses
    from spectral_irt.engine import set_memory as set_memory
    from spectral_irt.estimators.conditional import ConditionalPartialCredit as ConditionalPartialCredit
    from spectral_irt.estimators.conditional import ConditionalRasch as ConditionalRasch
    from spectral_irt.estimators.conditional import ConditionalRatingScale as ConditionalRatingScale
    from spectral_irt.estimators.joint import JointRasch as JointRasch
    from spectral_irt.estimators.joint import VariationalRasch as VariationalRasch
    from spectral_irt.estimators.linear_design import LinearDesign as LinearDesign
    from spectral_irt.estimators.linear_design import SpectralRatingScale as SpectralRatingScale
    from spectral_irt.estimators.marginal import MarginalPartialCredit as MarginalPartialCredit
    from spectral_irt.estimators.marginal import MarginalRasch as MarginalRasch
    from spectral_irt.estimators.marginal import MarginalRatingScale as MarginalRatingScale
    from spectral_irt.estimators.pairwise import ChoppinRasch as ChoppinRasch
    from spectral_irt.estimators.pairwise import EigenvectorRasch as EigenvectorRasch
    from spectral_irt.estimators.pairwise import PairwiseRasch as PairwiseRasch
    from spectral_irt.estimators.spectral import SpectralPartialCredit as SpectralPartialCredit
    from spectral_irt.estimators.spectral import SpectralRasch as SpectralRasch
    from spectral_irt.estimators.spectral_steps import spectral_fit as spectral_fit
    from spectral_irt.inference.groups.exact_tests import exact_test as exact_test
    from spectral_irt.inference.groups.martin_loef import martin_loef as martin_loef
    from spectral_irt.inference.groups.model_tests import andersen as andersen
    from spectral_irt.leaderboard import Leaderboard as Leaderboard
    from spectral_irt.leaderboard.judges import JudgedLeaderboard as JudgedLeaderboard
    from spectral_irt.leaderboard.race import Race as Race
    from spectral_irt.leaderboard.shortlist import ShortList as ShortList
    from spectral_irt.pairs import Pairs as Pairs
    from spectral_irt.reading import read as read
    from spectral_irt.sql import fit_in_database as fit_in_database
else:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'spectral_irt' has no attribute {name!r}")
        module = import_module(f"spectral_irt.{_HOMES[name]}")
        value = getattr(module, name) if _NAMES[_HOMES[name]] else module
        return globals().setdefault(name, value)

    def __dir__() -> list[str]:
        """The public names alone, for whoever lets a notebook complete them."""
        return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
