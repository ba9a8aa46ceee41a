"""How often local dependence and a second dimension are found where there is none, and a planted pair where there is.

    python benchmarks/dependence.py [--replicates 500] [--seed 0]

Small samples, a floor, missing responses: shares of data sets with a p-value below 5% and 1%, of the most significant
pair (adjusted for all pairs) and of the first residual contrast, by draws given the scores; beside it the pairs by the
normal distribution, which large samples are judged by. "Copied" is the share of people whose response to one item is
that to another: 0% is the level, the rest is power. The last design is one that is judged by the normal distribution by
default. "Floor" is the share of people with the lowest score.
"""

from __future__ import annotations

import numpy as np

import harness
from draws import Rng
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.inference.dimensions.dimensionality import dimensionality

PAIR = (4, 7)  # of which the second is copied to the first


def questionnaire_with_a_floor(rng: Rng) -> np.ndarray:
    """150 people, 10 items of 5 categories whose thresholds are far above most people."""
    thresholds = [np.sort(rng.normal(size=4)) + rng.normal(1.9, 0.6) for _ in range(10)]
    ability = rng.normal(-0.9, 1.3, 150)
    seed = int(rng.integers(2**31))
    return simulate.partial_credit(150, thresholds=thresholds, ability=ability, seed=seed).responses.to_dense()


def right_or_wrong(people: int, items: int, rng: Rng) -> np.ndarray:
    return simulate.rasch(people, items, seed=int(rng.integers(2**31))).responses.to_dense()


DESIGNS = {
    "150 x 10 x 5 categories": (questionnaire_with_a_floor, 0.0, (0.0, 0.4)),
    "60 x 8": (lambda rng: right_or_wrong(60, 8, rng), 0.0, (0.0, 0.5)),
    "1,000 x 20, 30% missing": (lambda rng: right_or_wrong(1000, 20, rng), 0.3, (0.0, 0.2)),
    "1,000 x 100": (lambda rng: right_or_wrong(1000, 100, rng), 0.0, (0.0, 0.2)),
}


def replicate(design: str, copied: float, seed: int) -> dict[str, float]:
    draw, missing, _ = DESIGNS[design]
    rng = np.random.default_rng([seed, list(DESIGNS).index(design)])
    x = draw(rng)
    first, second = PAIR
    copies = rng.random(len(x)) < copied
    x[copies, first] = np.minimum(x[copies, second], x[:, first].max())
    x[rng.random(x.shape) < missing] = np.nan
    ordered = bool(np.nanmax(x) > 1)
    responses = Responses.from_wide(x, ordered=ordered)
    estimator = SpectralPartialCredit if ordered else SpectralRasch
    calibration = estimator(se="none").fit(responses).calibration_
    result = dimensionality(calibration, responses)
    if result is None:
        return {}
    normal = dimensionality(calibration, responses, draws=0) if result.dependence.draws else result
    assert normal is not None
    pairs, contrast = result.dependence.test.p.min(), result.contrast_p
    if result.equal_slopes is not None:
        contrast = result.equal_slopes[0]
    found = {"floor": float(np.mean(np.nansum(x, axis=1) == 0)), "draws": result.dependence.draws}
    for level in (0.05, 0.01):
        found[f"pairs {level:.0%}"] = float(pairs < level)
        found[f"contrast {level:.0%}"] = float(contrast < level)
        found[f"normal {level:.0%}"] = float(normal.dependence.test.p.min() < level)
    named = set(zip(*(each.tolist() for each in result.dependence.dependent_pairs[:2]), strict=True))
    found["this pair"] = float(PAIR in named)
    found["others"] = float(bool(named - {PAIR}))
    return found


def case(design: str, copied: float) -> harness.Case:
    return {"data": design, "copied": f"{copied:.0%}"}, lambda seed: replicate(design, copied, seed)


if __name__ == "__main__":
    asked = harness.arguments(__doc__, replicates=500)
    cases = [case(name, copied) for name, (_, _, shares) in DESIGNS.items() for copied in shares]
    harness.study("Local dependence and the first contrast", cases, asked)
