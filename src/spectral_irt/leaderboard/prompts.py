"""The prompts: dead ones, those that better models fail, and those that behave alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.inference.slopes import Slopes
from spectral_irt.model import sigmoid
from spectral_irt.responses import Block, Finding, Responses
from spectral_irt.responses.block import Floats
from spectral_irt.tables import Columns

MOST_ALIKE = 8_000  # prompts up to which all pairs are looked at: 32 million, some seconds
LEAST_MODELS = 20  # with fewer, prompts are alike by chance too often to say
SHOWN = 200  # pairs of prompts listed at most
ALIKE = 0.05
FAMILY = 0.3  # correlation of residuals beyond the average of all pairs that makes two models relatives
STRIP = 2_000


def prompt_columns(answers: Responses, difficulty: Floats, slopes: Slopes) -> Columns:
    """Every prompt: how many models answered, how many right, how hard, how steep, and what is odd."""
    n, right = answers.item_counts, answers.item_scores
    flag = np.full(answers.n_items, "", dtype=object)
    flag[slopes.negative] = "better models fail"
    flag[(right == n) & (n > 0)] = "all right"
    flag[(right == 0) & (n > 0)] = "all wrong"
    flag[n == 0] = "no answers"
    return {
        "prompt": answers.items,
        "n": n,
        "right": right,
        "accuracy": np.divide(right, n, out=np.full(len(n), np.nan), where=n > 0),
        "difficulty": difficulty,
        **slopes.columns(),
        "flag": flag,
    }


def prompt_findings(columns: Columns) -> list[Finding]:
    """Dead prompts, and those that better models fail."""
    flag, labels = columns["flag"], columns["prompt"]
    found = []
    for name, code, words, remedy in (
        ("all right", "too_easy", "every model has right", "They tell models apart no longer; they still count in accuracy."),
        ("all wrong", "too_hard", "every model has wrong", "Check their keys: a prompt without a right answer looks like this too."),
        ("better models fail", "wrong_key", "better models fail more often than worse ones", "Look at their keys first."),
    ):
        some = np.flatnonzero(flag == name)
        if len(some):
            severity = "warning" if code == "wrong_key" else "note"
            sentence = f"{len(some):,} of {len(flag):,} prompts are such as {words}."
            found.append(Finding(code, severity, sentence, remedy, tuple(labels[some].tolist())))  # type: ignore[arg-type]
    alone = int(np.sum(columns["n"] == 1))
    if alone:
        found.append(
            Finding(
                "one_model",
                "note",
                f"{alone:,} of {len(flag):,} prompts were answered by one model only and compare nothing.",
                "They count in that model's accuracy and nowhere else.",
            )
        )
    return found


def alike_prompts(by_prompt: Responses, ability: Floats, easiness: Floats) -> tuple[Columns | None, str]:
    """Pairs of prompts that the same models have right beyond what abilities explain; or why they are not looked for.

    The correlation of residuals over models, and its p under independence, adjusted for all pairs.
    """
    m, n = by_prompt.n_items, by_prompt.n_users
    if m < LEAST_MODELS:
        return None, f"With fewer than {LEAST_MODELS} models, prompts that behave alike cannot be told from chance."
    usable = np.flatnonzero((by_prompt.scores > 0) & (by_prompt.scores < by_prompt.counts) & np.isfinite(easiness))
    if len(usable) > MOST_ALIKE:
        return None, f"Prompts that behave alike are looked for up to {MOST_ALIKE:,} prompts; there are {len(usable):,}."
    if len(usable) < 2:
        return None, "Too few prompts tell models apart."
    residuals = by_prompt.gather(_standard_residuals, ability, m, persons=(easiness,))[usable]
    residuals /= np.sqrt((residuals**2).sum(axis=1, keepdims=True))
    pairs = len(usable) * (len(usable) - 1) / 2
    limit = _critical_correlation(ALIKE / pairs, m)
    rows, columns, values = [], [], []
    for start in range(0, len(usable), STRIP):
        strip = residuals[start : start + STRIP] @ residuals.T
        i, j = np.nonzero(strip > limit)
        above = j > i + start
        rows.append(i[above] + start)
        columns.append(j[above])
        values.append(strip[i[above], j[above]])
    a, b, r = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
    best = np.argsort(-r, kind="stable")[:SHOWN]
    table = {"prompt": by_prompt.users[usable[a[best]]], "other": by_prompt.users[usable[b[best]]], "correlation": r[best]}
    said = f"{len(r):,} pairs of prompts are right for the same models beyond what abilities explain (correlation above {limit:.2f})."
    return table, said


def _critical_correlation(p: float, m: int) -> float:
    """The correlation over m models that is exceeded with chance p, one-sided, by Fisher's transformation."""
    from scipy.special import ndtri

    return float(np.tanh(-ndtri(p) / np.sqrt(max(m - 3, 1))))


def _standard_residuals(block: Block, easiness: Floats, ability: Floats, m: int) -> NDArray[np.float32]:
    """(x - p) / sqrt(p q) of each model (columns) on each prompt of the block; 0 where there is no answer."""
    person = block.user_of_response()
    items = np.asarray(block.items)
    p = sigmoid(easiness[person] + ability[items])
    p = np.clip(p, 0.02, 0.98)  # a single surprise must not make two prompts alike
    out = np.zeros((block.n_users, m), dtype=np.float32)
    out[person, items] = (block.right() - p) / np.sqrt(p * (1 - p))
    return out


def model_families(by_prompt: Responses, ability: Floats, easiness: Floats) -> list[list[int]]:
    """Groups of models whose answers go together beyond their abilities: residuals correlate by 0.3 above average."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    m = by_prompt.n_items
    known = np.isfinite(easiness) & (by_prompt.scores > 0) & (by_prompt.scores < by_prompt.counts)
    gram = by_prompt.sum(_residual_gram, np.where(np.isfinite(ability), ability, 0.0), m, persons=(np.where(known, easiness, np.nan),))
    size = np.sqrt(np.maximum(np.diag(gram), 1e-12))
    correlation = gram / np.outer(size, size)
    np.fill_diagonal(correlation, np.nan)
    if m < 3:
        return []
    near = np.nan_to_num(correlation - np.nanmean(correlation), nan=-1.0) > FAMILY
    count, label = connected_components(sparse.csr_array(near), directed=False)
    groups = [np.flatnonzero(label == k).tolist() for k in range(count)]
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def _residual_gram(block: Block, easiness: Floats, ability: Floats, m: int) -> Floats:
    person = block.user_of_response()
    items = np.asarray(block.items)
    out = np.zeros((block.n_users, m), dtype=np.float32)
    known = np.isfinite(easiness[person])
    p = sigmoid(np.where(known, easiness[person], 0.0) + ability[items])
    out[person, items] = np.where(known, block.right() - p, 0.0)
    return (out.T @ out).astype(float)
