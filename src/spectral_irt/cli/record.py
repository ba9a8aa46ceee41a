"""fit.json: what was fitted, how, and what came of it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from spectral_irt import __version__
from spectral_irt.cli.analysis import Columns, Results
from spectral_irt.cli.output import PROGRAM
from spectral_irt.errors import for_shell
from spectral_irt.inference.differential import Differential
from spectral_irt.inference.wald import WaldTest
from spectral_irt.responses import Finding, Responses

NAMED_ITEMS = 1000  # items that a finding lists; all of them are counted


def fit_record(
    results: Results,
    *,
    estimator: str,
    ability: str,
    files: Sequence[str],
    reading: Mapping[str, Any],
    outputs: Sequence[str],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Everything needed to know what a calibration is and to do it again."""
    responses, fit = results.responses, results.fit
    regularization = getattr(fit, "regularization_", None)
    return {
        "program": PROGRAM,
        "versions": versions(),
        "outputs": list(outputs),
        "estimator": estimator,
        "settings": fit.get_params(),
        "input": {"source": responses.source, "files": list(files), "reading": dict(reading)},
        "counts": {
            **counts_of(responses),
            "items_with_estimate": int(np.isfinite(fit.difficulty_).sum()),
            "items_anchored": int(np.sum(getattr(fit, "anchored_", False))),
        },
        "data_digest": responses.digest(),
        "iterations": fit.n_iter_,
        "residual": fit.residual_,
        "contraction": getattr(fit, "contraction_", None),
        "solver": getattr(fit, "solver_", None),
        "loglik": getattr(fit, "loglik_", None),
        "regularization": asdict(regularization) if is_dataclass(regularization) else None,  # type: ignore[arg-type]
        "se_method": getattr(fit, "se_method_", None),
        "error_over_floor": results.error_over_floor,
        "scale": None if results.scale is None else asdict(results.scale),
        "persons": None if results.persons is None else persons_record(results.persons, ability),
        "reliability": None if results.reliability is None else results.reliability.to_dict(),
        "item_fit": None if results.item_fit is None else _item_fit_record(results.item_fit, results.bootstrap),
        "model_test": None if results.model_test is None else _test_record(results.model_test),
        "dif": _one_or_all([_dif_record(dif, column) for column, dif in results.dif.items()]),
        "findings": [finding_record(finding) for finding in results.findings],
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
    }


def counts_of(responses: Responses) -> dict[str, int]:
    """How much data there is."""
    return {
        "users": responses.n_users,
        "items": responses.n_items,
        "responses": responses.n_responses,
        "right": int(responses.item_scores.sum()),
    }


def persons_record(persons: Columns, ability: str) -> dict[str, Any]:
    """How many people there are of which kind, and where they are."""
    n, score, measured = persons["n"], persons["score"], persons["ability"]
    known = measured[np.isfinite(measured)]
    return {
        "ability": ability,
        "with_ability": len(known),
        "without_answers": int(np.sum(n == 0)),
        "all_right": int(np.sum((n > 0) & (score == n))),
        "all_wrong": int(np.sum((n > 0) & (score == 0))),
        "mean": float(known.mean()) if len(known) else None,
        "sd": float(known.std(ddof=1)) if len(known) > 1 else None,
    }


def _item_fit_record(columns: Columns, bootstrap: int) -> dict[str, Any]:
    infit, outfit = columns["infit_conditional"], columns["outfit_conditional"]
    known = np.isfinite(infit)
    return {
        "bootstrap": bootstrap,
        "judged": int(known.sum()),
        "underfit": int(np.sum(columns["misfit"] == "underfit")),
        "overfit": int(np.sum(columns["misfit"] == "overfit")),
        "infit_conditional_mean": float(infit[known].mean()) if known.any() else None,
        "outfit_conditional_mean": float(outfit[known].mean()) if known.any() else None,
    }


def _test_record(test: WaldTest) -> dict[str, Any]:
    groups = test.groups
    return {
        "test": "score-split Wald",
        "statistic": test.statistic,
        "df": test.df,
        "df2": test.df2,
        "p": test.p,
        "groups": dict(zip(groups.names, groups.sizes.tolist(), strict=True)),
        "items_compared": len(groups.items),
    }


def _one_or_all(records: list[dict[str, Any]]) -> Any:
    """The record of the one grouping, as it has always been; the list of several."""
    return records if len(records) > 1 else records[0] if records else None


def _dif_record(dif: Differential, column: str) -> dict[str, Any]:
    flags = dif.items["class"]
    return {
        "column": column,
        "reference": dif.reference,
        "groups": dict(zip(dif.groups.names, dif.groups.sizes.tolist(), strict=True)),
        "statistic": dif.test.statistic,
        "df": dif.test.df,
        "p": dif.test.p,
        "items_compared": len(flags),
        "classes": {letter: int(np.sum(flags == letter)) for letter in "ABC"},
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


def versions() -> dict[str, str]:
    """Versions of this package and of what its numbers stand on."""
    others = {name: version(name) for name in ("numpy", "scipy", "polars")}
    return {"spectral_irt": __version__, "python": platform.python_version(), **others}
