"""read: the same answers in any file give the same responses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from reading import read_text
from spectral_irt.errors import DuplicateResponseError, ReadError
from spectral_irt.reading import csv as csv_text
from spectral_irt.reading import frame as tabular
from spectral_irt.reading import jsonl as json_lines
from spectral_irt.reading import read
from spectral_irt.reading import text_pieces as raw
from spectral_irt.reading import wide_builder as sheets
from spectral_irt.reading import wide_builder as wide_tables

NAN = float("nan")
PERSONS = ["zoe", "ann", "bob", "eve"]
ITEMS = ["q2", "q10", "q1"]
# Eve answered nothing, nobody answered q10 but Ann.
TABLE = np.array([[1, NAN, 0], [0, 1, 1], [1, NAN, NAN], [NAN, NAN, NAN]])


def wide_frame() -> pl.DataFrame:
    columns = {item: pl.Series(TABLE[:, k]).fill_nan(None).cast(pl.Int8) for k, item in enumerate(ITEMS)}
    return pl.DataFrame({"student": PERSONS, **columns})


def long_frame() -> pl.DataFrame:
    cells = [(u, i) for i in range(len(ITEMS)) for u in range(len(PERSONS))]
    return pl.DataFrame(
        {
            "when": list(range(len(cells))),
            "Item": [ITEMS[i] for _, i in cells],
            "Subject ID": [PERSONS[u] for u, _ in cells],
            "correct": pl.Series([TABLE[u, i] for u, i in cells]).fill_nan(None).cast(pl.Int8),
        }
    )


def zst(path: Path, data: bytes) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(data)


def csv_bytes(frame: pl.DataFrame, separator: str = ",") -> bytes:
    return frame.write_csv(separator=separator).encode()


def stream(frame: pl.DataFrame, path: Path) -> None:
    frame.write_ipc_stream(path)


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "a.csv": lambda frame, path: path.write_bytes(csv_bytes(frame)),
    "a.tsv": lambda frame, path: path.write_bytes(csv_bytes(frame, "\t")),
    "semicolons.csv": lambda frame, path: path.write_bytes(csv_bytes(frame, ";")),
    "bom.csv": lambda frame, path: path.write_bytes(b"\xef\xbb\xbf" + csv_bytes(frame)),
    "windows.csv": lambda frame, path: path.write_bytes(csv_bytes(frame).replace(b"\n", b"\r\n")),
    "no_last_break.csv": lambda frame, path: path.write_bytes(csv_bytes(frame)[:-1]),
    "blank_lines.csv": lambda frame, path: path.write_bytes(b"\n" + csv_bytes(frame).replace(b"\n", b"\n\r\n")),
    "a.csv.gz": lambda frame, path: path.write_bytes(gzip.compress(csv_bytes(frame))),
    "a.csv.zst": lambda frame, path: zst(path, csv_bytes(frame)),
    "a.parquet": lambda frame, path: frame.write_parquet(path),
    "a.feather": lambda frame, path: frame.write_ipc(path),
    "compressed.arrow": lambda frame, path: frame.write_ipc(path, compression="zstd"),
    "stream.arrow": stream,
    "parquet_in_disguise.csv": lambda frame, path: frame.write_parquet(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_wide_files(tmp_path: Path, name: str) -> None:
    WRITERS[name](wide_frame(), tmp_path / name)
    responses = read(tmp_path / name)
    assert responses.persons.tolist() == PERSONS
    assert responses.items.tolist() == ITEMS
    np.testing.assert_array_equal(responses.to_dense(), TABLE)
    assert responses.source == name
    assert responses.frame_kind is None


@pytest.mark.parametrize("name", WRITERS)
def test_long_files(tmp_path: Path, name: str) -> None:
    WRITERS[name](long_frame(), tmp_path / name)
    responses = read(str(tmp_path / name))
    assert responses.persons.tolist() == sorted(PERSONS)
    assert responses.items.tolist() == sorted(ITEMS)
    np.testing.assert_array_equal(responses.to_dense(), TABLE[np.argsort(PERSONS)][:, np.argsort(ITEMS)])


def people_lines(nested: bool) -> bytes:
    lines = []
    for person, row in zip(PERSONS, TABLE, strict=True):
        answers = {item: None if np.isnan(x) else int(x) for item, x in zip(ITEMS, row, strict=True)}
        lines.append({"subject_id": person, **({"responses": answers} if nested else answers)})
    return "\n".join(json.dumps(line) for line in lines).encode()


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz", "a.jsonl.zst", "a.json"])
def test_people_in_json_lines(tmp_path: Path, name: str, nested: bool) -> None:
    data = people_lines(nested)
    if name.endswith("zst"):
        zst(tmp_path / name, data)
    else:
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    responses = read(tmp_path / name)
    assert responses.persons.tolist() == (sorted(PERSONS) if nested else PERSONS)
    assert responses.items.tolist() == (sorted(ITEMS) if nested else ITEMS)
    table = TABLE[np.argsort(PERSONS)][:, np.argsort(ITEMS)] if nested else TABLE
    np.testing.assert_array_equal(responses.to_dense(), table)


def test_answers_in_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(long_frame().write_ndjson())
    responses = read(file)
    assert responses.persons.tolist() == sorted(PERSONS)
    assert responses.items.tolist() == sorted(ITEMS)
    assert responses.n_responses == 6
    file.write_text('{"person": 2, "item": "7", "response": true}\n{"person": 10, "item": "8", "response": false}\n')
    responses = read(file)
    assert responses.persons.tolist() == [2, 10]
    assert responses.items.tolist() == ["7", "8"]


def test_json_lines_without_names_number_the_people(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"q1": 1, "q2": 0}\n\n{"q2": 1}\n')
    responses = read(file)
    assert responses.persons.tolist() == [1, 2]
    assert responses.counts.tolist() == [2, 1]


# ------------------------------------------------------------------ in pieces


def simulated(n_persons: int = 60, n_items: int = 25, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n_persons * n_items)[: n_persons * n_items // 2]
    response = rng.integers(0, 2, len(rows)).astype(float)
    response[rng.random(len(rows)) < 0.1] = NAN
    return pl.DataFrame({"person": rows // n_items, "item": rows % n_items, "response": response})


def as_pivot(frame: pl.DataFrame) -> np.ndarray:
    dense = np.full((frame["person"].max() + 1, frame["item"].max() + 1), NAN)  # type: ignore[operator]
    dense[frame["person"].to_numpy(), frame["item"].to_numpy()] = frame["response"].to_numpy()
    return dense


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "PIECE_ROWS", 7)
    monkeypatch.setattr(wide_tables, "LEAST_ROWS", 1)
    monkeypatch.setattr(tabular, "PIECE_CELLS", 50)
    monkeypatch.setattr(raw, "PIECE_BYTES", 64)
    monkeypatch.setattr(csv_text, "HEAD_BYTES", 16)
    monkeypatch.setattr(json_lines, "PIECE_BYTES", 64)
    for module in (sheets, wide_tables):
        monkeypatch.setattr(module, "BLOCK_RESPONSES", 40)


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst", "a.parquet", "a.feather"])
@pytest.mark.parametrize("labels", ["whole", "text", "far apart"])
def test_long_in_many_pieces(tmp_path: Path, name: str, labels: str) -> None:
    frame = simulated()
    expected = as_pivot(frame)
    if labels == "text":
        frame = frame.with_columns(
            pl.format("person {}\n", pl.col("person").cast(pl.String).str.zfill(3)).alias("person")
        )
    elif labels == "far apart":
        frame = frame.with_columns(pl.col("person") * 10**15 - 10**16)
    WRITERS[name](frame, tmp_path / name)
    calls: list[float] = []
    responses = read(tmp_path / name, progress=lambda share, text: calls.append(share))
    np.testing.assert_array_equal(responses.to_dense(), expected)
    assert responses.persons.dtype == (object if labels == "text" else np.int64)
    assert responses.persons.tolist() == sorted(frame["person"].unique().to_list())
    assert len(calls) > (1 if name.endswith("zst") else 10)
    assert calls == sorted(calls)
    assert calls[-1] <= 1.0


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst", "a.parquet", "a.feather"])
@pytest.mark.parametrize("options", [{}, {"duplicates": "first"}, {"above_mean": "right"}])
def test_wide_in_many_pieces(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    expected = as_pivot(simulated())
    frame = pl.DataFrame({f"q{k}": pl.Series(expected[:, k]).fill_nan(None) for k in range(25)})
    WRITERS[name](
        frame.with_columns(pl.Series("id", [f"p{k}" for k in range(60)])).select("id", *frame.columns), tmp_path / name
    )
    responses = read(tmp_path / name, **options)
    assert responses.persons.tolist() == [f"p{k}" for k in range(60)]
    if "above_mean" in options:
        above = expected > np.nanmean(expected, axis=1, keepdims=True)
        expected = np.where(np.isnan(expected), NAN, above)
    np.testing.assert_array_equal(responses.to_dense(), expected)


@pytest.mark.usefixtures("small_pieces")
def test_json_in_many_pieces(tmp_path: Path) -> None:
    expected = as_pivot(simulated())
    lines = [{"id": k, "answers": {f"q{i}": x for i, x in enumerate(row) if x == x}} for k, row in enumerate(expected)]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    responses = read(file)
    order = [int(str(item)[1:]) for item in responses.items]
    np.testing.assert_array_equal(responses.to_dense(), expected[:, order])
    assert responses.persons.tolist() == list(range(60))


@pytest.mark.slow
def test_quoted_line_breaks_on_the_edge_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f'a "{k}"\nb,{k}', "q\r\n1", k % 2) for k in range(50)]
    frame = pl.DataFrame(rows, schema=["person", "item", "response"], orient="row")
    file = tmp_path / "a.csv"
    file.write_bytes(csv_bytes(frame))
    for size in (5, 17, 64):
        monkeypatch.setattr(raw, "PIECE_BYTES", size)
        responses = read(file)
        assert responses.persons.tolist() == sorted(person for person, _, _ in rows)
        assert responses.items.tolist() == ["q\r\n1"]


@pytest.mark.parametrize("format", ["long", "wide"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, format: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(csv_bytes(simulated()) if format == "long" else b"who,q1,q2\nann,1,0\nbob,0,1\n")

    written = file.read_bytes()

    def somebody_else_writes(share: float, text: str) -> None:
        file.write_bytes(written + b"1,1,1\n")

    with pytest.raises(ReadError, match=r"^a\.csv changed while"):
        read(file, progress=somebody_else_writes)


# ------------------------------------------------------------------ several files, repeated answers


def test_long_files_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "b2.csv").write_text("response,person,item\n1,a,q1\n0,b,q1\n")
    (tmp_path / "b1.csv").write_text("person,item,response\na,q2,0\n")
    (tmp_path / "b0.csv").write_text("person,item,response\n")
    for path in (str(tmp_path / "b*.csv"), [tmp_path / "b1.csv", tmp_path / "b2.csv", tmp_path / "b0.csv"]):
        responses = read(path)
        np.testing.assert_array_equal(responses.to_dense(), [[1, 0], [0, NAN]])
        assert responses.source == "3 files"


def test_labels_of_different_types_in_different_files_are_text(tmp_path: Path) -> None:
    pl.DataFrame({"person": [1], "item": [1], "response": [1]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"person": ["x"], "item": [2], "response": [0]}).write_parquet(tmp_path / "b.parquet")
    responses = read(str(tmp_path / "*.parquet"))
    assert responses.persons.tolist() == ["1", "x"]
    assert responses.items.tolist() == [1, 2]


def test_wide_files_are_stacked(tmp_path: Path) -> None:
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


def test_files_without_labels_are_numbered_through(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("q1,q2\n1,0\n0,1\n")
    assert read(str(tmp_path / "*.csv")).persons.tolist() == [1, 2, 3, 4]


def test_repeated_answers(tmp_path: Path) -> None:
    text = "person,item,response\na,q1,1\nb,q1,0\na,q1,0\na,q2,1\n"
    with pytest.raises(DuplicateResponseError, match=r"answers.csv: 1 \(person, item\)"):
        read_text(tmp_path, text)
    assert read_text(tmp_path, text, duplicates="first").to_dense()[0].tolist() == [1, 1]
    last = read_text(tmp_path, text, duplicates="last")
    assert last.to_dense()[0].tolist() == [0, 1]
    assert [note.sentence for note in last.notes if note.code == "repeats_left_out"] == [
        "1 repeated answer was left out: the last answer of a person to an item counts."
    ]


def test_a_name_with_brackets_is_a_file_before_it_is_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("q1,q2\n1,0\n0,1\n")
    assert read(tmp_path / "a[1].csv").n_persons == 2


# ------------------------------------------------------------------ dataframes


def test_the_callers_frame_is_not_touched() -> None:
    frame = long_frame().to_pandas()
    before = frame.copy(deep=True)
    read(frame)
    pd.testing.assert_frame_equal(frame, before)
    polars = long_frame()
    read(polars)
    assert polars.equals(long_frame())
    assert polars.columns == long_frame().columns


def test_rows_of_a_pandas_frame_are_labeled_by_its_index() -> None:
    frame = pd.DataFrame({"a": [1, 0], "b": [None, 1]}, index=["x", "y"])
    responses = read(frame)
    assert responses.persons.tolist() == ["x", "y"]
    np.testing.assert_array_equal(responses.to_dense(), [[1, NAN], [0, 1]])
    assert read(frame.reset_index(drop=True)).persons.tolist() == [0, 1]
    assert read(pl.DataFrame({"a": [1, 0], "b": [0, 1]})).persons.tolist() == [0, 1]


def test_pandas_columns_of_any_kind() -> None:
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


def test_what_is_no_frame() -> None:
    with pytest.raises(ReadError, match=r"column names must differ.*'a'"):
        read(pd.DataFrame([[1, 0]], columns=["a", "a"]))
    with pytest.raises(ReadError, match="no columns"):
        read(pl.DataFrame())
    with pytest.raises(ReadError, match="no rows"):
        read(pl.DataFrame({"a": [], "b": []}))
