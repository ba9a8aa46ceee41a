"""A simulated quiz: multiple choice, two booklets, with two faults for a calibration to find."""

from __future__ import annotations

from pathlib import Path

from spectral_irt.responses.responses import Responses

OMITTED = "9"  # how an item that somebody left out is coded; one that was not in the booklet is empty


def quiz_files() -> tuple[Path, Path]:
    """The answers of the quiz and its key, as CSV files; see `load_quiz`."""
    here = Path(__file__).parent
    return here / "quiz.csv", here / "quiz_key.csv"


def load_quiz() -> Responses:
    """A science quiz, simulated: 800 people, 30 multiple-choice items (A to D), scored by its key.

    Everybody has one of two booklets, with 10 items in common and 10 of its own; columns `region` and `booklet` of the
    file are not items. The answers follow the Rasch model but for two faults: the key of `density` names a wrong
    answer, and `tides` is easier by one logit for people from the coast. `scripts/simulate_quiz.py` draws it.

    Examples
    --------
    >>> load_quiz()
    Responses(800 persons x 30 items, 15,679 responses, 51.6% right)
    """
    from spectral_irt.responses.read import read_responses

    answers, key = quiz_files()
    return read_responses([str(answers)], key=str(key), missing=[OMITTED], ignore=["region", "booklet"])
