"""What is said of a leaderboard, and its tables by subject, from small boards and by loops."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from drawn import drawn
from spectral_irt.data.responses import transpose
from spectral_irt.errors import Finding
from spectral_irt.leaderboard import contrasts, prompts, source
from spectral_irt.leaderboard import findings as module
from spectral_irt.leaderboard.contrasts import Disagreements
from spectral_irt.leaderboard.scale import BoardScale
from spectral_irt.leaderboard.source import Source

FIVE = np.array(["a", "b", "c", "d", "e"], dtype=object)


def a_board(**fields):
    answers = SimpleNamespace(n_persons=5, persons=FIVE, counts=np.array([9, 9, 7, 9, 4]))
    return SimpleNamespace(answers=answers, **fields)


@pytest.mark.parametrize(
    ("items", "models", "they"), [((3,), "1 model has", "it is"), ((3, 4), "2 models have", "they are")]
)
@pytest.mark.parametrize("right", [True, False])
def test_models_with_everything_right_or_wrong(items, models, they, right):
    said = "answered right by everybody" if right else "answered wrong by everybody"
    found = module._extreme_models(Finding("extreme_items", "note", f"Items are {said}.", "", items))
    assert found.sentence.startswith(f"{models} every prompt {'right' if right else 'wrong'}: ")
    assert found.remedy.startswith(f"How far {they} from the others is a guess; ")
    assert ("harder prompts would tell" in found.remedy) == right
    assert ("nothing was parsed" in found.remedy) == (not right)
    assert right or ("their logs" in found.remedy) == (len(items) > 1)


def test_findings_of_the_fit_in_words_of_models():
    unlinked, told = module.of_the_fit(
        [Finding("disconnected", "warning", "Items fall apart.", ""), Finding("another", "note", "Items are odd.", "")]
    )
    assert unlinked.sentence.startswith("The models fall into groups that share no prompts")
    assert told.sentence == "With models as items and prompts as people: items are odd."


def test_what_rows_and_columns_of_a_table_are_taken_for():
    """A board and a race are made of any wide table of zeros and ones; that of persons says so."""
    wide = pl.DataFrame({"pid": range(6), "q1": [0, 1] * 3, "q2": [1, 1, 0] * 2, "q3": [0, 0, 1] * 2})
    said = "Taken for models: 6 rows, named 0, 1, 2, 3, 4 and 1 more. Taken for prompts: 3 columns, 'q1', 'q2', 'q3'."
    for findings in (si.Leaderboard(wide).findings, si.Race(Source.of(si.read(wide))).findings):
        (taken,) = (finding for finding in findings if finding.code == "items_taken")
        assert (taken.sentence, taken.remedy) == (said, "If rows are persons, see spectral-irt fit.")
    (note,) = module.of_the_table(replace(si.read(wide), notes=(Finding("another", "note", "Left out.", ""),)))
    assert note.sentence == "Left out."


def test_models_with_fewer_prompts_are_counted():
    (found,) = module.unequal_prompts(a_board())
    assert found.sentence.startswith("2 of 5 models answered fewer prompts than others (4 to 9).")
    assert found.items == ("c", "e")
    even = a_board()
    even.answers.counts = np.full(5, 9)
    assert not list(module.unequal_prompts(even))


@pytest.mark.parametrize("n_groups", [1, 3, 4])
def test_groups_of_models_that_are_named(n_groups):
    groups = [[0, 1], [2, 3], [4, 0], [1, 2]][:n_groups]
    board = a_board(copies=groups, families=groups)
    (same,) = module.copies(board)
    assert same.sentence.startswith(f"{2 * n_groups} models have the same answers")
    assert ("..." in same.sentence) == (n_groups > 3)
    (family,) = module.families(board)
    assert family.sentence.startswith("A group of models answers" if n_groups == 1 else f"{n_groups} groups of models")
    assert len(family.items) == 2 * n_groups
    assert not list(module.copies(a_board(copies=[])))
    assert not list(module.families(a_board(families=[])))


@pytest.mark.parametrize("opposite", [0, 2])
def test_pairs_that_mcnemar_sees_otherwise(opposite):
    differ = Disagreements(3, 1, opposite)
    board = a_board(contrasts_found=SimpleNamespace(disagreements=lambda: differ))
    (found,) = module.mcnemar_differs(board)
    assert found.sentence.startswith("Of 10 pairs of models, 3 differ by ability alone, 1 by McNemar's test alone")
    assert ("and 2 in opposite directions" in found.sentence) == (opposite > 0)
    none = a_board(contrasts_found=SimpleNamespace(disagreements=lambda: Disagreements(0, 0, 0)))
    assert not list(module.mcnemar_differs(none))


@pytest.mark.parametrize(("p", "n"), [(0.05, 1), (0.051, 0), (np.nan, 0)])
def test_unequal_slopes_are_said_where_they_are_significant(p, n):
    board = a_board(slopes=SimpleNamespace(p=p, sentence="Slopes differ."))
    assert len(list(module.slopes_differ(board))) == n


def test_disagreements_are_counted_by_loops():
    rng = np.random.default_rng(2)
    m = 6
    z = rng.normal(0, 2, (m, m))
    z = z - z.T
    p = rng.uniform(0, 0.1, (m, m))
    p = np.maximum(p, p.T)
    by_mcnemar = rng.uniform(0, 0.1, (m, m))
    by_mcnemar = np.maximum(by_mcnemar, by_mcnemar.T)
    wins = rng.integers(0, 9, (m, m)).astype(float)
    found = contrasts.Contrasts(np.ones((m, m)), z, p, wins, by_mcnemar).disagreements()
    ability_alone = mcnemar_alone = opposite = 0
    for i in range(m):
        for j in range(i):
            ability = np.sign(z[i, j]) * (p[i, j] < 0.05)
            mcnemar = np.sign(wins[i, j] - wins[j, i]) * (by_mcnemar[i, j] < 0.05)
            ability_alone += bool(ability) and not mcnemar
            mcnemar_alone += bool(mcnemar) and not ability
            opposite += ability * mcnemar < 0
    assert tuple(found) == (ability_alone, mcnemar_alone, opposite)


@pytest.fixture(scope="module")
def board():
    rng = np.random.default_rng(8)
    x = drawn(rng, np.array([2.5, 0.3, 0.0, -0.2, -2.5])[:, None] - rng.normal(0, 1, 150))
    return si.Leaderboard(x)


def test_the_text_of_a_board(board):
    models = board.model_columns()
    text = module.markdown(board)
    rows = [line for line in text.splitlines() if line.startswith("| ") and "rank" not in line]
    assert len(rows) == 5
    assert "models." not in text.split("Ability is in logits")[0].split("---")[-1]
    short = module.markdown(board, most=2)
    assert len([line for line in short.splitlines() if line.startswith("| ") and "rank" not in line]) == 2
    assert "The first 2 of 5 models." in short
    assert f"{models['ci_low'][0]:.2f} to {models['ci_high'][0]:.2f}" in rows[0]
    assert ("## Findings" in text) == bool(board.findings)


def test_the_headline(board):
    models = board.model_columns()
    assert (models["tier"] == 1).sum() == 1
    n_tiers = models["tier"].max()
    best = models["model"][0]
    assert board.page.headline() == (
        f"5 models, 150 prompts, 750 answers. {best} is first, significantly ahead of all others. {n_tiers} tiers."
    )
    same = si.Leaderboard(np.tile([[1.0, 0.0, 1.0, 0.0] * 20, [0.0, 1.0, 1.0, 0.0] * 20], 1))
    assert "2 models share the first tier: none of them is significantly worse than" in same.page.headline()
    assert same.page.headline().endswith("One tier.")
    assert "Scored by" not in same.page.headline()


@pytest.mark.parametrize(
    ("clusters", "repeated", "over"),
    [(None, False, "of prompts."), ("topic", False, "of clusters of prompts (topic)."), (None, True, "all runs of a")],
)
def test_how_a_board_is_read(clusters, repeated, over):
    source = SimpleNamespace(repeated=repeated)
    made = SimpleNamespace(_clusters=clusters, cluster_word=clusters, source=source, scale=BoardScale())
    assert over in module.how_to_read(made)[0]


def test_a_finding_with_its_remedy_and_items():
    finding = Finding("code", "note", "Two models are odd.", "Look at them.", ("m1", "m2"))
    assert module.with_remedy(finding).startswith("Two models are odd. Look at them. (")
    named = Finding("code", "note", "Models m1 and m2 are odd.", "", ("m1", "m2"))
    assert module.with_remedy(named) == "Models m1 and m2 are odd."
    bare = Finding("code", "note", "Odd.", "")
    assert module.with_remedy(bare) == "Odd."


def test_subjects_by_counts(monkeypatch):
    rng = np.random.default_rng(5)
    x = drawn(rng, np.array([1.0, 0.0, -1.0])[:, None] - rng.normal(0, 1, 60))
    x[2, :7] = np.nan
    label = np.array(["x", "y", ""] * 20, dtype=object)
    by_prompt = transpose(si.Responses.from_wide(x))
    models = np.array(["a", "b", "c"], dtype=object)
    monkeypatch.setattr(prompts, "LEAST", 20)
    found = prompts.subject_columns(by_prompt, label, models)
    assert found["subject"].tolist() == ["x"] * 3 + ["y"] * 3
    for row in range(6):
        own = x[row % 3][label == found["subject"][row]]
        own = own[~np.isnan(own)]
        share = own.mean()
        assert found["n"][row] == len(own)
        assert found["accuracy"][row] == pytest.approx(share)
        assert found["accuracy_se"][row] == pytest.approx(np.sqrt(share * (1 - share) / len(own)))
    fit = si.SpectralRasch().fit(by_prompt.take_persons(label == "y"))
    np.testing.assert_allclose(found["ability"][3:], -fit.difficulty_)
    np.testing.assert_allclose(found["se"][3:], fit.se_)
    monkeypatch.setattr(prompts, "LEAST", 21)
    assert np.isnan(prompts.subject_columns(by_prompt, label, models)["ability"]).all()
    monkeypatch.setattr(prompts, "LEAST", 20)
    monkeypatch.setattr(prompts, "MOST", 1)
    without = prompts.subject_columns(by_prompt, label, models)
    assert np.isnan(without["ability"]).all()
    assert without["rank"][:3].tolist() == prompts.places(without["accuracy"][:3]).tolist()


def test_places():
    assert prompts.places(np.array([0.5, np.nan, 2.0, 0.5, -1.0])).tolist() == [2, 5, 1, 2, 4]


def test_families_by_a_loop(monkeypatch):
    """Correlations of residuals, less their mean, above the limit; of models that met on enough prompts."""
    rng = np.random.default_rng(1)
    x = drawn(rng, np.zeros((7, 1)) - rng.normal(0, 1, 200))
    x[1] = np.where(rng.random(200) < 0.85, x[0], 1 - x[0])
    x[5] = np.where(rng.random(200) < 0.85, x[6], 1 - x[6])
    x[2, :150] = np.nan
    x[3, 60:] = np.nan  # meets the one before on no prompt
    ability = np.linspace(-0.5, 0.5, 7)
    easiness = rng.normal(0, 1, 200)
    by_prompt = transpose(si.Responses.from_wide(x))
    residual = np.nan_to_num(x - 1 / (1 + np.exp(-(ability[:, None] + easiness))))
    n = np.sum(~np.isnan(x), axis=0)
    mixed = (np.nansum(x, axis=0) > 0) & (np.nansum(x, axis=0) < n)
    residual = residual[:, mixed]
    gram = residual @ residual.T
    correlation = gram / np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    seen = (~np.isnan(x)).astype(int)
    correlation[seen @ seen.T < prompts.SHARED] = np.nan
    np.fill_diagonal(correlation, np.nan)
    beyond = correlation - np.nanmean(correlation)
    together = {(i, j) for i in range(7) for j in range(i + 1, 7) if beyond[i, j] > prompts.LIMITS[0]}
    assert together == {(0, 1), (5, 6)}
    assert sorted(prompts.model_families(by_prompt, ability, easiness)) == [[0, 1], [5, 6]]


def test_pairs_that_are_listed(monkeypatch):
    """All, or of many models neighbors and the first against all; with the prompts that both answered."""
    rng = np.random.default_rng(3)
    x = drawn(rng, np.zeros((6, 1)) - rng.normal(0, 1, 30))
    x[rng.random(x.shape) < 0.3] = np.nan
    answers = si.Responses.from_wide(x)
    prompt = np.arange(30) // 2
    for most in (10, 5):
        monkeypatch.setattr(contrasts, "ALL", most)
        first, second = contrasts.listed_pairs(6)
        every = {(i, j) for i in range(6) for j in range(i + 1, 6)}
        some = {(0, j) for j in range(1, 6)} | {(k, k + 1) for k in range(5)}
        assert set(zip(first.tolist(), second.tolist(), strict=True)) == (every if most == 10 else some)
        met = [{prompt[k] for k in range(30) if not np.isnan(x[i, k])} for i in range(6)]
        both = [len(met[i] & met[j]) for i, j in zip(first, second, strict=True)]
        assert contrasts.shared_prompts(answers, prompt, first, second).tolist() == both


def test_columns_that_a_table_of_answers_does_not_have(tmp_path):
    """Named where they were wanted; else it is the items that are missing."""
    table = tmp_path / "answers.csv"
    table.write_text("model,prompt,right\na,p1,1\nb,p1,0\na,p2,0\n")
    with pytest.raises(si.errors.OptionError, match="the table has no column 'topic'"):
        source._columns_of_table([table], ["topic"], {"item": "prompt"})
    without = tmp_path / "without.csv"
    without.write_text("model,topic,right\na,x,1\nb,y,0\n")
    with pytest.raises(si.errors.OptionError, match="the table has no column 'item'"):
        source._columns_of_table([without], ["topic"], {})
    found = source._columns_of_table([table], ["right"], {"item": "prompt"})
    assert {name: list(values) for name, values in found.items()} == {"right": ["p1", "p2"]}
