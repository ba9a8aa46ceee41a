"""The checks of model fit that are made by default: what they found, likely causes, and the sentences about them.

Five checks, each at 1%, so that a good data set has any alarm in 5% of cases: misfitting items, items harder for the
less able than for the more able, dependent items, a second dimension, misfitting people. (`findings` has more, which
alarm on good data far more rarely.) When one of the five alarms, likely causes are named:

- unequal slopes: the discrimination of the items (`mean_squares.item_statistics`);
- guessing (right and wrong answers): with P = P(X = 1 | score), right answers where P is below 0.2 (hard items, weak
  people), beside what P expects; those who guess get many of these right, and get fewer wrong where P is above 0.8,
  where flat items would have more;
- speed: where in the test the items stand that misfit or depend on others.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.dimensions.dimensionality import SLOPES_MEAN, Dimensionality, only_above
from spectral_irt.inference.fit.item_fit import LEVEL, MATERIAL
from spectral_irt.inference.fit.moments import GivenScore, answers_given_score
from spectral_irt.inference.fit.person_fit import PersonMisfit, misfit_sentence
from spectral_irt.inference.groups.score_test import RaoTest, size_in_words
from spectral_irt.inference.results import EACH, TOGETHER
from spectral_irt.persons.residuals import CERTAIN
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed, p_value

VISIBLE = 0.5  # off 1: an item that could only be seen to misfit beyond an infit of 1.5 was not checked
WANTED = 0.3  # off 1: what a check should be able to see (the usual rule: 0.7 to 1.3)
# Of likely causes.
PEOPLE, RESPONSES = 4_000, 400_000  # at most, drawn at random
END = 0.2  # a right answer of less than this chance is a surprise, and a wrong one of less too
SURE, APART = 3.0, 4.0  # standard errors: of lucky answers above what is expected, and above those of slips
MORE = 1.15  # times as many lucky answers as expected, at least; unequal slopes stay below
SEVERAL, SHARE = 3, 0.1  # misfitting items that make a pattern: this many, and this share of all
LATE = 2.33  # standard errors of the mean position, the upper 1%
MOSTLY = 0.75  # of the items in trouble stand in the last third


def not_significant(what: str, p: float, beside: str = "") -> str:
    """A check that gave no alarm, with the level at which it would have and its p-value.

    >>> not_significant("second dimension", 0.033)
    'no second dimension significant at 1% (p = 0.033)'
    """
    return f"no {what} significant at {EACH:.0%} ({p_value(p)}{beside})"


@dataclass(frozen=True, eq=False)
class Checks:
    """What the checks found: the fit of the items (`columns`), the less against the more able half, dependent items and
    a second dimension (`shared`), people who misfit, each None where data are too few or too many; and how far off 1
    the infit of each item must be to be found with 80% probability (`limits`)."""

    columns: Columns
    halves: RaoTest | None
    shared: Dimensionality | None
    people: PersonMisfit | None
    limits: Floats
    bootstrap: int
    findings: tuple[Finding, ...]

    @property
    def alarmed(self) -> bool:
        """Whether any check says that something is wrong."""
        return "warning" in map(attrgetter("severity"), self.findings)

    def sentence(self) -> str:
        """Everything in one line."""
        parts = [self._items_said()]
        if self.halves is not None and self.halves.p < EACH:
            off = f"{size_in_words(self.halves.spread)}, {p_value(self.halves.p)}"
            parts.append(f"item difficulties differ between low and high scorers ({off})")
        elif self.halves is not None:
            parts.append(not_significant("difference between low and high scorers", self.halves.p))
        parts += self._shared_said()
        if self.people is not None:
            parts.append(misfit_sentence(self.people))
        return "; ".join(parts)

    def _items_said(self) -> str:
        infit = self.columns["infit_conditional"]
        known = np.isfinite(infit) & np.isfinite(self.limits)
        if not known.any():
            return "no item has answers that could misfit"
        for found in self.findings:
            if found.code == "misfitting_items":
                return found.sentence.rstrip(".")
        unseen = self.limits > VISIBLE
        blind = int(unseen.sum())
        if 2 * blind > np.isfinite(self.limits).sum():
            return f"with {np.median(self.columns['n'][unseen]):,.0f} answers per item, misfit could not be seen"
        text = f"no misfit of {'single ' if self.alarmed else ''}items seen"
        text += f" (conditional infit {infit[known].min():.2f} to {infit[known].max():.2f}"
        text += f"; {blind:,} of {known.sum():,} have too few answers to tell)" if blind else ")"
        slight = int(np.sum((self.columns["misfit_p"] < EACH) & (np.abs(infit - 1) < MATERIAL)))
        if slight and not self.bootstrap:
            text += f", though {slight:,} {'is' if slight == 1 else 'are'} off by less than {MATERIAL:g} beyond chance"
        if self.bootstrap:
            low, high = self.columns["infit_conditional_low"], self.columns["infit_conditional_high"]
            outside, judged = (infit < low) | (infit > high), np.isfinite(infit + low + high)
            by_chance = LEVEL * judged.sum()
            text += f", {np.sum(outside & judged):,} outside their own 95% limits, where chance puts {by_chance:.1f}"
        return text

    def _shared_said(self) -> list[str]:
        found = self.shared
        if found is None:
            return ["too few people or items to see a second dimension or dependent items"]
        slopes = " once slopes may differ" if found.by_slopes else ""
        parts = []
        if found.two_dimensions:
            weak = f"a weak contrast of {found.strength:.1f} items"
            parts.append(f"{weak if found.weak_contrast else 'more than one dimension'} ({p_value(found.contrast_p)})")
        elif not found.contrast:  # else it is a contrast of the dependent items, which are named next
            parts.append(not_significant(f"second dimension{slopes}", found.contrast_p))
        if found.dependent:
            number = int(found.dependence.dependent.sum())
            weak = "weak " if found.weak_pairs else ""
            parts.append(f"{weak}local dependence in {count(number, 'pair')} of items")
        else:
            beside = only_above(found.dependence.detectable)
            parts.append(not_significant(f"local dependence{slopes}", found.pairs_p, beside))
        if found.sampled:
            parts[-1] += f" in a sample of {found.n_people:,} people and {len(found.items):,} items"
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The checks as data, but for the items and the halves, which have places of their own."""
        limits = self.limits[np.isfinite(self.limits)]
        return {
            "level": TOGETHER,
            "level_each": EACH,
            "detectable_infit": float(np.median(limits)) if len(limits) else None,
            "shared": None if self.shared is None else self.shared.to_dict(),
            "erratic_people": None if self.people is None else self.people.to_dict(),
        }


def not_visible(columns: Columns, limits: Floats, blind: Ints) -> Finding:
    """A note on items whose misfit could not have been seen."""
    known = int(np.isfinite(limits).sum())
    answers, limit = float(np.median(columns["n"][blind])), float(np.median(limits[blind]))
    needed = float(np.median(columns["n"][blind] * (limits[blind] / WANTED) ** 2))
    who = "" if 2 * len(blind) > known else f" of {len(blind):,} of {known:,} items"
    return Finding(
        "misfit_not_visible",
        "note",
        f"With {answers:,.0f} answers per item, misfit{who} could not be seen: only an infit beyond "
        f"{1 + limit:.1f} would be found.",
        f"About {float(f'{needed:.1g}'):,.0f} answers per item would show an infit of {1 + WANTED:g}.",
        tuple(columns["item"][blind].tolist()),
    )


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
