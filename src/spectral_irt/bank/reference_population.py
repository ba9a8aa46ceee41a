"""The people a bank was calibrated with, as a normal population of abilities: the prior of EAP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Floats
from spectral_irt.errors import OptionError
from spectral_irt.inference.scores.marginal_reliability import sample_of_people
from spectral_irt.persons.abilities import COLLAPSED, abilities

FEWEST = 30  # people: with fewer the spread of abilities is anybody's guess


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
            raise OptionError(f"`population` is {mean:g},{sd:g}; it is a mean and a standard deviation above zero.")
        return cls(mean, sd)

    @classmethod
    def of(cls, responses: Responses, difficulty: Floats) -> Population | None:
        """Estimated from these answers (of a sample of the people where there are very many); None of too few."""
        if np.count_nonzero(responses.counts) < FEWEST:
            return None
        found = abilities(sample_of_people(responses), difficulty, "eap")
        users = int((found.n > 0).sum())
        if users < FEWEST or found.prior is None or found.prior[1] <= COLLAPSED:
            return None
        return cls(*found.prior, users)
