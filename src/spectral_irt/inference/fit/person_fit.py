"""Person misfit: how many people answer less predictably than the model says, beside how many would by chance.

A person misfits when infit or outfit, standardized, is above 2. How many are by chance depends on the length of the
test, its targeting and the abilities, so it is simulated: the same people are shown the same items, answers are drawn
from the model, and measured and counted in the same way.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
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

PEOPLE, RESPONSES = 2_000, 100_000  # at most, drawn at random: 0.2 s of CPU
FEWEST = 100  # people: with fewer, a share of 10% beside 4% is chance
REPLICATES = 4  # the share by chance then rests on four times the people
NOTABLE = 0.02  # share of people beyond what is expected, below which the finding is a note
SMALLEST = 0.01  # of a variance: people who do not seem to differ at all still do a little


@dataclass(frozen=True)
class PersonMisfit:
    """What `person_misfit` found: how many people with a mixed score were looked at, the share of them who misfit, that
    among as many for whom the model holds, and the chance of so large a share under the model."""

    n_people: int
    share: float
    chance: float
    p: float

    @property
    def sentence(self) -> str:
        """Person misfit beside what is expected, and whether chance explains the difference."""
        return misfit_sentence(self.share, self.chance, self.p)

    @property
    def findings(self) -> tuple[Finding, ...]:
        if self.p >= EACH:
            return ()
        sentence = (
            f"{self.share:.1%} of {self.n_people:,} people answer less predictably than the model says (infit or "
            f"outfit z above {LIMIT:g}); expected are {self.chance:.1%}."
        )
        remedy = (
            "persons.csv has infit and outfit of each person; look at the answers of those who misfit most before "
            "their measures are used."
        )
        notable = self.share - self.chance >= NOTABLE
        return (Finding("erratic_people", "warning" if notable else "note", sentence, remedy),)

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        return asdict(self) | {"limit": LIMIT}


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
    people, chosen = responses.sample(most, np.random.default_rng(0), informed)
    people = people if people is responses else people.in_one_block()
    measured, squares = measures(people, difficulty) if known is None else known
    place = slice(None) if known is None else chosen
    share, n = _share(squares, place)
    if n < FEWEST:  # the others answered only items without a difficulty
        return None
    posterior = shrunken(measured, place)
    misfits, total = 0.0, 0
    for seed in np.random.SeedSequence([0, 2]).spawn(REPLICATES):
        drawn, number = _share(measures(redraw(people, difficulty, *posterior, seed), difficulty)[1])
        misfits += drawn * number
        total += number
    if not total:
        return None
    # The chance of so many among all that were seen or drawn, by the binomial: rates of 2% are nothing like normal.
    seen, by_chance = round(share * n), round(misfits)
    p = float(scipy.special.bdtrc(seen - 1, seen + by_chance, n / (n + total))) if seen else 1.0
    return PersonMisfit(n, share, misfits / total, p)


def misfit_sentence(share: float, chance: float, p: float) -> str:
    """Person misfit beside what is expected."""
    same = " (no more than chance explains)" if p >= EACH and round(share, 3) > round(chance, 3) else ""
    return f"person misfit {share:.1%}, expected {chance:.1%}{same}"


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


def measures(responses: Responses, difficulty: Floats) -> tuple[Abilities, MeanSquares]:
    """Warm's abilities, and how well people fit at these."""
    measured = abilities(responses, difficulty, "wle")
    return measured, person_mean_squares(responses, difficulty, measured.ability)


def _share(found: MeanSquares, place: Any = slice(None)) -> tuple[float, int]:
    """Erratic people among those of these whose answers can tell, and how many these are."""
    known = np.isfinite(found.infit[place])
    n = int(known.sum())
    misfit = (found.infit_z[place] > LIMIT) | (found.outfit_z[place] > LIMIT)
    return (float(misfit[known].mean()) if n else 0.0), n
