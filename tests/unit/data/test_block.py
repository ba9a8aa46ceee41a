"""Block: its matrices and its parts against the dense table they stand for."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from dense import AWKWARD
from spectral_irt import numerics
from spectral_irt.data import Block, Responses

N_ITEMS = AWKWARD.shape[1]


@pytest.fixture
def block() -> Block:
    return Responses.from_wide(AWKWARD).blocks[0]


def dense(block: Block, n_items: int = N_ITEMS) -> np.ndarray:
    """The table a block stands for, read straight from its definition."""
    X = np.full((block.n_persons, n_items), np.nan)
    for person in range(block.n_persons):
        for k in range(block.indptr[person], block.indptr[person + 1]):
            X[person, block.items[k]] = 1 if k < block.split[person] else 0
    return X


def test_packs_ones_first_then_zeros_in_item_order(block: Block) -> None:
    np.testing.assert_array_equal(dense(block), AWKWARD)
    assert block.items.dtype == np.int32
    assert block.items[:5].tolist() == [0, 2, 6, 1, 3]  # person 0: right on 0, 2, 6, wrong on 1, 3
    assert block.split[0] == 3


def test_counts_scores_and_who_is_informative(block: Block) -> None:
    assert block.n_persons == len(AWKWARD)
    assert block.n_responses == np.sum(~np.isnan(AWKWARD))
    np.testing.assert_array_equal(block.counts, np.sum(~np.isnan(AWKWARD), axis=1))
    np.testing.assert_array_equal(block.scores, np.nansum(AWKWARD, axis=1))
    # Not the empty person (1), the perfect one (3), the one with nothing right (4), nor the one with one answer (5).
    assert np.flatnonzero(block.informative).tolist() == [0, 2, 6, 7]


def test_pattern_has_a_row_of_right_and_a_row_of_wrong_answers_a_user(block: Block) -> None:
    rows = block.pattern(N_ITEMS).toarray()
    np.testing.assert_array_equal(rows[0::2], AWKWARD == 1)
    np.testing.assert_array_equal(rows[1::2], AWKWARD == 0)
    assert block.pattern(N_ITEMS) is block.pattern(N_ITEMS)


def test_matrix_puts_a_value_on_every_response(block: Block) -> None:
    values = np.arange(1.0, block.n_responses + 1)
    rows = block.matrix(values, N_ITEMS).toarray()
    expected = np.zeros((2 * block.n_persons, N_ITEMS))
    for k, (person, item, right) in enumerate(zip(block.person_of_response(), block.items, block.right(), strict=True)):
        expected[2 * person + (not right), item] = values[k]
    np.testing.assert_array_equal(rows, expected)


def test_threads_that_make_patterns_at_once_each_get_all_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared values are grown by whoever needs more; too short an array would be read beyond its end."""

    class Overtaken(np.ndarray):
        """Another thread, which needs one value only, puts its array in place as soon as this one is there."""

        def setflags(self, **flags: bool) -> None:  # type: ignore[override]
            numerics._ones[np.float64] = np.ones(1)

    monkeypatch.setattr(numerics, "_ones", {})
    monkeypatch.setattr(numerics, "np", SimpleNamespace(ones=lambda size, dtype: np.ones(size).view(Overtaken)))
    assert len(numerics.shared_ones(5)) == 5


@pytest.mark.parametrize("persons", [[0, 2, 7], [1], [3, 3, 1], [], range(8)])
def test_take(block: Block, persons: list[int]) -> None:
    taken = block.take(np.array(persons, dtype=np.int64))
    np.testing.assert_array_equal(dense(taken), AWKWARD[list(persons)])


def test_keep_items(block: Block) -> None:
    new_code = np.array([-1, 1, -1, 2, 0, -1, -1], dtype=np.int32)
    kept = block.keep_items(new_code)
    np.testing.assert_array_equal(dense(kept, 3), AWKWARD[:, [4, 1, 3]])
    assert kept.n_persons == block.n_persons


def test_pickle_carries_the_answers_and_not_the_matrices(block: Block) -> None:
    bare = len(pickle.dumps(block))
    block.pattern(N_ITEMS)
    assert len(pickle.dumps(block)) == bare
    again = pickle.loads(pickle.dumps(block))
    np.testing.assert_array_equal(dense(again), AWKWARD)
    np.testing.assert_array_equal(again.pattern(N_ITEMS).toarray(), block.pattern(N_ITEMS).toarray())


def test_halves_are_the_right_and_the_wrong_answers(block: Block) -> None:
    right, wrong = block.halves(N_ITEMS)
    np.testing.assert_array_equal(right.toarray(), AWKWARD == 1)
    np.testing.assert_array_equal(wrong.toarray(), AWKWARD == 0)
    assert block.halves(N_ITEMS)[0] is right
