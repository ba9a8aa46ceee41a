"""What kind the answers are is decided in one pass over the source, wherever the first category stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.data import builder
from spectral_irt.errors import ResponseValueError
from spectral_irt.reading import frame


def late(n: int = 900) -> np.ndarray:
    """Right and wrong at first, categories in the last rows only."""
    rng = np.random.default_rng(5)
    table = rng.integers(0, 2, (n, 4))
    table[-60:] = rng.integers(0, 3, (60, 4))
    return table


def columns(table: np.ndarray) -> dict[str, np.ndarray]:
    return {f"q{k}": table[:, k] for k in range(table.shape[1])}


@pytest.fixture
def passes(monkeypatch):
    """How often the columns of a frame in memory were asked for."""
    asked = []
    made = frame.table_of_frame

    def counting(*args, **kwargs):
        table = made(*args, **kwargs)
        return replace(table, pieces=lambda chosen: (asked.append(chosen), table.pieces(chosen))[1])

    monkeypatch.setattr(frame, "table_of_frame", counting)
    return asked


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("top", [1, 2])
def test_one_pass(passes, long, top):
    table = np.minimum(late(), top)
    data = pl.DataFrame(columns(table))
    if long:
        data = data.with_row_index("person").unpivot(index="person", variable_name="item", value_name="response")
    found = si.read(data)
    assert len(passes) == 1
    assert found.thresholds.binary == (top == 1)
    assert np.array_equal(found.to_dense(), table)
    same = si.read(data, ordered=top > 1)
    assert found.digest() == same.digest()


def test_packed_blocks_are_opened_again_when_a_category_comes(monkeypatch):
    monkeypatch.setattr(builder, "BLOCK_RESPONSES", 400)
    table = late().astype(float)
    table[5, 2] = np.nan
    found = si.read(table)
    assert np.array_equal(found.to_dense(), table, equal_nan=True)
    assert found.digest() == si.read(table, ordered=True).digest()


def test_right_and_wrong_as_before():
    table = late() % 2
    table[:, 3] = 1  # an item that everybody has right stays right
    found, said = si.read(table), si.read(table, ordered=False)
    assert found.codes is None
    assert not found.notes
    for mine, theirs in zip(found.blocks, said.blocks, strict=True):
        assert np.array_equal(mine.items, theirs.items)
        assert np.array_equal(mine.split, theirs.split)


@pytest.mark.parametrize("odd", [9, -1, 0.5, 200])
def test_what_is_neither_is_said_as_of_right_and_wrong(odd):
    table = (late() % 2).astype(float)
    table[-1, -1] = odd
    with pytest.raises(ResponseValueError, match="neither 0/1 nor missing"):
        si.read(table)
