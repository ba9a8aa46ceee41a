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

from typing import TYPE_CHECKING, Any

from spectral_irt.errors import Words, option
from spectral_irt.responses import Finding

if TYPE_CHECKING:
    from spectral_irt.calibration import Calibration
    from spectral_irt.estimators.marginal import MarginalRasch

FIXED, ADAPTIVE = "fixed", "adaptive"
DESIGNS = (FIXED, ADAPTIVE)
CODE = "adaptive_design"


def adaptive_fit(data: Any, *, groups: Any = None, progress: Any = None, **parameters: Any) -> MarginalRasch:
    """The calibration of an adaptive design, by marginal likelihood with a population for each group.

    >>> from spectral_irt.datasets import load_lsat
    >>> adaptive_fit(load_lsat()).findings_[0].code
    'adaptive_design'
    """
    from spectral_irt.estimators.marginal import MarginalRasch

    return MarginalRasch(**parameters).fit(data, groups=groups, design=ADAPTIVE, progress=progress)


def is_adaptive(calibration: Calibration) -> bool:
    """Whether the calibration was told that items were chosen by the answers."""
    return any(finding.code == CODE for finding in calibration.findings)


def adaptive_finding(grouped: bool) -> Finding:
    """What a calibration of an adaptive design says about itself."""
    normal = "normal in each group" if grouped else "normal"
    further = "" if grouped else " Where the people come from several populations, say so with "
    return Finding(
        CODE,
        "note",
        "Items were chosen by the answers, as was said; difficulties come from marginal maximum likelihood, which "
        f"takes abilities as {normal} and allows for any such choice.",
        further + ((Words("groups=", option("population_by").shell) + ".") if further else ""),
    )
