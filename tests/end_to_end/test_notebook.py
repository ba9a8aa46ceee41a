"""The notebook is the tutorial, and its cells run."""

import ast
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("notebook", ROOT / "scripts" / "notebook.py")
notebook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebook)


def test_it_is_the_tutorial():
    written = json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))
    made = notebook.notebook_of(notebook.PAGE.read_text(encoding="utf-8"))
    assert written == made, "python scripts/notebook.py"


@pytest.mark.slow
def test_every_cell_runs_and_the_last_line_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert Path("report.html").stat().st_size > 10_000
    # What stands in the last line of the last cell is drawn by the notebook.
    [*_, last] = (cell for cell in cells if cell["cell_type"] == "code")
    shown = eval(ast.unparse(ast.parse("".join(last["source"])).body[-1]), names)
    assert shown._repr_png_().startswith(b"\x89PNG")
    for name in ("fit", "study", "comparison"):
        assert "<table>" in names[name]._repr_html_()
