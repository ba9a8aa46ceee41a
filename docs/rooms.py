"""The list of rooms in design.md, from the docstrings of their modules: `python docs/rooms.py --update` writes it.

A room is a folder or a module of `src/spectral_irt`. Each is listed with the first sentence of its docstring, and so is
every module in it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "spectral_irt"
PAGE = DOCS / "design.md"
BEGIN = "<!-- rooms: python docs/rooms.py --update -->\n"
END = "<!-- end of rooms -->\n"
# In the order in which data pass through them: a module imports only from its own room and from those above it.
ROOMS = ["errors", "installation", "text", "notebook", "files", "tables", "xlsx", "persons_file", "model", "numerics"]
ROOMS += ["engine", "data", "reading", "eval_logs", "terminal", "ability", "joint_errors"]
ROOMS += ["chain", "conditional", "calibration", "estimators", "sql"]
ROOMS += ["persons", "inference", "analysis", "bank", "simulate", "datasets"]
ROOMS += ["plots", "report", "leaderboard", "inspect", "pairs", "app", "cli"]
SENTENCE = re.compile(r"(.+?[.?!])(?=\s+[A-Z`]|$)", re.DOTALL)


def first_sentence(module: Path) -> str:
    """The first sentence of the docstring of a module, on one line."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence = SENTENCE.match(paragraph)
    return sentence[1] if sentence else paragraph


def rows_of(room: str) -> Iterator[str]:
    """The lines of a room: its sentence, then those of its modules and of the folders in it."""
    folder = SOURCE / room
    if not folder.is_dir():
        yield f"- **`{room}.py`**: {first_sentence(SOURCE / f'{room}.py')}\n"
        return
    yield f"- **`{room}/`**: {first_sentence(folder / '__init__.py')}\n"
    yield from _rows_in(folder, indent="  ")


def _rows_in(folder: Path, indent: str) -> Iterator[str]:
    for module in sorted(folder.glob("*.py")):
        if module.name != "__init__.py":
            yield f"{indent}- `{module.name}`: {first_sentence(module)}\n"
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield f"{indent}- `{inner.name}/`: {first_sentence(inner / '__init__.py')}\n"
        yield from _rows_in(inner, indent=f"{indent}  ")


def with_rooms(page: str) -> str:
    """The page with the list of rooms between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    rows = [row for room in ROOMS for row in rows_of(room)]
    return "".join([before, BEGIN, "\n", *rows, "\n", END, after])


def main() -> None:
    page = with_rooms(PAGE.read_text(encoding="utf-8"))
    if "--update" in sys.argv[1:]:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
