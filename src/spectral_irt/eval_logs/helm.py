"""HELM: a folder for each run with `per_instance_stats.json` and `run_spec.json`.

Which statistic says "correct" depends on the scenario, so it has to be named where there are several. Trials are
answers of their own. Perturbed versions of an instance are left out unless they are asked for, and then samples of
their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from spectral_irt.data.finding import Finding
from spectral_irt.errors import ReadError
from spectral_irt.eval_logs.log import Log, laid_out, mapping, no_samples, numbers, texts, whole_json
from spectral_irt.reading.formats import File

NAME = "HELM"
STATS, SPEC = "per_instance_stats.json", "run_spec.json"
# What else HELM notes of every instance: nothing of it says whether the answer is right.
ABOUT = re.compile(
    r"num_|finish_reason|inference_|training_|batch_size|prompt_truncated|max_prob|logprob|perplexity|bits_per_byte|"
    r"predicted_index|estimated_|.*_tokens$"
)


def is_ours(path: Path, head: bytes) -> bool:
    return path.name == STATS


def read(file: File, attributes: Sequence[str] = (), *, perturbed: bool = False) -> list[Log]:
    """The instances of a run."""
    beside = file.path.parent / SPEC
    if not beside.exists():
        raise ReadError(
            f"{file.path} needs {SPEC} beside it, which says the model and the scenario; it is not there. Copy the "
            "whole folder of the run."
        )
    spec, stats = whole_json(beside, str(beside)), whole_json(file.path, str(file.path))
    with laid_out(f"{SPEC} beside {file.path}", NAME):
        model = str(spec["adapter_spec"].get("model") or spec["adapter_spec"]["model_deployment"])
        benchmark = _scenario(str(spec["name"]))
    rows = []
    for k, one in enumerate(stats, start=1):
        with laid_out(f"{file.path}: entry {k:,}", NAME):
            rows.append(_row(one))
    changed = sum(perturbation != "" for _, perturbation, _, _ in rows)
    notes: tuple[Finding, ...] = ()
    if changed and not perturbed:
        rows = [row for row in rows if not row[1]]
        sentence = f"{model} on {benchmark}: {changed:,} answers to perturbed versions of instances were left out."
        remedy = "Say `perturbed=True` to count them as samples of their own."
        notes = (Finding("perturbed_left_out", "note", sentence, remedy),)
    if not rows:
        raise no_samples(file.path, "the run has no instances.")
    names = [name for name in dict.fromkeys(name for row in rows for name in row[3]) if not ABOUT.match(name)]
    if not names:
        raise no_samples(file.path, "no statistic says whether an answer is right.")
    known = {"scenario": benchmark.split(":")[0], **mapping(mapping(spec.get("scenario_spec")).get("args"))}
    repeat = pl.Series([trial + 1 for _, _, trial, _ in rows], dtype=pl.Int64)
    return [
        Log(
            NAME,
            file.path,
            model,
            benchmark,
            texts([sample + (f"~{perturbation}" if perturbation else "") for sample, perturbation, _, _ in rows]),
            {name: numbers([row[3].get(name) for row in rows]) for name in names},
            repeat=repeat if (repeat > 1).any() else None,
            attributes={name: texts([known.get(name)] * len(rows)) for name in attributes},
            notes=notes,
        )
    ]


def _row(one: dict[str, Any]) -> tuple[str, str, int, dict[str, float]]:
    """Instance, perturbation, trial, and the value of each statistic."""
    perturbation = one.get("perturbation")
    values: dict[str, float] = {}
    for stat in one["stats"]:
        name, count = stat["name"], stat.get("count", 1)
        if not count or "sum" not in stat:
            continue
        values.setdefault(str(name["name"]), float(stat["sum"]) / count)
    return str(one["instance_id"]), _said(perturbation), int(one.get("train_trial_index", 0)), values


def _said(perturbation: Any) -> str:
    """A perturbation's name, and how much of it."""
    if not perturbation:
        return ""
    plain = {"name", "robustness", "fairness", "computed_on"}
    more = ",".join(f"{key}={value}" for key, value in perturbation.items() if key not in plain and value is not None)
    return f"{perturbation['name']}({more})" if more else str(perturbation["name"])


def _scenario(name: str) -> str:
    """The name of a run without its model.

    >>> _scenario("mmlu:subject=philosophy,method=multiple_choice_joint,model=openai_gpt2")
    'mmlu:subject=philosophy,method=multiple_choice_joint'
    >>> _scenario("narrative_qa:model=openai_gpt2")
    'narrative_qa'
    """
    head, colon, rest = name.partition(":")
    kept = [part for part in rest.split(",") if part and not part.startswith(("model=", "model_deployment="))]
    return head + (colon + ",".join(kept) if kept else "")
