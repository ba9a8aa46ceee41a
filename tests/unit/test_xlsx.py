"""Tables as a workbook: the numbers and texts of the CSV files, nothing computed, nothing left behind."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spectral_irt import xlsx
from spectral_irt.errors import OutputError
from spectral_irt.reading import read
from spectral_irt.xlsx import refuse_foreign, write_table, write_workbook

TABLE = {
    "item": np.array(["=1+1", "+q", "-q", "@q", "'x", "007", "http://example.org"], dtype=object),
    "difficulty": np.array([1 / 3, -1e-300, np.nan, np.inf, 2.5, 0.0, 1e15]),
    "n": np.array([1, 2, 3, 10**15 - 1, 2**53 + 1, -(10**15), 0]),
    "ok": np.array([True, False] * 3 + [True]),
}


def sheets(path):
    book = openpyxl.load_workbook(path)
    return {sheet.title: [[cell.value for cell in row] for row in sheet.iter_rows()] for sheet in book}


def test_what_comes_back(tmp_path):
    assert write_workbook(tmp_path / "a.xlsx", {"items": TABLE}) == {}
    header, *rows = sheets(tmp_path / "a.xlsx")["items"]
    assert header == list(TABLE)
    labels, numbers, counts, truths = (list(column) for column in zip(*rows, strict=True))
    assert labels == TABLE["item"].tolist()
    assert numbers[2:4] == [None, "inf"]
    found = np.array([numbers[k] for k in (0, 1, 4, 5, 6)], dtype=float)
    np.testing.assert_allclose(found, TABLE["difficulty"][[0, 1, 4, 5, 6]], rtol=1e-15)
    assert counts == [1, 2, 3, 10**15 - 1, str(2**53 + 1), str(-(10**15)), 0]
    assert truths == TABLE["ok"].tolist()


def test_no_cell_is_a_formula_or_a_link(tmp_path):
    write_workbook(tmp_path / "a.xlsx", {"items": TABLE}, {"program": "=1+1", "findings": [{"sentence": "=cmd|x"}]})
    cells = [cell for sheet in openpyxl.load_workbook(tmp_path / "a.xlsx") for row in sheet.iter_rows() for cell in row]
    assert all(cell.data_type != "f" and cell.hyperlink is None for cell in cells)


def test_the_record(tmp_path):
    record = {
        "program": "spectral-irt",
        "counts": {"items": 5},
        "input": {"files": ["a.csv", "b.csv"]},
        "dif": [{"p": 0.5}],
        "x": None,
        "flag": True,
        "findings": [{"code": "c", "severity": "note", "sentence": "S.", "remedy": "", "n_items": 2, "items": ["a"]}],
    }
    write_workbook(tmp_path / "a.xlsx", {"items": TABLE}, record)
    found = sheets(tmp_path / "a.xlsx")
    assert list(found) == ["items", "findings", "about"]
    assert found["findings"][1][:2] == ["note", "S."]
    about = dict(map(tuple, found["about"][1:]))
    assert (
        about.items()
        >= {"counts.items": 5, "input.files": "a.csv, b.csv", "dif.1.p": 0.5, "x": None, "flag": True}.items()
    )


def test_a_table_longer_than_a_sheet(tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx, "MOST_ROWS", 3)
    short = {"a": np.arange(3)}
    left_out = write_workbook(tmp_path / "a.xlsx", {"items": short, "persons": TABLE}, {"findings": []})
    assert left_out == {"persons": 7}
    found = sheets(tmp_path / "a.xlsx")
    assert list(found) == ["items", "about"]
    assert ["left_out.persons", "7 rows, more than a sheet has"] in found["about"]
    with pytest.raises(OutputError, match=r"would have 7 rows.*\.csv"):
        write_table(tmp_path / "draft", Path("b.xlsx"), "persons", TABLE)


def test_the_longest_text(tmp_path):
    for text in ("x" * 32_767, "😀" * 16_383):
        write_workbook(tmp_path / "a.xlsx", {"t": {"item": np.array([text], dtype=object)}})
        assert sheets(tmp_path / "a.xlsx")["t"][1] == [text]
    with pytest.raises(OutputError, match="a text of 32,768 characters"):
        write_workbook(tmp_path / "b.xlsx", {"t": {"item": np.array(["x" * 32_768], dtype=object)}})


def test_a_workbook_of_somebody_else_is_kept(tmp_path):
    refuse_foreign(tmp_path / "a.xlsx")
    write_workbook(tmp_path / "a.xlsx", {"items": TABLE})
    refuse_foreign(tmp_path / "a.xlsx")
    openpyxl.Workbook().save(tmp_path / "b.xlsx")
    (tmp_path / "c.xlsx").write_text("not a workbook")
    for name in ("b.xlsx", "c.xlsx"):
        with pytest.raises(OutputError, match="no run of spectral-irt wrote it"):
            refuse_foreign(tmp_path / name)


# A letter is put after each, so that none is blank, a number or NA; what it begins with is as drawn.
LABEL = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(
    lambda text: text.strip() and text.strip() not in ("NA", "NaN", "nan", "null")
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@example(["=1+1", "+x", "-x", "@x", " x", "'x"], ["=q", "00"])
@example(["_x0041_", "_x"], ["\x01", "\t", "a\nb"])
@given(st.lists(LABEL, min_size=2, max_size=5, unique=True), st.lists(LABEL, min_size=2, max_size=4, unique=True))
def test_labels_come_back_from_a_workbook(people, items):
    people, items = [f"{person}p" for person in people], [f"{item}i" for item in items]
    rows = list(itertools.product(people, items))
    columns = {name: np.array([row[k] for row in rows], dtype=object) for k, name in enumerate(("person", "item"))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.xlsx")
        write_workbook(path, {"answers": {**columns, "response": np.arange(len(rows)) % 2}})
        found = read(path)
    assert found.persons.tolist() == sorted(people)
    assert found.items.tolist() == sorted(items)
