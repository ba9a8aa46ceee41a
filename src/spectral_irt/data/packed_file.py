"""Packed files: responses on disk as they are in memory, so that the next run starts at once.

    head      what it is, the version of the format and of the program, where the record stands, checksums
    sections  at multiples of 64 bytes: indptr, split, items and options of every block; labels that are whole numbers
    record    JSON: counts, where the sections are and their checksums, and everything else that is known

Numbers are little-endian. Opening maps the file: nothing is copied, and several processes share what they read. Every
checksum is compared, and every code lies within its bounds, whoever wrote the file; nothing is unpickled."""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt import __version__
from spectral_irt.data.answer_key import KEY
from spectral_irt.data.block import AnswerRows, Block, Ints, Thresholds, answered_items, pack_block, slots_of
from spectral_irt.data.labels import Labels, People, label_array, plain_label
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import RawAnswers
from spectral_irt.engine.base import identity
from spectral_irt.engine.dask import Shard
from spectral_irt.errors import Finding, OptionError, ReadError, Severity
from spectral_irt.text import listed

MAGIC = b"SIRTPACK"
VERSION = 2
HEAD = struct.Struct("<8sII16sQQII")  # magic, format, 0, program, where the record is, its length, its crc, the head's
ALIGNED = 64
MOST_THRESHOLDS = 1000  # of an item: what is made for them is then in proportion to the size of the file
PACK_AGAIN = "Pack the answers again: spectral-irt pack FILES -o answers.packed."

KINDS = {"indptr": "<i8", "split": "<i8", "items": "<i4", "options": "u1"}  # of the sections of a block
FRAME_KINDS = (None, "polars", "pandas", "pyarrow", "modin", "cudf")
LABEL = str | int | float

Tell = Callable[[float, str], None]


class PackedWriter:
    """Writes a packed file, open for writing, block by block: answers need never be in memory as a whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._blocks: list[dict[str, Any]] = []
        self.n_persons = self.n_responses = 0
        file.write(b"\0" * ALIGNED)  # the head comes last: an unfinished file is never taken for a whole one
        self._end = ALIGNED

    def add(self, block: Block) -> None:
        arrays = {name: getattr(block, name) for name in KINDS if getattr(block, name) is not None}
        self._blocks.append({name: self._section(array, KINDS[name]) for name, array in arrays.items()})
        self.n_persons += block.n_persons
        self.n_responses += block.n_responses

    def finish(self, responses: Responses | None = None, *, persons: Labels, items: Labels) -> None:
        """Write labels, the record and the head; what else is known is taken from the responses, if given."""
        record: dict[str, Any] = {"counts": [self.n_persons, len(items), self.n_responses], "blocks": self._blocks}
        for name, labels in (("persons", persons), ("items", items)):
            numbers = labels.dtype.kind == "i"
            if foreign := [] if numbers else [label for label in labels.tolist() if not isinstance(label, LABEL)]:
                what = f"labels of the kind {type(foreign[0]).__name__} cannot be packed: {listed(foreign)}."
                raise OptionError(f"{what} Make them text or whole numbers.")
            record[name] = {"numbers": self._section(labels, "<i8")} if numbers else {"labels": labels.tolist()}
        if responses is not None:
            record |= {"source": responses.source, "words": responses.words, "frame_kind": responses.frame_kind}
            notes = [{**vars(note), "items": [plain_label(label) for label in note.items]} for note in responses.notes]
            record |= {"notes": notes, "raw": None}
            if (raw := responses.raw) is not None:
                blanks = None if raw.blanks is None else list(raw.blanks.items())
                record["raw"] = {"options": raw.options, "key": list(raw.key.items()), "blanks": blanks}
                record["raw"]["blanks_decided"] = raw.blanks_decided
            if responses.people is not None:
                record["people"] = {name: values.tolist() for name, values in responses.people.items()}
            if responses.answer_labels:
                labels_of = {label: list(known.items()) for label, known in responses.answer_labels.items()}
                record["answer_labels"] = [[plain_label(label), known] for label, known in labels_of.items()]
            if responses.item_texts:
                record["item_texts"] = [[plain_label(label), text] for label, text in responses.item_texts.items()]
            if not responses.thresholds.binary:
                record["thresholds"] = responses.thresholds.max_score.tolist()
                record["codes"] = None if responses.codes is None else responses.codes.tolist()
        text = json.dumps(record).encode()
        self._file.write(text)
        head = HEAD.pack(MAGIC, VERSION, 0, __version__.encode()[:16], self._end, len(text), zlib.crc32(text), 0)
        self._file.seek(0)
        self._file.write(head[:-4] + struct.pack("<I", zlib.crc32(head[:-4])))

    def _section(self, array: NDArray[Any], kind: str) -> list[int]:
        data = np.ascontiguousarray(array, dtype=kind).view(np.uint8).data
        self._file.write(data)
        place = [self._end, len(data), zlib.crc32(data)]
        padding = -len(data) % ALIGNED
        self._file.write(b"\0" * padding)
        self._end += len(data) + padding
        return place


def write_packed(responses: Responses, draft: Path, progress: Tell | None = None) -> None:
    with draft.open("wb") as file:
        writer = PackedWriter(file)
        for block in responses.entries.map(identity):
            writer.add(block)
            if progress is not None:
                progress(writer.n_persons / max(responses.n_persons, 1), "packing")
        writer.finish(responses, persons=responses.persons, items=responses.items)


class _Damaged(ValueError):
    """What is wrong, in words that follow the name of the file."""


def open_responses(path: str | os.PathLike[str]) -> Responses:
    """The responses of a packed file, made by `Responses.save` or `spectral-irt pack`.

    Answers are mapped from the file, not read into memory. A `ReadError` says where the file is damaged, cut off, or
    from another version.

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
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _responses_in(memoryview(mapped), path.name)
    except OSError as error:
        raise ReadError(f"{str(path)!r} cannot be opened: {error.strerror}.") from None
    except _Damaged as error:
        raise ReadError(f"{path.name} {error}. {PACK_AGAIN}") from None


def mapped_blocks(path: str, modified: int, first: int, last: int) -> Shard:
    """Blocks of a packed file that another process has opened and checked; this one maps them itself."""
    file_path = Path(path)
    if file_path.stat().st_mtime_ns != modified:  # a worker that died may be the reason to map it again
        raise ReadError(f"{file_path.name} changed after it was opened; start again when it is complete.")
    with file_path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return Shard(list(_blocks(mapped, _record(mapped, file_path.name)["blocks"][first:last])))


def _responses_in(whole: memoryview, name: str) -> Responses:
    record = _record(whole, name)
    try:
        n_persons, n_items, n_responses = (int(count) for count in record["counts"])
        persons = _labels(whole, record, "persons", n_persons)
        items = _labels(whole, record, "items", n_items)
        blocks = tuple(_blocks(whole, record["blocks"]))
        about = _thresholds(record, n_items)
        about |= {"source": str(record.get("source", name)), "frame_kind": record.get("frame_kind")}
        if about["frame_kind"] not in FRAME_KINDS:
            raise _Damaged("was made of a kind of table that there is not")
        people, what = record.get("words", ("people", "items"))
        about |= {"words": (str(people), str(what)), "notes": tuple(map(_note, record.get("notes", [])))}
        about["raw"], columns = _raw(record.get("raw")), {}
        for column, values in record.get("people", {}).items():
            columns[column] = np.empty(n_persons, dtype=object)
            columns[column][:] = _values(values, column, LABEL | None)
        about["people"] = People(persons, columns, about["source"]) if "people" in record else None
        about["answer_labels"] = _answer_labels(record.get("answer_labels", []))  # none in files of before
        about["item_texts"] = _item_texts(record.get("item_texts", []))
    except _Damaged:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise _Damaged(f"has a record that makes no sense ({type(error).__name__}: {str(error)[:80]})") from None
    n_held = [sum(block.n_persons for block in blocks), sum(block.n_responses for block in blocks)]
    if n_held != [n_persons, n_responses]:
        problem = f"says {n_persons:,} people and {n_responses:,} answers,"
        raise _Damaged(f"{problem} and holds {n_held[0]:,} and {n_held[1]:,}")
    responses = Responses(blocks, items, persons, **about)
    n_options = 0 if responses.raw is None else len(responses.raw.options)
    each = (record["blocks"],)
    for wrong in (
        responses.engine.map(_wrong_with, blocks, responses.thresholds, n_options, each=each) if blocks else ()
    ):
        if wrong:
            raise _Damaged(wrong)
    return responses


def _record(whole: memoryview, name: str) -> dict[str, Any]:
    magic, version, _, program, start, length, checksum, head_checksum = HEAD.unpack(whole[: HEAD.size])
    if magic != MAGIC:
        raise _Damaged("is not a packed file, or its writing never ended")
    if head_checksum != zlib.crc32(whole[: HEAD.size - 4]):
        raise _Damaged("is damaged: its head does not agree with its checksum")
    if version != VERSION:
        version_of_program = program.rstrip(b"\0").decode("ascii", "replace")
        raise ReadError(
            f"{name} was packed by spectral-irt {version_of_program}, in a format (version {version}) that is "
            f"{'newer' if version > VERSION else 'older'} than this program's ({__version__}, version {VERSION}). "
            "Install that version, or pack the answers again with this one."
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


def _blocks(whole: memoryview, places: list[dict[str, list[int]]]) -> Iterator[Block]:
    for one in places:
        yield Block(**{name: np.frombuffer(_section(whole, place), KINDS[name]) for name, place in one.items()})  # type: ignore[arg-type]


def _wrong_with(block: Block, places: dict[str, list[int]], thresholds: Thresholds, n_options: int) -> str | None:
    """What is wrong with a block; kernels trust its numbers, so none may lead outside of an array."""
    for name, place in places.items():
        if zlib.crc32(getattr(block, name)) != place[2]:
            return "is damaged: answers do not agree with their checksum"
    indptr = block.indptr
    split = block.split
    items = block.items
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
    """Whether nobody answered an item twice, and the answers make these entries again: passed the last, failed the
    next threshold."""
    indptr = block.indptr
    item = block.items
    category = block.indptr[:0]
    if not thresholds.binary:
        indptr, item, category = answered_items(block, thresholds)
    cells = (np.ones(len(item), dtype=np.int8), item, indptr.astype(np.int32))
    by_item = sparse.csr_array(cells, shape=(block.n_persons, thresholds.n_items)).tocsc()
    if thresholds.binary or not by_item.has_canonical_format:  # with each cell once
        return bool(by_item.has_canonical_format)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    rows = AnswerRows(person, slots_of(item, category, thresholds.bits))
    again = pack_block(rows, range(block.n_persons), thresholds)
    row = np.repeat(np.arange(2 * block.n_persons), np.diff(block.bounds)) * thresholds.n_entries
    same_counts = np.array_equal(again.bounds, block.bounds)
    return same_counts and np.array_equal(np.sort(row + again.items), np.sort(row + block.items))


def _thresholds(record: dict[str, Any], n_items: int) -> dict[str, Any]:
    if "thresholds" not in record:
        return {}
    counts: Ints = np.array(record["thresholds"], dtype=np.int64)
    if counts.shape != (n_items,) or counts.min(initial=1) < 1 or counts.max(initial=1) > MOST_THRESHOLDS:
        raise _Damaged("has other items than it has categories for, or too many of one item")
    codes = None if record["codes"] is None else np.array(record["codes"], dtype=np.float64)
    if codes is not None and codes.shape != (n_items, counts.max(initial=1) + 1):
        raise _Damaged("has values for other categories than it holds")
    return {"thresholds": Thresholds(counts), "codes": codes}


def _labels(whole: memoryview, record: dict[str, Any], which: str, n: int) -> Labels:
    labels: Labels
    if "numbers" in record[which]:
        place = record[which]["numbers"]
        labels = np.frombuffer(_section(whole, place), "<i8")
        if zlib.crc32(labels.data) != place[2]:
            raise _Damaged("is damaged: its labels do not agree with their checksum")
    else:
        labels = label_array(_values(record[which]["labels"], which))
    if len(labels) != n:
        raise ValueError(f"{len(labels):,} {which} instead of {n:,}")
    return labels


def _values(values: Any, what: str, kinds: Any = LABEL) -> list[Any]:
    if not isinstance(values, list) or not all(isinstance(one, kinds) for one in values):
        raise ValueError(f"values of {what}")
    return values


def _answer_labels(kept: list[Any]) -> dict[Any, dict[float, str]]:
    """What the codes of each item mean."""
    meanings: dict[Any, dict[float, str]] = {}
    for item, meaning in kept:
        _values([item], "items with labeled codes")
        meanings[item] = {float(code): str(text) for code, text in meaning}
    return meanings


def _item_texts(kept: list[Any]) -> dict[Any, str]:
    """The text of each item that has one."""
    texts: dict[Any, str] = {}
    for item, text in kept:
        _values([item], "items with a text")
        texts[item] = str(text)
    return texts


def _note(kept: dict[str, Any]) -> Finding:
    if kept["severity"] not in get_args(Severity):
        raise ValueError(f"a finding of the kind {kept['severity']!r}")
    code, severity, sentence, remedy = (str(kept[name]) for name in ("code", "severity", "sentence", "remedy"))
    return Finding(code, severity, sentence, remedy, tuple(kept["items"]), int(kept.get("number", 0)))  # type: ignore[arg-type]


def _raw(kept: dict[str, Any] | None) -> RawAnswers | None:
    if kept is None:
        return None
    if len(kept["options"]) == KEY:  # none without a key; with one, blanks and the right option come first
        raise _Damaged("names no right option")
    key = {label: str(text) for label, text in kept["key"]}
    blanks = None if kept["blanks"] is None else {label: (int(a), int(b)) for label, (a, b) in kept["blanks"]}
    # A file of before says nothing of it.
    return RawAnswers(tuple(map(str, kept["options"])), key, blanks, bool(kept.get("blanks_decided", False)))
