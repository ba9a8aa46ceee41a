"""The checklist answers every point: with a number, why it was not done, or that its authors alone know."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError
from spectral_irt.report.blocks import ReportData
from spectral_irt.report.checklist import AUTHORS, SUBJECTS, checklist_of


def study_of(n, items=8):
    data = si.simulate.partial_credit(n, thresholds=[[b - 1, b, b + 1] for b in np.linspace(-1, 1, items)], seed=4)
    return si.SpectralPartialCredit().fit(data.responses).analyse(data.responses)


def rows_of(study, **parts):
    data = ReportData.of(study, study.parts(writing=True, **parts), checklist="ruler")
    return {row[0]: row[1:] for block in checklist_of(data).content[1:] for row in block.rows}


@pytest.fixture(scope="module")
def study():
    return study_of(150)


def test_every_point_has_an_answer_and_numbers_are_those_of_the_record(study):
    rows = rows_of(study)
    assert list(rows) == [point.asked for points in SUBJECTS.values() for point in points]
    assert all(answer for answer, _ in rows.values())
    for points in SUBJECTS.values():
        for point in points:
            assert (rows[point.asked][0] == AUTHORS) == (point.answer is None)
    record = study.record(study.parts(writing=True))
    shared = record["fit_checks"]["shared"]
    answer, where = rows["Local dependence (Q3), with its critical value"]
    assert f"Q3* {shared['q3_star']:.3f}" in answer.replace("−", "-")
    assert where == "Dimensionality"
    answer, _ = rows["Differential item functioning, by which groups"]
    assert answer == "Not done, because no groups of persons were compared."
    assert f"{record['reliability']['alpha']:.2f}" in rows["Reliability of persons, with and without extreme scores"][0]


def test_what_was_left_out_is_not_done(study):
    rows = rows_of(study, persons=False, fit=False)
    for asked in ("Targeting", "Fit of persons", "Variance explained", "Item-trait interaction over class intervals"):
        assert rows[asked][0].startswith("Not done, because")


def test_no_checklist_unless_asked_for(study):
    data = ReportData.of(study, study.parts(writing=True))
    assert not checklist_of(data).content
    with pytest.raises(OptionError, match="it can be ruler"):
        checklist_of(ReportData.of(study, study.parts(writing=True), checklist="apa"))
