"""The conditional likelihood of responses at the thresholds of a calibration, with AIC and BIC; `study.likelihood()`.

    log L = sum over persons l of log P(responses of l | score of l, items of l)

Abilities are conditioned out, so fits of the same responses may be compared, whatever the persons are like. With a
prior, or a correction of small-sample bias, the thresholds are not quite where the likelihood is largest, and AIC and
BIC are a little too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.text import count, listed

if TYPE_CHECKING:
    from spectral_irt.analysis.people import AnalysisOfPeople
    from spectral_irt.calibration import Calibration


class ConditionalLikelihood(NamedTuple):
    """How well a calibration predicts responses.

    Attributes
    ----------
    loglik : float
        The conditional log-likelihood.
    n_parameters : int
        Thresholds that were free: all but one, which fixes the origin; of a rating scale its locations and offsets;
        with anchors those that are not anchored.
    n_persons : int
        Persons who tell about difficulty: those with a score that is neither the lowest nor the highest possible.
    n_responses : int
    """

    loglik: float
    n_parameters: int
    n_persons: int
    n_responses: int

    @property
    def aic(self) -> float:
        """2 parameters - 2 log L: smaller is better."""
        return 2 * self.n_parameters - 2 * self.loglik

    @property
    def bic(self) -> float:
        """log(persons) parameters - 2 log L: smaller is better, and more parameters cost more than in AIC."""
        return float(np.log(self.n_persons)) * self.n_parameters - 2 * self.loglik


def conditional_likelihood(study: AnalysisOfPeople) -> ConditionalLikelihood:
    calibration, responses = study.calibration, study.responses
    if study.facets:
        raise OptionError("the conditional likelihood of ratings with facets is not offered.")
    if not calibration.known.all():
        without = calibration.labels[~calibration.known]
        raise DesignError(
            f"{count(len(without), 'item')} without an estimate: {listed(without)}. "
            "Drop them before you compare likelihoods."
        )
    point = ExactLikelihood(responses).at(calibration.thresholds)
    informative = int(responses.informative.sum())
    return ConditionalLikelihood(float(point.loglik), n_free(calibration), informative, responses.n_responses)


def n_free(calibration: Calibration) -> int:
    """How many parameters a calibration has that were not fixed."""
    layout = calibration.layout
    if calibration.anchored.any():
        return int((~calibration.anchored[layout.item]).sum())
    if calibration.scale_of_item is None:
        return layout.n_entries - 1
    _, first_items = np.unique(calibration.scale_of_item, return_index=True)
    return layout.n_items - 1 + int((layout.max_score[first_items] - 1).sum())
