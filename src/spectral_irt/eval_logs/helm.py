"""HELM: a folder for each run with `per_instance_stats.json` and `run_spec.json`.

Which statistic says "correct" depends on the scenario, so it has to be named where there are several. Trials are
answers of their own. Perturbed versions of an instance are left out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spectral_irt.errors import Finding, ReadError
from spectral_irt.eval_logs.log import Log, Sample, laid_out, log_of, mapping, no_samples
from spectral_irt.reading.formats import File

NAME = "HELM"
STATS = "per_instance_stats.json"
SPEC = "run_spec.json"
# What else HELM notes of every instance: nothing of it says whether the answer is right.
ABOUT = re.compile(
    r"num_|finish_reason|inference_|training_|batch_size|prompt_truncated|max_prob|logprob|perplexity|bits_per_byte|"
    r"predicted_index|estimated_|.*_tokens$"
)


def is_ours(path: Path, head: bytes) -> bool:
    return path.name == STATS


def read(file: File, attributes: Sequence[str] = ()) -> list[Log]:
    beside = file.path.parent / SPEC
    if not beside.exists():
        raise ReadError(f"{file.path} needs {SPEC} beside it, with the model. Copy the whole folder of the run.")
    with laid_out(f"{SPEC} beside {file.path}", NAME):
        spec = json.loads(beside.read_bytes())
        model = str(spec["adapter_spec"].get("model") or spec["adapter_spec"]["model_deployment"])
        benchmark = _scenario(str(spec["name"]))
    arguments = mapping(mapping(spec.get("scenario_spec")).get("args"))
    # Attributes that this scenario does not have are None: scenarios have different ones.
    about_run = {**dict.fromkeys(attributes), "scenario": benchmark.split(":")[0], **arguments}
    samples = []
    changed = 0
    for k, instance in enumerate(json.loads(file.path.read_bytes()), start=1):
        with laid_out(f"{file.path}: entry {k:,}", NAME):
            if instance.get("perturbation"):
                changed += 1
                continue
            trial = int(instance.get("train_trial_index", 0)) + 1
            samples.append(Sample(str(instance["instance_id"]), _scores(instance), trial, about=about_run))
    sentence = f"{model} on {benchmark}: {changed:,} answers to perturbed versions of instances were left out."
    notes = (Finding("perturbed_left_out", "note", sentence),) if changed else ()
    if not samples:
        raise no_samples(file.path, "the run has no instances.")
    if not any(instance.scores for instance in samples):
        raise no_samples(file.path, "no statistic says whether an answer is right.")
    return [log_of(file, model, benchmark, samples, attributes, notes=notes)]


def _scores(instance: dict[str, Any]) -> dict[str, float | None]:
    """The value of each statistic that may say whether the answer is right."""
    values: dict[str, float | None] = {}
    for stat in instance["stats"]:
        name = str(stat["name"]["name"])
        count = stat.get("count", 1)
        if count and "sum" in stat and not ABOUT.match(name):
            values.setdefault(name, float(stat["sum"]) / count)
    return values


def _scenario(name: str) -> str:
    """The name of a run without its model.

    >>> _scenario("mmlu:subject=philosophy,method=multiple_choice_joint,model=openai_gpt2")
    'mmlu:subject=philosophy,method=multiple_choice_joint'
    >>> _scenario("narrative_qa:model=openai_gpt2")
    'narrative_qa'
    """
    scenario, _, arguments = name.partition(":")
    of_model = ("model=", "model_deployment=")
    of_scenario = [part for part in arguments.split(",") if part and not part.startswith(of_model)]
    return ":".join(filter(None, (scenario, ",".join(of_scenario))))
