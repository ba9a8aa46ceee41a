"""What holds for all tests."""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# The same examples on every machine, every time.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

# Tests start some hundred processes. Where Python is told to keep no bytecode, each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and thousands of tests stay to the end: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
