"""A bank on disk: a folder with Parquet tables and `bank.json`, which names each table and its checksum.

Tables have a piece of their checksum in their name, so a new bank never writes over the tables of the old one;
`bank.json` is put in place last, in one step. Whatever happens in between, the folder holds the old bank, whole, or
the new one. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.bank.bank import Bank, DataSet, Scale
from spectral_irt.bank.evidence import Prior
from spectral_irt.bank.labels import decoded, encoded, readable
from spectral_irt.errors import BankError, OutputError, Words, listed
from spectral_irt.responses import Finding
from spectral_irt.responses.block import Floats
from spectral_irt.writing import draft_beside, remove_leftovers

if TYPE_CHECKING:
    import polars as pl

MANIFEST = "bank.json"
KIND = "spectral-irt bank"
FORMAT_VERSION = 1
_TABLE = re.compile(r"(items|users|information)\.[0-9a-f]{12}\.parquet")

# ---------------------------------------------------------------------------------------------- saving


def save(bank: Bank, folder: str | Path) -> Path:
    """Write the bank to this folder; see the module's text for what happens when that fails."""
    target = Path(folder)
    remove_leftovers(target.parent)
    remove_leftovers(target)
    old = _files_of_old(target)
    tables = {name: _parquet(frame) for name, frame in _tables(bank).items()}
    named = {name: (f"{name}.{_sha(content)[:12]}.parquet", content) for name, content in tables.items()}
    files = {name: {"file": file, "sha256": _sha(content)} for name, (file, content) in named.items()}
    manifest = _sealed({**_record(bank), "tables": files})
    try:
        if old is None:
            _write_new(target, dict(named.values()), manifest)
        else:
            _replace(target, dict(named.values()), manifest, old)
    except OSError as error:
        raise OutputError(
            f"the bank {str(target)!r} cannot be written: {error.strerror or error}. "
            f"{'Nothing was written.' if old is None else 'The bank that was there is unchanged.'}"
        ) from error
    return target


def _files_of_old(target: Path) -> set[str] | None:
    """Names of the files of the bank in this place; None if there is nothing. What is no bank is not written over."""
    if not target.exists() and not target.is_symlink():
        return None
    if not target.is_dir():
        raise OutputError(f"{str(target)!r} is a file, not a folder; choose another place. Nothing was written.")
    present = sorted(path.name for path in target.iterdir())
    if not present:
        return set()
    try:
        found = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        ours = found["kind"] == KIND
        names = {entry["file"] for entry in found["tables"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        ours = False
    if not ours:
        raise OutputError(
            f"{str(target)!r} is a folder with other files ({listed(present)}), not a bank; choose another place. "
            "Nothing was written."
        )
    return {name for name in names if isinstance(name, str) and Path(name).name == name}


def _write_new(target: Path, files: Mapping[str, bytes], manifest: bytes) -> None:
    """A folder beside the target, which gets its name when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_beside(target)
    try:
        draft.mkdir()
        for name, content in files.items():
            _put(draft / name, content)
        _put(draft / MANIFEST, manifest)
        os.rename(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _replace(target: Path, files: Mapping[str, bytes], manifest: bytes, old: set[str]) -> None:
    """New tables beside the old ones; the manifest changes in one step, and then the old tables go."""
    try:
        for name, content in files.items():
            _put(target / name, content)
        _put(target / MANIFEST, manifest)
    except BaseException:
        for name in set(files) - old:
            with suppress(OSError):
                (target / name).unlink(missing_ok=True)
        raise
    for name in (old | _tables_in(target)) - set(files):
        with suppress(OSError):
            (target / name).unlink(missing_ok=True)


def _tables_in(target: Path) -> set[str]:
    """Every table in the folder, those included that a process left which was killed before its bank was complete."""
    with suppress(OSError):
        return {path.name for path in target.iterdir() if _TABLE.fullmatch(path.name)}
    return set()


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


def _sealed(record: Mapping[str, Any]) -> bytes:
    """The record as JSON, with a checksum of everything else in it. ASCII only: any label survives any editor."""
    sealed = {**record, "sha256": _sha(_canonical(record))}
    return (json.dumps(sealed, indent=2, allow_nan=False) + "\n").encode("ascii")


def _canonical(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _record(bank: Bank) -> dict[str, Any]:
    record = {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "package_version": bank.version,
        "estimator": bank.estimator,
        "settings": dict(bank.settings),
        "scale": asdict(bank.scale),
        "prior": asdict(bank.prior),
        "counts": {"items": bank.n_items, "users": bank.n_users, "responses": int(bank.n.sum())},
        "data": [asdict(data) for data in bank.data],
        "findings": [finding.to_dict() for finding in bank.findings],
    }
    return _plain(record)


def _plain(value: Any) -> Any:
    """A value in JSON's own types: numbers of numpy as Python's, what JSON cannot say as text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _tables(bank: Bank) -> dict[str, pl.DataFrame]:
    import polars as pl

    columns = {
        "item": pl.Series(readable(bank.items), dtype=pl.String),
        "label": pl.Series(encoded(bank.items), dtype=pl.String),
        "difficulty": pl.Series(bank.difficulty, nan_to_null=True, dtype=pl.Float64),
        "se": pl.Series(bank.se, nan_to_null=True, dtype=pl.Float64),
        "status": pl.Series([str(word) for word in bank.status], dtype=pl.String),
        "n": pl.Series(bank.n, dtype=pl.Int64),
        "score": pl.Series(bank.score, dtype=pl.Int64),
        "information": pl.Series(bank.information, dtype=pl.Float64),
        "anchored": pl.Series(bank.anchored, dtype=pl.Boolean),
    }
    tables = {"items": pl.DataFrame(columns)}
    users = np.ascontiguousarray(bank.users)
    tables["users"] = pl.DataFrame({"user": pl.Series(users[:, 0]), "answers": pl.Series(users[:, 1])})
    if bank.matrix is not None:
        row, column = np.nonzero(np.tril(bank.matrix))
        entries = {"row": row.astype(np.int32), "column": column.astype(np.int32), "value": bank.matrix[row, column]}
        tables["information"] = pl.DataFrame(entries)
    return tables


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


# --------------------------------------------------------------------------------------------- loading


def load(folder: str | Path) -> Bank:
    """The bank in this folder, every file checked."""
    place = Path(folder)
    record = _manifest(place)
    try:
        tables = {name: _table(place, entry) for name, entry in record["tables"].items()}
        return _bank(record, tables)
    except BankError:
        raise
    except Exception as error:  # a sealed manifest that lies; nothing of it is used
        raise BankError(
            f"the bank {str(place)!r} cannot be understood ({type(error).__name__}: {error}). Restore it from a copy, "
            "or calibrate again."
        ) from error


def _manifest(place: Path) -> dict[str, Any]:
    if not os.path.exists(place):
        raise BankError(f"there is no bank at {str(place)!r}; check the path.")
    path = place / MANIFEST
    if not place.is_dir() or not path.exists():
        raise BankError(
            f"{str(place)!r} is not a bank: it has no {MANIFEST}. Give the folder that ",
            Words("bank.save(folder)", "fit --bank DIR"),
            " made.",
        )
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BankError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise _damaged(path) from error
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise BankError(f"{str(place)!r} is not a bank of spectral-irt: its {MANIFEST} says something else.")
    if record.get("format_version") != FORMAT_VERSION:
        raise BankError(
            f"the bank {str(place)!r} has format version {record.get('format_version')!r}, and this version of "
            f"spectral-irt reads version {FORMAT_VERSION}. Load it with the version that made it "
            f"({record.get('package_version')}), or calibrate again."
        )
    seal = record.pop("sha256", None)
    try:
        if seal != _sha(_canonical(record)):
            raise _damaged(path)
    except ValueError as error:  # NaN, which JSON does not have
        raise _damaged(path) from error
    return record


def _table(place: Path, entry: Mapping[str, str]) -> pl.DataFrame:
    import polars as pl

    name = entry["file"]
    path = place / name
    if Path(name).name != name:
        raise BankError(f"the bank {str(place)!r} names {name!r}, which lies outside its folder; it is not used.")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise BankError(
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


def _bank(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> Bank:
    items, users = tables["items"], tables["users"]
    status = np.empty(len(items), dtype=object)
    status[:] = items["status"].to_list()
    return Bank(
        items=decoded(items["label"].to_list()),
        difficulty=items["difficulty"].to_numpy().astype(float),
        se=items["se"].to_numpy().astype(float),
        status=status,
        n=items["n"].to_numpy(),
        score=items["score"].to_numpy(),
        information=items["information"].to_numpy(),
        anchored=items["anchored"].to_numpy(),
        estimator=record["estimator"],
        settings=record["settings"],
        scale=Scale(**record["scale"]),
        data=tuple(DataSet(**data) for data in record["data"]),
        findings=tuple(Finding(**{**one, "items": tuple(one["items"])}) for one in record["findings"]),
        prior=Prior(**record["prior"]),
        matrix=_matrix(tables.get("information"), len(items)),
        users=np.stack([users["user"].to_numpy(), users["answers"].to_numpy()], axis=1),
        version=record["package_version"],
    )


def _matrix(entries: pl.DataFrame | None, m: int) -> Floats | None:
    if entries is None:
        return None
    full = np.zeros((m, m))
    row, column, value = (entries[name].to_numpy() for name in ("row", "column", "value"))
    full[row, column] = value
    full[column, row] = value
    return full
