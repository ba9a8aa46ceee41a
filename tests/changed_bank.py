"""Banks for tests: of answers; with some of their fields changed, wherever they keep them; with changed files."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from spectral_irt import SpectralRasch
from spectral_irt.bank import Bank
from spectral_irt.bank.evidence import Evidence
from spectral_irt.calibration import Calibration

OF_EVIDENCE = {each.name for each in fields(Evidence)}
OF_CALIBRATION = {each.name for each in fields(Calibration)}


def bank_of(responses: Any, **options: Any) -> Bank:
    return Bank.from_fit(SpectralRasch(**options).fit(responses), responses)


def changed(bank: Bank, **changes: Any) -> Bank:
    evidence = {name: value for name, value in changes.items() if name in OF_EVIDENCE}
    calibration = {name: value for name, value in changes.items() if name in OF_CALIBRATION}
    rest = {name: value for name, value in changes.items() if name not in OF_EVIDENCE | OF_CALIBRATION}
    made, kept = bank.calibration.replace(**calibration), replace(bank.evidence, **evidence)
    return replace(bank, calibration=made, evidence=kept, **rest)


def resealed(folder: Path, change: Callable[[dict[str, Any], dict[str, pl.DataFrame]], None]) -> None:
    """Change a bank on disk, its record and its tables by name, and make every checksum right again."""
    record = json.loads((folder / "bank.json").read_text())
    record.pop("sha256")
    tables = {name: pl.read_parquet(folder / entry["file"]) for name, entry in record["tables"].items()}
    change(record, tables)
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
        content = (folder / f"{name}.parquet").read_bytes()
        record["tables"][name] = {"file": f"{name}.parquet", "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    seal = hashlib.sha256(text.encode("ascii")).hexdigest()
    (folder / "bank.json").write_text(json.dumps({**record, "sha256": seal}))
