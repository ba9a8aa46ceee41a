"""Files that cannot be read: one sentence that says what is wrong, where, and what to do; never a polars error."""

import contextlib
import gzip
import os
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from spectral_irt.errors import OptionError, ReadError, SpectralIrtError
from spectral_irt.reading import read
from spectral_irt.reading import text_pieces as raw

WIDE = "id,q1,q2\na,1,0\nb,0,1\n"
LONG = "person,item,response\na,q1,1\na,q2,0\nb,q1,0\n"
SIMPLE = pl.DataFrame({"person": ["a", "b"], "item": ["q", "q"], "response": [1, 0]})


def complaint(path, **options):
    with pytest.raises(ReadError) as error:
        read(path, **options)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"\n \n\r\n", "a.csv holds nothing but blank lines"),
        ("a.jsonl", b"\n\n", "a.jsonl holds nothing but blank lines"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "a.csv.gz is empty"),
        ("a.csv", b"id,q1,q2\n", "a.csv has a header but no rows"),
        ("a.csv", b"person,item,response", "a.csv has a header but no rows"),
        ("a.csv", bytes(range(256)) * 9, "not text but binary"),
        ("a.jsonl", bytes(range(256)) * 9, "not text but binary"),
        ("a.csv", np.random.default_rng(1).bytes(5000), "not text but binary"),
        ("a.csv", b"id,q1,q2\na,1,0\nb,1\n", "line 3 has 2 values; the header has 3 columns"),
        ("a.csv", b"id,q1,q2\na,1,0\n\nb,1,0,1\n", "line 4 has 4 values; the header has 3 columns"),
        ("a.csv", b'id,q1\n"a\nb",1\nc,1,1\n', "line 4 has 3 values; the header has 2 columns"),
        ("a.csv", b'id,q1\na"x,1\nb,1\nc"x,0\n', "quotation marks between lines 2 and 4 do not match"),
        ("a.csv", b'id,q1\n"a,1\nb",1,1\n', "line 2 has 3 values.* Check the quotation marks"),
        ("a.csv", b'id,q1\na,1\n"b,1\nc,0\n', "a quotation mark on line 3 or soon after is never closed"),
        (
            "a.csv",
            "id,q1\nJos\u00e9,1\nZo".encode() + b"\xeb,1\n",
            "line 3 is not UTF-8 text .*'ë' in Latin-1.*encoding=",
        ),
        ("a.csv", b"id,q1\na,1\n\x81,0\n", "line 3 is neither UTF-8 nor Windows-1252.*encoding="),
        ("a.csv", "id,q1\na,1\n".encode("utf-16")[:-1], "line 2 is not text in the encoding utf-16"),
        ("a.csv", b"id,q1,q1,x,x\na,1,0,1,1\n", "column names must differ; repeated: 'q1', 'x'"),
        ("a.csv", b"1,0,1\n0,0,1\n", "has no header: its first line already holds answers"),
        ("a.csv", b"id,q1\ra,1\rb,0\r", "carriage returns only"),
        ("a.csv", b"id\na\nb\n", "one column, 'id'.*separator"),
        ("a.csv", b"id,q1\na,1\n,0\n", "column 'id' names the people, and row 2 has no name"),
        ("a.csv", b"person,item,response\na,q,1\n,q,1\n", "column 'person' names the people, and row 2 has no name"),
        ("a.csv", b"person,item,response\na,q,1\na,,1\n", "column 'item', row 2 is empty"),
        ("a.xlsx", b"PK\x03\x04", "a.xlsx cannot be read as a workbook.*damaged"),
        ("a.xlsx.gz", gzip.compress(b"PK", mtime=0), "is packed.*Unpack"),
        ("a.numbers", b"PK\x03\x04", "a.numbers is not a kind of file that is read here.*Save it as .xlsx"),
        ("a.csv", b"PK\x03\x04", "a.csv is not a kind of file"),
        ("a.rds", b"\x1f\x8b", r"write\.csv"),
        ("a.pkl", b"\x80\x04", "Nothing is unpickled"),
        ("a.npy", b"\x93NUMPY", r"spectral_irt\.read"),
        ("a.csv.bz2", b"BZh", "Unpack it first"),
        ("a.dat", b"1 0", "the ending '.dat'.* Rename"),
        ("answers", b"1 0", "no ending"),
        ("a.csv.gz", b"id,q1\n", "is not compressed as its name says"),
        ("a.parquet", b"id,q1\n", "is not a Parquet file"),
        ("a.arrow", b"id,q1\na,1\n", "a.arrow cannot be read"),
        ("a.jsonl", b'{"id": 1, "responses": {"q": 1}}\n{oops\n', "line 2 is not a JSON object"),
        ("a.jsonl", b'{"id": 1, "responses": {"q": 1}}\n[1]\n', "line 2 is not a JSON object but a list"),
        ("a.json", b'[{"id": 1},\n{"id": 2}]', "line 1 is not a JSON object.* without commas or brackets"),
        ("a.jsonl", b'{"id": 1, "responses": {"q": 1}}\n{"id": 2}\n', "line 2 has no object of answers"),
        ("a.jsonl", b'{"id": 1, "responses": {"q": 1}}\n{"responses": {"q": 1}}\n', "row 2 has no name there"),
        ("a.jsonl", b'{"id": 1, "responses": {"q": [1]}}\n', "line 1 has a list in the field 'q'"),
        ("a.jsonl", b'{"id": [1], "responses": {"q": 1}}\n', "line 1 has a list in the field 'id'"),
        ("a.jsonl", b'{"id": 1, "x": {"q": 1}, "y": {"q": 1}}\n', "'x' and 'y' could each hold the response"),
        (
            "a.jsonl",
            b'{"person": 1, "item": "q", "response": 1}\n{"person": 1, "item": [2]}',
            "line 2 has a list in the field 'item'",
        ),
        ("a.jsonl", b"[" * 100_000, "line 1 is not a JSON object"),
    ],
)
def test_files_that_are_no_table(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    message = complaint(tmp_path / name)
    assert name in message
    assert re.search(says, message), message


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "answers.csv").write_text(WIDE)
    assert "Did you mean 'answers.csv'?" in complaint(tmp_path / "answer.csv")
    (tmp_path / "empty").mkdir()
    assert "is a directory" in complaint(tmp_path / "empty")
    assert "no file matches" in complaint(tmp_path / "*.parquet")
    assert "there is no file" in complaint(tmp_path / "nowhere" / "a.csv")
    assert "the list of paths is empty" in complaint([])
    assert "an address of an unknown kind" in complaint("ftp://example.org/a.csv")
    assert "expected a 2-D table" in complaint(5)
    assert "there is no file" in complaint(tmp_path / "answers.csv" / "a.csv")
    assert "cannot be opened" in complaint(tmp_path / ("a" * 5000 + ".csv"))
    assert "is not the name of a file" in complaint("")
    assert "is not the name of a file" in complaint("a\0b.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_can_be_read_only_once(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    assert "not an ordinary file" in complaint(tmp_path / "a.csv")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    (tmp_path / "a.csv").write_text(WIDE)
    (tmp_path / "a.csv").chmod(0)
    assert "cannot be opened" in complaint(tmp_path / "a.csv")


def test_files_of_different_kinds(tmp_path):
    (tmp_path / "wide.csv").write_text(WIDE)
    (tmp_path / "bare.csv").write_text("q1,q2\n1,0\n")
    (tmp_path / "long.csv").write_text(LONG)
    SIMPLE.write_parquet(tmp_path / "a.parquet")
    files = {file.name: file for file in tmp_path.iterdir()}
    message = complaint([files["a.parquet"], files["long.csv"]])
    assert "'long.csv' (csv) and 'a.parquet' (parquet)" in message
    assert "long.csv is long" in complaint([files["wide.csv"], files["long.csv"]])
    assert "bare.csv has no column of people's labels" in complaint([files["wide.csv"], files["bare.csv"]])


def cut(path, keep):
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv.gz", "a.csv.zst", "a.jsonl.gz"])
def test_files_cut_short(tmp_path, name, keep):
    path = tmp_path / name
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"person": rng.integers(0, 10**9, 5000), "item": range(5000), "response": 1})
    if name.endswith("parquet"):
        frame.write_parquet(path)
    elif name.endswith("arrow"):
        frame.write_ipc(path)
    elif name.endswith("zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(frame.write_csv().encode())
    else:
        text = frame.write_ndjson() if "json" in name else frame.write_csv()
        path.write_bytes(gzip.compress(text.encode()))
    cut(path, keep)
    message = complaint(path)
    assert name in message
    assert "cannot be" in message


def test_damage_inside_a_file(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"person": rng.integers(0, 10**9, 5000), "item": range(5000), "response": 1})
    path = tmp_path / "a.parquet"
    frame.write_parquet(path)
    data = bytearray(path.read_bytes())
    data[4:-1000] = b"\x07" * (len(data) - 1004)
    path.write_bytes(bytes(data))
    assert "a.parquet cannot be read" in complaint(path)


@pytest.mark.parametrize("seed", range(40))
def test_rubbish_never_raises_anything_but_our_errors(tmp_path, seed):
    rng = np.random.default_rng(seed)
    name = ["a.csv", "a.tsv", "a.csv.gz", "a.csv.zst", "a.parquet", "a.arrow", "a.jsonl", "a.jsonl.gz"][seed % 8]
    start = {"parquet": b"PAR1", "arrow": b"ARROW1\0\0", "gz": b"\x1f\x8b\x08", "zst": b"\x28\xb5\x2f\xfd"}
    text = bytes(rng.choice(list(b'ab01,\n"\t{}[]: \r'), size=int(rng.integers(1, 300))).astype(np.uint8))
    data = text if name in ("a.csv", "a.tsv", "a.jsonl") else start.get(name.split(".")[-1], b"") + rng.bytes(200)
    (tmp_path / name).write_bytes(data)
    with contextlib.suppress(SpectralIrtError):
        read(tmp_path / name)


def test_a_quotation_mark_that_swallows_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "LONGEST_RECORD", 1000)
    monkeypatch.setattr(raw, "PIECE_BYTES", 100)
    (tmp_path / "a.csv").write_text('id,q1\na,1\n"b,1\n' + "c,0\n" * 1000)
    assert "line 3 or soon after is never closed" in complaint(tmp_path / "a.csv")


# ------------------------------------------------------------------ columns


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (
            LONG,
            {"person": "perso"},
            "no column 'perso' for `person`; its columns are 'person', 'item', 'response'.*mean 'person'",
        ),
        (LONG, {"item": "ITEMS"}, "no column 'ITEMS' for `item`.*Did you mean 'item'"),
        (LONG, {"response": "zzzz"}, "no column 'zzzz' for `response`; its columns are 'person', 'item', 'response'.$"),
        (WIDE, {"person": "name"}, "no column 'name' for `person`; its columns are 'id', 'q1', 'q2'"),
        (WIDE, {"format": "wide", "item": "q1"}, "columns of a long table"),
    ],
)
def test_columns_that_are_not_there(tmp_path, text, options, says):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(OptionError, match=says):
        read(tmp_path / "a.csv", **options)


def test_fields_that_are_not_there(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "responses": {"q": 1}}')
    with pytest.raises(OptionError, match="no column 'who' for `person`; its columns are 'id', 'responses'"):
        read(tmp_path / "a.jsonl", person="who")


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("student,question,answer,correct\na,q,B,1\n", {}, "'answer' and 'correct' could each hold the response"),
        ("student,question,answer,correct\na,q,B,1\na,r,B,1\n", {}, "response='correct'"),
        ("model,subject,question,score\na,x,q,1\n", {}, "'model' and 'subject' could each hold the person"),
        ("person,item,thing\na,q,1\n", {}, "seems to be long.* Say `response="),
        ("item,score,who\nq,1,a\n", {"format": "long"}, "no column seems to hold the person"),
        ("who,what,score\nq,1,a\n", {"response": "score"}, "no column seems to hold the person"),
    ],
)
def test_columns_that_are_not_clear(tmp_path, text, options, says):
    (tmp_path / "a.csv").write_text(text)
    assert re.search(says, complaint(tmp_path / "a.csv", **options))


@pytest.mark.parametrize(
    "text",
    [
        "item,ann,bob\nq1,1,0\nq2,0,1\n",
        "x,user1,user2\nq1,1,0\nq2,0,1\n",
        "name,P1,P2\nitem 1,1,0\nitem 2,0,1\n",
        "Question,S_01,S_02\nWhat is this?,1,0\nAnd that?,0,1\n",
        "student1,student2,student3\n1,0,1\n0,1,1\n",
    ],
)
def test_the_wrong_way_round(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert "orient='items'" in complaint(tmp_path / "a.csv")
    responses = read(tmp_path / "a.csv", orient="items")
    assert responses.n_items == 2


@pytest.mark.parametrize("text", ["task,q1,q2\na,1,0\nb,0,1\n", "name,q1,q2\np1,1,0\np2,0,1\n", "p1,p2\n1,0\n0,1\n"])
def test_the_right_way_round(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    assert read(tmp_path / "a.csv").n_persons == 2
