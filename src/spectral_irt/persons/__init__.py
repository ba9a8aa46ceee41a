"""How able people are: abilities with standard errors, person fit, score tables, and scoring of new people."""

from spectral_irt.persons.abilities import Abilities, abilities, score_abilities
from spectral_irt.persons.align import align
from spectral_irt.persons.residuals import MeanSquares, person_mean_squares
from spectral_irt.persons.table import persons, score_table

__all__ = [
    "Abilities",
    "MeanSquares",
    "abilities",
    "align",
    "person_mean_squares",
    "persons",
    "score_abilities",
    "score_table",
]
