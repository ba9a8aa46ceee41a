"""A bank on disk: a folder with Parquet tables and `bank.json`, which names each table and its checksum.

Tables have a piece of their checksum in their name, so a new bank never writes over the tables of the old one;
`bank.json` is put in place last, in one step. Whatever happens in between, the folder holds the old bank, whole, or
the new one. One writer at a time replaces a bank (`locking.py`), and only the bank that it had read. Nothing is ever
unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.linked_groups import groups_of_old, parts_before
from spectral_irt.bank.locking import LOCK, locked
from spectral_irt.bank.naming import decoded, encoded, readable
from spectral_irt.bank.ordered_bank import OrderedBank
from spectral_irt.bank.people import NO_RECOGNITION, in_no_order, nobody, trace
from spectral_irt.bank.reference_population import Population
from spectral_irt.bank.schema import SchemaError, check_record, check_tables
from spectral_irt.calibration import Scale
from spectral_irt.errors import BankError, OutputError, StaleBankError, Words, listed
from spectral_irt.estimators.landing import centered_within
from spectral_irt.responses import Finding
from spectral_irt.responses.block import Floats
from spectral_irt.writing import draft_beside, remove_leftovers

if TYPE_CHECKING:
    import polars as pl

MANIFEST = "bank.json"
KIND = "spectral-irt bank"
# 3 had no categories; 2 a prior around one mean; 1 also fingerprints that told who people were and their answers
FORMAT_VERSION = 4
OURS = re.compile(
    r"(items|users|information|categories|step_information)\.[0-9a-f]{12}\.parquet|\.[0-9a-f]{12}\.partial"
)
TRIES = 20  # at reading a bank that others keep replacing meanwhile

OLD_FINGERPRINTS = Finding(
    "old_fingerprints",
    "warning",
    "This bank was written by an earlier version, with fingerprints from which names and answers can be found out.",
    "They are gone when it is saved again; treat older copies of it like the answers themselves.",
)

# ---------------------------------------------------------------------------------------------- saving


def save(bank: Bank, folder: str | Path, tell: Callable[[str], None] | None = None) -> Path:
    """Write the bank to this folder; see the module's text for what happens when that fails."""
    target = Path(folder)
    remove_leftovers(target.parent)
    remove_leftovers(target)
    new = _old_files(target) is None
    tables = {name: _parquet(frame) for name, frame in _tables(bank).items()}
    named = {name: (f"{name}.{_sha(content)[:12]}.parquet", content) for name, content in tables.items()}
    files = {name: {"file": file, "sha256": _sha(content)} for name, (file, content) in named.items()}
    manifest, seal = _sealed({**_record(bank), "tables": files})
    try:
        if new:
            _write_new(target, dict(named.values()), manifest)
        else:
            with locked(target, tell=tell):
                old = _old_files(target) or set()
                _check_not_stale(bank, target)
                _replace(target, dict(named.values()), manifest, old)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"the bank {str(target)!r} cannot be written: {error.strerror or error}. "
            f"{'Nothing was written.' if new else 'The bank that was there is unchanged.'}"
        ) from error
    object.__setattr__(bank, "origin", (str(target.resolve()), seal))
    return target


def _old_files(target: Path) -> set[str] | None:
    """Names of the tables of the bank in this place; None if there is nothing. What is no bank is not written over."""
    if not target.exists() and not target.is_symlink():
        return None
    if not target.is_dir():
        raise OutputError(f"{str(target)!r} is a file, not a folder; choose another place. Nothing was written.")
    present = sorted(path.name for path in target.iterdir() if path.name != LOCK)
    if not present:
        return set()
    try:
        found = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        ours = found["kind"] == KIND
        names = {entry["file"] for entry in found["tables"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        ours = False
    if not ours:
        raise OutputError(
            f"{str(target)!r} is a folder with other files ({listed(present)}), not a bank; choose another place. "
            "Nothing was written."
        )
    return {name for name in names if isinstance(name, str) and OURS.fullmatch(name)}


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
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError) and target.exists():
            raise OutputError(
                f"the bank {str(target)!r} has just been written by another program, and is left as it is. Nothing was "
                "written."
            ) from error
        raise


def _replace(target: Path, files: Mapping[str, bytes], manifest: bytes, old: set[str]) -> None:
    """New tables beside the old ones; the manifest changes in one step, and then the old tables go.

    With them goes what a writer left who was killed on the way: whoever holds the lock is the only one.
    """
    try:
        for name, content in files.items():
            _put(target / name, content)
        _put(target / MANIFEST, manifest)
    except BaseException:
        for name in set(files) - old:
            with suppress(OSError):
                (target / name).unlink(missing_ok=True)
        raise
    for path in list(target.iterdir()):
        if OURS.fullmatch(path.name) and path.name not in files:
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


def _record(bank: Bank) -> dict[str, Any]:
    record = {
        "kind": KIND,
        "format_version": FORMAT_VERSION,
        "package_version": bank.version,
        "estimator": bank.estimator,
        "settings": dict(bank.settings),
        "scale": asdict(bank.scale),
        "prior": {"precision": bank.prior_precision},
        "population": None if bank.population is None else asdict(bank.population),
        "salt_check": bank.salt_check,
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
        "score": pl.Series(bank.n_right, dtype=pl.Int64),
        "information": pl.Series(bank.information, dtype=pl.Float64),
        "anchored": pl.Series(bank.anchored, dtype=pl.Boolean),
        "group": pl.Series(bank.group, dtype=pl.Int64),
        "level": pl.Series(bank.level, nan_to_null=True, dtype=pl.Float64),
        "pull": pl.Series(bank.pull, dtype=pl.Float64),
    }
    tables = {"items": pl.DataFrame(columns)}
    if bank.salt_check:
        users = np.ascontiguousarray(in_no_order(bank.users))
        tables["users"] = pl.DataFrame({"user": pl.Series(users[:, 0]), "answers": pl.Series(users[:, 1])})
    if bank.matrix is not None:
        tables["information"] = _entries(bank.matrix)
    if isinstance(bank, OrderedBank):
        tables["categories"] = _categories(bank)
        if bank.step_matrix is not None:
            tables["step_information"] = _entries(bank.step_matrix)
    return tables


def _entries(matrix: Floats) -> pl.DataFrame:
    """The lower half of a symmetric matrix, without zeros."""
    import polars as pl

    row, column = np.nonzero(np.tril(matrix))
    return pl.DataFrame({"row": row.astype(np.int32), "column": column.astype(np.int32), "value": matrix[row, column]})


def _categories(bank: OrderedBank) -> pl.DataFrame:
    """A row for every category of every item, with the threshold below it; the lowest one has none."""
    import polars as pl

    there = np.arange(bank.codes.shape[1]) <= bank.steps.counts[:, None]
    item, category = np.nonzero(there)
    above = category > 0
    step = np.where(above, bank.steps.first[item] + category - 1, 0)

    def of_steps(values: Floats) -> pl.Series:
        return pl.Series(np.where(above, values[step], np.nan), nan_to_null=True, dtype=pl.Float64)

    return pl.DataFrame(
        {
            "item": pl.Series(item, dtype=pl.Int32),
            "category": pl.Series(category, dtype=pl.Int32),
            "code": pl.Series(bank.codes[item, category], nan_to_null=True, dtype=pl.Float64),
            "n": pl.Series(np.nan_to_num(bank.category_n[item, category]), dtype=pl.Int64, strict=False),
            "threshold": of_steps(bank.thresholds),
            "se": of_steps(bank.threshold_se),
            "information": of_steps(bank.step_information),
        }
    )


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


# --------------------------------------------------------------------------------------------- loading


def load(folder: str | Path) -> Bank:
    """The bank in this folder, every file and every value checked."""
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
    version = record["format_version"]
    try:
        check_record(record, version)
        tables = {name: _table(place, entry) for name, entry in record["tables"].items()}
        check_tables(tables, record["counts"], version)
        return _bank(record, tables, (str(place.resolve()), seal))
    except BankError:
        raise
    except SchemaError as error:  # a sealed manifest that lies; nothing of it is used
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
            f"{str(place)!r} is not a bank: it has no {MANIFEST}. Give the folder that ",
            Words("bank.save(folder)", "fit --bank DIR"),
            " made.",
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
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise BankError(
            f"the bank {str(place)!r} has format version {repr(version)[:20]}, and this version of spectral-irt reads "
            f"versions 1 to {FORMAT_VERSION}. Load it with the version that made it "
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
    import polars as pl

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


def _bank(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], origin: tuple[str, str]) -> Bank:
    items, version = tables["items"], record["format_version"]
    old = version == 1
    status = np.empty(len(items), dtype=object)
    status[:] = items["status"].to_list()
    matrix = _matrix(tables.get("information"), len(items))
    data = tuple(DataSet(**data) for data in record["data"])
    findings = tuple(Finding(**{**one, "items": tuple(one["items"])}) for one in record["findings"])
    users = nobody()
    if old:  # what it has about single people is left where it is
        data = tuple(replace(one, digest=trace(one.digest, one.users)) for one in data)
        named = ("known_users", "repeated_users")
        findings = (*(one for one in findings if one.code not in named), NO_RECOGNITION, OLD_FINGERPRINTS)
    elif "users" in tables:
        users = np.stack([tables["users"]["user"].to_numpy(), tables["users"]["answers"].to_numpy()], axis=1)
    difficulty = items["difficulty"].to_numpy().astype(float)
    anchored = items["anchored"].to_numpy()
    if version > 2:
        level, pull = items["level"].to_numpy().astype(float), items["pull"].to_numpy()
    else:
        level, pull = _around_one_mean(record["prior"], difficulty, anchored, matrix)
    more: dict[str, Any] = {}
    if "categories" in tables:
        more = _of_categories(tables["categories"], tables.get("step_information"), len(items))
    return (OrderedBank if more else Bank)(
        **more,
        items=decoded(items["label"].to_list()),
        difficulty=difficulty,
        se=items["se"].to_numpy().astype(float),
        status=status,
        n=items["n"].to_numpy(),
        n_right=items["score"].to_numpy(),
        information=items["information"].to_numpy(),
        anchored=anchored,
        group=groups_of_old(status, matrix) if old else items["group"].to_numpy(),
        estimator=record["estimator"],
        settings=record["settings"],
        scale=Scale(**record["scale"]),
        data=data,
        findings=findings,
        level=level,
        pull=pull,
        prior_precision=float(record["prior"]["precision"]),
        population=Population(**record["population"]) if record.get("population") else None,
        matrix=matrix,
        users=users,
        salt_check=record.get("salt_check", ""),
        version=record["package_version"],
        origin=origin,
    )


def _of_categories(rows: pl.DataFrame, entries: pl.DataFrame | None, m: int) -> dict[str, Any]:
    """The fields of a bank of ordered answers; the rows have been checked."""
    item, category = rows["item"].to_numpy(), rows["category"].to_numpy()
    counts = np.bincount(item, minlength=m) - 1
    above = category > 0
    codes, number = (np.full((m, int(counts.max()) + 1), np.nan) for _ in range(2))
    codes[item, category], number[item, category] = rows["code"].to_numpy(), rows["n"].to_numpy()
    return {
        "n_thresholds": counts.astype(np.int64),
        "codes": codes,
        "category_n": number,
        "thresholds": rows["threshold"].to_numpy()[above].astype(float),
        "threshold_se": rows["se"].to_numpy()[above].astype(float),
        "step_information": rows["information"].to_numpy()[above].astype(float),
        "step_matrix": _matrix(entries, int(counts.sum())),
    }


def _around_one_mean(
    prior: Mapping[str, float], difficulty: Floats, anchored: NDArray[np.bool_], matrix: Floats | None
) -> tuple[Floats, Floats]:
    """Level and pull of the items of an older bank, whose prior was normal around one mean for all.

    Where it tied parts that share no people, the tie goes: within such a part the pulls are made to add to zero.
    """
    known = np.isfinite(difficulty)
    mean = prior["mean"] if prior["precision"] or not known.any() else float(difficulty[known].mean())
    pull = np.where(known & ~anchored, prior["precision"] * (np.nan_to_num(difficulty) - mean), 0.0)
    if matrix is not None:
        parts = parts_before(matrix, np.zeros(len(known), dtype=np.int64), known, ~known)
        pull = centered_within(pull, np.where(np.isin(parts, parts[anchored]), -1, parts))
    return np.full(len(known), mean), pull


def _matrix(entries: pl.DataFrame | None, m: int) -> Floats | None:
    if entries is None:
        return None
    full = np.zeros((m, m))
    row, column, value = (entries[name].to_numpy() for name in ("row", "column", "value"))
    full[row, column] = value
    full[column, row] = value
    return full
