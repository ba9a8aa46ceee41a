"""An experiment: trials, the tables they make, and a figure of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from reproduction.datasets import available
from reproduction.datasets.locating import data_path
from reproduction.figures import FIGURES, save
from reproduction.results import TABLES, write_table
from reproduction.trials import Row, Task, Tell, count_finished, run_trials
from spectral_irt import __version__
from spectral_irt.errors import OptionError, OutputError, SpectralIrtError
from spectral_irt.files import all_or_nothing, errors_with_target, reason_of, refuse_inputs


def silent(text: str, share: float | None = None) -> None:
    """A `Tell` that says nothing."""


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Attributes
    ----------
    output : Path
        The folder of tables, figures and unfinished trials.
    data : Path, optional
        Where datasets are; else the directory in SPECTRAL_IRT_DATA. Bundled LSAT is always there.
    trials : int, optional
        Trials of a simulation, splits of a dataset; each experiment has its own default.
    seed : int
    datasets : tuple of str
        Names of datasets, `name@authors` or `name@50` with items of few ratings dropped; empty for all that are found.
    tell : callable
        Told what is going on and what share of it is done.
    """

    output: Path
    data: Path | None = None
    trials: int | None = None
    seed: int = 0
    datasets: tuple[str, ...] = ()
    tell: Tell = silent


@dataclass(frozen=True)
class Experiment:
    """What to do, and what becomes of it; each kind of experiment has its own three methods.

    Attributes
    ----------
    name, title : str
        `name` is the command's and the files'; `title` says what is shown.
    uses_data : bool
        Whether it reads datasets.
    """

    uses_data: ClassVar[bool] = False

    name: str
    title: str

    def plan(self, request: Request) -> Sequence[Task]:
        """The trials, in the order of the table."""
        raise NotImplementedError

    def tables(self, rows: list[Row]) -> dict[str, list[Row]]:
        """Further tables by the ending of their names, such as {"summary": rows}."""
        raise NotImplementedError

    def draw(self, tables: Mapping[str, list[Row]]) -> Any:
        """A matplotlib figure of those tables."""
        raise NotImplementedError


def partial_file(experiment: Experiment, request: Request) -> Path:
    """Where finished trials are kept until all are."""
    return request.output / f"{experiment.name}.partial.jsonl"


def run(experiment: Experiment, request: Request, *, keep: bool = False) -> list[Path]:
    """Do what is left to do, and write tables and figure; the files written.

    With `keep` the trials stay on file after that, so that the same once more only writes.
    """
    check(request)
    about = {"experiment": experiment.name, "seed": request.seed, "version": __version__}
    if experiment.uses_data:
        place = data_path(request.data)
        about["data"] = str(place.resolve()) if place else ""
    tasks = experiment.plan(request)
    path = partial_file(experiment, request)
    inputs = _inputs(experiment, request)
    first = [request.output / f"{experiment.name}.{kind}" for kind in (*TABLES, *FIGURES)]
    refuse_inputs([path, *first], inputs)
    there = request.output.exists()
    try:
        request.output.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a method has to say about one trial of hundreds
            rows = run_trials(path, about, tasks, request.tell)
    except OSError as error:
        if isinstance(error, SpectralIrtError):
            raise
        raise OutputError(f"{str(request.output)!r} cannot be written: {reason_of(error) or error}.") from error
    finally:
        if path.is_file() and not count_finished(path):  # nothing to go on from
            path.unlink()
            if not there:
                with suppress(OSError):
                    request.output.rmdir()
    request.tell("writing", 1.0)
    more = experiment.tables(rows)
    tables = {experiment.name: rows, **{f"{experiment.name}_{ending}": table for ending, table in more.items()}}
    contents = {request.output / f"{name}.{kind}": (table, kind) for name, table in tables.items() for kind in TABLES}
    figures = [request.output / f"{experiment.name}.{kind}" for kind in FIGURES]
    files = [*contents, *figures]
    kept = f"The trials are kept in {str(path)!r}; the same command goes on from there."
    with all_or_nothing(files, inputs=inputs) as drafts:
        for draft, (file, (table, kind)) in zip(drafts, contents.items(), strict=False):
            with errors_with_target(file, kept):
                write_table(draft, table, kind)
        figure = experiment.draw(more)
        for draft, file in zip(drafts[len(contents) :], figures, strict=True):
            with errors_with_target(file, kept):
                save(figure, draft, file)
    if not keep:
        path.unlink(missing_ok=True)
    return files


def check(request: Request) -> None:
    if request.trials is not None and request.trials < 1:
        raise OptionError(f"`trials` is {request.trials}; it must be at least 1.")
    if request.seed < 0:
        raise OptionError(f"`seed` is {request.seed}; it must be zero or more.")


def _inputs(experiment: Experiment, request: Request) -> list[Path]:
    """The datasets that are found where the request says; no result may take the place of one."""
    place = data_path(request.data) if experiment.uses_data else None
    if place is None or not place.is_dir():
        return [] if place is None else [place]
    return [source.found for source in available(place) if source.found is not None]
