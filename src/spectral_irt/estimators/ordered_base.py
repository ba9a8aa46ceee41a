"""What the estimators of ordered answers share: `fit`, and the calibration it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.chain.regularization import Regularization
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import Mask, check_usable
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import OptionError, listed
from spectral_irt.estimators.base import KEEP_COVARIANCE, SMALL_ALGEBRA, RaschEstimator, Tell
from spectral_irt.estimators.logged import LoggedFit
from spectral_irt.numerics import fixed

OUT_OF_ORDER = 1.96  # standard errors beyond which a threshold below the one before is more than chance


@dataclass(frozen=True, eq=False)
class StepEstimate:
    """What a method found, one number per threshold, in the order of the responses.

    Attributes
    ----------
    thresholds, se, location_se : float arrays
        Per threshold, and per item; NaN without an estimate.
    covariance : float array, optional
        Of the thresholds; NaN without an estimate.
    status : array of str
        A word about each item.
    The others are as in `Estimate`.
    """

    thresholds: Floats
    se: Floats
    location_se: Floats
    status: NDArray[Any]
    n_iter: int
    residual: float
    covariance: Floats | None = None
    loglik: float | None = None
    findings: tuple[Finding, ...] = ()
    regularization: Regularization | None = None
    se_method: str | None = None
    solver: str | None = None
    contraction: float | None = None
    further: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def centered(steps: Thresholds, thresholds: Floats, covariance: Floats | None) -> tuple[Floats, Floats | None]:
    """Thresholds whose items have the mean location zero, and their covariance."""
    weight = steps.averaging()
    beta = thresholds - weight @ thresholds
    if covariance is None:
        return beta, None
    cross = covariance @ weight
    return beta, covariance - cross[:, None] - cross[None, :] + weight @ cross


def location_errors(steps: Thresholds, covariance: Floats) -> Floats:
    """Standard error of the mean of each item's thresholds."""
    out = np.empty(steps.n_items)
    for k, (first, count) in enumerate(zip(steps.first.tolist(), steps.max_score.tolist(), strict=True)):
        out[k] = covariance[first : first + count, first : first + count].sum() / count**2
    return np.sqrt(np.maximum(out, 0))


def spread(values: Floats, mask: Mask) -> Floats:
    """NaN where something was left out."""
    full = np.full(len(mask), np.nan)
    full[mask] = values
    return full


def spread_matrix(matrix: Floats, mask: Mask) -> Floats:
    if mask.all():
        return matrix
    full = np.full((len(mask), len(mask)), np.nan)
    full[np.ix_(mask, mask)] = matrix
    return full


def as_ordered(data: Any, unused: str = "collapse", groups: Any = None) -> Responses:
    """What the `fit` of an estimator of ordered answers makes of its argument."""
    return as_responses(data, ordered=True, unused=unused, groups=groups)


class OrderedEstimator(RaschEstimator):
    """Base of the estimators of ordered answers; see `SpectralPartialCredit` for the one to use."""

    calibration_: Calibration
    unused: str

    def fit(self, data: Any, y: object = None, *, progress: Tell | None = None) -> Self:
        """Calibrate the items.

        Parameters
        ----------
        data : Responses, 2-D array, sparse matrix or dataframe
            One row per person, one column per item; whole numbers from 0, NaN or None not answered. Right and wrong
            answers (`Responses`) are items with one threshold.
        y : ignored
        progress : callable, optional
            Told in a few words what is going on.
        """
        return self._fitted(data, progress)

    def _fitted(self, data: Any, progress: Tell | None, **design: Any) -> Self:
        self._check_numbers()
        responses = self._threaded(as_ordered(data, self.unused))
        check_usable(responses)
        logged = LoggedFit(progress)
        small = one_blas_thread() if responses.thresholds.n_entries <= SMALL_ALGEBRA else nullcontext()
        with small:
            found = self._estimate_steps(responses, logged.tell, **design)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.calibration_ = self._ordered_calibration(responses, found)
        self.covariance_ = None
        if found.covariance is not None and len(found.covariance) <= KEEP_COVARIANCE:
            self.covariance_ = fixed(found.covariance)
        for name, value in found.extra.items():
            setattr(self, f"{name}_", fixed(value) if isinstance(value, np.ndarray) else value)
        logged.done(responses, self.calibration_)
        return self

    def _estimate_steps(self, responses: Responses, tell: Tell, **design: Any) -> StepEstimate:
        raise NotImplementedError

    def _ordered_calibration(self, responses: Responses, found: StepEstimate) -> Calibration:
        with np.errstate(divide="ignore"):
            information = np.nan_to_num(1 / found.location_se**2, posinf=0.0)
        return Calibration(
            labels=responses.items,
            thresholds=found.thresholds,
            threshold_se=found.se,
            location_se=found.location_se,
            layout=responses.thresholds,
            category_n=responses.category_counts,
            codes=responses.category_codes(),
            status=found.status,
            n=responses.item_counts,
            score=responses.item_scores,
            item_information=information,
            prior=found.regularization,
            findings=responses.notes + tuple(found.findings) + out_of_order(responses, found),
            provenance=self._provenance(found),
            further=found.further,
            frame_kind=responses.frame_kind,
        )

    @property
    def thresholds_(self) -> Floats:
        """Item after item; larger = harder; NaN without an estimate."""
        return self._learned.thresholds

    @property
    def threshold_se_(self) -> Floats:
        return self._learned.threshold_se

    @property
    def n_thresholds_(self) -> Any:
        return self._learned.layout.max_score

    def covariance(self) -> Floats:
        """Covariance matrix of the thresholds, on the scale whose mean location is zero; NaN without an estimate."""
        matrix: Floats | None = self.covariance_ if self._learned is not None else None
        if matrix is None:
            raise OptionError(
                f"this fit kept no covariance matrix (standard errors: {self.se_method_}); use se_ instead."
            )
        return matrix

    def analyse(self, responses: Any, **options: Any) -> Any:
        """The calibration together with responses, those it was fitted to or others: people, fit, files."""
        from spectral_irt.analysis.ordered_analysis import OrderedAnalysis

        answers = responses if isinstance(responses, Responses) else as_ordered(responses, "keep")
        self._learned  # noqa: B018  # or the error that nothing was fitted
        return OrderedAnalysis(self.calibration_, self._threaded(answers), **options)

    def predict_proba(self, abilities: Any, items: Any = None) -> Any:
        """The expected answer, abilities x items; see `Calibration.category_probability` for each category."""
        return self.calibration_.expected_score(abilities, items)


def out_of_order(responses: Responses, found: StepEstimate) -> tuple[Finding, ...]:
    """The finding that a threshold lies below the one before it, if any does."""
    steps, beta = responses.thresholds, found.thresholds
    upper = np.flatnonzero(steps.below)
    step = beta[upper] - beta[upper - 1]
    disordered = step < 0
    if not disordered.any():
        return ()
    if found.covariance is not None:
        c = found.covariance
        variance = c[upper, upper] + c[upper - 1, upper - 1] - 2 * c[upper, upper - 1]
    else:
        variance = found.se[upper] ** 2 + found.se[upper - 1] ** 2
    beyond = step < -OUT_OF_ORDER * np.sqrt(np.maximum(variance, 0))
    items = responses.items[np.unique(steps.item[upper[disordered]])]
    sure = responses.items[np.unique(steps.item[upper[beyond]])]
    many = f"{len(items):,} items have" if len(items) != 1 else "1 item has"
    chance = f"; in {len(sure):,} of them by more than chance ({listed(sure)})" if len(sure) else "; it may be chance"
    return (
        Finding(
            "thresholds_out_of_order",
            "warning" if len(sure) else "note",
            f"{many} a threshold below the one before it: {listed(items)}{chance}.",
            "A category between them is nowhere the most likely answer. The model allows that; look at whether people "
            "use the category as meant, or join it with a neighbor.",
            tuple(items.tolist()),
        ),
    )
