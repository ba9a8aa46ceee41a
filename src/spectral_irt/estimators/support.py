"""What several estimators share: where they start, which items they can estimate, and sums over answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import Mask, estimable, examine
from spectral_irt.estimators.spectral import spectral_difficulty
from spectral_irt.sparse_kernels import csr

# Up to here a covariance matrix is formed and inverted: 200 MB and some tens of seconds. Beyond, each item's standard
# error comes from its own information alone.
DENSE_ITEMS = 5000


def start_difficulty(responses: Responses) -> Floats:
    """Where every iteration starts: what the chain alone gives, regularized as needed; 0 for an unanswered item."""
    beta = spectral_difficulty(responses, refine=False, se="none", tol=1e-6).difficulty
    return np.where(np.isfinite(beta), beta, 0.0)


# ------------------------------------------------------------------------------ which items


@dataclass(frozen=True, eq=False)
class Kept:
    """The items a method can estimate, and what to say about the others."""

    responses: Responses
    mask: Mask
    status: NDArray[Any]
    findings: tuple[Finding, ...]

    def spread(self, values: Floats) -> Floats:
        """One number for every item of the data: NaN for those left out."""
        full = np.full(len(self.mask), np.nan)
        full[self.mask] = values
        return full


def keep_estimable(responses: Responses) -> Kept:
    """For methods without a prior: leave out items with no finite difficulty; refuse data that fall apart."""
    rest, mask, findings = estimable(responses)
    design = examine(responses)
    also = tuple(f for f in design.findings if f.code in ("silent_persons", "many_more_items_than_persons"))
    return Kept(rest, mask, design.status(), findings + also)


# --------------------------------------------------------------------- sums over answers


def person_slices(block: Block, limit: int) -> Iterator[tuple[int, int]]:
    """Consecutive runs of at most `limit` people of a block."""
    for start in range(0, block.n_persons, max(1, limit)):
        yield start, min(start + max(1, limit), block.n_persons)


def answered(block: Block, start: int, stop: int, n_items: int, values: Floats | None = None) -> sparse.csr_array:
    """People `start` to `stop` of a block x items: 1 (or the given value) where there is an answer."""
    first, last = block.indptr[start], block.indptr[stop]
    indptr = (block.indptr[start : stop + 1] - first).astype(np.int32)
    data = np.ones(last - first) if values is None else values
    return csr(indptr, np.asarray(block.items[first:last]), data, n_items)


def by_item(items: NDArray[np.int32], values: Floats, n_items: int) -> Floats:
    """Sum over the answers to each item."""
    return np.bincount(items, weights=values, minlength=n_items).astype(np.float64, copy=False)


def by_person(block: Block, values: Floats) -> Floats:
    """Sum over the answers of each person of a block in which everybody answered something."""
    return np.add.reduceat(values, block.indptr[:-1]) if block.n_persons else np.zeros(0)
