"""Sums of codes against every pattern of responses, and in the tables of an analysis."""

from itertools import product

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from drawn import drawn_categories
from spectral_irt.data.code_sums import code_findings, code_sums, counted_from_zero
from spectral_irt.errors import OptionError
from spectral_irt.report.blocks import ReportData
from spectral_irt.report.people import scores

_ = np.nan


@pytest.mark.parametrize(
    "codes",
    [
        [[1, 2, 3], [1, 2, 3], [1, 2, 3]],
        [[1, 2, 5], [1, 2, 3], [0, 4, _]],
        [[3, 4, 9], [2, 7, 8], [1, _, _]],
        [[0, 1, 2], [0, 1, _]],
    ],
)
def test_against_every_pattern(codes):
    table = np.array(codes, dtype=float)
    max_score = np.isfinite(table).sum(axis=1) - 1
    found = code_sums(table, max_score)
    sums = {}
    for pattern in product(*(range(most + 1) for most in max_score)):
        total = int(sum(row[k] for row, k in zip(table, pattern, strict=True)))
        sums.setdefault(sum(pattern), set()).add(total)
    assert found.low.tolist() == [min(sums[score]) for score in sorted(sums)]
    assert found.high.tolist() == [max(sums[score]) for score in sorted(sums)]
    assert counted_from_zero(table, max_score) == all(each == {score} for score, each in sums.items())
    for total in range(40):
        scores = [score for score, each in sums.items() if min(each) <= total <= max(each)]
        assert found.score_of(total) == (scores[0] if len(scores) == 1 else None)


def questionnaire(seed=1, n=300):
    """300 people, 6 items coded 1 to 5; nobody chose 4 of item c, and item f is worded the other way round."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 1.5, (n, 1, 1))
    location = np.linspace(-1, 1, 6)[:, None] + np.array([-1.5, -0.5, 0.5, 1.5])
    passed = np.concatenate([np.zeros((6, 1)), np.cumsum(location, axis=1)], axis=1)
    category = drawn_categories(rng, theta * np.arange(5) - passed).astype(int)
    category[category[:, 2] == 3, 2] = 2
    category[:, 5] = 4 - category[:, 5]
    return category + 1


@pytest.fixture(scope="module")
def answers():
    return questionnaire()


def test_scores_and_persons_have_sums_of_codes(answers):
    data = pl.DataFrame({name: answers[:, k] for k, name in enumerate("abcdef")})
    responses = si.read(data, reverse="f")
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    persons, scores = study.persons(), study.scores()
    turned = answers.copy()
    turned[:, 5] = 6 - turned[:, 5]
    assert persons["code_sum"].to_list() == turned.sum(axis=1).tolist()
    low = dict(zip(scores["score"], scores["code_sum"], strict=True))
    high = dict(zip(scores["score"], scores["code_sum_high"], strict=True))
    for score, total in zip(persons["score"], persons["code_sum"], strict=True):
        assert low[score] <= total <= high[score]
    assert (scores["code_sum"][0], scores["code_sum_high"][-1]) == (6, 30)
    assert "several_code_sums" in [finding.code for finding in study.findings(study.parts(writing=True))]
    bank = study.to_bank()  # keeps the codes
    assert bank.score(responses)["code_sum"].to_list() == persons["code_sum"].to_list()
    assert bank.calibration.score_table()["code_sum"].to_list() == scores["code_sum"].to_list()


def test_from_0_to_100(answers):
    study = si.SpectralPartialCredit().fit(answers[:, :2]).analyse(answers[:, :2])
    scores, persons = study.scores(), study.persons()
    ability, hundred = scores["ability"].to_numpy(), scores["measure_100"].to_numpy()
    np.testing.assert_allclose((hundred[0], hundred[-1]), (0, 100), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(hundred, 100 * (ability - ability[0]) / (ability[-1] - ability[0]))
    np.testing.assert_allclose(persons["measure_100"].to_numpy(), hundred[persons["score"].to_numpy()])
    right = si.SpectralRasch().fit(answers > 2).analyse(answers > 2)
    assert not {"measure_100", "code_sum"} & {*right.scores().columns, *right.persons().columns}


def test_from_0_to_100_counts_a_split_item_once(answers):
    """The ends are those of a test with the easiest, or the hardest, part of each item that was split; a part that was
    split again is as many parts of one item."""
    n = len(answers)
    people = {"sex": np.where(np.arange(n) % 2, "f", "m"), "age": np.where(np.arange(n) % 3, "old", "young")}
    frame = pl.DataFrame({f"q{k}": answers[:, k] for k in range(5)} | people)
    study = si.SpectralPartialCredit().fit(si.read(frame, people=list(people)))
    study = study.analyse(si.read(frame, people=list(people)))
    split = study.split("q1", by="sex").split("q1[sex=f]", by="age").split("q3", by="age")
    calibration = split.calibration
    location = dict(zip(calibration.labels.tolist(), calibration.difficulty.tolist(), strict=True))
    parts = {item: [label for label in location if str(label).startswith(item)] for item in ("q1", "q3")}
    assert [len(labels) for labels in parts.values()] == [3, 2]
    ends = []
    for extreme in (min, max):
        form = [extreme(parts[item], key=location.get) if item in parts else item for item in frame.columns[:5]]
        ends.append(calibration.score_table(form)["ability"].to_numpy())
    low, high = ends[0][0], ends[1][-1]
    persons = split.persons()
    expected = 100 * (persons["ability"].to_numpy() - low) / (high - low)
    np.testing.assert_allclose(persons["measure_100"].to_numpy(), expected)
    assert 0 <= expected.min() <= expected.max() <= 100


def test_cuts_as_sums_of_codes(answers):
    plain = answers[:, [0, 1, 3, 4]]
    study = si.SpectralPartialCredit().fit(plain).analyse(plain)
    by_codes, by_score = study.cuts([10, 15], raw="codes"), study.cuts([6, 11], raw=True)
    np.testing.assert_array_equal(by_codes["ability"], by_score["ability"])
    assert by_codes["n"].to_list() == by_score["n"].to_list()
    assert by_codes["cut"].to_list()[1:3] == [10, 15]
    for cut in (4, 21, 10.5):  # the lowest sum is no cut, and 20 is the highest
        with pytest.raises(OptionError, match="as a sum of codes is none from 5 to 20"):
            study.cuts([cut], raw="codes")
    every = si.SpectralPartialCredit().fit(answers).analyse(answers)
    with pytest.raises(OptionError, match="may have several scores"):
        every.cuts([15], raw="codes")


def test_end_categories_without_responses_are_said():
    labels = np.array(["a", "b"], dtype=object)
    found = code_findings(labels, np.array([[1.0, 2, 3], [1, 2, _]]), np.array([2, 1]))
    assert [(finding.code, finding.items) for finding in found] == [("codes_without_responses", ("b",))]
    assert "run from 2 to 5" in found[0].sentence
    assert not code_findings(labels, np.array([[1.0, 2, 3], [1, 2, 3]]), np.array([2, 2]))


LABELS = {1.0: "never", 2.0: "sometimes", 3.0: "always"}


def test_a_labeled_end_category_that_nobody_chose_counts_in_the_sums_of_the_questionnaire():
    labels = np.array(["a", "b"], dtype=object)
    codes = np.array([[1.0, 2, 3], [1, 2, _]])
    labeled = {"a": LABELS, "b": LABELS}
    (found,) = code_findings(labels, codes, np.array([2, 1]), answer_labels=labeled)
    assert "run from 2 to 5, those of the questionnaire from 2 to 6" in found.sentence
    assert "nobody can be measured at the other sums" in found.sentence
    assert "unused='keep'" in found.remedy
    # Nobody chose it at any item: then there is nothing to keep.
    (found,) = code_findings(labels, codes[:, :2], np.array([1, 1]), answer_labels=labeled)
    assert found.items == ("a", "b")
    assert "run from 2 to 4, those of the questionnaire from 2 to 6" in found.sentence
    assert found.remedy == ""


def test_labels_say_which_categories_an_item_has():
    labels = np.array(["a", "b"], dtype=object)
    codes = np.array([[1.0, 2, 3], [1, 2, _]])
    most = np.array([2, 1])
    two = {1.0: "no", 2.0: "yes"}
    assert not code_findings(labels, codes, most, answer_labels={"b": two})  # b has no third category
    far = {**two, 8.0: "form torn"}
    assert not code_findings(labels, codes, most, answer_labels={"b": far})
    ends = {1.0: "not at all", 7.0: "very much"}
    (found,) = code_findings(labels, codes, most, answer_labels={"a": ends, "b": ends})
    assert "from 2 to 14" in found.sentence
    missing = {1.0: "not at all", 99.0: "illegible"}
    assert not code_findings(labels, codes, most, answer_labels={"b": missing})


def test_the_table_of_scores_in_a_report_names_the_sums_of_the_questionnaire(answers):
    low = np.minimum(answers[:, [0, 1, 3, 4]], [5, 5, 5, 4])
    study = si.SpectralPartialCredit().fit(low).analyse(low)
    page = scores(ReportData.of(study, study.parts(writing=True)))
    assert "run from 4 to 19" in page.content[0].text
    assert "sums run from 4 to 20" in page.content[0].text
