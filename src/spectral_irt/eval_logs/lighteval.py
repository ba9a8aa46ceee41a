"""lighteval: `details/<model>/<date>/details_<task>_<date>.parquet`, a row for each sample.

The scores are the fields of the nested column `metric` (`metrics` in older versions). A sample's id is that of its
document, or the number of its row where older versions wrote none; the question is what tells two samples apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from spectral_irt.errors import OptionError, ReadError
from spectral_irt.eval_logs.log import Log, no_samples
from spectral_irt.reading.formats import File
from spectral_irt.text import listed

NAME = "lighteval"
DATE = r"\d{4}-\d\d-\d\dT[\d.:_-]+"
FILE_NAME = re.compile(rf"details_(?P<task>.+?)_(?P<date>{DATE})\.parquet")


def is_ours(path: Path, head: bytes) -> bool:
    return FILE_NAME.fullmatch(path.name) is not None


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    match = FILE_NAME.fullmatch(file.path.name)
    assert match is not None
    lazy = pl.scan_parquet(file.path, glob=False)
    schema = lazy.collect_schema()
    column = next((name for name in ("metric", "metrics") if isinstance(schema.get(name), pl.Struct)), None)
    if column is None:
        raise ReadError(f"{file.name} has no nested column 'metric' or 'metrics'; it has {listed(schema)}.")
    doc: dict[str, Any] = _fields(schema.get("doc"))
    names = [name for name, kind in _fields(schema[column]).items() if kind.is_numeric() or kind == pl.Boolean]
    if not names:
        raise no_samples(file.path, f"no metric has a number for each sample: {listed(_fields(schema[column]))}.")
    if missing := [name for name in attributes if name not in doc and name not in schema]:
        raise OptionError(f"{file.name} has no {listed(missing)}; it has {listed([*doc, *schema])}.")
    fields = {f"metric.{name}": pl.col(column).struct.field(name).cast(pl.Float64) for name in names}
    inner = {name: pl.col("doc").struct.field(name).cast(pl.String) for name in doc}
    texts = {name: pl.col(name).cast(pl.String) for name in schema} | inner
    fields |= {f"attribute.{name}": texts[name] for name in attributes}
    if "id" in doc:
        fields["sample"] = texts["id"]
    if (question := inner.get("query", texts.get("example"))) is not None:
        fields["hash"] = question.hash(0)
    frame = lazy.select(**fields).collect()
    if not frame.height:
        raise no_samples(file.path, "the table is empty.")
    sample = frame["sample"] if "id" in doc else None
    if sample is None or sample.null_count() or sample.n_unique() < len(sample):
        sample = pl.Series(range(frame.height)).cast(pl.String)
    scores = {name: frame[f"metric.{name}"] for name in names}
    about = {name: frame[f"attribute.{name}"] for name in attributes}
    hashes = frame["hash"] if "hash" in fields else None
    model = model_of(file.path, match["date"])
    return [Log(file.path, model, match["task"], sample, scores, hash=hashes, attributes=about)]


def _fields(kind: Any) -> dict[str, Any]:
    if not isinstance(kind, pl.Struct):
        return {}
    return {field.name: field.dtype for field in kind.fields}


def model_of(path: Path, date: str) -> str:
    """The folders between `details` and the date; on a hub, the repository `details_<model>`.

    >>> model_of(Path("out/details/org/name/2025-01-01T00-00-00/details_gsm8k|5_x.parquet"), "2025-01-01T00-00-00")
    'org/name'
    """
    parts = path.parent.as_posix().split("/")
    if parts and re.fullmatch(DATE, parts[-1]):
        parts.pop()
    if "details" in parts:
        parts = parts[len(parts) - parts[::-1].index("details") :]
        if parts:
            return "/".join(parts)
    if not parts or parts[-1] in ("", "/", "."):
        raise ReadError(f"{path.name}: its folder does not say the model; it should be details/<model>/{date}/.")
    return parts[-1].removeprefix("details_")
