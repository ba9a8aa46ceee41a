"""What may lie behind misfit: unequal slopes, guessing, or speed. Named only where a check of fit has alarmed.

Given the score, with P = P(X = 1 | score), V = P (1 - P) and t = logit P:

- slopes: one Newton step of the slope of an item in t, sum (x - P) (t - t0) / sum V (t - t0)^2, t0 the mean of t;
- guessing: right answers where P is below 0.2 (hard items, weak people), beside what P expects; those who guess get
  many of these right, and get fewer wrong where P is above 0.8, where flat items would have more;
- speed: where in the test the items stand that misfit or depend on others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.given_score import conditional_probabilities
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.errors import listed
from spectral_irt.inference.dimensions.dimensionality import SLOPES_MEAN
from spectral_irt.persons.abilities import answers_with_difficulty
from spectral_irt.persons.residuals import CERTAIN
from spectral_irt.tables import Columns

PEOPLE, RESPONSES = 4_000, 400_000  # at most, drawn at random
END = 0.2  # a right answer of less than this chance is a surprise, and a wrong one of less too
SURE, APART = 3.0, 4.0  # standard errors: of lucky answers above what is expected, and above those of slips
MORE = 1.15  # times as many lucky answers as expected, at least; unequal slopes stay below
SEVERAL, SHARE = 3, 0.1  # misfitting items that make a pattern: this many, and this share of all
LATE = 2.33  # standard errors of the mean position, the upper 1%
MOSTLY = 0.75  # of the items in trouble stand in the last third


@dataclass(frozen=True, eq=False)
class Traces:
    """Sums over people: `slope` of each item (1 = the model's); surprises and what is expected of them at either end.

    Attributes
    ----------
    lucky, slips : (answers, seen, expected, variance)
        Answers with little chance of being right, how many are, and are expected to be; of being wrong likewise.
    """

    slope: Floats
    lucky: tuple[float, float, float, float]
    slips: tuple[float, float, float, float]

    @property
    def guessing(self) -> bool:
        """Whether weak people get hard items right too often, and able ones do not slip as much."""
        _, seen, expected, variance = self.lucky
        _, wrong, slipped, spread = self.slips
        if variance <= 0 or seen < MORE * expected:
            return False
        lucky = (seen - expected) / np.sqrt(variance)
        slips = (wrong - slipped) / np.sqrt(spread) if spread > 0 else 0.0
        return bool(lucky > SURE and lucky - slips > APART)


def traces(calibration: Calibration, responses: Responses) -> Traces:
    """What slopes and surprises the answers show."""
    answers = responses
    most = max(1, min(PEOPLE, int(RESPONSES / max(float(responses.counts.mean()), 1.0))))
    if responses.n_persons > most:
        chosen = np.random.default_rng(0).choice(responses.n_persons, most, replace=False)
        answers = responses.take_persons(np.sort(chosen))
    sums, ends = answers.sum(_sums, calibration.difficulty)
    off, v, vt, vtt, off_t = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (off_t - off * vt / v) / (vtt - vt**2 / v)
    lucky, slips = ((float(a), float(b), float(c), float(d)) for a, b, c, d in ends)
    return Traces(np.exp(np.clip(step, -2, 2)), lucky, slips)  # exp: a slope is never negative


def _sums(block: Block, difficulty: Floats) -> tuple[Floats, Floats]:
    block = answers_with_difficulty(block, difficulty)
    block = block.take(np.flatnonzero(block.informative))
    m = len(difficulty)
    if not block.n_persons:
        return np.zeros((5, m)), np.zeros((2, 4))
    p = np.clip(conditional_probabilities(block, difficulty), CERTAIN, 1 - CERTAIN)
    right = block.right().astype(np.float64)
    v, t, off = p * (1 - p), np.log(p / (1 - p)), right - p
    items = np.array([np.bincount(block.items, weights=w, minlength=m) for w in (off, v, v * t, v * t * t, off * t)])
    ends = [
        [there.sum(), surprise[there].sum(), chance[there].sum(), v[there].sum()]
        for surprise, chance, there in ((right, p, p < END), (1 - right, 1 - p, p > 1 - END))
    ]
    return items, np.array(ends)


def cause_findings(
    calibration: Calibration, trace: Traces, columns: Columns, troubled: Iterable[object]
) -> tuple[Finding, ...]:
    """Likely causes of what the checks of fit found.

    Parameters
    ----------
    calibration, trace, columns
        The items, what `traces` saw of them, and their fit.
    troubled : labels
        Items that misfit or depend on others.
    """
    steep, flat = (np.flatnonzero(columns["misfit"] == word) for word in ("overfit", "underfit"))
    judged = int(np.isfinite(columns["infit_conditional"]).sum())
    found: list[Finding] = []
    if trace.guessing:
        found.append(_guessing(trace, columns, flat))
    elif len(steep) + len(flat) >= max(SEVERAL, SHARE * judged) and len(steep) > 1:
        found.append(_slopes(trace, columns, steep, flat))
    return (*found, *_speed(calibration, set(troubled)))


def _guessing(trace: Traces, columns: Columns, flat: Ints) -> Finding:
    answers, seen, expected, _ = trace.lucky
    return Finding(
        "guessing",
        "note",
        f"Guessing is likely: hard items are answered right by weak people {seen / expected:.1f} times as often as the "
        f"model says ({seen / answers:.0%} instead of {expected / answers:.0%}, where it gives less than {END:.0%}).",
        "Hard items then look easier and noisier than they are. Give people items near their level, offer more "
        "alternatives, or use a model with a lower asymptote (3PL) for these items.",
        tuple(columns["item"][flat].tolist()),
    )


def _slopes(trace: Traces, columns: Columns, steep: Ints, flat: Ints) -> Finding:
    both = np.sort(np.concatenate([steep, flat]))
    slope = trace.slope[both]
    slope = slope[np.isfinite(slope)]
    range_ = f" (slopes from about {slope.min():.1f} to {slope.max():.1f} times the common one)" if len(slope) else ""
    return Finding(
        "unequal_slopes",
        "note",
        f"Items differ in how sharply they tell people apart, {len(steep):,} more and {len(flat):,} less than the "
        f"model says{range_}: a two-parameter model (2PL) would fit better.",
        SLOPES_MEAN,
        tuple(columns["item"][both].tolist()),
    )


def _speed(calibration: Calibration, troubled: set[object]) -> tuple[Finding, ...]:
    """Whether the items in trouble are the last ones."""
    measured = np.flatnonzero(calibration.measured)
    m = len(measured)
    hit = np.array([label in troubled for label in calibration.labels[measured].tolist()])
    k = int(hit.sum())
    if k < SEVERAL or k > m / 2:
        return ()
    place = np.flatnonzero(hit) + 1
    z = (place.mean() - (m + 1) / 2) / np.sqrt((m - k) * (m + 1) / (12 * k))
    if z < LATE or np.mean(place > m * 2 / 3) < MOSTLY:
        return ()
    last = calibration.labels[measured][hit]
    return (
        Finding(
            "last_items",
            "note",
            f"The items in trouble stand at the end ({listed(last)}): people may have run out of time, or of patience.",
            "If the order of the items is that of the test, code answers that were not reached as missing, not as "
            "wrong, and calibrate again.",
            tuple(last.tolist()),
        ),
    )
