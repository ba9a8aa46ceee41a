"""Races: the evidence by quadrature and by its promise, the course by hand, what to run next."""

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import beta

import spectral_irt as si
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.leaderboard.race import LOOK, SHAPE, course, log_evidence
from spectral_irt.leaderboard.source import Source, prompt_labels


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (3, 1), (12, 2), (4, 9)])
def test_evidence_is_the_mixture_over_chances_above_one_half(won, lost):
    mixed, _ = quad(lambda p: p**won * (1 - p) ** lost * 2 * beta.pdf(p, SHAPE, SHAPE), 0.5, 1)
    expected = mixed * 2 ** (won + lost)
    assert np.exp(log_evidence(np.array([won]), np.array([lost])))[0] == pytest.approx(expected, rel=1e-9)


def test_evidence_between_equals_is_a_fair_bet():
    # Its expectation after n fair coins is 1 at any n, by enumeration: at most that, for the half below one half.
    from scipy.stats import binom

    for n in (1, 5, 40):
        k = np.arange(n + 1)
        assert np.sum(
            binom.pmf(k, n, 0.5) * np.exp(log_evidence(k.astype(float), (n - k).astype(float)))
        ) == pytest.approx(1)


def test_the_course_by_hand():
    n = 40
    right = np.array([np.ones(n), np.ones(n), np.zeros(n)])
    found = course(right, np.ones((3, n)))
    # 20 of 20 lone prompts: log e = 21 log 2 - log 21 + log(1 - 2^-21) > log(6 / .05).
    assert found.inside.tolist() == [True, True, False]
    assert found.out_after[2] == 10 * LOOK // 10
    assert found.beaten_by.tolist() == [-1, -1, 0]
    assert found.runs == 2 * n + found.out_after[2]


def test_the_best_stays_and_answers_after_the_end_do_not_count():
    rng = np.random.default_rng(3)
    ability = np.linspace(2, -2, 8)
    right = (rng.random((8, 600)) < 1 / (1 + np.exp(rng.normal(size=600) - ability[:, None]))).astype(float)
    whole = course(right, np.ones(right.shape))
    assert whole.inside[0]
    # Answers that were never given by models that were out change nothing.
    spared = np.ones(right.shape)
    for model in np.flatnonzero(~whole.inside):
        spared[model, whole.out_after[model] :] = 0
    spared[:, whole.out_after.max() :] = 0  # then the race was over
    again = course(right, spared)
    assert again.out_after.tolist() == whole.out_after.tolist()
    assert again.runs == whole.runs == int(spared.sum())


def race_of(right, prompts=None, **options):
    table = pl.DataFrame([
        {"model": f"m{k}", "prompt": f"p{j:03d}", "correct": int(right[k, j])}
        for k in range(right.shape[0])
        for j in range(right.shape[1])
        if right[k, j] >= 0
    ])  # fmt: skip
    return si.Race(Source.of(si.read(table)), all_prompts=tuple(prompts or ()), **options)


def test_what_to_run_next(tmp_path):
    right = np.array([[1] * 30, [1] * 29 + [0], [0] * 20 + [-1] * 10])
    race = race_of(right, [f"p{j:03d}" for j in range(40)], next_prompts=4)
    assert race.inside.tolist() == [True, True, False]
    runs = race.next_runs()
    assert runs["prompt"].tolist() == ["p030", "p030", "p031", "p031", "p032", "p032", "p033", "p033"]
    assert set(runs["model"].tolist()) == {"m0", "m1"}
    assert "2 models can still be the best: 'm0', 'm1'. m0 leads" in race.headline
    names = {path.name for path in race.write(tmp_path / "race", tmp_path / "race.html")}
    assert names == {"race.csv", "next.csv", "race.json", "course.svg", "race.html"}


def test_the_end_of_a_race():
    race = race_of(np.array([[1] * 40, [0] * 40]))
    assert race.headline.endswith("Stop: m0 is the best (chance of error at most 5.0%).")
    assert race.more_prompts == 0
    assert len(race.next_runs()["prompt"]) == 0
    even = race_of(np.array([[1, 0] * 10, [0, 1] * 10]))
    assert "may not tell them apart" in even.headline


def test_odd_races_are_refused(tmp_path):
    with pytest.raises(DesignError, match="needs two models"):
        race_of(np.ones((1, 5)))
    with pytest.raises(OptionError, match="lies between 0 and 1"):
        race_of(np.ones((2, 5)), level=2)
    path = tmp_path / "prompts.csv"
    path.write_text("area,prompt\nx,p1\ny,p2\n")
    assert prompt_labels(path) == ["p1", "p2"]


def test_a_wide_table_says_what_it_was_taken_for(tmp_path):
    rng = np.random.default_rng(8)
    people = pl.DataFrame(rng.integers(0, 2, (40, 5)), schema=[f"q{k}" for k in range(5)])
    people.write_csv(tmp_path / "people.csv")
    (taken,) = [note for note in si.Race.read(tmp_path / "people.csv").findings if note.code == "items_taken"]
    assert taken.severity == "warning"
    assert "Taken for models: 40 rows, which have no names and are numbered." in str(taken.sentence)
    assert "Taken for prompts: 5 columns, 'q0'" in str(taken.sentence)
    models = people.head(4).insert_column(0, pl.Series("model", ["ash", "elm", "fir", "oak"]))
    models.write_csv(tmp_path / "models.csv")
    (taken,) = [note for note in si.Race.read(tmp_path / "models.csv").findings if note.code == "items_taken"]
    assert taken.severity == "note"
    assert "Taken for models: 4 rows, named 'ash', 'elm'" in str(taken.sentence)
    many = people.insert_column(0, pl.Series("id", [f"p{k}" for k in range(40)]))
    many.write_csv(tmp_path / "many.csv")
    assert any(
        note.code == "items_taken" and note.severity == "warning"
        for note in si.Leaderboard.read(tmp_path / "many.csv").findings
    )
