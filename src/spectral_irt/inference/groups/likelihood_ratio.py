"""Andersen's likelihood ratio test, as in eRm: are the items as hard for some people as for others?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Floats
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import check_option
from spectral_irt.estimators.conditional import ConditionalRasch, conditional_thresholds
from spectral_irt.inference.groups.calibrations import GroupCalibrations, GroupModel, calibrate_groups, scales_of
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.results import Result, chi2_tail


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AndersenTest(Result):
    """What `andersen` found.

    LR = 2 (sum of the groups' log-likelihoods - log-likelihood of all), with (groups - 1)(free parameters) degrees of
    freedom. `table()` has every item in every group: `group, item, difficulty, se`; or every threshold, where items
    have several: `group, item, category, threshold, se`. `loglik` is the conditional log-likelihood of all people
    together on the items compared; `groups` has that of each, and `groups.left_out`: items not compared.
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
    check_option("model", model, (None, "rasch", "pcm", "rsm"))
    if model in (None, "rasch"):
        data = as_responses(responses)
    else:
        data = as_responses(responses, ordered=True, unused="collapse" if model == "pcm" else "keep")
    if model == "rasch":
        data.right_and_wrong_only()
    data = data if threads is None else data.using(LocalEngine(threads))
    tested = GroupModel(scales=scales_of(None, data.items) if model == "rsm" else None, exact=True)
    by_ability = isinstance(split, str) and split == "ability"
    thresholds = _together(data, tested)[0] if by_ability else None
    groups = calibrate_groups(data, divide(data, split, difficulty=thresholds), tested)
    loglik = _together(groups.everyone, tested)[1]
    statistic = 2 * (sum(groups.loglik) - loglik)
    df, layout = (len(groups.names) - 1) * groups.n_parameters, groups.layout
    columns = {
        "group": np.repeat(np.array(groups.names, dtype=object), layout.n_entries),
        "item": np.tile(groups.items[layout.item], len(groups.names)),
    }
    if not layout.binary:
        columns["category"] = np.tile(layout.level, len(groups.names))
    columns["difficulty" if layout.binary else "threshold"] = groups.thresholds.ravel()
    return AndersenTest(
        statistic=statistic,
        df=df,
        p=float(chi2_tail(max(statistic, 0.0), df)),
        compared=str(groups),
        columns={**columns, "se": np.sqrt([np.diag(one) for one in groups.covariances]).ravel()},
        frame_kind=data.frame_kind,
        findings=groups.findings,
        loglik=loglik,
        groups=groups,
    )


def _together(data: Responses, model: GroupModel) -> tuple[Floats, float]:
    """The thresholds of all people together, and their conditional log-likelihood."""
    if data.thresholds.binary:
        fit = ConditionalRasch(se="none").fit(data)
        return fit.difficulty_, fit.loglik_
    found = conditional_thresholds(data, model.design(data), se="none")
    return found.thresholds, found.loglik
