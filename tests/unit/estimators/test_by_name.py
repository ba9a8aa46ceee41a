"""What the command line offers is what the estimators take."""

from __future__ import annotations

from spectral_irt.chain.regularization import NU_RULES
from spectral_irt.chain.weights import WEIGHTINGS
from spectral_irt.estimators.base import DESIGNS
from spectral_irt.estimators.by_name import CHOICES
from spectral_irt.estimators.spectral_errors import SE_METHODS


def test_the_values_offered_are_those_that_the_chain_declares() -> None:
    assert {"weighting": tuple(WEIGHTINGS), "nu_rule": NU_RULES, "se": SE_METHODS, "design": DESIGNS} == CHOICES
