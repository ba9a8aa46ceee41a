"""Standard errors where the landing ended: the sandwich of the penalized conditional likelihood.

H is the matched information plus the prior's matrix, M the sum over people of their scores' squares plus the covariance
of the prior's pull: H^-1 M H^-1 is the mean squared distance from difficulties whose deviations were drawn from the
prior, and the classical robust covariance where there is none.

Three ways to its diagonal, as for the chain alone: "dense" forms the matrices; "one-pass" takes H for its diagonal and
a common shift, right where the chain mixes fast; "multiplier" corrects that by solves for random right-hand sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.conditional.rows import Rows, link_gram, linked, score_gram, score_squares, score_twice
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.estimators.landing import Landed
from spectral_irt.numerics import centered_inverse, sandwich, symmetric

PROBES = 100  # random right-hand sides: about 7% of the correction remains as noise
CLOSE = 1e-2  # how well each is solved


@dataclass(frozen=True, eq=False)
class Matrices:
    """H and M, m x m, and the inverse of H on the free items, 0 elsewhere; good to `single` precision, or double."""

    bread: Floats
    meat: Floats
    inverse: Floats
    single: bool

    @classmethod
    def of(cls, landed: Landed, *, single: bool = False) -> Matrices:
        """`single` precision will do where items mix well (see `chain.errors.SLUGGISH`).

        What is added up for H are positive links between items, so each is good to its own 1e-6, and H is built of them
        with rows that add to zero. M is good to 1e-7 of its size, which its weakest direction feels.
        """
        m = len(landed.beta)
        bread = -landed.rows.sum(link_gram, single)
        np.fill_diagonal(bread, 0)
        np.fill_diagonal(bread, -bread.sum(axis=1))
        meat = landed.rows.sum(score_gram, single)
        if landed.prior:
            penalty, pull = landed.prior.dense()
            lacking = np.sqrt(too_regular(landed, np.diag(meat)))
            bread, meat = bread + penalty, meat + pull + lacking[:, None] * bread * lacking
        if landed.fixed is None:
            return cls(bread, meat, centered_inverse(bread, landed.floating), single)
        free = np.flatnonzero(~landed.fixed)
        inverse = np.zeros((m, m))
        if len(free):
            inverse[np.ix_(free, free)] = centered_inverse(bread[np.ix_(free, free)], landed.floating[free])
        return cls(bread, meat, inverse, single)

    def covariance(self, robust: bool = True) -> Floats:
        """The sandwich; centered within parts, or given the fixed items (zero for these). Else the inverse of H."""
        return sandwich(self.inverse, self.bread, self.meat, single=self.single) if robust else symmetric(self.inverse)


def from_anchors(bread: Floats, inverse: Floats, fixed: NDArray[np.bool_], errors: Floats) -> Floats:
    """The covariance that free thresholds have from the errors of the anchors, `errors` theirs in the order of `fixed`.

    D errors D' with D = d beta_free / d beta_anchor = -H_ff^-1 H_fa: moving an anchor moves the free ones with it.
    """
    follow = -(inverse @ bread[:, fixed])  # the inverse is 0 outside the free ones
    return follow @ errors @ follow.T


def anchored_finding(n: int, errors: bool) -> Finding:
    """What a calibration with anchors says of their errors."""
    items = "1 item is anchored" if n == 1 else f"{n:,} items are anchored"
    said = (
        "the anchors' standard errors are passed on to the other items"
        if errors
        else "the anchors came without standard errors and count as exact"
    )
    return Finding("anchored", "note", f"{items}; {said}.")


def too_regular(landed: Landed, omega: Floats) -> Floats:
    """The share of each item's information by which its people's answers are too regular to judge by.

    Where an item has few answers, and all alike, its sum of squared scores `omega` is far below its expectation, the
    information. What is missing is made up for as far as the prior counts, by as much of the information itself, which
    leaves the weak links of a design as weak as they are.
    """
    assert landed.prior is not None
    told = landed.information
    lacking = np.divide(told - omega, told, out=np.zeros(len(omega)), where=told > 0)
    return landed.prior.fade * np.maximum(lacking, 0)


def standard_errors(landed: Landed, method: str, seed: int = 0) -> Floats:
    """Standard error of every difficulty, by one of the three ways."""
    if method == "dense":
        variance = np.diag(Matrices.of(landed).covariance())
    else:
        variance = _variance(landed, PROBES if method == "multiplier" else 0, seed)
    return np.sqrt(np.maximum(variance, 0))


def _variance(landed: Landed, probes: int, seed: int) -> Floats:
    """diag of H^-1 M H^-1: what a rough inverse of H gives, corrected by what random b with covariance M show."""
    prior, m = landed.prior, len(landed.beta)
    scale = np.divide(1.0, landed.diagonal, out=np.zeros(m), where=landed.diagonal > 0)
    shift = _common_shift(landed, scale)
    omega = landed.rows.sum(score_squares)
    lacking = np.sqrt(too_regular(landed, omega)) if prior else np.zeros(m)

    def meat(v: Floats) -> Floats:
        made = landed.rows.sum(score_twice, v)
        if prior:
            inner = lacking * v
            made += prior.spread(v) + lacking * (landed.degree * inner - landed.rows.sum(linked, inner))
        return made

    diagonal = omega + lacking**2 * landed.information
    if prior:
        diagonal = diagonal + prior.spread_diagonal
    moved = meat(shift)
    known = np.where(scale > 0, scale**2 * diagonal + 2 * scale * moved + shift @ moved, 0.0)
    if not probes:
        return known
    noise = np.random.default_rng(seed)
    b = landed.rows.sum(_signed, probes, each=[landed.rows.seeds(seed)])
    b += (lacking * np.sqrt(landed.information))[:, None] * noise.standard_normal(b.shape)
    if prior:
        b += prior.draw(noise, probes)
    if landed.fixed is not None:
        b[landed.fixed] = 0
    rough = np.where(scale > 0, 1.0, 0.0)[:, None] * (scale[:, None] * b + shift @ b)
    surplus = np.mean(landed.solve(b, tol=CLOSE) ** 2 - rough**2, axis=1)
    return np.maximum(known + surplus, 0.05 * known)


def variance_from_anchors(landed: Landed, variance: Floats, seed: int = 0) -> Floats:
    """The diagonal of `from_anchors` without the matrices: by solves for random errors of these variances, independent.

    That is where there are thousands of items, of whose anchors nothing is known but standard errors.
    """
    assert landed.fixed is not None
    noise = np.random.default_rng(seed).standard_normal((len(variance), PROBES))
    v = np.where(landed.fixed, np.sqrt(np.nan_to_num(variance)), 0.0)[:, None] * noise
    b = landed.rows.sum(linked, v)
    if landed.prior:
        b -= landed.prior @ v
    b[landed.fixed] = 0
    return np.where(landed.fixed, 0.0, np.mean(landed.solve(b, tol=CLOSE) ** 2, axis=1))


def _common_shift(landed: Landed, scale: Floats) -> Floats:
    """`shift` of the rough inverse delta = scale b + shift' b: each item by itself, then all free ones together.

    It takes their mean away; or, beside fixed items, against which all free ones move together much more easily than
    any of them against the others, it is the c for which b - H (scale b + c 1) adds to zero over the free items.
    """
    if landed.fixed is None:
        return -scale / len(scale)
    down = landed @ (scale > 0).astype(float)  # what ties each free item to the fixed ones, or to the prior
    total = down.sum()
    return np.where(scale > 0, 1 - down * scale, 0.0) / total if total > 0 else np.zeros(len(scale))


def _signed(rows: Rows, seed: np.random.SeedSequence, columns: int) -> Floats:
    signs: Any = np.random.default_rng(seed).integers(0, 2, (rows.block.n_persons, columns)) * 2.0 - 1
    return rows.matrix(rows.score).T @ signs
