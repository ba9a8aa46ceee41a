"""An answer key: what scores answers have, and which options were chosen.

A key has for every item its options and their scores. Answers are compared with it as text, without regard to case and
width (`OneSpelling`) unless that was asked for or the key itself tells them apart. Each answer becomes a category, its
score, and the code of the option: `KEY` for the best one, from 2 on for the others in the order in which they turn up.

`ResponsesBuilder` scores pieces of raw answers by an `AnswerKey`; `Scoring` checks a key (`checked_key`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data.block import Codes
from spectral_irt.data.labels import NOT_ANSWERED, SUSPECTS, positions, spellings
from spectral_irt.data.scoring import HIGHEST, RawAnswers, Scoring, several
from spectral_irt.errors import Finding, OptionError
from spectral_irt.text import count, count_are, first_of, listed, one_or_many

if TYPE_CHECKING:
    import polars as pl

KEY = 1  # code of the right option, whatever its text: that is in the key
OTHER = 255  # code of every wrong option beyond the first 253: answers in the people's own words
BLANK_TEXT = "(blank)"
KEY_TEXT = "(key)"
OTHER_TEXT = "(other)"
MOST_SPELLINGS = 100_000  # different answers that are compared; people's own words may be without end


def score_of(score: Any, item: Any) -> int:
    """The score that a key gives an answer to this item; an error where it is none."""
    with suppress(TypeError, ValueError):
        if 0 <= float(score) <= HIGHEST and float(score).is_integer():
            return int(float(score))
    what = f"the key gives an answer to item {listed([item])} the score {score!r};"
    raise OptionError(f"{what} scores are whole numbers from 0 to {HIGHEST}.")


def checked_key(key: Mapping[Any, Any]) -> dict[Any, dict[str, int]]:
    """The options of each item and their scores, the best first; "A|C" are two right ones."""
    checked = {}
    for item, answers in key.items():
        scores = {text: score_of(score, item) for text, score in _options(answers).items() if text not in NOT_ANSWERED}
        if scores:
            checked[item] = dict(sorted(scores.items(), key=lambda option: -option[1]))
    return checked


def _options(answers: Any) -> dict[str, Any]:
    """What a key has for an item, options with their scores or right ones, as text with scores."""
    if isinstance(answers, str):
        answers = answers.split("|")
    if not isinstance(answers, Mapping):
        answers = dict.fromkeys(several(answers), 1)
    return dict(zip(spellings(answers), answers.values(), strict=True))


def option_key(text: str) -> str:
    """An option without capitals and width: "d", "D" and the full-width "Ｄ" are one."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


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
        """The spelling of this option; its own, if it is the first."""
        if self._is_exact:
            return text
        plain = option_key(text)
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
        if not changed:
            return answers
        return answers.replace(changed)

    def spelling(self, text: str) -> str:
        """The spelling to show: the known one, or the most usual."""
        if self._is_exact or text in self._known:
            return text
        return self._usual.get(option_key(text), text)

    @cached_property
    def _usual(self) -> dict[str, str]:
        """The most usual spelling of each option, when all answers were seen."""
        usual: dict[str, str] = {}
        for text, _ in self._others.most_common():
            usual.setdefault(option_key(text), text)
        return usual | {option_key(text): text for text in self._known}

    def findings(self) -> tuple[Finding, ...]:
        if self._scored_apart is not None:
            sentence = f"The key tells upper and lower case apart (item {listed([self._scored_apart])})"
            return (Finding("case_matters", "note", f"{sentence}, so all answers are compared as they are written."),)
        changed = {text: n for text, n in self._others.items() if self._usual.get(option_key(text), text) != text}
        number = sum(changed.values())
        if not number:
            return ()
        pairs = [f"{text!r} as {self._usual[option_key(text)]!r}" for text in changed]
        were = one_or_many(number, "was", "were")
        sentence = f"{count(number, 'answer')} {were} compared without regard to case and width: {first_of(pairs)}."
        remedy = "If these are different options, say `exact_case=True`."
        return (Finding("letters_alike", "note", sentence, remedy, number=number),)


def _scores_differ_by_case(options: Mapping[str, int]) -> bool:
    """Whether an item has two options that differ in case or width only, and in their scores."""
    scores: dict[str, int] = {}
    return any(scores.setdefault(option_key(text), score) != score for text, score in options.items())


class ScoredAnswers(NamedTuple):
    """The category of each answer, and the code of the option chosen."""

    category: NDArray[np.uint8]
    option: NDArray[np.uint8]


class KnownAnswers(NamedTuple):
    """What the options and the right ones of the items are; and what is odd about it."""

    answers: RawAnswers
    findings: tuple[Finding, ...]


class AnswerKey:
    """Scores answers by a key, which has for every item its options and their scores; and codes wrong options, in the
    order in which they turn up, and counts how often each did."""

    def __init__(self, key: Mapping[Any, dict[str, int]], spelling: OneSpelling) -> None:
        self.key = {
            item: {spelling.of(text): score for text, score in options.items()} for item, options in key.items()
        }
        self._spelling = spelling
        # By the code of the item: one option and its score after the other, null where an item has no more of them;
        # and the highest score.
        self._options: list[pl.Series] = []
        self._scores: list[NDArray[np.uint8]] = []
        self._best = np.zeros(0, dtype=np.uint8)
        self._code: dict[str, int] = {}  # of wrong options
        self._counts = np.zeros(OTHER + 1, dtype=np.int64)

    def score(self, answers: Any, item: Codes, labels: Callable[[], Iterable[Any]]) -> ScoredAnswers:
        """These answers scored; `labels` are those of the items that came up."""
        if int(item.max(initial=-1)) >= len(self._best):
            self._learn(labels())
        category = np.zeros(len(item), dtype=np.uint8)
        for options, scores in zip(self._options, self._scores, strict=True):
            chosen = (answers == options.gather(item)).fill_null(False).to_numpy()
            category[chosen] = scores[item[chosen]]
        return ScoredAnswers(category, self._codes(answers, category == self._best[item]))

    def _learn(self, items: Iterable[Any]) -> None:
        """Put the options of these items into columns; an item that is not in the key has none."""
        import polars as pl

        options_in_key = [*(list(options.items()) for options in self.key.values()), []]
        options_of_items = [options_in_key[k] for k in positions(items, self.key)]
        most = max(map(len, options_of_items), default=0)
        padded = [options + [(None, 0)] * (most - len(options)) for options in options_of_items]
        self._options = [pl.Series([options[k][0] for options in padded], dtype=pl.String) for k in range(most)]
        self._scores = [np.array([options[k][1] for options in padded], dtype=np.uint8) for k in range(most)]
        best = [max((score for _, score in options), default=1) for options in options_of_items]
        self._best = np.array(best, dtype=np.uint8)

    def _codes(self, answers: pl.Series, right: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """The codes of the options, counted."""
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

    def known_answers(self, items: list[Any]) -> KnownAnswers:
        """What is known of the answers to these items, when all were seen. An error when an item has no right answer in
        the key."""
        place = positions(items, self.key).tolist()
        without = [item for item, k in zip(items, place, strict=True) if k < 0]
        if without:
            what = f"the key has no answer for {len(without):,} of the items: {listed(without)}."
            raise OptionError(f"{what} Add them to the key, or leave these items out of the data.")
        options_in_key = [*self.key.values()]
        options = {item: options_in_key[k] for item, k in zip(items, place, strict=True)}
        in_use = set(place)
        not_there = [item for k, item in enumerate(self.key) if k not in in_use]
        findings = (
            *self._wrong_but_like_right({text for scores in options.values() for text in scores}),
            *_items_not_there(not_there),
        )
        best = {item: "|".join(_best_of(scores)) for item, scores in options.items()}
        return KnownAnswers(RawAnswers(self._texts(), best), findings)

    def _texts(self) -> tuple[str, ...]:
        """The text of every code."""
        texts = [BLANK_TEXT, KEY_TEXT, *map(self._spelling.spelling, self._code)]
        if self._counts[OTHER]:
            texts += [""] * (OTHER - len(texts)) + [OTHER_TEXT]
        return tuple(texts)

    def _wrong_but_like_right(self, right: set[str]) -> Iterator[Finding]:
        """Options that count as wrong and were perhaps not meant to be; `right` are those of the key."""
        in_key = {option_key(text): text for text in right}
        wrong = [text for text in self._code if text not in right]
        alike = [text for text in wrong if option_key(text) in in_key]
        like_codes = [text for text in wrong if text in SUSPECTS and text not in alike]
        if alike:
            number = self._times(alike)
            meant = listed([in_key[option_key(text)] for text in alike])
            how = f"except for upper or lower case: {listed(alike)} instead of {meant}"
            sentence = f"{count_are(number, 'answer')} in the key {how}. That counts as wrong."
            remedy = "If these are the same options, leave out `exact_case=True`, or write them alike."
            yield Finding("spelled_unlike_key", "warning", sentence, remedy, number=number)
        if like_codes:
            number = self._times(like_codes)
            answers = f"{count_are(number, 'answer')} {listed(like_codes)}"
            codes = like_codes[0] if len(like_codes) == 1 else like_codes
            sentence = f"{answers}, which is right for no item. That counts as wrong."
            remedy = f"If it means 'not answered', say `missing={codes!r}`."
            yield Finding("options_like_codes", "warning", sentence, remedy, number=number)

    def _times(self, texts: list[str]) -> int:
        """How often these options were chosen."""
        return int(sum(self._counts[self._code[text]] for text in texts))


def _best_of(scores: Mapping[str, int]) -> list[str]:
    highest = max(scores.values())
    return [text for text, score in scores.items() if score == highest]


def _items_not_there(items: list[Any]) -> Iterator[Finding]:
    """Items of the key that nobody answered: a longer key does no harm, a misspelled label does."""
    if items:
        are = count(len(items), "item of the key is", "items of the key are")
        sentence = f"{are} not among the answers: {listed(items)}."
        yield Finding("key_items_not_there", "note", sentence, "Compare the labels.", tuple(items))
