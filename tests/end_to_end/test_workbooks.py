"""From one workbook to another: every command that reads answers, and what `-o results.xlsx` holds."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

from end_to_end.tables import read_csv
from spectral_irt import read, xlsx

pytestmark = pytest.mark.slow  # whole runs of commands

Cli = Callable[..., Any]


def write(path: str = "test.xlsx", people: int = 120) -> None:
    """Answers to questions with names that begin like formulas, a key, and a table of the people, a sheet each."""
    rng = np.random.default_rng(7)
    items = ["=q1", "+q2", "-q3", "@q4", "q5", "q6"]
    right = rng.random((people, 6)) < 1 / (1 + np.exp(np.linspace(-1, 1, 6) - rng.normal(size=(people, 1))))
    book = openpyxl.Workbook()
    answers = book.active
    answers.title = "Answers"
    _append(answers, ["student", *items])
    for k, row in enumerate(right):
        _append(answers, [f"{k:04d}", *("A" if one else "B" for one in row)])
    key, about = book.create_sheet("Key"), book.create_sheet("People")
    for cells in (["item", "key"], *([item, "A"] for item in items)):
        _append(key, cells)
    for cells in (["student", "sex"], *([f"{k:04d}", "fm"[k % 2]] for k in range(people))):
        _append(about, cells)
    book.save(path)
    with Path("answers.csv").open("w", newline="", encoding="utf-8") as file:
        names = [item if item[0] not in "=+-@" else f"'{item}" for item in items]
        csv.writer(file).writerows(
            [["student", *names], *([f"{k:04d}", *map(int, row)] for k, row in enumerate(right))]
        )


def _append(sheet: Any, cells: list[Any]) -> None:
    sheet.append(["" for _ in cells])
    for k, cell in enumerate(cells, start=1):
        sheet.cell(sheet.max_row, k).value = cell
        if isinstance(cell, str):
            sheet.cell(sheet.max_row, k).data_type = "s"


def sheets(path: str) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for sheet in openpyxl.load_workbook(path):
        header, *rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
        found[sheet.title] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


HOW = ("--sheet", "Answers", "--key", "test.xlsx")
GROUPS = ("--group", "sex", "--group-file", "test.xlsx#People", "--rank", "3")


def test_a_workbook_holds_what_the_folder_holds(cli: Cli) -> None:
    write()
    assert cli("fit", "test.xlsx", *HOW, *GROUPS, "--all", "-o", "out").code == 0
    done = cli("fit", "test.xlsx", *HOW, *GROUPS, "-o", "results.xlsx")
    assert done.code == 0, done
    names = ["items", "persons", "scores", "unexpected", "groups", "item_fit", "item_analysis", "distractors", "dif"]
    names.append("ranking")
    told = f"Results are in results.xlsx: {', '.join(names[:-1])} and ranking."
    assert told in " ".join(done.out.split())
    found = sheets("results.xlsx")
    assert list(found) == [*names, "findings", "about"]
    for name in names:
        rows = read_csv(f"out/{name}.csv")
        assert len(rows) == len(found[name])
        for ours, theirs in zip(rows, found[name], strict=True):
            assert list(ours) == list(theirs)
            for column, cell in ours.items():
                _same(column, cell, theirs[column])
    assert [row["item"] for row in found["items"]] == ["=q1", "+q2", "-q3", "@q4", "q5", "q6"]
    assert [row["person"] for row in found["persons"]][:2] == ["0000", "0001"]
    about = {row["name"]: row["value"] for row in found["about"]}
    assert about["input.files"] == "test.xlsx"
    assert about["outputs"] == "results.xlsx"
    assert cli("fit", "test.xlsx", *HOW, "--skip", "persons", "-o", "results.xlsx").code == 0  # ours, replaced
    assert list(sheets("results.xlsx")) == ["items", "item_fit", "item_analysis", "distractors", "findings", "about"]


def _same(column: str, text: str, cell: Any) -> None:
    if cell is None or isinstance(cell, str):
        assert text in (cell or "", f"'{cell}"), column
    elif isinstance(cell, bool):
        assert text == str(cell).lower(), column
    else:
        assert float(text) == pytest.approx(cell, rel=1e-14, abs=1e-300), column


def test_every_command_reads_and_writes_workbooks(cli: Cli) -> None:
    write()
    write("more.xlsx", 90)
    assert cli("fit", "test.xlsx", *HOW, "--bank", "bank").code == 0
    assert cli("check", "test.xlsx", *HOW).code == 0
    done = cli("score", "test.xlsx", *HOW, "--bank", "bank", "-o", "scores.xlsx")
    assert done.code == 0, done
    assert len(sheets("scores.xlsx")["persons"]) == 120
    assert cli("compare", "test.xlsx", *HOW, "--estimators", "spectral,cml", "-o", "compared.xlsx").code == 0
    assert [row["method"] for row in sheets("compared.xlsx")["estimators"]] == ["spectral", "cml"]
    assert cli("link", "bank", "bank", "--common-items", "common.xlsx").code == 0
    assert len(sheets("common.xlsx")["common items"]) == 6
    assert cli("update", "bank", "more.xlsx", "--sheet", "Answers", "--key", "more.xlsx", "-o", "bank2").code == 0
    done = cli("fit", "test.xlsx", "--sheet", "Answers", "--key", "test.xlsx", "--anchors", "results.xlsx")
    assert done.code == 2
    assert cli("fit", "test.xlsx", *HOW, "-o", "results.xlsx").code == 0
    done = cli("fit", "test.xlsx", *HOW, "--anchors", "results.xlsx", "-o", "anchored")
    assert done.code == 0, done
    assert {row["status"] for row in read_csv("anchored/items.csv")} == {"anchored"}
    for command in ("fit", "check", "score", "update", "compare"):
        said = cli(command, "--help-all").out
        assert all(option in said for option in ("--sheet", "#SHEET", "--encoding", "Excel")), command


def test_what_goes_wrong_is_said_and_leaves_nothing(cli: Cli) -> None:
    write()
    openpyxl.Workbook().save("mine.xlsx")
    mine = Path("mine.xlsx").read_bytes()
    before = sorted(os.listdir())
    cases = {
        ("test.xlsx",): "test.xlsx: 2 sheets may be meant, 'Answers', 'People'. Say which one with --sheet Answers.",
        ("test.xlsx", "--sheet", "Answer"): "Did you mean 'Answers'?",
        ("test.xlsx", *HOW, "-o", "mine.xlsx"): "no run of spectral-irt wrote it",
        ("test.xlsx", *HOW, "-o", "test.xlsx"): "'test.xlsx'",
        ("test.xlsx", *HOW, "-o", "r.xlsx", "--parquet"): "--parquet writes files to a folder",
        ("test.xlsx", *HOW, "-o", "answers.csv/r.xlsx"): "cannot be written",
        ("answers.csv", "--sheet", "1", "-o", "r.xlsx"): "leave out --sheet",
        ("answers.csv", "--encoding", "utf9", "-o", "r.xlsx"): "--encoding is 'utf9'",
        ("test.xlsx", *HOW, "--encoding", "cp1252"): "--encoding is for text files",
        ("test.xlsx", "--sheet", "Answers", "-o", "r.xlsx"): "sheet 'Answers': column '=q1', row 2 holds",
        ("test.xlsx", "--sheet", "Answers", "--key", "test.xlsx#Keys"): "Did you mean 'Key'?",
    }
    for arguments, says in cases.items():
        done = cli("fit", *arguments)
        assert done.code == 2, arguments
        assert says in done.err, done.err
        assert sorted(os.listdir()) == before
    assert Path("mine.xlsx").read_bytes() == mine


def test_people_beyond_a_sheet_are_left_out_with_a_word(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write()
    monkeypatch.setattr(xlsx, "MOST_ROWS", 100)
    done = cli("fit", "test.xlsx", *HOW, "-o", "results.xlsx")
    assert done.code == 0
    assert "persons has 120 rows, more than a sheet, and was left out; -o DIR writes it as CSV." in " ".join(
        done.out.split()
    )
    assert "persons" not in sheets("results.xlsx")
    done = cli("fit", "test.xlsx", *HOW, "--bank", "bank")
    done = cli("score", "test.xlsx", *HOW, "--bank", "bank", "-o", "scores.xlsx")
    assert done.code == 2
    assert "would have 120 rows" in done.err
    assert not Path("scores.xlsx").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_every_file_opens_in_a_spreadsheet_program(cli: Cli, tmp_path: Path) -> None:
    write()
    assert cli("fit", "test.xlsx", *HOW, *GROUPS, "--all", "-o", "out").code == 0
    assert cli("fit", "test.xlsx", *HOW, *GROUPS, "-o", "results.xlsx").code == 0
    paths = [*Path("out").glob("*.csv"), Path("results.xlsx")]
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    command = ["soffice", profile, "--headless", "--convert-to", "xlsx", "--outdir", "converted", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done
    for path in paths:
        converted = Path("converted", path.stem + ".xlsx")
        for sheet in openpyxl.load_workbook(converted):
            for cell in (cell for row in sheet.iter_rows() for cell in row):
                truth = cell.value in ("=TRUE()", "=FALSE()")  # how it writes true and false
                assert truth or cell.data_type not in ("f", "e"), (path, sheet.title, cell)
    items = read("converted/persons.xlsx", items="score", threshold=3)
    assert items.n_persons == 120
