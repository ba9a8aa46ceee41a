"""Groups of items at weak links, against designs whose forms are known."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt.data import Responses
from spectral_irt.inference.items.links import WEAK, item_links


def forms(blocks: list[tuple[range, int]], m: int, seed: int = 0) -> Responses:
    """So many people for each range of items."""
    rng = np.random.default_rng(seed)
    rows = []
    for items, people in blocks:
        x = np.full((people, m), np.nan)
        x[:, list(items)] = rng.random((people, len(items))) < 0.5
        rows.append(x)
    return Responses.from_wide(np.concatenate(rows))


def test_two_forms_and_a_few_people_who_took_both() -> None:
    found = item_links(forms([(range(20), 300), (range(20, 40), 300), (range(40), 15)], 40))
    assert found.group.tolist() == [0] * 20 + [1] * 20
    assert found.persons.tolist() == [[315, 15], [15, 315]]
    # W by its definition: equal counts, so a step from an item goes to its 315 people, then to one of their items.
    assert found.flow[0, 1] == pytest.approx(15 / 315 * 0.5)
    assert found.flow[0, 1] < WEAK
    assert found.slowness > 0.9


def test_complete_data_are_one_group() -> None:
    found = item_links(forms([(range(12), 200)], 12))
    assert found.items.tolist() == [12]
    assert found.persons.tolist() == [[200]]
    assert found.slowness < 0.1


def test_a_chain_of_forms_comes_out_in_its_order() -> None:
    starts = range(0, 18 * 5, 18)
    found = item_links(forms([(range(start, start + 20), 150) for start in starts], 92))
    assert len(found.items) == 5
    assert (np.diff(found.group) >= 0).all()
    beside = [found.persons[k, k + 1] for k in range(4)]
    assert min(beside) > 0
    assert found.persons[0, 3] == found.persons[0, 4] == 0  # anchors of a form may stand in the next group


def test_parts_without_any_link_and_items_that_are_alone() -> None:
    responses = forms([(range(8), 50), (range(8, 13), 50)], 15)
    single = np.full((3, 15), np.nan)
    single[:, 13] = [1, 0, 1]
    found = item_links(Responses.from_wide(np.concatenate([responses.to_dense(), single])))
    assert found.group.tolist() == [0] * 8 + [1] * 5 + [-1, -1]
    assert found.persons.tolist() == [[50, 0], [0, 50]]
    assert found.slowness == 1.0


def test_more_parts_than_can_be_drawn() -> None:
    found = item_links(forms([(range(3 * k, 3 * k + 3), 20) for k in range(20)], 60), most=5)
    assert len(found.items) == 5
    assert found.items.sum() == 60


def test_nobody_answered_two_items() -> None:
    found = item_links(forms([(range(1), 5), (range(1, 2), 5)], 2))
    assert found.items.tolist() == []
    assert np.isnan(found.slowness)
