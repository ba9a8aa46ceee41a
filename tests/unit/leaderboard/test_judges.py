"""Boards of judged models: against a plain fit, self-preference, people as anchors, odd scores, logs with scorers."""

import json

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.errors import DesignError, DuplicateResponseError, OptionError, ReadError, ResponseValueError
from spectral_irt.leaderboard.scores import family_of, read_scores

NAMES = ["ash", "birch", "cedar", "elm", "fir", "oak"]


def drawn(seed, *, prompts=60, judges=3, preference=0.0, severity=None, top=5):
    """Scores 1 to `top` of judges on six models of six families, the first of them the judges' own."""
    rng = np.random.default_rng(seed)
    ability = np.linspace(1, -1, 6)
    severity = np.zeros(judges) if severity is None else np.asarray(severity, dtype=float)
    difficulty = rng.normal(0, 0.7, prompts)
    own = np.eye(6)[:, None, :judges]
    logit = ability[:, None, None] - difficulty[:, None] - severity + preference * own
    offsets = np.linspace(-1, 1, top - 1)
    weights = np.cumsum(np.concatenate([np.zeros((*logit.shape, 1)), logit[..., None] - offsets], axis=-1), axis=-1)
    p = np.exp(weights)
    below = np.cumsum(p / p.sum(axis=-1, keepdims=True), axis=-1)[..., :-1]
    score = 1 + (rng.random(logit.shape)[..., None] >= below).sum(axis=-1)
    model, prompt, judge = np.indices(score.shape).reshape(3, -1)
    return pl.DataFrame({
        "model": [f"{NAMES[k]}-1" for k in model],
        "prompt": prompt,
        "judge": [f"{NAMES[k]}-judge" for k in judge],
        "score": score.ravel(),
    })  # fmt: skip


def codes(board):
    return {finding.code: finding for finding in board.findings}


def test_it_is_the_rating_scale_with_a_facet():
    table = drawn(1, severity=[0.5, 0, -0.5])
    board = si.JudgedLeaderboard.read(table, families={})
    responses = si.read(table, person="prompt", item="model", response="score", facets=["judge"], ordered=True)
    fit = si.SpectralRatingScale().fit(responses)
    assert board.ability == pytest.approx(-fit.calibration_.own_items.difficulty, abs=1e-6)
    judges = board.judges()
    assert judges["severity"].to_numpy() == pytest.approx(fit.calibration_.facets.of["judge"]["severity"], abs=1e-6)
    assert judges["se"].to_numpy() == pytest.approx(fit.calibration_.facets.of["judge"]["se"], rel=1e-6)
    # On complete data the fair score is the mean score, in the codes of the scores.
    models = board.models()
    assert models["fair_score"].to_numpy() == pytest.approx(models["score"].to_numpy(), abs=0.05)
    assert models["score"].to_numpy() == pytest.approx(
        table.group_by("model").agg(pl.col("score").mean()).sort("score", descending=True)["score"].to_numpy()
    )


def test_fair_scores_do_not_depend_on_who_judged():
    table = drawn(2, prompts=200, judges=2, severity=[1.0, -1.0])
    # The best model is scored by the severe judge alone on most prompts, the last by the lenient one.
    best = (pl.col("model") == "ash-1") & (pl.col("judge") == "birch-judge")
    last = (pl.col("model") == "oak-1") & (pl.col("judge") == "ash-judge")
    some = table.filter(~((best | last) & (pl.col("prompt") > 20)))
    models = {row["model"]: row for row in si.JudgedLeaderboard.read(some, families={}).models().to_dicts()}
    whole = {row["model"]: row for row in si.JudgedLeaderboard.read(table, families={}).models().to_dicts()}
    for name in ("ash-1", "oak-1"):
        assert models[name]["fair_score"] == pytest.approx(whole[name]["fair_score"], abs=0.15)
        assert abs(models[name]["score"] - whole[name]["score"]) > 0.3


def test_self_preference_is_found_and_taken_off():
    board = si.JudgedLeaderboard.read(drawn(3, prompts=150, preference=1.0))
    found = board.self_preference
    assert found.low < 1.0 < found.high
    assert found.p < 1e-6
    assert "self_preference" in codes(board)
    assert "ash-judge and 1 model ('ash-1')" in codes(board)["self_preference"].sentence
    assert si.JudgedLeaderboard.read(drawn(3), families={}).self_preference is None
    named = si.JudgedLeaderboard.read(drawn(3), families={"ash-judge": "x", "oak-1": "x"})
    assert named.scores.facets.codes[:, 2].sum() == 1


def test_people_are_the_anchor():
    table = drawn(4, prompts=150, severity=[0.0, 0.6, -0.4])
    named = table.with_columns(judge=pl.col("judge").replace("ash-judge", "human"))
    few = named.filter((pl.col("judge") != "human") | (pl.col("prompt") < 30))
    board = si.JudgedLeaderboard.read(few, families={})
    judges = {row["judge"]: row for row in board.judges().to_dicts()}
    assert board.scores.humans == ("human",)
    assert (judges["human"]["severity"], judges["human"]["se"], judges["human"]["status"]) == (0, 0, "anchored")
    assert judges["birch-judge"]["ci_low"] < 0.6 < judges["birch-judge"]["ci_high"]
    assert judges["cedar-judge"]["ci_low"] < -0.4 < judges["cedar-judge"]["ci_high"]


def test_scores_that_are_no_numbers_are_missing_and_counted():
    table = drawn(5).with_columns(pl.col("score").cast(pl.String))
    odd = table.with_columns(
        score=pl.when(pl.col("prompt") == 0).then(pl.lit("refused")).when(pl.col("prompt") == 1).then(None)
        .when(pl.col("prompt") == 2).then(pl.lit("NaN")).otherwise(pl.col("score"))
    )  # fmt: skip
    board = si.JudgedLeaderboard.read(odd)
    assert board.judges()["missing"].to_list() == [18, 18, 18]
    assert codes(board)["scores_missing"].sentence.startswith("54 of 1,080 scores are no number")
    assert len(board.models()) == 6


@pytest.mark.parametrize(
    ("rows", "how", "error", "what"),
    [
        ([("a", 1, "j", 3), ("b", 1, "j", 3)], {}, ResponseValueError, "all scores are 3"),
        ([("a", 1, "j", 0.123), ("b", 1, "j", 3)], {}, ResponseValueError, "too fine steps"),
        ([("a", 1, "j", 0), ("b", 1, "j", 100)], {}, ResponseValueError, "101 categories"),
        ([("a", 1, "j", 1), ("a", 2, "j", 3)], {}, DesignError, "there is 1"),
        ([("a", 1, "j", 1), ("a", 1, "j", 2), ("b", 1, "j", 2)], {}, DuplicateResponseError, "more than once"),
        ([("a", 1, "j", None)], {}, ReadError, "no score is a number"),
        ([("a", 1, "j", 1), ("b", 1, "j", 2)], {"human": "k"}, OptionError, "'k'"),
        ([("a", 1, "j", 1), ("b", 1, "j", 2)], {"families": {"z": "y"}}, OptionError, "'z'"),
        ([("a", 1, "j", 1), ("b", 1, "j", 2)], {"judge": "z"}, OptionError, "no column 'z'"),
    ],
)
def test_odd_tables_end_in_a_sentence(rows, how, error, what):
    table = pl.DataFrame(rows, schema=["model", "prompt", "judge", "score"], orient="row", strict=False)
    with pytest.raises(error, match=what):
        si.JudgedLeaderboard.read(table, **how)


def test_steps_of_a_half_keep_their_codes():
    table = drawn(6, top=5).with_columns(score=(pl.col("score") - 1) / 2)
    board = si.JudgedLeaderboard.read(table)
    assert board.answers.codes[0].tolist() == [0, 0.5, 1, 1.5, 2]
    assert 0 < board.models()["fair_score"].min() < board.models()["fair_score"].max() < 2


def test_runs_of_a_prompt_are_a_cluster():
    table = pl.concat([drawn(7).with_columns(epoch=pl.lit(k)) for k in (1, 2)])
    board = si.JudgedLeaderboard.read(table)
    assert (board.answers.n_persons, int(board.scores.cluster.max()) + 1) == (120, 60)
    once = si.JudgedLeaderboard.read(drawn(7), clustered_by="prompt")
    # The same scores twice tell no more than once, but for what correction of bias takes off.
    assert board.se == pytest.approx(once.se, rel=0.03)


def test_every_scorer_of_a_log_is_a_judge(tmp_path):
    rng = np.random.default_rng(8)
    for name in ("gpt-a", "claude-b", "llama-c"):
        samples = [
            {"id": k, "epoch": 1, "input": f"q{k}", "target": "", "scores": {
                "gpt_judge": {"value": int(rng.integers(1, 6))},
                "claude_judge": {"value": float("nan") if k == 3 else int(rng.integers(1, 6))},
            }} for k in range(20)
        ]  # fmt: skip
        log = {"version": 2, "status": "success", "eval": {"task": "essay", "model": name}, "samples": samples}
        (tmp_path / f"2026-03-02T09-00-00_essay_{name}.json").write_text(json.dumps(log))
    board = si.JudgedLeaderboard.read([str(path) for path in sorted(tmp_path.iterdir())], judge="scorer")
    assert board.judges()["judge"].to_list() == ["claude_judge", "gpt_judge"]
    assert board.judges()["missing"].to_list() == [3, 0]
    assert len(board.models()) == 3


def test_the_board_without_each_judge_and_files(tmp_path):
    board = si.JudgedLeaderboard.read(drawn(9))
    without = board.without()
    assert without.height == 18
    names = {path.name for path in board.write(tmp_path / "board")}
    assert names == {"models.csv", "judges.csv", "contrasts.csv", "without.csv", "leaderboard.json", "ranks.svg"}
    elo = si.JudgedLeaderboard.read(drawn(9), scale="elo", anchor={"oak-1": 1000}).models()
    assert elo.filter(pl.col("model") == "oak-1")["ability"].item() == 1000
    assert elo["ability"].max() > 1100


def test_families_by_name():
    assert [family_of(name) for name in ("meta/Llama-3", "o3", "7b")] == ["llama", "o", "7b"]
    scores = read_scores(
        drawn(1).with_columns(model=pl.col("model").replace_strict({f"{name}-1": f"m-{name}" for name in NAMES}))
    )
    assert scores.families == {}
