"""No result takes the place of something that is being read, under whatever name it goes."""

import os
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

ANSWERS = "person,q1,q2,q3\na,1,0,1\nb,0,1,1\nc,1,1,0\nd,0,0,1\ne,1,0,0\nf,0,1,0\n"


@pytest.fixture
def files(cli):
    """What is read; refusals come before the work, so one setting serves many of them."""
    Path("sub").mkdir()
    Path("d.csv").write_text(ANSWERS)
    Path("key.csv").write_text("item,key\nq1,1\nq2,1\nq3,1\n")
    for bank in ("bank", "bank2"):
        cli.ok(f"fit d.csv --bank {bank}")


def names_of(name):
    """Other names of the same file."""
    yield from (name, str(Path(name).absolute()), f"sub/../{name}")
    other = f"other{Path(name).suffix}"
    for link in (os.link, os.symlink) if Path(name).is_file() else (os.symlink,):
        link(name, other)
        yield other
        os.unlink(other)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("d.csv", "compare d.csv --estimators spectral -o"),
        ("key.csv", "compare d.csv --key key.csv --estimators spectral -o"),
        ("d.csv", "score d.csv --bank bank -o"),
        ("key.csv", "score d.csv --key key.csv --bank bank -o"),
        ("bank", "link bank bank2 -o"),
        ("bank2", "link bank bank2 -o"),
    ],
)
def test_an_input_is_kept_under_each_of_its_names(cli, files, name, line):
    for target in names_of(name):
        cli.refused(f"{line} {target}", f"would replace '{name}', which is being read")


def test_tables_of_a_bank_and_patterns(cli, files):
    table = next(Path("bank").glob("items.*.parquet"))
    cli.refused(f"score d.csv --bank bank -o {table}", "being read")
    cli.refused(f"link bank bank2 --common-items {table}", "being read")
    shutil.copy(table, "bank2/answers.parquet")
    cli.refused("update bank2 bank2/answers.parquet", "being read")
    cli.refused("compare 'd*.csv' -o d.csv", "would replace 'd.csv', which is being read")


def test_a_folder_of_results(cli, files):
    cli.ok("fit d.csv -o out")
    read = ["out/persons.csv", "d.csv --key out/items.csv", "d.csv --anchors out/items.csv"]
    for words in [*read, "d.csv --group-file out/persons.csv --group n"]:
        for folder in ("out", Path("out").absolute(), "sub/../out"):
            cli.refused(f"fit {words} -o {folder}", "being read")


def test_what_is_no_ordinary_file_is_not_replaced(cli, files):
    os.mkfifo("pipe.csv")
    os.symlink("/dev/full", "full.csv")
    for name in ("pipe.csv", "full.csv"):
        cli.refused(f"compare d.csv -o {name}", f"'{name}' is not an ordinary file")
    assert Path("pipe.csv").is_fifo()
    assert Path("full.csv").is_symlink()


def test_a_file_in_a_folder_of_an_input_folder(cli, files):
    Path("answers/2024").mkdir(parents=True)
    shutil.copy("d.csv", "answers/2024/x.csv")
    os.link("answers/2024/x.csv", "hard.csv")
    for target in ("answers/2024/x.csv", "hard.csv", "sub/../answers/2024/x.csv"):
        cli.refused(f"score answers --bank bank -o {target}", "would replace 'answers/2024/x.csv'")
        cli.refused(f"compare answers --estimators spectral -o {target}", "would replace 'answers/2024/x.csv'")
    cli.ok("score answers --bank bank -o answers/scores.txt.d")


def test_a_file_that_is_named_by_its_address(cli, files):
    address = Path("d.csv").absolute().as_uri()
    cli.refused(f"compare {address} --estimators spectral -o d.csv", "d.csv', which is being read")
    cli.refused(f"score {address} --bank bank -o d.csv", "d.csv', which is being read")


def test_the_file_of_a_database_however_it_is_named(cli, files):
    import sqlite3

    connection = sqlite3.connect("answers.csv")
    connection.execute("create table a as select 'a' person, 'q' item, 1 response")
    connection.commit()
    connection.close()
    place = Path("answers.csv").absolute()
    for database in ("sqlite:answers.csv", f"sqlite://{place}"):
        line = ["compare", database, "--sql", "select * from a", "--estimators", "spectral", "-o", "answers.csv"]
        cli.refused(line, "which is being read")


def test_a_leaderboard_may_stand_in_the_folder_of_its_logs(cli):
    cli.ok("demo --files .")
    cli.ok("leaderboard runs -o runs/board")
    cli.ok("leaderboard runs -o runs/board")
    log = next(path for path in Path("runs").rglob("samples_*.jsonl"))
    cli.refused(f"leaderboard runs --report {log}")


@pytest.mark.parametrize(
    "line",
    [
        "fit d.csv -o", "fit d.csv --bank", "fit d.csv --report", "fit d.csv --plots", "score d.csv --bank bank -o",
        "update bank d.csv -o", "link bank bank2 -o", "link bank bank2 --common-items", "link bank bank2 --equate",
        "compare d.csv -o", "pack d.csv -o", "leaderboard d.csv -o", "leaderboard d.csv --report", "shortlist d.csv -o",
        "simulate --items 3 -o", "simulate --items 3 -o a.csv --truth", "demo -o", "demo --files",
        "export bank --to catsim -o",
    ],
)  # fmt: skip
def test_results_do_not_go_to_an_address(cli, files, line):
    for address in ("s3://logs/out.csv", "gs://logs", "file:///tmp/spectral-irt-out.html"):
        cli.refused(f"{line} {address}", "address", "folder")
