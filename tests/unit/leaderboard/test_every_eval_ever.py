"""Records of Every Eval Ever: what its schema asks for, and the numbers of the board."""

import json

import numpy as np
import pytest

import spectral_irt as si
from drawn import drawn

# Of the published schema of aggregate results, version 0.2.1: what must be there, and of which kind.
REQUIRED = {
    "schema_version": str,
    "evaluation_id": str,
    "retrieved_timestamp": str,
    "source_metadata": dict,
    "model_info": dict,
    "eval_library": dict,
    "evaluation_results": list,
}


@pytest.fixture(scope="module")
def board():
    rng = np.random.default_rng(12)
    answers = drawn(rng, np.linspace(-1, 1, 4)[:, None] - rng.normal(0, 1, 60))
    answers[3] = 1.0  # everything right: no estimate of the ability
    return si.Leaderboard(si.Responses.from_wide(answers, person=None))


def test_each_model_has_a_record_by_the_schema(board):
    records = board.every_eval_ever("A Lab")
    assert len(records) == 4
    for record in json.loads(json.dumps(records, allow_nan=False)):
        assert {name: type(value) for name, value in record.items()} == REQUIRED  # and nothing else is allowed
        assert record["source_metadata"]["evaluator_relationship"] == "third_party"
        assert set(record["model_info"]) == {"name", "id"}
        for result in record["evaluation_results"]:
            assert result["source_data"]["source_type"] == "other"
            config = result["metric_config"]
            assert config["min_score"] <= result["score_details"]["score"] <= config["max_score"]
            assert all(isinstance(text, str) for text in result["score_details"].get("details", {}).values())


def test_the_numbers_are_those_of_the_board(board):
    columns = board.model_columns()
    records = {record["model_info"]["id"]: record["evaluation_results"] for record in board.every_eval_ever("A Lab")}
    for k, model in enumerate(columns["model"]):
        *ability, accuracy = records[str(model)]
        assert accuracy["score_details"]["score"] == columns["accuracy"][k]
        assert bool(ability) == bool(np.isfinite(columns["ability"][k]))
        for one in ability:
            assert one["score_details"]["score"] == columns["ability"][k]
            assert one["score_details"]["uncertainty"]["standard_error"]["value"] == columns["se"][k]
            assert one["score_details"]["details"]["rank_high"] == str(columns["rank_high"][k])


def test_an_unknown_relationship_is_refused(board):
    with pytest.raises(ValueError, match="first_party"):
        board.every_eval_ever("A Lab", relationship="friend")
