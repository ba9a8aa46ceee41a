"""The joint errors of many difficulties: a covariance matrix, or what stands in for it where there is none.

Difficulties are centered, so that their errors are correlated however independent the answers are. With independent
errors of variance v_i before centering, those of e_i - mean(e) over m items have the covariance

    V_ij = [i = j] v_i + u_i + u_j,   u_i = -v_i / m + sum(v) / (2 m^2),

which is exact to first order where everybody answers the same items, and never needs an m x m matrix. Where test forms
are connected by few items the errors have more in common than that, and only a matrix knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.numerics import positive_inverse

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class JointErrors:
    """Covariance of the errors: matrix + diag(own) + common 1' + 1 common'."""

    own: Floats
    common: Floats
    matrix: Floats | None = None

    @classmethod
    def dense(cls, matrix: Floats) -> JointErrors:
        nothing = np.zeros(len(matrix))
        return cls(nothing, nothing, matrix)

    @classmethod
    def independent(cls, se: NDArray[Any]) -> JointErrors:
        return cls(se**2, np.zeros(len(se)))

    @classmethod
    def centered(cls, variance: Floats, weights: Floats | None = None) -> JointErrors:
        """Independent errors of these variances, after centering: their mean, by these weights, is zero."""
        w = np.full(len(variance), 1 / len(variance)) if weights is None else weights
        return cls(variance, -w * variance + (w**2 @ variance) / 2)

    @classmethod
    def after_centering(cls, se: Floats, weights: Floats | None = None) -> JointErrors:
        """The same, from the standard errors that the centered difficulties have.

        se_i^2 = v_i (1 - 2 w_i) + sum(w^2 v) is solved for v.

        >>> v = np.array([1.0, 2.0, 3.0])
        >>> JointErrors.after_centering(np.sqrt(JointErrors.centered(v).variance)).own.round(12).tolist()
        [1.0, 2.0, 3.0]
        """
        w = np.full(len(se), 1 / max(len(se), 1)) if weights is None else weights
        if len(se) < 3 or w.max() >= 0.5:
            return cls.independent(se)
        rest = 1 - 2 * w
        common = (w**2 @ (se**2 / rest)) / (1 + (w**2 / rest).sum())
        return cls.centered(np.maximum((se**2 - common) / rest, 0.0), weights)

    @property
    def variance(self) -> Floats:
        """Of each error."""
        plain = self.own + 2 * self.common
        return np.maximum(plain if self.matrix is None else plain + np.diag(self.matrix), 0.0)

    def full(self) -> Floats:
        """The covariance as a matrix."""
        out = np.diag(self.own) + self.common[:, None] + self.common
        return out if self.matrix is None else out + self.matrix

    def times(self, w: Floats) -> Floats:
        """The covariance of every error with their combination w' e."""
        out = self.own * w + self.common * w.sum() + self.common @ w
        return out if self.matrix is None else out + self.matrix @ w

    def of(self, w: Floats) -> float:
        """Variance of the combination w' e."""
        return max(float(w @ self.times(w)), 0.0)

    def of_each(self, rows: Floats) -> Floats:
        """Variances of several combinations, one for each row of w."""
        out = rows**2 @ self.own + 2 * rows.sum(axis=1) * (rows @ self.common)
        if self.matrix is not None:
            out += np.sum((rows @ self.matrix) * rows, axis=1)
        return np.maximum(out, 0.0)

    def around(self, w: Floats) -> Floats:
        """Variance of e_i - w' e for every i: of errors around a weighted mean, where w adds to one."""
        with_mean = self.times(w)
        return np.maximum(self.variance - 2 * with_mean + max(float(w @ with_mean), 0.0), 0.0)

    def __add__(self, other: JointErrors) -> JointErrors:
        """Of the difference, or the sum, of two independent calibrations."""
        matrices = [each.matrix for each in (self, other) if each.matrix is not None]
        matrix = np.sum(matrices, axis=0) if matrices else None
        return JointErrors(self.own + other.own, self.common + other.common, matrix)

    def scaled(self, factor: float) -> JointErrors:
        """Of factor * e."""
        f = factor**2
        return JointErrors(f * self.own, f * self.common, None if self.matrix is None else f * self.matrix)

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> JointErrors:
        """Of some of them, by position or mask."""
        place = np.arange(len(self.own))[chosen]
        matrix = None if self.matrix is None else self.matrix[np.ix_(place, place)]
        return JointErrors(self.own[place], self.common[place], matrix)

    def averaged(self, group: NDArray[np.int64]) -> JointErrors:
        """Of the means of groups of them."""
        w = np.zeros((group.max() + 1, len(group)))
        w[group, np.arange(len(group))] = (1 / np.bincount(group))[group]
        return JointErrors(w**2 @ self.own, w @ self.common, None if self.matrix is None else w @ self.matrix @ w.T)

    def disagreement(self, values: ArrayLike, chosen: Mask | None = None) -> tuple[float, int]:
        """Cochran's Q of values that should be equal but for these errors, and its degrees of freedom.

        The smallest (x - c 1)' V^-1 (x - c 1) over all c, where a common error of all drops out; of the `chosen` values
        alone, if not of all. NaN and 0 where nothing is known of the errors.
        """
        x = np.asarray(values, dtype=float)
        part = np.ones(len(x), dtype=bool) if chosen is None else chosen
        k = int(part.sum())
        if k < 2 or not self.variance[part].any():
            return float("nan"), 0
        if self.matrix is None:
            if not (self.own[part] > 0).all():
                return float("nan"), 0
            weight = 1 / self.own[part]
            return float(weight @ (x[part] - weight @ x[part] / weight.sum()) ** 2), k - 1
        apart = np.where(part, x - x[part].mean(), 0.0)
        try:
            if self._shared is not None:
                statistic = self._shared.statistic(apart, part)
            else:
                statistic = float(apart[part] @ np.linalg.solve(self._contrasts(part), apart[part]))
        except np.linalg.LinAlgError:
            return float("nan"), 0
        return (statistic, k - 1) if np.isfinite(statistic) and statistic >= 0 else (float("nan"), 0)

    def precision(self, chosen: Mask | None = None) -> float:
        """By how much Q grows, on average, for every unit of variance that is added to all (`chosen`) values."""
        part = np.ones(len(self.own), dtype=bool) if chosen is None else chosen
        if self.matrix is None:
            weight = 1 / self.own[part]
            return float(weight.sum() - (weight**2).sum() / weight.sum())
        if self._shared is not None:
            return self._shared.trace(part)
        v = self._contrasts(part)
        return float(np.trace(np.linalg.inv(v)) - (len(v) + 1) / np.trace(v))  # without that of the common error

    def _contrasts(self, chosen: Mask) -> Floats:
        """The covariance on contrasts, and on a common error of all, which drops out, the mean of its diagonal."""
        assert self.matrix is not None
        v = self.matrix[np.ix_(chosen, chosen)] + np.diag(self.own[chosen])
        v = v - v.mean(axis=0)
        v = v - v.mean(axis=1)[:, None]
        return v + np.trace(v) / len(v) ** 2

    @cached_property
    def _shared(self) -> SharedPrecision | None:
        """What tests of many parts have in common; None where the covariance has no inverse."""
        assert self.matrix is not None
        covariance = self.matrix + np.diag(self.own)
        inverse = positive_inverse(covariance + np.trace(covariance) / len(covariance) ** 2)
        return None if inverse is None else SharedPrecision(inverse)


@dataclass(frozen=True, eq=False)
class SharedPrecision:
    """The inverse P of a covariance W to which a common error of all was added: Q of any part of the values follows
    from it, without another inverse of that size.

    Of the values U, the others R left out, the precision is G = W_UU^-1 = P_UU - P_UR P_RR^-1 P_RU. On contrasts, where
    the common error drops out, it is G - G 1 1' G / (1' G 1).
    """

    inverse: Floats

    @cached_property
    def squared(self) -> Floats:
        return self.inverse @ self.inverse

    def statistic(self, apart: Floats, chosen: Mask) -> float:
        """Cochran's Q of the chosen ones, the others being zero."""
        ones = chosen.astype(float)
        weight = self._times(ones, ~chosen)
        return float(apart @ self._times(apart, ~chosen) - (weight @ apart) ** 2 / (weight @ ones))

    def trace(self, chosen: Mask) -> float:
        """Of the precision of the chosen ones on contrasts: tr G = tr P - tr(P_RR^-1 (P P)_RR)."""
        left_out = np.flatnonzero(~chosen)
        square = np.ix_(left_out, left_out)
        of_rest = np.trace(np.linalg.solve(self.inverse[square], self.squared[square])) if len(left_out) else 0.0
        ones = chosen.astype(float)
        weight = self._times(ones, ~chosen)
        return float(np.trace(self.inverse) - of_rest - weight @ weight / (weight @ ones))

    def _times(self, v: Floats, left_out: Mask) -> Floats:
        """G v; v is zero for those left out, and so is the product."""
        image = self.inverse @ v
        if left_out.any():
            rows = self.inverse[left_out]
            image -= np.linalg.solve(rows[:, left_out], image[left_out]) @ rows
            image[left_out] = 0.0
        return image


ZERO = 1e-6  # logits: a mean below this is one that was set to zero
MOST_IN_A_MATRIX = 2_000  # thresholds: 32 MB


def errors_of_thresholds(
    thresholds: Floats, se: Floats, matrix: Floats | None, layout: Thresholds, location_se: Floats
) -> tuple[JointErrors, str]:
    """`known_errors` of thresholds. Without a matrix, errors of one item go together as its location's says: taken for
    independent, they make a score on a form 1.3 times as uncertain as it is (12 items of 4 categories)."""
    if matrix is not None or layout.binary or layout.n_entries > MOST_IN_A_MATRIX or not np.nan_to_num(se).any():
        return known_errors(thresholds, se, matrix, layout.averaging())
    locations, _ = known_errors(layout.mean(thresholds), location_se, None)
    # V_ij = [same item] B_i + u_i + u_j, with u as above of the locations, so that the block of an item is its own.
    blocks = blocks_of_errors(layout, se, location_se) - 2 * locations.common[:, None, None]
    item, level = layout.item, layout.level - 1
    row, column = np.nonzero(item[:, None] == item)
    full = np.zeros((layout.n_entries, layout.n_entries))
    full[row, column] = blocks[item[row], level[row], level[column]]
    return JointErrors(np.zeros(len(se)), locations.common[item], full), "independent"


def blocks_of_errors(layout: Thresholds, se: Floats, location_se: Floats) -> Floats:
    """The covariance of each item's thresholds, items x thresholds of one x thresholds of one, that agrees with their
    standard errors and with that of the location, by one correlation of all of them; 0 where an error is not known."""
    k = layout.max_score
    table = layout.table(np.where(np.isfinite(se), se, 0.0), 0.0)
    own = (table**2).sum(axis=1)
    common = table.sum(axis=1) ** 2 - own
    total = (k * np.where(np.isfinite(location_se), location_se, 0.0)) ** 2
    r = np.divide(total - own, common, out=np.zeros(len(k)), where=common > 0)
    r = np.clip(r, -0.9 / np.maximum(k - 1, 1), 0.9)[:, None, None]
    return r * table[:, :, None] * table[:, None, :] + ((1 - r[:, 0]) * table**2)[:, :, None] * np.eye(layout.widest)


def known_errors(
    difficulty: Floats, se: Floats, matrix: Floats | None, weights: Floats | None = None
) -> tuple[JointErrors, str]:
    """What is known of the errors of a calibration, and by what: a "covariance", else standard errors ("independent").

    Values whose mean is not zero were not centered, but rest on something else; of thresholds that mean is the one of
    the items' locations, by the weights of `Thresholds.averaging`. Without any errors it is "none".
    """
    if matrix is not None:
        lacking = ~np.isfinite(np.diag(matrix))
        full = np.where(lacking[:, None] | lacking, 0.0, matrix)
        full[lacking, lacking] = np.nan_to_num(se[lacking], posinf=0.0) ** 2
        return JointErrors.dense(full), "covariance"
    known = np.isfinite(se)
    if not se[known].any():
        return JointErrors.independent(np.zeros(len(se))), "none"
    there = np.isfinite(difficulty)
    w = np.ones(len(se)) if weights is None else weights
    if abs(float(w[there] @ difficulty[there]) / w[there].sum()) < ZERO:
        found = JointErrors.after_centering(se[known], None if weights is None else w[known] / w[known].sum())
    else:
        found = JointErrors.independent(se[known])
    own, common = np.zeros(len(se)), np.zeros(len(se))
    own[known], common[known] = found.own, found.common
    return JointErrors(own, common), "independent"
