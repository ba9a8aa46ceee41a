"""Other items made of the same responses: one item split by groups of people, items joined to a super-item, categories
of items merged. `analysis/moves.py` calls these, one after the other.

Every function takes blocks to blocks without unpacking them. An answer x is an entry for the threshold that it passed
last and one for the next, so that all three are about codes of entries:

    split      the code of an entry goes by the group of its person;
    collapse   category x becomes m(x), and m does not fall: what was passed last becomes the highest threshold at or
               below it that is left, what was failed next the lowest at or above it;
    join       the entries of the parts go, and those of the sum, where a person answered every part, come in between.

Entries stay in order, so that no block has to be sorted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Floats, Ints, Thresholds
from spectral_irt.data.code_sums import code_sums, person_code_sums
from spectral_irt.data.labels import label_array
from spectral_irt.data.responses import Responses
from spectral_irt.numerics import chosen_or_none

Codes32 = NDArray[np.int32]


def split_item(responses: Responses, item: int, names: Sequence[str], group: Ints) -> Responses:
    """The item as one item for each group of people, in its place; `group` is -1 where a person's response goes."""
    layout = responses.thresholds
    size = int(layout.max_score[item])
    first = int(layout.first[item])
    n_more = len(names) - 1
    new_code = np.arange(layout.n_entries, dtype=np.int32)
    new_code[first + size :] += n_more * size
    blocks = responses.engine.prepare(
        _split_block, responses.blocks, new_code, first, size, each=[_of_blocks(responses, group)]
    ).parts
    place = np.concatenate([np.arange(item), np.full(len(names), item), np.arange(item + 1, responses.n_items)])
    return _with_items(responses, blocks, place, {item + k: name for k, name in enumerate(names)})


def collapse_items(responses: Responses, new_category: Ints) -> Responses:
    """Categories merged: items x categories, the new one of each, from 0 up by steps of 0 or 1; -1 where an item has
    fewer. Sums of codes stay those of the questionnaire: `code_excess` has what is lost by merging."""
    layout = responses.thresholds
    right_code, wrong_code, max_score = _merged_codes(layout, new_category)
    blocks = responses.engine.prepare(_recode_halves, responses.blocks, right_code, wrong_code).parts
    codes, codes_high = _merged_code_range(responses, new_category, int(max_score.max()))
    labels = {}
    for item in np.flatnonzero(max_score < layout.max_score).tolist():
        labels[responses.items[item]] = _merged_labels(responses, item, new_category[item])
    changed = replace(
        responses,
        blocks=blocks,
        thresholds=Thresholds(max_score),
        codes=codes,
        codes_high=codes_high,
        answer_labels={**responses.answer_labels, **labels},
    )
    merged = np.flatnonzero(max_score < layout.max_score)
    return with_excess(changed, responses, merged, merged)


def join_items(responses: Responses, parts: Sequence[int], name: str) -> Responses:
    """The items as a single one, whose category is the sum of theirs, in the place of the first; who lacks a response
    to one of them has none."""
    layout = responses.thresholds
    place = min(parts)
    left = np.setdiff1d(np.arange(responses.n_items), parts)
    at = int(np.searchsorted(left, place))
    old_items = np.insert(left, at, -1)
    max_score = np.where(old_items < 0, layout.max_score[list(parts)].sum(), layout.max_score[old_items])
    joined = Thresholds(max_score)
    new_code = np.full(layout.n_entries, -1, dtype=np.int32)
    stays = old_items >= 0
    new_code[layout.of_items(old_items[stays])] = joined.of_items(np.flatnonzero(stays))
    first = int(joined.first[at])
    spans_of_parts = [(int(layout.first[part]), int(layout.max_score[part])) for part in parts]
    blocks = responses.engine.prepare(_join_block, responses.blocks, new_code, spans_of_parts, first).parts
    low, high = _code_range(responses)
    width = int(max_score.max()) + 1
    codes, codes_high = np.full((2, len(max_score), width), np.nan)
    codes[stays, : low.shape[1]] = low[old_items[stays]][:, :width]
    codes_high[stays, : high.shape[1]] = high[old_items[stays]][:, :width]
    sums = code_sums(low[list(parts)], layout.max_score[list(parts)], high[list(parts)])
    if sums is not None:
        codes[at, : len(sums.low)] = sums.low
        codes_high[at, : len(sums.high)] = sums.high
    labels = responses.items[old_items].astype(object)
    labels[at] = name
    item_texts = dict(responses.item_texts)
    texts_of_parts = [text for text in responses.texts_of(responses.items[list(parts)]) if text is not None]
    if texts_of_parts:
        item_texts[name] = " / ".join(texts_of_parts)
    changed = replace(
        responses,
        blocks=blocks,
        items=label_array(labels),
        thresholds=joined,
        codes=codes,
        codes_high=codes_high,
        raw=None,
        item_texts=item_texts,
    )
    return with_excess(changed, responses, np.array([at]), np.asarray(parts))


def without_unused(responses: Responses, items: Sequence[int]) -> Responses:
    """The responses with the categories of these items renumbered without those that nobody used, as reading does."""
    layout = responses.thresholds
    several = [item for item in items if layout.max_score[item] > 1]
    if not several:
        return responses
    counts = responses.category_counts
    new_category = identity_of_categories(layout)
    for item in several:
        used = counts[item, : layout.max_score[item] + 1] > 0
        if used.all() or used.sum() < 2:
            continue
        new_category[item, : len(used)] = np.maximum(np.cumsum(used) - 1, 0)
    if np.array_equal(new_category, identity_of_categories(layout)):
        return responses
    return collapse_items(_with_used_codes_only(responses, items), new_category)


def has_answered(responses: Responses, item: int) -> NDArray[np.bool_]:
    """Which persons have a response to an item."""
    layout = responses.thresholds
    kernel_arguments = (int(layout.first[item]), int(layout.max_score[item]))
    blocks = responses.engine.map(_answered_in, responses.blocks, *kernel_arguments)
    return np.concatenate(list(blocks))


def _answered_in(block: Block, first: int, size: int) -> NDArray[np.bool_]:
    of_item = np.flatnonzero((block.items >= first) & (block.items < first + size))
    has_response = np.zeros(block.n_persons, dtype=bool)
    has_response[np.searchsorted(block.indptr, of_item, side="right") - 1] = True
    return has_response


def identity_of_categories(layout: Thresholds) -> Ints:
    """Items x categories: the category itself; -1 where an item has fewer."""
    category = np.arange(layout.widest + 1)
    return np.where(category <= layout.max_score[:, None], category, -1)


def _of_blocks(responses: Responses, values: NDArray[Any]) -> list[NDArray[Any]]:
    return np.split(values, responses.ends[1:-1])


def _split_block(block: Block, group: Ints, new_code: Codes32, first: int, size: int) -> Block:
    codes = new_code[block.items]
    of_item = np.flatnonzero((block.items >= first) & (block.items < first + size))
    person = np.searchsorted(block.indptr, of_item, side="right") - 1
    own_group = group[person]
    codes[of_item] += (size * own_group).astype(np.int32)
    if not len(own_group) or own_group.min() >= 0:
        return Block(block.indptr, block.split, codes, block.options)
    codes[of_item[own_group < 0]] = -1
    return _block_with_codes(block, codes)


def _block_with_codes(block: Block, codes: Codes32) -> Block:
    """The block with these codes of its entries, without those below zero."""
    stays = codes >= 0
    before = np.concatenate([[0], np.cumsum(stays)])
    options = chosen_or_none(block.options, stays)
    return Block(before[block.indptr], before[block.split], codes[stays], options)


def _merged_codes(layout: Thresholds, new_category: Ints) -> tuple[Codes32, Codes32, Ints]:
    """The code that an entry gets among those passed last, and among those failed next; -1 where it goes. And the
    highest new category of each item."""
    max_score = new_category.max(axis=1)
    first = np.cumsum(max_score) - max_score
    item = layout.item
    level = layout.level
    passed = new_category[item, level]  # the new category of who passed this threshold last
    failed = new_category[item, level - 1]  # and of who failed it next
    right_code = np.where(passed > 0, first[item] + passed - 1, -1)
    wrong_code = np.where(failed < max_score[item], first[item] + failed, -1)
    return right_code.astype(np.int32), wrong_code.astype(np.int32), max_score


def _recode_halves(block: Block, right_code: Codes32, wrong_code: Codes32) -> Block:
    return _block_with_codes(block, np.where(block.right(), right_code[block.items], wrong_code[block.items]))


def _join_block(block: Block, new_code: Codes32, parts: Sequence[tuple[int, int]], first: int) -> Block:
    right = block.right()
    total = np.zeros(block.n_persons, dtype=np.int64)
    answered = np.zeros(block.n_persons, dtype=np.int64)
    for start, size in parts:
        category = np.full(block.n_persons, -1)
        entries = np.flatnonzero((block.items >= start) & (block.items < start + size))
        person = np.searchsorted(block.indptr, entries, side="right") - 1
        category[person] = block.items[entries] - start + right[entries]
        answered += category >= 0
        total += category
    highest = sum(size for _, size in parts)
    has_all = answered == len(parts)
    # Of each person two halves: thresholds passed last, and failed next. A half gets an entry of the new item, or none.
    value = np.stack([first + total - 1, first + total], axis=1).ravel()
    inserted = np.stack([has_all & (total > 0), has_all & (total < highest)], axis=1).ravel()
    codes = new_code[block.items]
    stays = codes >= 0
    before = np.concatenate([[0], np.cumsum(stays)])[block.bounds]
    lower = np.concatenate([[0], np.cumsum(stays & (codes < first))])[block.bounds]
    position = before[:-1] + np.diff(lower)
    items = np.insert(codes[stays], position[inserted], value[inserted].astype(np.int32))
    bounds = before + np.concatenate([[0], np.cumsum(inserted)])
    return Block(bounds[::2].copy(), bounds[1::2].copy(), items)


def _code_range(responses: Responses) -> tuple[Floats, Floats]:
    """The lowest and the highest code of the data that stand for each category."""
    low = responses.category_codes()
    return low, low if responses.codes_high is None else responses.codes_high


def _merged_code_range(responses: Responses, new_category: Ints, widest: int) -> tuple[Floats, Floats]:
    low, high = _code_range(responses)
    codes = np.full((responses.n_items, widest + 1), np.inf)
    codes_high = np.full((responses.n_items, widest + 1), -np.inf)
    item, category = np.nonzero((new_category >= 0) & np.isfinite(low))
    new = new_category[item, category]
    np.minimum.at(codes, (item, new), low[item, category])
    np.maximum.at(codes_high, (item, new), high[item, category])
    return np.where(np.isfinite(codes), codes, np.nan), np.where(np.isfinite(codes_high), codes_high, np.nan)


def _with_used_codes_only(responses: Responses, items: Sequence[int]) -> Responses:
    """Categories that nobody used lose their codes, so that they do not count when they are merged with others."""
    low, high = (each.copy() for each in _code_range(responses))
    for item in items:
        unused = responses.category_counts[item] == 0
        low[item, unused] = np.nan
        high[item, unused] = np.nan
    return replace(responses, codes=low, codes_high=high)


def _merged_labels(responses: Responses, item: int, new_category: Ints) -> Mapping[float, str]:
    """What the codes of an item mean where the file says so; of merged categories all that they meant."""
    meanings = responses.answer_labels.get(responses.items[item], {})
    codes = responses.category_codes()[item]
    labels: dict[float, str] = {}
    for category in range(int(new_category.max()) + 1):
        together = codes[new_category == category]
        texts = [meanings[code] for code in together.tolist() if code in meanings]
        if texts:
            labels[float(np.nanmin(together))] = " / ".join(texts)
    return labels


def with_excess(changed: Responses, before: Responses, new_items: Ints, old_items: Ints) -> Responses:
    """The changed responses with what each person's sum of codes is above that of the lowest codes of the categories,
    as the responses to these items were before: only categories with several codes make a difference."""
    low, high = _code_range(changed)
    if before.code_excess is None and np.array_equal(low, high, equal_nan=True):
        return replace(changed, codes_high=None)
    earlier = np.zeros(before.n_persons) if before.code_excess is None else before.code_excess
    lost_excess = _sums_of_codes(before, old_items) - _sums_of_codes(changed, new_items)
    if len(old_items) > len(new_items):
        # Who lacks a part of a super-item has none of its codes, and whose excess the other parts had is not known.
        has_all = before.take_items(old_items).counts == len(old_items)
        lost_excess = np.where(has_all, lost_excess, np.where(earlier == 0, 0.0, np.nan))
    return replace(changed, code_excess=earlier + lost_excess)


def _sums_of_codes(responses: Responses, items: Ints) -> Floats:
    codes = np.full_like(responses.category_codes(), np.nan)
    codes[items] = responses.category_codes()[items]
    sums: Floats = responses.entries.gather(person_code_sums, responses.thresholds, codes)
    return sums


def _with_items(responses: Responses, blocks: tuple[Block, ...], place: Ints, names: Mapping[int, str]) -> Responses:
    """The responses in these blocks, to items that stand for those at `place`, some of them under new names."""
    labels = responses.items[place].astype(object)
    for position, name in names.items():
        labels[position] = name
    old_of_new = {name: responses.items[place[position]] for position, name in names.items()}
    answer_labels = dict(responses.answer_labels)
    item_texts = dict(responses.item_texts)
    for name, old in old_of_new.items():
        if old in answer_labels:
            answer_labels[name] = answer_labels[old]
        if old in item_texts:
            item_texts[name] = item_texts[old]
    raw = responses.raw
    if raw is not None:
        key = {**raw.key, **{name: raw.key[old] for name, old in old_of_new.items() if old in raw.key}}
        raw = replace(raw, key=key, blanks=None)
    return replace(
        responses,
        blocks=blocks,
        items=label_array(labels),
        thresholds=Thresholds(responses.thresholds.max_score[place]),
        codes=chosen_or_none(responses.codes, place),
        codes_high=chosen_or_none(responses.codes_high, place),
        raw=raw,
        answer_labels=answer_labels,
        item_texts=item_texts,
    )
