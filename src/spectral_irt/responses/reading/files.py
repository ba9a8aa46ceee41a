"""Which files, and what each of them is."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spectral_irt.errors import OptionError, ReadError, option
from spectral_irt.responses.reading.expanding import Found, expand
from spectral_irt.responses.reading.text_encodings import checked_encoding

if TYPE_CHECKING:
    from spectral_irt.responses.reading.tabular import Table

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Format(NamedTuple):
    """A kind of file: how names of such files end, how the files begin, and the module that opens them.

    The module has a function `open_table(file) -> Table`.
    """

    endings: tuple[str, ...]
    module: str
    magic: bytes | None = None


FORMATS = {
    "csv": Format((".csv", ".tsv", ".tab", ".txt"), "csv_text"),
    "parquet": Format((".parquet", ".pq"), "columnar", b"PAR1"),
    "arrow": Format((".arrow", ".ipc", ".feather"), "columnar", b"ARROW1"),
    "json": Format((".jsonl", ".jsonlines", ".ndjson", ".json"), "json_lines"),
    "eval": Format((".eval",), "json_lines"),  # always a log of inspect_ai
    "workbook": Format((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "workbooks"),
    "spss": Format((".sav", ".zsav"), "statistics", b"$FL"),
    "stata": Format((".dta",), "statistics", b"<stata_d"),
    "packed": Format((".packed",), "packed_files", b"SIRTPACK"),
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
_FROM_PYTHON = "Load it yourself and pass the table to spectral_irt.responses_from_frame."
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
        raise OptionError(
            f"{files[0].name} is not a workbook, so it has no sheets; leave out ", option(sheet_option, ...), "."
        )
    return [replace(file, sheet=sheet, sheet_option=sheet_option, encoding=encoding) for file in files]


def check_encoded(files: list[File]) -> None:
    """Refuse an encoding that was said of files that are no text."""
    if files[0].encoding is not None and files[0].family not in ENCODED:
        raise OptionError(
            option("encoding", ...),
            f" is for text files, SPSS and Stata; {files[0].name} says itself how its text is written. Leave it out.",
        )


def open_table(file: File) -> Table:
    """The file as a table, by the module for its kind, or by that for the harness that wrote it."""
    from spectral_irt.responses.reading.harness.recognizing import table_of_logs, written_by

    if (harness := written_by(file)) is not None:
        return table_of_logs(file, harness.read(file))
    module = importlib.import_module(f"{__package__}.{FORMATS[file.family].module}")
    table: Table = module.open_table(file)
    if file.partitions:
        from spectral_irt.responses.reading.partitions import with_partitions

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
                raise changed(file.name)


def changed(name: str) -> ReadError:
    return ReadError(f"{name} changed while it was being read; read it again when it is complete.")


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
