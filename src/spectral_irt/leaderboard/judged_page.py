"""The judged leaderboard as files and as one HTML page: models, ranks, findings, judges, criteria, pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.leaderboard.ranked import tiers_in_words
from spectral_irt.leaderboard.ranked_page import PAIRS, RANKED, STATUS, RankedPage, page_table
from spectral_irt.report.blocks import Column, Lines, Section, Text
from spectral_irt.tables import Columns, rows_of
from spectral_irt.text import count

if TYPE_CHECKING:
    from spectral_irt.leaderboard.judges import JudgedLeaderboard

MODELS = [Column("model", "model"), *RANKED]
MODELS += [Column("fair_score", "fair score", 2), Column("fair_low", "fair score from", 2, closed=True)]
MODELS += [Column("fair_high", "fair score to", 2, closed=True)]
MODELS += [Column("score", "mean score", 2), Column("n", "scores", 0)]
MODELS += [Column("ci_low", "ability from", 2, closed=True), Column("ci_high", "ability to", 2, closed=True)]
MODELS += STATUS
LEVELS = [Column("severity", "severity", 2), Column("se", "se", 3), Column("n", "scores", 0)]
LEVELS += [Column("score", "mean score", 2), Column("infit", "infit", 2), Column("outfit", "outfit", 2, closed=True)]
LEVELS += [Column("sensitivity", "sensitivity", 2), Column("p_holm", "p", 4, p=True)]
OF_JUDGES = [Column("agreement", "agreement", 3), Column("agreement_expected", "expected", 3)]
OF_JUDGES += [Column("missing", "missing", 0, closed=True), Column("status", "status", closed=True)]
WITHOUT = [Column("without", "without"), Column("model", "model"), Column("rank", "rank", 0)]
WITHOUT += [Column("rank_change", "change", 0), Column("ability", "ability", 2)]
CONTRASTS = [Column("model", "model"), Column("other", "other model"), Column("difference", "difference", 2)]
CONTRASTS += [Column("se", "se", 2), Column("p_adjusted", "p", 4, p=True)]


class JudgedPage(RankedPage["JudgedLeaderboard"]):
    """Models from the scores of judges."""

    columns = MODELS
    findings_elsewhere = ("judges", ("self_preference", "judge_sensitivity", "judge_decides", "scores_missing"))

    @property
    def source(self) -> str:
        return self.board.answers.source

    def counts(self) -> str:
        board = self.board
        n = board.answers
        models_and_judges = f"{count(len(board.labels), 'model')}, {count(len(board.judges_found), 'judge')}"
        return f"{models_and_judges}, {count(n.n_persons, 'prompt')}, {count(n.n_responses, 'score')}"

    def how_to_read(self) -> list[str]:
        board = self.board
        over = "prompts"
        if board.scores.cluster is not None:
            over = f"clusters of prompts ({board.scores.cluster_word})"
        under = "the average judge"
        if board.scores.humans:
            under = "people"
        return [
            f"Ability is in {board.scale.words}; its errors are over the sampling of {over}: how models would do on "
            "prompts like these. Ranks hold for all models at once in at least 95% of boards.",
            tiers_in_words(board.noun),
            f"Fair score: the mean score that a model would have on all of these prompts under {under}, whoever scored "
            "its answers, and without what judges add for their own family. Mean score: of the scores that it has.",
        ]

    def beside(self) -> tuple[str, NDArray[Any]]:
        scores = self.board.main_columns()["fair_score"]
        return "fair score", np.array([f"{score:.2f}" for score in scores.tolist()], dtype=object)

    def more_sections(self) -> Iterator[Section]:
        board = self.board
        columns = [Column("judge", "judge"), *LEVELS, *OF_JUDGES]
        judges = page_table("judges", "Judges", columns, board.judge_columns, PAIRS)
        blocks = (Lines(tuple(judges_words(board))), *judges)
        without = board.without_columns
        if len(without["rank"]):
            words = "The board without each judge: the rank of every model, and by how many places it changes."
            largest_first = np.argsort(-np.abs(without["rank_change"]), kind="stable")
            rows = {name: values[largest_first] for name, values in without.items()}
            caption = "Without each judge, the largest changes first"
            blocks += (Text(words), *page_table("without", caption, WITHOUT, rows, PAIRS))
        yield Section(blocks, (), "Judges", "judges")
        if board.criterion_columns is not None:
            columns = [Column("criterion", "criterion"), *LEVELS]
            caption = "Criteria, the most severe first"
            yield Section(
                page_table("criteria", caption, columns, board.criterion_columns, PAIRS), (), "Criteria", "criteria"
            )
        caption = "Pairs of models, the better first"
        pairs = page_table("contrasts", caption, CONTRASTS, board.contrast_columns(), PAIRS)
        yield Section(pairs, (), "Pairs of models", "pairs")

    def tables(self) -> dict[str, Columns]:
        board = self.board
        tables = {"models": board.model_columns(), "judges": board.judge_columns, "contrasts": board.contrast_columns()}
        if len(board.without_columns["rank"]):
            tables["without"] = board.without_columns
        if board.criterion_columns is not None:
            tables["criteria"] = board.criterion_columns
        return tables

    def contents(self) -> dict[str, Any]:
        board = self.board
        scores = board.scores
        found = board.self_preference
        return {
            "input": {
                "source": board.answers.source,
                "clustered_by": scores.cluster_word if scores.cluster is not None else None,
                "humans": list(scores.humans),
                "families": dict(scores.families),
                "seed": board.seed,
            },
            "counts": {
                "models": len(board.labels),
                "judges": len(board.judges_found),
                "prompts": board.answers.n_persons,
                "scores": board.answers.n_responses,
                "missing": sum(scores.missing.values()),
                "tiers": int(board.tier.max()),
            },
            "data_digest": board.answers.digest(),
            "se_method": board._result.se_method,
            "scale": board.scale.words,
            "models": rows_of(board.model_columns()),
            "judges": rows_of(board.judge_columns),
            "self_preference": None if found is None else found._asdict(),
        }


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
