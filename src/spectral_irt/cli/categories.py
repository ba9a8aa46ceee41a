"""`spectral-irt fit` for answers in ordered categories: partial credit and rating scale."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from spectral_irt.cli.clusters import cluster
from spectral_irt.cli.fitting import Fitting
from spectral_irt.cli.options import MEMORY, Reading, panel
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.saying import Saying
from spectral_irt.cli.wanted import Wanted
from spectral_irt.errors import OptionError, ResponseValueError, Words, check_option
from spectral_irt.estimators.by_name import MODELS, make_ordered

if TYPE_CHECKING:
    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
    from spectral_irt.analysis.parts import Parts
    from spectral_irt.cli.groups import Groups
    from spectral_irt.responses import Finding
    from spectral_irt.responses.ordered import OrderedResponses

_categories = panel("Answers in more than two categories")
# What is done for ordered answers too; every other option is for right and wrong ones.
READ = ("format", "user", "item", "response", "orient", "duplicates", "ignore", "items", "sheet", "encoding", "missing")
FITTED = ("estimator", "weighting", "regularization", "se", "max_iter", "threads", "checkpoint")
COMPUTED = (
    *("persons", "fit", "ability", "bootstrap", "sample", "group", "group_file", "group_sheet", "scale"),
    *("rank", "rank_by", "plots", "report", "list_persons"),
)


@dataclass(frozen=True)
class Categories:
    """How answers in ordered categories are read and modeled."""

    model: Annotated[
        str | None,
        _categories(
            metavar="|".join(MODELS),
            help="rasch: right and wrong. pcm: the partial credit model, thresholds for each item. rsm: the rating "
            "scale model, thresholds at the same distances in all items. By default rasch, or pcm where the answers "
            "are whole numbers in more than two categories.",
        ),
    ] = None
    recode: Annotated[
        str | None,
        _categories(
            metavar="LABEL,...",
            help="Labels from the lowest category to the highest, as in 'never,sometimes,often'; labels that mean the "
            "same are joined by =.",
        ),
    ] = None
    reverse: Annotated[
        list[str], _categories(metavar="ITEM,...", help="Items to turn round: their highest category is the lowest.")
    ] = field(default_factory=list)
    unused: Annotated[
        str | None,
        _categories(
            metavar="collapse|error|keep",
            help="Categories of an item that nobody used: number the answers without them (default), complain, or "
            "keep those that other items have (the default of rsm).",
        ),
    ] = None

    @property
    def said(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.model in ("pcm", "rsm") or self.recode is not None or bool(self.reverse) or self.unused is not None

    def check(self) -> None:
        check_option("model", self.model, (None, *MODELS))
        if self.model == "rasch" and (self.recode is not None or self.reverse or self.unused is not None):
            raise OptionError("--recode, --reverse and --unused are for ordered categories; leave out --model rasch.")


@dataclass
class OrderedJob:
    """A calibration of ordered answers to be done."""

    files: Sequence[str]
    reading: Reading
    fitting: Fitting
    wanted: Wanted
    categories: Categories
    output: Path | None
    parquet: bool
    notes: list[Any] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    too_long: dict[str, int] = field(default_factory=dict)
    times: str = ""
    parts: Parts | None = None

    def check(self) -> None:
        """Refuse at once what could only fail after the work, and what would do nothing."""
        from spectral_irt.analysis.ordered_analysis import TABLES
        from spectral_irt.analysis.ordered_files import ordered_places
        from spectral_irt.workbook import is_workbook

        groups = ((self.reading, READ), (self.fitting, FITTED), (self.wanted, COMPUTED))
        foreign = [name for group, known in groups for name in changed(group) if name not in (*known, *MEMORY)]
        said = [f"--{name.replace('_', '-')}" for name in foreign]
        said += ["--ability pv"] if self.wanted.ability == "pv" else []
        if said:
            verb = "is" if len(said) == 1 else "are"
            raise OptionError(
                f"these answers are in ordered categories, and {', '.join(said)} {verb} for right and wrong answers "
                "only; leave it out, or say --threshold to make them right and wrong."
            )
        self.wanted.check(self.output)
        if self.parquet and self.output is None:
            raise OptionError("--parquet is about the tables that are written; say where with -o DIR.")
        if self.parquet and self.output is not None and is_workbook(self.output):
            raise OptionError("--parquet writes files to a folder, and -o names a workbook; say -o DIR instead.")
        if self.output is not None:
            ordered_places(self.output, TABLES)
        self.picture_places()

    def picture_places(self) -> list[Path]:
        """Where pictures go; an error when a file is in the way that we did not write."""
        if self.wanted.plots is None:
            return []
        from spectral_irt.plots.ordered_plots import NAMES
        from spectral_irt.plots.standard import standard_paths

        return standard_paths(self.wanted.plots, NAMES)

    def read(self, progress: Progress) -> OrderedResponses:
        from spectral_irt.engines import set_memory
        from spectral_irt.responses.read_ordered import read_ordered

        set_memory(self.reading.memory, self.reading.spill)
        how: dict[str, Any] = {name: getattr(self.reading, name) for name in READ}
        if self.wanted.group and self.wanted.group_file is None:
            how["ignore"] = [*self.reading.ignore, *self.wanted.group]
        unused = self.categories.unused or ("keep" if self.model == "rsm" else "collapse")
        reverse = [name for names in self.categories.reverse for name in names.split(",")]
        return read_ordered(
            self.reading.source(self.files),
            progress=progress.reading,
            client=cluster(self.reading.dask, progress),
            recode=self.categories.recode,
            reverse=reverse,
            unused=unused,
            **how,
        )

    @property
    def model(self) -> str:
        return self.categories.model or "pcm"

    def run(self) -> OrderedAnalysis:
        """Read, fit, analyse, and write the results where a place was named."""
        self.check()
        estimator = make_ordered(self.model, self.fitting.estimator, self.fitting.parameters())
        start = time.perf_counter()
        with Progress() as progress:
            groups = self.read_groups()
            responses = self.read(progress)
            read = time.perf_counter()
            estimator.fit(responses, progress=progress.say, checkpoint=self.fitting.checkpoint)
            fitted = time.perf_counter()
            study: Any = estimator.analyse(responses, ability=self.wanted.ability, progress=progress.say)
            if self.notes:
                study.calibration = study.calibration.replace(findings=(*self.notes, *study.calibration.findings))
            self.parts = parts = self.wanted_parts(study, {one.column: one.of(responses) for one in groups})
            scale = self.wanted.mean_and_sd()
            study = study if scale is None else study.rescale(*scale)
            study.findings(parts)  # computed before anything is shown or written
            self.write(study, parts, progress)
        end = time.perf_counter()
        self.times = f"Read in {read - start:.2f} s, fitted in {fitted - read:.2f} s, analyzed in {end - fitted:.2f} s."
        return study

    def read_groups(self) -> list[Groups]:
        """The groups of people that are to be compared."""
        wanted = self.wanted
        if not wanted.group and wanted.group_file is None and wanted.group_sheet is None:
            return []
        from spectral_irt.cli.groups import read_groups

        return read_groups(
            wanted.group or [], wanted.group_file, self.files, self.reading, group_sheet=wanted.group_sheet
        )

    def wanted_parts(self, study: OrderedAnalysis, of: dict[str, list[Any]]) -> Parts:
        """Which parts of the analysis were asked for, or go without saying."""
        wanted = self.wanted
        return study.parts(
            persons=wanted.persons,
            fit=True if wanted.fit is None and wanted.bootstrap else wanted.fit,
            writing=self.output is not None or wanted.report is not None,
            bootstrap=wanted.bootstrap or 0,
            sample=wanted.sample,
            top=wanted.rank,
            rank_by=wanted.rank_by or "difficulty",
            groups=of,
            described={} if wanted.persons is False else of,
        )

    def said(self) -> dict[str, Any]:
        """The options of reading that differ from their defaults."""
        mine = {name: getattr(self.categories, name) for name in changed(self.categories) if name != "model"}
        return {**self.reading.said(), **mine}

    def record(self, study: OrderedAnalysis) -> dict[str, Any]:
        """The record of the analysis, and what only the command knows."""
        from spectral_irt.analysis.record import file_digests
        from spectral_irt.workbook import is_workbook

        files = {"files": list(self.files), "digests": file_digests(self.files), "reading": self.said()}
        record = study.record(self.parts)
        record |= {"model": self.model, "input": {"source": study.responses.source, **files}}
        whole = self.output is not None and is_workbook(self.output)
        return {**record, "outputs": [self.output.name] if self.output is not None and whole else list(self.results)}

    def write(self, study: OrderedAnalysis, parts: Parts, progress: Progress) -> None:
        """Results and pictures where places were named: all of it, or nothing."""
        from spectral_irt.analysis.ordered_files import Writers, ordered_files
        from spectral_irt.workbook import is_workbook, too_long
        from spectral_irt.writing import write_each

        writers: Writers = {}
        stale: list[Path] = []
        if self.wanted.plots is not None:
            from spectral_irt.plots.ordered_plots import ordered_pictures

            progress.say("pictures")
            pictures = ordered_pictures(study)
            writers |= pictures.writers(self.picture_places())
            self.left_out = pictures.left_out
        if self.wanted.report is not None:
            from spectral_irt.report.ordered_report import ordered_page

            page = ordered_page(study, parts, self.record(study), list_persons=self.wanted.list_persons)
            writers[self.wanted.report] = lambda draft: draft.write_text(page, encoding="utf-8", newline="\n")
        if self.output is not None:
            tables = study.tables(parts)
            self.too_long = too_long(tables) if is_workbook(self.output) else {}
            results, stale = ordered_files(self.output, tables, self.record(study), parquet=self.parquet)
            writers |= results
            names = [name for name in tables if name not in self.too_long]
            self.results = names if is_workbook(self.output) else [path.name for path in results]
        if writers:
            write_each(writers, inputs=self.reading.inputs(self.files), stale=stale)

    def calibrate(self, saying: Saying) -> None:
        """All of it, with the summary on the terminal."""
        study = self.run()
        saying.end(lambda: self.show(study), lambda: self.record(study), study.findings())

    def look(self) -> tuple[OrderedResponses, list[Finding]]:
        """The answers, and what is odd in their design; nothing is fitted."""
        from spectral_irt.responses.step_design import examine_ordered

        self.check()
        make_ordered(self.model, self.fitting.estimator, self.fitting.parameters())
        with Progress() as progress:
            responses = self.read(progress)
        return responses, [*self.notes, *responses.notes, *examine_ordered(responses).findings]

    def show(self, study: OrderedAnalysis) -> None:
        """The summary, and where the results are."""
        from rich.text import Text

        from spectral_irt.analysis.ordered_summary import show_ordered
        from spectral_irt.display import console, say
        from spectral_irt.errors import printable

        out = console()
        assert self.parts is not None
        show_ordered(out, study, self.parts, times=self.times)
        say(out)
        if self.output is None and self.wanted.plots is None and self.wanted.report is None:
            say(out, Text("Nothing was saved; add -o DIR for all items, all people and a record of the fit."))
            return
        said = Text()
        if self.output is not None:
            names = ", ".join(self.results)
            said.append("Results are in ").append(printable(self.output), style="bold").append(f": {names}. ")
        for name, rows in self.too_long.items():
            said.append(f"{name} has {rows:,} rows, more than a sheet, and was left out; -o DIR writes it as CSV. ")
        if self.wanted.plots is not None:
            said.append("Pictures are in ").append(printable(self.wanted.plots), style="bold").append(". ")
        if self.wanted.report is not None:
            said.append("The report is ").append(printable(self.wanted.report), style="bold").append(". ")
        for name, reason in self.left_out.items():
            said.append(f"No picture of {name}: {printable(reason)} ")
        said.rstrip()
        say(out, said)


def either(binary: Callable[[], None], job: OrderedJob, ordered: Callable[[], None]) -> None:
    """Do what is done with right and wrong answers, or with ordered ones, if the options or the answers say so."""
    job.categories.check()
    if not job.categories.said:
        try:
            return binary()
        except ResponseValueError:
            if not seen_as_ordered(job):
                raise
    return ordered()


def changed(group: Any) -> list[str]:
    """Options of a group that differ from their defaults."""
    default = type(group)()
    return [one.name for one in fields(group) if getattr(group, one.name) != getattr(default, one.name)]


def seen_as_ordered(job: OrderedJob) -> bool:
    """Whether answers that are not 0 and 1 are ordered categories, although nobody said so; then it is noted."""
    from spectral_irt.errors import SpectralIrtError
    from spectral_irt.responses import Finding
    from spectral_irt.responses.read_ordered import looks_ordered

    if set(changed(job.reading)) - {*READ, *MEMORY} or job.categories.model is not None:
        return False
    try:
        with Progress() as progress:
            found = job.read(progress)
    except SpectralIrtError:
        return False
    if not looks_ordered(found):
        return False
    job.notes.append(
        Finding(
            "partial_credit",
            "note",
            f"The answers are in up to {found.steps.widest + 1} ordered categories, so a partial credit model was "
            "fitted.",
            Words(
                "Fit a rating scale for items that share their categories, or say threshold= for right and wrong.",
                "Say --model rsm for items that share their categories, or --threshold for right and wrong.",
            ),
        )
    )
    return True
