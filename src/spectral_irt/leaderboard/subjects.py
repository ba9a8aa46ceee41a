"""Each subject by itself: accuracy and ability of every model on its prompts alone."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import SpectralIrtError
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.model import ALIKE
from spectral_irt.tables import Columns

LEAST = 30  # prompts of a subject for abilities of its own
MOST = 200  # subjects
MOST_ANSWERS = 10_000_000  # beyond, accuracies only: a fit for every subject would take as long as the whole


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
        ability, se = (
            _abilities(some) if fitted and some.n_persons >= LEAST else (np.full(m, np.nan), np.full(m, np.nan))
        )
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
    down = -np.round(np.where(np.isfinite(values), values, -np.inf), ALIKE)
    return 1 + np.searchsorted(np.sort(down), down, side="left")
