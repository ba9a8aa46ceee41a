"""What a workbook's file says before, and beside, what a reader makes of it.

A workbook is a zip archive of XML. Its directory tells how much would be unpacked, and the XML of a sheet tells what
becomes an empty cell, like an answer that was not given, when it is read: cells with an error (#N/A), formulas that
were never computed, and the covered part of merged cells.
"""

from __future__ import annotations

import mmap
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from spectral_irt.errors import ReadError
from spectral_irt.responses.reading.files import COMPOUND, ZIP, File

MOST_BYTES = 4 << 30  # unpacked; the largest sheet that a spreadsheet program opens at all is of this order
MOST_CELLS = 200_000_000  # cells between the first and the last; empty ones take room too
DEFLATED = 1032  # a byte cannot be unpacked to more than so many
SMALL = 1 << 20
CHUNK = 1 << 22

# What comes of an archive that is damaged, or made in a way that is not for workbooks.
DAMAGE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, KeyError, NotImplementedError, RuntimeError)

_CELL = re.compile(rb"<(?:\w+:)?c\s([^>]*?)(?:/>|>(.*?)</(?:\w+:)?c>)", re.S)
_PLACE = re.compile(rb'\br="([A-Z]+)(\d+)"')
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]+)</|<(?:\w+:)?is>")
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')
_DIMENSION = re.compile(rb'<(?:\w+:)?dimension\s[^>]*?ref="(?:[A-Z]+\d+:)?([A-Z]+)(\d+)"')


@dataclass
class Blind:
    """Places in a sheet that look empty and are not; rows and columns are counted from 0.

    `errors` are rows and texts by column, `uncomputed` the first row by column, `merged` first and last row and column.
    """

    errors: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    uncomputed: dict[int, int] = field(default_factory=dict)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)


def check_workbook(file: File) -> None:
    """Refuse what is no workbook, has a password, or would unpack to more than any workbook."""
    with open(file.path, "rb") as opened:
        start = opened.read(64)
    if start[:4] == COMPOUND:
        with open(file.path, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            if whole.find("EncryptedPackage".encode("utf-16-le")) >= 0:
                raise has_password(file)
        return
    if start[:4] != ZIP:
        if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
            raise ReadError(
                f"{file.name} is a web page or XML under the name of a workbook. Open it in the spreadsheet program "
                "and save it as .xlsx."
            )
        raise ReadError(
            f"{file.name} is not a workbook, whatever its name says. If it is text, rename it to .csv; otherwise it is "
            "probably damaged: fetch it again."
        )
    try:
        with zipfile.ZipFile(file.path) as archive:
            _check_size(file, archive)
            if "META-INF/manifest.xml" in archive.namelist() and b"encryption-data" in _read(
                file, archive, "META-INF/manifest.xml"
            ):
                raise has_password(file)
    except DAMAGE as error:
        raise damaged(file, error) from None


def has_password(file: File) -> ReadError:
    return ReadError(
        f"{file.name} is protected by a password. Open it in the spreadsheet program and save it without one, or save "
        "the sheet as CSV."
    )


def damaged(file: File, error: BaseException) -> ReadError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return ReadError(
        f"{file.name} cannot be read as a workbook: {reason}. It is probably damaged or cut short; fetch it again, or "
        "open it in the spreadsheet program and save it anew."
    )


def _too_large(file: File) -> ReadError:
    return ReadError(
        f"{file.name} would unpack to more than {MOST_BYTES >> 30} GB, more than any sheet holds; it was not opened. "
        "If it is what you mean, save the sheet as CSV."
    )


def _check_size(file: File, archive: zipfile.ZipFile) -> None:
    """The directory tells the sizes; where it could lie about too much, the parts are unpacked and counted."""
    parts = archive.infolist()
    if sum(part.file_size for part in parts) > MOST_BYTES:
        raise _too_large(file)
    if sum(part.compress_size for part in parts) * DEFLATED <= MOST_BYTES:
        return
    for part in parts:
        with archive.open(part) as opened:  # reads no more than the size that was told, then checks the sum
            while opened.read(CHUNK):
                pass


def _read(file: File, archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > 64 * SMALL:
        raise _too_large(file)
    return archive.read(name)


def sheet_parts(file: File) -> dict[str, str]:
    """The part of an .xlsx archive that holds each sheet, by the sheet's name; nothing for other workbooks."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            if not {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= set(archive.namelist()):
                return {}
            relations = ElementTree.fromstring(_read(file, archive, "xl/_rels/workbook.xml.rels"))
            target = {one.get("Id"): one.get("Target", "") for one in relations}
            found = {}
            for one in ElementTree.fromstring(_read(file, archive, "xl/workbook.xml")).iter():
                if one.tag.endswith("}sheet"):
                    which = next((value for name, value in one.attrib.items() if name.endswith("}id")), None)
                    path = posixpath.normpath(posixpath.join("/xl", target.get(which, ""))).lstrip("/")
                    if path in archive.namelist():
                        found[one.get("name", "")] = path
            return found
    except zipfile.BadZipFile:
        return {}
    except (ElementTree.ParseError, OSError, ValueError) as error:
        raise damaged(file, error) from None


def check_extent(file: File, part: str, sheet: str) -> None:
    """Refuse a sheet with a stray cell so far away that the empty ones before it would not fit."""
    with zipfile.ZipFile(file.path) as archive, archive.open(part) as opened:
        found = _DIMENSION.search(opened.read(1 << 16))
    if found and (column_number(found[1]) + 1) * int(found[2]) > MOST_CELLS:
        raise ReadError(
            f"{file.name}, sheet {sheet!r} reaches to cell {found[1].decode()}{found[2].decode()}, more cells than can "
            "be read. Delete the stray cells far from the data, or save the sheet as CSV."
        )


def blind_spots(path: Path, part: str) -> Blind:
    """What looks empty in this sheet and is not; an error when the sheet is cut short, which readers pass over."""
    blind = Blind()
    with zipfile.ZipFile(path) as archive, archive.open(part) as opened:
        rest = b""
        while data := opened.read(CHUNK):
            data = rest + data
            end = data.rfind(b"row>") + 4
            if end > 3:
                _look(data[:end], blind)
                rest = data[end:]
            else:
                rest = data
        _look(rest, blind)
        if not rest.rstrip().endswith(b"worksheet>"):
            raise zipfile.BadZipFile(f"the sheet in {part} is not complete")
        _check_whole(archive, "xl/sharedStrings.xml", b"sst>")
    for first_column, first_row, last_column, last_row in _MERGED.findall(rest):
        corner = (int(first_row) - 1, int(last_row) - 1, column_number(first_column), column_number(last_column))
        blind.merged.append(corner)
    return blind


def _check_whole(archive: zipfile.ZipFile, part: str, end: bytes) -> None:
    """Read a part to its end, by which its checksum is compared."""
    if part not in archive.namelist():
        return
    last = b""
    with archive.open(part) as opened:
        while data := opened.read(CHUNK):
            last = (last + data)[-64:]
    if not last.rstrip().endswith(end) and not last.rstrip().endswith(b"/>"):
        raise zipfile.BadZipFile(f"{part} is not complete")


def _look(data: bytes, blind: Blind) -> None:
    if b't="e"' not in data and b"<f" not in data and b":f" not in data:
        return  # the usual sheet: nothing but values
    for attributes, inner in _odd_cells(data):
        place = _PLACE.search(attributes)
        if place is None:
            continue
        column, row = column_number(place[1]), int(place[2]) - 1
        value = _VALUE.search(inner)
        if b't="e"' in attributes and value is not None and value[1]:
            blind.errors.setdefault(column, []).append((row, value[1].decode("utf-8", "replace")))
        elif value is None and b't="str"' not in attributes:  # of which a text may be empty
            blind.uncomputed.setdefault(column, row)


def _odd_cells(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Cells with an error or a formula."""
    for found in _CELL.finditer(data):
        inner = found[2] or b""
        if b't="e"' in found[1] or b"<f" in inner or b":f" in inner:
            yield found[1], inner


def column_number(letters: bytes) -> int:
    """The column from 0.

    >>> [column_number(letters) for letters in (b"A", b"Z", b"AA", b"XFD")]
    [0, 25, 26, 16383]
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number - 1


def column_letters(number: int) -> str:
    """The letters of the column that is counted from 0.

    >>> [column_letters(number) for number in (0, 25, 26, 16383)]
    ['A', 'Z', 'AA', 'XFD']
    """
    letters = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(65 + digit) + letters
    return letters
