"""`spectral-irt leaderboard` and `shortlist`: models ranked from logs, and a few prompts that stand for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from spectral_irt.analysis.record import finding_record, record_head
from spectral_irt.cli.help import with_options
from spectral_irt.cli.options import Machine, Reading, output_at, own
from spectral_irt.cli.terminal import Mode, Progress, say_written
from spectral_irt.errors import OptionError
from spectral_irt.eval_logs.collect import find_logs
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.leaderboard import Leaderboard
from spectral_irt.leaderboard.findings import headline_text
from spectral_irt.leaderboard.output import write_board
from spectral_irt.leaderboard.shortlist import ShortList
from spectral_irt.leaderboard.source import read_source
from spectral_irt.tables import write_csv, write_json
from spectral_irt.terminal import console, plain_table, say, show_findings
from spectral_irt.text import span

if TYPE_CHECKING:
    from spectral_irt.tables import Columns

SHORTLIST = "shortlist.json"
SHOWN = 40  # models on a terminal

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|DIR",
        show_default=False,
        help="Logs of lm-evaluation-harness, inspect_ai, HELM, lighteval or Every Eval Ever, or folders of them; or a "
        "table with the columns model, item and response.",
    ),
]


@dataclass(frozen=True)
class Logs:
    """How logs are read."""

    subject: str | None = own("FIELD", "Field that says the subject of a prompt. Benchmarks by default.")
    metric: list[str] = own(
        "NAME",
        "Metric that says right or wrong, where a log has several. Repeat for benchmarks with different ones: each "
        "takes the first that it has.",
        default=[],
    )
    threshold: float | None = own("NUMBER", "Scores above it are right; else they must be 0 or 1.")
    duplicates: Literal["error", "first", "last"] = own(
        "",
        "If a model answered a prompt in two logs: an error (default), or keep the first or last by file name.",
        default="error",
    )
    prompts: str | None = own("FILE", "A table with a row for each prompt, for --subject and --clustered-by.")
    prompts_by: Literal["id", "hash"] = own(
        "", "What makes prompts the same: the sample's id, with hashes compared (default), or the hash.", default="id"
    )
    perturbed: bool = own("", "HELM: count perturbed instances as prompts of their own.", default=False)

    def how(self) -> dict[str, Any]:
        """Options of `read_source`."""
        return {name: value for name, value in asdict(self).items() if name != "subject"}


@with_options(Logs, Mode)
def leaderboard(
    files: Files,
    logs: Logs,
    mode: Mode,
    output: Path | None = output_at("DIR", "Write tables, leaderboard.md, leaderboard.json and ranks.svg."),
    report: Path | None = own("FILE.html", "Write one HTML page."),
    clustered_by: str | None = own(
        "FIELD", "Prompts that share this (passage, subject) may be answered alike: errors allow for it."
    ),
    person: str | None = own("COLUMN", "Tables: which model it was."),
    item: str | None = own("COLUMN", "Tables: which prompt it was."),
    response: str | None = own("COLUMN", "Tables: the score."),
    seed: int = own("NUMBER", "Seed of the draws behind ranks; 0.", min=0, default=0),
) -> None:
    """Rank models honestly: abilities with errors over prompts, rank intervals that hold together, tiers of equals.

    Models are compared on the prompts they share. Runs of the same prompt (epochs, trials) count as answers of their
    own, and errors allow for them.

    \b
    Examples
      spectral-irt leaderboard results/ -o board
      spectral-irt leaderboard runs/ --metric exact_match,strict-match --metric acc
      spectral-irt leaderboard *.eval --clustered-by subject --report board.html
      spectral-irt leaderboard answers.csv --person model --response correct
    """
    mode.begin()
    named = {"person": person, "item": item, "response": response}
    of_tables = {name: value for name, value in named.items() if value is not None}
    inputs = [*files, *([logs.prompts] if logs.prompts else [])]
    with Progress() as progress:
        how = {**logs.how(), **of_tables, "seed": seed}
        board = Leaderboard.read(files, clustered_by=clustered_by, by=logs.subject, progress=progress.reading, **how)
        board.tell = progress.say
        written = write_board(board, output, report, inputs=inputs)
        findings = list(board.findings)  # before the progress line goes
    mode.end(
        lambda: _show_board(board, written),
        lambda: {**board.record(), "outputs": [path.name for path in written]},
        findings,
    )


def _show_board(board: Leaderboard, written: list[Path]) -> None:
    out = console()
    models = board.model_columns()
    say(out, Text(headline_text(board)))
    say(out)
    numbers: dict[str, Callable[[int], str]] = {
        "rank": lambda k: str(models["rank"][k]),
        "ability": lambda k: f"{models['ability'][k]:z.2f}",
        "se": lambda k: f"{models['se'][k]:.2f}",
        "ranks": lambda k: span(models["rank_low"][k], models["rank_high"][k]),
        "tier": lambda k: str(models["tier"][k]),
        "accuracy": lambda k: f"{100 * models['accuracy'][k]:.1f}%",
    }
    _show_models(models, numbers)
    say(out)
    told = (
        "Rank intervals hold simultaneously for all models (95%). No model of a tier is significantly worse than its "
    )
    say(out, Text(f"{told}best."))
    if board.findings:
        say(out)
        show_findings(out, list(board.findings))
    say_written(written)


def _show_models(columns: Columns, cells: dict[str, Callable[[int], str]]) -> None:
    """A table of the first models."""
    out = console()
    rows = range(min(len(columns["model"]), SHOWN))
    texts = [["-" if "nan" in text else text for text in map(cell, rows)] for cell in cells.values()]
    names = columns["model"][: len(rows)].tolist()
    say(out, plain_table(["model", *cells], [names, *texts], out.width, whole=out.whole))
    if len(rows) < len(columns["model"]):
        say(out, Text(f"... and {len(columns['model']) - len(rows):,} more."))


@with_options(Logs, Mode)
def shortlist(
    files: Files,
    logs: Logs,
    mode: Mode,
    size: int = own("NUMBER", "How many prompts; 100.", min=2, default=100),
    output: Path | None = output_at(
        "DIR", "Write shortlist.csv and shortlist.json, from which score predicts whole scores."
    ),
    seed: int = own("NUMBER", "Seed of random lists and of who is left out; 0.", min=0, default=0),
) -> None:
    """Choose a short list of prompts, and say how well it predicts the score on all of them.

    Models are left out in turn; a random list of the same size stands beside. With the list, score predicts the whole
    score of a new model, with an interval.

    \b
    Examples
      spectral-irt shortlist results/ --size 100 -o short
      spectral-irt score new_model/ --bank short
    """
    mode.begin()
    targets = [] if output is None else [output / "shortlist.csv", output / SHORTLIST]
    with all_or_nothing(targets, inputs=files) as drafts:
        with Progress() as progress:
            by = logs.subject
            source = read_source(files, wanted=[by] if by else [], progress=progress.reading, **logs.how())
            found = ShortList.choose(source, size, by=by, seed=seed, progress=progress.say)
        for draft, target in zip(drafts, targets, strict=True):
            with naming(target):
                if target.suffix == ".csv":
                    write_csv(draft, found.columns())
                else:
                    write_json(draft, found.record())

    def show() -> None:
        out = console()
        say(out, Text(found.sentence))
        if found.findings:
            show_findings(out, list(found.findings))
        names = ", ".join(map(str, found.prompts[:20].tolist())) + (", ..." if len(found.prompts) > 20 else "")
        if not targets:
            say(out, Text(names))
        say_written(targets)

    mode.end(show, lambda: {**record_head(), **found.record(), "outputs": list(map(str, targets))}, found.findings)


def score_models(
    files: Sequence[str], reading: Reading, machine: Machine, path: Path, output: Path | None, mode: Mode
) -> None:
    """`score` with a short list: the predicted score of each model on the whole benchmark, with an interval."""
    if output is not None and output.suffix.lower() != ".csv":
        raise OptionError(f"{str(output)!r} does not end in .csv; scores on a short list are one table.")
    listed = ShortList.load(path)
    with all_or_nothing([] if output is None else [output], inputs=[*files, path]) as drafts:
        with Progress() as progress:
            if find_logs(files) is not None:
                metric = [] if reading.response is None else [reading.response]
                answers = read_source(files, metric=metric, threshold=reading.given().get("threshold")).answers
            else:
                answers = reading.read_any(files, progress, machine, ordered=False)
        columns = listed.score_columns(answers)
        for draft in drafts:
            with naming(draft):
                write_csv(draft, columns)

    def show() -> None:
        whole = [f"{100 * score:.1f}%" for score in columns["score"].tolist()]
        ends = zip(columns["score_low"].tolist(), columns["score_high"].tolist(), strict=True)
        spans = [f"{100 * low:.1f}% to {100 * high:.1f}%" if low == low else "too few answers" for low, high in ends]
        numbers: dict[str, Callable[[int], str]] = {
            "answered": lambda k: f"{columns['n'][k]:,}",
            "right": lambda k: f"{columns['right'][k]:,}",
            "whole score": lambda k: whole[k],
            "95% interval": lambda k: spans[k],
        }
        _show_models(columns, numbers)
        told = f"Predicted from {len(listed.prompts):,} of {listed.predictor.n_all:,} prompts. {listed.sentence}"
        say(console(), Text(told))
        say_written([output])

    def record() -> dict[str, Any]:
        rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]
        findings = [finding_record(finding) for finding in answers.notes]
        head = {**record_head(), "bank": {"folder": str(path.parent), "prompts": len(listed.prompts)}}
        return {**head, "models": rows, "outputs": [] if output is None else [str(output)], "findings": findings}

    mode.end(show, record, answers.notes)
