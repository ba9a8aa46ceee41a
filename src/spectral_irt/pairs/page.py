"""The board of votes as files: tables, JSON, the plot of ranks, and one HTML page in the look of the report.

`Pairs.write`, `Pairs.report` and the command `pairs` call `write_pairs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spectral_irt import __version__
from spectral_irt.analysis.folder import finding_record, record_head
from spectral_irt.leaderboard.output import Contents, write_results
from spectral_irt.leaderboard.page import PAIRS, RankPlot, page_table, scaled_columns
from spectral_irt.leaderboard.scale import ELO
from spectral_irt.pairs.fit import ASK_NEXT
from spectral_irt.report.blocks import Column, DataTable, Lines, Section, Text, picture
from spectral_irt.report.overview import finding_blocks
from spectral_irt.report.page import rendered
from spectral_irt.tables import Columns
from spectral_irt.text import count_are, p_value, percent, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spectral_irt.pairs.board import Pairs

RECORD = "pairs.json"
CONTESTANTS = [Column("contestant", "contestant"), Column("rank", "rank", 0), Column("ability", "ability", 2)]
CONTESTANTS += [Column("se", "se", 3), Column("rank_low", "ranks from", 0), Column("rank_high", "to", 0)]
CONTESTANTS += [
    Column("tier", "tier", 0),
    Column("n", "votes", 0),
    Column("wins", "wins", 0),
    Column("ties", "ties", 0),
]
CONTESTANTS += [Column("ci_low", "95% from", 2, closed=True), Column("ci_high", "95% to", 2, closed=True)]
CONTESTANTS += [Column("status", "status", closed=True)]
EFFECTS = [Column("effect", "effect"), Column("estimate", "estimate", 3), Column("se", "se", 3)]
EFFECTS += [Column("p", "p", 4, p=True)]
JUDGES = [Column("judge", "judge"), Column("n", "votes", 0), Column("agreement", "agreement", 3)]
JUDGES += [Column("agreement_expected", "expected", 3), Column("infit", "infit", 2), Column("infit_z", "z", 1)]
JUDGES += [Column("outfit", "outfit", 2), Column("sensitivity", "sensitivity", 2)]
JUDGES += [Column("p_holm", "p", 4, p=True), Column("ties", "ties", 3), Column("first_chosen", "first chosen", 3)]
OF_PAIRS = [Column("contestant", "contestant"), Column("other", "other"), Column("difference", "difference", 2)]
OF_PAIRS += [Column("se", "se", 2), Column("p_adjusted", "p", 4, p=True), Column("n", "votes", 0)]
OF_PAIRS += [Column("points", "points", 1), Column("expected", "expected", 1), Column("z", "z", 1)]
OF_PAIRS += [Column("p_holm", "p of misfit", 4, p=True), Column("ask_next", "ask next", 0)]


def headline(board: Pairs) -> str:
    """Who is first, and by how much."""
    table = board.contestant_columns()
    votes = board.votes
    best = table["contestant"][0]
    n_first = int(np.sum(table["tier"] == 1))
    lead = f"{best} is first, significantly ahead of all others"
    if n_first > 1:
        lead = f"{n_first:,} contestants share the first tier: none of them is significantly worse than {best}"
    n_tiers = int(table["tier"].max())
    tiers = "One tier" if n_tiers == 1 else f"{n_tiers:,} tiers"
    counts = f"{len(table['contestant']):,} contestants, {votes.n:,} votes"
    if votes.has_ties:
        counts += f", {percent(float(np.mean(votes.points == 1)))} of them ties"
    return f"{counts}. {lead}. {tiers}."


def how_to_read(board: Pairs) -> list[str]:
    """The columns in words."""
    over = "votes"
    if board.votes.cluster is not None:
        over = f"clusters of votes ({board.votes.cluster_word})"
    odds = ""
    if board.scale.name != ELO:
        odds = " A difference of one logit is odds of 2.7 to 1 of winning against losing."
    return [
        f"Ability is in {board.scale.words}.{odds} Errors are over the sampling of {over}.",
        "Ranks hold for all contestants at once: in at least 95% of boards every true rank is in its interval. A "
        "contestant ranks below those that are significantly better, and above those significantly worse.",
        "Tier: down the table, a new tier begins with a contestant significantly worse than the first of the current "
        "one. Two contestants of neighboring tiers need not differ.",
    ]


def effect_words(board: Pairs) -> list[str]:
    """What each effect means."""
    said = []
    for effect in board.effects_found:
        interval = f"{effect.estimate:+.3g} (SE {effect.se:.2g}"
        if effect.name == "tie":
            said.append(
                f"tie: {interval}), the logarithm of nu in P(tie) = nu sqrt(P(win) P(lose)); equals tie with a "
                f"chance of {percent(np.exp(effect.estimate) / (2 + np.exp(effect.estimate)))}."
            )
        elif effect.name == "position":
            said.append(f"position: {interval}, {p_value(effect.p)}): log odds for whoever stands first.")
        else:
            said.append(
                f"{effect.name}: {interval}, {p_value(effect.p)}): log odds for each unit that the first has more."
            )
    return said


def triples_words(board: Pairs) -> str:
    triples = board.triples
    if triples is None:
        return ""
    return (
        f"Of {count_are(triples.n, 'triple').rsplit(' ', 1)[0]} of contestants who all met, {triples.round:,} go round "
        f"(a mostly beats b, b beats c, c beats a); {triples.expected:.1f} are expected by chance."
    )


def ask_next(board: Pairs) -> list[tuple[str, str]]:
    """The pairs about which a vote tells most."""
    pairs = board.pair_columns
    asked = np.flatnonzero(pairs["ask_next"])
    asked = asked[np.argsort(pairs["ask_next"][asked])]
    return [(pairs["contestant"][k], pairs["other"][k]) for k in asked.tolist()]


def sections(board: Pairs) -> list[Section]:
    """Contestants, ranks, findings, effects, judges, pairs."""
    table = board.contestant_columns()
    caption = f"Contestants from the best down; ability in {board.scale.words}"
    columns = scaled_columns(CONTESTANTS, board.scale)
    contestants = DataTable("contestants", caption, columns, table, filters=("tier",), noun="contestants")
    found = [
        Section(
            (Text(headline(board)), contestants, Lines(tuple(how_to_read(board)))), (), "Contestants", "contestants"
        )
    ]
    alt = (
        f"Ranks of the contestants with intervals. First: {short(table['contestant'][0], 40)}, ranks "
        f"{table['rank_low'][0]} to {table['rank_high'][0]}. The table of contestants has the numbers."
    )
    found.append(Section((picture(board.plot, alt),), (), "How sure the ranks are", "ranks"))
    records = [finding_record(one) for one in board.findings]
    about_pairs = ("pair_misfit", "intransitive")
    blocks = finding_blocks(records, lambda code: "pairs" if code in about_pairs else "contestants")
    found.append(Section(blocks, (), "Findings", "findings"))
    if board.effects_found:
        effects = page_table("effects", "What else decides votes", EFFECTS, board.effect_columns(), PAIRS)
        found.append(Section((*effects, Lines(tuple(effect_words(board)))), (), "Effects", "effects"))
    if board.judge_columns is not None:
        words = (
            "How often each judge's verdict is the one that the board expects, and how often that should be. Infit and "
            "outfit are 1 where verdicts scatter about the board as chance has it; sensitivity is tested against 1: "
            "below, a judge tells contestants apart less than all together. A judge who is severe to both contestants "
            "changes no vote, so that no severity is here."
        )
        judges = page_table("judges", "Judges", JUDGES, board.judge_columns, PAIRS)
        found.append(Section((Text(words), *judges), (), "Judges", "judges"))
    return [*found, _pairs(board)]


def _pairs(board: Pairs) -> Section:
    words = (
        "Every two contestants, the better first: points (a tie is half) and what the abilities expect of them. "
        f"The last column numbers the {ASK_NEXT} pairs, of those not yet told apart, whose difference a vote more "
        f"would narrow most. {triples_words(board)}"
    )
    pairs = board.pair_columns
    place = np.where(pairs["ask_next"] > 0, pairs["ask_next"], ASK_NEXT + 1)
    order = np.argsort(place, kind="stable")
    values: Columns = {name: column[order] for name, column in pairs.items()}
    return Section((Text(words.strip()), *page_table("pairs", "Pairs", OF_PAIRS, values, PAIRS)), (), "Pairs", "pairs")


def page(board: Pairs) -> str:
    """The page as HTML."""
    return rendered(f"Votes: {board.votes.source}", sections(board), __version__)


def rank_plot(board: Pairs) -> RankPlot:
    """The contestants with the intervals of their ranks, and the share of points beside them."""
    table = board.contestant_columns()
    points = (table["wins"] + table["ties"] / 2) / table["n"]
    return RankPlot(
        table={**table, "points": points}, noun="contestant", beside="points", frame_kind=board.votes.frame_kind
    )


def tables_of(board: Pairs) -> dict[str, Columns]:
    """The tables that are written, by the names of their files."""
    tables = {"contestants": board.contestant_columns(), "effects": board.effect_columns(), "pairs": board.pair_columns}
    if board.judge_columns is not None:
        tables["judges"] = board.judge_columns
    return tables


def record(board: Pairs) -> dict[str, Any]:
    """What was compared, how, and what came of it."""
    table = board.contestant_columns()
    rows = zip(*(values.tolist() for values in table.values()), strict=True)
    votes = board.votes
    triples = board.triples
    return {
        **record_head(),
        "command": "pairs",
        "outputs": [],
        "input": {
            "source": votes.source,
            "position": votes.position,
            "covariates": list(votes.covariate_names),
            "clustered_by": votes.cluster_word or None,
            "seed": board.seed,
        },
        "counts": {
            "contestants": len(votes.contestants),
            "votes": votes.n,
            "ties": int(np.sum(votes.points == 1)),
            "judges": len(votes.judges),
            "tiers": int(table["tier"].max()),
        },
        "se_method": board.calibration.provenance.se_method,
        "loglik": board.calibration.provenance.loglik,
        "scale": board.scale.words,
        "contestants": [dict(zip(table, row, strict=True)) for row in rows],
        "effects": [effect._asdict() for effect in board.effects_found],
        "triples": None if triples is None else triples._asdict(),
        "ask_next": [list(pair) for pair in ask_next(board)],
        "findings": [finding_record(finding) for finding in board.findings],
    }


def write_pairs(
    board: Pairs, folder: Path | None, report: Path | None = None, *, inputs: Iterable[str | Path] = ()
) -> list[Path]:
    """All files in a folder, and the page: everything or nothing."""

    def contents() -> Contents:
        figure = cast("Figure", board.plot.plot().figure)
        return Contents(tables_of(board), RECORD, record(board), {}, figure)

    return write_results(contents, lambda: page(board), folder, report, inputs=inputs)
