"""P(X_i = 1 | score) for whole blocks of people: the sums that conditional likelihood and conditional fit need."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from spectral_irt.estimators.edgeworth import DOUBLE, Precision, fill_given_score
from spectral_irt.estimators.esf import conditional_moments
from spectral_irt.estimators.information import links
from spectral_irt.estimators.patterns import Part, patterns_of, spans, split_in_parts
from spectral_irt.estimators.rows import rough_ability
from spectral_irt.responses.block import Block, Floats, Ints, csr

SERIES_FROM = 4.0  # information of a person at which the series is good to 7e-5 at worst, 5e-7 on average


def pattern_sums(part: Part, beta: Floats, cutoff: float = np.inf) -> tuple[sparse.csr_array, tuple[float, Floats]]:
    """sqrt(weight) c of the matched information; and the sums over people of log gamma and of P(X_i = 1 | s)."""
    padded = np.append(beta, np.inf)
    patterns = part.patterns
    log_gamma = 0.0
    expected, c = np.empty(len(patterns.items)), np.empty(len(patterns.items))
    for tile in part.tiles:
        each, p = conditional_moments(padded[tile.items], tile.counts, tile.scores, cutoff)
        log_gamma += float(tile.weights @ each)
        span = slice(tile.start, tile.start + int(tile.counts.sum()))
        expected[span] = tile.flat(p * tile.weights)
        c[span] = tile.flat(links(p, tile.counts) * np.sqrt(tile.weights))
    piece = csr(patterns.indptr.astype(np.int32), patterns.items, c, part.n_items)
    sums = np.bincount(patterns.items, weights=expected, minlength=part.n_items).astype(np.float64)
    return piece, (log_gamma, sums)


def conditional_probabilities(
    block: Block, difficulty: Floats, *, series_from: float = np.inf, precision: Precision = DOUBLE
) -> Floats:
    """P(X_li = 1 | s_l) of every response, in the order of `block.items`; its conditional variance is P (1 - P).

    People with all answers right have 1, with all wrong 0. An item whose difficulty is not finite counts as not
    answered: the score leaves it out, and its P is NaN.

    Parameters
    ----------
    difficulty : float array, one an item
    series_from : number
        People whose answers carry so much information take the series of `edgeworth`; by default none do.
    precision : float64 or float32
        What the series is computed in.

    >>> from spectral_irt.responses import Responses
    >>> block = Responses.from_wide([[1, 0, 0], [1, 1, 1]]).blocks[0]
    >>> conditional_probabilities(block, np.zeros(3)).round(3).tolist()
    [0.333, 0.333, 0.333, 1.0, 1.0, 1.0]
    """
    known = np.isfinite(difficulty)[block.items]
    if not known.all():
        out = np.full(block.n_responses, np.nan)
        finite = np.isfinite(difficulty)
        code = np.where(finite, np.cumsum(finite) - 1, -1).astype(np.int32)
        rest = block.keep_items(code)
        options: Any = {"series_from": series_from, "precision": precision}
        out[known] = conditional_probabilities(rest, difficulty[finite], **options)
        return out
    out = np.repeat((block.scores > 0).astype(np.float64), block.counts)
    people = np.flatnonzero(block.informative)
    theta, information = rough_ability(block, people, difficulty)
    long = information >= series_from
    if long.any():
        _fill_by_series(block, people[long], theta[long], difficulty, out, precision)
    if not long.all():
        _fill_by_patterns(block, people[~long], difficulty, out)
    return out


def _fill_by_series(
    block: Block, people: Ints, theta: Floats, difficulty: Floats, out: Floats, precision: Precision
) -> None:
    every = len(people) == block.n_users
    chosen = block if every else block.take(people)
    p = out if every else np.empty(chosen.n_responses)
    indptr, items = chosen.indptr.astype(np.int32), np.asarray(chosen.items)
    fill_given_score(indptr, items, chosen.scores, theta, difficulty, p, None, precision)
    if not every:
        out[spans(block.indptr[:-1][people], chosen.counts)] = p


def _fill_by_patterns(block: Block, people: Ints, difficulty: Floats, out: Floats) -> None:
    """Exact values, once for all who share a pattern."""
    chosen = block.take(people)
    patterns, pattern_of_user, _ = patterns_of(chosen)
    padded = np.append(difficulty, np.inf)
    shared = np.empty(len(patterns.items))
    for part in split_in_parts(patterns, len(difficulty)):
        p = [tile.flat(conditional_moments(padded[tile.items], tile.counts, tile.scores)[1]) for tile in part.tiles]
        shared[spans(patterns.indptr[:-1][part.which], part.patterns.counts)] = np.concatenate(p)
    place = spans(block.indptr[:-1][people], chosen.counts)
    by_item = np.argsort((chosen.user_of_response() << 32) + chosen.items)
    out[place[by_item]] = shared[spans(patterns.indptr[:-1][pattern_of_user], chosen.counts)]
