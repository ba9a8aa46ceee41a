"""Columns of numbers on their way into blocks, piece by piece: in memory, or in a temporary file once that is spent.

The file is read, not mapped: what was used leaves nothing behind in memory. It has no name, so nothing of it is left
whatever ends the process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.engines.memory import Budget, budget
from spectral_irt.engines.spilling import cannot_spill

SHARE = 0.25  # of the room that the budget leaves; there are two piles at times, and half is for the blocks

Column = NDArray[Any] | None
Stored = tuple[np.dtype[Any], int, int]  # type, length and place in the file


class Pile:
    """Pieces of several columns each, in order; a column that is not there is None in every piece."""

    def __init__(self, allowed: Budget | None = None) -> None:
        self._budget = allowed or budget()
        self._pieces: list[tuple[Column | Stored, ...]] = []
        self._file: IO[bytes] | None = None
        self._end = 0
        self._held = 0
        self.n_rows = 0

    @property
    def spilled(self) -> bool:
        """Whether some of it is in a file."""
        return self._file is not None

    def add(self, *columns: Column) -> None:
        size = sum(column.nbytes for column in columns if column is not None)
        self.n_rows += next(len(column) for column in columns if column is not None)
        if self._held + size <= SHARE * self._budget.room:
            self._held += size
            self._pieces.append(columns)
        else:
            self._pieces.append(tuple(None if column is None else self._written(column) for column in columns))

    def __len__(self) -> int:
        return len(self._pieces)

    def part(self, piece: int, rows: slice | None = None) -> tuple[Column, ...]:
        """The columns of a piece, or some rows of them."""
        return tuple(self._rows(column, rows or slice(None)) for column in self._pieces[piece])

    def __iter__(self) -> Iterator[tuple[Column, ...]]:
        return map(self.part, range(len(self)))

    def used_up(self, n_rows: int = 1) -> Iterator[tuple[Column, ...]]:
        """The pieces in order, several together until they have so many rows; each is let go when it was used."""
        waiting: list[tuple[Column, ...]] = []
        n_waiting = 0
        for k in range(len(self)):
            waiting.append(self.part(k))
            self._pieces[k] = ()
            n_waiting += len(waiting[-1][0])  # type: ignore[arg-type]
            if k + 1 == len(self) or n_waiting >= n_rows:
                together, waiting, n_waiting = waiting, [], 0
                yield _joined(together)
                del together
        if self._file is not None:
            self._file.close()

    def _rows(self, column: Column | Stored, rows: slice) -> Column:
        if column is None or isinstance(column, np.ndarray):
            return None if column is None else column[rows]
        dtype, length, place = column
        start, stop, _ = rows.indices(length)
        assert self._file is not None
        self._file.seek(place + start * dtype.itemsize)
        return np.fromfile(self._file, dtype, max(stop - start, 0))

    def _written(self, column: NDArray[Any]) -> Stored:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._budget.spill.folder)  # noqa: SIM115
            self._file.seek(self._end)
            np.ascontiguousarray(column).tofile(self._file)
        except OSError as error:
            raise cannot_spill(self._budget.spill.folder, error) from error
        place, self._end = self._end, self._end + column.nbytes
        return column.dtype, len(column), place


def _joined(pieces: list[tuple[Column, ...]]) -> tuple[Column, ...]:
    if len(pieces) == 1:
        return pieces[0]
    return tuple(None if each[0] is None else np.concatenate(each) for each in zip(*pieces, strict=True))
