"""The prompts: dead ones, those that better models fail, and those that behave alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.inference.items.slopes import Slopes
from spectral_irt.model import sigmoid
from spectral_irt.tables import Columns

MOST_ALIKE = 8_000  # prompts up to which all pairs are looked at: 32 million, some seconds
LEAST_MODELS = 100  # with fewer, prompts are alike by chance too often to say
LEAST_EACH = 10  # models that have a prompt right, and wrong
SHOWN = 200  # pairs of prompts listed at most
ALIKE = 0.05
LIMITS = (
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
)  # of residuals, beyond their average correlation, that make two models relatives
LARGEST = 0.2  # of all models, in one family
SHARED = 30  # prompts that two models both answered, for a correlation
ABOUT_PROMPTS = ("too_easy", "too_hard", "wrong_key", "one_model")  # findings that name prompts; the others name models
STRIP = 2_000
PRODUCTS = 1e10  # multiplications for the correlations of all models: a second or so


def prompt_columns(answers: Responses, difficulty: Floats, slopes: Slopes) -> Columns:
    """Every prompt: how many models answered, how many right, how hard, how steep, and what is odd."""
    n, right = answers.item_counts, answers.item_scores
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
        "accuracy": np.divide(right, n, out=np.full(len(n), np.nan), where=n > 0),
        "difficulty": difficulty,
        **slopes.columns(),
        "flag": flag,
    }


def prompt_findings(columns: Columns) -> list[Finding]:
    """Dead prompts, and those that better models fail."""
    flag, labels = columns["flag"], columns["prompt"]
    found = []
    n = f"of {len(flag):,} prompts"
    for name, code, words, remedy in (
        (
            "all right",
            "too_easy",
            "{} " + n + " every model has right.",
            "They tell no models apart; accuracy counts them.",
        ),
        (
            "all wrong",
            "too_hard",
            "{} " + n + " every model has wrong.",
            "Check keys: a prompt without a right answer looks so.",
        ),
        ("better models fail", "wrong_key", "{} " + n + " better models fail more often.", "Look at their keys first."),
    ):
        some = np.flatnonzero(flag == name)
        if len(some):
            severity = "warning" if code == "wrong_key" else "note"
            sentence = words.format(f"{len(some):,}")
            found.append(Finding(code, severity, sentence, remedy, tuple(labels[some].tolist())))  # type: ignore[arg-type]
    alone = int(np.sum(flag == "one model"))
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


def alike_prompts(by_prompt: Responses, ability: Floats, slopes: Slopes) -> tuple[Columns | None, str]:
    """Pairs of prompts that the same models have right beyond what abilities explain; or why they are not looked for.

    The correlation over models of what each prompt's own slope leaves unexplained, beyond the correlation that the most
    extreme of all pairs would have by chance in 5% of such tables.
    """
    m, n = by_prompt.n_items, by_prompt.n_persons
    if m < LEAST_MODELS:
        return None, f"With fewer than {LEAST_MODELS} models, prompts that behave alike cannot be told from chance."
    if n > MOST_ALIKE:
        return None, f"Prompts that behave alike are looked for up to {MOST_ALIKE:,} prompts; there are {n:,}."
    usable = np.flatnonzero(
        (np.minimum(by_prompt.scores, by_prompt.counts - by_prompt.scores) >= LEAST_EACH) & np.isfinite(slopes.slope)
    )
    if len(usable) < 2:
        return None, "Too few prompts tell models apart."
    shape = slopes.slope, slopes.intercept
    residuals = by_prompt.gather(_residuals, np.where(np.isfinite(ability), ability, 0.0), m, persons=shape)[usable]
    residuals /= np.maximum(np.sqrt((residuals**2).sum(axis=1, keepdims=True)), 1e-6)
    limit = _critical_correlation(ALIKE / (len(usable) * (len(usable) - 1) / 2), m)
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
    table = {
        "prompt": by_prompt.persons[usable[a[best]]],
        "other": by_prompt.persons[usable[b[best]]],
        "correlation": r[best].astype(float),
    }
    return table, (
        f"{len(r):,} pairs of prompts are right for the same models beyond what abilities explain (correlation above "
        f"{limit:.2f})."
    )


def _critical_correlation(p: float, m: int) -> float:
    """The correlation over m models that is exceeded with chance p, one-sided, by Fisher's transformation."""
    from scipy.special import ndtri

    return float(np.tanh(-ndtri(p) / np.sqrt(max(m - 3, 1))))


def _residuals(block: Block, slope: Floats, intercept: Floats, ability: Floats, m: int) -> NDArray[np.float32]:
    """x - p of each model (columns) on each prompt of the block, at the prompt's own slope; 0 without an answer."""
    person = block.person_of_response()
    items = np.asarray(block.items)
    eta = np.nan_to_num(slope)[person] * ability[items] - np.nan_to_num(intercept)[person]
    out = np.zeros((block.n_persons, m), dtype=np.float32)
    out[person, items] = block.right() - sigmoid(eta)
    return out


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
        by_prompt, easiness = by_prompt.take_persons(some), easiness[some]
    known = np.isfinite(easiness) & (by_prompt.scores > 0) & (by_prompt.scores < by_prompt.counts)
    gram = by_prompt.sum(
        _residual_gram, np.where(np.isfinite(ability), ability, 0.0), m, persons=(np.where(known, easiness, np.nan),)
    )
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
        count, label = connected_components(sparse.csr_array(beyond > limit), directed=False)
        order = np.argsort(label, kind="stable")
        parts_of = np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])
        groups = sorted((part.tolist() for part in parts_of if len(part) > 1), key=len, reverse=True)
        if not groups or len(groups[0]) <= max(LARGEST * m, 10):
            break
    return groups


def _answered_by_both(block: Block, m: int) -> Floats:
    out = np.zeros((block.n_persons, m), dtype=np.float32)
    out[block.person_of_response(), np.asarray(block.items)] = 1
    return (out.T @ out).astype(float)


def _residual_gram(block: Block, easiness: Floats, ability: Floats, m: int) -> Floats:
    person = block.person_of_response()
    items = np.asarray(block.items)
    out = np.zeros((block.n_persons, m), dtype=np.float32)
    known = np.isfinite(easiness[person])
    p = sigmoid(np.where(known, easiness[person], 0.0) + ability[items])
    out[person, items] = np.where(known, block.right() - p, 0.0)
    return (out.T @ out).astype(float)
