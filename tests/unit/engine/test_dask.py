"""Dask against this process: the same numbers, with files that hold whole people or not, and with a worker killed."""

import os
import signal
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import spectral_irt as si
from spectral_irt.engine.dask import DaskEngine, connect
from split import in_blocks

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


def long_table():
    """Answers of 600 people to some 12 of 24 items; labels of items in no order, rows mixed."""
    person, item, right = si.simulate.rasch(600, 24, design="sampled", p=0.5, seed=0).responses.answers()
    names = np.array([f"q{k * 7 % 24}" for k in range(24)])
    columns = {"person": person + 100, "item": names[item], "response": right * 1}
    return pl.DataFrame(columns).sample(fraction=1, shuffle=True, seed=0)


def write(folder, frames):
    for k, frame in enumerate(frames):
        frame.write_parquet(folder / f"part{k}.parquet")
    return [str(folder / f"part{k}.parquet") for k in range(len(frames))]


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


def same(there, here):
    """Two calibrations within rounding."""
    np.testing.assert_allclose(there.thresholds, here.thresholds, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(there.threshold_se, here.threshold_se, rtol=CLOSE)


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
    same(ESTIMATORS[name].fit(there).calibration_, ESTIMATORS[name].fit(here).calibration_)


def test_reading(engine, split, monkeypatch):
    here, there = si.read(split), si.read(split, client=engine)
    assert here.persons.tolist() == there.persons.tolist()
    assert here.digest() == there.digest()
    monkeypatch.setattr("spectral_irt.data.responses.FETCHED", 0)  # as if answers were too many to fetch their codes
    one, other = si.read(split, client=engine).digest(), si.read(split[::-1], client=engine).digest()
    assert one == other != here.digest()


@pytest.mark.parametrize("ordered", [False, True])
def test_workers_map_a_packed_file(ordered, engine, tmp_path, monkeypatch):
    """Nothing is sent; where a worker does not see the file, the answers are."""
    here = si.read(np.random.default_rng(2).integers(0, 3 if ordered else 2, (90, 6)))
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


def test_people_and_fit_and_files(engine, split, tmp_path):
    """The process that asks writes files, as without a cluster."""
    studies = []
    for name, responses in (("here", si.read(split)), ("there", si.read(split, client=engine))):
        studies.append(si.SpectralRasch().fit(responses).analyse(responses))
        studies[-1].write(tmp_path / name, parquet=True)
    one, other = studies
    for label, ours, theirs in (
        ("person", one.persons(), other.persons()),
        ("item", one.item_fit(), other.item_fit()),
        ("person", *(pl.read_parquet(tmp_path / name / "persons.parquet") for name in ("here", "there"))),
    ):
        here, there = pl.DataFrame(ours).sort(label), pl.DataFrame(theirs).sort(label)
        assert_frame_equal(here, there, abs_tol=CLOSE, rel_tol=CLOSE)
    assert sorted(os.listdir(tmp_path / "here")) == sorted(os.listdir(tmp_path / "there"))


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
    same(found, expected)


def test_parts_of_this_process_and_ordered_answers(engine):
    here = in_blocks(si.simulate.rasch(50, 6, seed=0).responses, 10)
    there = here.with_engine(engine)  # what was read here goes to the workers, and comes back
    assert there.take_persons(np.arange(7, 33)).digest() == here.take_persons(np.arange(7, 33)).digest()
    assert there.take_persons([]).n_responses == 0
    assert there.in_one_block().digest() == here.digest()
    assert there.take_items([4, 1]).digest() == here.take_items([4, 1]).digest()
    here = si.simulate.rating_scale(300, 8, categories=4, seed=3).responses
    one, other = (si.SpectralPartialCredit().fit(data).calibration_ for data in (here, here.with_engine(engine)))
    same(other, one)


def test_ratings(engine, tmp_path):
    rng = np.random.default_rng(2)
    columns = np.unique(rng.integers(0, (80, 3, 4), (500, 3)), axis=0).T
    table = pl.DataFrame(dict(zip(("person", "item", "rater"), columns, strict=True)))
    files = write(tmp_path, [part.with_columns(x=rng.integers(0, 3, len(part))) for part in (table[::2], table[1::2])])
    read = [si.read(files, facets="rater", response="x", **how) for how in ({}, {"client": engine})]
    one, other = (si.SpectralPartialCredit().fit(each).analyse(each) for each in read)
    for ask in ("facet", "interactions", "persons"):
        here, there = (table.sort(table.columns[:2]) for table in (getattr(one, ask)(), getattr(other, ask)()))
        assert_frame_equal(here, there, abs_tol=1e-9)
