"""inspect_ai: `<date>_<task>_<id>.json`, and `.eval`, a zip of JSON members packed by deflate or zstd.

Scores are in `samples[].scores[scorer].value`; of an `.eval` file the summaries are read, which have them too. C is 1,
I and N (no answer) are 0 and P (partly) is one half, as in the program's own `value_to_float`. Epochs are answers of
their own. A run that did not end is read as far as it came, with a finding.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.reading.files import File
from spectral_irt.responses.reading.harness.log import Log, no_samples, numbers, texts

NAME = "inspect_ai"
VERSIONS = (2, 3)
ZSTD = 93  # the number of this packing in zip files
LETTERS = {"C": 1.0, "I": 0.0, "N": 0.0, "P": 0.5, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
SEEN = 200  # letters of the question that are compared; summaries cut long ones


def is_ours(path: Path, head: bytes) -> bool:
    if path.suffix == ".eval":
        return True
    start = head[:4000]
    return path.suffix == ".json" and start.lstrip()[:1] == b"{" and b'"version"' in start[:200] and b'"eval"' in head


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    """The samples of a run."""
    head, samples = _zipped(file.path) if file.path.suffix == ".eval" else _plain(file.path)
    version = head.get("version")
    if version not in VERSIONS:
        raise ReadError(
            f"{file.name} is of version {version!r} of {NAME}'s logs, and those that are read are "
            f"{', '.join(map(str, VERSIONS))}. Convert it with a current {NAME} (inspect log convert)."
        )
    run = head.get("eval") or {}
    if not isinstance(run.get("model"), str) or not isinstance(run.get("task"), str):
        raise ReadError(f"{file.name} does not say its task and model; it is not a whole log of {NAME}.")
    status = head.get("status")
    if not samples:
        raise no_samples(file.path, f"the run {'ended with' if status else 'has no'} status {status!r}. Run it again.")
    scored = [_scores(one.get("scores")) for one in samples]
    names = list(dict.fromkeys(name for one in scored for name in one))
    if not names:
        raise no_samples(file.path, "they were not scored. Score the log first (inspect score).")
    known = [one.get("metadata") or {} for one in samples]
    for name in attributes:
        if not any(name in one for one in known):
            fields = dict.fromkeys(key for one in known for key in one)
            raise OptionError(f"{file.name}: no sample has {name!r} in its metadata, which has {listed(fields)}.")
    repeat = pl.Series([int(one.get("epoch") or 1) for one in samples], dtype=pl.Int64)
    return [
        Log(
            NAME,
            file.path,
            run["model"],
            run["task"],
            texts([one.get("id") for one in samples]),
            {name: numbers([one.get(name) for one in scored]) for name in names},
            repeat=repeat if (repeat > 1).any() else None,
            hash=texts([_hash(one) for one in samples]),
            attributes={name: texts([one.get(name) for one in known]) for name in attributes},
            notes=_unfinished(file, status, run, samples),
        )
    ]


def _unfinished(file: File, status: Any, run: dict[str, Any], samples: list[dict[str, Any]]) -> tuple[Finding, ...]:
    if status == "success":
        return ()
    config = run.get("config") or {}
    ids = (run.get("dataset") or {}).get("sample_ids")
    meant = len(ids) * int(config.get("epochs") or 1) if isinstance(ids, list) else None
    of = f" of {meant:,}" if meant else ""
    return (
        Finding(
            "unfinished_run",
            "warning",
            f"{file.name}: {run['model']} on {run['task']} did not end (status {status or 'unknown'}): "
            f"{len(samples):,}{of} "
            "samples are there.",
            "Run it again, or read the model's place with the samples in mind that it has not answered.",
        ),
    )


def _scores(scores: Any) -> dict[str, float | None]:
    """Each scorer's number; a scorer with several values has a name for each."""
    out: dict[str, float | None] = {}
    for name, score in (scores or {}).items():
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(value, dict):
            out |= {f"{name}/{key}": _number(inner) for key, inner in value.items()}
        elif not isinstance(value, list):
            out[name] = _number(value)
    return out


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, bool | int | float):
        return None if value is None else float(value)
    text = str(value)
    found = LETTERS.get(text, LETTERS.get(text.lower()) if len(text) > 1 else None)
    if found is not None:
        return found
    try:
        return float(text)
    except ValueError:
        return None


def _hash(one: dict[str, Any]) -> str:
    """The beginning of the question and the target: enough to see that two samples are not the same."""
    question = one.get("input")
    if isinstance(question, list):
        parts = [part.get("content") for part in question if isinstance(part, dict) and part.get("role") == "user"]
        question = next((part for part in parts if isinstance(part, str)), "")
    target = one.get("target")
    text = json.dumps([str(question)[:SEEN], target if isinstance(target, list) else [str(target)]])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# ------------------------------------------------------------------------------------- the two kinds of file


def _plain(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        log = json.loads(path.read_bytes())
    except ValueError as error:
        raise ReadError(
            f"{path.name} is not complete JSON ({error}): the run was stopped, or the copy was cut off."
        ) from None
    if not isinstance(log, dict):
        raise ReadError(f"{path.name} is not a log of {NAME}.")
    return log, [one for one in log.get("samples") or [] if isinstance(one, dict)]


def _zipped(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if "header.json" in names:
                head = _member(archive, "header.json")
            elif "_journal/start.json" in names:
                head = _member(archive, "_journal/start.json")
            else:
                raise ReadError(f"{path.name} has no header; it is not a log of {NAME}.")
            if "summaries.json" in names:
                return head, _member(archive, "summaries.json")
            journal = sorted(
                (name for name in names if name.startswith("_journal/summaries/")),
                key=lambda name: int(Path(name).stem),
            )
            return head, [one for name in journal for one in _member(archive, name)]
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        raise ReadError(
            f"{path.name} is not a complete .eval file ({error}): the run was stopped, or the copy was cut off. Copy "
            "it "
            "again, or recover it with inspect log recover."
        ) from None


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    info = archive.getinfo(name)
    if info.compress_type != ZSTD:
        return json.loads(archive.read(info))
    return json.loads(_zstd(_packed(archive, info)))


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member as they are in the file; Python's zipfile does not unpack zstd before version 3.14."""
    file = archive.fp
    assert file is not None
    file.seek(info.header_offset)
    start = file.read(30)
    if start[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile("a member is not where the directory says")
    skip = int.from_bytes(start[26:28], "little") + int.from_bytes(start[28:30], "little")
    file.seek(info.header_offset + 30 + skip)
    return file.read(info.compress_size)


def _zstd(packed: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise ReadError(
            "this .eval file is packed by zstd, which needs the package zstandard: pip install 'spectral-irt[logs]'; "
            "or "
            "write the log as JSON (inspect log convert --to json)."
        ) from None
    try:
        unpacked: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
        return unpacked
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(str(error)) from None
