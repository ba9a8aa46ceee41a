"""What is odd about models and their comparison, in the words of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.errors import listed
from spectral_irt.leaderboard.contrasts import LEVEL

if TYPE_CHECKING:
    from spectral_irt.leaderboard.board import Leaderboard

OWN = {
    "silent_persons",
    "regularization",
    "many_more_items_than_persons",
}  # said in other words, or not worth a word here
TURNED = "With models as items and prompts as people: "


def of_the_fit(findings: Iterable[Finding]) -> list[Finding]:
    """What the fit found; it speaks of items and people."""
    ours = {"disconnected": _apart, "extreme_items": _extreme}
    kept = [ours.get(one.code, lambda same: same)(one) for one in findings if one.code not in OWN]
    fits_here = ("clustered", "few_clusters", *ours)
    return [
        one if one.code in fits_here else replace(one, sentence=TURNED + one.sentence[0].lower() + one.sentence[1:])
        for one in kept
    ]


def _apart(found: Finding) -> Finding:
    return replace(
        found,
        sentence="The models fall into groups that share no prompts, so that nothing tells how models of different "
        "groups compare; the standard error of those outside the largest group is infinite.",
        remedy="Make a leaderboard of each group, or add a model that answered prompts of both.",
    )


def _extreme(found: Finding) -> Finding:
    what = "right" if "answered right" in str(found.sentence) else "wrong"
    n = len(found.items)
    return replace(
        found,
        sentence=f"{n:,} {'model has' if n == 1 else 'models have'} every prompt {what}: {listed(found.items)}.",
        remedy="How far they are from the others is a guess; "
        + (
            "harder prompts would tell."
            if what == "right"
            else "look into their logs first: perhaps nothing was parsed."
        ),
    )


def of_models(board: Leaderboard) -> list[Finding]:
    """Unequal prompts, copies, families, McNemar's test, slopes."""
    return [*_unequal(board), *_copies(board), *_families(board), *_mcnemar(board), *_slopes(board)]


def _unequal(board: Leaderboard) -> list[Finding]:
    n = board.answers.counts
    if n.min() == n.max():
        return []
    some = np.flatnonzero(n < n.max())
    return [
        Finding(
            "different_prompts",
            "note",
            f"{len(some):,} of {len(n):,} models answered fewer prompts than others ({n.min():,} to {n.max():,}). "
            "Their "
            "accuracies are not comparable; their abilities are, since prompts have their own difficulties.",
            "Compare abilities, not accuracies.",
            tuple(board.answers.persons[some].tolist()),
        )
    ]


def _copies(board: Leaderboard) -> list[Finding]:
    groups = board.copies
    if not groups:
        return []
    first = "; ".join(listed(board.answers.persons[group].tolist()) for group in groups[:3])
    return [
        Finding(
            "same_answers",
            "note",
            f"{sum(map(len, groups)):,} models have the same answers as another, right and wrong on the same prompts: "
            f"{first}{' ...' if len(groups) > 3 else ''}. Their abilities are equal.",
            "See whether one model was entered under several names.",
            tuple(board.answers.persons[k] for group in groups for k in group),
        )
    ]


def _families(board: Leaderboard) -> list[Finding]:
    groups = board.families
    if not groups:
        return []
    first = "; ".join(listed(board.answers.persons[group].tolist()) for group in groups[:3])
    several = f"{len(groups):,} groups of models answer" if len(groups) > 1 else "A group of models answers"
    return [
        Finding(
            "model_families",
            "warning",
            f"{several} alike beyond what abilities explain: {first}. Relatives are not separate witnesses of how "
            "hard a "
            "prompt is, and the scale leans towards the larger families.",
            "Differences between relatives are known better, not worse; for the others, see whether the order stays "
            "when "
            "a family is reduced to one of its models.",
            tuple(board.answers.persons[k] for group in groups for k in group),
        )
    ]


def _mcnemar(board: Leaderboard) -> list[Finding]:
    ours, theirs, opposite = board.contrasts_found.disagreements()
    if not ours + theirs + opposite:
        return []
    m = board.answers.n_persons
    return [
        Finding(
            "mcnemar_differs",
            "note",
            f"Of {m * (m - 1) // 2:,} pairs of models, {ours:,} are told apart by ability alone, {theirs:,} by "
            "McNemar's "
            f"test alone{f', and {opposite:,} in opposite directions' if opposite else ''} (both adjusted for all "
            "pairs, "
            f"{LEVEL:.0%}). McNemar compares how often each is right on the prompts both answered; the ability uses "
            "the answers of all models to say how hard prompts are, and clusters and runs of a prompt widen its errors "
            "only.",
            "Where prompts fit the model both answer the same question; trust McNemar for these very prompts, the "
            "ability "
            "for prompts like them.",
        )
    ]


def _slopes(board: Leaderboard) -> list[Finding]:
    found = board.slopes
    if not np.isfinite(found.p) or found.p > LEVEL:
        return []
    return [Finding("slopes_differ", "note", found.sentence)]
