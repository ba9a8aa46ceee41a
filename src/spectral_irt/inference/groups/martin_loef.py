"""Martin-Löf's likelihood ratio test, as in eRm: do two sets of items measure the same ability?

`martin_loef`, which is public, has the formula. With few people chi-squared is far off; the same statistic of data sets
drawn given the scores is not. To estimate anew in each draw takes one Newton step: with g_k what is observed less what
is expected given the scores on set k, at the thresholds of all items, and H_k its covariance, the likelihood of set k
rises by g_k' H_k^- g_k / 2, and that of all items by g' H^- g / 2. The rest of the statistic is that of a table of
counts, 2 sum_r n_r log(n_r / (n_s P(r | s))), with P(r | s) = prod_k gamma_k(r_k) / gamma(s).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.draw import draws_given_score
from spectral_irt.conditional.exact import given_every_score
from spectral_irt.conditional.exact_likelihood import information_at
from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.inference.results import LEAST_DRAWS, TOO_FEW_DRAWS, Result, chi2_tail
from spectral_irt.text import listed

CELLS = 16_000_000  # responses that are drawn at once, a byte each
TIE = 1e-9  # of a statistic: two that agree so far are equal but for rounding


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MartinLoefTest(Result):
    """What `martin_loef` found: the sets of items (`table()`), and conditional log-likelihoods, of all items together
    and of each set on its own; with draws p comes from these, and `p_chi2` from chi-squared."""

    name = "Martin-Löf's test"
    symbol = "LR"

    items: tuple[NDArray[Any], ...]
    loglik: float
    set_loglik: tuple[float, ...]
    p_chi2: float
    draws: int = 0


def martin_loef(
    responses: Any, split: Any = "median", *, draws: int = 0, seed: int = 0, threads: int | None = None
) -> MartinLoefTest:
    """Martin-Löf's test: one ability behind all items, against one of its own behind each set of items.

    LR = 2 ( sum_{r} n_r log(n_r / n) + sum_k log L_k - sum_s n_s log(n_s / n) - log L )

    where r runs over the combinations of scores on the sets, s over total scores, and L_k is the conditional likelihood
    of set k alone. Chi-square; prod_k (m_k + 1) - (m + 1) - (sets - 1) degrees of freedom, m_1 m_2 - 1 for two sets.

    The approximation needs many people for each combination of scores; where most are empty p is too large (with 400
    people and 7 + 8 items it rejected none of 100 samples from the model). Draws keep the level with any number.

    Parameters
    ----------
    responses : Responses, 2-D array or dataframe
        Right and wrong answers, complete: every person answered every item. With missing answers the combinations of
        scores have no common meaning, and there is an error.
    split : "median", "mean", an array of labels or a mapping from item to label
        "median" (default): items with at most the median number of right answers, and the easier ones; "mean" alike.
    draws : int
        Data sets to draw given the scores for p, 199 or more; 0 (default): p is that of chi-squared.
    seed : int
        Of the draws.

    References
    ----------
    Martin-Löf (1973), Statistiska modeller, Stockholm; Verguts & De Boeck (2000), Meth. Psych. Res. Online 5, 77-82.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> martin_loef(datasets.load_lsat())
    <Martin-Löf's test: LR = 2.307, df = 5, p = 0.805; harder items (3 items) | easier items (2 items)>
    """
    if draws != 0 and draws < LEAST_DRAWS:
        raise OptionError(TOO_FEW_DRAWS.format(f"`draws` is {draws}"))
    data = as_responses(responses)
    data.right_and_wrong_only()
    _refuse_incomplete(data)
    sets = _item_sets(data, split)
    parts = [data.take_items(items) for _, items in sets]
    fits = [ConditionalRasch(threads=threads, se="none").fit(part) for part in (data, *parts)]
    loglik, *set_loglik = (fit.loglik_ for fit in fits)
    score_counts = np.unique(np.array([part.scores for part in parts]), axis=1, return_counts=True)[1]
    likelihood_of_sets = _multinomial(score_counts) + sum(set_loglik)
    statistic = 2 * (likelihood_of_sets - _multinomial(np.bincount(data.scores)) - loglik)
    sizes = [part.n_items for part in parts]
    df = int(np.prod([size + 1 for size in sizes])) - (data.n_items + 1) - (len(sizes) - 1)
    labels = tuple(part.items for part in parts)
    p_chi2 = float(chi2_tail(max(statistic, 0.0), df))
    p = p_chi2
    if draws:
        p = _p_by_draws(data, fits[0].thresholds_, [items for _, items in sets], draws, seed)
    return MartinLoefTest(
        statistic=statistic,
        df=df,
        p=p,
        p_chi2=p_chi2,
        draws=draws,
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


class _ScoreTables(NamedTuple):
    """Of some items log gamma of every score; the chance of a right answer to each given the score, scores x items; and
    the inverse of the information of their people."""

    items: Ints
    log_gamma: Floats
    expected: Floats
    inverse: Floats

    @classmethod
    def of(cls, data: Responses, beta: Floats, items: Ints) -> _ScoreTables:
        beta = beta[items]
        given_score = given_every_score(beta[None])
        log_gamma = np.concatenate([[0.0], given_score.log_gamma, [-beta.sum()]])
        expected = np.concatenate([np.zeros((1, len(items))), given_score.p[0].T, np.ones((1, len(items)))])
        information = information_at(Likelihood(data.take_items(items), beta), beta).matrix
        inverse = np.linalg.pinv(information, hermitian=True).astype(np.float64)
        return cls(items, log_gamma, expected, inverse)

    def gain(self, passed: Floats, scores: Ints) -> float:
        """Twice what the log-likelihood gains by a Newton step, from how many were right on each item, and the scores
        of the people."""
        people = np.bincount(scores, minlength=len(self.log_gamma))
        score = passed - people @ self.expected
        return float(score @ self.inverse @ score)


def _p_by_draws(data: Responses, beta: Floats, sets: list[Ints], draws: int, seed: int) -> float:
    """The share of data sets drawn given the scores, the observed one among them, with as large a statistic."""
    table_of_all = _ScoreTables.of(data, beta, np.arange(data.n_items))
    tables = [_ScoreTables.of(data, beta, items) for items in sets]
    observed = _statistic(data.to_dense().astype(np.uint8), data.scores, table_of_all, tables)
    as_large = 1
    size = max(1, CELLS // (data.n_persons * data.n_items))
    for start in range(0, draws, size):
        some = range(start, min(start + size, draws))
        x = np.zeros((len(some), data.n_persons, data.n_items), dtype=np.uint8)
        for block in draws_given_score(data, beta, draws=some, seed=seed):
            x[:, block.persons[:, None], block.items] = block.categories
        as_large += sum(_statistic(one, data.scores, table_of_all, tables) >= observed * (1 - TIE) for one in x)
    return as_large / (1 + draws)


def _statistic(x: NDArray[np.uint8], scores: Ints, whole: _ScoreTables, sets: list[_ScoreTables]) -> float:
    """The likelihood ratio of a data set but for what all data sets with these scores have in common."""
    set_scores = [x[:, of_set.items].sum(axis=1, dtype=np.int64) for of_set in sets]
    n = np.unique(np.array(set_scores), axis=1, return_counts=True)[1]
    log_chance = sum(of_set.log_gamma[score].sum() for of_set, score in zip(sets, set_scores, strict=True))
    passed = x.sum(axis=0, dtype=np.float64)
    gains = [of_set.gain(passed[of_set.items], score) for of_set, score in zip(sets, set_scores, strict=True)]
    table = float(n @ np.log(n) - len(x) * np.log(len(x)) - log_chance)
    of_scores = _multinomial(np.bincount(scores)) - float(whole.log_gamma[scores].sum())
    return 2 * (table - of_scores) + sum(gains) - whole.gain(passed, scores)


def _multinomial(counts: Ints) -> float:
    """sum n log(n / N) over the cells that occur."""
    counts = counts[counts > 0]
    return float(counts @ np.log(counts / counts.sum()))
