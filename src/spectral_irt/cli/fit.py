"""`spectral-irt fit`: from files of answers to calibrated items."""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.cli.options import Analysis, Files, Fitting, Output, Parquet, Reading, with_options
from spectral_irt.cli.progress import Progress
from spectral_irt.errors import OptionError, OutputError

if TYPE_CHECKING:
    from rich.console import Console

    from spectral_irt.bank import Bank
    from spectral_irt.cli.analysis import Results
    from spectral_irt.cli.groups import Groups
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.responses import Responses

WINSTEPS_STYLES = {".csv": "csv", ".tsv": "tab", ".tab": "tab", ".txt": "fixed"}


@dataclass
class Job:
    """A calibration to be done: where the answers come from, how to fit, what else to compute, where it all goes."""

    read: Callable[[Progress], Responses]
    fitting: Fitting = field(default_factory=Fitting)
    analysis: Analysis = field(default_factory=Analysis)
    read_groups: Callable[[], list[Groups]] | None = None
    output: Path | None = None
    parquet: bool = False
    files: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def run(self) -> Results:
        """Read, fit, analyse, and write the results where places were named."""
        from spectral_irt.cli.output import save_bank
        from spectral_irt.writing import all_or_nothing

        estimator = self.checked()
        targets, stale = self._places()
        keep: list[Callable[[], object]] = []
        with all_or_nothing(
            targets,
            inputs=self.inputs,
            folders=[] if self.analysis.bank is None else [self.analysis.bank],
            stale=stale,
            last=lambda: [save() for save in keep],
        ) as drafts:
            results = self._calibrate(estimator)
            for draft, target in zip(drafts, targets, strict=True):
                self._write(draft, target, results)
            if self.analysis.bank is not None:
                keep.append(functools.partial(save_bank, self._bank_of(results), self.analysis.bank))
        return results

    def checked(self) -> RaschEstimator:
        """The estimator; an error when the options do not go together, or when one of them would do nothing."""
        self.analysis.check(self.output)
        if self.parquet and self.output is None:
            raise OptionError("--parquet is about the tables that are written; say where with -o DIR.")
        return self._estimator()

    def _estimator(self) -> RaschEstimator:
        from spectral_irt.estimators.by_name import make_estimator

        parameters = self.fitting.parameters()
        if self.analysis.anchors is None:
            return make_estimator(self.fitting.estimator, parameters)
        from spectral_irt.bank import AnchoredRasch

        takes = ("regularization", "se", "max_iter", "threads")
        foreign = [name for name in parameters if name not in takes]
        if self.fitting.estimator != "spectral" or foreign:
            said = ["--estimator"] if self.fitting.estimator != "spectral" else []
            said += [f"--{name.replace('_', '-')}" for name in foreign]
            raise OptionError(
                f"--anchors goes with the spectral estimator and ability weights; leave out {', '.join(said)}."
            )
        return AnchoredRasch(self._enlarged or self.analysis.anchors, **parameters)

    # -------------------------------------------------------------------------------------- the work

    def _calibrate(self, estimator: RaschEstimator) -> Results:
        from spectral_irt.bank.people import NO_RECOGNITION
        from spectral_irt.cli.analysis import analyse

        times = [time.perf_counter()]
        with Progress() as progress:
            groups = self.read_groups() if self.read_groups is not None else []
            responses = self.read(progress)
            times.append(time.perf_counter())
            estimator._progress = progress.say
            with warnings.catch_warnings(record=True) as heard:
                fit = estimator.fit(responses)
            del estimator._progress
            times.append(time.perf_counter())
            results = analyse(responses, fit, self.analysis, self.output, groups, progress.say)
            if self.analysis.bank is not None and self.analysis.salt_file is None:
                results.findings.append(NO_RECOGNITION)
        times.append(time.perf_counter())
        if not any(finding.code == "not_converged" for finding in fit.findings_):  # that says the same, once
            for warning in heard:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        steps = [after - before for before, after in itertools.pairwise(times)]
        self.seconds = {**dict(zip(("read", "fit", "analysis"), steps, strict=True)), "total": times[-1] - times[0]}
        return results

    # -------------------------------------------------------------------------------------- the files

    def _places(self) -> tuple[list[Path], list[Path]]:
        """Where everything goes but the bank, the record last; and which old files that makes stale."""
        from spectral_irt.cli.output import TABLES, refuse_bank_place, refuse_salt_place, result_paths

        wanted = self.analysis
        exports = [path for path in (wanted.ifile, wanted.pfile, wanted.catsim) if path is not None]
        for path in (wanted.ifile, wanted.pfile):
            if path is not None and path.suffix.lower() not in WINSTEPS_STYLES:
                raise OptionError(
                    f"{str(path)!r} ends in none of {', '.join(WINSTEPS_STYLES)}; they mean commas, tabs (.tsv, .tab) "
                    "or fixed columns (.txt)."
                )
        results: list[Path] = []
        stale: list[Path] = []
        if self.output is not None:
            unwanted = {"persons": wanted.persons is False, "item_fit": wanted.fit is False}
            unwanted |= {"dif": self.read_groups is None, "ranking": wanted.rank is None}
            tables = [table for table in TABLES if not unwanted.get(table)]
            results, stale = result_paths(self.output, tables, parquet=self.parquet)
        places = [*exports, *results]
        if wanted.bank is not None:
            if any(path.absolute().parent == wanted.bank.absolute() for path in places):
                raise OutputError(
                    f"a bank has a folder of its own, and {str(wanted.bank)!r} gets other results; choose another for "
                    "one of them. Nothing was written."
                )
            refuse_bank_place(wanted.bank)
            refuse_salt_place(wanted.salt_file, wanted.bank)
        return places, stale

    def _write(self, draft: Path, target: Path, results: Results) -> None:
        from spectral_irt.cli.output import RECORD, write_csv, write_json, write_parquet
        from spectral_irt.cli.record import fit_record
        from spectral_irt.writing import naming

        with naming(target):
            if target in (self.analysis.ifile, self.analysis.pfile, self.analysis.catsim):
                draft.write_text(self._export(target, results), encoding="utf-8", newline="")
                return
            if target.name == RECORD:
                record = fit_record(
                    results,
                    estimator=self.fitting.estimator,
                    ability=self.analysis.ability,
                    files=self.files,
                    reading=self.reading,
                    outputs=[*self.written, RECORD],
                    seconds=self.seconds,
                )
                write_json(draft, record)
            else:
                columns = results.tables()[target.stem]
                if columns is None:
                    draft.unlink()
                    return
                (write_csv if target.suffix == ".csv" else write_parquet)(draft, columns)
            self.written.append(target.name)

    def _export(self, target: Path, results: Results) -> str:
        """A file for another program."""
        from spectral_irt.bank.exports import catsim_text, ifile, pfile, winsteps_text

        if target == self.analysis.catsim:
            return catsim_text(results.fit)
        if target == self.analysis.ifile:
            columns = ifile(results.fit, results.item_fit, scale=results.scale)
        else:
            assert results.persons is not None
            columns = pfile(results.persons, scale=results.scale, wle=self.analysis.ability == "wle")
        title = f"spectral-irt, {results.responses.source}" if target.suffix.lower() == ".txt" else ""
        return winsteps_text(columns, WINSTEPS_STYLES[target.suffix.lower()], title=title)

    def _bank_of(self, results: Results) -> Bank:
        from spectral_irt.bank import Scale, to_bank
        from spectral_irt.bank.merging import merged

        wanted = self.analysis
        bank = to_bank(results.fit, results.responses, wanted.salt_file)
        bank = replace(bank, scale=results.scale or Scale(), findings=tuple(results.findings))
        return bank if self._enlarged is None else merged(self._enlarged, bank, results.responses, wanted.salt_file)

    @functools.cached_property
    def _enlarged(self) -> Bank | None:
        """The bank that is both anchor and target, as it was before the work: its other items stay in it."""
        from spectral_irt.bank import Bank

        anchors, target = self.analysis.anchors, self.analysis.bank
        if anchors is None or target is None or not Path(anchors).is_dir() or not target.is_dir():
            return None
        return Bank.load(target) if Path(anchors).samefile(target) else None


@with_options(Reading, Fitting, Analysis)
def fit(
    files: Files,
    reading: Reading,
    fitting: Fitting,
    analysis: Analysis,
    output: Output = None,
    parquet: Parquet = False,
) -> None:
    """Calibrate: how hard every item is and how sure that is, how able people are, and whether the model holds.

    Prints a short table and what is odd in the data. With -o, all items go to
    DIR/items.csv, people to DIR/persons.csv, the fit of the items to
    DIR/item_fit.csv, and a record of it all to DIR/fit.json. Larger = harder.

    \b
    Examples
    A row for each person, a column for each item:
      spectral-irt fit answers.csv -o results
    A row for each answer, in any number of files:
      spectral-irt fit log/*.parquet --item task --response correct -o results
    Multiple choice with an answer key; 9 means 'not answered':
      spectral-irt fit choices.csv --key key.csv --missing 9 -o results
    Ratings, above the person's own mean or not; larger = better liked:
      spectral-irt fit ratings.csv --above-mean wrong --rank 25 -o results
    Are items as hard for one sex as for the other? Height is not an item:
      spectral-irt fit answers.csv --group sex --ignore height -o results
    New items on the scale of a bank, kept as a bank in turn:
      spectral-irt fit new.csv --anchors bank2024 --bank bank2025
    """
    job = job_of(files, reading, fitting, analysis, output, parquet)
    show(job.run(), job)


def job_of(
    files: Sequence[str], reading: Reading, fitting: Fitting, analysis: Analysis, output: Path | None, parquet: bool
) -> Job:
    """What the options of the command mean."""
    read_groups = None
    if analysis.group or analysis.group_file is not None:
        from spectral_irt.cli.groups import read_groups as find

        if analysis.group_file is None:
            reading = replace(reading, ignore=[*reading.ignore, *(analysis.group or [])])
        read_groups = functools.partial(find, analysis.group or [], analysis.group_file, files, reading)
    return Job(
        read=lambda progress: reading.read(files, progress),
        fitting=fitting,
        analysis=analysis,
        read_groups=read_groups,
        output=output,
        parquet=parquet,
        files=tuple(files),
        inputs=_inputs(files, reading, analysis),
        reading=reading.said(),
    )


def _inputs(files: Sequence[str], reading: Reading, analysis: Analysis) -> tuple[str, ...]:
    """What is read, and may not be replaced; a bank that gives the anchors may grow (`--anchors A --bank A`)."""
    inputs = [*reading.inputs(files), analysis.group_file]
    if analysis.bank is None or analysis.anchors is None or Path(analysis.anchors).resolve() != analysis.bank.resolve():
        inputs.append(analysis.anchors)
    return tuple(str(path) for path in inputs if path is not None)


def show(results: Results, job: Job) -> None:
    """The table, the analysis in a few lines, how it was done, the findings, and where the results are."""
    from rich.text import Text

    from spectral_irt.cli.display import console, item_table, say, show_findings, show_source
    from spectral_irt.cli.summary import SAID, show_summary

    out = console()
    show_source(out, results.responses)
    unicode = (out.encoding or "").lower().startswith("utf")
    say(out, item_table(results.fit.item_columns(), out.width, unicode=unicode))
    say(out)
    show_summary(out, results)
    say(out, Text(_paragraph(results.fit, job)))
    said_above = ("regularization", *SAID)
    shown = [finding for finding in results.findings if finding.code not in said_above]
    if shown:
        say(out)
        show_findings(out, shown)
    say(out)
    _say_where(out, job)


def _paragraph(fit: RaschEstimator, job: Job) -> str:
    from spectral_irt.cli.errors import printable

    weighting = getattr(fit, "weighting", None)
    name = job.fitting.estimator
    method = f"{name.upper() if len(name) < 4 else name.capitalize()} estimate"
    method += f", {weighting} weights" if weighting else ""
    if job.analysis.anchors is not None:
        number = int(np.sum(fit.anchored_))  # type: ignore[attr-defined]
        method += f", anchored to {number:,} item{'' if number == 1 else 's'}"
    sentences = [f"{method}: {fit.n_iter_:,} passes over the data, residual {fit.residual_:.0e}."]
    regularization = getattr(fit, "regularization_", None)
    if regularization is not None:
        sentences.append(f"Regularisation: {regularization}.")
    se_method = getattr(fit, "se_method_", None)
    if se_method == "none":
        sentences.append("No standard errors, as asked.")
    elif se_method is not None:
        sandwich = "sandwich, " if se_method in ("dense", "one-pass", "multiplier") else ""
        sentences.append(f"Standard errors: {sandwich}{se_method}.")
    seconds = job.seconds
    times = f"Read in {seconds['read']:.2f} s, fitted in {seconds['fit']:.2f} s"
    sentences.append(f"{times}, analysed in {seconds['analysis']:.2f} s.")
    return printable(" ".join(sentences))


def _say_where(out: Console, job: Job) -> None:
    from rich.text import Text

    from spectral_irt.cli.display import say
    from spectral_irt.cli.errors import printable

    further = [job.analysis.ifile, job.analysis.pfile, job.analysis.catsim, job.analysis.bank]
    places = [printable(path) for path in further if path is not None]
    if job.output is None and not places:
        say(out, Text("Nothing was saved; add -o DIR for all items, all people and a record of the fit."))
        return
    sentence = Text()
    if job.output is not None:
        sentence.append("Results are in ").append(printable(job.output), style="bold").append(f": {_and(job.written)}.")
    if places:
        sentence.append(" Also written: " if job.output is not None else "Written: ")
        sentence.append(_and(places), style="bold").append(".")
    say(out, sentence)


def _and(names: list[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])
