"""How much a packed file may unpack to: a small file can hold more than any machine has room for.

Every reader of packed files asks here: .gz and .zst, workbooks and .eval logs, which are zip archives.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from spectral_irt.engine.memory import in_bytes
from spectral_irt.errors import ReadError

DEFAULT = 4 * 10**9  # bytes; the largest sheet that a spreadsheet program opens at all is of this order
CHUNK = 1 << 20
DEFLATED = 1032  # a byte cannot be unpacked to more than so many by deflate

_limit: ContextVar[int] = ContextVar("max_unpacked", default=DEFAULT)


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextmanager
def unpacking_within(size: str | int | None) -> Iterator[None]:
    """Within it packed files may unpack to so much; None leaves it as it is."""
    before = _limit.set(_limit.get() if size is None else in_bytes(size, "max_unpacked"))
    try:
        yield
    finally:
        _limit.reset(before)


def pieces(stream: Readable, name: str, size: int = CHUNK) -> Iterator[bytes]:
    """What a packed stream unpacks to; an error about the file of this name where that is more than allowed."""
    total = 0
    while data := stream.read(size):
        total += len(data)
        if total > _limit.get():
            raise too_much(name)
        yield data


def whole(stream: Readable, name: str) -> bytes:
    """All that a packed stream unpacks to, if it is not more than allowed."""
    return b"".join(pieces(stream, name))


class ZstdStream:
    """What is packed by zstd in an open file; an EOFError where it was cut short, a ZstdError where it is damaged."""

    def __init__(self, packed: Readable) -> None:
        import zstandard

        self._packed, self._rest = packed, b""
        self._new = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._new()

    def read(self, size: int, /) -> bytes:
        """About so many bytes, none at the end."""
        found, n = [], 0
        while n < size:
            data = self._rest or self._packed.read(1024)  # of which no more than 32 MB can come
            if not data:
                if not self._frame.eof:
                    raise EOFError("it ends in the middle")
                break
            if self._frame.eof:
                self._frame = self._new()
            found.append(self._frame.decompress(data))
            self._rest = self._frame.unused_data
            n += len(found[-1])
        return b"".join(found)


def zip_fits(path: Path) -> bool:
    """Whether all of an archive may be unpacked; where its directory could lie about that, by unpacking it."""
    most, total = _limit.get(), 0
    if path.stat().st_size * DEFLATED <= most:
        return True
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if sum(part.file_size for part in parts) > most:
        return False
    with path.open("rb") as file:
        for part in parts:
            if part.compress_type != zipfile.ZIP_DEFLATED:
                continue  # it is as large as it is, or cannot be read
            file.seek(part.header_offset + 26)
            file.seek(sum(int.from_bytes(file.read(2), "little") for _ in range(2)), 1)
            unpack, left = zlib.decompressobj(-zlib.MAX_WBITS), part.compress_size
            while left > 0 and total <= most and not unpack.eof and (data := file.read(min(CHUNK >> 6, left))):
                left -= len(data)
                total += len(unpack.decompress(data))
    return total <= most


def too_much(name: str) -> ReadError:
    return ReadError(
        f"{name} unpacks to more than {_limit.get() / 1e9:.3g} GB and was not read: a file made to fill a machine is "
        "like that. If it is what you mean, allow more with `max_unpacked='20GB'`."
    )
