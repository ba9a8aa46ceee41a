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
    return Bank.from_fit(SpectralRasch().fit(data), data).save(tmp_path / "bank")


def reseal(folder: Path, record: dict[str, Any]) -> None:
    record.pop("sha256", None)
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":")).encode("ascii")
    (folder / storage.MANIFEST).write_text(json.dumps({**record, "sha256": hashlib.sha256(canonical).hexdigest()}))


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


TABLES: dict[str, list[tuple[pl.Expr, str]]] = {
    "items": [
        (pl.lit(None, dtype=pl.String).alias("status"), "not as it should be"),
        (pl.col("n").cast(pl.String).alias("n"), "not as it should be"),
        (pl.lit(1).alias("more"), "not as it should be"),
    ],
    "categories": [
        (pl.lit(40, dtype=pl.Int32).alias("item"), "cannot be understood"),
        (pl.lit(None, dtype=pl.Float64).alias("prior_gradient"), "not as it should be"),
    ],
    "information": [(pl.lit(6, dtype=pl.Int32).alias("row"), "cannot be understood")],
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
