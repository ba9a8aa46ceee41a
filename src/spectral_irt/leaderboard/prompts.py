"""The prompts: dead ones, those that better models fail, and each subject by itself; families of models.

`Leaderboard` asks for the columns of prompts and of subjects, the findings on prompts and the families.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import Severity, SpectralIrtError
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.inference.items.slopes import Slopes
from spectral_irt.model import ALIKE, sigmoid
from spectral_irt.numerics import safe_divide
from spectral_irt.tables import Columns
from spectral_irt.text import share

LIMITS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of correlations of residuals above average, that make two models relatives
LARGEST = 0.2  # of all models, in one family
SHARED = 30  # prompts that two models both answered, for a correlation
ABOUT_PROMPTS = ("too_easy", "too_hard", "wrong_key", "one_model")  # findings that name prompts; the others name models
LEAST = 30  # prompts of a subject for abilities of its own
MOST = 200  # subjects
MOST_ANSWERS = 10_000_000  # beyond, accuracies only: a fit for every subject would take as long as the whole
PRODUCTS = 1e10  # multiplications for the correlations of all models: a second or so


def prompt_columns(answers: Responses, difficulty: Floats, slopes: Slopes) -> Columns:
    """Every prompt: how many models answered, how many right, how hard, how steep, and what is odd."""
    n = answers.item_counts
    right = answers.item_scores
    flag = np.full(answers.n_items, "", dtype=object)
    flag[slopes.negative] = "better models fail"
    flag[(right == n) & (n > 0)] = "all right"
    flag[(right == 0) & (n > 0)] = "all wrong"
    flag[n == 1] = "one model"
    flag[n == 0] = "no answers"
    return {
        "prompt": answers.items,
        "n": n,
        "right": right,
        "accuracy": safe_divide(right, n, otherwise=np.nan),
        "difficulty": difficulty,
        **slopes.columns(),
        "flag": flag,
    }


class FlagRule(NamedTuple):
    """What is said of prompts with a flag; {} is how many there are."""

    code: str
    severity: Severity
    sentence: str
    remedy: str


FLAG_RULES = {
    "all right": FlagRule("too_easy", "note", "Every model answers {} right.", "These do not separate models."),
    "all wrong": FlagRule(
        code="too_hard",
        severity="note",
        sentence="Every model answers {} wrong.",
        remedy="Check the keys: a prompt without a correct answer looks like this.",
    ),
    "better models fail": FlagRule(
        code="wrong_key",
        severity="warning",
        sentence="Better models fail {} more often.",
        remedy="Look at their keys first.",
    ),
    "one model": FlagRule(
        code="one_model",
        severity="note",
        sentence="One model alone answered {}, which compare nothing.",
        remedy="They count in that model's accuracy and nowhere else.",
    ),
}


def prompt_findings(columns: Columns) -> list[Finding]:
    """Dead prompts, and those that better models fail."""
    findings = []
    for flag, rule in FLAG_RULES.items():
        prompts = columns["prompt"][columns["flag"] == flag]
        if len(prompts):
            sentence = rule.sentence.format(share(len(prompts), len(columns["flag"]), "prompt"))
            findings.append(Finding(rule.code, rule.severity, sentence, rule.remedy, tuple(prompts.tolist())))
    return findings


def model_families(by_prompt: Responses, ability: Floats, easiness: Floats) -> list[list[int]]:
    """Groups of models whose answers go together beyond their abilities: residuals correlate 0.3 above average."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    m = by_prompt.n_items
    if m < 3:
        return []
    step = max(1, int(by_prompt.n_persons * m**2 / PRODUCTS))
    if step > 1:  # every so many prompts are enough for correlations
        some = np.arange(0, by_prompt.n_persons, step)
        by_prompt = by_prompt.take_persons(some)
        easiness = easiness[some]
    mixed = (by_prompt.scores > 0) & (by_prompt.scores < by_prompt.counts)
    ability = np.where(np.isfinite(ability), ability, 0.0)
    easiness = np.where(mixed, easiness, np.nan)
    gram = by_prompt.sum(_residual_gram, ability, m, persons=(easiness,))
    size = np.sqrt(np.maximum(np.diag(gram), 1e-12))
    correlation = gram / np.outer(size, size)
    np.fill_diagonal(correlation, np.nan)
    if by_prompt.n_responses < by_prompt.n_persons * m:
        correlation[by_prompt.sum(_answered_by_both, m) < SHARED] = np.nan
    if np.all(np.isnan(correlation)):
        return []
    beyond = np.nan_to_num(correlation - np.nanmean(correlation), nan=-1.0)
    groups: list[list[int]] = []
    for limit in LIMITS:  # of very many models, weaker ties would chain most of them together
        n_groups, label = connected_components(sparse.csr_array(beyond > limit), directed=False)
        order = np.argsort(label, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(label, minlength=n_groups))[:-1])
        groups = sorted((models.tolist() for models in members if len(models) > 1), key=len, reverse=True)
        if not groups or len(groups[0]) <= max(LARGEST * m, 10):
            break
    return groups


def _answered_by_both(block: Block, m: int) -> Floats:
    out = np.zeros((block.n_persons, m), dtype=np.float32)
    out[block.person_of_response(), np.asarray(block.items)] = 1
    return (out.T @ out).astype(float)


def _residual_gram(block: Block, easiness: Floats, ability: Floats, m: int) -> Floats:
    """Sums of products of x - p of every two models, over the prompts of the block whose easiness is known."""
    person = block.person_of_response()
    items = np.asarray(block.items)
    out = np.zeros((block.n_persons, m), dtype=np.float32)
    out[person, items] = block.right() - sigmoid(ability[items] + np.nan_to_num(easiness)[person])
    out = out[np.isfinite(easiness)]
    return (out.T @ out).astype(float)


def subject_columns(by_prompt: Responses, label: NDArray[np.object_], models: NDArray[np.object_]) -> Columns:
    """A row for each subject and model: `subject, model, n, accuracy, accuracy_se, ability, se, rank`."""
    names = sorted({name for name in label.tolist() if name != ""}, key=str)
    with_abilities = by_prompt.n_responses <= MOST_ANSWERS and len(names) <= MOST
    parts: dict[str, list[NDArray[np.generic]]] = {}
    for name in names:
        of_subject = by_prompt.take_persons(label == name)
        for key, values in _one_subject(of_subject, name, models, with_abilities).items():
            parts.setdefault(key, []).append(values)
    return {key: np.concatenate(values) for key, values in parts.items()}


def _one_subject(by_prompt: Responses, name: str, models: NDArray[np.object_], with_abilities: bool) -> Columns:
    """The rows of a subject; abilities where there are prompts enough."""
    m = len(models)
    n = by_prompt.item_counts
    accuracy = safe_divide(by_prompt.item_scores, n, otherwise=np.nan)
    ability = np.full(m, np.nan)
    se = np.full(m, np.nan)
    if with_abilities and by_prompt.n_persons >= LEAST:
        with warnings.catch_warnings(), suppress(SpectralIrtError):  # where no prompt tells two models apart
            warnings.simplefilter("ignore")
            calibration = SpectralRasch().fit(by_prompt).calibration_
            ability = -calibration.difficulty
            se = calibration.se
    return {
        "subject": np.full(m, name, dtype=object),
        "model": models,
        "n": n,
        "accuracy": accuracy,
        "accuracy_se": np.sqrt(accuracy * (1 - accuracy) / np.maximum(n, 1)),
        "ability": ability,
        "se": se,
        "rank": places(ability if np.isfinite(ability).any() else accuracy),
    }


def places(values: Floats) -> Ints:
    """1 for the largest, the same for equals; those without a number last."""
    down = -np.round(np.where(np.isfinite(values), values, -np.inf), ALIKE)
    return 1 + np.searchsorted(np.sort(down), down, side="left")
