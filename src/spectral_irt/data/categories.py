"""Which categories each item has, numbered from 0, and the labels that may stand for them; and what the answers were
before they were scored: the options that were chosen with an answer key."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Codes, Floats, Ints, Mask, Thresholds
from spectral_irt.data.labels import NOT_ANSWERED, SUSPECTS, Labels, plain_label, positions, spellings
from spectral_irt.data.scoring import HIGHEST, RawAnswers, Scoring, several
from spectral_irt.errors import Finding, OptionError, ResponseValueError
from spectral_irt.text import count, count_are, first_of, listed

if TYPE_CHECKING:
    import polars as pl

    from spectral_irt.data.responses import Responses


def score_of(score: Any, item: Any) -> int:
    with suppress(TypeError, ValueError):
        if 0 <= float(score) <= HIGHEST and float(score).is_integer():
            return int(float(score))
    what = f"the key gives an answer to item {listed([item])} the score {score!r};"
    raise OptionError(f"{what} scores are whole numbers from 0 to {HIGHEST}.")


def checked_key(key: Mapping[Any, Any]) -> dict[Any, dict[str, int]]:
    checked = {}
    for item, given in key.items():
        right = given.split("|") if isinstance(given, str) else several(given)
        answers = given if isinstance(given, Mapping) else dict.fromkeys(right, 1)
        options = dict(zip(spellings(answers), answers.values(), strict=True))
        scores = {text: score_of(score, item) for text, score in options.items() if text not in NOT_ANSWERED}
        if scores:
            checked[item] = dict(sorted(scores.items(), key=lambda one: -one[1]))
    return checked


def folded(text: str) -> str:
    """An option without capitals and width: "d", "D" and the full-width "Ｄ" are one."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


MOST_SPELLINGS = 100_000  # different answers that are compared; people's own words may be without end


class OneSpelling:
    """Options in one spelling, whatever their case and width; that of the key, or of the right answers, if they are
    there. It counts what was written in another way."""

    def __init__(self, scoring: Scoring) -> None:
        key = scoring.key or {}
        self._scored_apart = next((item for item, options in key.items() if _scores_differ_by_case(options)), None)
        self._is_exact = scoring.exact_case or self._scored_apart is not None
        self._spelling: dict[str, str] = {}  # by what is left without case and width
        self._others: Counter[str] = Counter()  # how often each other spelling was met
        right = [text for options in key.values() for text in options]
        for text in (*right, *(scoring.correct or ())):
            self.of(text)
        self._known = frozenset(self._spelling.values())

    def of(self, text: str) -> str:
        if self._is_exact:
            return text
        plain = folded(text)
        if plain not in self._spelling and len(self._spelling) < MOST_SPELLINGS:
            self._spelling[plain] = text
        return self._spelling.get(plain, text)

    def of_each(self, answers: Any) -> Any:
        """These answers, a polars Series of text, every option in its one spelling."""
        if self._is_exact:
            return answers
        texts = answers.unique(maintain_order=True).to_list()
        times = answers.unique_counts().to_list()
        changed: dict[str, str] = {}
        for text, n in zip(texts, times, strict=True):
            spelling = self.of(text)
            if spelling != text:
                changed[text] = spelling
            # Of an option that is in no key the most usual spelling is shown, so that all of its spellings count.
            if spelling != text or text not in self._known:
                self._others[text] += n
        return answers.replace(changed) if changed else answers

    def shown(self, text: str) -> str:
        """The spelling to show: the known one, or the most usual."""
        return text if self._is_exact or text in self._known else self._usual.get(folded(text), text)

    @cached_property
    def _usual(self) -> dict[str, str]:
        """The most usual spelling of each option, when all answers were seen."""
        usual: dict[str, str] = {}
        for text, _ in self._others.most_common():
            usual.setdefault(folded(text), text)
        return usual | {folded(text): text for text in self._known}

    def findings(self) -> tuple[Finding, ...]:
        if self._scored_apart is not None:
            sentence = f"The key tells upper and lower case apart (item {listed([self._scored_apart])})"
            return (Finding("case_matters", "note", f"{sentence}, so all answers are compared as they are written."),)
        changed = {text: n for text, n in self._others.items() if self._usual.get(folded(text), text) != text}
        number = sum(changed.values())
        if not number:
            return ()
        pairs = [f"{text!r} as {self._usual[folded(text)]!r}" for text in changed]
        were = "was" if number == 1 else "were"
        sentence = f"{count(number, 'answer')} {were} compared without regard to case and width: {first_of(pairs)}."
        remedy = "If these are different options, say `exact_case=True`."
        return (Finding("letters_alike", "note", sentence, remedy, number=number),)


def _scores_differ_by_case(options: Mapping[str, int]) -> bool:
    """Whether an item has two options that differ in case or width only, and in their scores."""
    scores: dict[str, int] = {}
    return any(scores.setdefault(folded(text), score) != score for text, score in options.items())


def recoding(labels: Any) -> dict[str, int]:
    """Labels from the lowest category to the highest; those joined by = share one ("never=not at all,sometimes")."""
    if isinstance(labels, Mapping):
        pairs = [(str(label), score_of(number, label)) for label, number in labels.items()]
    else:
        parts = labels.split(",") if isinstance(labels, str) else [str(one) for one in labels]
        pairs = [(label, k) for k, part in enumerate(parts) for label in part.split("=")]
    found: dict[str, int] = {}
    for label, (_, number) in zip(spellings(label for label, _ in pairs), pairs, strict=True):
        if not label or label in found:
            raise OptionError(f"`recode` names {label!r} twice or not at all; each label once.")
        found[label] = number
    if len(found) < 2:
        raise OptionError("`recode` needs two labels or more, from the lowest to the highest.")
    return found


class Used:
    """Which categories were used, by items as they came up, while answers are read."""

    def __init__(self, bits: int) -> None:
        self._bits, self._width = bits, 1  # bits of a category in a slot, and in the table
        self.table: NDArray[np.bool_] = np.zeros((0, 2), dtype=bool)

    def note(self, slots: NDArray[np.int32]) -> None:
        if not len(slots):
            return
        n_items = (int(slots.max()) >> self._bits) + 1
        width = int((slots & ((1 << self._bits) - 1)).max()).bit_length()
        if width > self._width or n_items > len(self.table):
            self._width = max(width, self._width)
            grown = np.zeros((max(n_items, 2 * len(self.table)), 1 << self._width), dtype=bool)
            grown[: len(self.table), : self.table.shape[1]] = self.table
            self.table = grown
        self.table.reshape(-1)[self._place(slots)] = True

    def _place(self, slots: NDArray[np.int32]) -> NDArray[Any]:
        if self._width == self._bits:
            return slots
        return ((slots >> self._bits) << self._width) | (slots & ((1 << self._width) - 1))

    def settled(
        self, item_at: Codes, items: Labels, scoring: Scoring, source: str, of: tuple[Labels, Ints] | None
    ) -> tuple[Settled, Callable[[NDArray[np.int32]], NDArray[np.int32]]]:
        """The categories of items under their final codes, `item_at` of those by which they came up; and what makes
        slots in these from slots as they came up. `of` are the things rated, and the one of each item."""
        used = np.zeros((len(item_at), self.table.shape[1]), dtype=bool)
        used[item_at[: len(self.table)]] = self.table[: len(item_at)]
        used = used if of is None else used_by_group(used, of[1])
        found = settle(used, items, scoring, source, None if of is None else of[0][of[1]])
        final = found.category[item_at, : self.table.shape[1]].astype(np.int32)
        table = ((item_at.astype(np.int32)[:, None] << found.thresholds.bits) | final).reshape(-1)
        return found, lambda slots: table[self._place(slots)]


@dataclass(frozen=True, eq=False)
class Settled:
    """The category, from 0 without gaps, of each item and value; the thresholds of each item; what stood in the data
    for each category; findings; and the sum of a code and what it became in an item that was turned round."""

    category: NDArray[np.uint8]
    thresholds: Thresholds
    codes: Floats | None
    notes: tuple[Finding, ...]
    turned: int = 0


def settle(used: Mask, items: Labels, scoring: Scoring, source: str, names: Labels | None = None) -> Settled:
    """Categories from 0 to the K of each item, from items x values that somebody used; `names` are those of the things
    rated, by which options and messages know the items.
    Of values that nobody used `unused` says: "collapse", the other categories of the item are renumbered; "error"; or
    "keep", an item has every category that somebody used for any item of its group."""
    if scoring.undecided and not used[:, 2:].any():
        return Settled(np.tile(np.arange(2, dtype=np.uint8), (len(items), 1)), Thresholds.ones(len(items)), None, ())
    *lower, top = np.flatnonzero(used.any(axis=0)).tolist() or [0]
    if scoring.recode is None and scoring.key is None and str(top) in SUSPECTS and lower[1:] and top > lower[-1] + 2:
        raise ResponseValueError(
            f"{source}: answers to {count(int(used[:, top].sum()), 'item')} are {top}, and the other categories are "
            f"{lower[0]} to {lower[-1]}. If {top} means 'not answered', say `missing={top}`; if it is a category, name "
            "all categories with `recode=`."
        )
    names = np.array((items if names is None else names).tolist(), dtype=object)
    used, value, turned = _turned(used, names, scoring)
    width = used.shape[1]
    low = int(used.any(axis=0).argmax())
    if scoring.unused == "keep":  # an item has the categories of its group, from the lowest of these to the highest
        things, thing = distinct_labels(names)
        used = used_by_group(used, group_codes(things, scoring.groups)[1][thing])
    n_used = used.sum(axis=1)
    answered = n_used > 0
    lowest = used.argmax(axis=1)
    highest = np.where(answered, width - 1 - used[:, ::-1].argmax(axis=1), 0)
    gaps = answered & ((lowest > 0) | (n_used < highest + 1)) & ~((n_used == 1) & (highest <= 1))
    without = list(dict.fromkeys(names[gaps].tolist()))
    who = f"{count(len(without), 'item')} {'has' if len(without) == 1 else 'have'}"
    if gaps.any() and scoring.unused == "error":
        k = int(np.flatnonzero(gaps)[0])
        raise ResponseValueError(
            f"{source}: {who} categories that nobody used: {listed(without)} (the first was answered "
            f"{listed(np.flatnonzero(used[k]).tolist())}). Number the categories from 0 without gaps, or say "
            "`unused='collapse'`."
        )
    found: tuple[Finding, ...] = ()
    if gaps.any() and not np.any(gaps & (highest - lowest + 1 > n_used)) and len(set(lowest[answered].tolist())) == 1:
        said, of = f"The lowest category is {low}; it counts as 0, the next as 1, and so on.", dict.fromkeys(names)
        found = (Finding("categories_shifted", "note", said, "Scores are counted from 0.", tuple(of)),)
    elif gaps.any():
        # Codes that begin with 1 at every item are no reason to name an item.
        uneven = gaps & ((lowest > low) | (highest - low + 1 > n_used))
        without = list(dict.fromkeys(names[uneven].tolist()))
        who = f"{count(len(without), 'item')} {'has' if len(without) == 1 else 'have'}"
        said = f"{who} categories that nobody used: {listed(without)}. The others are renumbered."
        remedy = "A threshold without answers on both sides cannot be estimated; check the categories of these items."
        found = (Finding("categories_collapsed", "warning", said, remedy, tuple(without)),)
    rank = np.cumsum(used, axis=1) - 1
    rank[n_used == 1] = np.clip(np.arange(width) - low, 0, 1)  # one category only: the lowest of the table, or above it
    thresholds = Thresholds(np.maximum(n_used - 1, 1))
    codes = np.full((len(items), thresholds.widest + 1), np.nan)
    row, column = np.nonzero(used)
    codes[row, rank[row, column]] = column
    return Settled(np.take_along_axis(rank, value, axis=1).astype(np.uint8), thresholds, codes, found, turned)


Groups = Mapping[Any, Any] | Sequence[Any] | None  # of items that share a rating scale


def group_codes(items: Labels, groups: Groups) -> tuple[Labels, Ints]:
    """The labels of the groups of items that share a rating scale, and the group of each item."""
    if groups is None:
        return np.array(["all"], dtype=object), np.zeros(len(items), dtype=np.int64)
    if isinstance(groups, Mapping):
        absent = [item for item in items.tolist() if item not in groups]
        if absent:
            raise OptionError(f"groups says nothing about {count(len(absent), 'item')}: {listed(absent)}.")
        groups = [groups[item] for item in items.tolist()]
    if len(groups) != len(items):
        raise OptionError(f"groups has {len(groups):,} labels; there are {count(len(items), 'item')}.")
    return distinct_labels(groups)


def distinct_labels(labels: Iterable[Any]) -> tuple[Labels, Ints]:
    """The labels that differ, in the order of their first appearance, and which of them each one is."""
    every = list(map(plain_label, labels))
    different = list(dict.fromkeys(every))
    return np.fromiter(different, dtype=object), positions(every, different)


def _turned(used: NDArray[np.bool_], items: Labels, scoring: Scoring) -> tuple[NDArray[np.bool_], Ints, int]:
    """Items x values used after some items were turned round; what each value is then; and the sum of both. An item may
    be there several times, once for each rater."""
    value = np.broadcast_to(np.arange(used.shape[1]), used.shape)
    if not scoring.reverse:
        return used, value, 0
    things, thing = distinct_labels(items)
    chosen = positions(scoring.reverse, things)
    unknown = [one for one, k in zip(scoring.reverse, chosen.tolist(), strict=True) if k < 0]
    if unknown:
        raise OptionError(f"`reverse` names {listed(unknown)}, which are not items; these are {listed(things)}.")
    place = np.flatnonzero(np.isin(thing, chosen))
    somewhere = np.flatnonzero(used.any(axis=0))
    low, high = scoring.span or (int(somewhere.min(initial=HIGHEST)), int(somewhere.max(initial=0)))
    beyond = used[place, low + high + 1 :].any(axis=1)
    if beyond.any():
        what = f"{listed(items[place[beyond]])} is to be turned round within the categories {low} to {high},"
        raise ResponseValueError(f"{what} and was answered beyond these.")
    wide = np.zeros((len(items), max(used.shape[1], low + high + 1)), dtype=bool)
    wide[:, : used.shape[1]] = used
    value = np.broadcast_to(np.arange(wide.shape[1]), wide.shape).copy()
    value[place] = np.abs(low + high - value[place])  # of values beyond there is none
    wide[place] = np.take_along_axis(wide, value, axis=1)[place]
    wide[place, low + high + 1 :] = False
    return wide, value, low + high


def used_by_group(used: NDArray[np.bool_], group: Ints) -> NDArray[np.bool_]:
    total = np.zeros((int(group.max(initial=0)) + 1, used.shape[1]), dtype=bool)
    np.logical_or.at(total, group, used)
    return total[group]


def without_unused(answers: Responses, scoring: Scoring, of: tuple[Labels, Ints] | None) -> Responses:
    """The answers without categories that only repeated answers were in, which were dropped. `of` are the things rated,
    and the one of each item: it keeps a category that any rater used."""
    counts, codes = answers.category_counts, answers.category_codes()
    if np.all(counts != 0):
        return answers
    value = np.nan_to_num(codes).astype(np.int64)
    used = np.zeros((answers.n_items, int(value.max()) + 2), dtype=bool)
    row, column = np.nonzero(np.nan_to_num(counts))
    used[row, value[row, column]] = True
    names = None
    if of is not None:
        used = used_by_group(used, of[1])
        names = of[0][of[1]]
    settled = settle(used, answers.items, replace(scoring, reverse=()), answers.source, names)
    person, item, category = answers.answers()
    category = settled.category[item, value[item, category.astype(np.int64)]]
    known = {"source": answers.source, "codes": settled.codes, "notes": settled.notes, "thresholds": settled.thresholds}
    return answers.from_codes(person, item, category, persons=answers.persons, items=answers.items, **known)  # type: ignore[arg-type]


def looks_ordered(responses: Responses) -> bool:
    """Whether answers that are not all 0 and 1 look like ordered categories: whole numbers without a gap over all
    items, from 0 or 1, at most ten, and more than two in at least two items and a tenth of them. Codes for missing
    answers (9, 99) leave a gap, and ages or grades stand in a single column."""
    codes = responses.category_codes()
    seen = np.unique(codes[np.isfinite(codes)])
    whole = len(seen) and seen[0] in (0, 1) and seen[-1] - seen[0] == len(seen) - 1
    many = int(np.sum(np.isfinite(codes).sum(axis=1) > 2))  # unused categories were collapsed
    return bool(whole and len(seen) <= 10 and many >= 2 and 10 * many >= responses.n_items)


KEY = 1  # code of the right option, whatever its text: that is in the key
OTHER = 255  # code of every wrong option beyond the first 253: answers in the people's own words
BLANK_TEXT, KEY_TEXT, OTHER_TEXT = "(blank)", "(key)", "(other)"


class AnswerKey:
    """Scores answers by a key, which has for every item its options and their scores; and codes wrong options, in the
    order in which they turn up, and counts how often each did."""

    def __init__(self, key: Mapping[Any, dict[str, int]], spelling: OneSpelling) -> None:
        self.key = {item: {spelling.of(text): score for text, score in own.items()} for item, own in key.items()}
        self._spelling = spelling
        # By the code of the item: one option and its score after the other, null where an item has no more of them;
        # and the highest score.
        self._options: list[pl.Series] = []
        self._scores: list[NDArray[np.uint8]] = []
        self._best = np.zeros(0, dtype=np.uint8)
        self._code: dict[str, int] = {}
        self._counts = np.zeros(OTHER + 1, dtype=np.int64)

    def scored(
        self, answers: Any, item: Codes, labels: Callable[[], Iterable[Any]]
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The category of each answer, and the code of the option; `labels` are those of the items that came up."""
        if int(item.max(initial=-1)) >= len(self._best):
            self._learn(labels())
        category = np.zeros(len(item), dtype=np.uint8)
        for options, scores in zip(self._options, self._scores, strict=True):
            chosen = (answers == options.gather(item)).fill_null(False).to_numpy()
            category[chosen] = scores[item[chosen]]
        return category, self._codes(answers, category == self._best[item])

    def _learn(self, items: Iterable[Any]) -> None:
        import polars as pl

        known = [*(list(one.items()) for one in self.key.values()), []]
        own = [known[k] for k in positions(items, self.key)]
        most = max(map(len, own), default=0)
        padded = [one + [(None, 0)] * (most - len(one)) for one in own]
        self._options = [pl.Series([one[k][0] for one in padded], dtype=pl.String) for k in range(most)]
        self._scores = [np.array([one[k][1] for one in padded], dtype=np.uint8) for k in range(most)]
        self._best = np.array([max((score for _, score in one), default=1) for one in own], dtype=np.uint8)

    def _codes(self, answers: pl.Series, right: NDArray[np.bool_]) -> NDArray[np.uint8]:
        import polars as pl

        codes = np.full(len(answers), KEY, dtype=np.uint8)
        where = np.flatnonzero(~right)
        if len(where):
            wrong = answers.gather(where)
            for text in wrong.unique(maintain_order=True).to_list():
                if len(self._code) < OTHER - KEY - 1:
                    self._code.setdefault(text, len(self._code) + KEY + 1)
            codes[where] = wrong.replace_strict(self._code, default=OTHER, return_dtype=pl.UInt8).to_numpy()
        self._counts += np.bincount(codes, minlength=OTHER + 1)
        return codes

    def known(self, labels: list[Any]) -> tuple[RawAnswers, tuple[Finding, ...]]:
        """What the options and the right ones of the items are; and what is odd about it. An error when an item has no
        right answer in the key."""
        every, place = [*self.key.values()], positions(labels, self.key).tolist()
        without = [label for label, k in zip(labels, place, strict=True) if k < 0]
        if without:
            what = f"the key has no answer for {len(without):,} of the items: {listed(without)}."
            raise OptionError(f"{what} Add them to the key, or leave these items out of the data.")
        own = {label: every[k] for label, k in zip(labels, place, strict=True)}
        best = {label: max(one.values()) for label, one in own.items()}
        key = {label: "|".join(text for text, s in one.items() if s == best[label]) for label, one in own.items()}
        found = self._findings(text for one in own.values() for text in one)
        used = set(place)
        absent = [label for k, label in enumerate(self.key) if k not in used]
        if absent:  # a longer key does no harm, a misspelled label does
            items = "1 item of the key is" if len(absent) == 1 else f"{len(absent):,} items of the key are"
            said, remedy = f"{items} not among the answers: {listed(absent)}.", "Compare the labels."
            found += (Finding("key_items_not_there", "note", said, remedy, tuple(absent)),)
        return RawAnswers(self._texts(), key), found

    def _texts(self) -> tuple[str, ...]:
        texts = [BLANK_TEXT, KEY_TEXT, *map(self._spelling.shown, self._code)]
        if self._counts[OTHER]:
            texts += [""] * (OTHER - len(texts)) + [OTHER_TEXT]
        return tuple(texts)

    def _findings(self, scored: Iterable[str]) -> tuple[Finding, ...]:
        """Options that count as wrong and were perhaps not meant to be; `scored` are those of the key."""
        right = set(scored)
        in_key = {folded(text): text for text in right}
        foreign = [text for text in self._code if text not in right]
        alike = [text for text in foreign if folded(text) in in_key]
        codes = [text for text in foreign if text in SUSPECTS and text not in alike]
        found = []
        if alike:
            meant = listed([in_key[folded(text)] for text in alike])
            number = self._times(alike)
            how = f"except for upper or lower case: {listed(alike)} instead of {meant}"
            said = f"{count_are(number, 'answer')} in the key {how}. That counts as wrong."
            remedy = "If these are the same options, leave out `exact_case=True`, or write them alike."
            found.append(Finding("spelled_unlike_key", "warning", said, remedy, number=number))
        if codes:
            number = self._times(codes)
            said = f"{count_are(number, 'answer')} {listed(codes)}, which is right for no item. That counts as wrong."
            remedy = f"If it means 'not answered', say `missing={codes[0] if len(codes) == 1 else codes!r}`."
            found.append(Finding("options_like_codes", "warning", said, remedy, number=number))
        return tuple(found)

    def _times(self, texts: list[str]) -> int:
        return int(sum(self._counts[self._code[text]] for text in texts))
