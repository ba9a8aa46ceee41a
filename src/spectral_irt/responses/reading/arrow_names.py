"""The column names of an Arrow file, read from its first message.

polars stops with a panic of its own on stderr when two columns have one name, so that is looked up before polars sees
the file. The message is a flatbuffer: a table begins with the distance back to its list of field offsets, and an offset
of zero means that the field is absent. See Schema.fbs and Message.fbs of the Arrow format.
"""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = b"ARROW1\0\0"
_CONTINUATION = 0xFFFFFFFF
_LONGEST_SCHEMA = 1 << 28
_HEADER, _FIELDS, _NAME = 2, 1, 0  # places of Message.header, Schema.fields and Field.name in their tables


def arrow_names(path: Path) -> list[str]:
    """The names of the columns, repeated ones too; none when the file is not as expected: polars will say why."""
    try:
        return _names(_first_message(path))
    except (struct.error, IndexError, UnicodeDecodeError):
        return []


def _first_message(path: Path) -> bytes:
    with open(path, "rb") as file:
        if file.read(8) != _MAGIC:  # a stream begins with the message itself
            file.seek(0)
        (size,) = struct.unpack("<I", file.read(4))
        if size == _CONTINUATION:
            (size,) = struct.unpack("<I", file.read(4))
        return file.read(min(size, _LONGEST_SCHEMA))


def _names(message: bytes) -> list[str]:
    root = _uint(message, 0)
    schema = _field(message, root, _HEADER)
    fields = _field(message, schema, _FIELDS)
    names = []
    for k in range(_uint(message, fields)):
        place = fields + 4 + 4 * k
        text = _field(message, place + _uint(message, place), _NAME)
        names.append(message[text + 4 : text + 4 + _uint(message, text)].decode())
    return names


def _field(message: bytes, table: int, number: int) -> int:
    """Where the table, list or text that a field of a table points to begins."""
    (back,) = struct.unpack_from("<i", message, table)
    (size,) = struct.unpack_from("<H", message, table - back)
    (offset,) = struct.unpack_from("<H", message, table - back + 4 + 2 * number)
    if not offset or 4 + 2 * number >= size:
        raise IndexError("absent")
    return table + offset + _uint(message, table + offset)


def _uint(message: bytes, place: int) -> int:
    (value,) = struct.unpack_from("<I", message, place)
    return int(value)
