"""Long tables -> Responses, in one pass over the table and without ever holding it.

Every row becomes a few numbers: the codes of its person and item, as they came up, and whether the answer is right.
When all rows were seen the labels are put in order, the codes follow, and the rows are dealt out to blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import ReadError
from spectral_irt.responses.block import Ints
from spectral_irt.responses.gatherer import coded_responses, raw_answers, refuse_blanks
from spectral_irt.responses.labels import Labels
from spectral_irt.responses.ordered_scoring import OrderedScoring
from spectral_irt.responses.pack import Repeats, Rows, joined, pack_rows
from spectral_irt.responses.pile import Pile
from spectral_irt.responses.raw_answers import OptionCoder
from spectral_irt.responses.reading.label_codes import LabelCodes
from spectral_irt.responses.reading.long_pieces import LongPiece, LongTables, one_ahead
from spectral_irt.responses.reading.numbering import labels_of
from spectral_irt.responses.reading.request import Request
from spectral_irt.responses.responses import Responses
from spectral_irt.responses.scorer import Means, Scoring, means_from_sums
from spectral_irt.responses.stored import BlockStore
from spectral_irt.responses.survey import Survey

DEALT = 1 << 23  # rows that are dealt out to blocks at a time when they come from a file: parts as long as a disk likes
READ = 0.8  # the share of the work that is reading; the rest is packing


def long_responses(data: LongTables, request: Request) -> Responses:
    """Responses from long tables; people and items in sorted order."""
    refuse_blanks(request.scoring, "here there is a row for each answer")
    survey = Survey(request.scoring)
    clerk = _Clerk(request.scoring, data)
    pile = Pile()
    for piece in one_ahead(data.pieces()):
        pile.add(*clerk.coded(piece, survey))
        request.report(READ * piece.done)
    if not data.users.size:
        raise ReadError(f"{request.source} has a header but no rows; check that whatever wrote it had finished.")
    survey.check(request.source, part=request.part)
    items, item_at = data.numbering("item")
    survey.check_key(items)
    users, user_at = data.numbering("user")
    found = _in_final_codes(pile, user_at, item_at, request, items)
    if isinstance(request.scoring, OrderedScoring):
        rows = joined(list(found))
        if rows.when is not None:
            rows = rows.at(np.argsort(rows.when, kind="stable"))
        ordered = coded_responses(rows.person, rows.slots, users, items, request.duplicates, request.source)
        return replace(ordered, frame_kind=request.frame_kind)
    counts, store, repeats, blocks = _counts(pile, user_at), BlockStore(), Repeats(), []
    n_packed = 0
    for block in pack_rows(found, counts, duplicates=request.duplicates, repeats=repeats):
        n_packed += block.n_users
        blocks.append(store.add(block))
        request.report(READ + (1 - READ) * n_packed / len(users))
    if request.duplicates == "error":
        repeats.complain(users, items, request.source)
    responses = Responses(tuple(blocks), items, users, request.frame_kind, request.source)
    if not request.part:
        survey.check_scored(responses)
    if clerk.options is None:
        return responses
    raw, notes = raw_answers(request.scoring, clerk.options, items.tolist())
    return replace(responses, raw=raw, notes=notes)


class Coded(NamedTuple):
    """Answers in the order of their arrival, under the codes by which labels came up.

    The code of an answer is its slot; or the item alone where the value decides later, when all are known.
    """

    person: NDArray[np.int32]
    code: NDArray[np.int32]
    options: NDArray[np.uint8] | None
    values: NDArray[np.float64] | None
    when: NDArray[Any] | None


class _Clerk:
    """Turns pieces into codes."""

    def __init__(self, scoring: Scoring, data: LongTables) -> None:
        self.scoring = scoring
        self.options = None if scoring.key is None else OptionCoder()
        self._later = scoring.above_mean is not None or isinstance(scoring, OrderedScoring)
        self._keys = _Keys(scoring, data.items, data.is_loose("item"))

    def coded(self, piece: LongPiece, survey: Survey) -> Coded:
        answers = survey.answers(piece.values, piece.place)
        person, item = answers.of(piece.users), answers.of(piece.items)
        when = None if piece.when is None else answers.of(piece.when)
        if self._later:
            return Coded(person, item, None, np.asarray(answers.values, dtype=np.float64), when)
        right = self.scoring.right(answers.values, items=item, users=person, keys=self._keys.by_code())
        options = None if self.options is None else self.options.codes(answers.values, right)  # type: ignore[arg-type]
        return Coded(person, 2 * item + ~right, options, None, when)


@dataclass
class _Keys:
    """The right answers by the code of the item, of as many items as came up by now."""

    scoring: Scoring
    items: LabelCodes
    loose: bool
    known: pl.Series | None = None

    def by_code(self) -> pl.Series | None:
        if self.scoring.key is not None and (self.known is None or len(self.known) < self.items.size):
            self.known = self.scoring.keys_of(labels_of(self.items.labels(), loose=self.loose).tolist())
        return self.known


def _in_final_codes(
    pile: Pile, user_at: NDArray[np.int32], item_at: NDArray[np.int32], request: Request, items: Labels
) -> Iterator[Rows]:
    """The same answers with people and items numbered in order; the pile is used up."""
    scoring = request.scoring
    means = _means(pile, user_at) if scoring.above_mean else None
    slot_at = None if means is not None or isinstance(scoring, OrderedScoring) else _slot_positions(item_at)
    for columns in pile.used_up(DEALT if pile.spilled else 1):
        piece = Coded(*columns)  # type: ignore[arg-type]
        person = user_at[piece.person]
        if slot_at is not None:
            yield Rows(person, slot_at[piece.code], piece.options, piece.when)
            continue
        item = item_at[piece.code]
        if isinstance(scoring, OrderedScoring):
            slots = scoring.codes(piece.values, item, items, request.source).astype(np.int32)
        else:
            slots = 2 * item + ~scoring.right(piece.values, items=item, users=person, means=means)
        yield Rows(person, slots, None, piece.when)


def _slot_positions(item_at: NDArray[np.int32]) -> NDArray[np.int32]:
    slots = np.repeat(2 * item_at, 2)
    slots[1::2] += 1
    return slots


def _counts(pile: Pile, user_at: NDArray[np.int32]) -> Ints:
    """Answers of each person, in the final order."""
    by_code = np.zeros(len(user_at), dtype=np.int64)
    for person, *_ in pile:
        assert person is not None
        by_code += np.bincount(person, minlength=len(by_code))
    counts = np.empty_like(by_code)
    counts[user_at] = by_code
    return counts


def _means(pile: Pile, user_at: NDArray[np.int32]) -> Means:
    n = len(user_at)
    counts = np.zeros(n, dtype=np.int64)
    sums, sizes = np.zeros(n), np.zeros(n)
    for columns in pile:
        piece = Coded(*columns)  # type: ignore[arg-type]
        person = user_at[piece.person]
        assert piece.values is not None
        counts += np.bincount(person, minlength=n)
        sums += np.bincount(person, piece.values, n)
        sizes += np.bincount(person, np.abs(piece.values), n)
    return means_from_sums(counts, sums, sizes)
