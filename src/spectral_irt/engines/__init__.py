"""How a sum over people is done."""

from spectral_irt.engines.blas import one_blas_thread
from spectral_irt.engines.engine import Engine, Prepared
from spectral_irt.engines.local import LocalEngine

__all__ = ["Engine", "LocalEngine", "Prepared", "one_blas_thread"]
