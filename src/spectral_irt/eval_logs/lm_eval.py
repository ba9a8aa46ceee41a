"""lm-evaluation-harness: `<model>/samples_<task>_<date>.jsonl`, a line for each sample and filter.

The model is the name of the folder, or what `results_<date>.json` beside the file says. The hash of the document is
compared between models; that of the prompt is not, since models may be given different templates."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectral_irt.errors import ReadError
from spectral_irt.eval_logs.log import VARIANT, Log, Sample, log_of, mapping, number, objects
from spectral_irt.reading.formats import File
from spectral_irt.text import listed

NAME = "lm-evaluation-harness"
FILE_NAME = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl(\.gz|\.zst)?")
OURS = ["doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"]  # fields that are no metrics
OURS += ["doc_hash", "prompt_hash", "target_hash"]
NO_FILTER = "none"


def is_ours(path: Path, head: bytes) -> bool:
    ours = FILE_NAME.fullmatch(path.name) is not None or (b'"filtered_resps"' in head and b'"arguments"' in head)
    return ours and b'"doc_id"' in head


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    """The samples of a task; each filter's scores under a name of their own where there are several."""
    names: list[str] = []
    runs = Counter[tuple[str, str]]()  # of a sample under a filter
    samples: dict[tuple[str, int], Sample] = {}
    for line, record in objects(file):
        names = names or _metrics(file, record)
        doc = mapping(record.get("doc"))
        if record.get("doc_id") is None:
            raise ReadError(f"{file.name}: line {line:,} has no doc_id; it is not a sample of {NAME}.")
        which = str(record["doc_id"]), str(record.get("filter") or NO_FILTER)
        runs[which] += 1
        about = {**{name: record[name] for name in attributes if name in record}, **doc} if attributes else {}
        new = Sample(which[0], {}, hash=record.get("doc_hash"), about=about)
        scores: Any = samples.setdefault((which[0], runs[which]), new).scores
        for name in names:
            value = record.get(name)
            if not isinstance(value, bool | int | float | None):
                raise ReadError(f"{file.name}: line {line:,} has no number for {name!r} but {str(value)[:40]!r}.")
            scores[f"{name}{VARIANT}{which[1]}"] = number(value)
    match = FILE_NAME.fullmatch(file.path.name)
    task = match["task"] if match else file.path.name.split(".")[0].removeprefix("samples_")
    log = log_of(file, model_of(file.path), task, list(samples.values()), attributes)
    scored = {name: values for name, values in log.scores.items() if values.count()} or log.scores
    if len({filter for _, filter in runs}) == 1:
        scored = {name.rpartition(VARIANT)[0]: values for name, values in scored.items()}
    return [replace(log, scores=scored)]


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
            f"{file.name}: no metric of {listed(names)} has a number for each sample. Evaluate with one such as acc."
        )
    return scalar
