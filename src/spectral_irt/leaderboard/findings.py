"""What is odd about models and their comparison, in the words of a leaderboard; the leaderboard as Markdown.

Findings of the fit are retold with models as items and prompts as people (`of_the_fit`); rules about models add their
own (`of_models`). `Leaderboard.findings` puts them together; the command `models` writes `markdown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.data import Finding, Responses
from spectral_irt.errors import for_shell
from spectral_irt.leaderboard.contrasts import LEVEL
from spectral_irt.leaderboard.ranked import tiers_in_words
from spectral_irt.leaderboard.scale import ELO
from spectral_irt.text import count, listed, number, one_or_many, percent, printable, span

if TYPE_CHECKING:
    from spectral_irt.leaderboard.board import Leaderboard

NOT_SAID = {"silent_persons", "regularization", "many_more_items_than_persons"}  # said otherwise, or of no use here
WORDS_FIT = {"clustered", "few_clusters"}  # findings whose words are those of a leaderboard
RETOLD = "With models as items and prompts as people: "
NAMED_GROUPS = 3  # groups of models that are named
MANY_MODELS = 3  # for each prompt: more are rather persons who answered items


def of_the_fit(findings: Iterable[Finding]) -> list[Finding]:
    """What the fit found, said of models and prompts instead of items and people."""
    return [_in_words_of_models(finding) for finding in findings if finding.code not in NOT_SAID]


def _in_words_of_models(finding: Finding) -> Finding:
    if finding.code == "disconnected":
        return replace(
            finding,
            sentence="The models fall into groups that share no prompts, so that nothing tells how models of different "
            "groups compare; the standard error of those outside the largest group is infinite.",
            remedy="Make a leaderboard of each group, or add a model that answered prompts of both.",
        )
    if finding.code == "extreme_items":
        return _extreme_models(finding)
    if finding.code in WORDS_FIT:
        return finding
    return replace(finding, sentence=RETOLD + finding.sentence[0].lower() + finding.sentence[1:])


def _extreme_models(finding: Finding) -> Finding:
    all_right = "answered right" in str(finding.sentence)
    one = len(finding.items) == 1
    models_have = count(len(finding.items), "model has", "models have")
    right = "right" if all_right else "wrong"
    they_are = "it is" if one else "they are"
    their_logs = "its log" if one else "their logs"
    what_to_do = f"look into {their_logs} first: perhaps nothing was parsed."
    if all_right:
        what_to_do = "harder prompts would tell."
    return replace(
        finding,
        sentence=f"{models_have} every prompt {right}: {listed(finding.items)}.",
        remedy=f"How far {they_are} from the others is a guess; {what_to_do}",
    )


def of_models(board: Leaderboard) -> list[Finding]:
    """What is odd about models, by each of the rules."""
    rules = (unequal_prompts, copies, families, mcnemar_differs, slopes_differ)
    return [finding for rule in rules for finding in rule(board)]


def of_the_table(answers: Responses) -> Iterator[Finding]:
    """What reading has said, with what the rows and columns of a wide table are taken for in words of models: any table
    of zeros and ones can be read as one of models."""
    for finding in answers.notes:
        if finding.code == "items_taken":
            yield _taken_for_models(answers, finding)
        else:
            yield finding


def _taken_for_models(answers: Responses, finding: Finding) -> Finding:
    """A warning where rows have no names, or are many more than the columns."""
    n = answers.n_persons
    nameless = answers.persons.dtype.kind in "iu" and np.array_equal(answers.persons, 1 + np.arange(n))
    names = f"named {listed(answers.persons)}"
    if nameless:
        names = "which have no names and are numbered"
    prompts = f"{count(len(finding.items), 'column')}, {listed(finding.items)}"
    sentence = f"Taken for models: {count(n, 'row')}, {names}. Taken for prompts: {prompts}."
    doubtful = nameless or n > MANY_MODELS * answers.n_items
    return replace(
        finding,
        severity="warning" if doubtful else "note",
        sentence=sentence,
        remedy="If rows are persons, see spectral-irt fit.",
    )


class NamedModels(NamedTuple):
    """The first groups of models in words, and all models in them."""

    words: str
    models: tuple[Any, ...]


def _named(board: Leaderboard, groups: list[list[int]]) -> NamedModels:
    models = board.answers.persons
    words = "; ".join(listed(models[group].tolist()) for group in groups[:NAMED_GROUPS])
    if len(groups) > NAMED_GROUPS:
        words += " ..."
    return NamedModels(words, tuple(models[k] for group in groups for k in group))


def unequal_prompts(board: Leaderboard) -> Iterator[Finding]:
    """Models that answered fewer prompts than others."""
    n = board.answers.counts
    fewer = np.flatnonzero(n < n.max())
    if len(fewer):
        sentence = (
            f"{len(fewer):,} of {len(n):,} models answered fewer prompts than others ({n.min():,} to {n.max():,}). "
            "Their accuracies are not comparable; their abilities are, since prompts have their own difficulties."
        )
        models = tuple(board.answers.persons[fewer].tolist())
        yield Finding("different_prompts", "note", sentence, "Compare abilities, not accuracies.", models)


def copies(board: Leaderboard) -> Iterator[Finding]:
    """Models with the same answers."""
    if board.copies:
        named = _named(board, board.copies)
        sentence = (
            f"{len(named.models):,} models have the same answers as another, right and wrong on the same prompts: "
            f"{named.words}. Their abilities are equal."
        )
        remedy = "See whether one model was entered under several names."
        yield Finding("same_answers", "note", sentence, remedy, named.models)


def families(board: Leaderboard) -> Iterator[Finding]:
    """Models whose answers go together beyond their abilities."""
    if not board.families:
        return
    named = _named(board, board.families)
    groups = "A group of models answers"
    if len(board.families) > 1:
        groups = f"{len(board.families):,} groups of models answer"
    sentence = (
        f"{groups} alike beyond what abilities explain: {named.words}. Related models are not independent evidence of "
        "how hard a prompt is, and the scale leans towards the larger families."
    )
    remedy = (
        "Differences between related models are known better, not worse; for the others, see whether the order "
        "stays when a family is reduced to one of its models."
    )
    yield Finding("model_families", "warning", sentence, remedy, named.models)


def mcnemar_differs(board: Leaderboard) -> Iterator[Finding]:
    """Pairs of models that abilities tell apart and McNemar's test does not, or the other way round."""
    differ = board.contrasts_found.disagreements()
    if not any(differ):
        return
    n_models = board.answers.n_persons
    verb = one_or_many(differ.ability_alone, "differs", "differ")
    opposite = ""
    if differ.opposite:
        opposite = f", and {differ.opposite:,} in opposite directions"
    sentence = (
        f"Of {n_models * (n_models - 1) // 2:,} pairs of models, {differ.ability_alone:,} {verb} by ability alone, "
        f"{differ.mcnemar_alone:,} by McNemar's test alone{opposite} (both adjusted "
        f"for all pairs, {LEVEL:.0%}). McNemar compares how often each is right on the prompts both answered; the "
        "ability uses the answers of all models to say how hard prompts are, and clusters and runs of a prompt "
        "widen its errors only."
    )
    remedy = (
        "Where prompts fit the model both answer the same question; trust McNemar for these very prompts, the "
        "ability for prompts like them."
    )
    yield Finding("mcnemar_differs", "note", sentence, remedy)


def slopes_differ(board: Leaderboard) -> Iterator[Finding]:
    if np.isfinite(board.slopes.p) and board.slopes.p <= LEVEL:
        yield Finding("slopes_differ", "note", board.slopes.sentence)


MARKDOWN_ROWS = 200
SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>|#~"})


def markdown(board: Leaderboard, most: int | None = None) -> str:
    """A table of the models, how to read it, and what is odd."""
    models = board.model_columns()
    m = len(models["model"])
    if most is None:
        most = MARKDOWN_ROWS
    rows = min(m, most)
    digits = 0 if board.scale.name == ELO else 2
    lines = ["# Leaderboard", "", escaped(board.page.headline()), ""]
    lines.append("| rank | model | ability | 95% interval | ranks (all at once) | tier | accuracy | prompts |")
    lines.append("|---:|:---|---:|:---:|:---:|---:|---:|---:|")
    for k in range(rows):
        model = {name: values[k] for name, values in models.items()}
        cells = (
            str(model["rank"]),
            escaped(model["model"]),
            number(model["ability"], digits),
            f"{number(model['ci_low'], digits)} to {number(model['ci_high'], digits)}",
            span(model["rank_low"], model["rank_high"]),
            str(model["tier"]),
            percent(model["accuracy"]),
            f"{model['n']:,}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    if rows < m:
        lines += ["", f"The first {rows:,} of {m:,} models."]
    lines += ["", *(f"{line}\n" for line in how_to_read(board))]
    if board.findings:
        lines += ["## Findings", ""]
        lines += [f"- **{finding.severity}**: {escaped(with_remedy(finding))}" for finding in board.findings]
        lines.append("")
    return "\n".join(lines)


def how_to_read(board: Leaderboard) -> list[str]:
    """The columns in words."""
    over = "prompts"
    if board._clusters is not None:
        over = f"clusters of prompts ({board.cluster_word})"
    elif board.source.repeated:
        over = "prompts, with all runs of a prompt together"
    return [
        f"Ability is in {board.scale.words}: how models do on prompts like these, the question of generalized "
        f"accuracy, with errors over the sampling of {over}. Accuracy is benchmark accuracy: that on these very "
        "prompts.",
        "Ranks (all at once): in at least 95% of leaderboards every model's true rank is in its interval, whatever the "
        "abilities are. A model ranks below those that are significantly better, and above those significantly worse "
        "(all pairs compared, chance of any false difference at most 5%).",
        tiers_in_words("model"),
    ]


def with_remedy(finding: Finding) -> str:
    """A finding with its remedy and the first of its items."""
    text = f"{for_shell(finding.sentence)} {for_shell(finding.remedy)}".strip()
    if not finding.items or str(finding.items[0]) in text:
        return text
    return f"{text} ({listed(finding.items)})"


def escaped(text: object) -> str:
    r"""Text that means nothing to Markdown.

    >>> escaped("a|b_c <x>")
    'a\\|b\\_c \\<x\\>'
    """
    return printable(text).translate(SPECIAL)
