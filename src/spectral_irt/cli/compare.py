"""`spectral-irt compare`: several estimators on the same data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.options import Files, Reading, offered
from spectral_irt.cli.places import place
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.spread import with_options
from spectral_irt.errors import OptionError, check_option, for_shell
from spectral_irt.estimators.by_name import METHODS, make_estimator

if TYPE_CHECKING:
    from spectral_irt.inference.compare import Comparison
    from spectral_irt.responses import Finding


@with_options(Reading)
def compare(
    reading: Reading,
    files: Files = [],  # noqa: B006  # or a query
    estimators: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            show_default=False,
            autocompletion=offered("|".join(METHODS)),
            help=f"Which estimators, in this order; all by default: {', '.join(METHODS)}.",
        ),
    ] = ",".join(METHODS),
    holdout: Annotated[float, typer.Option(metavar="SHARE", help="Share of the people to predict.")] = 0.2,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Of the random division of the people.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            parser=place,
            metavar="FILE",
            show_default=False,
            help="The table as CSV, or .parquet, .xlsx.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, show_default=False, help="All by default.")
    ] = None,
) -> None:
    """Compare estimators: who predicts people it has not seen, who agrees with CML, and what each costs.

    Each estimator is fitted to the same training people. AUC and mean log-likelihood are those of the answers of
    held-out people, predicted by the average of sigmoid(ability - difficulty) over a normal prior, which validation
    people choose.

    \b
    Examples
      spectral-irt compare answers.csv
      spectral-irt compare ratings.parquet --above-mean wrong -o compared.csv
      spectral-irt compare answers.csv --estimators spectral,paper,cml
    """
    from spectral_irt.inference.compare import compare as run
    from spectral_irt.workbook import is_workbook, refuse_foreign, write_table
    from spectral_irt.writing import all_or_nothing, naming

    names = [name.strip() for name in estimators.split(",") if name.strip()]
    if not names:
        raise OptionError("no estimator is named; give some of " + ", ".join(METHODS) + ".")
    for name in names:
        check_option("estimator", name, METHODS)
    parameters = {} if threads is None else {"threads": threads}
    methods = {name: partial(make_estimator, name, parameters) for name in names}

    notes: list[Finding] = []

    def work() -> list[Comparison]:
        with Progress() as progress:
            responses = reading.read(files, progress)
            notes.extend(responses.notes)
            return run(responses, methods, holdout=holdout, seed=seed, tell=progress.say)

    if output is None:
        rows = work()
    else:
        if is_workbook(output):
            refuse_foreign(output)
        with all_or_nothing([output], inputs=reading.inputs(files)) as (draft,):
            rows = work()
            with naming(output):
                write_table(draft, output, "estimators", columns_of(rows))
    show(rows, notes, output)


def columns_of(rows: list[Comparison]) -> dict[str, Any]:
    """The table, a column each."""
    import numpy as np

    records = [row.to_dict() for row in rows]
    columns = {}
    for name in records[0]:
        values = [for_shell(value) if isinstance(value := record[name], str) else value for record in records]
        columns[name] = np.array(values, dtype=object if isinstance(values[0], str) else None)
    return columns


def show(rows: list[Comparison], notes: list[Finding], output: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from spectral_irt.display import console, say, show_findings
    from spectral_irt.errors import printable

    out = console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("estimator")
    for head in ("AUC", "log-lik", "from CML", "items", "seconds", "peak MB"):
        table.add_column(head, justify="right")
    for row in rows:
        cells = [
            f"{row.auc:.4f}",
            f"{row.loglik:.4f}",
            f"{row.distance_to_cml:.4f}",
            f"{row.items_estimated:,}",
            f"{row.seconds:.2f}",
            f"{row.peak_mb:,.0f}",
        ]
        table.add_row(row.method, *("-" if cell == "nan" or row.problem else cell for cell in cells))
    say(out, table)
    for row in rows:
        if row.problem:
            say(out, Text(f"{row.method}: {printable(for_shell(row.problem))}"))
    say(out)
    text = "AUC and mean log-likelihood of held-out people; 'from CML': root mean square difference, in logits."
    say(out, Text(text))
    if notes:
        say(out)
        show_findings(out, notes)
    if output is not None:
        say(out, Text.assemble("The table is in ", (printable(output), "bold"), "."))
