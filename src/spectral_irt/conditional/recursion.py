"""Answers given the score of people with few steps up or few steps down, by the classical recursion and its adjoint.

With p_kc = P(X_k = c) at any ability, F_k(j) is the chance of a score of j on the first k items,

    F_k(j) = sum_c p_kc F_{k-1}(j - c),       B_{k-1}(j) = sum_c p_kc B_k(j + c),

where B_k(j) is the chance that the rest makes up the score s. Then P(X_k = c | s) = p_kc sum_j F_{k-1}(j - c) B_k(j) /
F_n(s). All terms are positive, so nothing cancels; the cost is n times the score, so steps down from the top are
counted instead of steps up where they are fewer. For many answers and middling scores `contour` is cheaper.

Arrays are categories x items x people; padding has P(X = 0) = 1.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.data.block import Floats, Ints


def by_recursion(p: Floats, scores: Ints) -> tuple[Floats, Floats]:
    """P(X = c | s) for c = 1, 2, ..., and P(S = s); p at an ability of which the score is not too unlikely.

    >>> p = np.full((2, 3, 1), 0.5)
    >>> by_recursion(p, np.array([1]))[0].ravel().round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    categories, n, people = p.shape
    top = int(scores.max())
    forward = np.zeros((n + 1, top + 1, people))
    forward[0, 0] = 1
    for k in range(n):
        np.multiply(forward[k], p[0, k], out=forward[k + 1])
        for c in range(1, min(categories, top + 1)):
            forward[k + 1, c:] += forward[k, :-c] * p[c, k]
    place = (scores, np.arange(people))
    total = forward[n][place]
    back = np.zeros((top + 1, people))
    back[place] = 1 / np.maximum(total, np.finfo(float).tiny)
    given, rest = np.zeros((categories - 1, n, people)), np.empty_like(back)
    for k in range(n - 1, -1, -1):
        np.multiply(back, p[0, k], out=rest)
        for c in range(1, min(categories, top + 1)):
            more = back[c:] * p[c, k]
            np.einsum("jl,jl->l", forward[k, :-c], more, out=given[c - 1, k])
            rest[:-c] += more
        back, rest = rest, back
    return given, total


def by_fewer_steps(p: Floats, cumulated: Floats, scores: Ints, most: Ints) -> tuple[Floats, Floats]:
    """`by_recursion`, by way of the steps down from the highest score for people who have fewer of these."""
    fewer = np.where(2 * scores > most, most - scores, scores)
    flip = np.flatnonzero(fewer < scores)
    if not len(flip):
        return by_recursion(p, scores)
    if len(p) == 2:
        swap = (fewer < scores) & (cumulated[0] < np.inf)
        given, total = by_recursion(np.where(swap, p[::-1], p), fewer)
        return np.where(swap, 1 - given, given), total
    category = np.arange(len(p))[:, None, None]
    down = (cumulated[:, :, flip] < np.inf).sum(axis=0) - category  # steps to the item's highest category
    turned = p.copy()
    turned[:, :, flip] = _turned(p[:, :, flip], down)
    given, total = by_recursion(turned, fewer)
    full = np.concatenate([1 - given[:, :, flip].sum(axis=0, keepdims=True), given[:, :, flip]])
    given[:, :, flip] = _turned(full, down)[1:]
    return given, total


def _turned(values: Floats, down: Ints) -> Floats:
    """Values of every category at the one as far from the top as it is from the bottom."""
    return np.where(down >= 0, np.take_along_axis(values, np.maximum(down, 0), 0), 0.0)
