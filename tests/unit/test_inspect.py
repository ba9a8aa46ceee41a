"""The metric for inspect_ai: difficulties by sample, Warm's estimate, and inspect_ai itself where it is installed."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from spectral_irt.errors import OptionError, ReadError
from spectral_irt.inspect import ability, ability_columns, sample_difficulties


def test_the_ability_is_warms():
    difficulty = {"a": -1.0, "b": 0.2, "c": 0.9, "d": 2.0}
    answered = {"a": True, "b": True, "c": False, "d": True}
    beta = np.array(list(difficulty.values()))

    def weighted_score(theta):
        p = 1 / (1 + np.exp(beta - theta))
        information = p * (1 - p)
        return 3 - p.sum() + (information * (1 - 2 * p)).sum() / (2 * information.sum())

    root = brentq(weighted_score, -6, 6)
    p = 1 / (1 + np.exp(beta - root))
    found = ability_columns(answered, difficulty)
    assert found["ability"] == pytest.approx(root, abs=1e-7)
    assert found["ability_se"] == pytest.approx((p * (1 - p)).sum() ** -0.5, abs=1e-7)
    assert found["ability_n"] == 4
    assert math.isnan(ability_columns({}, difficulty)["ability"])


def test_prompts_are_those_of_a_leaderboard(tmp_path):
    board = tmp_path / "prompts.csv"
    board.write_text("prompt,benchmark,difficulty,se\narc/1,arc,-0.5,0.1\narc/2,arc,,\ngsm/7,gsm,1.5,0.2\n")
    assert sample_difficulties(board) == {"1": -0.5, "7": 1.5}
    assert sample_difficulties(board, "gsm") == {"7": 1.5}
    with pytest.raises(OptionError, match="no prompt of the benchmark 'mmlu' has a difficulty"):
        sample_difficulties(board, "mmlu")
    with pytest.raises(OptionError, match="two benchmarks have a sample '1'; say which one is meant"):
        sample_difficulties({"arc/1": 0.0, "gsm/1": 1.0})
    board.write_text("prompt,place\narc/1,3\n")
    with pytest.raises(ReadError, match="has no column 'difficulty'"):
        sample_difficulties(board)
    with pytest.raises(ReadError, match="cannot be read"):
        sample_difficulties(tmp_path / "nothing.csv")


def test_a_run_of_inspect_ai_has_it(tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import accuracy, match
    from inspect_ai.solver import solver

    @solver
    def answer():  # without a call of the model, whose tokens would be counted by a table from the network
        async def solve(state, generate):
            state.output = ModelOutput.from_content("mockllm/model", "no" if state.sample_id == "2" else "yes")
            return state

        return solve

    difficulty = {f"sums/{k}": value for k, value in enumerate([-1.0, 0.0, 1.0, 2.0])}
    samples = [Sample(input=f"{k}?", target="yes", id=str(k)) for k in range(5)]  # the last has no difficulty
    metrics = [accuracy(), ability(difficulty)]
    task = inspect_ai.Task(dataset=samples, solver=answer(), scorer=match(), metrics=metrics)
    [log] = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    shown = {name: one.value for score in log.results.scores for name, one in score.metrics.items()}
    expected = ability_columns({"0": True, "1": True, "2": False, "3": True}, sample_difficulties(difficulty))
    assert {name: shown[name] for name in expected} == pytest.approx(expected)
