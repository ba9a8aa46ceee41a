"""What is said on a terminal, or to whoever reads in its place: the source, lines under a word, the findings.

Labels are data, never markup: every text goes in as `rich.text.Text`, control characters spelled out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NoReturn

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from spectral_irt.data import Finding, Responses
from spectral_irt.errors import for_shell
from spectral_irt.text import count, printable

NARROWEST = 40  # columns; help is folded to no less either

COLORS = {"note": "cyan", "warning": "yellow", "error": "bold red"}


class Screen(Console):
    """A console that prints texts as they are."""

    whole = False  # nobody said how wide it is, as in a file: text is folded at 80 columns, tables are not

    def on_broken_pipe(self) -> NoReturn:
        """Rich would end the process with code 1; what a reader who goes away means is for the command to say."""
        raise BrokenPipeError


def console() -> Screen:
    out = Screen(highlight=False, markup=False, emoji=False)
    out.whole = not out.is_terminal and not os.environ.get("COLUMNS")
    out.width = max(out.width, NARROWEST)  # the terminal may fold the lines; tables without numbers help nobody
    return out


def say(out: Console, *what: RenderableType) -> None:
    """Print, without the blanks that fill up the lines of tables when nobody sees them."""
    if out.is_terminal:
        out.print(*what, crop=False)
        return
    with out.capture() as captured:
        out.print(*what, crop=False)
    out.file.write("\n".join(map(str.rstrip, captured.get().split("\n"))))


def show_source(out: Console, responses: Responses) -> None:
    """What was read, on a line."""
    people, items = responses.words
    counts = [f"{responses.n_persons:,} {people}"]
    if responses.facets is None:
        counts.append(f"{responses.n_items:,} {items}")
    else:
        facets = responses.facets
        counts.append(f"{len(facets.items):,} {items}")
        for name, levels in zip(facets.names[1:], facets.levels[1:], strict=True):
            counts.append(printable(count(len(levels), name)))
    if responses.thresholds.binary:
        share = responses.item_scores.sum() / max(responses.n_responses, 1)
        counts.append(f"{responses.n_responses:,} responses, {100 * share:.1f}% right")
    else:
        counts.append(f"{responses.n_responses:,} responses in up to {responses.thresholds.widest + 1} categories")
    head = Text(printable(responses.source), style="bold")
    head.append(f"  {', '.join(counts)}", style="not bold")
    say(out, head)
    say(out)


def show_lines(out: Console, lines: Iterable[tuple[str, str]]) -> None:
    """A word in bold, and what there is to say about it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column()
    for label, text in lines:
        grid.add_row(Text(label), Text(printable(text)))
    say(out, grid)


def show_findings(out: Console, findings: Iterable[Finding]) -> None:
    """Severity, sentence and remedy of each."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")  # or the last sign beside a wide character is cut
    for finding in findings:
        text = Text(printable(for_shell(finding.sentence)))
        remedy = for_shell(finding.remedy)
        if remedy:
            text.append(" " + printable(remedy), style="dim")
        grid.add_row(Text(finding.severity, style=COLORS[finding.severity]), text)
    if grid.row_count:
        say(out, grid)
