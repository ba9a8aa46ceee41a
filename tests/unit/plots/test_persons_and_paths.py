"""The kidmap, the scalogram, the pathway chart and the averages by category, against plain computations."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.calibration import ADAPTIVE_DESIGN
from spectral_irt.data import Finding
from spectral_irt.errors import OptionError

ANSWERS = np.array(
    [[1, 1, 0, 0, 1], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 1], [1, 1, np.nan, 1, 0], [1, 0, 1, 0, 0]]
)


def study_of(answers, **options):
    """The persons of these answers at difficulties of a larger sample."""
    n_items = answers.shape[1]
    names = [f"q{k}" for k in range(1, n_items + 1)]
    rng = np.random.default_rng(3)
    sample = (
        rng.random((400, n_items)) < 1 / (1 + np.exp(np.linspace(-2, 2, n_items) - rng.normal(0, 1, (400, 1))))
    ) * 1.0
    calibration = si.SpectralRasch().fit(si.Responses.from_wide(sample, items=names)).calibration_
    table = pl.DataFrame({"person": [f"p{k}" for k in range(len(answers))]} | dict(zip(names, answers.T, strict=True)))
    responses = si.read(table.fill_nan(None))
    return si.Analysis(calibration, responses, **options)


def test_a_kidmap_has_what_was_right_and_wrong_and_marks_what_lies_beyond_the_interval():
    study = study_of(ANSWERS)
    table = study.plot.kidmap("p3").frame()  # fails the easiest item, and has the hardest right
    persons = study.persons()
    ability = persons["ability"][3]
    se = persons["se"][3]
    difficulty = dict(zip(study.calibration.labels.tolist(), study.calibration.difficulty.tolist(), strict=True))
    assert table["item"].to_list() == sorted(difficulty, key=difficulty.get, reverse=True)
    for row in table.iter_rows(named=True):
        beta = difficulty[row["item"]]
        right = ANSWERS[3, int(row["item"][1]) - 1] == 1
        assert row["passed"] == right
        assert row["p_passed"] == pytest.approx(1 / (1 + np.exp(beta - ability)))
        assert row["unexpected"] == (beta > ability + 1.96 * se if right else beta < ability - 1.96 * se)


def test_a_kidmap_of_ordered_responses_has_a_row_for_each_threshold(ordered_study):
    person = ordered_study.responses.persons[7]
    table = ordered_study.plot.kidmap(person).frame()
    answers = ordered_study.responses.to_dense()[7]
    counts = ordered_study.calibration.layout.max_score
    assert len(table) == counts[np.isfinite(answers)].sum()
    assert table["passed"].sum() == np.nansum(answers)


def test_kidmaps_and_scalograms_need_persons_with_a_place():
    study = study_of(ANSWERS)
    with pytest.raises(OptionError, match="unknown people 'nobody'"):
        study.plot.kidmap("nobody")
    silent = study_of(np.array([[np.nan] * 5, [1, 0, 1, 0, 1]]))
    with pytest.raises(OptionError, match="'p0' has no finite ability"):
        silent.plot.kidmap("p0")
    extreme = study_of(np.ones((2, 5)), ability="ml")
    with pytest.raises(OptionError, match="wle"):
        extreme.plot.kidmap("p1")


def test_a_scalogram_is_sorted_by_ability_and_difficulty_and_marks_residuals_beyond_two():
    study = study_of(ANSWERS)
    table = study.plot.guttman().frame()
    ability = study.persons()["ability"].to_numpy()
    order = np.argsort(-ability, kind="stable")
    assert table["person"].to_list() == [f"p{k}" for k in order]
    items = table.columns[4:]
    difficulty = dict(zip(study.calibration.labels.tolist(), study.calibration.difficulty.tolist(), strict=True))
    assert items == sorted(difficulty, key=difficulty.get)
    marked = 0
    for row, k in zip(table.iter_rows(named=True), order, strict=True):
        for item in items:
            x = ANSWERS[k, int(item[1]) - 1]
            if np.isnan(x):
                assert row[item] is None
                continue
            p = 1 / (1 + np.exp(difficulty[item] - ability[k]))
            unexpected = abs(x - p) / np.sqrt(p * (1 - p)) >= 2
            marked += unexpected
            assert row[item] == f"{x:g}" + "*" * int(unexpected)
    assert marked > 0
    assert table["n_unexpected"].sum() == marked


def test_a_scalogram_of_some_persons_whatever_their_order():
    study = study_of(ANSWERS)
    every = study.plot.guttman().frame()
    some = study.plot.guttman(["p5", "p0", "p3"]).frame()
    assert some.rows() == [row for row in every.rows() if row[0] in ("p0", "p3", "p5")]


def test_a_scalogram_too_large_to_be_seen_asks_for_persons(monkeypatch):
    monkeypatch.setattr("spectral_irt.persons.scalogram.MOST_CELLS", 20)
    study = study_of(ANSWERS)
    with pytest.raises(OptionError, match="Give it some `persons`"):
        study.plot.guttman()
    assert len(study.plot.guttman(["p1", "p2"]).frame()) == 2


def test_a_scalogram_has_the_codes_of_the_data():
    answers = np.where(np.isnan(ANSWERS), np.nan, ANSWERS + 1)
    responses = si.Responses.from_wide(answers, items=list("abcde"), ordered=True)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    cells = {cell and cell.rstrip("*") for name in "abcde" for cell in study.plot.guttman().frame()[name].to_list()}
    assert cells == {None, "1", "2"}


def test_an_item_called_as_a_column_of_the_scalogram_is_told_apart():
    responses = si.Responses.from_wide(ANSWERS, items=["score", "b", "c", "d", "e"])
    study = si.SpectralRasch().fit(responses).analyse(responses)
    assert {"score", "item_score"} <= set(study.plot.guttman().frame().columns)


def test_the_pathway_has_difficulties_errors_and_the_fit_of_the_fit_map(study):
    table = study.plot.pathway().frame()
    fit = {row["item"]: row for row in study.plot.fit().frame().iter_rows(named=True)}
    items = {row["item"]: row for row in study.calibration.items().iter_rows(named=True)}
    assert table["difficulty"].to_list() == sorted(table["difficulty"].to_list(), reverse=True)
    for row in table.iter_rows(named=True):
        assert row["infit"] == fit[row["item"]]["infit"]
        assert row["misfit"] == fit[row["item"]]["misfit"]
        assert (row["difficulty"], row["se"]) == (items[row["item"]]["difficulty"], items[row["item"]]["se"])


def test_averages_by_category_are_those_of_the_persons(ordered_study):
    table = ordered_study.plot.category_means().frame()
    answers = ordered_study.responses.to_dense()
    ability = ordered_study.persons()["ability"].to_numpy()
    most = ordered_study.calibration.layout.max_score.sum()
    extreme = (answers.sum(axis=1) == 0) | (answers.sum(axis=1) == most)
    column = {label: k for k, label in enumerate(ordered_study.calibration.labels.tolist())}
    for row in table.iter_rows(named=True):
        chosen = (answers[:, column[row["item"]]] == row["category"]) & ~extreme
        assert row["mean_ability"] == pytest.approx(ability[chosen].mean(), abs=1e-9)


def test_averages_that_do_not_rise_are_marked():
    rng = np.random.default_rng(8)
    theta = rng.normal(0, 1.5, (300, 1))
    answers = (rng.random((300, 8)) < 1 / (1 + np.exp(np.linspace(-1, 1, 8) - theta))) * 1.0
    answers[:, 2] = 1 - answers[:, 2]  # worded the other way round
    responses = si.Responses.from_wide(answers, items=[f"q{k}" for k in range(8)])
    means = si.SpectralRasch().fit(responses).analyse(responses).plot.category_means()
    assert means.items[means.disordered].tolist() == ["q2"]
    table = means.frame()
    falling = [(row["item"], row["category"]) for row in table.iter_rows(named=True) if not row["rises"]]
    assert falling == [("q2", 1)]


@pytest.mark.parametrize("name", ["pathway", "category_means", "guttman"])
def test_ratings_are_refused_in_a_sentence(name):
    ratings = si.datasets.load_writing()
    study = si.SpectralPartialCredit().fit(ratings).analyse(ratings)
    with pytest.raises(OptionError, match="these are ratings"):
        getattr(study.plot, name)()
    with pytest.raises(OptionError, match="these are ratings"):
        study.plot.kidmap(study.responses.persons[0])


def test_title_and_size_of_a_picture_are_as_asked(study):
    ax = study.plot.fit().plot(title="Spring form", figsize=(4, 3))
    assert ax.get_title(loc="left") == "Spring form"
    assert ax.figure.get_size_inches().tolist() == [4, 3]
    assert study.plot.fit().plot(title="").get_title(loc="left") == ""
    with pytest.raises(OptionError, match="give either"):
        study.plot.fit().plot(ax, figsize=(4, 3))


def test_no_curve_beside_responses_that_chose_the_items():
    """Given the score, items chosen by the responses were answered as they were: marks would lie off any curve."""
    study = study_of(ANSWERS)
    assert len(study.plot.icc("q1").strata["n"])
    chosen = Finding(ADAPTIVE_DESIGN, "note", "Earlier responses chose the items.")
    adaptive = si.Analysis(study.calibration.replace(findings=(chosen,)), study.responses)
    with pytest.raises(OptionError, match=r"no curve beside what was observed: .* chose the items"):
        adaptive.plot.icc("q1")
    assert adaptive.plot.categories("q1").frame().shape[0] > 0
