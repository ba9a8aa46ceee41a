"""Draw responses under the Rasch model and its kin, with the sampling designs of the paper and of practice.

A design says which items each person is shown; the parameters are drawn, then the answers, a run of people at a time.
No array of people x items is ever made: time and memory grow with the number of responses."""

from spectral_irt.simulate.designs import (
    DESIGNS,
    Adaptive,
    Booklets,
    Complete,
    Design,
    LinkedForms,
    Popularity,
    Sampled,
    Stopping,
    TwoStage,
)
from spectral_irt.simulate.draw import Simulated, partial_credit, rasch, rating_scale

__all__ = ["DESIGNS", "Adaptive", "Booklets", "Complete", "Design", "LinkedForms", "Popularity", "Sampled", "Simulated"]
__all__ += ["Stopping", "TwoStage", "partial_credit", "rasch", "rating_scale"]
