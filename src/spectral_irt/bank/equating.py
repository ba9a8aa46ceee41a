"""Raw scores on a form of one calibration, and the scores on a form of another that stand for the same ability.

True-score equating: b is brought to a's scale by the items that both have (`linking.py`); a raw score on one form is
the expected score at some ability, and the other form's expected score there is the equated one. The curves are those
of `inference/scores/equating.py`; here the forms are chosen, and the errors of both calibrations and of the link are
put together.

`spectral_irt.equate` and the command `equate` call this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.covariance import Side
from spectral_irt.bank.linking import Link, Source, link
from spectral_irt.data.block import Floats, Ints, spans
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError
from spectral_irt.inference.scores.equating import Equating, OneWay, both_ways, equate_scores
from spectral_irt.persons.test_form import Form
from spectral_irt.text import listed

ALL = "all"  # the name of the form of all items, unless a form is called so
ALL_ITEMS = "all items"  # which means them in any case


def equate(
    a: Source,
    b: Source,
    method: str = "robust",
    *,
    form_a: str | None = None,
    form_b: str | None = None,
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
    method : "robust" or "mean"
        Of the link.
    form_a, form_b : str, optional
        The form of each bank by its name (`bank.forms`), or "all" for all items with the status "ok" or "anchored"
        ("all items" where a form is called "all"). By default the only form of a bank; a bank with several forms has no
        default, as nobody took all of its items.
    items_a, items_b : sequences of labels, optional
        Instead of a name: the items of each form.
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
    if linked is None:
        linked = link(a, b, method)
    asked_a = _asked_form(a, "a", form_a, items_a)
    asked_b = _asked_form(b, "b", form_b, items_b)
    first = _FormOfSide.of(Side.of(a), asked_a, "items_a", moves_shift=1.0)
    second = _FormOfSide.of(Side.of(b), asked_b, "items_b", moves_shift=-1.0)
    to_b = equate_scores(first.form, second.form, -linked.shift)
    to_a = equate_scores(second.form, first.form, linked.shift)
    variance_to_b = np.zeros(len(to_b.ability))
    variance_to_a = np.zeros(len(to_a.ability))
    if "none" not in linked.basis:  # else part of an error would be taken for all of it
        # The shift is added to b, so that a higher one moves scores of a down on b, and those of b up on a.
        variance_to_b = _variance(to_b, first, second, linked, by_shift=-to_b.by_ability)
        variance_to_a = _variance(to_a, second, first, linked, by_shift=to_a.by_ability)
    return both_ways(
        (to_b, to_a),
        (variance_to_b, variance_to_a),
        (asked_a.name, asked_b.name),
        (to_b.ability, linked.shift + to_a.ability),
    )


class AskedForm(NamedTuple):
    """A form to be equated: what it is called, and its items, None for all that can be equated."""

    name: str
    items: Sequence[Any] | None


def _asked_form(source: Source, side: str, name: str | None, items: Sequence[Any] | None) -> AskedForm:
    """The form of one side: by name, by its items, or the only one there is."""
    letter = side.upper()
    if items is not None:
        if name is not None:
            raise OptionError(
                f"`form_{side}=` and `items_{side}=` both say which items the form has; give one of them."
            )
        return AskedForm(letter, items)
    forms = source.forms if isinstance(source, Bank) else ()
    names = [form.name for form in forms]
    if name is None:
        if len(forms) > 1:
            raise OptionError(
                f"{letter} has {len(forms):,} forms ({listed(names)}), and nobody was given all of its items; say "
                f"which one to equate with `form_{side}=`, or `form_{side}='{_name_of_all(names)}'` for all items."
            )
        return AskedForm(letter, None)
    if name in names:
        return AskedForm(f"{letter}: {name}", forms[names.index(name)].items)
    if name in (ALL, ALL_ITEMS):
        name_of_all = letter
        if forms and (len(forms) > 1 or ALL in names):
            name_of_all = f"{letter}: {ALL_ITEMS}"
        return AskedForm(name_of_all, None)
    what_it_has = f"it keeps no names of forms; say {ALL!r}"
    if names:
        what_it_has = f"it has {listed(names)}, and {_name_of_all(names)!r}"
    raise OptionError(f"{letter} has no form {name!r}; {what_it_has}.")


def pairs_of_forms(a: Bank, b: Bank, asked: str | None = None) -> list[tuple[str | None, str | None]]:
    """Which form of a with which form of b: as asked, "FORM OF A,FORM OF B", or each with each.

    A name may hold a comma: the text is divided where both sides are forms.
    """
    names_a = [form.name for form in a.forms]
    names_b = [form.name for form in b.forms]
    if asked is None:
        return [(form_a, form_b) for form_a in _each_form(names_a) for form_b in _each_form(names_b)]
    parts = asked.split(",")
    for k in range(1, len(parts)):
        form_a = ",".join(parts[:k]).strip()
        form_b = ",".join(parts[k:]).strip()
        if form_a in (*names_a, ALL, ALL_ITEMS) and form_b in (*names_b, ALL, ALL_ITEMS):
            return [(form_a, form_b)]
    raise OptionError(
        f"`forms` is {asked!r}; it is a form of A and a form of B, as in all,all. "
        f"A has {listed([*names_a, _name_of_all(names_a)])}; B has {listed([*names_b, _name_of_all(names_b)])}."
    )


def _name_of_all(names: Sequence[str]) -> str:
    """What all items of a bank are called, beside the names of its forms."""
    return ALL_ITEMS if ALL in names else ALL


def _each_form(names: list[str]) -> list[str | None]:
    """Several forms by name; the only one of a bank without."""
    if len(names) > 1:
        return [*names]
    return [None]


class _FormOfSide(NamedTuple):
    """A form of one calibration, where its thresholds are among those of the side, and how thresholds of the side move
    the shift: +1 for a, to whose scale b is shifted, -1 for b."""

    side: Side
    place: Ints
    form: Form
    moves_shift: float

    @classmethod
    def of(cls, side: Side, asked: AskedForm, option: str, moves_shift: float) -> _FormOfSide:
        place = _thresholds_of(side, asked.items, option)
        max_score = side.size[place][side.level[place] == 1]
        return cls(side, place, Form.of(side.threshold[place], max_score), moves_shift)


def _thresholds_of(side: Side, items: Sequence[Any] | None, option: str) -> Ints:
    """Positions of the thresholds of a form, item after item; `option` is where its items were asked for."""
    if items is None:
        return np.arange(len(side.labels))
    first = np.flatnonzero(side.level == 1)
    place = positions(items, side.item[first])
    unknown = [label for label, k in zip(items, place.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(
            f"{option} names {listed(unknown)}, without a difficulty from answers to them; "
            f"it can name {listed(side.item[first])}."
        )
    if len(np.unique(place)) < len(place):
        raise OptionError(f"{option} names the same item more than once; name each once.")
    return spans(first[place], side.size[first[place]])


def _variance(way: OneWay, source: _FormOfSide, target: _FormOfSide, linked: Link, by_shift: Floats) -> Floats:
    """Variance of each equated score: from both calibrations, the link, and what the common items differ by.

    `way` leads from the form `source` to `target`; `by_shift` is its derivative by the shift of the link.
    """
    total = by_shift**2 * (linked.excess**2 * (linked.weights @ linked.weights))
    for form, by_thresholds in ((source, way.by_first), (target, way.by_second)):
        labels = form.side.labels
        gradient = np.zeros((len(total), len(labels)))
        gradient[:, form.place] = by_thresholds
        common = positions(linked.item, labels)
        gradient[:, common] += by_shift[:, None] * (form.moves_shift * linked.weights)
        total += form.side.errors.of_each(gradient)
    return total
