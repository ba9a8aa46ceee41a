"""Passwords and keys of addresses reach no file, no page and no terminal: results are shared."""

from pathlib import Path

import pytest

from end_to_end.tables import form, record
from spectral_irt.reading import sql

duckdb = pytest.importorskip("duckdb")
pytestmark = pytest.mark.slow  # whole runs of commands

ADDRESSES = [
    "postgresql://ann:SECRET@host:5432/tests",
    "postgres://ann:p@ss/SECRET#1@host/tests",
    "postgresql://ann@host/tests?password=SECRET&sslmode=require",
]
QUERY = "select * from answers"


class StandIn:
    """A connection to a server of Postgres, which is a file of DuckDB."""

    def __init__(self):
        self.connection = duckdb.connect("server.duckdb")

    def cursor(self):
        return self

    def execute(self, statement):
        self.statement = statement

    def fetch_record_batch(self):
        return self.connection.sql(self.statement).to_arrow_reader(1000)

    def close(self):
        self.connection.close()


@pytest.fixture
def server(cli, bank, monkeypatch):
    form("new.csv", 2)
    with duckdb.connect("server.duckdb") as connection:
        connection.execute("create table answers as select * from 'new.csv'")
    monkeypatch.setattr(sql, "open_database", lambda address: StandIn())


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_command_gives_a_password_away(cli, server, address):
    read = f"'{address}' --sql '{QUERY}'"
    printed = [
        cli.ok(f"{line} {read} --json")
        for line in (
            "fit -o out --report out.html --bank new",
            "fit --dry-run",
            "check",
            "score --bank bank -o scores",
            "update bank -o bank2",
            "compare --estimators spectral -o compared.csv",
            "pack -o answers.packed",
        )
    ]
    written = [path.read_bytes() for path in Path(".").rglob("*") if path.is_file()]
    assert not any("SECRET" in text for text in printed)
    assert not any(b"SECRET" in content for content in written)
    shown = address.partition("?")[0].split(":")[0] + "://ann@"
    assert record()["input"]["files"][0].startswith(shown)
    assert record()["input"]["files"] == [record()["input"]["reading"]["database"]]
    assert record()["input"]["files"][0] in record()["argv"]
    assert QUERY in record()["argv"]


def test_no_error_gives_a_password_away(cli, bank):
    for line in ("fit", "check", "score --bank bank", "update bank", "compare", "pack -o a.packed"):
        for address in (*ADDRESSES, "duckdb:md:tests?motherduck_token=SECRET"):
            for more in ("", f"--sql '{QUERY}'"):
                done = cli(f"{line} '{address}' {more}")
                assert done.code == 2
                assert "SECRET" not in done.out + done.err
