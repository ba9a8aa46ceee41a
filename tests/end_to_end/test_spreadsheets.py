"""Workbooks from one to another, and labels that a spreadsheet would take for formulas: harmless, and unchanged."""

import csv
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest

from drawn import drawn
from end_to_end.tables import column, read_csv
from spectral_irt import read, xlsx

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands

ITEMS = ["=1+1", "+q", "-q", "@q", "\tq", "\rq", "'=1+1", "''-q", "'plain", "-1", "+3", "-1.5e3", "a;=1+1", 'say "=x"']
RUNS = tuple("=+-@\t\r")


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_no_cell_of_ours_runs_and_every_label_comes_back(cli):
    numbers = random.Random(1)
    persons = [f"{'=+-@'[k % 4]}person{k}" for k in range(60)]
    # What begins with an apostrophe and such a character is read without it; so these come with one more.
    names = [f"'{item}" if item.startswith(("'=", "''")) else item for item in ITEMS]
    with Path("answers.csv").open("w", newline="", encoding="utf-8") as file:
        rows = ([person, item, numbers.randint(0, 1)] for person in persons for item in names)
        csv.writer(file).writerows([["person", "item", "response"], *rows])
    assert set(read("answers.csv").items.tolist()) == set(ITEMS)
    sexes = "\n".join(f"{person},{'=f' if k % 2 else '-m'}" for k, person in enumerate(persons))
    Path("people.csv").write_text(f"person,sex\n{sexes}\n")
    cli.ok("fit answers.csv -o out --parquet --bank bank --rank 3 --group-file people.csv")
    for to, name in {"ifile": "i.csv", "pfile": "p.tsv", "catsim": "c.csv"}.items():
        cli.ok(f"export out --to {to} -o {name}")
    cli.ok("score answers.csv --bank bank -o scores.csv")
    cli.ok("fit answers.csv --bank bank2")
    cli.ok("link bank bank2 --common-items common.csv")
    seen = 0
    for path in [*Path("out").glob("*.csv"), *map(Path, ("i.csv", "p.tsv", "c.csv", "scores.csv", "common.csv"))]:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","):
                for cell in row:
                    seen += cell.startswith("'")
                    assert not cell.startswith(RUNS) or is_number(cell), (path, cell)
    assert seen > 100
    assert set(pl.read_parquet("out/items.parquet")["item"]) == set(ITEMS)

    # items.csv as anchors, persons.csv as a table of groups, items.csv as a key.
    cli.ok("fit answers.csv --anchors out/items.csv -o anchored")
    assert set(column("anchored/items.csv", "anchored")) == {"true"}
    assert column("anchored/items.csv", "item") == column("out/items.csv", "item")
    done = cli("fit answers.csv --group-file out/persons.csv --group score --skip fit -o grouped")
    assert "none of the" not in done.err, done
    with Path("key.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["item", "key"], *([item, 1] for item in column("out/items.csv", "item"))])
    cli.ok("fit answers.csv --key key.csv")


def test_a_wide_table_has_such_labels_in_its_header(tmp_path):
    (tmp_path / "wide.csv").write_text("person,'=a,'@b,'c\nx,1,0,1\n'-y,0,1,1\nz,1,1,0\n")
    responses = read(tmp_path / "wide.csv")
    assert responses.items.tolist() == ["=a", "@b", "'c"]
    assert responses.persons.tolist() == ["x", "-y", "z"]


def sheet_of(book, title, rows):
    """A sheet whose texts are texts, though they begin like formulas."""
    sheet = book.create_sheet(title)
    for place, cells in enumerate(rows, start=1):
        for k, cell in enumerate(cells, start=1):
            sheet.cell(place, k).value = cell
            sheet.cell(place, k).data_type = "s"


def write(path="test.xlsx", people=120):
    """Answers to questions with names that begin like formulas, a key, and a table of the people, a sheet each."""
    rng = np.random.default_rng(7)
    items, names = ["=q1", "+q2", "-q3", "@q4", "q5", "q6"], [f"{k:04d}" for k in range(people)]
    right = drawn(rng, rng.normal(size=(people, 1)) - np.linspace(-1, 1, 6))
    book = openpyxl.Workbook()
    book.remove(book.active)
    letters = [[name, *np.where(row, "A", "B")] for name, row in zip(names, right, strict=True)]
    sheet_of(book, "Answers", [["student", *items], *letters])
    sheet_of(book, "Key", [["item", "key"], *([item, "A"] for item in items)])
    sheet_of(book, "People", [["student", "sex"], *([name, "fm"[k % 2]] for k, name in enumerate(names))])
    book.save(path)


def sheets(path):
    found = {}
    for sheet in openpyxl.load_workbook(path):
        header, *rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
        found[sheet.title] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


HOW = "--sheet Answers --key test.xlsx"
GROUPS = "--group sex --group-file test.xlsx#People --rank 3"


def test_a_workbook_holds_what_the_folder_holds(cli):
    write()
    cli.ok(f"fit test.xlsx {HOW} {GROUPS} --all -o out")
    said = cli.ok(f"fit test.xlsx {HOW} {GROUPS} -o results.xlsx")
    dimensions = ["dimensionality", "residual_loadings", "local_dependence"]
    names = ["items", "persons", "scores", "unexpected", "guttman", "groups", "item_fit", "item_trait", *dimensions]
    names += ["item_analysis", "distractors", "dif"]
    assert f"Results are in results.xlsx: {', '.join(names)} and ranking." in said
    found = sheets("results.xlsx")
    assert list(found) == [*names, "ranking", "findings", "about"]
    for name in (*names, "ranking"):
        for ours, theirs in zip(read_csv(f"out/{name}.csv"), found[name], strict=True):
            # Items are heads of the scalogram, and text in CSV is kept from being a formula by a quote.
            as_in_sheet = {head.removeprefix("'"): cell for head, cell in ours.items()}
            assert list(as_in_sheet) == list(theirs)
            for head, cell in as_in_sheet.items():
                same_cell(head, cell, theirs[head])
    assert [row["item"] for row in found["items"]] == ["=q1", "+q2", "-q3", "@q4", "q5", "q6"]
    assert [row["person"] for row in found["persons"]][:2] == ["0000", "0001"]
    about = {row["name"]: row["value"] for row in found["about"]}
    assert about["input.files"] == "test.xlsx"
    assert about["outputs"] == "results.xlsx"
    cli.ok(f"fit test.xlsx {HOW} --skip persons -o results.xlsx")  # ours, replaced
    sheets_left = ["items", "item_fit", "item_trait", *dimensions, "item_analysis", "distractors", "findings", "about"]
    assert list(sheets("results.xlsx")) == sheets_left


def same_cell(head, text, cell):
    if cell is None or isinstance(cell, str):
        assert text in (cell or "", f"'{cell}"), head
    elif isinstance(cell, bool):
        assert text == str(cell).lower(), head
    else:
        assert float(text) == pytest.approx(cell, rel=1e-14, abs=1e-300), head


def test_every_command_reads_and_writes_workbooks(cli):
    write()
    write("more.xlsx", 90)
    cli.ok(f"fit test.xlsx {HOW} --bank bank -o results.xlsx")
    cli.ok(f"check test.xlsx {HOW}")
    cli.ok(f"score test.xlsx {HOW} --bank bank -o scores.xlsx")
    assert len(sheets("scores.xlsx")["persons"]) == 120
    cli.ok(f"compare test.xlsx {HOW} --estimators spectral,cml -o compared.xlsx")
    assert [row["method"] for row in sheets("compared.xlsx")["estimators"]] == ["spectral", "cml"]
    cli.ok("link bank bank --common-items common.xlsx")
    assert len(sheets("common.xlsx")["common items"]) == 6
    cli.ok("update bank more.xlsx --sheet Answers --key more.xlsx -o bank2")
    cli.ok(f"fit test.xlsx {HOW} --anchors results.xlsx -o anchored")
    assert set(column("anchored/items.csv", "status")) == {"anchored"}
    for command in ("fit", "check", "score", "update", "compare"):
        said = cli(f"{command} --help-all").out
        assert all(option in said for option in ("--sheet", "#SHEET", "--encoding", "Excel")), command


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("test.xlsx", "test.xlsx: 2 sheets may be meant, 'Answers', 'People'. Say which one with --sheet Answers."),
        ("test.xlsx --sheet Answer", "Did you mean 'Answers'?"),
        (f"test.xlsx {HOW} -o mine.xlsx", "no run of spectral-irt wrote it"),
        (f"test.xlsx {HOW} -o test.xlsx", "'test.xlsx'"),
        (f"test.xlsx {HOW} -o r.xlsx --parquet", "--parquet writes files to a folder"),
        (f"test.xlsx {HOW} -o answers.csv/r.xlsx", "cannot be written"),
        ("answers.csv --sheet 1 -o r.xlsx", "leave out --sheet"),
        ("answers.csv --encoding utf9 -o r.xlsx", "--encoding is 'utf9'"),
        (f"test.xlsx {HOW} --encoding cp1252", "--encoding is for text files"),
        (f"test.xlsx {HOW} --anchors none.xlsx", "none.xlsx"),
        ("test.xlsx --sheet Answers -o r.xlsx", "sheet 'Answers': column '=q1', row 2 holds"),
        ("test.xlsx --sheet Answers --key test.xlsx#Keys", "Did you mean 'Key'?"),
    ],
)
def test_what_goes_wrong_is_said_and_leaves_nothing(cli, line, says):
    write()
    openpyxl.Workbook().save("mine.xlsx")
    Path("answers.csv").write_text("student,q1,q2\na,1,0\nb,0,1\nc,1,1\n")
    cli.refused(f"fit {line}", says)


def test_people_beyond_a_sheet_are_left_out_with_a_word(cli, monkeypatch):
    write()
    monkeypatch.setattr(xlsx, "MOST_ROWS", 100)
    said = cli.ok(f"fit test.xlsx {HOW} --bank bank -o results.xlsx")
    assert "persons has 120 rows, more than a sheet, and was left out; -o DIR writes it as CSV." in said
    assert "persons" not in sheets("results.xlsx")
    cli.refused(f"score test.xlsx {HOW} --bank bank -o scores.xlsx", "would have 120 rows")


@pytest.mark.skipif(shutil.which("localc") is None, reason="LibreOffice Calc is not installed")
def test_every_file_opens_in_a_spreadsheet_program(cli, tmp_path):
    write()
    cli.ok(f"fit test.xlsx {HOW} {GROUPS} --all -o out")
    cli.ok(f"fit test.xlsx {HOW} {GROUPS} -o results.xlsx")
    paths = [*Path("out").glob("*.csv"), Path("results.xlsx")]
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    command = ["soffice", profile, "--headless", "--convert-to", "xlsx", "--outdir", "converted", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done
    for path in paths:
        for sheet in openpyxl.load_workbook(Path("converted", path.stem + ".xlsx")):
            for cell in (cell for row in sheet.iter_rows() for cell in row):
                truth = cell.value in ("=TRUE()", "=FALSE()")  # how it writes true and false
                assert truth or cell.data_type not in ("f", "e"), (path, sheet.title, cell)
    assert read("converted/persons.xlsx", items="score", threshold=3).n_persons == 120
