"""What the caller wants, checked: how to score, what the columns are, and what to do on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectral_irt.data.finding import Finding
from spectral_irt.data.packing import Duplicates
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import Scoring
from spectral_irt.errors import ResponseValueError


@dataclass(frozen=True)
class Asked:
    """What the caller said about the layout."""

    format: str = "auto"
    person: Any = None
    item: Any = None
    response: Any = None
    orient: str = "persons"
    ignore: tuple[Any, ...] = ()
    items: tuple[Any, ...] = ()
    order_by: Any = None
    people: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """Everything the caller wants."""

    scoring: Scoring
    asked: Asked
    duplicates: Duplicates = "error"
    source: str = "the data"
    frame_kind: str | None = None
    progress: Callable[[float, str], None] | None = None

    def report(self, share: float) -> None:
        if self.progress is not None:
            self.progress(share, f"reading {self.source}")


# ------------------------------------------------------------------ right or wrong, or ordered


def of_either_kind(read: Callable[[Scoring], Responses], how: Scoring) -> Responses:
    """Answers of which nobody said what they are: right and wrong, or ordered categories if they look like it.

    One reading is enough; only where the answers are neither, another says what is odd about them.
    """
    if not how.undecided:
        return read(how)
    with suppress(ResponseValueError):
        found = read(how)
        if found.codes is None:
            return found
        if looks_ordered(found):
            return _noted(found)
    return read(replace(how, ordered=False, undecided=False))


def _noted(found: Responses) -> Responses:
    sentence = f"The answers are in up to {found.thresholds.widest + 1} ordered categories, for a partial credit model."
    remedy = "Say `SpectralRatingScale` for items that share their categories, or `threshold=` for right and wrong."
    note = Finding("ordered_categories", "note", sentence, remedy)
    return replace(found, notes=(note, *found.notes))


def looks_ordered(responses: Responses) -> bool:
    """Whether answers that are not all 0 and 1 look like ordered categories, so that nobody need say so.

    Whole numbers without a gap over all items, from 0 or 1, at most ten, and more than two in at least two items and a
    tenth of them: codes for missing answers (9, 99) leave a gap, and ages or grades stand in a single column.
    """
    codes = responses.category_codes()
    seen = np.unique(codes[np.isfinite(codes)])
    whole = len(seen) and seen[0] in (0, 1) and seen[-1] - seen[0] == len(seen) - 1
    many = int(np.sum(np.sum(responses.category_counts > 0, axis=1) > 2))
    return bool(whole and len(seen) <= 10 and many >= 2 and 10 * many >= responses.n_items)
