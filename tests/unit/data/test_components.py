"""Components of the design, found with the answers at hand and from sums over people alone."""

import numpy as np
import pytest

from spectral_irt import Responses
from spectral_irt.data import design
from spectral_irt.data.design import _components_of, components, tied_to
from spectral_irt.errors import AnswersStayError


def stay(responses):
    raise AnswersStayError("as a database does")


@pytest.mark.parametrize("seed", range(30))
def test_sums_alone_find_the_same_components(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (rng.integers(2, 25), rng.integers(2, 12))).astype(float)
    table[rng.random(table.shape) < rng.uniform(0.2, 0.85)] = np.nan
    responses = Responses.from_wide(table)
    answered = responses.item_counts > 0
    searched = [_components_of(responses), components(responses)]
    monkeypatch.setattr(design, "_components_of", stay)
    for found in (*searched, components(Responses.from_wide(table))):
        np.testing.assert_array_equal(same_group(found, answered), same_group(searched[0], answered))


def same_group(labels, answered):
    return labels[answered][:, None] == labels[answered]


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
    people = [[1, None], [None, None], [1, 1], [0, 0], [1, 0], [0, 1], [0, None]]
    assert Responses.from_wide(people).kinds_of_people.tolist() == [1, 2, 1, 1, 2]


def test_what_the_anchors_reach():
    nan = np.nan
    table = [[1, 0, nan, nan], [0, 1, nan, nan], [nan, nan, 1, 0], [nan, nan, 0, 1], [1, nan, 0, nan]]
    responses = Responses.from_wide(table)
    assert tied_to(responses, np.array([True, False, False, False])).tolist() == [True, True, False, False]
    both = Responses.from_wide([*table, [0, nan, 1, nan]])
    assert tied_to(both, np.array([True, False, False, False])).all()
    nobody = both.take_persons([])
    assert tied_to(nobody, np.array([True, False, False, False])).tolist() == [True, False, False, False]
