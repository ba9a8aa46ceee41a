"""The report of answers in ordered categories."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.analysis import Analysis
from spectral_irt.data import Responses
from spectral_irt.report.methods import python_lines
from spectral_irt.report.page import page_of

pytestmark = pytest.mark.slow  # pictures

LABELS = ["<script>alert(1)</script>", "=1+1", "$x^2$", "q4"]


@pytest.fixture(scope="module")
def study() -> Analysis:
    drawn = si.simulate.partial_credit(200, 4, categories=3, seed=2).responses
    person, item, category = drawn.answers()
    answers = np.full((200, 4), np.nan)
    answers[person, item] = category
    responses = Responses.from_wide(answers, items=LABELS)
    responses = replace(responses, persons=np.array([f"somebody {k}" for k in range(200)], dtype=object))
    return si.SpectralPartialCredit().fit(responses).analyse(responses)


def data(page: str) -> Any:
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_it_has_the_numbers_and_no_markup_of_labels(study: Analysis, tmp_path: Path) -> None:
    page = study.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "somebody 7" not in page
    for title in (
        "Appendix: long tables",
        "People and items on one scale",
        "Curves of the items",
        "Does the model fit?",
    ):
        assert title in page
    assert "No groups of people were compared" in page
    tables = data(page)
    columns = {column["name"]: column["values"] for column in tables["items"]["columns"]}
    order = np.argsort(-study.calibration.difficulty)
    assert columns["item"] == [LABELS[k] for k in order]
    assert np.allclose(columns["difficulty"], study.calibration.difficulty[order], atol=5e-4)
    details = tables["items"]["details"]
    expected = study.calibration.thresholds.reshape(4, -1)[order].ravel()
    assert np.allclose(np.concatenate(details["thresholds"]), expected, atol=5e-4)
    marks = np.reshape(details["strata"][str(columns["item"].index("q4"))], (-1, 5))
    curve = study.plot.icc("q4").columns()
    for column, (name, unit) in enumerate({"n": 1, "observed": 1000, "place": 100, "ci_high": 1000}.items()):
        assert np.allclose(marks[:, column if column < 3 else 4], unit * curve[name], atol=0.5001), name
    shown = [[float(row[4].replace("−", "-")) for row in details["tables"][0]["rows"][str(k)][1:]] for k in range(4)]
    assert np.allclose(np.concatenate(shown), expected, atol=5e-3)
    categories = {column["name"]: column["values"] for column in tables["categories"]["columns"]}
    above = [value for value in categories["threshold"] if value is not None]
    assert np.allclose(above, study.calibration.thresholds, atol=5e-3)
    assert categories["answer"][:3] == ["0", "1", "2"]
    assert sum(categories["n"]) == study.responses.n_responses
    scores = {column["name"]: column["values"] for column in tables["scores"]["columns"]}
    assert scores["score"] == list(range(9))
    assert page.count("<img") == 5


def test_people_are_named_where_that_was_asked_for(study: Analysis) -> None:
    assert "somebody 7" in page_of(study, study.parts(writing=True), list_persons=True)


def test_what_was_left_out_is_said(study: Analysis) -> None:
    page = page_of(study, study.parts(persons=False, fit=False))
    assert "Not in this report" in page
    assert "The fit of the items was left out of the analysis." in page
    names = [column["name"] for column in data(page)["items"]["columns"]]
    assert "difficulty" in names
    assert not any("infit" in name for name in names)


def test_the_methods_name_the_model(study: Analysis) -> None:
    shown = page_of(study, study.parts(persons=False, fit=False))
    assert "partial credit model (Masters, 1982). Thresholds were estimated" in shown
    assert "Rasch, G." not in shown
    scale = si.SpectralRatingScale().fit(study.responses).analyse(study.responses)
    record = scale.record(scale.parts(persons=False, fit=False))
    assert python_lines(record)[1:3] == (
        "answers = si.read('answers.csv', ordered=True)",
        "fit = si.SpectralRatingScale().fit(answers)",
    )


def test_a_file_of_somebody_else_stays(study: Analysis, tmp_path: Path) -> None:
    (tmp_path / "r.html").write_text("mine")
    with pytest.raises(si.errors.OutputError, match="did not make it"):
        study.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == "mine"
