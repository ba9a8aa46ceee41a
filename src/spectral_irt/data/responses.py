"""Responses: who answered what, in which category, packed in blocks, with the labels of people and items."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.data import block as kernels
from spectral_irt.data.block import (
    EMPTY,
    AnswerRows,
    Block,
    Duplicates,
    Floats,
    Ints,
    Mask,
    Repeats,
    Thresholds,
    slots_of,
)
from spectral_irt.data.labels import Labels as Labels
from spectral_irt.data.labels import People, positions
from spectral_irt.engine.base import Each, Engine, Kernel, LocalEngine, Prepared, concatenate, identity
from spectral_irt.errors import DesignError, Finding, OptionError, ResponseValueError
from spectral_irt.files import write_each
from spectral_irt.numerics import chosen_or_none, chosen_positions, read_only
from spectral_irt.text import listed, one_or_many

if TYPE_CHECKING:
    from spectral_irt.data.facets import Facets
    from spectral_irt.data.scoring import RawAnswers
    from spectral_irt.data.shared_sets import SharedSets

FETCHED = 250_000_000  # answers on a cluster whose codes are fetched for a digest: a gigabyte


@dataclass(frozen=True, eq=False)
class Responses:
    """Who answered what, in which of the categories 0, 1, ..., K_i of the item; right or wrong is K_i = 1.

    Make one with `from_wide`, `from_long` or `read`; estimators do that of arrays and dataframes themselves.
    What knows of right and wrong only sums over these responses, and is refused others; what knows of categories sums
    over `entries`.

    Attributes
    ----------
    blocks : tuple of Block
        The answers of whole people, packed; all that kernels see.
    items, persons : array of labels
        Item code `i` is `items[i]`; people are numbered through the blocks in order.
    n_items, n_persons : int
        How many there are.
    source, words, frame_kind : str, (str, str), str
        What the data are, what people and items are called in the file, and the dataframe library the data came in.
    raw, notes : RawAnswers, tuple of Finding
        The options of an answer key and how many cells were blank; what reading has to say.
    engine : Engine
        How sums over people are done: threads of this process by default.
    thresholds, codes : Thresholds, float array
        How many thresholds each item has; what stood in the data for each category, items x categories.
    people, facets : optional
        Columns about the people, `responses.people["sex"]`; of ratings, the item and rater of each of `items`.
    answer_labels : mapping
        What the codes of each item mean, where the file says so (SPSS, Stata).
    item_texts : mapping
        The text of each item, by its label, where it is known: the labels of variables of SPSS and Stata, or
        `item_texts=` of `read`. Of ratings by the label in `facets.items`.
    codes_high, code_excess : float arrays, optional
        Where categories were merged: the highest code of each category, of which `codes` has the lowest; and by how
        much each person's sum of codes is above that of the lowest ones.

    Examples
    --------
    >>> Responses.from_wide([[1, 0, None], [1, 1, 0]])
    Responses(2 persons x 3 items, 5 responses, 60.0% right)
    """

    blocks: tuple[Block, ...]
    items: Labels
    persons: Labels
    frame_kind: str | None = None
    source: str = "the data"
    notes: tuple[Finding, ...] = ()
    words: tuple[str, str] = ("people", "items")
    raw: RawAnswers | None = None
    engine: Engine = field(default_factory=LocalEngine, repr=False)
    thresholds: Thresholds = None  # type: ignore[assignment]
    codes: Floats | None = None
    people: People | None = None
    facets: Facets | None = None
    answer_labels: Mapping[Any, Mapping[float, str]] = field(default_factory=dict)
    codes_high: Floats | None = None
    code_excess: Floats | None = None
    item_texts: Mapping[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fields = vars(self)  # written here only, where something was left out
        if not self.blocks:  # so that a sum over nobody is made of zeros
            fields["blocks"] = (EMPTY,)
        if self.thresholds is None:
            fields["thresholds"] = Thresholds.ones(len(self.items))
        assert self.thresholds.n_items == len(self.items)
        if self.people is not None and self.people.labels is not self.persons:
            fields["people"] = self.people.of(self.persons)

    @property
    def n_persons(self) -> int:
        return len(self.persons)

    @property
    def n_items(self) -> int:
        return len(self.items)

    def sum(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any] | None] = ()) -> Any:
        """The sum over blocks of `kernel(block, *own, *args)`: an array, a number, or a tuple of them.

        `persons` are arrays with an entry for every person; each block gets its own part of them, or None of a None.
        """
        return self.engine.sum(kernel, self.blocks, *args, each=self._cut(persons))

    def map(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any] | None] = ()) -> Iterator[Any]:
        """`kernel(block, *own, *args)` of every block, in order."""
        return self.engine.map(kernel, self.blocks, *args, each=self._cut(persons))

    def gather(self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any] | None] = ()) -> Any:
        """What the kernel gives for each block's people, as one array for all of them, or a tuple of arrays."""
        return concatenate(self.map(kernel, *args, persons=persons))

    def prepare(
        self, kernel: Kernel, *args: Any, persons: Sequence[NDArray[Any] | None] = (), each: Each = ()
    ) -> Prepared:
        """What the kernel makes of every block, kept where the blocks are. `each` are sequences with an entry for every
        block, which the kernel gets after the values of its persons."""
        return self.engine.prepare(kernel, self.blocks, *args, each=[*self._cut(persons), *each])

    @cached_property
    def entries(self) -> Responses:
        """Whether each threshold was passed, for the thresholds next to an answer: these responses themselves where
        answers are right or wrong."""
        layout = self.thresholds
        if layout.binary:
            return self
        names = self.items.tolist()
        labels = np.array([f"{names[i]} [{k}]" for i, k in zip(layout.item, layout.level, strict=True)], dtype=object)
        ones = Thresholds.ones(len(labels))
        return replace(self, items=labels, thresholds=ones, codes=None, codes_high=None, raw=None, notes=())

    def right_and_wrong_only(self) -> None:
        if self.thresholds.binary:
            return
        widest = int(np.argmax(self.thresholds.max_score))
        raise ResponseValueError(
            f"{self.source}: answers have more than two categories (item {listed([self.items[widest]])} has "
            f"{self.thresholds.widest + 1}), and this is for right and wrong answers only. Fit a partial credit or "
            "rating scale model, or say what counts as right with `threshold=`."
        )

    def with_engine(self, engine: Engine | None) -> Responses:
        """The same responses under another engine; None leaves them as they are."""
        if engine is None:
            return self
        if isinstance(engine, LocalEngine) and isinstance(self.engine, LocalEngine):
            return replace(self, engine=engine)
        return replace(self, blocks=engine.hold(self.engine.map(identity, self.blocks)).parts, engine=engine)

    def _cut(self, persons: Sequence[NDArray[Any] | None]) -> list[list[Any]]:
        """Each block's own part of arrays with an entry for every person, for a kernel of right and wrong answers."""
        self.right_and_wrong_only()
        nothing: list[Any] = [None] * len(self.blocks)
        return [nothing if values is None else np.split(values, self.ends[1:-1]) for values in persons]

    @cached_property
    def ends(self) -> list[int]:
        sizes = list(self.engine.map(kernels.n_persons, self.blocks))
        return np.concatenate([[0], np.cumsum(sizes)]).tolist()

    @classmethod
    def from_wide(cls, table: Any, *, person: Any = None, items: Any = (), **options: Any) -> Responses:
        """Responses from a table with one row per person and one column per item, by `read`, whose options it takes.

        Parameters
        ----------
        table : 2-D array, dataframe, or scipy sparse matrix
            1 = right, 0 = wrong, or ordered categories; NaN, None or masked = not answered. In a sparse matrix the
            stored zeros are wrong answers and what is not stored was not answered.
        person : str, optional
            The dataframe's column of people's labels.
        items : sequence, optional
            Item labels of an array; column numbers by default. For a dataframe: the columns to use.
        """
        from spectral_irt.reading import read

        return read(table, format="wide", person=person, items=items, **options)

    @classmethod
    def from_long(cls, persons: ArrayLike, items: ArrayLike, responses: ArrayLike, **options: Any) -> Responses:
        """Responses from three columns of equal length: person, item, and answer (or missing: not answered).

        It takes the options of `read`. People and items come out in sorted order.

        >>> Responses.from_long(["ann", "ann", "bob"], ["q1", "q2", "q1"], [1, 0, 0]).items.tolist()
        ['q1', 'q2']
        """
        from spectral_irt.reading import read
        from spectral_irt.reading.frame import long_frame

        table = long_frame(persons, items, responses)
        responses_of_rows = read(table, format="long", person="person", item="item", response="response", **options)
        return replace(responses_of_rows, frame_kind=None, words=("people", "items"))

    @classmethod
    def from_codes(
        cls,
        person: NDArray[np.integer[Any]],
        item: NDArray[np.integer[Any]],
        category: NDArray[Any],
        *,
        persons: Labels,
        items: Labels,
        thresholds: Thresholds | None = None,
        duplicates: Duplicates = "error",
        **known: Any,
    ) -> Responses:
        """Responses from codes that point into the labels, and categories, in any order; `known` are attributes."""
        from spectral_irt.data.builder import pack_rows

        layout = Thresholds.ones(len(items)) if thresholds is None else thresholds
        repeats = Repeats(duplicates)
        _check_codes("person", person, len(persons))
        _check_codes("item", item, len(items))
        _check_codes("category", category, layout.max_score[item] + 1)
        slots = slots_of(item, category.astype(np.int32, copy=False), layout.bits)
        rows = AnswerRows(person.astype(np.int32, copy=False), slots)
        blocks = tuple(pack_rows([rows], np.bincount(person, minlength=len(persons)), layout, repeats))
        if repeats.extra:
            repeats.complain(persons, items, known.get("source", "the data"))
        return cls(blocks, items, persons, thresholds=layout, **known)

    @cached_property
    def n_responses(self) -> int:
        return int(self.sum(kernels.n_responses) if self.thresholds.binary else self.counts.sum())

    @cached_property
    def pair_work(self) -> float:
        """Pairs of answers of the same person, over all people; infinite where answers are only added up."""
        return float(self.entries.sum(kernels.pair_work, self.thresholds))

    @cached_property
    def counts(self) -> Ints:
        """n_l: how many items each person answered."""
        return read_only(self.entries.gather(kernels.of_people, self.thresholds, "counts"))

    @cached_property
    def scores(self) -> Ints:
        """s_l: the total score of each person, the sum of the categories; how many are right."""
        return read_only(self.entries.gather(kernels.of_people, self.thresholds, "scores"))

    @cached_property
    def max_scores(self) -> Ints:
        binary = self.thresholds.binary
        if binary:
            return self.counts
        return read_only(self.entries.gather(kernels.of_people, self.thresholds, "max_scores"))

    @cached_property
    def informative(self) -> Mask:
        """People whose score is neither the lowest nor the highest, on two items or more: who can tell items apart."""
        return read_only((self.scores > 0) & (self.scores < self.max_scores) & (self.counts > 1))

    @cached_property
    def kinds_of_people(self) -> Ints:
        """How many have no answer, a single one, several and all right, several and all wrong, and a mixed score."""
        return read_only(self.entries.sum(kernels.kinds_of_people, self.thresholds))

    @cached_property
    def item_counts(self) -> Ints:
        """How many people answered each item."""
        return read_only(np.nansum(self.category_counts, axis=1).astype(np.int64))

    @cached_property
    def item_scores(self) -> Ints:
        """The sum of the categories of the answers to each item; how many people answered it right."""
        counts = np.nan_to_num(self.category_counts)
        return read_only((counts @ np.arange(counts.shape[1])).astype(np.int64))

    @cached_property
    def shared(self) -> SharedSets | None:
        """What people on repeated sets of items told together, where most share theirs; see `shared_sets`."""
        from spectral_irt.data.shared_sets import shared_sets

        return shared_sets(self) if self.thresholds.binary else None

    @cached_property
    def category_counts(self) -> Floats:
        """Items x categories 0 to K: how many people gave each answer; NaN where an item has fewer categories."""
        layout = self.thresholds
        shared = self.shared
        met, passed = np.zeros((2, layout.n_entries))
        for one in () if shared is None else shared.sets:
            met[one.items] += one.people.sum()
            passed[one.items] += one.right.sum(axis=0)
        others = self.entries if shared is None else shared.rest
        if others is not None:
            counts = others.sum(kernels.item_counts, layout.n_entries)
            met = met + counts[0]
            passed = passed + counts[1]
        lowest = (met - passed)[layout.first]
        return np.concatenate([lowest[:, None], layout.table(passed, np.nan)], axis=1)

    def answer_names(self, item: Any, codes: Iterable[float]) -> list[str]:
        """Codes of an item as they are shown: "1", or "1 = never" where the file labels them."""
        meaning = self.answer_labels.get(item, {})
        return [f"{code:g} = {meaning[code]}" if code in meaning else f"{code:g}" for code in codes]

    def texts_of(self, items: Iterable[Any]) -> NDArray[Any]:
        """The text of each of these items by its label; None where it has none."""
        return np.array([self.item_texts.get(item) for item in items], dtype=object)

    def category_codes(self) -> Floats:
        if self.codes is not None:
            return self.codes
        number = np.arange(self.thresholds.widest + 1, dtype=float)
        return np.where(number <= self.thresholds.max_score[:, None], number, np.nan)

    def __repr__(self) -> str:
        what = f" in up to {self.thresholds.widest + 1} categories"
        if self.thresholds.binary:
            what = f", {100 * self.item_scores.sum() / max(self.n_responses, 1):.1f}% right"
        return f"Responses({self.n_persons:,} persons x {self.n_items:,} items, {self.n_responses:,} responses{what})"

    def digest(self) -> str:
        """A fingerprint of the answers and labels: the same data read again give the same digest.

        Blocks and file formats do not matter; the order of people and items does. So many answers on a cluster that
        their codes cannot travel have a digest of another kind, which goes by blocks.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        """Of labels, answers, counts and scores."""
        entries = self.entries
        fingerprint = hashlib.blake2b(digest_size=16)
        for labels in (entries.items, entries.persons):
            fingerprint.update(f"{len(labels)} labels:".encode())
            if labels.dtype == object:  # each with its length, so that no label can imitate two others
                texts = (f"{len(text)}:{text}" for text in map(str, labels))
                fingerprint.update("".join(texts).encode("utf-8", "surrogatepass"))
            else:
                fingerprint.update(np.ascontiguousarray(labels).tobytes())
        for items in entries.map(kernels.item_bytes, not (self.engine.remote and entries.n_responses > FETCHED)):
            fingerprint.update(items)
        fingerprint.update(entries.counts.tobytes())
        fingerprint.update(entries.scores.tobytes())
        return fingerprint.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a packed file, complete or not at all, which `open_responses` opens at once."""
        from spectral_irt.data.packed_file import write_packed

        if self.facets is not None:
            raise OptionError("packed files hold answers to items; keep ratings as the table that they were read from.")
        write_each({Path(path): partial(write_packed, self)})

    def with_people(
        self, source: Any, columns: Sequence[str] = (), *, person: str | None = None, sheet: Any = None
    ) -> Responses:
        """The same responses with more columns about the people, `responses.people`, from a file or a dataframe with a
        row for each person: the `columns`, by default the only one beside that of the `person`. A column of the same
        name that was known before is replaced; a table that names none of these people is an error."""
        from spectral_irt.reading.side_tables import read_people

        beside = read_people(source, columns, person=person, sheet=sheet)
        if not np.any(positions(self.persons, beside.labels) >= 0):
            raise OptionError(
                f"none of the people in {beside.source} ({listed(beside.labels)}) is in {self.source} "
                f"({listed(self.persons)}). Check that both name people alike."
            )
        before = {} if self.people is None else dict(self.people)
        return replace(self, people=People(self.persons, before | beside.of(self.persons), beside.source))

    def with_item_texts(self, source: Any) -> Responses:
        """The same responses with texts of the items, `responses.item_texts`, from a file or a dataframe with the
        columns item and text, or a mapping. Texts that were known before stay for the other items; a finding names what
        is no item, and it is an error where nothing is one."""
        from spectral_irt.reading.side_tables import read_item_texts

        texts, where, header = read_item_texts(source)
        items = (self.items if self.facets is None else self.facets.items).tolist()
        if header is not None and positions(header[:1], items)[0] >= 0:
            texts = dict([header]) | texts  # a table without a header: its first row is about an item
        labels = list(texts)
        place = positions(labels, items).tolist()
        text_of_item = {items[k]: texts[label] for label, k in zip(labels, place, strict=True) if k >= 0}
        unknown = [label for label, k in zip(labels, place, strict=True) if k < 0]
        if not text_of_item:
            raise OptionError(
                f"{where}: no item of {self.source} ({listed(items)}) is among those with a text ({listed(labels)}). "
                "Check that both name items alike."
            )
        notes = self.notes
        if unknown:
            are = one_or_many(len(unknown), "is no item", "are no items")
            sentence = f"{where} has texts for {listed(unknown)}, which {are} of {self.source}."
            remedy = "Nothing to do if these were left out on purpose; else check that both name items alike."
            notes = (*notes, Finding("texts_of_no_items", "note", sentence, remedy))
        return replace(self, item_texts={**self.item_texts, **text_of_item}, notes=notes)

    def take_persons(self, persons: ArrayLike) -> Responses:
        """The responses of some people only, in their order: positions or a mask. All items stay."""
        chosen = np.sort(chosen_positions(persons, self.n_persons, "take_persons"))
        ends = np.searchsorted(chosen, self.ends)
        chosen_of_block = np.split(chosen - np.repeat(self.ends[:-1], np.diff(ends)), ends[1:-1])
        blocks = self.engine.prepare(Block.take, self.blocks, each=[chosen_of_block]).parts
        # Blocks that nobody is left of go; this process can see that only of blocks it holds.
        blocks_with_people = tuple(compress(blocks, map(len, chosen_of_block)))
        raw = None if self.raw is None else replace(self.raw, blanks=None)
        excess = chosen_or_none(self.code_excess, chosen)
        persons = self.persons[chosen]
        people = None
        if self.people is not None:  # without looking every label up
            columns = {name: values[chosen] for name, values in self.people.items()}
            people = People(persons, columns, self.people.source)
        return replace(self, blocks=blocks_with_people, persons=persons, people=people, raw=raw, code_excess=excess)

    def first_block(self) -> Responses:
        """The people of the first block, as they are packed."""
        persons = self.persons[: self.ends[1]]
        return replace(self, blocks=self.blocks[:1], persons=persons, people=None, code_excess=None)

    def sample(self, size: int, rng: np.random.Generator, among: Ints | None = None) -> tuple[Responses, Ints]:
        """So many people at random, of those `among` if given, and their positions; all of these where there are no
        more."""
        if among is None and self.n_persons <= size:
            return self, np.arange(self.n_persons)
        if among is not None and len(among) <= size:
            chosen = np.sort(among)
        else:
            persons: Any = self.n_persons if among is None else among
            chosen = np.sort(rng.choice(persons, size, replace=False))
        return self.take_persons(chosen), chosen

    def take_items(self, items: ArrayLike) -> Responses:
        """The responses to some items only: positions or a mask. All people stay, perhaps with fewer answers."""
        chosen = chosen_positions(items, self.n_items, "take_items")
        if len(chosen) == self.n_items and np.array_equal(chosen, np.arange(self.n_items)):
            return self
        entries = self.thresholds.of_items(chosen)
        new_code = np.full(self.thresholds.n_entries, -1, dtype=np.int32)
        new_code[entries] = np.arange(len(entries), dtype=np.int32)
        blocks = self.engine.prepare(Block.keep_items, self.blocks, new_code).parts
        thresholds = Thresholds(self.thresholds.max_score[chosen])
        codes = chosen_or_none(self.codes, chosen)
        codes_high = chosen_or_none(self.codes_high, chosen)
        facets = None if self.facets is None else self.facets.take(chosen)
        return replace(
            self,
            blocks=blocks,
            items=self.items[chosen],
            thresholds=thresholds,
            codes=codes,
            codes_high=codes_high,
            facets=facets,
        )

    def in_one_block(self) -> Responses:
        """The same responses in a single block of this process: for few people with very many items."""
        entries = self.entries
        sizes = np.concatenate([[0], np.cumsum(entries.counts)])
        options = list(entries.map(kernels.options))  # of all blocks or of none
        chosen = None if options[0] is None else np.concatenate(options)
        items = entries.gather(kernels.items)
        return replace(self, blocks=(Block(sizes, sizes[:-1] + entries.scores, items, chosen),))

    def largest_component(self) -> Responses:
        """The largest group of items with a common scale, and everybody's answers to them; of ratings, the combinations
        of items and raters that can be compared. A finding says what was left out."""
        if self.facets is not None:
            from spectral_irt.estimators.linear_design import combinations_on_one_scale

            group = combinations_on_one_scale(self)
            n_ratings = np.bincount(group, self.item_counts)
            chosen = group == np.argmax(n_ratings)
        else:
            from spectral_irt.data.design import components

            labels = components(self)
            layout = self.thresholds
            if not np.any(labels >= 0):
                raise DesignError(f"{self.source}: no item was answered by anyone; there is nothing to keep.")
            chosen = np.bincount(layout.item[labels == 0], minlength=self.n_items) == layout.max_score
        linked = self.take_items(chosen)
        if linked is self:
            return self
        from spectral_irt.data.unlinked import left_out

        return replace(linked, notes=(*linked.notes, left_out(self, linked)))

    def findings(self) -> tuple[Finding, ...]:
        """What was taken for an item, and what is odd in the design of the data, in plain sentences."""
        from spectral_irt.data.design import examine

        return self.notes + examine(self).findings

    def answers(self) -> tuple[Ints, NDArray[np.int32], NDArray[Any]]:
        """Every answer: the position of the person, the code of the item, and whether it is right or its category."""
        return self.entries.gather(kernels.answers, self.thresholds, persons=(np.arange(self.n_persons),))

    def answers_by_block(self) -> Iterator[tuple[Ints, NDArray[np.int32], NDArray[Any]]]:
        return self.entries.map(kernels.answers, self.thresholds, persons=(np.arange(self.n_persons),))

    def to_dense(self) -> Floats:
        """People x items with NaN where there is no answer; for small data."""
        table = np.full((self.n_persons, self.n_items), np.nan)
        person, item, category = self.answers()
        table[person, item] = category
        return table


def _check_codes(name: str, codes: NDArray[Any], size: Ints | int) -> None:
    """An error where a code points to nothing: it would be that of another item."""
    wrong = (codes < 0) | (codes >= size)
    if wrong.any():
        k = int(np.argmax(wrong))
        least = np.broadcast_to(size, codes.shape)[k]
        raise ResponseValueError(f"code {k:,} of {name!r} is {codes[k]}, and there are {least:,}, from 0 on.")


def transpose(responses: Responses) -> Responses:
    """The same answers with people and items exchanged."""
    responses.right_and_wrong_only()
    person, item, right = responses.answers()
    names = ("source", "frame_kind", "notes", "raw", "engine")
    about = {name: getattr(responses, name) for name in names} | {"words": responses.words[::-1]}
    return Responses.from_codes(item, person, right, persons=responses.items, items=responses.persons, **about)
