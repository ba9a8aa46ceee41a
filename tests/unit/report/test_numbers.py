"""Every number of a report is that of fit.json and of the tables."""

import re

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.analysis.cache import columns_of
from spectral_irt.report import facets, fit, items, methods, overview, people
from spectral_irt.report.blocks import MOST, DataTable, ReportData, Table, Text
from spectral_irt.report.page import page_of, sections_of
from undrawn import without_pictures

NUMBER = re.compile(r"(?<![\w.,-])[-+]?\d[\d,]*(?:\.\d+)?%?(?![\w.]*\w)")
# Levels, limits, known names (KR-20) and usual demands on a reliability, not results.
SAID = {0.001, 0.01, 0.05, 0.7, 0.8, 0.9, 0.95, 5.0, 2.0, 20.0}


def simulated(people, items, seed, *, categories=2, missing=0.0):
    """Answers, people x items, of which a share is missing."""
    if categories > 2:
        data = si.simulate.partial_credit(people, items, categories=categories, seed=seed).responses.to_dense()
    else:
        data = si.simulate.rasch(people, items, seed=seed).responses.to_dense()
    data[np.random.default_rng(seed).random(data.shape) < missing] = np.nan
    return data


def with_a_harder_item(data):
    """For the first half of the people the first item is hard."""
    half = len(data) // 2
    data[:half, 0] = (np.random.default_rng(0).random(half) < 0.2).astype(float)
    return data


def with_extreme_people(data):
    data[:40], data[40:60] = data.max(), 0
    return data


def with_extreme_items(data):
    data[:, 0], data[:, 1] = 1, 0
    return data


def in_booklets(data):
    """Two forms that share a third of their items."""
    half, third = len(data) // 2, data.shape[1] // 3
    data[:half, -third:] = data[half:, :third] = np.nan
    return data


def noisy(data):
    """Coins among the answers to two items and of some people, and two items that are the same."""
    rng = np.random.default_rng(2)
    data[:, :2], data[:30] = rng.integers(2, size=(len(data), 2)), rng.integers(2, size=(30, data.shape[1]))
    data[:, 3] = data[:, 2]
    return data


def by_key():
    """Letters; the key of one item is wrong."""
    right, wrong = simulated(250, 8, 8), np.random.default_rng(8).choice(["B", "C", "D"], (250, 8))
    table = pl.DataFrame(np.where(right == 1, "A", wrong), schema=[f"q{k}" for k in range(8)])
    return si.Responses.from_wide(table, key={f"q{k}": "AB"[k == 3] for k in range(8)})


def rated():
    return si.datasets.load_writing().take_persons(np.arange(80))


RASCH, CREDIT = si.SpectralRasch(), si.SpectralPartialCredit()
ANCHORED = si.AnchoredRasch({0: -1.0, 1: 0.5, 2: 0.8})
WEIGHTS = {"weights": np.tile([1.0, 2.5, 0.5], 80)}
# Answers, what calibrates them, options of that, what becomes of the analysis, and how many groups are compared.
DATA = {
    "right and wrong": (lambda: simulated(300, 12, 1), RASCH, {}, lambda study: study, 2),
    "eight groups": (lambda: with_a_harder_item(simulated(1600, 8, 2)), RASCH, {}, lambda study: study, 8),
    "three groups": (lambda: with_a_harder_item(simulated(600, 9, 12)), RASCH, {}, lambda study: study, 3),
    "missing": (lambda: simulated(250, 15, 3, missing=0.3), RASCH, {}, lambda study: study.rescale(500, 100), 0),
    "booklets": (lambda: in_booklets(simulated(300, 12, 7)), RASCH, {}, lambda study: study, 2),
    "extreme people": (lambda: with_extreme_people(simulated(300, 6, 5)), RASCH, {}, lambda study: study, 0),
    "extreme items": (lambda: with_extreme_items(simulated(200, 9, 6)), RASCH, {}, lambda study: study, 0),
    "two items": (lambda: simulated(200, 2, 13), RASCH, {}, lambda study: study, 0),
    "few people": (lambda: simulated(12, 30, 14), RASCH, {}, lambda study: study, 0),
    "misfit": (lambda: noisy(simulated(400, 12, 15)), RASCH, {}, lambda study: study, 2),
    "key": (by_key, RASCH, {}, lambda study: study, 0),
    "anchors": (lambda: simulated(200, 8, 9), ANCHORED, {}, lambda study: study, 0),
    "weights": (lambda: simulated(240, 7, 10), RASCH, WEIGHTS, lambda study: study, 2),
    "clusters": (lambda: simulated(200, 7, 11), RASCH, {}, lambda study: study.clustered(np.arange(200) // 10), 0),
    "marginal": (lambda: simulated(250, 7, 16), si.MarginalRasch(), {}, lambda study: study, 0),
    "ordered": (lambda: simulated(300, 6, 4, categories=4), CREDIT, {}, lambda study: study, 2),
    "ordered, missing": (lambda: simulated(150, 8, 17, categories=5, missing=0.2), CREDIT, {}, lambda study: study, 3),
    "rating scale": (
        *(lambda: simulated(250, 6, 18, categories=3), si.SpectralRatingScale(), {}),
        *(lambda study: study.rescale(50, 10), 0),
    ),
    "ordered, extreme": (lambda: with_extreme_people(simulated(250, 5, 19, categories=4)), CREDIT, {}, lambda s: s, 0),
    "ratings": (rated, CREDIT, {}, lambda study: study, 2),
}


QUICK = {"right and wrong", "missing", "key", "ordered", "ratings"}


@pytest.fixture(
    scope="module", params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DATA]
)
def data(request):
    answers, estimator, options, then, groups = DATA[request.param]
    made = answers()
    study = then(estimator.fit(made, **options).analyse(made))
    labels = [f"g{k}" for k in np.arange(study.responses.n_persons) * groups // study.responses.n_persons]
    named = {"group": labels} if groups else {}
    parts = study.parts(writing=True, groups=named, described=named)
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


@pytest.mark.slow
def test_texts_and_small_tables_say_what_the_record_says(data):
    known = np.array([*numbers_of(dict(data.record)), *SAID])
    counts, reliability = data.record["counts"], data.record["reliability"]
    known = np.append(known, [reliability["n_lowest"] + reliability["n_highest"]])
    fitted = data.record.get("item_fit") or {}
    known = np.append(known, [fitted.get("underfit", 0) + fitted.get("overfit", 0)])
    persons = (data.record["fit_checks"] or {}).get("erratic_people") or {}
    if persons:
        known = np.append(known, [persons["share"] * persons["n_people"], persons["chance"] * persons["n_people"]])
    if not data.study.facets and data.record["fit_checks"]["shared"]:
        shared = data.study.dimensionality()
        parts = shared.contrasts.variance_columns
        known = np.append(known, [parts["eigenvalue"], parts["percent"] / 100])
        pairs = shared.dependence.columns
        known = np.concatenate([known, *(pairs[name] for name in ("q3", "q3_above_mean", "p_adjusted"))])
        loadings = [values for name, values in shared.contrasts.loading_columns.items() if name != "item"]
        known = np.concatenate([known, *loadings])
    cells = counts["persons"] * counts.get("combinations", counts["items"])
    texts = []
    made = [overview.findings, overview.summary, methods.methods]
    if not data.study.facets:
        made += [fit.fit, *([fit.differential] if data.parts.groups else [])]
        made += [fit.dimensions] if data.record["fit_checks"]["shared"] else []
    for section in made:
        for block in section(data).content:
            if isinstance(block, Text):
                texts.append(block.text)
            elif isinstance(block, Table) and "tables of this" not in block.caption:
                labels = 2 if block.caption.startswith("Pairs") else 1
                rows = [row for row in block.rows if not row[0].startswith(("Program", "Fingerprint"))]
                texts += [" | ".join(row[labels:]) for row in rows]
    texts.append(methods.paragraph(data.record)[0][0])
    for text in texts:
        for found in NUMBER.findall(re.sub(r"\(\D*\d{4}(?:, \d{4})*\)|\d{4}; |spectral-irt \S+|χ²", "", text)):
            value, digits = float(found.rstrip("%").replace(",", "")), len(found.rstrip("%").partition(".")[2])
            scale = 100 if found.endswith("%") else 1
            near = np.abs(scale * known - value) <= 0.5 * 10.0**-digits + 1e-9
            share = found.endswith("%") and abs(100 * counts["responses"] / cells - value) < 0.05
            right = counts["right"] and abs(100 * counts["right"] / counts["responses"] - value) < 0.05
            assert near.any() or share or right, (found, text)


def forms_side_by_side(scores):
    """The numbers of scores.csv with a row for each score, and columns for each form."""
    forms = list(dict.fromkeys(scores["form"].tolist()))
    beside = {"score": np.arange(int(scores["score"].max()) + 1)}
    for name, values in scores.items():
        for k, form in enumerate(forms):
            column = beside[f"{name}_{k + 1}"] = np.full(len(beside["score"]), np.nan)
            if values.dtype.kind == "f":
                for score, value, one in zip(scores["score"], values, scores["form"], strict=True):
                    if one == form:
                        column[score] = value
    return beside


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
        elif name == "item_categories":
            theirs = columns_of(data.study.category_use, "item")
        elif not theirs:  # scores on all items, where nobody answered the same
            continue
        elif name == "scores" and {"ability_1", "measure_1"} & set(table.values):
            theirs = forms_side_by_side(theirs)
        rows = np.arange(table.n_rows)
        if name == "items" or name in data.study.facets:  # from the hardest, or the most severe, down
            by = "difficulty" if name == "items" else "severity"
            rows = np.argsort(-np.nan_to_num(theirs[by], nan=-np.inf), kind="stable")
        if name in ("dif", "dif_thresholds"):
            rows = np.argsort(-np.abs(np.nan_to_num(theirs["contrast"])), kind="stable")
        for column in table.data()["columns"]:
            if name == "items" and column["name"] in ("dif", "prior"):  # words of the report alone
                continue
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
    said, weights = {row[0]: row[1] for row in table.rows}, data.study.weights
    mean = np.nanmean(ability) if weights is None else np.average(ability, weights=weights)
    assert said["mean"] == f"{data.record['persons']['mean']:z.2f}" == f"{mean:z.2f}"
    median = said.get("half are below (median)")
    assert median is None if weights is not None else float(median) == pytest.approx(np.nanmedian(ability), abs=0.005)
    counted = [block.text for block in section.content if isinstance(block, Text)]
    assert counted[0].startswith(f"{data.record['persons']['with_ability']:,} p")
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
        compared = set(data.tables["dif"]["item"].tolist())  # those that two groups answered
        assert sum(classes.values()) == one["items_compared"] == len(compared)


@pytest.mark.slow
def test_a_title_an_author_and_a_date(data, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    page = page_of(data.study, data.parts, title="Spring & fall", author="A. <b>")
    assert "<title>Spring &amp; fall</title>" in page
    assert '<p class="byline">A. &lt;b&gt;, 2 January 1970</p>' in page
