"""Blank cells: omitted, not reached, not presented; and options that were perhaps not meant."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import spectral_irt as si
from reading import notes, read_text, save
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError
from spectral_irt.reading import wide_builder

_ = None
TABLE = [
    [1, _, 0, 1, _],  # omitted, and not reached
    [_, _, _, _, _],  # absent
    [0, 1, 1, 1, 1],
    [_, _, 0, _, _],
    [1, 9, 0, _, 9],  # 9: not on the form
]
NAMES = [f"q{k}" for k in range(5)]
OMITTED, REACHED = [1, 2, 0, 0, 0], [0, 0, 0, 2, 2]  # and with 9 missing: one more of each
BOTH = {"omitted": "wrong", "not_reached": "wrong"}


def dense(responses):
    return [[None if np.isnan(x) else x for x in row] for row in responses.to_dense()]


def filled(omitted, not_reached, nine):
    return [
        [1, omitted, 0, 1, not_reached],
        [_, _, _, _, _],
        [0, 1, 1, 1, 1],
        [omitted, omitted, 0, not_reached, not_reached],
        [1, nine[0], 0, not_reached, nine[1]],
    ]


FRAME = pl.DataFrame(TABLE, schema=NAMES, orient="row")
WAYS = {
    "array": lambda at, **how: Responses.from_wide(np.array(TABLE, dtype=float), items=NAMES, **how),
    "list": lambda at, **how: Responses.from_wide(TABLE, items=NAMES, **how),
    "frame": lambda at, **how: si.read(FRAME, **how),
    "csv": lambda at, **how: si.read(save(FRAME, at / "a.csv"), **how),
    "parquet": lambda at, **how: si.read(save(FRAME, at / "a.parquet"), **how),
}


@pytest.mark.parametrize("omitted", ["missing", "wrong"])
@pytest.mark.parametrize("not_reached", ["missing", "wrong"])
@pytest.mark.parametrize("way", WAYS)
def test_blanks_count_as_they_are_said_to(omitted, not_reached, way, tmp_path):
    found = WAYS[way](tmp_path, omitted=omitted, not_reached=not_reached, not_presented=9)
    value = {"missing": None, "wrong": 0}
    assert dense(found) == filled(value[omitted], value[not_reached], (None, None))
    assert [found.raw.blanks[name] for name in NAMES] == list(zip(OMITTED, REACHED, strict=True))
    assert ("blanks_count_as_wrong" in notes(found)) == ("wrong" in (omitted, not_reached))


def test_codes_of_missing_are_blanks_and_the_empty_cell_may_be_another_form():
    assert dense(Responses.from_wide(TABLE, missing=9, **BOTH)) == filled(0, 0, (0, 0))
    found = Responses.from_wide(TABLE, missing=9, not_presented="", **BOTH)
    assert dense(found) == [[1, _, 0, 1, _], [_] * 5, [0, 1, 1, 1, 1], [_, _, 0, _, _], [1, 0, 0, _, 0]]
    text = [["A", "x", "", "B", "-"], ["A", "B", "C", "D", "E"]]
    key = dict(zip("12345", "ABCDE", strict=True))
    found = Responses.from_wide(text, items=list("12345"), key=key, missing="-", not_presented="x", **BOTH)
    assert dense(found)[0] == [1, _, 0, 0, 0]
    assert sorted(found.blocks[0].options[:4].tolist()) == [0, 0, 1, found.raw.options.index("B")]


def test_a_file_for_each_form_needs_no_code(tmp_path):
    (tmp_path / "a.csv").write_text("id,q1,q2,q3\nann,1,,0\nbob,1,0,\n")
    (tmp_path / "b.csv").write_text("id,q3,q4\ncy,1,\ndi,,1\n")
    found = si.read([tmp_path / "a.csv", tmp_path / "b.csv"], **BOTH)
    assert dense(found) == [[1, 0, 0, _], [1, 0, 0, _], [_, _, 1, 0], [_, _, 0, 1]]


def test_pieces_of_a_large_table_are_counted_together(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (300, 7)).astype(float)
    table[rng.random(table.shape) < 0.3] = np.nan
    table[:, 0] = 1
    names = [f"q{k}" for k in range(7)]
    frame = pl.DataFrame(table, schema=names).with_columns(pl.all().fill_nan(None).cast(pl.Int64))
    whole = si.read(save(frame, tmp_path / "answers.csv"), omitted="wrong")
    monkeypatch.setattr(wide_builder, "BLOCK_RESPONSES", 90)
    monkeypatch.setattr(wide_builder.tabular, "LEAST_ROWS", 4)
    parts = si.read(tmp_path / "answers.csv", omitted="wrong")
    assert len(parts.blocks) > 10
    np.testing.assert_array_equal(parts.to_dense(), whole.to_dense())
    assert parts.raw == whole.raw
    last = [max(k for k in range(7) if not np.isnan(row[k])) for row in table]
    for k, name in enumerate(names):
        blank = [person for person in range(300) if np.isnan(table[person, k])]
        want = sum(k < last[person] for person in blank), sum(k > last[person] for person in blank)
        assert whole.raw.blanks[name] == want


def test_a_form_taken_for_omission_is_said():
    table = [[1, 0, 1, _, _, 0], [0, 1, 1, _, _, 1], [1, 0, 0, 1, 1, 1], [1, 1, 0, _, _, 0]]
    notes = Responses.from_wide(table, omitted="wrong").notes
    assert [note.code for note in notes] == ["blanks_count_as_wrong", "mostly_blank_items"]
    assert notes[1].items == (3, 4)
    assert "not_presented=" in notes[1].remedy
    assert "6 omitted (25.0% of all)" in notes[0].sentence


LONG = "person,item,response\nann,q1,1\nann,q2,\n"
WIDE = "id,q1,q2\nann,1,0\nbob,,1\n"
LINES = '{"id": "ann", "responses": {"q1": 1, "q2": null}}\n'


@pytest.mark.parametrize("name", ["omitted", "not_reached"])
def test_where_blanks_have_no_place_it_is_an_error(name, tmp_path):
    how = {name: "wrong"}
    with pytest.raises(OptionError, match=f"{name}='wrong'` goes by the order of the cells .* row for each answer"):
        Responses.from_long(["a"], ["q"], [1], **how)
    with pytest.raises(OptionError, match="sparse"):
        Responses.from_wide(sparse.csr_array(np.array([[1, 0], [0, 1]])), **how)
    for file, text, options, said in (
        ("long.csv", LONG, how, "row for each answer"),
        ("lines.jsonl", LINES, how, "row for each answer"),
        ("wide.csv", WIDE, how | {"orient": "items"}, "several rows, or a row is an item"),
        ("wide.csv", WIDE, how | {"duplicates": "last"}, "several rows, or a row is an item"),
        ("wide.csv", WIDE, {name: "zero"}, f"`{name}` is 'zero'; it can be 'missing', 'wrong'"),
    ):
        with pytest.raises(OptionError, match=said):
            read_text(tmp_path, text, file, **options)


def test_options_that_look_like_codes_or_differ_in_capitals_are_said(tmp_path):
    text = "id,q1,q2\nann, A ,b\nbob,a,B\ncy,9,A\ndi,A,  \n"
    found = read_text(tmp_path, text, key={"q1": "A", "q2": " B", "q7": "C"}, exact_case=True)
    said = notes(found)
    assert (
        "2 answers are in the key except for upper or lower case: 'b', 'a' instead of"
        in said["spelled_unlike_key"].sentence
    )
    assert "1 answer is '9'" in said["options_like_codes"].sentence
    assert "missing='9'" in said["options_like_codes"].remedy
    assert (said["key_items_not_there"].items, said["key_items_not_there"].severity) == (("q7",), "note")
    assert dense(found) == [[1, 0], [0, 1], [0, 0], [1, _]]
    assert found.raw.blanks == {"q1": (0, 0), "q2": (0, 1)}
    plain = read_text(tmp_path, text, key={"q1": "A", "q2": "B"}, missing=["9", "a", "b"])
    assert set(notes(plain)) == {"items_taken"}


def test_without_a_key_answers_take_no_more_room():
    found = Responses.from_wide([[1, 0], [0, 1]])
    assert found.blocks[0].options is None
    assert not found.raw.options
    keyed = Responses.from_wide([["A", "B"], ["B", "B"]], key={0: "A", 1: "B"})
    assert keyed.blocks[0].options.itemsize == 1
    assert keyed.take_items([0]).blocks[0].options.tolist() == [1, keyed.raw.options.index("B")]  # 1: that of the key
    assert keyed.digest() == Responses.from_wide([[1, 1], [0, 1]]).digest()
