"""How a sum over people is done."""

from spectral_irt.engine.base import Engine, Prepared
from spectral_irt.engine.memory import Budget, set_memory
from spectral_irt.engine.threads import LocalEngine, one_blas_thread

__all__ = ["Budget", "Engine", "LocalEngine", "Prepared", "one_blas_thread", "set_memory"]
