"""Races of models, and old against new prompts: are promises about errors kept, and how many runs are spared?

    python benchmarks/race.py [--parts equal,best] [--replicates 500]
    python benchmarks/race.py --parts cohort --replicates 50

equal: ten equally able models on 1,000 prompts, looked at after every ten: the share of races in which any model was
left out. best: 30 models, abilities normal with the given standard deviation, up to 5,000 prompts: the share of races
in which the best was left out, the runs as a share of all, and the models that are left (two fifths of the replicates).
cohort: 20 models on 500 old and 500 new prompts, which are 0.7 logits harder for all; three models do better on the old
ones by so many logits: the share of the other models' p-values below 5%, of data sets in which any of these is named
(Holm, all 20 models), of the three whose p is below 5%, and of the three that are named. "known difficulties" is how
often a test that knows every difficulty would name them: no test by Holm can do better.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator

import numpy as np
from scipy.special import ndtr, ndtri

import harness
import spectral_irt as si
from spectral_irt.leaderboard.race import course


def answers(rng: np.random.Generator, logit: np.ndarray) -> np.ndarray:
    return (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)


def equal(asked: Namespace) -> Iterator[harness.Row]:
    separated = []
    for seed in asked.seeds:
        rng = np.random.default_rng([47, 3, seed])
        right = answers(rng, np.tile(rng.normal(0, 1.5, 1000), (10, 1)))
        separated.append(not course(right, np.ones(right.shape)).inside.all())
    yield {"models": 10, "prompts": 1000, "races": len(separated), "falsely separated": np.mean(separated)}


def best(asked: Namespace) -> Iterator[harness.Row]:
    for sd in (1.0, 0.3):
        rows = []
        for seed in list(asked.seeds)[: max(len(asked.seeds) * 2 // 5, 1)]:
            rng = np.random.default_rng([47, 4, seed])
            ability = sd * rng.normal(size=30)
            right = answers(rng, ability[:, None] - rng.normal(0, 1.5, 5000))
            found = course(right, np.ones(right.shape))
            rows.append([not found.inside[ability.argmax()], found.runs / right.size, found.inside.sum()])
        lost, share, left = np.mean(rows, axis=0)
        yield {"sd": sd, "races": len(rows), "best lost": lost, "share of the runs": share, "models left": left}


def changes(helped: float, seeds: Iterable[int]) -> harness.Row:
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([47, 5, seed])
        new = np.arange(1000) >= 500
        logit = rng.normal(size=20)[:, None] - rng.normal(0, 1.2, 1000) - 0.7 * new
        logit[:3, ~new] += helped
        columns = si.Leaderboard(answers(rng, logit).astype(int), cohort=np.where(new, "new", "old")).cohort_columns
        assert columns is not None
        of_helped = (columns["model"].astype(int) < 3) & (helped > 0)
        below = columns["p"] < 0.05
        named = columns["p_holm"] < 0.05
        row = [np.mean(below[~of_helped]), np.any(named[~of_helped])]
        if helped:
            row += [np.mean(below[of_helped]), np.mean(named[of_helped]), best_power(logit[:3], new, helped)]
        rows.append(row)
    names = ("others below 5%", "any other named", "helped below 5%", "helped named", "known difficulties")
    means = np.mean(rows, axis=0).tolist()
    return dict(zip(names, [*means, *[np.nan] * (len(names) - len(means))], strict=True))


def best_power(logit: np.ndarray, new: np.ndarray, helped: float) -> float:
    """The chance that z beyond Holm's limit for 20 shows the change of models whose prompts are known without error."""
    p = 1 / (1 + np.exp(-logit))
    information = p * (1 - p)
    variance = 1 / information[:, new].sum(axis=1) + 1 / information[:, ~new].sum(axis=1)
    return float(np.mean(ndtr(helped / np.sqrt(variance) + ndtri(0.05 / 2 / 20))))


def cohort(asked: Namespace) -> Iterator[harness.Row]:
    for helped in (0.0, 0.5):
        yield {"three models helped by": helped, "data sets": len(asked.seeds)} | changes(helped, asked.seeds)


def main() -> None:
    asked = harness.arguments(__doc__, parts=("equal", "best", "cohort"), replicates=500)
    titles = {"equal": "Ten equally able models", "best": "The best of 30", "cohort": "Old and new prompts"}
    for part in asked.parts:
        harness.show(titles[part], globals()[part](asked), asked)


if __name__ == "__main__":
    main()
