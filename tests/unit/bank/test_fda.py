"""Items and scores for a dossier, from a folder of results."""

import csv

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.bank.fda import ITEMS, SCORES, fda_tables
from spectral_irt.errors import OptionError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    data = si.simulate.partial_credit(80, thresholds=[[b - 0.5, b + 0.5] for b in (-1, 0, 1)], seed=3).responses
    texts = {item: f"Question {item}, with a comma" for item in data.items}
    responses = data.with_item_texts(texts)
    study = si.SpectralPartialCredit().fit(responses).analyse(responses).rescale(50, 10)
    folder = tmp_path_factory.mktemp("fda") / "results"
    study.write(folder)
    return folder


def test_rows_are_those_of_the_results(folder):
    tables = fda_tables(folder)
    items, scores = tables[ITEMS], tables[SCORES]
    with (folder / "thresholds.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert items["item"].tolist() == [row["item"] for row in rows]
    assert items["category"].tolist() == [row["category"] for row in rows]
    np.testing.assert_allclose(items["threshold"], [float(row["threshold"]) for row in rows])
    assert items["text"][0] == f"Question {rows[0]['item']}, with a comma"
    assert set(items["model"]) == {"pcm"}
    assert items["digest"][0].startswith("sha256:") or len(items["digest"][0]) > 10
    with (folder / "persons.csv").open() as file:
        persons = list(csv.DictReader(file))
    assert scores["person"].tolist() == [row["person"] for row in persons]
    np.testing.assert_allclose(scores["measure"], [float(row["measure"]) for row in persons])
    assert "nothing is imputed" in scores["missing_data_rule"][0]


def test_a_bank_is_refused(tmp_path):
    data = si.simulate.rasch(60, 5, seed=1).responses
    si.SpectralRasch().fit(data).analyse(data).to_bank().save(tmp_path / "bank")
    with pytest.raises(OptionError, match="not the results of a fit"):
        fda_tables(tmp_path / "bank")


def test_a_fit_without_persons_is_refused(tmp_path):
    data = si.simulate.rasch(60, 5, seed=1).responses
    study = si.SpectralRasch().fit(data).analyse(data)
    study.write(tmp_path / "out", study.parts(persons=False, writing=True))
    with pytest.raises(OptionError, match=r"no persons\.csv"):
        fda_tables(tmp_path / "out")
