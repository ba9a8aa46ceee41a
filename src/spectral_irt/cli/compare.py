"""`spectral-irt compare`: several estimators on the same data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.cli.options import Call, Files, Reading, output_at, own
from spectral_irt.cli.terminal import Mode, Progress, say_written
from spectral_irt.errors import DesignError, OptionError, check_option, for_shell
from spectral_irt.estimators.by_name import METHODS, ORDERED, make_estimator
from spectral_irt.files import all_or_nothing, errors_with_target
from spectral_irt.text import number, printable

if TYPE_CHECKING:
    from spectral_irt.data import Finding
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.inference.prediction import Comparison

# The estimators of ordered answers: model and name.
OF_ORDERED = tuple(f"{model}-{name}" for model, methods in ORDERED.items() for name in methods)


def compare(
    reading: Reading,
    mode: Mode,
    call: Call,
    files: Files,
    estimators: str | None = own(
        "NAME,...",
        f"Which estimators, in this order; all by default: {', '.join(METHODS)}; of answers in more than two "
        f"categories {', '.join(OF_ORDERED)}.",
    ),
    holdout: float = own("SHARE", "Share of the persons held out for prediction (default 0.2).", default=0.2),
    seed: int = own("NUMBER", "Random seed (default 0).", min=0, default=0),
    output: Path | None = output_at("FILE", "The table as CSV, or .parquet, .xlsx."),
) -> None:
    """Compare estimators by held-out prediction, agreement with CML, and run time.

    Each estimator is fitted to the same training persons. AUC and mean log-likelihood are computed on the responses of
    held-out persons, predicted by the average of sigmoid(ability - difficulty) under a normal ability prior tuned on a
    validation set. Responses in more than two categories have partial credit and rating scale models, and no AUC.

    \b
    Examples
      spectral-irt compare answers.csv
      spectral-irt compare ratings.csv --threshold 3 -o table.csv
      spectral-irt compare answers.csv --estimators spectral,paper,cml
    """
    import polars as pl

    from spectral_irt.inference.prediction import compare as run
    from spectral_irt.xlsx import is_workbook, refuse_foreign, write_table

    names = [] if estimators is None else [name.strip() for name in estimators.split(",") if name.strip()]
    if estimators is not None and not names:
        raise OptionError("no estimator is named; give some of " + ", ".join(METHODS) + ".")
    for name in names:
        check_option("estimator", name, (*METHODS, *OF_ORDERED))
    asks_for_ordered = bool(set(names) & set(OF_ORDERED)) or reading.recodes
    if asks_for_ordered and set(names) & set(METHODS):
        raise OptionError("estimators of ordered answers cannot be compared with those of right and wrong ones.")
    ordered = asks_for_ordered if names or asks_for_ordered else None  # None: the answers show what they are
    if output is not None and is_workbook(output):
        refuse_foreign(output)
    parameters = {} if call.threads is None else {"threads": call.threads}
    targets = [] if output is None else [output]
    with all_or_nothing(targets, inputs=reading.inputs(files)) as drafts:
        with Progress() as progress:
            responses = reading.read(files, progress, call, ordered=ordered)
            right_or_wrong = responses.thresholds.binary and not asks_for_ordered
            if not names:
                names = list(METHODS if right_or_wrong else OF_ORDERED)
            methods = {name: partial(_estimator, name, parameters) for name in names}
            rows = run(responses, methods, holdout=holdout, seed=seed, tell=progress.say)
        if all(row.problem for row in rows):
            raise DesignError(f"no estimator has a result. {rows[0].method}: {rows[0].problem}")
        records = [{**row.to_dict(), "problem": for_shell(row.problem)} for row in rows]
        for draft in drafts:
            with errors_with_target(draft):
                columns = {name: pl.Series([record[name] for record in records]).to_numpy() for name in records[0]}
                write_table(draft, output or draft, "estimators", columns)

    def record() -> dict[str, Any]:
        return {"source": responses.source, "holdout": holdout, "seed": seed, "estimators": records}

    mode.end(lambda: _show(rows, list(responses.notes), output), record, responses.notes)


def _estimator(name: str, parameters: dict[str, Any]) -> RaschEstimator:
    """The estimator of a name such as `cml`, or of ordered answers `pcm-spectral`."""
    model, ordered, method = name.partition("-")
    if ordered:
        return make_estimator(method, parameters, model)
    return make_estimator(name, parameters)


def _cells(row: Comparison) -> list[str]:
    """What came of an estimator, as text; strokes where it failed."""
    if row.problem:
        return ["-"] * 5
    figures = [number(value, 4, none="-") for value in (row.auc, row.loglik, row.distance_to_cml)]
    return [*figures, f"{row.items_estimated:,}", f"{row.seconds:.2f}"]


def _show(rows: list[Comparison], notes: list[Finding], output: Path | None) -> None:
    from rich.text import Text

    from spectral_irt.terminal import console, plain_table, say, show_findings

    out = console()
    heads = ["estimator", "AUC", "log-lik", "from CML", "items", "seconds"]
    cells = [[row.method, *_cells(row)] for row in rows]
    say(out, plain_table(heads, list(zip(*cells, strict=True)), out.width, whole=out.whole))
    for row in rows:
        if row.problem:
            say(out, Text(f"{row.method}: {printable(for_shell(row.problem))}"))
    say(out)
    say(
        out, Text("AUC and mean log-likelihood of held-out people; 'from CML': root mean square difference, in logits.")
    )
    if notes:
        say(out)
        show_findings(out, notes)
    say_written([output])
