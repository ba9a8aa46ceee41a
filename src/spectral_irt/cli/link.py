"""`spectral-irt link`: two banks with items in common, brought to one scale."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.options import offered
from spectral_irt.cli.paths import output_at, place
from spectral_irt.errors import OutputError

if TYPE_CHECKING:
    from spectral_irt.bank import Bank, Equating, Link

SHOW = 12  # common items that are shown: those that moved most


def link(
    a: Annotated[
        Path, typer.Argument(parser=place, metavar="A", show_default=False, help="The bank whose scale it shall be.")
    ],
    b: Annotated[Path, typer.Argument(parser=place, metavar="B", show_default=False, help="The bank to bring there.")],
    method: Annotated[
        str,
        typer.Option(
            metavar="robust|mean|mean-sigma",
            autocompletion=offered("robust|mean|mean-sigma"),
            show_default=False,
            help="Mean difference without drifted items (default), of all items, or with a slope.",
        ),
    ] = "robust",
    output: Annotated[Path | None, output_at("DIR", "Write B on A's scale, as a bank.")] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            parser=place, metavar="FILE", show_default=False, help="Write all common items: .csv, .parquet or .xlsx."
        ),
    ] = None,
    equate: Annotated[
        Path | None,
        typer.Option(
            parser=place,
            metavar="FILE",
            show_default=False,
            help="Write raw scores on all items of A, what they are on B, and back: .csv, .parquet or .xlsx.",
        ),
    ] = None,
) -> None:
    """Link two banks by the items they share: how far apart the scales are, and which items have drifted.

    Up to 40% of the common items may have drifted: the link rests on those that agree. Its error is in the standard
    errors of the linked bank.

    With --equate the two banks are two forms of a test: a raw score on one is worth the score that people of the same
    ability are expected to have on the other. Nothing right and everything right are the same on both, by convention.

    \b
    Examples
      spectral-irt link bank2024 bank2025
      spectral-irt link bank2024 bank2025 -o bank2025-on-2024 --table common.csv
      spectral-irt link form_a form_b --equate equating.csv
    """
    from spectral_irt.bank import Bank
    from spectral_irt.bank import equate as equate_banks
    from spectral_irt.cli.paths import refuse_bank_place, save_bank
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.xlsx import refuse_foreign, write_table

    if output is not None:
        refuse_bank_place(output)
    named = {"common items": table, "equating": equate}
    for path in named.values():
        if path is not None and path.suffix.lower() not in (".csv", ".parquet", ".xlsx"):
            raise OutputError(
                f"{str(path)!r} ends in none of .csv, .parquet and .xlsx; name the file after what it shall be."
            )
        if path is not None and path.suffix.lower() == ".xlsx":
            refuse_foreign(path)
    first, second = Bank.load(a), Bank.load(b)
    found = first.link(second, method)
    scores = None if equate is None else equate_banks(first, second, method, linked=found)
    contents = {"common items": found.columns(), "equating": {} if scores is None else scores.columns()}
    tables = {path: (name, contents[name]) for name, path in named.items() if path is not None}
    folders = [] if output is None else [output]

    def save() -> None:
        for folder in folders:
            save_bank(found.apply(second), folder)

    with all_or_nothing(list(tables), inputs=[a, b], folders=folders, last=save) as drafts:
        for draft, (path, (name, columns)) in zip(drafts, tables.items(), strict=True):
            with naming(path):
                write_table(draft, path, name, columns)
    show(found, (a, b), (first, second), scores)
    say_where(output, table, equate)


def show(found: Link, places: tuple[Path, Path], banks: tuple[Bank, Bank], scores: Equating | None = None) -> None:
    import numpy as np
    from rich.text import Text

    from spectral_irt.bank.linking import told_errors
    from spectral_irt.errors import printable
    from spectral_irt.terminal import console, plain_table, say, show_lines

    out = console()
    order = np.lexsort((-np.abs(found.difference), ~found.drift))[:SHOW]
    heads = ["item", "in A", "in B", "difference", "se", "robust z", ""]
    columns: list[list[Any]] = [
        found.item[order].tolist(),
        *([f"{x:z.2f}" for x in values[order]] for values in (found.difficulty_a, found.difficulty_b)),
        *([f"{x:z.2f}" for x in values[order]] for values in (found.difference, found.se, found.robust_z)),
        [_moved(found, k) for k in order],
    ]
    say(out, plain_table(heads, columns, out.width, whole=out.whole))
    more = len(found.item) - len(order)
    if more > 0:
        say(out, Text(f"and {more:,} more that moved less; --table FILE has all", style="dim"))
    say(out)
    slope = "" if found.slope == 1 else f" times {found.slope:.3f} (se {found.slope_se:.3f})"
    told = told_errors(found.basis)
    lines = [
        ("A", f"{printable(places[0])}: {banks[0].n_items:,} items, {banks[0].n_persons:,} people"),
        ("B", f"{printable(places[1])}: {banks[1].n_items:,} items, {banks[1].n_persons:,} people"),
        ("link", f"A = B{slope} {found.shift:+.3f} logits (se {found.shift_se:.3f}), {found.method}"),
        ("drift", _drift(found)),
        ("agreement", found.agreement),
        ("error", f"{found.link_error:.3f} for the link, carried into the standard errors of B (from {told})"),
    ]
    if scores is not None:
        lines.append(("equating", _equating(scores)))
    if found.doubtful:
        lines.append(("warning", found.doubtful))
    show_lines(out, lines)
    say(out)


def say_where(output: Path | None, table: Path | None, equate: Path | None) -> None:
    from rich.text import Text

    from spectral_irt.errors import printable
    from spectral_irt.terminal import console, say

    out = console()
    if output is None and table is None and equate is None:
        say(out, Text("Nothing was saved; add -o DIR for B on A's scale, or --table FILE for the common items."))
        return
    sentence = Text()
    if output is not None:
        sentence.append("B on A's scale is in ").append(printable(output), style="bold").append(".")
    if table is not None:
        sentence.append("\nThe common items are in " if sentence else "The common items are in ")
        sentence.append(printable(table), style="bold").append(".")
    if equate is not None:
        sentence.append("\nEquated scores are in " if sentence else "Equated scores are in ")
        sentence.append(printable(equate), style="bold").append(".")
    say(out, sentence)


def _equating(scores: Equating) -> str:
    """One score in the middle, as an example."""
    middle, (most_a, most_b) = len(scores.scores[0]) // 2, (len(each) - 1 for each in scores.scores)
    se = scores.se[0][middle]
    error = f" (se {se:.2f})" if se == se else ""
    return f"{middle:,} of {most_a:,} on A is {scores.equated[0][middle]:.1f} of {most_b:,} on B{error}"


def _moved(found: Link, k: int) -> str:
    if not found.drift[k]:
        return ""
    return f"harder in {'B' if found.difference[k] > 0 else 'A'}"


def _drift(found: Link) -> str:
    drifted, all_of_them = int(found.drift.sum()), found.common
    if not drifted:
        return f"none of {all_of_them} is beyond a robust z of 3"
    used = "left out of the link" if found.method == "robust" else "in the link, unless --method robust"
    return f"{drifted:,} of {all_of_them}, beyond a robust z of 3; {used}"
