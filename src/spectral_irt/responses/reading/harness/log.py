"""Log: the scores of one model on one benchmark, as a harness wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.errors import OptionError, ReadError, ResponseValueError, listed, option
from spectral_irt.responses.findings import Finding

VARIANT = ","  # between a metric and the filter it was computed under, as lm-evaluation-harness has it
REPEAT = "#"  # between a sample and the number of its second and later runs


@dataclass(frozen=True, eq=False)
class Log:
    """One model on one benchmark.

    Attributes
    ----------
    harness : str
        The program that wrote it.
    file : Path
    model, benchmark : str
    sample : text
        The id of each sample, within the benchmark.
    scores : mapping of names to numbers
        What each metric says of each sample; null where it says nothing.
    repeat : whole numbers, optional
        1 for the first run of a sample (epoch, trial), 2 for the second.
    hash : text, optional
        What the harness says a sample is, so that two samples with the same id can be told apart.
    usual : str, optional
        The metric that the format itself calls "correct".
    attributes : mapping of names to text
        What else was asked for and is known of the samples.
    notes : findings
    """

    harness: str
    file: Path
    model: str
    benchmark: str
    sample: pl.Series
    scores: Mapping[str, pl.Series]
    repeat: pl.Series | None = None
    hash: pl.Series | None = None
    usual: str | None = None
    attributes: Mapping[str, pl.Series] = field(default_factory=dict)
    notes: tuple[Finding, ...] = ()

    def items(self) -> pl.Series:
        """Labels: benchmark/sample, and #2 after it for a second run."""
        label = pl.lit(f"{self.benchmark}/") + pl.col("sample")
        if self.repeat is None:
            return pl.DataFrame({"sample": self.sample}).select(label).to_series()
        again = (
            pl.when(pl.col("repeat") > 1).then(pl.lit(REPEAT) + pl.col("repeat").cast(pl.String)).otherwise(pl.lit(""))
        )
        return pl.DataFrame({"sample": self.sample, "repeat": self.repeat}).select(label + again).to_series()

    def prompts(self) -> pl.Series:
        """Labels without the number of the run: what repeats of a sample share."""
        return (
            pl.DataFrame({"sample": self.sample}).select(pl.lit(f"{self.benchmark}/") + pl.col("sample"))
        ).to_series()


def chosen_metric(log: Log, wanted: Sequence[str] = ()) -> str:
    """The metric that counts: the first of those wanted that the log has, else its only or its usual one."""
    names = list(log.scores)
    where = f"{str(log.file)!r} ({log.benchmark})"
    for one in wanted:
        if one in names:
            return one
        under = [name for name in names if name.split(VARIANT)[0] == one]
        if len(under) == 1:
            return under[0]
        if under:
            raise OptionError(
                f"{where} has {one!r} under {len(under)} filters: {listed(under)}. Say which one with ",
                option("metric", under[0]),
                ".",
            )
    if wanted:
        raise OptionError(
            f"{where} has no metric {listed(wanted)}; it has {listed(names)}. Name one with ",
            option("metric", ...),
            ".",
        )
    if len(names) == 1:
        return names[0]
    if log.usual is not None:
        return log.usual
    raise OptionError(
        f"{where} has {len(names)} metrics: {listed(names)}. Say which one counts with ",
        option("metric", names[0]),
        "; where benchmarks have different ones, name several, and each takes the first that it has.",
    )


def right(log: Log, metric: str, threshold: float | None = None) -> NDArray[np.int8]:
    """1 where the metric counts the answer as right, 0 where not, -1 where it says nothing."""
    scores = log.scores[metric]
    values = (scores if scores.dtype == pl.Float64 else scores.cast(pl.Float64)).to_numpy()
    there, is_right = ~np.isnan(values), values > (0 if threshold is None else threshold)
    if threshold is None and np.any(odd := there & (values != 0) & (values != 1)):
        raise ResponseValueError(
            f"{str(log.file)!r}: {metric!r} of {log.benchmark} is neither 0 nor 1 for {odd.sum():,} of {len(values):,} "
            f"samples (for instance {values[odd][0]:g}). Say ",
            option("threshold", 0.5),
            " to count scores above it as right, or ",
            option("metric", ...),
            " if another one says right or wrong.",
        )
    return np.where(there, is_right, -1).astype(np.int8)


def texts(values: Sequence[object]) -> pl.Series:
    """Values as text; None stays."""
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def numbers(values: Sequence[float | None]) -> pl.Series:
    return pl.Series(np.array([np.nan if value is None else value for value in values], dtype=float)).fill_nan(None)


def no_samples(path: Path, why: str) -> ReadError:
    return ReadError(f"{str(path)!r} has no scored samples: {why}")
