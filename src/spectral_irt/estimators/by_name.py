"""The estimators by the names they have on the command line. They are imported when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import OptionError, check_option

if TYPE_CHECKING:
    from spectral_irt.estimators.base import RaschEstimator

# The values that options can take, as the chain declares them: a help text must not wait for scipy to be imported.
CHOICES = {
    "design": ("fixed", "adaptive"),
    "weighting": ("ability", "persons", "pairs"),
    "nu_rule": ("differed", "together"),
    "se": ("auto", "dense", "one-pass", "multiplier", "information", "none"),
}


@dataclass(frozen=True)
class Method:
    """Where an estimator is (`module:maker` in `spectral_irt.estimators`), and which options of `fit` it takes."""

    where: str
    takes: str

    def make(self, name: str, parameters: dict[str, Any]) -> RaschEstimator:
        """The estimator with these parameters; an error that lists what it takes when one does not fit it."""
        foreign = [parameter for parameter in parameters if parameter not in self.takes.split()]
        if foreign:
            said, takes = (", ".join(f"`{one}`" for one in some) for some in (foreign, self.takes.split()))
            raise OptionError(f"the estimator {name!r} has no {said}; it takes {takes}.")
        module, _, maker = self.where.partition(":")
        found: Any = import_module(f"spectral_irt.estimators.{module}")
        for part in maker.split("."):
            found = getattr(found, part)
        return found(**parameters)


METHODS = {
    "spectral": Method(
        "spectral:SpectralRasch", "weighting regularization nu nu_rule refine assume_equal_means se max_iter threads"
    ),
    "paper": Method("spectral:SpectralRasch.paper", "nu nu_rule se max_iter threads"),
    "cml": Method("conditional:ConditionalRasch", "se max_iter threads"),
    "mml": Method("marginal:MarginalRasch", "max_iter threads"),
    "jml": Method("joint:JointRasch", "max_iter threads"),
    "pml": Method("pairwise:PairwiseRasch", "weighting max_iter threads"),
    "vb": Method("variational:VariationalRasch", "max_iter threads"),
    "choppin": Method("reciprocal:ChoppinRasch", "max_iter threads"),
    "eigenvector": Method("reciprocal:EigenvectorRasch", "max_iter threads"),
}

# For answers in ordered categories, by model.
ORDERED = {
    "pcm": {
        "spectral": Method(
            "spectral:SpectralPartialCredit",
            "weighting regularization refine assume_equal_means se max_iter threads unused",
        ),
        "cml": Method("conditional:ConditionalPartialCredit", "max_iter threads unused"),
        "mml": Method("marginal:MarginalPartialCredit", "max_iter threads unused"),
    },
    "rsm": {
        "spectral": Method("rating_scale:SpectralRatingScale", "max_iter threads unused"),
        "cml": Method("rating_scale:ConditionalRatingScale", "max_iter threads unused"),
    },
}
MODELS = ("rasch", *ORDERED)


def make_ordered(model: str, name: str, parameters: dict[str, Any]) -> RaschEstimator:
    """An estimator of ordered answers by model and name, for instance `make_ordered("rsm", "cml", {})`."""
    check_option("model", model, ORDERED)
    check_option("estimator", name, ORDERED[model])
    return ORDERED[model][name].make(name, parameters)


def make_estimator(name: str, parameters: dict[str, Any]) -> RaschEstimator:
    """An estimator by name, for instance `make_estimator("spectral", {"weighting": "persons"})`."""
    check_option("estimator", name, METHODS)
    return METHODS[name].make(name, parameters)
