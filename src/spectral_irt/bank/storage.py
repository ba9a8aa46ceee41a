"""A bank on disk: a folder with Parquet tables and `bank.json`, which names each table and its checksum.

Tables have a piece of their checksum in their name, so a new bank never overwrites the tables of the old one;
`bank.json` is put in place last, in one step: the folder always holds the old bank, whole, or the new one. One writer
at a time replaces a bank, and only the bank that it had read; the lock of a process that dies is free. Of the bank that
an update has replaced the tables stay, and its `bank.json` as `bank.<checksum>.json`, which the new one names: so that
it can be undone, once.

`items` has a row for every item, `categories` one for every category of every item (with the threshold below it, which
the lowest does not have), `information` the lower half of the information matrix of all thresholds, or of its blocks.
Everything else is in `bank.json`, with a checksum of itself.

`Bank.save`, `Bank.load`, `Bank.undo` and the commands on banks call this; `checks.py` says whether what was read makes
sense.
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
from spectral_irt.files import (
    BUSY,
    draft_beside,
    lock_file,
    refuse_addresses,
    remove_leftovers,
    without_interruption,
    written,
)
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
BANK_FILE = re.compile(
    rf"(({'|'.join(TABLES)})\.[0-9a-f]{{12}}\.parquet|bank\.[0-9a-f]{{12}}\.json|\.[0-9a-f-]+\.partial)"
)


def labels_as_json(labels: Labels) -> list[str]:
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
    calibration = bank.calibration
    provenance = calibration.provenance
    evidence = bank.evidence
    population = None
    if bank.population is not None:
        population = asdict(bank.population)
    record: dict[str, Any] = {
        "package_version": provenance.version,
        "estimator": provenance.estimator,
        "settings": dict(provenance.settings),
        "model": {
            "name": calibration.model,
            "likelihood": calibration.likelihood,
            "scale_of_item": calibration.scale_of_item,
        },
        "scale": asdict(bank.scale),
        "prior": {
            "precision": evidence.prior_precision,
            "offsets": evidence.offset_precision,
            "fixed": evidence.fixed_prior,
        },
        "population": population,
        "forms": [{"name": form.name, "items": list(form.items)} for form in bank.forms],
        "counts": {"items": bank.n_items, "persons": bank.n_persons, "responses": int(bank.n.sum())},
        "data": [asdict(data) for data in bank.data],
        "findings": [finding.to_dict() for finding in bank.findings],
    }
    if calibration.codes_high is not None:
        record["codes_high"] = calibration.codes_high[np.isfinite(calibration.codes)]
    return plain(record)


def tables_of(bank: Bank) -> dict[str, pl.DataFrame]:
    """All arrays of the bank, in tables with the columns and types of `TABLES`."""
    columns = {"items": _item_columns(bank), "categories": _category_columns(bank)}
    information = _information_columns(bank)
    if information is not None:
        columns["information"] = information
    return {name: _frame(name, columns[name]) for name in columns}


def _frame(name: str, columns: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        {column: pl.Series(columns[column], dtype=kind, nan_to_null=True) for column, kind in TABLES[name].items()}
    )


def _item_columns(bank: Bank) -> dict[str, Any]:
    calibration = bank.calibration
    return {
        "item": readable(calibration.labels),
        "label": labels_as_json(calibration.labels),
        "difficulty": calibration.difficulty,
        "se": calibration.se,
        "status": [str(word) for word in calibration.status],
        "n": calibration.n,
        "score": calibration.score,
        "information": calibration.item_information,
        "anchored": calibration.anchored,
        "link_group": bank.evidence.link_group,
    }


def _category_columns(bank: Bank) -> dict[str, Any]:
    """A row for each category of each item, with the threshold below it; the lowest category has none."""
    calibration = bank.calibration
    evidence = bank.evidence
    layout = calibration.layout
    item = np.repeat(np.arange(calibration.n_items), layout.max_score + 1)
    first_row = layout.first + np.arange(calibration.n_items)  # of each item
    category = np.arange(len(item)) - first_row[item]

    def of_threshold(values: Floats) -> Floats:
        column = np.full(len(item), np.nan)
        column[category > 0] = values
        return column

    return {
        "item": item,
        "category": category,
        "code": calibration.codes[item, category],
        "n": np.nan_to_num(calibration.category_n[item, category]).astype(np.int64),
        "threshold": of_threshold(calibration.thresholds),
        "se": of_threshold(calibration.threshold_se),
        "information": of_threshold(evidence.information),
        "prior_mean": of_threshold(evidence.prior_mean),
        "prior_gradient": of_threshold(evidence.prior_gradient),
    }


def _information_columns(bank: Bank) -> dict[str, Any] | None:
    """The lower half of the information matrix, or of its blocks, without zeros; None where neither is kept."""
    evidence = bank.evidence
    matrix = evidence.matrix
    if evidence.blocks is not None:
        matrix = block_diagonal(bank.calibration.layout, evidence.blocks)
    if matrix is None:
        return None
    row, column = matrix.nonzero()
    is_lower = row >= column
    row = row[is_lower]
    column = column[is_lower]
    return {"row": row, "column": column, "value": np.asarray(matrix[row, column])}


class InformationRead(NamedTuple):
    """The information matrix of a bank, or the items' blocks of it, or neither."""

    matrix: Floats | None = None
    blocks: Floats | None = None


def _information(tables: Mapping[str, pl.DataFrame], layout: Thresholds) -> InformationRead:
    """The information matrix; or the items' blocks of it, where there is nothing between items."""
    if "information" not in tables:
        return InformationRead()
    row, column, value = (tables["information"][name].to_numpy() for name in ("row", "column", "value"))
    if not layout.binary and (layout.item[row] == layout.item[column]).all():
        blocks = np.zeros((layout.n_items, layout.widest, layout.widest))
        item = layout.item[row]
        level = layout.level[row] - 1
        other_level = layout.level[column] - 1
        blocks[item, level, other_level] = value
        blocks[item, other_level, level] = value
        check_information(blocks)
        return InformationRead(blocks=blocks)
    matrix = np.zeros((layout.n_entries, layout.n_entries))
    matrix[row, column] = value
    matrix[column, row] = value
    check_information(matrix)
    return InformationRead(matrix=matrix)


def model_fields(record: Mapping[str, Any], n_items: int) -> dict[str, Any]:
    """The fields of a calibration about its model. A bank without them was made before there were any: its estimator
    tells, and of a rating scale with `groups`, which it did not keep, every threshold counts as free."""
    recorded = record.get("model")
    if recorded is None:
        return _model_of_estimator(record["estimator"], record["settings"])
    scale_of_item = recorded["scale_of_item"]
    if scale_of_item is not None:
        if len(scale_of_item) != n_items:
            raise ValueError("the rating scales are not those of the items")
        scale_of_item = np.array(scale_of_item, dtype=np.int64)
    return {"model": str(recorded["name"]), "likelihood": str(recorded["likelihood"]), "scale_of_item": scale_of_item}


def _model_of_estimator(estimator: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    model = ""
    if model_name(estimator) == RATING_SCALE and settings.get("groups") is None:
        model = RATING_SCALE
    likelihood = CONDITIONAL
    if estimator_name(estimator) == "mml":
        likelihood = MARGINAL
    return {"model": model, "likelihood": likelihood}


def layout_of(tables: Mapping[str, pl.DataFrame]) -> Thresholds:
    """Which thresholds belong to which item, of tables with the right columns."""
    if not {"items", "categories"} <= set(tables) <= set(TABLES):
        raise SenselessBank(f"tables of other names than a bank's ({listed(tables)})")
    for name, table in tables.items():
        _check_columns(name, table)
    n_items = len(tables["items"])
    item = tables["categories"]["item"].to_numpy()
    if len(item) and not 0 <= item.min() <= item.max() < n_items:
        raise SenselessBank("categories of items that it does not have")
    n_categories = np.bincount(item, minlength=n_items)
    if (n_categories < 2).any():
        raise SenselessBank("an item with fewer than two categories")
    if (n_categories == 2).all():
        return Thresholds.ones(n_items)
    return Thresholds(n_categories.astype(np.int64) - 1)


def _check_columns(name: str, table: pl.DataFrame) -> None:
    """An error where a table has other columns or types than it should, or empty cells where there may be none."""
    filled = table
    if name == "categories":
        filled = table.filter(table["category"] > 0)  # in the lowest category all about thresholds is empty
    has_empty = any(filled[column].null_count() for column in TABLES[name] if column not in MAY_BE_EMPTY)
    if dict(sorted(table.schema.items())) != dict(sorted(TABLES[name].items())) or has_empty:
        raise SenselessBank(f"a table {name!r} that is not as it should be")


def bank_of(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], origin: tuple[str, str]) -> Bank:
    """The bank of a record and tables. That nothing was changed since it was written the checksums have shown; that it
    makes sense is checked here."""
    layout = layout_of(tables)
    check_bank(record, tables, layout)
    population = None
    if record["population"] is not None:
        population = Population(**record["population"])
    return Bank(
        evidence=_evidence_of(record, tables, layout),
        calibration=_calibration_of(record, tables, layout),
        data=tuple(DataSet(**data) for data in record["data"]),
        population=population,
        forms=_forms(record),
        origin=origin,
    )


def _threshold_columns(tables: Mapping[str, pl.DataFrame]) -> dict[str, Floats]:
    """What a bank has for each threshold: the rows of all categories but the lowest."""
    categories = tables["categories"]
    rows = categories.filter(categories["category"] > 0)
    return {name: rows[name].to_numpy().astype(float) for name in OF_THRESHOLDS}


def _calibration_of(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], layout: Thresholds) -> Calibration:
    items = {name: tables["items"][name].to_numpy() for name in TABLES["items"]}
    categories = {name: tables["categories"][name].to_numpy() for name in ("item", "category", "code", "n")}
    cell = (categories["item"], categories["category"])
    codes = np.full((layout.n_items, layout.widest + 1), np.nan)
    codes[cell] = categories["code"]
    codes_high = None
    if record.get("codes_high") is not None:  # of categories that were merged
        codes_high = codes.copy()
        codes_high[np.isfinite(codes)] = np.array(record["codes_high"], dtype=float)
    category_n = np.full(codes.shape, np.nan)
    category_n[cell] = categories["n"]
    of_threshold = _threshold_columns(tables)
    location_se = None
    if not layout.binary:
        location_se = items["se"].astype(float)
    further = {}
    if items["anchored"].any():
        further["anchored"] = items["anchored"]
    return Calibration(
        labels=label_array([json.loads(text) for text in tables["items"]["label"]]),
        thresholds=of_threshold["threshold"],
        threshold_se=of_threshold["se"],
        layout=layout,
        location_se=location_se,
        category_n=category_n,
        codes=codes,
        codes_high=codes_high,
        status=np.array(tables["items"]["status"].to_list(), dtype=object),
        n=items["n"],
        score=items["score"],
        item_information=items["information"],
        scale=Scale(**{name: float(value) for name, value in record["scale"].items()}),
        findings=tuple(Finding(**{**finding, "items": tuple(finding["items"])}) for finding in record["findings"]),
        provenance=Provenance(record["estimator"], record["settings"], version=record["package_version"]),
        further=further,
        **model_fields(record, layout.n_items),
    )


def _evidence_of(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], layout: Thresholds) -> Evidence:
    of_threshold = _threshold_columns(tables)
    information = _information(tables, layout)
    prior = record["prior"]
    return Evidence(
        information=of_threshold["information"],
        prior_mean=of_threshold["prior_mean"],
        prior_gradient=of_threshold["prior_gradient"],
        link_group=tables["items"]["link_group"].to_numpy(),
        prior_precision=float(prior["precision"]),
        offset_precision=float(prior["offsets"]),
        fixed_prior=bool(prior.get("fixed", False)),  # banks of version 0.1 do not record it
        matrix=information.matrix,
        blocks=information.blocks,
    )


def _forms(record: Mapping[str, Any]) -> tuple[BankForm, ...]:
    """The forms of a bank; one of before has none."""
    return tuple(BankForm(str(form["name"]), tuple(form["items"])) for form in record.get("forms", ()))


def save(bank: Bank, folder: str | Path, tell: Callable[[str], None] | None = None) -> Path:
    """Write the bank to this folder; see the module's text for what happens when that fails."""
    target = Path(folder)
    refuse_addresses([target])
    remove_leftovers(target)
    is_new = not is_bank(target)
    files = _Files.of(bank)
    made_folders = [path for path in (target, *target.parents) if not path.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        with lock_folder(target, tell=tell), without_interruption():
            if is_new and is_bank(target):
                raise OutputError(f"the bank {str(target)!r} has just been written by another program, and stays.")
            record = files.record
            replaced = None
            if bank.origin is not None and bank.origin[0] == str(target.resolve()):
                _check_not_stale(bank.origin[1], target)
                replaced = Replaced.by_load(target, record["data"])
            if replaced is not None:
                record = {**record, "previous": replaced.entry}
            manifest = _seal_record(record)
            _replace(target, files.tables, manifest.content, replaced)
            written.append(target)
    except BaseException as error:
        for path in made_folders:
            with suppress(OSError):
                path.rmdir()
        if not isinstance(error, OSError) or isinstance(error, OutputError):
            raise
        state = "Nothing was written." if is_new else "The bank that was there is unchanged."
        raise OutputError(f"the bank {str(target)!r} cannot be written: {error.strerror or error}. {state}") from error
    # The one write into a frozen bank: `save` keeps what `origin` says true, and the bank may be saved again.
    object.__setattr__(bank, "origin", (str(target.resolve()), manifest.seal))
    return target


class _Files(NamedTuple):
    """A bank as files: tables by file name, and the record without its checksum."""

    tables: dict[str, bytes]
    record: dict[str, Any]

    @classmethod
    def of(cls, bank: Bank) -> _Files:
        tables: dict[str, bytes] = {}
        entries: dict[str, dict[str, str]] = {}
        for name, frame in tables_of(bank).items():
            buffer = io.BytesIO()
            frame.write_parquet(buffer)
            content = buffer.getvalue()
            checksum = _sha(content)
            file = f"{name}.{checksum[:12]}.parquet"
            tables[file] = content
            entries[name] = {"file": file, "sha256": checksum}
        record = {"kind": KIND, "format_version": VERSION, **record_of(bank), "tables": entries}
        return cls(tables, record)


def is_bank(target: Path) -> bool:
    """Whether there is a bank in this place; False if there is nothing, but for what a killed writer left. What is no
    bank is not written over."""
    if not target.exists() and not target.is_symlink():
        return False
    if not target.is_dir():
        raise OutputError(f"{str(target)!r} is a file, not a folder; choose another place. Nothing was written.")
    present = sorted(path.name for path in target.iterdir() if path.name != LOCK and not BANK_FILE.fullmatch(path.name))
    if not present:
        return False
    try:
        has_bank = json.loads((target / MANIFEST).read_text(encoding="utf-8"))["kind"] == KIND
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        has_bank = False
    if not has_bank:
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
            is_earlier = len(record["data"]) < len(data) and record["data"] == data[: len(record["data"])]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if not is_earlier or not all((target / name).is_file() for name in tables):
            return None
        return cls(manifest, tables)

    @property
    def entry(self) -> dict[str, str]:
        """Its file, as a manifest names it."""
        checksum = _sha(self.manifest)
        return {"file": f"bank.{checksum[:12]}.json", "sha256": checksum}


def _replace(target: Path, files: Mapping[str, bytes], manifest: bytes, replaced: Replaced | None) -> None:
    """New tables beside the old ones; the manifest changes in one step, and then the old tables go, but for those of
    the bank that was `replaced`, with what a writer left who was killed: whoever holds the lock is the only one."""
    needed = {path.name for path in target.iterdir()}  # all of it, if writing fails
    needed_after = {*files}
    try:
        for name, content in files.items():
            _put(target / name, content)
        if replaced is not None:
            _put(target / replaced.entry["file"], replaced.manifest)
            needed_after |= {replaced.entry["file"], *replaced.tables}
        _put(target / MANIFEST, manifest)
        needed = needed_after
    finally:
        _remove_others(target, needed)


def _remove_others(target: Path, needed: Collection[str]) -> None:
    """Of the files that banks have, those that are not needed."""
    for path in list(target.iterdir()):
        if BANK_FILE.fullmatch(path.name) and path.name not in needed:
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
    with lock_folder(target, tell=tell), without_interruption():
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
            raise _checksum_error(path)
        earlier = _checked_record(target, path)
        try:
            bank = _bank_of_record(target, earlier.record, earlier.seal)
        except FileNotFoundError as error:
            raise _incomplete(target, error) from error
        try:
            _put(target / MANIFEST, manifest)
        except OSError as error:
            raise OutputError(
                f"the bank {str(target)!r} cannot be written: {error.strerror or error}. It is unchanged."
            ) from error
        _remove_others(target, [entry["file"] for entry in earlier.record["tables"].values()])
        written.append(target)
    return Undone(current, bank)


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


class Manifest(NamedTuple):
    """The content of a `bank.json`, and its checksum of everything else in it: the seal of the bank."""

    content: bytes
    seal: str


def _seal_record(record: Mapping[str, Any]) -> Manifest:
    """The record as JSON with its seal. ASCII only: labels survive any editor."""
    seal = _sha(json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii"))
    content = json.dumps({**record, "sha256": seal}, indent=2, allow_nan=False) + "\n"
    return Manifest(content.encode("ascii"), seal)


@contextmanager
def lock_folder(folder: Path, tell: Callable[[str], None] | None = None) -> Iterator[None]:
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
            return _bank_of_record(place, record, seal)
        except FileNotFoundError as error:
            if k == TRIES - 1 or _manifest(place).seal == seal:
                raise _incomplete(place, error) from error
            # otherwise it has been replaced between two looks: look again
    raise AssertionError


def _bank_of_record(place: Path, record: Mapping[str, Any], seal: str) -> Bank:
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


class SealedRecord(NamedTuple):
    """What a manifest says, checked, and its seal."""

    record: dict[str, Any]
    seal: str


def _manifest(place: Path) -> SealedRecord:
    """What `bank.json` says, and its seal."""
    if not os.path.exists(place):
        raise BankError(f"there is no bank at {str(place)!r}; check the path.")
    path = place / MANIFEST
    if not place.is_dir() or not path.exists():
        raise BankError(
            f"{str(place)!r} is not a bank: it has no {MANIFEST}. Give the folder that `bank.save(folder)` made."
        )
    return _checked_record(place, path)


def _checked_record(place: Path, path: Path) -> SealedRecord:
    """What this manifest of the bank says, and its seal."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BankError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise _checksum_error(path) from error
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
        if seal != _seal_record(record).seal:
            raise _checksum_error(path)
    except (ValueError, RecursionError) as error:  # NaN, which JSON does not have
        raise _checksum_error(path) from error
    return SealedRecord(record, seal)


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
        raise _checksum_error(path)
    return pl.read_parquet(io.BytesIO(content))


def _checksum_error(path: Path) -> BankError:
    return BankError(
        f"{str(path)!r} has changed since the bank was saved: its checksum is wrong. Restore the bank from a copy, or "
        "calibrate again."
    )
