"""What is known of the joint errors of a calibration's thresholds.

A fitted estimator has its covariance matrix (up to 2,000 thresholds), and a calibration that of up to 25. A bank
has the information matrix of its responses (up to 2,000 thresholds): its inverse is the covariance under the model,
here in proportion to the bank's own standard errors; errors of anchors are passed on. Anything else has standard errors
only, of independent errors before centering (`joint_errors.py`). A bank that was linked before has the error of that
link in its standard errors: b_i + shift has the covariance V + u 1' + 1 u' with V that of the responses alone, so that
u = (se^2 - diag V) / 2, and a chain of links adds up its errors.

Links and equating take a `Side` for each calibration; anchors and drift take the errors (`errors_of`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.build import location_errors, threshold_errors
from spectral_irt.bank.components import numbered_from, parts_before
from spectral_irt.bank.evidence import centered_on_parts
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.chain.prior import share_of_prior
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.errors import OptionError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.joint_errors import JointErrors, errors_of_thresholds
from spectral_irt.numerics import centered_inverse

LINKED = "linked"  # the finding of a bank that was brought to another's scale
KINDS = {
    "covariance": "covariance matrix",
    "information": "information matrix",
    "independent": "standard errors only",
    "none": "no standard errors",
}


class KnownErrors(NamedTuple):
    """Joint errors, and what they were taken from: a key of `KINDS`."""

    errors: JointErrors
    kind: str


@dataclass(frozen=True, eq=False)
class Side:
    """The thresholds of a calibration that have an estimate of their own, or an anchor, on its scale.

    `kind` is what the errors were taken from; `item`, `size` and `level` say whose threshold each is, how many the item
    has, and which of them it is, from 1; `anchored` whether it was given.
    """

    labels: Labels
    threshold: Floats
    errors: JointErrors
    kind: str
    scale: Scale
    item: Labels
    size: Ints
    level: Ints
    anchored: NDArray[np.bool_]

    @classmethod
    def of(cls, source: Bank | Calibration | RaschEstimator) -> Side:
        calibration = calibration_of(source)
        layout = calibration.layout
        measured = calibration.measured[layout.item]
        joint = errors_of(source)
        item = layout.item[measured]
        return cls(
            labels=threshold_labels(calibration)[measured],
            threshold=calibration.thresholds[measured],
            errors=joint.errors.take(measured),
            kind=joint.kind,
            scale=calibration.scale,
            item=calibration.labels[item],
            size=layout.max_score[item],
            level=layout.level[measured],
            anchored=calibration.anchored[item],
        )

    def take(self, chosen: NDArray[np.bool_]) -> Side:
        """Some of the thresholds."""
        return replace(
            self,
            labels=self.labels[chosen],
            threshold=self.threshold[chosen],
            errors=self.errors.take(chosen),
            item=self.item[chosen],
            size=self.size[chosen],
            level=self.level[chosen],
            anchored=self.anchored[chosen],
        )


def threshold_labels(calibration: Calibration) -> Labels:
    """What thresholds are called: an item with one threshold as it is, others "item [2]"."""
    layout = calibration.layout
    if layout.binary:
        return calibration.labels
    sizes = layout.max_score[layout.item].tolist()
    labels = calibration.labels[layout.item].tolist()
    return label_array(
        [
            label if size == 1 else f"{label} [{level}]"
            for label, level, size in zip(labels, layout.level.tolist(), sizes, strict=True)
        ]
    )


def errors_of(source: Bank | Calibration | RaschEstimator) -> KnownErrors:
    """Of all thresholds of a bank or a calibration; and what they were taken from."""
    if isinstance(source, Bank):
        return errors_of_bank(source)
    calibration = calibration_of(source)
    return KnownErrors(
        *errors_of_thresholds(
            calibration.thresholds,
            threshold_errors(calibration),
            _covariance_matrix(source, calibration),
            calibration.layout,
            location_errors(calibration),
        )
    )


def _covariance_matrix(source: Calibration | RaschEstimator, calibration: Calibration) -> Floats | None:
    """Of the thresholds, as the calibration or its estimator has it; None where neither does."""
    if calibration.threshold_covariance is not None:
        return calibration.threshold_covariance
    covariance = getattr(source, "covariance", None)
    if not callable(covariance):
        return None
    try:
        matrix: Floats | None = covariance()
    except OptionError:  # none was kept
        return None
    return matrix


def errors_of_bank(bank: Bank) -> KnownErrors:
    """By its information matrix where it has one, in proportion to its standard errors."""
    calibration = bank.calibration
    is_linked = any(finding.code == LINKED for finding in calibration.findings)
    covariance = None
    if bank.evidence.matrix is not None:
        covariance = _under_model(bank, bank.evidence.matrix)
    if covariance is not None:
        return KnownErrors(_errors_by_matrix(bank, covariance, is_linked), "information")
    if is_linked and not calibration.anchored.any():
        return KnownErrors(_errors_of_linked(bank), "independent")
    return KnownErrors(
        *errors_of_thresholds(
            calibration.thresholds, calibration.threshold_se, None, calibration.layout, calibration.se
        )
    )


def _finite_se(calibration: Calibration) -> Floats:
    """Standard errors of thresholds, 0 where there is none."""
    return np.where(np.isfinite(calibration.threshold_se), calibration.threshold_se, 0.0)


def _errors_by_matrix(bank: Bank, covariance: Floats, is_linked: bool) -> JointErrors:
    """The covariance under the model, in proportion to the standard errors of the bank; for a linked one with what its
    standard errors have beyond the model's as the error of the link."""
    calibration = bank.calibration
    se = _finite_se(calibration)
    variance = np.diag(covariance)
    if is_linked:
        return JointErrors(np.zeros(len(se)), (se**2 - variance) / 2, covariance)
    ratio = np.ones(len(se))
    if not calibration.anchored.any():  # else the variance has the errors of anchors, which `se` does not have
        proportional = (variance > 0) & (se > 0)
        model_se = np.sqrt(np.where(proportional, variance, 1.0))
        ratio = np.where(proportional, se / model_se, 1.0)
    return JointErrors.dense(ratio[:, None] * covariance * ratio)


def _errors_of_linked(bank: Bank) -> JointErrors:
    """Of a linked bank without a matrix: independent errors by the information, and the error of the link."""
    calibration = bank.calibration
    precision = bank.evidence.information + _prior_precisions(bank)
    informed = np.isfinite(calibration.thresholds) & (precision > 0)
    variance = np.zeros(len(precision))
    variance[informed] = 1 / precision[informed]
    unlinked = JointErrors.of_centered(variance)
    of_link = (_finite_se(calibration) ** 2 - unlinked.variance) / 2
    return JointErrors(unlinked.diagonal, unlinked.common + of_link)


def _under_model(bank: Bank, information: Floats) -> Floats | None:
    """Covariance of all thresholds by the information matrix; None where it is singular."""
    calibration = bank.calibration
    item = calibration.layout.item
    has_difficulty = calibration.known[item]
    anchored = calibration.anchored[item]
    precision = _prior_precisions(bank)
    informed = has_difficulty & (np.diag(information) + precision > 0)
    free = np.flatnonzero(informed & ~anchored)
    fixed = np.flatnonzero(has_difficulty & anchored)
    covariance = np.zeros_like(information)
    covariance[fixed, fixed] = _finite_se(calibration)[fixed] ** 2
    if not len(free):
        return covariance
    parts = parts_before(
        information,
        calibration.layout,
        bank.evidence.link_group,
        known=calibration.known,
        loose=np.isinf(calibration.se),
    )
    has_anchor = np.isin(parts, parts[calibration.anchored])
    floating = np.where(has_anchor, -1, numbered_from(calibration.known, parts))[item]
    weight = 1 / calibration.layout.max_score[item]
    try:
        of_free = _model_covariance(information[np.ix_(free, free)], precision[free], weight[free], floating[free])
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(of_free).all() or (np.diag(of_free) <= 0).any():
        return None
    follow = -of_free @ information[np.ix_(free, fixed)]  # how free thresholds move with the anchors
    with_fixed = follow * covariance[fixed, fixed]
    covariance[np.ix_(free, fixed)] = with_fixed
    covariance[np.ix_(fixed, free)] = with_fixed.T
    covariance[np.ix_(free, free)] = of_free + with_fixed @ follow.T
    return covariance


def _prior_precisions(bank: Bank) -> Floats:
    """What the prior adds to the information on each threshold."""
    calibration = bank.calibration
    evidence = bank.evidence
    alpha = evidence.prior_precision if calibration.layout.binary else evidence.offset_precision
    if evidence.fixed_prior:
        return np.full(calibration.layout.n_entries, alpha)
    measured = calibration.measured[calibration.layout.item]
    return alpha * share_of_prior(evidence.information, measured, alpha)


def _model_covariance(information: Floats, precision: Floats, weight: Floats, floating: Ints) -> Floats:
    """Covariance of thresholds under the model, each `floating` part (-1: none) centered: the mean of the locations is
    zero, so that a threshold has the `weight` one over the number of its item's."""
    full = information + np.diag(precision)
    if precision.any():
        inverse = np.linalg.inv(full)
    else:
        inverse = centered_inverse(full, floating)
    return centered_on_parts(np.asarray(inverse, dtype=float), weight, floating)
