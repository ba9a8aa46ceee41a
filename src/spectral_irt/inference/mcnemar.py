"""Exact McNemar tests for all pairs at once, and Holm's correction."""

from __future__ import annotations

import numpy as np

from spectral_irt.data.block import Floats


def mcnemar(first_only: Floats, second_only: Floats) -> Floats:
    """Two-sided p of "both are right equally often", from the numbers of cases that only one of the two has right.

    Given that the two differ, either is as likely to be the right one: min(b, c) of b + c tosses of a coin, twice.

    >>> mcnemar(np.array([10.0, 0.0]), np.array([1.0, 0.0])).round(5).tolist()
    [0.01172, 1.0]
    """
    from scipy.special import bdtr

    b, c = np.asarray(first_only, dtype=float), np.asarray(second_only, dtype=float)
    p: Floats = np.minimum(1.0, 2 * bdtr(np.minimum(b, c), (b + c).astype(np.int64), 0.5))
    return p


def holm(p: Floats) -> Floats:
    """Adjusted p-values: the chance of any false rejection among all is at most the level.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(adjusted, 1.0)
    return out


def benjamini_hochberg(p: Floats) -> Floats:
    """Adjusted p-values: the expected share of false ones among those rejected is at most the level.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(-p, kind="stable")
    adjusted = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(adjusted, 1.0)
    return out
