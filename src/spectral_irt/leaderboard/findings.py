"""What is odd about models and their comparison, in the words of a leaderboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.errors import for_shell, listed, printable
from spectral_irt.leaderboard.pairs import LEVEL
from spectral_irt.text import number, percent, span

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


MARKDOWN_ROWS = 200
SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>|#~"})


def markdown(board: Leaderboard, most: int | None = None) -> str:
    """A table of the models, how to read it, and what is odd."""
    models = board.model_columns()
    m = len(models["model"])
    rows = min(m, MARKDOWN_ROWS if most is None else most)
    lines = [
        "# Leaderboard",
        "",
        headline(board),
        "",
        "| rank | model | ability | 95% interval | ranks (all at once) | tier | accuracy | prompts |",
        "|---:|:---|---:|:---:|:---:|---:|---:|---:|",
    ]
    for k in range(rows):
        cells = [
            str(models["rank"][k]),
            escaped(models["model"][k]),
            number(models["ability"][k]),
            f"{number(models['ci_low'][k])} to {number(models['ci_high'][k])}",
            span(models["rank_low"][k], models["rank_high"][k]),
            str(models["tier"][k]),
            percent(models["accuracy"][k]),
            f"{models['n'][k]:,}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if rows < m:
        lines += ["", f"The first {rows:,} of {m:,} models."]
    lines += ["", *(f"{line}\n" for line in how_to_read(board))]
    if board.findings:
        lines += ["## Findings", ""]
        lines += [f"- **{one.severity}**: {escaped(said(one))}" for one in board.findings]
        lines.append("")
    return "\n".join(lines)


def headline(board: Leaderboard) -> str:
    """Who is first, and how sure that is, in Markdown."""
    return escaped(headline_text(board))


def headline_text(board: Leaderboard) -> str:
    """Who is first, and how sure that is."""
    models = board.model_columns()
    answers = board.answers
    first = int(np.sum(models["tier"] == 1))
    lead = (
        f"{models['model'][0]} is first, surely ahead of all others"
        if first == 1
        else f"{first:,} models share the first tier: none of them is surely worse than {models['model'][0]}"
    )
    last = int(models["tier"].max())
    tiers = "One tier" if last == 1 else f"{last:,} tiers"
    metric = f" Right is what {', '.join(board.source.metrics)} says." if board.source.metrics else ""
    return (
        f"{answers.n_persons:,} models, {answers.n_items:,} prompts, {answers.n_responses:,} answers. {lead}. "
        f"{tiers}.{metric}"
    )


def how_to_read(board: Leaderboard) -> list[str]:
    """The columns in words."""
    over = "prompts"
    if board._clusters is not None:
        over = f"clusters of prompts ({board.cluster_word})"
    elif board.source.repeated:
        over = "prompts, with all runs of a prompt together"
    return [
        f"Ability is in logits, with mean zero; its errors are over the sampling of {over}.",
        "Ranks (all at once): in at least 95% of leaderboards every model's true rank is in its interval, whatever the "
        "abilities are. A model ranks below those that are surely better than it, and above those surely worse (all "
        "pairs compared, chance of any false difference at most 5%).",
        "Tier: down the table, a new tier begins with a model surely worse than the first of the current one, by the "
        "same comparisons. Two models of neighboring tiers need not differ.",
    ]


def said(finding: Finding) -> str:
    """A finding with its remedy and the first of its items."""
    text = f"{for_shell(finding.sentence)} {for_shell(finding.remedy)}".strip()
    named = not finding.items or str(finding.items[0]) in text
    return text if named else f"{text} ({listed(finding.items)})"


def escaped(text: object) -> str:
    r"""Text that means nothing to Markdown.

    >>> escaped("a|b_c <x>")
    'a\\|b\\_c \\<x\\>'
    """
    return printable(text).translate(SPECIAL)
