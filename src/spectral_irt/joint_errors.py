"""The joint errors of many difficulties: a covariance matrix, or what stands in for it where there is none.

Difficulties are centered, so that their errors are correlated however independent the answers are. With independent
errors of variance v_i before centering, those of e_i - mean(e) over m items have the covariance

    V_ij = [i = j] v_i + u_i + u_j,   u_i = -v_i / m + sum(v) / (2 m^2),

which is exact to first order where everybody answers the same items, and never needs an m x m matrix. Where test forms
are connected by few items the errors have more in common than that, and only a matrix knows it.

Anchors, links, drift, equating and the comparison of groups take errors in this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.data.block import Floats, Ints, Mask, Thresholds
from spectral_irt.numerics import chosen_or_none, positive_inverse, safe_divide

CENTERED = 1e-6  # logits: a mean below this is one that was set to zero
MOST_IN_A_MATRIX = 2_000  # thresholds: 32 MB
LARGEST_CORRELATION = 0.9  # of the thresholds of an item, that is taken from standard errors


class Disagreement(NamedTuple):
    """Cochran's Q and its degrees of freedom; NaN and 0 where nothing is known of the errors."""

    statistic: float
    df: int


@dataclass(frozen=True, eq=False)
class JointErrors:
    """Covariance of the errors: matrix + diag(diagonal) + common 1' + 1 common'."""

    diagonal: Floats
    common: Floats
    matrix: Floats | None = None

    @classmethod
    def dense(cls, matrix: Floats) -> JointErrors:
        zeros = np.zeros(len(matrix))
        return cls(zeros, zeros, matrix)

    @classmethod
    def independent(cls, se: NDArray[Any]) -> JointErrors:
        return cls(se**2, np.zeros(len(se)))

    @classmethod
    def of_centered(cls, variance: Floats, weights: Floats | None = None) -> JointErrors:
        """Independent errors of these variances, after centering: their mean, by these weights, is zero."""
        w = _mean_weights(len(variance)) if weights is None else weights
        return cls(variance, -w * variance + (w**2 @ variance) / 2)

    @classmethod
    def after_centering(cls, se: Floats, weights: Floats | None = None) -> JointErrors:
        """The same, from the standard errors that the centered difficulties have.

        se_i^2 = v_i (1 - 2 w_i) + sum(w^2 v) is solved for v.

        >>> v = np.array([1.0, 2.0, 3.0])
        >>> JointErrors.after_centering(np.sqrt(JointErrors.of_centered(v).variance)).diagonal.round(12).tolist()
        [1.0, 2.0, 3.0]
        """
        w = _mean_weights(len(se)) if weights is None else weights
        if len(se) < 3 or w.max() >= 0.5:  # no v has these errors after centering
            return cls.independent(se)
        factor = 1 - 2 * w
        variance_of_mean = (w**2 @ (se**2 / factor)) / (1 + (w**2 / factor).sum())  # sum(w^2 v)
        return cls.of_centered(np.maximum((se**2 - variance_of_mean) / factor, 0.0), weights)

    @property
    def variance(self) -> Floats:
        """Of each error."""
        variance = self.diagonal + 2 * self.common
        if self.matrix is not None:
            variance = variance + np.diag(self.matrix)
        return np.maximum(variance, 0.0)

    def full(self) -> Floats:
        """The covariance as a matrix."""
        covariance = np.diag(self.diagonal) + self.common[:, None] + self.common
        if self.matrix is None:
            return covariance
        return covariance + self.matrix

    def times(self, w: Floats) -> Floats:
        """The covariance of every error with their combination w' e."""
        covariance = self.diagonal * w + self.common * w.sum() + self.common @ w
        if self.matrix is None:
            return covariance
        return covariance + self.matrix @ w

    def of(self, w: Floats) -> float:
        """Variance of the combination w' e."""
        return max(float(w @ self.times(w)), 0.0)

    def of_each(self, rows: Floats) -> Floats:
        """Variances of several combinations, one for each row of w."""
        variance = rows**2 @ self.diagonal + 2 * rows.sum(axis=1) * (rows @ self.common)
        if self.matrix is not None:
            variance += np.sum((rows @ self.matrix) * rows, axis=1)
        return np.maximum(variance, 0.0)

    def around(self, w: Floats) -> Floats:
        """Variance of e_i - w' e for every i: of errors around a weighted mean, where w adds to one."""
        with_mean = self.times(w)
        return np.maximum(self.variance - 2 * with_mean + max(float(w @ with_mean), 0.0), 0.0)

    def __add__(self, other: JointErrors) -> JointErrors:
        """Of the difference, or the sum, of two independent calibrations."""
        matrices = [each.matrix for each in (self, other) if each.matrix is not None]
        matrix = np.sum(matrices, axis=0) if matrices else None
        return JointErrors(self.diagonal + other.diagonal, self.common + other.common, matrix)

    def times_factor(self, factor: float) -> JointErrors:
        """Of factor * e."""
        square = factor**2
        matrix = None if self.matrix is None else square * self.matrix
        return JointErrors(square * self.diagonal, square * self.common, matrix)

    def take(self, chosen: Mask | Ints) -> JointErrors:
        """Of some of them, by position or mask."""
        place = np.arange(len(self.diagonal))[chosen]
        matrix = chosen_or_none(self.matrix, np.ix_(place, place))
        return JointErrors(self.diagonal[place], self.common[place], matrix)

    def of_group_means(self, group: Ints) -> JointErrors:
        """Of the means of groups of them."""
        w = np.zeros((group.max() + 1, len(group)))
        w[group, np.arange(len(group))] = (1 / np.bincount(group))[group]
        matrix = None if self.matrix is None else w @ self.matrix @ w.T
        return JointErrors(w**2 @ self.diagonal, w @ self.common, matrix)

    def disagreement(self, values: ArrayLike, chosen: Mask | None = None) -> Disagreement:
        """Cochran's Q of values that should be equal but for these errors.

        The smallest (x - c 1)' V^-1 (x - c 1) over all c, where a common error of all drops out; of the `chosen` values
        alone, if not of all.
        """
        x = np.asarray(values, dtype=float)
        part = np.ones(len(x), dtype=bool) if chosen is None else chosen
        k = int(part.sum())
        unknown = Disagreement(float("nan"), 0)
        if k < 2 or not self.variance[part].any():
            return unknown
        if self.matrix is None:
            if not (self.diagonal[part] > 0).all():
                return unknown
            weight = 1 / self.diagonal[part]
            return Disagreement(float(weight @ (x[part] - weight @ x[part] / weight.sum()) ** 2), k - 1)
        deviation = np.where(part, x - x[part].mean(), 0.0)
        try:
            if self._precision_of_all is not None:
                statistic = self._precision_of_all.statistic(deviation, part)
            else:
                statistic = float(deviation[part] @ np.linalg.solve(self._contrasts(part), deviation[part]))
        except np.linalg.LinAlgError:
            return unknown
        if not np.isfinite(statistic) or statistic < 0:
            return unknown
        return Disagreement(statistic, k - 1)

    def precision(self, chosen: Mask | None = None) -> float:
        """By how much Q grows, on average, for every unit of variance that is added to all (`chosen`) values."""
        part = np.ones(len(self.diagonal), dtype=bool) if chosen is None else chosen
        if self.matrix is None:
            weight = 1 / self.diagonal[part]
            return float(weight.sum() - (weight**2).sum() / weight.sum())
        if self._precision_of_all is not None:
            return self._precision_of_all.trace(part)
        v = self._contrasts(part)
        return float(np.trace(np.linalg.inv(v)) - (len(v) + 1) / np.trace(v))  # without that of the common error

    def _contrasts(self, chosen: Mask) -> Floats:
        """The covariance on contrasts, and on a common error of all, which drops out, the mean of its diagonal."""
        assert self.matrix is not None
        v = self.matrix[np.ix_(chosen, chosen)] + np.diag(self.diagonal[chosen])
        v = v - v.mean(axis=0)
        v = v - v.mean(axis=1)[:, None]
        return v + np.trace(v) / len(v) ** 2

    @cached_property
    def _precision_of_all(self) -> SharedPrecision | None:
        """What tests of many parts have in common; None where the covariance has no inverse."""
        assert self.matrix is not None
        covariance = self.matrix + np.diag(self.diagonal)
        inverse = positive_inverse(covariance + np.trace(covariance) / len(covariance) ** 2)
        if inverse is None:
            return None
        return SharedPrecision(inverse)


@dataclass(frozen=True, eq=False)
class SharedPrecision:
    """The inverse P of a covariance W to which a common error of all was added: Q of any part of the values follows
    from it, without another inverse of that size.

    Of the values U, the others R left out, the precision is G = W_UU^-1 = P_UU - P_UR P_RR^-1 P_RU. On contrasts, where
    the common error drops out, it is G - G 1 1' G / (1' G 1).
    """

    inverse: Floats

    @cached_property
    def inverse_squared(self) -> Floats:
        return self.inverse @ self.inverse

    def statistic(self, deviation: Floats, chosen: Mask) -> float:
        """Cochran's Q of the chosen ones, the others being zero."""
        ones = chosen.astype(float)
        weight = self._times(ones, ~chosen)
        return float(deviation @ self._times(deviation, ~chosen) - (weight @ deviation) ** 2 / (weight @ ones))

    def trace(self, chosen: Mask) -> float:
        """Of the precision of the chosen ones on contrasts: tr G = tr P - tr(P_RR^-1 (P P)_RR)."""
        left_out = np.flatnonzero(~chosen)
        trace_left_out = 0.0
        if len(left_out):
            square = np.ix_(left_out, left_out)
            trace_left_out = np.trace(np.linalg.solve(self.inverse[square], self.inverse_squared[square]))
        ones = chosen.astype(float)
        weight = self._times(ones, ~chosen)
        return float(np.trace(self.inverse) - trace_left_out - weight @ weight / (weight @ ones))

    def _times(self, v: Floats, left_out: Mask) -> Floats:
        """G v; v is zero for those left out, and so is the product."""
        image = self.inverse @ v
        if left_out.any():
            rows = self.inverse[left_out]
            image -= np.linalg.solve(rows[:, left_out], image[left_out]) @ rows
            image[left_out] = 0.0
        return image


def _mean_weights(n: int) -> Floats:
    return np.full(n, 1 / max(n, 1))


class KnownErrors(NamedTuple):
    """Errors, and by what they are known: a "covariance", else standard errors ("independent"), or "none"."""

    errors: JointErrors
    basis: str


def errors_of_thresholds(
    thresholds: Floats, se: Floats, matrix: Floats | None, layout: Thresholds, location_se: Floats
) -> KnownErrors:
    """`known_errors` of thresholds. Without a matrix, errors of one item go together as its location's says: taken for
    independent, they make a score on a form 1.3 times as uncertain as it is (12 items of 4 categories)."""
    if matrix is not None or layout.binary or layout.n_entries > MOST_IN_A_MATRIX or not np.nan_to_num(se).any():
        return known_errors(thresholds, se, matrix, layout.mean_weights())
    locations = known_errors(layout.mean(thresholds), location_se, None).errors
    # V_ij = [same item] B_i + u_i + u_j, with u as above of the locations, so that the block of an item is its own.
    blocks = blocks_of_errors(layout, se, location_se) - 2 * locations.common[:, None, None]
    item = layout.item
    level = layout.level - 1
    row, column = np.nonzero(item[:, None] == item)
    covariance = np.zeros((layout.n_entries, layout.n_entries))
    covariance[row, column] = blocks[item[row], level[row], level[column]]
    return KnownErrors(JointErrors(np.zeros(len(se)), locations.common[item], covariance), "independent")


def blocks_of_errors(layout: Thresholds, se: Floats, location_se: Floats) -> Floats:
    """The covariance of each item's thresholds, items x thresholds of one x thresholds of one, that agrees with their
    standard errors and with that of the location, by one correlation of all of them; 0 where an error is not known."""
    k = layout.max_score
    se_table = layout.table(np.where(np.isfinite(se), se, 0.0), 0.0)
    # (k se of the location)^2 = sum se_a^2 + r sum se_a se_b over a != b, solved for r
    sum_of_squares = (se_table**2).sum(axis=1)
    sum_of_products = se_table.sum(axis=1) ** 2 - sum_of_squares
    total = (k * np.where(np.isfinite(location_se), location_se, 0.0)) ** 2
    r = safe_divide(total - sum_of_squares, sum_of_products)
    r = np.clip(r, -LARGEST_CORRELATION / np.maximum(k - 1, 1), LARGEST_CORRELATION)[:, None, None]
    off_diagonal = r * se_table[:, :, None] * se_table[:, None, :]
    return off_diagonal + ((1 - r[:, 0]) * se_table**2)[:, :, None] * np.eye(layout.widest)


def known_errors(difficulty: Floats, se: Floats, matrix: Floats | None, weights: Floats | None = None) -> KnownErrors:
    """What is known of the errors of a calibration.

    Values whose mean is not zero were not centered, but rest on something else; of thresholds that mean is the one of
    the items' locations, by the weights of `Thresholds.mean_weights`.
    """
    if matrix is not None:
        lacking = ~np.isfinite(np.diag(matrix))
        covariance = np.where(lacking[:, None] | lacking, 0.0, matrix)
        covariance[lacking, lacking] = np.nan_to_num(se[lacking], posinf=0.0) ** 2
        return KnownErrors(JointErrors.dense(covariance), "covariance")
    has_error = np.isfinite(se)
    if not se[has_error].any():
        return KnownErrors(JointErrors.independent(np.zeros(len(se))), "none")
    estimated = np.isfinite(difficulty)
    w = np.ones(len(se)) if weights is None else weights
    mean = float(w[estimated] @ difficulty[estimated]) / w[estimated].sum()
    if abs(mean) >= CENTERED:
        errors = JointErrors.independent(se[has_error])
    elif weights is None:
        errors = JointErrors.after_centering(se[has_error])
    else:
        errors = JointErrors.after_centering(se[has_error], w[has_error] / w[has_error].sum())
    diagonal = np.zeros(len(se))
    common = np.zeros(len(se))
    diagonal[has_error] = errors.diagonal
    common[has_error] = errors.common
    return KnownErrors(JointErrors(diagonal, common), "independent")
