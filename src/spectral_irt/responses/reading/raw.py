"""The bytes of a text file, unpacked, in pieces that end at the end of a record."""

from __future__ import annotations

import codecs
import gzip
import itertools
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import numpy as np
import polars as pl

from spectral_irt.errors import ReadError, option
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.reading.files import File
from spectral_irt.responses.reading.text_encodings import NotUtf8Error, encoding_notes, in_utf8, told_encoding

PIECE_BYTES = 1 << 23
LONGEST_RECORD = 1 << 26  # a longer one means that a quotation mark was never closed
BOM = b"\xef\xbb\xbf"


class RawPiece(NamedTuple):
    """Whole records, the number of the line they begin on, and the share of the file read by now."""

    data: bytes
    line: int
    done: float


def raw_pieces(file: File, cut: Callable[[bytes], int], size: int = PIECE_BYTES) -> Iterator[RawPiece]:
    """The file in pieces; `cut` finds where the last whole record of a buffer ends (0 when there is none)."""
    rest, line, done = b"", 1, 0.0
    for data, done in _unpacked(file, size):
        buffer = rest + data if rest else data
        end = cut(buffer)
        if end:
            yield RawPiece(buffer[:end], line, done)
            line += buffer.count(b"\n", 0, end)
        elif len(buffer) > LONGEST_RECORD:
            raise _unclosed(file, line)
        rest = buffer[end:]
    if rest:
        rest += b"\n"
        if cut(rest) < len(rest):
            raise _unclosed(file, line)
        yield RawPiece(rest, line, done)


def _unclosed(file: File, line: int) -> ReadError:
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


def notes_on_encoding(file: File) -> tuple[Finding, ...]:
    """What to say about how the text is written."""
    if file.compression == "zst":  # which is UTF-8, or an error
        return ()
    return encoding_notes(file, next((data for data, _ in _unpacked_plain(file, 4096)), b""))


def _unpacked(file: File, size: int) -> Iterator[tuple[bytes, float]]:
    """The unpacked bytes without byte-order mark, and the share of the file read by now."""
    pieces = _unpacked_zst(file, size) if file.compression == "zst" else _unpacked_plain(file, size)
    start = next(pieces, None)
    if start is not None:
        encoding = file.encoding or told_encoding(start[0])
        pieces = itertools.chain([start], pieces)
        if encoding is not None and encoding != "utf-8":
            pieces = in_utf8(file, pieces, encoding)
    first = True
    for data, done in pieces:
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
            stream: IO[bytes] = packed
            if file.compression == "gz":
                stream = gzip.GzipFile(fileobj=packed)  # type: ignore[assignment]
            while data := stream.read(size):
                yield data, min(packed.tell() / total, 1.0)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReadError(
            f"{file.name} cannot be unpacked: {error}. It was probably cut short or damaged; fetch it again."
        ) from None
    except OSError as error:
        raise ReadError(f"{file.name} cannot be read: {error.strerror or error}.") from None


def _unpacked_zst(file: File, size: int) -> Iterator[tuple[bytes, float]]:
    if sys.version_info >= (3, 14):
        from compression import zstd

        try:
            with zstd.open(file.path) as stream:
                while data := stream.read(size):
                    yield data, 0.5
        except (EOFError, zstd.ZstdError) as error:
            raise _damaged_zst(file, error) from None
        return
    # Before Python 3.14 only polars can unpack it here, and gives lines: "\r\n" inside a value becomes "\n".
    try:
        lines = pl.scan_lines(file.path, glob=False).collect_batches(chunk_size=100_000, maintain_order=True)
        for batch in lines:
            yield ("\n".join(batch.to_series().to_list()) + "\n").encode(), 0.5
    except (pl.exceptions.PolarsError, OSError) as error:
        if "utf8" in str(error):
            raise ReadError(f"{file.name} is not UTF-8 text when unpacked; unpack it first, and read that.") from None
        raise _damaged_zst(file, error) from None


def _damaged_zst(file: File, error: Exception) -> ReadError:
    return ReadError(f"{file.name} cannot be unpacked ({error}); it was probably cut short. Fetch it again.")


def _check_is_text(file: File, data: bytes) -> None:
    start = data[:4096]
    if b"\0" in start or (_mostly_control(start) and not _begins_as_utf8(start)):
        raise ReadError(f"{file.name} is not text but binary data; check that it is the file you mean.")


def _mostly_control(data: bytes) -> bool:
    return sum(byte < 32 and byte not in b"\t\n\r" for byte in data) > len(data) // 20


def _begins_as_utf8(data: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return True


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
            "Latin-1). Correct the line, or say how the file is written, as in ",
            option("encoding", "cp1252"),
            ".",
        )
        if isinstance(complaint, NotUtf8Error):
            complaint.path = file.path
        raise complaint from None
