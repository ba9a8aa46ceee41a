"""Input that used to end in a traceback, a panic, or hours of work: a sentence, in bounded time and memory."""

import gzip
import sys
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from spectral_irt import SpectralRasch
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError, ReadError, ResponseValueError, SpectralIrtError
from spectral_irt.reading import read

HUGE = 10**400


def test_a_number_of_401_digits(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"id": "x", "responses": {{"a": {HUGE}, "b": 1}}}}\n{{"id": "y", "responses": {{"a": 1}}}}\n')
    with pytest.raises(ResponseValueError, match=r"column 'a', row 1 holds 10{59}\.\.\. \(401 characters\)"):
        read(file)
    with pytest.raises(ResponseValueError, match="not a finite number"):
        read(file, threshold=0.5)
    file.write_text(f'{{"person": {HUGE}, "item": "a", "response": 1}}\n')
    assert read(file).persons.tolist() == [str(HUGE)]
    with pytest.raises(ResponseValueError):
        Responses.from_wide([[HUGE, 0], [1, 0]])
    with pytest.raises(ResponseValueError):
        read(pd.DataFrame({"a": pd.Series([HUGE, 0.5], dtype=object), "b": [0, 1]}))


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
    file = tmp_path / "a.jsonl"
    file.write_text(f"\n{line}\n")
    with pytest.raises(ReadError, match=r"line 2 has the field '(id|a|response)' more than once"):
        read(file, duplicates="last")


@pytest.mark.parametrize("ending", ["jsonl", "jsonlines", "ndjson"])
def test_json_lines_by_any_name(ending, tmp_path):
    file = tmp_path / f"a.{ending}"
    file.write_text('{"id": "x", "a": 1, "b": 0}\n{"id": "y", "a": 0, "b": 1}\n')
    assert read(file).persons.tolist() == ["x", "y"]


# ------------------------------------------------------------------------------------------- dataframes


def test_a_column_without_a_name_is_an_item():
    table = pd.DataFrame([[1, 0, 1], [0, 1, 1], [1, 1, 0]])
    table.columns = pd.Index([None, "a", "b"], dtype=object)
    for way in (Responses.from_wide, read):
        assert way(table).items.tolist() == ["None", "a", "b"]
    assert SpectralRasch().fit(table).item_labels_.tolist() == ["None", "a", "b"]


def test_columns_of_several_levels():
    table = pd.DataFrame([[1, 0], [0, 1]], columns=pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")]))
    for way in (Responses.from_wide, read, SpectralRasch().fit):
        with pytest.raises(ReadError, match=r"several levels, as in \('x', 'a'\).* Join them"):
            way(table)
    with pytest.raises(ReadError) as caught:
        SpectralRasch().fit(table)
    assert str(caught.value).endswith("for c in df.columns].")  # no option would help


def test_rows_of_several_levels_are_labels():
    rows = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")])
    table = pd.DataFrame([[1, 0], [0, 1]], columns=["a", "b"], index=rows)
    assert Responses.from_wide(table).persons.tolist() == ["('x', 'a')", "('x', 'b')"]  # as `fit` calls them


@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_with_repeated_columns(opened, tmp_path):
    table = pa.table([["x", "y"], [1, 0], [0, 1], [1, 1]], names=["id", "é", "b", "é"])
    file = tmp_path / "a.arrow"
    with opened(str(file), table.schema) as out:
        out.write_table(table)
    with pytest.raises(ReadError, match=r"a\.arrow cannot be read.* several of one name"):
        read(file)


@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_that_is_cut_short(opened, tmp_path):
    file = tmp_path / "whole.arrow"
    table = pa.table({"id": ["x", "y"], "a": [1, 0], "b": [0, 1]})
    with opened(str(file), table.schema) as out:
        out.write_table(table)
    assert read(file).n_items == 2
    data = file.read_bytes()
    cut = tmp_path / "cut.arrow"
    for size in (9, 12, 17, 40, 90, 200):
        cut.write_bytes(data[:size])
        with pytest.raises(SpectralIrtError):
            read(cut)


# ------------------------------------------------------------------------------------------ blank lines


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
def test_256_mb_of_blank_lines(name, start, line, said, tmp_path):
    """They are never held together: Python allocates a small part of them."""
    file = tmp_path / f"{name}.gz"
    piece = line.encode() * ((1 << 20) // len(line))
    with gzip.open(file, "wb", compresslevel=1) as out:
        out.write(start.encode())
        for _ in range(256):
            out.write(piece)
    tracemalloc.start()
    try:
        sentence = str(read(file))
    except ReadError as error:
        sentence = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sentence.replace(str(tmp_path) + "/", "") == said
    assert peak < 64e6


def test_blank_lines_between_records(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("\n  \n\nid,q1,q2\n\na,1,0\n \n\r\nb,0,1\n\n")
    np.testing.assert_array_equal(read(file).to_dense(), [[1, 0], [0, 1]])
    file.write_text("id,q1,q2\n\na,1,0\n\nb,0\n")
    with pytest.raises(ReadError, match="line 5 has 2 values; the header has 3 columns"):
        read(file)


# ------------------------------------------------------------------------------ what is shared stays whole


def test_threads_share_responses():
    rng = np.random.default_rng(5)
    answers = (rng.random((400, 6)) < 0.5).astype(float)
    wrong = []

    for _ in range(30):
        block = Responses.from_wide(answers).blocks[0]
        barrier = threading.Barrier(8)

        def work(block=block, barrier=barrier):
            barrier.wait()
            try:
                right, not_right = block.halves(6)
                assert right.nnz + not_right.nnz == block.n_responses
            except BaseException as error:
                wrong.append(error)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=work) for _ in range(8)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    assert not wrong, wrong[:3]


def test_a_block_seen_with_more_items():
    block = Responses.from_wide([[1, 0, 1, 0, 1]]).blocks[0]
    assert block.pattern(5).shape == (2, 5)
    assert block.pattern(9).shape == (2, 9)
    assert [half.shape for half in block.halves(5)] == [(1, 5)] * 2
    assert [half.shape for half in block.halves(9)] == [(1, 9)] * 2


def test_what_was_learned_cannot_be_changed():
    responses = Responses.from_wide([[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]])
    fit = SpectralRasch().fit(responses)
    names = [name for name in dir(fit) if name.endswith("_") and not name.startswith("_") and hasattr(fit, name)]
    learned = {name: getattr(fit, name) for name in names if isinstance(getattr(fit, name), np.ndarray)}
    assert {"item_counts_", "item_scores_", "item_labels_", "difficulty_", "se_", "status_"} <= set(learned)
    for name, array in {**learned, "counts": responses.counts, "item_counts": responses.item_counts}.items():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
        assert name


def test_probabilities_of_a_table_of_answers():
    answers = [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]]
    fit = SpectralRasch().fit(answers)
    assert fit.predict_proba([0.0, 1.0]).shape == (2, 3)
    assert fit.predict_proba(0.5).shape == (1, 3)
    for table in (answers, np.array(answers), pd.DataFrame(answers), Responses.from_wide(answers)):
        wanted = r"takes abilities, one number per person.* fit\.analyse\(answers\)\.persons\(\)"
        with pytest.raises(OptionError, match=wanted):
            fit.predict_proba(table)


@pytest.mark.parametrize(
    "line",
    [
        r'{"subject_id": "a", "responses": {"x\ud800": 1, "y": 0}}',
        r'{"person": "a", "item": "x\uDC00", "response": 1}',
        r'{"person": "a\ud83d", "x": 1, "y": 0}',
    ],
)
def test_half_of_a_character_in_json(tmp_path, line):
    file = tmp_path / "a.jsonl"
    file.write_text(line.replace(r"\ud800", "").replace(r"\uDC00", "").replace(r"\ud83d", "") + "\n" + line + "\n")
    with pytest.raises(ReadError, match=r"a\.jsonl: line 2 holds \\ud[8c][03][0d], half of a pair"):
        read(file)
    whole = tmp_path / "b.jsonl"
    whole.write_text(r'{"subject_id": "a", "responses": {"\ud83d\ude00": 1, "y": 0}}' + "\n")
    assert read(whole).items.tolist() == ["y", "\U0001f600"]


def test_columns_that_the_reader_panics_at(tmp_path):
    """A sentence that does not call a sound file damaged."""
    kind = pa.run_end_encoded(pa.int32(), pa.string())
    runs = pa.RunEndEncodedArray.from_arrays([2, 4], ["a", "b"], kind)
    table = pa.table({"person": runs, "item": ["x", "y", "x", "y"], "response": [1, 0, 0, 1]})
    for kind, name in ((pa.ipc.new_file, "a.arrow"), (pa.ipc.new_stream, "b.arrow")):
        with kind(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(ReadError, match=r"\.arrow cannot be read: .* It may be sound"):
            read(tmp_path / name)


def test_a_record_batch_is_a_table_of_one_piece():
    batch = pa.record_batch({"q1": [1, 0, 1, 0], "q2": [0, 1, 1, 0], "q3": [1, 1, 0, 0]})
    assert read(batch).item_counts.tolist() == [4, 4, 4]


def test_labels_that_are_no_labels():
    with pytest.raises(ReadError, match=r"labels of items are numbers or texts, and one is \[1\] \(list\)"):
        Responses.from_wide(np.eye(3), items=[[1], [2], [3]])
