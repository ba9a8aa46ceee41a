"""Draw responses under the Rasch model, with the sampling designs of the paper and of practice.

A design says which items each person is shown; `rasch` draws the parameters, then the answers, a run of people at
a time. No array of people x items is ever made: time and memory grow with the number of responses.
"""

from spectral_irt.simulate.designs import (
    DESIGNS,
    Booklets,
    Complete,
    Design,
    LinkedForms,
    Popularity,
    Sampled,
)
from spectral_irt.simulate.drawing import Simulated, rasch
from spectral_irt.simulate.ordered_answers import SimulatedOrdered, partial_credit, rating_scale
from spectral_irt.simulate.responsive import Adaptive, Stopping, TwoStage

__all__ = [
    "DESIGNS",
    "Adaptive",
    "Booklets",
    "Complete",
    "Design",
    "LinkedForms",
    "Popularity",
    "Sampled",
    "Simulated",
    "SimulatedOrdered",
    "Stopping",
    "TwoStage",
    "partial_credit",
    "rasch",
    "rating_scale",
]
