"""Every Eval Ever: `<id>_samples.jsonl`, a line for each sample, by its instance-level schema; read and written.

`evaluation.is_correct` says whether an answer is right; `evaluation.score` can be asked for. A sample that counts in
several results has a line for each, told apart by `evaluation_result_id`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.responses.reading.files import File
from spectral_irt.responses.reading.harness.lm_eval import _objects
from spectral_irt.responses.reading.harness.log import VARIANT, Log, numbers, texts

NAME = "Every Eval Ever"
SCHEMA = "0.3.0"  # what is written
KNOWN = ("0.1.", "0.2.", "0.3.")
USUAL = "is_correct"


def is_ours(path: Path, head: bytes) -> bool:
    return b'"evaluation_name"' in head and b'"sample_id"' in head and b'"schema_version"' in head


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    """A log for each model and evaluation in the file, as a rule one."""
    found: dict[tuple[str, str], dict[str, dict[str, tuple[Any, ...]]]] = {}
    for line, one in _objects(file):
        version = str(one.get("schema_version"))
        if not version.startswith(KNOWN):
            raise ReadError(
                f"{file.name}: line {line:,} follows version {version!r} of the schema of {NAME}, and those that are "
                "read "
                f"are {', '.join(part + 'x' for part in KNOWN)}. Convert the file, or look for a newer spectral-irt."
            )
        try:
            key = str(one["model_id"]), str(one["evaluation_name"])
            sample, result = str(one["sample_id"]), str(one.get("evaluation_result_id") or "")
            correct, score = one["evaluation"]["is_correct"], one["evaluation"].get("score")
        except (KeyError, TypeError) as error:
            raise ReadError(
                f"{file.name}: line {line:,} has no {error}, which the schema of {NAME} requires."
            ) from None
        known = one.get("metadata") or {}
        if missing := [name for name in attributes if name not in known]:
            raise OptionError(
                f"{file.name}: line {line:,} has no {listed(missing)} in its metadata, which has {listed(known)}."
            )
        row = (one.get("sample_hash"), correct, score, *(known[name] for name in attributes))
        samples = found.setdefault(key, {}).setdefault(result, {})
        if sample in samples:
            raise ReadError(
                f"{file.name}: line {line:,} answers {key[1]}/{sample} once more for {key[0]}. A sample that was run "
                "several times needs an id for each run."
            )
        samples[sample] = row
    logs = []
    for (model, benchmark), results in found.items():
        ids = list(dict.fromkeys(sample for part in results.values() for sample in part))
        rows = {sample: part[sample] for part in results.values() for sample in part}
        scores = {}
        for result, part in results.items():
            under = f"{VARIANT}{result}" if len(results) > 1 else ""
            blank = (None,) * 3
            scores[f"{USUAL}{under}"] = numbers([_number(part.get(s, blank)[1]) for s in ids])
            scores[f"score{under}"] = numbers([_number(part.get(s, blank)[2]) for s in ids])
        hashes = texts([rows[s][0] for s in ids])
        logs.append(
            Log(
                NAME,
                file.path,
                model,
                benchmark,
                texts(ids),
                scores,
                hash=hashes if hashes.count() else None,
                usual=USUAL if len(results) == 1 else None,
                attributes={name: texts([rows[s][3 + k] for s in ids]) for k, name in enumerate(attributes)},
            )
        )
    if not logs:
        raise ReadError(f"{file.name} holds no sample.")
    return logs


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, bool | int | float) else None


def lines_of(rows: Iterable[tuple[str, str, str, bool]]) -> Iterable[str]:
    """Lines of a `_samples.jsonl` file for (model, benchmark, sample, right); texts that are not known stay empty."""
    for model, benchmark, sample, is_right in rows:
        one = {
            "schema_version": SCHEMA,
            "evaluation_id": f"{benchmark}/{model.replace('/', '_')}/spectral-irt",
            "model_id": model,
            "evaluation_name": benchmark,
            "sample_id": sample,
            "sample_hash": hashlib.sha256(f"{benchmark}/{sample}".encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": "", "reference": []},
            "output": {"raw": []},
            "answer_attribution": [],
            "evaluation": {"score": float(is_right), "is_correct": bool(is_right)},
        }
        yield json.dumps(one, ensure_ascii=False)
