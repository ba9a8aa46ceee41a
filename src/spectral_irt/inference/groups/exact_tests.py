"""Ponocny's exact tests of the Rasch model: tables of right and wrong answers with the same margins are equally likely.

Given how many each person and how many each item has right, no parameter is left, so a statistic is compared with its
distribution over all tables with these margins: exact in samples of any size. Tables are drawn by curveball trades
(Strona et al. 2014): of two items, the persons who have just one of them right are dealt anew, as many to each item as
before. Trades leave the margins, connect all tables, and are symmetric.

So that p is exact however many trades are made (Besag & Clifford 1989): from the observed table the trades run
backward to another, and from there forward again in each draw, so that observed and drawn tables are exchangeable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.data.labels import positions
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.dimensions.local_dependence import share_as_large
from spectral_irt.inference.results import LEAST_DRAWS, TOO_FEW_DRAWS
from spectral_irt.numerics import generator
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import listed, p_value

SWEEPS = 20  # each trades every item with another: after some ten, tables forget where they began
CELLS = 20_000_000  # answers of the tables that are drawn at once, a byte each
MOST_CELLS = 2_000_000  # answers of a table: beyond, draws given the score alone do as well, and sooner
TIE = 1e-9  # of a statistic: two that agree so far are equal but for rounding
TESTS = {
    "T1": "answers that agree, by pairs of items",
    "T2": "variance of the score on some items",
    "T10": "differences of items between two groups",
    "T11": "correlations between items",
}


@dataclass(frozen=True, eq=False, repr=False)
class ExactTest:
    """What `exact_test` found: the test and its statistic (of T1 the largest deviation of a pair, in standard
    deviations), the share of tables with one as large (`p`, the observed table among them), how many were drawn, and
    the columns of `table()`."""

    name: str
    statistic: float
    p: float
    draws: int
    columns: Columns = field(default_factory=dict)
    frame_kind: str | None = None

    def table(self) -> Table:
        """The details, by pair of items."""
        return make_table(self.columns, self.frame_kind)

    def to_dict(self) -> dict[str, Any]:
        """The result as data, but for the pairs."""
        return {"test": self.name, "statistic": self.statistic, "p": self.p, "draws": self.draws}

    def __repr__(self) -> str:
        return f"<{self.name} ({TESTS[self.name]}): {self.statistic:.4g}, {p_value(self.p)}, {self.draws:,} tables>"


def exact_test(
    responses: Any, test: str = "T11", *, items: Any = None, split: Any = "median", draws: int = 1000, seed: int = 0
) -> ExactTest:
    """An exact test of the Rasch model given both margins (Ponocny 2001), as in eRm's `NPtest`.

    Parameters
    ----------
    responses : Responses, 2-D array or dataframe
        Right and wrong answers, complete: every person answered every item. With missing answers trades may not connect
        all tables; draws given the score allow for them: `study.item_fit(critical=1000)`.
    test : "T1", "T2", "T10" or "T11"
        Local dependence: how often the answers to each pair of items agree (T1); the variance of the score on some
        items (T2), large where they share more than the ability; differences of items between two groups of persons
        (T10), as in Andersen's test; correlations between items (T11), a test of everything.
    items : labels of items
        Of T2.
    split : "median", "mean", or a label for each person
        Of T10: two groups by score, those above and the others; or by two labels.
    draws : int
        Tables to draw, 199 or more (default 1,000).
    seed : int
        Of the draws.

    References
    ----------
    Ponocny (2001), Psychometrika 66, 437-460; Besag & Clifford (1989), Biometrika 76, 633-642; Strona, Nappo,
    Boccacci, Fattorini & San-Miguel-Ayanz (2014), Nature Communications 5, 4114.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> exact_test(datasets.load_lsat().take_persons(range(0, 1000, 20)), "T10", draws=199).draws
    199
    """
    if test not in TESTS:
        raise OptionError(f"`test` is {test!r}; it can be {', '.join(TESTS)}.")
    if draws < LEAST_DRAWS:
        raise OptionError(TOO_FEW_DRAWS.format(f"`draws` is {draws}"))
    if (items is None) == (test == "T2"):
        raise OptionError("`items` are those whose score T2 looks at; T2 takes them, and no other test.")
    data = as_responses(responses)
    data.right_and_wrong_only()
    _refuse_unfit(data)
    x = data.to_dense().T.astype(bool)
    statistic = _statistic_of(test, data, items, split)
    observed = statistic(x[:, None])
    drawn = np.concatenate([statistic(tables) for tables in tables_with_margins(x, draws, seed)])
    if test == "T1":
        return _pairs(data, observed[0], drawn)
    if test == "T11":  # correlations against their mean over all tables
        mean = drawn.mean(axis=0)
        observed = np.abs(observed - mean).sum(axis=1)
        drawn = np.abs(drawn - mean).sum(axis=1)
    p = (1 + (drawn >= observed[0] - TIE * abs(observed[0])).sum()) / (1 + draws)
    return ExactTest(test, float(observed[0]), float(p), draws, frame_kind=data.frame_kind)


def _refuse_unfit(data: Responses) -> None:
    incomplete = data.counts < data.n_items
    if incomplete.any():
        raise DesignError(
            f"{data.source}: exact tests need complete data, and {int(incomplete.sum()):,} of {data.n_persons:,} "
            f"people miss an answer ({listed(data.persons[incomplete])}). Critical values from draws given the score "
            "allow for missing answers."
        )
    if data.n_items < 2 or data.n_persons < 2:
        raise DesignError(f"{data.source}: exact tests take two items and two people or more.")
    if data.n_responses > MOST_CELLS:
        raise DesignError(
            f"{data.source}: {data.n_responses:,} answers are many for exact tests, which are for small samples; "
            "critical values from draws given the score are as good there."
        )


def tables_with_margins(x: Mask, draws: int, seed: int) -> Iterator[Mask]:
    """Tables with the margins of this one, items x persons; yields some at a time, items x tables x persons."""
    n_items = len(x)
    rng = generator(seed)
    pairs: list[tuple[int, int]] = []
    for _ in range(SWEEPS):
        order = rng.permutation(n_items)
        pairs += zip(order[0::2].tolist(), order[1::2].tolist(), strict=False)
    start = _trade(x[:, None].copy(), pairs[::-1], rng)
    size = max(1, CELLS // x.size)
    for first in range(0, draws, size):
        number = min(size, draws - first)
        yield _trade(np.repeat(start, number, axis=1), pairs, rng)


def _trade(tables: Mask, pairs: list[tuple[int, int]], rng: np.random.Generator) -> Mask:
    """The tables, in their place, after these trades, of each table for itself."""
    n_tables, n_persons = tables.shape[1:]
    place = np.arange(n_persons)
    for i, j in pairs:
        differ = tables[i] ^ tables[j]
        n_first = (tables[i] & differ).sum(axis=1)
        keys = rng.random((n_tables, n_persons), dtype=np.float32)
        keys[~differ] = 2.0  # behind all who can be dealt
        order = np.argsort(keys, axis=1)
        to_first = np.zeros((n_tables, n_persons), dtype=bool)
        np.put_along_axis(to_first, order, place < n_first[:, None], axis=1)
        tables[j] = (tables[j] & ~differ) | (differ & ~to_first)
        tables[i] = (tables[i] & ~differ) | to_first
    return tables


def _statistic_of(test: str, data: Responses, items: Any, split: Any) -> Callable[[Mask], Floats]:
    """The statistic of each of some tables, items x tables x persons."""
    if test in ("T1", "T11"):
        return _right_on_both if test == "T1" else _correlations
    if test == "T2":
        chosen = positions(list(items), data.items)
        if (chosen < 0).any() or len(chosen) < 2:
            raise OptionError(f"`items` names two or more of the items, which are {listed(data.items)}.")
        return lambda tables: tables[chosen].sum(axis=0).var(axis=1, ddof=1)
    high = _groups(data, split)

    def differences(tables: Mask) -> Floats:
        first = _only_first(tables[:, :, high])
        second = _only_first(tables[:, :, ~high])
        return np.abs(first * second.swapaxes(1, 2) - second * first.swapaxes(1, 2)).sum(axis=(1, 2))

    return differences


def _groups(data: Responses, split: Any) -> Mask:
    if isinstance(split, str):
        if split not in ("median", "mean"):
            raise OptionError(f"`split` is {split!r}; it can be 'median', 'mean', or a label for each person.")
        limit = np.median(data.scores) if split == "median" else data.scores.mean()
        high = data.scores > limit
    else:
        labels = np.asarray(list(split), dtype=object)
        levels = sorted(set(labels.tolist()), key=str)
        if len(labels) != data.n_persons or len(levels) != 2:
            raise OptionError(f"`split` has two labels, and one for each of the {data.n_persons:,} people.")
        high = labels == levels[0]
    if high.all() or not high.any():
        raise DesignError(f"{data.source}: all people have one score, so there are no two groups.")
    return np.asarray(high)


def _right_on_both(tables: Mask) -> Floats:
    """How many have both items of each pair right, tables x items x items: with the margins as they are, answers agree
    as often as that says."""
    x = tables.swapaxes(0, 1).astype(np.float32)
    return np.asarray(x @ x.swapaxes(1, 2), dtype=np.float64)


def _only_first(tables: Mask) -> Floats:
    """How many have the first item of each pair right and the second wrong."""
    both = _right_on_both(tables)
    return both[:, np.arange(len(tables)), np.arange(len(tables))][:, :, None] - both


def _correlations(tables: Mask) -> Floats:
    """Tables x pairs; 0 of items that do not vary."""
    n = tables.shape[2]
    both = _right_on_both(tables) / n
    p = np.einsum("tii->ti", both)
    sd = np.sqrt(p * (1 - p))
    scale = sd[:, :, None] * sd[:, None, :]
    covariance = both - p[:, :, None] * p[:, None, :]
    r = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)
    first, second = np.triu_indices(len(tables), 1)
    return r[:, first, second]


def _pairs(data: Responses, observed: Floats, drawn: Floats) -> ExactTest:
    """T1: each pair for itself, and all together by the largest deviation (Westfall & Young)."""
    first, second = np.triu_indices(data.n_items, 1)
    right = data.item_scores.astype(np.int64)
    agree = data.n_persons - right[first] - right[second]
    observed = observed[first, second]
    drawn = drawn[:, first, second]
    every = np.vstack([observed, drawn])
    mean, sd = every.mean(axis=0), every.std(axis=0)
    z = np.divide(every - mean, sd, out=np.zeros_like(every), where=sd > 0)
    p_adjusted = share_as_large(z[1:].max(axis=1), z[0])
    order: NDArray[Any] | Ints = np.argsort(-z[0], kind="stable")
    columns: Columns = {
        "item_1": data.items[first],
        "item_2": data.items[second],
        "agree": agree + 2 * observed,
        "expected": agree + 2 * mean,
        "z": z[0],
        "p": (1 + (drawn >= observed).sum(axis=0)) / (1 + len(drawn)),
        "p_adjusted": p_adjusted,
    }
    columns = {name: values[order] for name, values in columns.items()}
    largest = float(z[0].max())
    return ExactTest("T1", largest, float(p_adjusted.min()), len(drawn), columns, data.frame_kind)
