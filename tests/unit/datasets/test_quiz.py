"""The quiz that comes with the package is what its script draws."""

import importlib.util
from pathlib import Path

from spectral_irt import SpectralRasch, datasets
from spectral_irt.analysis.cache import columns_of

SCRIPT = Path(__file__).parents[3] / "scripts" / "simulate_quiz.py"


def test_the_script_draws_the_bundled_files_byte_for_byte():
    spec = importlib.util.spec_from_file_location("simulate_quiz", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
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
