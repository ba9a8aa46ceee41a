"""Tests of the model between groups of people, as a rule the less and the more able: are items as hard for both?

**Wald.** With covariances V (inverse information) of the thresholds b in two groups calibrated by conditional maximum
likelihood, whose mean location is zero,

    T = (b_1 - b_2)^T (V_1 + V_2)^+ (b_1 - b_2) ~ chi-square, m - 1 degrees of freedom for m free thresholds,

and likewise for the thresholds of one item alone: z_i^2, z_i = (b_2i - b_1i) / sqrt(V_1ii + V_2ii), where it has one.

Where persons have weights or clusters, T with the inverse information is no chi-square, and the sandwich of few
clusters has no inverse to put in its place. Its distribution is that of sum lambda_j chi-square_1, with lambda the
eigenvalues of D = (V_1 + V_2)^+ S, S the sandwich of b_1 - b_2, and that is approximated by its first two moments, the
second of which is known from a sandwich with nu degrees of freedom (Rao & Scott 1984; Thomas & Rao 1987):

    T / tr D ~ F with f = (tr D)^2 / tr D^2 and nu f degrees of freedom.

`study.model_test` calls `score_split`, `dif.py` compares its groups by `compare_groups`, `score_test.py` judges by
`rao_scott`; `spectral_irt.andersen` is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from spectral_irt.calibration import PARTIAL_CREDIT, RASCH, RATING_SCALE, Calibration
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import check_option
from spectral_irt.estimators.conditional import ConditionalRasch, conditional_thresholds
from spectral_irt.inference.groups.calibrations import (
    RANK_DIGITS,
    GroupCalibrations,
    GroupModel,
    calibrate_groups,
    contrast,
    less_first,
    model_like,
)
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.results import Result, chi2_tail, p_columns, wald_tail
from spectral_irt.numerics import safe_divide
from spectral_irt.tables import Columns

MODELS = (None, RASCH, PARTIAL_CREDIT, RATING_SCALE)  # that `andersen` tests; None: by the answers


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WaldTest(Result):
    """What `score_split` found: `z` is the difficulty in the second of two groups minus the first, in standard errors.

    The joint statistic is NaN where there are more than 2,000 items. `table()` has, item by item, `item, contrast, se,
    z` of its difficulty (two groups) or `item, statistic`, then `p, p_holm, p_bh`. Where items have several thresholds
    `statistic, df` and the p-values are about all of these. `groups.left_out` are items that were not compared.
    """

    name = "Wald test"
    z: Floats
    groups: GroupCalibrations


def score_split(
    calibration: Calibration, responses: Responses, split: Any = "ability", sampling: Sampling = SIMPLE
) -> WaldTest:
    """Are items as hard for people of high score as for people of low score; or do all their thresholds lie alike?

    Keeps its level with answers that are missing by chance or by form, of different levels too, and has the power of
    Andersen's test against unequal discriminations. Where what a person was asked depends on the answers (adaptive and
    two-stage tests, stopping after so many wrong), it rejects a true model far too often. `split` is
    that of `divide`: "ability" is "median" on complete data, and fair to
    people who answered few or hard items on any other. Of a conditional fit it is `eRm::Waldtest`. `sampling` has
    weights and clusters of the persons.
    """
    groups = divide(responses, split, difficulty=calibration.thresholds)
    return compare_groups(calibrate_groups(responses, groups, model_like(calibration), sampling))


def compare_groups(groups: GroupCalibrations) -> WaldTest:
    """Wald's statistic of all thresholds together and of those of each item, from their covariances in each group."""
    layout = groups.layout
    items = _item_tests(groups)
    item_p = wald_tail(items.statistic, items.df, groups.df_joint)
    z = np.full(layout.n_items, np.nan)
    columns: Columns = {"item": groups.items}
    if len(groups.names) == 2:
        difference = groups.combine(contrast(2, 1, 0))
        z = difference.value / difference.se
        columns |= {"contrast": difference.value, "se": difference.se, "z": z}
    if len(groups.names) > 2 or not layout.binary:
        columns["statistic"] = items.statistic
    if not layout.binary:
        columns["df"] = items.df
    columns |= p_columns(item_p)
    joint = _joint_test(groups)
    findings = groups.findings
    if np.isnan(joint.statistic):
        sentence = (
            f"The {layout.n_items:,} items were compared one by one and not all at once, because there are so many."
        )
        remedy = "Judge by the adjusted p-values of the items (p_holm, p_bh)."
        findings += (Finding("no_joint_test", "note", sentence, remedy),)
    return WaldTest(
        statistic=joint.statistic,
        df=joint.df,
        df2=joint.df2,
        p=joint.p,
        compared=str(groups),
        columns=columns,
        frame_kind=groups.everyone.frame_kind,
        findings=findings,
        z=z,
        groups=groups,
    )


class _ItemTests(NamedTuple):
    """Wald's statistic of each item, and its degrees of freedom."""

    statistic: Floats
    df: Ints


def _item_tests(groups: GroupCalibrations) -> _ItemTests:
    layout = groups.layout
    n_contrasts = len(groups.names) - 1
    if not layout.binary and groups.design is None:  # all thresholds are free
        statistics = []
        for first, n_thresholds in zip(layout.first, layout.max_score, strict=True):
            statistics.append(_statistic_of(groups, slice(first, first + n_thresholds)))
        return _ItemTests(np.array(statistics), n_contrasts * layout.max_score)
    # Items differ by their locations alone.
    df = np.full(layout.n_items, n_contrasts)
    if groups.sandwiches is None:
        return _ItemTests(weighted_spread(groups.difficulty, groups.se**2), df)
    return _ItemTests(groups.item_statistics(groups.difficulty, np.zeros_like(groups.difficulty)), df)


class JointTest(NamedTuple):
    """A statistic of all parameters together, with its degrees of freedom and p; by an F distribution whose denominator
    has `df2`, infinite for a chi-square."""

    statistic: float
    df: float
    df2: float
    p: float


def _joint_test(groups: GroupCalibrations) -> JointTest:
    """T, NaN where items are too many for it."""
    df = (len(groups.names) - 1) * groups.n_parameters
    if not groups.covariances:
        return JointTest(float("nan"), df, np.inf, float("nan"))
    basis = np.eye(groups.layout.n_entries)
    if groups.design is not None:  # fewer parameters than thresholds: compared in the space of the former
        basis = np.linalg.qr(groups.design)[0]
    values = groups.thresholds @ basis
    center = basis.T @ groups.layout.mean_weights()
    if groups.sandwiches is None:
        covariances = [basis.T @ covariance @ basis for covariance in groups.covariances]
        statistic = joint_statistic(values, covariances, center)
        return JointTest(statistic, df, np.inf, float(chi2_tail(statistic, df)))
    covariances = [basis.T @ covariance @ basis for covariance in groups.sandwiches.model]
    blocks = [[basis.T @ block @ basis for block in row] for row in groups.sandwiches.covariances]
    effects = _quadratic_form(covariances, center) @ np.block(blocks)
    return rao_scott(joint_statistic(values, covariances, center), effects, groups.df_joint)


def _quadratic_form(covariances: Sequence[Floats], center: Floats) -> Floats:
    """Q with T = b'Q b, for the thresholds b of all groups one after another."""
    precisions = [np.linalg.inv(covariance) for covariance in _with_variance_of_mean(covariances, center)]
    common = np.linalg.inv(np.sum(precisions, axis=0))
    blocks = [[-first @ common @ second for second in precisions] for first in precisions]
    for g, precision in enumerate(precisions):
        blocks[g][g] = blocks[g][g] + precision
    return np.block(blocks)


def rao_scott(statistic: float, effects: Floats, df: float) -> JointTest:
    """A statistic b'Q b where b has the covariance S: see the module's head; `effects` is Q S, and S has `df`.

    The statistic returned is f T / tr D, which is chi-square with f degrees of freedom where clusters are many. tr D^2
    of a covariance that is itself estimated is too large by what (tr D)^2 / df says; that is taken off.
    """
    trace = float(np.trace(effects))
    square = float(np.sum(effects * effects.T))
    if np.isfinite(df) and df > 1:
        square = df**2 / ((df - 1) * (df + 2)) * (square - trace**2 / df)
    if not trace > 0:
        return JointTest(statistic, float("nan"), df, float("nan"))
    f = trace**2 / max(square, trace**2 / len(effects))
    ratio = max(statistic, 0.0) / trace
    if np.isinf(df):
        return JointTest(ratio * f, f, df, float(chi2_tail(ratio * f, f)))
    return JointTest(ratio * f, f, df * f, float(scipy.special.fdtrc(f, df * f, ratio)))


def _statistic_of(groups: GroupCalibrations, place: slice) -> float:
    """Wald's statistic of some thresholds by themselves."""
    thresholds = groups.thresholds[:, place]
    if groups.sandwiches is None:
        return joint_statistic(thresholds, [covariance[place, place] for covariance in groups.covariances])
    covariance = np.block([[block[place, place] for block in row] for row in groups.sandwiches.covariances])
    to_first = np.kron(less_first(len(thresholds)), np.eye(thresholds.shape[1]))
    difference = to_first @ thresholds.ravel()
    inverse = np.linalg.pinv(to_first @ covariance @ to_first.T, rcond=RANK_DIGITS, hermitian=True)
    return float(difference @ inverse @ difference)


def weighted_spread(values: Floats, variances: Floats) -> Floats:
    """sum_g (b_g - mean)^2 / v_g around the weighted mean, column by column; 0 where nothing can vary."""
    weight = safe_divide(1.0, variances, otherwise=1.0)
    mean = (weight * values).sum(axis=0) / weight.sum(axis=0)
    return (weight * (values - mean) ** 2).sum(axis=0)


def joint_statistic(values: Floats, covariances: Sequence[Floats], center: Floats | None = None) -> float:
    """sum_g (b_g - b)^T V_g^+ (b_g - b) with the b that makes it smallest; for two groups T of the module's head.

    `center` is what all covariances have no variance in, the weights of the mean that is zero in each group.
    """
    variances = _with_variance_of_mean(covariances, center)
    if len(variances) == 2:
        difference = values[0] - values[1]
        return float(difference @ np.linalg.solve(variances[0] + variances[1], difference))
    precisions = []
    for variance in variances:
        precision = np.linalg.inv(variance)
        precisions.append((precision + precision.T) / 2)
    total = sum(precision @ b_g for precision, b_g in zip(precisions, values, strict=True))
    b = np.linalg.solve(np.sum(precisions, axis=0), total)
    return float(sum((b_g - b) @ precision @ (b_g - b) for precision, b_g in zip(precisions, values, strict=True)))


def _with_variance_of_mean(covariances: Sequence[Floats], center: Floats | None) -> list[Floats]:
    """The covariances with some variance along `center`, where all groups agree: it adds nothing to a statistic."""
    if center is None:
        return list(covariances)
    along_center = np.outer(center, center) / (center @ center)
    return [covariance + np.trace(covariance) / len(covariance) * along_center for covariance in covariances]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AndersenTest(Result):
    """What `andersen` found; `table()` has every item in every group: `group, item, difficulty, se`; or every
    threshold, where items have several: `group, item, category, threshold, se`.

    `loglik` is the conditional log-likelihood of all people together on the items compared; `groups` has that of each,
    and `groups.left_out`: items not compared.
    """

    name = "Andersen's test"
    symbol = "LR"

    loglik: float
    groups: GroupCalibrations


def andersen(
    responses: Any, split: Any = "median", *, model: str | None = None, threads: int | None = None
) -> AndersenTest:
    """Andersen's test: conditional likelihood with difficulties of their own in each group, against common ones.

    LR = 2 (sum_g log L_g(beta_g) - log L(beta)) ~ chi-square with (G - 1) p degrees of freedom under the model, where p
    parameters are free in each group: items less one (Rasch), thresholds less one (partial credit), or items less one
    and the distances of the common thresholds (rating scale).

    A small p says that items keep no common order of difficulty across the groups: unequal discriminations, guessing
    or dependence where people are split by score, differential functioning where they are split by a person column.
    Always by conditional maximum likelihood: with other estimates the statistic has no such distribution and no power.

    Parameters
    ----------
    responses : Responses, 2-D array or dataframe
    split : "median", "mean", "scores", or labels
        See `divide`. "median" (default): raw score up to the median, or above; `eRm::LRtest` has the same default and
        calls "scores" `all.r`. A score at the mean is in the upper group; eRm puts it in the lower on complete data.
    model : "rasch", "pcm" or "rsm", optional
        What is tested; by default the partial credit model for answers in more than two categories, else the Rasch
        model. Of ordered answers only items are compared that have somebody in every category in every group, as in
        eRm; a rating scale needs that of no single item.
    threads : int, optional

    References
    ----------
    Andersen (1973), Psychometrika 38, 123-140.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> andersen(datasets.load_lsat(), "mean")
    <Andersen's test: LR = 0.168, df = 4, p = 0.997; raw score < mean (345 people) | raw score >= mean (655 people)>
    """
    check_option("model", model, MODELS)
    data = _responses_for(model, responses)
    if threads is not None:
        data = data.with_engine(LocalEngine(threads))
    group_model = GroupModel(exact=True)
    if model == RATING_SCALE:
        group_model = GroupModel(scales=dict.fromkeys(data.items.tolist(), "all"), exact=True)
    difficulty = None
    if isinstance(split, str) and split == "ability":
        difficulty = _common_fit(data, group_model).thresholds
    groups = calibrate_groups(data, divide(data, split, difficulty=difficulty), group_model)
    loglik = _common_fit(groups.everyone, group_model).loglik
    statistic = 2 * (sum(groups.loglik) - loglik)
    df = (len(groups.names) - 1) * groups.n_parameters
    return AndersenTest(
        statistic=statistic,
        df=df,
        p=float(chi2_tail(max(statistic, 0.0), df)),
        compared=str(groups),
        columns=_threshold_columns(groups),
        frame_kind=data.frame_kind,
        findings=groups.findings,
        loglik=loglik,
        groups=groups,
    )


def _responses_for(model: str | None, responses: Any) -> Responses:
    """The answers as the model has them."""
    if model in (PARTIAL_CREDIT, RATING_SCALE):
        return as_responses(responses, ordered=True, unused="collapse" if model == PARTIAL_CREDIT else "keep")
    data = as_responses(responses)
    if model == RASCH:
        data.right_and_wrong_only()
    return data


class _CommonFit(NamedTuple):
    """The thresholds of all people together, and their conditional log-likelihood."""

    thresholds: Floats
    loglik: float


def _common_fit(data: Responses, model: GroupModel) -> _CommonFit:
    if data.thresholds.binary:
        fit = ConditionalRasch(se="none").fit(data)
        return _CommonFit(fit.difficulty_, fit.loglik_)
    estimate = conditional_thresholds(data, model.design(data), se="none")
    return _CommonFit(estimate.thresholds, estimate.loglik)


def _threshold_columns(groups: GroupCalibrations) -> Columns:
    """Every threshold in every group, with its standard error."""
    layout = groups.layout
    n_groups = len(groups.names)
    columns: Columns = {
        "group": np.repeat(np.array(groups.names, dtype=object), layout.n_entries),
        "item": np.tile(groups.items[layout.item], n_groups),
    }
    parameter = "difficulty"
    if not layout.binary:
        columns["category"] = np.tile(layout.level, n_groups)
        parameter = "threshold"
    columns[parameter] = groups.thresholds.ravel()
    columns["se"] = np.sqrt([np.diag(covariance) for covariance in groups.covariances]).ravel()
    return columns
