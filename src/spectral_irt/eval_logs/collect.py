"""Many logs as one table: models, prompts, right and wrong, and what is known of the prompts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Ints
from spectral_irt.data.finding import Finding
from spectral_irt.data.packing import DUPLICATES, Duplicates
from spectral_irt.data.responses import Responses
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError, check_option, listed
from spectral_irt.eval_logs.log import Log, chosen_metric, count_scores, read_logs, right, score_notes, written_by
from spectral_irt.reading.formats import File, expand, recognize

BENCHMARK = "benchmark"
PATTERNS: tuple[str, ...] = ("samples_*.jsonl", "*_samples.jsonl", "*.eval", "per_instance_stats.json")
PATTERNS += ("details_*.parquet", "????-??-??T*_*.json")  # how logs are named, to find them in a folder
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Collected:
    """Models (people) and prompts (items) of many logs."""

    responses: Responses  # repeats of a prompt are items of their own
    prompt: Ints  # which prompt each item is a run of
    attributes: dict[str, NDArray[Any]]  # of each item: its benchmark, and what else was asked for
    metrics: tuple[str, ...]  # that counted


def find_logs(paths: Iterable[Any]) -> list[File] | None:
    """The logs that paths, patterns and folders mean; None when they are tables, not logs of a harness."""
    files = []
    for one in paths:
        place = Path(os.path.expanduser(os.fspath(one)))
        if place.is_dir():
            every = [Path(folder, name) for folder, _, names in os.walk(place) for name in names]
            found = sorted(path for path in every if any(map(path.match, PATTERNS)) and path.is_file())
            if not found:
                raise ReadError(
                    f"no log of a known harness is in the folder {str(place)!r}: samples_*.jsonl, *_samples.jsonl, "
                    "*.eval, per_instance_stats.json, details_*.parquet. Name the files, if they are called otherwise."
                )
        else:
            found = [each.path for each in expand(one)]
        # Logs of different models are often named alike, in folders that name the model.
        files += [replace(recognize(path), called=str(path)) for path in found]
    unique = list({os.path.realpath(file.path): file for file in files}.values())
    others = [file.name for file in unique if written_by(file) is None]
    if others and len(others) < len(unique):
        raise ReadError(f"{others[0]} is not a log of a known harness, and other files are. Read them separately.")
    return None if others else unique


class _Run(NamedTuple):
    """What is kept of a log: the codes of its items, and 1, 0 or -1 (not scored) for each."""

    file: Path
    metric: str
    codes: Codes
    is_right: NDArray[np.int8]
    notes: tuple[Finding, ...]


def collect(
    files: Sequence[File],
    *,
    metric: Sequence[str] = (),
    threshold: float | None = None,
    duplicates: Duplicates = "error",
    attributes: Sequence[str] = (),
    progress: Callable[[float, str], None] | None = None,
) -> Collected:
    """The logs as one table. `metric` says right or wrong; of several names each log uses the first that it has. Scores
    above the `threshold` are right; without it they must be 0 or 1. `duplicates` is for two logs of a model on the same
    sample, in the order of the names of the files. `attributes` are fields of the samples to keep, as "subject"."""
    check_option("duplicates", duplicates, DUPLICATES)
    prompts = _Prompts([name for name in attributes if name != BENCHMARK])
    runs: dict[tuple[str, str], list[_Run]] = {}  # of a model on a benchmark
    unscored, nan = Counter[str](), Counter[str]()

    def read(file: File) -> list[tuple[Log, str, NDArray[np.int8]]]:
        logs = [(log, chosen_metric(log, metric)) for log in read_logs(file, prompts.attributes) or []]
        return [(log, name, right(log, name, threshold)) for log, name in logs]

    for k, found in enumerate(LocalEngine().map(read, files)):  # several at a time, in the order of the files
        if progress is not None:
            progress(k / len(files), f"reading {len(files):,} logs")
        for log, name, is_right in found:
            codes, extra = prompts.codes(log)
            before = runs.setdefault((log.model, log.benchmark), [])
            if duplicates == "error":
                _check_once(log, codes, extra, before)
            before.append(_Run(log.file, name, codes, is_right, log.notes))
            count_scores(log, name, unscored, nan)
    every = [run for several in runs.values() for run in several]
    slots: dict[str, list[Codes]] = {}
    for (model, _), several in runs.items():
        slots.setdefault(model, []).extend((2 * run.codes + run.is_right)[run.is_right >= 0] for run in several)
    models, items = np.array(list(slots), dtype=object), np.array(list(prompts.known), dtype=object)
    person = np.repeat(np.arange(len(models)), [sum(map(len, own)) for own in slots.values()])
    slot = np.concatenate([one for own in slots.values() for one in own])
    responses = replace(
        Responses.from_codes(person, slot >> 1, slot & 1, persons=models, items=items, duplicates=duplicates),
        source=f"{len(runs):,} logs" if len(runs) > 1 else every[0].file.name,
        notes=(*(note for run in every for note in run.notes), *score_notes(unscored, nan)),
        words=("models", "prompts"),
    )
    return Collected(responses, *prompts.about(), tuple(dict.fromkeys(run.metric for run in every)))


def _check_once(log: Log, codes: Codes, extra: int, before: Sequence[_Run]) -> None:
    """Refuse a model's second answer to a sample, in the same file or in another."""
    keep = "say `duplicates='first' or 'last'` to keep one answer of each."
    if extra:
        raise DuplicateResponseError(
            f"{str(log.file)!r} has {extra:,} samples of {log.benchmark} more than once: the run was probably "
            f"repeated into the same file. {keep.capitalize()}"
        )
    for other in before:
        if twice := int(np.isin(codes, other.codes).sum()):
            raise DuplicateResponseError(
                f"{log.model} answered {twice:,} samples of {log.benchmark} twice: in {str(other.file)!r} and in "
                f"{str(log.file)!r}. Name the files of one run only, or {keep}"
            )


@dataclass(slots=True)
class _Item:
    """A prompt, or a repeat of one; the log that its hash is from, and its attributes."""

    code: int
    prompt: str
    log: Log
    hash: str | None
    about: list[str | None]


@dataclass
class _Prompts:
    """Items by label, numbered as they first appear; and the last log of every benchmark, with its codes."""

    attributes: Sequence[str]
    known: dict[str, _Item] = field(default_factory=dict)
    last: dict[str, tuple[Log, Codes, int]] = field(default_factory=dict)

    def codes(self, log: Log) -> tuple[Codes, int]:
        """The code of every sample, and how many of them come once more."""
        if not self.attributes and log.benchmark in self.last:
            other, codes, extra = self.last[log.benchmark]
            if _same_samples(other, log):  # as in most logs, which then need no look at each
                return codes, extra
        labels = log.items().to_list()
        shared = labels if log.repeat is None else log.prompts().to_list()
        hashes = [None] * len(labels) if log.hash is None else log.hash.to_list()
        fields = [log.attributes[name].to_list() for name in self.attributes]
        codes, clash = np.empty(len(labels), dtype=np.int32), {}
        for k, (label, prompt, hash, *about) in enumerate(zip(labels, shared, hashes, *fields, strict=True)):
            one = self.known.get(label)
            if one is None:
                one = self.known[label] = _Item(len(self.known), prompt, log, hash, about)
            elif hash is not None and one.hash is None:
                one.hash, one.log = hash, log
            elif hash is not None and one.hash != hash:
                clash[label] = one.log
            codes[k] = one.code
        if clash:
            first = next(iter(clash.values()))
            raise ReadError(
                f"{len(clash):,} of {len(codes):,} samples of {log.benchmark} have another hash in {str(log.file)!r} "
                f"({log.model}) than in {str(first.file)!r} ({first.model}), so they are not the same prompts: "
                f"{listed(clash)}. Use logs of one version of the benchmark."
            )
        self.last[log.benchmark] = log, codes, len(codes) - len(np.unique(codes))
        return self.last[log.benchmark][1:]

    def about(self) -> tuple[Ints, dict[str, NDArray[Any]]]:
        """Which prompt each item is a run of, and the attributes of each."""
        every, number = self.known.values(), dict[str, int]()
        prompt = np.array([number.setdefault(one.prompt, len(number)) for one in every])
        about = {BENCHMARK: np.array([one.log.benchmark for one in every], dtype=object)}
        for k, name in enumerate(self.attributes):
            about[name] = np.array([one.about[k] or "" for one in every], dtype=object)
            if not any(about[name]):
                raise OptionError(f"no sample has {name!r}; name a field that the logs have.")
        return prompt, about


def _same_samples(one: Log, other: Log) -> bool:
    """Whether two logs have the same samples in the same order, with the same hashes where both have some."""
    hashed = one.hash is not None and other.hash is not None
    if (one.repeat is None) != (other.repeat is None) or not one.sample.equals(other.sample):
        return False
    pairs = [(one.repeat, other.repeat), *([(one.hash, other.hash)] if hashed else [])]
    return all(mine is None or mine.equals(theirs) for mine, theirs in pairs)  # type: ignore[arg-type]
