"""Tail probabilities, and p-values adjusted for asking many questions at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.data.block import Floats


def _special() -> Any:
    """`scipy.special`, loaded when it is first asked."""
    import scipy.special

    return scipy.special


def chi2_tail(statistic: ArrayLike, df: ArrayLike) -> Any:
    """P(chi-square with `df` degrees of freedom > statistic); NaN stays NaN.

    >>> round(float(chi2_tail(3.841459, 1)), 6)
    0.05
    """
    return _special().chdtrc(df, statistic)


def f_tail(statistic: ArrayLike, df: ArrayLike, df2: ArrayLike) -> Any:
    """P(F with `df` and `df2` degrees of freedom > statistic).

    >>> round(float(f_tail(3.325835, 5, 10)), 6)
    0.05
    """
    return _special().fdtrc(
        np.asarray(df, dtype=float), np.asarray(df2, dtype=float), np.asarray(statistic, dtype=float)
    )


def two_sided(z: ArrayLike) -> Any:
    """P(|normal| > |z|).

    >>> round(float(two_sided(-1.959964)), 6)
    0.05
    """
    return 2 * _special().ndtr(-np.abs(z))


def upper(z: ArrayLike) -> Any:
    """P(normal > z).

    >>> round(float(upper(1.644854)), 6)
    0.05
    """
    return _special().ndtr(np.negative(z))


def quantile(p: ArrayLike) -> Any:
    """z with P(normal < z) = p.

    >>> round(float(quantile(0.95)), 6)
    1.644854
    """
    return _special().ndtri(p)


def student_two_sided(t: ArrayLike, df: ArrayLike) -> Any:
    """P(|Student's t with `df` degrees of freedom| > |t|).

    >>> round(float(student_two_sided(2.228139, 10)), 6)
    0.05
    """
    return 2 * _special().stdtr(df, -np.abs(t))


def mcnemar(first_only: Floats, second_only: Floats) -> Floats:
    """Two-sided p of "both are right equally often", from the numbers of cases that only one of the two has right.

    Given that the two differ, either is as likely to be the right one: min(b, c) of b + c tosses of a coin, twice.

    >>> mcnemar(np.array([10.0, 0.0]), np.array([1.0, 0.0])).round(5).tolist()
    [0.01172, 1.0]
    """
    b, c = np.asarray(first_only, dtype=float), np.asarray(second_only, dtype=float)
    p: Floats = np.minimum(1.0, 2 * _special().bdtr(np.minimum(b, c), (b + c).astype(np.int64), 0.5))
    return p


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p-values: rejecting those below 5% makes any false rejection at all a 5% event.

    The k-th smallest of n is multiplied by n - k + 1, and none may fall below a smaller one's. NaN are left out.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    return _adjusted(np.asarray(p, dtype=float), _holm)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Benjamini and Hochberg's adjusted p-values: of those below 5%, about 5% are expected to be false.

    The k-th smallest of n is multiplied by n / k, and none may exceed a larger one's. NaN are left out.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.04, 0.04]
    """
    return _adjusted(np.asarray(p, dtype=float), _benjamini_hochberg)


def _adjusted(p: Floats, rule: Any) -> Floats:
    known = np.flatnonzero(~np.isnan(p))
    out = np.full(len(p), np.nan)
    order = known[np.argsort(p[known], kind="stable")]
    out[order] = np.minimum(rule(p[order]), 1.0)
    return out


def _holm(rising: Floats) -> Floats:
    return np.maximum.accumulate(rising * np.arange(len(rising), 0, -1))


def _benjamini_hochberg(rising: Floats) -> Floats:
    n = len(rising)
    return np.minimum.accumulate((rising * n / np.arange(1, n + 1))[::-1])[::-1]
