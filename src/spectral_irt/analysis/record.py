"""fit.json: what was fitted, how, and what came of it."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt import __version__
from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.folder import PROGRAM
from spectral_irt.analysis.people import rows_of
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import AnswersStayError, for_shell
from spectral_irt.estimators.base import ADAPTIVE, FIXED
from spectral_irt.estimators.by_name import named
from spectral_irt.inference.scores.reliability import mean_and_sd
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis
    from spectral_irt.analysis.folder import Parts
    from spectral_irt.inference.groups.dif import Differential

SCHEMA = 1  # of every record; it grows when a field changes its meaning or goes, not when one is added
NAMED_ITEMS = 1000  # items that a finding lists; all of them are counted
COLUMNS_LEFT_OUT = ("attribute_columns", "total_columns", "unlike_columns", "not_in_key")  # codes of findings
COUNTED_AS_WRONG = ("blanks_count_as_wrong", "options_like_codes", "spelled_unlike_key")


def fit_record(study: Analysis, parts: Parts) -> dict[str, Any]:
    """Everything needed to know what a calibration is and to do it again."""
    responses, calibration = study.responses, study.calibration
    made, prior, scale = calibration.provenance, calibration.prior, calibration.scale
    test = study.quick_model_test() if parts.fit else None
    model, estimator = named(made.estimator)
    digest: str | None = None
    with suppress(AnswersStayError):
        digest = responses.digest()
    forms = study.forms() if parts.scores else None
    against = study._quick_hausman(parts.populations) if parts.fit else None
    compared = [dif_record(dif, column) for column, dif in study._grouped(parts).items()]
    people: dict[str, Any] = {}
    fitted: dict[str, Any] = {}
    if parts.fit:
        fit = columns_of(study.item_fit, bootstrap=parts.bootstrap, sample=parts.sample)
        judged = np.isfinite(fit["infit_conditional"])
        fitted = {"bootstrap": parts.bootstrap, "judged": int(judged.sum())}
        for word in ("underfit", "overfit"):
            fitted[word] = int(np.sum(fit["misfit"] == word))
        for name in ("infit_conditional", "outfit_conditional"):
            fitted[f"{name}_mean"] = float(fit[name][judged].mean()) if judged.any() else None
    if parts.persons:
        drawn = study.ability == "pv"
        people = persons_record(columns_of(study.persons, "eap" if drawn else None), study.ability, study.weights)
        if drawn:
            people["plausible_values"] = {"draws": parts.draws, "seed": parts.seed, "given": list(parts.groups)}
    return {
        **record_head(),
        "outputs": [],
        "model": model,
        "estimator": estimator,
        "settings": dict(made.settings),
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
        "iterations": made.iterations,
        "residual": made.residual,
        "contraction": made.contraction,
        "solver": made.solver,
        "loglik": made.loglik,
        "regularization": None if prior is None else asdict(prior),
        "se_method": made.se_method,
        "scale": None if scale.is_logits else {**asdict(scale), **study._asked_scale},
        "persons": people if parts.persons else None,
        "reliability": study.reliability().to_dict() if parts.persons else None,
        "forms": None
        if forms is None
        else {"forms": len(forms.items), "people_on_forms": forms.n_on_forms, "sets_of_items": forms.n_sets},
        "cuts": rows_of(columns_of(study.cuts, parts.cuts, raw=parts.cut_raw)) if parts.cuts else None,
        "item_fit": fitted if parts.fit else None,
        "model_test": None
        if test is None
        else {
            **test.to_dict(),
            "groups": {"less able half": int(test.sizes[0]), "more able half": int(test.sizes[1])},
            "items_compared": len(test.z),
        },
        "conditional_against_marginal": None
        if against is None
        else {
            **against.to_dict(),
            "size": against.size,
            "in_errors": against.in_errors,
            "stretch": against.stretch,
            "people_compared": against.n_people,
            "items_compared": against.n_items,
        },
        "populations": study.populations(),
        "fit_checks": study.checks(parts).to_dict() if parts.fit else None,
        "dif": compared if len(compared) > 1 else compared[0] if compared else None,
        "facets": study._facet_record() if study.facets else None,
        "covariates": None if parts.covariates is None else study._explained(parts.covariates).to_dict(),
        "findings": list(map(finding_record, study.findings(parts))),
    }


def record_head() -> dict[str, Any]:
    """How every record begins."""
    others = {name: version(name) for name in ("numpy", "scipy", "polars")}
    versions = {"spectral_irt": __version__, "python": platform.python_version(), **others}
    return {"schema_version": SCHEMA, "program": PROGRAM, "versions": versions}


def file_digests(files: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    """The SHA-256 of every local file among these, or in a folder among these; what is no file (a pattern, standard
    input, a store) has none."""
    found: dict[str, str] = {}
    for given in files:
        name = os.fspath(given)
        inside = sorted(os.path.join(name, each) for each in os.listdir(name)) if os.path.isdir(name) else [name]
        for file in inside:
            with suppress(OSError):
                at = os.stat(file)
                if stat.S_ISREG(at.st_mode):
                    found[file] = _digest(os.path.abspath(file), at.st_size, at.st_mtime_ns)
    return found


@lru_cache(maxsize=1000)  # a record may be asked for several times
def _digest(file: str, size: int, changed: int) -> str:
    with open(file, "rb") as content:
        return "sha256:" + hashlib.file_digest(content, "sha256").hexdigest()


def counts_of(responses: Responses) -> dict[str, int | None]:
    """How much data there is (of ratings also `combinations` of items and raters), and what reading did to them."""
    counts = {"persons": responses.n_persons, "items": responses.n_items, "responses": responses.n_responses}
    if responses.facets is not None:
        counts |= {"items": len(responses.facets.items), "combinations": responses.n_items}
    right = int(responses.item_scores.sum()) if responses.thresholds.binary else None
    return {
        **counts,
        "thresholds": responses.thresholds.n_entries,
        "right": right,
        "repeats_left_out": sum(note.number for note in responses.notes if note.code == "repeats_left_out"),
        "columns_left_out": sum(len(note.items) for note in responses.notes if note.code in COLUMNS_LEFT_OUT),
        "counted_as_wrong": sum(note.number for note in responses.notes if note.code in COUNTED_AS_WRONG),
    }


def persons_record(persons: Columns, ability: str, weights: Floats | None = None) -> dict[str, Any]:
    """How many people there are of which kind, and where they are."""
    n, score, measured = persons["n"], persons["score"], persons["ability"]
    known = np.isfinite(measured)
    mean, sd = (
        mean_and_sd(measured[known], None if weights is None else weights[known]) if known.any() else (None, None)
    )
    return {
        "ability": ability,
        "with_ability": int(known.sum()),
        "without_answers": int(np.sum(n == 0)),
        "all_right": int(np.sum((n > 0) & persons["extreme"] & (score > 0))),
        "all_wrong": int(np.sum((n > 0) & (score == 0))),
        "mean": mean,
        "sd": sd if known.sum() > 1 else None,
    }


def dif_record(dif: Differential, column: str) -> dict[str, Any]:
    """A comparison of groups by a column; the class of an item is its highest among the rows of dif.csv."""
    m = len(dif.items["item"])
    classes = dif.contrasts["class"].reshape(-1, m).max(axis=0)
    named = {finding.code: len(finding.items) for finding in dif.findings}
    return {
        "column": column,
        "reference": dif.reference,
        "groups": dict(zip(dif.groups.names, dif.groups.sizes.tolist(), strict=True)),
        "statistic": dif.test.statistic,
        "df": dif.test.df,
        "p": dif.test.p,
        "items_compared": m,
        "anchors": len(dif.anchors),
        "classes": {letter: int(np.sum(classes == letter)) for letter in "ABC"},
        "flagged": named.get("differential_items", 0),
        "nonuniform": named.get("nonuniform_items", 0) if dif.nonuniform_tested else None,
    }


def finding_record(finding: Finding) -> dict[str, Any]:
    """A finding as data; a long list of items is cut, and `n_items` tells how many there are."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "sentence": for_shell(finding.sentence),
        "remedy": for_shell(finding.remedy),
        "n_items": len(finding.items),
        "items": list(finding.items[:NAMED_ITEMS]),
    }
