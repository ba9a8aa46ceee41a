"""Items that people of higher ability answer lower: worded the other way round, or with a wrong key.

Whether somebody is able is told by the other items (`rest_ability.py`); a slope of mean abilities against the category
beyond chance cannot come from an item that is just noisy. Where half of the items are worded the other way round no
total score says who is able: the first principal component of the answers still has the two kinds on different sides.
A warning of every analysis (`Analysis.findings`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Mask
from spectral_irt.inference.items.classical import COMPLETE, FLAT, ItemAnalysis
from spectral_irt.inference.items.rest_ability import p_rising
from spectral_irt.inference.results import EACH, adjust_p
from spectral_irt.text import count, listed

MOST_PEOPLE = 4_000  # of the first component: a sample
MOST_ITEMS = 500  # beyond which it is not looked at
CLEAR = 1.5  # times the largest eigenvalue of noise
LEAST_LOADING = 0.2  # below it an item is on neither side
SEVERAL = 3  # items on the other side that are no accident


def first_component(responses: Responses) -> Floats | None:
    """The loading of every item on the first principal component of the answers, most of them positive; None where
    chance explains it, many answers are missing, or items are very many."""
    people = np.flatnonzero(responses.counts)
    m = responses.n_items
    if m > MOST_ITEMS or responses.n_responses < COMPLETE * len(people) * m:
        return None
    x = responses.sample(MOST_PEOPLE, np.random.default_rng(0), people)[0].to_dense()
    seen = np.isfinite(x)
    n = np.maximum(seen.sum(axis=0), 1)
    deviation = np.where(seen, x - np.nansum(x, axis=0) / n, 0.0)
    z = deviation / np.sqrt(np.maximum((deviation**2).sum(axis=0) / n, FLAT))
    n_both = np.maximum(seen.T.astype(float) @ seen, 1)
    eigenvalues, vectors = np.linalg.eigh(z.T @ z / n_both)
    n_people = max(len(x), 1)
    if eigenvalues[-1] < CLEAR * (1 + np.sqrt(m / n_people)) ** 2:  # Marchenko & Pastur
        return None
    loading = vectors[:, -1] * np.sqrt(eigenvalues[-1])
    loading = np.where(np.abs(loading) >= max(LEAST_LOADING, 3 / np.sqrt(n_people)), loading, 0.0)
    side = np.sign(loading).sum()
    if side == 0:  # as many on either side: that of the first item
        side = np.sign(loading[np.abs(loading) > 0][:1].sum())
    return np.asarray(loading * (-1.0 if side < 0 else 1.0))


def reversed_items(analysis: ItemAnalysis, loading: Floats | None) -> Mask:
    """Which items people of higher ability answer lower.

    A test of every item says whether there are any, or three on the other side of the first component; which they are
    is said by the component where it is clear.
    """
    with np.errstate(invalid="ignore"):
        falling: Mask = adjust_p(1 - p_rising(analysis.by_category), "holm") < EACH  # for asking of every item
    is_reversed = falling
    if loading is not None and (falling.any() or np.sum(loading < 0) >= SEVERAL):
        other_side = (falling & (loading <= 0)) | (loading < 0)
        if other_side.any():
            is_reversed = other_side
    # An item that goes with the others is worded as they are, whatever side of a second trait it is on.
    return is_reversed & ~(analysis.item_rest > 0)


def reversed_findings(
    calibration: Calibration, responses: Responses, analysis: ItemAnalysis, explained: Collection[object] = ()
) -> tuple[Finding, ...]:
    """A warning that names all items that people of higher ability answer lower, but for those that are explained
    already.
    """
    labels = calibration.labels
    loading = first_component(responses)
    is_reversed = reversed_items(analysis, loading)
    if explained:
        is_reversed &= np.array([label not in explained for label in labels.tolist()], dtype=bool)
    if not is_reversed.any():
        return ()
    named = labels[is_reversed]
    binary = calibration.layout.binary
    verb = "fail" if binary else "answer"
    lower = "" if binary else " lower"
    down_to = " down to" if len(named) > 1 else ""
    correlation = float(np.nanmin(analysis.item_rest[is_reversed]))
    sentence = (
        f"High scorers {verb} {count(len(named), 'item')}{lower}: {listed(named)} (correlation with the other "
        f"items{down_to} {correlation:.2f})."
    )
    if loading is not None and 2 * len(named) >= np.count_nonzero(loading):
        sentence += " Half of the items go one way and half the other: either half may be the reversed one."
    remedy = _check_the_key() if binary else _turn_categories(named)
    return (Finding("reversed_items", "warning", sentence, remedy, tuple(named.tolist())),)


def _check_the_key() -> str:
    return (
        "Right and wrong may be swapped there, by a wrong key or by a statement that is worded the other way "
        "round; correct that and calibrate again."
    )


def _turn_categories(named: NDArray[Any]) -> str:
    """How to turn the categories of these items: labels joined by commas, unless one holds a comma itself."""
    joined = ",".join(map(str, named.tolist()))
    pasted = repr(joined)
    if joined.count(",") > len(named) - 1:
        pasted = str([str(label) for label in named.tolist()])
    return (
        f"Statements that are worded the other way round have their categories turned: `reverse={pasted}`. What "
        "other checks find may follow from them, so look at it again after that."
    )
