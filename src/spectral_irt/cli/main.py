"""The command `spectral-irt`: its commands, each loaded when it is asked for, and what is done with the line."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spectral_irt.cli.help import (
    EVERYTHING,
    TOPICS,
    Command,
    UsageError,
    fold,
    heading,
    refuse_repeated,
    section,
    topic_text,
    width,
)
from spectral_irt.cli.options import Call, flat, own
from spectral_irt.cli.terminal import BAD_INPUT, OK, complain, reached, report, show_warning
from spectral_irt.errors import OptionError
from spectral_irt.files import written
from spectral_irt.installation import install_extra
from spectral_irt.text import and_list, did_you_mean, one_or_many

PROGRAM = "spectral-irt"
COMPLETE = "_SPECTRAL_IRT_COMPLETE"  # set by a shell that asks how a word may go on

# Where a command is, and what it does: known without loading it.
MAIN = {
    "demo": ("simulate:demo", "analyze bundled data: a quiz with a wrong key and a biased item"),
    "fit": ("fit:fit", "difficulties, abilities and model fit from a file of responses"),
    "check": ("fit:check", "what was recognized in a file, and what looks odd"),
    "app": ("main:local_page", "all of this on a local page, without a terminal"),
    "score": ("bank:score", "abilities of new persons, with a bank"),
    "update": ("bank:update", "add new responses to a bank"),
    "link": ("bank:link", "put two banks on one scale; drifted items; equated scores"),
    "export": ("export:export", "files for Winsteps, catsim, jsCAT, mirtCAT, adaptivetesting"),
    "leaderboard": ("models:leaderboard", "rank language models from logs of evaluations"),
    "race": ("models:race", "which models can still be the best, and whom to run next"),
    "pairs": ("models:pairs", "rank contestants from votes about two of them at a time"),
    "shortlist": ("models:shortlist", "a few prompts that predict the score on all of them"),
}
FURTHER = {
    "compare": ("compare:compare", "several estimators on the same data"),
    "compare-fits": ("compare_fits:compare_fits", "two fits side by side: before and after a change"),
    "pack": ("data:pack", "save responses in a file that opens at once"),
    "simulate": ("simulate:simulate", "simulate responses under a Rasch model"),
    "help": ("main:help_on", f"by topic: {', '.join(TOPICS)}"),
}
COMMANDS = {**MAIN, **FURTHER}

# What other programs call it, or what somebody may look for here.
INSTEAD = """
--ifile --sfile --pfile --catsim --jscat --mirtcat: spectral-irt export writes it, from a bank or from what -o DIR wrote
report: spectral-irt fit FILE --report report.html writes it
--dif: --group COLUMN compares groups of people, item by item
--html: --report FILE.html writes one page
--2pl --3pl --discrimination --guessing: slopes and guessing are not estimated; item fit shows where they are needed
--wle --ml --mle --eap --pv --theta: --ability wle, ml, eap or pv says how abilities are estimated
--csv --xlsx --excel: -o DIR writes CSV files, and -o FILE.xlsx a workbook
--spss --stata --sav --dta: -o persons.sav or persons.dta writes the persons
plot plots figures wright: spectral-irt fit FILE --plots DIR draws the figures
dif items persons abilities: spectral-irt fit FILE -o DIR writes it
calibrate estimate rasch pcm rsm: spectral-irt fit FILE does it
equate: spectral-irt link A B --equate FILE does it
"""
SIMILAR = 0.75  # of two names: --keys and --key, --treshold and --threshold

# Errors and help are ours.
PLAIN: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": None}
HELP = ["-h", "--help"]
PLAIN |= {"context_settings": {"help_option_names": HELP}}


class Commands(TyperGroup):
    """The commands by name; the module of one is imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, _, function = COMMANDS[cmd_name][0].partition(":")
            single = typer.Typer(add_completion=False, **PLAIN)
            command = flat(getattr(import_module(f"spectral_irt.cli.{module}"), function))
            single.command(cmd_name, cls=Command)(command)
            self.commands[cmd_name] = typer.main.get_command(single)
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(overview())


def about(
    context: typer.Context,
    said: Call,
    version: bool = own("", "Show the version and exit.", default=False),
    debug: bool = own("", "Show tracebacks; allowed anywhere on the line.", default=False),
) -> None:
    """The program itself."""
    if version:
        from spectral_irt import __version__

        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit
    if said.dask is not None and said.threads is not None:
        raise OptionError("--threads is about this process; with --dask the workers have threads of their own.")
    context.obj = replace(said, argv=context.obj)
    if context.invoked_subcommand is None:
        typer.echo(overview(), nl=False)


app = typer.Typer(name=PROGRAM, cls=Commands, **PLAIN)
app.callback(invoke_without_command=True)(flat(about))
program: Any = typer.main.get_command(app)


def overview() -> str:
    """What `spectral-irt --help` prints."""
    about = "Rasch analysis of a file of responses: item difficulties with standard errors, person abilities and fit."
    lines = [f"Usage: {PROGRAM} COMMAND [OPTIONS]", "", *fold(about, width())]
    for title, commands in (("Commands", MAIN), ("Further commands", FURTHER)):
        lines += section(title, [(name, text) for name, (_, text) in commands.items()], width())
    examples = ["demo", "fit answers.csv -o results", "fit answers.csv --report report.html"]
    lines += ["", heading("Examples"), *(f"  {PROGRAM} {example}" for example in examples), ""]
    last = (
        f"{PROGRAM} COMMAND --help: its options; {EVERYTHING}: all of them. --version, --debug, and how much of the "
        "machine to use (spectral-irt help size) go with every command."
    )
    return "\n".join([*lines, *fold(last, width())]) + "\n"


def help_on(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help=f"{', '.join(TOPICS)}; or a command.")] = "",
) -> None:
    """Options of fit by topic.

    \b
    Examples
      spectral-irt help scoring
      spectral-irt help fit
    """
    if topic in COMMANDS:
        _do([topic, "--help"])
    elif topic in TOPICS:
        typer.echo(topic_text(topic, fit_options()), nl=False)
    elif topic:
        hint = did_you_mean(topic, [*TOPICS, *COMMANDS])
        raise OptionError(f"there is no topic {topic!r}; there are {', '.join(TOPICS)}.{hint}")
    else:
        entries = [(name, text) for name, (text, _) in TOPICS.items()]
        typer.echo("\n".join(section("Topics: spectral-irt help TOPIC", entries, width())[1:]))


def local_page(
    port: int = own("NUMBER", "Port (default: a free one).", min=0, max=65535, default=0),
    browser: bool = own("", "Open the page in a browser (default).", "--browser/--no-browser", default=True),
) -> None:
    """A page on this machine that does the work of check, fit and score, without a terminal.

    Drop a CSV file or a workbook, check what was recognized in it, run, read the report, download tables, workbook and
    bank, and score further people with the bank.

    The page is for this machine alone and asks for the address that is shown here, with its token. Nothing is sent
    anywhere, and when the command ends nothing is kept.

    \b
    Examples
      spectral-irt app
      spectral-irt app --port 8050 --no-browser
    """
    try:
        import python_multipart  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise OptionError(f"the page needs {error.name}: {install_extra('app')}") from None
    from spectral_irt.app.server import serve

    serve(port=port, browser=browser, say=lambda text: print(text, flush=True))


def fit_options() -> list[Any]:
    """The options of `fit`, and those of the program."""
    parameters = [*program.get_command(None, "fit").params, *program.params]
    options = [parameter for parameter in parameters if parameter.param_type_name == "option"]
    return [option for option in options if option.rich_help_panel is not None]


def main(args: Sequence[str]) -> int:
    """Do what the arguments say; returns the exit code. No exception leaves but of a terminal that cannot be used."""
    written.clear()
    debug = False
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a label may hold what the terminal cannot show
    if not os.environ.get("COLUMNS", "1").strip("0 "):
        del os.environ["COLUMNS"]  # 0 means that the width is not known
    try:
        refuse_options_as_values(args)
        values = options_of_values(args)
        debug = any(word == "--debug" and k not in values for k, word in enumerate(args))
        args = [word for k, word in enumerate(args) if word != "--debug" or k in values]
        with warnings.catch_warnings():
            warnings.showwarning = partial(show_warning, debug)
            return _do(args)
    except BrokenPipeError:
        raise
    except UsageError as error:
        return _usage(error)
    except SystemExit as stop:  # a script for completion was printed or installed
        return int(stop.code or OK)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, debug=debug)


def _do(args: Sequence[str]) -> int:
    if COMPLETE in os.environ:
        program(args=list(args), prog_name=PROGRAM)
    try:
        # Not `program(args)`: that takes interrupts and broken pipes into its own hands.
        with program.make_context(PROGRAM, arrange_options(args), obj=args) as context:
            code = program.invoke(context)
    except typer.Exit as end:
        code = end.exit_code
    finally:
        while reached:  # close connections, and end the processes that were started
            reached.popitem()[1].close()
    sys.stdout.flush()
    return int(code or OK)


def arrange_options(args: Sequence[str]) -> list[str]:
    """Options of the program first, wherever they stand on the line; `--rank` alone is `--rank 10`.

    >>> arrange_options(["fit", "a.csv", "--memory", "4GB", "-o", "out", "--rank", "--threads=2"])
    ['--memory', '4GB', '--threads=2', 'fit', 'a.csv', '-o', 'out', '--rank', '10']
    """
    values = options_of_values(args)
    of_program: list[str] = []
    of_command: list[str] = []
    for k, word in enumerate(args):
        option = values.get(k, word)  # a value goes with its option
        if re.fullmatch(r"--(?:memory|spill|threads|dask)(=.*)?", option):
            of_program.append(word)
        else:
            of_command.append(word)
        has_number = k + 1 < len(args) and re.fullmatch(r"-?\d+(:\w*)?", args[k + 1])
        if word == "--rank" and k not in values and not has_number:
            of_command.append("10")
    return [*of_program, *of_command]


def options_of_values(args: Sequence[str]) -> dict[int, str]:
    """Which words of the line are no options, whatever they look like: by position, the option whose value a word is,
    or "" for the name of a file after `--`.

    >>> options_of_values(["fit", "a.csv", "--missing", "--debug", "--memory", "4GB", "--", "--debug"])
    {3: '--missing', 5: '--memory', 7: ''}
    """
    options = _options_on_line(args)
    # `--rank` may stand alone: what follows it is its value only if it is a number, and looks like no option.
    with_value = {flag for one in options if not getattr(one, "is_flag", True) for flag in one.opts} - {"--rank"}
    values: dict[int, str] = {}
    for k, word in enumerate(args):
        if k in values:
            continue
        if word == "--":
            return values | dict.fromkeys(range(k + 1, len(args)), "")
        if word in with_value and k + 1 < len(args):
            values[k + 1] = word
    return values


def _options_on_line(args: Sequence[str]) -> list[Any]:
    """The options of the program, and of the command that the line names."""
    options = list(program.params)
    command = next((word for word in args if word in COMMANDS), None)
    if command is not None:
        options += program.get_command(None, command).params
    return options


def refuse_options_as_values(args: Sequence[str]) -> None:
    """An error where an option stands in the place of the value of another: `-o --json` would make a folder --json."""
    options = _options_on_line(args)
    name_of = {flag: max(option.opts, key=len) for option in options for flag in (*option.opts, *option.secondary_opts)}
    for k, option in options_of_values(args).items():
        if option and (args[k] in name_of or args[k] in HELP):
            name = name_of[option]
            raise UsageError(f"{name} has no value: {args[k]} is an option. If it is the value, write {name}={args[k]}")


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
    """The option or command that does not exist; and what to do instead, who has it, or which was probably meant."""
    elsewhere = ""
    command = re.match(r"No such command '(.*?)'", str(error))
    if command is not None:
        kind = "command"
        name = command[1]
        names_there_are = [*COMMANDS]
    elif type(error).__name__ == "NoSuchOption":
        kind = "option"
        name = str(error.option_name)  # type: ignore[attr-defined]
        context = error.ctx  # type: ignore[attr-defined]
        names_there_are = _flags(context.command)
        elsewhere = _commands_with(name)
        if elsewhere and context.info_name == "check" and name in _flags(program.get_command(None, "fit")):
            elsewhere += ", and with --dry-run does what check does"
    else:
        return None
    for row in INSTEAD.strip().splitlines():
        names, _, instead = row.partition(": ")
        if name in names.split():
            return f"there is no {kind} {name}; {instead}"
    if elsewhere:
        return f"there is no {kind} {name} here; {elsewhere}"
    near = similar(name, names_there_are)
    if near is None:
        return f"there is no {kind} {name}"
    return f"there is no {kind} {name}; did you mean {near}?"


def _flags(command: Any) -> list[str]:
    return [flag for one in command.params for flag in (*one.opts, *one.secondary_opts) if flag.startswith("-")]


def _commands_with(flag: str) -> str:
    """Which commands have this option, in words; "" where none has it."""
    names = [name for name in COMMANDS if flag in _flags(program.get_command(None, name))]
    if not names:
        return ""
    return f"{and_list([f'spectral-irt {name}' for name in names])} {one_or_many(len(names), 'has', 'have')} it"


def similar(name: str, known: Sequence[str]) -> str | None:
    """The name that was probably meant: a misspelling, or a longer or shorter form; dashes do not count.

    >>> similar("--keys", ["--key", "--group"]), similar("--rank-by", ["--rank"]), similar("--cut", ["--quiet"])
    ('--key', '--rank', None)
    """
    by_word = {other.lstrip("-"): other for other in known}
    wanted = name.lstrip("-")
    near = difflib.get_close_matches(wanted, by_word, n=1, cutoff=SIMILAR)
    long_enough = [word for word in by_word if min(len(word), len(wanted)) > 2]
    longer = [word for word in long_enough if f"{word}-".startswith(f"{wanted}-")]
    shorter = [word for word in long_enough if wanted.startswith(f"{word}-")]
    return next((by_word[word] for word in (*near, *longer, *shorter)), None)
