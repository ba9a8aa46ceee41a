"""The models with the intervals of their ranks; the leaderboard as one HTML page, in the look of the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt import __version__
from spectral_irt.analysis.folder import finding_record
from spectral_irt.leaderboard.findings import headline_text, how_to_read
from spectral_irt.leaderboard.prompts import ABOUT_PROMPTS
from spectral_irt.leaderboard.scale import ELO, BoardScale
from spectral_irt.plots.base import Display
from spectral_irt.plots.items import rank_rows
from spectral_irt.plots.style import GRAY, INK, dress, note, rows_height, whole_ticks
from spectral_irt.report.blocks import MOST, Column, DataTable, Lines, Section, Text, picture
from spectral_irt.report.overview import finding_blocks
from spectral_irt.report.page import rendered
from spectral_irt.tables import Columns
from spectral_irt.text import percent, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spectral_irt.leaderboard.board import Leaderboard

MODELS_DRAWN = 60
# rows in the page; the files have all
PAIRS = 5_000
PROMPTS = 10_000
SUBJECTS = 5_000

MODELS = [Column("model", "model"), Column("rank", "rank", 0), Column("ability", "ability", 2), Column("se", "se", 3)]
MODELS += [Column("rank_low", "ranks from", 0), Column("rank_high", "to", 0), Column("tier", "tier", 0)]
MODELS += [Column("accuracy", "accuracy", 3), Column("n", "prompts", 0)]
MODELS += [Column("ci_low", "95% from", 2, closed=True), Column("ci_high", "95% to", 2, closed=True)]
MODELS += [Column("status", "status", closed=True)]
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


def page(board: Leaderboard) -> str:
    """The page as HTML."""
    return rendered(f"Leaderboard: {board.answers.source}", sections(board), __version__)


def sections(board: Leaderboard) -> list[Section]:
    """Models, ranks, findings, pairs, subjects, prompts."""
    found = [_models(board), _ranks(board), _findings(board), _pairs(board)]
    subjects = board.subject_columns
    if subjects is not None:
        table = page_table("subjects", f"Models by {board.subject_word}", OF_SUBJECTS, subjects, SUBJECTS)
        found.append(Section(table, (), f"By {board.subject_word}", "subjects"))
    if board.cohorts is not None and board.cohort_columns is not None:
        words = (
            f"Each model's change on prompts {board.cohorts.new} beside models of the same ability: how much harder "
            "these prompts are for all is taken off. Below zero, the model does worse on them than expected (p by "
            "Holm). This is a difference, not its cause."
        )
        table = page_table("cohorts", "Models on old and new prompts", COHORTS, board.cohort_columns, PAIRS)
        found.append(Section((Text(words), *table), (), "Old and new prompts", "cohorts"))
    if board.against_columns is not None:
        words = "Rank intervals among the models of both boards; both hold for all models at once in 95%."
        table = page_table("against", "Then and now", AGAINST, board.against_columns, PAIRS)
        found.append(Section((Text(words), *table), (), "Then and now", "against"))
    return [*found, _prompts(board)]


def _models(board: Leaderboard) -> Section:
    caption = f"Models from the best down; ability in {board.scale.words}"
    columns = scaled_columns(MODELS, board.scale)
    table = DataTable("models", caption, columns, board.model_columns(), filters=("tier",), noun="models")
    lines = Lines(tuple(line.replace("`", "") for line in how_to_read(board)))
    return Section((Text(headline_text(board)), table, lines), (), "Models", "models")


def _ranks(board: Leaderboard) -> Section:
    models = board.model_columns()
    spans = models["rank_high"] - models["rank_low"] + 1
    alt = (
        f"Ranks of the models with intervals. First: {short(models['model'][0], 40)}, ranks {models['rank_low'][0]} to "
        f"{models['rank_high'][0]}. An interval has {np.median(spans):.0f} ranks in the middle of all. The table of "
        "models has the numbers."
    )
    return Section((picture(board.plot, alt),), (), "How sure the ranks are", "ranks")


def _findings(board: Leaderboard) -> Section:
    found = [finding_record(one) for one in board.findings]
    blocks = finding_blocks(found, lambda code: "prompts" if code in ABOUT_PROMPTS else "models")
    return Section(blocks, (), "Findings", "findings")


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


def scaled_columns(columns: list[Column], scale: BoardScale) -> tuple[Column, ...]:
    """The columns with as many digits of abilities as the scale needs."""
    if scale.name != ELO:
        return tuple(columns)
    of_scale = ("ability", "se", "ci_low", "ci_high")
    return tuple(replace(column, digits=0) if column.name in of_scale else column for column in columns)


def page_table(
    name: str, caption: str, columns: list[Column], values: Columns, most: int, filters: tuple[str, ...] = ()
) -> tuple[Any, ...]:
    """A table of the first rows, and a word where there are more."""
    rows = len(next(iter(values.values())))
    most = min(most, MOST)
    first = {key: column[:most] for key, column in values.items()}
    table = DataTable(name, caption, tuple(columns), first, filters=filters)
    if rows <= most:
        return (table,)
    return (Text(f"The first {most:,} rows of {rows:,}; {name}.csv has all."), table)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankPlot(Display):
    """The first models of a leaderboard, each with the interval of its rank; or contestants, by their `noun`. Beside
    each stands its `beside`, in percent if it is a number."""

    table: Columns
    noun: str = "model"
    beside: str = "accuracy"

    @classmethod
    def of(cls, board: Leaderboard) -> RankPlot:
        return cls(table=board.model_columns(), frame_kind=board.answers.frame_kind)

    def columns(self) -> Columns:
        return self.table

    def size(self) -> tuple[float, float]:
        return 7.2, rows_height(min(MODELS_DRAWN, len(self.table[self.noun])))

    def draw(self, ax: Axes) -> None:
        m = len(self.table[self.noun])
        rows = min(m, MODELS_DRAWN)
        one = {name: values[:rows] for name, values in self.table.items()}
        which = f"The first {rows} of {m:,} {self.noun}s" if rows < m else f"{m:,} {self.noun}s"
        dress(ax, f"{which}: ranks that hold for all at once, 95%", "rank, 1 = best", "", grid="x")
        words = [word if isinstance(word, str) else percent(word) for word in one[self.beside].tolist()]
        rank_rows(ax, one[self.noun].tolist(), one["rank_low"], one["rank_high"], words)
        ax.plot(one["rank"], np.arange(rows), "o", color=INK, markersize=3.2)
        for k in np.flatnonzero(np.diff(one["tier"])).tolist():
            ax.axhline(k + 0.5, color=GRAY, linewidth=0.8, linestyle=(0, (3, 3)))
        ax.set_xlim(0.3, float(np.max(one["rank_high"])) + 0.7)
        whole_ticks(ax, "x")
        note(ax, f"dashed: tiers; at the right: {self.beside}")
