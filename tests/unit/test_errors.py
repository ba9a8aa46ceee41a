"""Messages in two ways, for Python and for the shell; what is not an option is never taken for one."""

import ast
import copy
import pickle
import re
import warnings
from collections.abc import Iterable

import pytest

from source import MODULES, named, nodes
from spectral_irt import errors
from spectral_irt.cli.main import built
from spectral_irt.errors import ConvergenceWarning, OptionError, OutputError, ReadError, for_shell, join, option
from spectral_irt.responses import Finding, Responses

NAMED = [vars(errors)[name] for name in dir(errors) if isinstance(vars(errors)[name], type)]
KINDS = [kind for kind in NAMED if issubclass(kind, errors.SpectralIrtError | ConvergenceWarning)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_says_its_options_in_two_ways(kind):
    error = kind("nu='1'.csv twice; say ", option("duplicates", "first"), " or leave out ", option("nu_rule"), ".")
    python = "nu='1'.csv twice; say duplicates='first' or leave out nu_rule."
    shell = "nu='1'.csv twice; say --duplicates first or leave out --nu-rule."
    for again in (error, copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (str(again), again.for_shell()) == (python, shell)
        assert type(again) is kind
    assert kind("plain").for_shell() == str(kind("plain")) == "plain"


def test_an_output_error_is_not_mistaken_for_one_of_the_operating_system():
    error = OutputError("the disk ", option("data"), " is full.")
    assert error.errno is None
    assert str(error) == "the disk data is full."


def test_adding_keeps_both_ways_and_a_value_is_quoted_for_each():
    text = "Say " + option("missing", "not seen") + ", or " + option("user", ...) + "."
    assert text == "Say missing='not seen', or user=."
    assert for_shell(text) == "Say --missing 'not seen', or --user."
    assert for_shell(join([option("key"), option("n_users")], " or ")) == "--key or --users"
    assert for_shell("nu is nu") == "nu is nu"
    finding = Finding("odd", "note", "Odd.", text)
    assert for_shell(finding.to_dict()["remedy"]) == for_shell(text)
    assert str(finding) == f"Odd. {text}"


def test_a_warning_keeps_both_ways():
    with pytest.warns(ConvergenceWarning, match="raise max_iter$") as heard:
        warnings.warn("raise " + option("max_iter"), ConvergenceWarning, stacklevel=1)
    assert heard[0].message.for_shell() == "raise --max-iter"


def test_python_hears_python():
    with pytest.raises(OptionError, match=r"^orient is 'rows'; it can be 'users', 'items'\.$") as raised:
        Responses.from_wide([[0, 1], [1, 0]], orient="rows")
    assert raised.value.for_shell().startswith("--orient is 'rows'")
    assert isinstance(ReadError("x"), ValueError)


# ------------------------------------------------------------------------- all messages of the source


def calls(inside: Iterable[ast.AST], *names: str) -> list[ast.Call]:
    found = [node for node in inside if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [call for call in found if call.func.id in names]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def flags() -> set[str]:
    group = built()
    commands = [*group.commands.values(), *group.commands["data"].commands.values()]
    return {flag for command in commands for parameter in command.params for flag in parameter.opts}


@pytest.mark.slow
def test_no_f_string_swallows_an_option():
    """Inside an f-string only the words of Python would be left."""
    swallowed = [
        f"{named(path)}:{call.lineno}"
        for path in MODULES
        for text in nodes(path)
        if isinstance(text, ast.JoinedStr)
        for call in calls(ast.walk(text), "option", "Words")
    ]
    assert not swallowed


def test_options_that_messages_name_exist(flags):
    told = {
        (f"{named(path)}:{call.lineno}", option(call.args[0].value).shell)
        for path in MODULES
        for call in calls(nodes(path), "option")
        if isinstance(call.args[0], ast.Constant)
    }
    assert len(told) > 50
    assert not {(where, flag) for where, flag in told if flag not in flags}


def test_messages_name_options_as_options(flags):
    """No sentence holds `name=value` or `name is {value}` as plain text where `name` is an option of a command."""
    names = "|".join(sorted(flag[2:].replace("-", "_") for flag in flags if flag.startswith("--")))
    plain = re.compile(rf"(?<![\w.])(?:{names})=|^(?:{names}) is $|\b(?:max_iter|nu_rule|above_mean)\b")
    bad = []
    for path in MODULES:
        raises = [node for node in nodes(path) if isinstance(node, ast.Raise)]
        for raised in [*calls(nodes(path), "Finding"), *raises]:
            words = calls(ast.walk(raised), "Words", "option", "check_option")
            inside = {id(node) for call in words for node in ast.walk(call)}
            for node in ast.walk(raised):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                    bad += [f"{named(path)}:{node.lineno}: {node.value}"] if plain.search(node.value) else []
    assert not bad, "\n".join(bad)
