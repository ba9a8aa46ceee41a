"""Short lists: what is chosen, that predictions are what they say, and that intervals hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt.cli.main import main
from spectral_irt.data import Responses
from spectral_irt.errors import BankError, DesignError, OptionError
from spectral_irt.leaderboard.shortlist import Predictor, ShortList, conformal, spread_out
from spectral_irt.leaderboard.source import Source


def table(models: int, prompts: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=(models, 1)) - rng.normal(0, 1.2, prompts)
    return (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)


def test_subjects_have_their_share() -> None:
    subject = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10, dtype=object)
    chosen = spread_out(np.random.default_rng(0).normal(size=100), 10, subject)
    assert sorted(subject[chosen].tolist()) == ["a"] * 6 + ["b"] * 3 + ["c"]
    assert len(set(chosen.tolist())) == 10


def test_a_list_of_all_prompts_but_one_nearly_is_the_score() -> None:
    x = table(40, 50, seed=1)
    rng = np.random.default_rng(0)
    made = Predictor.of(x, np.arange(49), rng.normal(size=40), np.zeros(50))
    assert made.score(x[:, :49]) == pytest.approx(x.mean(axis=1), abs=0.02)


def test_conformal_quantile_by_its_definition() -> None:
    sizes = np.random.default_rng(0).random(99)
    assert conformal(sizes) == np.sort(sizes)[94]  # the 95th of 99: a hundredth one is beyond it in 5 of 100 places
    assert conformal(sizes[:19]) == sizes[:19].max()


@pytest.mark.slow
def test_intervals_hold_for_models_not_seen() -> None:
    inside = []
    for seed in range(3):
        x = table(460, 200, seed)
        made = ShortList.choose(Responses.from_wide(x[:160]), 40)
        found = made.score_columns(Responses.from_wide(x[160:]))
        whole = x[160:].mean(axis=1)
        inside.append(np.mean((found["score_low"] <= whole) & (whole <= found["score_high"])))
        assert np.sqrt(np.mean((found["score"] - whole) ** 2)) == pytest.approx(made.error, rel=0.25)
    # 300 models, and a quantile of 160 errors: standard errors of 1.3% and 1.7%, three times.
    assert np.mean(inside) == pytest.approx(0.95, abs=3 * 0.021 / np.sqrt(3))


def test_written_and_read_again(tmp_path: Path) -> None:
    x = table(25, 60, seed=3)
    source = Source.of(Responses.from_wide(x), {"topic": ["u", "v"] * 30})
    made = ShortList.choose(source, 12, by="topic")
    assert sorted(made.subject.tolist()) == ["u"] * 6 + ["v"] * 6  # type: ignore[union-attr]
    path = tmp_path / "shortlist.json"
    path.write_text(json.dumps(made.record()))
    again = ShortList.load(path)
    first, second = (one.score_columns(source.answers) for one in (made, again))
    for name in first:
        assert np.array_equal(first[name], second[name])
    path.write_text(json.dumps({**made.record(), "version": 9}))
    with pytest.raises(BankError, match="version 9"):
        ShortList.load(path)


def test_too_few_models_too_many_prompts_and_answers_missing() -> None:
    with pytest.raises(DesignError, match="10 models answered every prompt"):
        ShortList.choose(Responses.from_wide(table(10, 60, seed=1)), 10)
    answers = Responses.from_wide(table(25, 60, seed=1))
    with pytest.raises(OptionError, match="from 2 to 59"):
        ShortList.choose(answers, 60)
    made = ShortList.choose(answers, 10)
    thin = np.full((1, 60), np.nan)
    thin[0, made.predictor.chosen[:5]] = 1
    found = made.score_columns(Responses.from_wide(thin))
    assert found["n"][0] == 5
    assert np.isnan(found["score_low"][0])
    assert 0.5 < found["score"][0] <= 1
    with pytest.raises(BankError, match="none of the prompts"):
        made.score_columns(Responses.from_wide([[1.0, 0.0]], items=["x", "y"]))


def test_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = table(26, 60, seed=4)
    rows = [(f"m{i}", f"q{j}", int(x[i, j])) for i in range(26) for j in range(60)]
    frame = pl.DataFrame(rows, schema=["model", "item", "response"], orient="row")
    frame.filter(pl.col("model") != "m25").write_csv(tmp_path / "old.csv")
    frame.filter(pl.col("model") == "m25").write_csv(tmp_path / "new.csv")
    short = tmp_path / "short"
    assert main(["shortlist", str(tmp_path / "old.csv"), "--size", "20", "-o", str(short)]) == 0
    assert "20 of 60 prompts" in capsys.readouterr().out
    assert main(["score", str(tmp_path / "new.csv"), "--bank", str(short), "-o", str(tmp_path / "s.csv")]) == 0
    assert "whole score" in capsys.readouterr().out
    found = pl.read_csv(tmp_path / "s.csv")
    assert found["score_low"][0] <= x[25].mean() <= found["score_high"][0]
