"""lm-evaluation-harness: `<model>/samples_<task>_<date>.jsonl`, a line for each sample and filter.

A line has `doc_id`, `doc`, `filter`, `metrics` (names), `doc_hash`, and a field for each metric. The model is the name
of the folder, or what `results_<date>.json` beside the file says. The hash of the document is compared between models;
that of the prompt is not, since models may be given different templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.eval_logs.log import VARIANT, Log, mapping, number, numbers, objects, texts
from spectral_irt.reading.formats import File

NAME = "lm-evaluation-harness"
FILE_NAME = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl(\.gz|\.zst)?")
OURS = (  # fields that are no metrics
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"),
    *("doc_hash", "prompt_hash", "target_hash"),
)
MOST_BRACKETS = 500
RUN = "run"  # 0 for a sample's first line under a filter, 1 for the second


def is_ours(path: Path, head: bytes) -> bool:
    if FILE_NAME.fullmatch(path.name) and b'"doc_id"' in head:
        return True
    return b'"doc_id"' in head and b'"filtered_resps"' in head and b'"arguments"' in head


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    """The samples of a task; each filter's scores under a name of their own where there are several."""
    first = next(objects(file), None)
    if first is None:
        raise ReadError(f"{file.name} holds no sample; the run was probably stopped before its first. Run it again.")
    names = _metrics(file, first[1])
    doc = mapping(first[1].get("doc"))
    missing = [name for name in attributes if name not in doc and name not in first[1]]
    if missing:
        known = [name for name, value in doc.items() if isinstance(value, str | int)]
        raise OptionError(f"{file.name}: the documents have no field {listed(missing)}; they have {listed(known)}.")
    frame = _quickly(file, first[1], names, attributes)
    if frame is None:
        frame = _line_by_line(file, names, attributes)
    model = model_of(file.path)
    match = FILE_NAME.fullmatch(file.path.name)
    task = match["task"] if match else file.path.name.split(".")[0].removeprefix("samples_")
    filters = frame["filter"].unique(maintain_order=True).to_list()
    base, scores = frame, {name: frame[name] for name in names}
    if len(filters) > 1:  # a sample may have lines of some filters only
        frame = frame.with_columns(pl.int_range(pl.len()).over("doc_id", "filter").alias(RUN))
        base, scores = frame.unique(["doc_id", RUN], keep="first", maintain_order=True), {}
        for one in filters:
            part = frame.filter(pl.col("filter") == one)
            joined = base.select("doc_id", RUN).join(part, on=["doc_id", RUN], how="left", maintain_order="left")
            scores |= {f"{name}{VARIANT}{one}": joined[name] for name in names}
    scores = {name: values for name, values in scores.items() if values.count()} or scores
    return [
        Log(
            NAME,
            file.path,
            model,
            task,
            base["doc_id"],
            scores,
            hash=base["doc_hash"] if base["doc_hash"].count() else None,
            attributes={name: base[f"doc.{name}"] for name in attributes},
        )
    ]


def model_of(path: Path) -> str:
    """What the results of the same run call the model, else the folder."""
    match = FILE_NAME.fullmatch(path.name)
    if match:
        beside = path.parent / f"results_{match['date']}.json"
        try:
            name = json.loads(beside.read_text(encoding="utf-8")).get("model_name")
        except (OSError, ValueError, AttributeError):
            name = None
        if isinstance(name, str) and name:
            return name
    folder = path.absolute().parent.name
    if not folder:
        raise ReadError(f"{path.name} is in no folder that names its model; put it into one named after the model.")
    return folder


def _metrics(file: File, first: dict[str, Any]) -> list[str]:
    """The metrics with a number or truth value for each sample; those of whole corpora have none."""
    names = first.get("metrics")
    if not isinstance(names, list) or "filter" not in first:  # before version 0.4.3 the names were not listed
        names = [name for name in first if name not in OURS]
    scalar = [name for name in names if isinstance(name, str) and isinstance(first.get(name), bool | int | float)]
    if not scalar:
        raise ReadError(
            f"{file.name}: no metric of {listed(names)} has a number for each sample, so nothing says which answers "
            "are right. Evaluate with a metric such as acc or exact_match."
        )
    return scalar


def _quickly(file: File, first: dict[str, Any], names: list[str], attributes: Sequence[str]) -> pl.DataFrame | None:
    """By polars; None where a line is not like the first, which line by line is then told exactly."""
    if file.compression is not None or _may_be_deep(file.path):
        return None
    kinds = {name: pl.Boolean if isinstance(first[name], bool) else pl.Float64 for name in names}
    schema: dict[str, Any] = {"doc_id": pl.Int64, "filter": pl.String, "doc_hash": pl.String, **kinds}
    nested = [name for name in attributes if name in mapping(first.get("doc"))]
    if nested:
        schema["doc"] = pl.Struct(
            {name: pl.String if isinstance(first["doc"][name], str) else pl.Int64 for name in nested}
        )
    schema |= {name: pl.String for name in attributes if name not in nested}
    try:
        frame = pl.read_ndjson(file.path, schema=schema)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    if frame["doc_id"].null_count() or any(frame[name].null_count() for name in names):
        return None
    out = frame.select(
        pl.col("doc_id").cast(pl.String),
        pl.col("filter").fill_null("none"),
        "doc_hash",
        *(pl.col(name).cast(pl.Float64) for name in names),
    )
    of_doc = [frame["doc"].struct.field(name).cast(pl.String).alias(f"doc.{name}") for name in nested]
    return out.with_columns(*of_doc, *(frame[name].alias(f"doc.{name}") for name in attributes if name not in nested))


def _may_be_deep(path: Path) -> bool:
    """Whether a line has brackets enough to nest beyond what polars before 2.1 has room for: it ends the process."""
    with path.open("rb") as lines:
        return any(line.count(b"[") + line.count(b"{") > MOST_BRACKETS for line in lines)


def _line_by_line(file: File, names: list[str], attributes: Sequence[str]) -> pl.DataFrame:
    rows, fields = [], ("doc_id", "filter", "doc_hash")
    for line, one in objects(file):
        if one.get("doc_id") is None:
            raise ReadError(f"{file.name}: line {line:,} has no doc_id; it is not a sample of {NAME}.")
        scores = [_number(file, line, name, one.get(name)) for name in names]
        about = [mapping(one.get("doc")).get(name, one.get(name)) for name in attributes]
        rows.append([*(one.get(name) for name in fields), *scores, *about])
    labels = [*fields, *names, *(f"doc.{name}" for name in attributes)]
    kinds = [texts] * len(fields) + [numbers] * len(names) + [texts] * len(attributes)
    columns = zip(labels, kinds, zip(*rows, strict=True), strict=True)
    frame = pl.DataFrame({label: kind(values) for label, kind, values in columns})
    return frame.with_columns(pl.col("filter").fill_null("none"))


def _number(file: File, line: int, name: str, value: Any) -> float | None:
    if value is None or isinstance(value, bool | int | float):
        return None if value is None else number(value)
    raise ReadError(f"{file.name}: line {line:,} has no number for {name!r} but {str(value)[:40]!r}.")
