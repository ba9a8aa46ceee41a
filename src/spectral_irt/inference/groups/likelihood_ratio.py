"""Likelihood ratio tests, as in eRm: are the items as hard for some people as for others (Andersen), and do two sets of
items measure the same ability (Martin-Löf)?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import DesignError, OptionError, check_option, listed
from spectral_irt.estimators.conditional import ConditionalRasch, conditional_thresholds
from spectral_irt.inference.groups.calibrations import GroupCalibrations, GroupModel, calibrate_groups, scales_of
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.results import Result, chi2_tail

ITEM_SPLITS = ("median", "mean")


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


# ------------------------------------------------------------------------------------------ Martin-Löf


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MartinLoefTest(Result):
    """What `martin_loef` found; `table()` says which item is in which set. It has the names and the items of the sets,
    and the conditional log-likelihoods of all items together and of each set on its own."""

    name = "Martin-Löf's test"
    symbol = "LR"

    names: tuple[str, ...]
    items: tuple[NDArray[Any], ...]
    loglik: float
    set_loglik: tuple[float, ...]


def martin_loef(responses: Any, split: Any = "median", *, threads: int | None = None) -> MartinLoefTest:
    """Martin-Löf's test: one ability behind all items, against one of its own behind each set of items.

    LR = 2 ( sum_{r} n_r log(n_r / n) + sum_k log L_k - sum_s n_s log(n_s / n) - log L )

    where r runs over the combinations of scores on the sets, s over total scores, and L_k is the conditional likelihood
    of set k alone. Chi-square; prod_k (m_k + 1) - (m + 1) - (sets - 1) degrees of freedom, m_1 m_2 - 1 for two sets.

    The approximation needs many people for each combination of scores; where most are empty p is too large (with 400
    people and 7 + 8 items it rejected none of 100 samples from the model).

    Parameters
    ----------
    responses : Responses, 2-D array or dataframe
        Complete: every person answered every item. With missing answers the combinations of scores have no common
        meaning, and there is an error.
    split : "median", "mean", an array of labels or a mapping from item to label
        "median" (default): items with at most the median number of right answers, and the easier ones; "mean" alike.

    References
    ----------
    Martin-Löf (1973), Statistiska modeller, Stockholm; Verguts & De Boeck (2000), Meth. Psych. Res. Online 5, 77-82.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> martin_loef(datasets.load_lsat())
    <Martin-Löf's test: LR = 2.307, df = 5, p = 0.805; harder items (3 items) | easier items (2 items)>
    """
    data = as_responses(responses)
    _require_complete(data)
    names, sets = _divide_items(data, split)
    parts = [data.take_items(chosen) for chosen in sets]
    scores = np.array([part.scores for part in parts])
    loglik = _loglik(data, threads)
    each = tuple(_loglik(part, threads) for part in parts)
    combined = np.unique(scores, axis=1, return_counts=True)[1]
    total = np.bincount(data.scores)
    statistic = 2 * (_entropy(combined) + sum(each) - _entropy(total) - loglik)
    df = int(np.prod([len(chosen) + 1 for chosen in sets])) - (data.n_items + 1) - (len(sets) - 1)
    items = tuple(data.items[chosen] for chosen in sets)
    sizes = [len(chosen) for chosen in sets]
    return MartinLoefTest(
        statistic=statistic,
        df=df,
        p=float(chi2_tail(max(statistic, 0.0), df)),
        compared=" | ".join(f"{name} ({size} items)" for name, size in zip(names, sizes, strict=True)),
        columns={"item": np.concatenate(items), "set": np.repeat(np.array(names, dtype=object), sizes)},
        frame_kind=data.frame_kind,
        names=names,
        items=items,
        loglik=loglik,
        set_loglik=each,
    )


def _require_complete(data: Responses) -> None:
    short = data.counts < data.n_items
    if short.any():
        raise DesignError(
            f"{data.source}: Martin-Löf's test needs complete data, and {int(short.sum()):,} of {data.n_persons:,} "
            f"people miss an answer ({listed(data.persons[short])}). Keep the others with "
            "responses.take_persons(responses.counts == responses.n_items), or test with score_split."
        )
    extreme = (data.item_scores == 0) | (data.item_scores == data.n_persons)
    if extreme.any():
        raise DesignError(
            f"{data.source}: everyone or no one answered these items right, and they have no finite difficulty: "
            f"{listed(data.items[extreme])}. Leave them out: responses.take_items(...)."
        )


def _divide_items(data: Responses, split: Any) -> tuple[tuple[str, ...], list[Ints]]:
    if isinstance(split, str):
        if split not in ITEM_SPLITS:
            raise OptionError(
                f"`split` is {split!r}; it can be {', '.join(map(repr, ITEM_SPLITS))}, or labels: one for each item, "
                "or a mapping from item to label."
            )
        scores = data.item_scores
        easier = scores > (np.median(scores) if split == "median" else np.mean(scores))
        names: tuple[str, ...] = ("harder items", "easier items")
        sets = [np.flatnonzero(~easier), np.flatnonzero(easier)]
    else:
        labels = [split.get(item) for item in data.items.tolist()] if isinstance(split, Mapping) else list(split)
        if len(labels) != data.n_items or any(label is None for label in labels):
            raise OptionError(f"the sets of items need a label for each of the {data.n_items:,} items.")
        levels = sorted(set(labels), key=str)
        names = tuple(map(str, levels))
        sets = [np.flatnonzero([label == level for label in labels]) for level in levels]
    small = [name for name, chosen in zip(names, sets, strict=True) if len(chosen) < 2]
    if len(sets) < 2 or small:
        what = f"{listed(small)} has fewer" if small else "there is only one set"
        raise OptionError(f"Martin-Löf's test compares sets of at least two items each; {what}.")
    return names, sets


def _loglik(data: Responses, threads: int | None) -> float:
    return ConditionalRasch(threads=threads, se="none").fit(data).loglik_


def _entropy(counts: Ints) -> float:
    """sum n log(n / N) over the cells that occur."""
    counts = counts[counts > 0]
    return float(counts @ np.log(counts / counts.sum()))
