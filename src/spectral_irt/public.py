"""The public names; `spectral_irt` hands them out when one is asked for."""

from spectral_irt import datasets, persons, simulate
from spectral_irt.analysis import Analysis
from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
from spectral_irt.bank import AnchoredRasch, Bank, anchored_fit, equate, link
from spectral_irt.bank.cat import next_item, simulate_cat
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.engines import set_memory
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.conditional_ordered import ConditionalPartialCredit
from spectral_irt.estimators.joint import JointRasch
from spectral_irt.estimators.marginal import MarginalRasch
from spectral_irt.estimators.marginal_ordered import MarginalPartialCredit
from spectral_irt.estimators.pairwise import PairwiseRasch
from spectral_irt.estimators.partial_credit import SpectralPartialCredit
from spectral_irt.estimators.rating_scale import ConditionalRatingScale, SpectralRatingScale
from spectral_irt.estimators.reciprocal import ChoppinRasch, EigenvectorRasch
from spectral_irt.estimators.spectral import SpectralRasch, spectral_difficulty
from spectral_irt.estimators.variational import VariationalRasch
from spectral_irt.federated.folder import answer_rounds, federate
from spectral_irt.in_database.fitting import fit_in_database
from spectral_irt.inference.model_tests import andersen, martin_loef, wald_by_item
from spectral_irt.leaderboard import Leaderboard
from spectral_irt.leaderboard.shortlist import ShortList
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.responses import Finding, Responses, read_responses, responses_from_frame
from spectral_irt.responses.given import open_responses
from spectral_irt.responses.ordered import OrderedResponses
from spectral_irt.responses.ordered_arrays import ordered_from_long, ordered_from_wide
from spectral_irt.responses.read_ordered import read_ordered

load = Bank.load
read = read_responses

__all__ = [
    "Analysis",
    "AnchoredRasch",
    "Bank",
    "Calibration",
    "ChoppinRasch",
    "ConditionalPartialCredit",
    "ConditionalRasch",
    "ConditionalRatingScale",
    "EigenvectorRasch",
    "Finding",
    "JointRasch",
    "Leaderboard",
    "MarginalPartialCredit",
    "MarginalRasch",
    "OrderedAnalysis",
    "OrderedCalibration",
    "OrderedResponses",
    "PairwiseRasch",
    "Responses",
    "Scale",
    "ShortList",
    "SpectralPartialCredit",
    "SpectralRasch",
    "SpectralRatingScale",
    "VariationalRasch",
    "anchored_fit",
    "andersen",
    "answer_rounds",
    "datasets",
    "equate",
    "federate",
    "fit_in_database",
    "link",
    "load",
    "martin_loef",
    "next_item",
    "open_responses",
    "ordered_from_long",
    "ordered_from_wide",
    "persons",
    "read",
    "read_ordered",
    "read_responses",
    "responses_from_frame",
    "set_memory",
    "simulate",
    "simulate_cat",
    "spectral_difficulty",
    "wald_by_item",
]
