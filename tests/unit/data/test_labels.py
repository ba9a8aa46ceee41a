"""Labels come out as they went in: any Unicode, commas, quotes, line breaks, HTML, in every format."""

import csv
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spectral_irt.data import Responses
from spectral_irt.data.labels import NOT_ANSWERED, by_label
from spectral_irt.reading import read
from spectral_irt.reading.item_columns import says_attribute

pytestmark = pytest.mark.slow  # seconds each: left out of the quick part

# Any text but the lone surrogates, which no UTF-8 file can hold.
anything = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
awkward = st.sampled_from(
    [
        *["^q.*$", "*", "a,b", 'say "x"', "'", "two\nlines", "two\r\nlines", "\r", " ", " x ", "\t", "<b>&amp;</b>"],
        *["é", "e\u0301", "𝕏", "日本", "\u2028", "\ufeff", "=1+1", "#", "\\", "q1\\n", ";"],
        *["NA", "nan", "null", "0", "1", "007", "7", "-1", "1e3"],
    ]
)
# An item called "class" is taken for an attribute of the person, unless it is asked for.
labels = st.lists(
    (anything | awkward).filter(lambda text: not says_attribute(text)), min_size=2, max_size=6, unique=True
)
# A person called NA, or by white space alone, has no name, which is refused.
names = (anything | awkward).filter(lambda text: text.strip() not in NOT_ANSWERED)
people = st.lists(names, min_size=2, max_size=6, unique=True)
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def as_read_without_types(texts):
    """CSV has no types: labels that are all plain whole numbers are integers."""
    try:
        numbers = [int(text) for text in texts]
    except ValueError:
        return list(texts)
    plain = all(str(number) == text and abs(number) < 2**63 for number, text in zip(numbers, texts, strict=True))
    return list(numbers) if plain else list(texts)


def csv_text(rows, separator=","):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()


def through_file(name, write, **options):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, name)
        write(path)
        return read(path, **options)


def long_rows(persons, items):
    return [(person, item, (k + i) % 2) for k, person in enumerate(persons) for i, item in enumerate(items)]


def check_long(responses, persons, items):
    persons, items = sorted(persons), sorted(items)
    assert responses.persons.tolist() == persons
    assert responses.items.tolist() == items
    assert responses.n_responses == len(persons) * len(items)


@quick
@given(people, labels)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_long_csv(name, persons, items):
    if any("\0" in label for label in persons + items):
        persons, items = [u.replace("\0", "0") + str(k) for k, u in enumerate(persons)], ["a", "b"]
    rows = [["person", "item", "response"], *map(list, long_rows(persons, items))]
    text = csv_text(rows, "\t" if name.endswith("tsv") else ",")
    responses = through_file(name, lambda path: path.write_bytes(text.encode()))
    check_long(responses, as_read_without_types(persons), as_read_without_types(items))


@quick
@given(people, labels)
def test_wide_csv(persons, items):
    persons, items = (
        [label.replace("\0", "0") + "x" * (k + 1) for k, label in enumerate(kind)] for kind in (persons, items)
    )
    if "id" in items:
        return
    rows = [["id", *items], *[[person, *[(k + i) % 2 for i in range(len(items))]] for k, person in enumerate(persons)]]
    responses = through_file(
        "a.csv", lambda path: path.write_bytes(csv_text(rows).encode()), person="id", format="wide"
    )
    assert responses.persons.tolist() == persons
    assert responses.items.tolist() == items
    expected = [[(k + i) % 2 for i in range(len(items))] for k in range(len(persons))]
    np.testing.assert_array_equal(responses.to_dense(), expected)


@quick
@given(people, labels)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_typed_files(name, persons, items):
    def save(frame, path):
        frame.write_parquet(path) if name.endswith("parquet") else frame.write_ipc(path)

    long = pl.DataFrame(long_rows(persons, items), schema=["person", "item", "response"], orient="row")
    check_long(through_file(name, lambda path: save(long, path)), list(persons), list(items))
    items = [item for item in items if item != "id"]
    wide = pl.DataFrame({"id": persons, **{item: [i % 2] * len(persons) for i, item in enumerate(items)}})
    responses = through_file(name, lambda path: save(wide, path), person="id", format="wide")
    assert responses.persons.tolist() == persons
    assert responses.items.tolist() == items


@quick
@given(people, labels)
def test_json_lines(persons, items):
    people = [{"subject_id": person, "responses": dict.fromkeys(items, 1)} for person in persons]
    for ascii_only in (True, False):
        text = "\n".join(json.dumps(person, ensure_ascii=ascii_only) for person in people)
        responses = through_file("a.jsonl", lambda path, text=text: path.write_bytes(text.encode()))
        assert responses.persons.tolist() == sorted(persons)
        assert responses.items.tolist() == sorted(items)


@quick
@given(people, labels)
def test_frames(persons, items):
    long = pl.DataFrame(long_rows(persons, items), schema=["person", "item", "response"], orient="row")
    check_long(read(long), list(persons), list(items))
    check_long(read(long.to_pandas()), list(persons), list(items))


@quick
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6, unique=True))
def test_integers(persons):
    frame = pl.DataFrame({"person": persons, "item": ["a"] * len(persons), "response": [1] * len(persons)})
    for name, save in (("a.parquet", frame.write_parquet), ("a.csv", frame.write_csv), ("a.arrow", frame.write_ipc)):
        responses = through_file(name, save)
        assert responses.persons.dtype == np.int64
        assert responses.persons.tolist() == sorted(persons)


def test_compressed_csv_keeps_line_breaks_in_labels(tmp_path):
    text = csv_text([["person", "item", "response"], ["a\nb", "q\n1", 1], ["c", "q,2", 0]])
    with pa.CompressedOutputStream(str(tmp_path / "a.csv.zst"), "zstd") as file:
        file.write(text.encode())
    responses = read(tmp_path / "a.csv.zst")
    assert responses.persons.tolist() == ["a\nb", "c"]
    assert responses.items.tolist() == ["q\n1", "q,2"]


@pytest.mark.parametrize("nothing", ["NA", "nan", "NaN", "null", "", None, float("nan")])
def test_what_means_no_answer_means_no_group(nothing):
    split = by_label(Responses.from_wide(np.eye(4)), ["f", "m", nothing, "f"])
    assert split.names == ("f", "m")
    assert split.group.tolist() == [0, 1, -1, 0]
