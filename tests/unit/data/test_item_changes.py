"""Items split, joined and with merged categories: blocks are changed as a table of people x items would be."""

from dataclasses import replace

import numpy as np
import pytest

from spectral_irt import Responses
from spectral_irt.data.item_changes import (
    collapse_items,
    identity_of_categories,
    join_items,
    split_item,
    without_unused,
)


def table(n_categories, seed, n_persons=60, n_items=6):
    """Responses of people x items, a fifth of them missing, coded from 1 where there are several categories."""
    rng = np.random.default_rng(seed)
    first = 1 if n_categories > 2 else 0
    values = rng.integers(first, first + n_categories, (n_persons, n_items)).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    values[0] = np.nan  # a person without any response
    return values


def responses_of(values, blocks=1):
    responses = Responses.from_wide(values, ordered=True) if np.nanmax(values) > 1 else Responses.from_wide(values)
    if blocks == 1:
        return responses
    parts = np.array_split(np.arange(responses.n_persons), blocks)
    return replace(responses, blocks=tuple(responses.take_persons(part).blocks[0] for part in parts))


KINDS = pytest.mark.parametrize("n_categories", [2, 4])


@KINDS
def test_split_gives_each_group_a_column(n_categories):
    values = table(n_categories, seed=1)
    group = np.random.default_rng(2).integers(-1, 3, len(values))
    responses = responses_of(values, blocks=3)
    changed = split_item(responses, 2, ["x", "y", "z"], group)
    categories = responses.to_dense()
    own = [np.where(group == g, categories[:, 2], np.nan) for g in range(3)]
    expected = np.column_stack([categories[:, :2], *own, categories[:, 3:]])
    np.testing.assert_array_equal(changed.to_dense(), expected)
    assert changed.items.tolist() == [0, 1, "x", "y", "z", 3, 4, 5]


@KINDS
@pytest.mark.parametrize("parts", [[1, 3], [4, 0, 2]])
def test_join_adds_categories_and_misses_what_a_person_lacks(n_categories, parts):
    values = table(n_categories, seed=3)
    responses = responses_of(values, blocks=2)
    changed = join_items(responses, parts, "sum")
    categories = responses.to_dense()
    others = [k for k in range(6) if k not in parts]
    place = sum(k < min(parts) for k in others)
    expected = np.insert(categories[:, others], place, categories[:, parts].sum(axis=1), axis=1)
    np.testing.assert_array_equal(changed.to_dense(), expected)
    # Packed anew from the table, the blocks are the same: entries stayed in order.
    person, item = np.nonzero(np.isfinite(expected))
    known = {"persons": changed.persons, "items": changed.items, "thresholds": changed.thresholds}
    again = Responses.from_codes(person, item, expected[person, item].astype(int), **known)
    assert again.digest() == changed.digest()


def test_join_is_what_reading_the_sum_gives():
    values = table(3, seed=5, n_persons=300)
    values -= 1  # codes from 0, so that the sum is a code of the data
    responses = responses_of(values)
    changed = join_items(responses, [1, 4], "1+4")
    other = np.column_stack([values[:, 0], values[:, 1] + values[:, 4], values[:, 2], values[:, 3], values[:, 5]])
    again = Responses.from_wide(other, items=changed.items.tolist(), ordered=True)
    assert changed.digest() == again.digest()
    np.testing.assert_array_equal(changed.codes, again.codes)


def test_collapse_is_what_reading_the_merged_codes_gives():
    values = table(4, seed=7, n_persons=200)
    responses = responses_of(values, blocks=4)
    new = identity_of_categories(responses.thresholds)
    new[1] = [0, 1, 1, 2]
    new[4] = [0, 0, 1, 1]
    changed = collapse_items(responses, new)
    other = values.copy()
    other[:, 1] = np.select([values[:, 1] == k for k in (1, 2, 3, 4)], [1, 2, 2, 3], np.nan)
    other[:, 4] = np.select([values[:, 4] == k for k in (1, 2, 3, 4)], [1, 1, 2, 2], np.nan)
    assert changed.digest() == Responses.from_wide(other, ordered=True).digest()
    # Sums of codes stay those of the questionnaire, of everybody, and of some people.
    some = changed.take_persons(np.arange(0, 200, 3))
    for responses_, codes in ((changed, values), (some, values[::3])):
        category = np.nan_to_num(responses_.to_dense()).astype(int)
        low = np.where(np.isnan(codes), 0, np.take_along_axis(responses_.codes, category.T, axis=1).T)
        np.testing.assert_array_equal(low.sum(axis=1) + responses_.code_excess, np.nansum(codes, axis=1))


def test_collapse_of_an_unused_category_is_reading_without_it():
    values = table(4, seed=9, n_persons=200)
    values[values[:, 3] == 2, 3] = 3  # nobody has code 2 of the fourth item
    kept = Responses.from_wide(values, ordered=True, unused="keep")
    read = Responses.from_wide(values, ordered=True)
    changed = without_unused(kept, [3])
    assert changed.digest() == read.digest()
    np.testing.assert_array_equal(changed.codes, read.codes)
    assert changed.codes_high is None


def test_join_after_categories_were_merged_keeps_the_sums_of_codes():
    values = table(4, seed=11, n_persons=150)
    responses = responses_of(values)
    new = identity_of_categories(responses.thresholds)
    new[1] = [0, 1, 1, 2]
    changed = join_items(collapse_items(responses, new), [1, 2], "1+2")
    both = np.isfinite(values[:, 1]) & np.isfinite(values[:, 2])
    expected = np.nansum(np.where(both[:, None] | ~np.isin(np.arange(6), [1, 2]), values, np.nan), axis=1)
    category = changed.to_dense()
    low = np.take_along_axis(changed.codes, np.nan_to_num(category).astype(int).T, axis=1).T
    sums = np.where(np.isnan(category), 0, low).sum(axis=1) + changed.code_excess
    known = np.isfinite(sums)
    np.testing.assert_array_equal(sums[known], expected[known])
    assert known[both].all()
