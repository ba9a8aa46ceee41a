"""How parts become tasks of a cluster, what is counted of memory, and of files that were cut: without any cluster."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.data import packed_file
from spectral_irt.engine import base, dask
from spectral_irt.errors import ClusterError, OptionError, ReadError


class AtOnce(dask.DaskEngine):
    """Tasks are done where they are submitted, and their results are the futures."""

    def __init__(self, threads):
        self.threads = threads
        self.client = SimpleNamespace(submit=lambda function, *args, pure: function(*args))
        self._own = None
        self.n_tasks = []

    def submit_all(self, function, *arguments):
        self.n_tasks.append(len(arguments[0]))
        return [function(*args) for args in zip(*arguments, strict=True)]

    def gather(self, futures):
        return list(futures)

    def shards_of(self, futures, counts):
        parts = []
        for future, count in zip(futures, counts, strict=True):
            parts += [dask.RemotePart(future, place) for place in range(count)]
        return tuple(parts)

    def _errors(self):
        return nullcontext()


def weighted(part, weight, factor):
    return factor * weight * part


def advance(part, factor):
    return part + factor, part * factor


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n_parts", [1, 7, 23])
def test_parts_are_worked_on_in_shards_and_their_results_come_in_order(monkeypatch, threads, n_parts):
    engine = AtOnce(threads)
    parts = np.arange(1.0, n_parts + 1)
    weights = np.arange(n_parts) % 4 + 0.5
    expected = 2.0 * weights * parts
    assert list(engine.map(weighted, parts, 2.0, each=[weights])) == expected.tolist()
    most = -(-n_parts // (dask.TASKS_PER_THREAD * threads))
    assert engine.n_tasks[-1] == -(-n_parts // most)
    assert engine.sum(weighted, parts, 2.0, each=[weights]) == pytest.approx(expected.sum())
    monkeypatch.setattr(dask, "LARGE", 8)  # arguments go first, as a task of their own
    engine.n_tasks.clear()
    assert list(engine.map(weighted, parts, 2.0, each=[weights])) == expected.tolist()
    assert engine.n_tasks[0] == 1
    prepared, total = engine.map_and_sum(advance, parts, 3.0)
    assert total == pytest.approx(3 * parts.sum())
    shards = engine._shards(prepared.parts)
    assert [shard.parts[place] for shard, places in shards for place in places] == (parts + 3).tolist()
    with pytest.raises(ValueError, match="one entry for every part"):
        engine.map(weighted, parts, 2.0, each=[weights[:-1]]).__next__()


@pytest.mark.parametrize("n", [1, 16, 17, 300])
def test_many_sums_are_added_in_groups(n):
    engine = AtOnce(1)
    assert engine._sum(list(range(n))) == n * (n - 1) // 2


def test_what_travels_to_a_worker_is_measured():
    array = np.zeros(100)
    assert dask.size_of(array) == 800
    assert dask.size_of("four") == 4
    assert dask.size_of([array, b"12345"]) == 16 + 805
    assert dask.size_of({"a": array}) == 8 + 800
    assert dask.size_of(3.5) == dask.size_of(dict) == 64
    assert dask.size_of(SimpleNamespace(a=array)) == 64 + 808


def test_a_worker_of_another_version_is_refused():
    own = dask.PartArgs([0], [()])
    shard = dask.Shard([1.0])
    assert dask.task(list, shard, own, dask.KernelCall(base.identity, ())) == [1.0]
    with pytest.raises(ClusterError, match=r"and this program is 0\.0\.1"):
        dask.task(list, shard, own, dask.KernelCall(base.identity, (), version="0.0.1"))
    pytest.importorskip("distributed")
    for where in ("", "  ", 7):
        with pytest.raises(OptionError, match=r"a distributed\.Client"):
            dask.connect(where)


@pytest.mark.parametrize(("limit", "free"), [("6000", 1500), ("max", 9000), ("60000", 9000), ("100", 0)])
def test_free_memory_is_that_of_the_container_if_it_has_less(monkeypatch, limit, free):
    """What is used, but for files that the system keeps in memory until it needs the room."""
    psutil = pytest.importorskip("psutil")
    files = {
        "/sys/fs/cgroup/memory.max": [limit],
        "/sys/fs/cgroup/memory.current": ["5000"],
        "/sys/fs/cgroup/memory.stat": ["active_file 70", "inactive_file 500"],
    }
    monkeypatch.setattr(base, "_lines", lambda path: files[path])
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=9000))
    assert base.free_memory() == free


def test_a_packed_file_that_was_cut_or_changed_says_so(tmp_path):
    path = tmp_path / "answers.packed"
    shares = []
    responses = si.simulate.rasch(30, 4, seed=1).responses
    packed_file.write_packed(responses, path, lambda share, what: shares.append(share))
    assert shares == [1.0]
    whole = path.read_bytes()
    modified = path.stat().st_mtime_ns
    (block,) = packed_file.mapped_blocks(str(path), modified, 0, 1).parts
    assert block.n_persons == 30
    with pytest.raises(ReadError, match="changed after it was opened"):
        packed_file.mapped_blocks(str(path), modified + 1, 0, 1)
    path.write_bytes(whole[:-9])
    with pytest.raises(ReadError) as error:
        packed_file.open_responses(path)
    assert f"it has {len(whole) - 9:,} bytes, and should have {len(whole):,}" in str(error.value)
