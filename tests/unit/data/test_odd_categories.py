"""What is not a category is named with its file, row, column and value; nothing is lost or guessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import read
from spectral_irt.data import Responses, value_check
from spectral_irt.errors import ResponseValueError, for_shell

WIDE = "who,q1,q2\nann,2,0\nbob,0,{}\ncy,1,1\ndee,2,1\n"
LONG = "person,item,response\nann,q1,2\nann,q2,0\nbob,q1,1\nbob,q2,{}\ncy,q1,0\ncy,q2,1\n"


@pytest.mark.parametrize("value", ["1.5", "-3", "200", "x"])
@pytest.mark.parametrize(("text", "where"), [(WIDE, "column 'q2', row 2"), (LONG, "column 'response', row 4")])
def test_odd_values_are_named_with_their_place(tmp_path, text, where, value):
    file = tmp_path / "answers.csv"
    file.write_text(text.format(value))
    shown = repr(value) if value == "x" else value
    with pytest.raises(ResponseValueError, match=rf"answers.csv: {where} holds {shown}, which is not a category"):
        read(file, ordered=True)


def test_labels_that_the_list_does_not_have(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("who,q1,q2\nann,often,never\nbob,never,perhaps\ncy,often,Often\n")
    said = r"column 'q2', row 2 holds 'perhaps', which is not among the labels .* \(2 such values: 'perhaps', 'Often'\)"
    with pytest.raises(ResponseValueError, match=said):
        read(file, recode="never,sometimes,often")
    assert read(file, recode="never,sometimes,often", missing=["perhaps", "Often"]).n_responses == 4


def test_a_skipped_category_is_said_and_keeps_its_code(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text(WIDE.format("5"))
    found = read(file, ordered=True)
    said = next(one for one in found.notes if one.code == "categories_collapsed")
    assert said.items == ("q2",)
    assert said.sentence.startswith("1 item has categories that nobody used: 'q2'.")
    assert found.category_codes()[1].tolist() == [0, 1, 5]
    with pytest.raises(ResponseValueError, match=r"1 item has categories that nobody used: 'q2' .*0, 1, 5"):
        read(file, unused="error")


def test_items_are_turned_within_the_categories_that_there_are(tmp_path):
    """Not within those that somebody used: nobody said "always" here."""
    file = tmp_path / "answers.csv"
    file.write_text("who,q1,q2\nann,often,never\nbob,never,often\ncy,never,never\n")
    found = read(file, recode="never,often,always", reverse="q2", unused="collapse")
    assert found.category_codes()[1].tolist() == [1, 2]  # often and never, turned
    again = read(file, recode={"never": 0, "often": 1}, reverse="q2", span=(0, 3))
    assert again.to_dense()[:, 1].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("a,b,c\n0,1,2\n2,0.5,1\n1,1,2\n", "column 'b', row 2 holds 0.5, a fraction", "multiply them by 2"),
        ("a,b,c\n0,1,1\n1,0.25,1\n0.5,1,0\n", "column 'b', row 2 holds 0.25, a fraction", "multiply them by 4"),
        ("a,b,c\n0,1,1\n1,0.313,1\n0.5,1,0\n", "column 'b', row 2 holds 0.313, a fraction", "give each grade a whole"),
        (
            "person,item,response\nu,a,2\nu,b,1.5\nv,a,1\n",
            "column 'response', row 2 holds 1.5, a fraction",
            "by 2, to fit",
        ),
    ],
)
def test_a_fraction_is_named_before_whole_numbers(tmp_path: Path, text: str, place: str, remedy: str) -> None:
    path = tmp_path / "graded.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ResponseValueError, match="neither 0/1 nor missing") as caught:
        si.read(path)
    assert place in str(caught.value)
    assert remedy in str(caught.value)
    assert "--threshold" in for_shell(str(caught.value))
    assert "--model pcm" in for_shell(str(caught.value))


def test_every_kind_of_odd_value_is_looked_at_once(monkeypatch):
    """Not every value: there may be millions."""
    looked, is_fraction = [], value_check._is_fraction
    monkeypatch.setattr(value_check, "_is_fraction", lambda text: looked.append(text) or is_fraction(text))
    with pytest.raises(ResponseValueError):
        Responses.from_wide(np.random.default_rng(1).integers(0, 5, (2000, 10)), ordered=False)
    assert sorted(map(float, looked)) == [2, 3, 4]
