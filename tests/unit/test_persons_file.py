"""Persons as files of SPSS and Stata: what is read back, and what is refused before any work."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt import persons_file
from spectral_irt.analysis.cache import columns_of
from spectral_irt.errors import OptionError, OutputError

pyreadstat = pytest.importorskip("pyreadstat")
KINDS = ["persons.sav", "persons.dta"]


def read_back(path):
    read = pyreadstat.read_sav if path.suffix == ".sav" else pyreadstat.read_dta
    return read(str(path), output_format="polars")


@pytest.fixture(scope="module")
def study():
    right = si.simulate.rasch(60, 6, seed=4).responses
    people = pl.DataFrame({"person": right.persons, "Home region": ["north", "south", "east"] * 20})
    responses = right.with_people(people)
    fit = si.SpectralRasch().fit(responses)
    return fit.analyse(responses, ability="ml")


@pytest.mark.parametrize("name", KINDS)
def test_persons_come_back_with_labels_and_codes(study, tmp_path, name):
    parts = study.parts(writing=True, described={"Home region": study.responses.people["Home region"]})
    assert study.write(tmp_path / name, parts) == [tmp_path / name]
    frame, about = read_back(tmp_path / name)
    columns = columns_of(study.persons)
    assert np.isinf(columns["ability"]).any()  # of extreme scores by maximum likelihood
    for column in ("score", "ability", "se", "infit", "outfit_z"):
        finite = np.where(np.isinf(columns[column]), np.nan, columns[column])  # no program holds infinite numbers
        np.testing.assert_allclose(frame[column].fill_null(np.nan), finite, equal_nan=True)
    assert frame["extreme"].to_list() == columns["extreme"].astype(int).tolist()
    assert frame["Home_region"].to_list() == [2, 3, 1] * 20
    assert about.column_names_to_labels["Home_region"] == "Home region"
    assert about.column_names_to_labels["se"] == "Standard error of the ability in logits"
    labels = about.variable_value_labels
    assert labels["Home_region"] == {1: "east", 2: "north", 3: "south"}
    assert labels["extreme"] == {0: "no", 1: "yes"}
    assert study.write(tmp_path / name) == [tmp_path / name]  # in the place of a file of ours


@pytest.mark.parametrize("name", KINDS)
def test_without_pyreadstat_and_in_the_place_of_anothers_file(study, tmp_path, monkeypatch, name):
    write = pyreadstat.write_sav if name.endswith("sav") else pyreadstat.write_dta
    write(pl.DataFrame({"x": [1.0]}), str(tmp_path / name), file_label="Survey of 2019")
    with pytest.raises(OutputError, match="no run of spectral-irt wrote it"):
        study.write(tmp_path / name)
    assert read_back(tmp_path / name)[0]["x"].to_list() == [1.0]
    monkeypatch.setattr(persons_file, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r"what writes files of (SPSS|Stata) is not installed: .*\[formats\]"):
        study.write(tmp_path / f"new_{name}")
    assert not (tmp_path / f"new_{name}").exists()


def test_what_a_file_of_persons_cannot_have(study, tmp_path):
    with pytest.raises(OptionError, match="persons, who were left out"):
        study.write(tmp_path / "a.sav", study.parts(persons=False))
    with pytest.raises(OptionError, match="is a file; name a folder"):
        study.write(tmp_path / "a.sav", parquet=True)


def test_large_numbers_long_names_and_many_texts(tmp_path):
    columns = {
        "person": np.array([2**60 + 1, 2**60 + 2, 3]),
        "a" * 40: np.array([1.0, np.nan, 2.0]),
        "A" * 40: np.array([1, 2, 3]),
    }
    path = tmp_path / "a.dta"
    persons_file.write_persons_file(path, path, columns)
    frame, _ = read_back(path)
    assert frame["person"].to_list() == [str(2**60 + 1), str(2**60 + 2), "3"]
    assert [len(name) for name in frame.columns] == [6, 32, 32]
    names = np.array([f"village {k}" for k in range(60)], dtype=object)
    persons_file.write_persons_file(path, path, {"person": np.arange(60), "village": names})
    assert read_back(path)[0]["village"].to_list() == names.tolist()
