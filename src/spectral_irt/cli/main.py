"""The command `spectral-irt`."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from spectral_irt.cli.app import app as open_page
from spectral_irt.cli.check import check
from spectral_irt.cli.clusters import leave_clusters
from spectral_irt.cli.compare import compare
from spectral_irt.cli.demo import demo
from spectral_irt.cli.fit import fit
from spectral_irt.cli.help import Command, Group
from spectral_irt.cli.leaderboard import leaderboard
from spectral_irt.cli.link import link
from spectral_irt.cli.packing import pack
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.reporting import BAD_INPUT, OK, complain, quiet_warnings, report
from spectral_irt.cli.score import score
from spectral_irt.cli.shortlist import shortlist
from spectral_irt.cli.simulate import simulate
from spectral_irt.cli.simulate_cat import simulate_cat
from spectral_irt.cli.update import update
from spectral_irt.files import written

PROGRAM = "spectral-irt"
COMPLETE = "_SPECTRAL_IRT_COMPLETE"  # set by a shell that asks how a word may go on
DEFAULT_TOP = "10"

app = typer.Typer(
    name=PROGRAM,
    cls=Group,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    fit,
    check,
    open_page,
    score,
    link,
    update,
    compare,
    pack,
    simulate,
    demo,
    leaderboard,
    shortlist,
    simulate_cat,
):
    app.command(cls=Command)(command)

# The same class in typer's own copy of click and in click itself.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    """Calibrate tests: how hard items are, how able people are, and whether the model holds, from who answered what.

    \b
    Examples
      spectral-irt demo                          the main job on bundled data
      spectral-irt fit answers.csv -o results    your own answers
      spectral-irt check answers.csv             what is odd in them
      spectral-irt score new.csv --bank mybank   people who came later
      spectral-irt app                           all that on a page
    """
    if version:
        from spectral_irt import __version__

        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(args: Sequence[str]) -> int:
    """Do what the arguments say; returns the exit code. No exception leaves but of a terminal that cannot be used."""
    written.clear()
    Progress.shown = True
    debug = "--debug" in args
    args = with_default_rank([arg for arg in args if arg != "--debug"])
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a label may hold what the terminal cannot show
    quiet_warnings(debug=debug)
    if not os.environ.get("COLUMNS", "1").strip("0 "):
        del os.environ["COLUMNS"]  # 0 means that the width is not known
    try:
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
    """The commands as typer makes them: some 50 ms, once for a process."""
    return typer.main.get_command(app)


def _do(args: list[str]) -> int:
    command = built()
    if COMPLETE in os.environ:
        command(args=args, prog_name=PROGRAM)
    try:
        # Not `command(args)`: that takes interrupts and broken pipes into its own hands.
        with command.make_context(PROGRAM, args, obj=tuple(args)) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        code = end.exit_code
    finally:
        leave_clusters()
    sys.stdout.flush()
    return int(code or OK)


def with_default_rank(args: Sequence[str]) -> list[str]:
    """`--rank` alone means `--rank 10`.

    >>> with_default_rank(["fit", "--rank", "a.csv", "--rank", "5"])
    ['fit', '--rank', '10', 'a.csv', '--rank', '5']
    """
    out = []
    for arg, after in zip(args, [*args[1:], ""], strict=False):
        out.append(arg)
        if arg == "--rank" and not after.removeprefix("-").isdecimal():
            out.append(DEFAULT_TOP)
    return out


def _usage(error: Exception) -> int:
    """A mistake in the options, in one line."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else PROGRAM
    message = _unknown_option(error) or " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    see = " See" if message.endswith("?") else "; see"
    complain("error", f"{message[0].lower()}{message[1:]}{see} {path} --help.")
    return BAD_INPUT


def _unknown_option(error: Exception) -> str | None:
    """The option that does not exist, and the one that was probably meant."""
    if type(error).__name__ != "NoSuchOption":
        return None
    name, context = str(error.option_name), error.ctx  # type: ignore[attr-defined]
    known = [flag for one in context.command.get_params(context) for flag in (*one.opts, *one.secondary_opts)]
    near = difflib.get_close_matches(name, known, n=1)
    return f"there is no option {name}{f'; did you mean {near[0]}?' if near else ''}"
