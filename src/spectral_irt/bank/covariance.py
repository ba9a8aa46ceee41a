"""What is known of the joint errors of a calibration's thresholds.

A fitted estimator has its covariance matrix (up to 2,000 thresholds), and a calibration that of up to 25. A bank
has the information matrix of its answers (up to 2,000 thresholds): its inverse is the covariance under the model, here
in proportion to the bank's own standard errors; errors of anchors are passed on. Anything else has standard errors
only, of independent errors before centering (`joint_errors.py`). A bank that was linked before has the error of that
link in its standard errors: b_i + shift has the covariance V + u 1' + 1 u' with V that of the answers alone, so that
u = (se^2 - diag V) / 2, and a chain of links adds up its errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.build import location_errors, threshold_errors
from spectral_irt.bank.components import numbered_from, parts_before
from spectral_irt.bank.evidence import centered_on_parts
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.chain.prior import fading
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.errors import OptionError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.joint_errors import JointErrors, errors_of_thresholds
from spectral_irt.numerics import centered_inverse

LINKED = "linked"  # the finding of a bank that was brought to another's scale
KINDS = {
    "covariance": "covariance matrix",
    "information": "information matrix",
    "independent": "standard errors only",
    "none": "no standard errors",
}


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
    def of(cls, given: Bank | Calibration | RaschEstimator) -> Side:
        made = calibration_of(given)
        layout = made.layout
        chosen = made.measured[layout.item]
        errors, kind = errors_of(given)
        item = layout.item[chosen]
        return cls(
            labels=threshold_labels(made)[chosen],
            threshold=made.thresholds[chosen],
            errors=errors.take(chosen),
            kind=kind,
            scale=made.scale,
            item=made.labels[item],
            size=layout.max_score[item],
            level=layout.level[chosen],
            anchored=made.anchored[item],
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


def threshold_labels(made: Calibration) -> Labels:
    """What thresholds are called: an item with one threshold as it is, others "item [2]"."""
    layout = made.layout
    if layout.binary:
        return made.labels
    sizes = layout.max_score[layout.item].tolist()
    named = zip(made.labels[layout.item].tolist(), layout.level.tolist(), sizes, strict=True)
    return label_array([label if size == 1 else f"{label} [{level}]" for label, level, size in named])


def errors_of(given: Bank | Calibration | RaschEstimator) -> tuple[JointErrors, str]:
    """Of all thresholds of a bank or a calibration; and what they were taken from."""
    if isinstance(given, Bank):
        return errors_of_bank(given)
    made = calibration_of(given)
    matrix, form = made.threshold_covariance, getattr(given, "covariance", None)
    if matrix is None and callable(form):
        try:
            matrix = form()
        except OptionError:  # none was kept
            matrix = None
    return errors_of_thresholds(made.thresholds, threshold_errors(made), matrix, made.layout, location_errors(made))


def errors_of_bank(bank: Bank) -> tuple[JointErrors, str]:
    """By its information matrix where it has one, in proportion to its standard errors."""
    made = bank.calibration
    se = np.where(np.isfinite(made.threshold_se), made.threshold_se, 0.0)
    anchored = made.anchored[made.layout.item]
    linked = any(finding.code == LINKED for finding in made.findings)
    under_model = _under_model(bank) if bank.evidence.matrix is not None else None
    if under_model is None:
        if not linked or anchored.any():
            return errors_of_thresholds(made.thresholds, made.threshold_se, None, made.layout, made.se)
        total = bank.evidence.information + _prior_precisions(bank)
        told = np.isfinite(made.thresholds) & (total > 0)
        own = np.zeros(len(se))
        own[told] = 1 / total[told]
        found = JointErrors.centered(own)
        return JointErrors(found.own, found.common + (se**2 - found.variance) / 2), "independent"
    variance = np.diag(under_model)
    if linked:
        return JointErrors(np.zeros(len(se)), (se**2 - variance) / 2, under_model), "information"
    free = ~anchored & (variance > 0) & (se > 0)
    ratio = np.where(free, se / np.sqrt(np.where(free, variance, 1.0)), 1.0)
    if anchored.any():  # their errors, which `se` does not have, are in the variance
        ratio = np.ones(len(se))
    return JointErrors.dense(ratio[:, None] * under_model * ratio), "information"


def _under_model(bank: Bank) -> Floats | None:
    """Covariance of all thresholds by the information matrix; None where it is singular."""
    made, matrix = bank.calibration, bank.evidence.matrix
    assert matrix is not None
    item, alpha = made.layout.item, _prior_precisions(bank)
    known = made.known[item]
    told = known & (np.diag(matrix) + alpha > 0)
    free, fixed = np.flatnonzero(told & ~made.anchored[item]), np.flatnonzero(known & made.anchored[item])
    full = np.zeros_like(matrix)
    full[fixed, fixed] = np.where(np.isfinite(made.threshold_se[fixed]), made.threshold_se[fixed], 0.0) ** 2
    if not len(free):
        return full
    parts = parts_before(matrix, made.layout, bank.evidence.link_group, made.known, np.isinf(made.se))
    floating = np.where(np.isin(parts, parts[made.anchored]), -1, numbered_from(made.known, parts))[item][free]
    weight = 1 / made.layout.max_score[item][free]
    try:
        inside = _model_covariance(matrix[np.ix_(free, free)], alpha[free], weight, floating)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inside).all() or (np.diag(inside) <= 0).any():
        return None
    follow = -inside @ matrix[np.ix_(free, fixed)]  # how free thresholds move with the anchors
    full[np.ix_(free, fixed)] = follow * full[fixed, fixed]
    full[np.ix_(fixed, free)] = full[np.ix_(free, fixed)].T
    full[np.ix_(free, free)] = inside + full[np.ix_(free, fixed)] @ follow.T
    return full


def _prior_precisions(bank: Bank) -> Floats:
    """What the prior adds to the information on each threshold."""
    made, kept = bank.calibration, bank.evidence
    alpha = kept.prior_precision if made.layout.binary else kept.offset_precision
    if kept.fixed_prior:
        return np.full(made.layout.n_entries, alpha)
    return alpha * fading(bank.evidence.information, made.measured[made.layout.item], alpha)


def _model_covariance(information: Floats, precision: Floats, weight: Floats, floating: Ints) -> Floats:
    """Covariance of thresholds under the model, each `floating` part (-1: none) centered: the mean of the locations is
    zero, so that a threshold has the `weight` one over the number of its item's."""
    full = information + np.diag(precision)
    inverse = np.linalg.inv(full) if precision.any() else centered_inverse(full, floating)
    return centered_on_parts(np.asarray(inverse, dtype=float), weight, floating)
