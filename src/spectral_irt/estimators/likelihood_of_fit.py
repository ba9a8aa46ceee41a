"""The conditional likelihood of the responses that a fit was made of, with AIC and BIC: `fit.loglik_`, `fit.aic_`.

The steps of a fit need only the derivative of the likelihood; the likelihood itself costs a fifth to a third of a fit
more, so that it is computed when it is asked for. A fit keeps no responses. It remembers which ones they were, without
keeping them alive, and looks at them again.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.errors import SpectralIrtError
from spectral_irt.estimators.base import RaschEstimator

if TYPE_CHECKING:
    from spectral_irt.analysis.likelihood import ConditionalLikelihood

ATTRIBUTES = ("n_parameters_", "aic_", "bic_")
INSTEAD = "`fit.analyse(responses).likelihood()` has it, with AIC and BIC"

# By calibration, so that a copy, a pickle or the next fit knows nothing of them.
_data_of: weakref.WeakKeyDictionary[Calibration, weakref.ref[Any]] = weakref.WeakKeyDictionary()
_likelihood_of: weakref.WeakKeyDictionary[Calibration, ConditionalLikelihood] = weakref.WeakKeyDictionary()


class LikelihoodOfFit(RaschEstimator):
    """An estimator whose fit has a conditional likelihood, also where it was not computed on the way."""

    if TYPE_CHECKING:
        n_parameters_: int
        aic_: float
        bic_: float
    else:

        def __getattr__(self, name: str) -> Any:
            """What the instance does not have: of marginal likelihood, for adaptive designs, it has its own."""
            if name in ATTRIBUTES:
                return getattr(self._likelihood_of_fit(name), name.removesuffix("_"))
            result = getattr(type(self), name, None)
            if isinstance(result, property):  # which said why there is no such result, and says it again
                return result.fget(self)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def loglik_(self) -> float:  # type: ignore[override]
        """The conditional log-likelihood of the responses at the estimate; computed when it is first asked for."""
        computed = self._fitted_calibration.provenance.loglik
        if computed is not None:
            return computed
        return self._likelihood_of_fit("loglik_").loglik

    def __dir__(self) -> list[str]:
        offered = super().__dir__()
        if self.__sklearn_is_fitted__() and self._offers(ATTRIBUTES[0]):
            offered += [name for name in ATTRIBUTES if name not in offered]
        return offered

    def _remember(self, data: Any) -> None:
        try:
            _data_of[self.calibration_] = weakref.ref(data)
        except TypeError:  # a list, for one, cannot be referred to
            return

    def _offers(self, name: str) -> bool:
        if name not in ("loglik_", *ATTRIBUTES) or name in vars(self):
            return super()._offers(name)
        calibration = self._fitted_calibration
        if name == "loglik_" and calibration.provenance.loglik is not None:
            return True
        reference = _data_of.get(calibration)
        return reference is not None and reference() is not None and self._has_likelihood()

    def _likelihood_of_fit(self, name: str) -> ConditionalLikelihood:
        calibration = self._fitted_calibration
        likelihood = _likelihood_of.get(calibration)
        if likelihood is None:
            likelihood = _likelihood_of[calibration] = self._computed_likelihood(name)
        return likelihood

    def _computed_likelihood(self, name: str) -> ConditionalLikelihood:
        calibration = self._fitted_calibration
        no = f"{type(self).__name__} has no {name}"
        if not self._has_likelihood():
            raise AttributeError(f"{no} of ratings, weighted persons, items without an estimate, or adaptive designs.")
        reference = _data_of.get(calibration)
        data = None if reference is None else reference()
        if data is None:
            raise AttributeError(f"{no}, because the data it was fitted to are gone; {INSTEAD}.")
        try:
            study = self.analyse(data)
            same = np.array_equal(study.responses.item_counts, calibration.n)
            if not (same and np.array_equal(study.responses.item_scores, calibration.score)):
                raise AttributeError(f"{no}, because the data were changed since the fit; {INSTEAD}.")
            return study.likelihood()
        except SpectralIrtError as error:
            raise AttributeError(f"{no}: {error}") from error

    def _has_likelihood(self) -> bool:
        """Whether all items were estimated from the conditional likelihood of persons who count alike."""
        calibration = self._fitted_calibration
        if calibration.likelihood != "conditional" or calibration.facets is not None or "weighted_" in vars(self):
            return False
        return bool(calibration.known.all())
