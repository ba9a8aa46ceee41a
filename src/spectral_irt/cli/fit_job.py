"""A calibration as the command line does it: read, fit, analyze, write all or nothing."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.analysis.facets import facet_tables
from spectral_irt.analysis.folder import (
    MORE,
    OF_PEOPLE,
    QUICK,
    RECORD,
    TABLES,
    check_draws,
    file_digests,
    result_paths,
    write_ledger,
    write_result,
)
from spectral_irt.analysis.hold_out import divided_by_label
from spectral_irt.analysis.ledger import MOVES_FILE
from spectral_irt.analysis.moves import Changes, Move
from spectral_irt.analysis.second_fit import digest_of, findings_for, rating_scales, with_record
from spectral_irt.analysis.summary import part_lines, people_tables
from spectral_irt.calibration import RATING_SCALE
from spectral_irt.cli.fit_options import IDLE_SEED, Method, Results
from spectral_irt.cli.options import Answers, Call, changed, is_called_a_file, shareable
from spectral_irt.cli.terminal import Progress
from spectral_irt.data.groupings import Grouping, grouping_of
from spectral_irt.errors import DesignError, OptionError, OutputError, SpectralIrtError
from spectral_irt.estimators.by_name import make_estimator
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.reading.side_tables import read_people
from spectral_irt.text import listed
from spectral_irt.xlsx import is_workbook

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis, Parts
    from spectral_irt.bank import Bank
    from spectral_irt.data import Responses
    from spectral_irt.data.labels import People
    from spectral_irt.errors import Finding
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.plots.all import Pictures
    from spectral_irt.tables import Columns

MOST_LEVELS = 100  # beyond, the column is more likely an age or a name than a group
ANCHORED = ("regularization", "assume_equal_means", "se", "max_iter", "threads")  # parameters of anchored calibrations


@dataclass
class FitJob:
    """A calibration to be done: where the answers come from, how to fit, what else to compute, where it all goes.

    Whether answers are right and wrong or in ordered categories is known when they have been read, and not asked
    before.
    """

    files: Sequence[str]
    reading: Answers
    method: Method
    results: Results
    call: Call = field(default_factory=Call)
    source: Callable[[Progress], Responses] | None = None  # of answers that are in no file
    said: dict[str, Any] | None = None  # how they are read, for the record
    study: Analysis = field(init=False)
    parts: Parts = field(init=False)
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    tables: dict[str, Columns] = field(default_factory=dict)
    page: str = ""  # the report
    pupil_pages: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
    pictures: Pictures | None = None

    def run(self) -> None:
        """Read, fit, analyse, and write the results where places were named."""
        self.check()
        targets, stale = self._places()
        more: dict[str, Any] = {"inputs": self._inputs(), "stale": stale}
        if (bank := self.results.bank) is not None:
            more |= {"folders": [bank], "last": functools.partial(self._save_bank, bank)}
        with all_or_nothing(targets, **more) as drafts:
            self._calibrate()
            for draft, target in zip(drafts, targets, strict=True):
                self._write(draft, target)

    def check(self) -> None:
        """An error when the options do not go together, or when one of them would do nothing."""
        self.method = self.method.settled()
        for unfit, sentence in self._refusals():
            if unfit:
                raise OptionError(sentence)
        check_draws(self.results.critical[0])
        if self.reading.ordered:
            self._refuse_for_categories([name for name in changed(self.reading) if name in ("correct", "threshold")])
        for page in filter(None, (self.results.report, self.results.pupil_pages)):
            from spectral_irt.report.page import check_place

            check_place(page)
        self._estimator()

    def _refusals(self) -> list[tuple[Any, str]]:
        """What does not go together, or could only fail after the work, or would do nothing; and what to say then."""
        results, method = self.results, self.method
        output, report, facet = results.output, results.report, method.facet
        no_persons, no_fit = results.skip.get("persons") is False, results.skip.get("fit") is False
        (top, by), (draws, _), (ability, _) = results.rank, results.critical, results.ability
        free_without_anchors = results.free and results.anchors is None
        free_in_the_bank = results.free and self._enlarged is not None
        beside = {
            "--bank": results.bank, "--anchors": results.anchors, "--rank": top, "--critical": draws,
            "--clustered-by": method.clustered_by, "--form": results.form,
            "--design adaptive": method.design == "adaptive", "--item-covariates": results.item_covariates,
            f"--estimator {method.estimator}": method.estimator != "spectral" and method.design != "adaptive",
        }  # fmt: skip
        unlike = list(filter(beside.get, beside))
        listing = "say where with --report FILE" if report is None else "leave out --skip persons"
        unwanted = "--skip persons" if no_persons else "--skip fit"
        in_rows = self._columns() and results.group_file is None and self.reading.layout == "items-in-rows"
        untitled = report is None and (results.author or (results.title and results.pupil_pages is None))
        unlisted = results.list_persons and (report is None or no_persons)
        a_file = output is not None and is_called_a_file(output)
        no_errors = by == "lower" and method.set.get("se") == "none"
        shows_scale = output or report or results.pupil_pages or results.bank or results.cut[0] or results.dry_run
        unscaled = results.scale and not shows_scale
        no_ability = ability != "wle" and no_persons and results.scale is None
        idle_seed = results.seed is not None and ability != "pv" and results.hold_out is None
        no_effects = {
            "--model rsm": self.reading.model == "rsm", "--design adaptive": method.design == "adaptive",
            "--survey-weight": method.survey_weight, "--clustered-by": method.clustered_by,
        }  # fmt: skip
        without_effects = list(filter(no_effects.get, no_effects)) if results.item_covariates is not None else []
        in_workbook = results.parquet and output is not None and is_workbook(output)
        return [
            (idle_seed, IDLE_SEED),
            (free_without_anchors, "--free names anchors that are to be estimated; say which anchors with --anchors."),
            (
                free_in_the_bank,
                "--free estimates items that the bank has at another difficulty; keep the new calibration as another "
                "bank (--bank OTHER).",
            ),
            (facet and unlike, f"--facet does not go with {', '.join(unlike)} yet; leave out one of them."),
            (
                without_effects,
                f"--item-covariates does not go with {', '.join(without_effects)}; leave out one of them.",
            ),
            (facet and (no_fit or no_persons), "--facet is about people and ratings; leave out --skip."),
            (results.cut[0] and no_persons, "--cut is about people; leave out --skip persons."),
            (results.plots and (no_persons or no_fit), f"--plots shows people and item fit; leave out {unwanted}."),
            (
                results.pupil_pages and (no_persons or facet),
                f"--pupil-pages shows the measures of single persons; leave out {'--facet' if facet else unwanted}.",
            ),
            (report and report == results.pupil_pages, "--report and --pupil-pages name one file; choose two."),
            (unlisted, f"--list-persons lists people in a report; {listing}."),
            (draws and no_fit, "--critical is about the fit of items; leave out --skip fit."),
            (draws and method.design == "adaptive", "--critical draws given the scores; leave out --design adaptive."),
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
        ordered = self.reading.ordered if responses is None else not responses.thresholds.binary
        if responses is not None and ordered:
            self._refuse_for_categories()
        model = self.reading.model or ("pcm" if ordered else "rasch")
        method, parameters = self.method, self.method.parameters(self.call.threads)
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

        return AnchoredRasch(self._enlarged or self.results.anchors, free=self.results.free, **parameters)

    def read(self, progress: Progress) -> Responses:
        """The answers, with the columns about people that were asked for."""
        beside, along = None, self._columns()
        if self.results.group_file is not None:
            (file, sheet), along = self.results.group_file, []
            how = {"person": self.reading.person, "sheet": sheet, "encoding": self.reading.encoding}
            beside = read_people(file, self._columns(), **how)
        if self.source is not None:
            responses = self.source(progress)
        else:
            more = {"people": along, "facets": self.method.facet, **self.reading.categories()}
            if "wrong" in self.reading.blanks.values() and self.results.group_file is None:
                more["form"] = self.results.form
            responses = self.reading.read(self.files, progress, self.call, **more)
        return responses if beside is None else replace(responses, people=beside)

    def _columns(self) -> list[str]:
        """The columns about people that are needed: those whose groups are compared, and those of the method."""
        named = dict.fromkeys(self.results.group)
        of_method = (self.method.population_by, self.method.clustered_by, self.method.survey_weight)
        for column in (*of_method, self.results.form, *self.results.columns()):
            if column is not None:
                named[column] = None
        return list(named)

    def look(self, progress: Progress) -> Responses:
        """The answers, with everything refused that `fit` would refuse before it fits."""
        self.check()
        responses = self.read(progress)
        self._estimator(responses)
        return self._changed(responses, progress)[0].responses if self._changes_something else responses

    def groups(self, people: People, responses: Responses) -> dict[str, list[Any]]:
        """The group of every person by each column about people, None for those who have none."""
        source, many = responses.source, (self.method.clustered_by, self.method.survey_weight)
        found = {column: values.tolist() for column, values in people.items()}
        if self.results.group_file is not None:
            source = people.source
            if all(value is None for values in found.values() for value in values):
                raise OptionError(
                    f"none of the people in {source} is in {responses.source} ({listed(responses.persons)}). Check "
                    "that both name people alike."
                )
        for column, values in found.items():
            if column == self.results.form and column not in self.results.group:
                continue  # one form is enough, and `Booklets` says how many are too many
            cuts = self.results.group.get(column, ())
            labels = self._grouping(column, values).labels if column in self.results.group else values
            levels = sorted({str(label) for label in labels if label is not None})
            if cuts and len(levels) == 1:
                at = ", ".join(f"{cut:g}" for cut in cuts)
                raise OptionError(
                    f"{source}: the column {column!r} is to be cut at {at}, which puts everybody in one group, "
                    f"{levels[0]!r}. Choose cuts within its numbers."
                )
            if len(levels) < 2 and not (levels and column == self.method.survey_weight):  # weights may all be equal
                what = f"a single value, {levels[0]!r}" if levels else "no value at all"
                raise DesignError(
                    f"{source}: the column {column!r} has {what}; groups are two or more. Check the column."
                )
            if len(levels) > MOST_LEVELS and column not in many:
                raise OptionError(
                    f"{source}: the column {column!r} has {len(levels):,} different values ({listed(levels)}); at most "
                    f"{MOST_LEVELS} groups are compared. Merge them into a few, each of some hundred people."
                )
        return found

    def _grouping(self, column: str, values: Sequence[Any]) -> Grouping:
        """The groups of a column that are compared: its values, or intervals where it holds numbers such as age."""
        return grouping_of(column, values, self.results.group.get(column, ()))

    def _calibrate(self) -> None:
        results = self.results
        begun = time.perf_counter()
        with Progress() as progress:
            responses = self.read(progress)
            self._estimator(responses)  # errors before work
            read = time.perf_counter()
            changes = None
            if self._changes_something:
                changes, ledger = self._changed(responses, progress)
                responses = changes.responses
            of = self._groups_of(responses)
            with warnings.catch_warnings(record=True) as heard:
                study = self._fit(responses, progress, changes)
            if changes is not None:
                study._first_digest, study.ledger_findings = ledger
                with_record(study, changes)
            fitted = time.perf_counter()
            self.parts = parts = self._parts(study, of)
            if results.scale is not None:
                study = study.rescale(results.scale.first, results.scale.second, by=results.scale.by)
            self.study = study
            part_lines(study, parts)
            if parts.described or parts.cuts:
                people_tables(study, parts, width=80)  # what is wrong with a cut shows before anything is written
            study.findings(parts)
            every = results.every_table or (results.output is not None and is_workbook(results.output))
            self.tables = study.tables(parts, every=every) if results.output is not None else {}
            if results.plots is not None:
                from spectral_irt.plots.all import Pictures

                progress.say("pictures")
                self.pictures = Pictures.of(study, parts)
            if results.report is not None:
                from spectral_irt.report.page import page_of

                about = {"title": results.title, "author": results.author}
                self.page = page_of(study, parts, self.record(), list_persons=results.list_persons, **about)
            if results.pupil_pages is not None:
                from spectral_irt.report.pupils import pupil_pages

                self.pupil_pages = pupil_pages(study, results.title)
        end = time.perf_counter()
        if heard and not any(finding.code == "not_converged" for finding in study.calibration.findings):
            for warning in heard:  # else the finding has said the same
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.seconds = {"read": read - begun, "fit": fitted - read, "analysis": end - fitted, "total": end - begun}

    def _groups_of(self, responses: Responses) -> dict[str, list[Any]]:
        return {} if responses.people is None else self.groups(responses.people, responses)

    def _fit(self, responses: Responses, progress: Progress, changes: Changes | None = None) -> Analysis:
        """The analysis of these responses, as the method says; after moves, of the changed ones."""
        results, method = self.results, self.method
        estimator = self._estimator(responses)
        design = method.design_given(self._groups_of(responses))
        if estimator.several and results.anchors is not None:
            from spectral_irt.bank.anchors import anchored_to

            responses, design["anchors"] = anchored_to(responses, results.anchors)
            design["free"] = results.free
        if changes is not None and estimator.model == RATING_SCALE:
            estimator.set_params(groups=rating_scales(changes))
        estimator.fit(responses, progress=progress.say, **design)
        study = estimator.analyse(
            responses, ability=results.ability[0], trait=results.trait, form=results.form, progress=progress.say
        )
        if method.clustered_by is not None:
            progress.say("standard errors")
            study = study.clustered(method.clustered_by, method.population_by)
        return study

    def _changed(self, responses: Responses, progress: Progress) -> tuple[Changes, tuple[str, tuple[Finding, ...]]]:
        """The responses after the moves, with their record; the fingerprint of the responses before, and what there is
        to say where a file of moves is about others."""
        digest = digest_of(responses)
        ledger = self.results.ledger()
        moves = self.results.wanted()
        findings: tuple[Finding, ...] = ()
        division = self.results.held_out(self.results.seed)
        if division is None:
            findings = self._findings_that_ask(moves, responses, progress)
            changes = self._changes(responses, progress)
        else:
            changes = self._changes(responses, progress)
            for_choice = self._changes(responses, progress)
            parts = divided_by_label(responses, *division, self._clusters(responses))
            held_out = parts.hold_out(*division)
            for_choice.take_part(parts.for_choice, held_out._replace(for_choice=True))
            if not moves:
                return for_choice, (digest, ())
            changes.take_part(parts.for_results, held_out)
            findings = self._findings_that_ask(moves, for_choice.responses, progress)
            if any(move.name == "dif_resolve" for move in moves):
                for_choice.apply(moves, findings)
                moves = list(for_choice.moves)
        changes.apply(moves, findings)
        return changes, (digest, () if ledger is None else ledger.findings(digest))

    @property
    def _changes_something(self) -> bool:
        return self.results.moved or self.results.hold_out is not None

    def _changes(self, responses: Responses, progress: Progress) -> Changes:
        keeps = self.reading.unused == "keep" or self.reading.model == RATING_SCALE
        changes = Changes(responses, lambda changed: self._fit(changed, progress, changes), keep_unused=keeps)
        return changes

    def _clusters(self, responses: Responses) -> list[Any] | None:
        """The cluster of each person, by label, where persons came in clusters."""
        column = self.method.clustered_by
        if column is None:
            return None
        return self._groups_of(responses)[column]

    def _findings_that_ask(
        self, moves: Sequence[Move], responses: Responses, progress: Progress
    ) -> tuple[Finding, ...]:
        """What a fit of the responses as they are finds that may ask for the moves, where that is quick."""
        if responses.n_responses > QUICK or responses.facets is not None:
            return ()
        with warnings.catch_warnings(), suppress(SpectralIrtError):
            warnings.simplefilter("ignore")
            return findings_for(moves, self._fit(responses, progress))
        return ()

    def _parts(self, study: Analysis, of: dict[str, list[Any]]) -> Parts:
        """Which parts of the analysis were asked for, or go without saying."""
        results, by = self.results, self.method.population_by
        persons, fit, (critical, sample) = results.skip.get("persons"), results.skip.get("fit"), results.critical
        if study.facets:
            fit = None  # of ratings, the tables of items and raters have it anyway
        (top, rank_by), (cuts, raw) = results.rank, results.cut
        compared: dict[str, list[Any]] = {}
        described: dict[str, list[Any]] = {}
        notes: tuple[Finding, ...] = ()
        for name, values in of.items():
            if name in results.group or not self._columns():  # or the only column of --group-file
                grouping = self._grouping(name, values)
                compared[name] = grouping.labels
                notes += grouping.findings
            if persons is not False and (name in compared or name == by):
                described[name] = compared.get(name, values)
        parts = study.parts(
            persons=persons,
            fit=True if fit is None and critical else fit,
            writing=results.output is not None or results.report is not None,
            critical=critical or 0,
            sample=sample,
            top=top,
            rank_by=rank_by,
            groups=compared,
            populations=of.get(by or ""),
            described=described,
            cuts=cuts,
            cut_raw=raw,
            covariates=results.item_covariates,
            draws=results.ability[1] or 5,
            seed=results.seed or 0,
        )
        return replace(parts, notes=(*parts.notes, *notes))

    def _inputs(self) -> list[str]:
        """What is read, and may not be replaced; a bank that gives the anchors may grow (`--anchors A --bank A`)."""
        results = self.results
        others = [
            results.item_covariates,
            results.moves,
            results.persons_file,
            *([] if results.group_file is None else results.group_file[:1]),
        ]
        if results.bank is None or results.anchors is None or Path(results.anchors).resolve() != results.bank.resolve():
            others.append(results.anchors)
        return [*self.reading.inputs(self.files), *filter(None, others)]

    def _places(self) -> tuple[list[Path], list[Path]]:
        """Where everything may go but the bank, the record last; and which old files that makes stale."""
        results = self.results
        tables: list[Path] = []
        stale: list[Path] = []
        if results.output is not None:
            tables, stale = result_paths(results.output, self._wanted_tables(), parquet=results.parquet)
            if results.moved and not is_workbook(results.output):
                tables.insert(-1, results.output / MOVES_FILE)
                stale = [path for path in stale if path.name != MOVES_FILE]
        places = [*filter(None, (results.report, results.pupil_pages)), *tables]
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
        no_persons, no_fit = results.skip.get("persons") is False, results.skip.get("fit") is False
        unwanted = {"persons": no_persons, **dict.fromkeys(OF_PEOPLE, no_persons), "item_fit": no_fit, "curves": no_fit}
        unwanted |= {"dif": not compares, "dif_thresholds": not compares, "ranking": results.rank[0] is None}
        unwanted |= {"tailored": not results.tailors}
        unwanted |= {"cuts": not results.cut[0], "groups": not known or no_persons}
        scored_otherwise = bool(self.reading.correct) or self.reading.threshold is not None
        unwanted |= {"distractors": scored_otherwise, "covariates": results.item_covariates is None}
        if not results.every_table:
            unwanted |= dict.fromkeys(MORE, True)
        wanted = list(filterfalse(unwanted.get, TABLES))
        for names in facet_tables(self.method.facet, results.group).values():
            wanted += [names.levels, names.interactions, names.categories, *names.groups.values()]
            if results.every_table:
                wanted.append(names.contrasts)
        return wanted

    def _write(self, draft: Path, target: Path) -> None:
        with naming(target):
            if target == self.results.report:
                draft.write_text(self.page, encoding="utf-8", newline="")
            elif target == self.results.pupil_pages:
                draft.write_text(self.pupil_pages, encoding="utf-8", newline="")
            elif self.pictures is not None and target.suffix in (".svg", ".png"):
                self.pictures.write(draft, target)
            elif target.name == MOVES_FILE:
                write_ledger(self.study, draft)
                self.written.append(target.name)
            else:
                last = target.name == RECORD or is_workbook(target)
                record = self.record() if last else {}
                self.left_out = write_result(draft, target, self.tables, record)
                if is_workbook(target):
                    self.written = [name for name in self.tables if name not in self.left_out]
                elif draft.exists():
                    self.written.append(target.name)

    def record(self) -> dict[str, Any]:
        """The record of the analysis, and what only the command knows."""
        record, results, method = self.study.record(self.parts), self.results, self.method
        files = [*dict.fromkeys([*self.written, *([] if results.output is None else [RECORD])])]
        if results.output is not None and is_workbook(results.output):
            files = [results.output.name]
        more: dict[str, Any] = {"population_by": method.population_by, "clustered_by": method.clustered_by}
        more |= {"weight": method.survey_weight, "anchors": results.anchors, "free": results.free or None}
        more["form"] = results.form
        said = {**self.reading.given(self.files), "facets": method.facet, "people": self._columns()}
        if "wrong" in self.reading.blanks.values() and results.form is not None and results.group_file is None:
            said["form"] = results.form
        if results.group_file is not None:
            (file, sheet), _ = results.group_file, said.pop("people")
            more["people"] = {"file": file, "sheet": sheet, "person": self.reading.person}
            more["people"]["columns"] = list(self.study.responses.people or ())
        about_input = {
            "files": list(self.files),
            "digests": file_digests(self.files),
            "reading": self.said or {name: value for name, value in said.items() if value != []},
            **{name: value for name, value in more.items() if value is not None},
        }
        record["input"] |= shareable(about_input)
        return {
            **record,
            "outputs": files,
            "estimator": method.estimator,
            "argv": shareable([*self.call.argv]),
            "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
        }

    def _save_bank(self, folder: Path) -> None:
        from spectral_irt.bank.build import to_bank
        from spectral_irt.bank.merge import merged
        from spectral_irt.cli.data import save_bank

        study = self.study
        calibration = study.calibration.replace(findings=study.findings(self.parts))
        bank = to_bank(calibration, study.responses, study.weights, form=self.results.form)
        save_bank(bank if self._enlarged is None else merged(self._enlarged, bank, study.responses), folder)

    @functools.cached_property
    def _enlarged(self) -> Bank | None:
        """The bank that is both anchor and target, as it was before the work: its other items stay in it."""
        anchors, target = self.results.anchors, self.results.bank
        if anchors is None or target is None or not Path(anchors).is_dir() or not target.is_dir():
            return None
        from spectral_irt.bank import load

        return load(target) if Path(anchors).samefile(target) else None
