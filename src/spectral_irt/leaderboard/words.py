"""The leaderboard in words: Markdown for a page or a repository, and the sentences that go with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.errors import for_shell, listed, printable
from spectral_irt.text import number, percent, span

if TYPE_CHECKING:
    from spectral_irt.leaderboard.board import Leaderboard

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
