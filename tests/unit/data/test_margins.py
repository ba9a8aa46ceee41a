"""Data at the margins: labels that look alike, tables beside the answers, rows of sums, options that say nothing."""

import gc
import io
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spectral_irt as si
from reading import read_text
from spectral_irt import Responses, SpectralRasch, SpectralRatingScale, datasets, read, simulate
from spectral_irt.data.block import Thresholds
from spectral_irt.data.packed_file import open_responses
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, SpectralIrtError
from spectral_irt.reading import text_pieces

# JSON lines.


@pytest.mark.parametrize("size", [40, 60, 90, 100_000])
def test_an_id_is_the_same_label_wherever_a_piece_ends(tmp_path, monkeypatch, size):
    lines = [
        {"person": person, "item": item, "response": (k + int(person)) % 2}
        for k, item in enumerate(("a", "b", "c", "d"))
        for person in (1, 2, 2.5, 3.0)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.setattr(text_pieces, "PIECE_BYTES", size)
    responses = read(tmp_path / "a.jsonl")
    assert responses.persons.tolist() == ["1", "2", "2.5", "3"]
    assert responses.n_responses == 16


# Packed files.


def test_packed_answers_keep_what_their_codes_mean(tmp_path):
    meaning = {"q1": {0.0: "never", 1.0: "often", 2.0: "always"}, "q2": {1.0: "often"}}
    answers = read(
        pl.DataFrame({"id": [1, 2, 3, 4], "q1": [0, 1, 2, 2], "q2": [2, 1, 0, 1]}), person="id", ordered=True
    )
    labeled = Responses(
        **{name: getattr(answers, name) for name in ("blocks", "items", "persons", "thresholds", "codes")},
        answer_labels=meaning,
    )
    labeled.save(tmp_path / "a.packed")
    opened = open_responses(tmp_path / "a.packed")
    assert opened.answer_labels == meaning
    assert opened.answer_names("q1", [0, 1, 2]) == labeled.answer_names("q1", [0, 1, 2])
    answers.save(tmp_path / "b.packed")
    assert open_responses(tmp_path / "b.packed").answer_labels == {}


# Tables beside the answers.


@pytest.fixture
def school(tmp_path):
    (tmp_path / "a.csv").write_text("person,sex,q1,q2\nann,f,1,0\nbob,m,0,1\ncy,f,1,1\n")
    return read(tmp_path / "a.csv", people="sex")


def test_columns_about_people_are_added_to_those_that_are_known(tmp_path, school):
    (tmp_path / "people.csv").write_text("person,class\ncy,7\nann,8\nzoe,9\n")
    people = school.with_people(tmp_path / "people.csv").people
    assert {name: values.tolist() for name, values in people.items()} == {"sex": ["f", "m", "f"], "class": [8, None, 7]}


def test_a_table_of_other_people_is_refused(tmp_path, school):
    (tmp_path / "people.csv").write_text("person,class\nAnn,7\nzoe,8\n")
    with pytest.raises(OptionError, match=r"none of the people in people.csv \('Ann', 'zoe'\) is in a.csv"):
        school.with_people(tmp_path / "people.csv")


def test_a_sample_is_of_those_it_is_to_be_of():
    answers = simulate.rasch(5, 4, seed=1).responses
    rng = np.random.default_rng(0)
    for size, among, expected in ((3, [0, 2], [0, 2]), (2, [4, 1], [1, 4]), (9, None, [0, 1, 2, 3, 4])):
        some, chosen = answers.sample(size, rng, None if among is None else np.array(among))
        assert chosen.tolist() == expected
        np.testing.assert_array_equal(some.to_dense(), answers.to_dense()[expected])
    some, chosen = answers.sample(2, rng, np.array([0, 2, 3]))
    assert (len(chosen), set(chosen) <= {0, 2, 3}) == (2, True)


# Names and rows that are nobody's.


def test_a_person_may_be_called_like_a_sum(tmp_path):
    text = "name,q1,q2\nann,1,0\nSum,0,1\nbob,1,1\nMean,1,0\nTotal,3,2\n\nAverage,0.6,0.4\n"
    with pytest.raises(ResponseValueError):  # Mean stands before Total, at the end, but Sum does not
        read_text(tmp_path, text.replace("Sum,0,1", "Sum,5,1"))
    responses = read_text(tmp_path, text)
    assert responses.persons.tolist() == ["ann", "Sum", "bob"]
    found = [one.sentence for one in responses.notes if one.code == "total_rows"]
    assert len(found) == 2
    assert "'Mean', 'Total', 'Average'" in found[0]
    assert "'Sum'" in found[1]


def test_the_average_of_a_class_is_no_pupil(tmp_path):
    """Below a sheet with a key, also where nothing was computed yet."""
    pupils = "name,q1,q2,q3\nKey,A,B,C\nann,A,B,C\nbob,A,A,C\ncy,B,B,C\ndee,A,C,C\n"
    for last in ("Class average,,,\n", "Class average,0.75,0.5,1\nSumme,3,2,4\n"):
        responses = read_text(tmp_path, pupils + last)
        assert responses.persons.tolist() == ["ann", "bob", "cy", "dee"]
        assert any("Class average" in one.sentence for one in responses.notes if one.code == "total_rows")


def test_lines_that_end_with_a_separator_have_no_item_more(tmp_path):
    responses = read_text(tmp_path, "person,q1,q2,\nann,1,0,\nbob,0,1,\n")
    assert responses.items.tolist() == ["q1", "q2"]
    assert "unnamed_columns" in [one.code for one in responses.notes]
    with pytest.raises(ReadError, match="column 4 has no name, and holds an answer in row 2"):
        read_text(tmp_path, "person,q1,q2, \nann,1,0,\nbob,0,1,1\n")


@pytest.mark.parametrize("label", ['""', " ", '"  "'])
def test_an_item_without_a_name_is_named_by_its_row(tmp_path, label):
    with pytest.raises(ReadError, match="column 'item', row 2 is empty"):
        read_text(tmp_path, f"person,item,response\nann,a,1\nann,{label},0\nbob,a,0\n")


def test_codes_that_point_to_nothing_are_refused():
    labels = {"persons": np.arange(2), "items": np.arange(2), "thresholds": Thresholds(np.array([2, 1]))}
    good = {"person": np.array([0, 1]), "item": np.array([0, 1]), "category": np.array([2, 1])}
    assert Responses.from_codes(**good, **labels).n_responses == 2
    for name, value in (("person", 2), ("item", 2), ("category", 2), ("person", -1), ("item", -1), ("category", -1)):
        with pytest.raises(ResponseValueError, match=f"code 1 of '{name}' is {value}"):
            Responses.from_codes(**(good | {name: np.array([0, value])}), **labels)


def test_an_arrow_file_is_closed(tmp_path):
    pl.DataFrame({"person": [1, 2], "q1": [1, 0], "q2": [0, 1]}).write_ipc(tmp_path / "a.arrow")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert read(tmp_path / "a.arrow").n_responses == 4
        gc.collect()
    assert not [one for one in heard if one.category is ResourceWarning]


def test_an_attribute_of_prompts_may_be_0_everywhere(tmp_path):
    rng = np.random.default_rng(1)
    rows = [(f"m{m}", f"p{p}", int(rng.random() < 0.3 + 0.05 * m)) for m in range(6) for p in range(12)]
    pl.DataFrame(rows, schema=["model", "prompt", "correct"], orient="row").write_csv(tmp_path / "a.csv")
    pl.DataFrame({"prompt": [f"p{k}" for k in range(12)], "kind": [0] * 12}).write_parquet(tmp_path / "p.parquet")
    board = si.Leaderboard.read(tmp_path / "a.csv", by="kind", prompts=tmp_path / "p.parquet")
    assert board is not None


def test_columns_named_after_one_sex_are_no_items(tmp_path):
    text = "id,female,q1,q2,q3\na,1,1,0,1\nb,0,0,1,1\nc,1,1,1,0\nd,0,1,0,0\n"
    assert read_text(tmp_path, text).items.tolist() == ["q1", "q2", "q3"]


def test_the_path_of_standard_input_is_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"person,q1,q2\nann,1,0\nbob,0,1\n"))
    monkeypatch.setattr("sys.stdin", stream)
    assert read("/dev/stdin").n_responses == 4


# Options.

FRAME = pl.DataFrame({"id": range(6), "a": [0, 1, 2, 0, 1, 2], "b": [2, 1, 0, 1, 1, 0], "c": [0, 0, 1, 2, 2, 1]})


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: read(FRAME, groups={"a": 1, "b": 1}, unused="keep"), "groups says nothing about 1 item: 'c'"),
        (lambda: read(FRAME, groups=[1, 2], unused="keep"), "groups has 2 labels; there are 3 items"),
        (lambda: read(FRAME, span=(1,), reverse="a"), "span is"),
        (lambda: read(FRAME, span=(0, 1.5), reverse="a"), "span is"),
        (lambda: read(FRAME, span=3, reverse="a"), "span is 3"),
        (lambda: simulate.partial_credit(10, 5, categories=[2, 3]), "`categories` has 2 numbers; there are 5 items"),
        (lambda: simulate.partial_credit(10, 5, categories=2.5), "`categories` is 2.5"),
        (lambda: simulate.partial_credit(10, 1, categories=3, thresholds=[[0.0]]), "disagree"),
        (lambda: simulate.rating_scale(10, 5, categories=3, thresholds=[-1, 0, 1, 2]), "`thresholds` are 4"),
        (lambda: SpectralRasch().fit(datasets.load_lsat()).calibration_.information(items=[]), "`items` names no item"),
        (lambda: SpectralRasch().fit(datasets.load_lsat()).calibration_.score_table(items=[]), "`items` names no item"),
        (lambda: read(datasets.load_lsat(), threshold=1), "`threshold=` says how to read"),
        (lambda: read(datasets.load_lsat(), ordered=True), "`ordered=` says how to read"),
        (lambda: read(datasets.load_lsat(), person="x", items="q*"), "`person=`, `items=` says how to read"),
    ],
)
def test_an_option_that_cannot_be_is_said_in_a_sentence(ask, says):
    with pytest.raises(OptionError) as error:
        ask()
    assert says in str(error.value)


@pytest.mark.parametrize("population", [(0, 0), (0, -1), (float("nan"), 1), (0, float("inf")), (1,), 3])
def test_a_population_has_a_spread(population):
    answers = datasets.load_lsat()
    bank = SpectralRasch().fit(answers).analyse(answers).to_bank()
    with pytest.raises(SpectralIrtError, match="`population` is"):
        si.next_item(bank, {}, population=population)


@pytest.mark.parametrize("kind", [list, np.array, tuple])
def test_groups_of_items_come_in_any_sequence(kind):
    table = FRAME.drop("id").to_numpy()
    groups = kind(["x", "y", "x"])
    by_hand = read(table, groups={0: "x", 1: "y", 2: "x"}, unused="keep")
    np.testing.assert_array_equal(read(table, groups=groups, unused="keep").to_dense(), by_hand.to_dense())
    fits = [SpectralRatingScale(groups=one).fit(table).difficulty_ for one in (groups, ["x", "y", "x"])]
    np.testing.assert_array_equal(*fits)


def test_responses_pass_through_reading_unchanged():
    answers = datasets.load_lsat()
    assert read(answers) is answers or read(answers).digest() == answers.digest()


# Ratings.


def test_an_item_of_ratings_is_reversed_for_every_rater():
    rng = np.random.default_rng(2)
    rows = [(p, r, *rng.integers(0, 4, 3)) for p in range(20) for r in ("x", "y")]
    ratings = pd.DataFrame(rows, columns=["person", "rater", "q1", "q2", "q3"])
    by_hand = ratings.assign(q1=3 - ratings["q1"])
    expected = read(by_hand, person="person", facets="rater", ordered=True)
    found = read(ratings, person="person", facets="rater", reverse="q1")
    assert found.items.tolist() == expected.items.tolist()
    np.testing.assert_array_equal(found.to_dense(), expected.to_dense())
    with pytest.raises(OptionError, match="'q9', which are not items; these are 'q1', 'q2', 'q3'"):
        read(ratings, person="person", facets="rater", reverse="q9")
