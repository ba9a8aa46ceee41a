"""What `--help` prints: the same text whatever draws it, folded to the terminal, and nothing but words for people.

A docstring has paragraphs, which are folded, and after a line with `\\b` a block of examples, which is kept as it is.
"""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

NARROWEST, WIDEST = 40, 110  # longer lines are hard to read
INDENT, TERM = 2, 32  # an option with its value takes so much; a longer one has a line of its own
KEPT = "\b"  # begins a block whose lines are kept


class Command(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(self, ctx))


class Group(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(self, ctx))


def help_text(command: Any, context: Any) -> str:
    """Usage, what the command does, and its arguments, options and commands, each with a sentence."""
    width = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
    parameters = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option"]
    commands = getattr(command, "commands", {})
    rest = [*(_argument(one) for one in arguments), *(["COMMAND"] if commands else [])]
    usage = " ".join([f"Usage: {context.command_path}", "[OPTIONS]", *rest])
    lines = [*textwrap.wrap(usage, width, subsequent_indent="  ")]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines += ["", *_folded(paragraph, width)]
    lines += _section("Commands", [(name, _first(one.help)) for name, one in commands.items()], width)
    lines += _section("Arguments", [(_argument(one), one.help or "") for one in arguments], width)
    panels: dict[str, list[tuple[str, str]]] = {"Options": []}
    for one in options:
        panels.setdefault(getattr(one, "rich_help_panel", None) or "Options", []).append((_flags(one), _sentence(one)))
    for title, entries in panels.items():
        lines += _section(title, entries, width)
    return "\n".join(lines) + "\n"


def _folded(paragraph: str, width: int) -> Iterator[str]:
    if not paragraph.startswith(KEPT):
        yield from textwrap.wrap(" ".join(paragraph.split()), width)
        return
    title, *examples = paragraph.removeprefix(KEPT).strip("\n").split("\n")
    yield _heading(title)
    yield from examples


def _section(title: str, entries: Sequence[tuple[str, str]], width: int) -> list[str]:
    if not entries:
        return []
    term = min(max(len(head) for head, _ in entries), TERM, width // 2)
    lines = ["", _heading(title)]
    for head, text in entries:
        told = textwrap.wrap(text, max(width - INDENT - term - 2, 20), break_on_hyphens=False) or [""]
        if len(head) > term:
            lines.append(" " * INDENT + head)
            head = ""
        for k, line in enumerate(told):
            lines.append(f"{'':{INDENT}}{head if k == 0 else '':{term}}  {line}".rstrip())
    return lines


def _heading(title: str) -> str:
    return typer.style(title, bold=True)


def _argument(one: Any) -> str:
    name = one.metavar or one.name.upper()
    name = f"{name}..." if one.nargs == -1 else name
    return name if one.required else f"[{name}]"


def _flags(one: Any) -> str:
    """`-o, --output DIR`."""
    flags = ", ".join([*sorted(one.opts, key=len), *one.secondary_opts])
    return flags if one.is_flag or not one.metavar else f"{flags} {one.metavar}"


def _sentence(one: Any) -> str:
    text = one.help or ""
    if one.required:
        return f"{text} Required."
    told = one.show_default and not one.is_flag and one.default is not None
    return f"{text} Default: {one.default}." if told else text


def _first(text: str | None) -> str:
    """The first paragraph of a docstring."""
    return " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split())
