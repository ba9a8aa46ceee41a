"""Ordered answers in packed blocks: what goes in comes out, and what cannot be is said."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from spectral_irt import ConditionalRasch, JointRasch, Responses, SpectralRasch, simulate
from spectral_irt.data.same_items import distinct_rows
from spectral_irt.errors import OptionError, ResponseValueError

_ = np.nan
TABLE = np.array([[0, 1, 2, _], [2, 0, 3, 1], [_, _, _, _], [1, 1, 0, 0], [2, 1, 1, 1], [0, _, 3, _]], dtype=float)
GIVEN = np.nonzero(~np.isnan(TABLE))


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


def test_counts_of_answers_and_entries_differ():
    answers = Responses.from_wide(TABLE, ordered=True)
    assert answers.thresholds.max_score.tolist() == [2, 1, 3, 1]
    assert same(answers.to_dense(), TABLE)
    assert answers.counts.tolist() == (~np.isnan(TABLE)).sum(axis=1).tolist()
    assert answers.scores.tolist() == np.nansum(TABLE, axis=1).tolist()
    assert answers.n_responses == np.sum(~np.isnan(TABLE))
    assert answers.item_counts.tolist() == (~np.isnan(TABLE)).sum(axis=0).tolist()
    assert answers.item_scores.tolist() == np.nansum(TABLE, axis=0).tolist()
    assert answers.max_scores.tolist() == [6, 7, 0, 7, 7, 5]
    middle = np.sum((TABLE == 1)[:, [0, 2]]) + np.sum(TABLE[:, 2] == 2)  # two entries each
    assert answers.entries.n_responses == answers.n_responses + middle
    assert answers.category_counts[2].tolist() == [1, 1, 1, 2]


def test_parts():
    answers = Responses.from_wide(TABLE, items=list("abcd"), ordered=True)
    assert same(answers.take_items([2, 0]).to_dense(), TABLE[:, [2, 0]])
    assert answers.take_items([2, 0]).items.tolist() == ["c", "a"]
    assert same(answers.take_persons([True, False, True, False, True, False]).to_dense(), TABLE[::2])
    assert same(answers.in_one_block().to_dense(), TABLE)
    assert same(pickle.loads(pickle.dumps(answers)).to_dense(), TABLE)
    assert answers.digest() != Responses.from_wide(3 - TABLE, items=list("abcd"), ordered=True).digest()
    person, item, category = answers.answers()
    dense = np.full(TABLE.shape, np.nan)
    dense[person, item] = category
    assert same(dense, TABLE)


def test_several_blocks(monkeypatch):
    from spectral_irt.data import packing as pack

    table = simulate.partial_credit(200, 5, categories=[3, 2, 5, 4, 3], seed=3).responses.to_dense()
    chunks = pack.person_chunks
    monkeypatch.setattr(pack, "person_chunks", lambda indptr, **how: chunks(indptr, 100))
    answers = Responses.from_wide(table, ordered=True)
    assert len(answers.blocks) > 5
    assert same(answers.to_dense(), table)
    assert same(answers.take_persons(np.arange(50, 150)).to_dense(), table[50:150])


WAYS = {
    "list": lambda: [[None if np.isnan(x) else int(x) for x in row] for row in TABLE],
    "masked": lambda: np.ma.masked_array(np.nan_to_num(TABLE), np.isnan(TABLE)),
    "object": lambda: np.array([[None if np.isnan(x) else int(x) for x in row] for row in TABLE], dtype=object),
    "sparse": lambda: sparse.coo_array((TABLE[GIVEN], GIVEN), shape=TABLE.shape),
}


@pytest.mark.parametrize(("duplicates", "code"), [("first", 2), ("last", 1)])
def test_repeated_answers(duplicates, code):
    """Categories are numbered without those that nobody has any more."""
    columns = (["a", "a", "b", "a"], ["q", "r", "q", "q"], [2, 1, 0, 1])
    found = Responses.from_long(*columns, duplicates=duplicates, ordered=True)
    assert same(found.to_dense(), np.array([[1, 1], [0, _]]))
    assert found.category_codes()[0].tolist() == [0, code]


# -------------------------------------------------------------------------------- categories nobody used


def test_categories_nobody_used():
    table = np.array([[0, 1], [3, 2], [5, 1], [3, 3]], dtype=float)
    answers = Responses.from_wide(table, items=["a", "b"], ordered=True)
    assert same(answers.to_dense(), np.array([[0, 0], [1, 1], [2, 0], [1, 2]]))
    (note,) = answers.notes
    assert note.code == "categories_collapsed"
    assert note.items == ("a", "b")
    with pytest.raises(ResponseValueError, match=r"'a', 'b'.*unused='collapse'"):
        Responses.from_wide(table, items=["a", "b"], unused="error", ordered=True)
    kept = Responses.from_wide(table, unused="keep", ordered=True)  # 4 is nobody's in either
    assert kept.thresholds.max_score.tolist() == [4, 4]
    assert same(kept.to_dense(), np.array([[0, 1], [3, 2], [4, 1], [3, 3]]))
    by_group = Responses.from_wide(table, unused="keep", groups=["x", "y"], ordered=True)
    assert by_group.thresholds.max_score.tolist() == [2, 2]
    with pytest.raises(OptionError, match="unused"):
        Responses.from_wide(table, unused="drop", ordered=True)


def test_an_item_answered_alike_by_all():
    answers = Responses.from_wide([[0, 1, 3], [2, 1, 3], [1, 1, 3]], ordered=True)
    assert answers.thresholds.max_score.tolist() == [2, 1, 1]
    assert same(answers.to_dense(), np.array([[0, 1, 1], [2, 1, 1], [1, 1, 1]]))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.5, "column 2, row 1 holds 0.5, which is not a category: these are whole numbers from 0"),
        (-1, "-1, which is not a category.*missing='-1'"),
        (np.inf, "inf, which is not a category"),
        (200, "200, which is not a category: .* from 0 to 100"),
    ],
)
def test_bad_values(value, words):
    table = TABLE.copy()
    table[1, 2] = value
    with pytest.raises(ResponseValueError, match=words):
        Responses.from_wide(table, ordered=True)
    if value == -1:
        table[4, 0] = _
        assert np.isnan(Responses.from_wide(table, missing=-1, ordered=True).to_dense()[1, 2])


@pytest.mark.parametrize("estimator", [SpectralRasch(), ConditionalRasch(), JointRasch()])
def test_estimators_of_right_and_wrong_refuse(estimator):
    with pytest.raises(ResponseValueError, match=r"more than two categories .item 2 has 4."):
        estimator.fit(Responses.from_wide(TABLE, ordered=True))


def test_distinct_rows():
    table = simulate.partial_credit(500, 4, categories=3, seed=3).responses.to_dense()
    table[np.random.default_rng(1).random(table.shape) < 0.3] = np.nan
    answers = Responses.from_wide(table, ordered=True)
    found = distinct_rows(answers)
    keys = [(tuple(np.flatnonzero(~np.isnan(row))), np.nansum(row)) for row in table]
    assert len(set(keys)) == len(found.count)
    assert found.count.sum() == 500
    for person, key in enumerate(keys):
        k = found.of_person[person]
        items = found.rows.items[found.rows.indptr[k] : found.rows.indptr[k + 1]]
        assert (tuple(sorted(items)), found.rows.scores[k]) == key
