"""Options are compared without case and width: a teacher's sheet has "d" and "D"."""

import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError

KEY = {"q1": "A", "q2": "b", "q3": "C|D"}
ROWS = {"id": ["ann", "bob", "cy", "di"], "q1": ["A", "a", "Ａ", "b"], "q2": ["B", "b", "e", "E"],
        "q3": [" c ", "D", "d", "E"]}  # fmt: skip


def table(**how):
    return si.read(pl.DataFrame(ROWS), person="id", **how)


def notes(responses):
    return {finding.code: finding for finding in responses.findings()}


def test_case_and_width_do_not_matter_and_are_counted():
    found = table(key=KEY)
    assert found.to_dense().tolist() == [[1, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]]
    # a, the full-width A, the B of q2, c, d: the key's spelling is the other one. Of e, which is in no key, the
    # usual spelling E stands twice, and b of q1 is spelled as the key of q2.
    finding = notes(found)["letters_alike"]
    assert (finding.severity, finding.number) == ("note", 6)
    assert "6 answers were compared without regard to case and width" in finding.sentence
    assert "'a' as 'A'" in finding.sentence
    assert "spelled_unlike_key" not in notes(found)
    assert sorted(found.raw.options[2:]) == ["E", "b"]


def test_exact_case_tells_them_apart():
    found = table(key=KEY, exact_case=True)
    assert found.to_dense().tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert "letters_alike" not in notes(found)
    assert notes(found)["spelled_unlike_key"].number == 5
    with pytest.raises(OptionError, match="capitals included"):
        Responses.from_wide([["a"], ["b"]], key={0: "C"}, exact_case=True)


def test_a_key_that_tells_case_apart_is_followed():
    found = table(key={**KEY, "q1": {"A": 2, "a": 1}})
    assert found.to_dense()[:, 0].tolist() == [2, 1, 0, 0]
    assert "item 'q1'" in notes(found)["case_matters"].sentence
    alike = table(key={**KEY, "q1": "A|a"})  # both right: no reason to tell them apart
    assert alike.to_dense()[:, 0].tolist() == [1, 1, 1, 0]
    assert alike.raw.key["q1"] == "A"


def test_right_answers_whatever_the_item_and_codes_for_missing():
    found = table(correct="a", missing="E")
    assert found.to_dense()[:, 0].tolist() == [1, 1, 1, 0]
    assert found.n_responses == 9  # three are E or e
    assert notes(found)["letters_alike"].number == 2 + 2  # A and its full-width form for a, B for b, d for D
    assert table(correct="a", exact_case=True).to_dense()[:, 0].tolist() == [0, 1, 0, 0]


def test_numbers_and_answers_that_agree_are_without_a_note():
    found = Responses.from_wide([["1", "2"], ["2", "2"]], key={0: "1", 1: "2"})
    assert not notes(found).keys() & {"letters_alike", "case_matters"}
