"""Does the model hold, how sure are the results, and what follows from them: free functions; see `Analysis`.

What most analyses do without is loaded when it is first asked for, as `inference.differential`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectral_irt.inference.groups.calibrations import model_like as model_like
    from spectral_irt.inference.groups.dif import Differential as Differential
    from spectral_irt.inference.groups.dif import differential as differential
    from spectral_irt.inference.groups.model_tests import score_split as score_split
    from spectral_irt.inference.items.distractors import distractors as distractors
    from spectral_irt.inference.ranks.items import ranking_columns as ranking_columns
    from spectral_irt.inference.scores.equating import equate_forms as equate_forms
else:
    _HOMES = {
        "Differential": "groups.dif",
        "differential": "groups.dif",
        "model_like": "groups.calibrations",
        "score_split": "groups.model_tests",
        "distractors": "items.distractors",
        "ranking_columns": "ranks.items",
        "equate_forms": "scores.equating",
    }

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
