"""Who chose which option, against loops over the definition; wrong keys are found, right ones are left alone."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from drawn import drawn
from spectral_irt.inference.items.distractors import option_curves

OPTIONS = np.array(list("ABCD"))


def choices(n, m, seed, wrong=()):
    """What people chose under the model (distractors at random, some more attractive), and a key with errors."""
    rng = np.random.default_rng(seed)
    theta, beta, key = rng.normal(size=n), rng.uniform(-1, 1, m), rng.integers(0, 4, m)
    right = drawn(rng, theta[:, None] - beta) == 1
    chosen = np.empty((n, m), dtype=int)
    for i in range(m):
        others = [k for k in range(4) if k != key[i]]
        chosen[:, i] = np.where(right[:, i], key[i], rng.choice(others, n, p=rng.dirichlet([3.0] * 3)))
    said = [(key[i] + 1 + rng.integers(3)) % 4 if i in wrong else key[i] for i in range(m)]
    return OPTIONS[chosen].astype(object), {f"q{i + 1}": str(OPTIONS[k]) for i, k in enumerate(said)}


def study_of(table, key, **more):
    responses = si.Responses.from_wide(table, items=list(key), key=key, **more)
    return si.SpectralRasch(se="none").fit(responses).analyse(responses)


@pytest.fixture(scope="module")
def holes():
    table, key = choices(150, 6, 1)
    table[np.random.default_rng(2).random(table.shape) < 0.3] = None
    table[0] = [None, None, "A", None, None, None]  # somebody without a rest
    return table, key, study_of(table, key)


def test_the_table_is_what_loops_count(holes):
    table, key, study = holes
    found = study.distractors()
    ability, beta = study.abilities().ability, study.calibration.difficulty
    seen = set()
    for row in found.iter_rows(named=True):
        i = list(key).index(row["item"])
        seen.add((row["item"], row["option"]))
        assert row["key"] == (key[row["item"]] == row["option"])
        answered = [person for person in range(150) if table[person, i] is not None]
        thetas, rest, pairs = [ability[person] for person in answered if table[person, i] == row["option"]], [], []
        for answers in table[answered]:
            chose = answers[i] == row["option"]
            others = [j for j in range(6) if j != i and answers[j] is not None]
            if others:
                score = sum(answers[j] == list(key.values())[j] for j in others)
                b = beta[others]
                logit = np.log((score + 0.5) / (len(others) - score + 0.5))
                pairs.append((chose, score / len(others)))
                if chose:
                    rest.append(b.mean() + np.sqrt(1 + b.var() / 2.89) * logit)
        assert row["n"] == len(thetas)
        assert row["share"] == pytest.approx(len(thetas) / len(answered))
        assert row["mean_ability"] == pytest.approx(np.mean(thetas))
        assert row["rest_ability"] == pytest.approx(np.mean(rest))
        assert row["rest_ability_se"] == pytest.approx(np.std(rest, ddof=1) / np.sqrt(len(rest)))
        assert row["point_biserial"] == pytest.approx(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])
    assert seen == {(q, o) for k, q in enumerate(key) for o in {*table[:, k], key[q]} - {None}}
    by_key = found.filter(pl.col("key"))["point_biserial"].to_list()
    assert by_key == pytest.approx(study.item_analysis()["item_rest"].to_list())


def test_long_and_wide_files_and_arrays_keep_the_same_options(holes, tmp_path):
    table, key, study = holes
    names = [f"p{k:03}" for k in range(len(table))]
    wide = pl.DataFrame({"person": names, **{q: table[:, k].tolist() for k, q in enumerate(key)}})
    wide.write_csv(tmp_path / "wide.csv")
    long = wide.unpivot(index="person", variable_name="item", value_name="response")
    long.sample(fraction=1.0, shuffle=True, seed=3).write_csv(tmp_path / "long.csv")
    long.drop_nulls().write_parquet(tmp_path / "long.parquet")
    want = study.distractors()
    for source in (tmp_path / "wide.csv", tmp_path / "long.csv", tmp_path / "long.parquet", wide):
        got = si.Analysis(study.calibration, si.read(source, key=key)).distractors()
        assert got["n"].to_list() == want["n"].to_list()
        assert got["rest_ability"].to_list() == pytest.approx(want["rest_ability"].to_list())


def test_options_go_along_with_people_and_items(holes):
    table, key, study = holes
    turned = si.Responses.from_wide(table[:, ::-1], items=list(key)[::-1], key=key)
    assert si.Analysis(study.calibration, turned).distractors()["n"].to_list() == study.distractors()["n"].to_list()
    some = np.arange(0, 150, 3)
    part = si.Analysis(study.calibration, study.responses.take_persons(some)).distractors()
    for row in part.iter_rows(named=True):
        assert row["n"] == np.sum(table[some, list(key).index(row["item"])] == row["option"])
    one = study.responses.in_one_block().take_items([1, 4])
    again = si.Analysis(study.calibration, one).distractors().filter(pl.col("n") > 0)
    assert set(again["item"]) == {"q2", "q5"}
    assert again["n"].to_list() == study.distractors().filter(pl.col("item").is_in(["q2", "q5"]))["n"].to_list()
    study.responses.blocks[0].__getstate__()["options"]  # they go to other processes too


@pytest.mark.parametrize(("keep", "want"), [("first", "A"), ("last", "B")])
def test_of_repeated_answers_the_option_that_counts_is_kept(keep, want):
    persons, items, key = ["ann", "ann", "ann", "bob", "bob"], ["q1", "q2", "q1", "q2", "q1"], {"q1": "B", "q2": "C"}
    found = si.Responses.from_long(persons, items, list("ACBDD"), key=key, duplicates=keep)
    block = found.blocks[0]
    chosen = {
        (int(u), int(i)): found.raw.options[o] if o != 1 else key[f"q{i + 1}"]
        for u, i, o in zip(block.person_of_response(), block.items, block.options, strict=True)
    }
    assert chosen == {(0, 0): want, (0, 1): "C", (1, 0): "D", (1, 1): "D"}


def test_a_wrong_key_is_named_with_what_people_chose_instead():
    table, key = choices(300, 20, 3, wrong=(6,))
    study = study_of(table, key)
    (found,) = [finding for finding in study.findings() if finding.code in ("wrong_key", "reversed_items")]
    assert (found.code, found.severity, found.items) == ("wrong_key", "warning", ("q7",))
    rows = {row["option"]: row for row in study.distractors().filter(pl.col("item") == "q7").iter_rows(named=True)}
    best = max((row for row in rows.values() if not row["key"]), key=lambda row: row["n"])
    said = rows[key["q7"]]
    for words in (
        f"the key is {key['q7']!r}, but the {best['n']} people who chose {best['option']!r} measure higher",
        f"{best['rest_ability']:z.2f}) than the {said['n']} who chose",
        f"({said['rest_ability']:z.2f})",
    ):
        assert words in found.sentence


def test_a_key_that_nobody_chose_is_found_too():
    table, key = choices(300, 20, 4)
    right = key["q3"]
    study = study_of(table, {**key, "q3": "E"})
    (found,) = study._item_findings()
    assert found.items == ("q3",)
    assert f"the key is 'E', which nobody chose, and the {np.sum(table[:, 2] == right)} people" in found.sentence
    row = study.distractors().filter((pl.col("item") == "q3") & pl.col("key")).row(0, named=True)
    assert (row["option"], row["n"], row["mean_ability"]) == ("E", 0, None) or np.isnan(row["mean_ability"])


@pytest.mark.slow
def test_wrong_keys_are_found_and_right_ones_left_alone():
    """40 items, 300 people: hardly any test with a false finding, 95% of wrong keys of moderate items found."""
    false = sum(bool(study_of(*choices(300, 40, seed))._item_findings()) for seed in range(20))
    assert false <= 1  # none is expected
    hits = 0
    for seed in range(12):
        where = tuple(np.random.default_rng(seed).choice(40, 4, replace=False).tolist())
        found = study_of(*choices(300, 40, 500 + seed, wrong=where))._item_findings()
        named = {item for finding in found for item in finding.items}
        assert named <= {f"q{k + 1}" for k in where}
        hits += len(named)
    assert hits >= 44  # of 48; 98% in 500 trials, and 1 is the standard error of 48


def test_small_groups_and_two_right_answers_alarm_nobody():
    for seed in range(20):
        assert not study_of(*choices(25, 15, seed))._item_findings()
    table, key = choices(600, 20, 5)
    rng = np.random.default_rng(6)
    right = table[:, 0] == key["q1"]
    other = "A" if key["q1"] != "A" else "B"
    table[right & (rng.random(600) < 0.6), 0] = other  # both are right, and most like the one that is not in the key
    table[~right & (table[:, 0] == other), 0] = "C" if key["q1"] != "C" else "D"
    assert not [found for found in study_of(table, key)._item_findings() if found.code == "wrong_key"]


def test_without_a_key_there_are_no_options():
    responses = si.Responses.from_wide([[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]])
    study = si.SpectralRasch().fit(responses).analyse(responses)
    with pytest.raises(si.errors.OptionError, match="not scored with an answer key"):
        study.distractors()
    assert "distractors" not in study.tables()
    assert "item_analysis" in study.tables()


def test_answers_in_own_words_are_put_together():
    """More than 253 different wrong answers: the rest are others, and right ones stay right."""
    rng = np.random.default_rng(1)
    key = {f"q{i}": f"word {i}" for i in range(400)}  # more right answers than there are codes
    right = rng.random((40, 400)) < 0.5
    table = np.array([[f"word {i}" if r else f"slip {rng.integers(2000)}" for i, r in enumerate(row)] for row in right])
    study = study_of(table.astype(object), key)
    found = study.distractors()
    assert found.filter(pl.col("key"))["n"].to_list() == right.sum(axis=0).tolist()
    assert found["n"].sum() == 40 * 400
    others = found.filter(pl.col("option") == "(other)")["n"].sum()
    named = found.filter(pl.col("option").str.starts_with("slip"))
    assert named["option"].n_unique() == 253
    assert others == (~right).sum() - named["n"].sum()


def test_curves_count_everybody_once(holes):
    table, key, study = holes
    beta, theta = study.calibration.difficulty, study.abilities("wle").ability
    for k, one in enumerate(option_curves(study.responses, beta, theta, np.arange(6), 4)):
        answered = np.array([[answer is not None for answer in row] for row in table])
        rest = np.flatnonzero(answered[:, k] & (answered.sum(axis=1) > 1))
        for option in {*table[:, k], list(key.values())[k]} - {None}:
            mine = one["option"] == option
            assert one["chose"][mine].sum() == np.sum(table[rest, k] == option)
            assert one["n"][mine].sum() == len(rest)
            assert (np.diff(one["ability"][mine]) > 0).all()
        for stratum in np.unique(one["stratum"]):
            assert one["share"][one["stratum"] == stratum].sum() == pytest.approx(1)
