"""The prompts: dead ones, those that better models fail, those that behave alike, and each subject by itself."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import SpectralIrtError
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.inference.items.slopes import Slopes
from spectral_irt.model import ALIKE as SAME_DIGITS
from spectral_irt.model import sigmoid
from spectral_irt.tables import Columns
from spectral_irt.text import share

MOST_ALIKE = 8_000  # prompts up to which all pairs are looked at: 32 million, some seconds
LEAST_MODELS = 100  # with fewer, prompts are alike by chance too often to say
LEAST_EACH = 10  # models that have a prompt right, and wrong
SHOWN = 200  # pairs of prompts listed at most
ALIKE = 0.05
LIMITS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of correlations of residuals above average, that make two models relatives
LARGEST = 0.2  # of all models, in one family
SHARED = 30  # prompts that two models both answered, for a correlation
ABOUT_PROMPTS = ("too_easy", "too_hard", "wrong_key", "one_model")  # findings that name prompts; the others name models
STRIP = 2_000
LEAST = 30  # prompts of a subject for abilities of its own
MOST = 200  # subjects
MOST_ANSWERS = 10_000_000  # beyond, accuracies only: a fit for every subject would take as long as the whole
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


# What is said of prompts with a flag: code, severity, sentence, remedy.
SAID = {
    "all right": ("too_easy", "note", "Every model answers {} right.", "They tell no models apart."),
    "all wrong": (
        *("too_hard", "note", "Every model answers {} wrong."),
        "Check keys: a prompt without a right answer looks so.",
    ),
    "better models fail": ("wrong_key", "warning", "Better models fail {} more often.", "Look at their keys first."),
    "one model": (
        *("one_model", "note", "One model alone answered {}, which compare nothing."),
        "They count in that model's accuracy and nowhere else.",
    ),
}


def prompt_findings(columns: Columns) -> list[Finding]:
    """Dead prompts, and those that better models fail."""
    found = []
    for flag, (code, severity, words, remedy) in SAID.items():
        some = columns["prompt"][columns["flag"] == flag]
        if len(some):
            sentence = words.format(share(len(some), len(columns["flag"]), "prompt"))
            found.append(Finding(code, severity, sentence, remedy, tuple(some.tolist())))  # type: ignore[arg-type]
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
    known = np.isfinite(easiness)
    out = _residuals(block, np.ones(block.n_persons), -easiness, ability, m)[known]
    return (out.T @ out).astype(float)


# ---------------------------------------------------------------------------------- each subject by itself


def subject_columns(by_prompt: Responses, label: NDArray[np.object_], models: NDArray[np.object_]) -> Columns:
    """A row for each subject and model: `subject, model, n, accuracy, accuracy_se, ability, se, rank`."""
    names = sorted({name for name in label.tolist() if name != ""}, key=str)
    fitted = by_prompt.n_responses <= MOST_ANSWERS and len(names) <= MOST
    m = len(models)
    parts: dict[str, list[NDArray[np.generic]]] = {}
    for name in names:
        some = by_prompt.take_persons(label == name)
        n, right = some.item_counts, some.item_scores
        accuracy = np.divide(right, n, out=np.full(m, np.nan), where=n > 0)
        ability = se = np.full(m, np.nan)
        if fitted and some.n_persons >= LEAST:
            ability, se = _abilities(some)
        row = {
            "subject": np.full(m, name, dtype=object),
            "model": models,
            "n": n,
            "accuracy": accuracy,
            "accuracy_se": np.sqrt(accuracy * (1 - accuracy) / np.maximum(n, 1)),
            "ability": ability,
            "se": se,
            "rank": _places(ability if np.isfinite(ability).any() else accuracy),
        }
        for key, values in row.items():
            parts.setdefault(key, []).append(values)
    return {key: np.concatenate(values) for key, values in parts.items()}


def _abilities(some: Responses) -> tuple[Floats, Floats]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = SpectralRasch().fit(some).calibration_
    except SpectralIrtError:  # for instance, no prompt tells two models apart
        return np.full(some.n_items, np.nan), np.full(some.n_items, np.nan)
    return -made.difficulty, made.se


def _places(values: Floats) -> Ints:
    """1 for the largest, the same for equals; those without a number last."""
    down = -np.round(np.where(np.isfinite(values), values, -np.inf), SAME_DIGITS)
    return 1 + np.searchsorted(np.sort(down), down, side="left")
