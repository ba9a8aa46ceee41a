"""The people a bank was calibrated with, as a normal population of abilities: the prior of EAP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.errors import OptionError, option
from spectral_irt.persons.abilities import COLLAPSED, abilities
from spectral_irt.responses import Responses
from spectral_irt.responses.block import Floats

FEWEST = 30  # people: with fewer the spread of abilities is anybody's guess
ENOUGH = 100_000  # responses: from a sample of people with so many the population is known to a hundredth
LEAST_SAMPLE = 200  # people, however many answers each has


@dataclass(frozen=True)
class Population:
    """Mean and standard deviation of the abilities, in logits, and how many people say so (0: given by hand)."""

    mean: float
    sd: float
    users: int = 0

    @classmethod
    def given(cls, mean_and_sd: tuple[float, float]) -> Population:
        mean, sd = (float(number) for number in mean_and_sd)
        if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
            raise OptionError(
                option("population"), f" is {mean:g},{sd:g}; it is a mean and a standard deviation above zero."
            )
        return cls(mean, sd)

    @classmethod
    def of(cls, responses: Responses, difficulty: Floats) -> Population | None:
        """Estimated from these answers (of a sample of the people where there are very many); None of too few."""
        someone = np.flatnonzero(responses.counts > 0)
        if len(someone) < FEWEST:
            return None
        most = max(LEAST_SAMPLE, int(ENOUGH / max(responses.counts[someone].mean(), 1)))
        if len(someone) > most:
            someone = someone[np.linspace(0, len(someone) - 1, most).astype(np.int64)]
        found = abilities(responses.take_users(someone), difficulty, "eap")
        users = int((found.n > 0).sum())
        if users < FEWEST or found.prior_mean is None or found.prior_sd is None or found.prior_sd <= COLLAPSED:
            return None
        return cls(found.prior_mean, found.prior_sd, users)
