"""Pieces of raw answers -> Responses, in one pass: whatever the source, they are scored and packed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.responses.labels import Labels
from spectral_irt.responses.ordered import in_order
from spectral_irt.responses.ordered_scoring import WIDTH, OrderedScoring
from spectral_irt.responses.pack import Duplicates
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.scorer import Scoring, means_of
from spectral_irt.responses.survey import Place, Survey

if TYPE_CHECKING:
    from spectral_irt.responses.scorer import Values

Codes = NDArray[np.integer[Any]]


class Piece(NamedTuple):
    """Raw values, the codes of the person and the item of each, and where the k-th of them stands."""

    person: Codes
    item: Codes
    values: Values
    place: Callable[[int], Place]


class Gatherer:
    """Takes the answers of pieces, and packs what it has when told to."""

    def __init__(self, scoring: Scoring, source: str, *, wide: bool, duplicates: Duplicates = "error") -> None:
        self.scoring, self.source, self.duplicates = scoring, source, duplicates
        self.survey = Survey(scoring, wide=wide)
        self._forget()

    def _forget(self) -> None:
        self._person: list[Codes] = []
        self._item: list[Codes] = []
        self._answers: list[Values] = []

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self._answers))

    def add(self, piece: Piece) -> None:
        answers = self.survey.answers(piece.values, piece.place)
        self._person.append(answers.of(piece.person))
        self._item.append(answers.of(piece.item))
        self._answers.append(answers.values)

    def pack(
        self, users: Labels, items: Labels, recode: Callable[[Codes, Codes], tuple[Codes, Codes]] | None = None
    ) -> Responses:
        """The answers since the last time; `recode` makes codes of people and items from those of the pieces."""
        if not self._answers:
            return Responses((), items, users)
        person, item = _joined(self._person), _joined(self._item)
        if recode is not None:
            person, item = recode(person, item)
        answers, scoring = _joined(self._answers), self.scoring
        self._forget()
        if isinstance(scoring, OrderedScoring):
            codes = scoring.codes(answers, item, items, self.source)
            return coded_responses(person, codes, users, items, self.duplicates, self.source)
        means = means_of(person, answers, len(users)) if scoring.above_mean else None
        keys = scoring.keys_of(items)
        right = scoring.right(answers, items=item, users=person, keys=keys, means=means)
        return Responses.from_codes(
            person, item, right, users=users, items=items, duplicates=self.duplicates, source=self.source
        )


def coded_responses(
    person: Codes, codes: Codes, users: Labels, items: Labels, duplicates: Duplicates, source: str
) -> Responses:
    """Ordered answers under one code each, WIDTH times the item plus the category; see `read_ordered.decoded`."""
    item, category = codes // WIDTH, codes % WIDTH
    person, item, category = in_order(person, item, category, duplicates, users, items, source)
    codes = item * WIDTH + category
    return Responses.from_codes(person, codes, np.ones(len(codes), dtype=bool), users=users, items=items, source=source)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import polars as pl

    return pl.concat(parts)
