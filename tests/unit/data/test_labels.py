"""Labels come out as they went in; labels of two sources meet by one rule; people without a name are refused."""

import csv
import io
import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reading import complaint, read_text, save
from spectral_irt import AnchoredRasch, SpectralRasch, datasets, link
from spectral_irt.data import Responses
from spectral_irt.data.labels import NOT_ANSWERED, by_label, positions
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.persons.align import align
from spectral_irt.reading import read
from spectral_irt.reading.item_columns import says_attribute

# Any text but the lone surrogates, which no UTF-8 file can hold.
anything = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
awkward = st.sampled_from(
    [
        *["^q.*$", "*", "a,b", 'say "x"', "'", "two\nlines", "two\r\nlines", "\r", " ", " x ", "\t", "<b>&amp;</b>"],
        *["é", "e\u0301", "𝕏", "日本", "\u2028", "\ufeff", "=1+1", "#", "\\", "q1\\n", ";"],
        *["NA", "nan", "null", "0", "1", "007", "7", "-1", "1e3"],
    ]
)
# An item called "class" is taken for an attribute of the person, unless it is asked for; one that is called by white
# space alone has no name, which is refused.
item_names = (anything | awkward).filter(lambda text: text.strip() and not says_attribute(text))
labels = st.lists(item_names, min_size=2, max_size=6, unique=True)
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


def through_file(name, data, **options):
    """What is read from a file with these bytes, or from this frame."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, name)
        save(data, path) if isinstance(data, pl.DataFrame) else path.write_bytes(data)
        return read(path, **options)


def long_rows(persons, items):
    return [(person, item, (k + i) % 2) for k, person in enumerate(persons) for i, item in enumerate(items)]


def long_frame(persons, items):
    return pl.DataFrame(long_rows(persons, items), schema=["person", "item", "response"], orient="row")


def check(responses, persons, items):
    assert responses.persons.tolist() == list(persons)
    assert responses.items.tolist() == list(items)
    assert responses.n_responses == len(persons) * len(items)


@quick
@given(people, labels)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_csv(name, persons, items):
    """Labels that are all plain whole numbers are integers: CSV has no types."""
    separator = "\t" if name.endswith("tsv") else ","
    persons, items = ([label for label in kind if "\0" not in label] or ["a"] for kind in (persons, items))
    text = csv_text([["person", "item", "response"], *map(list, long_rows(persons, items))], separator)
    expected = (sorted(as_read_without_types(kind)) for kind in (persons, items))
    check(through_file(name, text.encode()), *expected)
    persons, items = ([label + "x" * (k + 1) for k, label in enumerate(kind)] for kind in (persons, items))
    cells = [[(k + i) % 2 for i in range(len(items))] for k in range(len(persons))]
    rows = [["id", *items], *([person, *row] for person, row in zip(persons, cells, strict=True))]
    wide = through_file(name, csv_text(rows, separator).encode(), person="id", format="wide")
    check(wide, persons, items)
    np.testing.assert_array_equal(wide.to_dense(), cells)


@quick
@given(people, labels)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_typed_files_and_frames(name, persons, items):
    long = long_frame(persons, items)
    for found in (through_file(name, long), read(long), read(long.to_pandas())):
        check(found, sorted(persons), sorted(items))
    items = [item for item in items if item != "id"]
    wide = pl.DataFrame({"id": persons, **{item: [i % 2] * len(persons) for i, item in enumerate(items)}})
    check(through_file(name, wide, person="id", format="wide"), persons, items)


@quick
@given(people, labels)
@pytest.mark.slow
def test_json_lines(persons, items):
    people = [{"subject_id": person, "responses": dict.fromkeys(items, 1)} for person in persons]
    for ascii_only in (True, False):
        text = "\n".join(json.dumps(person, ensure_ascii=ascii_only) for person in people)
        check(through_file("a.jsonl", text.encode()), sorted(persons), sorted(items))


@quick
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6, unique=True))
@pytest.mark.slow
def test_integers(persons):
    for name in ("a.parquet", "a.csv", "a.arrow"):
        found = through_file(name, long_frame(persons, ["a"]))
        assert found.persons.dtype == np.int64
        check(found, sorted(persons), ["a"])


def test_compressed_csv_keeps_line_breaks_in_labels(tmp_path):
    responses = read(save(long_frame(["a\nb", "c"], ["q\n1", "q,2"]), tmp_path / "a.csv.zst"))
    check(responses, ["a\nb", "c"], ["q\n1", "q,2"])


@pytest.mark.parametrize("nothing", ["NA", "nan", "NaN", "null", "", None, float("nan")])
def test_what_means_no_answer_means_no_group(nothing):
    split = by_label(Responses.from_wide(np.eye(4)), ["f", "m", nothing, "f"])
    assert split.names == ("f", "m")
    assert split.group.tolist() == [0, 1, -1, 0]


ANSWERS = datasets.load_lsat().to_dense()
NUMBERS, TEXTS = [1, 2, 3, 4, 5], ["1", "2", "3", "4", "5"]


def mixed(*labels):
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out


def lsat(items):
    return Responses.from_wide(ANSWERS, items=items)


@pytest.mark.parametrize(
    ("labels", "known", "expected"),
    [
        ([1, 2], [2, 1], [1, 0]),
        (["1", 2], [1, "2"], [0, 1]),
        ([1, "1"], ["1", 1], [1, 0]),  # equal ones first
        ([1.0, 2.5], ["1", "2.5"], [0, 1]),
        (["01"], [1], [-1]),
        (["1", "1"], [1], [0, 0]),
        ([], [1], []),
        ([2**63 + 5], [str(2**63 + 5)], [0]),
    ],
)
def test_the_rule(labels, known, expected):
    assert positions(labels, known).tolist() == expected
    assert positions(mixed(*labels), mixed(*known)).tolist() == expected


def test_what_could_be_either():
    with pytest.raises(OptionError, match=r"1 and '1' are the same label as text, and '1' could be either"):
        positions([1, "1"], ["1", "2"])
    with pytest.raises(OptionError, match="Rename one of them"):
        positions(["1"], mixed(1, np.str_("x"), 1.0))


@pytest.mark.parametrize(("here", "there"), [(NUMBERS, TEXTS), (TEXTS, NUMBERS)], ids=["numbers", "texts"])
def test_every_place_where_labels_meet_gives_the_same_with_numbers_as_with_text(here, there):
    assert align(np.array(there, dtype=object), lsat(here)).items.tolist() == there
    fit, other = SpectralRasch().fit(lsat(there)), SpectralRasch().fit(lsat(here))
    assert fit.analyse(lsat(here)).persons().equals(fit.analyse(lsat(there)).persons())
    np.testing.assert_array_equal(fit.predict_proba([0], here[:2]), fit.predict_proba([0], there[:2]))
    assert fit.calibration_.score_table(items=here[:3]).equals(fit.calibration_.score_table(items=there[:3]))
    anchored = AnchoredRasch({there[0]: 0.5, there[1]: 0.0}).fit(lsat(here))
    assert anchored.anchored_.tolist() == [True, True, False, False, False]
    assert len(link(other, fit).item) == 5
    answers = Responses(lsat(here).take_persons(np.arange(5)).blocks, lsat(here).items, mixed(*here))
    assert by_label(answers, dict(zip(there, "xxyyy", strict=True))).group.tolist() == [0, 0, 1, 1, 1]
    frame = pl.DataFrame({"person": ["a", "a", "b"], "item": here[:2] + here[:1], "response": ["A", "B", "C"]})
    assert read(frame, key={there[0]: "A", there[1]: "C"}).to_dense()[0].tolist() == [1, 0]


NOBODY = ["NA", "NaN", "nan", "null", " NA ", "", None]


def of_nobody(label):
    """A long and a wide table with two rows of nobody."""
    people = pl.Series(["ann", label, "bob", label], dtype=pl.String)
    yield pl.DataFrame({"person": people, "item": ["a", "b", "a", "a"], "response": [1, 0, 1, 1]})
    yield pl.DataFrame({"student": people, "a": [1, 0, 1, 1], "b": [0, 1, 1, 0]})


@pytest.mark.parametrize(
    ("kind", "label"),
    [*itertools.product(["frame", "csv"], NOBODY), *itertools.product(["parquet", "arrow", "jsonl"], [" NA ", None])],
)
def test_people_without_a_name(kind, label, tmp_path):
    for table in of_nobody(label):
        sources = (table, table.to_pandas()) if kind == "frame" else (save(table, tmp_path / f"answers.{kind}"),)
        for source, duplicates in itertools.product(sources, ("error", "last")):
            if table.columns[0] == "person":  # a row for each answer: nobody knows whose it is
                said = complaint(source, duplicates=duplicates)
                assert "person' names the people, and rows 2, 4 have no name there" in said
                continue
            found = read(source, duplicates=duplicates)
            assert found.persons.tolist() == ["ann", "row 2", "bob", "row 4"]
            assert found.to_dense().tolist() == [[1, 0], [0, 1], [1, 1], [1, 0]]
            (note,) = [finding for finding in found.findings() if finding.code == "unnamed_people"]
            assert (note.severity, "2 rows have answers and no label" in note.sentence) == ("note", True)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "NA"])
def test_columns_in_memory_without_a_name(missing):
    with pytest.raises(ReadError, match="'person' names the people, and row 2 has no name"):
        Responses.from_long(np.array(["a", missing], dtype=object), ["q", "q"], [1, 0])


def test_nan_as_a_number():
    persons = [1.0, np.nan, np.nan]
    assert "rows 2, 3 have no name" in complaint(
        pl.DataFrame({"person": persons, "item": ["a", "b", "a"], "response": [1, 0, 1]})
    )
    wide = pd.DataFrame({"who": persons, "a": [1, 0, 1], "b": [0, 1, 1]})
    assert Responses.from_wide(wide, person="who").persons.tolist() == ["1", "row 2", "row 3"]
    indexed = pd.DataFrame({"a": [1, 0], "b": [0, 1]}, index=[1.0, np.nan])
    for way in (Responses.from_wide, read):
        with pytest.raises(ReadError, match=r"the index.* names the people, and row 1 has no name"):
            way(indexed)


def test_items_may_be_called_so_but_not_in_silence(tmp_path):
    text = "person,item,response\nann,NA,1\nann,null,0\nbob,NA,0\n"
    long = read_text(tmp_path, text)
    turned = read_text(tmp_path, "item,ann,bob\nNA,1,0\nq2,0,1\n", orient="items")
    for found, items, called, n in ((long, ["NA", "null"], ("NA", "null"), 3), (turned, ["NA", "q2"], ("NA",), 2)):
        assert found.items.tolist() == items
        (finding,) = (one for one in found.notes if one.code == "item_called_missing")
        assert finding.severity == "warning"
        assert finding.items == called
        assert finding.sentence.startswith(f"{n} responses belong to 'NA'")
    plain = read_text(tmp_path, text.replace("NA", "q1").replace("null", "q2"))
    assert "item_called_missing" not in {one.code for one in plain.notes}


def test_numbers_beyond_64_bits():
    large = 2**63 + 5
    persons = np.array([large, 3], dtype=np.uint64)
    assert Responses.from_long(persons, ["a", "b"], [1, 0]).persons.tolist() == ["3", str(large)]
    assert Responses.from_wide([[1, 0]], items=persons.tolist()).items.tolist() == [large, 3]
    frame = pl.DataFrame({"person": pl.Series(persons), "a": [1, 0], "b": [0, 1]})
    indexed = pd.DataFrame({"a": [1, 0], "b": [0, 1]}, index=persons)
    by_name = Responses.from_wide(frame, person="person")
    for found in (by_name, read(frame), Responses.from_wide(indexed), read(indexed)):
        assert found.persons.tolist() == [str(large), "3"]
