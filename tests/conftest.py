"""What holds for all tests."""

from __future__ import annotations

import os

# Tests start some hundred processes. Where Python is told to keep no bytecode, each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
