"""P(X_i = 1 | score) of people with few right or few wrong answers, by the classical recursion and its adjoint.

With p_i the probability of a right answer at any ability, F_k(j) is the chance of j right answers among the first k,

    F_k(j) = q_k F_{k-1}(j) + p_k F_{k-1}(j - 1),       B_{k-1}(j) = q_k B_k(j) + p_k B_k(j + 1),

where B_k(j) is the chance that the rest makes up the score s. Then P(X_k = 1 | s) = p_k sum_j F_{k-1}(j - 1) B_k(j) /
F_n(s). All terms are positive, so nothing cancels; the cost is n times the score, so wrong answers are counted instead
of right ones where they are fewer. For many answers and middling scores the contour sum of `esf` is cheaper.

Arrays have items downwards and people across; p = 0 is padding.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.responses.block import Floats, Ints


def given_score(p: Floats, scores: Ints) -> Floats:
    """P(X = 1 | s) for items x people; p at an ability of which the score is not too unlikely.

    >>> p = np.array([[0.5], [0.5], [0.5]])
    >>> given_score(p, np.array([1])).ravel().round(4).tolist()
    [0.3333, 0.3333, 0.3333]
    """
    n, people = p.shape
    top = int(scores.max())
    q = 1 - p
    forward = np.zeros((n + 1, top + 1, people))
    forward[0, 0] = 1
    for k in range(n):
        np.multiply(forward[k], q[k], out=forward[k + 1])
        forward[k + 1, 1:] += forward[k, :-1] * p[k]
    back = np.zeros((top + 1, people))
    back[scores, np.arange(people)] = 1 / np.maximum(forward[n, scores, np.arange(people)], np.finfo(float).tiny)
    given = np.empty_like(p)
    for k in range(n - 1, -1, -1):
        given[k] = p[k] * np.einsum("jl,jl->l", forward[k, :-1], back[1:])
        more = back[1:] * p[k]
        back *= q[k]
        back[:-1] += more
    return given
