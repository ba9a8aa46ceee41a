"""The leaderboard as files and as one HTML page: models, ranks, findings, cohorts, pairs, subjects, prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.leaderboard.findings import how_to_read, markdown
from spectral_irt.leaderboard.prompts import ABOUT_PROMPTS
from spectral_irt.leaderboard.ranked_page import (
    INTERVAL,
    PAIRS,
    PROMPTS,
    RANKED,
    STATUS,
    SUBJECTS,
    RankedPage,
    page_table,
)
from spectral_irt.report.blocks import Column, Section, Text
from spectral_irt.tables import Columns, rows_of

if TYPE_CHECKING:
    from spectral_irt.leaderboard.board import Leaderboard

TEXT = "leaderboard.md"
MODELS = [Column("model", "model"), *RANKED, Column("accuracy", "accuracy", 3), Column("n", "prompts", 0)]
MODELS += [*INTERVAL, *STATUS]
CONTRASTS = [Column("model", "model"), Column("other", "other model"), Column("difference", "difference", 2)]
CONTRASTS += [Column("se", "se", 2), Column("p_adjusted", "p", 4, p=True)]
CONTRASTS += [Column("model_only", "wins", 0), Column("other_only", "losses", 0)]
CONTRASTS += [Column("mcnemar_p_holm", "McNemar p", 4, p=True), Column("more_prompts", "more prompts", 0)]
OF_PROMPTS = [Column("prompt", "prompt"), Column("right", "models right", 0), Column("n", "of", 0)]
OF_PROMPTS += [Column("difficulty", "difficulty", 2), Column("slope", "slope", 2)]
OF_PROMPTS += [Column("slope_se", "se of slope", 2), Column("flag", "flag")]
OF_SUBJECTS = [Column("subject", "subject"), Column("model", "model"), Column("n", "prompts", 0)]
OF_SUBJECTS += [Column("accuracy", "accuracy", 3), Column("ability", "ability", 2)]
OF_SUBJECTS += [Column("se", "se", 2), Column("rank", "rank", 0)]
COHORTS = [Column("model", "model"), Column("n_old", "old prompts", 0), Column("n_new", "new", 0)]
COHORTS += [Column("accuracy_old", "accuracy, old", 3), Column("accuracy_new", "new", 3)]
COHORTS += [Column("change", "change", 2), Column("se", "se", 2), Column("p_holm", "p", 4, p=True)]
AGAINST = [Column("model", "model"), Column("rank_low_before", "ranks then, from", 0)]
AGAINST += [Column("rank_high_before", "to", 0)]
AGAINST += [Column("rank_low", "now, from", 0), Column("rank_high", "to", 0)]
AGAINST += [Column("ability_before", "ability then", 2), Column("ability", "now", 2), Column("moved", "moved")]


class LeaderboardPage(RankedPage["Leaderboard"]):
    """Models from right and wrong answers."""

    columns = MODELS
    findings_elsewhere = ("prompts", ABOUT_PROMPTS)

    @property
    def source(self) -> str:
        return self.board.answers.source

    def counts(self) -> str:
        n = self.board.answers
        return f"{n.n_persons:,} models, {n.n_items:,} prompts, {n.n_responses:,} answers"

    def headline(self) -> str:
        """Who is first, and what it was scored by."""
        metrics = self.board.source.metrics
        scored_by = f" Scored by {', '.join(metrics)}." if metrics else ""
        return super().headline() + scored_by

    def how_to_read(self) -> list[str]:
        return how_to_read(self.board)

    def beside(self) -> tuple[str, NDArray[Any]]:
        return "accuracy", self.board.main_columns()["accuracy"]

    def more_sections(self) -> Iterator[Section]:
        board = self.board
        if board.cohorts is not None and board.cohort_columns is not None:
            words = (
                f"Each model's change on prompts {board.cohorts.new} beside models of the same ability: how much "
                "harder these prompts are for all is taken off. Below zero, the model does worse on them than expected "
                "(p by Holm). This is a difference, not its cause."
            )
            table = page_table("cohorts", "Models on old and new prompts", COHORTS, board.cohort_columns, PAIRS)
            yield Section((Text(words), *table), (), "Old and new prompts", "cohorts")
        if board.against_columns is not None:
            words = (
                "Rank intervals among the models of both boards; both hold for all models at once in 95%. A model rose "
                "or fell where its two intervals do not overlap."
            )
            table = page_table(
                "against", "Models of both boards, the best first", AGAINST, board.against_columns, PAIRS
            )
            yield Section((Text(words), *table), (), "Then and now", "against")
        yield _pairs(board)
        if board.subject_columns is not None:
            caption = f"Models by {board.subject_word}"
            table = page_table("subjects", caption, OF_SUBJECTS, board.subject_columns, SUBJECTS)
            yield Section(table, (), f"By {board.subject_word}", "subjects")
        yield _prompts(board)

    def tables(self) -> dict[str, Columns]:
        board = self.board
        tables = {
            "models": board.model_columns(),
            "contrasts": board.contrast_columns(),
            "prompts": board.prompt_columns,
            "subjects": board.subject_columns,
            "cohorts": board.cohort_columns,
            "against": board.against_columns,
        }
        return {name: columns for name, columns in tables.items() if columns is not None}

    def texts(self) -> dict[str, str]:
        return {TEXT: markdown(self.board)}

    def contents(self) -> dict[str, Any]:
        board = self.board
        answers = board.answers
        slopes = board.slopes
        share_below_zero = None
        if np.isfinite(slopes.slope).any():
            share_below_zero = float(np.nanmean(slopes.slope < 0))
        return {
            "input": {
                "source": answers.source,
                "metrics": list(board.source.metrics),
                "clustered_by": None if board._clusters is None else board.cluster_word,
                "by": None if board._subjects is None else board.subject_word,
                "cohorts": None if board.cohorts is None else [board.cohorts.old, board.cohorts.new],
                "repeated_prompts": board.source.repeated,
                "seed": board.seed,
            },
            "counts": {
                "models": answers.n_persons,
                "prompts": answers.n_items,
                "answers": answers.n_responses,
                "tiers": int(board.tier.max()),
            },
            "data_digest": answers.digest(),
            "scale": board.scale.words,
            "se_method": board.calibration.provenance.se_method,
            "models": rows_of(board.model_columns()),
            "mcnemar": board.contrasts_found.disagreements()._asdict(),
            "slopes": {
                "chi2": slopes.chi2,
                "df": slopes.df,
                "p": slopes.p,
                "spread": slopes.spread,
                "share_below_zero": share_below_zero,
                "surely_below_zero": int(slopes.negative.sum()),
                "sentence": slopes.sentence,
            },
            "families": [[answers.persons[k] for k in group] for group in board.families],
        }


def _pairs(board: Leaderboard) -> Section:
    said = (
        "Every two models on the prompts both answered. The difference in ability has p adjusted for all pairs (the "
        "largest error among those not yet told apart); McNemar's exact test of accuracies, adjusted by Holm, stands "
        f"beside it. They disagree in {sum(board.contrasts_found.disagreements()):,} pairs. The last column says how "
        "many more prompts of this kind would show a difference of this size with a chance of 80%."
    )
    table = page_table("contrasts", "Pairs of models, the better first", CONTRASTS, board.contrast_columns(), PAIRS)
    return Section((Text(said), *table), (), "Pairs of models", "pairs")


def _prompts(board: Leaderboard) -> Section:
    columns = board.prompt_columns
    # What is odd comes first, then the flattest.
    slope = np.where(np.isfinite(columns["slope"]), columns["slope"], np.inf)
    order = np.lexsort((slope, columns["flag"] != "better models fail"))
    values = {name: column[order] for name, column in columns.items()}
    caption = "Prompts, the most suspicious first"
    table = page_table("prompts", caption, OF_PROMPTS, values, PROMPTS, ("flag",))
    return Section((Text(board.slopes.sentence), *table), (), "Prompts", "prompts")
