"""The rating scale model by the spectral estimator's likelihood: a linear design of locations and common offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.estimators.base import Estimate, Tell
from spectral_irt.estimators.estimable import centered, weights_finding
from spectral_irt.estimators.linear_design import Groups, RatingScale
from spectral_irt.estimators.spectral import Spectral


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralRatingScale(RatingScale, Spectral):
    """The rating scale model by conditional likelihood: difficulties, and category offsets that all items share.

    beta_ik = delta_i + tau_k = (A eta)_ik: a linear design, by Newton's steps for eta. No threshold needs an estimate
    by itself, so that a category that some items never saw does no harm.

    Parameters
    ----------
    groups : mapping from item to group, or a label for each item, optional
        Items with a rating scale of their own; one scale for all by default.
    unused : "keep", "collapse" or "error"
        What becomes of categories that nobody used, where `fit` is given a table. "keep" (default): an item has the
        categories of its group.
    max_iter : int
        Most Newton steps.
    threads
        As for `SpectralPartialCredit`.

    Attributes
    ----------
    difficulty_, se_ : float arrays
        delta_i; mean zero.
    offsets_ : columns
        tau_k of every group: `group, category, offset, se`.
    thresholds_, threshold_se_ : float arrays

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> fit = SpectralRatingScale().fit(simulate.rating_scale(800, 6, categories=4, seed=1).responses)
    >>> fit.offsets_["offset"].round(0).tolist()
    [-1.0, 0.0, 1.0]
    """

    marginal: ClassVar[str] = "MarginalRatingScale"

    groups: Groups = None
    unused: str = "keep"
    max_iter: int = 30
    threads: int | None = None

    def _of_thresholds(self, responses: Responses, tell: Tell, anchors: Any, weights: Floats | None) -> Estimate:
        from spectral_irt.estimators.linear_fit import design_fit

        if anchors is not None:
            raise OptionError("a rating scale has no anchors; anchor the items of a partial credit model.")
        kept, made = self._scaled(responses)
        how: dict[str, Any] = {"regularization": 0, "se": "dense", "max_iter": self.max_iter, "tell": tell}
        result = design_fit(kept.responses, made, weights=weights, **how)
        matrix = None if result.covariance is None else made.matrix @ (made.matrix @ result.covariance).T
        beta, matrix = centered(kept.responses.thresholds, made.matrix @ result.eta, matrix)
        findings = result.findings() + ([] if weights is None else [weights_finding(weights)])
        found = beta, result.errors_of(made.matrix), result.found.evaluations, result.found.move
        return kept.estimate(*found, covariance=matrix, se_method="dense", findings=findings)
