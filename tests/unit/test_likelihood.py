"""The conditional likelihood of an analysis, what follows from it, and the door for scikit-learn."""

import itertools

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from dense import probabilities
from gold import said, table

LSAT = said("lsat6")


@pytest.fixture(scope="module")
def lsat():
    return si.datasets.load_lsat()


@pytest.fixture(scope="module")
def study(lsat):
    return si.SpectralRasch().fit(lsat).analyse(lsat)


def test_it_is_the_likelihood_of_erm(study):
    likelihood = study.likelihood()
    assert likelihood.loglik == pytest.approx(LSAT["eRm_RM"]["loglik_conditional"], abs=1e-6)
    assert likelihood.n_parameters == 4
    assert likelihood.aic == pytest.approx(8 - 2 * likelihood.loglik)
    assert likelihood.bic == pytest.approx(4 * np.log(likelihood.n_persons) - 2 * likelihood.loglik)


@pytest.mark.parametrize(
    ("name", "method", "program"),
    [
        ("credit6_pcm", si.SpectralPartialCredit(regularization=0.0), "eRm_PCM_sum0"),
        ("scale8_rsm", si.ConditionalRatingScale(), "eRm_RSM_sum0"),
    ],
)
def test_of_ordered_responses_it_is_the_one_of_erm(name, method, program):
    record = said(name)
    answers = table(record["dataset"])
    likelihood = method.fit(answers).analyse(answers).likelihood()
    assert likelihood.loglik == pytest.approx(record["psychotools"]["loglik_conditional"], abs=1e-6)
    assert likelihood.n_parameters == record[program]["npar"]


def test_with_anchors_only_the_others_are_free(lsat):
    fit = si.AnchoredRasch({"item1": -1.2, "item2": 0.5}).fit(lsat)
    assert fit.analyse(lsat).likelihood().n_parameters == 3


def test_an_item_without_an_estimate_is_named():
    answers = np.random.default_rng(5).integers(0, 2, (60, 4)).astype(float)
    answers[:, 3] = 1.0
    study = si.SpectralRasch(regularization=0.0).fit(answers).analyse(answers)
    with pytest.raises(ValueError, match="1 item without an estimate"):
        study.likelihood()


def test_the_truth_scores_better_than_another_order_on_new_persons():
    rng = np.random.default_rng(7)
    difficulty = np.linspace(-1.5, 1.5, 8)
    chance = probabilities(rng.normal(size=3000), difficulty)
    answers = (rng.random(chance.shape) < chance).astype(float)
    right = si.SpectralRasch().fit(answers[:1500])
    wrong = si.SpectralRasch().fit(answers[:1500, ::-1])
    # By the formula: log P(row | score) of each person, from all orders of eight answers.
    everything = np.array(list(itertools.product([0.0, 1.0], repeat=8)))
    weight = np.exp(-everything @ right.difficulty_)
    total = np.array([weight[everything.sum(axis=1) == score].sum() for score in range(9)])
    new = answers[1500:]
    expected = (-new @ right.difficulty_ - np.log(total[new.sum(axis=1).astype(int)])).sum() / new.size
    assert right.score(new) == pytest.approx(expected, abs=1e-10)
    assert right.score(new) > wrong.score(new) + 0.05


def test_transform_gives_the_abilities(study, lsat):
    fit = si.SpectralRasch()
    abilities = fit.fit_transform(lsat)
    assert abilities.shape == (1000, 1)
    np.testing.assert_array_equal(abilities[:, 0], study.abilities().ability)
    assert fit.score(lsat) == pytest.approx(study.likelihood().loglik / 5000)


def test_fits_are_compared_without_responses(lsat, study):
    other = si.MarginalRasch().fit(lsat)
    comparison = si.compare(study.calibration, other)
    np.testing.assert_allclose(
        comparison.items["difference"], other.difficulty_ - study.calibration.difficulty, atol=1e-12
    )
    assert str(comparison).splitlines()[1].split() == ["items", "5", "5"]
    with_itself = study.compare(study)
    assert si.compare(study, study).lines == with_itself.lines
    assert "Items: no difficulty changed by 0.01 logits or more." in with_itself.sentences
    with pytest.raises(ValueError, match="Responses is none: fit it first"):
        si.compare(study.calibration, lsat)


@pytest.mark.parametrize("what", ["fit", "calibration", "study", "checks", "test", "comparison"])
def test_a_notebook_shows_it_as_a_table(what, lsat, study):
    shown = {
        "fit": lambda: si.SpectralRasch().fit(lsat),
        "calibration": lambda: study.calibration,
        "study": lambda: study,
        "checks": study.checks,
        "test": lambda: study.model_test("ability"),
        "comparison": lambda: study.compare(study),
    }[what]()
    html = shown._repr_html_()
    assert html.startswith("<div><p>")
    assert html.count("<table>") == html.count("</table>") == 1
    assert "<td>item1</td>" in html or what == "comparison"
    assert si.SpectralRasch()._repr_html_() == "<div><p>SpectralRasch()</p></div>"


def test_labels_are_no_markup_in_a_notebook():
    answers = si.Responses.from_wide(pl.DataFrame({"<b>1": [1, 0, 1, 0], "q2": [0, 1, 1, 0], "q3": [1, 0, 0, 1]}))
    html = si.SpectralRasch().fit(answers)._repr_html_()
    assert "<td>&lt;b&gt;1</td>" in html
    assert "<b>" not in html
