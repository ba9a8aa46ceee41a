"""Raw answers become right or wrong as asked, in files and in frames, and nothing else is taken for an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from spectral_irt.data import Responses
from spectral_irt.data.scoring import Scoring, one_spelling, spellings
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, for_shell
from spectral_irt.reading import read

NAN = float("nan")


def of_text(tmp_path: Path, text: str, **options: Any) -> Responses:
    file = tmp_path / "answers.csv"
    file.write_text(text)
    return read(file, **options)


def dense(tmp_path: Path, text: str, **options: Any) -> list[list[float]]:
    return of_text(tmp_path, text, **options).to_dense().tolist()


# ------------------------------------------------------------------ 0/1


def test_all_spellings_of_0_and_1(tmp_path: Path) -> None:
    text = "a,b,c,d,e,f\n1,1.0, 1,true,TRUE,1e0\n0,0.0,0 ,false,False,-0\n"
    assert dense(tmp_path, text) == [[1] * 6, [0] * 6]


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([1, 0, None], dtype=pl.Int8),
        pl.Series([1, 0, None], dtype=pl.UInt64),
        pl.Series([1.0, 0.0, NAN], dtype=pl.Float32),
        pl.Series([True, False, None]),
        pl.Series(["1", "0", ""]),
        pl.Series(["1", "0", "NA"], dtype=pl.Categorical),
        pl.Series([1, 0, None], dtype=pl.Decimal(5, 2)),
    ],
)
def test_all_types_of_0_and_1(series: pl.Series) -> None:
    frame = pl.DataFrame({"person": ["a", "b", "c"], "item": "q", "response": series})
    responses = read(frame)
    assert responses.counts.tolist() == [1, 1, 0]
    assert responses.scores.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (9, "9"),
        ("9", "9.0"),
        (-99999, "-99999"),
        (".", "."),
        ("NULL", "NULL"),
        ([9, "-1", "x"], "x"),
        (["9"], " 9"),
        (np.int64(-1), "-1"),
    ],
)
def test_missing_codes(tmp_path: Path, said: Any, written: str) -> None:
    assert np.isnan(dense(tmp_path, f"a,b\n1,{written}\n0,1\n", missing=said)[0][1])


@pytest.mark.parametrize("code", ["-1", "9", "99", "-99999", ".", "NULL", "N/A"])
def test_common_missing_codes_are_suggested(tmp_path: Path, code: str) -> None:
    with pytest.raises(ResponseValueError) as error:
        of_text(tmp_path, f"a,b\n1,0\n0,{code}\n1,{code}\n")
    message = str(error.value)
    assert "answers.csv: column 'b', row 2 holds" in message
    assert "2 such values" in message
    assert f"say `missing={code!r}`." in message
    assert for_shell(f"say `missing={code!r}`.") in for_shell(str(error.value))
    assert "threshold" not in message


def test_a_nine_among_other_ratings_is_no_missing_code(tmp_path: Path) -> None:
    with pytest.raises(ResponseValueError) as error:
        of_text(tmp_path, "person,item,score\na,q1,9\na,q2,5\nb,q1,.\n")
    assert "9, 5, '.'" in str(error.value)
    assert "say `missing='.'`." in str(error.value)
    assert "say --missing '.'." in for_shell(str(error.value))


def test_other_values_are_named_and_ways_of_scoring_offered(tmp_path: Path) -> None:
    with pytest.raises(ResponseValueError) as error:
        of_text(tmp_path, "person,item,score\na,q1,1\na,q2,5\nb,q1,3\nb,q2,2\n")
    message = str(error.value)
    assert "column 'score', row 2 holds 5" in message
    assert "3 such values: 5, 3, 2" in message
    for way in ("key", "correct", "threshold", "above_mean"):
        assert way in message


def test_a_column_that_is_no_item_is_pointed_out(tmp_path: Path) -> None:
    with pytest.raises(ResponseValueError, match=r"column 'sex', row 1 holds 'f'.* say `ignore='sex'"):
        of_text(tmp_path, "id,sex,q1\n1,f,1\n2,m,0\n3,m,0\n")
    with pytest.raises(ResponseValueError) as error:
        of_text(tmp_path, "id,q1,q2\n1,A,B\n2,B,A\n3,C,A\n")
    assert "leave it out" not in str(error.value)


@pytest.mark.parametrize("value", ["2", "inf", "0.5", "-1", "yes"])
def test_bad_values_in_every_way_in(tmp_path: Path, value: str) -> None:
    with pytest.raises(ResponseValueError, match="row 3"):
        of_text(tmp_path, f"person,item,response\na,q1,1\na,q2,0\nb,q1,{value}\n")
    with pytest.raises(ResponseValueError, match="row 2"):
        of_text(tmp_path, f"q1,q2\n1,0\n0,{value}\n")
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"responses": {{"q1": 1}}}}\n{{"responses": {{"q1": "{value}"}}}}\n')
    with pytest.raises(ResponseValueError, match="column 'q1', row 2"):
        read(file)


# ------------------------------------------------------------------ key and correct

CHOICES = "id,q1,q2\n1,A,b\n2,B,\n3,C,A\n"


def test_key_as_a_mapping(tmp_path: Path) -> None:
    found = of_text(tmp_path, CHOICES, key={"q1": "B", "q2": "A", "unused": "D"})
    np.testing.assert_array_equal(found.to_dense(), [[0, 0], [1, NAN], [0, 1]])


@pytest.mark.parametrize(
    "key",
    [
        "item,correct\nq1,B\nq2,A\nq3,C\n",
        "key,item_id,note\nB,q1,easy\nA,q2,\n",
        "question;answer\nq1;B\nq2;A\n",
        "q2,q1,q3\nA,B,C\n",
        "id,q1,q2\nkey,B,A\n",
        "a,b\nq1,B\nq2,A\n",
    ],
)
def test_key_files(tmp_path: Path, key: str) -> None:
    (tmp_path / "key.csv").write_text(key)
    found = of_text(tmp_path, CHOICES, key=tmp_path / "key.csv")
    np.testing.assert_array_equal(found.to_dense(), [[0, 0], [1, NAN], [0, 1]])


def test_items_without_a_key_are_named(tmp_path: Path) -> None:
    long = "person,item,response\n1,q1,A\n1,q2,B\n"
    with pytest.raises(OptionError, match="no answer for 1 of the items: 'q2'"):
        of_text(tmp_path, long, key={"q1": "A"})
    with pytest.raises(OptionError, match="no answer for 1 of the items: 'q2'"):
        of_text(tmp_path, long, key={"q1": "A", "q2": None})
    wide = of_text(tmp_path, CHOICES, key={"q1": "A", "q2": None})  # columns that are not in the key are not items
    assert [(note.code, note.severity, note.items) for note in wide.notes[1:]] == [("not_in_key", "warning", ("q2",))]


def test_bad_keys(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="there is no file"):
        of_text(tmp_path, CHOICES, key=tmp_path / "nothing.csv")
    (tmp_path / "key.csv").write_text("x,y,z\n1,2,3\n4,5,6\n")
    with pytest.raises(ReadError, match="is not an answer key"):
        of_text(tmp_path, CHOICES, key=tmp_path / "key.csv")
    (tmp_path / "key.csv").write_text("item,key\nq1,A\nq2,B\nq1,B\n")
    with pytest.raises(OptionError, match="item 'q1' two right answers, 'A' and 'B'"):
        of_text(tmp_path, CHOICES, key=tmp_path / "key.csv")
    with pytest.raises(OptionError, match="the key holds 'a', 'c', but no response agrees"):
        of_text(tmp_path, CHOICES, key={"q1": "a", "q2": "c"})


@pytest.mark.parametrize("correct", ["A", ["A", "b"], {"A"}, [" A "]])
def test_correct_values(tmp_path: Path, correct: Any) -> None:
    found = of_text(tmp_path, CHOICES, correct=correct)
    expected = [[1, float("b" in correct)], [0, NAN], [0, 1]]
    np.testing.assert_array_equal(found.to_dense(), expected)


def test_correct_that_nobody_said(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"`correct` is 'a', but no response agrees.*'A', 'b', 'B', 'C'.*capitals"):
        of_text(tmp_path, CHOICES, correct="a")
    with pytest.raises(OptionError, match="names no value"):
        of_text(tmp_path, CHOICES, correct=[])


# ------------------------------------------------------------------ threshold

RATINGS = "person,item,rating\na,x,1\na,y,5\nb,x,3\nb,y,NA\n"


def test_threshold(tmp_path: Path) -> None:
    np.testing.assert_array_equal(of_text(tmp_path, RATINGS, threshold=3).to_dense(), [[0, 1], [0, NAN]])
    np.testing.assert_array_equal(of_text(tmp_path, RATINGS, threshold="2.5").to_dense(), [[0, 1], [1, NAN]])
    np.testing.assert_array_equal(of_text(tmp_path, RATINGS, threshold=2, missing=5).to_dense(), [[0, NAN], [1, NAN]])
    np.testing.assert_array_equal(of_text(tmp_path, "a,b\n1,5\n3,2\n", threshold=2).to_dense(), [[0, 1], [1, 0]])


@pytest.mark.parametrize("threshold", [float("inf"), -float("inf"), NAN])
def test_threshold_must_be_finite(tmp_path: Path, threshold: float) -> None:
    with pytest.raises(OptionError, match="must be a finite number"):
        of_text(tmp_path, RATINGS, threshold=threshold)


@pytest.mark.parametrize(("threshold", "effect"), [(5, "none is above"), (7, "none is"), (0.9, "all are above")])
@pytest.mark.parametrize("text", [RATINGS, "a,b\n1,5\n3,\n"])
def test_threshold_must_part_the_data(tmp_path: Path, text: str, threshold: float, effect: str) -> None:
    with pytest.raises(OptionError, match=f"run from 1 to 5, so {effect}"):
        of_text(tmp_path, text, threshold=threshold)


# ------------------------------------------------------------------ above the person's mean


def test_above_the_users_own_mean(tmp_path: Path) -> None:
    text = "person,item,rating\na,x,5\na,y,3\nb,x,3\nb,y,1\nc,x,4\nc,y,4\n"
    right = of_text(tmp_path, text, above_mean="right").to_dense()
    np.testing.assert_array_equal(right, [[1, 0], [1, 0], [0, 0]])
    # The paper's polarity: liked is 0, so that a larger difficulty means better liked.
    wrong = of_text(tmp_path, text, above_mean="wrong").to_dense()
    np.testing.assert_array_equal(wrong, 1 - right)


def test_above_mean_in_every_layout(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    ratings = rng.integers(1, 11, (30, 8)) / 2
    ratings[rng.random(ratings.shape) < 0.3] = NAN
    with np.errstate(invalid="ignore"):
        expected = np.where(np.isnan(ratings), NAN, ratings > np.nanmean(ratings, axis=1, keepdims=True))
    wide = pd.DataFrame(ratings, columns=[f"m{k}" for k in range(8)])
    np.testing.assert_array_equal(read(wide, above_mean="right").to_dense(), expected)
    long = wide.reset_index(names="person").melt("person", var_name="item", value_name="rating")
    np.testing.assert_array_equal(read(long, above_mean="right").to_dense(), expected)
    turned = wide.T.reset_index(names="item")
    found = read(turned, above_mean="right", orient="items")
    np.testing.assert_array_equal(found.to_dense(), expected)
    twice = read(wide, above_mean="right", duplicates="last")
    np.testing.assert_array_equal(twice.to_dense(), expected)


@pytest.mark.parametrize("rating", [0.1, 0.7, 1 / 3, 1e-300, 1e300])
def test_equal_ratings_are_never_above_their_mean(rating: float) -> None:
    frame = pl.DataFrame({"person": ["a"] * 6 + ["b"] * 7, "item": [*range(6), *range(7)], "rating": [rating] * 13})
    assert read(frame, above_mean="right").scores.sum() == 0


# ------------------------------------------------------------------ options


def test_one_way_of_scoring_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="`correct` and `threshold` are different ways"):
        of_text(tmp_path, RATINGS, correct=1, threshold=2)
    with pytest.raises(OptionError, match="`key` and `above_mean`"):
        of_text(tmp_path, RATINGS, key=tmp_path / "nothing.csv", above_mean="right")


def test_options_list_what_they_can_be(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="'right', 'wrong'"):
        of_text(tmp_path, RATINGS, above_mean="up")
    with pytest.raises(OptionError, match="'error', 'first', 'last'"):
        of_text(tmp_path, RATINGS, duplicates="both")
    with pytest.raises(OptionError, match="'auto', 'wide', 'long'"):
        of_text(tmp_path, RATINGS, format="tall")
    with pytest.raises(OptionError, match="'persons', 'items'"):
        of_text(tmp_path, RATINGS, orient="up")
    with pytest.raises(OptionError, match="must be a finite number"):
        Scoring(threshold="high")  # type: ignore[arg-type]


def test_one_spelling() -> None:
    values = pl.Series(["2", " 2.0", "02", "2e0", "0.50", "x ", "9007199254740993", "-0", None, "1e400"])
    expected = ["2", "2", "2", "2", "0.5", "x", "9007199254740993", "0", None, "1e400"]
    assert one_spelling(values).to_list() == expected
    assert one_spelling(pl.Series([True, False])).to_list() == ["1", "0"]
    assert spellings([True, 1, 1.0, "1", None, "B", np.float32(0.5)]) == ["1", "1", "1", "1", "", "B", "0.5"]
