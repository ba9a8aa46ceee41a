"""Which files, what each of them is, and how its text is written."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spectral_irt.errors import OptionError, ReadError, ReadWarning, ResponseValueError, did_you_mean
from spectral_irt.reading.sources import SourceFile, expand
from spectral_irt.reading.text_pieces import Result, checked_encoding, read_as_written

if TYPE_CHECKING:
    from spectral_irt.data.responses import Responses
    from spectral_irt.engine.dask import DaskEngine
    from spectral_irt.reading import ReadOptions
    from spectral_irt.reading.frame import Table

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Format(NamedTuple):
    """A kind of file: how names of such files end, how the files begin, and the module that opens them.

    The module has a function `open_table(file) -> Table`; packed answers are no table.
    """

    endings: tuple[str, ...]
    module: str | None
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
    "packed": Format((".packed",), None, b"SIRTPACK"),
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


def read_one(path: Paths, what: str, work: Callable[[Table], Result], **how: Any) -> Result:
    """What `work` makes of the table in a file beside the answers; `how` are options of `find_files`."""
    from spectral_irt.reading.frame import polars_errors_named

    files = find_files(path, **how)
    if len(files) > 1:
        raise ReadError(f"{path!r} names {len(files)} files; {what} is one file.")

    def read(files: list[File]) -> Result:
        table = open_table(files[0])
        found = work(table)
        for note in table.notes:  # which have no other place to be said
            if note.severity == "warning":
                warnings.warn(ReadWarning(f"{note.sentence} {note.remedy}"), stacklevel=5)
        return found

    with polars_errors_named(files[0].name):
        return read_as_written(files, read)


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
    if (module := FORMATS[file.family].module) is None:
        raise ReadError(
            f"{file.name} is a packed file, and no table. Give what is known of the people in a table of their own, "
            "`group_file=`."
        )
    table: Table = importlib.import_module(f"{__package__}.{module}").open_table(file)
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


def recognized(found: SourceFile) -> File:
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
    return replace(file, called=found.called, uri=found.uri)


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
    try:
        return did_you_mean(path.name, [entry.name for entry in os.scandir(path.parent)])
    except OSError:
        return ""


# ------------------------------------------------------------------ packed files


def responses_of_packed(files: list[File], options: ReadOptions, engine: DaskEngine | None = None) -> Responses:
    """The responses of a packed file; an error if it is one of several, or if anything was said about its layout."""
    name, how, asked, duplicates = files[0].name, options.scoring, options.layout, options.duplicates
    if len(files) > 1:
        raise ReadError(
            f"a packed file is read alone, and here are {len(files)}; pack together the files that they were made from."
        )
    said = [f"`{one}=`" for group in (how, asked) for one in _said(group)]
    said += [f"`duplicates={duplicates!r}`"] if duplicates != "error" else []
    if said:
        raise OptionError(
            f"{name} is a packed file, whose answers were read and scored when it was packed; leave out "
            f"{', '.join(said)}, or say it when packing."
        )
    from spectral_irt.data.packed_file import open_responses

    found = open_responses(files[0].path)
    absent = [one for one in asked.people if found.people is None or one not in found.people]
    if absent:
        raise OptionError(
            f"{name} is a packed file, and no column {absent[0]!r} about people was packed with the answers. Name it "
            "when packing, `group=`, or give a table of people, `group_file=`."
        )
    if not (found.thresholds.binary or how.ordered):
        raise ResponseValueError(f"{name} holds answers in ordered categories; fit `SpectralPartialCredit`.")
    return found if engine is None else _on_workers(found, files[0].path.absolute(), engine)


def _on_workers(found: Responses, path: Path, engine: DaskEngine) -> Responses:
    """The same responses, whose blocks the workers map from the file themselves, where all of them see it."""
    import numpy as np

    from spectral_irt.data.packed_file import mapped_blocks
    from spectral_irt.engine.dask import TASKS_PER_THREAD

    if not found.n_responses or not engine.sees(path):
        return found.using(engine)
    n = len(found.blocks)
    cuts = np.linspace(0, n, min(n, TASKS_PER_THREAD * engine.threads) + 1).astype(int).tolist()
    same = [[value] * (len(cuts) - 1) for value in (str(path), path.stat().st_mtime_ns)]
    shards = engine.submit_all(mapped_blocks, *same, cuts[:-1], cuts[1:])
    return replace(found, blocks=engine.shards_of(shards, np.diff(cuts).tolist()), engine=engine)  # type: ignore[arg-type]


def _said(group: Any) -> list[str]:
    default, unsaid = type(group)(), ("people", "ordered", "undecided", "unused", "groups", "span")
    names = [one.name for one in fields(group) if one.name not in unsaid]
    return [name for name in names if getattr(group, name) != getattr(default, name)]
