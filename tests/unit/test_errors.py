"""Messages in two ways, for Python and for the shell; what is not an option is never taken for one."""

import ast
import copy
import pickle
import re
import warnings
from pathlib import Path

import pytest
import typer

import spectral_irt
from spectral_irt import errors
from spectral_irt.cli.main import app
from spectral_irt.errors import ConvergenceWarning, OptionError, OutputError, ReadError, for_shell, join, option
from spectral_irt.responses import Finding, Responses

SOURCE = Path(spectral_irt.__file__).parent
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


def calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [call for call in found if call.func.id in names]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.AST]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


@pytest.fixture(scope="module")
def flags() -> set[str]:
    group = typer.main.get_command(app)
    commands = [*group.commands.values(), *group.commands["data"].commands.values()]
    return {flag for command in commands for parameter in command.params for flag in parameter.opts}


@pytest.mark.slow
def test_no_f_string_swallows_an_option(trees):
    """Inside an f-string only the words of Python would be left."""
    swallowed = [
        f"{name}:{call.lineno}"
        for name, tree in trees.items()
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr)
        for call in calls(text, "option", "Words")
    ]
    assert not swallowed


def test_options_that_messages_name_exist(trees, flags):
    named = {
        (f"{name}:{call.lineno}", option(call.args[0].value).shell)
        for name, tree in trees.items()
        for call in calls(tree, "option")
        if isinstance(call.args[0], ast.Constant)
    }
    assert len(named) > 50
    assert not {(where, flag) for where, flag in named if flag not in flags}


def test_messages_name_options_as_options(trees, flags):
    """No sentence holds `name=value` or `name is {value}` as plain text where `name` is an option of a command."""
    names = "|".join(sorted(flag[2:].replace("-", "_") for flag in flags if flag.startswith("--")))
    plain = re.compile(rf"(?<![\w.])(?:{names})=|^(?:{names}) is $|\b(?:max_iter|nu_rule|above_mean)\b")
    bad = []
    for name, tree in trees.items():
        for raised in [*calls(tree, "Finding"), *(node for node in ast.walk(tree) if isinstance(node, ast.Raise))]:
            words = calls(raised, "Words", "option", "check_option")
            inside = {id(node) for call in words for node in ast.walk(call)}
            for node in ast.walk(raised):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                    bad += [f"{name}:{node.lineno}: {node.value}"] if plain.search(node.value) else []
    assert not bad, "\n".join(bad)
