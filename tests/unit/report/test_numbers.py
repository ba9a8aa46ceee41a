"""Every number of a report is that of fit.json and of the tables."""

import re

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.report import facets, fit, items, methods, overview, people
from spectral_irt.report.blocks import MOST, DataTable, ReportData, Table, Text
from spectral_irt.report.page import page_of, sections_of
from undrawn import without_pictures

NUMBER = re.compile(r"(?<![\w.,-])[-+]?\d[\d,]*(?:\.\d+)?%?(?![\w.]*\w)")
SAID = {0.01, 0.05, 0.8, 0.95, 5.0, 2.0, 20.0}  # levels, limits and known names (KR-20), not results


def right_and_wrong():
    return si.SpectralRasch(), si.simulate.rasch(300, 12, seed=1).responses, {"sex": ["f", "m"] * 150}


def eight_groups():
    data = si.simulate.rasch(800, 8, seed=2).responses.to_dense()
    data[:400, 0] = (np.random.default_rng(0).random(400) < 0.2).astype(float)
    return si.SpectralRasch(), data, {"school": [f"s{k // 100}" for k in range(800)]}


def with_missing_answers():
    data = si.simulate.rasch(250, 15, seed=3).responses.to_dense()
    data[np.random.default_rng(1).random(data.shape) < 0.3] = np.nan
    return si.SpectralRasch(), data, {}


def ordered():
    answers = si.simulate.partial_credit(300, 6, categories=4, seed=4).responses
    return si.SpectralPartialCredit(), answers, {"sex": ["f", "m"] * 150}


def ratings():
    answers = si.datasets.load_writing().take_persons(np.arange(80))
    return si.SpectralPartialCredit(), answers, {"half": ["a", "b"] * 40}


@pytest.fixture(scope="module", params=[right_and_wrong, eight_groups, with_missing_answers, ordered, ratings])
def data(request):
    estimator, answers, groups = request.param()
    study = estimator.fit(answers).analyse(answers)
    study = study if groups else study.rescale(500, 100)
    parts = study.parts(writing=True, groups=groups, described=groups)
    with pytest.MonkeyPatch.context() as patch:
        without_pictures(patch)
        yield ReportData.of(study, parts, list_persons=True)


def numbers_of(value):
    """All numbers of a record, and those in its texts."""
    if isinstance(value, dict):
        value = [*value.values(), len(value)]
    if isinstance(value, list):
        for one in value:
            yield from numbers_of(one)
    elif isinstance(value, str):
        yield from (float(text.rstrip("%").replace(",", "")) for text in NUMBER.findall(value))
    elif value is not None:
        yield float(value)


def test_texts_and_small_tables_say_what_the_record_says(data):
    known = np.array([*numbers_of(dict(data.record)), *SAID])
    counts, reliability = data.record["counts"], data.record["reliability"]
    known = np.append(known, [reliability["n_lowest"] + reliability["n_highest"]])
    fitted = data.record.get("item_fit") or {}
    known = np.append(known, [fitted.get("underfit", 0) + fitted.get("overfit", 0)])
    cells = counts["persons"] * counts.get("combinations", counts["items"])
    texts = []
    made = [overview.findings, overview.summary, methods.methods]
    if not data.study.facets:
        made += [fit.fit, fit.dimensions, *([fit.differential] if data.parts.groups else [])]
    for section in made:
        for block in section(data).content:
            if isinstance(block, Text):
                texts.append(block.text)
            elif isinstance(block, Table) and "tables of this" not in block.caption:
                texts += [
                    " | ".join(row[1:]) for row in block.rows if not row[0].startswith(("Program", "Fingerprint"))
                ]
    texts.append(methods.paragraph(data.record)[0][0])
    for text in texts:
        for found in NUMBER.findall(re.sub(r"\(\D*\d{4}(?:, \d{4})*\)|\d{4}; |spectral-irt \S+|χ²", "", text)):
            value, digits = float(found.rstrip("%").replace(",", "")), len(found.rstrip("%").partition(".")[2])
            scale = 100 if found.endswith("%") else 1
            near = np.abs(scale * known - value) <= 0.5 * 10.0**-digits + 1e-9
            share = found.endswith("%") and abs(100 * counts["responses"] / cells - value) < 0.05
            right = counts["right"] and abs(100 * counts["right"] / counts["responses"] - value) < 0.05
            assert near.any() or share or right, (found, text)


def test_large_tables_are_the_tables_of_the_files(data):
    shown = {one.name: one for part in sections_of(data) for one in part.content if isinstance(one, DataTable)}
    assert {"items", "persons"} <= set(shown)
    for name, table in shown.items():
        theirs = {**data.tables.get(name, {})}
        if name == "items":
            for more in ("item_fit", "item_analysis"):
                theirs = {**data.tables.get(more, {}), **theirs}
        elif name == "categories":
            theirs = {**items.category_values(data)}
        elif not theirs:  # scores on all items, where nobody answered the same
            continue
        rows = np.arange(table.n_rows)
        if name == "items" or name in data.study.facets:  # from the hardest, or the most severe, down
            by = "difficulty" if name == "items" else "severity"
            rows = np.argsort(-np.nan_to_num(theirs[by], nan=-np.inf), kind="stable")
        for column in table.data()["columns"]:
            mine, other = column["values"], theirs[column["name"]][rows][:MOST].tolist()
            if "digits" in column:
                some = [(a, b) for a, b in zip(mine, other, strict=True) if not isinstance(a, str) and a is not None]
                assert np.allclose(*zip(*some, strict=True), atol=0.5 * 10 ** -column["digits"]) if some else True
            else:
                assert mine == [str(value) for value in other], (name, column["name"])


def test_people_groups_and_facets(data):
    section = people.people(data)
    table = next(block for block in section.content if isinstance(block, Table))
    ability = data.tables["persons"]["ability"]
    said = {row[0]: row[1] for row in table.rows}
    assert said["mean"] == f"{data.record['persons']['mean']:z.2f}" == f"{np.nanmean(ability):z.2f}"
    assert float(said["half are below (median)"]) == pytest.approx(np.median(ability[np.isfinite(ability)]), abs=0.005)
    if data.parts.groups:
        means = data.tables["groups"]
        rows = people.groups_and_classes(data).content[0].rows
        assert [float(row[2]) for row in rows] == pytest.approx(means["mean"].tolist(), abs=0.005)
    for name, one in (data.record["facets"] or {}).items():
        text = facets.facets(data).content[0].text
        assert f"{one['levels']} {name}s" in text
        assert f"reliability {one['reliability']:.2f}, separation {one['separation']:.2f}" in text
        assert f"exact agreement {one['agreement']:.0%}, expected {one['expected']:.0%}" in text
        sure = int((data.tables[f"{name}_interactions"]["p_holm"] < 0.05).sum())
        assert any(getattr(one, "text", "").startswith(f"{sure} of ") for one in facets.facets(data).content)


def test_classes_of_eight_groups_are_those_of_the_record(data):
    for one in fit.groupings(data.record):
        text = next(block.text for block in fit.differential(data).content if block.text.startswith("By "))
        classes = one["classes"]
        assert f"{classes['B']} in class B and {classes['C']} in class C" in text
        assert sum(classes.values()) == one["items_compared"] == len(data.tables["items"]["item"])


@pytest.mark.slow
def test_a_title_an_author_and_a_date(data, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    page = page_of(data.study, data.parts, title="Spring & fall", author="A. <b>")
    assert "<title>Spring &amp; fall</title>" in page
    assert '<p class="byline">A. &lt;b&gt;, 2 January 1970</p>' in page
