"""The answers that surprise most: right where the model expects wrong, or wrong where it expects right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, listed
from spectral_irt.persons.abilities import Abilities
from spectral_irt.persons.residuals import ERRATIC, MeanSquares, residuals
from spectral_irt.tables import Columns

EACH = 3  # answers of a person
MOST = 1_000  # answers of all: what somebody can look at


def people_at(responses: Responses, people: Sequence[Any]) -> Ints:
    """Positions of these people, by label."""
    place = positions(people, responses.persons)
    unknown = [label for label, k in zip(people, place.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(f"unknown people {listed(unknown)}; the responses have {listed(responses.persons)}.")
    return place


def unexpected_columns(
    responses: Responses,
    difficulty: Floats,
    found: Abilities,
    fits: MeanSquares,
    *,
    people: Ints | None = None,
    per_person: int = EACH,
    limit: int = MOST,
) -> Columns:
    """`person, misfit_z, item, response, expected, z, ability, difficulty`: the most surprising answers of each person.

    Parameters
    ----------
    difficulty : float array
        Of the items; of ordered answers the thresholds.
    found, fits
        Everybody's ability, and infit and outfit at it.
    people : int array, optional
        Positions of the people to look at. By default those whose infit or outfit, standardized, is above 2, the worst
        first.
    per_person, limit : int
        Answers of a person, the most surprising first; and of all, where the last people are left out.

    Notes
    -----
    `z` = (x - P) / sqrt(P (1 - P)), `expected` = P, and `misfit_z` is the larger of infit and outfit, standardized.
    Only answers of which the model expects the opposite count (`z` beyond 1). People with everything right or
    everything wrong surprise nobody.
    """
    worst = np.fmax(fits.infit_z, fits.outfit_z)
    if people is None:
        people = np.flatnonzero(worst > ERRATIC)
        people = people[np.argsort(-worst[people], kind="stable")][:limit]
    where = responses.thresholds.mean(difficulty) if not responses.thresholds.binary else difficulty
    some = np.unique(people)
    ability = np.where(np.isfinite(found.ability[some]), found.ability[some], np.nan)
    every = residuals(responses.take_persons(some), difficulty, ability)
    turn = np.zeros(len(some), dtype=np.int64)
    turn[np.searchsorted(some, people)] = np.arange(len(people))
    size = np.abs(np.nan_to_num(every.z))
    order = np.lexsort((-size, turn[every.person]))
    order = order[size[order] > 1]
    mine = turn[every.person[order]]
    chosen = order[np.arange(len(order)) - np.searchsorted(mine, mine) < per_person][:limit]
    who, item = some[every.person[chosen]], every.item[chosen]
    return {
        "person": responses.persons[who],
        "misfit_z": worst[who],
        "item": responses.items[item],
        "response": every.answer[chosen].astype(np.int64),
        "expected": every.expected[chosen],
        "z": every.z[chosen],
        "ability": found.ability[who],
        "difficulty": where[item],
    }
