"""What a path means: a file, a pattern, a folder, an address, or what comes on standard input."""

from __future__ import annotations

import atexit
import contextlib
import glob
import os
import sys
import tempfile
import urllib.error
import urllib.request
import zlib
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from spectral_irt.engine.memory import cannot_spill, spill_folder
from spectral_irt.errors import ReadError, printable

STANDARD_INPUT = "-"
STORES = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "hf")  # what polars reads from
SITES = ("http", "https")
CHUNK = 1 << 20
PATIENCE = 60  # seconds that a site may be silent


class SourceFile(NamedTuple):
    """A file; `called` is its name in messages, and `uri` its address where the file itself is elsewhere."""

    path: Path
    called: str | None = None
    uri: str | None = None


def expand(path: Any, endings: tuple[str, ...]) -> list[SourceFile]:
    """The files that a path means; those of a folder are the ones whose names end like this."""
    try:
        text = os.path.expanduser(os.fspath(path))
    except TypeError:
        raise ReadError(
            f"expected the path of a file, not {type(path).__name__}; for a dataframe use spectral_irt.read."
        ) from None
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if text == STANDARD_INPUT:
        return [SourceFile(_standard_input(), called="standard input")]
    if "://" in text:
        return _at_address(text, endings)
    if not text or "\0" in text:
        raise ReadError(f"{text!r} is not the name of a file.")
    # A file may well be called "answers[1].csv": a pattern is only what is no file itself.
    if not os.path.lexists(text) and glob.has_magic(text):
        found = sorted(name for name in glob.glob(text, recursive=True) if os.path.isfile(name))
        if not found:
            raise ReadError(f"no file matches {text!r}; check the pattern and the directory.")
        return [SourceFile(Path(name)) for name in found]
    if os.path.isdir(text):
        return _in_folder(Path(text), endings)
    return [SourceFile(Path(text))]


def _in_folder(folder: Path, endings: tuple[str, ...]) -> list[SourceFile]:
    """The files in a folder and the folders in it; what begins with _ or . is for other programs."""
    inside = sorted(path for path in folder.rglob("*") if path.is_file())
    own = [path.relative_to(folder) for path in inside]
    kept = [
        name
        for name in own
        if not any(part[0] in "_." for part in name.as_posix().split("/")) and name.name.lower().endswith(endings)
    ]
    if not kept:
        raise ReadError(
            f"{str(folder)!r} is a directory, and no file in it is of a kind that is read here; name the files in it, "
            f"for instance {str(folder / '*.parquet')!r}."
        )
    return [SourceFile(folder / name, called=str(folder / name)) for name in kept]


# ------------------------------------------------------------------ elsewhere


def _at_address(text: str, endings: tuple[str, ...]) -> list[SourceFile]:
    parts = urlsplit(text)
    if parts.scheme == "file":
        return expand(unquote(parts.path), endings)
    if parts.scheme in SITES:
        return [SourceFile(_fetched(text), called=_shown(text))]
    if parts.scheme in STORES:
        return [SourceFile(Path(parts.path.rstrip("/") or "/"), called=_shown(text), uri=text)]
    known = ", ".join(f"{scheme}://" for scheme in ("file", *SITES, *STORES))
    raise ReadError(
        f"{_shown(text)!r} is an address of an unknown kind; what is read is {known}. For a database say `sql=` and "
        "`database=`."
    )


def _shown(address: str) -> str:
    """The address without what may be secret: passwords and signatures."""
    parts = urlsplit(address)
    return printable(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _fetched(address: str) -> Path:
    """What a site sends, in a file that is there until this process ends."""
    name = _shown(address)
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            size = answer.headers.get("Content-Length")
            path, n = _spooled(answer, Path(urlsplit(address).path).suffixes)
    except (urllib.error.URLError, OSError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            reason = f"the server says {error.code} {error.reason}"
        else:
            reason = str(getattr(error, "reason", error))
        raise ReadError(f"{name} cannot be fetched: {reason}. Check the address, and that it can be reached.") from None
    if size is not None and int(size) != n:
        raise ReadError(f"{name} cannot be fetched: the connection ended after {n:,} of {int(size):,} bytes.")
    return path


@cache
def _standard_input() -> Path:
    """Standard input, in a file that is there until this process ends: it can be read only once."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.closed:
        raise ReadError("'-' is standard input, and that is closed; pipe the answers into the command, or name a file.")
    if sys.stdin.isatty():
        raise ReadError(
            "'-' is standard input, and nothing is piped into it; as in: cat answers.csv | spectral-irt fit -."
        )
    path, n = _spooled(stream, ())
    if not n:
        raise ReadError("standard input is empty; check that whatever writes to it had something to say.")
    return path


def _spooled(stream: IO[bytes], suffixes: Any) -> tuple[Path, int]:
    """A copy of a stream, named after what it holds, and its size."""
    start = stream.read(CHUNK)
    ending = "".join(suffixes) or ending_of(start)
    folder = spill_folder()
    n = len(start)
    try:
        file = tempfile.NamedTemporaryFile(dir=folder, prefix="spectral-irt-", suffix=ending, delete=False)  # noqa: SIM115
        atexit.register(_removed, file.name)
        with file:
            file.write(start)
            while chunk := stream.read(CHUNK):
                file.write(chunk)
                n += len(chunk)
    except OSError as error:
        raise cannot_spill(folder, error) from error
    except BaseException:  # Ctrl-C while waiting for more
        _removed(file.name)
        raise
    return Path(file.name), n


def _removed(name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name)


def ending_of(start: bytes) -> str:
    """How a file that begins like this is called; Parquet and other kinds are known by their own first bytes.

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
    if start[:4] == b"PAR1":
        return ".parquet"
    if start[:6] == b"ARROW1" or start[:4] == b"\xff\xff\xff\xff":
        return ".arrow"
    return (".jsonl" if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else ".csv") + packed
