"""A calibration as the command line does it: read, fit, analyze, write all or nothing."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spectral_irt.analysis.facets import facet_tables
from spectral_irt.analysis.folder import (
    MORE,
    OF_PEOPLE,
    QUICK,
    RECORD,
    TABLES,
    check_draws,
    file_digests,
    is_one_file,
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
from spectral_irt.cli.fit_options import Method, Results
from spectral_irt.cli.fit_rules import FitOptions, refusals
from spectral_irt.cli.options import Answers, Call, options_in_use, shareable
from spectral_irt.cli.terminal import Progress
from spectral_irt.data.groupings import Grouping, grouping_of
from spectral_irt.errors import DesignError, OptionError, OutputError, SpectralIrtError
from spectral_irt.estimators.by_name import make_estimator
from spectral_irt.files import all_or_nothing, errors_with_target
from spectral_irt.persons_file import is_persons_file
from spectral_irt.reading.side_tables import read_people
from spectral_irt.reading.waves import WAVE, by_waves
from spectral_irt.text import listed, one_or_many
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

MOST_GROUPS = 100  # beyond, the column is more likely an age or a name than a group
ANCHORED = ("regularization", "assume_equal_means", "se", "max_iter", "threads")  # parameters of anchored calibrations


class Changed(NamedTuple):
    """Responses after the moves, with their record; the fingerprint of the responses before, and what there is to say
    where a file of moves is about others."""

    changes: Changes
    digest_before: str
    findings: tuple[Finding, ...] = ()


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
    reading_options: dict[str, Any] | None = None  # how those are read, for the record
    study: Analysis = field(init=False)
    parts: Parts = field(init=False)
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    tables: dict[str, Columns] = field(default_factory=dict)
    page: bytes = b""  # the report
    pupil_pages: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
    wave_order: list[str] = field(default_factory=list)  # of a wide table
    pictures: Pictures | None = None

    def run(self) -> None:
        """Read, fit, analyse, and write the results where places were named."""
        self.check()
        targets, stale = self._places()
        bank = self.results.bank
        folders = []
        save_bank = None
        if bank is not None:
            folders = [bank]
            save_bank = functools.partial(self._save_bank, bank)
        with all_or_nothing(targets, inputs=self._inputs(), stale=stale, folders=folders, last=save_bank) as drafts:
            self._calibrate()
            for draft, target in zip(drafts, targets, strict=True):
                self._write(draft, target)

    def check(self) -> None:
        """An error when the options do not go together, or when one of them would do nothing."""
        self.method = self.method.with_estimator()
        options = FitOptions(
            reading=self.reading,
            method=self.method,
            results=self.results,
            columns=self._columns(),
            frees_items_of_its_bank=bool(self.results.free) and self._bank_before is not None,
        )
        for sentence in refusals(options):
            raise OptionError(sentence)
        check_draws(self.results.critical[0])
        if self.reading.are_ordered:
            self._refuse_for_categories(
                [name for name in options_in_use(self.reading) if name in ("correct", "threshold")]
            )
        if self.results.report is not None:
            from spectral_irt.report.page import check_report

            check_report(self.results.report)
        if self.results.pupil_pages is not None:
            from spectral_irt.report.page import check_place

            check_place(self.results.pupil_pages)
        self._estimator()

    def _refuse_for_categories(self, of_right_and_wrong: Sequence[str] = ()) -> None:
        """An error where an option has no mathematics for answers in more than two categories: here, and only here."""
        if of_right_and_wrong:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in of_right_and_wrong)
            are = one_or_many(len(of_right_and_wrong), "is", "are")
            raise OptionError(
                f"these answers are in ordered categories, and {flags} {are} for right and wrong answers only; leave "
                "it out, or use --threshold to score answers as right or wrong."
            )
        if self.results.anchors is not None and self._anchors_are_the_bank:
            raise OptionError(
                "--anchors and --bank name the same bank; spectral-irt update adds ordered answers to it, or keep the "
                "new calibration as another bank."
            )

    def _estimator(self, responses: Responses | None = None) -> RaschEstimator:
        """The estimator of these answers, or, before they are known, of those that the options are about."""
        if responses is None:
            ordered = self.reading.are_ordered
        else:
            ordered = not responses.thresholds.binary
            if ordered:
                self._refuse_for_categories()
        model = self.reading.model or ("pcm" if ordered else "rasch")
        parameters = self.method.parameters(self.call.threads)
        if self.results.anchors is None:
            return make_estimator(self.method.estimator, parameters, model)
        self._refuse_with_anchors(parameters, model)
        if model == "pcm":
            return make_estimator("spectral", parameters, model)
        from spectral_irt.estimators.anchored import AnchoredRasch

        return AnchoredRasch(self._bank_before or self.results.anchors, free=self.results.free, **parameters)

    def findings_of_ratings(self, responses: Responses, progress: Progress) -> list[Finding]:
        """What a fit of ratings has to say about the data: subsets that nothing links, people who tell nothing."""
        estimator = self._estimator(responses).fit(responses, progress=progress.say)
        return [finding for finding in estimator.findings_ if finding not in responses.notes]

    def _refuse_with_anchors(self, parameters: dict[str, Any], model: str) -> None:
        """An error where the method is one that cannot fix items."""
        method = self.method
        if method.design == "adaptive":
            raise OptionError("--anchors is for a fixed design; leave out --design adaptive.")
        for name in ("clustered_by", "survey_weight"):
            if getattr(method, name) is not None:
                raise OptionError(f"--{name.replace('_', '-')} is not for anchored calibrations; leave out --anchors.")
        unfit = ["--estimator"] if method.estimator != "spectral" else []
        if model == "rsm":
            unfit.append("--model")
        unfit += [f"`{name}`" for name in parameters if name not in ANCHORED]
        if unfit:
            raise OptionError(
                "--anchors goes with the spectral estimator, ability weights, and thresholds of each item; leave out "
                f"{', '.join(unfit)}."
            )

    def read(self, progress: Progress) -> Responses:
        """The answers, with the columns about people that were asked for."""
        people = None  # of a table of their own
        if self.results.group_file is not None:
            file, sheet = self.results.group_file
            people = read_people(
                file, self._columns(), person=self.reading.person, sheet=sheet, encoding=self.reading.encoding
            )
        if self.source is not None:
            responses = self.source(progress)
        else:
            options: dict[str, Any] = {"facets": self.method.facet, **self.reading.categories()}
            if self.method.waves:
                table = by_waves(
                    self.files, self.method.waves, sheet=self.reading.sheet, encoding=self.reading.encoding
                )
                options |= {"source": table.frame, "sheet": None, "encoding": None, "facets": [WAVE]}
                self.wave_order = table.waves
            elif self.method.wave:
                options["facets"] = list(self.method.wave)
            if self.results.group_file is None:
                options["people"] = self._columns()
                if "wrong" in self.reading.blanks.values():
                    options["form"] = self.results.form
            responses = self.reading.read(self.files, progress, self.call, **options)
        if people is not None:
            responses = replace(responses, people=people)
        return responses

    def _columns(self) -> list[str]:
        """The columns about people that are needed: those whose groups are compared, and those of the method."""
        columns = [
            *self.results.group,
            self.method.population_by,
            self.method.clustered_by,
            self.method.survey_weight,
            self.results.form,
            self.method.arm,
            *self.results.columns(),
            *self.results.dif_tree,
        ]
        return list(dict.fromkeys(column for column in columns if column is not None))

    def look(self, progress: Progress) -> Responses:
        """The answers, with everything refused that `fit` would refuse before it fits."""
        self.check()
        responses = self.read(progress)
        self._estimator(responses)
        if self._changes_something:
            responses = self._apply_moves(responses, progress).changes.responses
        return responses

    def groups(self, people: People, responses: Responses) -> dict[str, list[Any]]:
        """The group of every person by each column about people, None for those who have none."""
        source = responses.source
        values_by_column = {column: values.tolist() for column, values in people.items()}
        if self.results.group_file is not None:
            source = people.source
            if all(value is None for values in values_by_column.values() for value in values):
                raise OptionError(
                    f"none of the people in {source} is in {responses.source} ({listed(responses.persons)}). Check "
                    "that both name people alike."
                )
        for column, values in values_by_column.items():
            if column not in self.results.group and (column == self.results.form or self._only_of_tree(column)):
                continue  # one form is enough; `Booklets` says how many are too many, and so does a tree
            self._check_groups(column, values, source)
        return values_by_column

    def _check_groups(self, column: str, values: list[Any], source: str) -> None:
        """An error where a column makes a single group, or more of them than can be compared."""
        cuts = self.results.group.get(column, ())
        labels = values
        if column in self.results.group:
            labels = self._groups_of_column(column, values).labels
        groups = sorted({str(label) for label in labels if label is not None})
        if cuts and len(groups) == 1:
            at = ", ".join(f"{cut:g}" for cut in cuts)
            raise OptionError(
                f"{source}: the column {column!r} is to be cut at {at}, which puts everybody in one group, "
                f"{groups[0]!r}. Choose cuts within its numbers."
            )
        weighs_alike = len(groups) == 1 and column == self.method.survey_weight  # weights may all be equal
        if len(groups) < 2 and not weighs_alike:
            what = f"a single value, {groups[0]!r}" if groups else "no value at all"
            raise DesignError(f"{source}: the column {column!r} has {what}; groups are two or more. Check the column.")
        may_be_many = column in (self.method.clustered_by, self.method.survey_weight)
        if len(groups) > MOST_GROUPS and not may_be_many:
            raise OptionError(
                f"{source}: the column {column!r} has {len(groups):,} different values ({listed(groups)}); at most "
                f"{MOST_GROUPS} groups are compared. Merge them into a few, each of some hundred people."
            )

    def _only_of_tree(self, column: str) -> bool:
        """Whether a column is looked at by --dif-tree alone, which takes ages as they are."""
        method = self.method
        others = (method.population_by, method.clustered_by, method.survey_weight, *self.results.columns())
        return column in self.results.dif_tree and column not in others

    def _groups_of_column(self, column: str, values: Sequence[Any]) -> Grouping:
        """The groups of a column that are compared: its values, or intervals where it holds numbers such as age."""
        return grouping_of(column, values, self.results.group.get(column, ()))

    def _calibrate(self) -> None:
        results = self.results
        begun = time.perf_counter()
        with Progress() as progress:
            responses = self.read(progress)
            self._estimator(responses)  # errors before work
            read = time.perf_counter()
            changed = None
            if self._changes_something:
                changed = self._apply_moves(responses, progress)
                responses = changed.changes.responses
            groups = self._groups_of(responses)
            with warnings.catch_warnings(record=True) as heard:
                study = self._fit(responses, progress, None if changed is None else changed.changes)
            if study._change is not None:  # of persons on each occasion
                of_occasions = self._groups_of(study.responses)
                groups = {name: of_occasions[name] for name in self._columns()}
            if changed is not None:
                study._first_digest = changed.digest_before
                study.ledger_findings = changed.findings
                with_record(study, changed.changes)
            fitted = time.perf_counter()
            parts = self._parts(study, groups)
            if results.scale is not None:
                study = study.rescale(results.scale.first, results.scale.second, by=results.scale.by)
            self.parts = parts
            self.study = study
            part_lines(study, parts)
            if parts.described or parts.cuts:
                people_tables(study, parts, width=80)  # what is wrong with a cut shows before anything is written
            study.findings(parts)
            if results.output is not None:
                self.tables = study.tables(parts, every=results.every_table or is_workbook(results.output))
            if results.plots is not None:
                from spectral_irt.plots.all import Pictures

                progress.say("pictures")
                self.pictures = Pictures.of(study, parts)
            if results.report is not None:
                from spectral_irt.report.page import report_of

                self.page = report_of(
                    study,
                    parts,
                    results.report,
                    self.record(),
                    title=results.title,
                    author=results.author,
                    list_persons=results.list_persons,
                    checklist=results.checklist,
                )
            if results.pupil_pages is not None:
                from spectral_irt.report.pupils import pupil_pages

                self.pupil_pages = pupil_pages(study, results.title)
        end = time.perf_counter()
        if heard and not any(finding.code == "not_converged" for finding in study.calibration.findings):
            for warning in heard:  # else the finding has said the same
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.seconds = {"read": read - begun, "fit": fitted - read, "analysis": end - fitted, "total": end - begun}

    def _groups_of(self, responses: Responses) -> dict[str, list[Any]]:
        if responses.people is None:
            return {}
        return self.groups(responses.people, responses)

    def _fit(self, responses: Responses, progress: Progress, changes: Changes | None = None) -> Analysis:
        """The analysis of these responses, as the method says; after moves, of the changed ones."""
        results, method = self.results, self.method
        if method.wave or method.waves:
            return self._change(responses, progress)
        estimator = self._estimator(responses)
        design = method.design_given(self._groups_of(responses))
        if estimator.several and results.anchors is not None:
            from spectral_irt.bank.anchors import anchored_to

            responses, design["anchors"] = anchored_to(responses, results.anchors, results.free)
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

    def _change(self, responses: Responses, progress: Progress) -> Analysis:
        """The analysis of change between waves."""
        from spectral_irt.analysis.change import change

        progress.say("change between waves")
        [wave] = self.method.wave or [WAVE]
        return change(
            responses,
            wave,
            arm=self.method.arm,
            order=self.wave_order or self.method.wave.get(wave, ()),
            each_item=self.method.each_item,
            rating_scale=self.reading.model == "rsm",
            ability=self.results.ability[0],
            trait=self.results.trait,
            progress=progress.say,
        )

    def _apply_moves(self, responses: Responses, progress: Progress) -> Changed:
        """The responses after the moves, with their record."""
        digest = digest_of(responses)
        ledger = self.results.ledger()
        moves = self.results.moves_to_make()
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
                return Changed(for_choice, digest)
            changes.take_part(parts.for_results, held_out)
            findings = self._findings_that_ask(moves, for_choice.responses, progress)
            if any(move.name == "dif_resolve" for move in moves):
                for_choice.apply(moves, findings)
                moves = list(for_choice.moves)
        changes.apply(moves, findings)
        if ledger is None:
            return Changed(changes, digest)
        return Changed(changes, digest, ledger.findings(digest))

    @property
    def _changes_something(self) -> bool:
        return self.results.has_moves or self.results.hold_out is not None

    def _changes(self, responses: Responses, progress: Progress) -> Changes:
        keeps = self.reading.unused == "keep" or self.reading.model == RATING_SCALE
        changes = Changes(responses, lambda anew: self._fit(anew, progress, changes), keep_unused=keeps)
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

    def _parts(self, study: Analysis, groups: dict[str, list[Any]]) -> Parts:
        """Which parts of the analysis were asked for, or go without saying; of the groups by column."""
        results = self.results
        population = self.method.population_by
        draws, sample = results.critical
        top, rank_by = results.rank
        cuts, cut_raw = results.cut
        persons = results.skip.get("persons")
        fit = results.skip.get("fit")
        if study.facets:
            fit = None  # of ratings, the tables of items and raters have it anyway
        if fit is None and draws:
            fit = True
        compared: dict[str, list[Any]] = {}
        described: dict[str, list[Any]] = {}
        notes: tuple[Finding, ...] = ()
        for name, values in groups.items():
            if name in results.group or not self._columns():  # or the only column of --group-file
                grouping = self._groups_of_column(name, values)
                compared[name] = grouping.labels
                notes += grouping.findings
            if persons is not False and (name in compared or name == population):
                described[name] = compared.get(name, values)
        parts = study.parts(
            persons=persons,
            fit=fit,
            writing=results.output is not None or results.report is not None,
            critical=draws or 0,
            subset=tuple(results.subset) or None,
            sample=sample,
            top=top,
            rank_by=rank_by,
            groups=compared,
            tree=results.tree(results.seed),
            populations=groups.get(population or ""),
            described=described,
            cuts=cuts,
            cut_raw=cut_raw,
            covariates=results.item_covariates,
            draws=results.ability[1] or 5,
            seed=results.seed or 0,
        )
        return replace(parts, notes=(*parts.notes, *notes))

    def _inputs(self) -> list[str]:
        """What is read, and may not be replaced; a bank that gives the anchors may grow (`--anchors A --bank A`)."""
        results = self.results
        others = [results.item_covariates, results.moves, results.persons_file]
        if results.group_file is not None:
            others.append(results.group_file[0])
        if not self._anchors_are_the_bank:
            others.append(results.anchors)
        return [*self.reading.inputs(self.files), *filter(None, others)]

    @property
    def _anchors_are_the_bank(self) -> bool:
        """Whether one bank is to give the anchors and to get the calibration."""
        anchors = self.results.anchors
        bank = self.results.bank
        return bank is not None and anchors is not None and Path(anchors).resolve() == bank.resolve()

    def _places(self) -> tuple[list[Path], list[Path]]:
        """Where everything may go but the bank, the record last; and which old files that makes stale."""
        results = self.results
        tables: list[Path] = []
        stale: list[Path] = []
        if results.output is not None:
            tables, stale = result_paths(results.output, self._wanted_tables(), parquet=results.parquet)
            if results.has_moves and not is_one_file(results.output):
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
        results = self.results
        unwanted = set() if results.every_table else set(MORE)
        if results.skip.get("persons") is False:
            unwanted |= {"persons", "groups", *OF_PEOPLE}
        if results.skip.get("fit") is False:
            unwanted |= {"item_fit", "item_trait", "curves"}
        if not results.group and (results.group_file is None or self._columns()):
            unwanted |= {"dif", "dif_thresholds"}
        if not self._columns() and results.group_file is None:
            unwanted.add("groups")
        if results.rank[0] is None:
            unwanted.add("ranking")
        if not results.cut[0]:
            unwanted.add("cuts")
        if not results.tailors:
            unwanted.add("tailored")
        if results.item_covariates is None:
            unwanted.add("covariates")
        if not results.dif_tree:
            unwanted |= {"dif_tree", "dif_tree_items"}
        if not (self.method.wave or self.method.waves):
            unwanted |= {"change", "item_change", "occasions"}
        if self.reading.correct or self.reading.threshold is not None:
            unwanted.add("distractors")
        wanted = [name for name in TABLES if name not in unwanted]
        for names in facet_tables(self.method.facet, results.group).values():
            wanted += [names.levels, names.interactions, names.categories, *names.groups.values()]
            if results.every_table:
                wanted.append(names.contrasts)
        return wanted

    def _write(self, draft: Path, target: Path) -> None:
        with errors_with_target(target):
            if target == self.results.report:
                draft.write_bytes(self.page)
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
                elif is_persons_file(target):
                    self.written = ["persons"]
                elif draft.exists():
                    self.written.append(target.name)

    def record(self) -> dict[str, Any]:
        """The record of the analysis, and what only the command knows."""
        results = self.results
        record = self.study.record(self.parts)
        outputs = list(self.written)
        if results.output is not None:
            outputs = [*dict.fromkeys([*outputs, RECORD])]
            if is_one_file(results.output):
                outputs = [results.output.name]
        about_input = {
            "files": list(self.files),
            "digests": file_digests(self.files),
            "reading": self.reading_options or self._reading_options(),
            **{name: value for name, value in self._persons_and_anchors().items() if value is not None},
        }
        record["input"] |= shareable(about_input)
        return {
            **record,
            "outputs": outputs,
            "estimator": self.method.estimator,
            "argv": shareable([*self.call.argv]),
            "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
        }

    def _reading_options(self) -> dict[str, Any]:
        """The options of `read`, for the record."""
        facets = [*self.method.facet, *self.method.wave]
        options = {**self.reading.options_of_read(self.files), "facets": facets}
        if self.results.group_file is None:
            options["people"] = self._columns()
            if "wrong" in self.reading.blanks.values() and self.results.form is not None:
                options["form"] = self.results.form
        return {name: value for name, value in options.items() if value != []}

    def _persons_and_anchors(self) -> dict[str, Any]:
        """The columns about persons that the method goes by, their table, and the anchors, for the record."""
        results = self.results
        about: dict[str, Any] = {
            "population_by": self.method.population_by,
            "clustered_by": self.method.clustered_by,
            "weight": self.method.survey_weight,
            "anchors": results.anchors,
            "free": results.free or None,
            "form": results.form,
            "arm": self.method.arm,
            "waves": self.method.waves or None,
        }
        if results.group_file is not None:
            file, sheet = results.group_file
            columns = list(self.study.responses.people or ())
            about["people"] = {"file": file, "sheet": sheet, "person": self.reading.person, "columns": columns}
        return about

    def _save_bank(self, folder: Path) -> None:
        from spectral_irt.bank.build import to_bank
        from spectral_irt.bank.merge import merge_banks
        from spectral_irt.cli.data import save_bank

        study = self.study
        calibration = study.calibration.replace(findings=study.findings(self.parts))
        bank = to_bank(calibration, study.responses, study.weights, form=self.results.form)
        if self._bank_before is not None:
            bank = merge_banks(self._bank_before, bank, study.responses)
        save_bank(bank, folder)

    @functools.cached_property
    def _bank_before(self) -> Bank | None:
        """The bank that is both anchor and target, as it was before the work: its other items stay in it."""
        anchors = self.results.anchors
        target = self.results.bank
        if anchors is None or target is None or not Path(anchors).is_dir() or not target.is_dir():
            return None
        if not Path(anchors).samefile(target):
            return None
        from spectral_irt.bank import load

        return load(target)
