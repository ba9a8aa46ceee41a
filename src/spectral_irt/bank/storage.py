"""A bank on disk: a folder with Parquet tables and `bank.json`, which names each table and its checksum.

Tables have a piece of their checksum in their name, so a new bank never overwrites the tables of the old one;
`bank.json` is put in place last, in one step: the folder always holds the old bank, whole, or the new one. One writer
at a time replaces a bank, and only the bank that it had read; the lock of a process that dies is free. Of the bank that
an update has replaced the tables stay, and its `bank.json` as `bank.<checksum>.json`, which the new one names: so that
it can be undone, once. `items` has a
row for every item, `categories` one for every category of every item (with the threshold below it, which the lowest
does not have), `information` the lower half of the information matrix of all thresholds, or of its blocks.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from spectral_irt.bank.bank import Bank, BankForm, DataSet, Population
from spectral_irt.bank.checks import SenselessBank, check_bank, check_information
from spectral_irt.bank.evidence import Evidence
from spectral_irt.calibration import CONDITIONAL, MARGINAL, RATING_SCALE, Calibration, Provenance, Scale
from spectral_irt.conditional.information import block_diagonal
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.data.labels import Labels, label_array, readable
from spectral_irt.errors import BankError, OutputError, StaleBankError
from spectral_irt.estimators.by_name import estimator_name, model_name
from spectral_irt.files import BUSY, draft_beside, lock_file, refuse_addresses, remove_leftovers, uninterrupted, written
from spectral_irt.tables import plain
from spectral_irt.text import listed

VERSION = 6
MANIFEST = "bank.json"
KIND = "spectral-irt bank"
LOCK = ".lock"
PATIENCE = 30.0  # seconds; replacing a bank takes a fraction of one
PAUSE = 0.02
TRIES = 20  # at reading a bank that others keep replacing meanwhile

TABLES: dict[str, dict[str, Any]] = {
    "items": {
        **dict.fromkeys(("item", "label", "status"), pl.String),
        **dict.fromkeys(("difficulty", "se", "information"), pl.Float64),
        **dict.fromkeys(("n", "score", "link_group"), pl.Int64),
        "anchored": pl.Boolean,
    },
    "categories": {
        **dict.fromkeys(("item", "category"), pl.Int32),
        "n": pl.Int64,
        **dict.fromkeys(("code", "threshold", "se", "information", "prior_mean", "prior_gradient"), pl.Float64),
    },
    "information": {"row": pl.Int32, "column": pl.Int32, "value": pl.Float64},
}
MAY_BE_EMPTY = ("difficulty", "se", "code", "threshold", "prior_mean")
OF_THRESHOLDS = ("threshold", "se", "information", "prior_mean", "prior_gradient")  # empty in the lowest category
OURS = re.compile(rf"(({'|'.join(TABLES)})\.[0-9a-f]{{12}}\.parquet|bank\.[0-9a-f]{{12}}\.json|\.[0-9a-f-]+\.partial)")


def encoded(labels: Labels) -> list[str]:
    """Each label as JSON text: numbers stay numbers, and any text comes back unchanged."""
    strange = [label for label in labels.tolist() if not isinstance(label, str | int | float | None)]
    if strange:
        raise BankError(
            f"the label {strange[0]!r} is a {type(strange[0]).__name__}; a bank keeps labels that are text or numbers. "
            "Name the items by text."
        )
    return [json.dumps(label) for label in labels.tolist()]


def record_of(bank: Bank) -> dict[str, Any]:
    """All of the bank that is not in tables, in JSON's own types."""
    source, kept = bank.calibration.provenance, bank.evidence
    record = {
        "package_version": source.version,
        "estimator": source.estimator,
        "settings": dict(source.settings),
        "model": {
            "name": bank.calibration.model,
            "likelihood": bank.calibration.likelihood,
            "scale_of_item": bank.calibration.scale_of_item,
        },
        "scale": asdict(bank.scale),
        "prior": {"precision": kept.prior_precision, "offsets": kept.offset_precision, "fixed": kept.fixed_prior},
        "population": None if bank.population is None else asdict(bank.population),
        "forms": [{"name": form.name, "items": list(form.items)} for form in bank.forms],
        "counts": {"items": bank.n_items, "persons": bank.n_persons, "responses": int(bank.n.sum())},
        "data": [asdict(data) for data in bank.data],
        "findings": [finding.to_dict() for finding in bank.findings],
    }
    return plain(record)


def tables_of(bank: Bank) -> dict[str, pl.DataFrame]:
    made, kept, layout = bank.calibration, bank.evidence, bank.calibration.layout
    item = np.repeat(np.arange(made.n_items), layout.max_score + 1)
    category = np.arange(len(item)) - (layout.first + np.arange(made.n_items))[item]
    values = (made.thresholds, made.threshold_se, kept.information, kept.prior_mean, kept.prior_gradient)
    of_thresholds = {name: np.full(len(item), np.nan) for name in OF_THRESHOLDS}
    for column, each in zip(of_thresholds.values(), values, strict=True):
        column[category > 0] = each
    tables: dict[str, dict[str, Any]] = {
        "items": {
            "item": readable(made.labels),
            "label": encoded(made.labels),
            "difficulty": made.difficulty,
            "se": made.se,
            "status": [str(word) for word in made.status],
            "n": made.n,
            "score": made.score,
            "information": made.item_information,
            "anchored": made.anchored,
            "link_group": kept.link_group,
        },
        "categories": {
            "item": item,
            "category": category,
            "code": made.codes[item, category],
            "n": np.nan_to_num(made.category_n[item, category]).astype(np.int64),
            **of_thresholds,
        },
    }
    matrix = kept.matrix if kept.blocks is None else block_diagonal(layout, kept.blocks)
    if matrix is not None:  # its lower half, without zeros
        row, column = matrix.nonzero()
        lower = row >= column
        row, column = row[lower], column[lower]
        tables["information"] = {"row": row, "column": column, "value": np.asarray(matrix[row, column])}
    return {
        name: pl.DataFrame(
            {column: pl.Series(columns[column], dtype=kind, nan_to_null=True) for column, kind in TABLES[name].items()}
        )
        for name, columns in tables.items()
    }


def _information(entries: pl.DataFrame, layout: Thresholds) -> tuple[Floats | None, Floats | None]:
    """The information matrix; or the items' blocks of it, where there is nothing between items."""
    row, column, value = (entries[name].to_numpy() for name in ("row", "column", "value"))
    if not layout.binary and (layout.item[row] == layout.item[column]).all():
        blocks = np.zeros((layout.n_items, layout.widest, layout.widest))
        item, one, other = layout.item[row], layout.level[row] - 1, layout.level[column] - 1
        blocks[item, one, other] = blocks[item, other, one] = value
        return None, blocks
    matrix = np.zeros((layout.n_entries, layout.n_entries))
    matrix[row, column] = matrix[column, row] = value
    return matrix, None


def model_fields(record: Mapping[str, Any], n_items: int) -> dict[str, Any]:
    """The fields of a calibration about its model. A bank without them was made before there were any: its estimator
    tells, and of a rating scale with `groups`, which it did not keep, every threshold counts as free."""
    known = record.get("model")
    if known is not None:
        scale = known["scale_of_item"]
        if scale is not None and len(scale) != n_items:
            raise ValueError("the rating scales are not those of the items")
        return {
            "model": str(known["name"]),
            "likelihood": str(known["likelihood"]),
            "scale_of_item": None if scale is None else np.array(scale, dtype=np.int64),
        }
    estimator = record["estimator"]
    likelihood = MARGINAL if estimator_name(estimator) == "mml" else CONDITIONAL
    one_scale = model_name(estimator) == RATING_SCALE and record["settings"].get("groups") is None
    return {"model": RATING_SCALE if one_scale else "", "likelihood": likelihood}


def layout_of(tables: Mapping[str, pl.DataFrame]) -> Thresholds:
    """Which thresholds belong to which item, of tables with the right columns."""
    if not {"items", "categories"} <= set(tables) <= set(TABLES):
        raise SenselessBank(f"tables of other names than a bank's ({listed(tables)})")
    for name, table in tables.items():
        full = table.filter(table["category"] > 0) if name == "categories" else table
        empty = [column for column in TABLES[name] if column not in MAY_BE_EMPTY and full[column].null_count()]
        if dict(sorted(table.schema.items())) != dict(sorted(TABLES[name].items())) or empty:
            raise SenselessBank(f"a table {name!r} that is not as it should be")
    item, n_items = tables["categories"]["item"].to_numpy(), len(tables["items"])
    if len(item) and not 0 <= item.min() <= item.max() < n_items:
        raise SenselessBank("categories of items that it does not have")
    number_of = np.bincount(item, minlength=n_items)
    if (number_of < 2).any():
        raise SenselessBank("an item with fewer than two categories")
    return Thresholds.ones(n_items) if (number_of == 2).all() else Thresholds(number_of.astype(np.int64) - 1)


def bank_of(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], origin: tuple[str, str]) -> Bank:
    """The bank of a record and tables. That nothing was changed since it was written the checksums have shown; that it
    makes sense is checked here."""
    layout = layout_of(tables)
    check_bank(record, tables, layout)
    people = record["population"]
    matrix, blocks = _information(tables["information"], layout) if "information" in tables else (None, None)
    for information in (matrix, blocks):
        if information is not None:
            check_information(information)
    items = {name: tables["items"][name].to_numpy() for name in TABLES["items"]}
    rows = {name: tables["categories"][name].to_numpy() for name in TABLES["categories"]}
    codes, number = (np.full((layout.n_items, layout.widest + 1), np.nan) for _ in range(2))
    codes[rows["item"], rows["category"]], number[rows["item"], rows["category"]] = rows["code"], rows["n"]
    per_threshold = {name: rows[name][rows["category"] > 0].astype(float) for name in OF_THRESHOLDS}
    status = np.array(tables["items"]["status"].to_list(), dtype=object)
    anchored, se = items["anchored"], items["se"].astype(float)
    return Bank(
        calibration=Calibration(
            labels=label_array([json.loads(text) for text in tables["items"]["label"]]),
            thresholds=per_threshold["threshold"],
            threshold_se=per_threshold["se"],
            layout=layout,
            location_se=None if layout.binary else se,
            category_n=number,
            codes=codes,
            status=status,
            n=items["n"],
            score=items["score"],
            item_information=items["information"],
            scale=Scale(**{name: float(value) for name, value in record["scale"].items()}),
            findings=tuple(Finding(**{**one, "items": tuple(one["items"])}) for one in record["findings"]),
            provenance=Provenance(record["estimator"], record["settings"], version=record["package_version"]),
            further={"anchored": anchored} if anchored.any() else {},
            **model_fields(record, layout.n_items),
        ),
        evidence=Evidence(
            per_threshold["information"],
            per_threshold["prior_mean"],
            per_threshold["prior_gradient"],
            items["link_group"],
            prior_precision=float(record["prior"]["precision"]),
            offset_precision=float(record["prior"]["offsets"]),
            fixed_prior=bool(record["prior"].get("fixed", False)),  # a bank of before says nothing of it
            matrix=matrix,
            blocks=blocks,
        ),
        data=tuple(DataSet(**data) for data in record["data"]),
        population=None if people is None else Population(**people),
        forms=_forms(record),
        origin=origin,
    )


def _forms(record: Mapping[str, Any]) -> tuple[BankForm, ...]:
    """The forms of a bank; one of before has none."""
    return tuple(BankForm(str(form["name"]), tuple(form["items"])) for form in record.get("forms", ()))


def save(bank: Bank, folder: str | Path, tell: Callable[[str], None] | None = None) -> Path:
    """Write the bank to this folder; see the module's text for what happens when that fails."""
    target = Path(folder)
    refuse_addresses([target])
    remove_leftovers(target)
    new = not is_bank(target)
    tables: dict[str, bytes] = {}
    for name, frame in tables_of(bank).items():
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        tables[name] = buffer.getvalue()
    entries = {
        name: {"file": f"{name}.{_sha(each)[:12]}.parquet", "sha256": _sha(each)} for name, each in tables.items()
    }
    record = {"kind": KIND, "format_version": VERSION, **record_of(bank), "tables": entries}
    contents = {entries[name]["file"]: content for name, content in tables.items()}
    missing = [path for path in (target, *target.parents) if not path.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        with locked(target, tell=tell), uninterrupted():
            if new and is_bank(target):
                raise OutputError(f"the bank {str(target)!r} has just been written by another program, and stays.")
            replaced = None
            if bank.origin is not None and bank.origin[0] == str(target.resolve()):
                _check_not_stale(bank.origin[1], target)
                replaced = Replaced.by_load(target, record["data"])
            manifest, seal = _sealed(record if replaced is None else {**record, "previous": replaced.entry})
            _replace(target, contents, manifest, replaced)
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


def _check_not_stale(seal: str, target: Path) -> None:
    """A bank that was loaded from here, or saved here, replaces only that very bank."""
    with suppress(FileNotFoundError):
        if json.loads((target / MANIFEST).read_text(encoding="utf-8")).get("sha256") != seal:
            raise StaleBankError(
                f"the bank {str(target)!r} has changed since it was loaded: another program has saved it meanwhile, "
                "and what it added would be lost. Load it again and repeat the update, or save to another folder. The "
                "bank that is there is unchanged."
            )


class Replaced(NamedTuple):
    """The bank that a load has replaced: its manifest, and the files of its tables."""

    manifest: bytes
    tables: tuple[str, ...]

    @classmethod
    def by_load(cls, target: Path, data: list[Any]) -> Replaced | None:
        """The bank in this folder, if one with these data is that bank after more of them."""
        try:
            manifest = (target / MANIFEST).read_bytes()
            record = json.loads(manifest)
            tables = tuple(entry["file"] for entry in record["tables"].values())
            loaded = len(record["data"]) < len(data) and record["data"] == data[: len(record["data"])]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return cls(manifest, tables) if loaded and all((target / name).is_file() for name in tables) else None

    @property
    def entry(self) -> dict[str, str]:
        """Its file, as a manifest names it."""
        checksum = _sha(self.manifest)
        return {"file": f"bank.{checksum[:12]}.json", "sha256": checksum}


def _replace(target: Path, files: Mapping[str, bytes], manifest: bytes, replaced: Replaced | None) -> None:
    """New tables beside the old ones; the manifest changes in one step, and then the old tables go, but for those of
    the bank that was `replaced`, with what a writer left who was killed: whoever holds the lock is the only one."""
    needed = {path.name for path in target.iterdir()}
    kept = {} if replaced is None else {replaced.entry["file"]: replaced.manifest}
    try:
        for name, content in {**files, **kept}.items():
            _put(target / name, content)
        _put(target / MANIFEST, manifest)
        needed = {*files, *kept, *(() if replaced is None else replaced.tables)}
    finally:
        _remove_others(target, needed)


def _remove_others(target: Path, needed: Collection[str]) -> None:
    """Of the files that banks have, those that are not needed."""
    for path in list(target.iterdir()):
        if OURS.fullmatch(path.name) and path.name not in needed:
            with suppress(OSError):
                path.unlink(missing_ok=True)


class Undone(NamedTuple):
    """A bank before and after its last load was undone."""

    before: Bank
    after: Bank


def undo(folder: str | Path, tell: Callable[[str], None] | None = None) -> Undone:
    """Put the bank back that was in this folder before its last load of responses: the same files, byte by byte.

    One step is kept: a load that was undone, or one before the last, cannot be undone.
    """
    target = Path(folder)
    current = load(target)
    with locked(target, tell=tell), uninterrupted():
        record, seal = _manifest(target)
        if current.origin is None or current.origin[1] != seal:
            raise StaleBankError(
                f"another program has just saved the bank {str(target)!r}; look at what it did before undoing that. "
                "The bank is unchanged."
            )
        path = target / str(record.get("previous", {}).get("file", ""))
        if "previous" not in record or not path.is_file():
            raise BankError(
                f"there is nothing to undo in the bank {str(target)!r}: it keeps the bank before its last load of "
                "responses, as long as nothing else is done to it, and no more. The bank is unchanged."
            )
        manifest = path.read_bytes()
        if _sha(manifest) != record["previous"]["sha256"]:
            raise _damaged(path)
        earlier_record, earlier_seal = _checked_record(target, path)
        try:
            earlier = _opened(target, earlier_record, earlier_seal)
        except FileNotFoundError as error:
            raise _incomplete(target, error) from error
        try:
            _put(target / MANIFEST, manifest)
        except OSError as error:
            raise OutputError(
                f"the bank {str(target)!r} cannot be written: {error.strerror or error}. It is unchanged."
            ) from error
        _remove_others(target, [entry["file"] for entry in earlier_record["tables"].values()])
        written.append(target)
    return Undone(current, earlier)


def _put(path: Path, content: bytes) -> None:
    """A file with this content, in one step, when its bytes are on the disk. It is open to those to whom the manifest
    of the bank is: who made a bank private need not do it again after every update."""
    draft = draft_beside(path)
    mode: int | None = None
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE((path.parent / MANIFEST).stat().st_mode) & 0o777
    try:
        new = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
        with os.fdopen(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)  # whatever the umask of this process takes away
        os.replace(draft, path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sealed(record: Mapping[str, Any]) -> tuple[bytes, str]:
    """The record as JSON with a checksum of everything else in it, and that. ASCII only: labels survive any editor."""
    seal = _sha(json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii"))
    return (json.dumps({**record, "sha256": seal}, indent=2, allow_nan=False) + "\n").encode("ascii"), seal


@contextmanager
def locked(folder: Path, tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock of this folder; wait for another writer up to half a minute, and say so once (`tell`)."""
    path = folder / LOCK
    deadline = time.monotonic() + PATIENCE
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            lock_file(file)
            with suppress(FileNotFoundError):  # the writer before may have removed the file that this one opened
                if os.path.samestat(os.fstat(file), os.stat(path)):
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


def load(folder: str | Path) -> Bank:
    """The bank in this folder, every file checked."""
    place = Path(folder)
    for k in range(TRIES):
        record, seal = _manifest(place)
        try:
            return _opened(place, record, seal)
        except FileNotFoundError as error:
            if k == TRIES - 1 or _manifest(place)[1] == seal:
                raise _incomplete(place, error) from error
            # otherwise it has been replaced between two looks: look again
    raise AssertionError


def _opened(place: Path, record: Mapping[str, Any], seal: str) -> Bank:
    """The bank of this record, its tables read and all of it checked; a table that is not there is the caller's."""
    try:
        tables = {name: _table(place, entry) for name, entry in record["tables"].items()}
        return bank_of(record, tables, (str(place.resolve()), seal))
    except (FileNotFoundError, BankError):
        raise
    except SenselessBank as error:
        raise BankError(
            f"the bank {str(place)!r} holds {error}: its files have been changed by something else than spectral-irt. "
            "Restore it from a copy, or calibrate again."
        ) from error
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of a Parquet reader
            raise
        raise BankError(
            f"the bank {str(place)!r} cannot be understood ({type(error).__name__}: {str(error)[:200]}). Restore it "
            "from a copy, or calibrate again."
        ) from error


def _incomplete(place: Path, error: FileNotFoundError) -> BankError:
    return BankError(
        f"the bank {str(place)!r} is not complete: {Path(error.filename).name!r} is missing. Restore it from a copy, "
        "or calibrate again."
    )


def _manifest(place: Path) -> tuple[dict[str, Any], str]:
    """What `bank.json` says, checked, and its checksum."""
    if not os.path.exists(place):
        raise BankError(f"there is no bank at {str(place)!r}; check the path.")
    path = place / MANIFEST
    if not place.is_dir() or not path.exists():
        raise BankError(
            f"{str(place)!r} is not a bank: it has no {MANIFEST}. Give the folder that `bank.save(folder)` made."
        )
    return _checked_record(place, path)


def _checked_record(place: Path, path: Path) -> tuple[dict[str, Any], str]:
    """What this manifest of the bank says, and its checksum."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BankError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise BankError(f"{str(place)!r} is not a bank of spectral-irt: its {MANIFEST} says something else.")
    version = record.get("format_version")
    if version != VERSION:
        raise BankError(
            f"the bank {str(place)!r} has format version {repr(version)[:20]}, and this version of spectral-irt reads "
            f"version {VERSION}. Load it with the version that made it "
            f"({str(record.get('package_version'))[:20]}), or calibrate again."
        )
    seal = record.pop("sha256", None)
    try:
        if seal != _sealed(record)[1]:
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
    except FileNotFoundError:
        raise
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
