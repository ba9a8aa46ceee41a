"""Answers given the score on one set of items, for all of its scores at once.

With p_ic = P(X_i = c) at any ability and f the distribution of the score,

    P(X_i = c | s) = p_ic f_i(s - c) / f(s),       f_i that of the answers other than i.

The f_i come from halves: what is outside of a half of the items is what is outside of the whole, and the other half. So
all of them cost k^2 log k multiplications for a highest score of k; terms are positive, and nothing cancels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.conditional.contour import Contour, Given, chances
from spectral_irt.data.block import Floats

LEAST = 1e-290  # a chance below this has lost digits; the contour sum, with an ability for each score, has them


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
