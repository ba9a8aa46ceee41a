"""The bias of first order of the parameters of a linear design, taken off.

Each severity of a rater with few ratings takes some of the information, and maximum likelihood draws severities and
thresholds apart, by 5% where raters met seven people; it does not depend on how many raters there are. A prior that
acts on severities has the opposite effect: thresholds at the joint mode are too near to each other, as where effects
that differ at random are left out. Both are of first order in 1 / I and have one form. With I the information of the
parameters eta, P the prior's matrix and U the score, the adjusted equation is

    U(eta) - P eta + a(eta) = 0,     a = grad 1/2 sum_j w_j log(I_jj + P_jj),

with w_j = 1 for a parameter without a prior (Firth 1993, the exponential family), -1 for one under a prior, which is
integrated out by Laplace's method (posterior means in the place of modes), and between the two where the prior fades:
w_j = 1 - 2 fade_j. The sum over the diagonal stands for the trace of (I + P)^-1 dI.

Of a, what multiplies all values of a term counts: with u_t the values of term t, 0 elsewhere, and a linear in their
scale, the values of each term are multiplied by 1 + x_t,

    (u' (I + P) u + diag |u' a|) x = u' a.

References
----------
Firth (1993). Bias reduction of maximum likelihood estimates. Biometrika 80, 27-38.
Tierney, Kadane (1986). Accurate approximations for posterior moments and marginal densities. JASA 81, 82-86.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectral_irt.conditional.likelihood import Likelihood
from spectral_irt.conditional.penalized import PenalizedPoint
from spectral_irt.data.block import Floats

NARROWER = 0.05  # share by which the values of a term are drawn together, for the derivative of the information
# Bias in standard errors of the scale of all values. Up to the first it is left as it is, so that large samples give
# maximum likelihood to the last digit; from the second on it is taken off in full.
LEFT = 0.05
TAKEN = 0.15
MOST_CORRECTION = 0.5  # share of the values: beyond, the first order says nothing


def bias_factors(
    likelihood: Likelihood, optimum: PenalizedPoint, eta: Floats, terms: Sequence[slice], noise: float = 1.0
) -> Floats:
    """By what to multiply the parameters `eta` of each term.

    `optimum` is where Newton's steps ended and `eta` its parameters, each term with the mean zero; `noise` is what
    squared scores are to the information: more than 1 with weights. The memory of the likelihood's last point is used
    again.
    """
    assert optimum.design is not None
    information = optimum.matrix.diagonal()
    precision = np.zeros(len(eta))
    weight = np.full(len(eta), noise)
    if optimum.ridge:
        precision = optimum.ridge.precision
        fade = np.where(precision > 0, optimum.ridge.fade, 0.0)
        weight = (1 - fade) * noise - fade
    if optimum.fixed is not None:
        weight[optimum.fixed] = 0.0
    weight[information <= 0] = 0.0
    columns = np.zeros((len(eta), len(terms)))
    for k, term in enumerate(terms):
        columns[term, k] = eta[term]
    image = optimum.matrix @ columns
    if optimum.ridge:
        image = image + optimum.ridge @ columns
    size = columns.T @ image
    factors = np.ones(len(terms))
    moving = np.flatnonzero(np.diag(size) > 0)
    if not len(moving):
        return factors
    beta = optimum.design @ eta
    apart = np.zeros(len(moving))
    for k, column in enumerate(columns.T[moving]):
        # No point is held here, so that its memory is free for the next.
        narrower = likelihood.at(beta - NARROWER * (optimum.design @ column)).information_on(optimum.design)
        change = (information - narrower) / NARROWER
        between = np.maximum(information - NARROWER / 2 * change + precision, 1e-12)
        apart[k] = np.sum(weight * change / between) / 2
    size = size[np.ix_(moving, moving)]
    share = np.linalg.lstsq(size + np.diag(np.abs(apart)), apart, rcond=None)[0]
    in_errors = np.sqrt(share @ size @ share)
    counts = np.clip((in_errors - LEFT) / (TAKEN - LEFT), 0.0, 1.0)
    factors[moving] += counts * np.clip(share, -MOST_CORRECTION, MOST_CORRECTION)
    return factors
