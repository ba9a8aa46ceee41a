"""A row of the sheet that holds the answer key is the key, and no person."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError

HEAD = "name,q1,q2,q3\n"
PUPILS = "ann,A,B,C\nbob,A,C,C\ncy,B,B,A\ndee,B,C,A\n"
RIGHT = [[1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0]]


def _csv(folder: Path, text: str) -> Path:
    file = folder / "class.csv"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("label", ["KEY", "Answer key", "Lösung", "clave"])
@pytest.mark.parametrize("last", [False, True])
def test_a_row_called_key_scores_the_others(tmp_path: Path, label: str, last: bool) -> None:
    row = f"{label},A,B,C\n"
    responses = si.read(_csv(tmp_path, HEAD + (PUPILS + row if last else row + PUPILS)))
    assert responses.persons.tolist() == ["ann", "bob", "cy", "dee"]
    assert responses.to_dense().tolist() == RIGHT
    note = next(finding for finding in responses.findings() if finding.code == "key_row")
    assert f"row {5 if last else 1}, {label!r}" in note.sentence


def test_a_row_called_key_in_a_dataframe_and_its_index() -> None:
    frame = pl.DataFrame({"name": ["Key", "ann", "bob"], "q1": ["A", "A", "B"], "q2": ["B", "B", "C"]})
    assert si.read(frame).to_dense().tolist() == [[1, 1], [0, 0]]
    pandas = pytest.importorskip("pandas")
    indexed = pandas.DataFrame(frame.to_dict(as_series=False)).set_index("name")
    assert si.read(indexed).persons.tolist() == ["ann", "bob"]


def test_a_key_beside_the_row_must_say_the_same(tmp_path: Path) -> None:
    file = _csv(tmp_path, HEAD + "KEY,A,B,C\n" + PUPILS)
    responses = si.read(file, key={"q1": "A", "q2": "B", "q3": "C"})
    assert responses.to_dense().tolist() == RIGHT
    with pytest.raises(OptionError, match="q2: 'B' in the row, 'C' in `key=`"):
        si.read(file, key={"q1": "A", "q2": "C", "q3": "C"})


def test_a_person_who_is_no_key_stays(tmp_path: Path) -> None:
    """Answers in words, a row that answers too little, and ratings that were said to be ordered."""
    words = si.read(_csv(tmp_path, "q1,q2\ncorrect,wrong\nwrong,correct\ncorrect,correct\n"), correct="correct")
    assert words.n_persons == 3
    ratings = si.read(_csv(tmp_path, "name,q1,q2\nkey,2,1\nann,1,2\nbob,0,0\n"), ordered=True)
    assert ratings.n_persons == 3
