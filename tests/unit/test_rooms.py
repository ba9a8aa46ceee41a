"""Data flow one way: a module imports only from its own room or from the rooms above it."""

import ast
from pathlib import Path

from rooms import PAGE, ROOMS, with_rooms
from source import MODULES as EVERY
from source import ROOT, named, nodes

ABOVE_ALL = (ROOT / "__init__.py", ROOT / "__main__.py")  # the public names and the command stand outside the rooms
MODULES = [path for path in EVERY if path not in ABOVE_ALL]
# Doors: a method that hands its object to a lower room, which is imported when the method is called.
DOORS = {
    "data/responses.py": {"reading", "estimators"},
    "data/builder.py": {"reading"},
    "reading/formats.py": {"eval_logs"},
    "estimators/base.py": {"analysis"},
    "estimators/anchored.py": {"bank"},
    "analysis/analysis.py": {"bank", "plots", "report"},
    "analysis/comparison.py": {"plots"},
    "calibration.py": {"bank"},
}


def test_the_design_lists_the_rooms() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_rooms(page), "the list of rooms is not that of the docstrings: python docs/rooms.py --update"


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(source: list[ast.AST], package: list[str]) -> set[str]:
    """Rooms that a module of `package` imports from, in functions too; what only a type checker sees is left out."""
    guards = [node for node in source if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    unseen = {node for guard in guards for statement in guard.body for node in ast.walk(statement)}
    rooms = set()
    for node in source:
        if node in unseen:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "spectral_irt" else [module]
        rooms |= {name.split(".")[1] for name in names if name.startswith("spectral_irt.")}
    return rooms


def test_imports_go_up() -> None:
    for path in MODULES:
        package = ["spectral_irt", *path.relative_to(ROOT).parent.parts]
        room = room_of(path)
        assert room in ROOMS, f"{path} is in no room; add its room to ROOMS and to the design"
        allowed = set(ROOMS[: ROOMS.index(room) + 1]) | {"__version__"} | DOORS.get(named(path), set())
        below = imported_rooms(nodes(path), package) - allowed
        assert not below, f"{path} imports from {sorted(below)}, below its own room {room!r}"


def test_the_check_itself_sees_every_kind_of_import() -> None:
    source = """
import spectral_irt.cli.main
from spectral_irt import bank, __version__
from spectral_irt.chain.operator import Chain
from . import block
from .. import errors
from ..plots import curves
import numpy
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from spectral_irt.report import page
def later():
    from spectral_irt.persons import abilities
"""
    found = imported_rooms(list(ast.walk(ast.parse(source))), ["spectral_irt", "data"])
    assert found == {"cli", "bank", "__version__", "chain", "data", "errors", "plots", "persons"}
