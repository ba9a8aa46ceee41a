"""Every Eval Ever: `<id>_samples.jsonl`, a line for each sample, by its instance-level schema.

`evaluation.is_correct` says whether an answer is right; `evaluation.score` can be asked for. A sample that counts in
several results has a line for each, told apart by `evaluation_result_id`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectral_irt.errors import ReadError
from spectral_irt.eval_logs.log import VARIANT, Log, Sample, log_of, mapping, number, objects
from spectral_irt.reading.formats import File

NAME = "Every Eval Ever"
KNOWN = ("0.1.", "0.2.", "0.3.")
USUAL = "is_correct"


def is_ours(path: Path, head: bytes) -> bool:
    return b'"evaluation_name"' in head and b'"sample_id"' in head and b'"schema_version"' in head


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    """A log for each model and evaluation in the file, as a rule one."""
    samples_of_run: dict[tuple[str, str], dict[str, Sample]] = {}
    for line, record in objects(file):
        version = str(record.get("schema_version"))
        if not version.startswith(KNOWN):
            versions = ", ".join(f"{part}x" for part in KNOWN)
            raise ReadError(f"{file.name}: line {line:,} follows version {version!r} of {NAME}; read are {versions}.")
        try:
            key = str(record["model_id"]), str(record["evaluation_name"])
            sample = str(record["sample_id"])
            result = str(record.get("evaluation_result_id") or "")
            verdict = mapping(record["evaluation"])
            correct = verdict["is_correct"]
            score = verdict.get("score")
        except KeyError as error:
            raise ReadError(f"{file.name}: line {line:,} has no {error}, which {NAME} requires.") from None
        new = Sample(sample, {}, 1, record.get("sample_hash"), mapping(record.get("metadata")))
        scores: Any = samples_of_run.setdefault(key, {}).setdefault(sample, new).scores
        if USUAL + VARIANT + result in scores:
            raise ReadError(
                f"{file.name}: line {line:,} answers {key[1]}/{sample} once more for {key[0]}. A sample that was run "
                "several times needs an id for each run."
            )
        scores |= {USUAL + VARIANT + result: number(correct), f"score{VARIANT}{result}": number(score)}
    logs = []
    for key, samples in samples_of_run.items():
        log = log_of(file, *key, list(samples.values()), attributes)
        if len({name.partition(VARIANT)[2] for name in log.scores}) == 1:
            plain = {name.partition(VARIANT)[0]: values for name, values in log.scores.items()}
            log = replace(log, scores=plain, usual=USUAL)
        logs.append(log)
    return logs
