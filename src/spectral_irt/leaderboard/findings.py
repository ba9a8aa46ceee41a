"""What is odd about models and their comparison, in the words of a leaderboard; the leaderboard as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.errors import for_shell
from spectral_irt.leaderboard.pairs import LEVEL
from spectral_irt.text import listed, number, percent, printable, span

if TYPE_CHECKING:
    from spectral_irt.leaderboard.board import Leaderboard

NOT_SAID = {"silent_persons", "regularization", "many_more_items_than_persons"}  # said otherwise, or of no use here
SAID_HERE = {"clustered", "few_clusters"}  # whose words fit
TURNED = "With models as items and prompts as people: "
FIRST = 3  # groups of models that are named


def of_the_fit(findings: Iterable[Finding]) -> list[Finding]:
    """What the fit found, said of models and prompts instead of items and people."""
    return [_turned(one) for one in findings if one.code not in NOT_SAID]


def _turned(found: Finding) -> Finding:
    if found.code == "disconnected":
        return replace(
            found,
            sentence="The models fall into groups that share no prompts, so that nothing tells how models of different "
            "groups compare; the standard error of those outside the largest group is infinite.",
            remedy="Make a leaderboard of each group, or add a model that answered prompts of both.",
        )
    if found.code == "extreme_items":
        right, n = "answered right" in str(found.sentence), len(found.items)
        they_are, their = ("it is", "its log") if n == 1 else ("they are", "their logs")
        more = "harder prompts would tell." if right else f"look into {their} first: perhaps nothing was parsed."
        return replace(
            found,
            sentence=f"{n:,} {'model has' if n == 1 else 'models have'} every prompt {'right' if right else 'wrong'}: "
            f"{listed(found.items)}.",
            remedy=f"How far {they_are} from the others is a guess; {more}",
        )
    if found.code in SAID_HERE:
        return found
    return replace(found, sentence=TURNED + found.sentence[0].lower() + found.sentence[1:])


def of_models(board: Leaderboard) -> list[Finding]:
    """Unequal prompts, copies, families, McNemar's test, slopes."""
    found, models, n = [], board.answers.persons, board.answers.counts

    def named(groups: list[list[int]]) -> tuple[str, tuple[Any, ...]]:
        """The first groups in words, and all models in them."""
        first = "; ".join(listed(models[group].tolist()) for group in groups[:FIRST])
        return first + (" ..." if len(groups) > FIRST else ""), tuple(models[k] for group in groups for k in group)

    if len(some := np.flatnonzero(n < n.max())):
        sentence = (
            f"{len(some):,} of {len(n):,} models answered fewer prompts than others ({n.min():,} to {n.max():,}). "
            "Their accuracies are not comparable; their abilities are, since prompts have their own difficulties."
        )
        remedy, which = "Compare abilities, not accuracies.", tuple(models[some].tolist())
        found.append(Finding("different_prompts", "note", sentence, remedy, which))
    if board.copies:
        first, which = named(board.copies)
        sentence = (
            f"{len(which):,} models have the same answers as another, right and wrong on the same prompts: {first}. "
            "Their abilities are equal."
        )
        remedy = "See whether one model was entered under several names."
        found.append(Finding("same_answers", "note", sentence, remedy, which))
    if board.families:
        first, which = named(board.families)
        m = len(board.families)
        groups = f"{m:,} groups of models answer" if m > 1 else "A group of models answers"
        sentence = (
            f"{groups} alike beyond what abilities explain: {first}. Related models are not independent evidence of "
            "how hard a prompt is, and the scale leans towards the larger families."
        )
        remedy = (
            "Differences between related models are known better, not worse; for the others, see whether the order "
            "stays when a family is reduced to one of its models."
        )
        found.append(Finding("model_families", "warning", sentence, remedy, which))
    ours, theirs, opposite = board.contrasts_found.disagreements()
    if ours + theirs + opposite:
        sentence = (
            f"Of {len(n) * (len(n) - 1) // 2:,} pairs of models, {ours:,} differ by ability alone, {theirs:,} by "
            f"McNemar's test alone{f', and {opposite:,} in opposite directions' if opposite else ''} (both adjusted "
            f"for all pairs, {LEVEL:.0%}). McNemar compares how often each is right on the prompts both answered; the "
            "ability uses the answers of all models to say how hard prompts are, and clusters and runs of a prompt "
            "widen its errors only."
        )
        remedy = (
            "Where prompts fit the model both answer the same question; trust McNemar for these very prompts, the "
            "ability for prompts like them."
        )
        found.append(Finding("mcnemar_differs", "note", sentence, remedy))
    if np.isfinite(board.slopes.p) and board.slopes.p <= LEVEL:
        found.append(Finding("slopes_differ", "note", board.slopes.sentence))
    return found


MARKDOWN_ROWS = 200
SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>|#~"})


def markdown(board: Leaderboard, most: int | None = None) -> str:
    """A table of the models, how to read it, and what is odd."""
    models = board.model_columns()
    m = len(models["model"])
    rows = min(m, MARKDOWN_ROWS if most is None else most)
    lines = ["# Leaderboard", "", escaped(headline_text(board)), ""]
    lines.append("| rank | model | ability | 95% interval | ranks (all at once) | tier | accuracy | prompts |")
    lines.append("|---:|:---|---:|:---:|:---:|---:|---:|---:|")
    for k in range(rows):
        one = {name: values[k] for name, values in models.items()}
        cells = [
            *(str(one["rank"]), escaped(one["model"]), number(one["ability"])),
            f"{number(one['ci_low'])} to {number(one['ci_high'])}",
            span(one["rank_low"], one["rank_high"]),
            *(str(one["tier"]), percent(one["accuracy"]), f"{one['n']:,}"),
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


def headline_text(board: Leaderboard) -> str:
    """Who is first, and by how much."""
    models, answers = board.model_columns(), board.answers
    first = int(np.sum(models["tier"] == 1))
    lead = (
        f"{models['model'][0]} is first, significantly ahead of all others"
        if first == 1
        else f"{first:,} models share the first tier: none of them is significantly worse than {models['model'][0]}"
    )
    last = int(models["tier"].max())
    tiers = "One tier" if last == 1 else f"{last:,} tiers"
    metric = f" Scored by {', '.join(board.source.metrics)}." if board.source.metrics else ""
    counts = f"{answers.n_persons:,} models, {answers.n_items:,} prompts, {answers.n_responses:,} answers"
    return f"{counts}. {lead}. {tiers}.{metric}"


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
        "abilities are. A model ranks below those that are significantly better, and above those significantly worse "
        "(all pairs compared, chance of any false difference at most 5%).",
        "Tier: down the table, a new tier begins with a model significantly worse than the first of the current "
        "one, by the same comparisons. Two models of neighboring tiers need not differ.",
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
