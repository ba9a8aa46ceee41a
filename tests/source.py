"""The package's own source, parsed once for all tests that look through it.

A test looks at all modules and lists what is wrong: a test for each module would be thousands.
"""

import ast
import gc
from functools import cache
from pathlib import Path

import spectral_irt

ROOT = Path(spectral_irt.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    gc.disable()  # it would look at half a million nodes again and again, which takes longer than to parse them
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a module, as `ast.walk` gives them."""
    return list(ast.walk(tree(path)))
