"""One file for each method. These names are loaded when they are first asked for, as `estimators.LinearDesign`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectral_irt.estimators.conditional import ConditionalRasch as ConditionalRasch
    from spectral_irt.estimators.conditional import conditional_thresholds as conditional_thresholds
    from spectral_irt.estimators.linear_design import LinearDesign as LinearDesign
else:
    _HOMES = {
        "ConditionalRasch": "conditional",
        "conditional_thresholds": "conditional",
        "LinearDesign": "linear_design",
    }

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
