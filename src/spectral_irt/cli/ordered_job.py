"""`spectral-irt fit` for answers in ordered categories: partial credit and rating scale."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.cli.categories import Categories, changed
from spectral_irt.cli.fitting import Fitting
from spectral_irt.cli.job import OrderedAnswers
from spectral_irt.cli.options import Reading
from spectral_irt.cli.populations import by_design
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.wanted import Wanted, check_styles
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.estimators.by_name import make_ordered

if TYPE_CHECKING:
    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
    from spectral_irt.analysis.parts import Parts
    from spectral_irt.bank import Bank
    from spectral_irt.cli.job import GroupsOf
    from spectral_irt.cli.saying import Saying
    from spectral_irt.data import Finding
    from spectral_irt.data.responses import Responses

RIGHT_OR_WRONG = ("correct", "threshold", "above_mean")  # options of reading that make answers so
# What is done for ordered answers too; every other option is for right and wrong ones.
FITTED = ("estimator", "design", "weighting", "regularization", "se", "max_iter", "threads")
COMPUTED = (
    *("cut", "cut_score", "draws", "seed"),
    *("persons", "fit", "ability", "bootstrap", "sample", "group", "group_file", "group_sheet", "scale", "anchors"),
    *("rank", "rank_by", "ifile", "sfile", "pfile", "plots", "report", "list_persons", "bank", "salt_file"),
)


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
    results: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    too_long: dict[str, int] = field(default_factory=dict)
    times: str = ""
    parts: Parts | None = None
    begun: float = field(default_factory=time.perf_counter)
    seen: Responses | None = None  # what was read to see whether the answers are ordered

    def check(self) -> None:
        """Refuse at once what could only fail after the work, and what would do nothing."""
        from spectral_irt.analysis.ordered_analysis import TABLES
        from spectral_irt.analysis.ordered_files import ordered_places
        from spectral_irt.xlsx import is_workbook

        foreign = [name for name in changed(self.reading) if name in RIGHT_OR_WRONG]
        for group, known in ((self.fitting, FITTED), (self.wanted, COMPUTED)):
            foreign += [name for name in changed(group) if name not in known]
        said = [f"--{name.replace('_', '-')}" for name in foreign]
        if said:
            verb = "is" if len(said) == 1 else "are"
            raise OptionError(
                f"these answers are in ordered categories, and {', '.join(said)} {verb} for right and wrong answers "
                "only; leave it out, or say --threshold to make them right and wrong."
            )
        self.check_design()
        self.wanted.check(self.output)
        if self.parquet and self.output is None:
            raise OptionError("--parquet is about the tables that are written; say where with -o DIR.")
        if self.parquet and self.output is not None and is_workbook(self.output):
            raise OptionError("--parquet writes files to a folder, and -o names a workbook; say -o DIR instead.")
        if self.output is not None:
            ordered_places(self.output, TABLES)
        self.picture_places()
        check_styles(self.wanted)
        self.check_bank()

    def check_design(self) -> None:
        """An error where the design has no estimator."""
        if by_design(self.fitting).design != "adaptive":
            return
        if self.model == "rsm":
            raise OptionError(
                "--design adaptive needs marginal maximum likelihood, which the rating scale model does not have here; "
                "say --model pcm."
            )
        if self.wanted.anchors is not None:
            raise OptionError("--anchors is for a fixed design; leave out --design adaptive.")

    def estimator(self) -> Any:
        """The estimator, that of the design."""
        settled = by_design(self.fitting)
        return make_ordered(self.model, settled.estimator, settled.parameters())

    def check_bank(self) -> None:
        """An error where a bank cannot be saved, or the anchors do not go with the rest."""
        from spectral_irt.cli.bank_places import refuse_bank_place, refuse_salt_place

        wanted = self.wanted
        if wanted.anchors is not None and (self.model != "pcm" or self.fitting.estimator != "spectral"):
            raise OptionError("--anchors goes with --model pcm and the spectral estimator.")
        if wanted.bank is None:
            return
        if wanted.anchors is not None and Path(wanted.anchors).resolve() == wanted.bank.resolve():
            raise OptionError(
                "--anchors and --bank name the same bank; spectral-irt update adds ordered answers to it, or keep the "
                "new calibration as another bank."
            )
        places = [wanted.ifile, wanted.sfile, wanted.pfile, wanted.report, self.output and self.output / "fit.json"]
        if any(path is not None and path.absolute().parent == wanted.bank.absolute() for path in places):
            raise OutputError(
                f"a bank has a folder of its own, and {str(wanted.bank)!r} gets other results; choose another for one "
                "of them. Nothing was written."
            )
        refuse_bank_place(wanted.bank)
        refuse_salt_place(wanted.salt_file, wanted.bank)

    def picture_places(self) -> list[Path]:
        """Where pictures go; an error when a file is in the way that we did not write."""
        if self.wanted.plots is None:
            return []
        from spectral_irt.plots.all import standard_paths

        return standard_paths(self.wanted.plots)

    def read(self, progress: Progress) -> Responses:
        if self.seen is not None:
            seen, self.seen = self.seen, None
            return seen
        people = self.wanted.group if self.wanted.group_file is None else None
        return self.reading.read(self.files, progress, people=people or (), **self.categories.how())

    @property
    def model(self) -> str:
        return self.categories.model or "pcm"

    def run(self) -> OrderedAnalysis:
        """Read, fit, analyse, and write the results where a place was named."""
        self.check()
        estimator = self.estimator()
        with Progress() as progress:
            groups_of = self.read_groups()
            responses = self.read(progress)
            read = time.perf_counter()
            design: dict[str, Any] = {"design": "adaptive"} if self.fitting.design == "adaptive" else {}
            if self.wanted.anchors is not None:
                from spectral_irt.bank.anchors import anchored_to

                responses, design["anchors"] = anchored_to(responses, self.wanted.anchors)
            estimator.fit(responses, progress=progress.say, **design)
            fitted = time.perf_counter()
            study: Any = estimator.analyse(responses, ability=self.wanted.ability, progress=progress.say)
            self.parts = parts = self.wanted_parts(study, {} if groups_of is None else groups_of(responses))
            scale = self.wanted.mean_and_sd()
            study = study if scale is None else study.rescale(*scale)
            study.findings(parts)  # computed before anything is shown or written
            if parts.cuts:
                study.cut_columns(parts.cuts, raw=parts.cut_raw)  # what is wrong with a cut shows here
            self.write(study, parts, progress)
        end = time.perf_counter()
        reading = read - self.begun
        self.times = f"Read in {reading:.2f} s, fitted in {fitted - read:.2f} s, analyzed in {end - fitted:.2f} s."
        return study

    def read_groups(self) -> GroupsOf | None:
        """The groups of people that are to be compared."""
        wanted = self.wanted
        if not wanted.group and wanted.group_file is None and wanted.group_sheet is None:
            return None
        from spectral_irt.cli.groups import read_groups

        return read_groups(wanted.group or [], wanted.group_file, self.reading, group_sheet=wanted.group_sheet)

    def wanted_parts(self, study: OrderedAnalysis, of: dict[str, list[Any]]) -> Parts:
        """Which parts of the analysis were asked for, or go without saying."""
        wanted = self.wanted
        return study.parts(
            persons=True if wanted.persons is None and wanted.pfile is not None else wanted.persons,
            fit=True if wanted.fit is None and (wanted.bootstrap or wanted.ifile is not None) else wanted.fit,
            writing=self.output is not None or wanted.report is not None,
            bootstrap=wanted.bootstrap or 0,
            sample=wanted.sample,
            top=wanted.rank,
            rank_by=wanted.rank_by or "difficulty",
            groups=of,
            described={} if wanted.persons is False else of,
            cuts=wanted.cuts(),
            cut_raw=wanted.cut_score is not None,
            draws=wanted.draws or 5,
            seed=wanted.seed or 0,
        )

    def said(self) -> dict[str, Any]:
        """The options of reading that differ from their defaults."""
        mine = {name: getattr(self.categories, name) for name in changed(self.categories) if name != "model"}
        people = {"people": self.wanted.group} if self.wanted.group and self.wanted.group_file is None else {}
        return {**self.reading.said(), **mine, **people}

    def record(self, study: OrderedAnalysis) -> dict[str, Any]:
        """The record of the analysis, and what only the command knows."""
        from spectral_irt.analysis.record import file_digests
        from spectral_irt.xlsx import is_workbook

        files = {
            "files": list(self.files),
            "digests": file_digests(self.files, study.responses.engine),
            "reading": self.said(),
        }
        record = study.record(self.parts)
        record |= {"model": self.model, "input": {"source": study.responses.source, **files}}
        whole = self.output is not None and is_workbook(self.output)
        return {**record, "outputs": [self.output.name] if self.output is not None and whole else list(self.results)}

    def write(self, study: OrderedAnalysis, parts: Parts, progress: Progress) -> None:
        """Results and pictures where places were named: all of it, or nothing."""
        from spectral_irt.analysis.folder import may_be_parted
        from spectral_irt.analysis.ordered_files import Writers, ordered_files
        from spectral_irt.files import all_or_nothing, naming
        from spectral_irt.xlsx import is_workbook, too_long

        writers: Writers = {}
        stale: list[Path] = []
        if self.wanted.plots is not None:
            from spectral_irt.plots.all import Pictures

            progress.say("pictures")
            pictures = Pictures.of(study)  # type: ignore[arg-type]
            writers |= pictures.writers(self.picture_places())
            self.left_out = pictures.left_out
        if self.wanted.report is not None:
            from spectral_irt.report.ordered_report import ordered_page

            page = ordered_page(study, parts, self.record(study), list_persons=self.wanted.list_persons)
            writers[self.wanted.report] = lambda draft: draft.write_text(page, encoding="utf-8", newline="\n")
        writers |= self.exports(study, parts)
        if self.output is not None:
            tables = study.tables(parts)
            self.too_long = too_long(tables) if is_workbook(self.output) else {}
            results, stale = ordered_files(
                self.output, tables, self.record(study), study.responses.engine, parquet=self.parquet
            )
            writers |= results
            names = [name for name in tables if name not in self.too_long]
            self.results = names if is_workbook(self.output) else [path.name for path in results]
        folders = [] if self.wanted.bank is None else [self.wanted.bank]
        bank = None if self.wanted.bank is None else self.bank_of(study, parts)
        targets = list(writers)
        with all_or_nothing(
            targets,
            inputs=self.inputs,
            folders=folders,
            stale=stale,
            last=save(bank, folders),
            parted=[] if self.output is None else may_be_parted(self.output),
        ) as drafts:
            for draft, target in zip(drafts, targets, strict=True):
                with naming(target):
                    writers[target](draft)
                if not draft.exists():  # people in parts are not in a CSV file too
                    self.results.remove(target.name)

    @property
    def inputs(self) -> list[str]:
        """What is read, and may not be replaced."""
        others = [self.wanted.group_file, self.wanted.anchors]
        return [*self.reading.inputs(self.files), *(str(one) for one in others if one is not None)]

    def exports(self, study: OrderedAnalysis, parts: Parts) -> dict[Path, Callable[[Path], object]]:
        """What writes the files for other programs."""
        from spectral_irt.bank.export import WINSTEPS_STYLES, ifile, pfile, sfile_text, winsteps_text

        wanted, scale = self.wanted, study.calibration.scale
        texts: dict[Path, str] = {}
        title = f"spectral-irt, {study.responses.source}"
        for path, columns in (
            (wanted.ifile, lambda: ifile(study.calibration, study.item_fit_columns(), scale=scale)),
            (wanted.pfile, lambda: pfile(study.person_columns(), scale=scale, wle=self.wanted.ability == "wle")),
        ):
            if path is not None:
                style = WINSTEPS_STYLES[path.suffix.lower()]
                texts[path] = winsteps_text(columns(), style, title=title if style == "fixed" else "")
        if wanted.sfile is not None:
            texts[wanted.sfile] = sfile_text(study.calibration, WINSTEPS_STYLES[wanted.sfile.suffix.lower()])
        return {path: partial(_put, text) for path, text in texts.items()}

    def bank_of(self, study: OrderedAnalysis, parts: Parts) -> Bank:
        """The bank of this calibration."""
        from spectral_irt.bank import to_bank

        calibration = study.calibration.replace(findings=study.findings(parts))
        return to_bank(calibration, study.responses, self.wanted.salt_file)

    def calibrate(self, saying: Saying) -> None:
        """All of it, with the summary on the terminal."""
        study = self.run()
        saying.end(lambda: self.show(study), lambda: self.record(study), study.findings())

    def look(self) -> tuple[Responses, list[Finding]]:
        """The answers, and what is odd in their design; nothing is fitted."""
        from spectral_irt.data.design import examine
        from spectral_irt.errors import DesignError
        from spectral_irt.estimators.spectral import SpectralPartialCredit
        from spectral_irt.inference.groups.hausman import quick_hausman

        self.check()
        self.estimator()
        with Progress() as progress:
            responses = self.read(progress)
            test = None
            if self.fitting.design != "adaptive":  # which would explain what the test finds
                progress.say("conditional against marginal likelihood")
                chain = SpectralPartialCredit(weighting="persons", refine=False, se="none", tol=1e-6, unused="keep")
                with suppress(DesignError):  # nothing can be estimated, which other findings tell
                    test = quick_hausman(responses, chain.fit(responses).thresholds_)
        found = [] if test is None else test.findings
        return responses, [*responses.notes, *examine(responses).findings, *found]

    def show(self, study: OrderedAnalysis) -> None:
        """The summary, and where the results are."""
        from rich.text import Text

        from spectral_irt.analysis.ordered_summary import show_ordered
        from spectral_irt.errors import printable
        from spectral_irt.terminal import console, say

        out = console()
        assert self.parts is not None
        show_ordered(out, study, self.parts, times=self.times)
        say(out)
        wanted = self.wanted
        further = [path for path in (wanted.ifile, wanted.sfile, wanted.pfile, wanted.bank) if path is not None]
        if self.output is None and wanted.plots is None and wanted.report is None and not further:
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
        if further:
            said.append("Also written: ").append(", ".join(map(printable, further)), style="bold").append(". ")
        for name, reason in self.left_out.items():
            said.append(f"No picture of {name}: {printable(reason)} ")
        said.rstrip()
        say(out, said)


def _put(text: str, draft: Path) -> None:
    draft.write_text(text, encoding="utf-8", newline="")


def save(bank: Bank | None, folders: Sequence[Path]) -> Callable[[], None]:
    """What puts a bank in its place, last of all."""
    from spectral_irt.cli.bank_places import save_bank

    def last() -> None:
        for folder in folders:
            assert bank is not None
            save_bank(bank, folder)

    return last


def either(binary: Callable[[], None], job: OrderedJob, ordered: Callable[[], None]) -> None:
    """Do what is done with right and wrong answers, or with ordered ones, if the options or the answers say so."""
    job.categories.check()
    if not job.categories.said:
        try:
            return binary()
        except OrderedAnswers as found:
            job.seen = found.responses
    return ordered()
