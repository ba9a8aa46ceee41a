"""Dask against this process: the same numbers, with files that hold whole people or not, and with a worker killed."""

import os
import signal
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import spectral_irt as si
from spectral_irt.data import block
from spectral_irt.engine.dask import DaskEngine, connect

pytestmark = pytest.mark.slow

LocalCluster = pytest.importorskip("distributed").LocalCluster

CLOSE = 1e-12  # the order in which sums of a few hundred numbers are added moves them by some 1e-15


@pytest.fixture(scope="module")
def engine():
    small = {"n_workers": 2, "threads_per_worker": 1, "silence_logs": 50}
    with LocalCluster(host="127.0.0.1", dashboard_address="127.0.0.1:0", **small) as cluster:
        engine = connect(cluster.scheduler_address)
        yield engine
        engine.close()


def long_table(n=600, m=24, seed=0):
    """Answers of people to 12 items each, drawn under the model; labels of items in no order, rows mixed."""
    rng = np.random.default_rng(seed)
    difficulty, ability = np.linspace(-2, 2, m), rng.normal(size=n)
    item = np.argsort(rng.random((n, m)), axis=1)[:, :12]
    right = rng.random(item.shape) < 1 / (1 + np.exp(difficulty[item] - ability[:, None]))
    names = np.array([f"q{k * 7 % m}" for k in range(m)])
    columns = {"person": np.repeat(np.arange(n) + 100, 12), "item": names[item].ravel(), "response": right.ravel() * 1}
    return pl.DataFrame(columns).sample(fraction=1, shuffle=True, seed=seed)


def write(folder, frames):
    paths = [folder / f"part{k}.parquet" for k in range(len(frames))]
    for frame, path in zip(frames, paths, strict=True):
        frame.write_parquet(path)
    return [str(path) for path in paths]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Files with whole people, one of them without rows."""
    frame = long_table()
    parts = [frame.filter(pl.col("person") % 4 == k) for k in range(4)]
    return write(tmp_path_factory.mktemp("whole"), [*parts[:2], frame.head(0), *parts[2:]])


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Files with the answers of the same people, in no order."""
    frame = long_table()
    return write(tmp_path_factory.mktemp("split"), [frame[k : k + 1500] for k in range(0, len(frame), 1500)])


def same(here, there, label):
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
def test_estimates(name, engine, whole):
    here, there = si.read(whole), si.read(whole, client=engine)
    assert here.items.tolist() == there.items.tolist()
    one, other = (ESTIMATORS[name].fit(data).calibration_ for data in (here, there))
    np.testing.assert_allclose(other.difficulty, one.difficulty, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(other.se, one.se, rtol=CLOSE)


def test_reading(engine, split, monkeypatch):
    here, there = si.read(split), si.read(split, client=engine)
    assert here.persons.tolist() == there.persons.tolist()
    assert here.digest() == there.digest()
    monkeypatch.setattr(block, "FETCHED", 0)  # as if there were too many answers to fetch their codes
    one, other = si.read(split, client=engine).digest(), si.read(split[::-1], client=engine).digest()
    assert one == other != here.digest()


@pytest.mark.parametrize("ordered", [False, True])
def test_workers_map_a_packed_file(ordered, engine, tmp_path, monkeypatch):
    """Nothing is sent; where a worker does not see the file, the answers are."""
    table = np.random.default_rng(2).integers(0, 3 if ordered else 2, (90, 6))
    here = si.read(table)
    blocks = tuple(here.blocks[0].take(np.arange(k, k + 10)) for k in range(0, 90, 10))
    replace(here, blocks=blocks).save(tmp_path / "answers.packed")
    sent, usual = [], DaskEngine.hold
    monkeypatch.setattr(DaskEngine, "hold", lambda *args: sent.append(args) or usual(*args))
    there = si.read(tmp_path / "answers.packed", client=engine)
    assert there.engine is engine
    assert there.digest() == here.digest()
    assert not sent
    monkeypatch.setattr(DaskEngine, "sees", lambda self, path: False)
    assert si.read(tmp_path / "answers.packed", client=engine).digest() == here.digest()
    assert sent


def test_people_and_fit(engine, split):
    here, there = si.read(split), si.read(split, client=engine)
    fits = [si.SpectralRasch().fit(data) for data in (here, there)]
    one, other = (fit.analyse(data) for fit, data in zip(fits, (here, there), strict=True))
    same(one.persons(), other.persons(), "person")
    same(one.item_fit(), other.item_fit(), "item")


def test_files(engine, split, tmp_path):
    """The process that asks writes them, as without a cluster."""
    here, there = si.read(split), si.read(split, client=engine)
    for name, responses in (("here", here), ("there", there)):
        study = si.SpectralRasch().fit(responses).analyse(responses)
        study.write(tmp_path / name, parquet=True)
    assert sorted(os.listdir(tmp_path / "here")) == sorted(os.listdir(tmp_path / "there"))
    one, other = (pl.read_parquet(tmp_path / name / "persons.parquet") for name in ("here", "there"))
    assert_frame_equal(one, other, abs_tol=1e-9, rel_tol=1e-9)


def test_a_worker_is_killed(engine, split, monkeypatch):
    """In the middle of the Newton steps, whose parts depend on those of every step before, down to the files."""
    expected = si.SpectralRasch().fit(si.read(split)).calibration_
    there = si.read(split, client=engine)
    steps = []

    def counted(name):
        usual = getattr(DaskEngine, name)

        def kills(self, *args, **more):
            steps.append(name)
            if steps.count("map_and_sum") == 2 and name == "map_and_sum":
                pids = engine.client.run(os.getpid)
                os.kill(next(iter(pids.values())), signal.SIGKILL)
            return usual(self, *args, **more)

        monkeypatch.setattr(DaskEngine, name, kills)

    counted("map_and_sum")
    counted("sum")
    found = si.SpectralRasch().fit(there).calibration_
    assert steps.count("map_and_sum") >= 2
    assert len(steps) > steps.index("map_and_sum") + 3  # there was work left
    np.testing.assert_allclose(found.difficulty, expected.difficulty, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(found.se, expected.se, rtol=CLOSE)


def test_ordered_answers(engine):
    rng = np.random.default_rng(3)
    table = np.clip(np.round(rng.normal(size=(300, 8)) + 1 + rng.normal(size=(300, 1))), 0, 3)
    here = si.Responses.from_wide(table, ordered=True)
    there = here.using(engine)
    one, other = (si.SpectralPartialCredit().fit(data).calibration_ for data in (here, there))
    np.testing.assert_allclose(other.thresholds, one.thresholds, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(other.threshold_se, one.threshold_se, rtol=CLOSE)


def test_parts_of_this_process(engine):
    """What was read here goes to the workers, and comes back."""
    here = si.Responses.from_wide(np.random.default_rng(0).integers(0, 2, (50, 6)))
    here = replace(here, blocks=tuple(here.blocks[0].take(np.arange(k, k + 10)) for k in range(0, 50, 10)))
    there = here.using(engine)
    assert there.take_persons(np.arange(7, 33)).digest() == here.take_persons(np.arange(7, 33)).digest()
    assert there.take_persons([]).n_responses == 0
    assert there.in_one_block().digest() == here.digest()
    assert there.take_items([4, 1]).digest() == here.take_items([4, 1]).digest()
