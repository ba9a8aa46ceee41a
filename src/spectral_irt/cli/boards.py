"""Models and contestants on the terminal and in files: the work of `leaderboard`, `pairs` and `shortlist`, and of
`score` with a short list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from rich.text import Text

from spectral_irt.cli.models import SHORTLIST, Judges, Logs
from spectral_irt.cli.options import Call, Reading
from spectral_irt.cli.terminal import Mode, Progress, say_written
from spectral_irt.data import Finding
from spectral_irt.errors import OptionError
from spectral_irt.eval_logs.collect import find_logs, log_files
from spectral_irt.files import all_or_nothing, errors_with_target, local_path
from spectral_irt.leaderboard import Leaderboard
from spectral_irt.leaderboard.judges import JudgedLeaderboard
from spectral_irt.leaderboard.race import Race
from spectral_irt.leaderboard.ranked import RankedBoard
from spectral_irt.leaderboard.scale import ELO
from spectral_irt.leaderboard.scores import judge_column, names_and_families
from spectral_irt.leaderboard.shortlist import ShortList
from spectral_irt.leaderboard.source import prompt_labels, read_source
from spectral_irt.pairs import Pairs
from spectral_irt.pairs.page import ask_next, effect_words
from spectral_irt.reading.formats import fetch_addresses
from spectral_irt.tables import write_csv, write_json
from spectral_irt.terminal import console, plain_table, say, show_findings
from spectral_irt.text import listed, printable, span

if TYPE_CHECKING:
    from spectral_irt.tables import Columns

SHOWN = 40  # models on a terminal
ASKED = 3  # pairs to ask about next that are named there


def rank_models(
    files: Sequence[str],
    logs: Logs,
    judges: Judges,
    mode: Mode,
    output: Path | None,
    report: Path | None,
    **reading: Any,
) -> None:
    """The leaderboard of these files; `reading` are further options of `Leaderboard.read`."""
    asked = judges.options_in_use()
    if "judge" not in asked and (column := judge_column(fetch_addresses(files))) is not None:
        asked["judge"] = column
    if "judge" in asked:
        rank_judged(files, logs, asked, mode, output, report, **reading)
        return
    if asked:
        raise OptionError(f"`{next(iter(asked))}` is about judges, and no column is called so; name it with `judge=`.")
    with Progress() as progress:
        board = Leaderboard.read(files, by=logs.subject, progress=progress.reading, **logs.how(), **reading)
        written = _written(board, progress, output, report, _inputs(files, logs))
    _end(mode, board, written, lambda: _show_board(board))


class Written(NamedTuple):
    """The files of a board, and what is odd about it."""

    files: list[Path]
    findings: list[Finding]


def _written(
    board: RankedBoard, progress: Progress, output: Path | None, report: Path | None, inputs: Sequence[str | Path]
) -> Written:
    """All of a board, computed before the line of progress goes."""
    board.tell = progress.say
    return Written(board.page.write(output, report, inputs=inputs), list(board.findings))


def _end(mode: Mode, board: RankedBoard, written: Written, show: Callable[[], None]) -> None:
    """The board on the terminal: who is first, what `show` has, findings, files; or as JSON."""

    def show_all() -> None:
        out = console()
        say(out, Text(board.page.headline()))
        say(out)
        show()
        if written.findings:
            say(out)
            show_findings(out, written.findings)
        say_written(written.files)

    def record() -> dict[str, Any]:
        return {**board.record(), "outputs": [path.name for path in written.files]}

    mode.end(show_all, record, written.findings)


def _show_ranked(board: RankedBoard, further: dict[str, list[Any]]) -> None:
    """The table of the best, `further` columns beside their ranks and abilities."""
    table = board.main_columns()
    digits = 0 if board.scale.name == ELO else 2
    ranks = zip(table["rank_low"].tolist(), table["rank_high"].tolist(), strict=True)
    cells = {
        "rank": [rank or "-" for rank in table["rank"].tolist()],
        "ability": [f"{x:z.{digits}f}" for x in table["ability"].tolist()],
        "se": ["-" if x == float("inf") else f"{x:.{digits}f}" for x in table["se"].tolist()],
        "ranks": [span(low, high) for low, high in ranks],
        "tier": table["tier"].tolist(),
    }
    _show_models(table, cells | further, board.noun)


def _say_how_to_read(noun: str) -> None:
    sentence = f"Rank intervals hold for all {noun}s at once (95%). No {noun} of a tier is significantly worse than"
    say(console(), Text(f"{sentence} its best."))


def rank_judged(
    files: Sequence[str],
    logs: Logs,
    asked: dict[str, Any],
    mode: Mode,
    output: Path | None,
    report: Path | None,
    **how: Any,
) -> None:
    """The leaderboard of scores that judges gave."""
    for name in ("cohort", "since", "against"):
        if name in how:
            raise OptionError(
                f"`{name}` is for right and wrong answers; leave it out, or say `threshold` without judges."
            )
    if logs.subject is not None or logs.prompts is not None:
        raise OptionError("subjects of prompts are for right and wrong answers; with judges leave out `subject`.")
    inputs = _inputs(files, logs)
    family = asked.pop("family", None)
    if family is not None:
        asked["families"] = names_and_families(family)
        inputs.append(family)
    with Progress() as progress:
        board = JudgedLeaderboard.read(
            files,
            metric=logs.metric,
            threshold=logs.threshold,
            duplicates=logs.duplicates,
            progress=progress.reading,
            **asked,
            **how,
        )
        written = _written(board, progress, output, report, inputs)
    _end(mode, board, written, lambda: _show_judged(board))


def _show_judged(board: JudgedLeaderboard) -> None:
    models = board.model_columns()
    further = {
        "fair score": [f"{x:.2f}" for x in models["fair_score"].tolist()],
        "mean": [f"{x:.2f}" for x in models["score"].tolist()],
    }
    _show_ranked(board, further)
    say(console())
    judges = board.judge_columns
    cells = {
        "severity": [f"{x:z.2f}" for x in judges["severity"].tolist()],
        "se": ["-" if x == float("inf") else f"{x:.2f}" for x in judges["se"].tolist()],
        "sensitivity": [f"{x:.2f}" for x in judges["sensitivity"].tolist()],
        "infit": [f"{x:.2f}" for x in judges["infit"].tolist()],
        "agreement": [f"{100 * x:.0f}%" for x in judges["agreement"].tolist()],
        "expected": [f"{100 * x:.0f}%" for x in judges["agreement_expected"].tolist()],
        "scores": [f"{x:,}" for x in judges["n"].tolist()],
    }
    _show_models(judges, cells, "judge")


def _inputs(files: Sequence[str], logs: Logs) -> list[str | Path]:
    """What is read, and may not be replaced; earlier results may well stand in a folder of logs."""
    local = [file for file in files if local_path(file) is not None]
    return [*(file.path for file in log_files(local)), *filter(None, [logs.prompts])]


def _show_board(board: Leaderboard) -> None:
    accuracy = [f"{100 * x:.1f}%" for x in board.model_columns()["accuracy"].tolist()]
    _show_ranked(board, {"accuracy": accuracy})
    say(console())
    _say_how_to_read(board.noun)


def race_models(
    files: Sequence[str],
    logs: Logs,
    mode: Mode,
    output: Path | None,
    report: Path | None,
    *,
    next_prompts: int,
    level: float,
    **reading: Any,
) -> None:
    """The race of the models in these files; `reading` are further options of `read_source`."""
    how = logs.how()
    prompts = how.pop("prompts")
    with Progress() as progress:
        labels = [] if prompts is None else prompt_labels(prompts)
        how["progress"] = progress.reading
        race = Race.read(files, level=level, next_prompts=next_prompts, all_prompts=labels, **how, **reading)
        written = race.write(output, report, inputs=_inputs(files, logs))
        findings = list(race.findings)

    def show() -> None:
        out = console()
        say(out, Text(race.headline))
        say(out)
        models = race.model_columns()
        left = ["" if after != after else f"{after:,.0f}" for after in models["out_after"].tolist()]
        cells = {
            "state": models["state"].tolist(),
            "prompts": [f"{x:,}" for x in models["n"].tolist()],
            "accuracy": [f"{100 * x:.1f}%" for x in models["accuracy"].tolist()],
            "out after": left,
            "beaten by": models["beaten_by"].tolist(),
        }
        _show_models(models, cells)
        runs = race.next_runs()
        if next_prompts:
            n_prompts = len(set(runs["prompt"].tolist()))
            say(out)
            if n_prompts:
                who = ", ".join(printable(name) for name in dict.fromkeys(runs["model"].tolist()))
                say(
                    out,
                    Text(f"Next: {n_prompts:,} prompts for {who}: {listed(dict.fromkeys(runs['prompt'].tolist()))}."),
                )
            elif race.inside.sum() > 1:
                say(out, Text("No prompt is left that the models in the race have not run; --prompts FILE names more."))
        if findings:
            say(out)
            show_findings(out, findings)
        say_written(written)

    mode.end(show, lambda: {**race.record(), "outputs": [path.name for path in written]}, findings)


def rank_contestants(files: Sequence[str], mode: Mode, output: Path | None, report: Path | None, **how: Any) -> None:
    """The board of these votes; `how` are options of `Pairs.read`."""
    with Progress() as progress:
        board = Pairs.read(files, progress=progress.reading, **how)
        inputs = [file for file in files if local_path(file) is not None]
        written = _written(board, progress, output, report, inputs)
    _end(mode, board, written, lambda: _show_contestants(board))


def _show_contestants(board: Pairs) -> None:
    out = console()
    table = board.contestant_columns()
    further = {"votes": [f"{x:,}" for x in table["n"].tolist()], "wins": [f"{x:,}" for x in table["wins"].tolist()]}
    if board.votes.has_ties:
        further["ties"] = [f"{x:,}" for x in table["ties"].tolist()]
    _show_ranked(board, further)
    say(out)
    for line in effect_words(board):
        say(out, Text(line))
    _say_how_to_read(board.noun)
    ask = ask_next(board)[:ASKED]
    if ask:
        named = "; ".join(f"{printable(a)} and {printable(b)}" for a, b in ask)
        say(out, Text(f"Ask next about {named}."))


def _show_models(columns: Columns, cells: dict[str, list[Any]], noun: str = "model") -> None:
    """A table of the first models."""
    out = console()
    names = columns[noun].tolist()
    texts = [[str(cell) for cell in column[:SHOWN]] for column in cells.values()]
    texts = [["-" if "nan" in text else text for text in column] for column in texts]
    say(out, plain_table([noun, *cells], [names[:SHOWN], *texts], out.width, whole=out.whole))
    if len(names) > SHOWN:
        say(out, Text(f"... and {len(names) - SHOWN:,} more."))


def choose_prompts(files: Sequence[str], logs: Logs, mode: Mode, *, size: int, output: Path | None, seed: int) -> None:
    """A short list of the prompts in these files."""
    targets = [] if output is None else [output / "shortlist.csv", output / SHORTLIST]
    with all_or_nothing(targets, inputs=_inputs(files, logs)) as drafts:
        with Progress() as progress:
            wanted = [logs.subject] if logs.subject else []
            source = read_source(files, wanted=wanted, progress=progress.reading, **logs.how())
            short_list = ShortList.choose(source, size, by=logs.subject, seed=seed, progress=progress.say)
        for draft, target in zip(drafts, targets, strict=True):
            with errors_with_target(target):
                if target.suffix == ".csv":
                    write_csv(draft, short_list.columns())
                else:
                    write_json(draft, short_list.record())

    def show() -> None:
        out = console()
        say(out, Text(short_list.sentence))
        if short_list.findings:
            show_findings(out, list(short_list.findings))
        if not targets:
            prompts = list(map(str, short_list.prompts[:20].tolist()))
            if len(short_list.prompts) > 20:
                prompts.append("...")
            say(out, Text(", ".join(prompts)))
        say_written(targets)

    mode.end(show, lambda: {**short_list.record(), "outputs": list(map(str, targets))}, short_list.findings)


def score_models(
    files: Sequence[str], reading: Reading, call: Call, path: Path, output: Path | None, mode: Mode
) -> None:
    """`score` with a short list: the predicted score of each model on the whole benchmark, with an interval."""
    if output is not None and output.suffix.lower() != ".csv":
        raise OptionError(f"{str(output)!r} does not end in .csv; scores on a short list are one table.")
    short_list = ShortList.load(path)
    with all_or_nothing([] if output is None else [output], inputs=[*files, path]) as drafts:
        with Progress() as progress:
            fetched = fetch_addresses(files)
            if find_logs(fetched) is not None:
                metric = [] if reading.response is None else [reading.response]
                answers = read_source(
                    fetched, metric=metric, threshold=reading.options_of_read().get("threshold")
                ).answers
            else:
                answers = reading.read(fetched, progress, call, known=True, ordered=False)
        columns = short_list.score_columns(answers)
        for draft in drafts:
            with errors_with_target(draft):
                write_csv(draft, columns)

    def show() -> None:
        ends = zip(columns["score_low"].tolist(), columns["score_high"].tolist(), strict=True)
        cells = {
            "answered": [f"{x:,}" for x in columns["n"].tolist()],
            "right": [f"{x:,}" for x in columns["right"].tolist()],
            "whole score": [f"{100 * x:.1f}%" for x in columns["score"].tolist()],
            "95% interval": [
                f"{100 * low:.1f}% to {100 * high:.1f}%" if low == low else "too few answers" for low, high in ends
            ],
        }
        _show_models(columns, cells)
        of_all = f"{len(short_list.prompts):,} of {short_list.predictor.n_all:,} prompts"
        sentence = f"Predicted from {of_all}. {short_list.sentence}"
        say(console(), Text(sentence))
        say_written([output])

    def record() -> dict[str, Any]:
        rows = pl.DataFrame({name: column.tolist() for name, column in columns.items()}).to_dicts()
        bank = {"folder": str(path.parent), "prompts": len(short_list.prompts)}
        return {"bank": bank, "models": rows, "outputs": [] if output is None else [str(output)]}

    mode.end(show, record, answers.notes)
