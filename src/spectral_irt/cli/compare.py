"""`spectral-irt compare`: several estimators on the same data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.categories import Recoding
from spectral_irt.cli.options import Files, Reading, offered
from spectral_irt.cli.paths import output_at
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.spread import with_options
from spectral_irt.errors import DesignError, OptionError, check_option, for_shell
from spectral_irt.estimators.by_name import METHODS, ORDERED, make_estimator, make_ordered

if TYPE_CHECKING:
    from spectral_irt.data import Finding
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.inference.prediction import Comparison


# The estimators of ordered answers: model and name.
OF_ORDERED = tuple(f"{model}-{name}" for model, methods in ORDERED.items() for name in methods)


@with_options(Reading, Recoding)
def compare(
    reading: Reading,
    recoding: Recoding,
    files: Files = [],  # noqa: B006  # or a query
    estimators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            show_default=False,
            autocompletion=offered("|".join(METHODS)),
            help=f"Which estimators, in this order; all by default: {', '.join(METHODS)}; of answers in more than two "
            f"categories {', '.join(OF_ORDERED)}.",
        ),
    ] = None,
    holdout: Annotated[float, typer.Option(metavar="SHARE", help="Share of the people to predict.")] = 0.2,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Of the random division of the people.")] = 0,
    output: Annotated[Path | None, output_at("FILE", "The table as CSV, or .parquet, .xlsx.")] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, show_default=False, help="All by default.")
    ] = None,
) -> None:
    """Compare estimators: who predicts people it has not seen, who agrees with CML, and what each costs.

    Each estimator is fitted to the same training people. AUC and mean log-likelihood are those of the answers of
    held-out people, predicted by the average of sigmoid(ability - difficulty) over a normal prior, which validation
    people choose. Answers in more than two categories have partial credit and rating scale models, and no AUC.

    \b
    Examples
      spectral-irt compare answers.csv
      spectral-irt compare ratings.parquet --above-mean wrong -o compared.csv
      spectral-irt compare answers.csv --estimators spectral,paper,cml
    """
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.inference.prediction import compare as run
    from spectral_irt.xlsx import is_workbook, refuse_foreign, write_table

    names = [] if estimators is None else [name.strip() for name in estimators.split(",") if name.strip()]
    if estimators is not None and not names:
        raise OptionError("no estimator is named; give some of " + ", ".join(METHODS) + ".")
    for name in names:
        check_option("estimator", name, (*METHODS, *OF_ORDERED))
    said = bool(set(names) & set(OF_ORDERED)) or recoding.said
    if said and set(names) & set(METHODS):
        raise OptionError(
            "estimators of ordered answers and of right and wrong ones cannot be compared with each other."
        )
    parameters = {} if threads is None else {"threads": threads}

    notes: list[Finding] = []

    def work() -> list[Comparison]:
        with Progress() as progress:
            kind = said if names or said else None
            responses = reading.read(files, progress, **recoding.options(kind))
            notes.extend(responses.notes)
            ordered = said or not responses.thresholds.binary
            make = _make_ordered if ordered else make_estimator
            chosen = names or (OF_ORDERED if ordered else METHODS)
            methods = {name: partial(make, name, parameters) for name in chosen}
            rows = run(responses, methods, holdout=holdout, seed=seed, tell=progress.say)
        if all(row.problem for row in rows):
            raise DesignError(f"no estimator has a result. {rows[0].method}: {rows[0].problem}")
        return rows

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


def _make_ordered(name: str, parameters: dict[str, Any]) -> RaschEstimator:
    model, _, method = name.partition("-")
    return make_ordered(model, method, parameters)


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

    from spectral_irt.errors import printable
    from spectral_irt.terminal import console, say, show_findings

    out = console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("estimator")
    for head in ("AUC", "log-lik", "from CML", "items", "seconds"):
        table.add_column(head, justify="right")
    for row in rows:
        cells = [
            f"{row.auc:.4f}",
            f"{row.loglik:.4f}",
            f"{row.distance_to_cml:.4f}",
            f"{row.items_estimated:,}",
            f"{row.seconds:.2f}",
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
