"""P(X_i = 1 | score) on one set of items for all of its scores at once.

With p_i the probability of a right answer at any ability and f the distribution of how many are right,

    P(X_i = 1 | s) = p_i f_i(s - 1) / f(s),       f_i that of the answers other than i.

The f_i come from halves: what is outside of a half of the items is what is outside of the whole, and the other half. So
all of them cost k^2 log k multiplications; terms are positive, and nothing cancels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectral_irt.estimators.esf import conditional_moments
from spectral_irt.model import sigmoid
from spectral_irt.responses.block import Floats

LEAST = 1e-290  # a chance below this has lost digits; the contour sum, with an ability for each score, has them


def given_every_score(beta: Floats) -> Floats:
    """P(X_i = 1 | s) for scores 1 to k - 1 (rows) and all items.

    >>> given_every_score(np.zeros(3)).round(4).tolist()
    [[0.3333, 0.3333, 0.3333], [0.6667, 0.6667, 0.6667]]
    """
    k = len(beta)
    p = sigmoid(beta.mean() - beta)
    single = np.stack([1 - p, p], axis=1)
    others = np.empty((k, k))
    tree = _tree(single)
    _descend(tree, np.ones(1), others)
    total = tree[0]
    if not total[1:k].min(initial=1.0) > LEAST:
        scores = np.arange(1, k)
        return conditional_moments(np.tile(beta[:, None], k - 1), np.full(k - 1, k), scores)[1].T
    return (p[:, None] * others[:, : k - 1] / total[1:k]).T


def _tree(single: Floats) -> tuple[Any, ...]:
    """The distribution of how many are right among these, and the trees of their two halves."""
    if len(single) == 1:
        return (single[0],)
    half = len(single) // 2
    left, right = _tree(single[:half]), _tree(single[half:])
    return np.convolve(left[0], right[0]), left, right


def _descend(tree: tuple[Any, ...], outside: Floats, others: Floats) -> None:
    """Write the distribution of all answers but each; `outside` is that of those not in this tree."""
    if len(tree) == 1:
        others[0] = outside
        return
    _, left, right = tree
    half = len(left[0]) - 1
    _descend(left, np.convolve(outside, right[0]), others[:half])
    _descend(right, np.convolve(outside, left[0]), others[half:])
