"""A folder of results: which parts of an analysis are wanted and can be afforded, which tables they make, and how these
are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.people import with_measures
from spectral_irt.data import Finding, Responses
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.tables import AnyColumns, Columns, write_csv, write_json, write_parquet
from spectral_irt.text import listed
from spectral_irt.xlsx import is_workbook, refuse_foreign, write_workbook

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis
    from spectral_irt.inference.groups.dif import Differential

PROGRAM = "spectral-irt"
RECORD = "fit.json"
OF_PEOPLE = ("scores", "forms", "unexpected")  # written with persons
MORE = ("forms", "unexpected", "item_fit", "curves", "item_analysis", "distractors")  # files that must be asked for
OF_FIT = (
    *("infit", "infit_z", "outfit", "outfit_z", "infit_conditional", "infit_conditional_z"),
    *("outfit_conditional", "outfit_conditional_z", "point_measure"),
)  # what of the fit is among the items, before `item_rest` and `misfit`
TABLES = (
    *("items", "thresholds", "persons", *OF_PEOPLE, "groups", "cuts"),
    *("item_fit", "curves", "item_analysis", "distractors", "dif", "dif_thresholds", "covariates"),
    "ranking",
)
# What a fit may write, the record last.
RESULTS = (*(f"{table}.{kind}" for table in TABLES for kind in ("csv", "parquet")), RECORD)

QUICK = 1_000_000  # responses up to which people and fit are computed even when nothing is written
LONG = 2e11  # sum over people of squared answers; beyond, conditional fit takes minutes and must be asked for

NO_FIT, ANYWAY = "The fit of the items was left out", "Say `fit=True` to have it all the same."
TOO_LONG = Finding("fit_left_out", "note", f"{NO_FIT}: with so many answers per person it takes long.", ANYWAY)
CHOSEN = Finding("fit_left_out", "note", f"{NO_FIT}: it goes by scores, and these answers chose the items.", ANYWAY)


@dataclass(frozen=True)
class Parts:
    """What a summary, a record and the files of an analysis hold besides the items.

    Attributes
    ----------
    persons, fit, item_analysis : bool
        People with reliability; the fit of the items, and the checks whether all fits; the classical statistics of the
        items, and with a key who chose which option.
    bootstrap, sample : int, int or None
        Data sets to simulate for the limits of the fit of each item (0: none), and people to take for them.
    top, rank_by : int or None, str
        Items by rank, with the chance of being among so many hardest; by "difficulty", or by the "lower" end.
    groups, described : mappings
        Names of groupings to the group of every person: to compare items, and for mean abilities.
    draws, seed : int
        Of plausible values ("pv"): for each person, and how they are drawn.
    populations : labels, optional
        The population that each person is from, where there are several.
    scores : bool
        Tables from raw score to ability, and unexpected answers: where persons are written.
    cuts, cut_raw : tuple of float, bool
        Where people are divided into classes, on the scale of report, or in raw scores.
    covariates : optional
        Properties of items, for `Analysis.item_covariates`.
    notes : tuple of Finding
        What to say about what was left out.
    """

    persons: bool = True
    fit: bool = True
    item_analysis: bool = True
    bootstrap: int = 0
    sample: int | None = None
    top: int | None = None
    rank_by: str = "difficulty"
    groups: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 5
    seed: int = 0
    populations: Any = None
    scores: bool = False
    described: Mapping[str, Any] = field(default_factory=dict)
    cuts: tuple[float, ...] = ()
    cut_raw: bool = False
    covariates: Any = None
    notes: tuple[Finding, ...] = ()


def affordable(
    responses: Responses,
    *,
    persons: bool | None = None,
    fit: bool | None = None,
    writing: bool = False,
    adaptive: bool = False,
    **rest: Any,
) -> Parts:
    """The parts that were asked for; where nothing was said, those that do not take long or are to be written."""
    by_default = (writing or responses.n_responses <= QUICK) and responses.pair_work < np.inf
    notes: tuple[Finding, ...] = ()
    if responses.facets is not None:
        if fit or rest.get("top") is not None:
            raise OptionError("of ratings there is the fit of items and of raters; and no ranks; ask for neither.")
        return Parts(persons=True, fit=False, item_analysis=False, **({"scores": writing} | rest))
    if fit is None:
        fit = by_default
        if fit and adaptive:
            fit, notes = False, (CHOSEN,)
        elif fit and responses.pair_work > LONG:
            fit, notes = False, (TOO_LONG,)
    persons = by_default if persons is None else persons
    asked = {"scores": persons and writing, **rest}
    return Parts(persons=persons, fit=fit, item_analysis=by_default, notes=notes, **asked)


def result_tables(study: Analysis, parts: Parts, every: bool = True) -> dict[str, Columns]:
    """The tables of an analysis by the names of their files, in the order of `TABLES`; `MORE` only with `every`."""
    calibration, categories = study.calibration, not study.responses.thresholds.binary
    scale, fit, items = calibration.scale, {}, calibration.item_columns()
    if calibration.facets is not None:  # what is about answers to items is not about ratings
        items = dict(study._rated_items())
        parts = replace(parts, fit=False, item_analysis=False, top=None, covariates=None)
    if parts.fit:
        fit = columns_of(study.item_fit, bootstrap=parts.bootstrap, sample=parts.sample)
        items |= {name: fit[name] for name in OF_FIT}
    if parts.item_analysis:
        items["item_rest"] = study._classical().item_rest
    if parts.fit:
        items["misfit"] = fit["misfit"]
    tables = {"items": with_measures(items, "difficulty", scale)}
    if categories:
        tables["thresholds"] = with_measures(calibration.own_items.threshold_columns(), "threshold", scale)
    if parts.persons:
        tables |= study._people_tables(parts, every)
    tables |= study._facet_tables(parts)
    if parts.fit and every:
        tables["item_fit"] = fit
        if categories and (curves := study._curves()):
            tables["curves"] = curves
    if parts.item_analysis and every:
        tables["item_analysis"] = study._item_analysis(discrimination=parts.fit)
        refused = any(finding.code == "distractors_left_out" for finding in study._item_findings())
        if study._multiple_choice and not refused:
            tables["distractors"] = columns_of(study.distractors)
    grouped = study._grouped(parts)
    if grouped:
        tables["dif"] = _contrasts(grouped)
        by_threshold = {name: one for name, one in grouped.items() if one.by_threshold}
        if by_threshold:
            tables["dif_thresholds"] = _contrasts(by_threshold, "by_threshold")
    if parts.covariates is not None:
        tables["covariates"] = columns_of(study.item_covariates, parts.covariates)
    if parts.top is not None:
        tables["ranking"] = columns_of(study.ranking, parts.rank_by, parts.top)
    return tables


def _contrasts(grouped: Mapping[str, Differential], which: str = "contrasts") -> Columns:
    """The rows of every grouping, with the column that it goes by."""
    tables = [
        {"grouping": np.full(len(getattr(one, which)["item"]), name, dtype=object), **getattr(one, which)}
        for name, one in grouped.items()
    ]
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def write_results(
    study: Analysis, folder: Path, parts: Parts, *, parquet: bool = False, every: bool = False
) -> list[Path]:
    """The tables of an analysis and its record, complete or not at all; their paths. A workbook has every table."""
    if parquet and is_workbook(folder):
        raise OptionError("`parquet=True` writes files to a folder, and this is a workbook; name a folder instead.")
    tables, record = study.tables(parts, every=every or is_workbook(folder)), study.record(parts)
    targets, stale = result_paths(folder, list(tables), parquet=parquet)
    done: list[Path] = []
    with all_or_nothing(targets, stale=stale) as drafts:
        for draft, target in zip(drafts, targets, strict=True):
            said = {**record, "outputs": [path.name for path in (*done, target)]}
            with naming(target):
                write_result(draft, target, tables, said)
            done += [target] if draft.exists() else []
    return done


def write_result(
    draft: Path, target: Path, tables: Mapping[str, AnyColumns], record: Mapping[str, Any]
) -> dict[str, int]:
    """One of the results: the record, a table, or a workbook with all of them, of which tables that are too long for a
    sheet are given back. A table that there is not leaves no file."""
    if is_workbook(target):
        return write_workbook(draft, tables, record)
    if target.name == RECORD:
        write_json(draft, record)
    elif target.stem not in tables:
        draft.unlink()
    else:
        (write_csv if target.suffix == ".csv" else write_parquet)(draft, tables[target.stem])
    return {}


def result_paths(
    place: Path, tables: Sequence[str], *, parquet: bool, record: str = RECORD
) -> tuple[list[Path], list[Path]]:
    """Where these results go, the record last, and which files of an earlier run they make stale. A file of the same
    name that no run wrote is somebody's data: an error."""
    if is_workbook(place):
        refuse_foreign(place)
        return [place], []
    if place.exists() and not place.is_dir():
        raise OutputError(f"{str(place)!r} is a file, not a directory; choose another place. Nothing was written.")
    ours = written_with(place / record)
    possible = [*RESULTS[:-1], *sorted(ours - set(RESULTS) - {record}), record]
    present = [place / name for name in possible if (place / name).exists()]
    foreign = [path.name for path in present if path.name not in ours]
    if foreign:
        raise OutputError(
            f"{str(place)!r} holds {listed(foreign)}, which no run of {PROGRAM} wrote there with {record}; choose "
            "another directory, or move it away. Nothing was written."
        )
    kinds = ("csv", "parquet") if parquet else ("csv",)
    targets = [place / f"{table}.{kind}" for table in tables for kind in kinds] + [place / record]
    return targets, [path for path in present if path not in targets]


def written_with(record: Path) -> set[str]:
    """Names of the files that a run wrote with this record; none if it is not one of ours."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(found, dict) or found.get("program") != PROGRAM:
        return set()
    names = found.get("outputs")
    return {record.name, *map(str, names)} if isinstance(names, list) else {record.name}
