"""Two banks as two forms of a test: which raw score on one is which on the other, through the items they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.covariance import Side
from spectral_irt.bank.linking import Link, link
from spectral_irt.calibration import Calibration
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, listed
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.scores.equating import Equating, OneWay, both_ways, equated
from spectral_irt.persons.test_form import Form

Made = Bank | Calibration | RaschEstimator


def equate(
    a: Made,
    b: Made,
    method: str = "robust",
    *,
    items_a: Sequence[Any] | None = None,
    items_b: Sequence[Any] | None = None,
    linked: Link | None = None,
) -> Equating:
    """Raw scores on a form of a, and the scores on a form of b that stand for the same ability; and back.

    True-score equating on a's scale, to which b is brought by the items that both have (`link`). Of ordered answers
    raw scores are total scores.

    Parameters
    ----------
    a, b : Bank, Calibration or fitted estimator
        Of different people.
    method : "robust", "mean" or "mean-sigma"
        Of the link.
    items_a, items_b : sequences of labels, optional
        The items of each form; by default all with the status "ok" or "anchored".
    linked : Link, optional
        `link(a, b)`, where it has been computed.

    Notes
    -----
    Standard errors hold the errors of the difficulties on both sides and that of the link: what other people in the
    calibrations would have changed and, where the common items differ by more than their errors, other common items.
    How far a person's score is off from the person's true score is not in them.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> fit = SpectralRasch().fit(datasets.load_lsat())
    >>> equate(fit, fit).columns()["equated"].round(3).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    found = link(a, b, method) if linked is None else linked
    sides = Side.of(a), Side.of(b)
    forms = _form(sides[0], items_a, "items_a"), _form(sides[1], items_b, "items_b")
    one, other = (_thresholds(side, form) for side, form in zip(sides, forms, strict=True))
    shift, slope = found.shift, found.slope
    there = equated(one, other, -shift / slope, 1 / slope)
    back = equated(other, one, shift, slope)
    # b's ability is u = (theta - shift) / slope, and theta = shift + slope * u: how shift and slope move the score.
    u = (np.where(np.isfinite(there.ability), there.ability, 0.0) - shift) / slope
    known = np.where(np.isfinite(back.ability), back.ability, 0.0)
    to_b = _variance(there, (0, 1), sides, forms, found, -there.by_ability / slope, u)
    to_a = _variance(back, (1, 0), sides, forms, found, back.by_ability, known)
    if "none" in found.basis:  # part of an error would be taken for all of it
        to_b, to_a = np.zeros(len(to_b)), np.zeros(len(to_a))
    abilities = there.ability, shift + slope * back.ability
    return both_ways((there, back), (to_b, to_a), ("A", "B"), abilities)


def _form(side: Side, items: Sequence[Any] | None, name: str) -> Ints:
    """Positions of the items of a form; of their thresholds, item after item, where they have several."""
    if items is None:
        return np.arange(len(side.labels))
    first = np.flatnonzero(side.level == 1)
    place = positions(items, side.item[first])
    unknown = [label for label, k in zip(items, place.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(
            f"{name} names {listed(unknown)}, without a difficulty from answers to them; "
            f"it can name {listed(side.item[first])}."
        )
    if len(np.unique(place)) < len(place):
        raise OptionError(f"{name} names the same item more than once; name each once.")
    counts = side.size[first[place]]
    return np.repeat(first[place] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


def _thresholds(side: Side, form: Ints) -> Form:
    return Form.of(side.threshold[form], side.size[form][side.level[form] == 1])


def _variance(
    way: OneWay,
    order: tuple[int, int],
    sides: tuple[Side, Side],
    forms: tuple[Ints, Ints],
    found: Link,
    by_shift: Floats,
    at: Floats,
) -> Floats:
    """Variance of each equated score: from both calibrations, the link, and what the common items differ by."""
    total = np.zeros(len(way.equated))
    for side, own in zip(order, (way.by_first, way.by_second), strict=True):
        gradient = np.zeros((len(total), len(sides[side].labels)))
        gradient[:, forms[side]] = own
        shift, slope = (found.by_a, found.by_b)[side]
        common = by_shift[:, None] * (shift + at[:, None] * slope)
        gradient[:, positions(found.item, sides[side].labels)] += common
        total += sides[side].errors.of_each(gradient)
        if side == 0:
            total += common**2 @ (found.excess**2 * found.used)
    return total
