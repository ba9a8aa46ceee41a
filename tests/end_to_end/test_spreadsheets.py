"""Labels that a spreadsheet would take for formulas: harmless in our CSV files, and unchanged when we read those."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from end_to_end.tables import read_csv
from spectral_irt import read

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands

Cli = Callable[..., Any]

ITEMS = ["=1+1", "+q", "-q", "@q", "\tq", "\rq", "'=1+1", "''-q", "'plain", "-1", "+3", "-1.5e3", "a;=1+1", 'say "=x"']
RUNS = tuple("=+-@\t\r")


def write(path: str, people: int = 60) -> list[str]:
    """Answers of people with such names to items with such names, as other programs write them."""
    numbers = random.Random(1)
    persons = [f"{'=+-@'[k % 4]}person{k}" for k in range(people)]
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "item", "response"])
        # What begins with an apostrophe and such a character is read without it; so these come with one more.
        names = [f"'{item}" if item.startswith(("'=", "''")) else item for item in ITEMS]
        writer.writerows([person, item, numbers.randint(0, 1)] for person in persons for item in names)
    return persons


def test_no_cell_of_ours_runs_and_every_label_comes_back(cli: Cli) -> None:
    persons = write("answers.csv")
    assert set(read("answers.csv").items.tolist()) == set(ITEMS)
    sexes = "\n".join(f"{person},{'=f' if k % 2 else '-m'}" for k, person in enumerate(persons))
    Path("people.csv").write_text(f"person,sex\n{sexes}\n")
    options = ["--rank", 3, "--group-file", "people.csv"]
    done = cli("fit", "answers.csv", "-o", "out", "--parquet", "--bank", "bank", *options)
    assert done.code == 0, done
    for to, name in {"ifile": "i.csv", "pfile": "p.tsv", "catsim": "c.csv"}.items():
        assert cli("export", "out", "--to", to, "-o", name).code == 0
    assert cli("score", "answers.csv", "--bank", "bank", "-o", "scores.csv").code == 0
    assert cli("fit", "answers.csv", "--bank", "bank2").code == 0
    assert cli("link", "bank", "bank2", "--common-items", "common.csv").code == 0
    seen = 0
    files = [*Path("out").glob("*.csv"), *map(Path, ("i.csv", "p.tsv", "c.csv", "scores.csv", "common.csv"))]
    for path in files:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","):
                for cell in row:
                    seen += cell.startswith("'")
                    assert not cell.startswith(RUNS) or _is_number(cell), (path, cell)
    assert seen > 100
    assert set(pl.read_parquet("out/items.parquet")["item"]) == set(ITEMS)

    # items.csv as anchors, persons.csv as a table of groups, items.csv as a key.
    done = cli("fit", "answers.csv", "--anchors", "out/items.csv", "-o", "anchored")
    assert done.code == 0, done
    assert {row["anchored"] for row in read_csv("anchored/items.csv")} == {"true"}
    assert [row["item"] for row in read_csv("anchored/items.csv")] == [row["item"] for row in read_csv("out/items.csv")]
    done = cli(
        "fit", "answers.csv", "--group-file", "out/persons.csv", "--group", "score", "--skip", "fit", "-o", "grouped"
    )
    assert "none of the" not in done.err, done
    rows = read_csv("out/items.csv")
    with Path("key.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["item", "key"], *([row["item"], 1] for row in rows)])
    assert cli("fit", "answers.csv", "--key", "key.csv").code == 0


def test_a_wide_table_has_such_labels_in_its_header(cli: Cli) -> None:
    Path("wide.csv").write_text("person,'=a,'@b,'c\nx,1,0,1\n'-y,0,1,1\nz,1,1,0\n")
    responses = read("wide.csv")
    assert responses.items.tolist() == ["=a", "@b", "'c"]
    assert responses.persons.tolist() == ["x", "-y", "z"]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
