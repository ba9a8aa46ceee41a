"""Results that somebody has edited, cut or saved anew are exported as they are, or refused in a sentence."""

import json
import shutil
from pathlib import Path

import pytest

from end_to_end.tables import read_csv, wide
from spectral_irt import simulate

pytestmark = pytest.mark.slow  # some hundred runs of a short command


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Folders of results, of right and wrong answers and of ordered ones."""
    from spectral_irt.cli.main import main

    place = tmp_path_factory.mktemp("results")
    for name, data in (
        ("binary", simulate.rasch(120, 6, seed=1)),
        ("ordered", simulate.partial_credit(120, 4, categories=3, seed=2)),
    ):
        wide(place / f"{name}.csv", data.responses.to_dense())
        assert main(["fit", str(place / f"{name}.csv"), "-o", str(place / name), "--all", "-q"]) == 0
    return place


def without_column(name):
    def change(text):
        rows = [line.split(",") for line in text.splitlines()]
        k = rows[0].index(name)
        return "\n".join(",".join(cell for j, cell in enumerate(row) if j != k) for row in rows) + "\n"

    return change


def with_cell(name, value, row=2):
    def change(text):
        rows = [line.split(",") for line in text.splitlines()]
        rows[row][rows[0].index(name)] = value
        return "\n".join(map(",".join, rows)) + "\n"

    return change


TABLE_CHANGES = {
    "empty": lambda text: "",
    "header alone": lambda text: text.splitlines()[0] + "\n",
    "cut in a row": lambda text: text[: len(text) // 2],
    "a row less": lambda text: "\n".join(text.splitlines()[:-1]) + "\n",
    "a row twice": lambda text: text + text.splitlines()[-1] + "\n",
    "semicolons": lambda text: text.replace(",", ";"),
    "no text at all": lambda text: "\x00\xff",
    "another order": lambda text: "\n".join([text.splitlines()[0], *sorted(text.splitlines()[1:], reverse=True)]),
}
for column in (
    "item",
    "status",
    "difficulty",
    "se",
    "n",
    "threshold",
    "person",
    "score",
    "extreme",
    "infit",
    "max_score",
):
    TABLE_CHANGES[f"without {column}"] = without_column(column)
    for value in ("nan", "text", "", "inf", "1e400", "-5", "1.5"):
        TABLE_CHANGES[f"{column} is {value!r}"] = with_cell(column, value)
RECORD_CHANGES = {
    "no JSON": lambda text: text[:-20],
    "nested": lambda text: "[" * 100_000,
    "a list": lambda text: "[]",
    "a number": lambda text: "1",
    "of another program": lambda text: text.replace("spectral-irt", "other"),
    **{
        f"{name} is {value!r}": lambda text, name=name, value=value: json.dumps({**json.loads(text), name: value})
        for name in ("outputs", "scale", "persons", "program")
        for value in (
            None,
            1,
            "items.csv",
            ["x"],
            {"unit": "x"},
            {"unit": float("nan")},
            [["items.csv"]],
            {"ability": []},
        )
    },
}


@pytest.mark.parametrize("kind", ["binary", "ordered"])
@pytest.mark.parametrize("to", ["ifile", "pfile", "mirtcat"])
def test_whatever_was_done_to_them(cli, results, kind, to):
    files = dict.fromkeys(("items.csv", "thresholds.csv", "item_fit.csv", "persons.csv"), TABLE_CHANGES)
    shutil.copytree(results / kind, "edited")
    refused = 0
    for name, changes in {**files, "fit.json": RECORD_CHANGES}.items():
        path = Path("edited", name)
        if not path.exists():
            continue
        whole = path.read_text()
        for change in changes.values():
            try:
                path.write_text(change(whole), encoding="latin-1")
            except ValueError:  # it has no such column
                continue
            done = cli(f"export edited --to {to} -o out.csv")
            assert done.code in (0, 2), (name, done.err)
            assert "internal" not in done.err
            assert done.err.count("\n") == (done.code == 2), done.err
            refused += done.code == 2
        path.write_text(whole)
    assert refused > 20
    cli.ok(f"export edited --to {to} -o out.csv")


def test_the_sentence_says_where(cli, results):
    shutil.copytree(results / "binary", "edited")
    path = Path("edited/items.csv")
    whole = path.read_text()
    path.write_text(without_column("status")(whole))
    cli.refused("export edited --to ifile -o i.csv", "items.csv has no column 'status'")
    path.write_text(with_cell("difficulty", "=1+1")(whole))
    cli.refused("export edited --to ifile -o i.csv", "items.csv", "'difficulty'", "row 3", "=1+1")
    path.write_text(with_cell("se", "-0.1")(whole))
    cli.refused("export edited --to ifile -o i.csv", "items.csv, column 'se' has a standard error below zero")
    first = whole.splitlines()[1].split(",")[0]
    path.write_text(with_cell("item", first)(whole))
    cli.refused("export edited --to ifile -o i.csv", f"items.csv has the item {first!r} 2 times")


def test_what_is_exported_is_what_the_tables_say(cli, results):
    shutil.copytree(results / "binary", "same")
    cli.ok("export same --to catsim -o c.csv")
    numbers = [float(row["b"]) for row in read_csv("c.csv")]
    assert numbers == [float(row["difficulty"]) for row in read_csv("same/items.csv")]
