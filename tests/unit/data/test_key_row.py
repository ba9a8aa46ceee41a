"""A row of the sheet that holds the answer key is the key, and no person."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError, ResponseValueError

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


def notes(responses: si.Responses) -> dict[str, str]:
    return {finding.code: finding.sentence for finding in responses.findings()}


def test_a_sheet_that_numbers_its_pupils_labels_them_by_name(tmp_path: Path) -> None:
    pupils = PUPILS.splitlines()
    rows = "".join(f"{k + 1},{line}\n" for k, line in enumerate(pupils))
    responses = si.read(_csv(tmp_path, "Nr," + HEAD + ",KEY,A,B,C\n" + rows))
    assert responses.persons.tolist() == ["ann", "bob", "cy", "dee"]
    assert responses.to_dense().tolist() == RIGHT
    assert not set(notes(responses)) & {"not_in_key", "unlike_columns", "attribute_columns"}
    two_anns = si.read(_csv(tmp_path, "Nr," + HEAD + ",KEY,A,B,C\n" + rows.replace("bob", "ann")))
    assert two_anns.persons.tolist() == [1, 2, 3, 4]
    numbers = si.read(_csv(tmp_path, "Nr,q1,q2\n1,1,0\n2,0,1\n3,1,1\n"))
    assert (numbers.items.tolist(), numbers.persons.tolist()) == (["q1", "q2"], [1, 2, 3])
    item = si.read(_csv(tmp_path, "no,yes\n1,0\n0,1\n1,1\n"))  # answers, whatever the name of the column
    assert item.n_items == 2


def test_two_rows_called_key(tmp_path: Path) -> None:
    agree = si.read(_csv(tmp_path, HEAD + "KEY,A,B,C\n" + PUPILS + "Solution,a,B,C\n"))
    assert agree.to_dense().tolist() == RIGHT
    assert "row 1, 'KEY' and row 6, 'Solution', hold the same answer key" in notes(agree)["key_row"]
    with pytest.raises(OptionError, match=r"row 1, 'KEY', .*q2: 'B' in the row, 'C' in row 6 \('Solution'\)\)\."):
        si.read(_csv(tmp_path, HEAD + "KEY,A,B,C\n" + PUPILS + "Solution,A,C,C\n"))


def test_rows_below_two_keys_keep_their_numbers(tmp_path: Path) -> None:
    text = HEAD + "KEY,A,B,C\n" + PUPILS.replace("dee,B,C,A", "dee,B,#REF!,A") + "Solution,A,B,C\n"
    with pytest.raises(ResponseValueError, match="row 5 holds"):
        si.read(_csv(tmp_path, text))


@pytest.mark.parametrize("given", [None, {"q1": "A", "q2": "B", "q3": "C"}])
def test_a_key_below_hundreds_of_rows(tmp_path: Path, given: dict[str, str] | None) -> None:
    many = "".join(f"p{k},{line[line.index(',') + 1 :]}\n" for k in range(60) for line in PUPILS.splitlines())
    rows = [line.replace(",", f"_{n},", 1) for n, line in enumerate(many.splitlines())]
    text = HEAD + "\n".join(rows) + "\nKey,A,B,C\n"
    responses = si.read(_csv(tmp_path, text), key=given)
    assert responses.n_persons == 240
    assert responses.to_dense().tolist() == RIGHT * 60
    assert "row 241, 'Key'" in notes(responses)["key_row"]


def test_a_person_called_key_among_zeros_and_ones_stays(tmp_path: Path) -> None:
    responses = si.read(_csv(tmp_path, "name,q1,q2,q3\nKey,1,0,1\nann,1,1,0\nbob,0,0,1\ncy,0,1,0\n"))
    assert responses.persons.tolist() == ["Key", "ann", "bob", "cy"]
    assert "row 1, 'Key', counts as a person" in notes(responses)["row_called_key"]


def test_a_first_row_that_equals_the_key_is_said(tmp_path: Path) -> None:
    items = [f"q{k}" for k in range(6)]
    key = dict(zip(items, "ABCABC", strict=True))
    rows = [["Richtige", *key.values()], ["ann", *"ABCABB"], ["bob", *"BBCABB"], ["cy", *"ABCCBA"]]
    text = "\n".join(",".join(row) for row in [["name", *items], *rows])
    assert (
        "'Richtige', has the answer of the key at every item"
        in notes(si.read(_csv(tmp_path, text), key=key))["first_row_like_key"]
    )
    best = text.replace("ann,A,B,C,A,B,B", "ann,A,B,C,A,B,C")  # two have everything right: persons
    assert "first_row_like_key" not in notes(si.read(_csv(tmp_path, best), key=key))
