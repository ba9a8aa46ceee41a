"""A bank on disk: a folder with Parquet tables and `bank.json`, which names each table and its checksum.

Tables have a piece of their checksum in their name, so a new bank never writes over the tables of the old one;
`bank.json` is put in place last, in one step. Whatever happens in between, the folder holds the old bank, whole, or
the new one. One writer at a time replaces a bank, and only the bank that it had read: a lock file is held meanwhile,
and a process that dies gives its lock back with its files, so that one left behind locks nobody out. Nothing is ever
unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.file_format import (
    OLDEST,
    TABLES,
    VERSION,
    SchemaError,
    bank_of,
    record_from_4,
    record_of,
    tables_from_4,
    tables_of,
)
from spectral_irt.errors import BankError, OutputError, StaleBankError, listed
from spectral_irt.files import BUSY, draft_beside, lock_file, remove_leftovers, uninterrupted, written

MANIFEST = "bank.json"
KIND = "spectral-irt bank"
OURS = re.compile(rf"({'|'.join(TABLES)}|users|step_information)\.[0-9a-f]{{12}}\.parquet|\.[0-9a-f-]+\.partial")
LOCK = ".lock"
PATIENCE = 30.0  # seconds; replacing a bank takes a fraction of one
PAUSE = 0.02
TRIES = 20  # at reading a bank that others keep replacing meanwhile

# ---------------------------------------------------------------------------------------------- saving


def save(bank: Bank, folder: str | Path, tell: Callable[[str], None] | None = None) -> Path:
    """Write the bank to this folder; see the module's text for what happens when that fails."""
    target = Path(folder)
    remove_leftovers(target)
    new = not is_bank(target)
    tables = {name: _parquet(frame) for name, frame in tables_of(bank).items()}
    files = {name: {"file": f"{name}.{_sha(each)[:12]}.parquet", "sha256": _sha(each)} for name, each in tables.items()}
    manifest, seal = _sealed({"kind": KIND, "format_version": VERSION, **record_of(bank), "tables": files})
    contents = {files[name]["file"]: content for name, content in tables.items()}
    missing = [path for path in (target, *target.parents) if not path.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        with locked(target, tell=tell), uninterrupted():
            if new and is_bank(target):
                raise OutputError(f"the bank {str(target)!r} has just been written by another program, and stays.")
            _check_not_stale(bank, target)
            _replace(target, contents, manifest)
            written.append(target)
    except BaseException as error:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        if not isinstance(error, OSError) or isinstance(error, OutputError):
            raise
        raise OutputError(
            f"the bank {str(target)!r} cannot be written: {error.strerror or error}. "
            f"{'Nothing was written.' if new else 'The bank that was there is unchanged.'}"
        ) from error
    object.__setattr__(bank, "origin", (str(target.resolve()), seal))
    return target


def is_bank(target: Path) -> bool:
    """Whether there is a bank in this place; False if there is nothing, but for what a killed writer left. What is no
    bank is not written over."""
    if not target.exists() and not target.is_symlink():
        return False
    if not target.is_dir():
        raise OutputError(f"{str(target)!r} is a file, not a folder; choose another place. Nothing was written.")
    present = sorted(path.name for path in target.iterdir() if path.name != LOCK and not OURS.fullmatch(path.name))
    if not present:
        return False
    try:
        ours = json.loads((target / MANIFEST).read_text(encoding="utf-8"))["kind"] == KIND
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        ours = False
    if not ours:
        raise OutputError(
            f"{str(target)!r} is a folder with other files ({listed(present)}), not a bank; choose another place. "
            "Nothing was written."
        )
    return True


def _check_not_stale(bank: Bank, target: Path) -> None:
    """A bank that was read here, or saved here, replaces only that very bank."""
    if bank.origin is None or bank.origin[0] != str(target.resolve()):
        return
    try:
        now = json.loads((target / MANIFEST).read_text(encoding="utf-8")).get("sha256")
    except FileNotFoundError:
        return
    if now != bank.origin[1]:
        raise StaleBankError(
            f"the bank {str(target)!r} has changed since it was loaded: somebody else has saved it meanwhile, and what "
            "they added would be lost. Load it again and repeat the update, or save to another folder. The bank that "
            "is there is unchanged."
        )


def _replace(target: Path, files: Mapping[str, bytes], manifest: bytes) -> None:
    """New tables beside the old ones; the manifest changes in one step, and then the old tables go.

    With them goes what a writer left who was killed on the way: whoever holds the lock is the only one.
    """
    before = {path.name for path in target.iterdir()}
    kept = before
    try:
        for name, content in files.items():
            _put(target / name, content)
        _put(target / MANIFEST, manifest)
        kept = set(files)
    finally:
        for path in list(target.iterdir()):
            if OURS.fullmatch(path.name) and path.name not in kept:
                with suppress(OSError):
                    path.unlink(missing_ok=True)


def _put(path: Path, content: bytes) -> None:
    """A file with this content, in one step, when its bytes are on the disk."""
    draft = draft_beside(path)
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sealed(record: Mapping[str, Any]) -> tuple[bytes, str]:
    """The record as JSON with a checksum of everything else in it, and that. ASCII only: labels survive any editor."""
    seal = _sha(_canonical(record))
    return (json.dumps({**record, "sha256": seal}, indent=2, allow_nan=False) + "\n").encode("ascii"), seal


def _canonical(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


# --------------------------------------------------------------------------------------- one writer at a time


@contextmanager
def locked(folder: Path, tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock of this folder; another writer is waited for, up to half a minute.

    `tell` is told once that there is another writer.
    """
    path = folder / LOCK
    deadline = time.monotonic() + PATIENCE
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            lock_file(file)
            if _is(file, path):
                break
        except OSError as error:
            if error.errno not in BUSY:
                break  # a file system without locks: the comparison before replacing must do
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        if time.monotonic() > deadline:
            raise OutputError(
                f"another program is writing the bank {str(folder)!r}, and has been for {PATIENCE:g} seconds; try "
                "again when it is done. The bank that was there is unchanged."
            )
        if tell is not None:
            tell(f"waiting for another program that is writing the bank {str(folder)!r}")
            tell = None
        time.sleep(PAUSE)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while it is locked: whoever waits sees that this is no longer the file of that name
        os.close(file)
        with suppress(OSError):
            if os.name == "nt":  # an open file cannot be removed there
                path.unlink()


def _is(file: int, path: Path) -> bool:
    """Whether this open file is still the one of that name: the writer before may have removed it."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


# --------------------------------------------------------------------------------------------- loading


def load(folder: str | Path) -> Bank:
    """The bank in this folder, every file checked."""
    place = Path(folder)
    for k in range(TRIES):
        record, seal = _manifest(place)
        try:
            return _understood(place, record, seal)
        except _MissingTable:
            if k == TRIES - 1 or _manifest(place)[1] == seal:
                raise
            # otherwise it has been replaced between two looks: look again
    raise AssertionError


class _MissingTable(BankError):
    """A table that the manifest names is not there."""


def _understood(place: Path, record: dict[str, Any], seal: str) -> Bank:
    old = record["format_version"] == 4
    try:
        record = record_from_4(record) if old else record
        tables = {name: _table(place, entry) for name, entry in record["tables"].items()}
        return bank_of(record, tables_from_4(tables) if old else tables, (str(place.resolve()), seal))
    except BankError:
        raise
    except SchemaError as error:
        raise BankError(f"the bank {str(place)!r} {error}. Restore it from a copy, or calibrate again.") from error
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of a Parquet reader
            raise
        raise BankError(
            f"the bank {str(place)!r} cannot be understood ({type(error).__name__}: {str(error)[:200]}). Restore it "
            "from a copy, or calibrate again."
        ) from error


def _manifest(place: Path) -> tuple[dict[str, Any], str]:
    if not os.path.exists(place):
        raise BankError(f"there is no bank at {str(place)!r}; check the path.")
    path = place / MANIFEST
    if not place.is_dir() or not path.exists():
        raise BankError(
            f"{str(place)!r} is not a bank: it has no {MANIFEST}. Give the folder that `bank.save(folder)` made."
        )
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BankError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise BankError(f"{str(place)!r} is not a bank of spectral-irt: its {MANIFEST} says something else.")
    version = record.get("format_version")
    if type(version) is not int or not OLDEST <= version <= VERSION:
        raise BankError(
            f"the bank {str(place)!r} has format version {repr(version)[:20]}, and this version of spectral-irt reads "
            f"versions {OLDEST} to {VERSION}. Load it with the version that made it "
            f"({str(record.get('package_version'))[:20]}), or calibrate again."
        )
    seal = record.pop("sha256", None)
    try:
        if seal != _sha(_canonical(record)):
            raise _damaged(path)
    except (ValueError, RecursionError) as error:  # NaN, which JSON does not have
        raise _damaged(path) from error
    return record, seal


def _table(place: Path, entry: Mapping[str, str]) -> pl.DataFrame:
    name = entry["file"]
    path = place / name
    if Path(name).name != name:
        raise BankError(f"the bank {str(place)!r} names {name!r}, which lies outside its folder; it is not used.")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise _MissingTable(
            f"the bank {str(place)!r} is not complete: {name!r} is missing. Restore it from a copy, or calibrate again."
        ) from error
    except OSError as error:
        raise BankError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    if _sha(content) != entry["sha256"]:
        raise _damaged(path)
    return pl.read_parquet(io.BytesIO(content))


def _damaged(path: Path) -> BankError:
    return BankError(
        f"{str(path)!r} has changed since the bank was saved: its checksum is wrong. Restore the bank from a copy, or "
        "calibrate again."
    )
