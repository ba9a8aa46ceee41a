"""The app over HTTP: what it lets in, what it does with a file, and that nothing is left of it."""

import io
import re
import signal
import socket
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openpyxl
import psutil
import pytest

from app_server import App, form, said_on
from end_to_end.tables import numbers, wide
from spectral_irt import Bank, datasets, simulate
from spectral_irt.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A test of 12 items, with two columns about the people: a group, and one that looks like an item."""
    rng = np.random.default_rng(5)
    right = simulate.rasch(200, difficulty=np.linspace(-1.5, 1.5, 12), seed=5).responses.to_dense()
    people = {"student": [f"s{k}" for k in range(200)], "sex": ["f", "m"] * 100, "visits": rng.integers(0, 2, 200)}
    return wide(tmp_path_factory.mktemp("answers") / "a.csv", right, **people).read_bytes()


def test_only_who_knows_the_address_is_let_in(app, answers):
    assert app.get().status == 200
    wrong = "/" + "x" * len(app.token) + "/"
    elsewhere, evil = {"Host": f"evil.example:{app.port}"}, {"Origin": "http://evil.example"}
    origins = [evil, {"Origin": f"http://127.0.0.1:{app.port + 1}"}, {"Origin": "null"}, {"Origin": None}]
    refused = [app.get(path) for path in ("/", wrong, "/" + app.token[:-1] + "/")]
    refused += [app.get(**host) for host in (elsewhere, {"Host": "127.0.0.1"}, {"Host": None})]
    for headers in (*origins, {"Sec_Fetch_Site": "cross-site"}):
        refused.append(app.post("upload", {"answers": ("a.csv", answers)}, **headers))
    refused += [app.post("quit", {}, **headers) for headers in (evil, {"Origin": app.origin, **elsewhere})]
    assert {answer.status for answer in refused if answer.status != 400} == {403}  # without Host it is no HTTP at all
    assert [answer.status for answer in refused].count(400) <= 1
    assert not any(app.token in answer.text for answer in refused)
    assert app.job_folders() == []
    assert app.get(Host=f"localhost:{app.port}").status == 200


def test_other_machines_cannot_reach_it_and_pages_forbid_what_they_do_not_need(app):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", app.port), timeout=5)
    headers = app.get().headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


def test_from_a_file_to_results_and_scores(app, answers, tmp_path):
    job = app.upload("class 5.csv", answers)
    page = said_on(app.wait(job))
    assert "200 people, 13 items, 2,600 answers" in page
    assert '<option value="group" selected>' in app.get(job).text  # sex
    done = app.post(job + "columns", {"role-2": "unused", "pupil_pages": "on", "do": "fit"})
    assert done.status == 303
    page = said_on(app.wait(job))
    assert "200 people, 12 items, 2,400 answers;" in page
    assert "Pages for pupils" in page
    assert "Class list" in app.get(job + "pupil-pages.html").text
    command = "spectral-irt fit 'class 5.csv' --layout wide --person student --items q1,q2,"
    assert command in app.get(job).text.replace("&#39;", "'")

    report = app.get(job + "report.html")
    assert report.headers["content-type"].startswith("text/html")
    assert "Differential item functioning" in report.text
    assert "visits" not in report.text.split("<h2", 2)[2]  # but in the command

    (tmp_path / "class 5.csv").write_bytes(answers)
    same = ["--ignore", "visits", "--group", "sex", "--all", "-o", str(tmp_path / "results")]
    assert main(["fit", str(tmp_path / "class 5.csv"), *same]) == 0
    with zipfile.ZipFile(io.BytesIO(app.get(job + "tables.zip").body)) as archive:
        names = {Path(name).name for name in archive.namelist() if not name.endswith("/")}
        assert names == {path.name for path in (tmp_path / "results").iterdir()}
        for table in sorted(names - {"fit.json"}):
            assert archive.read(f"results/{table}") == (tmp_path / "results" / table).read_bytes()

    book = openpyxl.load_workbook(io.BytesIO(app.get(job + "results.xlsx").body))
    assert [cell.value for cell in book["items"]["A"]] == ["item", *(f"q{k}" for k in range(1, 13))]
    expected = numbers(str(tmp_path / "results/items.csv"), "difficulty")
    assert [cell.value for cell in book["items"]["B"]][1:] == pytest.approx(expected, rel=1e-12)

    with zipfile.ZipFile(io.BytesIO(app.get(job + "bank.zip").body)) as archive:
        archive.extractall(tmp_path)
    assert Bank.load(tmp_path / "bank").n_items == 12

    app.post(job + "score", {"answers": ("class 6.csv", b"\n".join(answers.splitlines()[:21]) + b"\n")})
    assert "class 6.csv : 20 people scored." in said_on(app.wait(job))
    rows = app.get(job + "scores.csv").text.splitlines()
    assert len(rows) == 21
    assert rows[1].startswith("s0,12,")

    assert app.post(job + "close", {}).status == 303
    assert app.get(job).status == 404
    assert app.job_folders() == []


def test_a_finding_is_acted_on_and_both_results_stay(app):
    job = app.post("example", {}).headers["location"]
    app.wait(job)
    app.post(job + "columns", {"role-1": "group", "missing": "9", "do": "fit"})
    page = app.wait(job)
    first = re.search(r"<code>(--drop [^<]+)</code>", page)
    assert first is not None
    offered = re.findall(r'name="finding" value="(\d+)"', page)
    assert app.post(job + "again", {"finding": "999"}).status == 400  # no such finding
    assert app.get(job + "fit-0/report.html").status == 404  # there is one fit only
    app.post(job + "again", {"finding": offered[0]})
    page = said_on(app.wait(job))
    assert f"Results after {first[1]}" in page
    assert "items 30 29" in page  # before and after, side by side
    assert "Only in the results before: 1 item" in page
    dropped = first[1].split()[1]
    tables = {}
    for place in ("", "fit-0/"):
        with zipfile.ZipFile(io.BytesIO(app.get(f"{job}{place}tables.zip").body)) as archive:
            tables[place] = archive.read("results/items.csv").decode()
    assert dropped in tables["fit-0/"]
    assert dropped not in tables[""]
    assert "What was changed" in app.get(job + "report.html").text
    assert "What was changed" not in app.get(job + "fit-0/report.html").text
    assert first[1] not in re.findall(r"fit again</button> <code>(.*?)</code>", app.get(job).text)
    assert app.post(job + "columns", {"role-1": "group", "missing": "9", "do": "fit"}).status == 303
    assert "Earlier results" not in said_on(app.wait(job))  # another first fit
    app.post(job + "close", {})


def test_multiple_choice_with_a_key_that_comes_later(app):
    job = app.upload("choices.csv", b"q1,q2,q3,q4\n" + b"a,b,a,b\nb,a,a,a\na,a,b,b\n" * 20)
    page = said_on(app.wait(job))
    assert "error" in page
    assert "--key" in page
    app.post(job + "columns", {"do": "check", "key": ("choices.csv", b"item,key\nq1,a\nq2,a\nq3,a\nq4,b\n")})
    page = said_on(app.wait(job))
    assert "60 people, 4 items, 240 answers" in page
    assert "Scored by the key key_choices.csv." in page
    app.post(job + "close", {})


def test_a_long_workbook(app):
    book = openpyxl.Workbook()
    book.active.append(["who", "what", "points"])
    for person in range(40):
        for item in range(5):
            book.active.append([f"p{person}", f"i{item}", (person >> item) % 2])
    stream = io.BytesIO()
    book.save(stream)
    job = app.upload("log.xlsx", stream.getvalue())
    app.wait(job)
    app.post(job + "columns", {"do": "check", "format": "long"})
    assert "no column seems to hold the person" in said_on(app.wait(job))
    roles = {"role-0": "person", "role-1": "item", "role-2": "response", "format": "long"}
    app.post(job + "columns", {"do": "check", **roles})
    assert "40 people, 5 items, 200 answers" in said_on(app.wait(job))
    app.post(job + "close", {})


@pytest.mark.parametrize(
    ("name", "content", "status", "said"),
    [
        ("picture.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, 303, "picture.csv"),
        ("words.csv", b"Dear colleague,\nplease find the answers below.\n", 303, "words.csv"),
        ("empty.csv", b"", 303, "empty.csv is empty"),
        ("head.csv", b"q1,q2,q3\n", 303, "head.csv"),
        ("broken.xlsx", b"PK\x03\x04 and nothing else", 303, "broken.xlsx"),
        ("program.py", b"print(1)", 400, "is not a kind of file that this page takes"),
        ("lines.json", b'{"a": 1}', 400, "is not a kind of file that this page takes"),
        ("", b"", 400, "No file was chosen"),
    ],
)
def test_a_bad_file_is_said_to_be(app, name, content, status, said):
    answer = app.post("upload", {"answers": (name, content)})
    assert answer.status == status
    page = answer.text
    if status == 303:
        job = answer.headers["location"]
        page = app.wait(job)
        app.post(job + "close", {})
    assert said in said_on(page)
    assert "Traceback" not in page
    assert "Internal error" not in page
    assert app.job_folders() == []


def test_names_of_files_and_labels_of_columns_are_data(app, answers):
    odd = answers.replace(b"q1,q2,q3,", b"<script>alert(1)</script>,q*,-q3,", 1)
    names = {"--bank=x.csv": "--bank=x.csv", "../<script>alert(1)</script>.csv": "script_.csv"}
    jobs = [app.upload(name, odd) for name in names]
    for job, shown in zip(jobs, names.values(), strict=True):
        page = app.wait(job)
        assert "200 people" in said_on(page)
        assert f"<h1>{shown}</h1>" in page
        assert "<script>alert" not in page
    app.post(jobs[0] + "columns", {"role-2": "unused", "do": "check"})
    assert "200 people, 12 items" in said_on(app.wait(jobs[0]))
    for job in jobs:
        app.post(job + "close", {})
    assert app.job_folders() == []


def test_what_is_not_there(app):
    for path in ("nothing", "job/abc/", "job/abc/report.html", "job/abc/status"):
        answer = app.get(path)
        assert answer.status == 404
        assert "Begin again" in answer.text
    assert app.ask("POST", app.base).status == 405


def test_what_is_canceled_stops_and_leaves_nothing(app, answers):
    job = app.upload("answers.csv", answers)
    app.wait(job)
    app.until(lambda: not app.children())
    app.post(job + "columns", {"role-2": "unused", "do": "fit"})
    app.until(app.children)
    app.post(job + "cancel", {})
    app.until(lambda: not app.children())
    page = said_on(app.wait(job))
    assert "Canceled; nothing came of it." in page
    assert "Results" not in page
    assert [path.name for path in app.files()] == ["answers.csv"]
    app.post(job + "columns", {"do": "fit"})
    app.wait(job)
    app.post(job + "columns", {"do": "fit"})
    app.until(app.children)
    app.post(job + "cancel", {})
    assert "Canceled" in app.wait(job)
    assert app.get(job + "report.html").status == 200  # of the fit before
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(app.get, [job + "tables.zip"] * 4))
    assert [(one.status, one.body == found[0].body) for one in found] == [(200, True)] * 4
    app.post(job + "close", {})


def test_a_tab_that_is_closed_while_it_sends_leaves_nothing(app, answers):
    body, kind = form({"answers": ("answers.csv", answers)})
    head = (
        f"POST {app.base}upload HTTP/1.1\r\nHost: {app.host}\r\nOrigin: {app.origin}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", app.port)) as connection:
        connection.sendall(head.encode() + body[: len(body) // 2])
    assert app.get().status == 200
    assert app.job_folders() == []
    assert app.files() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_its_work(tmp_path, answers, number):
    with App(tmp_path / "temporary") as app:
        app.upload("answers.csv", answers)
        app.until(app.children)
        children = app.children()
        assert app.end(number) == (0, "")
        assert list(app.folder.iterdir()) == []
        assert not any(psutil.pid_exists(child) for child in children)


def test_the_page_can_end_it(tmp_path):
    with App(tmp_path / "temporary") as app:
        assert "Nothing was kept" in app.post("quit", {}).text
        assert app.process.wait(30) == 0
        assert list(app.folder.iterdir()) == []


def test_a_port_in_use_and_a_missing_package(cli, monkeypatch):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        cli.refused(f"app --no-browser --port {port}", "is in use by another program. Choose another with --port")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    cli.refused("app --no-browser", 'pip install ".[app]"')


def test_answers_in_ordered_categories_on_a_scale(app, tmp_path):
    ratings = simulate.partial_credit(80, 4, categories=4, seed=4).responses.to_dense()
    job = app.upload("ratings.csv", wide(tmp_path / "ratings.csv", ratings).read_bytes())
    assert "80 people, 4 items, 320 answers." in said_on(app.wait(job))
    app.post(job + "columns", {"do": "check", "scale": "500"})
    assert "it is the mean and the standard deviation of these persons, as in --scale 500,100" in said_on(app.wait(job))
    app.post(job + "columns", {"do": "fit", "scale": "formula:50,10"})
    page = said_on(app.wait(job))
    assert "80 people, 4 items, 320 answers;" in page
    assert "--scale formula:50,10" in page
    report = app.get(job + "report.html").text
    assert "Appendix: long tables" in report  # the thresholds
    assert "50.000 + 10.000 × logits" in report
    app.post(job + "score", {"answers": ("more.csv", b"q1,q2,q3,q4\n0,1,2,3\n3,2,1,0\n")})
    assert "more.csv : 2 people scored." in said_on(app.wait(job))
    app.post(job + "columns", {"do": "check", "threshold": "1"})
    assert "% right" in said_on(app.wait(job))
    app.post(job + "close", {})


def test_a_column_that_says_who_rated(app):
    lines = datasets.writing_file().read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines[1:] if int(line.split(",")[0]) <= 240]
    job = app.upload("essays.csv", "\n".join([lines[0], *rows]).encode())
    page = said_on(app.wait(job))
    assert '<option value="rater" selected>' in app.get(job).text
    assert "people, 4 items" in page
    assert "a page for each pupil" not in page  # ratings have none
    app.post(job + "columns", {"do": "fit"})
    page = said_on(app.wait(job))
    assert "spectral-irt fit essays.csv --facet rater" in page
    assert "Bank" not in page  # ratings have none
    assert "Severity" in app.get(job + "report.html").text
    assert app.get(job + "bank.zip").status == 404
    assert "Ratings have none" in app.post(job + "score", {"answers": ("more.csv", b"student,a\n1,1\n")}).text
    app.post(job + "close", {})


def test_a_column_of_names_called_rater_says_who_rated(app):
    """One rater an essay: no essay is there twice, and yet names are no ratings."""
    rows = [f"e{k},{'Adler' if k % 2 else 'Brandt'},{1 + k % 3},{1 + (k * 7) % 4},{1 + (k * 5) % 3}" for k in range(60)]
    job = app.upload("single.csv", "\n".join(["essay,rater,style,org,words", *rows]).encode())
    page = said_on(app.wait(job))
    assert '<option value="rater" selected>' in app.get(job).text
    assert "people, 3 items" in page
    app.post(job + "close", {})
