"""Votes about two contestants: against BradleyTerry2, a plain ordinal regression, and by hand; and odd tables."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import spectral_irt as si
from spectral_irt.errors import OptionError, ReadError, ResponseValueError
from spectral_irt.pairs.fit import Chances, pair_columns

REFERENCE = Path(__file__).parents[2] / "reference"
WORDS = np.array(["model_b", "tie", "model_a"])


def drawn_votes(n, m, seed, *, tie=0.5, position=0.3, effect=0.4, voters=0):
    """Votes under the model, with abilities of `m` contestants."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=m)
    first = rng.integers(0, m, n)
    second = (first + rng.integers(1, m, n)) % m
    length = rng.normal(size=n)
    chances = Chances.of(ability[first] - ability[second] + position + effect * length, np.log(tie) if tie else -np.inf)
    u = rng.random(n)
    points = (u >= chances.p[:, 0]).astype(int) + (u >= chances.p[:, :2].sum(axis=1))
    names = np.array([f"m{k}" for k in range(m)])
    columns = {"model_a": names[first], "model_b": names[second], "winner": WORDS[points], "length": length}
    if voters:
        columns["voter"] = rng.integers(0, voters, n)
    return pl.DataFrame(columns), first, second, points


def codes(board):
    return {finding.code: finding for finding in board.findings}


def by_name(table):
    return {row["contestant"]: row for row in table.to_dicts()}


def test_citations_of_bradleyterry2():
    expected = json.loads((REFERENCE / "bt_citations.json").read_text())
    rows = [
        {"first": row["j1"], "second": row["j2"], "winner": row[name], "n": row[wins]}
        for row in pl.read_csv(REFERENCE / "bt_citations.csv").to_dicts()
        for name, wins in (("j1", "win1"), ("j2", "win2"))
    ]
    board = si.Pairs.read(pl.DataFrame(rows), count="n", anchor={"Biometrika": 0}, se="information")
    found = by_name(board.table())
    assert found["Biometrika"]["ability"] == found["Biometrika"]["se"] == 0
    for name, ability in expected["ability"].items():
        assert found[name]["ability"] == pytest.approx(ability, abs=1e-6)
    for name, se in expected["se"].items():
        assert found[name]["se"] == pytest.approx(se, abs=1e-6)


@pytest.mark.parametrize("tie", [0.0, 0.6])
def test_position_covariate_and_ties_are_those_of_a_plain_regression(tie):
    m = 5
    votes, first, second, points = drawn_votes(400, m, seed=3, tie=tie)
    design = np.zeros((len(points), m + 2))
    design[np.arange(len(points)), first] += 1
    design[np.arange(len(points)), second] -= 1
    design[:, m] = 1
    design[:, m + 1] = votes["length"]
    design = design[:, 1:]  # the first contestant is the reference

    def loss(parameters):
        p = Chances.of(design @ parameters[:-1], parameters[-1] if tie else -np.inf).p
        return -np.log(p[np.arange(len(points)), points]).sum()

    fitted = minimize(loss, np.zeros(design.shape[1] + 1), options={"gtol": 1e-9}).x
    step = 1e-4
    # The information by differences of the gradient, which is design' (expected - observed points) in closed form.

    def gradient(parameters):
        p = Chances.of(design @ parameters[:-1], parameters[-1] if tie else -np.inf).p
        of_design = design.T @ (p @ [0, 0.5, 1] - points / 2)
        return np.append(of_design, p[:, 1].sum() - (points == 1).sum())

    eye = np.eye(len(fitted)) * step
    information = np.array([(gradient(fitted + e) - gradient(fitted - e)) / (2 * step) for e in eye])
    if not tie:
        information[-1, -1] = 1.0
    for _ in range(3):  # the optimizer's last digits
        fitted = fitted - np.linalg.solve(information, gradient(fitted))
    se = np.sqrt(np.diag(np.linalg.inv(information)))

    board = si.Pairs.read(votes, position=True, covariates="length", anchor={"m0": 0}, se="information")
    found = by_name(board.table())
    effects = {row["effect"]: row for row in board.effects().to_dicts()}
    assert [found[f"m{k}"]["ability"] for k in range(1, m)] == pytest.approx(fitted[: m - 1], abs=1e-6)
    assert [found[f"m{k}"]["se"] for k in range(1, m)] == pytest.approx(se[: m - 1], abs=1e-5)
    names = ["position", "length", *(["tie"] if tie else [])]
    assert [effects[name]["estimate"] for name in names] == pytest.approx(fitted[m - 1 :][: len(names)], abs=1e-6)
    assert [effects[name]["se"] for name in names] == pytest.approx(se[m - 1 :][: len(names)], abs=1e-5)


def test_errors_of_clusters_by_hand():
    votes, first, second, points = drawn_votes(300, 4, seed=5, tie=0, position=0, effect=0, voters=25)
    board = si.Pairs.read(votes, clustered_by="voter")
    p = board.chances.expected
    design = np.zeros((300, 4))
    design[np.arange(300), first] += 1
    design[np.arange(300), second] -= 1
    bread = np.linalg.pinv(design.T @ (design * (p * (1 - p))[:, None]))
    scores = np.zeros((25, 4))
    np.add.at(scores, votes["voter"].to_numpy(), design * (points / 2 - p)[:, None])
    covariance = 25 / 24 * bread @ scores.T @ scores @ bread
    assert board.se == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-6)
    assert "sandwich, 25 clusters" in board.calibration.provenance.se_method


def test_counts_stand_for_votes_and_elo_is_a_change_of_unit():
    votes, *_ = drawn_votes(200, 4, seed=7, position=0, effect=0)
    counted = votes.group_by("model_a", "model_b", "winner").len("n")
    plain = si.Pairs.read(votes)
    again = si.Pairs.read(counted, count="n", scale="elo")
    assert again.ability == pytest.approx(plain.ability, abs=1e-9)
    table = again.table()
    assert table["ability"].mean() == pytest.approx(1000)
    spread = table["ability"].to_numpy() - 1000
    assert spread == pytest.approx(400 / np.log(10) * np.sort(plain.ability)[::-1], rel=1e-9)


def test_words_for_the_winner():
    rows = [
        ("a", "b", word)
        for word in ("a", "model_a", "first", "1", "1-0", "B", "second", "2", "tie", "both_bad", "1/2-1/2")
    ]
    board = si.Pairs.read(pl.DataFrame(rows, schema=["model_a", "model_b", "winner"], orient="row"))
    found = by_name(board.table())
    assert (found["a"]["wins"], found["b"]["wins"], found["a"]["ties"]) == (5, 3, 3)
    numbered = pl.DataFrame({"player1": [7, 7, 9], "player2": [9, 9, 7], "winner": [7.0, 9.0, 7.0]})
    assert by_name(si.Pairs.read(numbered).table())["7"]["wins"] == 2  # a name, not a place


def test_odd_rows_are_counted():
    rows = [("a", "b", "a"), ("b", "a", "a"), ("b", "c", "tie"), ("c", "a", "c"), ("a", "c", "nobody"), ("a", "b", "b")]
    rows += [("a", "a", "tie"), (None, "b", "b"), ("a", "b", None)]
    board = si.Pairs.read(pl.DataFrame(rows, schema=["model_a", "model_b", "winner"], orient="row"))
    assert board.votes.n == 5
    sentence = codes(board)["votes_left_out"].sentence
    assert sentence.startswith("4 of 9 rows are no votes")
    for part in ("no name", "the same", "no verdict", "'nobody'"):
        assert f"1 where {part}" in sentence or part in sentence


@pytest.mark.parametrize(
    ("rows", "how", "what"),
    [
        ([("a", "b", "0"), ("b", "a", "1")], {}, "0 in 1 row"),
        ([("a", "b", "x"), ("b", "a", "y"), ("a", "b", "a")], {}, "names neither contestant in 2 of 3"),
        ([("a", "a", "tie")], {}, "none of its 1 rows"),
        ([("a", "b", "a")], {"covariates": "model_a"}, "cannot be a covariate"),
        ([("a", "b", "a")], {"winner": "model_a"}, "three different columns"),
        ([("a", "b", "a")], {"contestants": "model_a"}, "names two columns"),
        ([("a", "b", "a")], {"anchor": {"z": 1}}, "'z', which is not there"),
    ],
)
def test_tables_that_are_no_votes_are_refused(rows, how, what):
    frame = pl.DataFrame(rows, schema=["model_a", "model_b", "winner"], orient="row")
    with pytest.raises((OptionError, ReadError, ResponseValueError), match=what):
        si.Pairs.read(frame, **how).table()


def test_a_covariate_that_all_votes_have_is_refused():
    votes, *_ = drawn_votes(60, 3, seed=1, effect=0)
    with pytest.raises(OptionError, match="do not tell the effect"):
        si.Pairs.read(votes.with_columns(same=pl.lit(2.0)), position=True, covariates="same").table()


def test_contestants_without_a_link_and_those_who_never_lost():
    rows = [("a", "b", "a"), ("a", "b", "b"), ("b", "c", "b"), ("c", "b", "c"), ("d", "a", "d"), ("d", "b", "d")]
    rows += [("x", "y", "x"), ("y", "x", "y")]
    board = si.Pairs.read(pl.DataFrame(rows, schema=["model_a", "model_b", "winner"], orient="row"))
    found = by_name(board.table())
    assert found["d"]["status"] == "extreme"
    assert found["d"]["rank"] == 1
    assert np.isfinite(found["d"]["ability"])
    assert found["x"]["status"] == "unlinked"
    assert found["x"]["se"] == np.inf
    assert found["x"]["rank"] == 0
    assert {"disconnected", "one_way"} <= set(codes(board))
    assert codes(board)["disconnected"].items == ("x", "y")


def test_judges_who_disagree():
    votes, _first, _second, points = drawn_votes(1200, 5, seed=11, tie=0, position=0, effect=0)
    judge = np.where(np.arange(1200) % 4 == 0, "odd", np.where(np.arange(1200) % 4 == 1, "one", "two"))
    turned = np.where(judge == "odd", 2 - points, points)
    board = si.Pairs.read(votes.with_columns(judge=pl.Series(judge), winner=pl.Series(WORDS[turned])))
    judges = {row["judge"]: row for row in board.judges().to_dicts()}
    assert judges["odd"]["infit"] > 1.2 > judges["one"]["infit"]
    assert judges["odd"]["sensitivity"] < 0
    assert judges["odd"]["p_holm"] < 0.001
    assert codes(board)["judge_misfit"].items == ("odd",)


def test_triples_that_go_round_and_pairs_to_ask_next():
    circle = []
    for k in range(7):  # each beats the next, the second and the fourth, 20 times of 24
        for step in (1, 2, 4):
            circle += [(k, (k + step) % 7, "first")] * 20 + [(k, (k + step) % 7, "second")] * 4
    board = si.Pairs.read(pl.DataFrame(circle, schema=["model_a", "model_b", "winner"], orient="row"))
    assert board.ability == pytest.approx(np.zeros(7), abs=1e-9)
    assert (board.triples.round, board.triples.n) == (14, 35)
    assert {"intransitive", "pair_misfit"} <= set(codes(board))
    assert len(board.contrasts().filter(pl.col("ask_next") > 0)) == 20


def test_what_one_more_vote_tells_is_less_where_ties_are_many():
    votes, *_ = drawn_votes(300, 12, seed=21, tie=3.0)
    board = si.Pairs.read(votes)
    columns = pair_columns(
        board.votes, board.chances, board.order, board.ability, board.tests, board.covariance, board.se
    )
    log_odds = columns["difference"]
    nu = np.exp(board.chances.tie)
    size = np.stack([np.exp(-log_odds / 2), np.full(len(log_odds), nu), np.exp(log_odds / 2)])
    p_lost, p_tied, p_won = size / size.sum(axis=0)
    points = p_won + p_tied / 2
    information = p_won + p_tied / 4 - points**2  # variance of 0, 1/2, 1
    assert p_lost == pytest.approx(1 - p_won - p_tied)
    variance = columns["se"] ** 2
    gain = np.where(columns["p_adjusted"] >= 0.05, variance**2 * information / (1 + variance * information), 0)
    asked = np.flatnonzero(columns["ask_next"])
    by_rank = asked[np.argsort(columns["ask_next"][asked])]
    assert by_rank.tolist() == np.argsort(-gain, kind="stable")[: len(asked)].tolist()


def test_results_are_written_whole(tmp_path):
    votes, *_ = drawn_votes(200, 4, seed=13)
    board = si.Pairs.read(votes, position=True)
    names = {path.name for path in board.write(tmp_path / "arena")}
    assert names == {"contestants.csv", "effects.csv", "pairs.csv", "pairs.json", "ranks.svg"}
    record = json.loads((tmp_path / "arena" / "pairs.json").read_text())
    assert record["counts"]["votes"] == 200
    assert len(record["contestants"]) == 4
    page = board.report(tmp_path / "arena.html").read_text()
    assert "contestants" in page
    assert "position" in page
