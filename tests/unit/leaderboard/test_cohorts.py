"""Old and new prompts, and an older board: differences beyond how hard prompts are, and dates as people write them."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.leaderboard.cohorts import cohorts_of


def table(seed, helped, n=300, harder=0.7, models=12):
    """Right and wrong on old and new prompts; one model does better on the old ones by `helped`."""
    rng = np.random.default_rng(seed)
    ability = np.linspace(-1.2, 1.2, models)
    new = np.arange(2 * n) >= n
    logit = ability[:, None] - rng.normal(size=2 * n) - harder * new
    logit[3, ~new] += helped
    right = rng.random(logit.shape) < 1 / (1 + np.exp(-logit))
    date = np.where(new, "2026-06-15", "2025-02-01T10:00:00")
    return right.astype(int), date


def codes(board):
    return {finding.code: finding for finding in board.findings}


def test_a_model_that_did_better_on_old_prompts():
    right, date = table(1, helped=1.2)
    board = si.Leaderboard(right, cohort=date, since="2026-01-01")
    columns = board.cohort_columns
    worst = int(np.argmin(columns["change"]))
    assert columns["model"][worst] == 3
    assert columns["p_holm"][worst] < 0.001
    assert columns["change"][worst] == pytest.approx(-1.2, abs=3 * columns["se"][worst])
    finding = codes(board)["cohort_differs"]
    assert finding.items == (3,)
    assert "logits harder for all, which is taken off" in finding.sentence
    assert "not its cause" in finding.remedy


def test_harder_prompts_alone_are_no_change_of_anybody():
    right, date = table(2, helped=0.0)
    board = si.Leaderboard(right, cohort=date, since="2026-01-01")
    assert np.all(board.cohort_columns["p_holm"] > 0.05)
    assert "cohort_alike" in codes(board)
    assert board.cohort_columns["n_new"].tolist() == [300] * 12


def test_sets_of_prompts():
    labels = np.array(["a", "b", "b", None], dtype=object)
    assert cohorts_of(labels, "set", None).group.tolist() == [0, 1, 1, -1]
    numbers = np.array(["3", "10", "20"], dtype=object)
    assert cohorts_of(numbers, "version", "10").group.tolist() == [0, 1, 1]
    for values, since, what in (
        (["a", "b", "c"], None, "has 3 values"),
        (["2025-01-01", "later"], "2025-06-01", "'later'"),
        (["2025-01-01", "2025-02-01"], "2026-06-01", "on one side"),
    ):
        with pytest.raises(OptionError, match=what):
            cohorts_of(np.array(values, dtype=object), "released", since)
    with pytest.raises(OptionError, match="name it with"):
        si.Leaderboard(np.eye(3), since="2026-01-01")


def test_then_and_now(tmp_path):
    rng = np.random.default_rng(4)
    ability = np.linspace(-1.5, 1.5, 6)
    difficulty = rng.normal(size=400)

    def board(ability, **options):
        right = (rng.random((6, 400)) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(int)
        frame = pl.DataFrame(right, schema=[f"q{k}" for k in range(400)]).with_columns(model=pl.Series(list("abcdef")))
        return si.Leaderboard(si.read(frame, person="model"), **options)

    board(ability).write(tmp_path / "old")
    risen = ability.copy()
    risen[0] = 2.5
    now = board(risen, against=tmp_path / "old")
    moved = dict(zip(now.against_columns["model"].tolist(), now.against_columns["moved"].tolist(), strict=True))
    assert moved["a"] == "rose"
    assert "rose: 'a'" in codes(now)["moved_models"].sentence
    same = board(ability, against=tmp_path / "old")
    assert set(same.against_columns["moved"].tolist()) == {""}
    with pytest.raises(ReadError, match="is not there"):
        _ = board(ability, against=tmp_path).against_columns
    (tmp_path / "old" / "contrasts.csv").write_text("model,other\na,b\n")
    with pytest.raises(ReadError, match="has no column"):
        _ = board(ability, against=tmp_path / "old").against_columns
