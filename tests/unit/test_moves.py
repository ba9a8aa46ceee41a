"""Moves after a first fit: what they do to the responses and to the fit, the ledger, and what is refused."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from pictures import Picture
from ratings import simulated
from spectral_irt import simulate
from spectral_irt.analysis.ledger import ledger_text, read_ledger
from spectral_irt.analysis.moves import Move, move_for, pointing_at_move
from spectral_irt.errors import DesignError, Finding, OptionError, ReadError, for_shell


def frame(values, **columns):
    items = {f"q{k + 1}": pl.Series(values[:, k]).fill_nan(None) for k in range(values.shape[1])}
    return pl.DataFrame({"person": [f"p{k}" for k in range(len(values))], **items, **columns})


def survey(seed=1, n_persons=300, missing=0.1, categories=4):
    """Ordered responses coded from 1, and the sex of each person."""
    data = simulate.partial_credit(n_persons, 6, categories=categories, seed=seed)
    values = data.responses.to_dense() + 1
    rng = np.random.default_rng(seed)
    values[rng.random(values.shape) < missing] = np.nan
    return values, rng.choice(["f", "m"], n_persons)


@pytest.fixture(scope="module")
def study():
    values, sex = survey()
    responses = si.read(frame(values, sex=sex), people=["sex"])
    return si.SpectralPartialCredit().fit(responses).analyse(responses)


def quiz(n_persons=400, n_items=8, seed=3):
    data = simulate.rasch(n_persons, n_items, seed=seed)
    sex = np.random.default_rng(seed).choice(["f", "m"], n_persons)
    return si.read(frame(data.responses.to_dense(), sex=sex), people=["sex"])


def test_every_move_gives_a_study_that_is_the_fit_of_the_changed_table(study):
    values, sex = survey()
    changed = study.split("q4", by="sex").join("q2", "q3").drop("q1")
    own = [np.where(sex == group, values[:, 3], np.nan) for group in ("f", "m")]
    joined = values[:, 1] + values[:, 2]
    other = np.column_stack([joined, *own, values[:, 4:]])
    names = ["q2+q3", "q4[sex=f]", "q4[sex=m]", "q5", "q6"]
    # Codes differ from item to item, which a table of one range of codes would not keep.
    again = si.SpectralPartialCredit().fit(si.Responses.from_wide(other - 1, items=names, ordered=True))
    assert changed.calibration.labels.tolist() == names
    np.testing.assert_allclose(changed.calibration.thresholds, again.thresholds_, atol=1e-9)
    np.testing.assert_allclose(changed.calibration.threshold_se, again.threshold_se_, atol=1e-9)


def test_the_ledger_says_what_each_move_changed(study):
    changed = study.drop("q1", because="too easy").drop_persons(["p0", "p1"])
    assert [move.option for move in changed.moves] == ["--drop q1", "--drop-persons FILE"]
    first, second = changed.moves
    assert first.because == "too easy"
    assert first.effect.items == (6, 5)
    assert second.effect.persons == (300, 298)
    assert changed.before.before is study
    assert study.moves == ()


def test_moves_of_a_file_do_the_same_again(study, tmp_path):
    changed = (
        study.split("q4", by="sex").collapse("q5", [0, 1, 1, 2]).join("q2", "q3", name="pair").drop_persons("misfit")
    )
    path = tmp_path / "moves.toml"
    path.write_text(ledger_text(changed.moves, changed.first_digest))
    again = study.with_moves(path)
    assert again.responses.digest() == changed.responses.digest()
    np.testing.assert_array_equal(again.calibration.thresholds, changed.calibration.thresholds)
    assert again.moves == changed.moves
    assert again.ledger_findings == ()
    assert ledger_text(again.moves, again.first_digest) == path.read_text()


@pytest.mark.parametrize("text", ["", "# nothing\n", 'data = "01"\n', "moves = [1, 2]\n", "move = 3\n", "move = [1]\n"])
def test_a_file_that_holds_no_move_is_refused(study, tmp_path, text):
    path = tmp_path / "moves.toml"
    path.write_text(text)
    with pytest.raises(ReadError, match=r"is no file of moves: it holds none, each of which begins with a line"):
        study.with_moves(path)


def test_a_ledger_of_other_data_is_said(study, tmp_path):
    path = tmp_path / "moves.toml"
    path.write_text(ledger_text([Move("drop", {"items": ["q1"]})], "0123456789abcdef"))
    changed = study.with_moves(path)
    assert "moves_of_other_data" in [finding.code for finding in changed.findings()]


def test_what_asked_for_a_move_is_found(with_dif_of_q5):
    assert with_dif_of_q5.split("q5", by="sex").moves[0].because == "differential_items"
    assert with_dif_of_q5.split("q1", by="sex").moves[0].because == ""


def test_codes_of_the_questionnaire_stay(study):
    values, _ = survey()
    changed = study.collapse("*", [0, 1, 1, 2])
    persons = changed.persons()
    np.testing.assert_array_equal(persons["code_sum"].to_numpy(), np.nansum(values, axis=1).astype(int))
    table = changed.calibration.score_table()
    # Six items coded 1 to 4; category 1 has the codes 2 and 3.
    assert table["code_sum"].to_list()[0] == table["code_sum_high"].to_list()[0] == 6
    assert table["code_sum"].to_list()[-1] == table["code_sum_high"].to_list()[-1] == 24
    for score, low, high in zip(table["score"], table["code_sum"], table["code_sum_high"], strict=True):
        sums = {
            6 + ones * extra_one + 0 + 3 * twos + extra
            for twos in range(7)
            for ones in [score - 2 * twos]
            if 0 <= ones <= 6 - twos
            for extra_one in [1]
            for extra in range(ones + 1)
        }
        assert (min(sums), max(sums)) == (low, high)


def test_weights_clusters_and_scale_go_along():
    responses = quiz()
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 2, 400)
    classes = (np.arange(400) // 20).tolist()
    fit = si.SpectralRasch().fit(responses, weights=weights)
    first = fit.analyse(responses).clustered(classes).rescale(500, 100)
    changed = first.drop("q2").drop_persons(["p3", "p7"])
    left = np.setdiff1d(np.arange(400), [3, 7])
    rest = responses.take_persons(left).take_items([0, 2, 3, 4, 5, 6, 7])
    other = (
        si.SpectralRasch().fit(rest, weights=weights[left]).analyse(rest).clustered(np.array(classes)[left].tolist())
    )
    np.testing.assert_allclose(changed.calibration.thresholds, other.calibration.thresholds, atol=1e-9)
    np.testing.assert_allclose(changed.calibration.se, other.calibration.se, atol=1e-9)
    scale = other.rescale(500, 100).calibration.scale
    assert (changed.calibration.scale.mean, changed.calibration.scale.unit) == pytest.approx((scale.mean, scale.unit))


def test_anchors_stay_and_changed_items_are_free():
    responses = quiz()
    anchors = {"q1": -1.0, "q2": 0.0, "q3": 0.5}
    first = si.AnchoredRasch(anchors).fit(responses).analyse(responses)
    changed = first.split("q2", by="sex")
    calibration = changed.calibration
    assert calibration.difficulty[calibration.positions(["q1", "q3"])].tolist() == [-1.0, 0.5]
    assert calibration.anchored.sum() == 2
    values, _ = survey(seed=8)
    ordered = si.Responses.from_wide(values, ordered=True)
    bank = si.SpectralPartialCredit().fit(ordered)
    beside = si.SpectralPartialCredit().fit(ordered, anchors=bank.calibration_).analyse(ordered)
    merged = beside.collapse(2, [0, 1, 1, 2]).calibration
    assert merged.anchored.tolist() == [True, True, False, True, True, True]


def test_rating_scales_keep_to_their_items(study):
    first = si.SpectralRatingScale().fit(study.responses).analyse(study.responses)
    changed = first.split("q4", by="sex").collapse("q3", [0, 1, 1, 2]).join("q1", "q2")
    scales = changed.calibration.rating_scales
    assert scales["q5"] == scales["q4[sex=f]"] == scales["q4[sex=m]"] == scales["q6"]
    assert len({scales["q5"], scales["q3"], scales["q1+q2"]}) == 3


def test_right_and_wrong_items_join_under_the_partial_credit_model():
    responses = quiz()
    first = si.SpectralRasch().fit(responses).analyse(responses)
    changed = first.join("q1", "q2")
    assert changed.calibration.model == "pcm"
    assert changed.calibration.layout.max_score.tolist() == [2, 1, 1, 1, 1, 1, 1]
    with pytest.raises(OptionError, match="right and wrong responses only"):
        si.JointRasch().fit(responses).analyse(responses).join("q1", "q2")


def test_thresholds_of_a_super_item_may_be_out_of_order():
    """The sum of two items that are nearly the same is rarely odd."""
    values, _ = survey(missing=0.0)
    rng = np.random.default_rng(4)
    values[:, 2] = np.where(rng.random(len(values)) < 0.9, values[:, 1], values[:, 2])
    responses = si.read(frame(values))
    joined = si.SpectralPartialCredit().fit(responses).analyse(responses).join("q2", "q3", name="pair")
    (finding,) = (one for one in joined.findings() if one.code == "thresholds_out_of_order")
    assert "pair" in finding.items
    assert "'pair' is a super-item" in finding.remedy
    if finding.items == ("pair",):
        assert finding.severity == "note"
        assert "join it with a neighbor" not in finding.remedy


def test_merged_categories_are_not_said_to_be_unused(study, tmp_path):
    page = study.collapse("q3", [0, 1, 1, 2]).report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Categories were merged, so that a score can go with several sums." in page
    assert "nobody used were renumbered, so that" not in page


def test_ratings_lose_items_and_persons_and_nothing_else():
    ratings = simulated([[0, 1, 2]] * 60, 4, 3, seed=2)[0]
    first = si.SpectralPartialCredit().fit(ratings).analyse(ratings)
    item = ratings.facets.items[0]
    changed = first.drop(item)
    assert item not in changed.responses.facets.items.tolist()
    with pytest.raises(OptionError, match="ratings with the facet"):
        first.join(*ratings.facets.items[:2].tolist())


def test_ratings_on_rating_scales_are_fitted_again_on_the_scales_of_their_items():
    ratings = simulated([[0, 1, 2]] * 60, 4, 3, seed=2)[0]
    first = si.SpectralRatingScale(groups=["a", "b", "a", "b"]).fit(ratings).analyse(ratings)
    changed = first.drop(ratings.facets.items[0])
    again = si.SpectralRatingScale(groups=["b", "a", "b"]).fit(changed.responses)
    np.testing.assert_allclose(changed.calibration.thresholds, again.thresholds_, atol=1e-9)


BAD = [
    (lambda study: study.drop("q9"), "'q9', which is no item; the items are 'q1'"),
    (lambda study: study.drop("q1", "q1"), "names an item twice"),
    (lambda study: study.drop("q1", "q2", "q3", "q4", "q5"), "leaves 1 item; a scale takes two"),
    (lambda study: study.split("q1", by="age"), "no column 'age'"),
    (lambda study: study.split("q1", by="half"), "from 'a' only"),
    (lambda study: study.join("q1"), "two items or more"),
    (lambda study: study.join("q1", "q2", name="q3"), "one of that name already"),
    (lambda study: study.split("q1", by="sex").join("q1[sex=f]", "q1[sex=m]"), "no person answered all of them"),
    (lambda study: study.drop("q1").split("q1", by="sex"), "an earlier move took away: q1 dropped"),
    (lambda study: study.collapse("q1", [0, 1, 2, 3]), "merges no categories"),
    (lambda study: study.collapse("q1", [0, 0, 0, 0]), "single category"),
    (lambda study: study.collapse("q1", [0, 1, 1]), "gives 3 new categories, and the codes run from 1 to 4"),
    (lambda study: study.collapse("q1", [0, 2, 2, 1]), "categories = .0, 2, 2, 1., which it cannot be"),
    (lambda study: study.collapse("q1", [0, 1, 1, 2]).drop("q1"), "categories an earlier move merged"),
    (lambda study: study.drop_persons(["nobody"]), "'nobody', who is not among the persons"),
]


@pytest.mark.parametrize(("move", "says"), BAD)
def test_what_cannot_be_done_is_said(study, move, says):
    values, sex = survey()
    if "half" in says or "'a' only" in says:
        responses = si.read(frame(values, sex=sex, half=["a"] * 300), people=["sex", "half"])
        study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    with pytest.raises((OptionError, DesignError), match=says):
        move(study)


def test_an_analysis_without_a_fit_has_no_moves(study):
    alone = type(study)(study.calibration, study.responses)
    with pytest.raises(OptionError, match="was not made by a fit"):
        alone.drop("q1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[move]]\ndo = 'melt'\n", "move 1: there is no move 'melt'; moves are drop"),
        ("[[move]]\ndo = 'drop'\n", "move 1: the move 'drop' lacks items"),
        ("[[move]]\ndo = 'drop'\nitems = 3\n", "items = 3, which it cannot be"),
        ("[[move]]\ndo = 'drop'\nitem = 'q1'\n", "has no 'item'; it has items"),
        ("move = 3\n", "begins with a line"),
        ("[[move", "is no file of moves"),
    ],
)
def test_a_file_that_is_no_ledger(tmp_path, text, says):
    path = tmp_path / "moves.toml"
    path.write_text(text)
    with pytest.raises(ReadError, match=says):
        read_ledger(path)


@pytest.mark.slow
def test_a_split_by_a_coin_moves_nothing_beyond_chance():
    """Two items that differ by chance only: their difference over its error is normal, and the others stay."""
    draws, z, moved = 60, [], []
    for seed in range(draws):
        data = simulate.rasch(300, 8, seed=seed)
        coin = np.random.default_rng(10_000 + seed).choice(["a", "b"], 300)
        responses = si.read(frame(data.responses.to_dense(), coin=coin), people=["coin"])
        first = si.SpectralRasch(regularization=0).fit(responses).analyse(responses)
        changed = first.with_moves([Move("split", {"item": "q4", "by": "coin"}, "a coin")])
        calibration = changed.calibration
        one, other = calibration.positions(["q4[coin=a]", "q4[coin=b]"])
        covariance = changed.threshold_covariance()
        se = np.sqrt(covariance[one, one] + covariance[other, other] - 2 * covariance[one, other])
        z.append((calibration.difficulty[one] - calibration.difficulty[other]) / se)
        place = calibration.positions(["q1", "q2", "q8"])
        before = first.calibration.positions(["q1", "q2", "q8"])
        shift = calibration.difficulty[place] - first.calibration.difficulty[before]
        moved.append(np.ptp(shift) / first.calibration.se[before].mean())
    assert abs(np.mean(z)) < 3 / np.sqrt(draws)
    assert np.std(z) == pytest.approx(1, abs=3 / np.sqrt(2 * draws))
    assert np.mean(moved) < 0.15


@pytest.mark.slow
def test_a_super_item_of_independent_items_leaves_the_other_thresholds():
    """Of data without dependence, joining two items loses what they say about each other and nothing else."""
    data = simulate.rasch(20_000, 12, seed=4)
    responses = si.read(frame(data.responses.to_dense()))
    first = si.SpectralRasch().fit(responses).analyse(responses)
    changed = first.with_moves([Move("join", {"items": ["q5", "q6"]}, "a test")])
    others = [f"q{k}" for k in (1, 2, 3, 4, 7, 8, 9, 10, 11, 12)]
    before = first.calibration.difficulty[first.calibration.positions(others)]
    after = changed.calibration.difficulty[changed.calibration.positions(others)]
    shift = (after - after.mean()) - (before - before.mean())
    se = first.calibration.se[first.calibration.positions(others)]
    assert np.max(np.abs(shift) / se) < 0.02


@pytest.fixture(scope="module")
def with_dif_of_q5():
    data = simulate.rasch(600, 10, seed=5)
    values = data.responses.to_dense()
    rng = np.random.default_rng(6)
    sex = rng.choice(["f", "m"], 600)
    values[(sex == "m") & (rng.random(600) < 0.5), 4] = 0.0
    responses = si.read(frame(values, sex=sex, room=[f"c{k // 20}" for k in range(600)]), people=["sex", "room"])
    return si.SpectralRasch().fit(responses).analyse(responses)


def test_moves_are_chosen_on_some_persons_and_the_results_are_of_the_others(with_dif_of_q5):
    study = with_dif_of_q5
    halves = study.hold_out(0.5, seed=3)
    persons = [set(half.responses.persons.tolist()) for half in halves]
    assert list(map(len, persons)) == [300, 300]
    assert not persons[0] & persons[1]
    chosen = halves.for_choice.dif_resolve("sex")
    assert [move.words for move in chosen.moves] == ["q5 split by sex"]
    changed = halves.for_results.with_moves(chosen.moves)
    # As the fit of these persons alone, and the ledger counts them.
    place = [k for k, label in enumerate(study.responses.persons.tolist()) if label in persons[1]]
    others = study.responses.take_persons(np.array(place))
    alone = si.SpectralRasch().fit(others).analyse(others).split("q5", by="sex")
    np.testing.assert_array_equal(changed.calibration.thresholds, alone.calibration.thresholds)
    assert changed.moves[0].effect.persons == (300, 300)
    assert changed.moves[0].because.startswith("DIF by sex")
    assert "held out while changes were chosen on the other 300" in changed.record()["findings"][0]["sentence"]
    assert changed.record()["hold_out"] == {
        "share": 0.5,
        "seed": 3,
        "n_for_choice": 300,
        "n_for_results": 300,
        "for_choice": False,
    }
    with pytest.raises(OptionError, match="already a part of others"):
        changed.hold_out(0.5)


def test_a_ledger_holds_the_same_persons_out(with_dif_of_q5, tmp_path):
    halves = with_dif_of_q5.hold_out(0.25, seed=8)
    changed = halves.for_results.split("q5", by="sex").drop_persons(["p1", "p2", "p3", "p4"])
    path = tmp_path / "moves.toml"
    path.write_text(ledger_text(changed.moves, changed.first_digest, changed.held_out))
    again = with_dif_of_q5.with_moves(path)
    assert again.responses.digest() == changed.responses.digest()
    np.testing.assert_array_equal(again.calibration.thresholds, changed.calibration.thresholds)
    assert ledger_text(again.moves, again.first_digest, again.held_out) == path.read_text()
    path.write_text(path.read_text().replace("hold_out = 0.25", "hold_out = 1.5"))
    with pytest.raises(ReadError, match="hold_out is a share"):
        read_ledger(path)


def test_clusters_are_held_out_as_a_whole(with_dif_of_q5):
    halves = with_dif_of_q5.clustered("room").hold_out(0.4, seed=1)
    rooms = [set(half.responses.people["room"].tolist()) for half in halves]
    assert list(map(len, rooms)) == [18, 12]
    assert not rooms[0] & rooms[1]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 0.01])
def test_a_part_needs_some_persons(with_dif_of_q5, share):
    with pytest.raises((OptionError, DesignError), match=r"`hold_out` (is|of) "):
        with_dif_of_q5.hold_out(share)


def guesses(seed, guessing, n_persons=800, n_items=24):
    """Right and wrong responses under the Rasch model, or with a chance to guess."""
    rng = np.random.default_rng(seed)
    difficulty = np.linspace(-2, 2.5, n_items)
    ability = rng.normal(0, 1.2, n_persons)
    chance = guessing + (1 - guessing) / (1 + np.exp(difficulty - ability[:, None]))
    return (rng.random(chance.shape) < chance).astype(float), difficulty


def without_what_is_unlikely(values, difficulty, below):
    """Person by person, until nothing is below the limit."""
    values = values.copy()
    for row in values:
        while True:
            there = ~np.isnan(row)
            if not there.any():
                break
            # Warm's estimate: where the gradient of log(likelihood) + log(information) / 2 is zero.
            low, high = -30.0, 30.0
            for _ in range(80):
                theta = (low + high) / 2
                p = 1 / (1 + np.exp(difficulty[there] - theta))
                information = np.sum(p * (1 - p))
                gradient = row[there].sum() - p.sum() + np.sum(p * (1 - p) * (1 - 2 * p)) / (2 * information)
                if gradient > 0:
                    low = theta
                else:
                    high = theta
            unlikely = there & (1 / (1 + np.exp(difficulty - theta)) < below)
            if not unlikely.any():
                break
            row[unlikely] = np.nan
    return values


def test_tailoring_leaves_out_what_is_below_the_limit_round_by_round():
    values, _ = guesses(1, 0.25, n_persons=300)
    first = si.SpectralRasch().fit(values).analyse(values)
    changed = first.tailor(0.4)
    expected = values
    removed = values.size
    while removed > 0.001 * values.size:
        difficulty = si.SpectralRasch().fit(expected).difficulty_
        fewer = without_what_is_unlikely(expected, difficulty, 0.4)
        removed = np.isnan(fewer).sum() - np.isnan(expected).sum()
        expected = fewer
    np.testing.assert_array_equal(changed.responses.to_dense(), expected)
    table = changed.tailored()
    np.testing.assert_array_equal(table["removed"].to_numpy(), np.isnan(expected).sum(axis=0))


def test_labels_may_be_taken_from_an_array():
    responses = si.simulate.partial_credit(120, 6, categories=4, seed=2).responses
    study = si.SpectralPartialCredit(se="none").fit(responses).analyse(responses)
    items = responses.items  # numbers of numpy
    changed = study.collapse(items[2], np.array([0, 1, 1, 2])).join(items[0], items[1]).drop(items[5])
    assert [move.option for move in changed.moves] == ["--collapse 2:0,1,1,2", "--join 0+1", "--drop 5"]
    assert study.drop_persons(responses.persons[:3]).responses.n_persons == 117


def test_tailoring_takes_two_thirds_off_the_bias_of_guessed_items():
    """3PL with c = 0.25, abilities that spread widely; against the easiest items, whose responses all stay."""
    rng = np.random.default_rng(314159)
    difficulty = np.linspace(-2, 3, 30)
    known = 1 / (1 + np.exp(difficulty - rng.normal(0, 1.5, (4000, 1))))
    x = (rng.random(known.shape) < 0.25 + 0.75 * known).astype(float)
    first = si.SpectralRasch(se="none").fit(x).analyse(x)
    bias = [
        np.mean((study.calibration.difficulty - difficulty)[-5:])
        - np.mean((study.calibration.difficulty - difficulty)[:5])
        for study in (first, first.tailor(0.6))
    ]
    assert bias[0] < -1.5
    assert abs(bias[1]) < abs(bias[0]) / 3


def test_tailoring_compares_difficulties_with_and_without_likely_guesses():
    values, _ = guesses(1, 0.25)
    first = si.SpectralRasch().fit(values).analyse(values)
    changed = first.tailor(0.4)
    table = changed.tailored()
    # The hardest items get harder, and both difficulties have the same mean over the items that lost fewest.
    assert (table["difference"].to_numpy()[-5:] > 0.2).all()
    assert (table["p_holm"].to_numpy()[-5:] < 0.05).sum() >= 3
    assert "tailored_items" in [finding.code for finding in changed.findings()]
    with pytest.raises(OptionError, match="is of all responses"):
        first.tailored()
    with pytest.raises(OptionError, match="nobody has a chance below"):
        first.tailor(1e-9)
    with pytest.raises(DesignError, match=r"leaves too few responses .* Choose a lower limit"):
        first.tailor(0.99999)


@pytest.mark.parametrize(
    ("estimator", "design"),
    [(si.MarginalRasch, {}), (si.VariationalRasch, {}), (si.SpectralRasch, {"design": "adaptive"})],
)
def test_marginal_likelihood_is_not_tailored(estimator, design):
    values, _ = guesses(1, 0.25, n_persons=200)
    values[np.random.default_rng(1).random(values.shape) < 0.1] = np.nan
    with pytest.raises(OptionError, match="by the person's own score"):
        estimator().fit(values, **design).analyse(values).tailor(0.4)


def test_right_and_wrong_are_not_merged():
    responses = quiz()
    with pytest.raises(OptionError, match="an item has at least two"):
        si.SpectralRasch().fit(responses).analyse(responses).collapse("q1", [0, 0])


def test_ordered_responses_are_not_tailored(study):
    with pytest.raises(OptionError, match="right and wrong responses only"):
        study.tailor(0.25)


@pytest.mark.slow
def test_tailoring_of_data_without_guessing_moves_nothing_beyond_chance():
    """z of each item has mean 0 and standard deviation 1, over data sets; few data sets have a significant item."""
    z, significant = [], 0
    draws = 25
    for seed in range(draws):
        values, _ = guesses(seed, 0.0)
        first = si.SpectralRasch(regularization=0).fit(values).analyse(values)
        table = first.with_moves([Move("tailor", {"below": 0.25}, "a test")]).tailored()
        z.append(table["z"].to_numpy()[-6:])
        significant += bool((table["p_holm"].to_numpy() < 0.05).any())
    z = np.array(z)
    assert np.abs(z.mean(axis=0)).max() < 3.5 / np.sqrt(draws)
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1, abs=0.2)  # of 150, some of them correlated
    assert significant <= 4  # 0.05 of 25, and 2.6 standard errors more


def with_dif(seed, items=(3, 8, 12, 16), size=0.8, n=500, n_items=20):
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], n)
    ability = rng.normal(0, 1, 2 * n) - 0.5 * group
    difficulty = np.tile(np.linspace(-1.5, 1.5, n_items), (2 * n, 1))
    difficulty[np.ix_(group == 1, items)] += size
    values = (rng.random(difficulty.shape) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(float)
    return si.read(frame(values, sex=np.where(group == 1, "m", "f")), people=["sex"])


def test_dif_is_resolved_step_by_step():
    responses = with_dif(2)
    first = si.SpectralRasch().fit(responses).analyse(responses)
    changed = first.dif_resolve("sex")
    assert {"q4", "q9", "q13", "q17"} == {move.arguments["item"] for move in changed.moves}
    assert all(move.name == "split" and f"step {k}" in move.because for k, move in enumerate(changed.moves, start=1))
    again = first.with_moves(changed.moves)
    np.testing.assert_array_equal(again.calibration.thresholds, changed.calibration.thresholds)


@pytest.mark.slow
def test_dif_of_four_items_is_found_and_clean_items_stay():
    found, clean, covered = 0, 0, 0
    draws = 7
    differ = {"q4", "q9", "q13", "q17"}
    for seed in range(draws):
        responses = with_dif(seed)
        changed = si.SpectralRasch().fit(responses).analyse(responses).dif_resolve("sex")
        split = {move.arguments["item"] for move in changed.moves}
        found += differ <= split
        clean += bool(split - differ)
        means = changed.group_means("sex")
        error = np.hypot(*means["latent_se"].to_list())
        covered += abs(means["latent_mean"][1] - means["latent_mean"][0] + 0.5) < 1.96 * error
    assert found >= 5  # 0.9 or more expected
    assert clean <= 2  # 0.1 or fewer expected
    assert covered >= 5  # 0.95 expected


def test_the_error_of_a_difference_is_that_of_nested_estimates():
    """Differences over their errors have a variance of 1; the errors are far below those of either fit."""
    z, errors, own = [], [], []
    for seed in range(12):
        responses = si.read(frame(simulate.rasch(400, 10, seed=seed).responses.to_dense()))
        first = si.SpectralRasch(regularization=0).fit(responses).analyse(responses)
        comparison = first.compare(first.with_moves([Move("drop", {"items": ["q9", "q10"]}, "a test")]))
        z.append(comparison.items["z"])
        errors.append(comparison.items["se"])
        own.append(first.calibration.se[:8])
    assert 0.8 < np.sqrt(np.mean(np.square(z))) < 1.2  # 96 of them, with a mean of 0 and a variance of 1
    assert np.mean(errors) < 0.2 * np.mean(own)


def test_infit_before_and_after_is_that_of_the_tables_of_items(before_and_after):
    """The one that every table of items calls infit, and that `compare-fits` finds in the files of both fits."""
    first, second = before_and_after
    items = first.compare(second).item_table()
    of_first, of_second = (
        dict(zip(s.item_fit()["item"], s.item_fit()["infit"], strict=True)) for s in before_and_after
    )
    np.testing.assert_array_equal(items["infit_before"], [of_first[item] for item in items["item"]])
    np.testing.assert_array_equal(items["infit_after"], [of_second[item] for item in items["item"]])


def test_the_likelihoods_of_two_models_of_the_same_responses(study):
    rating_scale = si.SpectralRatingScale().fit(study.responses).analyse(study.responses)
    comparison = rating_scale.compare(study)
    lines = {line.what: (line.before, line.after) for line in comparison.lines}
    before, after = (float(text.replace(",", "")) for text in lines["conditional log-likelihood"])
    assert after >= before - 0.1  # the partial credit model has the rating scale within it
    assert lines["parameters"] == (str(6 - 1 + 2), str(18 - 1))
    assert "conditional log-likelihood" not in [line.what for line in study.compare(study.drop("q1")).lines]
    assert np.corrcoef(comparison.persons["ability_before"], comparison.persons["ability_after"])[0, 1] > 0.95


def disordered():
    """Four items in four categories; thresholds of the last, 'worst', are -0.5, 1.2, -1.0."""
    rng = np.random.default_rng(1)
    ability = rng.normal(size=600)[:, None]

    def drawn(thresholds):
        passed = np.concatenate([[0], -np.cumsum(thresholds)])
        p = np.exp(ability * np.arange(len(passed)) + passed)
        above = rng.random((600, 1)) > np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
        return above.sum(axis=1)

    values = np.column_stack([*(drawn([-1, 0, 1]) for _ in range(3)), drawn([-0.5, 1.2, -1.0])])
    return si.Responses.from_wide(values, items=["q1", "q2", "q3", "worst"], ordered=True)


def test_a_finding_on_disorder_names_the_categories_to_merge():
    responses = disordered()
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    finding = next(one for one in study.findings() if one.code == "thresholds_out_of_order")
    # Category 2 is between the thresholds 1.2 and -1.0; fewer chose category 1 than 3.
    counts = responses.category_counts[3]
    assert counts[1] <= counts[3]
    assert finding.option == "--collapse worst:0,1,1,2"
    assert "`study.collapse('worst', [0, 1, 1, 2])` does so for one item." in finding.remedy
    assert "--collapse worst:0,1,1,2 does so" in for_shell(finding.remedy)
    merged = study.collapse("worst", [0, 1, 1, 2])
    assert "thresholds_out_of_order" not in {one.code for one in merged.findings()}
    assert merged.moves[0].because == "thresholds_out_of_order"


def test_an_option_that_would_name_other_items_is_not_offered():
    finding = Finding("misfitting_items", "warning", "One.", "Read it.", ("rust, iron",))
    pointed = pointing_at_move(finding, move_for(finding))
    assert pointed.option == ""
    assert pointed.remedy == "Read it. `study.drop('rust, iron')` shows what changes without it."
    assert pointing_at_move(finding, None) is finding


@pytest.fixture(scope="module")
def before_and_after():
    """A quiz with the scale 500, 100, and the same without two items."""
    responses = quiz()
    first = si.SpectralRasch().fit(responses).analyse(responses).rescale(500, 100)
    return first, first.drop("q1", "q2")


def test_persons_who_change_class_at_a_cut_are_those_of_a_plain_count(before_and_after):
    first, second = before_and_after
    comparison = first.compare(second, cuts=[560, 450])
    both = [f"q{k}" for k in range(3, 9)]
    of_items = [study.calibration.difficulty[study.calibration.positions(both)] for study in before_and_after]
    shift = np.mean(of_items[0] - of_items[1])
    abilities = [np.asarray(first.persons()["ability"]), np.asarray(second.persons()["ability"]) + shift]
    scale = first.calibration.scale
    measures = [scale.mean + scale.unit * ability for ability in abilities]
    classes = [(measure >= 450).astype(int) + (measure >= 560) for measure in measures]
    changed = int(np.sum(classes[0] != classes[1]))
    assert 0 < changed < 400
    assert f"{changed} of 400 people change class at 560, 450." in comparison.sentences
    picture = comparison.plot()
    table = picture.frame()
    np.testing.assert_allclose(table["ability_before"], measures[0])
    np.testing.assert_allclose(table["ability_after"], measures[1])
    np.testing.assert_array_equal(table["class_before"], classes[0])
    np.testing.assert_array_equal(table["class_after"], classes[1])
    assert "class_before" not in first.compare(second).plot().frame().columns


@pytest.mark.slow
def test_the_picture_of_persons_before_and_after_is_readable(before_and_after):
    first, second = before_and_after
    seen = Picture(first.compare(second, cuts=[500]).plot().plot())
    assert 0.02 < seen.ink < 0.6
    assert not seen.overlaps()
    assert not seen.cut()
    assert {"before: ability (scale of report)", "Persons before and after"} <= {text.get_text() for text in seen.texts}
