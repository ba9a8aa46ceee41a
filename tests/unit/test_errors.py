"""Messages in two ways, for Python and for the shell; what is not an option is never taken for one."""

import ast
import copy
import pickle
import re

import pytest

from source import MODULES, named, nodes
from spectral_irt import errors
from spectral_irt.analysis import Analysis
from spectral_irt.cli.main import COMMANDS, program
from spectral_irt.errors import _MOVES, ConvergenceWarning, OutputError, for_page, for_shell
from spectral_irt.text import listed

NAMED = [vars(errors)[name] for name in dir(errors) if isinstance(vars(errors)[name], type)]
KINDS = [kind for kind in NAMED if issubclass(kind, errors.SpectralIrtError | ConvergenceWarning)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_is_its_text(kind):
    error = kind("nu='1'.csv twice; say `duplicates='first'`.")
    for again in (error, copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert str(again) == "nu='1'.csv twice; say `duplicates='first'`."
        assert type(again) is kind


def test_an_output_error_is_not_mistaken_for_one_of_the_operating_system():
    error = OutputError("the disk `data` is full.")
    assert error.errno is None
    assert str(error) == "the disk `data` is full."


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("nu='1'.csv; say `duplicates='first'`, no `nu_rule`", "nu='1'.csv; say --duplicates first, no --set nu_rule"),
        ("Say `missing='not seen'`, or `person=`.", "Say --missing 'not seen', or --person."),
        ("`n_persons`; `threshold=0.5`; `fit=True`", "--persons; --threshold 0.5; --skip none"),
        ("`duplicates='first' or 'last'`", "--duplicates first or last"),
        ("`key='a or b' or \"it's\"`", "--key 'a or b' or 'it'\"'\"'s'"),
        ("`ignore=['a', 'b c']`", "--ignore a --ignore 'b c'"),
        ("`missing='.'`.", "--missing '.'."),
        ("`responses.largest_component()` or `SpectralRasch`", "--largest-component or --estimator spectral"),
        ("nu is nu", "nu is nu"),
    ],
)
def test_options_are_said_as_flags(python, shell):
    assert for_shell(python) == shell


@pytest.mark.parametrize(
    "label", ["`nu`", "`nu=1`", "a `key` here", "it's `nu`", 'say "`nu`"', "`", "``", "`responses.largest_component()`"]
)
def test_labels_are_left_as_they_are(label):
    said = f"{listed([label, 'b'])} and {label!r}: people's answers; the persons' `person=`"
    assert for_shell(said) == said.replace("`person=`", "--person")
    assert for_shell(f"say `ignore={[label]!r}`.").startswith("say --ignore ")
    assert for_shell(f"say `missing={label!r}`.").startswith("say --missing ")


def messages(path):
    """Where a literal of an error or a finding stands, and its text."""
    said = (
        node
        for node in nodes(path)
        if isinstance(node, ast.Raise)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding")
    )
    for one in said:
        for node in ast.walk(one):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{named(path)}:{node.lineno}", node.value


@pytest.fixture(scope="module")
def flags():
    commands = [program, *(program.get_command(None, name) for name in COMMANDS)]
    return {flag for command in commands for parameter in command.params for flag in parameter.opts}


# Parameters that only Python has: no command can be told that they are wrong.
PYTHON_ONLY = {"components", "d", "facets", "fewest", "level", "min-people", "most", "prior-sd", "reference"}
PYTHON_ONLY |= {
    "benchmark",
    "families",
    "test",
    "ax",
    "figsize",
    "intervals",
    "sample",
    "split",
    "strata",
    "thresholds",
    "tol",
    "top",
}


def test_options_that_messages_name_exist(flags):
    told = {
        (where, flag.split(" ")[0])
        for path in MODULES
        for where, text in messages(path)
        for quoted in re.findall("`[a-z_]+(?:=[^`]*)?`", text)
        if (flag := for_shell(quoted)).startswith("--")
    }
    assert len(told) > 50
    found = {flag[2:] for _, flag in told} - {flag[2:] for flag in flags} - PYTHON_ONLY
    assert not found, " ".join(sorted(found))


def test_messages_name_options_as_options(flags):
    """No sentence holds `name=value` or `name is {value}` as plain text where `name` is an option of a command."""
    names = "|".join(sorted(flag[2:].replace("-", "_") for flag in flags if flag.startswith("--")))
    plain = re.compile(rf"(?<![\w.`(])(?:{names})=|^(?:{names}) is $|(?<!`)\b(?:max_iter|nu_rule)\b")
    bad = [f"{where}: {text}" for path in MODULES for where, text in messages(path) if plain.search(text)]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    ("text", "in_shell", "on_page"),
    [
        ("`study.join('a', 'b c')` does so.", "--join 'a+b c' does so.", "Joining 'a' and 'b c' does so."),
        ("See: `study.drop('q1')`.", "See: --drop q1.", "See: Dropping 'q1'."),
        ("Try `study.tailor(0.25)` now.", "Try --tailor 0.25 now.", "Try tailoring at 0.25 now."),
        ("Turn them: `reverse='q1,q2'`.", "Turn them: --reverse q1,q2.", "Turn them: 'q1,q2'."),
        ("Read items.csv.", "Read items.csv.", "Read the table of items."),
        ("a file 'my_items.csv' is none", "a file 'my_items.csv' is none", "a file 'my_items.csv' is none"),
        ("`study.nothing()` stays", "`study.nothing()` stays", "`study.nothing()` stays"),
        ("the item '`study.drop('", "the item '`study.drop('", "the item '`study.drop('"),
        (
            "`regularization=0` has no prior.",
            "--set regularization=0 has no prior.",
            "Maximum likelihood alone has no prior.",
        ),
        ("Use `regularization='auto'`.", "Use --set regularization=auto.", "Use the usual prior."),
        ("If so, say `facet='rater'`.", "If so, say --facet rater.", "If so, say that it is a facet."),
        ("With `nu=1`.", "With --set nu=1.", "With --set nu=1."),  # what has no words
    ],
)
def test_options_and_calls_as_those_know_them_who_read(text, in_shell, on_page):
    assert for_shell(text) == in_shell
    assert for_page(text) == on_page


def test_methods_that_remedies_name_are_there():
    for name in _MOVES:
        assert callable(getattr(Analysis, name))
