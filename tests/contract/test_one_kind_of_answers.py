"""Right and wrong is the case of one threshold: answers 0 and 1 are the same data, scored or read as categories."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.errors import ResponseValueError

TABLE = np.random.default_rng(20).choice([0.0, 1.0, np.nan], (60, 9), p=[0.35, 0.45, 0.2])


@pytest.fixture
def both():
    """Read as right and wrong, and as categories; that every other door gives the same is told by test_every_door."""
    return tuple(si.read(TABLE, ordered=ordered) for ordered in (False, True))


def same_blocks(one, other):
    assert len(one.blocks) == len(other.blocks)
    for mine, theirs in zip(one.blocks, other.blocks, strict=True):
        for name in ("indptr", "split", "items"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name))


def test_the_same_blocks_and_labels(both):
    one, other = both
    same_blocks(one, other)
    assert one.items.tolist() == other.items.tolist()
    assert one.persons.tolist() == other.persons.tolist()
    assert one.thresholds.binary
    assert other.thresholds.binary
    assert one.entries is one
    assert other.entries is other
    assert one.digest() == other.digest()
    assert repr(one) == repr(other)


def test_the_same_counts_and_findings(both):
    one, other = both
    for name in ("n_responses", "n_persons", "n_items"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("counts", "scores", "max_scores", "informative", "kinds_of_people", "item_counts", "item_scores"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(one.category_counts, other.category_counts)
    assert np.array_equal(one.category_codes(), other.category_codes())
    assert np.array_equal(one.to_dense(), other.to_dense(), equal_nan=True)
    assert [f.code for f in one.findings()] == [f.code for f in other.findings()]


def test_the_same_parts(both):
    one, other = both
    chosen, some = [6, 1, 3], np.arange(0, 60, 3)
    same_blocks(one.take_items(chosen), other.take_items(chosen))
    same_blocks(one.take_persons(some), other.take_persons(some))
    same_blocks(one.in_one_block(), other.in_one_block())
    same_blocks(one.largest_component(), other.largest_component())
    for mine, theirs in zip(one.answers(), other.answers(), strict=True):
        assert np.array_equal(mine, theirs)


def test_what_knows_right_and_wrong_only_refuses_more_categories():
    answers = si.read([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    for ask in (answers.sum, answers.map, answers.gather, answers.prepare, answers.transform):
        with pytest.raises(ResponseValueError, match="right and wrong answers only"):
            ask(len)
    assert not answers.thresholds.binary
    assert answers.entries.thresholds.binary
