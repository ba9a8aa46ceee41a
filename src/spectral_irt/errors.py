"""Errors that say what is wrong, where, and what to do about it.

Every error a user can cause derives from `SpectralIrtError`; the command line turns it into one sentence and exit
code 2. The classes also derive from the built-in a Python programmer would expect (`ValueError`, `OSError`).
"""

from __future__ import annotations

from collections.abc import Iterable

NAMED = 5  # how many offenders an error names before it only counts the rest


class SpectralIrtError(Exception):
    """Base of every error that the user's input can cause."""


class ReadError(SpectralIrtError, ValueError):
    """A file cannot be read as a table of responses."""


class ResponseValueError(SpectralIrtError, ValueError):
    """A response is neither right, wrong nor missing."""


class DuplicateResponseError(SpectralIrtError, ValueError):
    """The same user answered the same item more than once."""


class DesignError(SpectralIrtError, ValueError):
    """The design of the data admits no estimate."""


class DisconnectedDesignError(DesignError):
    """The items have no common scale."""


class OptionError(SpectralIrtError, ValueError):
    """An option has a value that it cannot take."""


class NotFittedError(SpectralIrtError, ValueError, AttributeError):
    """A result was asked for before `fit`."""


class BankError(SpectralIrtError, ValueError):
    """A saved calibration cannot be read, or does not go with the data."""


class OutputError(SpectralIrtError, OSError):
    """Results cannot be written."""


class StaleBankError(OutputError):
    """The bank on disk is not the one that was read: saving would undo what somebody else has saved."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it reached its tolerance."""


def listed(labels: Iterable[object], total: int | None = None) -> str:
    """The first five labels, quoted, and how many more there are.

    >>> listed(["q1", "q2"])
    "'q1', 'q2'"
    >>> listed(range(9))
    '0, 1, 2, 3, 4 and 4 more'
    """
    first: list[str] = []
    count = 0
    for label in labels:
        if count < NAMED:
            first.append(repr(str(label)) if isinstance(label, str) else str(label))
        count += 1
        if total is not None and count >= NAMED:
            break
    more = (count if total is None else total) - len(first)
    text = ", ".join(first)
    return f"{text} and {more:,} more" if more > 0 else text


def check_option(name: str, value: object, allowed: Iterable[object]) -> None:
    """Refuse a value that is not among the allowed ones, and list those."""
    allowed = list(allowed)
    if value not in allowed:
        raise OptionError(f"{name} is {value!r}; it can be {', '.join(map(repr, allowed))}.")
