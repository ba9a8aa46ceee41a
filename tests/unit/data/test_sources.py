"""Answers from folders, addresses, standard input and databases; and which of two answers came first."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest

from reading import PACKED, complaint, read_text, save
from spectral_irt import Leaderboard, read
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.reading import formats as expanding
from spectral_irt.reading.formats import find_files, open_table

pytestmark = pytest.mark.slow  # many short runs of whole jobs

LONG = pl.DataFrame(
    {"person": ["ann", "ann", "bob", "bob", "cy"], "item": ["q1", "q2", "q1", "q2", "q1"], "response": [1, 0, 0, 1, 1]}
)


def check(path=None, **options):
    responses = read(path, **options)
    np.testing.assert_array_equal(responses.to_dense(), [[1, 0], [0, 1], [1, np.nan]])
    assert responses.persons.tolist() == ["ann", "bob", "cy"]
    assert responses.items.tolist() == ["q1", "q2"]


def in_folder(frame, folder, name="a.parquet"):
    folder.mkdir(exist_ok=True)
    return save(frame, folder / name)


def test_a_folder_with_partitions(tmp_path):
    for item, part in LONG.group_by("item"):
        in_folder(part.drop("item"), tmp_path / f"item={item[0]}")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "item=q1" / ".part-0.parquet.crc").write_bytes(b"x")
    check(tmp_path)
    check(str(tmp_path / "item=*" / "*.parquet"))
    check(f"file://{tmp_path}")


def test_partitions_do_not_depend_on_how_a_path_is_written(tmp_path, monkeypatch):
    folder = tmp_path / "year=2024"
    file = in_folder(LONG, folder)
    monkeypatch.chdir(folder)
    for path in (file, folder, str(folder / "*.parquet"), "a.parquet", "."):
        assert [open_table(file).columns[-1] for file in find_files(path)] == ["year"]
    in_folder(LONG.clear(), tmp_path / "year=2023")  # a partition without rows does no harm
    check(tmp_path)


def test_folders_name_people_and_are_never_items(tmp_path):
    for form in ("a", "b"):
        table = pl.DataFrame({"who": [f"{form}1", f"{form}2"], "q1": [1, 0], "q2": [0, 1]})
        in_folder(table, tmp_path / f"form={form}")
    wide = read(tmp_path)
    assert wide.items.tolist() == ["q1", "q2"]
    assert wide.persons.tolist() == ["a1", "a2", "b1", "b2"]
    by_form = read(tmp_path, person="form", ignore="who", duplicates="last")
    assert by_form.persons.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: save(LONG.rename({"response": "foo"}), path), ["b.parquet", "'foo'"]),
        (
            lambda path: save(LONG.with_columns(response=pl.lit("x")), path),
            ["b.parquet: column 'response', row 1 holds 'x'"],
        ),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), ["b.parquet cannot be read"]),
        (lambda path: path.write_bytes(b"PAR1" + bytes(60) + path.read_bytes()[64:]), ["b.parquet cannot be read"]),
    ],
)
def test_one_file_of_a_set_is_odd(tmp_path, change, said):
    for name in "abc":
        save(LONG.with_columns(pl.col("person") + name), tmp_path / f"{name}.parquet")
    change(tmp_path / "b.parquet")
    message = complaint(tmp_path)
    assert all(words in message for words in said)


class Store(BaseHTTPRequestHandler):
    """As much of a store as polars asks for to read one object."""

    content = b""

    def answer(self, status, part, **headers):
        self.send_response(status)
        stamp = {"Last-Modified": "Mon, 16 Nov 2026 10:00:00 GMT", "ETag": '"x"'}
        for name, value in {"Content-Length": str(len(part)), **headers, **stamp}.items():
            self.send_header(name, value)
        self.end_headers()

    def do_HEAD(self):
        self.answer(200, self.content)

    def do_GET(self):
        if "/bucket/a.parquet" not in self.path:
            self.send_error(403, "Forbidden")
            return
        start, stop = 0, len(self.content)
        asked = self.headers.get("Range")
        if asked:
            first, last = asked.removeprefix("bytes=").split("-")
            start = int(first) if first else max(stop - int(last), 0)
            stop = int(last) + 1 if first and last else stop
        part = self.content[start:stop]
        covered = {"Content-Range": f"bytes {start}-{stop - 1}/{len(self.content)}"}
        self.answer(206 if asked else 200, part, **covered)
        self.wfile.write(part)

    def log_message(self, *arguments):
        pass


class Site(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def serve(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def site(tmp_path):
    yield from serve(partial(Site, directory=str(tmp_path)))


def test_a_file_from_a_site(tmp_path, site):
    check(f"{site}/{save(LONG, tmp_path / 'a.csv').name}")
    check([f"{site}/{save(LONG, tmp_path / 'a.parquet').name}"])
    said = complaint(f"{site}/b.csv?token=secret")
    assert "the server says 404" in said
    assert "secret" not in said
    assert "cannot be fetched" in complaint("http://127.0.0.1:1/a.csv")
    for right in (0, 1):  # it is fetched again
        (tmp_path / "a.csv").write_text(f"who,q1,q2\nann,1,0\nbob,{right},1\n")
        assert read(f"{site}/a.csv").to_dense()[1, 0] == right


@pytest.mark.parametrize(
    "address",
    [
        "http://ann:SECRET@127.0.0.1:1/a.csv",
        "http://ann:SECRET@host/a.csv",
        "http://SECRET@127.0.0.1:1/a.csv",
        "http://ann:SEC/RET@host/a.csv",
        "http://ann:SECRET",
        "http://127.0.0.1:1/a b.csv?token=SECRET",
        "http://127.0.0.1:1/ü.csv?token=SECRET",
        "http://127.0.0.1:port/a.csv?token=SECRET",
        "http://[::1/a.csv?token=SECRET",
        "http:///a.csv?token=SECRET",
        "ftp://ann:SECRET@host/a.csv",
        "s3://ann:SECRET@host/a.csv",
    ],
)
def test_no_error_about_an_address_repeats_a_secret(address):
    said = complaint(address)
    assert "SEC" not in said
    assert "RET" not in said


class Rude(BaseHTTPRequestHandler):
    """Answers as no server should; what it says is the path, after the slash."""

    def do_GET(self):
        self.wfile.write(self.path[1:].encode().decode("unicode_escape").encode("latin-1"))

    def log_message(self, *arguments):
        pass


@pytest.mark.parametrize(
    "answer",
    [
        r"SECRET",
        r"HTTP/1.1\x20abc\x20OK\r\n\r\n",
        r"HTTP/1.1\x20200\x20OK\r\nContent-Length:\x20abc\r\n\r\nSECRET",
        r"HTTP/1.1\x20200\x20OK\r\nContent-Length:\x20-5\r\n\r\nSECRET",
        r"HTTP/1.1\x20200\x20OK\r\nTransfer-Encoding:\x20chunked\r\n\r\nzz\r\nSECRET",
        r"HTTP/1.1\x20200\x20OK\r\nTransfer-Encoding:\x20chunked\r\n\r\nff\r\nSECRET",
        r"HTTP/1.1\x20200\x20OK\r\nContent-Length:\x2099\r\n\r\nSECRET",
        r"",
    ],
)
def test_a_server_that_does_not_keep_to_the_rules(answer):
    server = serve(Rude)
    said = complaint(f"{next(server)}/{answer}")
    assert "cannot be fetched: " in said
    next(server, None)


def test_an_address_is_fetched_once(tmp_path):
    """Also where a leaderboard looks at the file, at its columns about prompts, and at its answers."""
    asked = []

    class Counting(Site):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

    models = pl.DataFrame(
        {
            "model": [f"m{k % 4}" for k in range(80)],
            "item": [f"p{k // 4}" for k in range(80)],
            "response": [int((k * 7 + k // 5) % 3 > 0) for k in range(80)],
            "topic": [f"t{k // 4 % 5}" for k in range(80)],
        }
    )
    models.write_csv(tmp_path / "models.csv")
    server = serve(partial(Counting, directory=str(tmp_path)))
    address = f"{next(server)}/models.csv?token=SECRET"
    board = Leaderboard.read(address, by="topic")
    assert len(asked) == 1
    assert board.source.answers.source == address.partition("?")[0]
    Leaderboard.read(address)
    assert len(asked) == 2
    next(server, None)


def test_a_file_from_a_store(monkeypatch):
    content = io.BytesIO()
    LONG.write_parquet(content)
    stand_in = serve(type("Filled", (Store,), {"content": content.getvalue()}))
    settings = {"ENDPOINT_URL": next(stand_in), "ALLOW_HTTP": "true", "REGION": "none", "EC2_METADATA_DISABLED": "true"}
    for name, value in {**settings, "ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    check("s3://bucket/a.parquet")
    said = complaint("s3://bucket/other.parquet")
    assert "s3://bucket/other.parquet cannot be read" in said
    assert "credentials" in said
    assert "only those are read" in complaint("s3://bucket/a.csv")


def written(kind):
    out = io.BytesIO()
    if kind == "json":
        return "\n".join(map(json.dumps, LONG.to_dicts())).encode()
    writers = {"parquet": LONG.write_parquet, "arrow": LONG.write_ipc, "stream": LONG.write_ipc_stream}
    writers.get(kind, LONG.write_csv)(out)
    return PACKED.get(f".{kind}", bytes)(out.getvalue())


@pytest.fixture
def piped(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def pipe(content):
        expanding._standard_input.cache_clear()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    yield pipe
    expanding._standard_input.cache_clear()


@pytest.mark.parametrize("kind", ["csv", "gz", "json", "parquet", "arrow", "stream"])
def test_standard_input_is_known_by_its_first_bytes(piped, kind):
    piped(written(kind))
    check("-")
    check("-")  # a second time, as a command does that finds ordered answers


def test_standard_input_that_says_nothing(piped, monkeypatch):
    piped(b"")
    assert "standard input is empty" in complaint("-")
    piped(b"person,item,response\n")
    assert "standard input has a header but no rows" in complaint("-")
    expanding._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", None)
    assert "closed" in complaint("-")


def test_nothing_is_left_of_standard_input(tmp_path):
    command = [sys.executable, "-m", "spectral_irt", "check", "-"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for content, code in ((written("csv"), 0), (b"person,item,response\nann,q1,7\n", 2), (b"", 2)):
        done = subprocess.run(command, input=content, capture_output=True, env=environment, check=False)
        assert done.returncode == code, done.stderr
        assert list(tmp_path.iterdir()) == []


QUERY = "SELECT person, item, response FROM answers"
TWO_COLUMNS = {"sql": "SELECT person, item FROM answers", "format": "long"}
ME, PORT = "me:secret", "127.0.0.1:1"


@pytest.fixture
def sqlite(tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    file = tmp_path / "school.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE answers (person TEXT, item TEXT, response INTEGER, stamp TEXT)")
        rows = [(*row, f"2024-01-{9 - k:02d}") for k, row in enumerate(LONG.rows())]
        connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", rows)
    connection.close()
    return f"sqlite:{file}"


def test_a_query_of_sqlite(sqlite):
    check(sql=QUERY, database=sqlite)
    check(sql=QUERY, database=sqlite.replace("sqlite:", "sqlite://"))
    check(sql=QUERY, database=sqlite.removeprefix("sqlite:"))
    assert read(sql=QUERY, database=sqlite).source == "the query"


def test_a_query_of_duckdb(duckdb_file):
    check(sql='SELECT "person", item, response FROM answers', database=duckdb_file)


@pytest.fixture
def duckdb_file(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "school.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("given", LONG.to_arrow())
        connection.execute("CREATE TABLE answers AS SELECT * FROM given")
    return f"duckdb:{file}"


WRITING = {
    "duckdb": [
        "COPY answers TO 'x.csv'",
        "EXPORT DATABASE 'x'",
        "ATTACH 'x.duckdb' AS x",
        "SET enable_external_access = true; COPY answers TO 'x.csv'",
        "SELECT * FROM answers; COPY answers TO 'x.csv'",
        "INSTALL httpfs",
        "INSERT INTO answers VALUES ('x', 'x', 1)",
        "DROP TABLE answers",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM sql",  # a variable of ours
    ],
    "sqlite": [
        "ATTACH 'x.db' AS x",
        "-- a query\n/* SELECT */ ATTACH 'x.db' AS x",
        "VACUUM INTO 'x.db'",
        "PRAGMA journal_mode = wal",
        "INSERT INTO answers VALUES ('x', 'x', 1, '')",
        "WITH x AS (SELECT 1) DELETE FROM answers",
    ],
}


@pytest.mark.parametrize(("kind", "sql"), [(kind, sql) for kind, each in WRITING.items() for sql in each])
def test_a_query_only_reads_and_only_its_database(sqlite, duckdb_file, tmp_path, monkeypatch, kind, sql):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    database = {"sqlite": sqlite, "duckdb": duckdb_file}[kind]
    complaint(sql=sql, database=database)
    assert list(elsewhere.iterdir()) == []
    check(sql=QUERY, database=database)


@pytest.mark.parametrize("name", ["a#b.db", "a?b.db", "a?mode=rwc.db", "a%20b.db", "a b.db", "ü.db"])
def test_a_file_of_sqlite_may_have_any_name(sqlite, tmp_path, monkeypatch, name):
    folder = tmp_path / "alone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    shutil.copy(sqlite.removeprefix("sqlite:"), name)
    check(sql=QUERY, database=f"sqlite:{quote(name)}" if "%" in name else f"sqlite:{name}")
    assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (TWO_COLUMNS, "no column seems to hold the response; the columns are 'person', 'item'"),
        ({"sql": QUERY + " WHERE item = 'q9'"}, "gives no rows"),
        ({"sql": "SELECT nonsense FROM answers"}, "the query failed"),
        (
            {"sql": f"SELECT person, item, 2 * (item = 'q2') AS response FROM ({QUERY})"},
            "the query: column 'response', row 2 holds 2",
        ),
        ({"database": "sqlite:nowhere.db", "sql": QUERY}, "there is no database"),
        ({"sql": QUERY, "database": None}, "needs `database="),
        ({}, "needs `sql="),
        ({"source": "a.csv", "sql": QUERY}, "instead of a file"),
        ({"database": None}, "there is nothing to read"),
        ({"sql": QUERY, "database": f"oracle://{ME}@host/db"}, "'oracle://host/db'; the address of a database is"),
        ({"sql": QUERY, "database": f"postgresql://{ME}@{PORT}/db"}, f"postgresql://me@{PORT}/db: cannot connect"),
    ],
)
def test_queries_that_do_not_give_answers(sqlite, options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = complaint(**{"database": sqlite} | options)
    assert said in message
    assert "secret" not in message
    assert not (tmp_path / "nowhere.db").exists()


def test_a_driver_that_is_not_there(sqlite, monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)
    assert 'pip install ".[database]"' in complaint(sql=QUERY, database=sqlite)


TIMES = {
    "dates": ["2024-05-02", "2024-05-01", "2024-04-30"],
    "times": ["2024-05-01 10:00:01", "2024-05-01T10:00:00.5", "2024-05-01 09:59"],
    "zones": ["2024-05-01T10:00:00+00:00", "2024-05-01T11:30:00+02:00", "2024-05-01T09:00:00Z"],
    "numbers": ["10", "9.5", "-1"],
}


def repeated(when):
    return pl.DataFrame(
        {"person": ["a", "a", "a", "b"], "item": ["q"] * 4, "response": [0, 1, 0, 1], "when": [*when, when[0]]}
    )


@pytest.mark.parametrize("kind", TIMES)
def test_the_first_answer_by_time(tmp_path, kind):
    frame = repeated(TIMES[kind])
    for duplicates, rows in (("first", (2,)), ("last", (0,))):
        for order in ([0, 1, 2, 3], [1, 0, 2, 3], [2, 3, 1, 0]):
            shuffled = frame[order].with_columns(response=pl.Series([int(k in rows) for k in order]))
            found = read(save(shuffled, tmp_path / "a.csv"), duplicates=duplicates, order_by="when")
            assert found.to_dense()[0, 0] == 1


def test_typed_times_in_several_files_and_equal_ones(tmp_path):
    stamps = pl.Series(["2024-05-02", "2024-05-01", "2024-05-01", "2024-05-09"]).str.to_datetime()
    frame = repeated(TIMES["dates"]).with_columns(when=stamps)
    frame[:2].write_parquet(tmp_path / "b.parquet")
    frame[2:].write_parquet(tmp_path / "a.parquet")  # read first
    last = read(tmp_path, duplicates="last", order_by="when")
    first = read(tmp_path, duplicates="first", order_by="when")  # equal times: as they come
    assert (last.to_dense()[0, 0], first.to_dense()[0, 0]) == (0, 0)
    backwards = read([tmp_path / "b.parquet", tmp_path / "a.parquet"], duplicates="first", order_by="when")
    assert backwards.to_dense()[0, 0] == 1


@pytest.mark.parametrize(
    ("when", "options", "said"),
    [
        (["2024-05-02", "", "2024-05-01"], {}, "column 'when', row 2 is empty"),
        (["2024-05-02", "2024-05-01", "soon"], {}, "row 3 holds 'soon', which is neither"),
        (TIMES["dates"], {"order_by": "time"}, "no column 'time' for `order_by`"),
        (TIMES["dates"], {"duplicates": "error"}, "say `duplicates="),
    ],
)
def test_orders_that_make_no_sense(tmp_path, when, options, said):
    how = {"duplicates": "first", "order_by": "when"}
    assert said in complaint(save(repeated(when), tmp_path / "a.csv"), **how | options)
    with pytest.raises(OptionError, match="is for long tables"):
        read_text(tmp_path, "who,q1,q2,when\na,1,0,3\na,0,1,4\n", **how)
    with pytest.raises(ReadError):
        read(tmp_path / "nothing.csv", **how)
