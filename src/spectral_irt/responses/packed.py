"""Packed files: responses on disk as they are in memory, so that the next run starts at once.

    head      what it is, the version of the format and of the program, where the record stands, checksums
    sections  labels; and of every block indptr, split, items and, with a key, options, each at a multiple of 64 bytes
    record    JSON: counts, where the sections are and their checksums, notes, what is known of the raw answers

Numbers are little-endian. Opening maps the file: nothing is copied, and several processes share what they read. Every
checksum is compared, and every code is checked to lie within its bounds, whoever wrote the file; nothing is unpickled.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spectral_irt import __version__
from spectral_irt.errors import ReadError
from spectral_irt.responses import kernels
from spectral_irt.responses.block import Block, Ints
from spectral_irt.responses.labels import Labels
from spectral_irt.responses.ordered import OrderedResponses
from spectral_irt.responses.packed_record import labels_in, labels_out, notes_in, notes_out, raw_in, raw_out
from spectral_irt.responses.responses import Responses

MAGIC = b"SIRTPACK"
VERSION = 1
HEAD = struct.Struct("<8sII16sQQII")  # magic, format, 0, program, where the record is, its length, its crc, the head's
ALIGNED = 64
PACK_AGAIN = "Pack the answers again: spectral-irt pack FILES -o answers.packed."

Tell = Callable[[float, str], None]


class PackedWriter:
    """Writes a packed file block by block, for answers that are never in memory as a whole.

    Parameters
    ----------
    file : binary file, open for writing
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._blocks: list[dict[str, Any]] = []
        self.n_users = self.n_responses = 0
        file.write(b"\0" * ALIGNED)  # the head comes last: an unfinished file is never taken for a whole one
        self._end = ALIGNED

    def add(self, block: Block) -> None:
        """Append the block of these people."""
        wanted = {"indptr": "<i8", "split": "<i8", "items": "<i4"}
        arrays = {name: np.asarray(getattr(block, name), dtype=kind) for name, kind in wanted.items()}
        if block.options is not None:
            arrays["options"] = np.asarray(block.options, dtype="u1")
        self._blocks.append({name: self._section(array) for name, array in arrays.items()})
        self.n_users += block.n_users
        self.n_responses += block.n_responses

    def finish(self, responses: Responses | None = None, *, users: Labels, items: Labels) -> None:
        """Write labels, the record and the head; what else is known is taken from the responses, if given."""
        record: dict[str, Any] = {"counts": [self.n_users, len(items), self.n_responses], "blocks": self._blocks}
        for name, labels in (("users", users), ("items", items)):
            kind, *arrays = labels_out(labels)
            record[name] = {"kind": kind, "parts": [self._section(array) for array in arrays]}
        if responses is not None:
            record |= {"source": responses.source, "words": responses.words, "frame_kind": responses.frame_kind}
            record |= {"notes": notes_out(responses.notes), "raw": raw_out(responses.raw, items)}
        if isinstance(responses, OrderedResponses):
            record["thresholds"] = self._section(np.asarray(responses.n_thresholds, dtype="<i8"))
            if responses.codes is not None:
                record["codes"] = [*responses.codes.shape, self._section(np.asarray(responses.codes, dtype="<f8"))]
        text = json.dumps(record).encode()
        self._file.write(text)
        head = HEAD.pack(MAGIC, VERSION, 0, __version__.encode()[:16], self._end, len(text), zlib.crc32(text), 0)
        self._file.seek(0)
        self._file.write(head[:-4] + struct.pack("<I", zlib.crc32(head[:-4])))

    def _section(self, array: NDArray[Any]) -> list[int]:
        """Where it begins, how many bytes it has, and its checksum."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        self._file.write(data)
        place = [self._end, len(data), zlib.crc32(data)]
        padding = -len(data) % ALIGNED
        self._file.write(b"\0" * padding)
        self._end += len(data) + padding
        return place


def write_packed(responses: Responses, draft: Path, progress: Tell | None = None) -> None:
    """Write the responses to this very file."""
    with draft.open("wb") as file:
        writer = PackedWriter(file)
        entries = responses.thresholds if isinstance(responses, OrderedResponses) else responses
        for block in entries.map(kernels.itself):
            writer.add(block)
            if progress is not None:
                progress(writer.n_users / max(responses.n_users, 1), "packing")
        writer.finish(responses, users=responses.users, items=responses.items)


# ------------------------------------------------------------------------------------------------ opening


class _Damaged(ValueError):
    """What is wrong, in words that follow the name of the file."""


def open_packed(path: str | os.PathLike[str]) -> Responses:
    """The responses of a packed file, mapped; `OrderedResponses` if that is what was packed."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < HEAD.size:
                raise _Damaged("is too short to be a packed file")
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _opened(memoryview(whole), path.name)
    except OSError as error:
        raise ReadError(f"{str(path)!r} cannot be opened: {error.strerror}.") from None
    except _Damaged as error:
        raise ReadError(f"{path.name} {error}. {PACK_AGAIN}") from None


def _opened(whole: memoryview, name: str) -> Responses:
    record = _record(whole, name)
    try:
        n_users, n_items, n_responses = (int(count) for count in record["counts"])
        labels = {
            which: labels_in(
                record[which]["kind"], [_checked(whole, place) for place in record[which]["parts"]], n, which
            )
            for which, n in (("users", n_users), ("items", n_items))
        }
        blocks = tuple(_blocks(whole, record["blocks"]))
        ordered = _ordered(whole, record, n_items)
        known: dict[str, Any] = {"source": str(record.get("source", name)), "frame_kind": record.get("frame_kind")}
        known["words"] = tuple(str(word) for word in record.get("words", ("people", "items")))
        known["notes"] = notes_in(record.get("notes", []))
        known["raw"] = raw_in(record.get("raw"), labels["items"])
    except (KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
        if isinstance(error, _Damaged):
            raise
        raise _Damaged(f"has a record that makes no sense ({type(error).__name__}: {error})") from None
    codes = int(ordered["n_thresholds"].sum()) if ordered else n_items
    there = [sum(block.n_users for block in blocks), sum(block.n_responses for block in blocks)]
    if there != [n_users, n_responses]:
        raise _Damaged(f"says {n_users:,} people and {n_responses:,} answers, and holds {there[0]:,} and {there[1]:,}")
    kind: type[Responses] = OrderedResponses if ordered else Responses
    found = kind(blocks, labels["items"], labels["users"], **known, **ordered)
    for wrong in found.engine.map(_wrong_with, blocks, codes, each=(record["blocks"],)) if blocks else ():
        if wrong:
            raise _Damaged(wrong)
    return found


def _record(whole: memoryview, name: str) -> dict[str, Any]:
    magic, version, _, program, start, length, checksum, own = HEAD.unpack(whole[: HEAD.size])
    if magic != MAGIC:
        raise _Damaged("is not a packed file, or its writing never ended")
    if own != zlib.crc32(whole[: HEAD.size - 4]):
        raise _Damaged("is damaged: its head does not agree with its checksum")
    if version > VERSION:
        made = program.rstrip(b"\0").decode("ascii", "replace")
        raise ReadError(
            f"{name} was packed by spectral-irt {made}, in a format (version {version}) that is newer than this "
            f"program's ({__version__}, version {VERSION}). Install that version or a later one, or pack the answers "
            "again with this one."
        )
    if start + length != len(whole):
        raise _Damaged(f"is cut off or has grown: it has {len(whole):,} bytes, and should have {start + length:,}")
    text = bytes(whole[start:])
    if zlib.crc32(text) != checksum:
        raise _Damaged("is damaged: its record does not agree with its checksum")
    record: dict[str, Any] = json.loads(text)
    return record


def _section(whole: memoryview, place: list[int]) -> memoryview:
    start, size, _ = (int(number) for number in place)
    if not 0 <= start <= start + size <= len(whole):
        raise _Damaged("is damaged: a part of it would lie beyond its end")
    return whole[start : start + size]


def _checked(whole: memoryview, place: list[int]) -> memoryview:
    part = _section(whole, place)
    if zlib.crc32(part) != place[2]:
        raise _Damaged("is damaged: its labels do not agree with their checksum")
    return part


def _blocks(whole: memoryview, places: list[dict[str, list[int]]]) -> Iterator[Block]:
    kinds = {"indptr": "<i8", "split": "<i8", "items": "<i4", "options": "u1"}
    for one in places:
        arrays = {name: np.frombuffer(_section(whole, place), kinds[name]) for name, place in one.items()}
        yield Block(arrays["indptr"], arrays["split"], arrays["items"], arrays.get("options"))


def _wrong_with(block: Block, places: dict[str, list[int]], n_codes: int) -> str | None:
    """What is wrong with a block; kernels trust its numbers, so none may lead outside of an array."""
    for name, place in places.items():
        if zlib.crc32(getattr(block, name)) != place[2]:
            return "is damaged: answers do not agree with their checksum"
    indptr, split, items = block.indptr, block.split, block.items
    rises = len(indptr) == len(split) + 1 and indptr[0] == 0 and indptr[-1] == len(items)
    if not (rises and np.all(indptr[:-1] <= split) and np.all(split <= indptr[1:])):
        return "has people whose answers overlap"
    if len(items) and not 0 <= items.min() <= items.max() < n_codes:
        return "has answers to items that it does not name"
    if block.options is not None and len(block.options) != len(items):
        return "has options for other answers than it holds"
    return None


def _ordered(whole: memoryview, record: dict[str, Any], n_items: int) -> dict[str, Any]:
    if "thresholds" not in record:
        return {}
    counts: Ints = np.frombuffer(_checked(whole, record["thresholds"]), "<i8")
    if len(counts) != n_items or counts.min(initial=1) < 1:
        raise _Damaged("has other items than it has categories for")
    codes = None
    if "codes" in record:
        rows, columns, place = record["codes"]
        codes = np.frombuffer(_checked(whole, place), "<f8").reshape(rows, columns)
    return {"n_thresholds": counts, "codes": codes}
