"""Person misfit: how many people answer less predictably than the model says, beside how many would by chance.

A person misfits when infit or outfit, standardized, is above 2. How many are by chance depends on the length of the
test, its targeting and the abilities, so it is simulated: the same people are shown the same items, answers are drawn
from the model, and measured and counted in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.inference.fit.bootstrap import redraw
from spectral_irt.inference.results import EACH
from spectral_irt.persons.abilities import Abilities, abilities
from spectral_irt.persons.residuals import ERRATIC as LIMIT
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares
from spectral_irt.text import p_value

PEOPLE, RESPONSES = 2_000, 100_000  # at most, drawn at random: 0.2 s of CPU
FEWEST = 100  # people: with fewer, a share of 10% beside 4% is chance
REPLICATES = 4  # the share by chance then rests on four times the people
NOTABLE = 0.02  # share of people beyond what is expected, below which the finding is a note
SMALLEST = 0.01  # of a variance: people who do not seem to differ at all still do a little


@dataclass(frozen=True)
class PersonMisfit:
    """What `person_misfit` found: how many people with a mixed score were looked at, the share of them who misfit, that
    among as many for whom the model holds, the chance of so large a share under the model, and a finding where that is
    small."""

    n_people: int
    share: float
    chance: float
    p: float
    findings: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        return {"n_people": self.n_people, "share": self.share, "chance": self.chance, "p": self.p, "limit": LIMIT}


def person_misfit(
    responses: Responses, difficulty: Floats, *, known: tuple[Abilities, MeanSquares] | None = None
) -> PersonMisfit | None:
    """The share of people who misfit, and that among people who follow the model; None with too few people.

    `known` has Warm's abilities of everyone and the fit of everyone at these, where they have been computed.
    """
    informed = np.flatnonzero(responses.informative)
    if len(informed) < FEWEST:
        return None
    most = min(PEOPLE, int(RESPONSES / float(responses.counts[informed].mean())))
    if most < FEWEST:
        return None
    people, chosen = responses, np.arange(responses.n_persons)
    if len(informed) > most:
        people, chosen = responses.sample(most, np.random.default_rng(0), informed)
        people = people.in_one_block()
    place: Any = slice(None)
    if known is None:
        measured = abilities(people, difficulty, "wle")
        squares = person_mean_squares(people, difficulty, measured.ability)
    else:
        (measured, squares), place = known, chosen
    seen, n = _misfits(squares, place)
    if n < FEWEST:  # the others answered only items without a difficulty
        return None
    posterior = shrunken(measured, place)
    by_chance = total = 0
    for seed in np.random.SeedSequence([0, 2]).spawn(REPLICATES):
        again = redraw(people, difficulty, *posterior, seed)
        theta = abilities(again, difficulty, "wle").ability
        drawn, number = _misfits(person_mean_squares(again, difficulty, theta))
        by_chance += drawn
        total += number
    if not total:
        return None
    # The chance of so many among all that were seen or drawn, by the binomial: rates of 2% are nothing like normal.
    p = float(scipy.special.bdtrc(seen - 1, seen + by_chance, n / (n + total))) if seen else 1.0
    found = PersonMisfit(n, seen / n, by_chance / total, p)
    return found if p >= EACH else replace(found, findings=(_erratic_people(found),))


def _erratic_people(found: PersonMisfit) -> Finding:
    sentence = (
        f"{found.share:.1%} of {found.n_people:,} people answer less predictably than the model says (infit or "
        f"outfit z above {LIMIT:g}); expected are {found.chance:.1%}."
    )
    remedy = (
        "persons.csv has infit and outfit of each person; look at the answers of those who misfit most before "
        "their measures are used."
    )
    notable = found.share - found.chance >= NOTABLE
    return Finding("erratic_people", "warning" if notable else "note", sentence, remedy)


def misfit_sentence(found: PersonMisfit) -> str:
    """How many persons misfit beside how many are expected to, and whether that is significant."""
    misfitting = round(found.share * found.n_people)
    expected = found.chance * found.n_people
    said = f"{expected:,.0f}" if expected >= 1 or expected == 0 else f"{expected:.1f}"
    significant = "" if found.p < EACH else f"not significant at {EACH:.0%}, "
    return f"{misfitting:,} of {found.n_people:,} persons misfit ({said} expected; {significant}{p_value(found.p)})"


def shrunken(measured: Abilities, place: Any) -> tuple[Floats, Floats]:
    """Abilities to draw answers of these people from: measures contain their errors, and would vary too much.

    The mean and standard error of each person's ability under a normal population, whose variance is that of the
    measures less that of their errors. (The posterior under a fitted population costs ten times as much, and the share
    by chance is the same.)
    """
    theta, error = measured.ability[place], measured.se[place] ** 2
    known = np.isfinite(theta) & np.isfinite(error) & ~measured.extreme[place]
    mean, spread = float(theta[known].mean()), float(theta[known].var())
    spread = max(spread - float(error[known].mean()), SMALLEST * spread, SMALLEST)
    with np.errstate(invalid="ignore"):
        trust = np.where(np.isfinite(theta) & np.isfinite(error), spread / (spread + error), 0.0)
    return mean + trust * (np.where(trust > 0, theta, mean) - mean), np.sqrt(spread * (1 - trust))


def _misfits(found: MeanSquares, place: Any = slice(None)) -> tuple[int, int]:
    """How many people misfit among those of these whose answers can tell, and how many these are."""
    known = np.isfinite(found.infit[place])
    misfit = (found.infit_z[place] > LIMIT) | (found.outfit_z[place] > LIMIT)
    return int(misfit[known].sum()), int(known.sum())
