"""inspect_ai: `<date>_<task>_<id>.json`, and `.eval`, a zip of JSON members packed by deflate or zstd.

Scores are in `samples[].scores[scorer].value`; of an `.eval` file the summaries are read, which have them too. Epochs
are answers of their own. A run that did not end is read as far as it came, with a finding."""

from __future__ import annotations

import copy
import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spectral_irt.errors import Finding, ReadError
from spectral_irt.eval_logs.log import Log, Sample, laid_out, log_of, mapping, no_samples, number
from spectral_irt.reading.formats import File
from spectral_irt.reading.text_pieces import whole

NAME = "inspect_ai"
VERSIONS = (2, 3)
ZSTD = 93  # the number of this packing in zip files
# C is right, I and N (no answer) are wrong and P (partly) is one half, as in the program's own `value_to_float`.
LETTERS = {"C": 1.0, "I": 0.0, "N": 0.0, "P": 0.5, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
SEEN = 200  # letters of the question that are compared; summaries cut long ones


def is_ours(path: Path, head: bytes) -> bool:
    if path.suffix == ".eval":
        return True
    start = head[:4000]
    return path.suffix == ".json" and start.lstrip()[:1] == b"{" and b'"version"' in start[:200] and b'"eval"' in head


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    if file.path.suffix == ".eval":
        head, samples = _read_archive(file.path)
    else:
        head = json.loads(file.path.read_bytes())
        samples = mapping(head).get("samples") or []
    if not isinstance(head, dict) or not isinstance(samples, list):
        raise ReadError(f"{file.name} is not a log of {NAME}.")
    version = head.get("version")
    if version not in VERSIONS:
        versions = ", ".join(map(str, VERSIONS))
        raise ReadError(
            f"{file.name} is of version {version!r}; read are {versions}. Convert it (inspect log convert)."
        )
    run = mapping(head.get("eval"))
    if not isinstance(run.get("model"), str) or not isinstance(run.get("task"), str):
        raise ReadError(f"{file.name} does not say its task and model; it is not a whole log of {NAME}.")
    status = head.get("status")
    if not samples:
        ended = "ended with" if status else "has no"
        raise no_samples(file.path, f"the run {ended} status {status!r}. Run it again.")
    scored = []
    for k, record in enumerate(samples, start=1):
        with laid_out(f"{file.name}: sample {k:,}", NAME):
            if record.get("id") is None:
                raise KeyError("id")
            scores = _scores(record.get("scores") or {})
            epoch = int(record.get("epoch") or 1)
            scored.append(Sample(record["id"], scores, epoch, _hash(record), mapping(record.get("metadata"))))
    if not any(record.scores for record in scored):
        raise no_samples(file.path, "they were not scored. Score the log first (inspect score).")
    notes = _unfinished_run(file, status, run, samples)
    return [log_of(file, run["model"], run["task"], scored, attributes, notes=notes)]


def _unfinished_run(file: File, status: Any, run: dict[str, Any], samples: list[dict[str, Any]]) -> tuple[Finding, ...]:
    if status == "success":
        return ()
    epochs = mapping(run.get("config")).get("epochs") or 1
    ids = mapping(run.get("dataset")).get("sample_ids")
    meant = len(ids) * epochs if isinstance(ids, list) and isinstance(epochs, int) else None
    of_so_many = f" of {meant:,}" if meant else ""
    sentence = f"{file.name}: {run['model']} on {run['task']} did not end (status {status or 'unknown'})"
    remedy = "Run it again, or read the model's place with the samples in mind that it has not answered."
    return (
        Finding("unfinished_run", "warning", f"{sentence}: {len(samples):,}{of_so_many} samples are there.", remedy),
    )


def _scores(scores: dict[str, Any]) -> dict[str, float | None]:
    """Each scorer's number; a scorer with several values has a name for each."""
    out: dict[str, float | None] = {}
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(value, dict):
            out |= {f"{name}/{key}": _number(inner) for key, inner in value.items()}
        elif not isinstance(value, list):
            out[name] = _number(value)
    return out


def _number(value: Any) -> float | None:
    """As the program counts it: NaN is a sample that was not scored, and a text that it does not know is wrong."""
    if value is None or isinstance(value, bool | int | float):
        return None if value != value else number(value)
    text = str(value)
    value_of_text = LETTERS.get(text)
    if value_of_text is None and len(text) > 1:
        value_of_text = LETTERS.get(text.lower())
    if value_of_text is not None:
        return value_of_text
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _hash(record: dict[str, Any]) -> str:
    """The beginning of the question and the target: enough to see that two samples are not the same."""
    question = record.get("input")
    if isinstance(question, list):
        parts = [part.get("content") for part in question if isinstance(part, dict) and part.get("role") == "user"]
        question = next((part for part in parts if isinstance(part, str)), "")
    target = record.get("target")
    if not isinstance(target, list):
        target = [str(target)]
    text = json.dumps([str(question)[:SEEN], target])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _read_archive(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        start = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if start is None:
            raise ReadError(f"{path.name} has no header; it is not a log of {NAME}.")
        head = _member(archive, start)
        if "summaries.json" in names:
            return head, _member(archive, "summaries.json")
        journal = [name for name in names if name.startswith("_journal/summaries/")]
        journal.sort(key=lambda name: int(Path(name).stem))
        return head, [record for name in journal for record in _member(archive, name)]


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    info = copy.copy(archive.getinfo(name))
    file = Path(str(archive.filename)).name
    packed = info.compress_type == ZSTD  # which Python's zipfile does not unpack before version 3.14: taken as it is
    if packed:
        info.compress_type = zipfile.ZIP_STORED
        info.file_size = info.compress_size
        info.CRC = None  # type: ignore[assignment]  # that of what it unpacks to
    with archive.open(info) as opened:
        return json.loads(whole(opened, packed, file))
