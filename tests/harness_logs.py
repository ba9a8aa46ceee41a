"""Small logs in the layouts that the harnesses write, for tests."""

import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

DATE = "2026-01-21T03-44-18.458309"


def lm_eval(
    folder: Path,
    model: str,
    scores: Mapping[str, Sequence[Any]],
    *,
    task: str = "arc_easy",
    filters: Sequence[str] = ("none",),
    hashes: Sequence[str] | None = None,
    subjects: Sequence[str] | None = None,
) -> Path:
    path = folder / model / f"samples_{task}_{DATE}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    n = len(next(iter(scores.values())))
    with path.open("w") as file:
        for one in filters:
            for k in range(n):
                doc = {"question": f"What is {k}?", "subject": "" if subjects is None else subjects[k]}
                line = {
                    "doc_id": k,
                    "doc": doc,
                    "target": "3",
                    "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": ["\n"]}}},
                    "resps": [["3"]],
                    "filtered_resps": ["3"],
                    "filter": one,
                    "metrics": list(scores),
                    "doc_hash": f"hash{k}" if hashes is None else hashes[k],
                    "prompt_hash": f"{model}{k}",
                    "target_hash": "t",
                } | {name: values[k] for name, values in scores.items()}
                file.write(json.dumps(line) + "\n")
    return path


def inspect_log(model: str, samples: Sequence[Mapping[str, Any]], *, status: str = "success") -> dict[str, Any]:
    ids = sorted({one["id"] for one in samples}, key=str)
    spec = {
        "task": "arc",
        "model": model,
        "dataset": {"name": "arc", "samples": len(ids), "sample_ids": ids},
        "config": {"epochs": 1},
    }
    return {"version": 2, "status": status, "eval": spec, "plan": {}, "samples": list(samples)}


def inspect_sample(number: Any, value: Any, *, epoch: int = 1, subject: str = "") -> dict[str, Any]:
    return {
        "id": number,
        "epoch": epoch,
        "input": f"What is {number}?",
        "target": "A",
        "metadata": {"subject": subject},
        "scores": {"choice": {"value": value, "answer": "A"}},
    }


def inspect_eval(path: Path, log: Mapping[str, Any], *, journal_only: bool = False, zstd: bool = False) -> Path:
    """An `.eval` file; with `journal_only` one whose run did not end."""
    head = {name: log[name] for name in ("version", "status", "eval", "plan")}
    start = {name: log[name] for name in ("version", "eval", "plan")}
    members = {"_journal/start.json": start, "_journal/summaries/1.json": log["samples"]}
    if not journal_only:
        members |= {"summaries.json": log["samples"], "header.json": head}
    texts = {name: json.dumps(value).encode() for name, value in members.items()}
    if zstd:
        path.write_bytes(_zipped_by_zstd(texts))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(name, text)
    return path


def _zipped_by_zstd(texts: Mapping[str, bytes]) -> bytes:
    """A zip whose members are packed by method 93, which Python's zipfile writes only since version 3.14."""
    import zstandard

    out, directory = b"", b""
    for name, text in texts.items():
        packed = zstandard.ZstdCompressor().compress(text)
        sizes = struct.pack("<HHIIIHH", 0, 0x21, zlib.crc32(text), len(packed), len(text), len(name), 0)
        directory += (
            struct.pack("<4sHHHH", b"PK\x01\x02", 63, 63, 0, 93) + sizes + struct.pack("<HHHII", 0, 0, 0, 0, len(out))
        )
        directory += name.encode()
        out += struct.pack("<4sHHH", b"PK\x03\x04", 63, 0, 93) + sizes + name.encode() + packed
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, len(texts), len(texts), len(directory), len(out), 0)
    return out + directory + end


def helm(folder: Path, model: str, rows: Sequence[tuple[Any, ...]]) -> Path:
    """A run's folder; rows of (instance, trial, statistics, perturbation)."""
    name = f"mmlu:subject=law,model={model}"
    run = folder / name
    run.mkdir(parents=True)
    spec = {
        "name": name,
        "scenario_spec": {
            "class_name": "helm.benchmark.scenarios.mmlu_scenario.MMLUScenario",
            "args": {"subject": "law"},
        },
        "adapter_spec": {"method": "multiple_choice_joint", "model": model},
        "metric_specs": [],
        "groups": ["mmlu"],
    }
    (run / "run_spec.json").write_text(json.dumps(spec))
    stats = [
        {
            "instance_id": instance,
            **({} if perturbation is None else {"perturbation": perturbation}),
            "train_trial_index": trial,
            "stats": [
                {"name": {"name": key, "split": "test"}, "count": 1, "sum": value, "mean": value}
                for key, value in {"num_prompt_tokens": 300.0, **values}.items()
            ],
        }
        for instance, trial, values, perturbation in rows
    ]
    (run / "per_instance_stats.json").write_text(json.dumps(stats))
    return run / "per_instance_stats.json"


def lighteval(
    folder: Path, model: str, metrics: Mapping[str, Sequence[float]], *, task: str = "gsm8k|5", old: bool = False
) -> Path:
    date = "2025-11-05T14-43-47.148527"
    place = folder / "details" / model / date
    place.mkdir(parents=True, exist_ok=True)
    n = len(next(iter(metrics.values())))
    scores = [{name: values[k] for name, values in metrics.items()} for k in range(n)]
    if old:
        frame = pl.DataFrame(
            {"example": [f"What is {k}?" for k in range(n)], "predictions": [["x"]] * n, "metrics": scores}
        )
    else:
        docs = [{"query": f"What is {k}?", "id": str(k), "task_name": task, "choices": ["A", "B"]} for k in range(n)]
        frame = pl.DataFrame({"doc": docs, "model_response": [{"text": ["x"]}] * n, "metric": scores})
    path = place / f"details_{task}_{date}.parquet"
    frame.write_parquet(path)
    return path


def every_eval_ever(
    path: Path, model: str, rows: Sequence[tuple[Any, ...]], *, version: str = "0.3.0", result: str = "demo.bench"
) -> Path:
    with path.open("a") as file:
        for sample, correct, score in rows:
            line = {
                "schema_version": version,
                "evaluation_id": "demo/1",
                "model_id": model,
                "evaluation_name": "demo.bench",
                "evaluation_result_id": result,
                "sample_id": sample,
                "sample_hash": f"hash of {sample}",
                "interaction_type": "single_turn",
                "input": {"raw": "2 + 2?", "reference": ["4"]},
                "output": {"raw": ["4"]},
                "answer_attribution": [],
                "evaluation": {"score": score, "is_correct": correct},
                "metadata": {"subject": "sums"},
            }
            file.write(json.dumps(line) + "\n")
    return path
