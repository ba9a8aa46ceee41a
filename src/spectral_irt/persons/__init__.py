"""How able people are: abilities with standard errors, and how regular their answers are."""

from spectral_irt.ability import score_abilities
from spectral_irt.persons.abilities import Abilities, abilities
from spectral_irt.persons.align import align
from spectral_irt.persons.plausible import PlausibleValues, plausible_values
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares

__all__ = ["Abilities", "MeanSquares", "PlausibleValues", "abilities", "align", "person_mean_squares"]
__all__ += ["plausible_values", "score_abilities"]
