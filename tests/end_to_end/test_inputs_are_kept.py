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
