"""The bytes of a text file as UTF-8, unpacked, in pieces that end at the end of a record; and how much may be unpacked
as a whole: a small archive (a workbook, an .eval log) can hold more than any machine has room for.

CSV, JSON lines and logs are read by this; `tables.py` reads all files in the encoding that they turn out to have
(`read_as_written`).
"""

from __future__ import annotations

import codecs
import gzip
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import Finding, OptionError, ReadError
from spectral_irt.text import did_you_mean

if TYPE_CHECKING:
    from spectral_irt.reading.formats import File

HEAD_BYTES = 1 << 16  # looked at to tell what a file is
PIECE_BYTES = 1 << 21  # larger pieces leave the caches, and cost memory
LONGEST_RECORD = 1 << 26  # bytes; a longer one has lost its line breaks, or a quotation mark was never closed
MAX_UNPACKED = 4 * 10**9  # bytes; the largest sheet that a spreadsheet program opens at all is of this order
Result = TypeVar("Result")
BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
CONTROLS = bytes(set(range(32)).difference(b"\t\n\r"))  # characters that a text has few of
# Codecs of Python that decode text but are no way to write a file.
NOT_FOR_FILES = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs", "oem"})
FEWEST_ZEROS = 0.3  # of every second byte: separators, digits and line ends alone make more in a table


class RawPiece(NamedTuple):
    """Whole records, the number of the line they begin on, and the share of the file read by now."""

    data: bytes
    line: int
    done: float


def raw_pieces(file: File, cut: Callable[[bytes], int], size: int | None = None) -> Iterator[RawPiece]:
    """The file in pieces of UTF-8; `cut` finds where the last whole record of a buffer ends (0 when there is none)."""
    waiting: list[bytes] = []  # of a record whose end has not come
    held = 0
    wanted = 0
    line = 1
    for data, done in itertools.chain(pieces_in_utf8(file, size or PIECE_BYTES), [(None, 1.0)]):  # None: the end
        waiting.append(data or b"")
        held += len(waiting[-1])
        if held < wanted and data is not None:
            continue
        buffer = b"".join(waiting) + (b"\n" if data is None and held else b"")
        end = cut(buffer)
        if end < len(buffer) and (data is None or (held > LONGEST_RECORD and not end)):
            raise _endless(file, line, buffer)
        if piece := buffer[:end]:
            if not piece.isascii():
                _check_utf8(file, piece, line)
            yield RawPiece(piece, line, done)
            line += buffer.count(b"\n", 0, end)
        waiting = [buffer[end:]]
        held = len(buffer) - end
        wanted = 0 if end else min(2 * held, LONGEST_RECORD + 1)  # looked at anew when it has doubled, not every time


def _endless(file: File, line: int, record: bytes) -> ReadError:
    if b'"' not in record:
        size = f"{LONGEST_RECORD / 1e6:.0f} MB"
        return ReadError(f"{file.name}: line {line:,} has no end within {size}. Check how the lines of the file end.")
    double = 'double every mark inside a quoted value ("")'
    what = f"{file.name}: a quotation mark on line {line:,} or soon after is never closed."
    return ReadError(f"{what} Close it, or {double}.")


def end_of_last_line(buffer: bytes) -> int:
    return buffer.rfind(b"\n") + 1


def end_of_last_record(buffer: bytes) -> int:
    """Where the last CSV record ends: a line break inside quotation marks belongs to a value."""
    if b'"' not in buffer:
        return buffer.rfind(b"\n") + 1
    array = np.frombuffer(buffer, dtype=np.uint8)
    breaks = outside_quotes(array, np.flatnonzero(array == ord("\n")))
    return int(breaks[-1]) + 1 if len(breaks) else 0


def outside_quotes(array: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.int64]:
    return places[np.searchsorted(np.flatnonzero(array == ord('"')), places) % 2 == 0]


def pieces_in_utf8(file: File, size: int) -> Iterator[tuple[bytes, float]]:
    """The unpacked bytes as UTF-8 without byte-order mark, and the share of the file read by now."""
    pieces = _unpacked_plain(file, size)
    start = next(pieces, (b"", 1.0))
    pieces = itertools.chain([start], pieces)
    encoding = file.encoding or _encoding_of(start[0])
    if encoding not in (None, "utf-8"):
        pieces = in_utf8(file, pieces, encoding)
    data, done = next(pieces, (b"", 1.0))
    if not data:
        raise ReadError(f"{file.name} is empty; check that whatever wrote it had finished.")
    start_of_text = data[:4096]
    binary = b"\0" in start_of_text
    if len(start_of_text) - len(start_of_text.translate(None, CONTROLS)) > len(start_of_text) // 20:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(start_of_text)  # the last character may be cut
        except UnicodeDecodeError:
            binary = True
    if binary:
        raise ReadError(f"{file.name} is not text but binary data; check that it is the file you mean.")
    yield data.removeprefix(codecs.BOM_UTF8), done
    yield from pieces


def _unpacked_plain(file: File, size: int) -> Iterator[tuple[bytes, float]]:
    total = max(file.path.stat().st_size, 1)
    try:
        with open(file.path, "rb") as packed:
            stream: Any = gzip.GzipFile(fileobj=packed) if file.compression == "gz" else packed
            pieces = iter(partial(stream.read, size), b"")
            for data in unpacked_zstd(packed, size) if file.compression == "zst" else pieces:
                yield data, min(packed.tell() / total, 1.0)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        what = f"{file.name} cannot be unpacked: {error}."
        raise ReadError(f"{what} It is damaged or cut short; fetch it again.") from None
    except OSError as error:
        raise ReadError(f"{file.name} cannot be read: {error.strerror or error}.") from None


def _check_utf8(file: File, data: bytes, line: int) -> None:
    """Refuse bytes that are not UTF-8, with the line they are on."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        byte = data[error.start]
        # After characters that are UTF-8 the byte is damage; without them, the file is in another encoding.
        other = data[: error.start].isascii() and file.encoding is None
        sentence = (
            f"{file.name}: line {line:,} is not UTF-8 text (byte 0x{byte:02X}, {bytes([byte]).decode('latin-1')!r} in "
            "Latin-1). Correct the line, or say how the file is written, as in `encoding='cp1252'`."
        )
        raise (NotUtf8Error(sentence, file.path) if other else ReadError(sentence)) from None


class NotUtf8Error(ReadError):
    """A file is not UTF-8, and nothing speaks against another encoding."""

    def __init__(self, sentence: str, path: Path) -> None:
        super().__init__(sentence)
        self.path = path


def checked_encoding(name: str | None) -> str | None:
    """The encoding by its usual name; an error with names alike when there is none."""
    if name is None:
        return None
    try:
        codec = codecs.lookup(str(name))
        is_text = codec._is_text_encoding and codec.name.replace("_", "-") not in NOT_FOR_FILES
    except (LookupError, ValueError, UnicodeError):
        is_text = False
    if not is_text:
        from encodings.aliases import aliases

        names = sorted({each.replace("_", "-") for pair in aliases.items() for each in pair})
        what = f"`encoding` is {str(name)!r}, which is not the name of an encoding such as utf-8, cp1252"
        raise OptionError(f"{what} (Western Europe) or shift-jis.{did_you_mean(str(name).replace('_', '-'), names, 3)}")
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


def _encoding_of(start: bytes) -> str | None:
    """The encoding that the first bytes of a file show; None when they show none."""
    for mark, encoding in BOMS.items():
        if start.startswith(mark):
            return encoding
    high = start[:4096:2]
    low = start[1:4096:2]
    for name, half, other in (("utf-16-be", high, low), ("utf-16-le", low, high)):
        if half.count(0) >= max(FEWEST_ZEROS * len(half), 2) and not other.count(0):
            return name
    return None


def in_utf8(file: File, pieces: Iterator[tuple[bytes, float]], encoding: str) -> Iterator[tuple[bytes, float]]:
    """The pieces of a text in this encoding, as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    done = 1.0
    try:
        for data, done in pieces:
            text = decoder.decode(data)
            line += text.count("\n")
            if text:
                yield text.encode(), done
        if rest := decoder.decode(b"", final=True):
            yield rest.encode(), done
    except UnicodeError as error:
        if isinstance(error, UnicodeDecodeError):
            line += error.object[: error.start].decode(encoding, "replace").count("\n")
        what = "neither UTF-8 nor Windows-1252" if file.guessed else f"not text in the encoding {encoding}"
        raise ReadError(
            f"{file.name}: line {line:,} is {what}. Say how the file is written, as in "
            f"`encoding={'cp1250' if file.guessed else 'utf-8'!r}`, or save it as UTF-8."
        ) from None


def read_as_written(files: Sequence[File], work: Callable[[list[File]], Result]) -> Result:
    """What `work` makes of the files; one that turns out not to be UTF-8 is read anew as Windows-1252."""
    files = list(files)
    while True:
        try:
            return work(files)
        except NotUtf8Error as error:
            if all(file.path != error.path or file.guessed for file in files):
                raise
            other = {"encoding": "cp1252", "guessed": True}
            files = [replace(file, **other) if file.path == error.path else file for file in files]  # type: ignore[arg-type]


def notes_on_encoding(file: File) -> tuple[Finding, ...]:
    """What to say about how the text is written, when no option gives it."""
    if file.guessed:
        sentence = f"{file.name} is not UTF-8; it was read as Windows-1252 (Western European)."
        remedy = "If letters with accents look wrong, say how it is written, as in `encoding='cp1250'`."
        return (Finding("encoding", "warning", sentence, remedy),)
    start, _ = next(_unpacked_plain(file, 4096), (b"", 1.0))
    if file.encoding is not None or (shown := _encoding_of(start)) is None:
        return ()
    return (Finding("encoding", "note", f"{file.name} was read as {shown.upper()}, as its first bytes show."),)


def whole(stream: Any, zstd: bool, name: str) -> bytes:
    """All that a stream holds, perhaps packed by zstd, if memory is meant to hold that."""
    data: bytes = next(unpacked_zstd(stream, MAX_UNPACKED + 1)) if zstd else stream.read(MAX_UNPACKED + 1)
    check_unpacked(len(data), name)
    return data


def check_unpacked(n_bytes: int, name: str) -> None:
    if n_bytes > MAX_UNPACKED:
        size = f"{MAX_UNPACKED / 1e9:.3g} GB"
        raise ReadError(f"{name} unpacks to more than {size}; save it as CSV or Parquet, which are read in pieces.")


def unpacked_zstd(packed: Any, size: int) -> Iterator[bytes]:
    """What is packed by zstd in an open file, in pieces of about so many bytes; an EOFError where it was cut short, a
    zlib.error where it is damaged."""
    import zstandard

    new = zstandard.ZstdDecompressor().decompressobj
    frame = new()
    left_over = b""
    unpacked = bytearray()
    while data := left_over or packed.read(1024):  # of which no more than 32 MB can come
        frame = new() if frame.eof else frame
        try:
            unpacked += frame.decompress(data)
        except zstandard.ZstdError as error:
            raise zlib.error(str(error)) from None
        left_over = frame.unused_data
        if len(unpacked) >= size:
            yield bytes(unpacked)
            unpacked.clear()
    if not frame.eof:
        raise EOFError("it ends in the middle")
    yield bytes(unpacked)
