"""What the answers were before they were scored: the options that were chosen, and the cells that were left blank.

Scoring keeps right and wrong. With an answer key a byte for each answer tells which option it was, as a code; here are
the texts of the codes. Blank cells of a table with a row for each person are counted by item: before a later answer of
the same person they were *omitted*, after the last one *not reached*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.finding import Finding
from spectral_irt.data.labels import SUSPECTS
from spectral_irt.errors import listed

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data.block import Ints

BLANK = 0  # code of a blank cell that counts as a wrong answer
KEY = 1  # code of the right option, whatever its text: that is in the key
OTHER = 255  # code of every wrong option beyond the first 253: answers in the people's own words
BLANK_TEXT, KEY_TEXT, OTHER_TEXT = "(blank)", "(key)", "(other)"
FORMS = 0.5  # a larger share of blanks among an item's cells is more likely another form of the test than omission


@dataclass(frozen=True)
class RawAnswers:
    """What is known about the answers besides right and wrong.

    Attributes
    ----------
    options : tuple of str
        The text of every code in `Block.options`; empty without a key.
    key : mapping of item to text
        The right option of every item.
    blanks : mapping of item to (omitted, not reached), or None
        How many cells were blank; None where a blank has no place in the test (long tables), or people were taken out.
    counted_wrong : (int, int)
        How many omitted and not-reached cells are wrong answers now.
    """

    options: tuple[str, ...] = ()
    key: Mapping[Any, str] = field(default_factory=dict)
    blanks: Mapping[Any, tuple[int, int]] | None = None
    counted_wrong: tuple[int, int] = (0, 0)


class OptionCoder:
    """Codes of wrong options, in the order in which they turn up; and how often each did."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {}
        self._counts = np.zeros(OTHER + 1, dtype=np.int64)

    def codes(self, answers: pl.Series, right: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """The code of every answer."""
        import polars as pl

        codes = np.full(len(answers), KEY, dtype=np.uint8)
        where = np.flatnonzero(~right)
        if len(where):
            wrong = answers.gather(where)
            for text in wrong.unique(maintain_order=True).to_list():
                if len(self._code) < OTHER - KEY - 1:
                    self._code.setdefault(text, len(self._code) + KEY + 1)
            codes[where] = wrong.replace_strict(self._code, default=OTHER, return_dtype=pl.UInt8).to_numpy()
        self._counts += np.bincount(codes, minlength=OTHER + 1)
        return codes

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts by code."""
        texts = [BLANK_TEXT, KEY_TEXT, *self._code]
        if self._counts[OTHER]:
            texts += [""] * (OTHER - len(texts)) + [OTHER_TEXT]
        return tuple(texts)

    def findings(self, scored: Iterable[str]) -> tuple[Finding, ...]:
        """Options that count as wrong and were perhaps not meant to be; `scored` are those of the key."""
        right = set(scored)
        folded = {text.casefold(): text for text in right}
        foreign = [text for text in self._code if text not in right]
        alike = [text for text in foreign if text.casefold() in folded]
        codes = [text for text in foreign if text in SUSPECTS and text not in alike]
        found = []
        if alike:
            meant = listed([folded[text.casefold()] for text in alike])
            said = f"{self._answers(alike)} not in the key but for capitals: {listed(alike)} instead of {meant}."
            remedy = "If these are the same options, write them alike, in the answers or in the key."
            found.append(Finding("spelled_unlike_key", "warning", f"{said} That counts as wrong.", remedy))
        if codes:
            said = f"{self._answers(codes)} {listed(codes)}, which is right for no item. That counts as wrong."
            remedy = f"If it means 'not answered', say `missing={codes[0] if len(codes) == 1 else codes!r}`."
            found.append(Finding("options_like_codes", "warning", said, remedy))
        return tuple(found)

    def _answers(self, texts: list[str]) -> str:
        n = int(sum(self._counts[self._code[text]] for text in texts))
        return "1 answer is" if n == 1 else f"{n:,} answers are"


def _counted(answered: Ints, width: int) -> Ints:
    """Cells, omitted and not reached of every column, from the positions of the answers alone: rows that go on beyond a
    column and have no answer in it, and rows that end before it."""
    row, column = np.divmod(answered, width)
    last = column[np.flatnonzero(np.diff(row, append=-1))]  # of every row that has an answer
    ends = np.bincount(last, minlength=width)
    before = np.cumsum(ends) - ends
    return np.array([np.full(width, len(last)), len(last) - before - np.bincount(column, minlength=width), before])


class BlankCounter:
    """Counts blank cells of whole rows, by item, and tells which of them count as wrong.

    A row without any answer is somebody who was absent: nothing in it was omitted or not reached.
    """

    def __init__(self, omitted: str, not_reached: str) -> None:
        self._wrong = (omitted == "wrong", not_reached == "wrong")
        self._sums = np.zeros((3, 0), dtype=np.int64)  # cells, omitted, not reached
        self.counted_wrong = [0, 0]

    def wrong(
        self, items: NDArray[Any], width: int, answered: Ints | None, presented: NDArray[np.bool_] | None
    ) -> Ints | None:
        """Positions of the blank cells that count as wrong, of rows with so many cells each; None for none."""
        n_items = int(items.max()) + 1 if len(items) else 0
        if self._sums.shape[1] < n_items:
            grown = np.zeros((3, n_items), dtype=np.int64)
            grown[:, : self._sums.shape[1]] = self._sums
            self._sums = grown
        if answered is None:
            self._sums[0, :n_items] += np.bincount(items, minlength=n_items)
            return None
        if presented is None and not any(self._wrong):
            self._sums[:, items[:width]] += _counted(answered, width)
            return None
        given = np.zeros(len(items), dtype=bool)
        given[answered] = True
        rows = given.reshape(-1, width)
        last = width - 1 - rows[:, ::-1].argmax(axis=1)
        before = np.arange(width) < last[:, None]
        there: NDArray[np.bool_] = np.any(rows, axis=1, keepdims=True)
        blank = ~rows & there
        cells = np.broadcast_to(there, rows.shape).copy()
        if presented is not None:
            blank &= presented.reshape(rows.shape)
            cells &= presented.reshape(rows.shape) | rows
        kinds = [(blank & before).ravel(), (blank & ~before).ravel()]
        for sums, mask in zip(self._sums, [cells.ravel(), *kinds], strict=True):
            sums[:n_items] += np.bincount(items[mask], minlength=n_items)
        chosen = np.zeros(len(items), dtype=bool)
        for k, mask in enumerate(kinds):
            if self._wrong[k]:
                chosen |= mask
                self.counted_wrong[k] += int(mask.sum())
        return np.flatnonzero(chosen) if chosen.any() else None

    def counts(self, labels: Iterable[Any]) -> dict[Any, tuple[int, int]]:
        """Omitted and not reached by item."""
        return {label: (int(a), int(b)) for label, a, b in zip(labels, *self._sums[1:], strict=False)}

    def findings(self, labels: Iterable[Any]) -> tuple[Finding, ...]:
        """How many blanks count as wrong, and whether that looks like a mistake."""
        omitted, unreached = self.counted_wrong
        if not omitted + unreached:
            return ()
        parts = [f"{n:,} {what}" for n, what in ((omitted, "omitted"), (unreached, "not-reached")) if n]
        cells, *kinds = self._sums
        wrong = kinds[0] * self._wrong[0] + kinds[1] * self._wrong[1]
        mostly = [label for label, n, all_ in zip(labels, wrong, cells, strict=False) if n > FORMS * all_]
        share = (omitted + unreached) / cells.sum()
        said = f"Cells that count as wrong, as asked: {' and '.join(parts)} ({share:.1%} of all)."
        found = [Finding("blanks_count_as_wrong", "note", said)]
        if mostly:
            said = (
                f"{len(mostly):,} item{'s are' if len(mostly) > 1 else ' is'} blank for more than half of the people, "
                f"and that counts as wrong: {listed(mostly)}."
            )
            remedy = (
                "If these items were not on everybody's form, say what stands for that with `not_presented=`, "
                '"" for the empty cell, or give a file for each form.'
            )
            found.append(Finding("mostly_blank_items", "warning", said, remedy, tuple(mostly)))
        return tuple(found)
