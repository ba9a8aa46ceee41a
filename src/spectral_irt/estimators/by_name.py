"""The estimators by the names they have on the command line. They are imported when asked for."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from spectral_irt.errors import OptionError, check_option

if TYPE_CHECKING:
    from spectral_irt.estimators.base import RaschEstimator


class Method(NamedTuple):
    """Where an estimator is (`module:maker` in `spectral_irt.estimators`), and which options of `fit` it takes."""

    where: str
    takes: str


METHODS = {
    "spectral": Method(
        "spectral:SpectralRasch", "weighting regularization nu nu_rule refine assume_equal_means se max_iter threads"
    ),
    "paper": Method("spectral:SpectralRasch.paper", "nu nu_rule se max_iter threads"),
    "cml": Method("conditional:ConditionalRasch", "se max_iter threads"),
    "mml": Method("marginal:MarginalRasch", "max_iter threads"),
    "jml": Method("joint:JointRasch", "max_iter threads"),
    "pml": Method("pairwise:PairwiseRasch", "weighting max_iter threads"),
    "vb": Method("joint:VariationalRasch", "max_iter threads"),
    "choppin": Method("pairwise:ChoppinRasch", "max_iter threads"),
    "eigenvector": Method("pairwise:EigenvectorRasch", "max_iter threads"),
}

# For answers in ordered categories, by model.
SPECTRAL = "weighting regularization refine assume_equal_means se max_iter threads unused"
RIVAL = "max_iter threads unused"
ORDERED = {
    "pcm": {
        "spectral": Method("spectral:SpectralPartialCredit", SPECTRAL),
        "cml": Method("conditional:ConditionalPartialCredit", RIVAL),
        "mml": Method("marginal:MarginalPartialCredit", RIVAL),
    },
    "rsm": {
        "spectral": Method("linear_design:SpectralRatingScale", RIVAL),
        "cml": Method("conditional:ConditionalRatingScale", RIVAL),
        "mml": Method("marginal:MarginalRatingScale", RIVAL),
    },
}


class Named(NamedTuple):
    """What an estimator, a model or a way to report people is called: in a summary, in a report, and in a paper with
    the references that it cites there."""

    short: str
    long: str
    paper: str = ""
    cites: tuple[str, ...] = ()


# fmt: off
ESTIMATORS = {
    "spectral": Named("Spectral", "spectral estimate", "by the spectral method (Nguyen & Zhang, 2022)", ("nguyen",)),
    "paper": Named("Paper's", "spectral estimate of Nguyen & Zhang (2022), as printed",
                   "by the spectral method as printed by Nguyen and Zhang (2022)", ("nguyen",)),
    "cml": Named("CML", "conditional maximum likelihood", "by conditional maximum likelihood (Andersen, 1972)",
                 ("andersen",)),
    "mml": Named("MML", "marginal maximum likelihood", "by marginal maximum likelihood (Bock & Aitkin, 1981)",
                 ("bock",)),
    "jml": Named("JML", "joint maximum likelihood", "by joint maximum likelihood (Wright & Panchapakesan, 1969)",
                 ("panchapakesan",)),
    "pml": Named("PML", "pairwise maximum likelihood", "by pairwise maximum likelihood (Zwinderman, 1995)",
                 ("zwinderman",)),
    "vb": Named("VB", "variational Bayes", "by variational Bayes (Natesan et al., 2016)", ("natesan",)),
    "choppin": Named("Choppin", "Choppin's pairwise estimate", "by Choppin's pairwise method (Choppin, 1968)",
                     ("choppin",)),
    "eigenvector": Named("Eigenvector", "eigenvector estimate",
                         "by the eigenvector method (Garner & Engelhard, 2002)", ("garner",)),
}
MODELS = {
    "rasch": Named(
        "Rasch model",
        "Rasch model: the chance of a right answer depends on ability minus difficulty, and on nothing else",
        "Rasch model (Rasch, 1960)", ("rasch",)),
    "pcm": Named(
        "Partial credit model",
        "partial credit model: every item has thresholds of its own between neighboring categories",
        "partial credit model (Masters, 1982)", ("masters82",)),
    "rsm": Named(
        "Rating scale model", "rating scale model: thresholds at the same distances in all items",
        "rating scale model (Andrich, 1978)", ("andrich",)),
}
ABILITIES = {
    "wle": Named("WLE", "Warm's weighted likelihood", "weighted likelihood (Warm, 1989)", ("warm",)),
    "ml": Named("ML", "maximum likelihood", "maximum likelihood"),
    "eap": Named("EAP", "posterior mean under a normal population",
                 "their posterior means under a normal population (Bock & Aitkin, 1981)", ("bock",)),
    "pv": Named("PV", "posterior mean under a normal population, and plausible values",
                "their posterior means under a normal population, with plausible values"),
}
# fmt: on


def estimator_name(maker: str) -> str:
    """An estimator, by the name of its class, as `--estimator` calls it.

    >>> estimator_name("ConditionalPartialCredit"), estimator_name("AnchoredRasch"), estimator_name("MyEstimator")
    ('cml', 'spectral', 'MyEstimator')
    """
    for methods in (METHODS, *ORDERED.values()):
        for name, method in methods.items():
            if maker == method.where.partition(":")[2]:
                return name
    return "spectral" if maker == "AnchoredRasch" else maker


def model_name(maker: str) -> str:
    """The model of an estimator, by the name of its class, as `--model` calls it.

    >>> model_name("ConditionalPartialCredit"), model_name("SpectralRatingScale"), model_name("MyEstimator")
    ('pcm', 'rsm', 'rasch')
    """
    for model, methods in ORDERED.items():
        if any(maker == method.where.partition(":")[2] for method in methods.values()):
            return model
    return "rasch"


def make_estimator(name: str, parameters: dict[str, Any], model: str = "rasch") -> RaschEstimator:
    """An estimator by name and model, for instance `make_estimator("cml", {}, "rsm")`; an error that lists what it
    takes when one of the parameters does not fit it."""
    models = {"rasch": METHODS, **ORDERED}
    check_option("model", model, models)
    check_option("estimator", name, models[model])
    method = models[model][name]
    names = method.takes.split()
    unknown = [parameter for parameter in parameters if parameter not in names]
    if unknown:
        foreign = ", ".join(f"`{parameter}`" for parameter in unknown)
        usable = ", ".join(f"`{parameter}`" for parameter in names)
        raise OptionError(f"the estimator {name!r} has no {foreign}; it takes {usable}.")
    module, _, maker = method.where.partition(":")
    return attrgetter(maker)(import_module(f"spectral_irt.estimators.{module}"))(**parameters)
