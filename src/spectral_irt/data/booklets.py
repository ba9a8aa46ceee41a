"""Booklets: which items each person was given, known from a column that names the forms, or found in the responses.

An item that is not on a person's form was *not presented*; one that is on it and has no response was left out, or not
reached. Real people skip items, so a form is not the set of items that somebody answered:

- with a column, the form of a label has the items that a share of the people with this label answered;
- without one, a form is a set of items that several people answered, and nothing else. A set within a longer one is the
  same form with items skipped, where few items are missing or few people have it. Where too many people skip something
  for that, people whose items lie almost all within the same set are taken together.

Where people were given items one by one (adaptive tests, items at random) there are no forms, and nobody can tell what
was skipped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Block, Ints, Mask, Thresholds, rows_of
from spectral_irt.data.labels import by_label, text_of
from spectral_irt.data.responses import Responses
from spectral_irt.data.scoring import BLANK, RawAnswers
from spectral_irt.data.shared_sets import distinct_keys, items_of_people, set_keys
from spectral_irt.errors import Finding, OptionError
from spectral_irt.numerics import scramble
from spectral_irt.text import count, listed

FEWEST = 10  # people who make a set of items a form: fewer make no percentiles
SHORTEST = 5  # items: fewer are no test, and where people answer what they like many share them
MOST = 100  # forms: beyond, nobody looks up a table
SHARE = 0.1  # of the people with a label who answered an item of their form; an item in the wrong row is rarer
SKIPPED = 0.1  # share of the items of a form that many may skip, such as its last ones
RARE = 0.25  # people with part of a form, over those with all of it: fewer have skipped the rest
NEAR = 0.75  # share of a person's items that lie within the longest record of the form, from which some are missing
WITHIN = 0.95  # and within the form itself, but for a response in the wrong place
FILLED = 0.6  # share of the items of a form that its people answered; below, they were given items at random
CELLS = 20_000_000  # people x items of the records that are compared one by one
NAMED = 3  # people that a finding names


class Stray(NamedTuple):
    """A response to an item that the form of its person does not have: positions."""

    person: int
    item: int


@dataclass(frozen=True, eq=False)
class Booklets:
    """The forms that people were given, by name, and who was given which.

    Attributes
    ----------
    names : tuple of str
        As the column has them, or "form 1", "form 2", ... in the order of their items.
    items : tuple of int arrays
        Positions of the items of each form.
    form : int array
        Of each person, -1 where that is not known.
    column : str or None
        The column that names the forms.
    strays : tuple of Stray
        Where a column names the forms: responses that contradict it.
    """

    names: tuple[str, ...]
    items: tuple[Ints, ...]
    form: Ints
    column: str | None = None
    strays: tuple[Stray, ...] = ()

    @property
    def several(self) -> bool:
        """Whether there is more than one form, so that some items were not presented to everybody."""
        return len(self.items) > 1

    def members(self, n_items: int) -> Mask:
        """Whether an item is on a form: items x forms."""
        members = np.zeros((n_items, len(self.items)), dtype=bool)
        for k, items in enumerate(self.items):
            members[items, k] = True
        return members

    def without_parts(self) -> Booklets:
        """The forms that are not part of another one: people who stopped early, or skipped a page, had the longer."""
        longest: list[int] = []  # forms that are part of no other
        code = np.empty(len(self.items) + 1, dtype=np.int64)
        code[-1] = -1
        for k in sorted(range(len(self.items)), key=lambda k: -len(self.items[k])):
            around = [j for j in longest if np.isin(self.items[k], self.items[j]).all()]
            if not around:
                longest.append(k)
                around = [k]
            code[k] = longest.index(around[0])
        return replace(
            self,
            names=tuple(self.names[k] for k in longest),
            items=tuple(self.items[k] for k in longest),
            form=code[self.form],
        )

    def findings(self, responses: Responses) -> tuple[Finding, ...]:
        """What contradicts the column that names the forms."""
        if not self.strays:
            return ()
        persons = list(dict.fromkeys(stray.person for stray in self.strays))
        examples = []
        for person in persons[:NAMED]:
            items = [responses.items[stray.item] for stray in self.strays if stray.person == person]
            examples.append(f"{text_of(responses.persons[person])} ({self.names[self.form[person]]}): {listed(items)}")
        if len(persons) > NAMED:
            examples.append(f"and {len(persons) - NAMED:,} more")
        sentence = (
            f"{count(len(persons), 'person has', 'people have')} responses to items that their form in the column "
            f"{self.column!r} does not have, as hardly anybody else with it answered them: {'; '.join(examples)}."
        )
        off_form = tuple(dict.fromkeys(responses.items[stray.item] for stray in self.strays))
        remedy = "Check the column for these people. Their responses count as they are."
        return (Finding("responses_off_form", "warning", sentence, remedy, off_form),)


def booklets_of(responses: Responses, labels: Any = None) -> Booklets:
    """The forms of these people: by a column about them or labels, one for each; by default by what they answered.

    >>> answers = Responses.from_wide([[1, 0, 1, 1, 0, None]] * 10 + [[None, 1, 0, 1, 1, 0]] * 10)
    >>> found = booklets_of(answers)
    >>> found.names, [items.tolist() for items in found.items]
    (('form 1', 'form 2'), [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    """
    return _found_in(responses) if labels is None else _named_by(responses, labels)


def _named_by(responses: Responses, labels: Any) -> Booklets:
    """One form for each label: the items that a share of its people answered."""
    column = labels if isinstance(labels, str) else "form"
    split = by_label(responses, labels)
    if not split.n_groups:
        raise OptionError(f"{responses.source}: the column {column!r} names no form; it is empty.")
    if split.n_groups > MOST:
        raise OptionError(
            f"{responses.source}: the column {column!r} has {split.n_groups:,} different values "
            f"({listed(split.names)}), and at most {MOST} forms are told apart. Name the column that says which form "
            "each person was given."
        )
    layout = responses.thresholds
    answered = responses.entries.sum(_answered_by_form, layout, split.n_groups, persons=(split.group,))
    with_responses = (split.group >= 0) & (responses.counts > 0)
    people = np.bincount(split.group[with_responses], minlength=split.n_groups)
    at_least_two = np.where(people >= SHORTEST, 2, 1)
    needed = np.maximum(SHARE * people, at_least_two)
    members = answered >= needed
    strays: list[Stray] = []
    if (answered > 0)[~members].any():
        start = 0
        for part in responses.entries.map(_off_form, layout, members, persons=(split.group,)):
            strays += [Stray(start + person, item) for person, item in part.places]
            start += part.n_persons
    items = tuple(np.flatnonzero(members[:, k]) for k in range(split.n_groups))
    return Booklets(split.names, items, split.group, column, tuple(strays))


def _answered_by_form(block: Block, form: Ints, layout: Thresholds, n_forms: int) -> Ints:
    """How many people with each label answered each item: items x labels."""
    rows = rows_of(block, layout)
    of_response = np.repeat(form, rows.counts)
    is_known = of_response >= 0
    place = rows.items[is_known].astype(np.int64) * n_forms + of_response[is_known]
    return np.bincount(place, minlength=layout.n_items * n_forms).reshape(layout.n_items, n_forms)


class _OffForm(NamedTuple):
    places: list[tuple[int, int]]
    n_persons: int


def _off_form(block: Block, form: Ints, layout: Thresholds, members: Mask) -> _OffForm:
    """Person and item of the responses to items that are not on the person's form."""
    rows = rows_of(block, layout)
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    off = (form[person] >= 0) & ~members[rows.items, form[person]]
    return _OffForm(list(zip(person[off].tolist(), rows.items[off].tolist(), strict=True)), block.n_persons)


def _found_in(responses: Responses) -> Booklets:
    """Forms by what people answered; a person is on the shortest form that has all of his or her items."""
    table = scramble(np.arange(responses.n_items, dtype=np.int32), 1)
    keys, lengths = responses.entries.gather(_keys, responses.thresholds, table)
    first, sizes, _ = distinct_keys(keys)
    length = lengths[first]
    n_sets = int(np.sum(length > 0))
    shared = np.flatnonzero((length > 0) & (((sizes >= FEWEST) & (length >= SHORTEST)) | (n_sets == 1)))
    shared = shared[np.argsort(-sizes[shared], kind="stable")][: 10 * MOST]
    sets = items_of_people(responses, first[shared]) if len(shared) else []
    forms = _without_skips(sets, sizes[shared], responses.n_items)
    form = _smallest_with_all(responses, forms)
    answered = responses.counts > 0
    outside = np.flatnonzero((form < 0) & answered)
    if 2 * len(outside) > np.count_nonzero(answered) and len(outside) * responses.n_items <= CELLS:
        forms += _by_nearness(responses, outside)
        form = _smallest_with_all(responses, forms, WITHIN)
    cells = np.count_nonzero(answered) * responses.n_items
    if not forms and (np.count_nonzero(answered) < FEWEST or responses.n_responses >= FILLED * cells):
        # Of few people, or with few blanks, nothing speaks against one form for all.
        forms = [np.arange(responses.n_items)]
        form = np.where(answered, 0, -1)
    people = np.bincount(form[form >= 0], minlength=len(forms))
    largest = np.argsort(-people, kind="stable")[:MOST]
    # What begins the test comes first, and of those the longer.
    order = sorted(largest.tolist(), key=lambda k: (*forms[k].tolist(), responses.n_items))
    code = np.full(len(forms) + 1, -1, dtype=np.int64)
    code[order] = np.arange(len(order))
    names = tuple(f"form {k + 1}" for k in range(len(order)))
    return Booklets(names, tuple(forms[k] for k in order), code[form])


def _keys(block: Block, layout: Thresholds, table: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Ints]:
    return set_keys(rows_of(block, layout), table)


def _without_skips(sets: list[Ints], people: Ints, n_items: int) -> list[Ints]:
    """The sets that are forms, without those that are a longer one of them with items skipped."""
    order = sorted(range(len(sets)), key=lambda k: (-len(sets[k]), -people[k]))
    forms: list[int] = []
    masks: list[Mask] = []
    for k in order:
        mask = np.zeros(n_items, dtype=bool)
        mask[sets[k]] = True
        skipped = False
        for other, longer in zip(forms, masks, strict=True):
            missing = len(sets[other]) - len(sets[k])
            few_items = missing <= max(1, SKIPPED * len(sets[other]))
            few_people = people[k] < RARE * people[other]
            if (few_items or few_people) and longer[sets[k]].all():
                skipped = True
                break
        if not skipped:
            forms.append(k)
            masks.append(mask)
    return [sets[k] for k in forms]


def _smallest_with_all(responses: Responses, forms: list[Ints], share: float = 1.0) -> Ints:
    """The shortest form that has all items (or this share of them) that each person answered, -1 for none."""
    if not forms:
        return np.full(responses.n_persons, -1, dtype=np.int64)
    members = np.zeros((responses.n_items, len(forms)), dtype=bool)
    for k, items in enumerate(forms):
        members[items, k] = True
    lengths = np.array([len(items) for items in forms])
    return np.asarray(responses.entries.gather(_smallest, responses.thresholds, members, lengths, share))


def _smallest(block: Block, layout: Thresholds, members: Mask, lengths: Ints, share: float) -> Ints:
    rows = rows_of(block, layout)
    form = np.full(rows.n_persons, -1, dtype=np.int64)
    unknown = rows.counts > 0
    # One form at a time: a table of people by forms would be larger than the responses.
    for k in np.argsort(lengths, kind="stable").tolist():
        within = rows.sums(members[rows.items, k].astype(np.float64))
        fits = unknown & (within >= share * rows.counts)
        form[fits] = k
        unknown &= ~fits
    return form


def _by_nearness(responses: Responses, people: Ints) -> list[Ints]:
    """Forms of people who all skipped something: those whose items lie almost all within the longest record."""
    answered = _answered_items(responses, people)
    lengths = answered.sum(axis=1, dtype=np.float32)
    forms: list[Ints] = []
    left = lengths >= SHORTEST
    for _ in range(MOST):
        if left.sum() < FEWEST:
            break
        longest = int(np.argmax(np.where(left, lengths, -1)))
        near = left & (answered[:, answered[longest]].sum(axis=1) >= NEAR * lengths)
        on_form = answered[near].mean(axis=0) >= SHARE
        members = left & (answered[:, on_form].sum(axis=1) >= WITHIN * lengths)
        left[longest] = False
        if members.sum() >= FEWEST and answered[members][:, on_form].mean() >= FILLED:
            forms.append(np.flatnonzero(on_form))
            left &= ~members
    return forms


def _answered_items(responses: Responses, people: Ints) -> Mask:
    """Whether each of these people answered an item: people x items, a byte a cell."""
    chosen = np.zeros(responses.n_persons, dtype=bool)
    chosen[people] = True
    answered = np.empty((len(people), responses.n_items), dtype=bool)
    start = 0
    for part in responses.entries.map(_answered_in, responses.thresholds, persons=(chosen,)):
        answered[start : start + len(part)] = part
        start += len(part)
    return answered


def _answered_in(block: Block, chosen: Mask, layout: Thresholds) -> Mask:
    rows = rows_of(block, layout)
    place = np.cumsum(chosen) - 1
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    of_chosen = chosen[person]
    answered = np.zeros((int(chosen.sum()), layout.n_items), dtype=bool)
    answered[place[person[of_chosen]], rows.items[of_chosen]] = True
    return answered


def with_blanks_as_wrong(
    responses: Responses, labels: Any = None, *, omitted: bool = False, not_reached: bool = False
) -> Responses | None:
    """The responses with blanks on each person's form as wrong responses: those before a later response (`omitted`),
    and those after the last one (`not_reached`). Items that the form does not have were not presented: they stay
    missing.

    None where no column names forms (`labels`) and everybody had the same one: then blanks need no form.
    """
    booklets = booklets_of(responses, labels)
    if labels is None:
        booklets = booklets.without_parts()
        if not booklets.several:
            return None
    if not responses.thresholds.binary:
        raise OptionError(
            f"{responses.source}: these people had {len(booklets.items):,} forms, and the responses are in ordered "
            "categories, of which none is wrong; leave out `omitted='wrong'` and `not_reached='wrong'`."
        )
    asked = np.array([omitted, not_reached])
    members = booklets.members(responses.n_items)
    blanks = blanks_by_item(responses, booklets)
    blocks = responses.prepare(_with_wrong, members, asked, persons=(booklets.form,)).parts
    counted = np.where(asked[:, None], blanks, 0)
    note = _counted_finding(counted, booklets, responses)
    by_item = dict(zip(responses.items.tolist(), map(tuple, blanks.T.tolist()), strict=True))
    raw = replace(responses.raw or RawAnswers(), blanks=by_item, blanks_decided=True)
    return replace(responses, blocks=blocks, raw=raw, notes=(*responses.notes, *note))


def _counted_finding(counted: Ints, booklets: Booklets, responses: Responses) -> tuple[Finding, ...]:
    """How many blanks count as wrong, and what was not presented."""
    kinds = zip(counted.sum(axis=1).tolist(), ("omitted", "not-reached"), strict=True)
    parts = [f"{n:,} {kind}" for n, kind in kinds if n]
    if not parts:
        return ()
    unknown = int(((booklets.form < 0) & (responses.counts > 0)).sum())
    sentence = (
        f"Cells that count as wrong, as asked: {' and '.join(parts)}. Items that a person's form does not have "
        f"({count(len(booklets.items), 'form')}) were not presented and stay missing"
    )
    if unknown:
        whose = count(unknown, "person whose form is", "people whose form is")
        sentence += f", and so do the blanks of {whose} not known"
    return (Finding("blanks_count_as_wrong", "note", f"{sentence}.", number=int(counted.sum())),)


def _with_wrong(block: Block, form: Ints, members: Mask, asked: Mask) -> Block:
    """The block with blanks as wrong responses: before the last response, after it, or both, as asked."""
    n_items = len(members)
    order = np.arange(n_items)
    persons: list[Ints] = [np.empty(0, dtype=np.int64)]
    items: list[Ints] = [np.empty(0, dtype=np.int64)]
    on_form = np.flatnonzero((form >= 0) & (block.counts > 0))
    at_once = max(1, CELLS // max(n_items, 1))
    for start in range(0, len(on_form), at_once):
        some = on_form[start : start + at_once]
        part = block.take(some)
        answered = np.zeros((len(some), n_items), dtype=bool)
        answered[part.person_of_response(), part.items] = True
        last = n_items - 1 - answered[:, ::-1].argmax(axis=1)
        counts_as_wrong = np.where(order < last[:, None], asked[0], asked[1])
        person, item = np.nonzero(members.T[form[some]] & ~answered & counts_as_wrong)
        persons.append(some[person])
        items.append(item)
    person_of_missing = np.concatenate(persons)
    # Items increase within the right and within the wrong responses of a person.
    person = np.concatenate([block.person_of_response(), person_of_missing])
    item = np.concatenate([block.items, np.concatenate(items)])
    wrong = np.concatenate([~block.right(), np.ones(len(person_of_missing), dtype=bool)])
    place = np.lexsort((item, wrong, person))
    options = block.options
    if options is not None:
        options = np.concatenate([options, np.full(len(person_of_missing), BLANK, dtype=options.dtype)])[place]
    counts = block.counts + np.bincount(person_of_missing, minlength=block.n_persons)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return Block(indptr, indptr[:-1] + block.scores, item[place].astype(np.int32), options)


def blanks_by_item(responses: Responses, booklets: Booklets) -> Ints:
    """How many people left out each item of their form, and how many did not reach it: 2 x items.

    Left out: before a later response of the same person, in the order of the items; not reached: after the last one.
    """
    members = booklets.members(responses.n_items)
    blanks = responses.entries.sum(_blanks, responses.thresholds, members, persons=(booklets.form,))
    return np.asarray(blanks)


def _blanks(block: Block, form: Ints, layout: Thresholds, members: Mask) -> Ints:
    rows = rows_of(block, layout)
    counts = np.zeros((2, layout.n_items), dtype=np.int64)
    has_form = (form >= 0) & (rows.counts > 0)
    person = np.repeat(np.arange(block.n_persons), rows.counts)
    last = np.full(block.n_persons, -1, dtype=np.int64)
    np.maximum.at(last, person, rows.items)
    for k in np.unique(form[has_form]).tolist():
        chosen = has_form & (form == k)
        answered = np.bincount(rows.items[chosen[person]], minlength=layout.n_items)
        # People who reached each item: those whose last response is at it or after it.
        ends = np.bincount(last[chosen], minlength=layout.n_items)
        reached = np.cumsum(ends[::-1])[::-1]
        on_form = members[:, k]
        counts[0, on_form] += (reached - answered)[on_form]
        counts[1, on_form] += (chosen.sum() - reached)[on_form]
    return counts
