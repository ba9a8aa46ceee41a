"""From raw score to ability, for every form that people answered, and where each score stands among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.ability import every_score, score_abilities
from spectral_irt.persons.abilities import Abilities
from spectral_irt.persons.forms import Forms
from spectral_irt.persons.posterior import posterior_moments
from spectral_irt.responses.block import Floats, Ints
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.persons.taken import Taken


def abilities_of_scores(
    difficulty: Floats, method: str = "wle", prior: tuple[float, float] | None = None
) -> tuple[Floats, Floats]:
    """Ability and standard error of every score on these items, as `persons.abilities.abilities` gives them to people.

    >>> abilities_of_scores(np.array([-1.0, 0.0, 1.0]))[0].round(2).tolist()
    [-2.29, -0.64, 0.64, 2.29]
    """
    if method != "eap":
        return score_abilities(difficulty, warm=method == "wle")
    assert prior is not None
    ability, se = np.empty(len(difficulty) + 1), np.empty(len(difficulty) + 1)
    for scores, answers in every_score(len(difficulty)):
        ability[scores], se[scores] = posterior_moments(answers, difficulty, *prior)
    return ability, se


def score_columns(test: Taken, forms: Forms, found: Abilities) -> Columns:
    """`form, n_items, score, ability, se, n, percentile`: a row for each score on each form.

    Parameters
    ----------
    test : Taken
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


def _table(name: str, test: Taken, items: Ints, scores: Ints, found: Abilities) -> Columns:
    ability, se = (np.zeros(1), np.zeros(1)) if not len(items) else test.of_scores(items, found.method, found.prior)
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
