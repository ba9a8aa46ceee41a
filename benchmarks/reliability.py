"""Which reliability is the squared correlation between estimated and true abilities?

    python benchmarks/reliability.py [--replicates 20]

Simulated people of known ability; the default calibration; each kind of reliability beside the squared correlation of
posterior means (EAP) with the truth. Averages over replicates with fixed seeds; new difficulties in each.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from measure import table
from spectral_irt import Responses, SpectralRasch, simulate

Rng = np.random.Generator


def normal(rng: Rng, n: int) -> np.ndarray:
    return rng.normal(size=n)


def able(rng: Rng, n: int) -> np.ndarray:
    return rng.normal(1.5, 1.0, size=n)


def wide(rng: Rng, n: int) -> np.ndarray:
    return rng.normal(0.0, 2.0, size=n)


def skewed(rng: Rng, n: int) -> np.ndarray:
    return rng.exponential(1.0, size=n) - 1


def two_classes(rng: Rng, n: int) -> np.ndarray:
    return rng.normal(0.0, 0.6, size=n) + np.where(rng.random(n) < 0.5, -1.5, 1.5)


SETTINGS = {
    "5 items": (5, 1.0, normal),
    "5 items, able people": (5, 1.0, able),
    "10 items": (10, 1.0, normal),
    "20 items": (20, 1.0, normal),
    "60 items": (60, 1.0, normal),
    "10 items, sd 2": (10, 1.0, wide),
    "60 items, a fifth seen": (60, 0.2, normal),
    "10 items, exponential abilities": (10, 1.0, skewed),
    "10 items, two classes of people": (10, 1.0, two_classes),
}
PEOPLE = 1000
HEAD = ["setting", "truth", "EAP", "KR-20", "WLE", "WLE with extremes"]


def replicate(name: str, seed: int) -> list[float]:
    """The squared correlation with the truth, then every reliability; NaN where there is none."""
    items, share, draw = SETTINGS[name]
    rng = np.random.default_rng(seed)
    ability = draw(rng, PEOPLE)
    design = {} if share == 1 else {"design": "sampled", "p": share}
    data = simulate.rasch(PEOPLE, items, ability=ability, seed=seed, **design)
    study = SpectralRasch(se="none").fit(data.responses).analyse(data.responses)
    posterior = study.abilities("eap")
    seen = posterior.n > 0
    truth = float(np.corrcoef(ability[seen], posterior.ability[seen])[0, 1] ** 2)
    found = study.reliability()
    kr20 = np.nan if found.kr20 is None else found.kr20
    eap = np.nan if found.eap_reliability is None else found.eap_reliability
    return [truth, eap, kr20, found.persons.reliability, found.persons_with_extremes.reliability]


def grades(seed: int) -> tuple[list[float], list[float]]:
    """Three grades a logit apart, each with twelve items of its level, six of them shared with the next: all, one."""
    rng = np.random.default_rng(seed)
    grade = np.repeat(np.arange(3), 500)
    ability = rng.normal(grade - 1.0, 0.8)
    difficulty = np.linspace(-1.8, 1.8, 24)
    answers = (rng.random((1500, 24)) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(float)
    answers[(np.arange(24) < 6 * grade[:, None]) | (np.arange(24) >= 6 * grade[:, None] + 12)] = np.nan
    responses = Responses.from_wide(answers)
    fit = SpectralRasch(se="none").fit(responses)
    rows = []
    for who in (grade >= 0, grade == 1):
        study = fit.analyse(responses.take_persons(who))
        found = study.reliability()
        truth = float(np.corrcoef(ability[who], study.abilities("eap").ability)[0, 1] ** 2)
        kr20 = np.nan if found.kr20 is None else found.kr20
        rows.append(
            [truth, found.eap_reliability, kr20, found.persons.reliability, found.persons_with_extremes.reliability]
        )
    return rows[0], rows[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=20)
    number = parser.parse_args().replicates
    warnings.simplefilter("ignore")
    rows: list[list[object]] = []
    for name in SETTINGS:
        found = np.array([replicate(name, seed) for seed in range(number)])
        rows.append([name, *(f"{x:.3f}" for x in found.mean(axis=0))])
    both = [grades(seed) for seed in range(number)]
    for title, of in (("three grades, all together", 0), ("three grades, one of them", 1)):
        found = np.array([pair[of] for pair in both])
        rows.append([title, *(f"{x:.3f}" for x in found.mean(axis=0))])
    print(f"{PEOPLE:,} people, {number} replicates")
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
