"""A calibration as the command line does it: read, fit, analyze, write all or nothing."""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.cli.categories import Categories, changed
from spectral_irt.cli.fitting import Fitting, by_design, design_columns, design_of, groups_of
from spectral_irt.cli.options import Reading
from spectral_irt.cli.paths import refuse_bank_place, refuse_salt_place, save_bank
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.wanted import Wanted, check_styles
from spectral_irt.errors import OptionError, OutputError

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis, Parts
    from spectral_irt.bank import Bank
    from spectral_irt.data import Responses
    from spectral_irt.data.labels import People
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.plots.all import Pictures
    from spectral_irt.tables import Columns

# Options for whose mathematics answers in more than two categories wait, by the group that they are in.
RIGHT_OR_WRONG_ONLY = {"wanted": ("catsim",)}
# Options of reading that make answers right or wrong.
SCORED = ("correct", "threshold", "above_mean")
ANCHORED = ("regularization", "assume_equal_means", "se", "max_iter", "threads")  # parameters of anchored calibrations


@dataclass
class FitJob:
    """A calibration to be done: where the answers come from, how to fit, what else to compute, where it all goes.

    Whether answers are right and wrong or in ordered categories is known when they have been read, and not asked
    before.
    """

    files: Sequence[str] = ()
    reading: Reading = field(default_factory=Reading)
    categories: Categories = field(default_factory=Categories)
    fitting: Fitting = field(default_factory=Fitting)
    wanted: Wanted = field(default_factory=Wanted)
    output: Path | None = None
    parquet: bool = False
    argv: Sequence[str] = ()
    source: Callable[[Progress], Responses] | None = None  # of answers that are in no file
    said: dict[str, Any] | None = None  # how they are read, for the record
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    results: dict[str, Columns] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)  # the report, and files for other programs
    left_out: dict[str, int] = field(default_factory=dict)
    pictures: Pictures | None = None

    def run(self) -> tuple[Analysis, Parts]:
        """Read, fit, analyse, and write the results where places were named."""
        from spectral_irt.analysis.folder import may_be_parted
        from spectral_irt.files import all_or_nothing

        self.check()
        targets, stale = self._places()
        bank = self.wanted.bank
        keep: list[Callable[[], object]] = []
        with all_or_nothing(
            targets,
            inputs=self._inputs(),
            folders=[] if bank is None else [bank],
            stale=stale,
            last=lambda: [save() for save in keep],
            parted=[] if self.output is None else may_be_parted(self.output),
        ) as drafts:
            study, parts = self._calibrate()
            for draft, target in zip(drafts, targets, strict=True):
                self._write(draft, target, study, parts)
            if bank is not None:
                keep.append(functools.partial(save_bank, self._bank_of(study, parts), bank))
        return study, parts

    # ----------------------------------------------------------------------- what does not go together

    def check(self) -> None:
        """An error when the options do not go together, or when one of them would do nothing."""
        from spectral_irt.xlsx import is_workbook

        self.fitting = by_design(self.fitting)
        if self.reading.dask is not None and self.fitting.threads is not None:
            raise OptionError("--threads is about this process; with --dask the workers have threads of their own.")
        self.categories.check()
        if self.categories.said:
            self._refuse_for_categories([name for name in changed(self.reading) if name in SCORED])
        self.wanted.check(self.output)
        check_styles(self.wanted)
        if self.wanted.rank_by == "lower" and self.fitting.se == "none":
            raise OptionError("--rank-by lower needs standard errors; leave out --se none.")
        if self.parquet and self.output is None:
            raise OptionError("--parquet is about the tables that are written; say where with -o DIR.")
        if self.parquet and self.output is not None and is_workbook(self.output):
            raise OptionError("--parquet writes files to a folder, and -o names a workbook; say -o DIR instead.")
        if self._columns() and self.wanted.group_file is None and self.reading.orient == "items":
            raise OptionError(
                "a group is named in a column, and with --orient items a column is a person; use --group-file."
            )
        if self.wanted.group_sheet is not None and self.wanted.group_file is None:
            raise OptionError("--group-sheet is a sheet of the workbook that --group-file names.")
        self._estimator(self.categories.model or ("pcm" if self.categories.said else "rasch"))

    def _refuse_for_categories(self, more: Sequence[str] = ()) -> None:
        """An error where an option has no mathematics for answers in more than two categories: here, and only here."""
        said = [*more]
        for group, names in RIGHT_OR_WRONG_ONLY.items():
            said += [name for name in changed(getattr(self, group)) if name in names]
        if said:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in said)
            raise OptionError(
                f"these answers are in ordered categories, and {flags} {'is' if len(said) == 1 else 'are'} for right "
                "and wrong answers only; leave it out, or say --threshold to make them right and wrong."
            )
        anchors, bank = self.wanted.anchors, self.wanted.bank
        if anchors is not None and bank is not None and Path(anchors).resolve() == bank.resolve():
            raise OptionError(
                "--anchors and --bank name the same bank; spectral-irt update adds ordered answers to it, or keep the "
                "new calibration as another bank."
            )

    def _estimator(self, model: str) -> RaschEstimator:
        from spectral_irt.estimators.by_name import make_estimator, make_ordered

        fitting, parameters = self.fitting, self.fitting.parameters()
        if self.wanted.anchors is None:
            if model == "rasch":
                return make_estimator(fitting.estimator, parameters)
            return make_ordered(model, fitting.estimator, parameters)
        if fitting.design == "adaptive":
            raise OptionError("--anchors is for a fixed design; leave out --design adaptive.")
        for name in ("clustered_by", "weight"):
            if getattr(fitting, name) is not None:
                raise OptionError(f"--{name.replace('_', '-')} is not for anchored calibrations; leave out --anchors.")
        foreign = [name for name in parameters if name not in ANCHORED]
        if fitting.estimator != "spectral" or foreign or model == "rsm":
            said = ["--estimator"] if fitting.estimator != "spectral" else []
            said += ["--model"] if model == "rsm" else []
            said += [f"--{name.replace('_', '-')}" for name in foreign]
            raise OptionError(
                "--anchors goes with the spectral estimator, ability weights, and thresholds of each item; leave out "
                f"{', '.join(said)}."
            )
        if model == "pcm":
            return make_ordered(model, "spectral", parameters)
        from spectral_irt.bank import AnchoredRasch

        return AnchoredRasch(self._enlarged or self.wanted.anchors, **parameters)

    # -------------------------------------------------------------------------------------- the answers

    def read(self, progress: Progress) -> Responses:
        """The answers, with the columns about people that were asked for."""
        wanted = self.wanted
        beside: People | None = None
        if wanted.group_file is not None:
            from spectral_irt.reading.attributes import read_people

            how = {"person": self.reading.person, "sheet": wanted.group_sheet, "encoding": self.reading.encoding}
            beside = read_people(wanted.group_file, self._columns(), **how)
        if self.source is not None:
            responses = self.source(progress)
        else:
            along = [] if wanted.group_file is not None else self._columns()
            responses = self.reading.read(self.files, progress, people=along, **self.categories.how())
        return responses if beside is None else replace(responses, people=beside)

    def _columns(self) -> list[str]:
        """The columns about people that are needed."""
        return list(dict.fromkeys([*(self.wanted.group or []), *design_columns(self.fitting)]))

    def look(self, progress: Progress) -> Responses:
        """The answers, with everything refused that `fit` would refuse before it fits."""
        self.check()
        responses = self.read(progress)
        self._estimator(self._model_of(responses))
        return responses

    def _model_of(self, responses: Responses) -> str:
        if not responses.thresholds.binary:
            self._refuse_for_categories()
            return self.categories.model or "pcm"
        if self.wanted.sfile is not None:
            raise OptionError("--sfile is about thresholds, and these items are right or wrong; --ifile has them.")
        return self.categories.model or "rasch"

    # -------------------------------------------------------------------------------------- the work

    def _calibrate(self) -> tuple[Analysis, Parts]:
        from spectral_irt.analysis.summary import part_lines, people_tables

        wanted, fitting = self.wanted, self.fitting
        times = [time.perf_counter()]
        with Progress() as progress:
            responses = self.read(progress)
            model = self._model_of(responses)
            estimator = self._estimator(model)
            times.append(time.perf_counter())
            of = groups_of(responses, (fitting.clustered_by, fitting.weight), wanted.group_file is not None)
            design = design_of(fitting, of)
            if model != "rasch" and wanted.anchors is not None:
                from spectral_irt.bank.anchors import anchored_to

                responses, design["anchors"] = anchored_to(responses, wanted.anchors)
            with warnings.catch_warnings(record=True) as heard:
                estimator.fit(responses, progress=progress.say, **design)
            study = estimator.analyse(responses, ability=wanted.ability, progress=progress.say)
            if fitting.clustered_by is not None:
                progress.say("standard errors")
                study = study.clustered(fitting.clustered_by, fitting.population_by)
            times.append(time.perf_counter())
            parts = self._parts(study, of)
            scale = wanted.mean_and_sd()
            study = study if scale is None else study.rescale(*scale)
            part_lines(study, parts)
            people_tables(study, parts, width=80)  # what is wrong with a cut shows before anything is shown or written
            study.findings(parts)
            self.results = study.tables(parts) if self.output is not None else {}
            self.texts = self._exports(study)
            if wanted.plots is not None:
                from spectral_irt.plots.all import Pictures

                progress.say("pictures")
                self.pictures = Pictures.of(study)
            if wanted.report is not None:
                from spectral_irt.report.page import page_of

                page = page_of(study, parts, self.record(study, parts), list_persons=wanted.list_persons)
                self.texts[wanted.report] = page
        times.append(time.perf_counter())
        if not any(finding.code == "not_converged" for finding in study.calibration.findings):  # says the same, once
            for warning in heard:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        steps = [after - before for before, after in itertools.pairwise(times)]
        self.seconds = {**dict(zip(("read", "fit", "analysis"), steps, strict=True)), "total": times[-1] - times[0]}
        return study, parts

    def _parts(self, study: Analysis, of: dict[str, list[Any]]) -> Parts:
        """Which parts of the analysis were asked for, or go without saying."""
        from spectral_irt.bank.recognition import NO_RECOGNITION

        wanted, by = self.wanted, self.fitting.population_by
        # Those of --group are compared, or the only column of --group-file.
        compared = {name: of[name] for name in of if name in (wanted.group or []) or not self._columns()}
        described = {name: of[name] for name in of if name in compared or name == by}
        parts = study.parts(
            persons=True if wanted.persons is None and wanted.pfile is not None else wanted.persons,
            fit=True if wanted.fit is None and (wanted.bootstrap or wanted.ifile is not None) else wanted.fit,
            writing=self.output is not None or wanted.report is not None,
            bootstrap=wanted.bootstrap or 0,
            sample=wanted.sample,
            top=wanted.rank,
            rank_by=wanted.rank_by or "difficulty",
            groups=compared,
            populations=of.get(by or ""),
            described={} if wanted.persons is False else described,
            cuts=wanted.cuts(),
            cut_raw=wanted.cut_score is not None,
            draws=wanted.draws or 5,
            seed=wanted.seed or 0,
        )
        silent = wanted.bank is not None and wanted.salt_file is None
        return replace(parts, notes=(*parts.notes, NO_RECOGNITION)) if silent else parts

    # -------------------------------------------------------------------------------------- the files

    def _inputs(self) -> list[str]:
        """What is read, and may not be replaced; a bank that gives the anchors may grow (`--anchors A --bank A`)."""
        wanted = self.wanted
        others = [wanted.group_file]
        if wanted.bank is None or wanted.anchors is None or Path(wanted.anchors).resolve() != wanted.bank.resolve():
            others.append(wanted.anchors)
        return [*self.reading.inputs(self.files), *(str(path) for path in others if path is not None)]

    def _places(self) -> tuple[list[Path], list[Path]]:
        """Where everything may go but the bank, the record last; and which old files that makes stale."""
        from spectral_irt.analysis.folder import result_paths

        wanted = self.wanted
        exports = (wanted.ifile, wanted.sfile, wanted.pfile, wanted.catsim, wanted.report)
        results: list[Path] = []
        stale: list[Path] = []
        if self.output is not None:
            results, stale = result_paths(self.output, self._wanted_tables(), parquet=self.parquet)
        places = [*(path for path in exports if path is not None), *self._picture_places(), *results]
        if wanted.bank is not None:
            if any(path.absolute().parent == wanted.bank.absolute() for path in places):
                raise OutputError(
                    f"a bank has a folder of its own, and {str(wanted.bank)!r} gets other results; choose another for "
                    "one of them. Nothing was written."
                )
            refuse_bank_place(wanted.bank)
            refuse_salt_place(wanted.salt_file, wanted.bank)
        return places, stale

    def _wanted_tables(self) -> list[str]:
        """The tables that there may be, of either kind of answers."""
        from spectral_irt.analysis.folder import OF_PEOPLE, TABLES

        wanted, known = self.wanted, self._columns() or self.wanted.group_file is not None
        compares = bool(wanted.group) or (wanted.group_file is not None and not self._columns())
        unwanted = {"persons": wanted.persons is False, **dict.fromkeys(OF_PEOPLE, wanted.persons is False)}
        unwanted |= {"item_fit": wanted.fit is False, "curves": wanted.fit is False}
        unwanted |= {"dif": not compares, "dif_thresholds": not compares, "ranking": wanted.rank is None}
        unwanted |= {"cuts": not wanted.cuts(), "groups": not known or wanted.persons is False}
        unwanted |= {"distractors": self.reading.key is None}
        return [table for table in TABLES if not unwanted.get(table)]

    def _picture_places(self) -> list[Path]:
        if self.wanted.plots is None:
            return []
        from spectral_irt.plots.all import standard_paths

        return standard_paths(self.wanted.plots)

    def _write(self, draft: Path, target: Path, study: Analysis, parts: Parts) -> None:
        from spectral_irt.analysis.folder import RECORD, write_result
        from spectral_irt.files import naming
        from spectral_irt.xlsx import is_workbook

        with naming(target):
            if target in self.texts:
                draft.write_text(self.texts[target], encoding="utf-8", newline="")
            elif self.pictures is not None and target.parent == self.wanted.plots and target.suffix in (".svg", ".png"):
                self.pictures.write(draft, target)
            else:
                last = target.name == RECORD or is_workbook(target)
                record = self.record(study, parts) if last else {}
                engine = study.responses.engine
                self.left_out = write_result(draft, target, self.results, record, engine, parquet=self.parquet)
                if is_workbook(target):
                    self.written = [name for name in self.results if name not in self.left_out]
                elif draft.exists():
                    self.written.append(target.name)

    def record(self, study: Analysis, parts: Parts) -> dict[str, Any]:
        """The record of the analysis, and what only the command knows."""
        from spectral_irt.analysis.folder import RECORD
        from spectral_irt.analysis.record import file_digests
        from spectral_irt.xlsx import is_workbook

        record = study.record(parts)
        files = [*dict.fromkeys([*self.written, *([] if self.output is None else [RECORD])])]
        if self.output is not None and is_workbook(self.output):
            files = [self.output.name]
        columns = {name: getattr(self.fitting, name) for name in ("population_by", "clustered_by", "weight")}
        wanted = self.wanted
        beside: dict[str, Any] | None = None
        if wanted.group_file is not None:
            beside = {"file": wanted.group_file, "sheet": wanted.group_sheet, "person": self.reading.person}
            beside["columns"] = list(study.responses.people or ())
        more = {**columns, "people": beside, "anchors": wanted.anchors}
        record["input"] |= {
            "files": list(self.files),
            "digests": file_digests(self.files, study.responses.engine),
            "reading": self._said() if self.said is None else self.said,
            **{name: value for name, value in more.items() if value is not None},
        }
        return {
            **record,
            "outputs": files,
            "estimator": self.fitting.estimator,
            "argv": [*self.argv],
            "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
        }

    def _said(self) -> dict[str, Any]:
        """The options of `read` that differ from their defaults."""
        mine = {name: getattr(self.categories, name) for name in changed(self.categories) if name != "model"}
        along = [] if self.wanted.group_file is not None else self._columns()
        return {**self.reading.said(), **mine, **({"people": along} if along else {})}

    def _exports(self, study: Analysis) -> dict[Path, str]:
        """Files for other programs."""
        from spectral_irt.analysis.cache import columns_of
        from spectral_irt.bank.export import WINSTEPS_STYLES, adaptive_text, ifile, pfile, sfile_text, winsteps_text

        wanted, scale = self.wanted, study.calibration.scale
        texts: dict[Path, str] = {}

        def export(path: Path, columns: Columns) -> None:
            style = WINSTEPS_STYLES[path.suffix.lower()]
            texts[path] = winsteps_text(
                columns, style, title=f"spectral-irt, {study.responses.source}" if style == "fixed" else ""
            )

        if wanted.ifile is not None:
            fit = columns_of(study.item_fit, bootstrap=wanted.bootstrap or 0, sample=wanted.sample)
            export(wanted.ifile, ifile(study.calibration, fit, scale=scale))
        if wanted.pfile is not None:
            persons = columns_of(study.persons, "eap" if wanted.ability == "pv" else None)
            export(wanted.pfile, pfile(persons, scale=scale, wle=wanted.ability == "wle"))
        if wanted.sfile is not None:
            texts[wanted.sfile] = sfile_text(study.calibration, WINSTEPS_STYLES[wanted.sfile.suffix.lower()])
        if wanted.catsim is not None:
            texts[wanted.catsim] = adaptive_text(study.calibration, "catsim")
        return texts

    def _bank_of(self, study: Analysis, parts: Parts) -> Bank:
        from spectral_irt.bank import to_bank
        from spectral_irt.bank.build import merged

        calibration = study.calibration.replace(findings=study.findings(parts))
        bank = to_bank(calibration, study.responses, self.wanted.salt_file)
        if self._enlarged is None:
            return bank
        return merged(self._enlarged, bank, study.responses, self.wanted.salt_file)

    @functools.cached_property
    def _enlarged(self) -> Bank | None:
        """The bank that is both anchor and target, as it was before the work: its other items stay in it."""
        from spectral_irt.bank import Bank

        anchors, target = self.wanted.anchors, self.wanted.bank
        if anchors is None or target is None or not Path(anchors).is_dir() or not target.is_dir():
            return None
        return Bank.load(target) if Path(anchors).samefile(target) else None
