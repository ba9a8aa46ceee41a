"""Tables written in pieces are the same bytes as tables written at once."""

import csv

import numpy as np
import pytest

from spectral_irt import tables


def labels(*cells):
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


NUMBERS = np.array([1.5, np.nan, -2e-9, 4.0, 5.0])
CASES = {
    "labels that a spreadsheet would run": {"person": labels("a", "b", "=c", "d", "+e"), "x": NUMBERS},
    "labels that it would split": {"person": labels("a", "b", "c", "d;e", "f"), "x": NUMBERS},
    "labels of two kinds": {"person": labels(1, 2, 3, "x", "y"), "x": NUMBERS},
    "numbers alone": {"k": np.arange(5), "x": NUMBERS, "yes": NUMBERS > 2},
    "no rows": {"person": labels(), "x": NUMBERS[:0]},
}


@pytest.mark.parametrize("case", CASES)
def test_in_pieces(case, tmp_path, monkeypatch):
    whole, pieces = tmp_path / "whole.csv", tmp_path / "pieces.csv"
    tables.write_csv(whole, CASES[case])
    monkeypatch.setattr(tables, "PIECE", 2)
    tables.write_csv(pieces, CASES[case])
    assert whole.read_bytes() == pieces.read_bytes()
    assert whole.read_text().count("\n") == 1 + len(CASES[case]["x"])


def test_nothing_is_nothing_beside_text_and_labels_of_mixed_kinds_are_text():
    columns = {"a": np.array(["x", None], dtype=object), "b": np.array([1, 2.5], dtype=object)}
    for made in (tables.frame_of(columns), tables.make_table(columns, None)):
        assert made.to_dict(as_series=False) == {"a": ["x", None], "b": ["1", "2.5"]}


def test_names_of_columns_are_guarded_as_cells_are(tmp_path):
    names = ["=rater", "+1+1", "'=x", "-q", "plain", "-1", "@x"]
    columns = {name: np.array(["=1+1", "b"], dtype=object) for name in names}
    tables.write_csv(tmp_path / "a.csv", columns)
    with (tmp_path / "a.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=rater", "'+1+1", "''=x", "'-q", "plain", "-1", "'@x"]
    assert [tables.cell_text(name) for name in header] == names
    assert rows[0] == ["'=1+1"] * len(names)
