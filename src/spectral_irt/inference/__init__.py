"""Does the model hold, how sure are the results, and what follows from them."""

from spectral_irt.inference import ranking  # makes `fit.ranking()` known

__all__ = ["ranking"]
