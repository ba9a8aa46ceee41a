"""What is known of the joint errors of a calibration's difficulties, whatever form it is kept in.

- A fitted estimator has its covariance matrix (up to 2,000 items), and a calibration that of up to 25 items.
- A bank keeps the information matrix of its answers (up to 2,000 items). Its inverse is the covariance under the model,
  here in proportion to the bank's own standard errors. With anchors, their errors are passed on to the other items.
- Anything else has standard errors only: the errors then count as independent before centering (`joint_errors.py`), or
  as independent where the difficulties are not centered.

A bank that was linked before carries the error of that link in its standard errors: b_i + shift has the covariance
V + u 1' + 1 u' with V that of the answers alone, so that u = (se^2 - diag V) / 2, and a chain of links adds up its
errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.bank.components import on_scale
from spectral_irt.bank.ordered_bank import OrderedBank
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.chain.prior import fading
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import label_array
from spectral_irt.data.responses import Labels
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import OptionError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.joint_errors import JointErrors, known_errors

LINKED = "linked"  # the finding of a bank that was brought to another's scale
KINDS = {
    "covariance": "covariance matrix",
    "information": "information matrix",
    "independent": "standard errors only",
    "none": "no standard errors",
}


@dataclass(frozen=True, eq=False)
class Side:
    """The items of a calibration that have an estimate of their own, or an anchor, on its scale.

    Attributes
    ----------
    items, difficulty : labels, float array
    errors : JointErrors
    kind : "covariance", "information", "independent" or "none"
        What the errors were taken from.
    scale : Scale
    base, size, level : labels, int arrays
        Of items with several thresholds, which are entries of their own: whose each is, how many that has, and which of
        them it is, from 1.
    """

    items: Labels
    difficulty: Floats
    errors: JointErrors
    kind: str
    scale: Scale
    base: Labels
    size: Ints
    level: Ints

    @classmethod
    def of(cls, given: Bank | Calibration | RaschEstimator) -> Side:
        made = calibration_of(given)
        usable = made.known & on_scale(made.status)
        if not made.layout.binary:
            return cls._of_steps(given, made, usable)
        errors, kind = errors_of(given)
        labels = made.labels[usable]
        one = np.ones(len(labels), dtype=np.int64)
        return cls(labels, made.difficulty[usable], errors.take(usable), kind, made.scale, labels, one, one)

    @classmethod
    def _of_steps(cls, given: Any, made: Calibration, usable: NDArray[np.bool_]) -> Side:
        """The thresholds of these items, one by one."""
        steps, chosen = made.layout, usable[made.layout.item]
        errors, kind = errors_of(given)
        labels, item = step_labels(made)[chosen], steps.item[chosen]
        entries = (made.labels[item], steps.max_score[item], steps.level[chosen])
        return cls(labels, made.thresholds[chosen], errors.take(chosen), kind, made.scale, *entries)

    def take(self, chosen: NDArray[np.bool_]) -> Side:
        """Some of the entries."""
        return Side(
            self.items[chosen],
            self.difficulty[chosen],
            self.errors.take(chosen),
            self.kind,
            self.scale,
            self.base[chosen],
            self.size[chosen],
            self.level[chosen],
        )


def errors_of(given: Bank | Calibration | RaschEstimator) -> tuple[JointErrors, str]:
    """Of all difficulties, or thresholds, of a bank or a calibration; and what they were taken from."""
    if isinstance(given, OrderedBank):
        return errors_of_steps(given)
    if isinstance(given, Bank):
        return errors_of_bank(given)
    made = calibration_of(given)
    if not made.layout.binary:
        return _of_fit(given, made, made.thresholds, made.threshold_se)
    return _of_fit(given, made)


def step_labels(made: Calibration) -> Labels:
    """What thresholds are called: an item with one threshold as it is, others "item [2]"."""
    steps = made.layout
    named = zip(
        made.labels[steps.item].tolist(), steps.level.tolist(), steps.max_score[steps.item].tolist(), strict=True
    )
    return label_array([label if most == 1 else f"{label} [{level}]" for label, level, most in named])


def _of_fit(
    given: Any, made: Calibration, values: Floats | None = None, se: Floats | None = None
) -> tuple[JointErrors, str]:
    matrix = made.covariance if values is None else None
    form = getattr(given, "covariance", None)
    if matrix is None and callable(form):
        try:
            matrix = form()
        except OptionError:  # none was kept
            matrix = None
    if values is not None and se is not None:
        return known_errors(values, se, matrix, made.layout.averaging())
    se = np.where(made.anchored, made.further.get("anchor_se", np.nan), made.se)
    return known_errors(made.difficulty, se, matrix)


def errors_of_steps(bank: OrderedBank) -> tuple[JointErrors, str]:
    """Of all thresholds of a bank: by its information matrix where it has one, in proportion to its standard errors."""
    se = np.where(np.isfinite(bank.threshold_se), bank.threshold_se, 0.0)
    linked = any(finding.code == LINKED for finding in bank.findings)
    if bank.step_matrix is None or bank.anchored.any():
        return known_errors(bank.thresholds, bank.threshold_se, None, Thresholds(bank.steps.max_score).averaging())
    told = np.flatnonzero(np.isfinite(bank.thresholds) & (np.diag(bank.step_matrix) > 0))
    full = np.zeros_like(bank.step_matrix)
    inner = bank.step_matrix[np.ix_(told, told)]
    try:
        inverse = np.linalg.inv(inner + np.trace(inner) / len(inner) ** 2) if len(told) else inner
    except np.linalg.LinAlgError:
        return known_errors(bank.thresholds, bank.threshold_se, None, Thresholds(bank.steps.max_score).averaging())
    weight = Thresholds(bank.steps.max_score).averaging()[told]
    weight = weight / weight.sum()
    cross = inverse @ weight
    full[np.ix_(told, told)] = inverse - cross[:, None] - cross[None, :] + weight @ cross
    variance = np.diag(full)
    if linked:
        return JointErrors(np.zeros(len(se)), (se**2 - variance) / 2, full), "information"
    good = (variance > 0) & (se > 0)
    ratio = np.where(good, se / np.sqrt(np.where(good, variance, 1.0)), 1.0)
    return JointErrors.dense(ratio[:, None] * full * ratio), "information"


def errors_of_bank(bank: Bank) -> tuple[JointErrors, str]:
    se = np.where(np.isfinite(bank.se), bank.se, 0.0)
    linked = any(finding.code == LINKED for finding in bank.findings)
    under_model = _under_model(bank) if bank.matrix is not None else None
    if under_model is None:
        if not linked or bank.anchored.any():
            return known_errors(bank.difficulty, bank.se, None)
        total = bank.information + _prior_precisions(bank)
        told = bank.known & (total > 0)
        own = np.zeros(len(se))
        own[told] = 1 / total[told]
        found = JointErrors.centered(own)
        return JointErrors(found.own, found.common + (se**2 - found.variance) / 2), "independent"
    variance = np.diag(under_model)
    if linked:
        return JointErrors(np.zeros(len(se)), (se**2 - variance) / 2, under_model), "information"
    free = ~bank.anchored & (variance > 0) & (se > 0)
    ratio = np.where(free, se / np.sqrt(np.where(free, variance, 1.0)), 1.0)
    if bank.anchored.any():  # their errors, which `se` does not have, are in the variance
        ratio = np.ones(len(se))
    return JointErrors.dense(ratio[:, None] * under_model * ratio), "information"


def _under_model(bank: Bank) -> Floats | None:
    """Covariance of all items by the information matrix; None where it is singular."""
    assert bank.matrix is not None
    alpha = _prior_precisions(bank)
    told = bank.known & (np.diag(bank.matrix) + alpha > 0)
    free, fixed = np.flatnonzero(told & ~bank.anchored), np.flatnonzero(bank.known & bank.anchored)
    full = np.zeros((bank.n_items, bank.n_items))
    full[fixed, fixed] = np.where(np.isfinite(bank.se[fixed]), bank.se[fixed], 0.0) ** 2
    if not len(free):
        return full
    try:
        inside = _model_covariance(bank.matrix[np.ix_(free, free)], alpha[free], grounded=len(fixed) > 0)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inside).all() or (np.diag(inside) <= 0).any():
        return None
    follow = -inside @ bank.matrix[np.ix_(free, fixed)]  # how free items move with the anchors
    full[np.ix_(free, fixed)] = follow * full[fixed, fixed]
    full[np.ix_(fixed, free)] = full[np.ix_(free, fixed)].T
    full[np.ix_(free, free)] = inside + full[np.ix_(free, fixed)] @ follow.T
    return full


def _prior_precisions(bank: Bank) -> Floats:
    """What the prior adds to the information on each item."""
    return bank.prior_precision * fading(bank.information, on_scale(bank.status), bank.prior_precision)


def _model_covariance(information: Floats, precision: Floats, *, grounded: bool) -> Floats:
    """Covariance of the difficulties under the model, from the whole matrix; centered unless the scale is grounded."""
    full = information + np.diag(precision)
    if not (grounded or precision.any()):  # nothing has a say on a common shift
        full = full + np.trace(information) / len(full) ** 2
    covariance = np.asarray(np.linalg.inv(full), dtype=float)
    if not grounded:
        covariance -= covariance.mean(axis=0)
        covariance -= covariance.mean(axis=1)[:, None]
    return covariance
