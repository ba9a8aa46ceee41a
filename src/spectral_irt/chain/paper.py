"""Algorithms 1 and 2 of Nguyen & Zhang (2022), as printed, their algorithm for partial credit (2024), and the explicit
pair counts that they take.

Y_ij = sum_l w_l X_li (1 - X_lj): who answered i right and j wrong. B_ij: who answered both. Both have a cell for every
pair of items ever seen together, which is what the matrix-free chain avoids.

Both algorithms take Y, regularized or not, or the responses themselves, and return mean-zero difficulties. They give
the same answer (the paper's theorem on equivalent chains) at very different cost: with a common normalization d, items
with few answers hold large self-loops and the chain creeps. For work, use `SpectralRasch`, whose `paper()` gives the
same difficulties.

>>> from spectral_irt import datasets, paper
>>> y = paper.regularize(paper.pair_counts(datasets.load_lsat()), nu=1.0)
>>> paper.algorithm_2(y).difficulty.round(2).tolist()
[-1.28, 0.47, 1.24, 0.17, -0.6]

`two_phase` is the algorithm of Nguyen & Zhang (2024) for answers in ordered categories.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from spectral_irt.chain.operator import COUNTED, count_weights, weighting_named
from spectral_irt.chain.prior import NU_RULES, check_strength
from spectral_irt.chain.stationary import linked_items
from spectral_irt.data import Responses, as_responses
from spectral_irt.data.block import Block, Floats
from spectral_irt.data.design import Design, Mask
from spectral_irt.data.labels import Labels
from spectral_irt.data.unlinked import describe_split
from spectral_irt.errors import LARGEST_COMPONENT, ConvergenceWarning, DesignError, OptionError, check_option
from spectral_irt.text import stopped_early

__all__ = [
    "PaperFit",
    "TwoPhaseFit",
    "algorithm_1",
    "algorithm_2",
    "pair_counts",
    "regularize",
    "seen_together",
    "two_phase",
]

Stop = Literal["residual", "step"]
STOPS = get_args(Stop)
DENSE_ITEMS = 4000  # up to here a dense matrix (128 MB) is faster and hardly larger than a sparse one
MOST_DENSE_ITEMS = 30_000  # a matrix of 7 GB
SLICE = 1000  # rows of a large matrix that are worked on at a time
MOST_PAIRS = 10**10  # pairs of answers of one person, in all: to count them takes minutes
MOST_CELLS = 2 * 10**8  # pairs of items that have met, 14,000 items: 2.4 GB, and each of many iterations takes a second

Pairs: TypeAlias = Any  # a dense array, or a scipy csr_array


@dataclass(frozen=True, eq=False)
class PaperFit:
    """Difficulties, the stationary distribution `pi` of the original chain, and how it was reached."""

    difficulty: Floats
    pi: Floats
    chain_pi: Floats
    normalization: Floats
    n_iter: int
    residual: float


@dataclass(frozen=True, eq=False)
class TwoPhaseFit:
    """What `two_phase` returns.

    Attributes
    ----------
    thresholds : float array
        The first threshold of the first item, its second, and so on; items' locations have mean zero.
    difficulty : float array
        Of each item: the mean of its thresholds.
    levels : tuple of PaperFit
        The chain of each level k = 1, 2, ..., on the items with so many thresholds.
    shift : float array
        How far the mean of the k-th thresholds is from that of the first ones.
    """

    thresholds: Floats
    difficulty: Floats
    levels: tuple[PaperFit, ...]
    shift: Floats


def algorithm_1(
    y: Pairs,
    *,
    d: float | None = None,
    beta_range: float | None = None,
    tol: float = 1e-10,
    max_iter: int = 1_000_000,
    stop: str = "residual",
) -> PaperFit:
    """The spectral estimator: P_ij = Y_ij / d, P_ii = 1 - sum_k Y_ik / d, power iteration from the uniform start.

    Parameters
    ----------
    y : array or sparse matrix, items x items; or responses
        Pair counts Y, regularized or not. Or X, the responses from which the paper's Algorithm 1 counts Y: `Responses`,
        a dataframe, or an array, persons x items, of 1, 0 and NaN. A square array is taken for Y, whose diagonal is
        zero; of as many persons as items give `pair_counts(read(x))`.
    d : float, optional
        The common normalization, at least the largest row sum of Y, which is the default (the paper: O(max_i sum_k
        B_ik)). Larger is slower and changes nothing else.
    beta_range : float, optional
        beta_max - beta_min of the truncated log, log max(pi_i, 1 / (m e^range)). Default: no truncation.
    tol, max_iter, stop
        Stop at a relative l1 residual of the chain below `tol` ("residual"), or when a step is shorter than `tol` in
        the l2 norm ("step", the rule of the paper's program, which used 1e-6).

    References
    ----------
    Nguyen & Zhang (2022), Algorithm 1 and equation (3).

    Examples
    --------
    >>> from spectral_irt import datasets, paper
    >>> x = datasets.load_lsat().to_dense()
    >>> fit = paper.algorithm_1(x)
    >>> fit.difficulty.round(2).tolist()
    [-1.3, 0.48, 1.25, 0.17, -0.6]
    >>> bool(np.allclose(fit.difficulty, paper.algorithm_1(paper.pair_counts(datasets.load_lsat())).difficulty))
    True
    """
    y = _counts_of_pairs(y)
    rows = _row_sums(y)
    common = float(rows.max()) if d is None else float(d)
    if common < rows.max():
        raise OptionError(f"`d` is {common:g}; it must be at least the largest row sum of Y, {rows.max():g}.")
    return _power(y, np.full(len(rows), common), beta_range, tol, max_iter, stop)


def algorithm_2(
    y: Pairs,
    *,
    d: Floats | None = None,
    beta_range: float | None = None,
    tol: float = 1e-10,
    max_iter: int = 1_000_000,
    stop: str = "residual",
) -> PaperFit:
    """The accelerated spectral estimator: a normalization d_i of its own for every item, undone at the end.

    `d` defaults to max(sum_k Y_ik, 1), as in the paper's program; the other parameters are those of `algorithm_1`.

    References
    ----------
    Nguyen & Zhang (2022), Algorithm 2, equation (8) and the theorem on equivalent chains.
    """
    y = _counts_of_pairs(y)
    rows = _row_sums(y)
    diagonal = np.maximum(rows, 1.0) if d is None else np.asarray(d, dtype=float)
    if np.any(diagonal < rows):
        raise OptionError("every d_i must be at least the row sum of Y for its item.")
    return _power(y, diagonal, beta_range, tol, max_iter, stop)


def two_phase(
    x: Any, *, nu: float = 0.0, tol: float = 1e-10, max_iter: int = 1_000_000, stop: str = "residual"
) -> TwoPhaseFit:
    """The spectral algorithm for partial credit: a chain for each level of thresholds, then the levels side by side.

    With Y_ij(a, b) the number of persons who answered item i in category a and item j in category b, i not j:

    1. For each k the chain with rates Y_ij(k, k - 1), solved by `algorithm_2`, has the k-th thresholds up to a shift.
    2. For each k > 1 the shift is the one at which the sums over all i and j agree in
       sum exp(beta_i1) Y_ij(1, k - 1) = sum exp(beta_jk) Y_ij(0, k), since the two patterns have the same total score.

    With two categories it is `algorithm_2`. Between different levels it uses nothing but these sums; for work, use
    `SpectralPartialCredit`, whose chain joins all levels and takes every pair of answers.

    Parameters
    ----------
    x : Responses, dataframe or array
        Persons x items, of categories 0, 1, ..., NaN where missing.
    nu : float
        Added to the rates of each level between items that some person answered differently there. Shifts are counted
        without it. The authors' program takes 0.1.
    tol, max_iter, stop
        As in `algorithm_1`.

    References
    ----------
    Nguyen & Zhang (2024). Novel spectral algorithms for the partial credit model. ICML, PMLR 235, 37840-37878.

    Examples
    --------
    >>> import numpy as np
    >>> from spectral_irt import paper, simulate
    >>> data = simulate.partial_credit(5000, 6, categories=3, seed=1)
    >>> fit = paper.two_phase(data.responses)
    >>> float(np.abs(fit.thresholds - data.thresholds).max().round(1))
    0.1
    """
    responses = as_responses(x, ordered=True)
    layout = responses.thresholds
    labels = responses.entries.items
    # Of all thresholds: Y of (i, k) and (j, k') counts who answered i in category k and j in category k' - 1.
    y = pair_counts(responses.entries, dense=True)
    beta = np.zeros(layout.n_entries)
    levels = []
    shift = np.zeros(layout.widest)
    first = np.flatnonzero(layout.level == 1)
    for k in range(1, layout.widest + 1):
        place = np.flatnonzero(layout.level == k)
        rates = regularize(y[np.ix_(place, place)], nu)
        _refuse_unordered(rates, labels[place], k)
        fit = algorithm_2(rates, tol=tol, max_iter=max_iter, stop=stop)
        levels.append(fit)
        beta[place] = fit.difficulty
        if k > 1:
            other_item = layout.item[first][:, None] != layout.item[place]
            one_below = y[np.ix_(first, place)] * other_item  # i in category 1, j in k - 1
            zero_above = y[np.ix_(place, first)].T * other_item  # i in category 0, j in k
            shift[k - 1] = _log_ratio(np.exp(beta[first]) @ one_below, zero_above @ np.exp(beta[place]), k)
            beta[place] += shift[k - 1]
    difficulty = layout.mean(beta)
    origin = difficulty.mean()
    return TwoPhaseFit(beta - origin, difficulty - origin, tuple(levels), shift)


def _refuse_unordered(rates: Floats, labels: Labels, level: int) -> None:
    """An error where the chain of a level would not go from every item to every other: it would have no solution."""
    from scipy.sparse.csgraph import connected_components

    n_groups, group = connected_components(rates, connection="strong")
    if n_groups > 1:
        outside = labels[group != np.argmax(np.bincount(group))].tolist()
        raise DesignError(
            f"the chain of thresholds {level} does not lead from every item to every other: "
            f"{', '.join(map(str, outside[:5]))} ({len(outside):,} in all) are passed by nobody, or failed by nobody, "
            "who did otherwise on the rest. Merge categories, drop the items, or say `nu=0.1`."
        )


def _log_ratio(below: Floats, above: Floats, level: int) -> float:
    """log(sum below / sum above), the shift of a level."""
    if not (below.any() and above.any()):
        raise DesignError(
            f"thresholds {level} cannot be placed beside thresholds 1: nobody answered one item in category 1 and "
            f"another in {level - 1}, or nobody one in category 0 and another in {level}."
        )
    return float(np.log(below.sum() / above.sum()))


def _counts_of_pairs(given: Any) -> Pairs:
    """Y as it was given, or counted from responses."""
    is_matrix = isinstance(given, np.ndarray) or sparse.issparse(given)
    if not (is_matrix and given.ndim == 2 and given.shape[0] == given.shape[1]):
        return pair_counts(as_responses(given))
    if given.diagonal().any():
        raise OptionError(
            "this square matrix has numbers other than zero on its diagonal, and counts of pairs Y have none there. If "
            "these are responses of as many persons as items, give pair_counts(read(x))."
        )
    return given


def _row_sums(y: Any) -> Floats:
    rows = np.asarray(y.sum(axis=1)).ravel()
    silent = np.flatnonzero((rows == 0) & (np.asarray(y.sum(axis=0)).ravel() == 0))
    if len(silent):
        raise DesignError(
            f"{len(silent):,} items differ from no other in any person's answers (positions {silent[:5].tolist()}); "
            "the chain keeps their starting mass for ever. Drop them first."
        )
    return rows


def _power(y: Any, d: Floats, beta_range: float | None, tol: float, max_iter: int, stop: str) -> PaperFit:
    check_option("stop", stop, STOPS)
    m = len(d)
    back = y.T if isinstance(y, np.ndarray) else y.T.tocsr()
    stay = 1 - _row_sums(y) / d
    pi = np.full(m, 1 / m)
    residual = np.inf
    for n_iter in range(1, max_iter + 1):  # noqa: B007  (its last value is reported)
        moved = back @ (pi / d) + stay * pi
        moved /= moved.sum()
        # The self-loops cancel in the difference, so this is also the residual of the row-normalized chain, scaled.
        outflow = pi * (1 - stay)
        residual = float(np.abs(moved - pi).sum() / outflow.sum())
        close = residual < tol if stop == "residual" else np.linalg.norm(moved - pi) < tol
        pi = moved
        if close:
            break
    else:
        warnings.warn(
            stopped_early("the power iteration", max_iter, "steps", "residual", residual, tol)
            + " The estimate may be off.",
            ConvergenceWarning,
            stacklevel=3,
        )
    original = pi / d
    original /= original.sum()
    floor = 0.0 if beta_range is None else 1 / (m * np.exp(beta_range))
    with np.errstate(divide="ignore"):
        beta = np.log(np.maximum(original, floor))
    return PaperFit(beta - beta.mean(), original, pi, d, n_iter, residual)


def pair_counts(responses: Responses, *, weighting: str = "pairs", dense: bool | None = None) -> Pairs:
    """Y: for every pair, the (weighted) number of people who answered the first right and the second wrong.

    Parameters
    ----------
    weighting : "pairs" or "persons"
        Each person counts 1, or 1 / n_l.
    dense : bool, optional
        A dense array, or a sparse matrix. Default: dense up to 4,000 items.
    """
    weighting_named(weighting, COUNTED)
    _refuse_too_many(responses, pairs_that_differ(responses))
    return _sum_of_pairs(responses, _pairs_that_differ, dense, weighting)


def seen_together(responses: Responses, *, dense: bool | None = None) -> Pairs:
    """B: for every pair of items, how many people answered both; 0 on the diagonal."""
    _refuse_too_many(responses, float((responses.counts.astype(float) ** 2).sum()))
    return _sum_of_pairs(responses, _together, dense)


def pairs_that_differ(responses: Responses) -> float:
    """How many pairs of a right and a wrong answer of the same person there are."""
    right = responses.scores.astype(float)
    return float((right * (responses.counts - right)).sum())


def _refuse_too_many(responses: Responses, pairs: float) -> None:
    """An error where the pairs could not be counted in any reasonable time, or their matrix not be held."""
    m = responses.n_items
    if pairs > MOST_PAIRS or min(pairs, float(m) ** 2) > MOST_CELLS:
        raise DesignError(
            f"{responses.source}: {m:,} items and {responses.n_persons:,} people make {pairs:.1e} pairs of answers, "
            "too many to be gone through one by one. Use `SpectralRasch`, whose chain needs no pairs, and leave out "
            "`nu`."
        )


def smaller_dense(responses: Responses) -> bool:
    """Whether the dense matrix is the smaller one: most pairs have met, or there are few items."""
    met = pairs_that_differ(responses)
    return responses.n_items <= (MOST_DENSE_ITEMS if met > responses.n_items**2 else DENSE_ITEMS)


def regularize(
    y: Pairs, nu: float, *, rule: str = "differed", b: Pairs | None = None, overwrite: bool = False
) -> Pairs:
    """The paper's regularization: `nu` imaginary disagreements each way for pairs that have met.

    Parameters
    ----------
    rule : "differed" or "together"
        Which pairs: those that some person answered differently, Y_ij + Y_ji > 0 (the paper's printed program), or all
        that some person answered both of, B_ij > 0 (the paper's text; needs `b`).
    overwrite : bool
        Use up the memory of a dense `y`.
    """
    check_option("nu_rule", rule, NU_RULES)
    check_strength("nu", nu)
    if rule == "together" and b is None:
        raise OptionError("the rule 'together' needs the counts b of seen_together(responses).")
    if isinstance(y, np.ndarray):
        out: Any = y if overwrite else y.copy()
        seen: Any = b
        for start in range(0, len(y), SLICE):  # in slices, as the matrix may be all that fits
            rows = slice(start, start + SLICE)
            # Where nu was added before, the pair has met, so that it may be looked up in the same matrix.
            out[rows] += nu * ((out[rows] + out.T[rows] > 0) if rule == "differed" else _dense(seen[rows]) > 0)
        return out
    pattern = (y + y.T) if rule == "differed" else sparse.csr_array(b)
    met = sparse.csr_array((np.full(pattern.nnz, float(nu)), pattern.indices, pattern.indptr), shape=y.shape)
    return sparse.csr_array(y + met)


class PairChain:
    """The chain with an explicit matrix of rates."""

    def __init__(self, y: Pairs) -> None:
        self.y = y
        self.rates: Floats = np.asarray(y.sum(axis=1)).ravel()
        self._back = y.T if isinstance(y, np.ndarray) else sparse.csr_array(y.T)

    def inflow(self, flow: Floats) -> Floats:
        return self._back @ flow

    def matrix(self) -> Floats:
        """Y itself, dense."""
        return _dense(self.y)


def _pairs_that_differ(block: Block, n_items: int, weighting: str) -> sparse.csr_array:
    right, wrong = block.halves(n_items)
    weights = sparse.diags_array(count_weights(block, weighting))
    return sparse.csr_array(right.T @ (weights @ wrong))


def _together(block: Block, n_items: int) -> sparse.csr_array:
    right, wrong = block.halves(n_items)
    seen = right + wrong
    both = sparse.csr_array(seen.T @ seen)
    both.setdiag(0)
    both.eliminate_zeros()
    return both


def _sum_of_pairs(responses: Responses, kernel: Any, dense: bool | None, *args: Any) -> Pairs:
    m = responses.n_items
    if dense is None:
        dense = m <= DENSE_ITEMS
    total: Any = np.zeros((m, m)) if dense else sparse.csr_array((m, m))
    for part in responses.map(kernel, m, *args):
        if not dense:
            total = total + part
            continue
        for start in range(0, m, SLICE):
            total[start : start + SLICE] += part[start : start + SLICE].toarray()
    return total


def _dense(pairs: Any) -> Floats:
    return pairs.toarray() if sparse.issparse(pairs) else pairs


def met_items(design: Design, rule: str) -> Mask:
    """The items that nu ties to others: some person answered it and another one, differently ("differed") or at all.

    They must be connected, directly or through others; if not, the error says how they fall apart.
    """
    responses = design.answers.entries
    groups, met = linked_items(responses, mixed=rule == "differed")
    if groups[met].any():
        raise DesignError(
            f"{responses.source}: {describe_split(responses.take_items(met), groups[met])} `nu` cannot tie them. "
            f"Use {LARGEST_COMPONENT}, or `regularization='auto'` without `nu`."
        )
    return met


def __dir__() -> list[str]:
    """The public names alone, for whoever lets a notebook complete them."""
    return __all__
