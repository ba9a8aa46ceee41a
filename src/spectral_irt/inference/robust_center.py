"""Do many differences agree on one value, which one, and which of them do not? With up to 40% of them off.

Two calibrations, or two groups, differ by the same number on all items but those that have changed. The half that lies
closest together is found (least trimmed squares, Rousseeuw & Leroy 1987, ch. 4); from there every difference within 3
standard errors (`limit`) of the mean of those that agree joins them, until nothing changes; and Cochran's Q asks
whether those that agree differ beyond their errors, and by how much (the `excess`, DerSimonian & Laird 1986). An excess
beyond doubt counts as error: differences that scatter everywhere are not taken for drift of each.

Linking of banks, drift and the anchors of DIF rest on this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.inference.results import chi2_tail
from spectral_irt.joint_errors import JointErrors

DOUBT = 0.001  # p of Q below which an excess counts as error
LIMIT = 3.0  # standard errors: 0.3% of differences that agree are beyond
BEYOND_LIMIT = math.erfc(LIMIT / math.sqrt(2))  # the share itself
HALF_SD = 0.378  # standard deviation of the middle half of a standard normal; 1 + 5/k where k are few (Rousseeuw)
# With 2, 5 or 6 of 15 items off by five standard errors the standard error of the center is then its spread (0.35 makes
# it up to a fifth too small, 0.7 up to a fifth too large); where nothing is off it adds some 3%.
JITTER = 0.55
DRAWS = 40
STARTS = 500  # centers to start from
STEPS = 50  # enough: sets of items settle in five or so
ROUNDING = 1e-12  # logits


@dataclass(frozen=True, eq=False)
class RobustCenter:
    """What `robust_center` found: the mean of the differences that agree; which do; each difference from the center
    over its standard error, with the excess in it where p is below 0.001; the standard deviation of those that agree
    beyond what their errors explain; and Cochran's Q of these (NaN, 0, NaN where nothing is known of their errors)."""

    center: float
    agrees: Mask
    z: Floats
    excess: float
    statistic: float
    df: int
    p: float


def robust_center(
    difference: Floats, errors: JointErrors, *, limit: float = LIMIT, excess: bool = True, level: float = 0.05
) -> RobustCenter:
    """The value on which most of the differences agree, and those that do not: farther than `limit` standard errors.

    With `excess` differences may scatter beyond their errors (linking), without it each that does is off (groups);
    the excess is 0 where the p of Cochran's Q is above `level`.
    """
    k = len(difference)
    half = k // 2 + 1
    if errors.variance.any():
        agrees = _closest_half(difference, np.sqrt(errors.variance), half)
        excess_variance = 0.0
    else:
        agrees = _closest_half(difference, np.ones(k), half)
        excess_variance = float(difference[agrees].var()) * ((1 + 5 / k) / HALF_SD) ** 2
    test: Scatter | None = None
    for _ in range(STEPS):
        size = np.abs(_deviations(difference, errors, agrees, excess_variance).z)
        within = size <= limit
        if within.sum() < half:
            within = size <= np.partition(size, half - 1)[half - 1]
        if test is not None and (within == agrees).all():
            break
        agrees = within
        test = scatter(difference, errors, level, chosen=agrees, within=limit)
        if excess:
            excess_variance = 0.0 if test.p >= DOUBT else test.excess_variance
    assert test is not None
    deviations = _deviations(difference, errors, agrees, excess_variance)
    return RobustCenter(
        center=deviations.center,
        agrees=agrees,
        z=deviations.z,
        excess=float(np.sqrt(test.excess_variance)),
        statistic=test.statistic,
        df=test.df,
        p=test.p,
    )


class CenterOfItems(NamedTuple):
    """The center of differences of thresholds, and the variance that the choice of those that agree gives it."""

    center: RobustCenter
    choice_variance: float


def center_of_items(difference: Floats, errors: JointErrors, item: Ints, level: float) -> CenterOfItems:
    """The value on which most thresholds agree, item by item.

    First items are compared by the means of their thresholds, which see an item that moved as a whole long before its
    thresholds do; then the thresholds of the items that agree. Where an item does not, and its thresholds differ among
    themselves, those that agree with the others stay; else all of them have the z of the item, where that is larger.
    """
    if item[-1] == len(item) - 1:  # one threshold each
        center = robust_center(difference, errors, level=level)
        return CenterOfItems(center, choice_variance(difference, errors, center))
    item_difference = np.bincount(item, difference) / np.bincount(item)
    item_errors = errors.of_group_means(item)
    of_items = robust_center(item_difference, item_errors, level=level)
    stays = of_items.agrees[item]
    center = robust_center(difference[stays], errors.take(stays), level=level)
    agrees = stays.copy()
    agrees[stays] = center.agrees
    weights = agrees / agrees.sum()
    excess_variance = center.excess**2 if center.p < DOUBT else 0.0
    z = _deviations(difference, errors, agrees, excess_variance).z
    for off in np.flatnonzero(~of_items.agrees):
        of_item = item == off
        near = of_item & (np.abs(z) <= LIMIT)
        # The mean of those near less the center.
        contrast = near / max(near.sum(), 1) - weights
        contrast_variance = errors.of(contrast) + excess_variance * (contrast @ contrast)
        near_agree = near.any() and (contrast @ difference) ** 2 <= LIMIT**2 * contrast_variance
        unlike = chi2_tail(*errors.take(of_item).disagreement(difference[of_item])) < BEYOND_LIMIT
        if unlike and near_agree:
            agrees |= near
        else:
            z[of_item] = np.where(np.abs(z[of_item]) > abs(of_items.z[off]), z[of_item], of_items.z[off])
    choice = choice_variance(item_difference, item_errors, of_items)
    choice += choice_variance(difference[stays], errors.take(stays), center)
    return CenterOfItems(replace(center, agrees=agrees, z=z), choice)


def choice_variance(difference: Floats, errors: JointErrors, center: RobustCenter, seed: int = 0) -> float:
    """Variance that the center has because the data chose which differences agree.

    The mean of the given differences over the sets that are found where each is moved by chance, by `JITTER`
    of its standard error (which is in it once already): near the limit some come in or go out.
    """
    weights = center.agrees / center.agrees.sum()
    noise = JITTER * np.sqrt(errors.around(weights))
    if not noise.any():
        return 0.0
    rng = np.random.default_rng(seed)
    squares = []
    for _ in range(DRAWS):
        moved = robust_center(difference + noise * rng.standard_normal(len(noise)), errors)
        squares.append((difference[moved.agrees].mean() - center.center) ** 2)
    return float(np.mean(squares))


def _closest_half(x: Floats, se: Floats, half: int) -> Mask:
    """The `half` of them that lie closest to their own mean, in standard errors: least trimmed squares."""
    se = np.maximum(se, 1e-3 * np.median(se[se > 0])) if (se > 0).any() else np.ones(len(x))
    starts = x if len(x) <= STARTS else np.quantile(x, np.linspace(0, 1, STARTS))
    cost = [np.partition(((x - start) / se) ** 2, half - 1)[:half].sum() for start in starts]
    center = float(starts[int(np.argmin(cost))])
    for _ in range(STEPS):
        nearest = np.argsort(np.abs((x - center) / se), kind="stable")[:half]
        mean = float(x[nearest].mean())
        if mean == center:
            break
        center = mean
    closest = np.zeros(len(x), dtype=bool)
    closest[nearest] = True
    return closest


class Deviations(NamedTuple):
    """The mean of the differences that agree, and how far each is from there, in standard errors."""

    center: float
    z: Floats


def _deviations(x: Floats, errors: JointErrors, agrees: Mask, excess_variance: float) -> Deviations:
    weights = agrees / agrees.sum()
    center = float(weights @ x)
    variance = errors.around(weights) + excess_variance * (1 - 2 * weights + weights @ weights)
    deviation = x - center
    # Where nothing explains a difference, it is off by infinitely much.
    z = np.where(np.abs(deviation) < ROUNDING, 0.0, np.copysign(np.inf, deviation))
    return Deviations(center, np.divide(deviation, np.sqrt(variance), out=z, where=variance > 0))


class Scatter(NamedTuple):
    """Cochran's Q of some differences, and their variance beyond their errors."""

    statistic: float
    df: int
    p: float
    excess_variance: float


def scatter(
    x: Floats, errors: JointErrors, level: float, *, chosen: Mask | None = None, within: float = np.inf
) -> Scatter:
    """Do these differ by more than their errors explain, and by how much: by moments, 0 unless Q is beyond chance.

    `chosen`: only these of them. `within`: they are the ones within so many standard errors, which look more alike than
    all do.
    """
    variance_of_z = _variance_within(within)
    statistic, df = errors.disagreement(x, chosen)
    if not df:
        part = np.ones(len(x), dtype=bool) if chosen is None else chosen
        nothing_is_known = not errors.variance[part].any() and part.sum() > 1
        excess = float(x[part].var(ddof=1)) / variance_of_z if nothing_is_known else 0.0
        return Scatter(statistic, df, float("nan"), excess)
    p = float(chi2_tail(statistic, df))
    if p >= level:
        return Scatter(statistic, df, p, 0.0)
    return Scatter(statistic, df, p, max((statistic / variance_of_z - df) / errors.precision(chosen), 0.0))


def _variance_within(limit: float) -> float:
    """Variance of a standard normal variable that is cut at -limit and limit."""
    if np.isinf(limit):
        return 1.0
    density = math.exp(-(limit**2) / 2) / math.sqrt(2 * math.pi)
    return 1 - 2 * limit * density / math.erf(limit / math.sqrt(2))
