"""`spectral-irt shortlist`: a few prompts that stand for all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectral_irt.cli.leaderboard import Duplicates, Logs, Metric, Perturbed, Prompts, PromptsBy, Threshold
from spectral_irt.cli.paths import output_at
from spectral_irt.cli.progress import Progress

if TYPE_CHECKING:
    from spectral_irt.cli.options import Reading

SHORTLIST = "shortlist.json"
SHOWN = 40  # models on a terminal


def shortlist(
    files: Logs,
    items: Annotated[int, typer.Option("--items", metavar="NUMBER", min=2, help="How many prompts.")] = 100,
    output: Annotated[
        Path | None, output_at("DIR", "Write shortlist.csv and shortlist.json, from which score predicts whole scores.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="FIELD", show_default=False, help="Subjects that have their share of the list."),
    ] = None,
    metric: Metric = [],  # noqa: B006
    threshold: Threshold = None,
    duplicates: Duplicates = "error",
    prompts_by: PromptsBy = "id",
    prompts: Prompts = None,
    perturbed: Perturbed = False,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Of random lists and of who is left out.")] = 0,
) -> None:
    """Choose a short list of prompts, and say how well it predicts the score on all of them.

    Models are left out in turn; a random list of the same size stands beside. With
    the list, `score` predicts the whole score of a new model, with an interval.

    \b
    Examples
      spectral-irt shortlist results/ --items 100 -o short
      spectral-irt score new_model/ --bank short
    """
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.leaderboard.shortlist import ShortList
    from spectral_irt.leaderboard.source import read_source
    from spectral_irt.tables import write_csv, write_json
    from spectral_irt.terminal import console, say, show_findings

    targets = [] if output is None else [output / "shortlist.csv", output / SHORTLIST]
    with all_or_nothing(targets, inputs=files) as drafts:
        with Progress() as progress:
            source = read_source(
                files,
                wanted=[by] if by else [],
                prompts=prompts,
                metric=metric,
                threshold=threshold,
                duplicates=duplicates,  # type: ignore[arg-type]
                prompts_by=prompts_by,
                perturbed=perturbed,
                progress=progress.reading,
            )
            found = ShortList.choose(source, items, by=by, seed=seed, progress=progress.say)
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                if target.suffix == ".csv":
                    write_csv(draft, found.columns())
                else:
                    write_json(draft, found.record())
    from rich.text import Text

    out = console()
    say(out, Text(found.sentence))
    if found.findings:
        show_findings(out, list(found.findings))
    if targets:
        say(out, Text(f"Written: {', '.join(map(str, targets))}."))
    else:
        say(out, Text(", ".join(map(str, found.prompts[:20].tolist())) + (", ..." if len(found.prompts) > 20 else "")))


def score_models(files: list[str], reading: Reading, path: Path, output: Path | None) -> None:
    """`score` with a short list: the predicted score of each model on the whole benchmark, with an interval."""
    from rich.table import Table
    from rich.text import Text

    from spectral_irt.errors import OptionError
    from spectral_irt.eval_logs.collect import find_logs
    from spectral_irt.files import all_or_nothing, naming
    from spectral_irt.leaderboard.shortlist import ShortList
    from spectral_irt.leaderboard.source import read_source
    from spectral_irt.tables import write_csv
    from spectral_irt.terminal import console, say, shortened

    if output is not None and output.suffix.lower() != ".csv":
        raise OptionError(f"{str(output)!r} does not end in .csv; scores on a short list are one table.")
    listed = ShortList.load(path)
    with all_or_nothing([] if output is None else [output], inputs=[*files, path]) as drafts:
        with Progress() as progress:
            if find_logs(files) is not None:
                metric = [] if reading.response is None else [reading.response]
                answers = read_source(files, metric=metric, threshold=reading.threshold).answers
            else:
                answers = reading.read_any(files, progress, ordered=False)
        columns = listed.score_columns(answers)
        for draft in drafts:
            with naming(draft):
                write_csv(draft, columns)
    out = console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("model", "answered", "right", "whole score", "95% interval"):
        table.add_column(head, justify="left" if head == "model" else "right", no_wrap=True)
    rows = min(len(columns["model"]), SHOWN)
    names = shortened(columns["model"][:rows].tolist(), max(12, out.width - 52))
    for k in range(rows):
        low, high = columns["score_low"][k], columns["score_high"][k]
        span = f"{100 * low:.1f}% to {100 * high:.1f}%" if low == low else "too few answers"
        cells = (f"{columns['n'][k]:,}", f"{columns['right'][k]:,}", f"{100 * columns['score'][k]:.1f}%", span)
        table.add_row(Text(names[k], style="cyan"), *cells)
    say(out, table)
    say(out, Text(f"Predicted from {len(listed.prompts):,} of {listed.predictor.n_all:,} prompts. {listed.sentence}"))
