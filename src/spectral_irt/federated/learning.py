"""What the passes of one site tell about its rates Y between items, which it never sends.

Every pass gives Y^T v for one v; the first gives the sums of its rows, too. The likeliest Y that agrees with all of
them starts from a guess: rows and columns in proportion (people of one site meet its items at random), or the rates
under the weights before. It is right about a site with as many items as there were passes; elsewhere it is much
closer than what all sites together would tell, since links between sites are what mixes slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spectral_irt.responses.block import Floats, Ints

FITTINGS = 100  # of rows and columns in turn; what is left is put right by the passes themselves
NEW = 1e-12  # share of a vector, relative to its length, from which it tells anything new


@dataclass(frozen=True, eq=False)
class Heard:
    """What one site said about its chain: the places of its items, the sums of its rows, and passes v, Y^T v."""

    place: Ints
    rates: Floats
    passes: list[tuple[Floats, Floats]] = field(default_factory=list)


def likely_rates(heard: Heard, before: Floats | None = None) -> Floats:
    """The rates of a site, as far as its passes tell; `before` are those under the weights before."""
    v, inflow = heard.passes[0]
    guess = in_proportion(np.outer(heard.rates, inflow) if before is None else before, heard.rates, v, inflow)
    basis, images = _independent(heard.passes, heard.rates)
    # The least change, in the norm of the chain, that agrees with every pass.
    return guess + (heard.rates * basis).T @ (images - basis @ guess)


def in_proportion(guess: Floats, rates: Floats, v: Floats, inflow: Floats) -> Floats:
    """The guess with rows and columns stretched, until rows add to `rates` and columns, weighted by v, to `inflow`."""
    y = np.maximum(guess, 0.0)
    np.fill_diagonal(y, 0.0)
    for _ in range(FITTINGS):
        y *= _over(inflow, v @ y)
        y *= _over(rates, y.sum(axis=1))[:, None]
    return y


def _independent(passes: Sequence[tuple[Floats, Floats]], rates: Floats) -> tuple[Floats, Floats]:
    """The passes as rows that are orthonormal with weights `rates`, and their images.

    The pass that tells most beyond those taken comes next: what little a late pass adds is mostly rounding.
    """
    v, images = (np.stack(rows) for rows in zip(*passes, strict=True))
    length = np.sqrt(v**2 @ rates)
    heard = length > 0  # not so where nobody of the site got anything right
    v, images = v[heard] / length[heard, None], images[heard] / length[heard, None]
    for k in range(min(v.shape)):
        rest = np.sqrt(v[k:] ** 2 @ rates)
        best = k + int(rest.argmax())
        if rest.max() < NEW:
            return v[:k], images[:k]
        v[[k, best]], images[[k, best]] = v[[best, k]], images[[best, k]]
        for _ in range(2):  # once more for what rounding left
            share = v[:k] @ (rates * v[k])
            v[k], images[k] = v[k] - share @ v[:k], images[k] - share @ images[:k]
        size = np.sqrt(v[k] ** 2 @ rates)
        v[k], images[k] = v[k] / size, images[k] / size
        share = v[k + 1 :] @ (rates * v[k])
        v[k + 1 :] -= np.outer(share, v[k])
        images[k + 1 :] -= np.outer(share, images[k])
    return v[: min(v.shape)], images[: min(v.shape)]


def _over(u: Floats, v: Floats) -> Floats:
    return np.divide(u, v, out=np.zeros_like(u), where=v > 0)
