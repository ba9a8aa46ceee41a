"""Rows on their way in: the same blocks whether they waited in memory or in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from spectral_irt import read, set_memory
from spectral_irt.data import builder
from spectral_irt.data.packing import SpillColumns
from spectral_irt.engine.memory import Budget, budget
from spectral_irt.errors import OutputError
from spectral_irt.reading import frame as tabular


@pytest.fixture
def no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr(tabular, "PIECE_ROWS", 70)
    set_memory("1B", folder)
    yield folder
    assert list(folder.iterdir()) == []
    set_memory()


def answers(seed: int = 4, twice: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    person, item = np.divmod(rng.permutation(60 * 25)[:900], 25)
    frame = pl.DataFrame({"person": person, "item": item, "response": rng.integers(0, 5, 900)})
    return (
        pl.concat([frame, frame.sample(50, seed=1).with_columns(response=4 - pl.col("response"))]) if twice else frame
    )


OPTIONS: list[dict[str, Any]] = [
    {"threshold": 2},
    {"above_mean": "wrong"},
    {"key": {k: str(k % 5) for k in range(25)}},
    {"threshold": 2, "duplicates": "first"},
    {"threshold": 2, "duplicates": "last"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_file_between_gives_the_same_responses(
    tmp_path: Path, no_room: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.parquet"
    answers(twice="duplicates" in options).write_parquet(file)
    monkeypatch.setattr(builder, "DEALT", 200)
    spilled = read(file, **options)
    assert budget().spill.written
    set_memory("4GB")
    held = read(file, **options)
    assert not budget().spill.written
    assert spilled.digest() == held.digest()
    for one, other in zip(spilled.blocks, held.blocks, strict=True):
        np.testing.assert_array_equal(one.items, other.items)
        if held.raw is not None:
            np.testing.assert_array_equal(one.options, other.options)


def test_parts_of_pieces(tmp_path: Path) -> None:
    for memory in ("1B", "4GB"):
        pile = SpillColumns(Budget(memory, tmp_path))
        for k in range(3):
            pile.add(np.arange(5) + 10 * k, None, np.full(5, k, dtype=np.uint8))
        assert pile.spilled == (memory == "1B")
        first, nothing, last = pile.part(1, slice(2, 4))
        assert (first.tolist(), nothing, last.tolist()) == ([12, 13], None, [1, 1])  # type: ignore[union-attr]
        assert pile.part(1, slice(2, 2))[0].tolist() == []  # type: ignore[union-attr]
        together = [columns[0].tolist() for columns in pile.used_up(6)]  # type: ignore[union-attr]
        assert [len(piece) for piece in together] == [10, 5]
        assert [one for piece in together for one in piece] == [*range(5), *range(10, 15), *range(20, 25)]


def test_a_disk_that_fills_is_an_error(tmp_path: Path, no_room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(28, os.strerror(28))

    file = tmp_path / "a.parquet"
    answers().write_parquet(file)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match=r"cannot be written to '.*spill': the disk is full"):
        read(file, threshold=2)
