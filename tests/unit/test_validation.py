"""The battery: its rows agree, and those of a broken estimator do not."""

import math

import pytest

import spectral_irt as si
from validation import cases_exact, cases_programs, cases_studies
from validation.__main__ import all_cases
from validation.lab import ESTIMATORS, Lab
from validation.page import file_of, part_page, summary_page
from validation.rows import AGREES, ERROR, FAILS, Case, run
from validation.study import Study


def number(value):
    return lambda lab, data: {"": value}


def case(outside, ours, **more):
    return Case("Part", "quantity", "data", "source", number(outside), number(ours), 0.1, "a reason", **more)


class TooWide(si.ConditionalRasch):
    """Differences between difficulties are 1% too large."""

    def _estimate(self, responses, tell):
        estimate = super()._estimate(responses, tell)
        estimate.thresholds[:] *= 1.01
        return estimate


def of_lsat():
    return [each for each in cases_programs.right_wrong() if each.data == "lsat6" and each.quantity == "difficulty"]


def test_rows_of_a_broken_estimator_fail():
    right = list(run(of_lsat(), Lab()))
    assert len(right) == 15
    assert {row.verdict for row in right} == {AGREES}
    broken = list(run(of_lsat(), Lab({**ESTIMATORS, "conditional": TooWide})))
    assert {row.verdict for row in broken} == {FAILS}


@pytest.mark.parametrize(
    ("outside", "ours", "verdict"),
    [
        (1.0, 1.05, AGREES),
        (1.0, 1.2, FAILS),
        (math.inf, math.inf, AGREES),
        (math.inf, 1.0, FAILS),
        (1.0, math.nan, FAILS),
    ],
)
def test_a_row_agrees_within_its_tolerance(outside, ours, verdict):
    (row,) = run([case(outside, ours)], Lab())
    assert row.verdict == verdict


def test_what_a_published_number_is_compared_with():
    (row,) = run([case(1.0, 1.3, converged=number(1.31))], Lab())
    assert row.verdict == AGREES
    assert (row.outside, row.converged) == (1.0, 1.31)


def test_an_error_is_a_row_and_stays_in_view():
    def fails(lab, data):
        raise ZeroDivisionError("nothing there")

    rows = list(run([case(1.0, 1.0)._replace(ours=fails), case(1.0, 1.0)], Lab()))
    assert [row.verdict for row in rows] == [ERROR, AGREES]
    page = summary_page({"Part": rows}, {"Part": "rows_part"}, "python -m validation")
    assert "ZeroDivisionError: nothing there" in page
    assert "2 numbers, of which 1 do not agree" in page
    assert "1 of 1 agree" in part_page("Part", rows[1:])
    assert file_of("Style ratings and writing (372 students, 21 raters)") == "rows_style_ratings_and_writing"


def test_every_case_names_its_reason_and_a_source_that_is_there():
    lab = Lab()
    cases = list(all_cases(quick=False))
    assert len({(each.part, each.quantity, each.data, each.source) for each in cases}) == len(cases)
    for each in cases:
        assert each.reason
        assert each.source
        assert bool(lab.sha256(each.file)) == bool(each.file)


def test_closed_forms_and_enumerations_agree():
    rows = list(run(cases_exact.cases(), Lab()))
    assert len(rows) > 100
    assert [row for row in rows if row.verdict != AGREES] == []


def test_a_promise_may_be_kept_by_far_but_not_be_broken(monkeypatch):
    def study(name, value, *, at_most):
        return Study(name, {"lost": 0.05}, lambda seed: {"lost": value}, at_most=at_most)

    studies = (
        study("far below", 0.0, at_most=True),
        study("broken", 0.5, at_most=True),
        study("a level is no promise", 0.0, at_most=False),
    )
    monkeypatch.setattr(cases_studies, "STUDIES", studies)
    rows = list(run(cases_studies.cases(), Lab(draws=1000)))
    assert [row.verdict for row in rows] == [AGREES, FAILS, FAILS]
    assert [row.ours for row in rows] == [0.05, 0.5, 0.0]


@pytest.mark.slow
def test_the_quick_battery_agrees():
    rows = list(run(all_cases(quick=True), Lab()))
    assert len(rows) > 3000
    assert [(row.quantity, row.data, row.label) for row in rows if row.verdict != AGREES] == []
