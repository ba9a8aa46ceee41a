"""Packed files: responses on disk as they are in memory, so that the next run starts at once.

    head      what it is, the version of the format and of the program, where the record stands, checksums
    sections  labels, columns about people; and of every block indptr, split, items and, with a key, options, each at a
              multiple of 64 bytes
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
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt import __version__
from spectral_irt.data.block import Block, Ints
from spectral_irt.data.choices import RawAnswers
from spectral_irt.data.finding import Finding, Severity
from spectral_irt.data.labels import Labels, People, label_array, plain_label
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.engine.base import identity
from spectral_irt.engine.dask import Shard
from spectral_irt.errors import OptionError, ReadError, listed

MAGIC = b"SIRTPACK"
VERSION = 1
HEAD = struct.Struct("<8sII16sQQII")  # magic, format, 0, program, where the record is, its length, its crc, the head's
ALIGNED = 64
MOST_THRESHOLDS = 1000  # of an item: what is made for them is then in proportion to the size of the file
PACK_AGAIN = "Pack the answers again: spectral-irt pack FILES -o answers.packed."

FRAME_KINDS = (None, "polars", "pandas", "pyarrow", "modin", "cudf")

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
        self.n_persons = self.n_responses = 0
        file.write(b"\0" * ALIGNED)  # the head comes last: an unfinished file is never taken for a whole one
        self._end = ALIGNED

    def add(self, block: Block) -> None:
        """Append the block of these people."""
        wanted = {"indptr": "<i8", "split": "<i8", "items": "<i4"}
        arrays = {name: np.asarray(getattr(block, name), dtype=kind) for name, kind in wanted.items()}
        if block.options is not None:
            arrays["options"] = np.asarray(block.options, dtype="u1")
        self._blocks.append({name: self._section(array) for name, array in arrays.items()})
        self.n_persons += block.n_persons
        self.n_responses += block.n_responses

    def finish(self, responses: Responses | None = None, *, persons: Labels, items: Labels) -> None:
        """Write labels, the record and the head; what else is known is taken from the responses, if given."""
        record: dict[str, Any] = {"counts": [self.n_persons, len(items), self.n_responses], "blocks": self._blocks}
        for name, labels in (("persons", persons), ("items", items)):
            kind, *arrays = labels_out(labels)
            record[name] = {"kind": kind, "parts": [self._section(array) for array in arrays]}
        if responses is not None:
            record |= {"source": responses.source, "words": responses.words, "frame_kind": responses.frame_kind}
            record |= {"notes": notes_out(responses.notes), "raw": raw_out(responses.raw, items)}
            if responses.people is not None:
                columns = {name: json.dumps(values.tolist()).encode() for name, values in responses.people.items()}
                record["people"] = {n: self._section(np.frombuffer(text, "u1")) for n, text in columns.items()}
        if responses is not None and not responses.thresholds.binary:
            record["thresholds"] = self._section(np.asarray(responses.thresholds.max_score, dtype="<i8"))
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
        for block in responses.entries.map(identity):
            writer.add(block)
            if progress is not None:
                progress(writer.n_persons / max(responses.n_persons, 1), "packing")
        writer.finish(responses, persons=responses.persons, items=responses.items)


# ------------------------------------------------------------------------------------------------ opening


class _Damaged(ValueError):
    """What is wrong, in words that follow the name of the file."""


def open_responses(path: str | os.PathLike[str]) -> Responses:
    """The responses of a packed file, made by `Responses.save` or `spectral-irt pack`.

    Answers are mapped from the file, not read into memory; checksums are compared. Ordered responses come back as such.

    Raises
    ------
    ReadError
        Where the file is damaged, cut off, or from a newer version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "answers.packed")
    >>> Responses.from_wide([[1, 0], [0, 1]]).save(file)
    >>> open_responses(file).to_dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
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


def mapped_blocks(path: str, modified: int, first: int, last: int) -> Shard:
    """Blocks of a packed file that another process has opened and checked; this one maps them itself."""
    found = Path(path)
    if found.stat().st_mtime_ns != modified:  # a worker that died may be the reason to map it again
        raise ReadError(f"{found.name} changed after it was opened; start again when it is complete.")
    with found.open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return Shard(list(_blocks(whole, _record(whole, found.name)["blocks"][first:last])))


def _opened(whole: memoryview, name: str) -> Responses:
    record = _record(whole, name)
    try:
        n_persons, n_items, n_responses = (int(count) for count in record["counts"])
        labels = {
            which: labels_in(
                record[which]["kind"], [_checked(whole, place) for place in record[which]["parts"]], n, which
            )
            for which, n in (("persons", n_persons), ("items", n_items))
        }
        blocks = tuple(_blocks(whole, record["blocks"]))
        ordered = _ordered(whole, record, n_items)
        known: dict[str, Any] = {"source": str(record.get("source", name)), "frame_kind": record.get("frame_kind")}
        if known["frame_kind"] not in FRAME_KINDS:
            raise _Damaged("was made of a kind of table that there is not")
        people, items = record.get("words", ("people", "items"))
        known["words"] = str(people), str(items)
        known["notes"] = notes_in(record.get("notes", []))
        known["people"] = _people(whole, record, labels["persons"], known["source"])
        known["raw"] = raw_in(record.get("raw"), labels["items"])
    except _Damaged:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise _Damaged(f"has a record that makes no sense ({type(error).__name__}: {str(error)[:80]})") from None
    there = [sum(block.n_persons for block in blocks), sum(block.n_responses for block in blocks)]
    if there != [n_persons, n_responses]:
        raise _Damaged(
            f"says {n_persons:,} people and {n_responses:,} answers, and holds {there[0]:,} and {there[1]:,}"
        )
    found = Responses(blocks, labels["items"], labels["persons"], **known, **ordered)
    n_options = 0 if found.raw is None else len(found.raw.options)
    each = (record["blocks"],)
    for wrong in found.engine.map(_wrong_with, blocks, found.thresholds, n_options, each=each) if blocks else ():
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
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise _Damaged("has a record that is not the JSON of a packed file")
    return record


def _section(whole: memoryview, place: list[int]) -> memoryview:
    start, size, _ = place
    if not all(type(number) is int for number in place):
        raise _Damaged("is damaged: a part of it is nowhere")
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


def _wrong_with(block: Block, places: dict[str, list[int]], thresholds: Thresholds, n_options: int) -> str | None:
    """What is wrong with a block; kernels trust its numbers, so none may lead outside of an array."""
    for name, place in places.items():
        if zlib.crc32(getattr(block, name)) != place[2]:
            return "is damaged: answers do not agree with their checksum"
    indptr, split, items = block.indptr, block.split, block.items
    rises = len(indptr) == len(split) + 1 and indptr[0] == 0 and indptr[-1] == len(items)
    if not (rises and np.all(indptr[:-1] <= split) and np.all(split <= indptr[1:])):
        return "has people whose answers overlap"
    if len(items) and not 0 <= items.min() <= items.max() < thresholds.n_entries:
        return "has answers to items that it does not name"
    if block.options is not None and len(block.options) != len(items):
        return "has options for other answers than it holds"
    if block.options is not None and block.options.max(initial=0) >= max(n_options, 1):
        return "has options that it does not name"
    if not _one_answer_each(block, thresholds):
        return "has somebody who answered an item twice, or in two categories"
    return None


def _one_answer_each(block: Block, thresholds: Thresholds) -> bool:
    """Whether each answer is one entry, or two for neighboring thresholds: passed the last, failed the next."""
    items = block.items if thresholds.binary else thresholds.item[block.items]
    shape = (block.n_persons, thresholds.n_items)
    where: NDArray[Any] = np.ones(len(items), dtype=np.int8) if thresholds.binary else np.arange(len(items))
    indptr = block.indptr.astype(np.int32 if len(items) < 2**31 else np.int64)
    by_item = sparse.csr_array((where, items, indptr), shape=shape).tocsc()
    person, place = by_item.indices, by_item.data  # of an item one after the other, ones before zeros
    with_next = np.zeros(len(person), dtype=bool)  # whether the next entry belongs to the same answer
    with_next[:-1] = person[1:] == person[:-1]
    ends = by_item.indptr[1:]
    with_next[ends[ends > 0] - 1] = False
    if thresholds.binary:
        return not with_next.any()
    level, passed = thresholds.level[block.items[place]], place < block.split[person]
    first = np.flatnonzero(with_next)
    alone = ~with_next
    alone[first + 1] = False
    ends_well = np.where(passed, level == thresholds.max_score[items[place]], level == 1)
    pairs = passed[first] & ~passed[first + 1] & (level[first + 1] == level[first] + 1) & ~with_next[first + 1]
    return bool(np.all(ends_well[alone]) and np.all(pairs))


def _ordered(whole: memoryview, record: dict[str, Any], n_items: int) -> dict[str, Any]:
    if "thresholds" not in record:
        return {}
    counts: Ints = np.frombuffer(_checked(whole, record["thresholds"]), "<i8")
    if len(counts) != n_items or counts.min(initial=1) < 1 or counts.max(initial=1) > MOST_THRESHOLDS:
        raise _Damaged("has other items than it has categories for, or too many of one item")
    codes = None
    if "codes" in record:
        rows, columns, place = record["codes"]
        codes = np.frombuffer(_checked(whole, place), "<f8").reshape(rows, columns)
        if codes.shape != (n_items, counts.max(initial=1) + 1):
            raise _Damaged("has values for other categories than it holds")
    return {"thresholds": Thresholds(counts), "codes": codes}


def _people(whole: memoryview, record: dict[str, Any], persons: Labels, source: str) -> People | None:
    if "people" not in record:
        return None
    columns = {}
    for name, place in record["people"].items():
        values = json.loads(bytes(_checked(whole, place)))
        if len(values) != len(persons) or not all(one is None or isinstance(one, str | int | float) for one in values):
            raise ValueError(f"column {name!r} about people")
        columns[name] = np.empty(len(values), dtype=object)
        columns[name][:] = values
    return People(persons, columns, source)


NUMBERS, TEXTS, MIXED = "numbers", "texts", "mixed"


# ------------------------------------------------------------------------------------------------- labels


def labels_out(labels: Labels) -> tuple[str, *tuple[NDArray[Any], ...]]:
    """How the labels are kept, and the arrays that keep them."""
    if labels.dtype.kind == "i":
        return NUMBERS, labels.astype("<i8")
    plain = labels.tolist()
    if all(type(label) is str for label in plain):
        texts = [label.encode("utf-8", "surrogatepass") for label in plain]
        ends = np.cumsum([0, *map(len, texts)], dtype="<i8")
        return TEXTS, ends, np.frombuffer(b"".join(texts), dtype="u1")
    foreign = [label for label in plain if not isinstance(label, str | int | float | bool)]
    if foreign:
        raise OptionError(
            f"labels of the kind {type(foreign[0]).__name__} cannot be packed: {listed(foreign)}. Make them text or "
            "whole numbers."
        )
    return MIXED, np.frombuffer(json.dumps(plain).encode(), dtype="u1")


def labels_in(kind: str, parts: Sequence[memoryview], n: int, which: str) -> Labels:
    """The labels again; a ValueError where there are not as many as there should be."""
    found: Labels
    if kind == NUMBERS:
        found = np.frombuffer(parts[0], "<i8")
    elif kind == TEXTS:
        ends, text = np.frombuffer(parts[0], "<i8"), bytes(parts[1])
        if len(ends) != n + 1 or ends[0] != 0 or ends[-1] != len(text) or np.any(np.diff(ends) < 0):
            raise ValueError(f"labels of {which}")
        found = np.empty(n, dtype=object)
        places = ends.tolist()
        found[:] = [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]
    elif kind == MIXED:
        plain = json.loads(bytes(parts[0]))
        if not all(isinstance(label, str | int | float) for label in plain):
            raise ValueError(f"labels of {which}")
        found = label_array(plain)
    else:
        raise ValueError(f"labels of the kind {kind}")
    if len(found) != n:
        raise ValueError(f"{len(found):,} {which} instead of {n:,}")
    return found


# ------------------------------------------------------------------------------------------------ findings


def notes_out(notes: Sequence[Finding]) -> list[dict[str, Any]]:
    return [{**vars(note), "items": [plain_label(label) for label in note.items]} for note in notes]


def notes_in(kept: Sequence[dict[str, Any]]) -> tuple[Finding, ...]:
    for note in kept:
        if note["severity"] not in get_args(Severity):
            raise ValueError(f"a finding of the kind {note['severity']!r}")
    texts = ("code", "severity", "sentence", "remedy")
    return tuple(Finding(*(str(note[name]) for name in texts), tuple(note["items"])) for note in kept)  # type: ignore[arg-type, call-arg]


# --------------------------------------------------------------------------------------------- raw answers


def raw_out(raw: RawAnswers | None, items: Labels) -> dict[str, Any] | None:
    """What is known of the raw answers, by the number of the item."""
    if raw is None:
        return None
    labels = items.tolist()
    blanks = None if raw.blanks is None else [raw.blanks.get(label) for label in labels]
    return {
        "options": list(raw.options),
        "key": [raw.key.get(label) for label in labels],
        "blanks": blanks,
        "counted_wrong": list(raw.counted_wrong),
    }


def raw_in(kept: dict[str, Any] | None, items: Labels) -> RawAnswers | None:
    if kept is None:
        return None
    labels = items.tolist()
    key = {label: str(text) for label, text in zip(labels, kept["key"], strict=True) if text is not None}
    blanks = None
    if kept["blanks"] is not None:
        pairs = zip(labels, kept["blanks"], strict=True)
        blanks = {label: (int(pair[0]), int(pair[1])) for label, pair in pairs if pair is not None}
    omitted, not_reached = kept["counted_wrong"]
    return RawAnswers(tuple(map(str, kept["options"])), key, blanks, (int(omitted), int(not_reached)))
