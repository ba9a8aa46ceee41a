"""How a sum over users is done."""

from spectral_irt.engines.local import LocalEngine

__all__ = ["LocalEngine"]
