"""What a fit tells the log of the program that uses this package: `logging.getLogger("spectral_irt")`.

What is going on is of level DEBUG, what came of it INFO, and findings are INFO (notes) or WARNING.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from spectral_irt.data import Responses

log = logging.getLogger("spectral_irt")
log.addHandler(logging.NullHandler())  # a program that sets up no log hears nothing
LEVELS = {"note": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class LoggedFit:
    """A fit from its beginning on; `tell` is for what is going on, `done` for what came of it."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self._progress = progress
        self._start = time.perf_counter()

    def tell(self, text: str) -> None:
        log.debug("%s", text)
        if self._progress is not None:
            self._progress(text)

    def done(self, responses: Responses, calibration: Any) -> None:
        made, seconds = calibration.provenance, time.perf_counter() - self._start
        log.info(
            "%s: %d items from %d responses of %d people, %d iterations, %.2f s",
            *(made.estimator, responses.n_items, responses.n_responses, responses.n_persons, made.iterations, seconds),
        )
        for finding in calibration.findings:
            log.log(LEVELS[finding.severity], "%s: %s", finding.code, finding)
