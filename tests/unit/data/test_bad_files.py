"""Files and tables that cannot be read: a sentence that says what is wrong, where, and what to do, in bounded time."""

import contextlib
import gzip
import io
import os
import re
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zstandard

from reading import complaint as sentence
from reading import read_text, save
from spectral_irt import SpectralRasch
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, SpectralIrtError
from spectral_irt.reading import csv as csv_text
from spectral_irt.reading import read
from spectral_irt.reading import text_pieces as raw
from spectral_irt.reading.text_pieces import whole

WIDE = "id,q1,q2\na,1,0\nb,0,1\n"
LONG = "person,item,response\na,q1,1\na,q2,0\nb,q1,0\n"


def complaint(path, **options):
    message = sentence(path, **options)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.csv", b"", "a.csv is empty.*[Cc]heck"),
        ("a.csv", b"\n \n\r\n", "a.csv holds nothing but blank lines"),
        ("a.jsonl", b"\n\n", "a.jsonl holds nothing but blank lines"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "a.csv.gz is empty"),
        ("a.csv", b"id,q1,q2\n", "a.csv has a header but no rows.*[Cc]heck"),
        ("a.csv", b"person,item,response", "a.csv has a header but no rows"),
        ("a.csv", bytes(range(256)) * 9, "not text but binary.*[Cc]heck"),
        ("a.jsonl", bytes(range(256)) * 9, "not text but binary"),
        ("a.csv", np.random.default_rng(1).bytes(5000), "not text but binary"),
        ("a.csv", b"id,q1,q2\na,1,0\nb,1\n", "line 3 has 2 values; the header has 3 columns.*same number of values"),
        ("a.csv", b"id,q1,q2\na,1,0\n\nb,1,0,1\n", "line 4 has 4 values; the header has 3 columns"),
        ("a.csv", b'id,q1\n"a\nb",1\nc,1,1\n', "line 4 has 3 values; the header has 2 columns"),
        ("a.txt", b'"id" "q1" "q2"\n"1" "ann" 1 0\n"2" "bob" 0 NA\n', "blanks seem to separate.*'id', 'q1'.*write.csv"),
        ("a.csv", b"q1 q2 q3\n1 0 1\n0 0 1\n", "blanks seem to separate the columns .'q1', 'q2', 'q3'."),
        ("a.csv", b'id,q1\na"x,1\nb,1\nc"x,0\n', "quotation marks between lines 2 and 4 do not match"),
        ("a.csv", b'id,q1\n"a,1\nb",1,1\n', "line 2 has 3 values.* Check the quotation marks"),
        ("a.csv", b'id,q1\na,1\n"b,1\nc,0\n', "a quotation mark on line 3 or soon after is never closed.*Close it"),
        ("a.csv", "id,q\né,1\nZo".encode() + b"\xeb,1\n", "line 3 is not UTF-8 text .*'ë' in Latin-1.*encoding="),
        ("a.csv", b"id,q1\na,1\n\x81,0\n", "line 3 is neither UTF-8 nor Windows-1252.*encoding="),
        ("a.csv", "id,q1\na,1\n".encode("utf-16")[:-1], "line 2 is not text in the encoding utf-16"),
        ("a.csv", b"id,q1,q1,x,x\na,1,0,1,1\n", "column names must differ; repeated: 'q1', 'x'.*Rename"),
        ("a.csv", b"1,0,1\n0,0,1\n", "has no header: its first line already holds answers.*line with the names"),
        ("a.csv", b"id,q1\ra,1\rb,0\r", "carriage returns only"),
        ("a.csv", b"id\na\nb\n", "one column, 'id'.*separator"),
        ("a.csv", b"person,item,response\na,q,1\na,,1\n", "column 'item', row 2 is empty"),
        ("a.xlsx", b"PK\x03\x04", "a.xlsx cannot be read as a workbook.*damaged.*fetch it again"),
        ("a.xlsx.gz", gzip.compress(b"PK", mtime=0), "is packed.*Unpack"),
        ("a.numbers", b"PK\x03\x04", "a.numbers is not a kind of file that is read here.*Save it as .xlsx"),
        ("a.csv", b"PK\x03\x04", "a.csv is not a kind of file.*Unpack it first"),
        ("a.rds", b"\x1f\x8b", r"write\.csv"),
        ("a.pkl", b"\x80\x04", "Nothing is unpickled"),
        ("a.npy", b"\x93NUMPY", r"spectral_irt\.read"),
        ("a.csv.bz2", b"BZh", "Unpack it first"),
        ("a.dat", b"1 0", "the ending '.dat'.* Rename"),
        ("answers", b"1 0", "no ending"),
        ("a.csv.gz", b"id,q1\n", "is not compressed as its name says"),
        ("a.parquet", b"id,q1\n", "is not a Parquet file"),
        ("a.arrow", b"id,q1\na,1\n", "a.arrow cannot be read"),
        ("a.csv", b"person,item,response\na,q,1\n,q,1\n", "column 'person' names the people, and row 2 has no name"),
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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("answer.csv", "Did you mean 'answers.csv'?"),
        ("empty", "is a directory"),
        ("*.parquet", "no file matches"),
        ("nowhere/a.csv", "there is no file"),
        ("answers.csv/a.csv", "there is no file"),
        ("a" * 5000 + ".csv", "cannot be opened"),
    ],
)
def test_files_that_are_not_there(tmp_path, name, said):
    (tmp_path / "answers.csv").write_text(WIDE)
    (tmp_path / "empty").mkdir()
    assert said in complaint(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ([], "the list of paths is empty"),
        ("ftp://example.org/a.csv", "an address of an unknown kind"),
        (pd.DataFrame([[1, 0]], columns=["a", "a"]), "column names must differ"),
        (pl.DataFrame(), "no columns"),
        (pl.DataFrame({"a": [], "b": []}), "no rows"),
        (5, "expected a 2-D table"),
        ("", "is not the name of a file"),
        ("a\0b.csv", "is not the name of a file"),
    ],
)
def test_what_is_no_file(source, said):
    assert said in complaint(source)


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
    save(pl.read_csv(io.StringIO(LONG)), tmp_path / "a.parquet")
    for one, other, said in (
        ("a.parquet", "long.csv", "'long.csv' (csv) and 'a.parquet' (parquet)"),
        ("wide.csv", "long.csv", "long.csv is long"),
        ("wide.csv", "bare.csv", "bare.csv has no column of people's labels"),
    ):
        assert said in complaint([tmp_path / one, tmp_path / other])


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv.gz", "a.csv.zst", "a.jsonl.gz"])
def test_files_cut_short(tmp_path, name, keep):
    people = np.random.default_rng(1).integers(0, 10**9, 5000)
    path = save(pl.DataFrame({"person": people, "item": range(5000), "response": 1}), tmp_path / name)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    assert f"{name} cannot be" in complaint(path)
    if name == "a.parquet":  # damage inside
        path.write_bytes(data[:4] + b"\x07" * (len(data) - 1004) + data[-1000:])
        assert re.search("a.parquet cannot be read.* again", complaint(path))


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


def test_blanks_in_a_table_of_one_column_separate_nothing(tmp_path):
    (tmp_path / "a.csv").write_text("first question\nvery good\nnot good\nvery good\n")
    assert read(tmp_path / "a.csv", correct="very good").items.tolist() == ["first question"]
    (tmp_path / "b.csv").write_text("first question\n1\n0\n")
    assert read(tmp_path / "b.csv").items.tolist() == ["first question"]


def test_a_quotation_mark_that_swallows_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "LONGEST_RECORD", 1000)
    monkeypatch.setattr(raw, "PIECE_BYTES", 100)
    (tmp_path / "a.csv").write_text('id,q1\na,1\n"b,1\n' + "c,0\n" * 1000)
    assert "line 3 or soon after is never closed" in complaint(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "x", "id": "z", "a": 1, "b": 0}',
        '{"id": "x", "a": 1, "a": 0, "b": 0}',
        '{"id": "x", "responses": {"a": 1, "b": 0, "a": 0}}',
        '{"person": "x", "item": "a", "response": 1, "response": 0}',
    ],
)
def test_a_field_twice_in_a_line(line, tmp_path):
    with pytest.raises(ReadError, match=r"line 2 has the field '(id|a|response)' more than once"):
        read_text(tmp_path, f"\n{line}\n", "a.jsonl", duplicates="last")


@pytest.mark.parametrize(
    ("line", "half"),
    [
        (r'{"subject_id": "a", "responses": {"xHALF": 1, "y": 0}}', r"\ud800"),
        (r'{"person": "a", "item": "xHALF", "response": 1}', r"\uDC00"),
        (r'{"person": "aHALF", "x": 1, "y": 0}', r"\ud83d"),
    ],
)
def test_half_of_a_character_in_json(tmp_path, line, half):
    said = f"a.jsonl: line 2 holds {half.lower()}, half of a pair"
    with pytest.raises(ReadError, match=re.escape(said)):
        read_text(tmp_path, f"{line.replace('HALF', '')}\n{line.replace('HALF', half)}\n", "a.jsonl")
    text = r'{"subject_id": "a", "responses": {"\ud83d\ude00": 1, "y": 0}}' + "\n"
    assert read_text(tmp_path, text, "b.jsonl").items.tolist() == ["y", "\U0001f600"]


def test_a_number_of_401_digits(tmp_path):
    huge = 10**400
    text = f'{{"id": "x", "responses": {{"a": {huge}, "b": 1}}}}\n{{"id": "y", "responses": {{"a": 1}}}}\n'
    for options, said in (
        ({}, r"column 'a', row 1 holds 10{59}\.\.\. \(401 characters\)"),
        ({"threshold": 0.5}, "not a finite number"),
    ):
        with pytest.raises(ResponseValueError, match=said):
            read_text(tmp_path, text, "a.jsonl", **options)
    text = f'{{"person": {huge}, "item": "a", "response": 1}}\n'
    assert read_text(tmp_path, text, "a.jsonl").persons.tolist() == [str(huge)]
    for table in ([[huge, 0], [1, 0]], pd.DataFrame({"a": pd.Series([huge, 0.5], dtype=object), "b": [0, 1]})):
        with pytest.raises(ResponseValueError):
            read(table)


FOUR = "student,question,answer,correct\na,q,B,1\na,r,B,1\n"
NESTED = '{"id": 1, "responses": {"q": 1}}'
NO_SUCH = "no column 'perso' for `person`; its columns are 'person', 'item', 'response'.*mean 'person'"


@pytest.mark.parametrize(
    ("text", "options", "error", "says"),
    [
        (LONG, {"person": "perso"}, OptionError, NO_SUCH),
        (LONG, {"item": "ITEMS"}, OptionError, "no column 'ITEMS' for `item`.*Did you mean 'item'"),
        (LONG, {"response": "zzzz"}, OptionError, "no column 'zzzz' for `response`; .* 'person', 'item', 'response'.$"),
        (WIDE, {"person": "name"}, OptionError, "no column 'name' for `person`; its columns are 'id', 'q1', 'q2'"),
        (WIDE, {"format": "wide", "item": "q1"}, OptionError, "columns of a long table"),
        (NESTED, {"person": "who"}, OptionError, "no column 'who' for `person`; its columns are 'id', 'responses'"),
        # columns that are not clear
        (FOUR, {}, ReadError, "'answer' and 'correct' could each hold the response.*response='correct'"),
        ("model,subject,question,score\na,x,q,1\n", {}, ReadError, "'model' and 'subject' could each hold the person"),
        ("person,item,thing\na,q,1\n", {}, ReadError, "seems to be long.* Say `response="),
        ("item,score,who\nq,1,a\n", {"format": "long"}, ReadError, "no column seems to hold the person"),
        ("who,what,score\nq,1,a\n", {"response": "score"}, ReadError, "no column seems to hold the person"),
    ],
)
def test_columns_that_are_not_there_or_not_clear(tmp_path, text, options, error, says):
    with pytest.raises(error, match=says):
        read_text(tmp_path, text, "a.jsonl" if text is NESTED else "a.csv", **options)


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


def test_a_column_without_a_name_is_an_item():
    table = pd.DataFrame([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    table.columns = pd.Index([None, "a", "b"], dtype=object)
    for found in (Responses.from_wide(table).items, read(table).items, SpectralRasch().fit(table).item_labels_):
        assert found.tolist() == ["None", "a", "b"]


def test_columns_and_rows_of_several_levels():
    levels = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")])
    for way in (Responses.from_wide, read, SpectralRasch().fit):
        with pytest.raises(
            ReadError, match=r"several levels, as in \('x', 'a'\).* Join them.*for c in df\.columns\]\.$"
        ):
            way(pd.DataFrame([[1, 0], [0, 1]], columns=levels))
    table = pd.DataFrame([[1, 0], [0, 1]], columns=["a", "b"], index=levels)
    assert Responses.from_wide(table).persons.tolist() == ["('x', 'a')", "('x', 'b')"]  # as `fit` calls them


RUNS = pa.RunEndEncodedArray.from_arrays([2, 4], ["a", "b"], pa.run_end_encoded(pa.int32(), pa.string()))


@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_that_cannot_be_read(opened, tmp_path):
    file = tmp_path / "a.arrow"

    def written(table):
        with opened(str(file), table.schema) as out:
            out.write_table(table)
        return file

    twice = pa.table([["x", "y"], [1, 0], [0, 1], [1, 1]], names=["id", "é", "b", "é"])
    with pytest.raises(ReadError, match=r"a\.arrow cannot be read.* several of one name") as error:
        read(written(twice))
    assert not re.search(r"unwrap|assertion|JoinError", str(error.value))
    # columns that the reader panics at: a sentence that does not call a sound file damaged
    with pytest.raises(ReadError, match=r"\.arrow cannot be read: .* It may be sound"):
        read(written(pa.table({"person": RUNS, "item": ["x", "y", "x", "y"], "response": [1, 0, 0, 1]})))
    assert read(written(pa.table({"id": ["x", "y"], "a": [1, 0], "b": [0, 1]}))).n_items == 2
    data = file.read_bytes()
    for size in (9, 12, 17, 40, 90, 200):
        file.write_bytes(data[:size])
        with pytest.raises(SpectralIrtError):
            read(file)


def test_a_record_batch_is_a_table_of_one_piece():
    batch = pa.record_batch({"q1": [1, 0, 1, 0], "q2": [0, 1, 1, 0], "q3": [1, 1, 0, 0]})
    assert read(batch).item_counts.tolist() == [4, 4, 4]


def test_labels_that_are_no_labels():
    with pytest.raises(ReadError, match=r"labels of items are numbers or texts, and one is \[1\] \(list\)"):
        Responses.from_wide(np.eye(3), items=[[1], [2], [3]])


@pytest.mark.slow  # some seconds each
@pytest.mark.parametrize(
    ("name", "start", "line", "said"),
    [
        ("a.csv", "", "\n", "a.csv.gz holds nothing but blank lines."),
        ("a.csv", "", "\r\n", "a.csv.gz holds nothing but blank lines."),
        ("a.csv", "", "  \n", "a.csv.gz holds nothing but blank lines."),
        ("a.jsonl", "", "\n", "a.jsonl.gz holds nothing but blank lines."),
        ("a.csv", "id,q1,q2\na,1,0\nb,0,1\n", "\n", "Responses(2 persons x 2 items, 4 responses, 50.0% right)"),
        ("a.jsonl", '{"id":"a","q1":1,"q2":0}\n', "\n", "Responses(1 persons x 2 items, 2 responses, 50.0% right)"),
    ],
)
def test_64_mb_of_blank_lines(name, start, line, said, tmp_path):
    """They are never held together: Python allocates a small part of them."""
    file = tmp_path / f"{name}.gz"
    piece = line.encode() * ((1 << 20) // len(line))
    with gzip.open(file, "wb", compresslevel=1) as out:
        out.write(start.encode())
        for _ in range(64):
            out.write(piece)
    tracemalloc.start()
    try:
        found = str(read(file))
    except ReadError as error:
        found = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.replace(str(tmp_path) + "/", "") == said
    assert peak < 32e6


def test_blank_lines_between_records(tmp_path):
    found = read_text(tmp_path, "\n  \n\nid,q1,q2\n\na,1,0\n \n\r\nb,0,1\n\n")
    np.testing.assert_array_equal(found.to_dense(), [[1, 0], [0, 1]])


def test_zstd_is_unpacked_by_streams():
    table = b"person,q1,q2\n" + b"".join(b"p%d,%d,%d\n" % (k, k % 2, k // 2 % 2) for k in range(2000))
    packed = zstandard.ZstdCompressor().compress(table)
    assert whole(io.BytesIO(packed + packed), True, "two frames") == 2 * table
    with pytest.raises(EOFError):
        whole(io.BytesIO(packed[:-5]), True, "cut short")


@pytest.mark.parametrize("fill", [b"a", b","])
def test_a_line_without_end(tmp_path, fill, monkeypatch):
    monkeypatch.setattr(raw, "LONGEST_RECORD", 1 << 20)
    seen = 0

    def cut(buffer):
        nonlocal seen
        seen += len(buffer)
        return raw.end_of_last_record(buffer)

    monkeypatch.setattr(csv_text, "end_of_last_record", cut)
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(fill * (1 << 24)))
    with pytest.raises(ReadError, match=r"line 1 has no end within 1 MB.* how the lines"):
        read(tmp_path / "line.csv.gz")
    assert seen < 1 << 23  # the same bytes are not looked at again and again
    (tmp_path / "quote.csv").write_bytes(b'a,"' + fill * (1 << 21))
    with pytest.raises(ReadError, match=r"a quotation mark on line 1.* is never closed"):
        read(tmp_path / "quote.csv")


def test_a_header_of_more_columns_than_are_read(tmp_path):
    (tmp_path / "commas.csv.gz").write_bytes(gzip.compress(b"," * 3_000_000 + b"\n1,0\n"))
    with pytest.raises(ReadError, match=r"the header has 3,000,001 columns, and at most 1,000,000 .* long table"):
        read(tmp_path / "commas.csv.gz")


def arrow_file(path, *columns):
    """An Arrow file with these columns beside the labels of persons; names may be repeated."""
    arrow = pytest.importorskip("pyarrow")
    arrays = [arrow.array(["a", "b", "c", "d"]), *(values for _, values in columns)]
    table = arrow.Table.from_arrays(arrays, names=["person", *(name for name, _ in columns)])
    with arrow.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("kind", ["run-end encoded", "a name twice", "interval", "union"])
def test_a_file_that_polars_cannot_take_leaves_one_sentence(tmp_path, capfd, kind):
    """And nothing on stderr: a panic would print pages about its source."""
    arrow = pytest.importorskip("pyarrow")
    plain = arrow.array([1, 0, 1, 0])
    runs = arrow.RunEndEncodedArray.from_arrays([2, 4], [1, 0])
    places = arrow.array([0, 1, 0, 1], arrow.int8())
    odd = {
        "run-end encoded": ("q2", runs),
        "a name twice": ("q1", plain),
        "interval": ("q2", arrow.array([(1, 2, 3)] * 4, arrow.month_day_nano_interval())),
        "union": ("q2", arrow.UnionArray.from_sparse(places, [plain, arrow.array(list("1010"))])),
    }[kind]
    said = complaint(arrow_file(tmp_path / "odd.arrow", ("q1", plain), odd))
    assert said.startswith("odd.arrow cannot be read")
    assert capfd.readouterr().err == ""
    assert read(arrow_file(tmp_path / "plain.arrow", ("q1", plain), ("q2", plain))).n_items == 2


def test_what_others_say_on_stderr_meanwhile_is_shown(capfd):
    from spectral_irt.reading.frame import without_panic_messages

    with without_panic_messages():
        os.write(2, b"a word")
    assert capfd.readouterr().err == "a word"


@pytest.mark.parametrize("odd", ["x", "inf", "1e308", "??", "3abc", "2024-01-01"])
def test_the_odd_one_among_ordered_categories_is_named(tmp_path, odd):
    rows = [[k % 4, (k + 1) % 4, (k // 2) % 4] for k in range(40)]
    rows[7][1] = odd
    (tmp_path / "a.csv").write_text("q1,q2,q3\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    message = complaint(tmp_path / "a.csv")
    assert re.search(rf"column 'q2', row 8 holds '?{re.escape(odd)}'?, where other values are numbers such as", message)
    assert f"`missing='{odd}'`" in message or f"`missing={odd}`" in message
    rows[9][2] = rows[11][2] = odd
    (tmp_path / "a.csv").write_text("q1,q2,q3\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    assert "(3 such values: " in complaint(tmp_path / "a.csv")


def test_letters_in_every_third_cell_are_no_odd_ones(tmp_path):
    rows = "".join(f"{k % 4},{(k + 1) % 4},{'ab'[k % 2]}{k % 3}\n" for k in range(40))
    (tmp_path / "a.csv").write_text(f"q1,q2,q3\n{rows}")
    assert "look like ordered categories" not in complaint(tmp_path / "a.csv", items="q*")
