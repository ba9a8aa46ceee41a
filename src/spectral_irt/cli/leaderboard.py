"""`spectral-irt leaderboard`: models ranked from logs of evaluation harnesses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectral_irt.cli.options import panel
from spectral_irt.cli.paths import output_at, place
from spectral_irt.cli.progress import Progress

if TYPE_CHECKING:
    from spectral_irt.leaderboard import Leaderboard

SHOWN = 40  # models on a terminal
_logs = panel("Logs and tables")

Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|DIR",
        show_default=False,
        help="Logs of lm-evaluation-harness, inspect_ai, HELM, lighteval or Every Eval Ever, or folders of them; or a "
        "table with the columns model, item and response.",
    ),
]
Metric = Annotated[
    list[str],
    _logs(
        "--metric",
        metavar="NAME",
        help="Which metric says right or wrong, where a log has several. Repeat for benchmarks with different ones: "
        "each takes the first that it has.",
    ),
]
Threshold = Annotated[
    float | None, _logs(metavar="NUMBER", help="Scores above it are right; else they must be 0 or 1.")
]
Duplicates = Annotated[
    str,
    _logs(
        metavar="error|first|last",
        help="When a model answered a prompt in two logs: complain (default), or keep the first or last, by file name.",
    ),
]
PromptsBy = Annotated[
    str,
    _logs(
        "--prompts-by",
        metavar="id|hash",
        help="What makes two prompts the same: the sample's id, with hashes compared (default), or the hash alone.",
    ),
]
Prompts = Annotated[
    str | None,
    _logs("--prompts", metavar="FILE", help="A table with a row for each prompt, for --by and --clustered-by."),
]
MaxUnpacked = Annotated[
    str | None,
    _logs("--max-unpacked", metavar="SIZE", help="What a packed log may unpack to, as in 20GB; 4GB by default."),
]
Perturbed = Annotated[bool, _logs("--perturbed", help="HELM: count perturbed instances as prompts of their own.")]


def leaderboard(
    files: Logs,
    output: Annotated[
        Path | None, output_at("DIR", "Write tables, leaderboard.md, leaderboard.json and ranks.svg.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", parser=place, metavar="FILE", show_default=False, help="Write one HTML page."),
    ] = None,
    clustered_by: Annotated[
        str | None,
        typer.Option(
            "--clustered-by",
            metavar="FIELD",
            show_default=False,
            help="Prompts that share this (passage, subject) may be answered alike: errors allow for it.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="FIELD", show_default=False, help="A table for each subject; benchmarks by default."
        ),
    ] = None,
    metric: Metric = [],  # noqa: B006
    threshold: Threshold = None,
    duplicates: Duplicates = "error",
    prompts_by: PromptsBy = "id",
    prompts: Prompts = None,
    perturbed: Perturbed = False,
    max_unpacked: MaxUnpacked = None,
    person: Annotated[str | None, _logs("--person", metavar="COLUMN", help="Tables: which model it was.")] = None,
    item: Annotated[str | None, _logs("--item", metavar="COLUMN", help="Tables: which prompt it was.")] = None,
    response: Annotated[str | None, _logs("--response", metavar="COLUMN", help="Tables: the score.")] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Of the draws behind ranks.")] = 0,
) -> None:
    """Rank models honestly: abilities with errors over prompts, ranks that hold together, tiers of equals.

    Models are compared on the prompts they share. Runs of the same prompt (epochs,
    trials) count as answers of their own, and errors allow for them.

    \b
    Examples
      spectral-irt leaderboard results/ -o board
      spectral-irt leaderboard runs/ --metric exact_match,strict-match --metric acc
      spectral-irt leaderboard *.eval --clustered-by subject --report board.html
      spectral-irt leaderboard answers.csv --person model --response correct
    """
    from spectral_irt.leaderboard import Leaderboard
    from spectral_irt.leaderboard.output import write_board

    of_tables = {"person": person, "item": item, "response": response}
    inputs: list[str] = [*files, *([prompts] if prompts else [])]
    with Progress() as progress:
        board = Leaderboard.read(
            files,
            clustered_by=clustered_by,
            by=by,
            seed=seed,
            progress=progress.reading,
            metric=metric,
            threshold=threshold,
            duplicates=duplicates,
            prompts_by=prompts_by,
            prompts=prompts,
            perturbed=perturbed,
            max_unpacked=max_unpacked,
            **{name: value for name, value in of_tables.items() if value is not None},
        )
        board.tell = progress.say
        written = write_board(board, output, report, inputs=inputs)
        board.findings  # noqa: B018  # before the progress line goes
    show(board, output or report, written)


def show(board: Leaderboard, place: Path | None, written: list[Path]) -> None:
    from rich.table import Table
    from rich.text import Text

    from spectral_irt.errors import printable
    from spectral_irt.leaderboard.findings import headline_text
    from spectral_irt.terminal import console, say, shortened, show_findings

    out = console()
    models = board.model_columns()
    rows = min(len(models["model"]), SHOWN)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("rank", "model", "ability", "se", "ranks", "tier", "accuracy"):
        table.add_column(head, justify="left" if head == "model" else "right", no_wrap=True)
    names = shortened(models["model"][:rows].tolist(), max(12, out.width - 52))
    for k in range(rows):
        low, high = models["rank_low"][k], models["rank_high"][k]
        cells: list[Any] = [
            str(models["rank"][k]),
            Text(names[k], style="cyan"),
            f"{models['ability'][k]:z.2f}",
            f"{models['se'][k]:.2f}",
            str(low) if low == high else f"{low}-{high}",
            str(models["tier"][k]),
            f"{100 * models['accuracy'][k]:.1f}%",
        ]
        table.add_row(*("-" if cell == "nan" else cell for cell in cells))
    say(out, Text(headline_text(board)))
    say(out)
    say(out, table)
    if rows < len(models["model"]):
        say(out, Text(f"... and {len(models['model']) - rows:,} more."))
    say(out)
    say(
        out,
        Text(
            "Ranks hold for all models at once in at least 95% of leaderboards; models of a tier are not surely worse "
            "than its first."
        ),
    )
    if board.findings:
        say(out)
        show_findings(out, list(board.findings))
    if written:
        say(out, Text.assemble("Written: ", (printable(", ".join(map(str, written))), "bold"), "."))
