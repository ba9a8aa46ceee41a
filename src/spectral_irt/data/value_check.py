"""Odd values among raw answers, neither an answer nor missing: the sentence that names them with their place, and what
to do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data.labels import SUSPECTS
from spectral_irt.text import first_of, listed

if TYPE_CHECKING:
    from spectral_irt.data.scoring import ValueCheck

LONGEST_SHOWN = 60  # characters of a value that a message repeats
TIMES = range(2, 11)  # factors that may make fractions of points whole
MOST_LABELS = 10  # of ordered categories
POINTS = frozenset(map(str, range(2, 11)))  # of an answer, beside 0 and 1
# fmt: off
SCALES = (  # labels in order, for the advice
    ("never", "almost never", "hardly ever", "rarely", "seldom", "once in a while", "occasionally", "sometimes",
     "regularly", "often", "frequently", "usually", "very often", "almost always", "always"),
    ("strongly disagree", "disagree strongly", "disagree", "somewhat disagree", "disagree somewhat",
     "slightly disagree", "neither agree nor disagree", "neutral", "undecided", "slightly agree", "agree somewhat",
     "somewhat agree", "agree", "agree strongly", "strongly agree"),
    ("not at all", "a little", "a little bit", "slightly", "somewhat", "moderately", "quite a bit", "very", "very much",
     "a great deal", "extremely"),
    ("very poor", "poor", "fair", "average", "good", "very good", "excellent"),
    ("none", "mild", "moderate", "severe", "very severe", "extreme"),
    ("very low", "low", "medium", "high", "very high"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("no", "perhaps", "maybe", "partly", "yes"),
)
# fmt: on


def odd_sentence(check: ValueCheck) -> str:
    """Which values are odd, where the first stands, and what to do about them."""
    assert check.first is not None
    place, text = check.fraction or check.first
    kinds = sorted(check.odd, key=lambda kind: not is_fraction(kind)) if check.fraction else list(check.odd)
    values, what = "value" if check.n_odd == 1 else "values", ", a fraction" if check.fraction else ""
    where = f"{place.name}: column {listed([place.column])}, row {place.row:,} holds {_shown(text)}{what}"
    every = f"{check.n_odd:,} such {values}: {first_of(map(_shown, kinds))}"
    sentence = f"{where}, which is {check.scoring.expected} ({every})."
    codes = [kind for kind in kinds if kind in SUSPECTS]
    if any(_is_number(kind) and kind not in SUSPECTS for kind in kinds):  # among other numbers 9 may be a rating
        codes = [code for code in codes if not _is_number(code)]
    if codes:
        mean = "means" if len(codes) == 1 else "mean"
        said = f"`missing={codes[0] if len(codes) == 1 else codes!r}`"
        sentence += f" If {' and '.join(codes)} {mean} 'not answered', say {said}."
    if len(codes) < len(kinds):
        few = check.wide and check.columns and (len(check.columns) == 1 or 2 * len(check.columns) <= check.n_columns)
        how_to = _of_fractions(kinds) if check.fraction else check.scoring.how_to
        if check.scoring.expects_01 and all(kind in POINTS for kind in kinds):
            how_to = f" If these are points, fit `SpectralPartialCredit`.{how_to}"
        sentence += _of_words(kinds, how_to) if check.scoring.expects_01 and not few else how_to
        names = sorted(map(str, check.columns))
        if few and len(names) == 1:
            person = f"or name it with `person={names[0]!r}` if it labels the people"
            sentence += f" If the column is not an item, say `ignore={names[0]!r}`, {person};"
            sentence += " if a row is one answer, say `item=` and `response=`."
        elif few:
            sentence += f" If the columns {listed(names)} are not items, say `ignore={','.join(names)!r}`."
    return sentence


def _of_fractions(kinds: list[str]) -> str:
    """What to do about answers that are fractions: a threshold, or whole categories."""
    numbers = np.array([_number(kind) for kind in kinds if _is_number(kind)])
    times = next((k for k in TIMES if np.allclose(numbers * k, np.rint(numbers * k), atol=1e-9)), None)
    whole = "give each grade a whole number from 0 on" if times is None else f"multiply them by {times}"
    how = " Say `threshold=` to count the answers above it as right and the others as wrong (`above_mean=` for ratings)"
    return f"{how}; or {whole}, to fit them as ordered answers with `SpectralPartialCredit`."


def _of_words(kinds: list[str], how_to: str) -> str:
    """What to do about answers in a few words: labels of categories, in the order of a usual scale if it is one."""
    words = [kind for kind in kinds if not _is_number(kind) and kind not in SUSPECTS]
    if words and all(len(word) == 1 and word.isalpha() for word in words):
        return " These look like options of multiple choice: say which are correct with `key=`, or with `correct=`."
    if not 2 <= len(words) <= MOST_LABELS or 2 * len(words) <= len(kinds):
        return how_to
    scale = next((scale for scale in SCALES if all(word.lower() in scale for word in words)), None)
    ordered = words if scale is None else sorted(words, key=lambda word: scale.index(word.lower()))
    order = "put in order" if scale is None else "check the order"
    how = f" If these are ordered categories, say `recode={','.join(ordered)!r}`, from the lowest to the highest"
    return f"{how} ({order}); if one answer is right, say `correct` or `key`."


def is_fraction(text: str) -> bool:
    return _is_number(text) and np.isfinite(_number(text)) and not _number(text).is_integer()


def _is_number(text: str) -> bool:
    return _shown(text) == text


def _shown(text: str) -> str:
    """Numbers as they are, other text in quotes; of a very long one, the beginning."""
    if len(text) > LONGEST_SHOWN:
        return f"{_shown(text[:LONGEST_SHOWN])}... ({len(text):,} characters)"
    try:
        _number(text)
    except ValueError:
        return repr(text)
    return text


def _number(text: str) -> float:
    return float(text.replace(",", "."))  # a decimal comma
