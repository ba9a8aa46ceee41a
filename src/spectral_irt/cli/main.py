"""The command `spectral-irt`: its commands, each loaded when it is asked for, and what is done with the line."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spectral_irt.cli.help import (
    EVERYTHING,
    TOPICS,
    Command,
    folded,
    heading,
    place,
    section,
    topic_text,
    width,
    with_options,
)
from spectral_irt.cli.options import Call, Machine, is_database, own, without_password
from spectral_irt.cli.terminal import BAD_INPUT, OK, Progress, complain, leave_clusters, quiet_warnings, report
from spectral_irt.errors import OptionError
from spectral_irt.files import written

PROGRAM = "spectral-irt"
COMPLETE = "_SPECTRAL_IRT_COMPLETE"  # set by a shell that asks how a word may go on
DEFAULT_TOP = "10"

# Where a command is, and what it does: known without loading it.
MAIN = {
    "demo": ("simulate:demo", "analyze bundled data: a quiz with a wrong key and a biased item"),
    "fit": ("fit:fit", "difficulties, abilities and model fit from a file of answers"),
    "check": ("fit:check", "what was recognized in a file, and what is odd in it"),
    "app": ("app:app", "all of this on a local page, without a terminal"),
    "score": ("bank:score", "abilities of new people, with a bank"),
    "update": ("bank:update", "a bank after new answers"),
    "link": ("bank:link", "two banks on one scale; drifted items; equated scores"),
    "export": ("export:export", "files for Winsteps, catsim, jsCAT, mirtCAT, adaptivetesting"),
    "leaderboard": ("models:leaderboard", "rank language models from logs of evaluations"),
    "shortlist": ("models:shortlist", "a few prompts that predict the score on all"),
}
FURTHER = {
    "compare": ("compare:compare", "several estimators on the same data"),
    "pack": ("data:pack", "answers in a file that opens at once"),
    "simulate": ("simulate:simulate", "draw answers under a Rasch model"),
    "help": ("main:help_on", f"by topic: {', '.join(TOPICS)}"),
}
COMMANDS = {**MAIN, **FURTHER}

# The same class in typer's own copy of click and in click itself.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """The commands by name; the module of one is imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command_named(cmd_name) if cmd_name in COMMANDS else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(overview())


@cache
def command_named(name: str) -> Any:
    """A command as typer makes it."""
    module, _, function = COMMANDS[name][0].partition(":")
    single = _typer()
    single.command(name, cls=Command)(getattr(import_module(f"spectral_irt.cli.{module}"), function))
    return typer.main.get_command(single)


def _typer(**more: Any) -> typer.Typer:
    names = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(
        pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=names, add_completion=bool(more), **more
    )


app = _typer(name=PROGRAM, cls=Commands)


@app.callback(invoke_without_command=True)
@with_options(Machine)
def about(
    context: typer.Context,
    machine: Machine,
    version: Annotated[bool, own("--version", help="Show the version and exit.")] = False,
    debug: Annotated[bool, own("--debug", help="Show tracebacks; allowed anywhere on the line.")] = False,
) -> None:
    """The program itself."""
    if version:
        from spectral_irt import __version__

        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit
    machine.check()
    context.obj = replace(context.obj, machine=machine)
    if context.invoked_subcommand is None:
        typer.echo(overview(), nl=False)


def overview() -> str:
    """What `spectral-irt --help` prints."""
    about = (
        "Rasch analysis from a file of answers: item difficulties with standard errors, person abilities, model fit."
    )
    lines = [f"Usage: {PROGRAM} COMMAND [OPTIONS]", "", *folded(about, width())]
    for title, commands in (("Commands", MAIN), ("Further commands", FURTHER)):
        lines += section(title, [(name, text) for name, (_, text) in commands.items()], width())
    examples = ["demo", "fit answers.csv -o results", "fit answers.csv --report report.html"]
    lines += ["", heading("Examples"), *(f"  {PROGRAM} {example}" for example in examples), ""]
    more = f"{PROGRAM} COMMAND --help: its options; {EVERYTHING}: all of them. --version, --debug, and how much of the "
    more += "machine to use (spectral-irt help size) go with every command."
    return "\n".join([*lines, *folded(more, width())]) + "\n"


@with_options()
def help_on(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", show_default=False, help=f"{', '.join(TOPICS)}; or a command.")
    ] = "",
) -> None:
    """Options of fit by topic.

    \b
    Examples
      spectral-irt help scoring
      spectral-irt help fit
    """
    if topic in COMMANDS:
        _do([topic, "--help"])
        return
    if topic in TOPICS:
        typer.echo(topic_text(topic, fit_options()), nl=False)
        return
    if topic:
        near = difflib.get_close_matches(topic, [*TOPICS, *COMMANDS], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise OptionError(f"there is no topic {topic!r}; there are {', '.join(TOPICS)}.{hint}")
    topics = section("Topics: spectral-irt help TOPIC", [(name, text) for name, (text, _) in TOPICS.items()], width())
    typer.echo("\n".join(topics[1:]))


def fit_options() -> list[Any]:
    """The options of `fit`, and those of the program."""
    every = [*command_named("fit").params, *built().params]
    return [one for one in every if one.param_type_name == "option" and one.rich_help_panel is not None]


# ------------------------------------------------------------------------------------------- what is done


def main(args: Sequence[str]) -> int:
    """Do what the arguments say; returns the exit code. No exception leaves but of a terminal that cannot be used."""
    written.clear()
    Progress.shown = True
    debug = "--debug" in args
    args = [arg for arg in args if arg != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a label may hold what the terminal cannot show
    if not os.environ.get("COLUMNS", "1").strip("0 "):
        del os.environ["COLUMNS"]  # 0 means that the width is not known
    try:
        with quiet_warnings(debug=debug):
            return _do(args)
    except BrokenPipeError:
        raise
    except UsageError as error:
        return _usage(error)
    except SystemExit as stop:  # a script for completion was printed or installed
        return int(stop.code or OK)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, debug=debug)


@cache
def built() -> Any:
    """The program as typer makes it."""
    return typer.main.get_command(app)


def _do(args: list[str]) -> int:
    program = built()
    if COMPLETE in os.environ:
        program(args=args, prog_name=PROGRAM)
    args, exports = in_new_words(with_default_rank(args))
    try:
        # Not `program(args)`: that takes interrupts and broken pipes into its own hands.
        call = Call(argv=args, exports=exports)
        with program.make_context(PROGRAM, program_options_first(args), obj=call) as context:
            code = program.invoke(context)
    except typer.Exit as end:
        code = end.exit_code
    finally:
        leave_clusters()
    sys.stdout.flush()
    return int(code or OK)


def with_default_rank(args: Sequence[str]) -> list[str]:
    """`--rank` alone means `--rank 10`.

    >>> with_default_rank(["fit", "--rank", "a.csv", "--rank", "5:lower"])
    ['fit', '--rank', '10', 'a.csv', '--rank', '5:lower']
    """
    out = []
    for arg, after in zip(args, [*args[1:], ""], strict=False):
        out.append(arg)
        if arg == "--rank" and not re.fullmatch(r"-?\d+(:\w*)?", after):
            out.append(DEFAULT_TOP)
    return out


def program_options_first(args: Sequence[str]) -> list[str]:
    """Options of the program may stand anywhere on the line.

    >>> program_options_first(["fit", "a.csv", "--memory", "4GB", "-o", "out", "--threads=2"])
    ['--memory', '4GB', '--threads=2', 'fit', 'a.csv', '-o', 'out']
    """
    first, rest, words = [], [], [*args]
    while words:
        word = words.pop(0)
        found = re.fullmatch(r"--(memory|spill|threads|dask)(=.*)?", word)
        if found is None:
            rest.append(word)
            continue
        first.append(word)
        if found[2] is None and words:
            first.append(words.pop(0))
    return [*first, *rest]


def _usage(error: Exception) -> int:
    """A mistake in the options, in one line."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else PROGRAM
    message = _unknown(error) or " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    message = re.sub(r" \(env var: '\w+'\)", "", message).replace(": Value error, ", ": ")
    message = re.sub(
        r"Invalid value for '(--?[\w-]+)'.*?: ('.*') is not one of (.*)", r"\1 is \2; it can be \3", message
    )
    see = " See" if message.endswith("?") else "; see"
    complain("error", f"{message[0].lower()}{message[1:]}{see} {path} --help.")
    return BAD_INPUT


def _unknown(error: Exception) -> str | None:
    """The option or command that does not exist, and the one that was probably meant."""
    if command := re.match(r"No such command '(.*?)'", str(error)):
        kind, name, known = "command", command[1], [*COMMANDS]
    elif type(error).__name__ == "NoSuchOption":
        kind, name, context = "option", str(error.option_name), error.ctx  # type: ignore[attr-defined]
        known = [flag for one in context.command.get_params(context) for flag in (*one.opts, *one.secondary_opts)]
    else:
        return None
    near = difflib.get_close_matches(name, known, n=1)
    return f"there is no {kind} {name}{f'; did you mean {near[0]}?' if near else ''}"


# ------------------------------------------------------------------------------ what options were called before

# What an option was called in the release before, and what it is now: {} is its value, "+" goes onto the value of an
# option that was given beside it. Everything here works in this release, and goes with the next.
READS = "fit check pack score update compare"
OLD: dict[str, dict[str, str]] = {
    READS: {
        "--user": "--person {}",
        "--format": "--layout {}",
        "--orient": "--layout {}",
        "--order-by": "--duplicates +:{}",
        "--omitted": "--blanks omitted={}",
        "--not-reached": "--blanks not-reached={}",
        "--not-presented": "--blanks not-presented={}",
        "--key-sheet": "--key +#{}",
        "--above-mean": "--threshold own-mean:{}",
        "--database": "{}",
    },
    "fit check": {
        "--weight": "--survey-weight {}",
        "--weighting": "--chain-weights {}",
        "--regularization": "--set regularization={}",
        "--nu": "--set nu={}",
        "--nu-rule": "--set nu_rule={}",
        "--refine": "--set refine=true",
        "--no-refine": "--set refine=false",
        "--assume-equal-means": "--set assume_equal_means=true",
        "--se": "--set se={}",
        "--max-iter": "--set max_iter={}",
        "--persons": "--skip none",
        "--no-persons": "--skip persons",
        "--fit": "--skip none",
        "--no-fit": "--skip fit",
        "--draws": "--ability +:{}",
        "--sample": "--bootstrap +:{}",
        "--cut-score": "--cut raw:{}",
        "--rank-by": "--rank +:{}",
        "--group-sheet": "--group-file +#{}",
        "--in-database": "{}",
        "--table": "+#{}",
    },
    "score": {"--draws": "--ability +:{}"},
    "link": {"--table": "--common-items {}"},
    "leaderboard shortlist": {"--by": "--subject {}"},
    "shortlist": {"--items": "--size {}"},
}
EXPORTS = ("--ifile", "--sfile", "--pfile", "--catsim", "--adaptivetesting", "--jscat", "--mirtcat")
OLD_VALUES = {("--orient", "items"): "items-in-rows", ("--orient", "persons"): "auto"}


def in_new_words(args: Sequence[str]) -> tuple[list[str], dict[str, Path]]:
    """The arguments with options as they are called now, and the files that `export` would write; each old name is
    answered by a note that says the new one.

    >>> in_new_words(["fit", "a.csv", "--key", "k.xlsx", "--person", "id", "--key-sheet", "A"])[0]
    ['fit', 'a.csv', '--key', 'k.xlsx#A', '--person', 'id']
    """
    command = next((arg for arg in args if arg in COMMANDS), "")
    table = {old: new for commands, some in OLD.items() if command in commands.split() for old, new in some.items()}
    out: list[str] = []
    onto: list[tuple[str, str]] = []
    exports: dict[str, Path] = {}
    rest = [*args]
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        exported = command == "fit" and flag in EXPORTS
        if not exported and flag not in table:
            out.append(f"{flag}{equals}{value}")
            continue
        new = f"spectral-irt export --to {flag[2:]}" if exported else table[flag]
        if ("{}" in new or exported) and not equals and rest:
            value = rest.pop(0)
        if "-q" not in args and "--quiet" not in args:
            complain("note", f"{flag} is now {new.replace('{}', _shown(value)).replace('+', '...')}.", 36)
        if exported:
            exports[flag[2:]] = place(value)
            continue
        name, _, template = new.rpartition(" ")
        text = template.replace("{}", OLD_VALUES.get((flag, value), value))
        if template.startswith("+"):
            onto.append((name, text[1:]))
        else:
            out += [*([name] if name else []), text]
    for name, text in onto:
        out = _added(out, name, text)
    return (_dry_run(out) if command == "check" else out), exports


def _dry_run(args: list[str]) -> list[str]:
    """`check` with options of `fit` that are not about reading is `fit --dry-run`."""
    known = {name: {flag for one in command_named(name).params for flag in one.opts} for name in ("fit", "check")}
    foreign = [arg for arg in args if arg.partition("=")[0] in known["fit"] - known["check"]]
    if not foreign:
        return args
    complain("note", f"check with {foreign[0].partition('=')[0]} is now fit --dry-run.", 36)
    place = args.index("check")
    return [*args[:place], "fit", *args[place + 1 :], "--dry-run"]


def _shown(value: str) -> str:
    return without_password(value) if "://" in value else value


def _added(args: list[str], name: str, text: str) -> list[str]:
    """With this text after the value of an option, or after the address of a database."""
    for k, arg in enumerate(args):
        if not name and is_database(arg):
            return [*args[:k], arg + text, *args[k + 1 :]]
        if arg == name and k + 1 < len(args):
            return [*args[: k + 1], args[k + 1] + text, *args[k + 2 :]]
        if arg.startswith(f"{name}="):
            return [*args[:k], arg + text, *args[k + 1 :]]
    return [*args, name, text] if name else args
