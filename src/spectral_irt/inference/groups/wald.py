"""Wald tests between groups of people: the difference of difficulties against what chance makes of it.

Estimates from people of low and of high score are both consistent under the model, and independent. With covariances V
of the mean-centered difficulties b in two groups,

    T = (b_1 - b_2)^T (V_1 + V_2)^+ (b_1 - b_2) ~ chi-square, m - 1 degrees of freedom,

and z_i = (b_2i - b_1i) / sqrt(V_1ii + V_2ii) for one item. For conditional maximum likelihood, and where the spectral
estimate has landed on it, V is the inverse information; for the chain alone it is the sandwich. That is itself
estimated from the people, so that T is larger than chi-square where items are many for the people there are (80 items,
1,000 people: 16% rejected at the 5% level); p is then taken from Hotelling's distribution, with the degrees of freedom
of Nel & van der Merwe for unequal groups:

    T (nu - m + 2) / (nu (m - 1)) ~ F(m - 1, nu - m + 2),
    nu = (tr V^2 + (tr V)^2) / sum_g ((tr V_g^2 + (tr V_g)^2) / (n_g - 1)),   V = sum_g V_g.

References
----------
Nel & van der Merwe (1986), Comm. Statist. Theory Methods 15, 3719-3735.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.groups.calibrations import Subgroups, calibrate_groups, estimator_like
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.probability import benjamini_hochberg, chi2_tail, f_tail, holm, two_sided
from spectral_irt.inference.results import Result
from spectral_irt.numerics import centered_inverse
from spectral_irt.tables import Columns


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WaldTest(Result):
    """What `score_split` found.

    The joint statistic is NaN where there are more than 2,000 items, or too few people for so many; df2 is nu - m + 2
    for sandwiches. `table()` has, item by item, `item, contrast, se, z` (two groups) or `item, statistic`, then
    `p, p_holm, p_bh`.

    Attributes
    ----------
    z : float array
        Two groups: difficulty in the second minus the first, in standard errors. More: NaN.
    item_statistic, item_df, item_p : float array, int, float array
        Chi-square of each item (z^2 for two groups), groups - 1.
    groups : Subgroups
        Difficulties and standard errors in each group; `groups.left_out`: items not compared.
    """

    z: Floats
    item_statistic: Floats
    item_df: int
    item_p: Floats
    groups: Subgroups

    @property
    def sentence(self) -> str:
        return super().sentence.replace("Test:", f"Wald test ({self.groups.method}):", 1)


def _not_joint(groups: Subgroups) -> Finding:
    m, fewest = len(groups.items), int(groups.informative.min())
    why = f"the smallest group has {fewest:,} informative people" if fewest < m else "there are so many items"
    return Finding(
        "no_joint_test",
        "note",
        f"The {m:,} items were compared one by one and not all at once, because {why}.",
        "Judge by the adjusted p-values of the items (p_holm, p_bh).",
    )


def score_split(calibration: Calibration, responses: Responses, split: Any = "ability") -> WaldTest:
    """Are items as hard for people of high score as for people of low score? A test of the model for spectral fits.

    Keeps its level with answers that are missing by chance or by form, of different levels too, and has the power of
    Andersen's test against unequal discriminations. Where what a person was asked depends on the answers (adaptive and
    two-stage tests, stopping after so many wrong), it rejects a true model far too often: `python
    benchmarks/model_test_level.py`. The groups are calibrated with the fit's own estimator, without a prior.

    Parameters
    ----------
    calibration, responses
        The data that were calibrated, in the order of the calibration's items.
    split : "ability", "median", "mean", "scores", or labels
        See `divide`. "ability" (default) is "median" on complete data, and fair to people who answered few or hard
        items on any other.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> lsat = datasets.load_lsat()
    >>> score_split(SpectralRasch().fit(lsat).calibration_, lsat, "mean")
    <Wald test (spectral, information): T = 0.165, df = 4, p = 0.997; ...>
    """
    groups = divide(responses, split, difficulty=calibration.difficulty)
    return compare_groups(calibrate_groups(responses, groups, estimator_like(calibration)))


def wald_by_item(responses: Any, split: Any = "median", *, threads: int | None = None) -> WaldTest:
    """Wald's test of each item by conditional maximum likelihood, as `eRm::Waldtest` computes it.

    z_i = (difficulty in the second group - in the first) / sqrt(se_1i^2 + se_2i^2).

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> wald_by_item(datasets.load_lsat(), "mean").z.round(2).tolist()
    [0.15, -0.3, -0.26, 0.1, 0.15]
    """
    data = as_responses(responses)
    make = ConditionalRasch(threads=threads)
    difficulty = make.fit(data).difficulty_ if isinstance(split, str) and split == "ability" else None
    return compare_groups(calibrate_groups(data, divide(data, split, difficulty=difficulty), make))


def compare_groups(groups: Subgroups) -> WaldTest:
    """Wald's statistic of all items together and of each, from difficulties and covariances in each group."""
    n_groups, m = groups.difficulty.shape
    item_statistic = weighted_spread(groups.difficulty, groups.se**2)
    z = np.full(m, np.nan)
    if n_groups == 2:
        z = (groups.difficulty[1] - groups.difficulty[0]) / np.hypot(groups.se[0], groups.se[1])
    item_p = two_sided(z) if n_groups == 2 else chi2_tail(item_statistic, n_groups - 1)
    df = (n_groups - 1) * (m - 1)
    statistic, p, df2 = _joint(groups, df)
    columns: Columns = {"item": groups.items}
    if n_groups == 2:
        contrast = groups.difficulty[1] - groups.difficulty[0]
        columns |= {"contrast": contrast, "se": np.hypot(groups.se[0], groups.se[1]), "z": z}
    else:
        columns["statistic"] = item_statistic
    return WaldTest(
        statistic=statistic,
        df=df,
        p=p,
        df2=df2,
        compared=str(groups),
        columns={**columns, "p": item_p, "p_holm": holm(item_p), "p_bh": benjamini_hochberg(item_p)},
        frame_kind=groups.everyone.frame_kind,
        findings=groups.findings + ((_not_joint(groups),) if np.isnan(statistic) else ()),
        z=z,
        item_statistic=item_statistic,
        item_df=n_groups - 1,
        item_p=item_p,
        groups=groups,
    )


def _joint(groups: Subgroups, df: int) -> tuple[float, float, float]:
    """T, its tail probability, and the degrees of freedom of the denominator."""
    nan, m = float("nan"), len(groups.items)
    if not groups.covariances:
        return nan, nan, nan
    if not groups.sandwich:
        statistic = joint_statistic(groups.difficulty, groups.covariances)
        return statistic, float(chi2_tail(statistic, df)), float("inf")
    nu = _persons_behind(groups.covariances, groups.informative)
    df2 = nu - m + 2
    if df2 < 1 or groups.informative.min() < m:
        return nan, nan, df2
    statistic = joint_statistic(groups.difficulty, groups.covariances)
    return statistic, float(f_tail(statistic * df2 / (nu * df), df, df2)), df2


def _persons_behind(covariances: tuple[Floats, ...], persons: Any) -> float:
    def size(v: Any) -> float:
        return float((v * v).sum() + np.trace(v) ** 2)

    return size(sum(covariances)) / sum(size(v) / (n - 1) for v, n in zip(covariances, persons, strict=True))


def weighted_spread(values: Floats, variances: Floats) -> Floats:
    """sum_g (b_g - mean)^2 / v_g around the weighted mean, column by column; 0 where nothing can vary."""
    weight = np.divide(1.0, variances, out=np.ones_like(variances), where=variances > 0)
    mean = (weight * values).sum(axis=0) / weight.sum(axis=0)
    return (weight * (values - mean) ** 2).sum(axis=0)


def joint_statistic(difficulty: Floats, covariances: tuple[Floats, ...]) -> float:
    """sum_g (b_g - b)^T V_g^+ (b_g - b) with the b that makes it smallest; for two groups T of the module's head."""
    first, *others = covariances
    if len(others) == 1:
        d = difficulty[0] - difficulty[1]
        return float(d @ _solve(first + others[0], d))
    precision = [centered_inverse(v) for v in covariances]
    b = _solve(sum(precision), sum(p @ x for p, x in zip(precision, difficulty, strict=True)))
    return float(sum((x - b) @ p @ (x - b) for p, x in zip(precision, difficulty, strict=True)))


def _solve(v: Any, d: Any) -> Floats:
    """V^+ d for a matrix whose rows add to zero."""
    m = len(v)
    x = np.linalg.solve(v + np.trace(v) / m**2, d - d.mean())
    return x - x.mean()
