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

from spectral_irt.cli.bank_places import inputs_of
from spectral_irt.cli.fitting import Fitting
from spectral_irt.cli.options import Reading
from spectral_irt.cli.populations import by_design, design_columns, design_of, is_compared, is_described
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.wanted import Wanted, check_styles
from spectral_irt.errors import OptionError, OutputError

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis, Parts
    from spectral_irt.bank import Bank
    from spectral_irt.data import Responses
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.plots.all import Pictures
    from spectral_irt.tables import Columns


GroupsOf = Callable[["Responses"], dict[str, list[Any]]]


class OrderedAnswers(Exception):
    """Answers that were read for right and wrong, and are in ordered categories."""

    def __init__(self, responses: Responses) -> None:
        self.responses = responses


@dataclass
class Job:
    """A calibration to be done: where the answers come from, how to fit, what else to compute, where it all goes."""

    read: Callable[[Progress], Responses]
    fitting: Fitting = field(default_factory=Fitting)
    wanted: Wanted = field(default_factory=Wanted)
    read_groups: Callable[[], GroupsOf] | None = None
    output: Path | None = None
    parquet: bool = False
    files: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    results: dict[str, Columns] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    pictures: Pictures | None = None
    pictures_at: list[Path] = field(default_factory=list)
    page: str = ""

    def run(self) -> tuple[Analysis, Parts]:
        """Read, fit, analyse, and write the results where places were named."""
        from spectral_irt.analysis.folder import may_be_parted
        from spectral_irt.cli.bank_places import save_bank
        from spectral_irt.files import all_or_nothing

        estimator = self.checked()
        targets, stale = self._places()
        keep: list[Callable[[], object]] = []
        with all_or_nothing(
            targets,
            inputs=self.inputs,
            folders=[] if self.wanted.bank is None else [self.wanted.bank],
            stale=stale,
            last=lambda: [save() for save in keep],
            parted=[] if self.output is None else may_be_parted(self.output),
        ) as drafts:
            study, parts = self._calibrate(estimator)
            for draft, target in zip(drafts, targets, strict=True):
                self._write(draft, target, study, parts)
            if self.wanted.bank is not None:
                keep.append(functools.partial(save_bank, self._bank_of(study, parts), self.wanted.bank))
        return study, parts

    def checked(self) -> RaschEstimator:
        """The estimator; an error when the options do not go together, or when one of them would do nothing."""
        self.wanted.check(self.output)
        if self.wanted.rank_by == "lower" and self.fitting.se == "none":
            raise OptionError("--rank-by lower needs standard errors; leave out --se none.")
        if self.parquet and self.output is None:
            raise OptionError("--parquet is about the tables that are written; say where with -o DIR.")
        if self.parquet and self._workbook is not None:
            raise OptionError("--parquet writes files to a folder, and -o names a workbook; say -o DIR instead.")
        return self._estimator()

    def _estimator(self) -> RaschEstimator:
        from spectral_irt.estimators.by_name import make_estimator

        parameters = self.fitting.parameters()
        if self.wanted.anchors is None:
            return make_estimator(self.fitting.estimator, parameters)
        if self.fitting.clustered_by is not None:
            raise OptionError("--clustered-by is for difficulties that average zero; leave out --anchors.")
        if self.fitting.weight is not None:
            raise OptionError("--weight is not for anchored calibrations yet; leave out --anchors.")
        from spectral_irt.bank import AnchoredRasch

        takes = ("regularization", "assume_equal_means", "se", "max_iter", "threads")
        foreign = [name for name in parameters if name not in takes]
        if self.fitting.estimator != "spectral" or foreign:
            how = "--design" if self.fitting.design == "adaptive" else "--estimator"
            said = [how] if self.fitting.estimator != "spectral" else []
            said += [f"--{name.replace('_', '-')}" for name in foreign]
            raise OptionError(
                f"--anchors goes with the spectral estimator and ability weights; leave out {', '.join(said)}."
            )
        return AnchoredRasch(self._enlarged or self.wanted.anchors, **parameters)

    # -------------------------------------------------------------------------------------- the work

    def _calibrate(self, estimator: RaschEstimator) -> tuple[Analysis, Parts]:
        from spectral_irt.analysis.summary import part_lines, people_tables

        exports = self.wanted.ifile or self.wanted.pfile
        times = [time.perf_counter()]
        with Progress() as progress:
            groups_of = self.read_groups() if self.read_groups is not None else None
            responses = self.read(progress)
            if self.wanted.sfile is not None:
                raise OptionError("--sfile is about thresholds, and these items are right or wrong; --ifile has them.")
            times.append(time.perf_counter())
            of = {} if groups_of is None else groups_of(responses)
            with warnings.catch_warnings(record=True) as heard:
                estimator.fit(responses, progress=progress.say, **design_of(self.fitting, of))
            study = estimator.analyse(responses, ability=self.wanted.ability, progress=progress.say)
            clusters, populations = self.fitting.clustered_by, of.get(self.fitting.population_by or "")
            if clusters is not None:
                progress.say("standard errors")
                study = study.clustered(of[clusters], populations, name=f"clusters by {clusters}")
            times.append(time.perf_counter())
            parts = self._parts(study, of)
            scale = self.wanted.mean_and_sd()
            study = study if scale is None else study.rescale(*scale)
            part_lines(study, parts)
            people_tables(study, parts, width=80)  # what is wrong with a cut shows before anything is shown or written
            self.results = study.tables(parts) if self.output is not None or exports else {}
            if self.wanted.plots is not None:
                self.pictures = _draw(study, progress)
            if self.wanted.report is not None:
                from spectral_irt.report.page import page_of

                self.page = page_of(study, parts, self.record(study, parts), list_persons=self.wanted.list_persons)
        times.append(time.perf_counter())
        if not any(finding.code == "not_converged" for finding in estimator.findings_):  # that says the same, once
            for warning in heard:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        steps = [after - before for before, after in itertools.pairwise(times)]
        self.seconds = {**dict(zip(("read", "fit", "analysis"), steps, strict=True)), "total": times[-1] - times[0]}
        return study, parts

    def _parts(self, study: Analysis, of: dict[str, list[Any]]) -> Parts:
        """Which parts of the analysis were asked for, or go without saying."""
        from spectral_irt.bank.recognition import NO_RECOGNITION

        wanted = self.wanted
        parts = study.parts(
            persons=True if wanted.persons is None and wanted.pfile is not None else wanted.persons,
            fit=True if wanted.fit is None and (wanted.bootstrap or wanted.ifile is not None) else wanted.fit,
            writing=self.output is not None or wanted.report is not None,
            bootstrap=wanted.bootstrap or 0,
            sample=wanted.sample,
            top=wanted.rank,
            rank_by=wanted.rank_by or "difficulty",
            groups={column: labels for column, labels in of.items() if is_compared(column, wanted, self.fitting)},
            populations=of.get(self.fitting.population_by or ""),
            described={column: labels for column, labels in of.items() if is_described(column, wanted, self.fitting)},
            cuts=wanted.cuts(),
            cut_raw=wanted.cut_score is not None,
            draws=wanted.draws or 5,
            seed=wanted.seed or 0,
        )
        silent = wanted.bank is not None and wanted.salt_file is None
        return replace(parts, notes=(*parts.notes, NO_RECOGNITION)) if silent else parts

    # -------------------------------------------------------------------------------------- the files

    def _places(self) -> tuple[list[Path], list[Path]]:
        """Where everything goes but the bank, the record last; and which old files that makes stale."""
        from spectral_irt.analysis.folder import result_paths
        from spectral_irt.cli.bank_places import refuse_bank_place, refuse_salt_place
        from spectral_irt.xlsx import refuse_foreign

        wanted = self.wanted
        exports = [path for path in (wanted.ifile, wanted.pfile, wanted.catsim, wanted.report) if path is not None]
        check_styles(wanted)
        results: list[Path] = []
        stale: list[Path] = []
        if self._workbook is not None:
            refuse_foreign(self._workbook)
            results = [self._workbook]
        elif self.output is not None:
            results, stale = result_paths(self.output, self._wanted_tables(), parquet=self.parquet)
        places = [*exports, *self._picture_places(), *results]
        if wanted.bank is not None:
            if any(path.absolute().parent == wanted.bank.absolute() for path in places):
                raise OutputError(
                    f"a bank has a folder of its own, and {str(wanted.bank)!r} gets other results; choose another for "
                    "one of them. Nothing was written."
                )
            refuse_bank_place(wanted.bank)
            refuse_salt_place(wanted.salt_file, wanted.bank)
        return places, stale

    @property
    def _workbook(self) -> Path | None:
        """Where the tables go as sheets of a workbook, if they do."""
        from spectral_irt.xlsx import is_workbook

        return self.output if self.output is not None and is_workbook(self.output) else None

    def _wanted_tables(self) -> list[str]:
        from spectral_irt.analysis.folder import OF_PEOPLE, TABLES

        wanted = self.wanted
        unwanted = {"persons": wanted.persons is False, "item_fit": wanted.fit is False}
        compares = bool(wanted.group) or (self.read_groups is not None and not design_columns(self.fitting))
        keyed = "key" in self.reading or "key_sheet" in self.reading
        unwanted |= {"dif": not compares, "ranking": wanted.rank is None, "cuts": not wanted.cuts()}
        unwanted |= dict.fromkeys(OF_PEOPLE, wanted.persons is False)
        unwanted |= {"groups": self.read_groups is None or wanted.persons is False, "distractors": not keyed}
        return [table for table in TABLES if not unwanted.get(table)]

    def _picture_places(self) -> list[Path]:
        if self.wanted.plots is not None:
            from spectral_irt.plots.all import standard_paths

            self.pictures_at = standard_paths(self.wanted.plots)
        return self.pictures_at

    def _write(self, draft: Path, target: Path, study: Analysis, parts: Parts) -> None:
        from spectral_irt.analysis.folder import RECORD
        from spectral_irt.analysis.parted import write_result
        from spectral_irt.files import naming
        from spectral_irt.tables import write_json
        from spectral_irt.xlsx import write_workbook

        with naming(target):
            if target == self._workbook:
                tables = {name: self.results[name] for name in self._wanted_tables() if name in self.results}
                self.left_out = write_workbook(draft, tables, self.record(study, parts))
                self.written = [name for name in tables if name not in self.left_out]
                return
            if target in (self.wanted.ifile, self.wanted.pfile, self.wanted.catsim, self.wanted.report):
                draft.write_text(self._export(target, study), encoding="utf-8", newline="")
                return
            if self.pictures is not None and target in self.pictures_at:
                self.pictures.write(draft, target)
                return
            if target.name == RECORD:
                write_json(draft, self.record(study, parts))
            elif target.stem not in self.results:
                draft.unlink()
                return
            else:
                table, engine = self.results[target.stem], study.responses.engine
                write_result(draft, target, table, engine, parquet=self.parquet)
            if draft.exists():
                self.written.append(target.name)

    def record(self, study: Analysis, parts: Parts) -> dict[str, Any]:
        """The record of the analysis, and what only the command knows."""
        from spectral_irt.analysis.folder import RECORD
        from spectral_irt.analysis.record import file_digests

        record = study.record(parts)
        files = [*dict.fromkeys([*self.written, *([] if self.output is None else [RECORD])])]
        record["outputs"] = files if self._workbook is None else [self._workbook.name]
        record["estimator"] = self.fitting.estimator
        columns = {name: getattr(self.fitting, name) for name in ("population_by", "clustered_by", "weight")}
        record["input"] |= {
            "files": list(self.files),
            "digests": file_digests(self.files, study.responses.engine),
            "reading": self.reading,
        }
        record["input"] |= {name: column for name, column in columns.items() if column is not None}
        return {**record, "seconds": {name: round(value, 4) for name, value in self.seconds.items()}}

    def _export(self, target: Path, study: Analysis) -> str:
        """The report, or a file for another program."""
        if target == self.wanted.report:
            return self.page
        from spectral_irt.bank.export import WINSTEPS_STYLES, adaptive_text, ifile, pfile, winsteps_text

        scale = study.calibration.scale
        if target == self.wanted.catsim:
            return adaptive_text(study.calibration, "catsim")
        if target == self.wanted.ifile:
            columns = ifile(study.calibration, self.results["item_fit"], scale=scale)
        else:
            columns = pfile(
                study.person_columns("eap" if self.wanted.ability == "pv" else None),
                scale=scale,
                wle=self.wanted.ability == "wle",
            )
        title = f"spectral-irt, {study.responses.source}" if target.suffix.lower() == ".txt" else ""
        return winsteps_text(columns, WINSTEPS_STYLES[target.suffix.lower()], title=title)

    def _bank_of(self, study: Analysis, parts: Parts) -> Bank:
        from spectral_irt.bank import to_bank
        from spectral_irt.bank.merge import merged

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


def job_of(
    files: Sequence[str],
    reading: Reading,
    fitting: Fitting,
    wanted: Wanted,
    output: Path | None,
    parquet: bool,
    **how: Any,
) -> Job:
    """What the options of the command mean; `how` says which kind of answers is read, where that is known."""
    fitting = by_design(fitting)
    if reading.dask is not None and fitting.threads is not None:
        raise OptionError("--threads is about this process; with --dask the workers have threads of their own.")
    read_groups = None
    columns = [*(wanted.group or []), *design_columns(fitting)]
    if columns or wanted.group_file is not None or wanted.group_sheet is not None:
        from spectral_irt.cli.groups import read_groups as find

        many = (fitting.clustered_by, fitting.weight)
        read_groups = functools.partial(
            find, columns, wanted.group_file, reading, many=many, group_sheet=wanted.group_sheet
        )
    people = list(dict.fromkeys(columns)) if wanted.group_file is None else []

    def read(progress: Progress) -> Responses:
        found = reading.read(files, progress, people=people, **how)
        if not found.thresholds.binary:
            raise OrderedAnswers(found)
        return found

    return Job(
        read=read,
        fitting=fitting,
        wanted=wanted,
        read_groups=read_groups,
        output=output,
        parquet=parquet,
        files=tuple(files),
        inputs=inputs_of(files, reading, wanted),
        reading=reading.said() | ({"people": people} if people else {}),
    )


def _draw(study: Analysis, progress: Progress) -> Pictures:
    from spectral_irt.plots.all import Pictures

    progress.say("pictures")
    return Pictures.of(study)
