"""What may lie behind misfit: unequal slopes, guessing, or speed. Named only where a check of fit has alarmed.

- slopes: the discrimination of the items (`mean_squares.ItemStatistics`);
- guessing (right and wrong answers): with P = P(X = 1 | score), right answers where P is below 0.2 (hard items, weak
  people), beside what P expects; those who guess get many of these right, and get fewer wrong where P is above 0.8,
  where flat items would have more;
- speed: where in the test the items stand that misfit or depend on others.
"""

from __future__ import annotations

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.dimensions.dimensionality import SLOPES_MEAN
from spectral_irt.inference.fit.moments import GivenScore, answers_given_score
from spectral_irt.persons.residuals import CERTAIN
from spectral_irt.tables import Columns
from spectral_irt.text import listed

PEOPLE, RESPONSES = 4_000, 400_000  # at most, drawn at random
END = 0.2  # a right answer of less than this chance is a surprise, and a wrong one of less too
SURE, APART = 3.0, 4.0  # standard errors: of lucky answers above what is expected, and above those of slips
MORE = 1.15  # times as many lucky answers as expected, at least; unequal slopes stay below
SEVERAL, SHARE = 3, 0.1  # misfitting items that make a pattern: this many, and this share of all
LATE = 2.33  # standard errors of the mean position, the upper 1%
MOSTLY = 0.75  # of the items in trouble stand in the last third


def surprises(calibration: Calibration, responses: Responses) -> tuple[Floats, Floats]:
    """Of right and wrong answers with little chance of being right, and with little of being wrong: how many there are,
    how many are all the same, are expected to be, and the variance of that."""
    most = max(1, min(PEOPLE, int(RESPONSES / max(float(responses.counts.mean()), 1.0))))
    answers, _ = responses.sample(most, np.random.default_rng(0))
    given = GivenScore.of(answers, calibration.difficulty, series_from=np.inf)
    lucky, slips = answers.sum(_ends, given, persons=(given.pattern,))
    return lucky, slips


def _ends(block: Block, pattern: Ints, given: GivenScore) -> Floats:
    _, _, right, mean, *_ = answers_given_score(block, pattern, given)
    p = np.clip(mean, CERTAIN, 1 - CERTAIN)
    v = p * (1 - p)
    ends = [
        [there.sum(), surprise[there].sum(), chance[there].sum(), v[there].sum()]
        for surprise, chance, there in ((right, p, p < END), (1 - right, 1 - p, p > 1 - END))
    ]
    return np.array(ends, dtype=np.float64)


def guessed(lucky: Floats, slips: Floats) -> bool:
    """Whether weak people get hard items right too often, and able ones do not slip as much."""
    _, seen, expected, variance = lucky
    _, wrong, slipped, spread = slips
    if variance <= 0 or seen < MORE * expected:
        return False
    luck = (seen - expected) / np.sqrt(variance)
    slip = (wrong - slipped) / np.sqrt(spread) if spread > 0 else 0.0
    return bool(luck > SURE and luck - slip > APART)


def cause_findings(
    calibration: Calibration, responses: Responses, columns: Columns, discrimination: Floats, known: list[Finding]
) -> list[Finding]:
    """Likely causes of what the checks of fit found (`known`), from the columns of the fit of items, and their slopes;
    but for those that are known."""
    steep, flat = (np.flatnonzero(columns["misfit"] == word) for word in ("overfit", "underfit"))
    judged = int(np.isfinite(columns["infit_conditional"]).sum())
    found: list[Finding] = []
    lucky, slips = surprises(calibration, responses) if responses.thresholds.binary else np.zeros((2, 4))
    if guessed(lucky, slips):
        answers, right, expected, _ = lucky
        sentence = (
            f"Guessing is likely: hard items are answered right by weak people {right / expected:.1f} times as often "
            f"as the model says ({right / answers:.0%} instead of {expected / answers:.0%}, where it gives less than "
            f"{END:.0%})."
        )
        remedy = (
            "Hard items then look easier and noisier than they are. Give people items near their level, offer more "
            "alternatives, or use a model with a lower asymptote (3PL) for these items."
        )
        found.append(Finding("guessing", "note", sentence, remedy, tuple(columns["item"][flat].tolist())))
    elif len(steep) + len(flat) >= max(SEVERAL, SHARE * judged) and len(steep) > 1:
        both = np.sort(np.concatenate([steep, flat]))
        slope = discrimination[both][np.isfinite(discrimination[both])]
        ends = f" (slopes from about {slope.min():.1f} to {slope.max():.1f} times the common one)" if len(slope) else ""
        sentence = (
            f"Items differ in how sharply they tell people apart, {len(steep):,} more and {len(flat):,} less than the "
            f"model says{ends}: a two-parameter model (2PL) would fit better."
        )
        found.append(Finding("unequal_slopes", "note", sentence, SLOPES_MEAN, tuple(columns["item"][both].tolist())))
    in_trouble = [one for one in known if one.code in ("misfitting_items", "dependent_items")]
    found += _speed(calibration, set().union(*(one.items for one in in_trouble)))
    return [cause for cause in found if cause.code not in [one.code for one in known]]


def _speed(calibration: Calibration, troubled: set[object]) -> tuple[Finding, ...]:
    """Whether the items in trouble are the last ones."""
    labels = calibration.labels[calibration.measured]
    m, hit = len(labels), np.array([label in troubled for label in labels.tolist()])
    k = int(hit.sum())
    if k < SEVERAL or k > m / 2:
        return ()
    place = np.flatnonzero(hit) + 1
    z = (place.mean() - (m + 1) / 2) / np.sqrt((m - k) * (m + 1) / (12 * k))
    if z < LATE or np.mean(place > m * 2 / 3) < MOSTLY:
        return ()
    ran_out = f"The items in trouble stand at the end ({listed(labels[hit])}): people may have run out of time, or of"
    remedy = (
        "If the order of the items is that of the test, code answers that were not reached as missing, not as wrong, "
        "and calibrate again."
    )
    return (Finding("last_items", "note", f"{ran_out} patience.", remedy, tuple(labels[hit].tolist())),)
