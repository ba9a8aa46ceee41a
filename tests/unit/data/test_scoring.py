"""Raw answers become right or wrong as asked, in files and in frames, and nothing else is taken for an answer."""

import numpy as np
import polars as pl
import pytest

from reading import complaint, notes, read_text
from spectral_irt.data.scoring import Scoring, one_spelling, spellings
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, for_shell
from spectral_irt.reading import read

NAN = float("nan")
CHOICES = "id,q1,q2\n1,A,b\n2,B,\n3,C,A\n"
RATINGS = "person,item,rating\na,x,1\na,y,5\nb,x,3\nb,y,NA\n"


def check(tmp_path, text, expected, **options):
    np.testing.assert_array_equal(read_text(tmp_path, text, **options).to_dense(), expected)


def refused(tmp_path, text, **options):
    (tmp_path / "answers.csv").write_text(text)
    return complaint(tmp_path / "answers.csv", **options)


def test_all_spellings_of_0_and_1(tmp_path):
    check(tmp_path, "a,b,c,d,e,f\n1,1.0, 1,true,TRUE,1e0\n0,0.0,0 ,false,False,-0\n", [[1] * 6, [0] * 6])


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
def test_all_types_of_0_and_1(series):
    frame = pl.DataFrame({"person": ["a", "b", "c"], "item": "q", "response": series})
    responses = read(frame)
    assert responses.counts.tolist() == [1, 1, 0]
    assert responses.scores.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("said", "written"),
    [
        *[(9, "9"), ("9", "9.0"), (-99999, "-99999"), (".", "."), ("NULL", "NULL"), ([9, "-1", "x"], "x")],
        *[(["9"], " 9"), (np.int64(-1), "-1")],
    ],
)
def test_missing_codes(tmp_path, said, written):
    check(tmp_path, f"a,b\n1,{written}\n0,1\n", [[1, NAN], [0, 1]], missing=said)


def test_zero_may_mean_missing():
    """Of whole numbers as of others."""
    for table in (np.array([[1, 0, 2], [0, 2, 1]]), np.array([[1, 0, 2], [0, 2, 1.0]])):
        assert read(table, missing=[0], ordered=True).item_counts.tolist() == [1, 1, 2]


@pytest.mark.parametrize("code", ["-1", "9", "99", "-99999", ".", "NULL", "N/A"])
def test_common_missing_codes_are_suggested(tmp_path, code):
    message = refused(tmp_path, f"a,b\n1,0\n0,{code}\n1,{code}\n")
    assert "answers.csv: column 'b', row 2 holds" in message
    assert "2 such values" in message
    assert f"say `missing={code!r}`." in message
    assert for_shell(f"say `missing={code!r}`.") in for_shell(message)
    assert "threshold" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # a nine among other ratings is no code for missing
        ("person,item,score\na,q1,9\na,q2,5\nb,q1,.\n", ["9, 5, '.'", "say `missing='.'`."]),
        (
            "person,item,score\na,q1,1\na,q2,5\nb,q1,3\nb,q2,2\n",
            ["column 'score', row 2 holds 5", "3 such values: 5, 3, 2", "key", "correct", "threshold"],
        ),
        ("id,sex,q1\n1,f,1\n2,m,0\n3,m,0\n", ["column 'sex', row 1 holds 'f'", "say `ignore='sex'"]),
    ],
)
def test_other_values_are_named_and_ways_of_scoring_offered(tmp_path, text, said):
    message = refused(tmp_path, text)
    for words in said:
        assert words in message


def test_all_columns_are_not_to_be_left_out(tmp_path):
    assert "leave it out" not in refused(tmp_path, "id,q1,q2\n1,A,B\n2,B,A\n3,C,A\n")


@pytest.mark.parametrize("value", ["2", "inf", "0.5", "-1", "yes"])
def test_bad_values_in_every_way_in(tmp_path, value):
    lines = f'{{"responses": {{"q1": 1}}}}\n{{"responses": {{"q1": "{value}"}}}}\n'
    for name, text, place in (
        ("a.csv", f"person,item,response\na,q1,1\na,q2,0\nb,q1,{value}\n", "row 3"),
        ("a.csv", f"q1,q2\n1,0\n0,{value}\n", "row 2"),
        ("a.jsonl", lines, "column 'q1', row 2"),
    ):
        with pytest.raises(ResponseValueError, match=place):
            read_text(tmp_path, text, name)


@pytest.mark.parametrize(
    "key",
    [
        {"q1": "B", "q2": "A", "unused": "D"},
        "item,correct\nq1,B\nq2,A\nq3,C\n",
        "key,item_id,note\nB,q1,easy\nA,q2,\n",
        "question;answer\nq1;B\nq2;A\n",
        "q2,q1,q3\nA,B,C\n",
        "id,q1,q2\nkey,B,A\n",
        "a,b\nq1,B\nq2,A\n",
    ],
)
def test_keys(tmp_path, key):
    if isinstance(key, str):
        (tmp_path / "key.csv").write_text(key)
        key = tmp_path / "key.csv"
    check(tmp_path, CHOICES, [[0, 0], [1, NAN], [0, 1]], key=key)


@pytest.mark.parametrize("several", ["A|C", ("A", "C"), ["A", "C"], {"A", "C"}, np.array(["A", "C"]), {"A": 1, "C": 1}])
def test_a_key_may_name_several_right_answers(several):
    answers = pl.DataFrame({"person": [1, 2, 3, 4], "q1": ["A", "B", "C", "D"], "q2": ["1", "2", "3", "1"]})
    found = read(answers, key={"q1": several, "q2": (1, 3)})
    assert found.to_dense().tolist() == [[1, 1], [0, 0], [1, 1], [0, 1]]


def test_items_without_a_key_are_named(tmp_path):
    for key in ({"q1": "A"}, {"q1": "A", "q2": None}):
        said = refused(tmp_path, "person,item,response\n1,q1,A\n1,q2,B\n", key=key)
        assert "no answer for 1 of the items: 'q2'" in said
    wide = read_text(tmp_path, CHOICES, key={"q1": "A", "q2": None})  # columns that are not in the key are not items
    assert (notes(wide)["not_in_key"].severity, notes(wide)["not_in_key"].items) == ("warning", ("q2",))


@pytest.mark.parametrize(
    ("key", "error", "said"),
    [
        (None, ReadError, "there is no file"),
        ("x,y,z\n1,2,3\n4,5,6\n", ReadError, "is not an answer key"),
        ("item,key\nq1,A\nq2,B\nq1,B\n", OptionError, "item 'q1' two right answers, 'A' and 'B'"),
        ("item,key,score\nq1,a,0\nq2,b,0\n", OptionError, "but no response agrees"),
        ("item,key\nq1,x\nq2,y\n", OptionError, "the key holds 'x', 'y', but no response agrees"),
    ],
)
def test_bad_keys(tmp_path, key, error, said):
    if key:
        (tmp_path / "key.csv").write_text(key)
    with pytest.raises(error, match=said):
        read_text(tmp_path, CHOICES, key=tmp_path / "key.csv")


@pytest.mark.parametrize("correct", ["A", ["A", "b"], {"A"}, [" A "]])
def test_correct_values(tmp_path, correct):
    has_b = float("b" in correct)
    check(tmp_path, CHOICES, [[1, has_b], [0, NAN], [0, 1]], correct=correct, exact_case=True)
    check(tmp_path, CHOICES, [[1, has_b], [has_b, NAN], [0, 1]], correct=correct)  # of q1 the second answer is B


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (RATINGS, {"threshold": 3}, [[0, 1], [0, NAN]]),
        (RATINGS, {"threshold": "2.5"}, [[0, 1], [1, NAN]]),
        (RATINGS, {"threshold": 2, "missing": 5}, [[0, NAN], [1, NAN]]),
        ("a,b\n1,5\n3,2\n", {"threshold": 2}, [[0, 1], [1, 0]]),
    ],
)
def test_threshold(tmp_path, text, options, expected):
    check(tmp_path, text, expected, **options)


@pytest.mark.parametrize(("threshold", "effect"), [(5, "none is above"), (7, "none is"), (0.9, "all are above")])
@pytest.mark.parametrize("text", [RATINGS, "a,b\n1,5\n3,\n"])
def test_threshold_must_part_the_data(tmp_path, text, threshold, effect):
    with pytest.raises(OptionError, match=f"run from 1 to 5, so {effect}"):
        read_text(tmp_path, text, threshold=threshold)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"correct": "a", "exact_case": True},
            r"`correct` is 'a', but no response agrees.*'A', 'b', 'B', 'C'.*capitals",
        ),
        ({"correct": []}, "names no value"),
        ({"correct": 1, "threshold": 2}, "`correct` and `threshold` are different ways"),
        ({"key": "nothing.csv", "threshold": 1}, "`key` and `threshold`"),
        *(({"threshold": value}, "must be a finite number") for value in (float("inf"), -float("inf"), NAN)),
        ({"duplicates": "both"}, "'error', 'first', 'last'"),
        ({"format": "tall"}, "'auto', 'wide', 'long'"),
        ({"orient": "up"}, "'persons', 'items'"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, said):
    with pytest.raises(OptionError, match=said):
        read_text(tmp_path, CHOICES, **options)


def test_one_spelling():
    values = pl.Series(["2", " 2.0", "02", "2e0", "0.50", "x ", "9007199254740993", "-0", None, "1e400"])
    expected = ["2", "2", "2", "2", "0.5", "x", "9007199254740993", "0", None, "1e400"]
    assert one_spelling(values).to_list() == expected
    assert one_spelling(pl.Series([True, False])).to_list() == ["1", "0"]
    assert spellings([True, 1, 1.0, "1", None, "B", np.float32(0.5)]) == ["1", "1", "1", "1", "", "B", "0.5"]
    with pytest.raises(OptionError, match="must be a finite number"):
        Scoring(threshold="high")


def test_a_few_numbers_far_above_zeros_and_ones_may_be_codes_for_no_answer():
    values = np.random.default_rng(1).integers(0, 2, (60, 8)).astype(float)
    values[:5, 0] = 8
    values[5:8, 1] = 9
    with pytest.raises(ResponseValueError, match=r"If 8 and 9 mean 'not answered', say `missing=\['8', '9'\]`\.$"):
        read(values)
    values[values == 8] = 5  # points of a question with partial credit
    values[values == 9] = 4
    with pytest.raises(ResponseValueError, match=r"holds 5.*Say which answers are correct"):
        read(values, ordered=False)
