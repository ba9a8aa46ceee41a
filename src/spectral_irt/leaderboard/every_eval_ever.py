"""A leaderboard as records of Every Eval Ever: one for each model, by version 0.2.1 of its schema of aggregate results.

Each holds the model's ability with standard error and 95% interval, ranks in its details, and the accuracy beside it.
`Leaderboard.every_eval_ever` calls `records_of`; `eval_logs/every_eval_ever.py` reads such projects' samples.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt import __version__
from spectral_irt.errors import check_option
from spectral_irt.tables import plain

if TYPE_CHECKING:
    from spectral_irt.leaderboard.board import Leaderboard

SCHEMA = "0.2.1"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


def records_of(board: Leaderboard, organization: str, relationship: str = "third_party") -> list[dict[str, Any]]:
    """The records, from the best model down; a model without an estimate has its accuracy alone."""
    check_option("relationship", relationship, RELATIONSHIPS)
    created = f"{time.time():.0f}"
    source = board.answers.source
    columns = board.model_columns()
    # Abilities have no bounds, and the schema asks for some: those of the models compared.
    span = [float(np.nanmin(columns["ci_low"])), float(np.nanmax(columns["ci_high"]))]
    records = []
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        model = dict(zip(columns, row, strict=True))
        results = [_accuracy(model, source)]
        if np.isfinite(model["ability"]):
            results.insert(0, _ability(model, source, board.scale.words, span))
        records.append(
            {
                "schema_version": SCHEMA,
                "evaluation_id": f"{source}/{model['model']}/{created}",
                "retrieved_timestamp": created,
                "source_metadata": {
                    "source_name": source,
                    "source_type": "evaluation_run",
                    "source_organization_name": organization,
                    "evaluator_relationship": relationship,
                },
                "eval_library": {"name": "spectral-irt", "version": __version__},
                "model_info": {"name": str(model["model"]), "id": str(model["model"])},
                "evaluation_results": results,
            }
        )
    return [plain(record) for record in records]


def _ability(model: dict[str, Any], source: str, scale: str, span: list[float]) -> dict[str, Any]:
    return {
        "evaluation_name": f"{source}: ability",
        "source_data": {"dataset_name": source, "source_type": "other"},
        "metric_config": {
            "evaluation_description": f"Ability by the Rasch model, conditional maximum likelihood; {scale}",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": span[0],
            "max_score": span[1],
        },
        "score_details": {
            "score": model["ability"],
            # The schema has texts for details.
            "details": {name: str(model[name]) for name in ("rank", "rank_low", "rank_high", "tier")},
            "uncertainty": {
                "standard_error": {"value": model["se"], "method": "analytic"},
                "confidence_interval": {
                    "lower": model["ci_low"],
                    "upper": model["ci_high"],
                    "confidence_level": 0.95,
                    "method": "analytic",
                },
                "num_samples": model["n"],
            },
        },
    }


def _accuracy(model: dict[str, Any], source: str) -> dict[str, Any]:
    return {
        "evaluation_name": f"{source}: accuracy",
        "source_data": {"dataset_name": source, "source_type": "other"},
        "metric_config": {
            "evaluation_description": "Share of the prompts of this model that it got right",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {"score": model["accuracy"], "uncertainty": {"num_samples": model["n"]}},
    }
