"""The board of votes as files and as one HTML page: contestants, ranks, findings, effects, judges, pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.leaderboard.ranked import tiers_in_words
from spectral_irt.leaderboard.ranked_page import INTERVAL, PAIRS, RANKED, STATUS, RankedPage, page_table
from spectral_irt.leaderboard.scale import ELO
from spectral_irt.pairs.fit import ASK_NEXT
from spectral_irt.report.blocks import Column, Lines, Section, Text
from spectral_irt.tables import Columns, rows_of
from spectral_irt.text import count, p_value, percent

if TYPE_CHECKING:
    from spectral_irt.pairs.board import Pairs

CONTESTANTS = [Column("contestant", "contestant"), *RANKED]
CONTESTANTS += [Column("n", "votes", 0), Column("wins", "wins", 0), Column("ties", "ties", 0), *INTERVAL, *STATUS]
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


JUDGES_IN_WORDS = (
    "How often each judge's verdict is the one that the board expects, and how often that should be. Infit and outfit "
    "are 1 where verdicts scatter about the board as chance has it; sensitivity is tested against 1: below, a judge "
    "tells contestants apart less than all together. A judge who is severe to both contestants changes no vote, so "
    "that no severity is here."
)


class PairsPage(RankedPage["Pairs"]):
    """Contestants from votes."""

    command = "pairs"
    record_name = "pairs.json"
    title = "Votes"
    columns = CONTESTANTS
    findings_elsewhere = ("pairs", ("pair_misfit", "intransitive"))

    @property
    def source(self) -> str:
        return self.board.votes.source

    def counts(self) -> str:
        votes = self.board.votes
        counts = f"{len(votes.contestants):,} contestants, {votes.n:,} votes"
        if votes.has_ties:
            counts += f", {percent(float(np.mean(votes.points == 1)))} of them ties"
        return counts

    def how_to_read(self) -> list[str]:
        board = self.board
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
            tiers_in_words(board.noun),
        ]

    def beside(self) -> tuple[str, NDArray[Any]]:
        table = self.board.main_columns()
        return "points", (table["wins"] + table["ties"] / 2) / table["n"]

    def more_sections(self) -> Iterator[Section]:
        board = self.board
        if board.effects_found:
            effects = page_table("effects", "What else decides votes", EFFECTS, board.effect_columns(), PAIRS)
            yield Section((*effects, Lines(tuple(effect_words(board)))), (), "Effects", "effects")
        if board.judge_columns is not None:
            judges = page_table("judges", "Judges", JUDGES, board.judge_columns, PAIRS)
            yield Section((Text(JUDGES_IN_WORDS), *judges), (), "Judges", "judges")
        yield _pairs(board)

    def tables(self) -> dict[str, Columns]:
        board = self.board
        tables = {
            "contestants": board.contestant_columns(),
            "effects": board.effect_columns(),
            "pairs": board.pair_columns,
        }
        if board.judge_columns is not None:
            tables["judges"] = board.judge_columns
        return tables

    def contents(self) -> dict[str, Any]:
        board = self.board
        votes = board.votes
        triples = board.triples
        return {
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
                "tiers": int(board.tier.max()),
            },
            "se_method": board.calibration.provenance.se_method,
            "loglik": board.calibration.provenance.loglik,
            "scale": board.scale.words,
            "contestants": rows_of(board.contestant_columns()),
            "effects": [effect._asdict() for effect in board.effects_found],
            "triples": None if triples is None else triples._asdict(),
            "ask_next": [list(pair) for pair in ask_next(board)],
        }


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
        f"Of {count(triples.n, 'triple')} of contestants who all met, {triples.round:,} go round "
        f"(a mostly beats b, b beats c, c beats a); {triples.expected:.1f} are expected by chance."
    )


def ask_next(board: Pairs) -> list[tuple[str, str]]:
    """The pairs about which a vote tells most."""
    pairs = board.pair_columns
    asked = np.flatnonzero(pairs["ask_next"])
    asked = asked[np.argsort(pairs["ask_next"][asked])]
    return [(pairs["contestant"][k], pairs["other"][k]) for k in asked.tolist()]


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
    values["ask_next"] = np.where(values["ask_next"] > 0, values["ask_next"], np.nan)
    return Section((Text(words.strip()), *page_table("pairs", "Pairs", OF_PAIRS, values, PAIRS)), (), "Pairs", "pairs")
