"""A folder of results: which parts of an analysis are wanted and can be afforded, which tables they make, the record of
what was fitted, how, and what came of it (fit.json), and how these are written."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt import __version__
from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.ledger import MOVES_FILE, ledger_text
from spectral_irt.analysis.people import with_measures
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import AnswersStayError, OptionError, OutputError, for_shell
from spectral_irt.estimators.base import ADAPTIVE, FIXED
from spectral_irt.estimators.by_name import estimator_name
from spectral_irt.files import all_or_nothing, errors_with_target, input_paths
from spectral_irt.inference.results import LEAST_DRAWS, TOO_FEW_DRAWS
from spectral_irt.inference.scores.reliability import mean_and_sd
from spectral_irt.numerics import chosen_or_none
from spectral_irt.persons_file import check_persons_file, is_persons_file, write_persons_file
from spectral_irt.tables import AnyColumns, Columns, rows_of, write_csv, write_json, write_parquet
from spectral_irt.text import listed
from spectral_irt.xlsx import is_workbook, refuse_foreign, write_workbook

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis
    from spectral_irt.calibration import Calibration, Scale
    from spectral_irt.inference.groups.dif import Differential

PROGRAM = "spectral-irt"
RECORD = "fit.json"
OF_PEOPLE = ("scores", "forms", "unexpected", "guttman")  # written with persons
OF_DIMENSIONS = ("dimensionality", "residual_loadings", "local_dependence")
MORE = (
    *("forms", "unexpected", "guttman", "item_fit", "item_trait", "curves", "item_analysis", "distractors"),
    *OF_DIMENSIONS,
)  # files that must be asked for
OF_FIT = (
    *("infit", "infit_z", "outfit", "outfit_z", "infit_conditional", "infit_conditional_z"),
    *("outfit_conditional", "outfit_conditional_z", "point_measure"),
)  # what of the fit is among the items, before `item_rest` and `misfit`
TABLES = (
    *("items", "thresholds", "persons", *OF_PEOPLE, "groups", "cuts"),
    *("item_fit", "item_trait", "curves", *OF_DIMENSIONS, "item_analysis", "distractors", "dif", "dif_thresholds"),
    *("dif_tree", "dif_tree_items", "change", "item_change", "occasions", "covariates"),
    *("ranking", "tailored"),
)
RESULTS = (
    *map(".".join, itertools.product(TABLES, ("csv", "parquet"))),
    RECORD,
)  # what a fit may write, the record last
SCHEMA = 1  # of every record; it grows when a field changes its meaning or goes, not when one is added
NAMED_ITEMS = 1000  # items that a finding lists; all of them are counted
COLUMNS_LEFT_OUT = ("attribute_columns", "total_columns", "unlike_columns", "not_in_key")  # codes of findings
COUNTED_AS_WRONG = ("blanks_count_as_wrong", "options_like_codes", "spelled_unlike_key")

QUICK = 1_000_000  # responses up to which people and fit are computed even when nothing is written
LONG = 2e11  # sum over people of squared answers; beyond, conditional fit takes minutes and must be asked for

NO_FIT = "The fit of the items was left out"
ANYWAY = "Say `fit=True` to have it all the same."
TOO_LONG = Finding("fit_left_out", "note", f"{NO_FIT}: with so many answers per person it takes long.", ANYWAY)
CHOSEN_BY_ANSWERS = "it goes by scores, and these answers chose the items"
CHOSEN = Finding("fit_left_out", "note", f"{NO_FIT}: {CHOSEN_BY_ANSWERS}.", ANYWAY)


class TreeOptions(NamedTuple):
    """What is asked of a DIF tree: columns, each with the order of its labels if it has one, and how it is grown; see
    `Analysis.dif_tree`."""

    order: Mapping[str, Sequence[str]]
    size: str | float
    min_leaf: int
    sample: str
    subsamples: int
    seed: int


@dataclass(frozen=True)
class Parts:
    """What a summary, a record and the files of an analysis hold besides the items.

    Attributes
    ----------
    persons, fit, item_analysis : bool
        People with reliability; the fit of the items, and the checks whether all fits; the classical statistics of the
        items, and with a key who chose which option.
    critical, sample : int, int or None
        Data sets to draw given the scores for critical values (0: none), and people to take for those of the fit.
    subset : tuple of labels, optional
        Items of one of the two sets of Smith's test.
    top, rank_by : int or None, str
        Items by rank, with the chance of being among so many hardest; by "difficulty", or by the "lower" end.
    groups, described : mappings
        Names of groupings to the group of every person: to compare items, and for mean abilities.
    tree : TreeOptions, optional
        Columns along which groups are to be found for whom items work differently, and how.
    draws, seed : int
        Of plausible values ("pv"): for each person, and how they are drawn.
    populations : labels, optional
        The population that each person is from, where there are several.
    scores : bool
        Tables from raw score to ability, and unexpected answers: where persons are written.
    cuts, cut_raw : tuple of float, bool or "codes"
        Where people are divided into classes, on the scale of report, in raw scores, or in sums of codes.
    covariates : optional
        Properties of items, for `Analysis.item_covariates`.
    notes : tuple of Finding
        What to say about what was left out.
    """

    persons: bool = True
    fit: bool = True
    item_analysis: bool = True
    critical: int = 0
    subset: tuple[Any, ...] | None = None
    sample: int | None = None
    top: int | None = None
    rank_by: str = "difficulty"
    groups: Mapping[str, Any] = field(default_factory=dict)
    tree: TreeOptions | None = None
    draws: int = 5
    seed: int = 0
    populations: Any = None
    scores: bool = False
    described: Mapping[str, Any] = field(default_factory=dict)
    cuts: tuple[float, ...] = ()
    cut_raw: bool | Literal["codes"] = False
    covariates: Any = None
    notes: tuple[Finding, ...] = ()


def wanted_parts(
    study: Analysis, *, persons: bool | None = None, fit: bool | None = None, writing: bool = False, **rest: Any
) -> Parts:
    """What a summary or the files hold besides the items.

    Parameters
    ----------
    persons, fit : bool, optional
        Persons, and the fit of the items; by default where that does not take long, or is to be written.
    writing : bool
        Whether it is for files.
    rest
        Other fields of `Parts`.
    """
    responses = study.responses
    if study.facets:
        if fit or rest.get("top") is not None:
            raise OptionError(
                "of ratings, the tables of items, persons and raters hold the fit of each, and there are no ranks; "
                "leave out `fit=True` and `top`."
            )
        return Parts(persons=True, fit=False, item_analysis=False, **({"scores": writing} | rest))
    by_default = (writing or responses.n_responses <= QUICK) and responses.pair_work < np.inf
    why_without_fit: tuple[Finding, ...] = ()
    if fit is None and by_default:
        if study.calibration.adaptive:
            why_without_fit = (CHOSEN,)
        elif responses.pair_work > LONG:
            why_without_fit = (TOO_LONG,)
    if fit is None:
        fit = by_default and not why_without_fit
    if persons is None:
        persons = by_default
    asked = {"scores": persons and writing, **rest}
    return Parts(persons=persons, fit=fit, item_analysis=by_default, notes=why_without_fit, **asked)


def check_draws(draws: int | None) -> None:
    """An error where so few draws allow no critical values."""
    if draws and draws < LEAST_DRAWS:
        raise OptionError(TOO_FEW_DRAWS.format(f"`critical` is {draws}"))


def result_tables(study: Analysis, parts: Parts | None = None, *, every: bool = True) -> dict[str, Columns]:
    """The tables by the names of their files, in the order of `TABLES`.

    Parameters
    ----------
    parts : Parts, optional
        What to hold besides the items, by `study.parts(...)`.
    every : bool
        Every table, or those that `write` writes by default.
    """
    parts = parts or study.parts(writing=True)
    if study.facets:  # what is about answers to items is not about ratings
        parts = replace(parts, fit=False, item_analysis=False, top=None, covariates=None)
    fit: Columns = {}
    if parts.fit:
        fit = columns_of(study.item_fit, critical=parts.critical, sample=parts.sample)
    tables = _tables_of_items(study, parts, fit)
    if parts.persons:
        tables |= study._people_tables(parts, every)
        if parts.fit and parts.critical:
            p_values = study._critical(parts.critical, parts.sample).persons
            tables["persons"] = insert_columns(tables["persons"], p_values, after="outfit_z")
    if study.facets:
        tables |= study._facet_tables(parts, every)
    if parts.fit and every:
        tables |= _tables_of_fit(study, parts, fit)
    if parts.item_analysis and every:
        tables |= _tables_of_answers(study, parts)
    tables |= _tables_of_groups(study, parts)
    tables |= _tables_of_change(study, tables.get("persons"))
    if parts.covariates is not None:
        tables["covariates"] = columns_of(study.item_covariates, parts.covariates)
    if parts.top is not None:
        tables["ranking"] = columns_of(study.ranking, parts.rank_by, parts.top)
    if study._tailored is not None:
        tables["tailored"] = study._tailored
    return tables


def _tables_of_items(study: Analysis, parts: Parts, fit: Columns) -> dict[str, Columns]:
    """The items with what was found about each, and their thresholds."""
    calibration = study.calibration
    items = dict(study._rated_items()) if study.facets else calibration.item_columns()
    if parts.fit:
        items |= {name: fit[name] for name in OF_FIT}
    if parts.item_analysis:
        items["item_rest"] = study._classical().item_rest
    if parts.fit:  # the verdict after all that it may rest on
        items["misfit"] = fit["misfit"]
    if study.responses.item_texts:
        labels_and_texts = {"item": items["item"], "text": study.responses.texts_of(items["item"])}
        items = labels_and_texts | items
    tables = {"items": with_measures(items, "difficulty", calibration.scale)}
    if not calibration.layout.binary:
        thresholds = calibration.own_items.threshold_columns()
        tables["thresholds"] = with_measures(thresholds, "threshold", calibration.scale)
    return tables


def _tables_of_fit(study: Analysis, parts: Parts, fit: Columns) -> dict[str, Columns]:
    """Does the model hold: item by item, class by class, and for all items together."""
    tables = {"item_fit": fit}
    of_classes = study._class_intervals(parts)
    if of_classes is not None:
        tables["item_trait"] = of_classes.columns
    if not study.calibration.layout.binary and (curves := study._curves()):
        tables["curves"] = curves
    shared = study._dimensionality(draws=parts.critical or None)
    if shared is not None:
        tables["dimensionality"] = shared.contrasts.variance_columns
        tables["residual_loadings"] = shared.contrasts.loading_columns
        tables["local_dependence"] = shared.dependence.columns
    return tables


def _tables_of_answers(study: Analysis, parts: Parts) -> dict[str, Columns]:
    """Classical numbers of the items, and what was chosen in the place of the key."""
    tables = {"item_analysis": study._item_analysis(discrimination=parts.fit)}
    refused = any(finding.code == "distractors_left_out" for finding in study._item_findings())
    if study._multiple_choice and not refused:
        tables["distractors"] = columns_of(study.distractors)
    return tables


def _tables_of_groups(study: Analysis, parts: Parts) -> dict[str, Columns]:
    """Differences between groups that were named, and between those that a tree found."""
    scale = study.calibration.scale
    tables: dict[str, Columns] = {}
    grouped = study._comparisons_of_groups(parts)
    if grouped:
        tables["dif"] = _contrasts(grouped, scale)
        by_threshold = {name: dif for name, dif in grouped.items() if dif.by_threshold}
        if by_threshold:
            tables["dif_thresholds"] = _contrasts(by_threshold, scale, "by_threshold")
    tree = study._tree(parts)
    if tree is not None:
        tables["dif_tree"] = tree.table_columns()
        if tree.inner_nodes:
            tables["dif_tree_items"] = tree.item_columns()
    return tables


def _tables_of_change(study: Analysis, occasions: Columns | None) -> dict[str, Columns]:
    """Change between waves, where there are any: what was a table of persons is one of occasions."""
    change = study._change
    if change is None:
        return {}
    tables = {"change": change.table_columns, "item_change": change.shifts}
    if occasions is not None:
        tables["occasions"] = occasions
        tables["persons"] = change.persons_on(study.calibration.scale)
    return tables


def insert_columns(columns: Columns, more: Columns, *, after: str) -> Columns:
    """The columns with more of them after one."""
    place = list(columns).index(after) + 1
    names = list(columns)
    return {name: (columns | more)[name] for name in (*names[:place], *more, *names[place:])}


def _contrasts(grouped: Mapping[str, Differential], scale: Scale, which: str = "contrasts") -> Columns:
    """The rows of every grouping, with the column that it goes by, and the scale of report."""
    tables = []
    for name, dif in grouped.items():
        contrasts = getattr(dif, which)
        tables.append({"grouping": np.full(len(contrasts["item"]), name, dtype=object), **contrasts})
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    if not scale.is_logits:
        place = "threshold" if which == "by_threshold" else "difficulty"
        columns["measure"] = scale.measure(columns[place])
        columns["measure_reference"] = scale.measure(columns[f"{place}_reference"])
    return columns


def fit_record(study: Analysis, parts: Parts | None = None) -> dict[str, Any]:
    """What was computed, how, and what came of it, to know what a calibration is and to do it again.

    The content of `fit.json`.

    Parameters
    ----------
    parts : Parts, optional
        What it says besides the items, by `study.parts(...)`.
    """
    parts = parts or study.parts(writing=True)
    responses = study.responses
    calibration = study.calibration
    provenance = calibration.provenance
    prior = calibration.prior
    scale = calibration.scale
    digest: str | None = None
    with suppress(AnswersStayError):
        digest = responses.digest()
    tree = study._tree(parts)
    return {
        **record_head(),
        "outputs": [],
        "model": calibration.model,
        "estimator": estimator_name(provenance.estimator),
        "settings": dict(provenance.settings),
        "trait": study.trait,
        "design": ADAPTIVE if calibration.adaptive else FIXED,
        "input": {"source": responses.source},
        "counts": {
            **counts_of(responses),
            "thresholds": calibration.own_items.layout.n_entries,
            "items_with_estimate": int(calibration.own_items.known.sum()),
            "items_anchored": int(calibration.anchored.sum()),
        },
        "data_digest": digest,
        "moves": [move.to_dict() for move in study.moves],
        "first_digest": study.first_digest or None,
        "hold_out": None if study.held_out is None else study.held_out._asdict(),
        "iterations": provenance.iterations,
        "residual": provenance.residual,
        "contraction": provenance.contraction,
        "solver": provenance.solver,
        "loglik": provenance.loglik,
        "regularization": None if prior is None else asdict(prior),
        "bias_factors": {} if calibration.facets is None else dict(calibration.facets.factor),
        "se_method": provenance.se_method,
        "scale": None if scale.is_logits else {**asdict(scale), **study._asked_scale},
        **_records_of_people(study, parts),
        **_records_of_fit(study, parts),
        "populations": study.populations(),
        "fit_checks": study.checks(parts).to_dict() if parts.fit else None,
        "dif": _comparison_records(study, parts),
        "change": None if study._change is None else study._change.to_dict(),
        "dif_tree": None if tree is None else tree.to_dict(),
        "facets": study._facet_record() if study.facets else None,
        "covariates": None if parts.covariates is None else study._explain_severities(parts.covariates).to_dict(),
        "anchors": anchors_record(calibration),
        "findings": list(map(finding_record, study.findings(parts))),
    }


def anchors_record(calibration: Calibration) -> dict[str, Any] | None:
    """The anchors of a calibration: how far each is off, and which were set free; None without any."""
    if not calibration.anchored.any():
        return None
    columns = calibration.item_columns()
    chosen = np.flatnonzero(calibration.anchored)[:NAMED_ITEMS]
    names = [name for name in ("item", "displacement", "displacement_se") if name in columns]
    free = calibration.items_named_by("freed_anchors")
    return {"items": rows_of({name: columns[name][chosen] for name in names}), "free": free}


def _records_of_people(study: Analysis, parts: Parts) -> dict[str, Any]:
    """What came out about people, None of what was not asked for."""
    records: dict[str, Any] = dict.fromkeys(("persons", "reliability", "forms", "cuts"))
    if parts.persons:
        draws_values = study.ability == "pv"
        columns = columns_of(study.persons, "eap" if draws_values else None)
        records["persons"] = persons_record(columns, study.ability, study.weights, study._comparable())
        if draws_values:
            about = {"draws": parts.draws, "seed": parts.seed, "given": list(parts.groups)}
            records["persons"]["plausible_values"] = about
        records["reliability"] = asdict(study.reliability())
    if parts.scores:
        forms = study.forms()
        records["forms"] = {
            "forms": len(forms.items),
            "people_on_forms": forms.n_on_forms,
            "sets_of_items": forms.n_sets,
        }
    if parts.cuts:
        records["cuts"] = rows_of(columns_of(study.cuts, parts.cuts, raw=parts.cut_raw))
    return records


def _records_of_fit(study: Analysis, parts: Parts) -> dict[str, Any]:
    """How well the model fits, None of what was not asked for."""
    names = ("item_fit", "item_trait", "smith_test", "model_test", "conditional_against_marginal")
    records: dict[str, Any] = dict.fromkeys(names)
    if not parts.fit:
        return records
    fit = columns_of(study.item_fit, critical=parts.critical, sample=parts.sample)
    judged = np.isfinite(fit["infit_conditional"])
    records["item_fit"] = {
        "draws": parts.critical,
        "judged": int(judged.sum()),
        "underfit": int(np.sum(fit["misfit"] == "underfit")),
        "overfit": int(np.sum(fit["misfit"] == "overfit")),
    }
    for name in ("infit_conditional", "outfit_conditional"):
        records["item_fit"][f"{name}_mean"] = float(fit[name][judged].mean()) if judged.any() else None
    of_classes = study._class_intervals(parts)
    if of_classes is not None:
        sizes = [int(n) for n in of_classes.sizes]
        test = {"chi2": of_classes.chi2, "df": of_classes.df, "p": of_classes.p}
        records["item_trait"] = {**test, "intervals": sizes}
    smith = study._smith(parts)
    if smith is not None:
        records["smith_test"] = smith.to_dict()
    halves = study.quick_model_test()
    if halves is not None:
        groups = {"less able half": int(halves.sizes[0]), "more able half": int(halves.sizes[1])}
        records["model_test"] = {**halves.to_dict(), "groups": groups, "items_compared": len(halves.z)}
    hausman = study._quick_hausman(parts.populations)
    if hausman is not None:
        records["conditional_against_marginal"] = {
            **hausman.to_dict(),
            "size": hausman.size,
            "in_errors": hausman.in_errors,
            "stretch": hausman.stretch,
            "people_compared": hausman.n_people,
            "items_compared": hausman.n_items,
        }
    return records


def _comparison_records(study: Analysis, parts: Parts) -> Any:
    """The comparisons of groups: one as it is, several as a list, None without any."""
    records = [{"column": column, **dif.to_dict()} for column, dif in study._comparisons_of_groups(parts).items()]
    if not records:
        return None
    return records if len(records) > 1 else records[0]


def record_head() -> dict[str, Any]:
    """How every record begins."""
    versions = {"spectral_irt": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "polars"):
        versions[name] = version(name)
    return {"schema_version": SCHEMA, "program": PROGRAM, "versions": versions}


def file_digests(files: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    """The SHA-256 of every local file that these mean: themselves, all below a folder, all that a pattern matches. What
    is no ordinary file (standard input, a store) has none."""
    digests: dict[str, str] = {}
    for path in itertools.chain.from_iterable(map(input_paths, files)):
        with suppress(OSError):
            state = path.stat()
            if stat.S_ISREG(state.st_mode):
                digests[str(path)] = _digest(os.path.abspath(path), state.st_size, state.st_mtime_ns)
    return digests


@lru_cache(maxsize=1000)  # a record may be asked for several times
def _digest(file: str, size: int, changed: int) -> str:
    with open(file, "rb") as content:
        return "sha256:" + hashlib.file_digest(content, "sha256").hexdigest()


def counts_of(responses: Responses) -> dict[str, int | None]:
    """How much data there is (of ratings also `combinations` of items and raters), and what reading did to them."""
    counts: dict[str, int | None] = {"persons": responses.n_persons, "items": responses.n_items}
    counts["responses"] = responses.n_responses
    if responses.facets is not None:
        counts |= {"items": len(responses.facets.items), "combinations": responses.n_items}
    counts["thresholds"] = responses.thresholds.n_entries
    counts["right"] = int(responses.item_scores.sum()) if responses.thresholds.binary else None
    by_reading = dict.fromkeys(("repeats_left_out", "columns_left_out", "counted_as_wrong"), 0)
    for note in responses.notes:
        if note.code in COLUMNS_LEFT_OUT:
            by_reading["columns_left_out"] += len(note.items)
        elif note.code in COUNTED_AS_WRONG:
            by_reading["counted_as_wrong"] += note.number
        elif note.code == "repeats_left_out":
            by_reading["repeats_left_out"] += note.number
    return {**counts, **by_reading}


def persons_record(
    persons: Columns, ability: str, weights: Floats | None = None, comparable: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    """How many people there are of which kind, and where they are: mean and sd of those who can be `comparable`, by
    default of all."""
    has_ability = np.isfinite(persons["ability"])
    compared = has_ability if comparable is None else has_ability & comparable
    mean = sd = None
    if compared.any():
        weights_of_compared = chosen_or_none(weights, compared)
        mean, sd = mean_and_sd(persons["ability"][compared], weights_of_compared)
    if compared.sum() < 2:
        sd = None
    answered = persons["n"] > 0
    all_right = answered & persons["extreme"] & (persons["score"] > 0)
    all_wrong = answered & (persons["score"] == 0)
    return {
        "ability": ability,
        "with_ability": int(has_ability.sum()),
        "without_answers": int(np.sum(~answered)),
        "all_right": int(all_right.sum()),
        "all_wrong": int(all_wrong.sum()),
        "floor": float(np.mean(all_wrong[answered])) if answered.any() else None,
        "ceiling": float(np.mean(all_right[answered])) if answered.any() else None,
        "mean": mean,
        "sd": sd,
        "compared": int(compared.sum()),
    }


def finding_record(finding: Finding, worded: Callable[[str], str] = for_shell) -> dict[str, Any]:
    """A finding as data; a long list of items is cut, and `n_items` tells how many there are. `worded` says options as
    those know them who read it."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "sentence": worded(finding.sentence),
        "remedy": worded(finding.remedy),
        "option": finding.option,
        "n_items": len(finding.items),
        "items": list(finding.items[:NAMED_ITEMS]),
    }


def write_results(
    study: Analysis, folder: str | Path, parts: Parts | None = None, *, parquet: bool = False, every: bool = False
) -> list[Path]:
    """Write the results to a folder as CSV, or to a workbook, complete or not at all; their paths.

    Parameters
    ----------
    folder : path
        A folder, a workbook ("results.xlsx"), or a file of SPSS or Stata with the persons ("persons.sav",
        "persons.dta").
    parts : Parts, optional
        What to write besides items, people, scores and `fit.json`, by `study.parts(...)`: groups, cuts, ranks.
    parquet : bool
        Write Parquet files, too.
    every : bool
        Also the further statistics of items and people (`item_fit`, `item_analysis`, `distractors`, ...), which a
        workbook always has.
    """
    folder = Path(folder)
    parts = parts or study.parts(writing=True)
    if parquet and is_one_file(folder):
        raise OptionError(f"`parquet=True` writes files to a folder, and {str(folder)!r} is a file; name a folder.")
    if is_persons_file(folder):
        check_persons_file(folder)
        if not parts.persons:
            raise OptionError(f"{str(folder)!r} has the persons, who were left out; leave out `persons=False`.")
    tables = study.tables(parts, every=every or is_workbook(folder))
    record = study.record(parts)
    targets, stale = result_paths(folder, list(tables), parquet=parquet)
    if study.moves and not is_one_file(folder):
        targets.insert(-1, folder / MOVES_FILE)
    paths: list[Path] = []
    with all_or_nothing(targets, stale=stale) as drafts:
        for draft, target in zip(drafts, targets, strict=True):
            with errors_with_target(target):
                if target.name == MOVES_FILE:
                    write_ledger(study, draft)
                else:
                    outputs = [path.name for path in (*paths, target)]
                    write_result(draft, target, tables, {**record, "outputs": outputs})
            if draft.exists():
                paths.append(target)
    return paths


def is_one_file(place: Path) -> bool:
    """Whether the results are one file and no folder: a workbook, or a file of SPSS or Stata with the persons."""
    return is_workbook(place) or is_persons_file(place)


def write_ledger(study: Analysis, draft: Path) -> None:
    """The moves of an analysis as a file that does them again."""
    draft.write_text(ledger_text(study.moves, study.first_digest, study.held_out), encoding="utf-8", newline="\n")


def write_result(
    draft: Path, target: Path, tables: Mapping[str, AnyColumns], record: Mapping[str, Any]
) -> dict[str, int]:
    """One of the results: the record, a table, a file of SPSS or Stata with the persons, or a workbook with all tables,
    of which those that are too long for a sheet are given back. A table that there is not leaves no file."""
    if is_workbook(target):
        return write_workbook(draft, tables, record)
    if is_persons_file(target):
        write_persons_file(draft, target, tables["persons"])
    elif target.name == RECORD:
        write_json(draft, record)
    elif target.stem not in tables:
        draft.unlink()
    else:
        write = write_csv if target.suffix == ".csv" else write_parquet
        write(draft, tables[target.stem])
    return {}


def result_paths(
    place: Path, tables: Sequence[str], *, parquet: bool, record: str = RECORD
) -> tuple[list[Path], list[Path]]:
    """Where these results go, the record last, and which files of an earlier run they make stale. A file of the same
    name that no run wrote is somebody's data: an error."""
    if is_workbook(place):
        refuse_foreign(place)
        return [place], []
    if is_persons_file(place):
        check_persons_file(place)
        return [place], []
    if place.exists() and not place.is_dir():
        raise OutputError(f"{str(place)!r} is a file, not a directory; choose another place. Nothing was written.")
    endings = (".csv", ".parquet") if parquet else (".csv",)
    targets = [place / f"{table}{ending}" for table in tables for ending in endings]
    targets.append(place / record)
    ours = files_of_run(place / record)
    names = [*RESULTS[:-1], *sorted(ours - {*RESULTS, record}), record]
    existing = [name for name in names if (place / name).exists()]
    stale = [place / name for name in existing if place / name not in targets]
    foreign = [name for name in existing if name not in ours]
    if foreign:
        raise OutputError(
            f"{str(place)!r} holds {listed(foreign)}, which no run of {PROGRAM} wrote there with {record}; choose "
            "another directory, or move it away. Nothing was written."
        )
    return targets, stale


def files_of_run(record: Path) -> set[str]:
    """Names of the files that a run wrote with this record; none if it is not one of ours."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(content, dict) or content.get("program") != PROGRAM:
        return set()
    outputs = content.get("outputs")
    if not isinstance(outputs, list):
        outputs = []
    return {record.name, *map(str, outputs)}
