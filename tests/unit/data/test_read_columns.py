"""Which column is what, and what becomes of labels and their order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from reading import read_text
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.reading import read

# ------------------------------------------------------------------ labels and order


def test_whole_numbers_become_integers_only_when_nothing_is_lost(tmp_path: Path) -> None:
    responses = read_text(tmp_path, "person,item,response\n10,007,1\n9,8,0\n-3,8,1\n")
    assert responses.persons.tolist() == [-3, 9, 10]
    assert responses.persons.dtype == np.int64
    assert responses.items.tolist() == ["007", "8"]


@pytest.mark.parametrize("label", ["+1", "1.0", "1e3", " 1", "-0", "9223372036854775808", "1_000", "٣"])
def test_numbers_spelled_otherwise_stay_text(tmp_path: Path, label: str) -> None:
    responses = read_text(tmp_path, f"person,item,response\n{label},1,1\n2,2,0\n")
    assert responses.persons.tolist() == sorted([label, "2"])


def test_wide_labels(tmp_path: Path) -> None:
    responses = read_text(tmp_path, "id,3,1,2\n5,1,0,1\n-1,1,1,0\n")
    assert responses.items.tolist() == [3, 1, 2]
    assert responses.persons.tolist() == [5, -1]


def test_wide_without_labels_numbers_users_from_one(tmp_path: Path) -> None:
    responses = read_text(tmp_path, "item1,item2\n1,0\n0,1\n")
    assert responses.persons.tolist() == [1, 2]
    assert responses.items.tolist() == ["item1", "item2"]


@pytest.mark.parametrize("dtype", [pl.UInt8, pl.Int32, pl.Int64, pl.UInt64, pl.Float64])
def test_typed_labels(tmp_path: Path, dtype: Any) -> None:
    frame = pl.DataFrame({"person": [3, 20], "item": ["1", "2"], "response": [1, 0]}).with_columns(
        pl.col("person").cast(dtype)
    )
    frame.write_parquet(tmp_path / "a.parquet")
    responses = read(tmp_path / "a.parquet")
    assert responses.persons.tolist() == [3, 20]
    assert responses.items.tolist() == ["1", "2"]


def test_labels_of_other_types(tmp_path: Path) -> None:
    frame = pl.DataFrame({"person": [2**63 + 1, 2**64 - 1], "item": pl.Series(["b", "a"], dtype=pl.Categorical)})
    frame.with_columns(response=pl.Series([True, False])).write_parquet(tmp_path / "a.parquet")
    responses = read(tmp_path / "a.parquet")
    assert responses.persons.tolist() == sorted([str(2**63 + 1), str(2**64 - 1)])
    assert responses.items.tolist() == ["a", "b"]
    frame.with_columns(response=1, person=[[1], [2]]).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ReadError, match="column 'person' is of type List"):
        read(tmp_path / "a.parquet")


def test_people_and_items_without_answers_are_kept(tmp_path: Path) -> None:
    responses = read_text(tmp_path, "person,item,response\na,q1,1\nb,q1,\nb,q2,NA\na,q3,0\n")
    assert responses.persons.tolist() == ["a", "b"]
    assert responses.items.tolist() == ["q1", "q2", "q3"]
    assert responses.counts.tolist() == [2, 0]
    assert responses.item_counts.tolist() == [1, 0, 1]


# ------------------------------------------------------------------ which column is what


@pytest.mark.parametrize(
    "header",
    [
        "userId,movieId,rating",
        "model,prompt,score",
        "STUDENT_ID,Question,is_correct",
        "respondent,item id,value",
        "id,problem_id,answer",
        "Person.Name,task,outcome",
    ],
)
def test_usual_names_of_long_tables(tmp_path: Path, header: str) -> None:
    responses = read_text(tmp_path, f"{header}\na,q1,1\na,q2,0\nb,q2,1\n")
    assert responses.persons.tolist() == ["a", "b"]
    assert responses.items.tolist() == ["q1", "q2"]
    assert responses.n_responses == 3


def test_columns_of_a_long_table_can_be_named(tmp_path: Path) -> None:
    text = "when,wer,was,wie\n1,a,q1,1\n2,a,q2,0\n3,b,q2,1\n"
    responses = read_text(tmp_path, text, person="wer", item="was", response="wie")
    assert responses.persons.tolist() == ["a", "b"]
    text = "answer,student,question,correct\nB,a,q1,1\nC,a,q2,0\n"
    assert read_text(tmp_path, text, response="correct").scores.tolist() == [1]


@pytest.mark.parametrize(
    ("header", "persons"),
    [("id", [4, 5, 6]), ("Student", [4, 5, 6]), ("model_name", [4, 5, 6]), ("", [4, 5, 6]), ("Unnamed: 0", [4, 5, 6])],
)
def test_usual_names_of_wide_labels(tmp_path: Path, header: str, persons: list[int]) -> None:
    responses = read_text(tmp_path, f"{header},q1,q2\n4,1,0\n5,0,1\n6,1,1\n")
    assert responses.persons.tolist() == persons
    assert responses.items.tolist() == ["q1", "q2"]


def test_a_first_column_of_distinct_text_labels_the_rows(tmp_path: Path) -> None:
    assert read_text(tmp_path, "wer,q1\nann,1\nbob,0\n").persons.tolist() == ["ann", "bob"]
    # These are answers: they come back in the other columns, or the key names the column.
    assert read_text(tmp_path, "a,b\nA,B\nB,A\n", correct="A").n_items == 2
    assert read_text(tmp_path, "a,b\nC,B\nB,A\n", key={"a": "C", "b": "B"}).n_items == 2
    assert read_text(tmp_path, "a,b\ntrue,1\nfalse,0\n").n_items == 2


def test_a_column_called_code_may_be_an_item(tmp_path: Path) -> None:
    assert read_text(tmp_path, "code,math\n1,0\n0,1\n1,1\n").items.tolist() == ["code", "math"]


def test_the_label_column_of_a_wide_table_can_be_named(tmp_path: Path) -> None:
    responses = read_text(tmp_path, "q1,nr,q2\n1,7,0\n0,8,1\n", person="nr")
    assert responses.persons.tolist() == [7, 8]
    assert responses.items.tolist() == ["q1", "q2"]


def test_rows_as_items(tmp_path: Path) -> None:
    text = "item,ann,bob,carl\nq1,1,0,1\nq2,0,,1\n"
    responses = read_text(tmp_path, text, orient="items")
    assert responses.persons.tolist() == ["ann", "bob", "carl"]
    assert responses.items.tolist() == ["q1", "q2"]
    np.testing.assert_array_equal(responses.to_dense(), [[1, 0], [0, np.nan], [1, 1]])
    with pytest.raises(OptionError, match="`orient='items'` is for wide"):
        read_text(tmp_path, "person,item,response\na,b,1\n", format="long", orient="items")


def test_rows_of_nothing_at_the_end_of_a_spreadsheet(tmp_path: Path) -> None:
    assert read_text(tmp_path, "id,q1,q2\na,1,0\nb,0,1\n,,\n,,\n").persons.tolist() == ["a", "b"]
    assert read_text(tmp_path, "person,item,response\na,q1,0\n,,\n").n_responses == 1
