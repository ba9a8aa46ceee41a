"""The design: what data say nothing, which items hang together, what people on repeated sets of items answered."""

import numpy as np
import pytest

from spectral_irt.data import Responses, design, unlinked
from spectral_irt.data.design import check_usable, components, evidence_of, examine, tied_to
from spectral_irt.data.shared_sets import SharedSets, shared_sets
from spectral_irt.errors import AnswersStayError, DesignError
from split import in_blocks

_ = None


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([[_, _], [_, _]], "no response at all"),
        ([[1], [0]], "a single item, 0,"),
        ([[1, 0]], "a single person, 0. .* `orient='items'"),
        ([[1, _], [_, 0], [_, _]], "none of the 3 people answered two items"),
        ([[1, 1], [1, 1]], "all 4 responses are right"),
        ([[0, 0], [_, 0]], "all 3 responses are wrong"),
    ],
)
def test_what_says_nothing(table, sentence):
    check_usable(Responses.from_wide([[1, 0], [_, 0]]))
    with pytest.raises(DesignError, match=f"the data: .*{sentence}"):
        check_usable(Responses.from_wide(table))


def test_the_same_category_everywhere_is_not_called_wrong():
    with pytest.raises(DesignError, match="all 6 responses are in the lowest category, so"):
        check_usable(Responses.from_wide([[2, 2], [2, 2], [2, 2]], ordered=True))


@pytest.mark.parametrize("seed", range(30))
def test_sums_alone_find_the_same_components(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (rng.integers(2, 25), rng.integers(2, 12))).astype(float)
    table[rng.random(table.shape) < rng.uniform(0.2, 0.85)] = np.nan
    responses = Responses.from_wide(table)
    answered = responses.item_counts > 0
    searched = [unlinked.components_by_search(responses), components(responses)]

    def stay(responses):
        raise AnswersStayError("as a database does")

    monkeypatch.setattr(unlinked, "components_by_search", stay)
    together = [
        labels[answered][:, None] == labels[answered] for labels in (*searched, components(Responses.from_wide(table)))
    ]
    for found in together:
        np.testing.assert_array_equal(found, together[0])


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("seed", range(15))
def test_components_do_not_depend_on_the_blocks(seed, most):
    """Of many blocks the first one is looked at alone before all of them are."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, most + 1, (30, 6)).astype(float)
    table[rng.random(table.shape) < rng.uniform(0.5, 0.8)] = np.nan
    responses = Responses.from_wide(table, ordered=most > 1, unused="keep") if most > 1 else Responses.from_wide(table)
    cut = in_blocks(responses, 3)
    assert len(cut.blocks) > design.MANY_BLOCKS
    together = [labels[:, None] == labels for labels in (components(cut), components(responses))]
    np.testing.assert_array_equal(*together)  # components of one size may be numbered by the last bits of a sum
    np.testing.assert_array_equal(cut.category_counts, responses.category_counts)


def test_an_item_that_nobody_answered_is_in_no_component():
    assert components(Responses.from_wide([[_, 1, 0]] * 3))[0] == -1


def test_components_of_ordered_answers():
    """Two forms that share no people: the larger is kept, and the finding names the other."""
    rng = np.random.default_rng(1)
    table = np.full((200, 7), np.nan)
    table[:120, :4], table[120:, 4:] = rng.integers(0, 3, (120, 4)), rng.integers(0, 3, (80, 3))
    answers = Responses.from_wide(table, ordered=True)
    found = {one.code: one for one in answers.findings()}
    assert found["disconnected"].items == (4, 5, 6)
    assert "the thresholds split into 2 groups that share no people" in found["disconnected"].sentence.lower()
    assert answers.largest_component().items.tolist() == [0, 1, 2, 3]


def test_kinds_of_people():
    people = [[1, _], [_, _], [1, 1], [0, 0], [1, 0], [0, 1], [0, _]]
    assert Responses.from_wide(people).kinds_of_people.tolist() == [1, 2, 1, 1, 2]


def test_what_the_anchors_reach():
    table = [[1, 0, _, _], [0, 1, _, _], [_, _, 1, 0], [_, _, 0, 1], [1, _, 0, _]]
    anchored = np.array([True, False, False, False])
    assert tied_to(Responses.from_wide(table), anchored).tolist() == [True, True, False, False]
    both = Responses.from_wide([*table, [0, _, 1, _]])
    assert tied_to(both, anchored).all()
    assert tied_to(both.take_persons([]), anchored).tolist() == anchored.tolist()


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
    expected = []
    for together in (False, True):
        fresh = responses.take_persons(np.arange(responses.n_persons))
        use = shared_sets(fresh, per_item=2, per_block=0, shared=0) if together else None
        assert isinstance(use, SharedSets) == together
        monkeypatch.setitem(vars(fresh), "shared", use)
        sums = (evidence_of(fresh), fresh.item_counts, fresh.item_scores, examine(fresh).information, components(fresh))
        expected.append(sums)
    for one, other in zip(*expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_where_nobody_shares_a_set_nothing_is_made():
    rng = np.random.default_rng(0)
    x = (rng.random((600, 60)) < 0.5).astype(float)
    x[rng.random(x.shape) < 0.5] = np.nan
    assert shared_sets(Responses.from_wide(x)) is None


def test_sets_with_one_key_are_told_apart(monkeypatch):
    """Keys of 64 bits do not meet by chance; if they did, people would be taken one by one."""
    monkeypatch.setattr("spectral_irt.data.shared_sets.scramble", lambda codes, salt: np.zeros(len(codes), "u8"))
    x = np.full((200, 6), np.nan)
    x[:100, :4] = np.arange(400).reshape(100, 4) % 3 == 0
    x[100:, 2:] = np.arange(400).reshape(100, 4) % 3 == 1
    assert shared_sets(Responses.from_wide(x), **ALL) is None
