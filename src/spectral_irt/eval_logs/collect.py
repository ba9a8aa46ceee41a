"""Many logs as one table: models, prompts, right and wrong, and what is known of the prompts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data.block import Ints
from spectral_irt.data.finding import Finding
from spectral_irt.data.packing import DUPLICATES, Duplicates
from spectral_irt.data.responses import Responses
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError, check_option, listed
from spectral_irt.eval_logs.log import (
    Log,
    chosen_metric,
    count_scores,
    logs_in,
    read_logs,
    right,
    score_notes,
    written_by,
)
from spectral_irt.reading.formats import File, expand, recognize

PROMPTS_BY = ("id", "hash")
BENCHMARK = "benchmark"
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Collected:
    """Models (people) and prompts (items) of many logs.

    Attributes
    ----------
    responses : Responses
        Repeats of a prompt are items of their own.
    prompt : int array
        Which prompt each item is a run of.
    attributes : mapping of names to labels
        Of each item: its benchmark, and what else was asked for.
    metrics : tuple of str
        The metrics that counted.
    """

    responses: Responses
    prompt: Ints
    attributes: dict[str, NDArray[Any]]
    metrics: tuple[str, ...]


def find_logs(paths: Iterable[Any]) -> list[File] | None:
    """The logs that paths, patterns and folders mean; None when they are tables, not logs of a harness."""
    files = []
    for one in paths:
        place = Path(os.path.expanduser(os.fspath(one)))
        if place.is_dir():
            found = logs_in(place)
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
        raise ReadError(
            f"{others[0]} is not a log of a known harness, and other files are. Read those of one kind at a time."
        )
    return None if others else unique


def collect(
    files: Sequence[File],
    *,
    metric: Sequence[str] = (),
    threshold: float | None = None,
    duplicates: Duplicates = "error",
    prompts_by: str = "id",
    attributes: Sequence[str] = (),
    perturbed: bool = False,
    progress: Callable[[float, str], None] | None = None,
) -> Collected:
    """The logs as one table.

    Parameters
    ----------
    metric : names
        What says right or wrong; of several names each log takes the first that it has.
    threshold : float, optional
        Scores above it are right; without it they must be 0 or 1.
    duplicates : "error", "first" or "last"
        When two logs have the same model on the same sample; files are in the order of their names.
    prompts_by : "id" or "hash"
        What makes two samples the same: their id, with hashes compared where there are some; or the hash alone.
    attributes : names
        Fields of the samples to keep, such as "subject".
    perturbed : bool
        HELM: count perturbed versions of an instance as samples of their own.
    """
    check_option("duplicates", duplicates, DUPLICATES)
    check_option("prompts_by", prompts_by, PROMPTS_BY)
    own = [name for name in attributes if name != BENCHMARK]
    prompts = _Prompts(prompts_by, own)
    runs: dict[tuple[str, str], list[_Run]] = {}  # of a model on a benchmark
    unscored, nan = Counter[str](), Counter[str]()

    def read(file: File) -> list[tuple[Log, str, NDArray[np.int8]]]:
        logs = [(log, chosen_metric(log, metric)) for log in read_logs(file, own, perturbed=perturbed) or []]
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
    responses = replace(
        _packed(runs, prompts, duplicates),
        source=f"{len(runs):,} logs" if len(runs) > 1 else every[0].file.name,
        notes=(*(note for run in every for note in run.notes), *score_notes(unscored, nan)),
        words=("models", "prompts"),
    )
    return Collected(responses, *prompts.told(), tuple(dict.fromkeys(run.metric for run in every)))


class _Run(NamedTuple):
    """What is kept of a log: the codes of its items, and 1, 0 or -1 (not scored) for each."""

    file: Path
    metric: str
    codes: Codes
    is_right: NDArray[np.int8]
    notes: tuple[Finding, ...]


def _packed(runs: dict[tuple[str, str], list[_Run]], prompts: _Prompts, duplicates: Duplicates) -> Responses:
    by_model: dict[str, list[NDArray[np.int32]]] = {}
    for (model, _), several in runs.items():
        for run in several:
            there = run.is_right >= 0
            by_model.setdefault(model, []).append((2 * run.codes + run.is_right)[there])
    models, items = np.array(list(by_model), dtype=object), np.array(list(prompts.known), dtype=object)
    counts = [sum(map(len, slots)) for slots in by_model.values()]
    slots = np.concatenate([one for several in by_model.values() for one in several])
    person = np.repeat(np.arange(len(models)), counts)
    return Responses.from_codes(person, slots >> 1, slots & 1, persons=models, items=items, duplicates=duplicates)


def _check_once(log: Log, codes: Codes, extra: int, before: Sequence[_Run]) -> None:
    """Refuse a model's second answer to a sample, in the same file or in another."""
    if extra:
        raise DuplicateResponseError(
            f"{str(log.file)!r} has {extra:,} samples of {log.benchmark} more than once: the run was probably "
            "repeated into the same file. Say `duplicates='first' or 'last'` to keep one answer of each."
        )
    for other in before:
        if twice := int(np.isin(codes, other.codes).sum()):
            raise DuplicateResponseError(
                f"{log.model} answered {twice:,} samples of {log.benchmark} twice: in {str(other.file)!r} and in "
                f"{str(log.file)!r}. Name the files of one run only, or say `duplicates='first' or 'last'` to keep one "
                "answer of each."
            )


@dataclass(slots=True)
class _Item:
    """A prompt, or a repeat of one; the log that told its hash, and what was asked of it."""

    code: int
    prompt: str
    log: Log
    hash: str | None
    about: list[str | None]


@dataclass
class _Prompts:
    """Items by label, numbered as they first appear; and the last log of every benchmark, with its codes."""

    by: str
    attributes: Sequence[str]
    known: dict[str, _Item] = field(default_factory=dict)
    last: dict[str, tuple[Log, Codes, int]] = field(default_factory=dict)

    def codes(self, log: Log) -> tuple[Codes, int]:
        """The code of every sample, and how many of them come once more."""
        if self.by == "hash":
            if log.hash is None:
                raise ReadError(
                    f"{str(log.file)!r} ({log.harness}) has no hashes of its samples; leave out `prompts_by='hash'`."
                )
            log = replace(log, sample=log.hash.cast(pl.String).str.slice(0, 16))
        elif not self.attributes and log.benchmark in self.last:
            other, codes, extra = self.last[log.benchmark]
            if _same_samples(other, log):  # as in most logs, which then need no look at each
                return codes, extra
        labels = log.items().to_list()
        shared = labels if log.repeat is None else log.prompts().to_list()
        hashes = [None] * len(labels) if log.hash is None else log.hash.to_list()
        told = [log.attributes[name].to_list() for name in self.attributes]
        codes, clash = np.empty(len(labels), dtype=np.int32), {}
        for k, (label, prompt, hash, *about) in enumerate(zip(labels, shared, hashes, *told, strict=True)):
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
                f"{listed(clash)}. Use logs of one version of the benchmark, or say `prompts_by='hash'` to compare "
                "models on the prompts that have the same hash."
            )
        extra = len(codes) - len(np.unique(codes))
        if self.by == "id":
            self.last[log.benchmark] = log, codes, extra
        return codes, extra

    def told(self) -> tuple[Ints, dict[str, NDArray[Any]]]:
        """Which prompt each item is a run of, and the attributes of each."""
        number: dict[str, int] = {}
        prompt = np.array([number.setdefault(one.prompt, len(number)) for one in self.known.values()])
        about = {BENCHMARK: np.array([one.log.benchmark for one in self.known.values()], dtype=object)}
        for k, name in enumerate(self.attributes):
            about[name] = np.array([one.about[k] or "" for one in self.known.values()], dtype=object)
            if not any(about[name]):
                raise OptionError(f"no sample has {name!r}; name a field that the logs have.")
        return prompt, about


def _same_samples(one: Log, other: Log) -> bool:
    """Whether two logs have the same samples in the same order, with the same hashes where both have some."""
    if (one.repeat is None) != (other.repeat is None) or not one.sample.equals(other.sample):
        return False
    if one.repeat is not None and other.repeat is not None and not one.repeat.equals(other.repeat):
        return False
    return one.hash is None or other.hash is None or one.hash.equals(other.hash)
