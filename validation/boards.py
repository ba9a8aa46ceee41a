"""Simulation studies of boards: votes with a position effect, judges, old and new prompts, races."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spectral_irt as si
from spectral_irt.leaderboard.race import course
from validation.study import COVERED, LEVEL, NORMAL, Study, covered

PROMISED = 0.05  # that a race separates a model wrongly: at most


def right_or_wrong(rng: np.random.Generator, logit: NDArray[np.float64]) -> NDArray[np.float64]:
    return (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)


def placed_votes(seed: int) -> Mapping[str, float]:
    """Five contestants, 600 votes; who stands first has an advantage of .4."""
    rng = np.random.default_rng(seed)
    ability = np.linspace(-0.8, 0.8, 5)
    first, second = np.array([rng.choice(5, 2, replace=False) for _ in range(600)]).T
    first_wins = right_or_wrong(rng, ability[first] - ability[second] + 0.4) == 1
    names = np.array([f"m{k}" for k in range(5)], dtype=object)
    winner = names[np.where(first_wins, first, second)]
    table = pl.DataFrame({"first": names[first], "second": names[second], "winner": winner})
    board = si.Pairs.read(table, position=True)
    columns = board.table()
    order = np.argsort(np.asarray(columns["contestant"]).astype(str))
    estimate, se = (np.asarray(columns[name], dtype=float)[order] for name in ("ability", "se"))
    effects = board.effects()
    position = np.flatnonzero(np.asarray(effects["effect"]) == "position")
    value, error = (np.asarray(effects[name], dtype=float)[position] for name in ("estimate", "se"))
    return {
        "ability": covered(estimate - estimate.mean(), se, ability),
        "advantage of standing first": float(np.mean(np.abs(value - 0.4) < NORMAL * error)),
    }


FAMILIES = ("ash", "birch", "cedar", "elm")


def judged(seed: int) -> Mapping[str, float]:
    """Twelve models of four families on 80 prompts, scored 1 to 4 by three judges of these families, without any
    preference; a person, whom judges are compared with, scored a third of the answers."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 0.6, 12)
    severity = np.array([-0.5, 0.1, 0.6, 0.0])
    offsets = np.array([-1.0, 0.0, 1.0])
    logit = ability[:, None, None] - rng.normal(0, 0.8, 80)[:, None] - severity
    sums = np.concatenate([np.zeros((*logit.shape, 1)), np.cumsum(logit[..., None] - offsets, axis=-1)], axis=-1)
    chance = np.exp(sums)
    below = np.cumsum(chance / chance.sum(axis=-1, keepdims=True), axis=-1)[..., :-1]
    score = 1 + (rng.random(logit.shape)[..., None] >= below).sum(axis=-1)
    kept = np.ones(score.shape, dtype=bool)
    kept[..., 3] = rng.random(score.shape[:2]) < 1 / 3
    model, prompt, judge = np.nonzero(kept)
    models = np.array([f"{FAMILIES[k % 4]}-{k}" for k in range(12)])
    judges = np.array([*(f"{name}-judge" for name in FAMILIES[:3]), "human"])
    table = pl.DataFrame({"model": models[model], "prompt": prompt, "judge": judges[judge], "score": score[kept]})
    board = si.JudgedLeaderboard.read(table)
    columns = board.judge_columns
    true = dict(zip(judges[:3].tolist(), severity, strict=False))
    rows = zip(columns["judge"], columns["ci_low"], columns["ci_high"], strict=True)
    held = [low <= true[name] <= high for name, low, high in rows if name in true]
    preference = board.self_preference
    assert preference is not None
    return {"severity against people": float(np.mean(held)), "self-preference": float(preference.p < LEVEL)}


def old_and_new_prompts(seed: int) -> Mapping[str, float]:
    """Ten models on 100 old and 100 new prompts; new ones are harder, for all models alike."""
    rng = np.random.default_rng(seed)
    new = np.arange(200) >= 100
    logit = rng.normal(size=10)[:, None] - rng.normal(0, 1, 200) - 0.7 * new
    right = right_or_wrong(rng, logit).astype(int)
    columns = si.Leaderboard(right, cohort=np.where(new, "new", "old")).cohort_columns
    assert columns is not None
    return {
        "a model, single": float(np.mean(np.asarray(columns["p"], dtype=float) < LEVEL)),
        "any model (Holm)": float((np.asarray(columns["p_holm"], dtype=float) < LEVEL).any()),
    }


def races(seed: int) -> Mapping[str, float]:
    """Six models on 400 prompts, looked at again and again: equally able, and with abilities a third of a logit apart.
    What is counted is how often the promise is broken, less what it allows; below it there is nothing to count."""
    rng = np.random.default_rng(seed)
    prompts = rng.normal(0, 1.2, 400)
    equal = course(right_or_wrong(rng, np.tile(prompts, (6, 1))), np.ones((6, 400)))
    ability = np.arange(6) / 3
    apart = course(right_or_wrong(rng, ability[:, None] - prompts), np.ones((6, 400)))
    return {"any of equal models left out": float(not equal.inside.all()), "the best left out": not apart.inside[-1]}


BOARDS = (
    Study("votes, a position effect", {"ability": COVERED, "advantage of standing first": COVERED}, placed_votes),
    Study("judges, 12 models, 80 prompts", {"severity against people": COVERED, "self-preference": LEVEL}, judged, 0.5),
    Study("old and new prompts, 10 models", {"a model, single": LEVEL, "any model (Holm)": LEVEL}, old_and_new_prompts),
    Study(
        "races of 6 models, 400 prompts",
        dict.fromkeys(("any of equal models left out", "the best left out"), PROMISED),
        races,
        at_most=True,
    ),
)
