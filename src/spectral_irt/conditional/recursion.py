"""Answers given the score of people with few steps up or few steps down, by the classical recursion and its adjoint.

With p_kc = P(X_k = c) at any ability, F_k(j) is the chance of a score of j on the first k items,

    F_k(j) = sum_c p_kc F_{k-1}(j - c),       B_{k-1}(j) = sum_c p_kc B_k(j + c),

where B_k(j) is the chance that the rest makes up the score s. Then P(X_k = c | s) = p_kc sum_j F_{k-1}(j - c) B_k(j) /
F_n(s). All terms are positive, so nothing cancels; the cost is n times the score, so steps down from the top are
counted instead of steps up where they are fewer. For many answers and middling scores `contour` is cheaper.

Arrays are categories x items x people; padding has P(X = 0) = 1.

All scores of one set of items at once come from a tree (`given_every_score`). With f the distribution of the score,

    P(X_i = c | s) = p_ic f_i(s - c) / f(s),       f_i that of the answers other than i.

The f_i come from halves: what is outside of a half of the items is what is outside of the whole, and the other half. So
all of them cost k^2 log k multiplications for a highest score of k; terms are positive, and nothing cancels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.conditional.contour import Contour, Given, chances
from spectral_irt.data.block import Floats, Ints

LEAST = 1e-290  # a chance below this has lost digits; the contour sum, with an ability for each score, has them


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


# ---------------------------------------------------------------------------- all scores of one set of items


def given_every_score(cumulated: Floats) -> Given:
    """What each score from 1 to the highest but one says about the answers: a column each.

    Parameters
    ----------
    cumulated : categories x items
        Sums of thresholds up to the categories 1, 2, ...; +inf where an item has fewer.

    >>> given_every_score(np.zeros((1, 3))).p.round(4).tolist()
    [[[0.3333, 0.6667], [0.3333, 0.6667], [0.3333, 0.6667]]]
    """
    tops = (cumulated < np.inf).sum(axis=0)
    most = int(tops.sum())
    theta = np.full(most - 1, cumulated[tops - 1, np.arange(len(tops))].sum() / most)  # the mean of all thresholds
    scores = np.arange(1, most)
    p = chances(theta[:1], cumulated[:, :, None])[:, :, 0]
    one_threshold = len(cumulated) == 1
    tree = _tree(list(p.T) if one_threshold else [p[: top + 1, i] for i, top in enumerate(tops)])
    total = tree[0][1:most]
    if not total.min(initial=1.0) > LEAST:
        return Contour.of(np.repeat(cumulated[:, :, None], most - 1, axis=2), scores, np.full(most - 1, most)).given
    outside: list[Floats] = []
    _descend(tree, np.ones(1), outside)
    if one_threshold:  # the others' highest score is the same for all
        given = p[1, None, :, None] * np.array(outside)[None, :, : most - 1]
    else:
        given = np.zeros((*cumulated.shape, most - 1))
        for i, (top, others) in enumerate(zip(tops, outside, strict=True)):
            for c in range(1, top + 1):  # scores from c to c + the highest of the others
                stop = min(c + len(others), most)
                np.multiply(others[: stop - c], p[c, i], out=given[c - 1, i, c - 1 : stop - 1])
    given /= total
    return Given(given, total, np.broadcast_to(p[0][:, None], given.shape[1:]), scores, theta)


def _tree(single: list[Floats]) -> tuple[Any, ...]:
    """The distribution of the score on these items, and the trees of their two halves."""
    if len(single) == 1:
        return (single[0],)
    half = len(single) // 2
    left, right = _tree(single[:half]), _tree(single[half:])
    return np.convolve(left[0], right[0]), left, right


def _descend(tree: tuple[Any, ...], outside: Floats, others: list[Floats]) -> None:
    """Append the distribution of all answers but each; `outside` is that of those not in this tree."""
    if len(tree) == 1:
        others.append(outside)
        return
    _, left, right = tree
    _descend(left, np.convolve(outside, right[0]), others)
    _descend(right, np.convolve(outside, left[0]), others)
