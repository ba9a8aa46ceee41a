"""The first analysis as a notebook: `python scripts/notebook.py` writes examples/first_analysis.ipynb.

From its tutorial: prose becomes cells of text, each `python` block a cell of code. What blocks print is left out; a
notebook shows its own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorials" / "python.md"
NOTEBOOK = ROOT / "examples" / "first_analysis.ipynb"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.MULTILINE)  # the cell above draws it
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")


def notebook_of(page: str) -> dict[str, Any]:
    """The notebook of a page, as its JSON."""
    page = page.replace(" The same as a notebook: `examples/first_analysis.ipynb`.", "")
    cells = []
    place = 0
    for block in BLOCK.finditer(page):
        cells.append(_text_cell(page[place : block.start()]))
        if block[1] == "python":
            cells.append(_code_cell(block[2]))
        place = block.end()
    cells.append(_text_cell(page[place:]))
    named = [cell | {"id": f"cell-{k}"} for k, cell in enumerate(cell for cell in cells if cell["source"])]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": named, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _text_cell(text: str) -> dict[str, Any]:
    text = LINK.sub(lambda link: f"](../docs/tutorials/{link[1]})", PICTURE.sub("", text)).strip()
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code_cell(code: str) -> dict[str, Any]:
    # A notebook draws what stands in the last line.
    code = code.replace('second.plot.wright().save("wright.svg")\n', "")
    if "second.report(" in code:
        code += "second.plot.wright()\n"
    source = code.rstrip("\n").splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def main() -> None:
    notebook = notebook_of(PAGE.read_text(encoding="utf-8"))
    NOTEBOOK.parent.mkdir(exist_ok=True)
    NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
