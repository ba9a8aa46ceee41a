"""fit.json: what was fitted, how, and what came of it."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from spectral_irt import __version__
from spectral_irt.cli.output import PROGRAM
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.responses import Finding, Responses

NAMED_ITEMS = 1000  # items that a finding lists; all of them are counted


def fit_record(
    responses: Responses,
    fit: RaschEstimator,
    *,
    estimator: str,
    files: Sequence[str],
    reading: Mapping[str, Any],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Everything needed to know what a calibration is and to do it again."""
    regularization = getattr(fit, "regularization_", None)
    return {
        "program": PROGRAM,
        "versions": versions(),
        "estimator": estimator,
        "settings": fit.get_params(),
        "input": {"source": responses.source, "files": list(files), "reading": dict(reading)},
        "counts": {
            "users": responses.n_users,
            "items": responses.n_items,
            "responses": responses.n_responses,
            "right": int(responses.item_scores.sum()),
            "items_with_estimate": int(np.isfinite(fit.difficulty_).sum()),
        },
        "data_digest": responses.digest(),
        "iterations": fit.n_iter_,
        "residual": fit.residual_,
        "contraction": getattr(fit, "contraction_", None),
        "solver": getattr(fit, "solver_", None),
        "loglik": getattr(fit, "loglik_", None),
        "regularization": asdict(regularization) if is_dataclass(regularization) else None,  # type: ignore[arg-type]
        "se_method": getattr(fit, "se_method_", None),
        "findings": [finding_record(finding) for finding in fit.findings_],
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
    }


def finding_record(finding: Finding) -> dict[str, Any]:
    """A finding as data; a long list of items is cut, and `n_items` tells how many there are."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "sentence": finding.sentence,
        "remedy": finding.remedy,
        "n_items": len(finding.items),
        "items": list(finding.items[:NAMED_ITEMS]),
    }


def versions() -> dict[str, str]:
    """Versions of this package and of what its numbers stand on."""
    others = {name: version(name) for name in ("numpy", "scipy", "polars")}
    return {"spectral_irt": __version__, "python": platform.python_version(), **others}
