"""Errors that say what is wrong, where, and what to do about it.

Every error a user can cause derives from `SpectralIrtError`; the command line turns it into one sentence and exit
code 2. The classes also derive from the built-in a Python programmer would expect (`ValueError`, `OSError`).

A message that names an option is written once and said in two ways: `duplicates='first'` to a Python programmer,
`--duplicates first` on the command line. Its parts are given one after the other, the options among them by
`option("duplicates", "first")`; labels, values and file names are plain text and never taken for options.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

NAMED = 5  # how many offenders an error names before it only counts the rest


class Words(str):
    """A text in the words of Python, which is the string itself, and in those of the shell.

    `+` keeps both, an f-string only those of Python.
    """

    shell: str

    def __new__(cls, python: str, shell: str | None = None) -> Words:
        words = super().__new__(cls, python)
        words.shell = python if shell is None else shell
        return words

    def __add__(self, other: str) -> Words:
        return Words(str(self) + str(other), self.shell + for_shell(other))

    def __radd__(self, other: str) -> Words:
        return Words(str(other) + str(self), for_shell(other) + self.shell)


def option(name: str, *values: object) -> Words:
    """An option by its name in Python, alone or with a value; `...` is a value for the reader to choose.

    >>> print(option("nu"), option("nu", ...), option("duplicates", "first", "last"), option("ignore", ["a", "b"]))
    nu nu= duplicates='first' or 'last' ignore=['a', 'b']
    >>> print(option("n_items").shell, option("nu", ...).shell, option("ignore", ["a", "b c"]).shell)
    --items --nu --ignore a --ignore 'b c'
    """
    flag = "--" + name.removeprefix("n_").replace("_", "-")  # n_items is --items
    if not values:
        return Words(name, flag)
    if values == (...,):
        return Words(f"{name}=", flag)
    if values == (True,):
        return Words(f"{name}=True", flag)
    if isinstance(values[0], list):
        return Words(f"{name}={values[0]!r}", " ".join(f"{flag} {_typed(one)}" for one in values[0]))
    python, shell = (" or ".join(map(way, values)) for way in (repr, _typed))
    return Words(f"{name}={python}", f"{flag} {shell}")


def _typed(value: object) -> str:
    text = shlex.quote(str(value))
    return text if text[-1].isalnum() or text[-1] == "'" else f"'{text}'"  # so that a full stop after it stays apart


LARGEST_COMPONENT = Words("responses.largest_component()", "--largest-component")
MORE_ITERATIONS = Words("Raise max_iter or tol.", "Raise --max-iter.")


def join(parts: Iterable[str], between: str = "") -> str:
    """The parts as one text, in both ways where they have two."""
    whole = ""
    for k, part in enumerate(parts):
        whole = whole + between + part if k else part
    return whole


def for_shell(text: str) -> str:
    """The text as it is said on the command line."""
    return text.shell if isinstance(text, Words) else text


class _Said:
    """What errors and warnings share: a message given in parts, for Python (`str`) and for the shell."""

    def __init__(self, *parts: str) -> None:
        super().__init__(join(parts))  # type: ignore[call-arg]

    def for_shell(self) -> str:
        """The message as it is said on the command line."""
        return for_shell(self.args[0])  # type: ignore[attr-defined]


class SpectralIrtError(_Said, Exception):
    """Base of every error that the user's input can cause."""


class ReadError(SpectralIrtError, ValueError):
    """A file cannot be read as a table of responses."""


class ResponseValueError(SpectralIrtError, ValueError):
    """A response is neither right, wrong nor missing."""


class DuplicateResponseError(SpectralIrtError, ValueError):
    """The same person answered the same item more than once."""


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


class ClusterError(SpectralIrtError, RuntimeError):
    """A cluster cannot be reached, does not fit, or is gone."""


class DatabaseError(SpectralIrtError, OSError):
    """A database cannot be reached, or does not do what it was asked."""


class FederationError(SpectralIrtError, ValueError):
    """A round of a federated calibration, or an answer to it, is not what it should be."""


class SitesMissing(FederationError):
    """Not all sites have answered a round yet."""


class OutputError(SpectralIrtError, OSError):
    """Results cannot be written."""


class CheckpointError(SpectralIrtError, ValueError):
    """A checkpoint is in use, or of other data or options than the fit that should go on from it."""


class StaleBankError(OutputError):
    """The bank on disk is not the one that was read: saving would undo what somebody else has saved."""


class ConvergenceWarning(_Said, UserWarning):
    """An iteration stopped before it reached its tolerance."""


class ReadWarning(_Said, UserWarning):
    """A file beside the answers, a key or a table of people, was read in a way that its reader should know."""


def stopped(what: str, steps: int, unit: str, measure: str, reached: float, asked: float) -> str:
    """The one sentence about an iteration that ended before it reached its tolerance.

    >>> stopped("the chain", 10_000, "passes", "residual", 3e-4, 1e-10)
    'the chain stopped after 10,000 passes at residual 3.0e-04 (asked: 1.0e-10).'
    """
    return f"{what} stopped after {steps:,} {unit} at {measure} {reached:.1e} (asked: {asked:.1e})."


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
        values = [repr(one) for one in allowed if one is not None]
        none = Words("None, ", "") if None in allowed else ""
        raise OptionError(option(name), f" is {value!r}; it can be ", none, f"{', '.join(values)}.")


def printable(text: object) -> str:
    r"""The text with control characters spelled out, so that it stays on its line and moves no cursor.

    >>> print(printable("two\nlines, a bell \a and a color \x1b[31m"))
    two\nlines, a bell \x07 and a color \x1b[31m
    """
    return "".join(c if c.isprintable() or c in _SPACES else _escaped(c) for c in str(text))


_SPACES = "\u00a0\u3000\u200d"  # not printable by Python's count, and harmless


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
