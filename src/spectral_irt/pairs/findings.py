"""What is odd about votes, contestants and judges: rules that decide, each with its sentence.

`Pairs.findings` lists what they yield.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.leaderboard.contrasts import LEVEL
from spectral_irt.text import count, count_are, first_of, listed, p_value, plural

if TYPE_CHECKING:
    from spectral_irt.pairs.board import Pairs

FEW_CLUSTERS = 20  # below, the quantile of t is 7% and more above the normal one
GROUPS_NAMED = 3
LARGE_MISFIT = 0.1  # of a judge's infit from 1: less is of no matter however many votes show it


def findings_of(board: Pairs) -> Iterator[Finding]:
    """What reading had to say, then each rule."""
    yield from board.votes.notes
    rules = (unlinked, one_way, few_clusters, odd_judges, insensitive_judges, going_round, misfitting_pairs)
    for rule in rules:
        yield from rule(board)
    for finding in board._result.findings():
        if finding.code not in ("regularization", "disjoint_subsets", "bias_correction"):
            yield finding


def unlinked(board: Pairs) -> Iterator[Finding]:
    """Contestants whom no vote links with the largest part."""
    n_parts = int(board.subset.max()) + 1
    if n_parts == 1:
        return
    names = board.labels
    groups = [listed(names[board.subset == k].tolist()) for k in range(1, min(n_parts, 1 + GROUPS_NAMED))]
    sentence = (
        f"The contestants fall into {n_parts:,} groups that no vote links, so that nothing tells how those of "
        f"different groups compare. Outside the largest, of {np.sum(board.subset == 0):,}: "
        f"{first_of(groups, n_parts - 1)}. "
        "Each group has a mean of its own, and no rank outside the largest."
    )
    remedy = "Collect votes about contestants of two groups, or read each group by itself."
    yield Finding("disconnected", "warning", sentence, remedy, tuple(names[board.subset > 0].tolist()))


def one_way(board: Pairs) -> Iterator[Finding]:
    """Contestants against whom, or for whom, all votes with the others went."""
    extreme = np.flatnonzero(board.status == "extreme")
    if not len(extreme):
        return
    names = board.labels[extreme].tolist()
    one = len(extreme) == 1
    its_votes = "all its votes" if one else "all their votes"
    they_are = "it is" if one else "they are"
    sentence = (
        f"{count(len(extreme), 'contestant')} won or lost {its_votes} with the others: {listed(names)}. How far "
        f"{they_are} from them is not in the votes; a prior (sd 2 logits) says it."
    )
    remedy = f"Ask for votes about {'it' if one else 'them'} and those who are nearest."
    yield Finding("one_way", "warning", sentence, remedy, tuple(names))


def few_clusters(board: Pairs) -> Iterator[Finding]:
    cluster = board.votes.cluster
    if cluster is None:
        return
    n = len(np.unique(cluster))
    df = board.df
    groups = plural(board.votes.cluster_word)
    sentence = f"Standard errors allow for {n:,} {groups}, within which votes may be alike"
    if df + 1 >= FEW_CLUSTERS:
        yield Finding("clustered", "note", f"{sentence}.")
        return
    sentence += (
        f", worth {df + 1:.1f} of equal size. From so few, standard errors are uncertain; intervals allow for it."
    )
    yield Finding("few_clusters", "warning", sentence, f"Collect votes of more {groups}, 20 or more, if you can.")


def odd_judges(board: Pairs) -> Iterator[Finding]:
    """Judges whose verdicts go against the board more than chance allows."""
    judges = board.judge_columns
    if judges is None:
        return
    n_judges = len(judges["judge"])
    noisy = (judges["infit_z"] > _limit(n_judges)) & (judges["infit"] > 1 + LARGE_MISFIT)
    if noisy.any():
        named = judges["judge"][noisy].tolist()
        verb = "disagrees" if len(named) == 1 else "disagree"
        judges_said = f"{count(len(named), 'judge')} of {n_judges:,} {verb}"
        sentence = f"{judges_said} with the board more than chance allows: {listed(named)}."
        yield Finding("judge_misfit", "warning", sentence, "See judges.csv, and the board without them.", tuple(named))


def insensitive_judges(board: Pairs) -> Iterator[Finding]:
    """Judges who tell contestants apart less, or more, than all together."""
    judges = board.judge_columns
    if judges is None or len(judges["judge"]) < 2:
        return
    for low in (True, False):
        differs = (judges["sensitivity"] < 1) == low
        odd = differs & (judges["p_holm"] < LEVEL)
        if odd.any():
            named = judges["judge"][odd].tolist()
            verb = "tells" if len(named) == 1 else "tell"
            less = "less" if low else "more"
            judges_said = f"{count(len(named), 'judge')} {verb} contestants apart {less}"
            sentence = f"{judges_said} than all together: {listed(named)}."
            yield Finding("judge_sensitivity", "note", sentence, "The board weighs all votes alike.", tuple(named))


def _limit(n: int) -> float:
    from scipy.special import ndtri

    return float(-ndtri(LEVEL / n))


def going_round(board: Pairs) -> Iterator[Finding]:
    """More triples that go round than chance allows."""
    triples = board.triples
    if triples is not None and triples.round and triples.p <= LEVEL:
        sentence = (
            f"{count_are(triples.round, 'triple')} intransitive (a mostly beats b, b beats c, c beats a), of "
            f"{triples.n:,}; {triples.expected:.1f} are expected by chance ({p_value(triples.p)})."
        )
        remedy = "One order may not describe these contestants: see pairs.csv, and boards by kind of prompt."
        yield Finding("intransitive", "warning", sentence, remedy)


def misfitting_pairs(board: Pairs) -> Iterator[Finding]:
    """Pairs whose votes do not fit the abilities."""
    pairs = board.pair_columns
    odd = pairs["p_holm"] < LEVEL
    if odd.any():
        k = int(np.nanargmax(np.abs(pairs["z"])))
        sentence = (
            f"{count(int(odd.sum()), 'pair')} of contestants met with results that the abilities do not explain (Holm, "
            f"5%), most of all {pairs['contestant'][k]} and {pairs['other'][k]}: {pairs['points'][k]:g} points of "
            f"{pairs['n'][k]:,}, {pairs['expected'][k]:.1f} expected."
        )
        yield Finding("pair_misfit", "note", sentence, "pairs.csv has all of them.")
