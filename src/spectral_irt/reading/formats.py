"""Which files a path means (a file, a pattern, a folder, an address, standard input), and what each of them is."""

from __future__ import annotations

import atexit
import contextlib
import http.client
import importlib
import os
import shutil
import stat
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from spectral_irt.data.scoring import several
from spectral_irt.engine.spill import Spill, cannot_spill
from spectral_irt.errors import OptionError, ReadError, ReadWarning
from spectral_irt.files import input_paths
from spectral_irt.reading.text_pieces import Result, checked_encoding, read_as_written
from spectral_irt.text import did_you_mean, printable, without_secrets

if TYPE_CHECKING:
    from spectral_irt.reading.frame import Table

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
STORES = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "hf")  # what polars reads from
SITES = ("http", "https")
CHUNK = 1 << 20
PATIENCE = 60  # seconds that a site may be silent


class Format(NamedTuple):
    """A kind of file: endings, the module whose `open_table(file)` opens it (none: no table), and first bytes."""

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
LOGGED = ("json", "parquet", "eval")  # kinds that harnesses write logs in
BINARY = ("workbook", "spss", "stata")
ENCODED = (*TEXT, "spss", "stata")  # kinds whose text may be in one encoding or another
COMPRESSIONS = {".gz": "gz", ".zst": "zst", ".zstd": "zst"}
READABLE = (
    "CSV or TSV (plain, .gz, .zst), Excel (.xlsx, .xls) and OpenDocument (.ods) workbooks, SPSS (.sav), Stata (.dta), "
    "Parquet, Arrow/Feather and JSON lines"
)
# how .xlsx and .ods begin, and how .xls does
ZIP = b"PK\x03\x04"
COMPOUND = b"\xd0\xcf\x11\xe0"

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
class File(os.PathLike[str]):
    """A file, its family (one of `FORMATS`) and its compression ("gz", "zst" or None).

    Whatever takes the path of a file takes a `File`, too: what has been fetched is not fetched again."""

    path: Path
    family: str
    compression: str | None
    name: str  # in messages: that of the path, or what tells it from others
    sheet: str | int | None = None  # of a workbook, by name or number from 1, as given
    sheet_option: str = "sheet"  # the option that gives it
    encoding: str | None = None  # of a text, as given
    guessed: bool = False  # the encoding was not given, and the text is not UTF-8
    uri: str | None = None  # where it is, if not on this machine

    def __fspath__(self) -> str:
        return str(self.path)


def find_files(
    path: Paths, *, sheet: str | int | None = None, sheet_option: str = "sheet", encoding: str | None = None
) -> list[File]:
    """The files that a path, several paths or a glob mean, all of one family; `sheet` and `encoding` as in `File`."""
    encoding = None if encoding is None else checked_encoding(encoding)
    files = list(chain.from_iterable(map(expand, several(path))))
    if not files:
        raise ReadError("there is no file to read: the list of paths is empty.")
    families = dict(map(attrgetter("family", "name"), reversed(files)))
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
        result = work(table)
        for note in table.notes:
            if note.severity == "warning":
                warnings.warn(ReadWarning(f"{note.sentence} {note.remedy}"), stacklevel=5)
        return result

    with polars_errors_named(files[0].name):
        return read_as_written(files, read)


def open_table(file: File) -> Table:
    """The file as a table, by the module for its kind, or by that for the harness that wrote it."""
    if file.family in LOGGED:
        from spectral_irt.eval_logs.log import read_logs, table_of_logs

        if (logs := read_logs(file)) is not None:
            return table_of_logs(file, logs)
    if (module := FORMATS[file.family].module) is None:
        raise ReadError(f"{file.name} is a packed file, and no table. Give a table of people with `group_file=`.")
    table: Table = importlib.import_module(f"{__package__}.{module}").open_table(file)
    return table


def state_of(file: File) -> tuple[int, int] | None:
    """Size and time of a file: where they change while it is read, the numbers are of neither of two files."""
    with contextlib.suppress(OSError):
        state = file.path.stat()
        return state.st_size, state.st_mtime_ns
    return None


STANDARD_INPUT = ("-", "/dev/stdin")


def expand(path: Any) -> list[File]:
    """The files that a path means; of a folder, those whose names end like files that are read."""
    if isinstance(path, File):
        return [path]
    try:
        text = os.fsdecode(os.path.expanduser(os.fspath(path)))
    except TypeError:
        raise ReadError(f"expected the path of a file, not {type(path).__name__}.") from None
    if text in STANDARD_INPUT:
        return [replace(recognize(_standard_input()), name="standard input")]
    if "://" in text:
        return _at_address(text)
    if not text or "\0" in text:
        raise ReadError(f"{text!r} is not the name of a file.")
    if not os.path.isdir(text):
        paths = input_paths(text)
        if not paths:
            raise ReadError(f"no file matches {text!r}; check the pattern and the directory.")
        return list(map(recognize, paths))
    endings = [ending for kind in FORMATS.values() for ending in kind.endings]
    endings += [ending + packed for family in TEXT for ending in FORMATS[family].endings for packed in COMPRESSIONS]
    readable = [path for path in input_paths(text) if path.name.lower().endswith(tuple(endings))]
    # What begins with _ or . is for other programs.
    visible = [path for path in readable if not any(part[0] in "_." for part in path.relative_to(text).parts)]
    if not visible:
        some = str(Path(text, "*.parquet"))
        raise ReadError(f"{text!r} is a directory without a file of a kind that is read; name files, as in {some!r}.")
    return [replace(recognize(path), name=str(path)) for path in visible]


def fetch_addresses(paths: Iterable[Any]) -> list[Any]:
    """The same paths, of which those that are addresses have been fetched: for whoever reads them more than once."""
    fetched: list[Any] = []
    for path in paths:
        if isinstance(path, str) and "://" in path:
            fetched += expand(path)
        else:
            fetched.append(path)
    return fetched


def _at_address(text: str) -> list[File]:
    name = printable(without_secrets(text))
    try:
        parts = urlsplit(text)
    except ValueError:  # brackets that do not match
        raise ReadError(f"{name!r} is not an address; check its spelling.") from None
    if parts.scheme == "file":
        return expand(unquote(parts.path))
    if parts.scheme in SITES:
        return [replace(recognize(_fetch(text, name)), name=name)]
    if parts.scheme in STORES:
        path = Path(parts.path.rstrip("/") or "/")
        family = next((family for family in STORED if path.name.lower().endswith(FORMATS[family].endings)), None)
        if family is None and path.suffix:
            raise ReadError(f"{name} is not a Parquet file; from a store only those are read. Copy it here first.")
        return [File(path, family or "parquet", None, name, uri=text)]
    schemes = ", ".join(f"{scheme}://" for scheme in ("file", *SITES, *STORES))
    raise ReadError(f"{name!r} is an address of an unknown kind; what is read is {schemes}, or `sql=` and `database=`.")


def _fetch(address: str, name: str) -> Path:
    """What a site sends, in a file that is there until this process ends."""
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            announced = answer.headers.get("Content-Length")
            size = None if announced is None else int(announced)
            path, n = _copy_of_stream(answer, Path(urlsplit(address).path).suffixes)
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = _why_not_fetched(address, error)
        raise ReadError(f"{name} cannot be fetched: {reason}. Check the address, and that it can be reached.") from None
    if size is not None and size != n:
        raise ReadError(f"{name} cannot be fetched: the connection ended after {n:,} of {size:,} bytes.")
    return path


def _why_not_fetched(address: str, error: Exception) -> str:
    """What is wrong with an address or with what a server answers, without repeating any part of the address: errors of
    libraries show passwords, and keys in queries."""
    authority = urlsplit(address).netloc
    if isinstance(error, urllib.error.HTTPError):
        return f"the server says {error.code} {printable(error.reason)}"
    if "@" in authority:
        return "it names a user or a password, and these are not sent; download the file, and name that"
    if isinstance(error, http.client.InvalidURL):
        return "it holds a blank or a port that is no number; write %20 for a blank"
    if isinstance(error, UnicodeError):
        return "it holds letters beyond ASCII; write them in percents, as a browser copies them"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended before the file did"
    if isinstance(error, http.client.HTTPException | ValueError):
        return "the server does not answer as a web server does"
    reason = getattr(error, "reason", None) or error
    return printable(getattr(reason, "strerror", None) or reason)


@cache
def _standard_input() -> Path:
    """Standard input, in a file that is there until this process ends: it can be read only once."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.closed:
        raise ReadError("'-' is standard input, and that is closed; pipe the answers into the command, or name a file.")
    if sys.stdin.isatty():
        raise ReadError("'-' is standard input; pipe something into it, as in cat answers.csv | spectral-irt fit -.")
    path, n = _copy_of_stream(stream, ())
    if not n:
        raise ReadError("standard input is empty; check that whatever writes to it had something to say.")
    return path


def _copy_of_stream(stream: IO[bytes], suffixes: Iterable[str]) -> tuple[Path, int]:
    """A copy of a stream, named after what it holds, and its size."""
    start = stream.read(CHUNK)
    folder = Spill().folder
    try:
        own_folder = tempfile.mkdtemp(dir=folder, prefix="spectral-irt-")
        atexit.register(shutil.rmtree, own_folder, ignore_errors=True)
        path = Path(own_folder, "input" + ("".join(suffixes) or ending_of(start)))
        with open(path, "wb") as file:
            file.write(start)
            shutil.copyfileobj(stream, file, CHUNK)
    except OSError as error:
        raise cannot_spill(folder, error) from error
    return path, path.stat().st_size


def ending_of(start: bytes) -> str:
    """How a file that begins like this is called; Parquet and the like are known by these bytes, whatever it is called.

    >>> ending_of(b'{"person": 1}'), ending_of(b"person,item")
    ('.jsonl', '.csv')
    """
    packed = ""
    if start[:2] == b"\x1f\x8b":
        packed = ".gz"
        with contextlib.suppress(zlib.error):
            start = zlib.decompressobj(wbits=31).decompress(start, 4096)
    elif start[:4] == b"\x28\xb5\x2f\xfd":
        return ".csv.zst"
    if start[:4] == b"\xff\xff\xff\xff":
        return ".arrow"  # the stream format
    kind = ".jsonl" if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else ".csv"
    return kind + packed


def recognize(path: Path) -> File:
    """What kind of file this is, by its name and first bytes; an error when it is none that can be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ReadError(f"{str(path)!r} is not an ordinary file and can be read only once; save it first.")
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise _not_opened(path, error) from None
    if not start:
        raise ReadError(f"{path.name} is empty; check that whatever wrote it had finished.")
    ending = Path(path.name.lower())
    compression = COMPRESSIONS.get(ending.suffix)
    suffix = Path(ending.stem).suffix if compression else ending.suffix
    family = None
    for name, kind in FORMATS.items():
        if kind.magic is not None and start.startswith(kind.magic):
            return File(path, name, None, path.name)
        if suffix in kind.endings:
            family = name
    if family == "eval":
        return File(path, family, None, path.name)
    if compression and family in BINARY:
        raise ReadError(f"{path.name} is packed, and files of this kind are read as they are. {_UNPACK}")
    zipped = start[:4] == ZIP
    if family == "workbook" or (zipped and suffix not in REMEDIES and _holds_workbook(path)):
        return File(path, "workbook", None, path.name)
    if suffix in REMEDIES or zipped:
        remedy = REMEDIES.get(suffix, _UNPACK)
        raise ReadError(f"{path.name} is not a kind of file that is read here ({READABLE}). {remedy}")
    actual = {b"\x1f\x8b": "gz", b"\x28\xb5": "zst"}.get(start[:2])
    if compression and compression != actual:
        what = f"{path.name} is not compressed as its name says (.{compression})."
        raise ReadError(f"{what} Fetch it again or rename it.")
    if family is None:
        has = f"the ending {path.suffix!r}" if path.suffix else "no ending"
        raise ReadError(f"{path.name} has {has}; what is read is {READABLE}. Rename the file after what it holds.")
    if family == "parquet":
        raise ReadError(f"{path.name} is not a Parquet file: it does not begin with PAR1. Write it again.")
    return File(path, family, actual, path.name)


def _holds_workbook(path: Path) -> bool:
    """Whether an archive that is not called one is an .xlsx workbook."""
    with contextlib.suppress(zipfile.BadZipFile, OSError, ValueError), zipfile.ZipFile(path) as archive:
        return "xl/workbook.xml" in archive.namelist()
    return False


def _not_opened(path: Path, error: OSError) -> ReadError:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        return ReadError(f"{str(path)!r} cannot be opened: {error.strerror}.")
    similar = ""
    with contextlib.suppress(OSError):
        similar = did_you_mean(path.name, [entry.name for entry in os.scandir(path.parent)])
    return ReadError(f"there is no file {str(path)!r}; check the name and the directory.{similar}")
