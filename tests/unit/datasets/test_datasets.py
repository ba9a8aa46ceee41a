"""The bundled tables: LSAT 6 is the published one, the quiz what its script draws, and its faults are found."""

import importlib.util
import re
import tomllib
from pathlib import Path

import numpy as np

from spectral_irt import SpectralPartialCredit, SpectralRasch, datasets, read
from spectral_irt.analysis.cache import columns_of

TESTS = Path(__file__).parents[2]


def test_lsat():
    """Right answers per item and frequencies of the raw scores 0 to 5, as printed wherever the data are discussed."""
    lsat = datasets.load_lsat()
    expected = np.loadtxt(TESTS / "reference" / "lsat6.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(lsat.to_dense(), expected)
    assert lsat.items.tolist() == ["item1", "item2", "item3", "item4", "item5"]
    assert lsat.persons.tolist() == list(range(1, 1001))
    assert "LSAT" in lsat.source
    assert lsat.item_scores.tolist() == [924, 709, 553, 763, 870]
    assert np.bincount(lsat.scores).tolist() == [3, 20, 85, 237, 357, 298]


def script_called(name):
    spec = importlib.util.spec_from_file_location(name, TESTS.parent / "scripts" / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_script_draws_the_questionnaire():
    lines = datasets.survey_file().read_text(encoding="ascii").splitlines()
    assert [line.split(",") for line in lines] == script_called("simulate_survey").rows()


def test_the_faults_of_the_questionnaire_are_found():
    words = ["never", "rarely", "sometimes", "often", "always"]
    how = {"recode": words, "people": "sex", "ordered": True}
    as_worded = read(datasets.survey_file(), **how)
    found = {one.code: one.items for one in SpectralPartialCredit().fit(as_worded).analyse(as_worded).findings()}
    assert found["reversed_items"] == ("q4",)
    turned = read(datasets.survey_file(), reverse=["q4"], **how)
    dif = SpectralPartialCredit().fit(turned).analyse(turned).dif("sex")
    assert {one.code: one.items for one in dif.findings}["differential_items"] == ("q7",)


def test_the_script_draws_the_quiz_byte_for_byte():
    script = script_called("simulate_quiz")
    for path, text in zip(datasets.quiz_files(), script.simulate(), strict=True):
        assert path.read_bytes() == text.encode("ascii")
        assert path.stat().st_size < 150_000


def test_it_holds_what_it_says():
    responses = datasets.load_quiz()
    assert (responses.n_persons, responses.n_items) == (800, 30)
    header, *rows = (line.split(",") for line in datasets.quiz_files()[0].read_text().splitlines())
    assert header[:3] == ["person", "region", "booklet"]
    assert {row[1] for row in rows} == {"coast", "inland"}
    (first,), (second,) = ({tuple(cell != "" for cell in row[3:]) for row in rows if row[2] == one} for one in "12")
    assert (sum(first), sum(second), sum(a and b for a, b in zip(first, second, strict=True))) == (20, 20, 10)
    omitted = sum(row.count("9") for row in rows)
    assert 200 < omitted < 600
    assert responses.n_responses == 800 * 20 - omitted
    assert {cell for row in rows for cell in row[3:]} == {"", "9", *"ABCD"}


def test_its_faults_are_found_and_nothing_else():
    responses = datasets.load_quiz()
    study = SpectralRasch().fit(responses).analyse(responses)
    fit = columns_of(study.item_fit)
    assert [str(item) for item, misfit in zip(fit["item"], fit["misfit"], strict=True) if misfit] == ["density"]
    assert fit["point_measure"][fit["item"] == "density"][0] < -0.05
    region = dict(line.split(",")[:2] for line in datasets.quiz_files()[0].read_text().splitlines()[1:])
    found = {finding.code: finding.items for finding in study.dif(region).findings}
    assert found["differential_items"] == ("tides",)


def test_the_groups_of_the_readme_are_columns_of_the_quiz():
    readme = (TESTS.parent / "README.md").read_text(encoding="utf-8")
    columns = re.findall(r'study\.dif\("(\w+)"\)', readme)
    assert columns
    assert set(columns) <= set(datasets.load_quiz().people)


def test_the_container_installs_extras_that_there_are():
    extras = re.search(r'"\.\[([\w,]+)\]"', (TESTS.parent / "Dockerfile").read_text(encoding="utf-8"))[1].split(",")
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras) <= set(project["optional-dependencies"])
