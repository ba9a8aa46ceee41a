"""How an option is declared, and what `--help` prints: short for a newcomer, by topic, or everything.

A docstring has paragraphs, which are folded, and after a line with `\\b` a block of examples, which is kept as it is.
The short help has a command's own options and a few that a newcomer needs (`FIRST`), each with its first sentence.
"""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, field
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from spectral_irt.files import is_address, reason_of
from spectral_irt.text import sentence_case

NARROWEST = 40
WIDEST = 110  # longer lines are hard to read
INDENT = 2
# An option with its value takes so much, on a wide terminal and on others; a longer one has a line of its own.
TERM = 32
SHORT_TERM = 28
KEPT = "\b"  # begins a block whose lines are kept
EVERYTHING = "--help-all"

# The same class in typer's own copy of click and in click itself.
UsageError: Any = typer.BadParameter.__mro__[1]

FIRST: tuple[str, ...] = ("output", "report", "plots", "key", "missing", "items", "ignore", "sheet")
FIRST += ("group", "model", "scale", "anchors", "bank")

# What a topic is about: in a line, and what there is to know before its options.
TOPICS = {
    "columns": (
        "wide or long tables, columns, sheets, repeated responses",
        """
        A table is wide, with a row for each person and a column for each item, or long, with a row for each response
        and columns for person, item and response. Columns are recognized by their names, such as student_id, question
        or correct; spectral-irt check FILE shows what was recognized.
        """,
    ),
    "scoring": (
        "right and wrong, keys, ratings, blanks; ordered categories",
        """
        Responses 0 and 1 are wrong and right. Others are scored by a key, by the right responses, or by a threshold.
        Whole numbers in more than two categories are ordered responses.

        \b
        A blank cell is
          omitted        if the same person answered a later item
          not reached    if it comes after the person's last response
          not presented  if the item was not on the person's form
        """,
    ),
    "people": (
        "groups (DIF), populations, clusters, weights, abilities, classes",
        """
        Columns about persons are in the file of responses, or in the table of --group-file, with a row for each person.
        """,
    ),
    "method": (
        "estimator, adaptive tests, anchors, prior, standard errors",
        """
        By default: conditional maximum likelihood, started from the spectral estimate, with a weak prior on items with
        few responses, and robust standard errors.

        \b
        Settings, with --set NAME=VALUE
          regularization=auto|NUMBER   precision of the prior on difficulties (0: none)
          refine=true|false            Newton steps (true), or the chain's own estimate
          se=auto|dense|one-pass|multiplier|information|none   standard errors
          nu=NUMBER                    the paper's prior: disagreements added to pairs
          nu_rule=differed|together    which pairs nu is added to
          assume_equal_means=true      unlinked parts are equally hard on average
          max_iter=NUMBER              maximum number of iterations
        """,
    ),
    "moves": (
        "after the first fit: items dropped, split, joined, categories merged",
        """
        A move changes items or persons before the fit. Every result says which moves were made: fit.json, the report
        with its Methods, and moves.toml in the folder of results, which --moves does again.

        Moves of a file come first, then items dropped, persons of a file, categories, joined items, split items, and
        misfitting persons.
        """,
    ),
    "results": (
        "tables, report, figures, scales, ranks, banks; for scripts",
        """
        Without -o, a summary is printed and nothing is written. Results are written completely or not at all.
        """,
    ),
    "size": (
        "memory, threads, clusters, databases",
        """
        --memory, --spill, --threads and --dask change no result and may stand anywhere on the line of any command. The
        environment variables SPECTRAL_IRT_MEMORY, _SPILL, _THREADS and _DASK do the same.

        A table of a database, as in spectral-irt fit duckdb:school.duckdb#answers, is calibrated inside the
        database. Only numbers per item leave it: difficulties and standard errors of the chain, without person
        measures or fit.
        """,
    ),
}


def option(
    topic: str | None,
    metavar: str,
    help: str,
    *flags: str,
    default: Any = None,
    required: bool = False,
    parse: Callable[[Any], Any] | None = None,
    **more: Any,
) -> Any:
    """An option that `help TOPIC` describes; without a topic, one of the command's own.

    It is the default of a parameter of a command, or of a field in a group of options, which has the type. `parse`
    makes the value of the field from the text, or from the texts of an option that is repeatable.
    """
    info = typer.Option(*flags, metavar=metavar or None, help=help, rich_help_panel=topic, show_default=False, **more)
    about = {"option": info, "parse": parse}
    if isinstance(default, list | dict):
        return field(default_factory=type(default), metadata=about)
    if required:
        default = MISSING
    return field(default=default, metadata=about)


def argument(metavar: str, help: str) -> Any:
    """A required argument of a command, beside its options."""
    info = typer.Argument(metavar=metavar, show_default=False, help=help)
    return field(metadata={"option": info, "parse": None})


def place(text: str | Path) -> Path:
    """The path, with `~` for the home directory; refused if it can be no name at all."""
    if not str(text):
        raise typer.BadParameter("it is empty; name a place, or . for the current directory.")
    if is_address(text):
        raise typer.BadParameter(
            "it is an address; results and banks are kept in folders of this machine. Name a folder, and copy it from "
            "there or to there."
        )
    path = Path(text).expanduser()
    try:
        path.exists()
    except OSError as error:  # the system cannot even tell
        raise typer.BadParameter(f"{reason_of(error)}.") from error
    return path


class Command(TyperCommand):
    """A command whose help is ours; with --help-all, all of it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if EVERYTHING in args:
            typer.echo(help_text(self, ctx, everything=True), nl=False)
            raise typer.Exit
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)


def refuse_repeated(command: Any, context: Any, args: Sequence[str]) -> None:
    """An error where an option with parameter value is given twice: only the last would count, without a word."""
    _, _, options = command.make_parser(context).parse_args(args=list(args))
    for parameter in options:
        has_one_value = parameter.param_type_name == "option" and not parameter.is_flag and not parameter.multiple
        if has_one_value and options.count(parameter) > 1:
            flag = max(parameter.opts, key=len)
            raise UsageError(f"{flag} is given twice, and has one value; say it once", ctx=context)


def help_text(command: Any, context: Any, *, everything: bool = False) -> str:
    """Usage, what the command does, its options, and examples: those for a newcomer, or everything by topic."""
    wide = width()
    options = _parameters_of(command, context, "option")
    arguments = _parameters_of(command, context, "argument")
    usage = " ".join([f"Usage: {context.command_path}", "[OPTIONS]", *map(_argument_in_usage, arguments)])
    lines = textwrap.wrap(usage, wide, subsequent_indent="  ")
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    examples = [part for part in paragraphs if part.startswith(KEPT)]
    for paragraph in paragraphs:
        if paragraph not in examples:
            lines += ["", *fold(paragraph, wide)]
    topics = [topic for topic in TOPICS if any(parameter.rich_help_panel == topic for parameter in options)]
    chosen = [parameter for parameter in options if parameter.rich_help_panel is None]
    if everything:
        entries = [(_argument_in_usage(parameter), parameter.help or "") for parameter in arguments]
        lines += section("Arguments", entries, wide)
    else:
        by_name = {parameter.name: parameter for parameter in options if parameter not in chosen}
        chosen += [by_name[name] for name in FIRST if name in by_name]
    entries = [(flags(parameter), _sentence(parameter, short=not everything)) for parameter in chosen]
    lines += section("Options", entries, wide)
    if everything:
        for topic in topics:
            lines += section(_title(topic), topic_entries(options, topic), wide)
    for example in examples:
        lines += ["", *fold(example, wide)]
    if everything or not topics:
        return "\n".join(lines) + "\n"
    if context.info_name == "fit":
        lines += section("More options: spectral-irt help TOPIC", [(name, TOPICS[name][0]) for name in TOPICS], wide)
        lines += [f"All of them: {context.command_path} {EVERYTHING}"]
    elif topics == ["results"]:
        lines += ["", "For scripts: -q, --json, --strict; see spectral-irt help results"]
    else:
        where = f"{context.command_path} {EVERYTHING}, or by topic: spectral-irt help {'|'.join(topics)}"
        lines += ["", *textwrap.wrap(f"More options: {where}", wide, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def topic_text(topic: str, options: Sequence[Any]) -> str:
    """What there is to know about a topic, and its options among these."""
    lines = [heading(_title(topic))]
    for paragraph in inspect.cleandoc(TOPICS[topic][1]).split("\n\n"):
        lines += ["", *fold(paragraph, width())]
    return "\n".join([*lines, *section("Options", topic_entries(options, topic), width())]) + "\n"


def _title(topic: str) -> str:
    return sentence_case(TOPICS[topic][0])


def topic_entries(options: Sequence[Any], topic: str) -> list[tuple[str, str]]:
    """The options of a topic: flags with their values, and what they are for."""
    return [(flags(parameter), _sentence(parameter)) for parameter in options if parameter.rich_help_panel == topic]


def width() -> int:
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)


def fold(paragraph: str, wide: int) -> Iterator[str]:
    """A paragraph in lines of this width; a block of examples as it is."""
    if not paragraph.startswith(KEPT):
        yield from textwrap.wrap(" ".join(paragraph.split()), wide, break_on_hyphens=False)
        return
    title, *examples = paragraph.removeprefix(KEPT).strip("\n").split("\n")
    yield heading(title)
    yield from examples


def section(title: str, entries: Sequence[tuple[str, str]], wide: int) -> list[str]:
    """Terms to the left, what they mean to the right."""
    if not entries:
        return []
    widest = TERM if wide > 80 else SHORT_TERM
    term = min(max(len(head) for head, _ in entries), widest, wide // 2)
    lines = ["", heading(title)]
    for head, text in entries:
        meaning = textwrap.wrap(text, max(wide - INDENT - term - 2, 20), break_on_hyphens=False) or [""]
        if len(head) > term:
            lines.append(" " * INDENT + head)
            head = ""
        for line in meaning:
            lines.append(f"{'':{INDENT}}{head:{term}}  {line}".rstrip())
            head = ""  # beside the first line only
    return lines


def heading(title: str) -> str:
    return typer.style(title, bold=True)


def flags(parameter: Any) -> str:
    """`-o, --output DIR`."""
    names = ", ".join([*sorted(parameter.opts, key=lambda flag: flag.startswith("--")), *parameter.secondary_opts])
    if parameter.is_flag or not parameter.metavar:
        return names
    return f"{names} {parameter.metavar}"


def _parameters_of(command: Any, context: Any, kind: str) -> list[Any]:
    """The options, or the arguments, of a command that help shows."""
    of_kind = [parameter for parameter in command.get_params(context) if parameter.param_type_name == kind]
    return [parameter for parameter in of_kind if parameter.name != "help" and not getattr(parameter, "hidden", False)]


def _argument_in_usage(parameter: Any) -> str:
    """`FILE...`, or `[FILE]` where it may be left out."""
    name = parameter.metavar or parameter.name.upper()
    if parameter.nargs == -1:
        name += "..."
    return name if parameter.required else f"[{name}]"


def _sentence(parameter: Any, *, short: bool = False) -> str:
    """What an option is for: its first sentence, or all, with its default."""
    text = parameter.help or ""
    if short:
        text = text.split(". ")[0].rstrip(".") + "."
    if parameter.required:
        return f"{text} Required."
    if parameter.show_default and not parameter.is_flag and parameter.default is not None:
        return f"{text} Default: {parameter.default}."
    return text
