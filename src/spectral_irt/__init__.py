"""Calibrate tests: item difficulties with standard errors by the spectral Rasch estimator, at any size.

>>> from spectral_irt import SpectralRasch, datasets
>>> fit = SpectralRasch().fit(datasets.load_lsat())
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from spectral_irt.public import *  # noqa: F403
else:
    # numpy and scipy come with the first name that is asked for, so that the command can be interrupted at any time.
    def __getattr__(name: str) -> Any:
        public = import_module("spectral_irt.public")
        if name == "__all__" or name in public.__all__:
            return getattr(public, name)
        raise AttributeError(f"module 'spectral_irt' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return [*globals(), *import_module("spectral_irt.public").__all__]
