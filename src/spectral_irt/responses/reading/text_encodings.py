"""How the text of a file is written: UTF-8, what its first bytes say, or what the caller says.

UTF-8 is the usual case and costs nothing here. A byte-order mark, or the zeros of UTF-16 without one, say what else a
file is. A file that turns out not to be UTF-8 while it is read is read anew as Windows-1252, what spreadsheet programs
of Western Europe and America write as "CSV"; nothing in such a file can tell, so a finding says what was done.
"""

from __future__ import annotations

import codecs
import difflib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from spectral_irt.errors import OptionError, ReadError, ReadWarning, option
from spectral_irt.responses.findings import Finding

if TYPE_CHECKING:
    from spectral_irt.responses.reading.files import File

Result = TypeVar("Result")
GUESS = "cp1252"
BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Codecs of Python that decode text but are no way to write a file.
NOT_FOR_FILES = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs", "oem"})
FEWEST_ZEROS = 0.3  # of every second byte: separators, digits and line ends alone make more in a table


class NotUtf8Error(ReadError):
    """A file is not UTF-8, and nothing speaks against another encoding."""

    path: Path | None = None


def checked_encoding(name: str | None) -> str | None:
    """The encoding by its usual name; an error with names alike when there is none."""
    if name is None:
        return None
    try:
        codec = codecs.lookup(str(name))
        known = codec._is_text_encoding and codec.name.replace("_", "-") not in NOT_FOR_FILES
    except (LookupError, ValueError, UnicodeError):
        known = False
    if not known:
        raise OptionError(
            option("encoding"),
            f" is {str(name)!r}, which is not the name of an encoding. Names are utf-8, utf-16, cp1252 (Windows, "
            f"Western Europe), cp1250, latin-1, mac-roman, shift-jis and so on.{_alike(str(name))}",
        )
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


def _alike(name: str) -> str:
    from encodings.aliases import aliases

    known = sorted({each.replace("_", "-") for pair in aliases.items() for each in pair})
    close = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=3)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def told_encoding(start: bytes) -> str | None:
    """The encoding that the first bytes of a file tell; None when they tell none."""
    for mark, encoding in BOMS.items():
        if start.startswith(mark):
            return encoding
    sample = start[:4096]
    even, odd = sample[0::2], sample[1::2]
    if odd.count(0) >= max(FEWEST_ZEROS * len(odd), 2) and not even.count(0):
        return "utf-16-le"
    if even.count(0) >= max(FEWEST_ZEROS * len(even), 2) and not odd.count(0):
        return "utf-16-be"
    return None


def in_utf8(file: File, pieces: Iterator[tuple[bytes, float]], encoding: str) -> Iterator[tuple[bytes, float]]:
    """The pieces of a text in this encoding, as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line, first, done = 1, True, 1.0
    try:
        for data, done in pieces:
            text = decoder.decode(data)
            line += text.count("\n")
            if text:
                yield (text.removeprefix("\ufeff") if first else text).encode(), done
                first = False
        if rest := decoder.decode(b"", final=True):
            yield rest.encode(), done
    except UnicodeError as error:
        if isinstance(error, UnicodeDecodeError):
            line += error.object[: error.start].decode(encoding, "replace").count("\n")
        what = "neither UTF-8 nor Windows-1252" if file.guessed else f"not text in the encoding {encoding}"
        raise ReadError(
            f"{file.name}: line {line:,} is {what}. Say how the file is written, as in ",
            option("encoding", "cp1250" if file.guessed else "utf-8"),
            ", or save it as UTF-8.",
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
            files = [replace(file, encoding=GUESS, guessed=True) if file.path == error.path else file for file in files]


def warn_of(notes: Sequence[Finding]) -> None:
    """Say what findings warn of, about a file that is not the answers: it has no other place to be said."""
    for note in notes:
        if note.severity == "warning":
            warnings.warn(ReadWarning(note.sentence, " ", note.remedy), stacklevel=4)


def encoding_notes(file: File, start: bytes) -> tuple[Finding, ...]:
    """What to say about the encoding of a file that begins like this, when nobody said it."""
    if file.guessed:
        return (
            Finding(
                "encoding",
                "warning",
                f"{file.name} is not UTF-8; it was read as Windows-1252 (Western European).",
                "If letters with accents look wrong, say how it is written, as in "
                + option("encoding", "cp1250")
                + ".",
            ),
        )
    told = told_encoding(start) if file.encoding is None else None
    if told is None:
        return ()
    return (Finding("encoding", "note", f"{file.name} was read as {told.upper()}, which its first bytes tell."),)
