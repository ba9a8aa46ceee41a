"""`spectral-irt compare`: several estimators on the same data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from spectral_irt.analysis.record import finding_record, record_head
from spectral_irt.cli.help import with_options
from spectral_irt.cli.options import Call, Files, Reading, Recoding, output_at, own
from spectral_irt.cli.terminal import Mode, Progress, say_written
from spectral_irt.errors import DesignError, OptionError, check_option, for_shell, printable
from spectral_irt.estimators.by_name import METHODS, ORDERED, make_estimator, make_ordered
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.inference.prediction import compare as run
from spectral_irt.terminal import console, plain_table, say, show_findings
from spectral_irt.xlsx import is_workbook, refuse_foreign, write_table

if TYPE_CHECKING:
    from spectral_irt.data import Finding
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.inference.prediction import Comparison

# The estimators of ordered answers: model and name.
OF_ORDERED = tuple(f"{model}-{name}" for model, methods in ORDERED.items() for name in methods)


@with_options(Reading, Recoding, Mode)
def compare(
    reading: Reading,
    recoding: Recoding,
    mode: Mode,
    call: Call,
    files: Files,
    estimators: str | None = own(
        "NAME,...",
        f"Which estimators, in this order; all by default: {', '.join(METHODS)}; of answers in more than two "
        f"categories {', '.join(OF_ORDERED)}.",
    ),
    holdout: float = own("SHARE", "Share of the people to predict; 0.2.", default=0.2),
    seed: int = own("NUMBER", "Seed of the random division of the people; 0.", min=0, default=0),
    output: Path | None = output_at("FILE", "The table as CSV, or .parquet, .xlsx."),
) -> None:
    """Compare estimators: who predicts people it has not seen, who agrees with CML, and what each costs.

    Each estimator is fitted to the same training people. AUC and mean log-likelihood are those of the answers of
    held-out people, predicted by the average of sigmoid(ability - difficulty) over a normal prior, which validation
    people choose. Answers in more than two categories have partial credit and rating scale models, and no AUC.

    \b
    Examples
      spectral-irt compare answers.csv
      spectral-irt compare ratings.csv --threshold own-mean:wrong -o table.csv
      spectral-irt compare answers.csv --estimators spectral,paper,cml
    """
    mode.begin()
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
    if output is not None and is_workbook(output):
        refuse_foreign(output)
    parameters = {} if call.machine.threads is None else {"threads": call.machine.threads}
    with all_or_nothing([] if output is None else [output], inputs=reading.inputs(files)) as drafts:
        with Progress() as progress:
            how = recoding.options(said if names or said else None)
            responses = reading.read(files, progress, call.machine, **how)
            ordered = said or not responses.thresholds.binary
            make = _make_ordered if ordered else make_estimator
            chosen = names or (OF_ORDERED if ordered else METHODS)
            methods = {name: partial(make, name, parameters) for name in chosen}
            rows = run(responses, methods, holdout=holdout, seed=seed, tell=progress.say)
        if all(row.problem for row in rows):
            raise DesignError(f"no estimator has a result. {rows[0].method}: {rows[0].problem}")
        for draft in drafts:
            with naming(draft):
                write_table(draft, output or draft, "estimators", columns_of(rows))

    def record() -> dict[str, Any]:
        findings = [finding_record(finding) for finding in responses.notes]
        told = {"holdout": holdout, "seed": seed, "estimators": [row.to_dict() for row in rows]}
        return {**record_head(), "source": responses.source, **told, "findings": findings}

    mode.end(lambda: _show(rows, list(responses.notes), output), record, responses.notes)


def _make_ordered(name: str, parameters: dict[str, Any]) -> RaschEstimator:
    model, _, method = name.partition("-")
    return make_ordered(model, method, parameters)


def columns_of(rows: list[Comparison]) -> dict[str, Any]:
    """The table, a column each."""
    records = [row.to_dict() for row in rows]
    columns = {}
    for name in records[0]:
        values = [for_shell(value) if isinstance(value := record[name], str) else value for record in records]
        columns[name] = np.array(values, dtype=object if isinstance(values[0], str) else None)
    return columns


def _show(rows: list[Comparison], notes: list[Finding], output: Path | None) -> None:
    out = console()
    heads = ["estimator", "AUC", "log-lik", "from CML", "items", "seconds"]
    numbers = [
        (f"{r.auc:.4f}", f"{r.loglik:.4f}", f"{r.distance_to_cml:.4f}", f"{r.items_estimated:,}", f"{r.seconds:.2f}")
        for r in rows
    ]
    cells = [
        ["-" if cell == "nan" or row.problem else cell for cell, row in zip(column, rows, strict=True)]
        for column in zip(*numbers, strict=True)
    ]
    say(out, plain_table(heads, [[row.method for row in rows], *cells], out.width, whole=out.whole))
    for row in rows:
        if row.problem:
            say(out, Text(f"{row.method}: {printable(for_shell(row.problem))}"))
    say(out)
    text = "AUC and mean log-likelihood of held-out people; 'from CML': root mean square difference, in logits."
    say(out, Text(text))
    if notes:
        say(out)
        show_findings(out, notes)
    say_written([output])
