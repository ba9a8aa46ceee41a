"""Likely causes of misfit, named when one of the checks of fit alarms (`checks.py`).

- Unequal slopes: the discrimination of the items (`mean_squares.item_statistics`).
- Guessing (right and wrong answers): with P = P(X = 1 | score), right answers where P is below 0.2 (hard items, weak
  people), beside what P expects. Those who guess get many of these right, and get fewer wrong where P is above 0.8,
  where flat items would have more.
- Speed: where in the test the items stand that misfit or depend on others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.dimensions.findings import SLOPES_MEAN
from spectral_irt.inference.fit.moments import GivenScore, answers_with_moments
from spectral_irt.persons.residuals import CERTAIN
from spectral_irt.tables import Columns
from spectral_irt.text import listed

MOST_PEOPLE = 4_000  # looked at for guesses, drawn at random
MOST_RESPONSES = 400_000
UNLIKELY = 0.2  # a right answer of less than this chance is a surprise, and a wrong one of less too
LUCKY = 3.0  # standard errors of surprising right answers above what is expected, from which they are guesses,
LUCKIER = 4.0  # and above the surplus of surprising wrong answers
MORE = 1.15  # times as many lucky answers as expected, at least; unequal slopes stay below
SEVERAL = 3  # misfitting items that make a pattern: this many,
SHARE = 0.1  # and this share of all
LATE = 2.33  # standard errors of the mean position, the upper 1%
MOSTLY = 0.75  # of the items in trouble stand in the last third


class Surprises(NamedTuple):
    """Answers that had little chance: how many answers could have surprised, how many did, and how many were expected
    to, with the variance of that."""

    n: float
    observed: float
    expected: float
    variance: float

    @property
    def surplus(self) -> float:
        """Standard errors above what is expected."""
        if self.variance > 0:
            return (self.observed - self.expected) / float(np.sqrt(self.variance))
        return 0.0


def surprises(calibration: Calibration, responses: Responses) -> tuple[Surprises, Surprises]:
    """Right answers with little chance of being right; and wrong ones with little of being wrong."""
    most = max(1, min(MOST_PEOPLE, int(MOST_RESPONSES / max(float(responses.counts.mean()), 1.0))))
    sample, _ = responses.sample(most, np.random.default_rng(0))
    given_score = GivenScore.of(sample, calibration.difficulty, series_from=np.inf)
    lucky, slips = sample.sum(_surprise_sums, given_score, persons=(given_score.pattern,))
    return Surprises(*lucky), Surprises(*slips)


def _surprise_sums(block: Block, pattern: Ints, given: GivenScore) -> Floats:
    answers = answers_with_moments(block, pattern, given)
    p = np.clip(answers.mean, CERTAIN, 1 - CERTAIN)
    v = p * (1 - p)
    sums = []
    for surprise, chance, unlikely in ((answers.x, p, p < UNLIKELY), (1 - answers.x, 1 - p, p > 1 - UNLIKELY)):
        sums.append([unlikely.sum(), surprise[unlikely].sum(), chance[unlikely].sum(), v[unlikely].sum()])
    return np.array(sums, dtype=np.float64)


def is_guessing(lucky: Surprises, slips: Surprises) -> bool:
    """Whether weak people get hard items right too often, and able ones do not slip as much."""
    if lucky.variance <= 0 or lucky.observed < MORE * lucky.expected:
        return False
    return lucky.surplus > LUCKY and lucky.surplus - slips.surplus > LUCKIER


def cause_findings(
    calibration: Calibration, responses: Responses, columns: Columns, discrimination: Floats, known: list[Finding]
) -> list[Finding]:
    """Likely causes of what the checks found (`known`), from the columns of the fit of items and the items' slopes; but
    for those that are known."""
    codes = [finding.code for finding in known]
    causes = [
        *_guessing_or_slopes(calibration, responses, columns, discrimination),
        *_items_not_reached(calibration, known),
    ]
    return [cause for cause in causes if cause.code not in codes]


def _guessing_or_slopes(
    calibration: Calibration, responses: Responses, columns: Columns, discrimination: Floats
) -> Iterator[Finding]:
    """One of the two: guesses make hard items flat."""
    steep = np.flatnonzero(columns["misfit"] == "overfit")
    flat = np.flatnonzero(columns["misfit"] == "underfit")
    n_judged = int(np.isfinite(columns["infit_conditional"]).sum())
    if responses.thresholds.binary:
        lucky, slips = surprises(calibration, responses)
        if is_guessing(lucky, slips):
            yield _guessing(lucky, tuple(columns["item"][flat].tolist()))
            return
    if len(steep) + len(flat) < max(SEVERAL, SHARE * n_judged) or len(steep) < 2:
        return
    misfits = np.sort(np.concatenate([steep, flat]))
    slope = discrimination[misfits]
    slope = slope[np.isfinite(slope)]
    span = ""
    if len(slope):
        span = f" (slopes from about {slope.min():.1f} to {slope.max():.1f} times the common one)"
    sentence = (
        f"Items differ in how sharply they tell people apart, {len(steep):,} more and {len(flat):,} less than the "
        f"model says{span}: a two-parameter model (2PL) would fit better."
    )
    yield Finding("unequal_slopes", "note", sentence, SLOPES_MEAN, tuple(columns["item"][misfits].tolist()))


def _guessing(lucky: Surprises, items: tuple[object, ...]) -> Finding:
    sentence = (
        f"Guessing is likely: where the model gives a right answer a chance below {UNLIKELY:.0%} (low scorers on hard "
        f"items), {lucky.observed / lucky.n:.0%} of the answers are right, {lucky.observed / lucky.expected:.1f} times "
        f"as many as expected ({lucky.expected / lucky.n:.0%})."
    )
    remedy = (
        "Hard items then look easier and noisier than they are. Give people items near their level, offer more "
        "alternatives, or use a model with a lower asymptote (3PL) for these items."
    )
    return Finding("guessing", "note", sentence, remedy, items)


def _items_not_reached(calibration: Calibration, known: list[Finding]) -> Iterator[Finding]:
    """Whether the items that misfit or depend on others are the last ones: Wilcoxon's rank sum of their positions."""
    labels = calibration.labels[calibration.measured]
    troubled = set().union(*(one.items for one in known if one.code in ("misfitting_items", "dependent_items")))
    in_trouble = np.array([label in troubled for label in labels.tolist()])
    m = len(labels)
    k = int(in_trouble.sum())
    if k < SEVERAL or k > m / 2:
        return
    position = np.flatnonzero(in_trouble) + 1
    z = (position.mean() - (m + 1) / 2) / np.sqrt((m - k) * (m + 1) / (12 * k))
    if z < LATE or np.mean(position > m * 2 / 3) < MOSTLY:
        return
    sentence = (
        f"The items in trouble stand at the end ({listed(labels[in_trouble])}): people may have run out of time, or of "
        "patience."
    )
    remedy = (
        "If the order of the items is that of the test, code answers that were not reached as missing, not as wrong, "
        "and calibrate again."
    )
    yield Finding("last_items", "note", sentence, remedy, tuple(labels[in_trouble].tolist()))
