"""`spectral-irt fit`: from files of answers to calibrated items."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.options import Files, Fitting, Output, Reading, with_options
from spectral_irt.cli.progress import Progress
from spectral_irt.estimators.by_name import make_estimator

if TYPE_CHECKING:
    from rich.console import Console

    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.responses import Responses


@dataclass
class Job:
    """A calibration to be done: where the answers come from, how to fit, where the results go."""

    read: Callable[[Progress], Responses]
    fitting: Fitting = field(default_factory=Fitting)
    output: Path | None = None
    parquet: bool = False
    files: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> tuple[Responses, RaschEstimator]:
        """Read, fit, and write the results if a place was named."""
        from spectral_irt.cli.output import all_or_nothing, result_paths

        estimator = make_estimator(self.fitting.estimator, self.fitting.parameters())
        if self.output is None:
            return self._calibrate(estimator)
        targets, stale = result_paths(self.output, parquet=self.parquet, inputs=[Path(file) for file in self.files])
        with all_or_nothing(targets, stale=stale) as drafts:
            responses, fit = self._calibrate(estimator)
            for draft, target in zip(drafts, targets, strict=True):
                self._write(draft, target, responses, fit)
        return responses, fit

    def _calibrate(self, estimator: RaschEstimator) -> tuple[Responses, RaschEstimator]:
        start = time.perf_counter()
        with Progress() as progress:
            responses = self.read(progress)
            middle = time.perf_counter()
            estimator._progress = progress.say
            with warnings.catch_warnings(record=True) as heard:
                fit = estimator.fit(responses)
            del estimator._progress
        end = time.perf_counter()
        if not any(finding.code == "not_converged" for finding in fit.findings_):  # that says the same, once
            for warning in heard:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.seconds = {"read": middle - start, "fit": end - middle, "total": end - start}
        return responses, fit

    def _write(self, draft: Path, target: Path, responses: Responses, fit: RaschEstimator) -> None:
        from spectral_irt.cli.output import naming, write_csv, write_json, write_parquet
        from spectral_irt.cli.record import fit_record

        with naming(target):
            if target.suffix == ".csv":
                write_csv(draft, fit.item_columns())
            elif target.suffix == ".parquet":
                write_parquet(draft, fit.item_columns())
            else:
                record = fit_record(
                    responses,
                    fit,
                    estimator=self.fitting.estimator,
                    files=self.files,
                    reading=self.reading,
                    seconds=self.seconds,
                )
                write_json(draft, record)


@with_options(Reading, Fitting)
def fit(
    files: Files,
    reading: Reading,
    fitting: Fitting,
    output: Output = None,
    parquet: Annotated[
        bool, typer.Option("--parquet", metavar="", help="Write items.parquet as well.", show_default=False)
    ] = False,
) -> None:
    """Calibrate: how hard every item is, and how sure that is.

    Prints a short table and what is odd in the data. With -o, all items go to
    DIR/items.csv and a record of the fit to DIR/fit.json. Larger = harder.

    \b
    [bold]Examples[/bold]
    A row for each person, a column for each item:
      spectral-irt fit answers.csv -o results
    A row for each answer, in any number of files:
      spectral-irt fit log/*.parquet --item task --response correct -o results
    Multiple choice with an answer key; 9 means 'not answered':
      spectral-irt fit choices.csv --key key.csv --missing 9 -o results
    Ratings, above the person's own mean or not; larger = better liked:
      spectral-irt fit ratings.csv --above-mean wrong -o results
    """
    job = Job(
        read=lambda progress: reading.read(files, progress),
        fitting=fitting,
        output=output,
        parquet=parquet,
        files=tuple(files),
        reading=reading.said(),
    )
    responses, calibrated = job.run()
    show(responses, calibrated, job)


def show(responses: Responses, fit: RaschEstimator, job: Job) -> None:
    """The table, the paragraph, the findings, and where the results are."""
    from rich.text import Text

    from spectral_irt.cli.display import console, item_table, say, show_findings
    from spectral_irt.cli.errors import printable

    out = console()
    right = 100 * responses.item_scores.sum() / responses.n_responses
    head = Text(printable(responses.source), style="bold")
    head.append(
        f"  {responses.n_users:,} users, {responses.n_items:,} items, {responses.n_responses:,} responses, "
        f"{right:.1f} % right",
        style="not bold",
    )
    say(out, head)
    say(out)
    unicode = (out.encoding or "").lower().startswith("utf")
    say(out, item_table(fit.item_columns(), out.width, unicode=unicode))
    say(out)
    say(out, Text(_paragraph(fit, job)))
    said_above = ("regularization",)
    shown = [finding for finding in fit.findings_ if finding.code not in said_above]
    if shown:
        say(out)
        show_findings(out, shown)
    say(out)
    _say_where(out, job)


def _paragraph(fit: RaschEstimator, job: Job) -> str:
    from spectral_irt.cli.errors import in_shell_words, printable

    weighting = getattr(fit, "weighting", None)
    name = job.fitting.estimator
    method = f"{name.upper() if len(name) < 4 else name.capitalize()} estimate"
    method += f", {weighting} weights" if weighting else ""
    sentences = [f"{method}: {fit.n_iter_:,} passes over the data, residual {fit.residual_:.0e}."]
    regularization = getattr(fit, "regularization_", None)
    if regularization is not None:
        sentences.append(f"Regularisation: {in_shell_words(str(regularization))}.")
    se_method = getattr(fit, "se_method_", None)
    if se_method == "none":
        sentences.append("No standard errors, as asked.")
    elif se_method is not None:
        sandwich = "sandwich, " if se_method in ("dense", "one-pass", "multiplier") else ""
        sentences.append(f"Standard errors: {sandwich}{se_method}.")
    sentences.append(f"Read in {job.seconds['read']:.2f} s, fitted in {job.seconds['fit']:.2f} s.")
    return printable(" ".join(sentences))


def _say_where(out: Console, job: Job) -> None:
    from rich.text import Text

    from spectral_irt.cli.display import say
    from spectral_irt.cli.errors import printable

    if job.output is None:
        say(out, Text("Nothing was saved; add -o DIR for all items (items.csv) and a record of the fit (fit.json)."))
        return
    names = ["items.csv", *(["items.parquet"] if job.parquet else []), "fit.json"]
    listed = " and ".join([", ".join(names[:-1]), names[-1]])
    say(out, Text.assemble("Results are in ", (printable(job.output), "bold"), f": {listed}."))
