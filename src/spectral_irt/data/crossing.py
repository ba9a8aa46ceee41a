"""Responses seen in another way: items crossed with a column about persons; persons taken apart by occasion or item.

The main effect of a column about persons is in their abilities and is conditioned out; but where items are met on
several occasions, it may act on some of these (waves and arms of a trial). `cross_with_column` makes it a facet: a
virtual item for each item, occasion and value, of which a person meets those of the person's own value only.
`persons_by_level` makes a person of the answers that each person gave on one occasion (what is measured there), or to
one item on all occasions (Fischer's LLRA).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Ints, Thresholds, rows_of
from spectral_irt.data.facets import SEPARATOR, Facets
from spectral_irt.data.labels import People, Split, by_label
from spectral_irt.data.responses import Responses
from spectral_irt.engine.base import concatenate
from spectral_irt.errors import OptionError
from spectral_irt.numerics import chosen_or_none


class Answers(NamedTuple):
    """The response of each person to each virtual item, one by one."""

    person: Ints
    item: Ints
    category: Ints


def answers_of(responses: Responses) -> Answers:
    parts = list(responses.entries.map(_answers, responses.thresholds))
    counts, item, category = concatenate(iter(parts))
    return Answers(np.repeat(np.arange(responses.n_persons), counts), item, category)


def _answers(block: Block, layout: Thresholds) -> tuple[Ints, Ints, Ints]:
    rows = rows_of(block, layout)
    category = block.right() if rows.category is None else rows.category
    return rows.counts, np.asarray(rows.items).astype(np.int64), np.asarray(category).astype(np.int64)


class Regrouped(NamedTuple):
    """The responses of persons taken apart, with the person and the level that each of the new ones is of."""

    responses: Responses
    person: Ints
    level: Ints


def cross_with_column(responses: Responses, name: str, split: Split | None = None) -> Responses:
    """The responses with a column about persons as a further facet; persons without a value are left out."""
    if split is None:
        split = by_label(responses, name)
    some = responses.take_persons(split.group >= 0)
    group = split.group[split.group >= 0]
    answers = answers_of(some)
    facets = some.facets or Facets(("item",), (some.items,), np.arange(some.n_items)[:, None])
    if name in facets.names:
        raise OptionError(f"{name!r} is a facet of these responses, and no column about persons.")
    pairs, item = np.unique(answers.item * split.n_groups + group[answers.person], return_inverse=True)
    old = pairs // split.n_groups
    codes = np.column_stack([facets.codes[old], pairs % split.n_groups])
    levels = (*facets.levels, np.array(split.names, dtype=object))
    return _responses_to_items(some, answers._replace(item=item), old, Facets((*facets.names, name), levels, codes))


def persons_by_level(
    responses: Responses, code: Ints, labels: NDArray[Any], *, keep: Facets | None = None
) -> Regrouped:
    """A person for the answers that each person gave to the virtual items of each `code` (levels with `labels`).

    With the facets to `keep`, virtual items stay what they are; else they become the items themselves.
    """
    answers = answers_of(responses)
    n_levels = len(labels)
    pairs, person = np.unique(answers.person * n_levels + code[answers.item], return_inverse=True)
    of_person = pairs // n_levels
    level = pairs % n_levels
    names = [f"{responses.persons[k]}{SEPARATOR}{labels[n]}" for k, n in zip(of_person, level, strict=True)]
    persons = np.array(names, dtype=object)
    people = None
    if responses.people is not None:
        people = People(persons, {name: values[of_person] for name, values in responses.people.items()})
    again = replace(responses, persons=persons, people=people, blocks=(), raw=None, code_excess=None)
    assert responses.facets is not None
    if keep is not None:
        old = np.arange(responses.n_items)
        return Regrouped(_responses_to_items(again, answers._replace(person=person), old, keep), of_person, level)
    item = responses.facets.item[answers.item]
    stacked = _responses_to_items(again, Answers(person, item, answers.category), responses.facets.first, None)
    return Regrouped(replace(stacked, items=responses.facets.items), of_person, level)


def _responses_to_items(responses: Responses, answers: Answers, old: Ints, facets: Facets | None) -> Responses:
    """Responses to other items, each like one of the old ones."""
    codes = chosen_or_none(responses.codes, old)
    items = responses.items[old] if facets is None else facets.labels()
    packed = Responses.from_codes(
        answers.person,
        answers.item,
        answers.category,
        persons=responses.persons,
        items=items,
        thresholds=Thresholds(responses.thresholds.max_score[old]),
    )
    return replace(
        responses, blocks=packed.blocks, items=items, thresholds=packed.thresholds, codes=codes, facets=facets,
        codes_high=None, raw=None,
    )  # fmt: skip
