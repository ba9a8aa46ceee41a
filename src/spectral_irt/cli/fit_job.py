"""A calibration as the command line does it: read, fit, analyze, write all or nothing."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.analysis.facets import file_name
from spectral_irt.analysis.folder import MORE, OF_PEOPLE, RECORD, TABLES, result_paths, write_result
from spectral_irt.analysis.record import file_digests
from spectral_irt.analysis.summary import part_lines, people_tables
from spectral_irt.cli.data import groups_of, save_bank
from spectral_irt.cli.options import Call, Categories, Reading, changed, with_sheet
from spectral_irt.cli.terminal import Progress
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.estimators.by_name import make_estimator
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.reading.side_tables import read_people
from spectral_irt.xlsx import is_workbook

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis, Parts
    from spectral_irt.bank import Bank
    from spectral_irt.cli.fit_options import Method, Results
    from spectral_irt.data import Responses
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.plots.all import Pictures
    from spectral_irt.tables import Columns

# Options of reading that make answers right or wrong.
SCORED = ("correct", "threshold")
ANCHORED = ("regularization", "assume_equal_means", "se", "max_iter", "threads")  # parameters of anchored calibrations


@dataclass
class FitJob:
    """A calibration to be done: where the answers come from, how to fit, what else to compute, where it all goes.

    Whether answers are right and wrong or in ordered categories is known when they have been read, and not asked
    before.
    """

    files: Sequence[str]
    reading: Reading
    categories: Categories
    method: Method
    results: Results
    call: Call = field(default_factory=Call)
    source: Callable[[Progress], Responses] | None = None  # of answers that are in no file
    said: dict[str, Any] | None = None  # how they are read, for the record
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    tables: dict[str, Columns] = field(default_factory=dict)
    page: str = ""  # the report
    left_out: dict[str, int] = field(default_factory=dict)
    pictures: Pictures | None = None

    def run(self) -> tuple[Analysis, Parts]:
        """Read, fit, analyse, and write the results where places were named."""
        self.check()
        targets, stale = self._places()
        bank = self.results.bank
        keep: list[Callable[[], object]] = []
        places: dict[str, Any] = {"inputs": self._inputs(), "folders": [] if bank is None else [bank], "stale": stale}
        with all_or_nothing(targets, **places, last=lambda: [save() for save in keep]) as drafts:
            study, parts = self._calibrate()
            for draft, target in zip(drafts, targets, strict=True):
                self._write(draft, target, study, parts)
            if bank is not None:
                keep.append(functools.partial(save_bank, self._bank_of(study, parts), bank))
        return study, parts

    def check(self) -> None:
        """An error when the options do not go together, or when one of them would do nothing."""
        self.method = self.method.settled()
        for unfit, sentence in self._refusals():
            if unfit:
                raise OptionError(sentence)
        if self.categories.said:
            self._refuse_for_categories([name for name in changed(self.reading) if name in SCORED])
        if self.results.report is not None:
            from spectral_irt.report.page import check_place

            check_place(self.results.report)
        self._estimator()

    def _refusals(self) -> list[tuple[Any, str]]:
        """What does not go together, or could only fail after the work, or would do nothing; and what to say then."""
        results, method = self.results, self.method
        output, report, facet = results.output, results.report, method.facet
        no_persons, no_fit = results.part("persons") is False, results.part("fit") is False
        (top, by), (sets, _) = results.ranked(), results.simulated()
        results.mean_and_sd()  # an error where it is not two numbers
        beside = {
            "--bank": results.bank, "--anchors": results.anchors, "--rank": top, "--bootstrap": sets,
            "--clustered-by": method.clustered_by,
            "--design adaptive": method.design == "adaptive", "--item-covariates": results.item_covariates,
            f"--estimator {method.estimator}": method.estimator != "spectral" and method.design != "adaptive",
        }  # fmt: skip
        unlike = [name for name, said in beside.items() if said]
        listing = "say where with --report FILE" if report is None else "leave out --skip persons"
        unwanted = "--skip persons" if no_persons else "--skip fit"
        endings = (".html", ".htm", ".csv", ".json", ".parquet")
        in_rows = self._columns() and results.group_file is None and self.reading.layout == "items-in-rows"
        untitled = (results.title or results.author) and report is None
        unlisted = results.list_persons and (report is None or no_persons)
        a_file = output is not None and output.suffix.lower() in endings
        no_errors = by == "lower" and method.settings().get("se") == "none"
        unscaled = results.scale and not (output or report or results.bank or results.cut)
        no_ability = results.draws()[0] != "wle" and no_persons and results.scale is None
        in_workbook = results.parquet and output is not None and is_workbook(output)
        return [
            (facet and unlike, f"--facet does not go with {', '.join(unlike)} yet; leave out one of them."),
            (facet and (no_fit or no_persons), "--facet is about people and ratings; leave out --skip."),
            (results.cuts()[0] and no_persons, "--cut is about people; leave out --skip persons."),
            (results.plots and (no_persons or no_fit), f"--plots shows people and item fit; leave out {unwanted}."),
            (unlisted, f"--list-persons lists people in a report; {listing}."),
            (sets and no_fit, "--bootstrap is about the fit of items; leave out --skip fit."),
            (untitled, "--title and --author are for a report; say where with --report FILE."),
            (a_file, f"-o names a folder, or a workbook that ends in .xlsx, and is {str(output)!r}."),
            (top and output is None, "--rank writes a table beside items.csv; say where with -o DIR."),
            (no_errors, "--rank K:lower needs standard errors; leave out --set se=none."),
            (unscaled, "--scale is for what is written: -o DIR, --report or --bank."),
            (no_ability, "--ability is about people; leave it out, or leave out --skip persons."),
            (results.parquet and output is None, "--parquet is about the tables that -o DIR writes; say where."),
            (in_workbook, "--parquet writes files to a folder, and -o names a workbook; say -o DIR instead."),
            (in_rows, "with --layout items-in-rows a column is a person, and no group; use --group-file."),
        ]

    def _refuse_for_categories(self, said: Sequence[str] = ()) -> None:
        """An error where an option has no mathematics for answers in more than two categories: here, and only here."""
        if said:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in said)
            raise OptionError(
                f"these answers are in ordered categories, and {flags} {'is' if len(said) == 1 else 'are'} for right "
                "and wrong answers only; leave it out, or use --threshold to score answers as right or wrong."
            )
        anchors, bank = self.results.anchors, self.results.bank
        if anchors is not None and bank is not None and Path(anchors).resolve() == bank.resolve():
            raise OptionError(
                "--anchors and --bank name the same bank; spectral-irt update adds ordered answers to it, or keep the "
                "new calibration as another bank."
            )

    def _estimator(self, responses: Responses | None = None) -> RaschEstimator:
        """The estimator of these answers, or, before they are known, of those that the options are about."""
        ordered = self.categories.said if responses is None else not responses.thresholds.binary
        if responses is not None and ordered:
            self._refuse_for_categories()
        model = self.categories.model or ("pcm" if ordered else "rasch")
        method, parameters = self.method, self.method.parameters(self.call.machine.threads)
        if self.results.anchors is None:
            return make_estimator(method.estimator, parameters, model)
        if method.design == "adaptive":
            raise OptionError("--anchors is for a fixed design; leave out --design adaptive.")
        for name in ("clustered_by", "survey_weight"):
            if getattr(method, name) is not None:
                raise OptionError(f"--{name.replace('_', '-')} is not for anchored calibrations; leave out --anchors.")
        foreign = [f"`{name}`" for name in parameters if name not in ANCHORED]
        if method.estimator != "spectral" or foreign or model == "rsm":
            said = ["--estimator"] if method.estimator != "spectral" else []
            said += ["--model", *foreign] if model == "rsm" else foreign
            raise OptionError(
                "--anchors goes with the spectral estimator, ability weights, and thresholds of each item; leave out "
                f"{', '.join(said)}."
            )
        if model == "pcm":
            return make_estimator("spectral", parameters, model)
        from spectral_irt.estimators.anchored import AnchoredRasch

        return AnchoredRasch(self._enlarged or self.results.anchors, **parameters)

    def read(self, progress: Progress) -> Responses:
        """The answers, with the columns about people that were asked for."""
        file, sheet = with_sheet(self.results.group_file)
        beside = None
        if file is not None:
            how = {"person": self.reading.person, "sheet": sheet, "encoding": self.reading.encoding}
            beside = read_people(file, self._columns(), **how)
        if self.source is not None:
            responses = self.source(progress)
        else:
            along = [] if file is not None else self._columns()
            more = {"people": along, "facets": self.method.facet, **self.categories.how()}
            responses = self.reading.read(self.files, progress, self.call.machine, **more)
        return responses if beside is None else replace(responses, people=beside)

    def _columns(self) -> list[str]:
        """The columns about people that are needed: those whose groups are compared, and those of the method."""
        method = self.method
        named = [*self.results.group, method.population_by, method.clustered_by, method.survey_weight]
        return list(dict.fromkeys(column for column in named if column is not None))

    def look(self, progress: Progress) -> Responses:
        """The answers, with everything refused that `fit` would refuse before it fits."""
        self.check()
        responses = self.read(progress)
        self._estimator(responses)
        return responses

    def _calibrate(self) -> tuple[Analysis, Parts]:
        results, method = self.results, self.method
        ability, _ = results.draws()
        begun = time.perf_counter()
        with Progress() as progress:
            responses = self.read(progress)
            estimator = self._estimator(responses)
            read = time.perf_counter()
            of = groups_of(responses, (method.clustered_by, method.survey_weight), results.group_file is not None)
            design = method.design_given(of)
            if estimator.several and results.anchors is not None:
                from spectral_irt.bank.anchors import anchored_to

                responses, design["anchors"] = anchored_to(responses, results.anchors)
            with warnings.catch_warnings(record=True) as heard:
                estimator.fit(responses, progress=progress.say, **design)
            study = estimator.analyse(responses, ability=ability, trait=results.trait, progress=progress.say)
            if method.clustered_by is not None:
                progress.say("standard errors")
                study = study.clustered(method.clustered_by, method.population_by)
            fitted = time.perf_counter()
            parts = self._parts(study, of)
            scale = results.mean_and_sd()
            study = study if scale is None else study.rescale(*scale)
            part_lines(study, parts)
            people_tables(study, parts, width=80)  # what is wrong with a cut shows before anything is shown or written
            study.findings(parts)
            every = results.every_table or (results.output is not None and is_workbook(results.output))
            self.tables = study.tables(parts, every=every) if results.output is not None else {}
            if results.plots is not None:
                from spectral_irt.plots.all import Pictures

                progress.say("pictures")
                self.pictures = Pictures.of(study, parts)
            if results.report is not None:
                from spectral_irt.report.page import page_of

                record, about = self.record(study, parts), {"title": results.title, "author": results.author}
                self.page = page_of(study, parts, record, list_persons=results.list_persons, **about)
        end = time.perf_counter()
        if not any(finding.code == "not_converged" for finding in study.calibration.findings):  # says the same, once
            for warning in heard:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.seconds = {"read": read - begun, "fit": fitted - read, "analysis": end - fitted, "total": end - begun}
        return study, parts

    def _parts(self, study: Analysis, of: dict[str, list[Any]]) -> Parts:
        """Which parts of the analysis were asked for, or go without saying."""
        results, by = self.results, self.method.population_by
        persons, fit, (sets, sample) = results.part("persons"), results.part("fit"), results.simulated()
        (top, rank_by), (cuts, raw) = results.ranked(), results.cuts()
        # Those of --group are compared, or the only column of --group-file.
        compared = {name: of[name] for name in of if name in results.group or not self._columns()}
        described = {name: of[name] for name in of if name in compared or name == by}
        return study.parts(
            persons=persons,
            fit=True if fit is None and sets else fit,
            writing=results.output is not None or results.report is not None,
            bootstrap=sets or 0,
            sample=sample,
            top=top,
            rank_by=rank_by,
            groups=compared,
            populations=of.get(by or ""),
            described={} if persons is False else described,
            cuts=cuts,
            cut_raw=raw,
            covariates=results.item_covariates,
            draws=results.draws()[1] or 5,
            seed=results.seed or 0,
        )

    def _inputs(self) -> list[str]:
        """What is read, and may not be replaced; a bank that gives the anchors may grow (`--anchors A --bank A`)."""
        results = self.results
        others = [with_sheet(results.group_file)[0], results.item_covariates]
        if results.bank is None or results.anchors is None or Path(results.anchors).resolve() != results.bank.resolve():
            others.append(results.anchors)
        return [*self.reading.inputs(self.files), *(str(path) for path in others if path is not None)]

    def _places(self) -> tuple[list[Path], list[Path]]:
        """Where everything may go but the bank, the record last; and which old files that makes stale."""
        results = self.results
        tables: list[Path] = []
        stale: list[Path] = []
        if results.output is not None:
            tables, stale = result_paths(results.output, self._wanted_tables(), parquet=results.parquet)
        places = [*([] if results.report is None else [results.report]), *tables]
        if results.plots is not None:
            from spectral_irt.plots.all import standard_paths

            places = [*standard_paths(results.plots), *places]
        if results.bank is not None:
            if any(path.absolute().parent == results.bank.absolute() for path in places):
                raise OutputError(
                    f"a bank has a folder of its own, and {str(results.bank)!r} gets other results; choose another for "
                    "one of them. Nothing was written."
                )
            from spectral_irt.bank.storage import is_bank

            is_bank(results.bank)  # an error where no bank can be saved
        return places, stale

    def _wanted_tables(self) -> list[str]:
        """The tables that there may be, of either kind of answers."""
        results, known = self.results, self._columns() or self.results.group_file is not None
        compares = bool(results.group) or (results.group_file is not None and not self._columns())
        no_persons, no_fit = results.part("persons") is False, results.part("fit") is False
        unwanted = {"persons": no_persons, **dict.fromkeys(OF_PEOPLE, no_persons), "item_fit": no_fit, "curves": no_fit}
        unwanted |= {"dif": not compares, "dif_thresholds": not compares, "ranking": results.rank is None}
        unwanted |= {"cuts": results.cut is None, "groups": not known or no_persons}
        unwanted |= {"distractors": self.reading.key is None, "covariates": results.item_covariates is None}
        if not results.every_table:
            unwanted |= dict.fromkeys(MORE, True)
        facets = [file_name(name) for name in self.method.facet]
        by = [f"{one}_{file_name(other)}" for one in facets for other in ("interactions", *results.group)]
        return [*(table for table in TABLES if not unwanted.get(table)), *facets, *by]

    def _write(self, draft: Path, target: Path, study: Analysis, parts: Parts) -> None:
        with naming(target):
            if target == self.results.report:
                draft.write_text(self.page, encoding="utf-8", newline="")
            elif self.pictures is not None and target.suffix in (".svg", ".png"):
                self.pictures.write(draft, target)
            else:
                last = target.name == RECORD or is_workbook(target)
                record = self.record(study, parts) if last else {}
                self.left_out = write_result(draft, target, self.tables, record)
                if is_workbook(target):
                    self.written = [name for name in self.tables if name not in self.left_out]
                elif draft.exists():
                    self.written.append(target.name)

    def record(self, study: Analysis, parts: Parts) -> dict[str, Any]:
        """The record of the analysis, and what only the command knows."""
        record, results, method = study.record(parts), self.results, self.method
        files = [*dict.fromkeys([*self.written, *([] if results.output is None else [RECORD])])]
        if results.output is not None and is_workbook(results.output):
            files = [results.output.name]
        columns = {"population_by": method.population_by, "clustered_by": method.clustered_by}
        file, sheet = with_sheet(results.group_file)
        beside: dict[str, Any] | None = None
        if file is not None:
            beside = {"file": file, "sheet": sheet, "person": self.reading.person}
            beside["columns"] = list(study.responses.people or ())
        more = {**columns, "weight": method.survey_weight, "people": beside, "anchors": results.anchors}
        along = {"people": [] if file is not None else self._columns(), "facets": list(method.facet)}
        said = {**self.reading.said(self.files), **{name: value for name, value in along.items() if value}}
        said |= {name: getattr(self.categories, name) for name in changed(self.categories) if name != "model"}
        record["input"] |= {
            "files": list(self.files),
            "digests": file_digests(self.files),
            "reading": said if self.said is None else self.said,
            **{name: value for name, value in more.items() if value is not None},
        }
        return {
            **record,
            "outputs": files,
            "estimator": method.estimator,
            "argv": [*self.call.argv],
            "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
        }

    def _bank_of(self, study: Analysis, parts: Parts) -> Bank:
        from spectral_irt.bank.build import merged, to_bank

        bank = to_bank(study.calibration.replace(findings=study.findings(parts)), study.responses)
        return bank if self._enlarged is None else merged(self._enlarged, bank, study.responses)

    @functools.cached_property
    def _enlarged(self) -> Bank | None:
        """The bank that is both anchor and target, as it was before the work: its other items stay in it."""
        anchors, target = self.results.anchors, self.results.bank
        if anchors is None or target is None or not Path(anchors).is_dir() or not target.is_dir():
            return None
        from spectral_irt.bank import load

        return load(target) if Path(anchors).samefile(target) else None
