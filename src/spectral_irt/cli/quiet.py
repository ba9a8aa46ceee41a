"""Silence for what compiled libraries print on stderr by themselves, such as a panic of polars over a damaged file.

The error reaches Python all the same and becomes one sentence; the dump before it would only frighten.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from spectral_irt.errors import SpectralIrtError


@contextmanager
def native_noise_held_back() -> Iterator[None]:
    """Keep back what goes straight to file descriptor 2; it comes out after all unless the block ends as it may.

    Python's own `sys.stderr` still reaches the terminal. Nothing is done where it is not descriptor 2.
    """
    if not _is_descriptor_2():
        yield
        return
    python = sys.stderr
    python.flush()
    terminal = os.dup(2)
    with (
        tempfile.TemporaryFile() as noise,
        open(terminal, "w", encoding=python.encoding, errors=python.errors, buffering=1) as direct,
    ):
        os.dup2(noise.fileno(), 2)
        sys.stderr = direct
        expected = False
        try:
            yield
        except (SpectralIrtError, KeyboardInterrupt):
            expected = True
            raise
        finally:
            direct.flush()
            sys.stderr = python
            os.dup2(terminal, 2)
            noise.seek(0)
            if not expected:
                os.write(2, noise.read())


def _is_descriptor_2() -> bool:
    try:
        return sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        return False
