"""Pictures of an analysis: displays, each with `frame()`, its table, and `plot()`, its picture. Those that few analyses
have are loaded when they are first asked for, as `plots.DifferentialPlot`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectral_irt.plots.dif import DifferentialPlot as DifferentialPlot
    from spectral_irt.plots.distractors import distractor_curves as distractor_curves
    from spectral_irt.plots.distractors import distractor_sheet as distractor_sheet
else:
    _HOMES = {"DifferentialPlot": "dif", "distractor_curves": "distractors", "distractor_sheet": "distractors"}

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
