"""What people on repeated sets told, against counting it person by person."""

import numpy as np
import pytest

from spectral_irt.data import Responses
from spectral_irt.data.design import components, evidence_of, examine
from spectral_irt.data.same_items import SharedSets, shared_sets
from split import in_blocks

ALL = {"per_item": 0.0, "per_block": 0.0, "shared": 0.0}


def booklets(missing=0.0, people=400, seed=1):
    """Three overlapping booklets of 12 items, some answers perhaps missing, and an item everybody got right."""
    rng = np.random.default_rng(seed)
    beta = np.append(rng.normal(size=11), -20.0)
    x = (rng.random((people, 12)) < 1 / (1 + np.exp(beta - rng.normal(size=(people, 1))))).astype(float)
    for number, left_out in enumerate(([], [0, 1, 2], [9, 10])):
        x[number::3][:, left_out] = np.nan
    x[rng.random(x.shape) < missing] = np.nan
    x[:3] = np.nan  # people without answers
    x[3:6] = np.where(np.isnan(x[3:6]), np.nan, 1.0)
    return Responses.from_wide(x)


@pytest.mark.parametrize("missing", [0.0, 0.03, 0.5])
@pytest.mark.parametrize("people_per_block", [10_000, 37])
def test_the_tables_are_what_counting_gives(missing, people_per_block):
    responses = in_blocks(booklets(missing, 400 if missing < 0.5 else 100), people_per_block)
    found = shared_sets(responses, **ALL)
    assert found is not None
    x = responses.to_dense()
    seen = 0
    for one in found.sets:
        on = np.flatnonzero(np.all(np.isnan(x) == ~np.isin(np.arange(12), one.items), axis=1))
        seen += len(on)
        answers = x[np.ix_(on, one.items)]
        scores = answers.sum(axis=1)
        mixed = (scores > 0) & (scores < len(one.items))
        assert one.people.tolist() == [np.sum(scores == s) for s in range(len(one.items) + 1)]
        for s in range(len(one.items) + 1):
            np.testing.assert_array_equal(one.right[s], answers[scores == s].sum(axis=0))
        np.testing.assert_array_equal(one.together, answers[mixed].T @ answers[mixed])
    assert found.rest is not None  # those without answers, or with one
    assert seen + found.rest.n_persons == responses.n_persons


@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_the_design_is_the_same(missing, monkeypatch):
    responses = booklets(missing)
    expected = {}
    for how in ("one by one", "together"):
        fresh = responses.take_persons(np.arange(responses.n_persons))
        use = None if how == "one by one" else shared_sets(fresh, per_item=2, per_block=0, shared=0)
        assert isinstance(use, SharedSets) == (how == "together")
        monkeypatch.setitem(vars(fresh), "shared", use)
        design = examine(fresh)
        expected[how] = (
            evidence_of(fresh),
            fresh.item_counts,
            fresh.item_scores,
            design.information,
            components(fresh),
        )
    for one, other in zip(expected["one by one"], expected["together"], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_where_nobody_shares_a_set_nothing_is_made():
    rng = np.random.default_rng(0)
    x = (rng.random((600, 60)) < 0.5).astype(float)
    x[rng.random(x.shape) < 0.5] = np.nan
    assert shared_sets(Responses.from_wide(x)) is None


def test_sets_with_one_key_are_told_apart(monkeypatch):
    """Keys of 64 bits do not meet by chance; if they did, people would be taken one by one."""
    monkeypatch.setattr("spectral_irt.data.same_items.scramble", lambda codes, salt: np.zeros(len(codes), "u8"))
    x = np.full((200, 6), np.nan)
    x[:100, :4] = np.arange(400).reshape(100, 4) % 3 == 0
    x[100:, 2:] = np.arange(400).reshape(100, 4) % 3 == 1
    assert shared_sets(Responses.from_wide(x), **ALL) is None
