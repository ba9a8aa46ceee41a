"""The bytes of a text file, unpacked, in pieces that end at the end of a record."""

from __future__ import annotations

import codecs
import gzip
import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import zstandard

from spectral_irt.data.finding import Finding
from spectral_irt.errors import ReadError
from spectral_irt.reading.formats import File, NotUtf8Error, encoding_notes, in_utf8, told_encoding
from spectral_irt.reading.unpacking import Readable, ZstdStream, pieces

PIECE_BYTES = 1 << 23
LONGEST_RECORD = 1 << 26  # bytes; a longer one has lost its line breaks, or a quotation mark was never closed
BOM = b"\xef\xbb\xbf"


class RawPiece(NamedTuple):
    """Whole records, the number of the line they begin on, and the share of the file read by now."""

    data: bytes
    line: int
    done: float


def raw_pieces(file: File, cut: Callable[[bytes], int], size: int = PIECE_BYTES) -> Iterator[RawPiece]:
    """The file in pieces; `cut` finds where the last whole record of a buffer ends (0 when there is none)."""
    waiting: list[bytes] = []  # of a record whose end has not come
    held, wanted, line, done = 0, 0, 1, 0.0
    for data, done in _unpacked(file, size):
        waiting.append(data)
        held += len(data)
        if held < wanted:
            continue
        buffer = b"".join(waiting)
        end = cut(buffer)
        if end:
            yield RawPiece(buffer[:end], line, done)
            line += buffer.count(b"\n", 0, end)
        elif held > LONGEST_RECORD:
            raise _endless(file, line, buffer)
        waiting, held = [buffer[end:]], len(buffer) - end
        wanted = 0 if end else min(2 * held, LONGEST_RECORD + 1)  # looked at anew when it has doubled, not every time
    rest = b"".join(waiting)
    if rest:
        rest += b"\n"
        if cut(rest) < len(rest):
            raise _endless(file, line, rest)
        yield RawPiece(rest, line, done)


def _endless(file: File, line: int, record: bytes) -> ReadError:
    if b'"' not in record:
        return ReadError(
            f"{file.name}: line {line:,} has no end within {LONGEST_RECORD / 1e6:.0f} MB, and a table has a line for "
            "each person or each answer. Check that it is the file you mean, and how its lines end."
        )
    return ReadError(
        f"{file.name}: a quotation mark on line {line:,}, or soon after, is never closed. Close it, or double every "
        'mark inside a quoted value ("").'
    )


def end_of_last_line(buffer: bytes) -> int:
    return buffer.rfind(b"\n") + 1


def end_of_last_record(buffer: bytes) -> int:
    """Where the last CSV record ends: a line break inside quotation marks belongs to a value."""
    if b'"' not in buffer:
        return end_of_last_line(buffer)
    array = np.frombuffer(buffer, dtype=np.uint8)
    quotes, breaks = np.flatnonzero(array == ord('"')), np.flatnonzero(array == ord("\n"))
    outside = np.searchsorted(quotes, breaks) % 2 == 0
    return int(breaks[outside][-1]) + 1 if outside.any() else 0


def numbered_lines(file: File, size: int) -> Iterator[tuple[list[tuple[int, str]], float]]:
    """Lines that hold something, in pieces, each with its number; and the share of the file read by now."""
    for piece in raw_pieces(file, end_of_last_line, size):
        check_utf8(file, piece)
        texts = piece.data.decode().split("\n") if piece.data.strip() else []  # there may be very many blank lines
        yield [(number, text) for number, text in enumerate(texts, start=piece.line) if text.strip()], piece.done


def notes_on_encoding(file: File) -> tuple[Finding, ...]:
    """What to say about how the text is written."""
    return encoding_notes(file, next((data for data, _ in _unpacked_plain(file, 4096)), b""))


def _unpacked(file: File, size: int) -> Iterator[tuple[bytes, float]]:
    """The unpacked bytes without byte-order mark, and the share of the file read by now."""
    found = _unpacked_plain(file, size)
    start = next(found, None)
    if start is not None:
        encoding = file.encoding or told_encoding(start[0])
        found = itertools.chain([start], found)
        if encoding is not None and encoding != "utf-8":
            found = in_utf8(file, found, encoding)
    first = True
    for data, done in found:
        if first:
            _check_is_text(file, data)
            data = data.removeprefix(BOM)
            first = False
        yield data, done
    if first:
        raise ReadError(f"{file.name} is empty; check that whatever wrote it had finished.")


def _unpacked_plain(file: File, size: int) -> Iterator[tuple[bytes, float]]:
    total = max(file.path.stat().st_size, 1)
    try:
        with open(file.path, "rb") as packed:
            if file.compression is None:
                while data := packed.read(size):
                    yield data, min(packed.tell() / total, 1.0)
                return
            stream: Readable = gzip.GzipFile(fileobj=packed) if file.compression == "gz" else ZstdStream(packed)
            for data in pieces(stream, file.name, size):
                yield data, min(packed.tell() / total, 1.0)
    except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise ReadError(
            f"{file.name} cannot be unpacked: {error}. It was probably cut short or damaged; fetch it again."
        ) from None
    except OSError as error:
        raise ReadError(f"{file.name} cannot be read: {error.strerror or error}.") from None


def _check_is_text(file: File, data: bytes) -> None:
    start = data[:4096]
    binary = b"\0" in start
    if sum(byte < 32 and byte not in b"\t\n\r" for byte in start) > len(start) // 20:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut
        except UnicodeDecodeError:
            binary = True
    if binary:
        raise ReadError(f"{file.name} is not text but binary data; check that it is the file you mean.")


def check_utf8(file: File, piece: RawPiece) -> None:
    """Refuse bytes that are not UTF-8, with the line they are on."""
    if piece.data.isascii():
        return
    try:
        piece.data.decode()
    except UnicodeDecodeError as error:
        line = piece.line + piece.data.count(b"\n", 0, error.start)
        byte = piece.data[error.start]
        # After characters that are UTF-8 the byte is damage; without them, the file is in another encoding.
        kind = NotUtf8Error if piece.data[: error.start].isascii() and file.encoding is None else ReadError
        complaint = kind(
            f"{file.name}: line {line:,} is not UTF-8 text (byte 0x{byte:02X}, {bytes([byte]).decode('latin-1')!r} in "
            "Latin-1). Correct the line, or say how the file is written, as in `encoding='cp1252'`."
        )
        if isinstance(complaint, NotUtf8Error):
            complaint.path = file.path
        raise complaint from None
