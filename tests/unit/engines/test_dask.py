"""Dask against this process: the same numbers, with files that hold whole people or not, and with a worker killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt import errors
from spectral_irt.engines.dask import DaskEngine, connect
from spectral_irt.responses import fingerprint

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("distributed") is None, reason="without Dask")]

CLOSE = 1e-12  # the order in which sums of a few hundred numbers are added moves them by some 1e-15


@pytest.fixture(scope="module")
def engine() -> Iterator[DaskEngine]:
    engine = connect("local:2")
    yield engine
    engine.close()


def long_table(n: int = 600, m: int = 24, seed: int = 0) -> pl.DataFrame:
    """Answers of people to 12 items each, drawn under the model; labels of items in no order, rows mixed."""
    rng = np.random.default_rng(seed)
    difficulty, ability = np.linspace(-2, 2, m), rng.normal(size=n)
    item = np.argsort(rng.random((n, m)), axis=1)[:, :12]
    right = rng.random(item.shape) < 1 / (1 + np.exp(difficulty[item] - ability[:, None]))
    names = np.array([f"q{k * 7 % m}" for k in range(m)])
    columns = {"person": np.repeat(np.arange(n) + 100, 12), "item": names[item].ravel(), "response": right.ravel() * 1}
    return pl.DataFrame(columns).sample(fraction=1, shuffle=True, seed=seed)


def write(folder: Path, frames: list[pl.DataFrame]) -> list[str]:
    paths = [folder / f"part{k}.parquet" for k in range(len(frames))]
    for frame, path in zip(frames, paths, strict=True):
        frame.write_parquet(path)
    return [str(path) for path in paths]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files with whole people, one of them without rows."""
    frame = long_table()
    parts = [frame.filter(pl.col("person") % 4 == k) for k in range(4)]
    return write(tmp_path_factory.mktemp("whole"), [*parts[:2], frame.head(0), *parts[2:]])


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files with the answers of the same people, in no order."""
    frame = long_table()
    return write(tmp_path_factory.mktemp("split"), [frame[k : k + 1500] for k in range(0, len(frame), 1500)])


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files sorted by person, one after the other: nothing has to be moved."""
    frame = long_table().sort("person")
    parts = [frame.filter((pl.col("person") - 100) // 150 == k) for k in range(4)]
    return write(tmp_path_factory.mktemp("in_order"), parts)


def same(here: Any, there: Any, label: str) -> None:
    """Two tables with the same rows by their labels, and numbers within rounding."""
    here, there = pl.DataFrame(here).sort(label), pl.DataFrame(there).sort(label)
    assert here.columns == there.columns
    for name in here.columns:
        if here[name].dtype.is_float():
            np.testing.assert_allclose(there[name].to_numpy(), here[name].to_numpy(), rtol=CLOSE, atol=CLOSE)
        else:
            assert here[name].to_list() == there[name].to_list(), name


ESTIMATORS = {
    "spectral": si.SpectralRasch(),
    "chain": si.SpectralRasch(refine=False, se="one-pass"),
    "cml": si.ConditionalRasch(),
    "mml": si.MarginalRasch(),
    "jml": si.JointRasch(),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimates(name: str, engine: DaskEngine, whole: list[str]) -> None:
    here, there = si.read(whole), si.read(whole, client=engine)
    assert here.items.tolist() == there.items.tolist()
    one, other = (ESTIMATORS[name].fit(data).calibration_ for data in (here, there))
    np.testing.assert_allclose(other.difficulty, one.difficulty, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(other.se, one.se, rtol=CLOSE)


@pytest.mark.parametrize("files", ["whole", "split", "in_order"])
def test_reading(
    files: str, engine: DaskEngine, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = request.getfixturevalue(files)
    here, there = si.read(paths), si.read(paths, client=engine)
    assert here.users.tolist() == there.users.tolist()
    assert here.digest() == there.digest()
    monkeypatch.setattr(fingerprint, "FETCHED", 0)  # as if there were too many answers to fetch their codes
    one, other = si.read(paths, client=engine).digest(), si.read(paths[::-1], client=engine).digest()
    assert one == other != here.digest()


def test_people_and_fit(engine: DaskEngine, split: list[str]) -> None:
    here, there = si.read(split), si.read(split, client=engine)
    fits = [si.SpectralRasch().fit(data) for data in (here, there)]
    one, other = (fit.analyse(data) for fit, data in zip(fits, (here, there), strict=True))
    same(one.persons(), other.persons(), "person")
    same(one.item_fit(), other.item_fit(), "item")


def test_a_worker_is_killed(engine: DaskEngine, split: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of the landing, whose parts depend on those of every step before, down to the files."""
    expected = si.SpectralRasch().fit(si.read(split)).calibration_
    there = si.read(split, client=engine)
    steps: list[str] = []

    def counted(name: str) -> None:
        usual = getattr(DaskEngine, name)

        def kills(self: DaskEngine, *args: Any, **more: Any) -> Any:
            steps.append(name)
            if steps.count("advance") == 2 and name == "advance":
                pids = engine.client.run(os.getpid)
                os.kill(next(iter(pids.values())), signal.SIGKILL)
            return usual(self, *args, **more)

        monkeypatch.setattr(DaskEngine, name, kills)

    counted("advance")
    counted("sum")
    found = si.SpectralRasch().fit(there).calibration_
    assert steps.count("advance") >= 2
    assert len(steps) > steps.index("advance") + 3  # there was work left
    np.testing.assert_allclose(found.difficulty, expected.difficulty, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(found.se, expected.se, rtol=CLOSE)


def test_ordered_answers(engine: DaskEngine) -> None:
    rng = np.random.default_rng(3)
    table = np.clip(np.round(rng.normal(size=(300, 8)) + 1 + rng.normal(size=(300, 1))), 0, 3)
    here = si.ordered_from_wide(table)
    there = here.using(engine)
    one, other = (si.SpectralPartialCredit().fit(data).calibration_ for data in (here, there))
    np.testing.assert_allclose(other.thresholds, one.thresholds, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(other.threshold_se, one.threshold_se, rtol=CLOSE)


def test_repeated_answers_in_two_files(engine: DaskEngine, tmp_path: Path) -> None:
    frame = long_table(60)
    flipped = frame.head(3).with_columns(1 - pl.col("response"))
    files = write(tmp_path, [frame, flipped])
    with pytest.raises(errors.DuplicateResponseError) as here:
        si.read(files)
    with pytest.raises(errors.DuplicateResponseError) as there:
        si.read(files, client=engine)
    assert str(here.value) == str(there.value)
    for which in ("first", "last"):
        one, other = si.read(files, duplicates=which), si.read(files, duplicates=which, client=engine)
        assert one.digest() == other.digest()


def test_labels_that_are_text_in_one_file(engine: DaskEngine, tmp_path: Path) -> None:
    """Numbers in one file and text in another: text in all, and in its order."""
    frame = long_table(60).with_columns(pl.col("item").str.slice(1).cast(pl.Int64))
    other = long_table(60, seed=1).with_columns(pl.col("person") + 1000)
    files = write(tmp_path, [frame, other, other.with_columns(pl.col("person") + 1000)])
    here, there = si.read(files), si.read(files, client=engine)
    assert here.items.tolist() == there.items.tolist()
    assert here.digest() == there.digest()


def test_a_wrong_value_is_named(engine: DaskEngine, tmp_path: Path) -> None:
    frame = long_table(60)
    files = write(tmp_path, [frame, frame.with_columns(pl.col("person") + 1000, pl.lit(7).alias("response"))])
    with pytest.raises(errors.ResponseValueError, match=r"part1\.parquet: column 'response', row 1 holds 7"):
        si.read(files, client=engine)


def test_parts_of_this_process(engine: DaskEngine) -> None:
    """What was read here goes to the workers, and comes back."""
    here = si.Responses.from_wide(np.random.default_rng(0).integers(0, 2, (50, 6)))
    here = replace(here, blocks=tuple(here.blocks[0].take(np.arange(k, k + 10)) for k in range(0, 50, 10)))
    there = here.using(engine)
    assert there.take_users(np.arange(7, 33)).digest() == here.take_users(np.arange(7, 33)).digest()
    assert there.take_users([]).n_responses == 0
    assert there.in_one_block().digest() == here.digest()
    assert there.take_items([4, 1]).digest() == here.take_items([4, 1]).digest()
