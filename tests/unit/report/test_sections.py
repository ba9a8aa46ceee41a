"""Sections of a report: what they say of a record and of tables, and what they leave out."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from ratings import simulated
from spectral_irt.analysis.cache import columns_of
from spectral_irt.estimators.by_name import METHODS, make_estimator
from spectral_irt.inference.fit import strata
from spectral_irt.inference.fit.strata import items_with_curves
from spectral_irt.inference.items.review import Look
from spectral_irt.inference.results import MIN_PAIRED
from spectral_irt.report import blocks, methods, overview, people
from spectral_irt.report import fit as fit_sections
from spectral_irt.report.blocks import Column, DataTable, FindingList, ReportData
from spectral_irt.report.items import item_table, prior_marks
from spectral_irt.report.methods import fit_command, python_lines
from spectral_irt.report.overview import reliability_rows
from spectral_irt.report.page import data_text, page_of, sections_of
from spectral_irt.report.questions import sentences
from spectral_irt.text import TEST
from undrawn import without_pictures


def objects(*values):
    return np.array(values, dtype=object)


def analysis(estimator, answers, **options):
    return estimator.fit(answers, **options).analyse(answers)


@pytest.fixture(scope="module")
def lsat():
    study = analysis(si.SpectralRasch(), si.datasets.load_lsat())
    parts = study.parts(writing=True)
    return ReportData.of(study, parts, {**study.record(parts), "argv": ["fit", "lsat.csv"]})


@pytest.fixture(scope="module", params=["right and wrong", "ordered"])
def study(request):
    if request.param == "ordered":
        return analysis(si.SpectralPartialCredit(), si.simulate.partial_credit(200, 5, categories=3, seed=2).responses)
    return analysis(si.SpectralRasch(), si.datasets.load_lsat())


def with_tables(one, **tables):
    return replace(one, tables={**one.tables, **tables})


def test_options_of_an_item_are_in_its_row(lsat):
    chosen = {
        "item": objects("item2", "item2", "item5"),
        "option": objects("A", "<b>B</b>", "C"),
        "key": np.array([True, False, False]),
        "n": np.array([709, 291, 10]),
        "share": np.array([0.709, 0.291, 0.01]),
        "mean_ability": np.array([0.5, -0.25, np.nan]),
        "point_biserial": np.array([0.3, -0.3, 0.0]),
    }
    table = next(block for block in item_table(with_tables(lsat, distractors=chosen)).content if block.kind == "data")
    found = table.data()["details"]["tables"][0]
    assert found["rows"] == {
        1: [["A (key)", "709", "70.9%", "0.50", "0.30"], ["<b>B</b>", "291", "29.1%", "-0.25", "-0.30"]],
        3: [["C", "10", "1.0%", "–", "0.00"]],
    }  # from the hardest down: item3, item2, item4, item5, item1


def test_groups_and_classes(lsat):
    only = replace(lsat, tables={name: lsat.tables[name] for name in ("items", "persons")})
    assert not people.groups_and_classes(only).content
    groups = {
        "grouping": objects("sex", "sex"),
        "group": objects("f", "m"),
        **{name: np.array([1.0, 2.0]) for name in ("n", "mean", "se", "sd")},
        "latent_sd": np.array([0.5, 1.5]),
    }
    cuts = {
        "class": objects("1", "2", "all"),
        "cut": np.array([np.nan, 0.5, np.nan]),
        "ability": np.array([np.nan, 0.5, np.nan]),
        **{name: np.array([0.5, 0.5, 1.0]) for name in ("n", "share", "accuracy", "consistency", "score")},
        "form": objects("", "", ""),
    }
    section = people.groups_and_classes(with_tables(only, groups=groups, cuts=cuts))
    means, about, classes = section.content
    assert means.head[-2:] == ("s.d.", "Latent s.d.")
    assert means.rows[1] == ("sex: m", "2", "2.00", "2.00", "2.00", "1.50")
    assert about.text.startswith("s.d.: of the measures, errors and all")
    assert [row[0] for row in classes.rows] == ["class 1", "class 2", "all classes"]
    assert classes.rows[1][1] == "0.50"


def test_without_forms_scores_are_those_of_all_items(study):
    section = people.scores(ReportData.of(study, study.parts(persons=False, fit=False)))
    assert section.content[0].text.startswith("For a person who answers all of the 5 items")
    values = {column["name"]: column["values"] for column in section.content[1].data()["columns"]}
    assert values["ability"] == study.calibration.score_table()["ability"].round(2).to_list()


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_paragraph_names_the_method_and_cites_what_exists(name):
    study = analysis(make_estimator(name, {}), si.datasets.load_lsat())
    record = {**study.record(study.parts(writing=True)), "estimator": name}
    sentences, cited = methods.paragraph(record)
    known = tomllib.loads(Path(methods.__file__).with_name("references.toml").read_text(encoding="utf-8"))
    assert cited <= set(known)
    text = " ".join(sentences)
    for key in cited:  # who is listed is cited, by name and year
        author = known[key].split(",")[0]
        year = known[key].split("(")[-1 if key == "christensen" else 1][:4]
        assert author.casefold() in text.casefold(), key
        assert year in text, key
    assert f"si.{METHODS[name].where.partition(':')[2]}()" in python_lines(record)[-2]


@pytest.mark.parametrize(("people", "options"), [(30, {}), (30, {"regularization": 2.0}), (600, {})])
def test_the_paragraph_names_the_prior_where_one_acted(people, options):
    study = analysis(si.SpectralRasch(**options), si.simulate.rasch(people, 12, seed=3).responses)
    text = " ".join(methods.paragraph(study.record(study.parts(writing=True)))[0])
    if people == 600:
        assert "the maximum of the conditional likelihood (Andersen, 1972)." in text
        assert "prior" not in text
        return
    used = study.calibration.prior
    how = "set by hand" if options else "chosen by empirical Bayes"
    assert "the maximum of the conditional likelihood (Andersen, 1972)" in text
    assert "penalized" not in text
    few = "" if options else " with few responses"
    assert (", with a normal prior (" if options else ", with a weak normal prior (") in text
    # Or "0 of 12 items misfitted" would say too much.
    assert re.search(r"misfit( of \d+ of 12 items)? could not be seen: only an infit beyond", text)
    assert f"normal prior (sd {used.sd:.2f} logits) {how} on {used.items} of 12 items{few}." in text


def test_terminal_methods_and_record_name_the_prior_and_the_correction_of_ratings():
    """Raters of few ratings: what the fit kept of its prior, in the paragraph, on the terminal and in the record."""
    meets = [[k % 5, 5 + k % 105] for k in range(600)]  # five raters of 120 people each, and many of six
    responses, *_ = simulated(meets, 3, 3, seed=4)
    fit = si.SpectralPartialCredit().fit(responses)
    (term,) = fit.regularization_.terms
    assert 0 < term.acts_on < term.of == 110
    factor = fit.calibration_.facets.factor
    study = fit.analyse(responses)
    text = " ".join(methods.paragraph(study.record())[0])
    for said in (text, " ".join(study.summary(width=400).split())):
        assert "conditional maximum likelihood" in said
        assert "penalized" not in said
        assert f"{term.acts_on} of 110 rater severities" in said
        assert f"sd {term.sd:.2f} logits" in said
        assert all(f"{each:.3f}" in said for each in factor.values())
    assert study.record()["bias_factors"] == factor
    assert study.record()["regularization"]["terms"][0]["acts_on"] == term.acts_on
    plain = si.SpectralPartialCredit().fit(simulated([[0, 1, 2]] * 100, 3, 3, seed=4)[0])
    assert plain.calibration_.prior is None


def test_settings_that_were_said_are_in_the_python():
    estimator = si.SpectralRasch(regularization=0.0, refine=False, weighting="persons")
    study = analysis(estimator, si.datasets.load_lsat())
    record = study.record(parts := study.parts(writing=True))
    assert fit_command(record) == ""  # there was none
    assert "persons weights" in str(methods.methods(ReportData.of(study, parts)).content)
    assert "si.SpectralRasch(weighting='persons', regularization=0.0, refine=False)" in python_lines(record)[-2]


def test_names_that_a_shell_would_take_apart_are_quoted(lsat):
    source = {"files": ["/secret/place/my answers; rm -rf.csv"], "reading": {"missing": ["9", "$x"], "person": "who"}}
    given = ["fit", source["files"][0], "--missing", "9", "--missing", "$x", "--person", "who", "--bank=/secret/b"]
    given += ["--pupil-pages", "/secret/pupils.html"]
    record = {**lsat.record, "input": source, "argv": given}
    expected = "spectral-irt fit 'my answers; rm -rf.csv' --missing 9 --missing '$x' --person who --bank=b"
    expected += " --pupil-pages pupils.html"
    assert fit_command(record) == expected
    assert python_lines(record)[1] == "answers = si.read('my answers; rm -rf.csv', missing=['9', '$x'], person='who')"


def test_a_query_is_in_the_python_without_a_file(lsat):
    address = "postgresql://ann@host/tests"
    source = {"files": [address], "reading": {"sql": "SELECT * FROM answers", "database": address}}
    record = {**lsat.record, "input": source, "argv": ["fit", address, "--sql", "SELECT * FROM answers"]}
    assert fit_command(record) == f"spectral-irt fit {address} --sql 'SELECT * FROM answers'"
    assert python_lines(record)[1] == f"answers = si.read(sql='SELECT * FROM answers', database={address!r})"


def test_columns_of_people_are_in_the_python(lsat):
    about = {"population_by": "grade", "clustered_by": "class", "reading": {"people": ["grade", "class"]}}
    source = {"files": ["a.csv"], **about}
    record = {**lsat.record, "input": source, "estimator": "mml", "design": "adaptive", "settings": {}}
    assert python_lines(record)[1:] == (
        "answers = si.read('a.csv', people=['grade', 'class'])",
        "fit = si.MarginalRasch().fit(answers, groups='grade', design='adaptive')",
        "study = fit.analyse(answers).clustered('class', 'grade')",
    )
    record["input"] |= {"form": "booklet"}
    assert python_lines(record)[-1] == "study = fit.analyse(answers, form='booklet').clustered('class', 'grade')"
    record["input"] |= {"reading": {}, "people": {"file": "place/people.csv", "columns": ["grade", "class"]}}
    assert python_lines(record)[1] == "answers = si.read('a.csv').with_people('people.csv', ['grade', 'class'])"


def test_findings_about_dimensions_are_in_their_section(lsat, monkeypatch):
    without_pictures(monkeypatch)
    found = {"code": "second_dimension", "sentence": "Two.", "remedy": "Split."}
    section = fit_sections.dimensions(replace(lsat, record={**lsat.record, "findings": [found]}))
    assert "Two. Split." in str(section.content)


@pytest.mark.parametrize(
    ("q3_above_mean", "p", "disagree"),
    [
        ([0.38, 0.2], [0.028, 0.5], True),  # above the critical value, and no pair is dependent
        ([0.38, 0.02], [0.001, 0.002], True),  # a dependent pair with a small Q3
        ([0.38, 0.2], [0.001, 0.5], False),
        ([0.3, 0.2], [0.03, 0.5], False),
    ],
)
def test_a_q3_that_says_something_else_than_the_test_is_explained(q3_above_mean, p, disagree):
    pairs = {"n": np.array([90, 90]), "q3_above_mean": np.array(q3_above_mean), "p_adjusted": np.array(p)}
    assert fit_sections._disagrees_with_q3({"q3_star_critical": 0.36}, pairs) == disagree
    assert not fit_sections._disagrees_with_q3({"q3_star_critical": None}, pairs)


def test_long_tables_are_cut_and_say_so(monkeypatch, lsat):
    monkeypatch.setattr(blocks, "MOST", 3)
    monkeypatch.setattr("spectral_irt.report.items.MOST", 3)
    section = item_table(lsat)
    assert "These are the first 3 items of 5; items.csv has all." in [getattr(b, "text", "") for b in section.content]
    table = next(block for block in section.content if block.kind == "data")
    assert len(table.data()["columns"][0]["values"]) == 3
    assert set(table.data()["details"]["strata"]) == {0, 1, 2}


def test_of_very_many_items_those_that_fit_worst_have_curves(monkeypatch, lsat):
    study = lsat.study
    fit = columns_of(study.item_fit)
    assert items_with_curves(study.calibration, fit).tolist() == [0, 1, 2, 3, 4]
    monkeypatch.setattr(strata, "MOST_CURVES", 2)
    worst = np.sort(np.argsort(-np.abs(fit["infit_conditional_z"]))[:2])
    assert items_with_curves(study.calibration, fit).tolist() == worst.tolist()


def test_numbers_that_are_none(lsat):
    values = {"item": objects("a", "b", "c"), "se": np.array([np.inf, np.nan, 0.12345])}
    table = DataTable("t", "t", (Column("item", "Item"), Column("se", "s.e.", 3)), values)
    assert table.data()["columns"][1]["values"] == ["∞", None, 0.123]
    assert table.first() == [["a", "∞"], ["b", "–"], ["c", "0.123"]]
    hostile = {"a": ["</script>", "<!--", "\u2028", "&amp;"]}
    assert json.loads(data_text(hostile)) == hostile
    assert not set("<>&\u2028") & set(data_text(hostile))


def test_methods_name_the_conditional_likelihood_of_a_rating_scale_and_weights():
    scale = analysis(si.SpectralRatingScale(), si.simulate.rating_scale(200, 6, categories=4, seed=1).responses)
    assert "conditional maximum likelihood (Andersen, 1972)" in " ".join(methods.paragraph(scale.record())[0])
    right = si.simulate.rasch(60, 6, seed=1).responses  # so few that a prior acts
    weighted = analysis(si.SpectralRasch(), right, weights=np.arange(1, 61))
    assert "survey weights" in " ".join(methods.paragraph(weighted.record())[0])


LABELS = ["<script>alert(1)</script>", "=1+1", "$x^2$", "q4"]


@pytest.fixture(scope="module")
def ordered():
    answers = si.simulate.partial_credit(200, 4, categories=3, seed=2).responses.to_dense()
    responses = si.Responses.from_wide(answers, items=LABELS, ordered=True)
    responses = replace(responses, persons=np.array([f"somebody {k}" for k in range(200)], dtype=object))
    return analysis(si.SpectralPartialCredit(), responses)


@pytest.mark.slow
def test_a_page_has_curves_and_thresholds_and_no_markup_of_labels(ordered, tmp_path, monkeypatch):
    page = ordered.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "somebody 7" not in page
    without_pictures(monkeypatch)
    assert "somebody 7" in page_of(ordered, ordered.parts(writing=True), list_persons=True)
    assert page.count("<img") == 5
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)
    items = json.loads(found[1])["items"]
    order = np.argsort(-ordered.calibration.difficulty)
    assert items["columns"][0]["values"] == [LABELS[k] for k in order]
    details, expected = items["details"], ordered.calibration.thresholds.reshape(4, -1)[order].ravel()
    assert np.allclose(np.concatenate(details["thresholds"]), expected, atol=5e-4)
    shown = [[float(row[4]) for row in details["tables"][0]["rows"][str(k)][1:]] for k in range(4)]
    assert np.allclose(np.concatenate(shown), expected, atol=5e-3)
    marks = np.reshape(details["strata"][str(order.tolist().index(3))], (-1, 5))
    curve = ordered.plot.icc("q4").columns()
    for place, (name, unit) in {0: ("n", 1), 1: ("observed", 1000), 2: ("place", 100), 4: ("ci_high", 1000)}.items():
        assert np.allclose(marks[:, place], unit * curve[name], atol=0.5001), name


@pytest.mark.slow
def test_what_was_left_out_is_said_and_the_methods_name_the_model(ordered):
    page = page_of(ordered, ordered.parts(persons=False, fit=False))
    assert "The fit of the items was left out of the analysis." in page
    assert "partial credit model (Masters, 1982). Thresholds were estimated" in page
    assert "Rasch, G." not in page
    scale = analysis(si.SpectralRatingScale(), ordered.responses)
    assert python_lines(scale.record(scale.parts(persons=False, fit=False)))[1:3] == (
        "answers = si.read('answers.csv', ordered=True, unused='keep')",
        "fit = si.SpectralRatingScale().fit(answers)",
    )


def test_a_reliability_below_zero_is_none():
    found = {"method": "wle", "persons": {"separation": 0.0, "strata": 0.33, "reliability": -1.22}}
    ((name, value, said),) = reliability_rows(found, ["persons"], TEST, binary=True)
    assert (name, value) == ("Person separation index (PSI)", "–")
    assert "not defined: the measures differ no more than their errors" in said


@pytest.mark.parametrize(("n", "beside"), [(5, True), (5, False), (2, True), (1, False)])
def test_as_many_checks_are_counted_as_are_shown(n, beside):
    test = {"df": 3, "statistic": 2.5, "p": 0.4}
    record = {
        "item_fit": {"underfit": 0, "overfit": 0, "judged": 9},
        "model_test": test if n > 1 else None,
        "fit_checks": {"level_each": 0.01},
        "conditional_against_marginal": test if beside else None,
    }
    if n == 5:
        record["fit_checks"]["shared"] = {"dependent_pairs": 0, "n_pairs": 36, "pairs_p": 0.3, "contrast_p": 0.5}
        record["fit_checks"]["erratic_people"] = {"n_people": 300, "share": 0.02, "chance": 0.02, "p": 0.5}
    rows = fit_sections.check_rows(record)
    said = fit_sections._about_checks(record, len(rows))
    assert len(rows) == n + beside
    assert said.startswith("The check is made at 1%" if n == 1 else f"Each of the {n} checks is made at 1%")
    assert n == 1 or f"in at most {n}% of data sets" in said
    assert ("The last row is about the population" in said) == beside


def test_misfit_that_could_not_be_seen_is_said_where_none_was_found():
    """The row would read as a clean bill; and small departures are spoken of in large data alone."""
    unseen = {"code": "misfit_not_visible", "n_items": 20}
    record = {"item_fit": {"underfit": 0, "overfit": 0, "judged": 20}, "counts": {"persons": 999}}
    ((_, result, _),) = fit_sections.check_rows({**record, "findings": [unseen]})
    assert result == "0 of 20 items (adjusted for all items); misfit of 20 could not be seen"
    assert "small departures" not in fit_sections._about_checks(record, 1)
    record["counts"]["persons"] = 1000
    assert "In large data small departures are found too" in fit_sections._about_checks(record, 1)


def test_pairs_that_few_people_answered_are_counted_apart():
    """Of 24 items in booklets 66 of 276 pairs are judged; of a complete test all are, and nothing more is said."""
    shared = {"n_items": 24, "n_people": 900, "n_pairs": 66, "dependent_pairs": 0, "draws": 0}
    rows = dict(fit_sections._residuals(shared).rows)
    assert rows["Dependent pairs"] == "0 of 66"
    assert rows[f"Pairs that are not judged: fewer than {MIN_PAIRED} people answered both items"] == "210"
    assert len(fit_sections._residuals({**shared, "n_pairs": 276}).rows) == len(rows) - 1


def test_methods_name_the_statistic_of_mantel_where_it_is_given():
    compared = {"column": "sex", "mantel_haenszel": False}
    assert "Mantel" not in methods._groups({"dif": compared}).sentences[0]
    both = methods._groups({"dif": [compared, {"column": "age", "mantel_haenszel": True}]})
    assert both.sentences[0].endswith(
        "(Zwick, 2012), with Mantel-Haenszel statistics (Mantel & Haenszel, 1959) beside them."
    )
    assert "mantel" in both.cited


def test_questions_to_look_at_are_in_the_report_of_a_test_with_a_key():
    letters = {f"q{i}": ["A" if (k >= 4 * i) != (k % 9 == i) else "BCD"[k % 3] for k in range(60)] for i in range(9)}
    letters["easy"] = ["A"] * 60
    responses = si.read(
        pl.DataFrame({"person": [f"p{k}" for k in range(60)], **letters}), key=dict.fromkeys(letters, "A")
    )
    study = analysis(si.SpectralRasch(), responses)
    page = page_of(study, study.parts(writing=True))
    assert "Questions to look at" in page
    assert "one logit above the item the chance is 73%, one below it 27%" in page
    assert "of the number right, over the people who answered every item" in page
    assert "(true spread in standard errors), strata" in page
    assert "Everybody is right: too easy to tell people apart?" in page
    assert "with 60 people, a few answers more or less change them" in page


def test_a_test_without_a_key_or_raters_has_neither_section_and_misses_none(lsat):
    """Sections that do not apply are not listed among what is missing (": None is no facet of these answers")."""
    sections = {one.name: one for one in sections_of(lsat)}
    assert not {"questions", "facets"} & set(sections)
    missing = sections["missing"].content if "missing" in sections else ()
    assert not any("facet" in line or line.startswith(":") for block in missing for line in block.lines)


@pytest.mark.parametrize(
    ("look", "sentence"),
    [
        (
            Look("q1", ("key",), 30, 3, -0.2, 4, "A", 15, "D", 3),
            "Wrong key? The 15 people who chose 'A' did better on the other questions than everybody else; the key 'D' "
            "was chosen by 3.",
        ),
        (
            Look("q1", ("swapped", "flat"), 29, 9, -0.63, 4, "B", 15, "A", 9),
            "Wrong key? The 15 people who chose 'B' did better on the other questions than the 9 who chose the key "
            "'A'. Unclear? Those who did well on the other questions are less often right (correlation -0.63).",
        ),
        (
            Look("q1", ("hard",), 30, 6, 0.3, 4, None, 0, "D", 6),
            "Too hard? 6 of 30 people are right (20%), no more than by guessing among 4 options.",
        ),
        (Look("q1", ("hard",), 30, 6, 0.3, 6, None, 0, "D", 6), "Too hard? 6 of 30 people are right (20%)."),
        (
            Look("q1", ("more",), 30, 9, 0.3, 4, "A", 12, "D", 9),
            "Misleading option? 12 people chose 'A', and 9 the key 'D'.",
        ),
        (Look("q1", ("easy",), 30, 29, 0.1, 2, None, 0, "D", 29), "Too easy? 29 of 30 people are right (97%)."),
    ],
)
def test_what_is_said_of_a_question(look, sentence):
    assert " ".join(sentences(look)) == sentence


def test_notes_on_reading_come_after_the_methods():
    """What was taken for what is said, but not before what was found; warnings stay with the findings."""
    study = analysis(si.SpectralPartialCredit(), si.Responses.from_wide(1 + ordered_answers(), ordered=True))
    assert "categories_shifted" in {note.code for note in study.responses.notes}
    data = ReportData.of(study, study.parts(writing=True))
    (listed,) = overview.reading(data).content
    assert any("lowest category is 1" in one["sentence"] for one in listed.findings)
    found = overview.findings(data)
    assert "said after the methods" in found.content[0].text
    sentences = [one["sentence"] for block in found.content if isinstance(block, FindingList) for one in block.findings]
    assert len(set(sentences)) == len(sentences)
    assert not any("lowest category" in sentence for sentence in sentences)
    names = [section.name for section in sections_of(data)]
    assert names.index("reading") == names.index("methods") + 1


def test_a_report_has_no_empty_section(lsat):
    """Of facets, where there are none, nothing is said; nor of notes on reading."""
    for section in sections_of(lsat):
        assert section.title
        assert section.name not in ("facets", "reading")
        for block in section.content:
            assert not any(line.startswith(":") for line in getattr(block, "lines", ()))


def ordered_answers():
    x = si.simulate.partial_credit(60, 4, categories=4, seed=8).responses.to_dense()
    x[:, 0] = np.minimum(x[:, 0], 2)
    x[0] = 3
    return x


def test_thresholds_that_the_prior_moved_are_named_beside_the_item():
    study = analysis(si.SpectralPartialCredit(), si.Responses.from_wide(ordered_answers(), ordered=True))
    made = study.calibration
    moved = np.abs(made.thresholds - made.without_prior)
    marks = prior_marks(made)
    for item in range(4):
        levels = [k + 1 for k in range(3) if not moved[3 * item + k] <= 0.1]
        alone = [k for k in levels if np.isnan(moved[3 * item + k - 1])]
        assert [int(k) for k in re.findall(r"\d", marks[item].split("(")[0])] == levels
        assert ("alone" in marks[item]) == bool(alone)
    assert "alone" in marks[0]
    table = next(one for one in item_table(ReportData.of(study, study.parts())).content if isinstance(one, DataTable))
    assert sorted(table.values["prior"].tolist()) == sorted(marks.tolist())


def test_mean_answers_are_in_the_codes_of_the_questionnaire():
    """Codes 1 to 4, or others, with gaps where nobody used a category; items.csv has what is counted from 0."""
    x = ordered_answers() + 1.0
    table = {f"q{k}": x[:, k].astype(int) for k in range(1, 4)}
    study = analysis(si.SpectralPartialCredit(), si.read(pl.DataFrame(table)))
    shown = next(one for one in item_table(ReportData.of(study, study.parts())).content if isinstance(one, DataTable))
    means = dict(zip(shown.values["item"].tolist(), shown.values["mean_score"].tolist(), strict=True))
    assert means == pytest.approx({f"q{k}": x[:, k].mean() for k in range(1, 4)})
    assert f"{x[:, 1].mean():.2f}" in study.summary(width=120)
    from_zero = study.calibration.item_columns()["mean_score"]
    np.testing.assert_allclose(from_zero, x[:, 1:].mean(axis=0) - 1)
    by_two = replace(study.calibration, codes=2.0 * study.calibration.codes)
    np.testing.assert_allclose(by_two.mean_in_codes(from_zero), 2 * x[:, 1:].mean(axis=0))
    joined = replace(study.calibration, codes_high=study.calibration.codes + 1)
    np.testing.assert_array_equal(joined.mean_in_codes(from_zero), from_zero)
    with_gap = x.copy()
    with_gap[:, 2] = np.where(x[:, 2] == 3, 4, x[:, 2])
    table["q2"] = with_gap[:, 2].astype(int)
    items = si.SpectralPartialCredit().fit(si.read(pl.DataFrame(table))).calibration_
    found = items.mean_in_codes(items.item_columns()["mean_score"])
    np.testing.assert_allclose(found, with_gap[:, 1:].mean(axis=0))


def test_the_class_of_dif_stands_beside_the_item():
    """The quiz has an item of class C by region; its status is as good as that of the others."""
    study = analysis(si.SpectralRasch(), si.datasets.load_quiz())
    parts = study.parts(groups={"region": study.responses.people["region"]})
    table = next(one for one in item_table(ReportData.of(study, parts)).content if isinstance(one, DataTable))
    found = study.dif("region")
    overall = found.items
    rows = zip(overall["item"].tolist(), overall["class"].tolist(), overall["flagged"].tolist(), strict=True)
    flagged = {item: letter for item, letter, sure in rows if sure}
    assert flagged
    marks = dict(zip(table.values["item"].tolist(), table.values["dif"].tolist(), strict=True))
    assert {item: mark for item, mark in marks.items() if mark} == {k: f"{v} (region)" for k, v in flagged.items()}


@pytest.mark.parametrize(
    ("reliability", "said"),
    [
        (0.9, "A reliability of 0.90 is enough for decisions about single persons (0.90 is usually asked for)."),
        (
            0.86,
            "A reliability of 0.86 is enough to compare groups (0.70 is usually asked for), not for decisions about "
            "single persons (0.90).",
        ),
        (
            0.5,
            "A reliability of 0.50 is too low for decisions about single persons, and low for comparing groups (0.70 "
            "is usually asked for).",
        ),
    ],
)
def test_what_a_reliability_is_enough_for(reliability, said):
    assert overview.good_enough(reliability) == said


def test_an_anchor_has_no_standard_error():
    """It is given, not estimated: an error of 0.000 would say that it is known exactly."""
    study = analysis(si.AnchoredRasch({"item1": -1.2, "item3": 1.2}), si.datasets.load_lsat())
    table = next(one for one in item_table(ReportData.of(study, study.parts())).content if isinstance(one, DataTable))
    anchored = np.isin(table.values["item"], ["item1", "item3"])
    np.testing.assert_array_equal(np.isnan(table.values["se"]), anchored)
    assert "0.000" not in study.summary()


def test_findings_on_groups_of_several_columns_name_the_column():
    """Both are coded 0 and 1."""
    study = analysis(si.SpectralRasch(), si.simulate.rasch(400, 8, seed=3).responses)
    labels = {"gender": np.tile([0, 1], 200), "major": np.repeat([0, 1], 200)}
    both = [one.sentence for one in study.findings(study.parts(fit=False, groups=labels))]
    assert all(any(one.startswith(f"{name}: No DIF seen") for one in both) for name in labels)
    alone = [one.sentence for one in study.findings(study.parts(fit=False, groups={"major": labels["major"]}))]
    assert any(one.startswith("No DIF seen") for one in alone)


def test_the_section_on_dif_says_which_differences_are_of_slopes():
    """As the finding does: of two items in class B one was counted there, and one not."""
    record = {
        "column": "major",
        "groups": {"0": 265, "1": 386},
        "reference": "0",
        "classes": {"A": 18, "B": 2, "C": 0},
        "items_compared": 20,
        "flagged": 0,
        "by_slope": 1,
        "p": 0.12,
    }
    said = "1 item differs as its slope predicts, which is not counted as DIF."
    assert fit_sections._comparison_in_words(record).endswith(said)
    assert said not in fit_sections._comparison_in_words({**record, "by_slope": 0})
