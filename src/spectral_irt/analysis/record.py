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
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spectral_irt import __version__
from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.folder import PROGRAM
from spectral_irt.analysis.people import rows_of
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.engine.base import Engine
from spectral_irt.errors import AnswersStayError, for_shell
from spectral_irt.estimators.base import ADAPTIVE, FIXED
from spectral_irt.estimators.by_name import named
from spectral_irt.estimators.marginal import is_adaptive
from spectral_irt.inference.groups.dif import Differential
from spectral_irt.inference.groups.hausman import HausmanTest
from spectral_irt.inference.groups.model_tests import RaoTest
from spectral_irt.inference.scores.reliability import mean_and_sd
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis
    from spectral_irt.analysis.folder import Parts
    from spectral_irt.engine.dask import DaskEngine

SCHEMA = 1  # of every record; it grows when a field changes its meaning or goes, not when one is added
NAMED_ITEMS = 1000  # items that a finding lists; all of them are counted


def fit_record(study: Analysis, parts: Parts) -> dict[str, Any]:
    """Everything needed to know what a calibration is and to do it again."""
    responses, calibration = study.responses, study.calibration
    made, prior, scale = calibration.provenance, calibration.prior, calibration.scale
    anchored = int(calibration.anchored.sum())
    items = calibration if calibration.facets is None else calibration.facets.items
    test = study.quick_model_test() if parts.fit else None
    model, estimator = named(made.estimator)
    digest: str | None = None
    with suppress(AnswersStayError):
        digest = responses.digest()
    forms = study.forms() if parts.scores else None
    against = study._quick_hausman(parts.populations) if parts.fit else None
    compared = [dif_record(dif, column) for column, dif in study._grouped(parts).items()]
    return {
        **record_head(),
        "outputs": [],
        "model": model,
        "estimator": estimator,
        "settings": dict(made.settings),
        "design": ADAPTIVE if is_adaptive(calibration) else FIXED,
        "input": {"source": responses.source},
        "counts": {
            **counts_of(responses),
            "thresholds": items.layout.n_entries,
            "items_with_estimate": int(items.known.sum()),
            "items_anchored": anchored,
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
        "persons": people_record(study, parts) if parts.persons else None,
        "reliability": study.reliability().to_dict() if parts.persons else None,
        "forms": None
        if forms is None
        else {"forms": len(forms), "people_on_forms": int(forms.sizes.sum()), "sets_of_items": forms.n_sets},
        "cuts": rows_of(columns_of(study.cuts, parts.cuts, raw=parts.cut_raw)) if parts.cuts else None,
        "item_fit": item_fit_record(study, parts) if parts.fit else None,
        "model_test": None if test is None else test_record(test),
        "conditional_against_marginal": None if against is None else hausman_record(against),
        "populations": study.populations(),
        "fit_checks": study.checks(parts).to_dict() if parts.fit else None,
        "dif": compared if len(compared) > 1 else compared[0] if compared else None,
        "facets": study._facet_record(),
        "covariates": None if parts.covariates is None else study._explained(parts.covariates).to_dict(),
        "findings": [finding_record(finding) for finding in study.findings(parts)],
    }


def record_head() -> dict[str, Any]:
    """How every record begins."""
    return {"schema_version": SCHEMA, "program": PROGRAM, "versions": versions()}


Mark = tuple[str, int, int]  # of a state of a file: path, bytes, time of the last change


def file_digests(files: Iterable[str | os.PathLike[str]], engine: Engine | None = None) -> dict[str, str]:
    """The SHA-256 of every local file among these; what is no file (a pattern, standard input, a store) has none.

    The workers of a cluster read the files that they see.
    """
    marks = {os.fspath(file): mark for file in files if (mark := _mark(os.path.abspath(file))) is not None}
    there: list[str | None] = [None] * len(marks)
    if engine is not None and engine.remote and marks:
        far = cast("DaskEngine", engine)
        there = far.gather(far.submit_all(_digest, list(marks.values())))
    found = {file: known or _digest(mark) for (file, mark), known in zip(marks.items(), there, strict=True)}
    return {file: digest for file, digest in found.items() if digest}


def _mark(file: str) -> Mark | None:
    try:
        at = os.stat(file)
    except OSError:
        return None
    return (file, at.st_size, at.st_mtime_ns) if stat.S_ISREG(at.st_mode) else None


@lru_cache(maxsize=1000)  # a record may be wanted several times
def _digest(mark: Mark) -> str | None:
    """The SHA-256 of a file in this state; None where it is not seen, or in another."""
    if _mark(mark[0]) != mark:
        return None
    with open(mark[0], "rb") as content:
        return "sha256:" + hashlib.file_digest(content, "sha256").hexdigest()


def counts_of(responses: Responses) -> dict[str, int | None]:
    """How much data there is; of ratings, `combinations` of items and raters."""
    counts = {"persons": responses.n_persons, "items": responses.n_items, "responses": responses.n_responses}
    if responses.facets is not None:
        counts |= {"items": len(responses.facets.items), "combinations": responses.n_items}
    right = int(responses.item_scores.sum()) if responses.thresholds.binary else None
    return {**counts, "thresholds": responses.thresholds.n_entries, "right": right}


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


def people_record(study: Analysis, parts: Parts) -> dict[str, Any]:
    """The people of an analysis, and how plausible values were drawn."""
    if study.ability != "pv":
        return persons_record(columns_of(study.persons), study.ability, study.weights)
    drawn = {"draws": parts.draws, "seed": parts.seed, "given": list(parts.groups)}
    return {**persons_record(columns_of(study.persons, "eap"), "pv", study.weights), "plausible_values": drawn}


def item_fit_record(study: Analysis, parts: Parts) -> dict[str, Any]:
    """How many items were judged, and how many misfit."""
    columns = columns_of(study.item_fit, bootstrap=parts.bootstrap, sample=parts.sample)
    infit, outfit = columns["infit_conditional"], columns["outfit_conditional"]
    known = np.isfinite(infit)
    return {
        "bootstrap": parts.bootstrap,
        "judged": int(known.sum()),
        "underfit": int(np.sum(columns["misfit"] == "underfit")),
        "overfit": int(np.sum(columns["misfit"] == "overfit")),
        "infit_conditional_mean": float(infit[known].mean()) if known.any() else None,
        "outfit_conditional_mean": float(outfit[known].mean()) if known.any() else None,
    }


def test_record(test: RaoTest) -> dict[str, Any]:
    """The less against the more able half."""
    return {
        **test.to_dict(),
        "groups": {"less able half": int(test.sizes[0]), "more able half": int(test.sizes[1])},
        "items_compared": len(test.z),
    }


def hausman_record(test: HausmanTest) -> dict[str, Any]:
    """Conditional against marginal likelihood."""
    counts = {"people_compared": test.n_people, "items_compared": test.n_items}
    sizes = {"size": test.size, "in_errors": test.in_errors, "stretch": test.stretch}
    return {**test.to_dict(), **sizes, **counts}


def dif_record(dif: Differential, column: str) -> dict[str, Any]:
    """A comparison of groups by a column."""
    flags = dif.items["class"]
    return {
        "column": column,
        "reference": dif.reference,
        "groups": dict(zip(dif.groups.names, dif.groups.sizes.tolist(), strict=True)),
        "statistic": dif.test.statistic,
        "df": dif.test.df,
        "p": dif.test.p,
        "items_compared": len(flags),
        "anchors": len(dif.anchors),
        "classes": {letter: int(np.sum(flags == letter)) for letter in "ABC"},
        "flagged": _named(dif, "differential_items"),
        "nonuniform": _named(dif, "nonuniform_items") if dif.nonuniform_tested else None,
    }


def _named(dif: Differential, code: str) -> int:
    """Items that the summary names."""
    return sum(len(finding.items) for finding in dif.findings if finding.code == code)


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


def versions() -> dict[str, str]:
    """Versions of this package and of what its numbers stand on."""
    others = {name: version(name) for name in ("numpy", "scipy", "polars")}
    return {"spectral_irt": __version__, "python": platform.python_version(), **others}
