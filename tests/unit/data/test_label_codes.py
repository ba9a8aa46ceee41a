"""Labels as codes: the same label the same code in every piece, whatever the labels are like."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from spectral_irt.reading import long_builder
from spectral_irt.reading.long_builder import LabelCodes


def check(pieces: list[pl.Series]) -> LabelCodes:
    coder = LabelCodes()
    found = [coder.codes(piece) for piece in pieces]
    codes, labels = np.concatenate([codes for codes, _ in found]), pl.concat(pieces)
    assert coder.labels().gather(codes).equals(labels)
    assert coder.size == labels.n_unique() == len(coder.labels())
    assert pl.concat([new for _, new in found]).equals(coder.labels())
    assert codes.dtype == np.int32
    return coder


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("kind", ["many rows of few", "all different", "far apart", "rows together", "one"])
def test_codes_stand_for_labels(kind: str, text: bool) -> None:
    rng = np.random.default_rng(8)
    pieces = [
        {
            "many rows of few": rng.integers(-30, 30, 500),
            "all different": rng.permutation(3000) + 1500 * k,
            "far apart": rng.integers(-(2**60), 2**60, 700) >> 20 << 20,
            "rows together": np.repeat(rng.permutation(100), 9),
            "one": np.zeros(5, dtype=np.int64),
        }[kind]
        for k in range(4)
    ]
    check([pl.Series(piece).cast(pl.String if text else pl.Int64) for piece in pieces])


def test_nothing_and_then_something() -> None:
    check([pl.Series([], dtype=pl.String), pl.Series(["a"]), pl.Series([], dtype=pl.String)])


def test_texts_of_one_hash_are_told_apart_by_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = long_builder._keys_of

    def alike(labels: pl.Series) -> long_builder.LabelKeys:
        first, second = honest(labels)
        return first % np.uint64(3), second

    monkeypatch.setattr(long_builder, "_keys_of", alike)
    check([pl.Series([f"{k}" for k in range(200)]), pl.Series([f"{7 * k}" for k in range(100)])])


def test_labels_that_look_alike_are_different() -> None:
    awkward = ["", " ", "a", "a ", "A", "a\0", "\0a", "ä", "ä", "1", "01", "1.0", "x" * 300, "x" * 301]
    check([pl.Series(awkward), pl.Series(awkward[::-1])])
