"""Which files, what each of them is, and how its text is written."""

from __future__ import annotations

import codecs
import difflib
import importlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from spectral_irt.data.finding import Finding
from spectral_irt.errors import OptionError, ReadError, ReadWarning
from spectral_irt.reading.sources import Found, expand

if TYPE_CHECKING:
    from spectral_irt.reading.frame import Table

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Format(NamedTuple):
    """A kind of file: how names of such files end, how the files begin, and the module that opens them.

    The module has a function `open_table(file) -> Table`.
    """

    endings: tuple[str, ...]
    module: str
    magic: bytes | None = None


FORMATS = {
    "csv": Format((".csv", ".tsv", ".tab", ".txt"), "csv"),
    "parquet": Format((".parquet", ".pq"), "parquet", b"PAR1"),
    "arrow": Format((".arrow", ".ipc", ".feather"), "parquet", b"ARROW1"),
    "json": Format((".jsonl", ".jsonlines", ".ndjson", ".json"), "jsonl"),
    "eval": Format((".eval",), "jsonl"),  # always a log of inspect_ai
    "workbook": Format((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
    "spss": Format((".sav", ".zsav"), "spss_stata", b"$FL"),
    "stata": Format((".dta",), "spss_stata", b"<stata_d"),
    "packed": Format((".packed",), "packed", b"SIRTPACK"),
}
STORED = ("parquet", "arrow")  # kinds that are read where they are
TEXT = ("csv", "json")
BINARY = ("workbook", "spss", "stata")
ENCODED = (*TEXT, "spss", "stata")  # kinds whose text may be in one encoding or another
COMPRESSIONS = {".gz": "gz", ".zst": "zst", ".zstd": "zst"}
READABLE = (
    "CSV or TSV (plain, .gz, .zst), Excel (.xlsx, .xls) and OpenDocument (.ods) workbooks, SPSS (.sav), Stata (.dta), "
    "Parquet, Arrow/Feather and JSON lines"
)
ENDINGS = tuple(ending for kind in FORMATS.values() for ending in kind.endings)
ENDINGS += tuple(ending + packed for family in TEXT for ending in FORMATS[family].endings for packed in COMPRESSIONS)
ZIP, COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # how .xlsx and .ods begin, and how .xls does

_FROM_R = "Save it as CSV first; in R: write.csv(data, 'answers.csv', row.names = FALSE)."
_FROM_PYTHON = "Load it yourself and pass the table to spectral_irt.read."
_FROM_SHEET = "Save it as .xlsx or CSV from the spreadsheet program."
_UNPACK = "Unpack it first."
REMEDIES = {
    **dict.fromkeys((".numbers", ".xlt", ".xltx", ".gsheet"), _FROM_SHEET),
    **dict.fromkeys((".rds", ".rda", ".rdata", ".sas7bdat", ".xpt", ".por"), _FROM_R),
    **dict.fromkeys((".npy", ".npz", ".mat", ".h5", ".hdf5", ".db", ".sqlite", ".orc", ".avro"), _FROM_PYTHON),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "Nothing is unpickled here. " + _FROM_PYTHON),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".7z", ".tar", ".rar"), _UNPACK),
}


@dataclass(frozen=True)
class File:
    """A file, its family (one of `FORMATS`) and its compression ("gz", "zst" or None).

    `sheet` is the sheet of a workbook, by name or number from 1, and `encoding` that of a text, as they were said;
    `guessed` says that nobody said the encoding: the text is not UTF-8.
    """

    path: Path
    family: str
    compression: str | None
    sheet: str | int | None = None
    sheet_option: str = "sheet"  # what says it
    encoding: str | None = None
    guessed: bool = False
    called: str | None = None  # in messages, where its own name does not tell it from others
    uri: str | None = None  # where it is, if not on this machine
    partitions: tuple[tuple[str, str | None], ...] = ()  # what its folders say about all of its rows

    @property
    def name(self) -> str:
        return self.called or self.path.name

    @property
    def tabbed(self) -> bool:
        return any(suffix.lower() in (".tsv", ".tab") for suffix in self.path.suffixes)


def find_files(
    path: Paths, *, sheet: str | int | None = None, sheet_option: str = "sheet", encoding: str | None = None
) -> list[File]:
    """The files that a path, several paths or a glob mean, all of one family; `sheet` and `encoding` as in `File`."""
    encoding = checked_encoding(encoding)
    several = isinstance(path, Iterable) and not isinstance(path, str | bytes | os.PathLike)
    paths: list[Any] = list(path) if several else [path]  # type: ignore[arg-type]
    if not paths:
        raise ReadError("there is no file to read: the list of paths is empty.")
    files = [recognized(found) for one in paths for found in expand(one, ENDINGS)]
    families = {file.family: file.name for file in reversed(files)}
    if len(families) > 1:
        shown = " and ".join(f"{name!r} ({family})" for family, name in families.items())
        raise ReadError(f"the files are of different kinds: {shown}. Read those of one kind at a time.")
    if sheet is not None and files[0].family != "workbook":
        raise OptionError(f"{files[0].name} is not a workbook, so it has no sheets; leave out `{sheet_option}=`.")
    return [replace(file, sheet=sheet, sheet_option=sheet_option, encoding=encoding) for file in files]


def check_encoded(files: list[File]) -> None:
    """Refuse an encoding that was said of files that are no text."""
    if files[0].encoding is not None and files[0].family not in ENCODED:
        raise OptionError(
            f"`encoding=` is for text files, SPSS and Stata; {files[0].name} says itself how its text is written. "
            "Leave it out."
        )


def open_table(file: File) -> Table:
    """The file as a table, by the module for its kind, or by that for the harness that wrote it."""
    from spectral_irt.eval_logs.log import read_logs, table_of_logs

    if (logs := read_logs(file)) is not None:
        return table_of_logs(file, logs)
    module = importlib.import_module(f"{__package__}.{FORMATS[file.family].module}")
    table: Table = module.open_table(file)
    if file.partitions:
        from spectral_irt.reading.sources import with_partitions

        return with_partitions(table, file.partitions)
    return table


@contextmanager
def unchanged(files: list[File]) -> Iterator[None]:
    """Complain when a file is another one after the work than it was before: the numbers would be of neither."""
    before = [_state(file) for file in files]
    try:
        yield
    finally:
        for file, state in zip(files, before, strict=True):
            if _state(file) != state:
                raise ReadError(f"{file.name} changed while it was being read; read it again when it is complete.")


def _state(file: File) -> tuple[int, int] | None:
    try:
        found = file.path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def source_name(files: list[File]) -> str:
    return files[0].name if len(files) == 1 else f"{len(files)} files"


def recognized(found: Found) -> File:
    """What kind of file this is; one that is elsewhere is known by its name."""
    if found.uri is None:
        file = recognize(found.path)
    else:
        family = next((family for family in STORED if found.path.name.lower().endswith(FORMATS[family].endings)), None)
        if family is None and found.path.suffix:
            raise ReadError(
                f"{found.called} is not a Parquet file; from a store only those are read. Copy it to this machine "
                "first, or write it as Parquet."
            )
        file = File(found.path, family or "parquet", None)
    return replace(file, called=found.called, uri=found.uri, partitions=found.partitions)


def recognize(path: Path) -> File:
    """What kind of file this is, by its name and first bytes; an error when it is none that can be read."""
    start = _first_bytes(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = None
    if suffixes and suffixes[-1] in COMPRESSIONS:
        compression = COMPRESSIONS[suffixes.pop()]
    suffix = suffixes[-1] if suffixes else ""
    begins = [family for family, kind in FORMATS.items() if kind.magic is not None and start.startswith(kind.magic)]
    if begins:
        return File(path, begins[0], None)
    if suffix in FORMATS["eval"].endings:
        return File(path, "eval", None)
    if compression and suffix in (ending for family in BINARY for ending in FORMATS[family].endings):
        raise ReadError(f"{path.name} is packed, and files of this kind are read as they are. {_UNPACK}")
    if suffix in FORMATS["workbook"].endings or (suffix not in REMEDIES and _holds_workbook(path, start)):
        return File(path, "workbook", None)
    if suffix in REMEDIES or start[:4] == ZIP:
        remedy = REMEDIES.get(suffix, _UNPACK)
        raise ReadError(f"{path.name} is not a kind of file that is read here ({READABLE}). {remedy}")
    actual = {b"\x1f\x8b": "gz", b"\x28\xb5": "zst"}.get(start[:2])
    if compression and compression != actual:
        raise ReadError(
            f"{path.name} is not compressed as its name says (.{compression}), or its beginning is damaged. Check "
            "the download, or rename the file."
        )
    family = next((family for family, kind in FORMATS.items() if suffix in kind.endings), None)
    if family is None:
        ending = f"the ending {path.suffix!r}" if path.suffix else "no ending"
        raise ReadError(
            f"{path.name} has {ending}, which says nothing known; what is read is {READABLE}. Rename the file "
            "after what it holds, for instance to .csv."
        )
    if family == "parquet":
        raise ReadError(f"{path.name} is not a Parquet file: it does not begin with PAR1. Write it again.")
    return File(path, family, actual)


def _holds_workbook(path: Path, start: bytes) -> bool:
    """Whether a file that is not called one is an .xlsx workbook."""
    if start[:4] != ZIP:
        return False
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def _first_bytes(path: Path) -> bytes:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ReadError(f"there is no file {str(path)!r}; check the name and the directory.{_similar(path)}") from None
    except OSError as error:
        raise ReadError(f"{str(path)!r} cannot be opened: {error.strerror}.") from None
    if not path.is_file():
        raise ReadError(f"{str(path)!r} is not an ordinary file and can be read only once; save it to a file first.")
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise ReadError(f"{str(path)!r} cannot be opened: {error.strerror}.") from None
    if not start:
        raise ReadError(f"{path.name} is empty; check that whatever wrote it had finished.")
    return start


def _similar(path: Path) -> str:
    import difflib

    try:
        names = [entry.name for entry in os.scandir(path.parent)]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


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
            f"`encoding` is {str(name)!r}, which is not the name of an encoding. Names are utf-8, utf-16, cp1252 "
            f"(Windows, Western Europe), cp1250, latin-1, mac-roman, shift-jis and so on.{_alike(str(name))}"
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
            files = [replace(file, encoding=GUESS, guessed=True) if file.path == error.path else file for file in files]


def warn_of(notes: Sequence[Finding]) -> None:
    """Say what findings warn of, about a file that is not the answers: it has no other place to be said."""
    for note in notes:
        if note.severity == "warning":
            warnings.warn(ReadWarning(f"{note.sentence} {note.remedy}"), stacklevel=4)


def encoding_notes(file: File, start: bytes) -> tuple[Finding, ...]:
    """What to say about the encoding of a file that begins like this, when nobody said it."""
    if file.guessed:
        return (
            Finding(
                "encoding",
                "warning",
                f"{file.name} is not UTF-8; it was read as Windows-1252 (Western European).",
                "If letters with accents look wrong, say how it is written, as in `encoding='cp1250'`.",
            ),
        )
    told = told_encoding(start) if file.encoding is None else None
    if told is None:
        return ()
    return (Finding("encoding", "note", f"{file.name} was read as {told.upper()}, which its first bytes tell."),)
