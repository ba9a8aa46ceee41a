"""Person misfit: how many people answer less predictably than the model says, beside how many would by chance.

A person misfits when infit or outfit, standardized, is above 2. How many are by chance depends on the length of the
test, its targeting and the abilities, so it is simulated: the same people are shown the same items, answers are drawn
from the model, and measured and counted in the same way. One of the five checks of fit (`checks.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Mask
from spectral_irt.errors import Severity
from spectral_irt.inference.fit.redraw import redraw
from spectral_irt.inference.results import EACH
from spectral_irt.persons.abilities import Abilities, abilities
from spectral_irt.persons.residuals import ERRATIC, MeanSquares, person_mean_squares
from spectral_irt.text import p_value

MOST_PEOPLE = 2_000  # looked at, drawn at random: 0.2 s of CPU
MOST_RESPONSES = 100_000
FEWEST_PEOPLE = 100  # with fewer, a share of 10% beside 4% is chance
REPLICATES = 4  # the share by chance then rests on four times the people
NOTABLE = 0.02  # share of people beyond what is expected, below which the finding is a note
LEAST_VARIANCE = 0.01  # of abilities: people who do not seem to differ at all still do a little


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
        return {"n_people": self.n_people, "share": self.share, "chance": self.chance, "p": self.p, "limit": ERRATIC}


class MisfitCount(NamedTuple):
    """How many people misfit, of how many whose answers can tell."""

    misfitting: int
    people: int

    @classmethod
    def of(cls, fit: MeanSquares) -> MisfitCount:
        judged = np.isfinite(fit.infit)
        misfits = (fit.infit_z > ERRATIC) | (fit.outfit_z > ERRATIC)
        return cls(int(misfits[judged].sum()), int(judged.sum()))


class Posterior(NamedTuple):
    """Mean and standard deviation of each person's ability."""

    mean: Floats
    sd: Floats


def person_misfit(
    responses: Responses, difficulty: Floats, *, known: tuple[Abilities, MeanSquares] | None = None
) -> PersonMisfit | None:
    """The share of people who misfit, and that among people who follow the model; None with too few people.

    `known` has Warm's abilities of everyone and the fit of everyone at these, where they have been computed.
    """
    mixed = np.flatnonzero(responses.informative)
    if len(mixed) < FEWEST_PEOPLE:
        return None
    most = min(MOST_PEOPLE, int(MOST_RESPONSES / float(responses.counts[mixed].mean())))
    if most < FEWEST_PEOPLE:
        return None
    sample = responses
    people = np.arange(responses.n_persons)
    if len(mixed) > most:
        sample, people = responses.sample(most, np.random.default_rng(0), mixed)
        sample = sample.in_one_block()
    if known is None:
        measured = abilities(sample, difficulty, "wle")
        fit = person_mean_squares(sample, difficulty, measured.ability)
    else:
        measured = known[0].take(people)
        fit = known[1].take(people)
    observed = MisfitCount.of(fit)
    if observed.people < FEWEST_PEOPLE:  # the others answered only items without a difficulty
        return None
    drawn = _count_under_the_model(sample, difficulty, posterior_of_abilities(measured))
    if not drawn.people:
        return None
    p = 1.0
    if observed.misfitting:
        # The chance of so many among all that were seen or drawn, by the binomial: rates of 2% are nothing like normal.
        share_of_people = observed.people / (observed.people + drawn.people)
        misfits = observed.misfitting + drawn.misfitting
        p = float(scipy.special.bdtrc(observed.misfitting - 1, misfits, share_of_people))
    misfit = PersonMisfit(
        n_people=observed.people,
        share=observed.misfitting / observed.people,
        chance=drawn.misfitting / drawn.people,
        p=p,
    )
    if p >= EACH:
        return misfit
    return replace(misfit, findings=(_erratic_people(misfit),))


def misfit_against_draws(misfitting: Floats, excess: Floats, n_people: int) -> PersonMisfit | None:
    """How many of these people misfit, against how many do in each data set drawn given the scores, which follow the
    observed number; None with too few people.

    Where a draw has as many, the one counts as more in which these exceed the limit by more (`excess`, the sum of it):
    numbers of five or ten people have many ties, and a test that counts all of them as larger hardly ever alarms.
    """
    if n_people < FEWEST_PEOPLE:
        return None
    drawn = misfitting[1:]
    as_many = (drawn == misfitting[0]) & (excess[1:] >= excess[0])
    as_large = (drawn > misfitting[0]) | as_many
    misfit = PersonMisfit(
        n_people=n_people,
        share=float(misfitting[0]) / n_people,
        chance=float(drawn.mean()) / n_people,
        p=float((1 + as_large.sum()) / (1 + len(drawn))),
    )
    if misfit.p >= EACH:
        return misfit
    return replace(misfit, findings=(_erratic_people(misfit),))


def _count_under_the_model(responses: Responses, difficulty: Floats, posterior: Posterior) -> MisfitCount:
    """How many misfit among these people where their answers follow the model, over all replicates."""
    counts = []
    for seed in np.random.SeedSequence([0, 2]).spawn(REPLICATES):
        replicate = redraw(responses, difficulty, posterior.mean, posterior.sd, seed)
        theta = abilities(replicate, difficulty, "wle").ability
        counts.append(MisfitCount.of(person_mean_squares(replicate, difficulty, theta)))
    return MisfitCount(*map(sum, zip(*counts, strict=True)))


def _erratic_people(misfit: PersonMisfit) -> Finding:
    sentence = (
        f"{misfit.share:.1%} of {misfit.n_people:,} people answer less predictably than the model says (infit or "
        f"outfit z above {ERRATIC:g}); expected are {misfit.chance:.1%}."
    )
    remedy = (
        "`study.persons()` has infit and outfit of each person; look at the answers of those who misfit most before "
        "their measures are used."
    )
    severity: Severity = "warning" if misfit.share - misfit.chance >= NOTABLE else "note"
    return Finding("erratic_people", severity, sentence, remedy)


def misfit_sentence(misfit: PersonMisfit) -> str:
    """How many persons misfit beside how many are expected to, and whether that is significant."""
    misfitting = round(misfit.share * misfit.n_people)
    expected = misfit.chance * misfit.n_people
    digits = 1 if 0 < expected < 1 else 0
    significant = "" if misfit.p < EACH else f"not significant at {EACH:.0%}, "
    return (
        f"{misfitting:,} of {misfit.n_people:,} persons misfit ({expected:,.{digits}f} expected; "
        f"{significant}{p_value(misfit.p)})"
    )


def posterior_of_abilities(measured: Abilities) -> Posterior:
    """Abilities to draw answers of these people from: measures contain their errors, and would vary too much.

    The mean and standard error of each person's ability under a normal population, whose variance is that of the
    measures less that of their errors. (The posterior under a fitted population costs ten times as much, and the share
    by chance is the same.)
    """
    theta = measured.ability
    error_variance = measured.se**2
    finite: Mask = np.isfinite(theta) & np.isfinite(error_variance)
    mixed = finite & ~measured.extreme
    mean = float(theta[mixed].mean())
    observed_variance = float(theta[mixed].var())
    true_variance = observed_variance - float(error_variance[mixed].mean())
    true_variance = max(true_variance, LEAST_VARIANCE * observed_variance, LEAST_VARIANCE)
    with np.errstate(invalid="ignore"):
        reliability = np.where(finite, true_variance / (true_variance + error_variance), 0.0)
    deviation = np.where(reliability > 0, theta, mean) - mean
    return Posterior(mean + reliability * deviation, np.sqrt(true_variance * (1 - reliability)))
