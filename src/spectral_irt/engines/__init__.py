"""How a sum over people is done."""

from spectral_irt.engines.blas import one_blas_thread
from spectral_irt.engines.engine import Engine, Prepared
from spectral_irt.engines.local import LocalEngine
from spectral_irt.engines.memory import Budget, set_memory

__all__ = ["Budget", "Engine", "LocalEngine", "Prepared", "one_blas_thread", "set_memory"]
