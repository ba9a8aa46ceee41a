"""Files of SPSS and Stata: codes, not their labels; what they declare missing is missing."""

import sys

import pandas as pd
import pytest

from spectral_irt.errors import ReadError, ResponseValueError
from spectral_irt.reading import read

pyreadstat = pytest.importorskip("pyreadstat")

TABLE = pd.DataFrame({"id": ["ann  ", "bob", "eve"], "q1": [1.0, 0.0, 9.0], "q2": [0.0, None, 1.0]})


def test_spss_with_labels_and_missing_values(tmp_path):
    pyreadstat.write_sav(
        TABLE,
        str(tmp_path / "a.sav"),
        variable_value_labels={"q1": {1: "right", 0: "wrong"}},
        column_labels={"q1": "What is the capital of Peru?"},
        missing_ranges={"q1": [9]},
    )
    found = read(tmp_path / "a.sav")
    assert found.persons.tolist() == ["ann", "bob", "eve"]
    assert found.items.tolist() == ["q1", "q2"]
    assert found.item_counts.tolist() == [2, 2]
    assert found.item_scores.tolist() == [1, 1]


def test_a_code_that_is_not_declared_missing_is_odd(tmp_path):
    pyreadstat.write_sav(TABLE, str(tmp_path / "a.sav"))
    with pytest.raises(ResponseValueError, match=r"a\.sav: column 'q1', row 3 holds 9"):
        read(tmp_path / "a.sav")
    assert read(tmp_path / "a.sav", missing=9).n_responses == 4


def test_multiple_choice_by_a_key_of_codes_and_texts(tmp_path):
    table = pd.DataFrame({"id": [1.0, 2.0], "q1": ["A ", "B"], "q2": [3.0, 4.0]})
    pyreadstat.write_sav(table, str(tmp_path / "a.sav"))
    found = read(tmp_path / "a.sav", key={"q1": "A", "q2": 4})
    assert found.persons.tolist() == [1, 2]
    assert found.item_scores.tolist() == [1, 1]


def test_stata(tmp_path):
    pyreadstat.write_dta(TABLE.fillna({"id": ""}), str(tmp_path / "a.dta"))
    found = read(tmp_path / "a.dta", missing=9)
    assert found.persons.tolist() == ["ann", "bob", "eve"]
    assert found.item_counts.tolist() == [2, 2]


def test_long_tables_and_accents(tmp_path):
    table = pd.DataFrame({"student": ["Zoë", "Zoë", "José"], "item": [1.0, 2.0, 1.0], "correct": [1.0, 0.0, 1.0]})
    pyreadstat.write_sav(table, str(tmp_path / "a.sav"))
    found = read(tmp_path / "a.sav")
    assert found.persons.tolist() == ["José", "Zoë"]
    assert found.items.tolist() == [1, 2]


def test_damaged_files(tmp_path):
    pyreadstat.write_sav(TABLE, str(tmp_path / "a.sav"))
    data = (tmp_path / "a.sav").read_bytes()
    for name, content in {
        "cut.sav": data[: len(data) // 2],
        "short.sav": b"$FL2",
        "text.sav": b"id,q1\n",
        "text.dta": b"id,q1\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ReadError, match=f"^{name} cannot be read"):
            read(tmp_path / name)


def test_what_to_install(tmp_path, monkeypatch):
    pyreadstat.write_sav(TABLE, str(tmp_path / "a.sav"))
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(ReadError, match=r'a.sav: what reads files of SPSS.*pip install "spectral-irt\[formats\]"'):
        read(tmp_path / "a.sav")


def test_a_variable_whose_name_is_damaged(tmp_path):
    path = tmp_path / "a.sav"
    pyreadstat.write_sav(pd.DataFrame({"q0": [1, 0, 1], "q1": [0, 1, 1]}), str(path))
    whole = path.read_bytes()
    for value in (0, 128, 255):
        path.write_bytes(whole.replace(b"Q0  ", bytes([value]) + b"0  ", 1))
        with pytest.raises(ReadError, match="damaged or cut short"):
            read(path)
