"""Answers are scored and packed by category: keys with several options or scores, what is missing, beyond memory."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.engine.memory import budget
from spectral_irt.errors import DuplicateResponseError, OptionError, ResponseValueError

CHOICES = pl.DataFrame({"who": ["ann", "bob", "cy", "dee"], "q1": list("ACBA"), "q2": list("BDAB"), "q3": list("AABB")})


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


def shuffled(n_people, n_items, seed):
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 5, (n_people, n_items))
    person, item = (part.ravel() for part in np.indices(answers.shape))
    order = rng.permutation(len(person))
    columns = {"person": person[order], "item": item[order], "response": answers.ravel()[order]}
    return pl.DataFrame(columns), answers


def test_ordered_answers_are_read_beyond_memory(tmp_path, monkeypatch):
    frame, answers = shuffled(2000, 30, 1)
    file = tmp_path / "answers.parquet"
    frame.write_parquet(file)
    inside = si.read(file, ordered=True)
    monkeypatch.setattr(type(budget()), "room", property(lambda self: 1000))
    outside = si.read(file, ordered=True)
    assert outside.digest() == inside.digest()
    np.testing.assert_array_equal(outside.to_dense(), answers)


def test_a_category_of_dropped_answers_only_is_not_there():
    columns = [["a", "a", "b", "b", "a", "c", "c"], ["x", "y", "x", "y", "x", "x", "y"], [3, 1, 1, 0, 0, 2, 1]]
    kept = si.Responses.from_long(*columns, duplicates="last", ordered=True)
    assert kept.thresholds.max_score.tolist() == [2, 1]  # nobody has 3 now
    assert table(kept) == [[0, 1], [1, 0], [2, 1]]
    first = si.Responses.from_long(*columns, duplicates="first", ordered=True)
    assert first.category_codes()[0].tolist() == [1, 2, 3]
    with pytest.raises(DuplicateResponseError, match=r"1 \(person, item\) pair"):
        si.Responses.from_long(*columns, ordered=True)
