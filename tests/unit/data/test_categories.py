"""Answers in ordered categories: what kind they are, how they are scored and recoded, and what is not a category."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from reading import complaint, notes, read_text
from spectral_irt import Responses, read, simulate
from spectral_irt.data import builder, value_check
from spectral_irt.data.categories import looks_ordered
from spectral_irt.errors import OptionError, ResponseValueError, for_shell
from spectral_irt.reading import frame

CHOICES = pl.DataFrame({"who": ["ann", "bob", "cy", "dee"], "q1": list("ACBA"), "q2": list("BDAB"), "q3": list("AABB")})
NAMES = ["a", "b", "c", "d"]


def table(responses):
    return responses.to_dense().tolist()


def test_several_options_of_the_key_are_right():
    found = si.read(CHOICES, key={"q1": "A|C", "q2": "B", "q3": "A"})
    assert table(found) == [[1, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert found.thresholds.binary
    assert found.raw.key["q1"] == "A|C"


@pytest.mark.parametrize("as_file", [True, False])
def test_the_key_may_give_scores(tmp_path, as_file):
    key = {"q1": {"A": 2, "C": 1}, "q2": {"B": 2, "D": 1}, "q3": {"A": 1}}
    if as_file:
        rows = [(item, one, score) for item, options in key.items() for one, score in options.items()]
        key = tmp_path / "key.csv"
        pl.DataFrame(rows, schema=["item", "key", "score"], orient="row").write_csv(key)
    found = si.read(CHOICES, key=key)
    assert table(found) == [[2, 2, 1], [1, 1, 1], [0, 0, 0], [2, 2, 0]]
    assert found.thresholds.max_score.tolist() == [2, 2, 1]
    long = CHOICES.unpivot(index="who", variable_name="item", value_name="response")
    again = si.read(long, key=key, format="long", person="who")
    assert table(again) == table(found)
    with pytest.raises(ResponseValueError, match="more than two categories"):
        si.SpectralRasch().fit(found)


def test_scores_of_a_key_are_whole_numbers():
    with pytest.raises(OptionError, match=r"'q1' the score 0\.5; scores are whole numbers"):
        si.read(CHOICES, key={"q1": {"A": 1, "C": 0.5}, "q2": "B", "q3": "A"})


def test_missing_is_what_stood_in_the_data():
    """Not what it would be recoded to: "never" is category 0."""
    said = pl.DataFrame({"a": ["never", "often", "never", "0"], "b": ["often", "sometimes", "never", "often"]})
    found = si.read(said, recode="never,sometimes,often", missing="0")
    assert found.n_responses == 7
    assert table(found.take_items([1])) == [[2], [1], [0], [2]]


@pytest.fixture(scope="module")
def rated():
    table = simulate.partial_credit(80, 4, categories=3, seed=1).responses.to_dense()
    table[np.random.default_rng(0).random(table.shape) < 0.1] = np.nan
    return table


@pytest.fixture
def words(rated, tmp_path):
    """The same in words, in a file."""
    labels = ["never", "sometimes", "often"]
    texts = [["" if np.isnan(x) else labels[int(x)] for x in row] for row in rated]
    pl.DataFrame(texts, schema=NAMES, orient="row").write_csv(tmp_path / "labels.csv")
    return tmp_path / "labels.csv"


def test_labels(rated, words):
    for recode in ("never,sometimes,often", ["never", "sometimes", "often"], {"never": 0, "sometimes": 1, "often": 2}):
        np.testing.assert_array_equal(read(words, recode=recode).to_dense(), rated)
    np.testing.assert_array_equal(read(words, recode="never,sometimes=often").to_dense(), np.minimum(rated, 1))
    turned = read(words, recode="never,sometimes,often", reverse=["b", "d"]).to_dense()
    np.testing.assert_array_equal(turned, np.where([False, True, False, True], 2 - rated, rated))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"recode": "never,sometimes"}, ResponseValueError, r"'often'.*recode"),
        ({"recode": "never,never"}, OptionError, "twice"),
        ({"recode": "never"}, OptionError, "two labels or more"),
        ({"recode": "never,sometimes,often", "reverse": "q9"}, OptionError, "'q9'"),
    ],
)
def test_labels_that_cannot_be(words, options, error, said):
    with pytest.raises(error, match=said):
        read(words, **options)


def test_labels_that_the_list_does_not_have(tmp_path):
    text = "who,q1,q2\nann,often,never\nbob,never,perhaps\ncy,often,Often\n"
    assert read_text(tmp_path, text, recode="never,sometimes,often", missing=["perhaps", "Often"]).n_responses == 4
    said = complaint(tmp_path / "answers.csv", recode="never,sometimes,often")
    assert "column 'q2', row 2 holds 'perhaps', which is not among the labels" in said
    assert "(2 such values: 'perhaps', 'Often')" in said


def test_items_are_turned_within_the_categories_that_there_are(tmp_path):
    """Not within those that somebody used: nobody said "always" here."""
    text = "who,q1,q2\nann,often,never\nbob,never,often\ncy,never,never\n"
    found = read_text(tmp_path, text, recode="never,often,always", reverse="q2", unused="collapse")
    assert found.category_codes()[1].tolist() == [1, 2]  # often and never, turned
    again = read_text(tmp_path, text, recode={"never": 0, "often": 1}, reverse="q2", span=(0, 3))
    assert again.to_dense()[:, 1].tolist() == [1, 0, 1]


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


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.5, "column 1, row 1 holds 0.5, which is not a category: these are whole numbers from 0"),
        (-1, "-1, which is not a category.*missing='-1'"),
        (np.inf, "inf, which is not a category"),
        (200, "200, which is not a category: .* from 0 to 100"),
    ],
)
def test_odd_values_in_memory(value, words):
    answers = [[2, 0, 1], [0, value, 2], [1, 1, 0]]
    with pytest.raises(ResponseValueError, match=words):
        Responses.from_wide(answers, ordered=True)
    assert np.isnan(Responses.from_wide(answers, missing=value, ordered=True).to_dense()[1, 1])


@pytest.mark.parametrize("unused", ["collapse", "keep"])
def test_a_code_for_missing_answers_is_no_category(unused):
    answers = [[1, 2, 3], [2, 9, 1], [3, 1, 2]]
    with pytest.raises(ResponseValueError, match=r"1 item are 9, .* 1 to 3\..*missing=9"):
        Responses.from_wide(answers, ordered=True, unused=unused)
    assert Responses.from_wide(answers, recode="1,2,3,9").n_responses == 9


def test_a_skipped_category_is_said_and_keeps_its_code(tmp_path):
    found = read_text(tmp_path, WIDE.format("5"), ordered=True)
    said = notes(found)["categories_collapsed"]
    assert said.items == ("q2",)
    assert said.sentence.startswith("1 item has categories that nobody used: 'q2'.")
    assert found.category_codes()[1].tolist() == [0, 1, 5]
    with pytest.raises(ResponseValueError, match=r"1 item has categories that nobody used: 'q2' .*0, 1, 5"):
        read(tmp_path / "answers.csv", unused="error")


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("a,b,c\n0,1,2\n2,0.5,1\n1,1,2\n", "column 'b', row 2 holds 0.5, a fraction", "multiply them by 2"),
        ("a,b,c\n0,1,1\n1,0.25,1\n0.5,1,0\n", "column 'b', row 2 holds 0.25, a fraction", "multiply them by 4"),
        ("a,b,c\n0,1,1\n1,0.313,1\n0.5,1,0\n", "column 'b', row 2 holds 0.313, a fraction", "give each grade a whole"),
        ("person,item,response\nu,a,2\nu,b,1.5\nv,a,1\n", "column 'response', row 2 holds 1.5, a fraction", "by 2, to"),
    ],
)
def test_a_fraction_is_named_before_whole_numbers(tmp_path, text, place, remedy):
    with pytest.raises(ResponseValueError, match="neither 0/1 nor missing") as caught:
        read_text(tmp_path, text)
    for words in (place, remedy, "--threshold", "--model pcm"):
        assert words in for_shell(str(caught.value))


def test_codes_for_missing_answers_among_ordered_ones_are_named_first(tmp_path):
    """Answers 1 to 5 with 99: not a question of right and wrong."""
    rows = "\n".join(["1,5,3", "2,99,4", "3,1,2", "4,4,5", "5,2,99"])
    with pytest.raises(ResponseValueError) as caught:
        read_text(tmp_path, f"a,b,c\n{rows}\n")
    said = for_shell(str(caught.value))
    order = [said.index(option) for option in ("--missing 99", "--model pcm", "--key")]
    assert order == sorted(order)
    assert value_check.codes_among_categories(["2", "3", "4", "9"]) == ["9"]  # 9 after 4 is no category
    assert not value_check.codes_among_categories(["2", "3", "8", "9"])


def test_every_kind_of_odd_value_is_looked_at_once(monkeypatch):
    """Not every value: there may be millions."""
    looked, is_fraction = [], value_check.is_fraction
    monkeypatch.setattr(value_check, "is_fraction", lambda text: looked.append(text) or is_fraction(text))
    with pytest.raises(ResponseValueError):
        Responses.from_wide(np.random.default_rng(1).integers(0, 5, (2000, 10)), ordered=False)
    assert sorted(map(float, looked)) == [2, 3, 4]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": [0, 1, 2], "b": [2, 1, 0], "c": [0, 1, 0]}, True),
        ({"a": [1, 2, 3], "b": [3, 1, 2], "c": [1, 3, 2]}, True),
        ({"a": [0, 1, 5], "b": [1, 0, 5], "c": [0, 1, 1]}, False),  # a gap
        ({"a": [0, 1, 0], "b": [1, 0, 1], "age": [0, 1, 2]}, False),  # one column
        ({"a": list(range(12)), "b": list(range(12))}, False),  # many categories
        ({"a": [2, 3, 4], "b": [4, 3, 2]}, False),  # where are 0 and 1?
    ],
)
def test_what_looks_ordered(columns, expected):
    answers = read(pl.DataFrame({**columns}), items=list(columns), ordered=True)
    assert looks_ordered(answers) is expected


def late(n=900):
    """Right and wrong at first, categories in the last rows only."""
    rng = np.random.default_rng(5)
    table = rng.integers(0, 2, (n, 4))
    table[-60:] = rng.integers(0, 3, (60, 4))
    return table


@pytest.fixture
def passes(monkeypatch):
    """How often the columns of a frame in memory were asked for."""
    asked = []
    made = frame.table_of_frame

    def counting(*args, **kwargs):
        table = made(*args, **kwargs)
        return replace(table, pieces=lambda chosen: (asked.append(chosen), table.pieces(chosen))[1])

    monkeypatch.setattr(frame, "table_of_frame", counting)
    return asked


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("top", [1, 2])
def test_one_pass(passes, long, top):
    table = np.minimum(late(), top)
    data = pl.DataFrame(table, schema=NAMES)
    if long:
        data = data.with_row_index("person").unpivot(index="person", variable_name="item", value_name="response")
    found = read(data)
    assert len(passes) == 1
    assert found.thresholds.binary == (top == 1)
    assert np.array_equal(found.to_dense(), table)
    assert found.digest() == read(data, ordered=top > 1).digest()


def test_packed_blocks_are_opened_again_when_a_category_comes(monkeypatch):
    monkeypatch.setattr(builder, "BLOCK_RESPONSES", 400)
    table = late().astype(float)
    table[5, 2] = np.nan
    found = read(table)
    np.testing.assert_array_equal(found.to_dense(), table)
    assert found.digest() == read(table, ordered=True).digest()


def test_right_and_wrong_as_before():
    table = late() % 2
    table[:, 3] = 1  # an item that everybody has right stays right
    found, said = read(table), read(table, ordered=False)
    assert found.codes is None
    assert not found.notes
    for mine, theirs in zip(found.blocks, said.blocks, strict=True):
        assert np.array_equal(mine.items, theirs.items)
        assert np.array_equal(mine.split, theirs.split)


@pytest.mark.parametrize("odd", [9, -1, 0.5, 200])
def test_what_is_neither_is_said_as_of_right_and_wrong(odd):
    table = (late() % 2).astype(float)
    table[-1, -1] = odd
    assert "neither 0/1 nor missing" in complaint(table)
