"""The judged leaderboard as files: tables, JSON, the plot of ranks, and one HTML page in the look of the report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spectral_irt import __version__
from spectral_irt.analysis.folder import finding_record, record_head
from spectral_irt.leaderboard.output import COMMAND, RECORD, Contents, write_results
from spectral_irt.leaderboard.page import PAIRS, RankPlot, page_table, scaled_columns
from spectral_irt.report.blocks import Column, DataTable, Lines, Section, Text, picture
from spectral_irt.report.overview import finding_blocks
from spectral_irt.report.page import rendered
from spectral_irt.tables import Columns
from spectral_irt.text import count, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.leaderboard.judges import JudgedLeaderboard

MODELS = [Column("model", "model"), Column("rank", "rank", 0), Column("ability", "ability", 2), Column("se", "se", 3)]
MODELS += [Column("rank_low", "ranks from", 0), Column("rank_high", "to", 0), Column("tier", "tier", 0)]
MODELS += [Column("fair_score", "fair score", 2), Column("fair_low", "fair score from", 2, closed=True)]
MODELS += [Column("fair_high", "fair score to", 2, closed=True)]
MODELS += [Column("score", "mean score", 2), Column("n", "scores", 0)]
MODELS += [Column("ci_low", "ability from", 2, closed=True), Column("ci_high", "ability to", 2, closed=True)]
MODELS += [Column("status", "status", closed=True)]
LEVELS = [Column("severity", "severity", 2), Column("se", "se", 3), Column("n", "scores", 0)]
LEVELS += [Column("score", "mean score", 2), Column("infit", "infit", 2), Column("outfit", "outfit", 2, closed=True)]
LEVELS += [Column("sensitivity", "sensitivity", 2), Column("p_holm", "p", 4, p=True)]
OF_JUDGES = [Column("agreement", "agreement", 3), Column("agreement_expected", "expected", 3)]
OF_JUDGES += [Column("missing", "missing", 0, closed=True), Column("status", "status", closed=True)]
WITHOUT = [Column("without", "without"), Column("model", "model"), Column("rank", "rank", 0)]
WITHOUT += [Column("rank_change", "change", 0), Column("ability", "ability", 2)]
CONTRASTS = [Column("model", "model"), Column("other", "other model"), Column("difference", "difference", 2)]
CONTRASTS += [Column("se", "se", 2), Column("p_adjusted", "p", 4, p=True)]


def headline(board: JudgedLeaderboard) -> str:
    """Who is first, by how many scores of how many judges."""
    models = board.model_columns()
    n = board.answers
    best = models["model"][0]
    n_first = int(np.sum(models["tier"] == 1))
    lead = f"{n_first:,} models share the first tier: none of them is significantly worse than {best}"
    if n_first == 1:
        lead = f"{best} is first, significantly ahead of all others"
    counts = [count(len(models["model"]), "model"), count(len(board.judges_found), "judge")]
    counts += [count(n.n_persons, "prompt"), count(n.n_responses, "score")]
    return f"{', '.join(counts)}. {lead}. {count(int(models['tier'].max()), 'tier')}."


def how_to_read(board: JudgedLeaderboard) -> list[str]:
    """The columns in words."""
    over = "prompts"
    if board.scores.cluster is not None:
        over = f"clusters of prompts ({board.scores.cluster_word})"
    under = "the average judge"
    if board.scores.humans:
        under = "people"
    return [
        f"Ability is in {board.scale.words}; its errors are over the sampling of {over}: how models would do on "
        "prompts like these. Ranks hold for all models at once in at least 95% of boards.",
        f"Fair score: the mean score that a model would have on all of these prompts under {under}, whoever scored "
        "its answers, and without what judges add for their own family. Mean score: of the scores that it has.",
    ]


def judges_words(board: JudgedLeaderboard) -> list[str]:
    """Severity and the rest in words, and self-preference."""
    zero = "Severities of judges have mean 0"
    if board.scores.humans:
        zero = f"Severities are against people ({', '.join(board.scores.humans)}: 0)"
    said = [
        f"{zero}, in logits; a severe judge gives lower scores to the same answers. Infit and outfit are 1 where "
        "scores scatter as the model has it; sensitivity is tested against 1: below, a judge tells answers apart less "
        "than all together. Agreement: how often another judge gave an answer the same score, and what the model "
        "expects."
    ]
    found = board.self_preference
    if found is not None:
        said.append(
            f"Self-preference: {found.estimate:+.2f} logits for models of the judge's family, 95% from "
            f"{found.low:+.2f} to {found.high:+.2f}."
        )
    return said


def sections(board: JudgedLeaderboard) -> list[Section]:
    """Models, ranks, findings, judges, criteria, pairs."""
    models = board.model_columns()
    caption = f"Models from the best down; ability in {board.scale.words}"
    table = DataTable("models", caption, scaled_columns(MODELS, board.scale), models, filters=("tier",), noun="models")
    alt = (
        f"Ranks of the models with intervals. First: {short(models['model'][0], 40)}, ranks {models['rank_low'][0]} to "
        f"{models['rank_high'][0]}. The table of models has the numbers."
    )
    found = [Section((Text(headline(board)), table, Lines(tuple(how_to_read(board)))), (), "Models", "models")]
    found.append(Section((picture(board.plot, alt),), (), "How sure the ranks are", "ranks"))
    records = [finding_record(one) for one in board.findings]
    of_judges = ("self_preference", "judge_sensitivity", "judge_decides", "scores_missing")
    blocks = finding_blocks(records, lambda code: "judges" if code in of_judges else "models")
    found.append(Section(blocks, (), "Findings", "findings"))
    columns = [Column("judge", "judge"), *LEVELS, *OF_JUDGES]
    judges = page_table("judges", "Judges", columns, board.judge_columns, PAIRS)
    blocks = (Lines(tuple(judges_words(board))), *judges)
    if len(board.without_columns["rank"]):
        words = "The board without each judge: the rank of every model, and by how many places it changes."
        blocks += (Text(words), *page_table("without", "Without each judge", WITHOUT, board.without_columns, PAIRS))
    found.append(Section(blocks, (), "Judges", "judges"))
    if board.criterion_columns is not None:
        columns = [Column("criterion", "criterion"), *LEVELS]
        criteria = page_table("criteria", "Criteria, the most severe first", columns, board.criterion_columns, PAIRS)
        found.append(Section(criteria, (), "Criteria", "criteria"))
    pairs = page_table("contrasts", "Pairs of models, the better first", CONTRASTS, board.contrast_columns(), PAIRS)
    found.append(Section(pairs, (), "Pairs of models", "pairs"))
    return found


def page(board: JudgedLeaderboard) -> str:
    """The page as HTML."""
    return rendered(f"Leaderboard: {board.answers.source}", sections(board), __version__)


def rank_plot(board: JudgedLeaderboard) -> RankPlot:
    """The models with the intervals of their ranks, and their fair scores beside them."""
    table = board.model_columns()
    labels = np.array([f"{score:.2f}" for score in table["fair_score"].tolist()], dtype=object)
    return RankPlot(table={**table, "fair score": labels}, beside="fair score", frame_kind=board.answers.frame_kind)


def tables_of(board: JudgedLeaderboard) -> dict[str, Columns]:
    """The tables that are written, by the names of their files."""
    tables = {"models": board.model_columns(), "judges": board.judge_columns, "contrasts": board.contrast_columns()}
    if len(board.without_columns["rank"]):
        tables["without"] = board.without_columns
    if board.criterion_columns is not None:
        tables["criteria"] = board.criterion_columns
    return tables


def record(board: JudgedLeaderboard) -> dict[str, Any]:
    """What was compared, how, and what came of it."""
    rows = {}
    for name, table in (("models", board.model_columns()), ("judges", board.judge_columns)):
        rows[name] = [
            dict(zip(table, row, strict=True)) for row in zip(*(v.tolist() for v in table.values()), strict=True)
        ]
    scores = board.scores
    found = board.self_preference
    return {
        **record_head(),
        "command": COMMAND,
        "outputs": [],
        "input": {
            "source": board.answers.source,
            "clustered_by": scores.cluster_word if scores.cluster is not None else None,
            "humans": list(scores.humans),
            "families": dict(scores.families),
            "seed": board.seed,
        },
        "counts": {
            "models": len(board.models_found),
            "judges": len(board.judges_found),
            "prompts": board.answers.n_persons,
            "scores": board.answers.n_responses,
            "missing": sum(scores.missing.values()),
            "tiers": int(board.model_columns()["tier"].max()),
        },
        "data_digest": board.answers.digest(),
        "se_method": board._result.se_method,
        "scale": board.scale.words,
        **rows,
        "self_preference": None if found is None else found._asdict(),
        "findings": [finding_record(finding) for finding in board.findings],
    }


def write_judged(
    board: JudgedLeaderboard, folder: Path | None, report: Path | None = None, *, inputs: Iterable[str | Path] = ()
) -> list[Path]:
    """All files in a folder, and the page: everything or nothing."""

    def contents() -> Contents:
        figure = cast("Figure", board.plot.plot().figure)
        return Contents(tables_of(board), RECORD, record(board), {}, figure)

    return write_results(contents, lambda: page(board), folder, report, inputs=inputs)
