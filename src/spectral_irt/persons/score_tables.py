"""Tables about people: the persons, and from total score to ability on every form that they answered."""

from __future__ import annotations

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.persons.abilities import Abilities
from spectral_irt.persons.residuals import MeanSquares
from spectral_irt.persons.test_form import Form, Forms
from spectral_irt.tables import Columns


def person_columns(responses: Responses, found: Abilities, fits: MeanSquares, max_score: Ints | None = None) -> Columns:
    """`person, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

    After the score the highest that each could have, where that is not n.
    """
    return {
        "person": responses.persons,
        "n": found.n,
        "score": found.score,
        **({} if max_score is None else {"max_score": max_score}),
        "ability": found.ability,
        "se": found.se,
        "extreme": found.extreme,
        "infit": fits.infit,
        "outfit": fits.outfit,
        "infit_z": fits.infit_z,
        "outfit_z": fits.outfit_z,
    }


def score_columns(test: Form, forms: Forms, found: Abilities) -> Columns:
    """`form, n_items, score, ability, se, n, percentile`: a row for each score on each form.

    Parameters
    ----------
    test : Form
        All items.
    forms : Forms
    found : Abilities
        Of the people on the forms: their scores, and the method of the table.

    Notes
    -----
    The percentile of a score is 100 times the share of the people on the form with a lower score, and half of the share
    with the same: the mid-percentile, which is 50 on average whatever the form.
    """
    tables = [
        _table(name, test, items, found.score[forms.form == k], found)
        for k, (name, items) in enumerate(zip(forms.names, forms.items, strict=True))
    ]
    nothing = np.zeros(0, dtype=np.int64)
    tables.append({name: values[:0] for name, values in _table("", test, nothing, nothing, found).items()})
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _table(name: str, test: Form, items: Ints, scores: Ints, found: Abilities) -> Columns:
    ability, se = (
        (np.zeros(1), np.zeros(1)) if not len(items) else test.take(items).abilities(found.method, found.prior)
    )
    n = np.bincount(scores, minlength=len(ability))
    return {
        "form": np.full(len(ability), name, dtype=object),
        "n_items": np.full(len(ability), len(items)),
        "score": np.arange(len(ability)),
        "ability": ability,
        "se": se,
        "n": n,
        "percentile": percentiles(n),
    }


def percentiles(n: Ints) -> Floats:
    """Mid-percentiles of scores that so many people have.

    >>> percentiles(np.array([1, 2, 1])).tolist()
    [12.5, 50.0, 87.5]
    """
    total = n.sum()
    return 100 * (np.cumsum(n) - n / 2) / total if total else np.full(len(n), np.nan)
