"""Many logs as one table: models, prompts, right and wrong, and what is known of the prompts.

Each file is a `Log` by the reader of its harness (`log.py`); models are people, prompts items. Leaderboards call
`collect`.
"""

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

from spectral_irt.data.block import DUPLICATES, Duplicates, Ints
from spectral_irt.data.responses import Responses
from spectral_irt.engine import LocalEngine
from spectral_irt.errors import DuplicateResponseError, Finding, OptionError, ReadError, check_option
from spectral_irt.eval_logs.log import Log, chosen_metric, count_scores, read_logs, right, score_notes, written_by
from spectral_irt.files import input_paths
from spectral_irt.reading.formats import File, expand, recognize
from spectral_irt.reading.long_builder import LabelCodes
from spectral_irt.text import listed

BENCHMARK = "benchmark"
PATTERNS: tuple[str, ...] = ("samples_*.jsonl", "*_samples.jsonl", "*.eval", "per_instance_stats.json")
PATTERNS += ("details_*.parquet", "????-??-??T*_*.json")  # how logs are named, to find them in a folder
Codes = NDArray[np.int32]


class Collected(NamedTuple):
    """Models (people) and prompts (items) of many logs."""

    responses: Responses  # repeats of a prompt are items of their own
    prompt: Ints  # which prompt each item is a run of
    attributes: dict[str, NDArray[Any]]  # of each item: its benchmark, and what else was asked for
    metrics: tuple[str, ...]  # that counted


def log_files(paths: Iterable[Any]) -> list[File]:
    """The files that are read as logs: of a folder, those that are named as harnesses name them."""
    files: list[File] = []
    for path in paths:
        folder = Path(os.path.expanduser(os.fspath(path)))
        if not folder.is_dir():
            files += expand(path)
            continue
        logs = [inner for inner in input_paths(folder) if any(map(inner.match, PATTERNS))]
        if not logs:
            what = f"no log of a known harness is in the folder {str(folder)!r}: {', '.join(PATTERNS)}."
            raise ReadError(f"{what} Name the files, if they are called otherwise.")
        files += map(recognize, logs)
    return files


def find_logs(paths: Iterable[Any]) -> list[File] | None:
    """The logs that paths, patterns and folders mean; None when they are tables, not logs of a harness."""
    # Logs of different models are often named alike, in folders that name the model.
    files = []
    for file in log_files(paths):
        if file.name == file.path.name:
            file = replace(file, name=str(file.path))
        files.append(file)
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
    unscored = Counter[str]()
    nan = Counter[str]()

    def read(file: File) -> list[tuple[Log, str, NDArray[np.int8]]]:
        logs = [(log, chosen_metric(log, metric)) for log in read_logs(file, prompts.attributes) or []]
        return [(log, name, right(log, name, threshold)) for log, name in logs]

    for k, logs_of_file in enumerate(LocalEngine().map(read, files)):  # several at a time, in the order of the files
        if progress is not None:
            progress(k / len(files), f"reading {len(files):,} logs")
        for log, name, is_right in logs_of_file:
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
    models = np.array(list(slots), dtype=object)
    items = prompts.labels.labels().to_numpy()
    slots_of_models = [np.concatenate(parts) for parts in slots.values()]
    person = np.repeat(np.arange(len(models)), [len(slots_of_model) for slots_of_model in slots_of_models])
    slot = np.concatenate(slots_of_models)
    source = f"{len(runs):,} logs" if len(runs) > 1 else every[0].file.name
    responses = replace(
        Responses.from_codes(person, slot >> 1, slot & 1, persons=models, items=items, duplicates=duplicates),
        source=source,
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


@dataclass
class _Prompts:
    """Items by label, numbered as they first appear, with what is known of each."""

    attributes: Sequence[str]
    labels: LabelCodes = field(default_factory=LabelCodes)
    prompts: list[pl.Series] = field(default_factory=list)
    known: list[pl.DataFrame] = field(default_factory=list)
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # by code; 0: none
    hashed: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # the log that each hash is from
    logs: list[tuple[Path, str]] = field(default_factory=list)  # file and model

    def codes(self, log: Log) -> tuple[Codes, int]:
        """The code of every sample, and how many of them come once more."""
        codes, new = self.labels.codes(log.items())
        first = np.unique(codes, return_index=True)[1]
        fresh = first[codes[first] >= self.labels.size - len(new)]
        self.prompts.append(log.prompts().gather(fresh))
        benchmark = pl.repeat(log.benchmark, len(codes), eager=True)
        self.known.append(pl.DataFrame({BENCHMARK: benchmark, **log.attributes})[fresh])
        self.hashes = np.append(self.hashes, np.zeros(len(new), dtype=np.uint64))
        self.hashed = np.append(self.hashed, np.zeros(len(new), dtype=np.int64))
        self.logs.append((log.file, log.model))
        if log.hash is not None:
            hashes = np.where(log.hash.is_null().to_numpy(), np.uint64(0), log.hash.hash().to_numpy())
            is_first = self.hashes[codes] == 0
            self.hashes[codes[is_first]] = hashes[is_first]
            self.hashed[codes[is_first]] = len(self.logs) - 1
            clash = np.flatnonzero((hashes > 0) & (self.hashes[codes] != hashes))
            if len(clash):
                labels = log.items().gather(clash).unique(maintain_order=True)
                file, model = self.logs[self.hashed[codes[clash[0]]]]
                raise ReadError(
                    f"{len(labels):,} of {len(codes):,} samples of {log.benchmark} have another hash in "
                    f"{str(log.file)!r} ({log.model}) than in {str(file)!r} ({model}), so they are not the same "
                    f"prompts: {listed(labels)}. Use logs of one version of the benchmark."
                )
        return codes, len(codes) - len(first)

    def about(self) -> tuple[Ints, dict[str, NDArray[Any]]]:
        """Which prompt each item is a run of, and the attributes of each."""
        prompt = LabelCodes().codes(pl.concat(self.prompts))[0].astype(np.int64)
        about = {column.name: column.fill_null("").to_numpy() for column in pl.concat(self.known)}
        if empty := [name for name, values in about.items() if not values.any()]:
            raise OptionError(f"no sample has {listed(empty)}; name a field that the logs have.")
        return prompt, about
