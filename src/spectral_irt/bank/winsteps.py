"""Anchors in files of Winsteps: IFILE=, IAFILE=, and control files with either.

IFILE= has a line of heads, ENTRY MEASURE ... NAME, in fixed columns or parted by commas or tabs. IAFILE= has none, but
a line for each item with its entry number (a range such as 3-5, or a label) and its measure. A control file has such
lines between `IAFILE=*` and `*`, or names their file, and the labels of its items after `&END`. What follows a ";" is a
remark.

The layout is that of the Winsteps manual (winsteps.com/winman/ifile.htm and iafile.htm)."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spectral_irt.errors import ReadError
from spectral_irt.tables import cell_text
from spectral_irt.text import short

CONTROL = re.compile(r"\s*(&INST|&END|IAFILE\s*=)", re.IGNORECASE)
END_OF_LABELS = re.compile(r"\s*END\s+(NAMES|LABELS)", re.IGNORECASE)
ENTRIES = re.compile(r"(\d+)(?:-(\d+))?")
LAST_ENTRY = 1_000_000  # no test has more items, and a range such as 1-2000000000 is a slip
PROPER = {"1", "2", "3"}  # STATUS of items that were estimated or anchored
ERRORS = ("ERROR", "MODLSE", "REALSE", "S.E.")  # names of the column of standard errors, by version


class AnchorRow(NamedTuple):
    """A line of a table of anchors, as text."""

    number: int
    item: str
    value: str  # the difficulty, or a threshold
    category: str = "1"
    se: str = ""
    status: str = ""


class WinstepsAnchors(NamedTuple):
    """Anchors of a file. `unit` is what a logit is worth in its measures (USCALE=), and where `by_entry`, items are the
    numbers of their places in the data."""

    rows: list[AnchorRow]
    unit: float = 1.0
    by_entry: bool = False


class Line(NamedTuple):
    """A line of a file, without the remark at its end."""

    number: int
    text: str


def winsteps_anchors(path: Path) -> WinstepsAnchors | None:
    """The anchors in a file of Winsteps; None if it is none of these."""
    lines = text_lines(path)
    if any(CONTROL.match(line) for line in lines):
        return of_control_file(path, lines)
    heads = next((k for k, line in enumerate(lines) if _is_head(line)), None)
    if heads is not None:
        return WinstepsAnchors(rows_of_ifile(path, lines, heads))
    plain = without_remarks(lines)
    if not plain or _entry_and_measure(plain[0].text) is None:
        return None
    return of_iafile(path, plain)


def text_lines(path: Path) -> list[str]:
    """The lines of a file of text; none if it is not text."""
    content = path.read_bytes()
    if b"\0" in content:
        return []
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace").splitlines()


def without_remarks(lines: Sequence[str], first: int = 1) -> list[Line]:
    """The lines that say something, with their numbers in the file."""
    plain = [Line(number, line.partition(";")[0].strip()) for number, line in enumerate(lines, first)]
    return [line for line in plain if line.text]


def _is_head(line: str) -> bool:
    words = re.split(r"[\s,\"]+", line.strip(' ;"'))
    return [word.upper() for word in words[:2]] == ["ENTRY", "MEASURE"]


def rows_of_ifile(path: Path, lines: Sequence[str], heads: int) -> list[AnchorRow]:
    """The items of an IFILE= whose line of heads is this one; entry numbers are their labels where none has a name."""
    separator = next((sign for sign in ("\t", ",") if sign in lines[heads]), None)
    cells_of_lines: dict[int, dict[str, str]] = {}
    for number, line in enumerate(lines[heads + 1 :], heads + 2):
        if line.startswith(";") or not line.strip():
            continue
        cells = _cells_by_head(lines[heads], line, separator) if separator else _in_columns(lines[heads], line)
        if cells.get("STATUS", "1") in PROPER:
            cells_of_lines[number] = cells
    have_names = any(cells.get("NAME", "").strip() for cells in cells_of_lines.values())
    rows = []
    for number, cells in cells_of_lines.items():
        name = cells.get("NAME", "").strip()
        # A line that was cut: its last number may be cut as well, and its entry number is no label beside names.
        if "MEASURE" not in cells or (have_names and not name):
            raise ReadError(
                f"{str(path)!r}, line {number:,}: ends before {'the name' if have_names else 'the measure'} of the "
                "item. Was the file cut, or copied in part? Have Winsteps write it again."
            )
        se = next((cells[column] for column in ERRORS if column in cells), "")
        rows.append(AnchorRow(number, name or cells["ENTRY"], cells["MEASURE"], se=se))
    return rows


def _cells_by_head(heads: str, line: str, separator: str) -> dict[str, str]:
    names, cells = csv.reader([heads.lstrip("; "), line], delimiter=separator, skipinitialspace=True)
    return dict(zip((name.upper() for name in names), (cell_text(cell.strip()) for cell in cells), strict=False))


def _in_columns(heads: str, line: str) -> dict[str, str]:
    """The cells of a line below their heads, at whose ends they end; the name begins where its head begins."""
    words = list(re.finditer(r"[^\s;]+", heads))
    names = ["STATUS" if word[0].upper() == "ST" else word[0].upper() for word in words]
    begin = 0
    cells: dict[str, str] = {}
    for name, word in zip(names, words, strict=True):
        if name == "NAME":
            cells[name] = line[word.start() :].strip()
        else:
            cells[name] = line[begin : word.end()].strip()
        begin = word.end()
    in_place = all(len(cell.split()) <= 1 for name, cell in cells.items() if name != "NAME")
    if in_place and line[words[-1].start() - 1 : words[-1].start()].isspace():
        return cells
    # Heads and cells do not end in the same places; then no cell is empty.
    return dict(zip(names, line.split(None, len(names) - 1), strict=False))


def _entry_and_measure(text: str) -> tuple[str, str] | None:
    """Label or entry number, and measure, of a line of an IAFILE=; None where it is not these."""
    if re.search(r"[\s=]", text):
        fields = next(csv.reader([re.sub(r"[\s=]+", " ", text)], delimiter=" "))
    else:
        fields = text.split(",")
    fields = [field.strip(",") for field in fields]
    # Further fields are those of an IFILE=, whose lines begin with an entry number.
    if len(fields) < 2 or (len(fields) > 2 and not ENTRIES.fullmatch(fields[0])):
        return None
    measure = fields[1].replace(",", ".")
    try:
        float(measure)
    except ValueError:
        return None
    return fields[0], measure


def of_iafile(path: Path, lines: Sequence[Line], labels: Sequence[str] = ()) -> WinstepsAnchors:
    """The anchors of these lines; entry numbers have the labels of a control file, if there are any."""
    rows = []
    by_entry = not labels
    for number, text in lines:
        fields = _entry_and_measure(text)
        if fields is None:
            raise ReadError(
                f"{str(path)!r}, line {number:,}: {short(text)!r} is not the entry number or label of an item and its "
                "measure, as in IAFILE=."
            )
        item, measure = fields
        entries = ENTRIES.fullmatch(item)
        if entries is None:
            by_entry = False
            rows.append(AnchorRow(number, item, measure))
            continue
        first, last = int(entries[1]), int(entries[2] or entries[1])
        if last > LAST_ENTRY or first > last:
            raise ReadError(f"{str(path)!r}, line {number:,}: {short(item)} is no range of items, such as 3-5.")
        if labels and not 1 <= first <= last <= len(labels):
            raise ReadError(
                f"{str(path)!r}, line {number:,}: there is no item {item}; after &END stand {len(labels):,} labels."
            )
        for entry in range(first, last + 1):
            rows.append(AnchorRow(number, labels[entry - 1] if labels else str(entry), measure))
    return WinstepsAnchors(rows, by_entry=by_entry)


def of_control_file(path: Path, lines: Sequence[str]) -> WinstepsAnchors:
    """The anchors of a control file, under the labels of its items."""
    settings: dict[str, str] = {}
    block: list[Line] = []
    end = next((k for k, line in enumerate(lines) if line.strip().upper().startswith("&END")), len(lines))
    inside = ""  # the setting whose lines stand between "=*" and "*"
    for line in without_remarks(lines[:end]):
        name, equals, value = (part.strip() for part in line.text.partition("="))
        if inside:
            if inside == "IAFILE" and line.text != "*":
                block.append(line)
            inside = "" if line.text == "*" else inside
        elif equals:
            settings[name.upper()] = value.strip("\"'")
            inside = name.upper() if value == "*" else ""
    if "SAFILE" in settings:
        raise ReadError(
            f"{str(path)!r}: thresholds in SAFILE= are not read. Give a table with the columns item, category and "
            "threshold, in logits."
        )
    if "IAFILE" not in settings:
        raise ReadError(f"{str(path)!r} has no IAFILE=, and anchors nothing.")
    labels: list[str] = []
    for label in lines[end + 1 :]:
        if END_OF_LABELS.match(label) or str(len(labels)) == settings.get("NI"):
            break
        labels.append(label.partition(";")[0].strip())
    unit = settings.get("UASCALE", settings.get("USCALE", "1"))
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", unit) or float(unit) == 0:
        raise ReadError(f"{str(path)!r}: USCALE= or UASCALE= is {unit!r}, no number above zero.")
    if settings["IAFILE"] == "*":
        anchors = of_iafile(path, block, labels)
    else:
        other = path.parent / settings["IAFILE"]
        if not other.is_file():
            raise ReadError(f"{str(path)!r}: there is no file {str(other)!r}, which IAFILE= names.")
        in_file = None
        if not any(map(CONTROL.match, text_lines(other))):  # perhaps this one, without an end
            in_file = winsteps_anchors(other)
        if in_file is None:
            raise ReadError(f"{str(other)!r} is no IAFILE=: its lines are the entry number of an item and a measure.")
        anchors = in_file
        if in_file.by_entry and labels:
            anchors = of_iafile(other, without_remarks(text_lines(other)), labels)
    return anchors._replace(unit=float(unit))
