"""Leaderboards and short lists: contrasts, tiers, ranks, prompts, families, and that intervals hold."""

import json
import math

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import harness_logs as make
import spectral_irt as si
from drawn import drawn
from spectral_irt.cli.main import main
from spectral_irt.data import Responses
from spectral_irt.data.responses import transpose
from spectral_irt.errors import BankError, DesignError, DuplicateResponseError, OptionError
from spectral_irt.inference.items.slopes import slopes
from spectral_irt.inference.ranks.intervals import order_p, sure_ranks
from spectral_irt.inference.results import mcnemar
from spectral_irt.leaderboard.contrasts import differing, prompts_needed, shared_prompts
from spectral_irt.leaderboard.shortlist import Predictor, ShortList, conformal, spread_out
from spectral_irt.leaderboard.source import Source


def table(ability, n, seed, *, slope=1.0):
    """Models x prompts under the Rasch model (or with slopes)."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1.3, n)
    return drawn(rng, slope * (ability[:, None] - difficulty))


def codes(board):
    return {finding.code: finding for finding in board.findings}


def test_mcnemar_is_the_binomial_test_by_enumeration():
    for b, c in [(0, 0), (3, 3), (10, 2), (1, 8), (0, 5)]:
        n = b + c
        weight = [math.comb(n, k) / 2**n for k in range(n + 1)]
        exact = sum(w for k, w in enumerate(weight) if w <= weight[b] * (1 + 1e-12))
        assert mcnemar(np.array([b]), np.array([c]))[0] == pytest.approx(min(1, exact))


def test_discordant_counts_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    x = (rng.random((5, 40)) < 0.5).astype(float)
    some = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    for answers in (x, some):
        expected = [[np.sum((first == 1) & (second == 0)) for second in answers] for first in answers]
        assert differing(transpose(Responses.from_wide(answers))).tolist() == expected
    thin = np.where(rng.random((6, 400)) < 0.03, 1.0, np.nan)
    thin[0, :50], thin[1, :50] = 1, 0
    assert differing(transpose(Responses.from_wide(thin)))[0, 1] == 50


def test_two_models_have_the_odds_ratio_of_their_discordant_counts():
    """Two items: the conditional estimate of the difference is log(b / c), with variance 1/b + 1/c."""
    x = np.array([[1] * 30 + [1] * 12 + [0] * 5 + [0] * 9, [1] * 30 + [0] * 12 + [1] * 5 + [0] * 9], dtype=float)
    board = si.Leaderboard(x)
    row = {name: values[0] for name, values in board.contrast_columns().items()}
    # The prior counts while information is below 50, so the estimate is drawn in a little.
    assert (row["model_only"], row["other_only"]) == (12, 5)
    assert 0.5 * np.log(12 / 5) < row["difference"] <= np.log(12 / 5) + 1e-6
    many = si.Leaderboard(np.tile(x, 40))
    assert many.contrast_columns()["difference"][0] == pytest.approx(np.log(12 / 5), abs=1e-3)
    assert many.contrast_columns()["se"][0] == pytest.approx(np.sqrt(1 / 480 + 1 / 200), rel=0.01)


@pytest.mark.slow
def test_errors_of_differences_are_those_of_a_bootstrap_over_prompts():
    x = table(np.linspace(-1, 1, 8), 400, seed=3)
    board = si.Leaderboard(x)
    pairs = board.contrast_columns()
    rng = np.random.default_rng(0)
    again = [si.SpectralRasch(se="none").fit(x[:, rng.integers(0, 400, 400)].T) for _ in range(150)]
    draws = -np.array([fit.difficulty_ for fit in again])[:, board.order]
    first, second = np.triu_indices(8, 1)
    apart = draws[:, first] - draws[:, second]
    # 28 standard deviations from 150 draws each: their mean ratio errs by about 2%.
    assert np.mean(apart.std(axis=0, ddof=1) / pairs["se"]) == pytest.approx(1, abs=0.06)


def test_more_prompts_are_counted_from_those_that_both_answered():
    z = np.array([1.0, 2.0])
    # z grows with the root of n: at the number found it exceeds the critical value by the quantile of 80%.
    assert np.sqrt(prompts_needed(z, 1.96, 1000) / 1000) * z == pytest.approx([1.96 + 0.8416] * 2, rel=1e-3)
    x = table(np.array([0.9, 0.5, 0.1, -0.3, -0.7]), 400, seed=2)
    x[0, 100:], x[1, 200:] = np.nan, np.nan
    answers = Responses.from_wide(x)
    first, second = np.triu_indices(5, 1)
    each = np.arange(400)
    both = [np.sum(~np.isnan(x[i]) & ~np.isnan(x[j])) for i, j in zip(first, second, strict=True)]
    assert shared_prompts(answers, each, first, second).tolist() == both
    assert both[0] == 100
    assert shared_prompts(answers, each // 2, first, second)[0] == 50
    assert shared_prompts(Responses.from_wide(np.nan_to_num(x)), each // 2, first, second).tolist() == [200] * 10


def test_step_down_is_never_stricter_than_one_step_and_keeps_the_order():
    rng = np.random.default_rng(1)
    beta, se = rng.normal(size=12), np.full(12, 0.15)
    _, z, p = order_p(beta, se, rng=np.random.default_rng(0))
    upper = np.triu_indices(12, 1)
    assert np.all(np.diff(p[upper][np.argsort(-np.abs(z[upper]))]) >= 0)
    errors = np.random.default_rng(0).standard_normal((2000, 12)) * se
    apart = np.abs(errors[:, :, None] - errors[:, None, :]) / (np.sqrt(2) * 0.15)
    one_step = np.array([(1 + np.sum(apart.max(axis=(1, 2)) >= size)) / 2001 for size in np.abs(z[upper])])
    assert np.all(p[upper] <= one_step + 1e-12)
    low, high = sure_ranks((p < 0.05) & (z > 0))
    rank = 12 - np.argsort(np.argsort(beta))
    assert np.all((low <= rank) & (rank <= high))
    _, z, p = order_p(np.array([0.5, 0.0]), np.array([0.2, 0.2]), rng=np.random.default_rng(0))  # two: the normal one
    assert z[0, 1] == pytest.approx(0.5 / np.sqrt(0.08))
    assert p[0, 1] == pytest.approx(math.erfc(z[0, 1] / np.sqrt(2)), abs=3 * np.sqrt(0.077 * 0.923 / 2000))


@pytest.mark.slow
@pytest.mark.parametrize(("families", "within"), [(15, 1.0), (6, 0.03), (3, 0.02)])
def test_ranks_hold_also_where_models_come_in_tight_families(families, within):
    """All true ranks in 95% of leaderboards at least, and nobody ranked wholly below the first of their own tier."""
    m = 15 if families == 15 else 30
    held = []
    for seed in range(60):
        rng = np.random.default_rng([9, families, seed])
        ability = np.repeat(rng.normal(size=families), m // families) + rng.normal(0, within, m)
        models = si.Leaderboard(table(ability, 1000, seed)).model_columns()
        true = (m - np.argsort(np.argsort(ability)))[models["model"].astype(int)]
        held.append(np.all((models["rank_low"] <= true) & (true <= models["rank_high"])))
        first = np.searchsorted(models["tier"], models["tier"])
        assert np.all(models["rank_low"] <= models["rank_high"][first])
    assert np.mean(held) > 0.95 - 2 * np.sqrt(0.05 * 0.95 / 60)


def test_models_with_equal_scores_are_equally_able_and_copies_are_named():
    x = table(np.array([0.5, 0.5, 0.0, -0.5, 0.2, 0.1, -0.2, 0.3]), 300, seed=3)
    x[5] = x[1]
    x[6] = x[1][::-1]  # as many right, others
    board = si.Leaderboard(x)
    assert board.ability[1] == board.ability[5] == board.ability[6]
    assert board.se[1] == board.se[5]
    pairs = board.contrast_columns()
    equal = [k for k, pair in enumerate(zip(pairs["model"], pairs["other"], strict=True)) if set(pair) <= {1, 5, 6}]
    assert len(equal) == 3
    for k in equal:
        assert pairs["difference"][k] == pairs["z"][k] == 0
        copies = {pairs["model"][k], pairs["other"][k]} == {1, 5}
        assert pairs["se"][k] < 1e-5 if copies else pairs["se"][k] > 0.01
        assert np.isnan(pairs["more_prompts"][k])
    assert board.copies == [[1, 5]]
    assert codes(board)["same_answers"].items == (1, 5)
    # With holes: equal scores on other prompts say nothing.
    x[6, :20] = np.nan
    x[2] = x[6]
    holes = si.Leaderboard(x)
    assert holes.ability[2] == holes.ability[6] != holes.ability[1]
    assert holes.copies == [[1, 5], [2, 6]]


def test_tiers_agree_with_mcnemar_and_holm_where_the_model_holds():
    board = si.Leaderboard(table(np.linspace(-1.5, 1.5, 12), 800, seed=2))
    ours, theirs, opposite = board.contrasts_found.disagreements()
    assert opposite == 0
    assert ours + theirs <= 0.05 * 66


def test_equal_models_share_a_tier():
    models = si.Leaderboard(table(np.zeros(6), 300, seed=1)).model_columns()
    assert {tuple(models[name][k] for name in ("tier", "rank_low", "rank_high")) for k in range(6)} == {(1, 1, 6)}


def test_models_of_equal_ability_have_one_rank():
    x = table(np.array([0.5, -1.0, 1.0]), 80, seed=3)
    x = np.vstack([x, x[0], np.roll(x[0], 7), np.full(80, np.nan), np.full(80, np.nan)])  # as many right, and nothing
    models = si.Leaderboard(x).model_columns()
    assert models["model"].tolist() == [2, 0, 3, 4, 1, 5, 6]
    assert models["rank"].tolist() == [1, 2, 2, 2, 5, 6, 6]


def test_scores_by_judges_are_no_matter_of_a_leaderboard(tmp_path):
    rows = [
        {"model": f"m{m}", "prompt": f"p{k}", "judge": f"j{j}", "score": (m + 2 * k + j) % 2}
        for m in range(4)
        for k in range(6)
        for j in range(3)
    ]
    path = tmp_path / "judges.csv"
    pl.DataFrame(rows).write_csv(path)
    how = {"person": "model", "item": "prompt", "response": "score"}
    with pytest.raises(DuplicateResponseError, match="leaderboard FILE --judge") as caught:
        si.Leaderboard.read(path, **how)
    assert "facets=" not in str(caught.value)  # of which a leaderboard knows nothing
    board = si.Leaderboard.read(path, duplicates="first", **how)
    assert codes(board)["repeats_left_out"].severity == "warning"  # two of three answers are gone


def test_dead_and_miskeyed_prompts():
    ability = np.linspace(-2, 2, 40)
    x = table(ability, 200, seed=4)
    x[:, 0], x[:, 1] = 1, 0
    x[:, 2] = (ability < 0).astype(float)  # the wrong key
    board = si.Leaderboard(x)
    flag = board.prompt_columns["flag"]
    assert flag[:3].tolist() == ["all right", "all wrong", "better models fail"]
    assert np.sum(flag == "better models fail") <= 2
    assert 2 in codes(board)["wrong_key"].items
    assert {"too_easy", "too_hard"} <= set(codes(board))


def test_slopes_are_those_of_a_logistic_regression():
    rng = np.random.default_rng(1)
    theta = rng.normal(size=50)
    x = drawn(rng, np.array([0.5, 1.0, 2.0]) * theta[:, None])
    found = slopes(Responses.from_wide(x), theta)
    for k in range(3):

        def minus_log_posterior(at, y=x[:, k]):
            eta = at[0] * theta - at[1]
            return float(np.sum(np.logaddexp(0, eta) - y * eta) + (at[0] - 1) ** 2 / 8)

        best = minimize(minus_log_posterior, [1.0, 0.0], method="BFGS")
        assert found.slope[k] == pytest.approx(best.x[0], abs=1e-4)
        assert found.intercept[k] == pytest.approx(best.x[1], abs=1e-4)
        assert found.se[k] == pytest.approx(np.sqrt(best.hess_inv[0, 0]), rel=0.05)


def test_one_slope_is_enough_where_it_is_and_not_where_it_is_not():
    rng = np.random.default_rng(2)
    ability = rng.normal(size=300)
    same = slopes(Responses.from_wide(table(ability, 60, seed=1)), ability)
    assert same.p > 0.001
    assert "enough" in same.sentence
    unequal = table(ability, 60, seed=1, slope=np.where(np.arange(60) < 30, 0.4, 1.8))
    other = slopes(Responses.from_wide(unequal), ability)
    assert other.p < 1e-6
    assert 0.5 < other.spread < 0.9
    assert np.nanmean(other.slope[:30]) == pytest.approx(0.4, abs=0.1)


def test_families_of_models():
    x = table(np.linspace(-1, 1, 10), 500, seed=7)
    x[5] = np.where(np.random.default_rng(0).random(500) < 0.85, x[4], x[5])
    board = si.Leaderboard(x)
    assert board.families == [[4, 5]]
    assert "model_families" in codes(board)


def test_runs_of_a_prompt_are_one_witness():
    """The same answers in five epochs: errors are those of one epoch, not smaller by the root of five."""
    x = table(np.array([-0.5, 0.0, 0.6]), 900, seed=8)  # so many that there is no prior
    once = si.Leaderboard(x)
    again = si.Leaderboard(Source(Responses.from_wide(np.tile(x, 5)), np.tile(np.arange(900), 5)))
    assert again.ability == pytest.approx(once.ability, abs=1e-3)
    assert again.se == pytest.approx(once.se, rel=0.05)
    assert "clustered" in codes(again)


def test_clusters_widen_errors_where_prompts_are_alike():
    rng = np.random.default_rng(3)
    ability = np.linspace(-1, 1, 6)
    passage = np.repeat(np.arange(60), 5)
    logit = ability[:, None] + rng.normal(0, 1.0, (6, 60))[:, passage] - rng.normal(size=300)
    x = drawn(rng, logit)
    plain, wide = si.Leaderboard(x), si.Leaderboard(x, clustered_by=[f"p{k}" for k in passage])
    assert np.mean(wide.se / plain.se) > 1.25


def test_subjects_have_their_own_tables():
    x = table(np.array([-1.0, 0.0, 1.0]), 200, seed=9)
    subject = np.repeat(["law", "art"], 100)
    columns = si.Leaderboard(x, by=subject).subject_columns
    row = {(s, m): a for s, m, a in zip(columns["subject"], columns["model"], columns["accuracy"], strict=True)}
    assert row["law", 2] == pytest.approx(x[2, :100].mean())
    assert row["art", 0] == pytest.approx(x[0, 100:].mean())


def test_one_model_two_models_and_many_prompts():
    with pytest.raises(DesignError, match="only 0"):
        si.Leaderboard(np.ones((1, 5)))
    two = si.Leaderboard(table(np.array([0.0, 1.0]), 100, seed=1)).model_columns()
    assert two["model"].tolist() == [1, 0]
    three = si.Leaderboard(table(np.array([0.0, 1.0, 2.0]), 50_000, seed=1))
    assert three.model_columns()["tier"].tolist() == [1, 2, 3]


def test_models_that_share_few_or_no_prompts():
    x = table(np.array([0.0, 0.5, 1.0]), 120, seed=1)
    x[1:, :20] = np.nan
    board = si.Leaderboard(x)
    assert {"one_model", "different_prompts"} <= set(codes(board))
    assert board.model_columns()["n"].tolist().count(120) == 1
    x = table(np.zeros(4), 120, seed=3)
    x[:2, 60:], x[2:, :60] = np.nan, np.nan
    board = si.Leaderboard(x)
    found = codes(board)
    assert "share no prompts" in found["disconnected"].sentence
    assert "model_families" not in found
    with pytest.raises(DesignError, match="no prompt was answered by two models"):
        si.Leaderboard(np.where(np.arange(60) // 30 == np.arange(2)[:, None], 1.0, np.nan)).models()


def test_a_model_with_everything_right_and_one_without_answers():
    x = table(np.array([-1.0, 0.0, 0.5]), 60, seed=2)
    x[2] = 1
    models = si.Leaderboard(x).model_columns()
    assert models["model"][0] == 2
    assert models["status"][0] == "all right"
    finding = codes(si.Leaderboard(x))["extreme_items"]
    assert finding.sentence == "1 model has every prompt right: 2."
    assert finding.remedy.startswith("How far it is from the others")
    x = np.vstack([x, np.full(60, np.nan)])
    models = si.Leaderboard(x).model_columns()
    assert models["model"][-1] == 3
    assert (models["rank_low"][-1], models["rank_high"][-1]) == (1, 4)


def test_attributes_that_are_not_there(tmp_path):
    make.lm_eval(tmp_path, "a", {"acc": [1.0, 0.0, 1.0, 0.0]})
    make.lm_eval(tmp_path, "b", {"acc": [0.0, 0.0, 1.0, 1.0]})
    with pytest.raises(OptionError, match="no field 'topic'"):
        si.Leaderboard.read(tmp_path, by="topic")
    with pytest.raises(OptionError, match="2 labels, and there are 4 prompts"):
        si.Leaderboard(np.eye(4), by=["x", "y"])


def answers_of(models, prompts, seed):
    rng = np.random.default_rng(seed)
    return drawn(rng, rng.normal(size=(models, 1)) - rng.normal(0, 1.2, prompts))


def test_subjects_have_their_share_and_nearly_all_prompts_are_the_score():
    subject = np.array(["a"] * 60 + ["b"] * 30 + ["c"] * 10, dtype=object)
    chosen = spread_out(np.random.default_rng(0).normal(size=100), 10, subject)
    assert sorted(subject[chosen].tolist()) == ["a"] * 6 + ["b"] * 3 + ["c"]
    assert len(set(chosen.tolist())) == 10
    x = answers_of(40, 50, seed=1)
    made = Predictor.of(x, np.arange(49), np.random.default_rng(0).normal(size=40), np.zeros(50))
    assert made.score(x[:, :49]) == pytest.approx(x.mean(axis=1), abs=0.02)


def test_conformal_quantile_by_its_definition():
    sizes = np.random.default_rng(0).random(99)
    assert conformal(sizes) == np.sort(sizes)[94]  # the 95th of 99: a hundredth one is beyond it in 5 of 100 places
    assert conformal(sizes[:19]) == sizes[:19].max()


@pytest.mark.slow
def test_intervals_hold_for_models_not_seen():
    inside = []
    for seed in range(3):
        x = answers_of(460, 200, seed)
        made = ShortList.choose(Responses.from_wide(x[:160]), 40)
        found = made.score_columns(Responses.from_wide(x[160:]))
        whole = x[160:].mean(axis=1)
        inside.append(np.mean((found["score_low"] <= whole) & (whole <= found["score_high"])))
        assert np.sqrt(np.mean((found["score"] - whole) ** 2)) == pytest.approx(made.error, rel=0.25)
    # 300 models, and a quantile of 160 errors: standard errors of 1.3% and 1.7%, three times.
    assert np.mean(inside) == pytest.approx(0.95, abs=3 * 0.021 / np.sqrt(3))


def test_written_and_read_again(tmp_path):
    x = answers_of(25, 60, seed=3)
    source = Source.of(Responses.from_wide(x), {"topic": ["u", "v"] * 30})
    made = ShortList.choose(source, 12, by="topic")
    assert sorted(made.subject.tolist()) == ["u"] * 6 + ["v"] * 6
    path = tmp_path / "shortlist.json"
    path.write_text(json.dumps(made.record()))
    again = ShortList.load(path)
    first, second = (one.score_columns(source.answers) for one in (made, again))
    for name in first:
        assert np.array_equal(first[name], second[name])
    path.write_text(json.dumps({**made.record(), "version": 9}))
    with pytest.raises(BankError, match="version 9"):
        ShortList.load(path)


def test_too_few_models_too_many_prompts_and_answers_missing():
    with pytest.raises(DesignError, match="10 models answered every prompt"):
        ShortList.choose(Responses.from_wide(answers_of(10, 60, seed=1)), 10)
    answers = Responses.from_wide(answers_of(25, 60, seed=1))
    with pytest.raises(OptionError, match="a short list has from 2 to 59 prompts, all but one at most, and not 60"):
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


def test_from_the_shell(tmp_path, capsys):
    x = answers_of(26, 60, seed=4)
    rows = [(f"m{i}", f"q{j}", int(x[i, j])) for i in range(26) for j in range(60)]
    for name, some in (("old", rows[:-60]), ("new", rows[-60:])):
        pl.DataFrame(some, schema=["model", "item", "response"], orient="row").write_csv(tmp_path / f"{name}.csv")
    short = tmp_path / "short"
    assert main(["shortlist", str(tmp_path / "old.csv"), "--size", "20", "-o", str(short)]) == 0
    assert "20 of 60 prompts" in capsys.readouterr().out
    assert main(["score", str(tmp_path / "new.csv"), "--bank", str(short), "-o", str(tmp_path / "s.csv")]) == 0
    assert "whole score" in capsys.readouterr().out
    found = pl.read_csv(tmp_path / "s.csv")
    assert found["score_low"][0] <= x[25].mean() <= found["score_high"][0]
