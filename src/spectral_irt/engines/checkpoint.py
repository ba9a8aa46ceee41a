"""A fit that can be killed: every sum over people is written down, and a second run takes them from there.

An estimator is a deterministic loop that asks for sums. So to resume is to run the loop again with the sums that are
already known; what was prepared from the data is prepared again only when a sum is missing. The numbers are the same
bits as without a break, whatever the estimator, and nobody but the engine knows. What is written are sums over people,
a number or a few for each item.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from spectral_irt import __version__
from spectral_irt.engines.engine import Each, Engine, Kernel, Prepared
from spectral_irt.errors import CheckpointError
from spectral_irt.writing import BUSY, lock_file, naming

JOURNAL = "fit.journal"
FORMAT = "spectral-irt checkpoint 1"
ENTRY = struct.Struct("<16sQI")  # which sum, its bytes, their checksum
LARGEST = 1 << 26  # bytes of a sum that is written; a matrix of pairs of items is computed again
KEPT = "Nothing else was written; the checkpoint that was there is unchanged."


class Checkpoint:
    """The sums of one fit in a folder; held by one process at a time.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    of : mapping
        What the sums depend on: the data and the options. A checkpoint of anything else is an error.
    """

    def __init__(self, folder: str | Path, of: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / JOURNAL
        self.resumed = 0  # sums that were known
        with naming(self.path, KEPT):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
        try:
            self._lock()
            self._begin({"format": FORMAT, "version": __version__, **of})
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            lock_file(self._file.fileno())
        except OSError as error:
            if error.errno in BUSY:
                raise CheckpointError(
                    f"another fit is using the checkpoint {str(self.folder)!r}; two fits cannot share one. Wait for "
                    "it, or name another folder."
                ) from None

    def _begin(self, of: Mapping[str, Any]) -> None:
        """Read what the file is of, or write it."""
        mine = json.dumps(of, sort_keys=True).encode() + b"\n"
        first = self._file.readline()
        if not first.endswith(b"\n"):  # new, or not even the first line was finished
            if not mine.startswith(first):
                self._not_ours()
            self._file.seek(0)
            self._file.truncate()
            self._write(mine)
        elif first != mine:
            try:
                found = json.loads(first)
            except ValueError:
                self._not_ours()
            self._refuse(found if isinstance(found, dict) else {}, of)
        self._ready = True  # whether there may be further sums in the file

    def _not_ours(self) -> NoReturn:
        raise CheckpointError(f"{str(self.path)!r} is not a checkpoint of this program; name another folder.")

    def _refuse(self, found: Mapping[str, Any], mine: Mapping[str, Any]) -> NoReturn:
        words = {"data": "other data", "version": f"version {found.get('version')} of this program"}
        words |= {"format": "another version of this program", "options": "a fit with other options"}
        unlike = [words.get(name, f"another {name}") for name in {**found, **mine} if found.get(name) != mine.get(name)]
        raise CheckpointError(
            f"the checkpoint {str(self.folder)!r} is of {' and '.join(unlike)}. Remove the folder to begin anew, or "
            "name another. It is unchanged."
        )

    def known(self, key: bytes) -> tuple[bool, Any]:
        """Whether the next sum in the file is this one, and the sum. From the first that is not, all is computed."""
        if not self._ready:
            return False, None
        start = self._file.tell()
        head = self._file.read(ENTRY.size)
        if len(head) == ENTRY.size:
            which, size, checksum = ENTRY.unpack(head)
            if which == key and size <= os.fstat(self._file.fileno()).st_size:
                data = self._file.read(size)
                if len(data) == size and zlib.crc32(data) == checksum:
                    self.resumed += 1
                    return True, _decoded(data)
        self._ready = False
        self._file.seek(start)
        self._file.truncate()  # an entry that was being written when the process was killed
        return False, None

    @property
    def replaying(self) -> bool:
        """Whether further sums may be known."""
        return self._ready

    def add(self, key: bytes, result: Any) -> None:
        """Write down a sum."""
        data = _encoded(result)
        self._write(ENTRY.pack(key, len(data), zlib.crc32(data)) + data)

    def _write(self, data: bytes) -> None:
        with naming(self.path, "Nothing was written besides the sums before."):
            self._file.write(data)
            self._file.flush()  # a killed process loses nothing then; a checksum tells what a dead machine has lost

    def remove(self) -> None:
        """The fit is complete: the file goes, and the folder if nothing else is in it."""
        self.path.unlink(missing_ok=True)
        self._file.close()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class CheckpointEngine(Engine):
    """Another engine, whose sums are written down, or taken from what was written."""

    def __init__(self, inner: Engine, checkpoint: Checkpoint) -> None:
        self.inner, self.checkpoint = inner, checkpoint

    def map(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Iterator[Any]:
        return self.inner.map(kernel, parts, *args, each=each)

    def sum(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Any:
        return self.recorded(kernel, args, lambda: self.inner.sum(kernel, parts, *args, each=each))

    def prepare(self, kernel: Kernel, parts: Sequence[Any], *args: Any, each: Each = ()) -> Prepared:
        args = _copied(args)
        return Deferred(self, lambda: self.inner.prepare(kernel, parts, *args, each=each))

    def hold(self, parts: Iterable[Any]) -> Prepared:
        held = self.inner.hold(parts)
        return Deferred(self, lambda: held)

    def keep(self, part: Any) -> Any:
        return self.inner.keep(part)

    def fetch(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        return self.inner.fetch(parts)

    def reserve(self, persons: int, items: int) -> None:
        self.inner.reserve(persons, items)

    def make_room(self, size: int) -> None:
        self.inner.make_room(size)

    def recorded(self, kernel: Kernel, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """A sum that is known, or computed and written down."""
        key = _key(kernel, args)
        there, result = self.checkpoint.known(key)
        if there and result is not NOT_WRITTEN:
            return result
        result = compute()
        if not there:
            self.checkpoint.add(key, result)
        return result


class Deferred(Prepared):
    """Parts that are made when a sum over them is missing; at once, when nothing more is known."""

    engine: CheckpointEngine

    def __init__(self, engine: CheckpointEngine, make: Callable[[], Prepared]) -> None:
        object.__setattr__(self, "engine", engine)
        object.__setattr__(self, "_make", make)
        if not engine.checkpoint.replaying:
            _ = self.made

    @functools.cached_property
    def made(self) -> Prepared:
        """The parts, under the engine that does the work."""
        made: Prepared = vars(self)["_make"]()
        object.__setattr__(self, "_make", None)  # and with it those they were made from
        return made

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.made.parts

    def sum(self, kernel: Kernel, *args: Any, each: Each = ()) -> Any:
        return self.engine.recorded(kernel, args, lambda: self.made.sum(kernel, *args, each=each))

    def prepare(self, kernel: Kernel, *args: Any) -> Prepared:
        args = _copied(args)
        return Deferred(self.engine, lambda: self.made.prepare(kernel, *args))

    def advance(self, kernel: Kernel, *args: Any) -> tuple[Prepared, Any]:
        args = _copied(args)
        new: list[Prepared] = []

        def compute() -> Any:
            made, total = self.made.advance(kernel, *args)
            new.append(made)
            return total

        total = self.engine.recorded(kernel, args, compute)
        return Deferred(self.engine, lambda: new[0] if new else self.made.advance(kernel, *args)[0]), total

    def with_more(self, others: Prepared) -> Prepared:
        return Deferred(self.engine, lambda: Prepared((*self.parts, *others.parts), self.engine.inner))


# ------------------------------------------------------------------------------------------- sums as bytes


class _NotWritten:
    """In the place of a sum that was too large, or no array."""


NOT_WRITTEN = _NotWritten()


def _encoded(result: Any) -> bytes:
    """Arrays, numbers, or tuples of them; nothing that would have to be pickled."""
    several = isinstance(result, tuple)
    values = result if several else (result,)
    plain = all(isinstance(one, np.ndarray | np.number | int | float) for one in values)
    arrays = [np.asarray(one) for one in values] if plain else []
    if not plain or any(one.dtype.hasobject for one in arrays) or sum(one.nbytes for one in arrays) > LARGEST:
        return b"null"
    out = io.BytesIO()
    kinds = ["array" if isinstance(one, np.ndarray) else type(one).__name__ for one in values]
    out.write(json.dumps([several, kinds]).encode() + b"\n")
    for array in arrays:
        np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _decoded(data: bytes) -> Any:
    source = io.BytesIO(data)
    described = json.loads(source.readline())
    if described is None:
        return NOT_WRITTEN
    several, kinds = described
    arrays = [np.load(source, allow_pickle=False) for _ in kinds]
    turn: dict[str, Callable[[Any], Any]] = {"array": lambda one: one, "int": int, "float": float, "bool": bool}
    values = tuple(turn.get(kind, lambda one: one[()])(one) for kind, one in zip(kinds, arrays, strict=True))
    return values if several else values[0]


def _key(kernel: Kernel, args: tuple[Any, ...]) -> bytes:
    """A fingerprint of what is asked: the kernel by its name, and what it is given."""
    fingerprint = hashlib.blake2b(_name(kernel).encode(), digest_size=16)
    _feed(fingerprint, args)
    return fingerprint.digest()


def _name(kernel: Any) -> str:
    kernel = getattr(kernel, "func", kernel)  # of a partial
    return f"{getattr(kernel, '__module__', '')}.{getattr(kernel, '__qualname__', type(kernel).__qualname__)}"


def _feed(fingerprint: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        fingerprint.update(f"{value.dtype.str}{value.shape}".encode())
        fingerprint.update(np.ascontiguousarray(value).data)
    elif isinstance(value, tuple | list):
        for one in value:
            _feed(fingerprint, one)
    elif isinstance(value, str | int | float | bool | None):
        fingerprint.update(repr(value).encode())
    else:
        fingerprint.update(type(value).__qualname__.encode())


def digest_of(*values: Any) -> str:
    """A fingerprint of arrays, numbers and texts."""
    fingerprint = hashlib.blake2b(digest_size=16)
    _feed(fingerprint, values)
    return fingerprint.hexdigest()


def _copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of something that is done later: whoever gave them may change them in the meantime."""
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in args)
