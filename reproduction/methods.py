"""Difficulties by every method of the paper's tables: no standard errors where none are needed, so that times compare.

Every method here takes any data. Where a design falls apart it is fitted to its largest part; items without a finite
estimate are NaN. Whoever predicts takes these for average, whoever ranks puts them last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.without_pairs import complete_paper_difficulty, pairwise_without_pairs
from spectral_irt.calibration import Z95
from spectral_irt.chain.paper import pair_counts
from spectral_irt.chain.stationary import linked_items
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import positions
from spectral_irt.errors import DesignError, DisconnectedDesignError
from spectral_irt.estimators.chain_alone import start_thresholds
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.estimable import estimable_items
from spectral_irt.estimators.joint import VariationalRasch, joint_difficulty
from spectral_irt.estimators.marginal_fit import marginal_difficulty
from spectral_irt.estimators.pairwise import pairwise_difficulty
from spectral_irt.estimators.population import Members
from spectral_irt.estimators.spectral import SpectralRasch

Mask = NDArray[np.bool_]

# Beyond this, the matrix of all pairs of items (8 bytes each) does not fit: 7 GB.
MOST_PAIRED_ITEMS = 30_000

# EM stops when it moves no difficulty by more than this: a hundredth of the smallest standard error met.
EM_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class Found:
    """Difficulties, NaN without; the lower end of their 95% intervals, where known; and what was done to get them."""

    difficulty: Floats
    lower: Floats | None = None
    note: str = ""


Point = Callable[[Responses], Found]


def paper(responses: Responses, *, nu: float = 1.0) -> Found:
    """The paper's estimator: every pair counts once, nu on pairs that differed, as its program does."""
    whole = bool(np.all(responses.counts[responses.counts > 0] == responses.n_items))
    if responses.n_items > MOST_PAIRED_ITEMS and whole:
        return Found(complete_paper_difficulty(responses, nu), note="without the matrix of pairs, as data are complete")
    try:
        return Found(SpectralRasch.paper(nu=nu, se="none").fit(responses).difficulty_)
    except DesignError:
        part = largest_met(responses)
        found = SpectralRasch.paper(nu=nu, se="none").fit(responses.take_items(part)).difficulty_
        return Found(_spread(part, found), note="largest part of the design")


def default(responses: Responses) -> Found:
    """Our default, with the standard errors that a ranking by the lower end needs."""
    fit: Any = SpectralRasch().fit(responses)
    return Found(fit.difficulty_, fit.difficulty_ - Z95 * fit.se_, f"regularization: {fit.regularization_.kind}")


def cmle(responses: Responses) -> Found:
    """Conditional maximum likelihood, exact."""
    return _on_largest(responses, lambda rest: ConditionalRasch(se="none").fit(rest).difficulty_)


def jmle(responses: Responses) -> Found:
    """Joint maximum likelihood, uncorrected."""

    def fit(rest: Responses) -> Floats:
        items = estimable_items(rest)
        start = start_thresholds(items.responses)
        return items.for_all(joint_difficulty(items.responses, start=start)[0])

    return _on_largest(responses, fit)


def pmle(responses: Responses) -> Found:
    """Pairwise maximum likelihood, every pair counting once."""
    many = responses.n_items > MOST_PAIRED_ITEMS

    def fit(rest: Responses) -> Floats:
        items = estimable_items(rest)
        start = start_thresholds(items.responses)
        if many:
            return items.for_all(pairwise_without_pairs(items.responses, start=start))
        counts = pair_counts(items.responses)
        return items.for_all(pairwise_difficulty(counts, start=start, tol=1e-6)[0])

    found = _on_largest(responses, fit)
    return replace(found, note="without the matrix of pairs") if many and not found.note else found


def mmle(responses: Responses, sigma: float | None = None) -> Found:
    """Marginal maximum likelihood under N(mu, sigma^2); sigma is estimated when it is not given."""
    mixed = (responses.item_scores > 0) & (responses.item_scores < responses.item_counts)
    rest = responses.take_items(mixed)
    if rest.n_persons * 100 <= rest.n_items:
        rest = rest.in_one_block()  # what is made once per block and item is made once
    start = start_thresholds(rest)
    return Found(
        _spread(mixed, marginal_difficulty([Members(rest)], start=start, sigma=sigma, tol=EM_STEP).difficulty),
        note="" if sigma is None else f"prior sd {sigma:g}",
    )


def bayes(responses: Responses) -> Found:
    """Variational Bayes: posterior means."""
    return Found(VariationalRasch().fit(responses).difficulty_)


# ------------------------------------------------------------------------------ parts of a design


def _on_largest(responses: Responses, fit: Callable[[Responses], Floats]) -> Found:
    """`fit` of all items, or of the largest group with a common scale."""
    try:
        return Found(fit(responses))
    except DisconnectedDesignError:
        rest = responses.largest_component()
        part = np.zeros(responses.n_items, dtype=bool)
        part[positions(rest.items, responses.items)] = True
        return Found(_spread(part, fit(rest)), note="largest part of the design")


def largest_met(responses: Responses) -> Mask:
    """The largest group of items that are tied, directly or through others, by people who answered them differently."""
    groups, met = linked_items(responses, mixed=True)
    return met & (groups == 0)


def _spread(mask: Mask, values: Floats) -> Floats:
    full = np.full(len(mask), np.nan)
    full[mask] = values
    return full
