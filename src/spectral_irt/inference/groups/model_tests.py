"""Does the model hold? The tests of the model, gathered.

| question | test |
|---|---|
| Are items as hard for high scores as for low ones (any calibration)? | `score_split`: Wald, sandwich covariances |
| The same, by conditional likelihood | `andersen`; item by item `wald_by_item` |
| Do two sets of items measure one ability? | `martin_loef` |
| Are items as hard for one group of people as for another? | `differential` |
| Do some items share more than the ability? | `local_dependence`: Q3 and residual components |

The first, the last two and more are methods of an `Analysis`: `model_test`, `dif`, `local_dependence`.
"""

from spectral_irt.inference.dimensions.q3 import LocalDependence, local_dependence
from spectral_irt.inference.groups.andersen import AndersenTest, andersen
from spectral_irt.inference.groups.dif import Differential, differential
from spectral_irt.inference.groups.martin_loef import MartinLoefTest, martin_loef
from spectral_irt.inference.groups.wald import WaldTest, score_split, wald_by_item

__all__ = [
    "AndersenTest",
    "Differential",
    "LocalDependence",
    "MartinLoefTest",
    "WaldTest",
    "andersen",
    "differential",
    "local_dependence",
    "martin_loef",
    "score_split",
    "wald_by_item",
]
