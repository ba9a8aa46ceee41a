"""How a sum over people is done."""

from spectral_irt.engine.base import Budget, Engine, LocalEngine, Prepared, one_blas_thread, set_memory

__all__ = ["Budget", "Engine", "LocalEngine", "Prepared", "one_blas_thread", "set_memory"]
