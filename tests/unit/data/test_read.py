"""read: the same answers in any file give the same responses; which column is what, and what becomes of labels."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from reading import PACKED, notes, read_text, save
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError
from spectral_irt.reading import csv as csv_text
from spectral_irt.reading import frame as tabular
from spectral_irt.reading import read
from spectral_irt.reading import text_pieces as raw
from spectral_irt.reading import wide_builder as wide_tables

NAN = float("nan")
PERSONS = ["zoe", "ann", "bob", "eve"]
ITEMS = ["q2", "q10", "q1"]
# Eve answered nothing, nobody answered q10 but Ann.
TABLE = np.array([[1, NAN, 0], [0, 1, 1], [1, NAN, NAN], [NAN, NAN, NAN]])
SORTED = TABLE[np.argsort(PERSONS)][:, np.argsort(ITEMS)]
CELLS = {item: pl.Series(TABLE[:, k]).fill_nan(None).cast(pl.Int8) for k, item in enumerate(ITEMS)}
WIDE = pl.DataFrame({"student": PERSONS, **CELLS})
LONG = WIDE.rename({"student": "Subject ID"}).unpivot(index="Subject ID", variable_name="Item", value_name="correct")
LONG = LONG.with_row_index("when")


def csv_bytes(frame, separator=","):
    return frame.write_csv(separator=separator).encode()


WRITERS = {
    "a.tsv": lambda frame, path: path.write_bytes(csv_bytes(frame, "\t")),
    "semicolons.csv": lambda frame, path: path.write_bytes(csv_bytes(frame, ";")),
    "bom.csv": lambda frame, path: path.write_bytes(b"\xef\xbb\xbf" + csv_bytes(frame)),
    "windows.csv": lambda frame, path: path.write_bytes(csv_bytes(frame).replace(b"\n", b"\r\n")),
    "no_last_break.csv": lambda frame, path: path.write_bytes(csv_bytes(frame)[:-1]),
    "blank_lines.csv": lambda frame, path: path.write_bytes(b"\n" + csv_bytes(frame).replace(b"\n", b"\n\r\n")),
    "compressed.arrow": lambda frame, path: frame.write_ipc(path, compression="zstd"),
    "stream.arrow": lambda frame, path: frame.write_ipc_stream(path),
    "parquet_in_disguise.csv": lambda frame, path: frame.write_parquet(path),
} | dict.fromkeys(["a.csv", "a.csv.gz", "a.csv.zst", "a.parquet", "a.feather", "a.jsonl"], save)


@pytest.mark.parametrize("name", WRITERS)
def test_files(tmp_path, name):
    WRITERS[name](WIDE, tmp_path / name)
    responses = read(tmp_path / name)
    assert responses.persons.tolist() == PERSONS
    assert responses.items.tolist() == ITEMS
    np.testing.assert_array_equal(responses.to_dense(), TABLE)
    assert responses.source == name
    assert responses.frame_kind is None
    WRITERS[name](LONG, tmp_path / name)
    responses = read(str(tmp_path / name))
    assert responses.persons.tolist() == sorted(PERSONS)
    assert responses.items.tolist() == sorted(ITEMS)
    np.testing.assert_array_equal(responses.to_dense(), SORTED)


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz", "a.jsonl.zst", "a.json"])
@pytest.mark.parametrize("nested", [True, False])
def test_people_in_json_lines(tmp_path, name, nested):
    people = [
        {"subject_id": row["student"]} | ({"responses": answers} if nested else answers)
        for row in WIDE.to_dicts()
        for answers in [{item: row[item] for item in ITEMS}]
    ]
    data = "\n".join(map(json.dumps, people)).encode()
    (tmp_path / name).write_bytes(PACKED.get((tmp_path / name).suffix, bytes)(data))
    responses = read(tmp_path / name)
    assert responses.persons.tolist() == (sorted(PERSONS) if nested else PERSONS)
    assert responses.items.tolist() == (sorted(ITEMS) if nested else ITEMS)
    np.testing.assert_array_equal(responses.to_dense(), SORTED if nested else TABLE)


def simulated(n_persons=24, n_items=10, seed=3):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n_persons * n_items)[: n_persons * n_items // 2]
    response = rng.integers(0, 2, len(rows)).astype(float)
    response[rng.random(len(rows)) < 0.1] = NAN
    return pl.DataFrame({"person": rows // n_items, "item": rows % n_items, "response": response})


def as_pivot(frame):
    dense = np.full((frame["person"].max() + 1, frame["item"].max() + 1), NAN)
    dense[frame["person"].to_numpy(), frame["item"].to_numpy()] = frame["response"].to_numpy()
    return dense


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(tabular, "PIECE_ROWS", 7)
    monkeypatch.setattr(tabular, "LEAST_ROWS", 1)
    monkeypatch.setattr(tabular, "PIECE_CELLS", 50)
    monkeypatch.setattr(raw, "PIECE_BYTES", 64)
    monkeypatch.setattr(csv_text, "HEAD_BYTES", 16)
    monkeypatch.setattr(wide_tables, "BLOCK_RESPONSES", 40)


FILES = ["a.csv", "a.csv.gz", "a.csv.zst", "a.parquet", "a.feather"]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("name", "labels"), [*((name, "text") for name in FILES), ("a.csv", "whole"), ("a.parquet", "far apart")]
)
def test_long_in_many_pieces(tmp_path, name, labels):
    frame = simulated()
    expected = as_pivot(frame)
    if labels == "text":
        frame = frame.with_columns(
            pl.format("person {}\n", pl.col("person").cast(pl.String).str.zfill(3)).alias("person")
        )
    elif labels == "far apart":
        frame = frame.with_columns(pl.col("person") * 10**15 - 10**16)
    calls = []
    responses = read(save(frame, tmp_path / name), progress=lambda share, text: calls.append(share))
    np.testing.assert_array_equal(responses.to_dense(), expected)
    assert responses.persons.dtype == (object if labels == "text" else np.int64)
    assert responses.persons.tolist() == sorted(frame["person"].unique().to_list())
    assert len(calls) > (1 if name.endswith("zst") else 10)
    assert calls == sorted(calls)
    assert calls[-1] <= 1.0


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in FILES), ("a.csv", {"duplicates": "first"})])
def test_wide_in_many_pieces(tmp_path, name, options):
    expected = as_pivot(simulated())
    columns = {f"q{k}": pl.Series(expected[:, k]).fill_nan(None) for k in range(10)}
    frame = pl.DataFrame({"id": [f"p{k}" for k in range(24)], **columns})
    responses = read(save(frame, tmp_path / name), **options)
    assert responses.persons.tolist() == frame["id"].to_list()
    np.testing.assert_array_equal(responses.to_dense(), expected)


@pytest.mark.usefixtures("small_pieces")
def test_json_in_many_pieces(tmp_path):
    expected = as_pivot(simulated())
    expected[9:20] = NAN  # pieces of people who answered nothing
    lines = [{"id": k, "answers": {f"q{i}": x for i, x in enumerate(row) if x == x}} for k, row in enumerate(expected)]
    responses = read_text(tmp_path, "\n".join(map(json.dumps, lines)), "a.jsonl")
    order = [int(str(item)[1:]) for item in responses.items]
    np.testing.assert_array_equal(responses.to_dense(), expected[:, order])
    assert responses.persons.tolist() == list(range(24))


@pytest.mark.parametrize("size", [5, 17, 64])
def test_quoted_line_breaks_on_the_edge_of_pieces(tmp_path, size, monkeypatch):
    rows = [(f'a "{k}"\nb,{k}', "q\r\n1", k % 2) for k in range(50)]
    file = save(pl.DataFrame(rows, schema=["person", "item", "response"], orient="row"), tmp_path / "a.csv")
    monkeypatch.setattr(raw, "PIECE_BYTES", size)
    responses = read(file)
    assert responses.persons.tolist() == sorted(person for person, _, _ in rows)
    assert responses.items.tolist() == ["q\r\n1"]


def test_the_head_of_a_table_with_many_columns(tmp_path, monkeypatch):
    whole = read(save(WIDE, tmp_path / "a.parquet"))
    monkeypatch.setattr("spectral_irt.reading.parquet.HEAD_COLUMNS", 2)
    assert read(tmp_path / "a.parquet").digest() == whole.digest()


@pytest.mark.parametrize("format", ["long", "wide"])
def test_a_file_that_changes_while_it_is_read(tmp_path, format):
    file = tmp_path / "a.csv"
    written = csv_bytes(simulated()) if format == "long" else b"who,q1,q2\nann,1,0\nbob,0,1\n"
    file.write_bytes(written)
    with pytest.raises(ReadError, match=r"^a\.csv changed while"):
        read(file, progress=lambda share, text: file.write_bytes(written + b"1,1,1\n"))


def test_long_files_are_put_together(tmp_path):
    (tmp_path / "b2.csv").write_text("response,person,item\n1,a,q1\n0,b,q1\n")
    (tmp_path / "b1.csv").write_text("person,item,response\na,q2,0\n")
    (tmp_path / "b0.csv").write_text("person,item,response\n")
    for path in (str(tmp_path / "b*.csv"), [tmp_path / "b1.csv", tmp_path / "b2.csv", tmp_path / "b0.csv"]):
        responses = read(path)
        np.testing.assert_array_equal(responses.to_dense(), [[1, 0], [0, NAN]])
        assert responses.source == "3 files"


def test_labels_of_different_types_in_different_files_are_text(tmp_path):
    pl.DataFrame({"person": [1], "item": [1], "response": [1]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"person": ["x"], "item": [2], "response": [0]}).write_parquet(tmp_path / "b.parquet")
    responses = read(str(tmp_path / "*.parquet"))
    assert responses.persons.tolist() == ["1", "x"]
    assert responses.items.tolist() == [1, 2]


def test_wide_files_are_stacked(tmp_path):
    (tmp_path / "form1.csv").write_text("id,q1,q2\nann,1,0\n")
    (tmp_path / "form2.csv").write_text("id,q3,q2\nbob,1,1\n")
    responses = read(tmp_path / "form?.csv")
    assert responses.items.tolist() == ["q1", "q2", "q3"]
    np.testing.assert_array_equal(responses.to_dense(), [[1, 0, NAN], [NAN, 1, 1]])
    (tmp_path / "form2.csv").write_text("id,q3,q2\nann,1,1\n")
    with pytest.raises(DuplicateResponseError, match="2 files: 1 person has more than one row: 'ann'"):
        read(tmp_path / "form?.csv")
    first = read(tmp_path / "form?.csv", duplicates="first")
    np.testing.assert_array_equal(first.to_dense(), [[1, 0, 1]])
    last = read(tmp_path / "form?.csv", duplicates="last")
    np.testing.assert_array_equal(last.to_dense(), [[1, 1, 1]])


def test_names_of_files(tmp_path):
    """Files without labels are numbered through; a name with brackets is a file before it is a pattern."""
    for name in ("a[1].csv", "b.csv"):
        (tmp_path / name).write_text("q1,q2\n1,0\n0,1\n")
    assert read(str(tmp_path / "*.csv")).persons.tolist() == [1, 2, 3, 4]
    assert read(tmp_path / "a[1].csv").n_persons == 2


def test_repeated_answers(tmp_path):
    text = "person,item,response\na,q1,1\nb,q1,0\na,q1,0\na,q2,1\n"
    with pytest.raises(DuplicateResponseError, match=r"answers.csv: 1 \(person, item\)"):
        read_text(tmp_path, text)
    assert read_text(tmp_path, text, duplicates="first").to_dense()[0].tolist() == [1, 1]
    last = read_text(tmp_path, text, duplicates="last")
    assert last.to_dense()[0].tolist() == [0, 1]
    assert "1 repeated answer was left out: the last" in notes(last)["repeats_left_out"].sentence


def test_the_callers_frame_is_not_touched():
    frame = LONG.to_pandas()
    before = frame.copy(deep=True)
    read(frame)
    pd.testing.assert_frame_equal(frame, before)
    polars = LONG.clone()
    read(polars)
    assert polars.equals(LONG)


def test_rows_of_a_pandas_frame_are_labeled_by_its_index():
    frame = pd.DataFrame({"a": [1, 0], "b": [None, 1]}, index=["x", "y"])
    responses = read(frame)
    assert responses.persons.tolist() == ["x", "y"]
    np.testing.assert_array_equal(responses.to_dense(), [[1, NAN], [0, 1]])
    assert read(frame.reset_index(drop=True)).persons.tolist() == [0, 1]
    assert read(pl.DataFrame({"a": [1, 0], "b": [0, 1]})).persons.tolist() == [0, 1]


def test_pandas_columns_of_any_kind():
    frame = pd.DataFrame(
        {
            0: [1, None, 0],
            1: [True, False, True],
            2: pd.array([1, None, 0], dtype="Int64"),
            3: pd.Categorical(["0", "1", None]),
            4: [np.float32(1), "0", None],
        }
    )
    responses = read(frame)
    assert responses.items.tolist() == [0, 1, 2, 3, 4]
    expected = [[1, 1, 1, 0, 1], [NAN, 0, NAN, 1, 0], [0, 1, 0, NAN, NAN]]
    np.testing.assert_array_equal(responses.to_dense(), expected)


ONE = "q1,q2\n4,1,0\n5,0,1\n6,1,1\n"
THREE = "a,q1,1\na,q2,0\nb,q2,1\n"
LONG_TEXT = "person,item,response\n"


@pytest.mark.parametrize(
    ("text", "options", "persons", "items"),
    [
        # usual names of long tables
        ("userId,movieId,rating\n" + THREE, {}, ["a", "b"], ["q1", "q2"]),
        ("model,prompt,score\n" + THREE, {}, ["a", "b"], ["q1", "q2"]),
        ("STUDENT_ID,Question,is_correct\n" + THREE, {}, ["a", "b"], ["q1", "q2"]),
        ("respondent,item id,value\n" + THREE, {}, ["a", "b"], ["q1", "q2"]),
        ("id,problem_id,answer\n" + THREE, {}, ["a", "b"], ["q1", "q2"]),
        ("Person.Name,task,outcome\n" + THREE, {}, ["a", "b"], ["q1", "q2"]),
        ("wer,was,wie\n" + THREE, {"person": "wer", "item": "was", "response": "wie"}, ["a", "b"], ["q1", "q2"]),
        ("answer,student,question,correct\nB,a,q1,1\nC,a,q2,0\n", {"response": "correct"}, ["a"], ["q1", "q2"]),
        # and of the labels of wide ones
        ("id," + ONE, {}, [4, 5, 6], ["q1", "q2"]),
        ("Student," + ONE, {}, [4, 5, 6], ["q1", "q2"]),
        ("model_name," + ONE, {}, [4, 5, 6], ["q1", "q2"]),
        ("," + ONE, {}, [4, 5, 6], ["q1", "q2"]),
        ("Unnamed: 0," + ONE, {}, [4, 5, 6], ["q1", "q2"]),
        ("q1,nr,q2\n1,7,0\n0,8,1\n", {"person": "nr"}, [7, 8], ["q1", "q2"]),
        ("wer,q1\nann,1\nbob,0\n", {}, ["ann", "bob"], ["q1"]),
        # answers: they come back in other columns, or the key names the column
        ("a,b\nA,B\nB,A\n", {"correct": "A"}, [1, 2], ["a", "b"]),
        ("a,b\nC,B\nB,A\n", {"key": {"a": "C", "b": "B"}}, [1, 2], ["a", "b"]),
        ("a,b\ntrue,1\nfalse,0\n", {}, [1, 2], ["a", "b"]),
        ("code,math\n1,0\n0,1\n1,1\n", {}, [1, 2, 3], ["code", "math"]),
        ("item1,item2\n1,0\n0,1\n", {}, [1, 2], ["item1", "item2"]),
        ("id,3,1,2\n5,1,0,1\n-1,1,1,0\n", {}, [5, -1], [3, 1, 2]),
        # whole numbers become integers only when nothing is lost
        (LONG_TEXT + "10,007,1\n9,8,0\n-3,8,1\n", {}, [-3, 9, 10], ["007", "8"]),
        *(
            (LONG_TEXT + f"{label},1,1\n2,2,0\n", {}, sorted([label, "2"]), [1, 2])
            for label in ("+1", "1.0", "1e3", " 1", "-0", "9223372036854775808", "1_000", "٣")
        ),
        # rows of nothing at the end of a spreadsheet
        ("id,q1,q2\na,1,0\nb,0,1\n,,\n,,\n", {}, ["a", "b"], ["q1", "q2"]),
        (LONG_TEXT + "a,q1,0\n,,\n", {}, ["a"], ["q1"]),
    ],
)
def test_people_and_items(tmp_path, text, options, persons, items):
    responses = read_text(tmp_path, text, **options)
    assert (responses.persons.tolist(), responses.items.tolist()) == (persons, items)
    assert responses.persons.dtype == (object if isinstance(persons[0], str) else np.int64)


@pytest.mark.parametrize("dtype", [pl.UInt8, pl.Int32, pl.Int64, pl.UInt64, pl.Float64])
def test_typed_labels(tmp_path, dtype):
    people = pl.Series([3, 20], dtype=dtype)
    responses = read(
        save(pl.DataFrame({"person": people, "item": ["1", "2"], "response": [1, 0]}), tmp_path / "a.parquet")
    )
    assert responses.persons.tolist() == [3, 20]
    assert responses.items.tolist() == ["1", "2"]


def test_labels_of_other_types(tmp_path):
    frame = pl.DataFrame({"person": [2**63 + 1, 2**64 - 1], "item": pl.Series(["b", "a"], dtype=pl.Categorical)})
    responses = read(save(frame.with_columns(response=pl.Series([True, False])), tmp_path / "a.parquet"))
    assert responses.persons.tolist() == sorted([str(2**63 + 1), str(2**64 - 1)])
    assert responses.items.tolist() == ["a", "b"]
    with pytest.raises(ReadError, match="column 'person' is of type List"):
        read(save(frame.with_columns(response=1, person=[[1], [2]]), tmp_path / "a.parquet"))


def test_people_and_items_without_answers_are_kept(tmp_path):
    responses = read_text(tmp_path, LONG_TEXT + "a,q1,1\nb,q1,\nb,q2,NA\na,q3,0\n")
    assert responses.counts.tolist() == [2, 0]
    assert responses.item_counts.tolist() == [1, 0, 1]
    responses = read_text(tmp_path, '{"q1": 1, "q2": 0}\n\n{"q2": 1}\n', "a.jsonl")
    assert (responses.persons.tolist(), responses.counts.tolist()) == ([1, 2], [2, 1])


def test_rows_as_items(tmp_path):
    text = "item,ann,bob,carl\nq1,1,0,1\nq2,0,,1\n"
    responses = read_text(tmp_path, text, orient="items")
    assert responses.persons.tolist() == ["ann", "bob", "carl"]
    assert responses.items.tolist() == ["q1", "q2"]
    np.testing.assert_array_equal(responses.to_dense(), [[1, 0], [0, np.nan], [1, 1]])
    with pytest.raises(OptionError, match="`orient='items'` is for wide"):
        read_text(tmp_path, "person,item,response\na,b,1\n", format="long", orient="items")
