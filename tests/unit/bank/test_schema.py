"""Banks that somebody has edited and sealed again, or made up: refused in a sentence, whatever is in them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.bank import Bank, storage
from spectral_irt.errors import BankError, OutputError

pytestmark = pytest.mark.slow  # many short ones: seconds together


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = simulate.rasch(200, 6, seed=1).responses
    return Bank.from_fit(SpectralRasch().fit(data), data, b"a secret of sixteen bytes or more").save(tmp_path / "bank")


def reseal(folder: Path, record: dict[str, Any]) -> None:
    record.pop("sha256", None)
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":")).encode("ascii")
    (folder / storage.MANIFEST).write_text(json.dumps({**record, "sha256": hashlib.sha256(canonical).hexdigest()}))


def change(folder: Path, path: str, value: Any) -> None:
    record = json.loads((folder / storage.MANIFEST).read_text())
    *steps, last = path.split(".")
    place: Any = record
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    reseal(folder, record)


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_a_deeply_nested_manifest(folder: Path, depth: int) -> None:
    text = (folder / storage.MANIFEST).read_text().rstrip().removesuffix("}")
    (folder / storage.MANIFEST).write_text(text + ', "x": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(BankError, match=r"checksum is wrong"):
        Bank.load(folder)
    (folder / storage.MANIFEST).write_text("[" * depth + "]" * depth)
    with pytest.raises(BankError, match=r"checksum is wrong|not a bank"):
        Bank.load(folder)
    with pytest.raises(OutputError, match="not a bank"):
        storage.save(Bank.load(_other(folder)), folder)


def _other(folder: Path) -> Path:
    data = simulate.rasch(200, 6, seed=2).responses
    return Bank.from_fit(SpectralRasch().fit(data), data).save(folder.parent / "other")


LIES = {
    "scale.unit": [0, -1, "1", None, True, 10**400],
    "scale": [{}, [], {"mean": 0, "unit": 1, "color": 3}],
    "prior": [{}, {"mean": 0, "precision": 1}],
    "prior.precision": [-1, "much"],
    "population": [{"mean": 0, "sd": 0, "persons": 5}, {"mean": 0}, "everybody"],
    "population.sd": [0, -1],
    "settings": [{"threshold": [1]}, [1], None],
    "estimator": [5, None],
    "data": [{}, [5], [{"digest": "x"}]],
    "data.0.persons": [-1, 1.5, "400", 10**30],
    "findings": ["none", [{"code": "a"}]],
    "findings.0.severity": ["fatal"],
    "counts.items": [7],
    "counts.responses": [1],
    "tables": [{}, [], {"items": {"file": 5, "sha256": "x"}}, {"fire": {"file": "x", "sha256": "y"}}],
    "salt_check": [None, 5],
    "format_version": [True, "2", 0, 3, 5.0],
}


@pytest.mark.parametrize("path", LIES)
def test_a_resealed_manifest_that_lies(folder: Path, path: str) -> None:
    before = (folder / storage.MANIFEST).read_bytes()
    if path.startswith("findings.0"):
        change(folder, "findings", [{"code": "a", "severity": "note", "sentence": "b", "remedy": "", "items": []}])
        Bank.load(folder)
        before = (folder / storage.MANIFEST).read_bytes()
    for value in LIES[path]:
        (folder / storage.MANIFEST).write_bytes(before)
        change(folder, path, value)
        with pytest.raises(BankError, match=r"Restore it from a copy|format version") as caught:
            Bank.load(folder)
        assert len(str(caught.value)) < 500
        assert "cannot be understood" not in str(caught.value)  # foreseen, and said in words


TABLES: dict[str, list[tuple[pl.Expr, str]]] = {
    "items": [
        ((pl.col("n") * 0).alias("n"), "another number of items or responses"),
        (pl.lit(None, dtype=pl.String).alias("status"), "lacks values"),
        (pl.lit('"q"').alias("label"), "the same item more than once"),
        (pl.col("n").cast(pl.String).alias("n"), "other columns"),
        (pl.lit(1).alias("more"), "other columns"),
    ],
    "categories": [
        ((pl.col("category") * 2).cast(pl.Int32).alias("category"), "not numbered from 0"),
        (pl.lit(40, dtype=pl.Int32).alias("item"), "items that it does not have"),
        (pl.lit(None, dtype=pl.Float64).alias("prior_gradient"), "lacks values"),
    ],
    "persons": [(pl.col("person").cast(pl.Float64).alias("person"), "other columns")],
    "information": [
        (pl.lit(6, dtype=pl.Int32).alias("row"), "impossible entries"),
        (pl.lit(-1, dtype=pl.Int32).alias("column"), "impossible entries"),
        (pl.lit(float("inf")).alias("value"), "impossible entries"),
    ],
}


@pytest.mark.parametrize(("table", "number"), [(name, k) for name, lies in TABLES.items() for k in range(len(lies))])
def test_a_resealed_table_that_lies(folder: Path, table: str, number: int) -> None:
    lie, says = TABLES[table][number]
    record = json.loads((folder / storage.MANIFEST).read_text())
    path = folder / record["tables"][table]["file"]
    pl.read_parquet(path).with_columns(lie).write_parquet(path)
    record["tables"][table]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    reseal(folder, record)
    with pytest.raises(BankError, match=says):
        Bank.load(folder)


@pytest.mark.parametrize("seed", range(5))
def test_a_table_that_is_no_table(folder: Path, seed: int) -> None:
    record = json.loads((folder / storage.MANIFEST).read_text())
    path = folder / record["tables"]["items"]["file"]
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for where in rng.integers(0, len(content), 20):
        content[where] = rng.integers(0, 256)
    path.write_bytes(content if seed else b"PAR1 nothing PAR1")
    record["tables"]["items"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    reseal(folder, record)
    with pytest.raises(BankError):
        Bank.load(folder)
