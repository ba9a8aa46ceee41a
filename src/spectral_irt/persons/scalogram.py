"""Guttman's scalogram: every response in a table of persons, high on top, by items, easy ones left (Guttman 1944).

On a perfect scale all right answers would stand left of all wrong ones. Responses far from what the model expects,
|x - E| / sqrt(V) of `UNEXPECTED_Z` or more, are marked. `study.guttman()` and guttman.csv have the table,
`study.plot.guttman()` the picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints, Mask
from spectral_irt.errors import OptionError
from spectral_irt.persons.residuals import residuals
from spectral_irt.tables import Columns
from spectral_irt.text import count

UNEXPECTED_Z = 2.0  # standardized residual from which a response is marked, as in Winsteps and RUMM
MOST_CELLS = 500_000  # of a table that is looked at as a whole
MARK = "*"  # behind an unexpected response


@dataclass(frozen=True, eq=False)
class Scalogram:
    """Persons by ability from the highest down, items by difficulty from the easiest on, and their responses."""

    persons: NDArray[np.object_]
    ability: Floats
    scores: Ints
    items: NDArray[np.object_]
    category: Floats  # persons x items; NaN: no response
    z: Floats  # standardized residuals, likewise
    max_score: Ints  # of each item
    codes: Floats  # items x categories: what a category is called in the data

    @property
    def unexpected(self) -> Mask:
        return np.nan_to_num(np.abs(self.z)) >= UNEXPECTED_Z

    def person_columns(self) -> Columns:
        """`person, score, ability, n_unexpected`."""
        return {
            "person": self.persons,
            "score": self.scores,
            "ability": self.ability,
            "n_unexpected": self.unexpected.sum(axis=1),
        }

    def item_columns(self, names_taken: Iterable[str]) -> Columns:
        """The cells by the name of the item, or `item_` and that where another column is called so."""
        names_taken = set(names_taken)
        columns: Columns = {}
        for k, label in enumerate(self.items.tolist()):
            name = str(label)
            if name in names_taken:
                name = f"item_{name}"
            columns[name] = self.cells(k)
        return columns

    def cells(self, item: int) -> NDArray[np.object_]:
        """The responses to one item as texts in the codes of the data, unexpected ones marked; None: no response."""
        codes = [f"{code:g}" for code in self.codes[item].tolist()]
        # Of each category its code, then its code with the mark, then nothing.
        texts = np.array([*codes, *(code + MARK for code in codes), None], dtype=object)
        answered = np.isfinite(self.category[:, item])
        category = np.where(answered, self.category[:, item], 0).astype(np.int64)
        marked = category + len(codes) * self.unexpected[:, item]
        return texts[np.where(answered, marked, -1)]


def scalogram(responses: Responses, thresholds: Floats, ability: Floats, persons: Ints | None = None) -> Scalogram:
    """The scalogram of the persons at these positions (by default of all), over the items that have a difficulty."""
    layout = responses.thresholds
    location = layout.mean(thresholds)
    items = np.flatnonzero(np.isfinite(location))
    items = items[np.argsort(location[items], kind="stable")]
    place = np.arange(responses.n_persons)
    if persons is not None:
        place = np.unique(persons)  # in the order in which responses come
    if len(place) * len(items) > MOST_CELLS:
        raise OptionError(
            f"a scalogram of {count(len(place), 'person')} and {count(len(items), 'item')} has over {MOST_CELLS:,} "
            "cells. Give it some `persons`."
        )
    chosen = responses.take_persons(place)
    person, item, category, _, z = residuals(chosen, thresholds, ability[place])
    category_cells = np.full((len(place), responses.n_items), np.nan)
    category_cells[person, item] = category
    z_cells = np.full_like(category_cells, np.nan)
    z_cells[person, item] = z
    # The highest ability first; persons without any come last.
    rows = np.argsort(-np.nan_to_num(ability[place], nan=-np.inf), kind="stable")
    cells = np.ix_(rows, items)
    return Scalogram(
        persons=chosen.persons[rows],
        ability=ability[place][rows],
        scores=chosen.scores[rows],
        items=responses.items[items],
        category=category_cells[cells],
        z=z_cells[cells],
        max_score=layout.max_score[items],
        codes=responses.category_codes()[items],
    )
