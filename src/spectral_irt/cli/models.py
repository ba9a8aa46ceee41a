"""`spectral-irt leaderboard`, `pairs` and `shortlist`: models ranked from logs, contestants from votes, and a few
prompts that stand for all.

Help reads this file, which declares the commands; what they need to do the work is loaded when they do it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spectral_irt.cli.options import output_at, own
from spectral_irt.cli.terminal import Mode
from spectral_irt.errors import OptionError

SHORTLIST = "shortlist.json"

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|DIR",
        show_default=False,
        help="Logs of lm-evaluation-harness, inspect_ai, HELM, lighteval or Every Eval Ever, or folders of them; or a "
        "table with the columns model, item and response.",
    ),
]


def _anchor(text: str | None) -> dict[str, float] | None:
    """NAME=NUMBER as a mapping."""
    if text is None:
        return None
    name, equals, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not equals or not name or number != number:
        raise OptionError(f"`anchor` is NAME=NUMBER, as in --anchor gpt-4=1000, not {text!r}.")
    return {name: number}


@dataclass(frozen=True)
class Shown:
    """The scale of abilities."""

    scale: Literal["logit", "elo"] = own(
        "", "Scale of abilities: logits with mean 0 (default), or Elo points with mean 1000.", default="logit"
    )
    anchor: dict[str, float] | None = own(
        "NAME=NUMBER", "Value of one model or contestant on that scale, instead of the mean.", parse=_anchor
    )


@dataclass(frozen=True)
class Judges:
    """Who scored the answers."""

    judge: str | None = own(
        "COLUMN", "Column with the judge of each score (recognized if it is called judge); of logs, say scorer."
    )
    criterion: str | None = own("COLUMN", "Column with the criterion of each score (recognized if it is called so).")
    human: str | None = own("NAMES", "Judges who are people: severities are against them (default: human...).")
    family: str | None = own("FILE", "Table with columns name and family, of models and judges (default: by name).")

    def options_in_use(self) -> dict[str, Any]:
        """The options of `read_scores` that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Logs:
    """How logs are read."""

    subject: str | None = own("FIELD", "Field with the subject of each prompt (default: the benchmark).")
    metric: list[str] = own(
        "NAME", "Metric to score by; repeat to give alternatives, tried in order for each benchmark.", default=[]
    )
    threshold: float | None = own("NUMBER", "Scores above this number are right (default: scores are 0 or 1).")
    duplicates: Literal["error", "first", "last"] = own(
        "", "If a prompt is in two logs: an error (default), or take the first or last by file name.", default="error"
    )
    prompts: str | None = own("FILE", "Table with a row for each prompt, whose columns are fields of the prompts.")

    def how(self) -> dict[str, Any]:
        """Options of `read_source`."""
        return {name: value for name, value in asdict(self).items() if name != "subject"}


def leaderboard(
    files: Files,
    logs: Logs,
    mode: Mode,
    shown: Shown,
    judges: Judges,
    output: Path | None = output_at(
        "DIR|FILE.html", "Write tables, leaderboard.md, leaderboard.json and ranks.svg; or the page."
    ),
    report: Path | None = own("FILE.html", "Write one HTML page."),
    clustered_by: str | None = own(
        "FIELD", "Standard errors allow for dependence among prompts that share this field (passage, subject)."
    ),
    person: str | None = own("COLUMN", "Tables: column with the model."),
    item: str | None = own("COLUMN", "Tables: column with the prompt."),
    response: str | None = own("COLUMN", "Tables: the score."),
    cohort: str | None = own(
        "FIELD", "Two sets of prompts, or dates to cut with --since: each model's own change on the new ones."
    ),
    since: str | None = own("DATE", "Prompts are new from this date (2026-05-01) or number on."),
    against: Path | None = own("DIR", "Results of an older leaderboard: which models rose or fell."),
    seed: int = own("NUMBER", "Random seed of the rank intervals (default 0).", min=0, default=0),
) -> None:
    """Rank models: abilities with standard errors, simultaneous rank intervals, and tiers of statistically tied models.

    Models are compared on the prompts they share. Repeated runs of a prompt (epochs, trials) count as separate
    responses, and standard errors allow for them. Where several judges scored each answer, a column of judges (or
    --judge) makes it a board of judged models: fair scores, severity and sensitivity of judges, self-preference.

    \b
    Examples
      spectral-irt leaderboard results/ -o board
      spectral-irt leaderboard runs/ --metric exact_match,strict-match --metric acc
      spectral-irt leaderboard *.eval --clustered-by subject --report board.html
      spectral-irt leaderboard answers.csv --person model --response correct
      spectral-irt leaderboard runs/ --cohort released --since 2026-05-01
      spectral-irt leaderboard scores.csv --judge judge --human annotator
      spectral-irt leaderboard *.eval --judge scorer -o board
    """
    from spectral_irt.cli.boards import rank_models

    columns = {"person": person, "item": item, "response": response}
    columns = {name: value for name, value in columns.items() if value is not None}
    how = {"clustered_by": clustered_by, "seed": seed, **asdict(shown), **columns}
    of_prompts = {"cohort": cohort, "since": since, "against": against}
    how |= {name: value for name, value in of_prompts.items() if value is not None}
    rank_models(files, logs, judges, mode, output, report, **how)


def race(
    files: Files,
    logs: Logs,
    mode: Mode,
    next_prompts: int = own(
        "NUMBER", "Name so many prompts for the models that are left to run on (default 0).", "--next", min=0, default=0
    ),
    level: float = own("NUMBER", "Chance that a model is ever left out wrongly (default 0.05).", default=0.05),
    output: Path | None = output_at(
        "DIR|FILE.html", "Write race.csv, next.csv, race.json and course.svg; or the page."
    ),
    report: Path | None = own("FILE.html", "Write one HTML page with the course of the race."),
    person: str | None = own("COLUMN", "Tables: column with the model."),
    item: str | None = own("COLUMN", "Tables: column with the prompt."),
    response: str | None = own("COLUMN", "Tables: the score."),
) -> None:
    """Which models can still be the best, whom to run on the next prompts, and when to stop.

    Valid however often one looks. Run all models on the first prompts, those that are left on the next ones, and so on,
    until one is left or more prompts would not tell them apart.

    \b
    Examples
      spectral-irt race logs/ --next 50
      spectral-irt race logs/ --next 50 --prompts prompts.csv -o race
    """
    from spectral_irt.cli.boards import race_models

    if logs.subject is not None:
        raise OptionError("a race has no subjects; leave out `subject`.")
    columns = {"person": person, "item": item, "response": response}
    columns = {name: value for name, value in columns.items() if value is not None}
    race_models(files, logs, mode, output, report, next_prompts=next_prompts, level=level, **columns)


def pairs(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", show_default=False, help="Tables with a row for each vote about two contestants."
        ),
    ],
    shown: Shown,
    mode: Mode,
    output: Path | None = output_at("DIR|FILE.html", "Write tables, pairs.json and ranks.svg; or the page."),
    report: Path | None = own("FILE.html", "Write one HTML page."),
    contestants: str | None = own(
        "A,B", "Columns with the two contestants (default: model_a,model_b or the like, recognized)."
    ),
    winner: str | None = own(
        "COLUMN", "Column with the winner: a name, first or second, model_a or model_b, 1 or 2, tie, draw, both_bad."
    ),
    position: bool = own("", "Estimate the advantage of standing first.", default=False),
    covariate: list[str] = own(
        "COLUMN", "Numbers: by how much the first has more of something, such as length; may be repeated.", default=[]
    ),
    judge: str | None = own("COLUMN", "Column with the judge of each vote (recognized if it is called judge)."),
    clustered_by: str | None = own(
        "COLUMN", "Standard errors allow for dependence among votes of one voter or prompt."
    ),
    count: str | None = own("COLUMN", "Column with the number of votes that a row stands for."),
    seed: int = own("NUMBER", "Random seed of the rank intervals (default 0).", min=0, default=0),
) -> None:
    """Rank contestants from votes about two at a time: Bradley-Terry with ties, position and covariates.

    Abilities with standard errors, simultaneous rank intervals and tiers; how judges agree, votes that go round, and
    which pairs to ask about next.

    \b
    Examples
      spectral-irt pairs votes.csv -o arena
      spectral-irt pairs votes.csv --covariate length_diff --clustered-by voter
      spectral-irt pairs games.csv --contestants white,black --winner result
      spectral-irt pairs totals.csv --count n --anchor gpt-4=1000 --scale elo
    """
    from spectral_irt.cli.boards import rank_contestants

    rank_contestants(
        files,
        mode,
        output,
        report,
        contestants=contestants,
        winner=winner,
        position=position,
        covariates=covariate,
        judge=judge,
        clustered_by=clustered_by,
        count=count,
        scale=shown.scale,
        anchor=shown.anchor,
        seed=seed,
    )


def shortlist(
    files: Files,
    logs: Logs,
    mode: Mode,
    size: int = own("NUMBER", "Number of prompts (default 100).", min=2, default=100),
    output: Path | None = output_at(
        "DIR", "Write shortlist.csv and shortlist.json, used by score to predict the full-benchmark score."
    ),
    seed: int = own("NUMBER", "Random seed (default 0).", min=0, default=0),
) -> None:
    """Choose a short list of prompts, and report how well it predicts the score on all of them.

    The prediction is checked by leaving out models in turn, beside a random list of the same size. Given the list,
    score predicts the full-benchmark score of a new model, with an interval.

    \b
    Examples
      spectral-irt shortlist results/ --size 100 -o short
      spectral-irt score new_model/ --bank short
    """
    from spectral_irt.cli.boards import choose_prompts

    choose_prompts(files, logs, mode, size=size, output=output, seed=seed)
