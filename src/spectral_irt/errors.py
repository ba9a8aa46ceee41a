"""Errors and findings: what is wrong or odd, where, and what to do about it.

The command line turns a `SpectralIrtError` into one sentence and exit code 2. A message names an option in backticks,
in the words of Python. Labels and values stand in quotes, and nothing inside quotes is taken for an option."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

QUOTES = "'\""

LARGEST_COMPONENT = "`responses.largest_component()`"

# What is not an option of the same name on the command line; `people` stands for `people=` too.
_OTHERWISE = {
    "responses.largest_component()": "--largest-component",
    "bank.save(folder)": "fit --bank DIR",
    "groups=": "--population-by",
    "people": "--group",
    "raw=True": "--cut raw:NUMBER",
    "raw=False": "--cut NUMBER",
    "fit=True": "--skip none",
    "sample": "--critical DRAWS:PEOPLE",
    "critical": "--critical",
    "orient='items'": "--layout items-in-rows",
    "order_by=": "--duplicates last:COLUMN",
    "draws": "--ability pv:DRAWS",
    "database": "FILE",
    "SpectralRasch": "--estimator spectral",
    "ConditionalRasch": "--estimator cml",
    "VariationalRasch": "--estimator vb",
    "PairwiseRasch": "--estimator pml",
    "SpectralPartialCredit": "--model pcm",
    "SpectralRatingScale": "--model rsm",
}
# Sheets of workbooks, which stand after the name of the file.
_SHEETS = {"key_sheet": "--key", "group_sheet": "--group-file", "item_texts_sheet": "--item-texts"}
_RENAMED = {"weighting": "chain-weights", "weights": "survey-weight", "facets": "facet", "round_fractions": "round"}
_RENAMED |= {"format": "layout", "orient": "layout", "people": "group"}
SETTINGS = ("regularization", "refine", "se", "nu", "nu_rule", "assume_equal_means", "max_iter")  # of --set NAME=VALUE
_BLANKS = ("omitted", "not_reached", "not_presented")  # of --blanks KIND=VALUE
_QUOTED = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
_VALUE = rf"(?:{_QUOTED}|\[(?:(?:{_QUOTED}|\d+)(?:, )?)+\]|[\w.+-]+)"
_OPTION = re.compile(
    rf"(?<!\w)(?:{_QUOTED})(?!\w)"  # a label or a value: left as it is
    rf"|`(?P<name>[a-z_]+)(?:(?P<is>=)(?P<values>{_VALUE}(?: or {_VALUE})*)?)?`"
    rf"|`(?P<other>{'|'.join(map(re.escape, _OTHERWISE))})`"
    rf"|`study\.(?P<move>[a-z_]+)\((?P<arguments>(?:{_VALUE}(?:, )?)*)\)`"
)

# Methods of an analysis that a remedy names: what stands for them on the command line, and on a page that is read
# without the program; {0} and {1} are the arguments.
_MOVES = {
    "split": ("--split {0}:{1}", "splitting {0!r} by {1}"),
    "join": ("--join {0}+{1}", "joining {0!r} and {1!r}"),
    "drop": ("--drop {0}", "dropping {0!r}"),
    "collapse": ("--collapse {0}:{1}", "merging categories of {0!r} as {1}"),
    "drop_persons": ("--drop-persons {0}", "dropping persons with {0}"),
    "tailor": ("--tailor {0}", "tailoring at {0}"),
    "distractors": ("distractors.csv (with --all)", "the table of options"),
    "item_fit": ("items.csv", "the table of items"),
    "persons": ("persons.csv", "the list of persons"),
    "tailored": ("tailored.csv", "the table of tailored items"),
}
# Options in words, for such a page; {0} is the value. Others are said as on the command line.
_IN_WORDS = {
    "responses.largest_component()": "the largest linked group of items alone",
    "fit": "so",
    "exact_case": "so",
    "orient": "so",
    "missing": "so",
    "design": "so",
    "key": "an answer key",
    "correct": "the right answers",
    "threshold": "a threshold",
    "recode": "an order of the categories",
    "reverse": "{0}",
    "items": "{0}",
    "encoding": "{0}",
    "group": "{0}",
    "groups": "the populations",
    "ignore": "which columns are no items",
    "free": "{0}",
    "unused": "unused categories kept",
    "regularization": "the usual prior",
    "regularization=0": "maximum likelihood alone",
    "facet": "that it is a facet",
    "max_iter": "the number of steps",
    "se": "dense standard errors",
    "assume_equal_means": "an assumption",
    "SpectralRasch": "the spectral method",
    "ConditionalRasch": "conditional maximum likelihood",
    "VariationalRasch": "variational Bayes",
    "PairwiseRasch": "pairwise likelihood",
    "SpectralPartialCredit": "the partial credit model",
    "SpectralRatingScale": "the rating scale model",
    "ConditionalRatingScale": "conditional maximum likelihood for rating scales",
}
# Files whose tables a page has itself.
_TABLES_OF_PAGE = {
    "items.csv": "the table of items",
    "scores.csv": "the table of scores",
    "dif_thresholds.csv": "the appendix",
}
_FILE = re.compile(rf"(?<=\s)(?:{'|'.join(map(re.escape, _TABLES_OF_PAGE))})(?![\w:])")
_START = re.compile(r"(?:^|[.:] )$")  # of a sentence
_ASIDE = re.compile(r" \((`[a-z_]+=`)\)")  # an option and nothing else in parentheses: words have said it


def for_shell(text: str) -> str:
    """The text as it is said on the command line: options in backticks become flags.

    >>> for_shell("say `duplicates='first' or 'last'`, `ignore=['a', 'b c']`, `n_items` or `fit=True`.")
    "say --duplicates first or last, --ignore a --ignore 'b c', --items or --skip none."
    >>> for_shell("the item '`nu`' is not `nu=1`; `omitted='wrong'`")
    "the item '`nu`' is not --set nu=1; --blanks omitted=wrong"
    >>> for_shell("`study.split('q 7', 'sex')` makes two of it; `study.distractors()` has all.")
    "--split 'q 7:sex' makes two of it; distractors.csv (with --all) has all."
    >>> for_shell("`key_sheet='Key A'` or `key_sheet`")
    "--key FILE#'Key A' or --key FILE#SHEET"
    """
    return _OPTION.sub(_flag, text) if "`" in text else text


def for_page(text: str) -> str:
    """The text as a page has it that is read without the program: options and calls in backticks become words.

    >>> for_page("`study.split('q7', 'sex')` makes two of it. Join categories (`recode=`), or say `exact_case=True`.")
    "Splitting 'q7' by sex makes two of it. Join categories, or say so."
    >>> for_page("`regularization=0` has no prior, `regularization='auto'` one.")
    'Maximum likelihood alone has no prior, the usual prior one.'
    """

    def phrase(option: re.Match[str]) -> str:
        name = option["name"] or option["other"]
        if option["move"]:
            words = _move(option, in_shell=False)
        elif name is None or name.removesuffix("=") not in _IN_WORDS:
            return _flag(option)
        else:
            name = name.removesuffix("=")
            with_value = f"{name}={option['values']}"
            words = _IN_WORDS.get(with_value, _IN_WORDS[name]).format(_labels(option["values"]))
        begins_sentence = _START.search(text[: option.start()]) is not None
        return words[:1].upper() + words[1:] if begins_sentence else words

    text = _FILE.sub(lambda file: _TABLES_OF_PAGE[file[0]], text)
    if "`" not in text:
        return text
    return _OPTION.sub(phrase, _ASIDE.sub("", text))


def _labels(values: str | None) -> str:
    """The value of an option as labels: 'q1', or several with commas."""
    if not values:
        return ""
    labels = values
    if values[0] in f"{QUOTES}[":
        labels = literal_eval(values)
    if isinstance(labels, list):
        return ", ".join(map(repr, labels))
    return repr(labels)


def _move(call: re.Match[str], *, in_shell: bool) -> str:
    """A call of a method of an analysis as an option, or in words."""
    forms = _MOVES.get(call["move"])
    if forms is None:
        return call[0]
    arguments = literal_eval(f"[{call['arguments']}]")
    arguments = [",".join(map(str, each)) if isinstance(each, list) else each for each in arguments]
    if not in_shell:
        return forms[1].format(*arguments)
    if not arguments:
        return forms[0]
    flag, _, value = forms[0].partition(" ")
    return f"{flag} {_for_typing(value.format(*arguments))}"


def _flag(option: re.Match[str]) -> str:
    """An option or a call in backticks, as it is typed; text as it is that is neither."""
    name = option["name"]
    values = option["values"]
    if option["move"]:
        return _move(option, in_shell=True)
    if not name and not option["other"]:
        return option[0]
    plain = option[0].strip("`")
    other = _OTHERWISE.get(plain) or _OTHERWISE.get(plain.removesuffix("="))
    if other:
        return other
    if name in (*SETTINGS, *_BLANKS):
        value = ""
        if values:
            value = "=" + _for_typing(_text_of_value(values) if values[0] in QUOTES else values.lower())
        if name in SETTINGS:
            return f"--set {name}{value}"
        return f"--blanks {name.replace('_', '-')}{value}"
    if name in _SHEETS:
        sheet = literal_eval(values) if values else "SHEET"
        return f"{_SHEETS[name]} FILE#{_for_typing(str(sheet))}"
    name = _RENAMED.get(name, name)
    flag = "--" + name.replace("n_persons", "persons").removeprefix("n_").replace("_", "-")  # n_items is --items
    if not values or values == "True":
        return flag
    if values.startswith("["):
        return " ".join(f"{flag} {_for_typing(value)}" for value in literal_eval(values))
    choices = [_for_typing(_text_of_value(value)) for value in re.findall(_VALUE, values) if value != "or"]
    return f"{flag} {' or '.join(choices)}"


def _text_of_value(value: str) -> str:
    """The text of a value of Python that may be in quotes."""
    return str(literal_eval(value)) if value[0] in QUOTES else value


def _for_typing(value: str) -> str:
    """A value as it is typed into a shell; in quotes where a full stop after it would be taken for a part of it."""
    text = shlex.quote(value)
    return text if text[-1].isalnum() or text[-1] == "'" else f"'{text}'"


Severity = Literal["note", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """What is odd, and what to do.

    Attributes
    ----------
    code : str
        A stable short name ("extreme_items"), for programs.
    severity : "note", "warning" or "error"
        A note needs no action; a warning changes how results may be read; an error forbids an estimate.
    sentence, remedy : str
        For people.
    items, number : tuple, int
        Labels of all items it is about; how many answers, where these were left out or counted as wrong.
    option : str
        The option of `fit` that does what the remedy proposes, as "--split tides:region"; "" where there is none.

    >>> print(Finding("extreme_items", "warning", "Everybody answered q1 right.", "Leave it out."))
    Everybody answered q1 right. Leave it out.
    """

    code: str
    severity: Severity
    sentence: str
    remedy: str = ""
    items: tuple[Any, ...] = field(default=(), repr=False)
    number: int = field(default=0, repr=False)
    option: str = field(default="", repr=False)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.sentence} {self.remedy}".strip()


class SpectralIrtError(Exception):
    """Base of every error that the user can cause by input."""


class ReadError(SpectralIrtError, ValueError):
    """A file cannot be read as a table of responses."""


class ResponseValueError(SpectralIrtError, ValueError):
    """A response is neither right, wrong nor missing."""


class StrayFractionsError(ResponseValueError):
    """Responses are whole numbers but for a few fractions."""


class DuplicateResponseError(SpectralIrtError, ValueError):
    """The same person answered the same item more than once: what, and what to do, which depends on who asks."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem} {remedy}".strip())
        self.problem = problem


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


class AnswersStayError(DatabaseError):
    """Something needs the answers themselves, and they stay in a database, which only adds them up."""


class OutputError(SpectralIrtError, OSError):
    """Results cannot be written."""


class StaleBankError(OutputError):
    """The bank on disk is not the one that was read: saving would undo what somebody else has saved."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it reached its tolerance."""


class ReadWarning(UserWarning):
    """A file beside the answers, a key or a table of people, was read in a way that its reader should know."""


@contextmanager
def retold(kinds: tuple[type[Exception], ...], sentence: Callable[[BaseException], str]) -> Iterator[None]:
    """Exceptions of a library that reads files become a `ReadError`; so do panics, which are no Exceptions."""
    try:
        yield
    except SpectralIrtError:
        raise
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"
        if isinstance(error, MemoryError) or not (panic or isinstance(error, kinds)):
            raise
        raise ReadError(sentence(error)) from None


def unknown_option(name: str, value: object, allowed: Iterable[object]) -> OptionError:
    values = [repr(choice) for choice in allowed if choice is not None]
    return OptionError(f"`{name}` is {value!r}; it can be {', '.join(values)}.")


def check_option(name: str, value: object, allowed: Iterable[object]) -> None:
    if value not in list(allowed):
        raise unknown_option(name, value, allowed)
