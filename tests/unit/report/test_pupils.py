"""Pages for pupils: points and percent against a plain count, and nothing about anybody else on a page."""

import re
from html import unescape

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError, SpectralIrtError
from spectral_irt.report.pupils import pupil_pages, results_of

NAMES = ["Ann", "Bea", "Cem", "Dan", "Eva", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Leo"]


def answers():
    rng = np.random.default_rng(3)
    x = (rng.random((12, 8)) < 0.6).astype(float)
    x[4, 2] = np.nan
    x[4, 7] = np.nan
    return x


def fitted(x, **columns):
    cells = {f"q{i + 1}": [None if np.isnan(v) else int(v) for v in x[:, i]] for i in range(x.shape[1])}
    responses = si.read(
        pl.DataFrame({"name": NAMES[: len(x)], **columns, **cells}), person="name", people=list(columns)
    )
    return si.SpectralRasch().fit(responses).analyse(responses)


def pages(html):
    """The text of the class list, and of each person's page."""
    body = html[html.index("<main>") :]
    return [unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", part))) for part in body.split("<section")[1:]]


def test_points_and_percent_are_those_of_a_plain_count():
    x = answers()
    study = fitted(x)
    persons = study.persons()
    ability, se = np.array(persons["ability"]), np.array(persons["se"])
    for k, one in enumerate(results_of(study)):
        points = sum(v == 1 for v in x[k])
        assert (one.person, one.points, one.most) == (NAMES[k], str(points), "8")
        assert one.percent == f"{int(100 * points / 8 + 0.5)}%"
        assert one.blanks == sum(np.isnan(x[k]))
        words = ["no answer" if np.isnan(v) else "right" if v else "wrong" for v in x[k]]
        assert [said for _, said, _ in one.answers] == words
        assert one.interval == f"{ability[k] - 1.96 * se[k]:.2f} to {ability[k] + 1.96 * se[k]:.2f}"


def test_half_a_percent_goes_up_as_in_a_spreadsheet():
    x = answers()
    x[0] = [1, 1, 1, 1, 1, 0, 0, 0]  # 62.5%
    assert results_of(fitted(x))[0].percent == "63%"


def test_a_pupil_without_answers_has_no_points_out_of_none():
    x = answers()
    x[3] = np.nan
    first, *own = pages(pupil_pages(fitted(x), "Unit 3"))
    assert re.search(rf"{NAMES[3]} no answers", first)
    assert "No answers" in own[3]
    assert "of 8 points" not in own[3]


def test_a_page_names_nobody_else_and_has_no_number_of_others():
    classes = ["7a"] * 6 + ["7b"] * 6
    html = pupil_pages(fitted(answers(), group=classes), "Unit 3")
    first, *own = pages(html)
    assert len(own) == len(NAMES)
    assert all(name in first for name in NAMES)
    for name, text in zip(NAMES, own, strict=True):
        assert name in text
        assert not [other for other in NAMES if other != name and re.search(rf"\b{other}\b", text)]
        assert "Mean" not in text


def test_a_question_of_another_booklet_is_not_on_the_page():
    rng = np.random.default_rng(9)
    x = (rng.random((60, 10)) < 0.6).astype(float)
    x[:30, 7:] = np.nan
    x[30:, :3] = np.nan
    x[5, 1] = np.nan
    cells = {f"q{i + 1}": [None if np.isnan(v) else int(v) for v in x[:, i]] for i in range(10)}
    frame = pl.DataFrame({"name": [f"p{k}" for k in range(60)], "form": ["A"] * 30 + ["B"] * 30, **cells})
    responses = si.read(frame, person="name", people="form")
    study = si.SpectralRasch().fit(responses).analyse(responses, form="form")
    results = results_of(study)
    assert [question for question, _, _ in results[5].answers] == [f"q{i}" for i in range(1, 8)]
    assert results[5].most == "7"
    assert results[5].blanks == 1
    assert [question for question, _, _ in results[40].answers] == [f"q{i}" for i in range(4, 11)]


def test_points_of_ordered_answers():
    data = si.simulate.partial_credit(40, 5, categories=4, seed=4).responses
    study = si.SpectralPartialCredit().fit(data).analyse(data)
    x = data.to_dense()
    for k, one in enumerate(results_of(study)):
        assert one.points == f"{np.nansum(x[k]):.0f}"
        assert one.most == "15"
        assert one.answers[0][1] == f"{x[k, 0]:.0f} of 3"


def test_a_logit_is_explained_where_it_is_the_unit():
    assert round(1 / (1 + np.exp(-1)), 2) == 0.73
    for page in pages(pupil_pages(fitted(answers()))):
        assert "one more turns even chances on a question (50%) into 73%" in page
    for page in pages(pupil_pages(fitted(answers()).rescale(500, 100))):
        assert "logit" not in page


def test_labels_are_text():
    x = answers()
    cells = {f"q{i + 1}": [None if np.isnan(v) else int(v) for v in x[:, i]] for i in range(8)}
    frame = pl.DataFrame({"name": ["<script>alert(1)</script>", *NAMES[1:]], **cells})
    responses = si.read(frame, person="name")
    html = pupil_pages(si.SpectralRasch().fit(responses).analyse(responses))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_ratings_and_huge_data_are_refused(monkeypatch):
    ratings = si.datasets.load_writing()
    fit = si.SpectralPartialCredit().fit(ratings)
    with pytest.raises(OptionError, match="ratings have none"):
        pupil_pages(fit.analyse(ratings))
    monkeypatch.setattr("spectral_irt.report.pupils.MOST_CELLS", 50)
    with pytest.raises(OptionError, match="12 people with 8 questions are too many"):
        pupil_pages(fitted(answers()))


def test_a_file_of_somebody_else_is_not_replaced(tmp_path):
    path = tmp_path / "pupils.html"
    path.write_text("my notes")
    study = fitted(answers())
    with pytest.raises(SpectralIrtError):
        study.pupil_pages(path)
    assert path.read_text() == "my notes"
    written = study.pupil_pages(tmp_path / "others.html", title="Unit 3")
    assert "Unit 3" in written.read_text(encoding="utf-8")
