"""Do many differences agree on one value, which one, and which of them do not? With up to 40% of them off.

Two calibrations, or two groups, differ by the same number on all items but those that have changed. The half that lies
closest together is found (least trimmed squares, Rousseeuw & Leroy 1987, ch. 4); from there every difference within 3
standard errors (`limit`) of the mean of those that agree joins them, until nothing changes; and Cochran's Q asks
whether those that agree differ beyond their errors, and by how much (the `excess`, DerSimonian & Laird 1986). An excess
beyond doubt counts as error: differences that scatter everywhere are not taken for drift of each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Floats
from spectral_irt.inference.results import chi2_tail
from spectral_irt.joint_errors import JointErrors

DOUBT = 0.001  # p of Q below which an excess counts as error
LIMIT = 3.0  # standard errors: 0.3% of differences that agree are beyond
LEAST = math.erfc(LIMIT / math.sqrt(2))  # the share itself
HALF_SD = 0.378  # standard deviation of the middle half of a standard normal; 1 + 5/k where k are few (Rousseeuw)
# With 2, 5 or 6 of 15 items off by five standard errors the standard error of the center is then its spread (0.35 makes
# it up to a fifth too small, 0.7 up to a fifth too large); where nothing is off it adds some 3%.
JITTER, DRAWS = 0.55, 40
STARTS = 500  # centers to start from
STEPS = 50  # enough: sets of items settle in five or so


@dataclass(frozen=True, eq=False)
class RobustCenter:
    """What `robust_center` found: the mean of the differences that agree; which do; each difference from the center
    over its standard error, with the excess in it where p is below 0.001; the standard deviation of those that agree
    beyond what their errors explain; and Cochran's Q of these (NaN, 0, NaN where nothing is known of their errors)."""

    center: float
    agrees: NDArray[np.bool_]
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
    known = bool(errors.variance.any())
    used = _closest(difference, np.sqrt(errors.variance) if known else np.ones(k), half)
    beyond = 0.0 if known else float(difference[used].var()) * ((1 + 5 / k) / HALF_SD) ** 2
    test: Scatter | None = None
    for _ in range(STEPS):
        z = _apart(difference, errors, used, beyond)[1]
        size = np.abs(z)
        new = size <= limit
        if new.sum() < half:
            new = size <= np.partition(size, half - 1)[half - 1]
        if test is not None and (new == used).all():
            break
        used = new
        test = scatter(difference, errors, level, chosen=used, within=limit)
        if excess:
            beyond = 0.0 if test.p >= DOUBT else test.beyond
    assert test is not None
    center, z = _apart(difference, errors, used, beyond)
    return RobustCenter(center, used, z, float(np.sqrt(test.beyond)), test.statistic, test.df, test.p)


def center_of_items(
    difference: Floats, errors: JointErrors, item: NDArray[np.int64], level: float
) -> tuple[RobustCenter, float]:
    """The center of differences of thresholds, and the variance that the choice of those that agree gives it.

    First items are compared by the means of their thresholds, which see an item that moved as a whole long before its
    thresholds do; then the thresholds of the items that agree. Where an item does not, and its thresholds differ among
    themselves, those that agree with the others stay; else all of them have the z of the item, where that is larger.
    """
    if item[-1] == len(item) - 1:  # one threshold each
        found = robust_center(difference, errors, level=level)
        return found, choice_variance(difference, errors, found)
    means, of_means = np.bincount(item, difference) / np.bincount(item), errors.averaged(item)
    whole = robust_center(means, of_means, level=level)
    stays = whole.agrees[item]
    part, of_part = difference[stays], errors.take(stays)
    found = robust_center(part, of_part, level=level)
    used = stays.copy()
    used[stays] = found.agrees
    weights, beyond = used / used.sum(), found.excess**2 if found.p < DOUBT else 0.0
    z = _apart(difference, errors, used, beyond)[1]
    for k in np.flatnonzero(~whole.agrees):
        own = item == k
        rest = own & (np.abs(z) <= LIMIT)
        w = rest / max(rest.sum(), 1) - weights
        unlike = chi2_tail(*errors.take(own).disagreement(difference[own])) < LEAST
        if unlike and rest.any() and (w @ difference) ** 2 <= LIMIT**2 * (errors.of(w) + beyond * (w @ w)):
            used |= rest
        else:
            z[own] = np.where(np.abs(z[own]) > abs(whole.z[k]), z[own], whole.z[k])
    choice = choice_variance(means, of_means, whole) + choice_variance(part, of_part, found)
    return replace(found, agrees=used, z=z), choice


def choice_variance(difference: Floats, errors: JointErrors, found: RobustCenter, seed: int = 0) -> float:
    """Variance that the center has because the data chose which differences agree.

    The mean of the given differences over the sets that are found where each is moved by chance, by `JITTER`
    of its standard error (which is in it once already): near the limit some come in or go out.
    """
    weights = found.agrees / found.agrees.sum()
    noise = JITTER * np.sqrt(errors.around(weights))
    if not noise.any():
        return 0.0
    rng = np.random.default_rng(seed)
    sets = [robust_center(difference + noise * rng.standard_normal(len(noise)), errors).agrees for _ in range(DRAWS)]
    return float(np.mean([(difference[one].mean() - found.center) ** 2 for one in sets]))


def _closest(x: Floats, se: Floats, half: int) -> NDArray[np.bool_]:
    """The `half` of them that lie closest to their own mean, in standard errors: least trimmed squares."""
    se = np.maximum(se, 1e-3 * np.median(se[se > 0])) if (se > 0).any() else np.ones(len(x))
    starts = x if len(x) <= STARTS else np.quantile(x, np.linspace(0, 1, STARTS))
    cost = [np.partition(((x - c) / se) ** 2, half - 1)[:half].sum() for c in starts]
    center = float(starts[int(np.argmin(cost))])
    for _ in range(STEPS):
        near = np.argsort(np.abs((x - center) / se), kind="stable")[:half]
        new = float(x[near].mean())
        if new == center:
            break
        center = new
    out = np.zeros(len(x), dtype=bool)
    out[near] = True
    return out


def _apart(x: Floats, errors: JointErrors, used: NDArray[np.bool_], beyond: float) -> tuple[float, Floats]:
    """The mean of those used, and every z from there."""
    w = used / used.sum()
    center = float(w @ x)
    variance = errors.around(w) + beyond * (1 - 2 * w + w @ w)
    apart = x - center
    sure = np.where(np.abs(apart) < 1e-12, 0.0, np.copysign(np.inf, apart))  # where nothing explains a difference
    return center, np.divide(apart, np.sqrt(variance), out=sure, where=variance > 0)


@dataclass(frozen=True)
class Scatter:
    """Cochran's Q of some differences, and their variance beyond their errors."""

    statistic: float
    df: int
    p: float
    beyond: float


def scatter(
    x: Floats, errors: JointErrors, level: float, *, chosen: NDArray[np.bool_] | None = None, within: float = np.inf
) -> Scatter:
    """Do these differ by more than their errors explain, and by how much: by moments, 0 unless Q is beyond chance.

    `chosen`: only these of them. `within`: they are the ones within so many standard errors, which look more alike than
    all do.
    """
    inside = _variance_within(within)
    statistic, df = errors.disagreement(x, chosen)
    if not df:
        part = np.ones(len(x), dtype=bool) if chosen is None else chosen
        unknown = not errors.variance[part].any() and part.sum() > 1
        return Scatter(statistic, df, float("nan"), float(x[part].var(ddof=1)) / inside if unknown else 0.0)
    p = float(chi2_tail(statistic, df))
    if p >= level:
        return Scatter(statistic, df, p, 0.0)
    return Scatter(statistic, df, p, max((statistic / inside - df) / errors.precision(chosen), 0.0))


def _variance_within(limit: float) -> float:
    """Variance of a standard normal variable that is cut at -limit and limit."""
    if np.isinf(limit):
        return 1.0
    density = math.exp(-(limit**2) / 2) / math.sqrt(2 * math.pi)
    return 1 - 2 * limit * density / math.erf(limit / math.sqrt(2))
