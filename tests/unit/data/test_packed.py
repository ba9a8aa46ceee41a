"""Packed files: what comes back is what went in, or a sentence."""

import io
import json
import struct
import zlib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import spectral_irt as si
from reading import read_text
from spectral_irt.data import packed_file as packed
from spectral_irt.data.block import Block
from spectral_irt.data.packed_file import HEAD, PackedWriter, open_responses
from spectral_irt.errors import OutputError, ReadError, ResponseValueError, SpectralIrtError, for_shell
from split import is_mapped


def same(a, b):
    assert a.digest() == b.digest()
    for name in ("persons", "items"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist()
    for name in ("source", "words", "raw", "frame_kind", "notes"):
        assert getattr(a, name) == getattr(b, name)
    assert [for_shell(note.remedy) for note in a.notes] == [for_shell(note.remedy) for note in b.notes]


@pytest.fixture
def keyed(tmp_path):
    """Multiple choice with blanks that count as wrong, an option spelled unlike the key, and strange labels."""
    rows = ["who,q1,q2,né", "ann,A,b,C", "bob,B,,C", '"ç""\n",A,B,', "dee,,,"]
    return read_text(tmp_path, "\n".join(rows), key={"q1": "A", "q2": "B", "né": "C"}, omitted="wrong")


@pytest.fixture
def rated():
    """Four items with four categories each: twelve thresholds."""
    return si.Responses.from_wide(np.random.default_rng(1).integers(0, 4, (40, 4)), ordered=True)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "a.packed"


@pytest.fixture(params=["keyed", "rated"])
def either(request):
    return request.getfixturevalue(request.param)


def test_everything_comes_back(either, file):
    for given in (either, either.take_items(np.arange(either.n_items)[::-1])):
        given.save(file)
        back = open_responses(file)
        same(given, back)
        same(given, si.read(file))
        np.testing.assert_array_equal(back.category_codes(), given.category_codes())
        for old, new in zip(given.blocks, back.blocks, strict=True):
            np.testing.assert_array_equal(old.options, new.options)
            assert is_mapped(new.items)
            assert is_mapped(new.indptr)


@pytest.mark.parametrize(
    "labels",
    [["a", "b", "c"], [3, 1, 2**40], ["x", 1, 2.5], ["", "\ud800", "a\0b"], [True, "y", -1]],
    ids=["text", "numbers", "mixed", "odd text", "truth"],
)
def test_labels(labels, file):
    given = si.Responses.from_wide([[1, 0, 1], [0, 1, None]], items=labels)
    given.save(file)
    back = open_responses(file).items
    assert [(type(one), one) for one in back.tolist()] == [(type(one), one) for one in given.items.tolist()]


def test_ordered_answers_are_no_right_and_wrong_ones(rated, file):
    rated.save(file)
    assert si.read(file, ordered=True).digest() == rated.digest()
    with pytest.raises(ResponseValueError, match="ordered categories"):
        si.read(file, ordered=False)


@pytest.mark.slow
def test_no_changed_byte_goes_unnoticed(keyed, file):
    """A flipped bit anywhere is an error in a sentence; only the padding between parts may be anything."""
    keyed.save(file)
    whole, unnoticed = bytearray(file.read_bytes()), 0
    for k in range(0, len(whole), 7):
        whole[k] ^= 0x10
        file.write_bytes(whole)
        try:
            back = open_responses(file)
        except ReadError:
            pass
        else:
            unnoticed += 1
            assert back.digest() == keyed.digest()
        whole[k] ^= 0x10
    assert unnoticed <= (4 * len(keyed.blocks) + 2) * packed.ALIGNED


def test_a_newer_version(keyed, file):
    keyed.save(file)
    whole = bytearray(file.read_bytes())
    whole[8:12] = struct.pack("<I", packed.VERSION + 1)
    whole[HEAD.size - 4 : HEAD.size] = struct.pack("<I", zlib.crc32(whole[: HEAD.size - 4]))
    file.write_bytes(whole)
    with pytest.raises(ReadError, match=r"newer than this program's .* Install that version"):
        open_responses(file)


@pytest.mark.parametrize(
    ("end", "split", "items", "what"),
    [
        (2, 1, [0, 7], "items that it does not name"),
        (2, 1, [-1, 0], "items that it does not name"),
        (9, 1, [0, 1], "overlap"),
        (2, 5, [0, 1], "overlap"),
    ],
)
def test_numbers_that_would_lead_outside(end, split, items, what, file):
    """Checksums protect from accidents; a file from somebody else may be wrong and agree with its own checksums."""
    target = io.BytesIO()
    writer = PackedWriter(target)
    writer.add(Block(np.array([0, end]), np.array([split]), np.array(items, dtype=np.int32)))
    writer.finish(persons=np.arange(1), items=np.arange(2))
    file.write_bytes(target.getvalue())
    with pytest.raises(ReadError, match=what):
        open_responses(file)


def test_what_was_there_stays_when_the_disk_is_full(keyed, file, monkeypatch):
    keyed.save(file)
    before = file.read_bytes()

    def full(*args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PackedWriter, "finish", full)
    with pytest.raises(OutputError, match="the disk is full"):
        replace(keyed, source="other").save(file)
    assert file.read_bytes() == before
    assert sorted(path.name for path in file.parent.iterdir()) == ["a.packed", "answers.csv"]


def written(whole, change):
    """A packed file whose record and sections were changed, sealed again."""
    start, length = HEAD.unpack(whole[: HEAD.size])[4:6]
    parts, record = bytearray(whole[:start]), json.loads(whole[start : start + length])
    text = change(parts, record)
    if text is None:
        for place in places(record):
            at, size = place[:2]
            if isinstance(at, int) and isinstance(size, int) and 0 <= at <= at + size <= start:
                place[2] = zlib.crc32(parts[at : at + size])
        text = json.dumps(record).encode()
    head = HEAD.pack(packed.MAGIC, packed.VERSION, 0, b"9", len(parts), len(text), zlib.crc32(text), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head)) + bytes(parts[HEAD.size :]) + text


def places(thing):
    """Where the sections are."""
    if isinstance(thing, list) and len(thing) == 3 and not any(isinstance(one, list | dict | str) for one in thing):
        yield thing
    elif isinstance(thing, list | dict):
        for key, inner in thing.items() if isinstance(thing, dict) else enumerate(thing):
            if key != "counts":
                yield from places(inner)


def replaced(name, kind, values):
    """Other numbers in a section of the first block."""

    def change(parts, record):
        place = record["blocks"][0][name]
        data = np.array(values, dtype=kind).tobytes()
        assert len(data) == place[1]
        parts[place[0] : place[0] + place[1]] = data

    return change


def of_record(path, value):
    """Another value in the record."""

    def change(parts, record):
        *way, last = path.split(".")
        at = record
        for step in way:
            at = at[int(step) if isinstance(at, list) else step]
        at[int(last) if isinstance(at, list) else last] = value

    return change


NOTE = {"code": "a", "severity": "deadly", "sentence": "", "remedy": "", "items": []}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (of_record("thresholds", [1 << 62, 1 << 62, 1 << 62, (1 << 62) + 12]), "too many of one item"),
        (of_record("thresholds", [10**12] * 4), "too many of one item"),
        (of_record("thresholds", [1 << 70] * 4), "makes no sense"),
        (of_record("thresholds", [0, 3, 3, 6]), "has other items than it has categories for"),
        (of_record("codes", [[0, 1]] * 4), "values for other categories"),
        (lambda parts, record: b"[" * 100_000, "not the JSON of a packed file"),
        (lambda parts, record: b"no JSON", "not the JSON of a packed file"),
        (lambda parts, record: b"[1]", "not the JSON of a packed file"),
        (of_record("counts", [float("inf"), 4, 160]), "makes no sense"),
        (of_record("counts", [40, 10**30, 160]), "makes no sense"),
        (of_record("notes", [NOTE]), "'deadly'"),
        (of_record("items", {"labels": "abcd"}), "makes no sense"),
        (of_record("items", {"labels": [1, 2]}), "makes no sense"),
        (of_record("frame_kind", "os"), "a kind of table that there is not"),
        (of_record("words", ["one"]), "makes no sense"),
        (of_record("blocks.0.items", [64, 1e300, 0]), "a part of it is nowhere"),
    ],
)
def test_a_crafted_file_of_ordered_answers(change, what, rated, file):
    """Sums and sizes are checked before anything is allocated by them."""
    rated.save(file)
    file.write_bytes(written(file.read_bytes(), change))
    with pytest.raises(ReadError, match=rf"a\.packed.*{what}"):
        si.open_responses(file)


def only_blanks(parts, record):
    """One option, and no block says what was chosen."""
    record["raw"]["options"] = [""]
    for block in record["blocks"]:
        del block["options"]


def test_an_option_without_a_name_and_an_item_twice(keyed, file):
    keyed.save(file)
    whole, block = file.read_bytes(), keyed.blocks[0]
    for change, what in (
        (replaced("options", "u1", [200, *block.options[1:].tolist()]), "has options that it does not name"),
        (replaced("items", "<i4", [block.items[1], *block.items[1:].tolist()]), "answered an item twice"),
        (only_blanks, "names no right option"),
    ):
        file.write_bytes(written(whole, change))
        with pytest.raises(ReadError, match=what):
            open_responses(file)


HOSTILE = [None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, np.inf, np.nan, "", "NA", "\ud800", [], [[]], {}]


def mutated(rng, parts, record):
    """A bit of a section is turned, or a value of the record is another one."""
    if rng.random() < 0.5:
        start, size, _ = list(places(record))[rng.integers(len(list(places(record))))]
        if size:
            parts[start + int(rng.integers(size))] ^= 1 << int(rng.integers(8))
        return
    at = record
    while True:
        key = list(at)[rng.integers(len(at))] if isinstance(at, dict) else int(rng.integers(len(at)))
        inner = at[key]
        if not isinstance(inner, list | dict) or not inner or rng.random() < 0.2:
            at[key] = HOSTILE[rng.integers(len(HOSTILE))]
            return
        at = inner


@pytest.mark.slow
def test_whatever_is_changed_is_an_error_in_a_sentence(either, file):
    either.save(file)
    whole, refused = file.read_bytes(), 0
    for seed in range(250):
        rng = np.random.default_rng(seed)
        file.write_bytes(written(whole, partial(mutated, rng)))
        try:
            found = open_responses(file)
            assert found.digest()
            assert found.to_dense().shape == (found.n_persons, found.n_items)
            [finding.sentence for finding in found.findings()]
            (si.SpectralRasch() if found.thresholds.binary else si.SpectralPartialCredit()).fit(found)
        except SpectralIrtError:
            refused += 1
    assert refused > 60


def test_entries_that_are_no_answers(rated, file):
    rated.save(file)
    whole, items = file.read_bytes(), np.concatenate([block.items for block in rated.blocks])
    for k in range(12):
        for code in set(range(12)) - {items[k]}:  # another threshold of the item, or another item answered already
            changed = items.copy()
            changed[k] = code
            file.write_bytes(written(whole, replaced("items", "<i4", changed.tolist())))
            with pytest.raises(ReadError, match="answered an item twice, or in two categories"):
                open_responses(file)
