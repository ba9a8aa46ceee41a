"""Martin-Löf's likelihood ratio test, as in eRm: do two sets of items measure the same ability?

`martin_loef`, which is public, has the formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Ints
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.results import Result, chi2_tail
from spectral_irt.text import listed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MartinLoefTest(Result):
    """What `martin_loef` found: the sets of items (`table()`), and conditional log-likelihoods, of all items together
    and of each set on its own."""

    name = "Martin-Löf's test"
    symbol = "LR"

    items: tuple[NDArray[Any], ...]
    loglik: float
    set_loglik: tuple[float, ...]


def martin_loef(responses: Any, split: Any = "median", *, threads: int | None = None) -> MartinLoefTest:
    """Martin-Löf's test: one ability behind all items, against one of its own behind each set of items.

    LR = 2 ( sum_{r} n_r log(n_r / n) + sum_k log L_k - sum_s n_s log(n_s / n) - log L )

    where r runs over the combinations of scores on the sets, s over total scores, and L_k is the conditional likelihood
    of set k alone. Chi-square; prod_k (m_k + 1) - (m + 1) - (sets - 1) degrees of freedom, m_1 m_2 - 1 for two sets.

    The approximation needs many people for each combination of scores; where most are empty p is too large (with 400
    people and 7 + 8 items it rejected none of 100 samples from the model). `study.checks()` keeps its level there.

    Parameters
    ----------
    responses : Responses, 2-D array or dataframe
        Right and wrong answers, complete: every person answered every item. With missing answers the combinations of
        scores have no common meaning, and there is an error.
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
    data.right_and_wrong_only()
    _refuse_incomplete(data)
    sets = _item_sets(data, split)
    parts = [data.take_items(items) for _, items in sets]
    loglik, *set_loglik = (ConditionalRasch(threads=threads, se="none").fit(part).loglik_ for part in (data, *parts))
    score_counts = np.unique(np.array([part.scores for part in parts]), axis=1, return_counts=True)[1]
    likelihood_of_sets = _multinomial(score_counts) + sum(set_loglik)
    statistic = 2 * (likelihood_of_sets - _multinomial(np.bincount(data.scores)) - loglik)
    sizes = [part.n_items for part in parts]
    df = int(np.prod([size + 1 for size in sizes])) - (data.n_items + 1) - (len(sizes) - 1)
    labels = tuple(part.items for part in parts)
    return MartinLoefTest(
        statistic=statistic,
        df=df,
        p=float(chi2_tail(max(statistic, 0.0), df)),
        compared=" | ".join(f"{name} ({len(items)} items)" for name, items in sets),
        columns={
            "item": np.concatenate(labels),
            "set": np.repeat(np.array([name for name, _ in sets], dtype=object), sizes),
        },
        frame_kind=data.frame_kind,
        items=labels,
        loglik=loglik,
        set_loglik=tuple(set_loglik),
    )


def _refuse_incomplete(data: Responses) -> None:
    """An error where somebody misses an answer, or an item is extreme."""
    incomplete = data.counts < data.n_items
    if incomplete.any():
        raise DesignError(
            f"{data.source}: Martin-Löf's test needs complete data, and {int(incomplete.sum()):,} of "
            f"{data.n_persons:,} people miss an answer ({listed(data.persons[incomplete])}). Keep the others with "
            "responses.take_persons(responses.counts == responses.n_items), or test with study.model_test()."
        )
    extreme = (data.item_scores == 0) | (data.item_scores == data.n_persons)
    if extreme.any():
        raise DesignError(
            f"{data.source}: everyone or no one answered these items right, and they have no finite difficulty: "
            f"{listed(data.items[extreme])}. Leave them out: responses.take_items(...)."
        )


class _ItemSet(NamedTuple):
    """Items that may measure an ability of their own, by their positions."""

    name: str
    items: Ints


def _item_sets(data: Responses, split: Any) -> list[_ItemSet]:
    sets = _by_score(data, split) if isinstance(split, str) else _by_label(data, split)
    small = [name for name, items in sets if len(items) < 2]
    if len(sets) < 2 or small:
        what = f"{listed(small)} has fewer" if small else "there is only one set"
        raise OptionError(f"Martin-Löf's test compares sets of at least two items each; {what}.")
    return sets


def _by_score(data: Responses, split: str) -> list[_ItemSet]:
    if split not in ("median", "mean"):
        raise OptionError(
            f"`split` is {split!r}; it can be 'median', 'mean', or labels: one for each item, or a mapping from "
            "item to label."
        )
    typical = np.median(data.item_scores) if split == "median" else np.mean(data.item_scores)
    easier = data.item_scores > typical
    return [_ItemSet("harder items", np.flatnonzero(~easier)), _ItemSet("easier items", np.flatnonzero(easier))]


def _by_label(data: Responses, split: Any) -> list[_ItemSet]:
    if isinstance(split, Mapping):
        labels = [split.get(item) for item in data.items.tolist()]
    else:
        labels = list(split)
    if len(labels) != data.n_items or any(label is None for label in labels):
        raise OptionError(f"the sets of items need a label for each of the {data.n_items:,} items.")
    sets = []
    for name in sorted(set(labels), key=str):
        sets.append(_ItemSet(str(name), np.flatnonzero([label == name for label in labels])))
    return sets


def _multinomial(counts: Ints) -> float:
    """sum n log(n / N) over the cells that occur."""
    counts = counts[counts > 0]
    return float(counts @ np.log(counts / counts.sum()))
