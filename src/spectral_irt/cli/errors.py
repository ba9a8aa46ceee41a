"""What goes wrong, said in one line on stderr, in the words of the command line; and what the process returns."""

from __future__ import annotations

import os
import re
import shlex
import sys
import warnings
from typing import Any

from spectral_irt.errors import SpectralIrtError

OK, INTERNAL, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

# Options whose name differs from the parameter's by more than dashes.
RENAMED = {"n_users": "--users", "n_items": "--items", "n_responses": "--responses", "replicates": "--bootstrap"}

PHRASES = {
    "responses.largest_component()": "--largest-component",
    "key, correct, threshold or --above-mean": "--key, --correct, --threshold or --above-mean",
    " needs p.": " needs --p.",
    "it can be None, ": "it can be ",
    "say ignore_unknown=True (--ignore-unknown)": "say --ignore-unknown",
    ", collect more answers, or lower min_users": ", or collect more answers",
    "Merge them with others, or lower min_users.": "Merge them with others.",
    "Give the folder that bank.save(folder) made.": "Give the folder that fit --bank DIR made.",
}

_OPTIONS = (
    "data|format|user|item|response|missing|key|correct|threshold|above_mean|duplicates|orient|estimator|weighting|"
    "regularization|nu|nu_rule|se|threads|max_iter|seed|design|p|ignore|items|method|repeats|sample|ability|anchors|replicates"
)
_VALUE = r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|[\w+-]+(?:\.\w+)*"
_SAID_TWICE = re.compile(rf"\b(?:{_OPTIONS})=(?:{_VALUE}) \((--\S+ [^()]+)\)")  # missing='9' (--missing 9)
_WITH_FLAG = re.compile(rf"\b({_OPTIONS})=({_VALUE}) \(--[\w-]+\)")  # user='name' (--user)
_WITH_VALUE = re.compile(rf"(?<!['\"\w])({_OPTIONS})=({_VALUE})( or '[\w-]+')?")  # duplicates='first' or 'last'
_WITHOUT_VALUE = re.compile(rf"(?<!['\"\w])({_OPTIONS})=(?=[\s,.;)])")  # response=, or
_AT_START = re.compile(rf"^({_OPTIONS}) is ")  # threshold is inf; ...
_SNAKE = re.compile(r"(?<!['\"\w.])(n_users|n_items|n_responses|\w+_sd|above_mean|nu_rule|max_iter)(?!['\"\w])")


def in_shell_words(sentence: str) -> str:
    """A sentence written for Python, with options as they are said on the command line.

    >>> in_shell_words("Say duplicates='first' or 'last' to keep one answer, or take responses.largest_component().")
    'Say --duplicates first or last to keep one answer, or take --largest-component.'
    >>> in_shell_words("say missing='9' (--missing 9), or response=.")
    'say --missing 9, or --response.'
    """
    sentence = _SAID_TWICE.sub(r"\1", sentence)
    sentence = _WITH_FLAG.sub(r"\1=\2", sentence)
    sentence = _WITH_VALUE.sub(_flag_with_value, sentence)
    sentence = _WITHOUT_VALUE.sub(lambda found: _flag(found[1]), sentence)
    sentence = _SNAKE.sub(lambda found: _flag(found[1]), sentence)
    sentence = _AT_START.sub(lambda found: f"{_flag(found[1])} is ", sentence)
    for python, shell in PHRASES.items():
        sentence = sentence.replace(python, shell)
    return sentence


def _flag(name: str) -> str:
    return RENAMED.get(name, "--" + name.replace("_", "-"))


def _flag_with_value(found: re.Match[str]) -> str:
    value = found[2][1:-1] if found[2][0] in "'\"" else found[2]
    other = (found[3] or "").replace("'", "")
    return f"{_flag(found[1])} {shlex.quote(value)}{other}"


def printable(text: object) -> str:
    r"""The text with control characters spelled out, so that it stays on its line and moves no cursor.

    >>> print(printable("two\nlines, a bell \a and a colour \x1b[31m"))
    two\nlines, a bell \x07 and a colour \x1b[31m
    """
    return "".join(c if c.isprintable() or c in _SPACES else _escaped(c) for c in str(text))


_SPACES = "\u00a0\u3000\u200d"  # not printable by Python's count, and harmless


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def complain(kind: str, sentence: str, colour: int = 31) -> None:
    """One line on stderr: `error: ...`."""
    colourful = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    head = f"\x1b[1;{colour}m{kind}:\x1b[0m" if colourful else f"{kind}:"
    print(f"{head} {printable(sentence)}", file=sys.stderr, flush=True)


def report(error: BaseException, *, debug: bool = False) -> int:
    """Say what happened and return the exit code; with `debug` the traceback goes before it."""
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, SpectralIrtError):
        complain("error", in_shell_words(str(error)))
        return BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted", "nothing was written.", 33)
        return INTERRUPTED
    if isinstance(error, MemoryError):
        complain("error", "there is not enough memory for this; try fewer --threads or --se none, or a larger machine.")
        return BAD_INPUT
    first, *_ = str(error).strip().splitlines() or [""]
    hint = "" if debug else ", with the traceback that --debug shows"
    complain("internal error", f"{type(error).__name__}: {first} -- this is our mistake; please report it{hint}.")
    return INTERNAL


def quiet_warnings(*, debug: bool = False) -> None:
    """Warnings that are meant for users become one line; the others are for developers, and shown with `debug`."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, UserWarning) or debug:
            complain("warning", str(message), 33)

    warnings.showwarning = show
