"""Log: the scores of one model on one benchmark, as a harness wrote them; and which harness wrote a file.

A reader of a harness has `is_ours(path, head)` and `read(file, attributes)`, which returns logs; here are the `Log`,
and what all readers do alike. `collect.py` puts logs together.
"""

from __future__ import annotations

import importlib
import lzma
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import Finding, OptionError, ReadError, ResponseValueError, retold
from spectral_irt.reading.formats import LOGGED, File
from spectral_irt.reading.frame import Table, table_of_frame
from spectral_irt.reading.jsonl import numbered_objects
from spectral_irt.reading.text_pieces import HEAD_BYTES, pieces_in_utf8
from spectral_irt.text import listed, printable

VARIANT = ","  # between a metric and the filter it was computed under, as lm-evaluation-harness has it
REPEAT = "#"  # between a sample and the number of its second and later runs
# What a log that is damaged, or not laid out as it should be, makes the reading of it raise.
ODD = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError),
    *(lzma.LZMAError, struct.error, zipfile.BadZipFile, zlib.error, pl.exceptions.PolarsError),
)


@dataclass(frozen=True, eq=False)
class Log:
    """One model on one benchmark."""

    file: Path
    model: str
    benchmark: str
    sample: pl.Series  # text: the id of each sample, within the benchmark
    scores: Mapping[str, pl.Series]  # by metric: null where there is none, NaN where the harness got no number
    repeat: pl.Series | None = None  # 1 for the first run of a sample (epoch, trial), 2 for the second
    hash: pl.Series | None = None  # text that tells two samples with the same id apart
    usual: str | None = None  # the metric that the format itself calls "correct"
    attributes: Mapping[str, pl.Series] = field(default_factory=dict)  # what else was asked for, as text
    notes: tuple[Finding, ...] = ()

    def prompts(self) -> pl.Series:
        """Labels without the number of the run: what repeats of a sample share."""
        return f"{self.benchmark}/" + self.sample

    def items(self) -> pl.Series:
        """Labels: benchmark/sample, and #2 after it for a second run."""
        if self.repeat is None:
            return self.prompts()
        return self.prompts() + (REPEAT + self.repeat.cast(pl.String)).set(self.repeat <= 1, "")


class Sample(NamedTuple):
    """A run of a sample: its id, score on each metric, number of the run, hash, and what else is known of it."""

    id: Any
    scores: Mapping[str, float | None]
    repeat: int = 1
    hash: str | None = None
    about: Mapping[str, Any] = MappingProxyType({})


def log_of(file: File, model: str, benchmark: str, samples: list[Sample], fields: Sequence[str], **more: Any) -> Log:
    """The log of samples in the order of their first appearance; `more` are other fields of it."""
    missing = [name for name in fields if not any(name in sample.about for sample in samples)]
    if missing:
        attributes = dict.fromkeys(name for sample in samples for name in sample.about)
        raise OptionError(f"{file.name}: the samples have no field {listed(missing)}; they have {listed(attributes)}.")
    scores = {}
    for metric in dict.fromkeys(name for sample in samples for name in sample.scores):
        values = [sample.scores.get(metric) for sample in samples]
        scores[metric] = pl.Series(values, dtype=pl.Float64, strict=False)
    repeat = pl.Series([sample.repeat for sample in samples], dtype=pl.Int64)
    ids = _texts([sample.id for sample in samples])
    hashes = _texts([sample.hash for sample in samples])
    more["repeat"] = repeat if (repeat > 1).any() else None
    more["hash"] = hashes if hashes.count() else None
    about = {name: _texts([sample.about.get(name) for sample in samples]) for name in fields}
    return Log(file.path, model, benchmark, ids, scores, attributes=about, **more)


def _texts(values: Sequence[object]) -> pl.Series:
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def chosen_metric(log: Log, wanted: Sequence[str] = ()) -> str:
    """The metric that counts: the first of those wanted that the log has, else its only or its usual one."""
    names = list(log.scores)
    where = f"{str(log.file)!r} ({log.benchmark})"
    for metric in wanted:
        if metric in names:
            return metric
        under_filters = [name for name in names if name.split(VARIANT)[0] == metric]
        if len(under_filters) == 1:
            return under_filters[0]
        if under_filters:
            raise OptionError(
                f"{where} has {metric!r} under {len(under_filters)} filters: {listed(under_filters)}. Say which one "
                f"with `metric={under_filters[0]!r}`."
            )
    if wanted:
        raise OptionError(f"{where} has no metric {listed(wanted)}; it has {listed(names)}. Name one with `metric=`.")
    if len(names) == 1:
        return names[0]
    if log.usual is not None:
        return log.usual
    raise OptionError(
        f"{where} has {len(names)} metrics: {listed(names)}. Say which one counts with `metric={names[0]!r}`, or name "
        "several: each benchmark uses the first that it has."
    )


def right(log: Log, metric: str, threshold: float | None = None) -> NDArray[np.int8]:
    """1 where the metric counts the answer as right, 0 where not or where it is NaN, -1 where it says nothing."""
    scores = log.scores[metric]
    has_score = scores.is_not_null().to_numpy()
    values = scores.cast(pl.Float64).to_numpy()
    above = 0.0 if threshold is None else threshold
    is_right = values > above  # NaN is above nothing
    odd = has_score & ~np.isnan(values) & (values != 0) & (values != 1)
    if threshold is None and odd.any():
        raise ResponseValueError(
            f"{str(log.file)!r}: {metric!r} of {log.benchmark} is neither 0 nor 1 for {odd.sum():,} of "
            f"{len(values):,} samples (for instance {values[odd][0]:g}). Say `threshold=0.5` to count scores above it "
            "as right, or `metric=` if another one says right or wrong."
        )
    return np.where(has_score, is_right, -1).astype(np.int8)


def count_scores(log: Log, metric: str, unscored: Counter[str], nan: Counter[str]) -> None:
    """Add to each model's number of samples without a score, and with one that is no number."""
    unscored[log.model] += log.scores[metric].null_count()
    nan[log.model] += int(log.scores[metric].cast(pl.Float64).is_nan().sum())


def score_notes(unscored: Counter[str], nan: Counter[str]) -> list[Finding]:
    """What is said of samples without a score, and of those whose score is no number: how many of which model."""
    findings = []
    for code, count, what, otherwise in (
        ("unscored_samples", +unscored, "have no score and count as not answered", "be wrong"),
        ("nan_scores", +nan, "have a score that is no number (NaN) and count as wrong", "be left out"),
    ):
        sentence = f"{count.total():,} samples {what} ({listed(count)})."
        remedy = f"If they should {otherwise}, score them so in the harness."
        findings += [Finding(code, "warning", sentence, remedy)] if count else []
    return findings


def number(value: Any) -> float | None:
    """A score as a number, None where it is none; one that is too large is infinite."""
    try:
        if not isinstance(value, bool | int | float):
            return None
        return float(value)
    except OverflowError:
        return float("inf")


def mapping(value: Any) -> dict[str, Any]:
    """A part of a log that says more about a run or a sample; empty where it is not there, or something else."""
    return value if isinstance(value, dict) else {}


def objects(file: File) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of each line, and the object on it."""
    return (one for found, _ in numbered_objects(file, 1 << 22, None) for one in found)


def laid_out(where: str, harness: str) -> AbstractContextManager[None]:
    """What is not as the harness writes it becomes a sentence that says where."""

    def sentence(error: BaseException) -> str:
        reason = printable(f"{type(error).__name__}: {error}".splitlines()[0][:200].rstrip("."))
        what = f"{where} is not as {harness} writes it ({reason}): damaged, cut off, or of another version."
        return f"{what} Copy it again."

    return retold(ODD, sentence)


def no_samples(path: Path, why: str) -> ReadError:
    return ReadError(f"{str(path)!r} has no scored samples: {why}")


HARNESSES = ("lm_eval", "every_eval_ever", "inspect_ai", "helm", "lighteval")  # modules of this package


def written_by(file: File) -> ModuleType | None:
    """The reader of the harness that wrote the file, or None."""
    if file.family not in LOGGED or file.uri is not None:
        return None
    if file.compression is not None:
        head = next(pieces_in_utf8(file, HEAD_BYTES))[0][:HEAD_BYTES]
    else:
        with open(file.path, "rb") as opened:
            head = opened.read(HEAD_BYTES)
    modules = (importlib.import_module(f"{__package__}.{name}") for name in HARNESSES)
    return next((module for module in modules if module.is_ours(file.path, head)), None)


def read_logs(file: File, attributes: Sequence[str] = ()) -> list[Log] | None:
    """The logs in a file, or None where no known harness wrote it."""
    if (module := written_by(file)) is None:
        return None
    with laid_out(file.name, module.NAME):
        logs: list[Log] = module.read(file, attributes)
        return logs


def _scores_in(frames: Sequence[pl.DataFrame]) -> list[str]:
    """The columns of scores that are in fractions."""
    return list(dict.fromkeys(name for frame in frames for name in frame.select(pl.selectors.float()).columns))


def _nan_is_wrong(name: str) -> pl.Expr:
    """The scores with one that counts as wrong for NaN: 0 among 0 and 1, and else below any threshold."""
    scores = pl.col(name)
    lowest = pl.when(scores.fill_nan(None).is_in([0.0, 1.0]).all()).then(0.0).otherwise(-float("inf"))
    return scores.fill_nan(lowest)


def table_of_logs(file: File, logs: Sequence[Log]) -> Table:
    """Logs as a long table: model, item, and a column for each metric; `response` where it is clear which counts."""
    frames = []
    unscored = Counter[str]()
    nan = Counter[str]()
    for log in logs:
        columns = {"model": pl.repeat(log.model, len(log.sample), eager=True), "item": log.items(), **log.scores}
        usual = next(iter(log.scores)) if len(log.scores) == 1 else log.usual
        if usual is not None:
            columns["response"] = log.scores[usual]
            count_scores(log, usual, unscored, nan)
        else:  # whichever is taken
            odd = pl.DataFrame(dict(log.scores)).select(pl.any_horizontal(pl.all().cast(pl.Float64).is_nan()))
            nan[log.model] += int(odd.to_series().sum() or 0)
        frames.append(pl.DataFrame(columns))
    frame = pl.concat(frames, how="diagonal").with_columns(map(_nan_is_wrong, _scores_in(frames)))
    table = table_of_frame(frame, list(frame.columns))
    return replace(table, name=file.name, notes=tuple(score_notes(unscored, nan)))
