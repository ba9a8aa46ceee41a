"""Packed files: what comes back is what went in, or a sentence."""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.engines.spilling import is_mapped
from spectral_irt.errors import OptionError, OutputError, ReadError, ResponseValueError, for_shell
from spectral_irt.responses import packed
from spectral_irt.responses.block import Block
from spectral_irt.responses.given import open_responses
from spectral_irt.responses.packed import HEAD, PackedWriter, open_packed
from spectral_irt.responses.responses import Responses


def same(a: Responses, b: Responses) -> None:
    assert a.digest() == b.digest()
    assert (a.users.tolist(), a.items.tolist(), a.source, a.words, a.raw) == (
        *(b.users.tolist(), b.items.tolist()),
        *(b.source, b.words, b.raw),
    )
    assert a.frame_kind == b.frame_kind
    assert a.notes == b.notes
    assert [for_shell(note.remedy) for note in a.notes] == [for_shell(note.remedy) for note in b.notes]


@pytest.fixture
def keyed(tmp_path: Path) -> Responses:
    """Multiple choice with blanks that count as wrong, an option spelled unlike the key, and strange labels."""
    rows = ["who,q1,q2,né", "ann,A,b,C", "bob,B,,C", 'ç"\n,A,B,', "dee,,,"]
    (tmp_path / "choices.csv").write_text("\n".join(rows).replace('ç"\n', '"ç""\n"'), encoding="utf-8")
    key = {"q1": "A", "q2": "B", "né": "C"}
    return si.read(tmp_path / "choices.csv", key=key, omitted="wrong")


def test_everything_comes_back(keyed: Responses, tmp_path: Path) -> None:
    assert keyed.raw is not None
    assert keyed.raw.options
    assert keyed.notes
    keyed.save(tmp_path / "a.packed")
    back = open_responses(tmp_path / "a.packed")
    same(keyed, back)
    for old, new in zip(keyed.blocks, back.blocks, strict=True):
        assert np.array_equal(old.options, new.options)
        assert is_mapped(new.items)
        assert is_mapped(new.indptr)
    same(keyed, si.read(tmp_path / "a.packed"))


@pytest.mark.parametrize(
    "labels",
    [["a", "b", "c"], [3, 1, 2**40], ["x", 1, 2.5], ["", "\ud800", "a\0b"], [True, "y", -1]],
    ids=["text", "numbers", "mixed", "odd text", "truth"],
)
def test_labels(labels: list[Any], tmp_path: Path) -> None:
    given = Responses.from_wide([[1, 0, 1], [0, 1, None]], items=labels)
    given.save(tmp_path / "a.packed")
    back = open_responses(tmp_path / "a.packed").items
    assert [(type(one), one) for one in back.tolist()] == [(type(one), one) for one in given.items.tolist()]


def test_labels_of_another_kind_are_refused(tmp_path: Path) -> None:
    given = Responses.from_wide([[1, 0], [0, 1]], items=[("a", 1), ("b", 2)])
    with pytest.raises(OptionError, match="labels of the kind tuple cannot be packed"):
        given.save(tmp_path / "a.packed")
    assert not list(tmp_path.iterdir())


def test_ordered_answers(tmp_path: Path) -> None:
    given = si.ordered_from_wide([[0, 1, None], [2, 0, 1], [1, 1, 0], [2, 0, 1]])
    given.save(tmp_path / "a.packed")
    back = open_responses(tmp_path / "a.packed")
    assert isinstance(back, si.OrderedResponses)
    assert np.array_equal(back.to_dense(), given.to_dense(), equal_nan=True)
    assert np.array_equal(back.category_codes(), given.category_codes(), equal_nan=True)
    assert np.array_equal(si.read_ordered(tmp_path / "a.packed").to_dense(), given.to_dense(), equal_nan=True)
    with pytest.raises(ResponseValueError, match="ordered categories"):
        si.read(tmp_path / "a.packed")


def test_nobody_and_everybody(tmp_path: Path) -> None:
    for table in ([[np.nan, np.nan]], [[1, 1], [np.nan, np.nan], [0, 0]]):
        given = Responses.from_wide(table)
        given.save(tmp_path / "a.packed")
        same(given, open_responses(tmp_path / "a.packed"))


@pytest.mark.slow
def test_no_changed_byte_goes_unnoticed(keyed: Responses, tmp_path: Path) -> None:
    """A flipped bit anywhere is an error in a sentence; only the padding between parts may be anything."""
    file = tmp_path / "a.packed"
    keyed.save(file)
    whole = bytearray(file.read_bytes())
    unnoticed = 0
    for k in range(0, len(whole), 7):
        whole[k] ^= 0x10
        file.write_bytes(whole)
        try:
            back = open_packed(file)
        except ReadError:
            pass
        else:
            unnoticed += 1
            assert back.digest() == keyed.digest()
        whole[k] ^= 0x10
    parts = 4 * len(keyed.blocks) + 2 * 2
    assert unnoticed <= parts * packed.ALIGNED


@pytest.mark.parametrize("left", [0, 3, 40, 200, -1])
def test_cut_off(keyed: Responses, tmp_path: Path, left: int) -> None:
    file = tmp_path / "a.packed"
    keyed.save(file)
    file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(ReadError, match=r"a\.packed (is cut off|is too short|is not a packed).*spectral-irt pack"):
        open_packed(file)


def test_a_newer_version(keyed: Responses, tmp_path: Path) -> None:
    file = tmp_path / "a.packed"
    keyed.save(file)
    whole = bytearray(file.read_bytes())
    whole[8:12] = struct.pack("<I", packed.VERSION + 1)
    whole[HEAD.size - 4 : HEAD.size] = struct.pack("<I", zlib.crc32(whole[: HEAD.size - 4]))
    file.write_bytes(whole)
    with pytest.raises(ReadError, match=r"newer than this program's .* Install that version"):
        open_packed(file)


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (Block(np.array([0, 2]), np.array([1]), np.array([0, 7], dtype=np.int32)), "items that it does not name"),
        (Block(np.array([0, 2]), np.array([1]), np.array([-1, 0], dtype=np.int32)), "items that it does not name"),
        (Block(np.array([0, 9]), np.array([1]), np.array([0, 1], dtype=np.int32)), "overlap"),
        (Block(np.array([0, 2]), np.array([5]), np.array([0, 1], dtype=np.int32)), "overlap"),
    ],
)
def test_numbers_that_would_lead_outside(block: Block, what: str, tmp_path: Path) -> None:
    """Checksums protect from accidents; a file from somebody else may be wrong and agree with its own checksums."""
    target = io.BytesIO()
    writer = PackedWriter(target)
    writer.add(block)
    writer.finish(users=np.arange(1), items=np.arange(2))
    (tmp_path / "a.packed").write_bytes(target.getvalue())
    with pytest.raises(ReadError, match=what):
        open_packed(tmp_path / "a.packed")


def test_what_was_there_stays_when_the_disk_is_full(
    keyed: Responses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.packed"
    keyed.save(file)
    before = file.read_bytes()

    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PackedWriter, "finish", full)
    with pytest.raises(OutputError, match="the disk is full"):
        replace(keyed, source="other").save(file)
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.packed", "choices.csv"]


def test_options_belong_to_packing(keyed: Responses, tmp_path: Path) -> None:
    keyed.save(tmp_path / "a.packed")
    with pytest.raises(OptionError, match=r"read and scored when it was packed; leave out missing=, user="):
        si.read(tmp_path / "a.packed", missing="9", person="id")
    with pytest.raises(ReadError, match="read alone"):
        si.read([tmp_path / "a.packed"] * 2)
