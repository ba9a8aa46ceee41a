"""How much each person counts: survey weights, checked, and what to say about them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import column_of
from spectral_irt.errors import OptionError, listed

WEIGHTED = "weights"


def person_weights(responses: Responses, weights: ArrayLike) -> Floats:
    """One positive number for every person, with mean 1: estimates do not depend on the unit of weights."""
    if isinstance(weights, str):
        weights = [np.nan if value is None else value for value in column_of(responses, weights)]
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("the weights are not all numbers; give each person a number above zero.") from None
    if values.shape != (responses.n_persons,):
        raise OptionError(
            f"there are {values.size:,} weights for {responses.n_persons:,} people; give one for each, in their order."
        )
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise OptionError(
            f"{int(bad.sum()):,} {'person has' if bad.sum() == 1 else 'people have'} no weight above zero: "
            f"{listed(responses.persons[bad])}. Leave them out, or give them one."
        )
    return values / values.mean()


def weights_finding(weights: Floats) -> Finding:
    """What weights there were, and how many people of equal weight they are worth."""
    worth = weights.sum() ** 2 / np.sum(weights**2)
    return Finding(
        WEIGHTED,
        "note",
        f"People count by their weights, from {weights.min():.2g} to {weights.max():.2g} times the mean; together they "
        f"are worth {worth:,.0f} people of equal weight.",
        "Difficulties, their standard errors, and mean, sd and reliability of people and groups allow for the weights; "
        "tables of single people or items and tests of fit count everybody once.",
    )
