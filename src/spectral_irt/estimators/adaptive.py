"""Designs in which answers decide what comes next: what to say about them, and how a fit is to be done.

Conditional equations (the chain, conditional and pairwise likelihood) ask which of the items that a person was given
were answered right, given how many. An adaptive test chose these items by the answers, so that the question has its
answer built in. The marginal likelihood of all answers of a person factors: the choice, which depends on observed
answers only, drops out.

References
----------
Eggen & Verhelst (2011), Psicologica 32, 107-132. Zwitser & Maris (2015), Psychometrika 80, 65-84.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from spectral_irt.data import Finding

if TYPE_CHECKING:
    from spectral_irt.calibration import Calibration
    from spectral_irt.estimators.base import RaschEstimator

E = TypeVar("E", bound="RaschEstimator")
FIXED, ADAPTIVE = "fixed", "adaptive"
DESIGNS = (FIXED, ADAPTIVE)
CODE = "adaptive_design"
FREE_SHAPE = "takes abilities from a distribution of free shape"


def fit_adaptive(estimator: E, data: Any, *, groups: Any = None, progress: Any = None) -> E:
    """Fit any estimator to an adaptive design: what it learns is what marginal likelihood finds, and says so.

    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = fit_adaptive(SpectralRasch(), datasets.load_lsat())
    >>> fit.calibration_.provenance.estimator, fit.difficulty_.round(2).tolist()
    ('MarginalRasch', [-1.26, 0.48, 1.24, 0.17, -0.62])
    """
    from spectral_irt.estimators.marginal import MarginalRasch

    marginal = MarginalRasch(threads=estimator.threads, threshold=estimator.threshold)
    return learned_from(estimator, marginal.fit(data, groups=groups, design=ADAPTIVE, progress=progress))


def fit_ordered_adaptive(estimator: E, data: Any, *, progress: Any = None) -> E:
    """The same for ordered answers."""
    from spectral_irt.estimators.marginal_ordered import MarginalPartialCredit

    marginal = MarginalPartialCredit(threads=estimator.threads, unused=estimator.unused)
    return learned_from(estimator, marginal.fit(data, design=ADAPTIVE, progress=progress))


def learned_from(estimator: E, found: Any) -> E:
    """The estimator with what another one learned."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)  # nothing of an earlier fit survives
    vars(estimator).update({name: value for name, value in vars(found).items() if name.endswith("_")})
    return estimator


def is_adaptive(calibration: Calibration) -> bool:
    """Whether the calibration was told that items were chosen by the answers."""
    return any(finding.code == CODE for finding in calibration.findings)


def adaptive_finding(grouped: bool, better: float, things: str = "difficulties") -> Finding:
    """What a calibration of an adaptive design says about itself; `better`: AIC of a free distribution below normal."""
    if grouped:
        shape = "takes abilities as normal in each group"
    elif better > 0:
        shape = f"{FREE_SHAPE} (AIC {better:.1f} below that of a normal one)"
    else:
        shape = "takes abilities as normal (a distribution of free shape fits no better, by AIC)"
    alone = not grouped and things == "difficulties"
    return Finding(
        CODE,
        "note",
        f"Items were chosen by the answers, as was said; {things} come from marginal maximum likelihood, which {shape} "
        "and allows for any such choice.",
        "Where people come from several populations, say `groups=`." if alone else "",
    )
