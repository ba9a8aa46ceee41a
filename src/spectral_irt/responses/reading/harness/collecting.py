"""Many logs as one table: models, prompts, right and wrong, and what is known of the prompts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.engines import LocalEngine
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError, check_option, listed, option
from spectral_irt.responses.block import Ints
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.pack import DUPLICATES
from spectral_irt.responses.reading.expanding import expand
from spectral_irt.responses.reading.files import ENDINGS, File, recognize
from spectral_irt.responses.reading.harness.log import Log, chosen_metric, right
from spectral_irt.responses.reading.harness.recognizing import logs_in, written_by
from spectral_irt.responses.responses import Responses

PROMPTS_BY = ("id", "hash")
BENCHMARK = "benchmark"


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

    @property
    def repeated(self) -> bool:
        return len(np.unique(self.prompt)) < len(self.prompt)


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
                    "*.eval, "
                    "per_instance_stats.json, details_*.parquet. Name the files, if they are called otherwise."
                )
        else:
            found = [each.path for each in expand(one, ENDINGS)]
        # Logs of different models are often named alike, in folders that name the model.
        files += [replace(recognize(path), called=str(path)) for path in found]
    unique = list({os.path.realpath(file.path): file for file in files}.values())
    logs = [written_by(file) is not None for file in unique]
    if not any(logs):
        return None
    if not all(logs):
        other = next(file.name for file, log in zip(unique, logs, strict=True) if not log)
        raise ReadError(
            f"{other} is not a log of a known harness, and other files are. Read those of one kind at a time."
        )
    return unique


def collect(
    files: Sequence[File],
    *,
    metric: Sequence[str] = (),
    threshold: float | None = None,
    duplicates: str = "error",
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
    pool = _Pool(prompts_by, own)

    def read(file: File) -> list[tuple[Log, str, NDArray[np.int8]]]:
        module = written_by(file)
        assert module is not None
        more = {"perturbed": True} if perturbed and module.__name__.endswith("helm") else {}
        logs = [(log, chosen_metric(log, metric)) for log in module.read(file, own, **more)]
        return [(log, name, right(log, name, threshold)) for log, name in logs]

    for k, found in enumerate(LocalEngine().map(read, files)):  # several at a time, in the order of the files
        if progress is not None:
            progress(k / len(files), f"reading {len(files):,} logs")
        for log, name, is_right in found:
            pool.add(log, name, is_right, duplicates)
    return pool.collected(duplicates)


@dataclass
class _Kept:
    """The last log of a benchmark: most logs have the same samples in the same order, and need no look at each."""

    log: Log
    codes: NDArray[np.int32]

    def has_same_samples(self, log: Log) -> bool:
        """Whether the other log has the same samples in the same order, with the same hashes where both have some."""
        mine = self.log
        if (mine.repeat is None) != (log.repeat is None) or not mine.sample.equals(log.sample):
            return False
        if mine.repeat is not None and log.repeat is not None and not mine.repeat.equals(log.repeat):
            return False
        return mine.hash is None or log.hash is None or mine.hash.equals(log.hash)


@dataclass
class _Pool:
    prompts_by: str
    attributes: Sequence[str]
    code: dict[str, int] = field(default_factory=dict)
    prompt_code: dict[str, int] = field(default_factory=dict)
    prompt: list[int] = field(default_factory=list)
    benchmark: list[str] = field(default_factory=list)
    hash: list[str | None] = field(default_factory=list)
    seen_in: list[Log] = field(default_factory=list)
    known: dict[str, list[str | None]] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    pieces: list[tuple[int, NDArray[np.int32], NDArray[np.bool_]]] = field(default_factory=list)
    logs: dict[tuple[str, str], list[tuple[Path, NDArray[np.int32]]]] = field(default_factory=dict)
    kept: dict[str, _Kept] = field(default_factory=dict)
    notes: list[Finding] = field(default_factory=list)
    checked: NDArray[np.int32] | None = None  # the last codes without repeats
    metrics: dict[str, None] = field(default_factory=dict)
    unscored: dict[str, int] = field(default_factory=dict)

    def add(self, log: Log, metric: str, is_right: NDArray[np.int8], duplicates: str) -> None:
        codes = self._codes(log)
        self._check_repeated(log, codes, duplicates)
        model = self.models.setdefault(log.model, len(self.models))
        there = is_right >= 0
        if there.all():
            self.pieces.append((model, codes, is_right > 0))
        else:
            self.unscored[log.model] = self.unscored.get(log.model, 0) + int((~there).sum())
            self.pieces.append((model, codes[there], is_right[there] > 0))
        self.notes.extend(log.notes)
        self.metrics[metric] = None

    def _codes(self, log: Log) -> NDArray[np.int32]:
        if self.prompts_by == "hash" and log.hash is None:
            raise ReadError(
                f"{str(log.file)!r} ({log.harness}) has no hashes of its samples; leave out ",
                option("prompts_by", "hash"),
                ".",
            )
        last = self.kept.get(log.benchmark)
        if self.prompts_by == "id":
            if last is not None and not self.attributes and last.has_same_samples(log):
                return last.codes
            items, prompts = log.items(), None
        else:
            assert log.hash is not None
            changed = replace(log, sample=log.hash.cast(pl.String).str.slice(0, 16))
            items, prompts = changed.items(), changed.prompts()
        labels = items.to_list()
        shared = labels if log.repeat is None else (log.prompts() if prompts is None else prompts).to_list()
        codes = np.empty(len(labels), dtype=np.int32)
        known = [log.attributes[name].to_list() for name in self.attributes]
        hashes = [None] * len(labels) if log.hash is None else log.hash.to_list()
        clash = []
        for k, label in enumerate(labels):
            code = self.code.get(label)
            if code is None:
                code = self.code[label] = len(self.code)
                self.prompt.append(self.prompt_code.setdefault(shared[k], len(self.prompt_code)))
                self.benchmark.append(log.benchmark)
                self.hash.append(hashes[k])
                self.seen_in.append(log)
                for name, values in zip(self.attributes, known, strict=True):
                    self.known.setdefault(name, []).append(values[k])
            elif hashes[k] is not None and self.hash[code] != hashes[k]:
                if self.hash[code] is None:
                    self.hash[code], self.seen_in[code] = hashes[k], log
                else:
                    clash.append(code)
            codes[k] = code
        if clash:
            first, names = self.seen_in[clash[0]], list(self.code)
            raise ReadError(
                f"{len(clash):,} of {len(codes):,} samples of {log.benchmark} have another hash in {str(log.file)!r} "
                f"({log.model}) than in {str(first.file)!r} ({first.model}), so they are not the same prompts: "
                f"{listed([names[code] for code in clash])}. Use logs of one version of the benchmark, or say ",
                option("prompts_by", "hash"),
                " to compare models on the prompts that have the same hash.",
            )
        if self.prompts_by == "id":
            self.kept[log.benchmark] = _Kept(log, codes)
        return codes

    def _check_repeated(self, log: Log, codes: NDArray[np.int32], duplicates: str) -> None:
        before = self.logs.setdefault((log.model, log.benchmark), [])
        if duplicates == "error":
            extra = 0 if self.checked is codes else len(codes) - len(np.unique(codes))
            if extra:
                raise DuplicateResponseError(
                    f"{str(log.file)!r} has {extra:,} samples of {log.benchmark} more "
                    "than once: the "
                    "run was probably repeated into the same file. Say ",
                    option("duplicates", "first", "last"),
                    " to keep one answer of each.",
                )
            self.checked = codes
            for other, there in before:
                if twice := int(np.isin(codes, there).sum()):
                    raise DuplicateResponseError(
                        f"{log.model} answered {twice:,} samples of {log.benchmark} twice: in {str(other)!r} "
                        "and in "
                        f"{str(log.file)!r}. Name the files of one run only, or say ",
                        option("duplicates", "first", "last"),
                        " to keep one answer of each.",
                    )
        before.append((log.file, codes))

    def collected(self, duplicates: str) -> Collected:
        models = np.array(list(self.models), dtype=object)
        items = np.array(list(self.code), dtype=object)
        self.pieces.sort(key=lambda piece: piece[0])  # stable: files of a model stay in their order
        counts = np.zeros(len(models) + 1, dtype=np.int64)
        for model, codes, _ in self.pieces:
            counts[model + 1] += len(codes)
        slots = np.concatenate([2 * codes + ~is_right for _, codes, is_right in self.pieces])
        self.pieces.clear()
        made = Responses.from_slots(np.cumsum(counts), slots, users=models, items=items, duplicates=duplicates)  # type: ignore[arg-type]
        count = len(self.logs)
        attributes = {BENCHMARK: np.array(self.benchmark, dtype=object)}
        for name, values in self.known.items():
            attributes[name] = np.array(["" if value is None else value for value in values], dtype=object)
            if not any(attributes[name]):
                raise OptionError(f"no sample has {name!r}; name a field that the logs have.")
        return Collected(
            replace(
                made,
                source=f"{count:,} logs" if count > 1 else next(iter(self.logs.values()))[0][0].name,
                notes=(*self.notes, *self._unscored()),
                words=("models", "prompts"),
            ),
            np.array(self.prompt),
            attributes,
            tuple(self.metrics),
        )

    def _unscored(self) -> list[Finding]:
        if not self.unscored:
            return []
        total = sum(self.unscored.values())
        return [
            Finding(
                "unscored_samples",
                "warning",
                f"{total:,} samples have no score ({listed(self.unscored)}) and count as not answered.",
                "If a sample without a score should be wrong, score it so in the harness.",
            )
        ]
