"""The public names; `spectral_irt` hands them out when one is asked for."""

from spectral_irt import datasets, persons, simulate
from spectral_irt.analysis import Analysis
from spectral_irt.bank import AnchoredRasch, Bank, anchored_fit, equate, link
from spectral_irt.bank.cat import next_item, simulate_cat
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.joint import JointRasch
from spectral_irt.estimators.marginal import MarginalRasch
from spectral_irt.estimators.pairwise import PairwiseRasch
from spectral_irt.estimators.reciprocal import ChoppinRasch, EigenvectorRasch
from spectral_irt.estimators.spectral import SpectralRasch, spectral_difficulty
from spectral_irt.estimators.variational import VariationalRasch
from spectral_irt.inference.model_tests import andersen, martin_loef, wald_by_item
from spectral_irt.leaderboard import Leaderboard
from spectral_irt.leaderboard.shortlist import ShortList
from spectral_irt.responses import Finding, Responses, read_responses, responses_from_frame

load = Bank.load
read = read_responses

__all__ = [
    "Analysis",
    "AnchoredRasch",
    "Bank",
    "Calibration",
    "ChoppinRasch",
    "ConditionalRasch",
    "EigenvectorRasch",
    "Finding",
    "JointRasch",
    "Leaderboard",
    "MarginalRasch",
    "PairwiseRasch",
    "Responses",
    "Scale",
    "ShortList",
    "SpectralRasch",
    "VariationalRasch",
    "anchored_fit",
    "andersen",
    "datasets",
    "equate",
    "link",
    "load",
    "martin_loef",
    "next_item",
    "persons",
    "read",
    "read_responses",
    "responses_from_frame",
    "simulate",
    "simulate_cat",
    "spectral_difficulty",
    "wald_by_item",
]
