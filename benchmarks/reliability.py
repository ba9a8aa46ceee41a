"""Which reliability is the squared correlation between estimated and true abilities?

    python benchmarks/reliability.py [--replicates 20]

Simulated people of known ability; the default calibration; each kind of reliability beside the squared correlation of
posterior means (EAP) with the truth. Averages over replicates with fixed seeds; new difficulties in each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import draws
import harness
from spectral_irt import Responses, SpectralRasch, simulate

PEOPLE = 1000
GRADES = ("three grades, all together", "three grades, one of them")
NORMAL = draws.SPREADS["normal"]


def two_classes(rng: draws.Rng, n: int) -> np.ndarray:
    return rng.normal(0.0, 0.6, size=n) + np.where(rng.random(n) < 0.5, -1.5, 1.5)


SETTINGS: dict[str, tuple[int, float, Callable[[draws.Rng, int], np.ndarray]]] = {
    "5 items": (5, 1.0, NORMAL),
    "5 items, able people": (5, 1.0, lambda rng, n: rng.normal(1.5, 1.0, size=n)),
    **{f"{n} items": (n, 1.0, NORMAL) for n in (10, 20, 60)},
    "10 items, sd 2": (10, 1.0, lambda rng, n: rng.normal(0.0, 2.0, size=n)),
    "60 items, a fifth seen": (60, 0.2, NORMAL),
    "10 items, exponential abilities": (10, 1.0, draws.SPREADS["exponential"]),
    "10 items, two classes of people": (10, 1.0, two_classes),
}


def reliabilities(study: Any, ability: np.ndarray) -> dict[str, float]:
    """The squared correlation with the truth, then every reliability; NaN where there is none."""
    posterior, found = study.abilities("eap"), study.reliability()
    seen = posterior.n > 0
    return {
        "truth": float(np.corrcoef(ability[seen], posterior.ability[seen])[0, 1] ** 2),
        "EAP": np.nan if found.eap_reliability is None else found.eap_reliability,
        "KR-20": np.nan if found.kr20 is None else found.kr20,
        "WLE": found.persons.reliability,
        "WLE with extremes": found.persons_with_extremes.reliability,
    }


def replicate(name: str, seed: int) -> dict[str, float]:
    items, share, draw = SETTINGS[name]
    ability = draw(np.random.default_rng(seed), PEOPLE)
    design = {} if share == 1 else {"design": "sampled", "p": share}
    data = simulate.rasch(PEOPLE, items, ability=ability, seed=seed, **design)
    return reliabilities(SpectralRasch(se="none").fit(data.responses).analyse(data.responses), ability)


def grades(setting: str, seed: int) -> dict[str, float]:
    """Three grades a logit apart, each with twelve items of its level, six of them shared with the next."""
    rng = np.random.default_rng(seed)
    grade = np.repeat(np.arange(3), 500)
    ability = rng.normal(grade - 1.0, 0.8)
    x = draws.answers(rng, ability[:, None] - np.linspace(-1.8, 1.8, 24))
    responses = Responses.from_wide(draws.window(x, 6 * grade, 12))
    who = (grade == 1) | (setting == GRADES[0])
    return reliabilities(SpectralRasch(se="none").fit(responses).analyse(responses.take_persons(who)), ability[who])


if __name__ == "__main__":
    cases = harness.cases(replicate, setting=SETTINGS) + harness.cases(grades, setting=GRADES)
    harness.study(f"Reliability, {PEOPLE:,} people", cases, harness.arguments(__doc__, replicates=20))
