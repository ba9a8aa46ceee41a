"""Martin-Löf's likelihood ratio test, as in eRm: do two sets of items measure the same ability?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    short = data.counts < data.n_items
    if short.any():
        raise DesignError(
            f"{data.source}: Martin-Löf's test needs complete data, and {int(short.sum()):,} of {data.n_persons:,} "
            f"people miss an answer ({listed(data.persons[short])}). Keep the others with "
            "responses.take_persons(responses.counts == responses.n_items), or test with study.model_test()."
        )
    extreme = (data.item_scores == 0) | (data.item_scores == data.n_persons)
    if extreme.any():
        raise DesignError(
            f"{data.source}: everyone or no one answered these items right, and they have no finite difficulty: "
            f"{listed(data.items[extreme])}. Leave them out: responses.take_items(...)."
        )
    names, sets = _divide_items(data, split)
    parts = [data.take_items(chosen) for chosen in sets]
    together, *each = (ConditionalRasch(threads=threads, se="none").fit(part).loglik_ for part in (data, *parts))
    combined = np.unique(np.array([part.scores for part in parts]), axis=1, return_counts=True)[1]
    statistic = 2 * (_entropy(combined) + sum(each) - _entropy(np.bincount(data.scores)) - together)
    sizes = [len(chosen) for chosen in sets]
    df = int(np.prod([size + 1 for size in sizes])) - (data.n_items + 1) - (len(sets) - 1)
    items = tuple(data.items[chosen] for chosen in sets)
    return MartinLoefTest(
        statistic=statistic,
        df=df,
        p=float(chi2_tail(max(statistic, 0.0), df)),
        compared=" | ".join(f"{name} ({size} items)" for name, size in zip(names, sizes, strict=True)),
        columns={"item": np.concatenate(items), "set": np.repeat(np.array(names, dtype=object), sizes)},
        frame_kind=data.frame_kind,
        items=items,
        loglik=together,
        set_loglik=tuple(each),
    )


def _divide_items(data: Responses, split: Any) -> tuple[list[str], list[Ints]]:
    if isinstance(split, str):
        if split not in ("median", "mean"):
            raise OptionError(
                f"`split` is {split!r}; it can be 'median', 'mean', or labels: one for each item, or a mapping from "
                "item to label."
            )
        scores = data.item_scores
        easier = scores > (np.median(scores) if split == "median" else np.mean(scores))
        names, sets = ["harder items", "easier items"], [np.flatnonzero(~easier), np.flatnonzero(easier)]
    else:
        labels = [split.get(item) for item in data.items.tolist()] if isinstance(split, Mapping) else list(split)
        if len(labels) != data.n_items or any(label is None for label in labels):
            raise OptionError(f"the sets of items need a label for each of the {data.n_items:,} items.")
        levels = sorted(set(labels), key=str)
        names = [str(level) for level in levels]
        sets = [np.flatnonzero([label == level for label in labels]) for level in levels]
    small = [name for name, chosen in zip(names, sets, strict=True) if len(chosen) < 2]
    if len(sets) < 2 or small:
        what = f"{listed(small)} has fewer" if small else "there is only one set"
        raise OptionError(f"Martin-Löf's test compares sets of at least two items each; {what}.")
    return names, sets


def _entropy(counts: Ints) -> float:
    """sum n log(n / N) over the cells that occur."""
    counts = counts[counts > 0]
    return float(counts @ np.log(counts / counts.sum()))
