"""What goes wrong with a cluster is said in a sentence, and soon."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.cli.main import main
from spectral_irt.engines import dask, shards
from spectral_irt.engines.dask import connect
from spectral_irt.errors import ClusterError, OptionError, ReadError
from spectral_irt.responses.reading.on_workers import Order, load, union
from spectral_irt.responses.reading.request import Asked
from spectral_irt.responses.scorer import scoring

pytestmark = pytest.mark.slow  # many short runs of whole jobs

distributed = pytest.importorskip("distributed")


@pytest.fixture
def closed_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{one.getsockname()[1]}"


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster of threads in this process: what it does wrong is the same, and it starts at once."""
    small: Any = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "silence_logs": 50}
    with distributed.LocalCluster(protocol="tcp://", dashboard_address="127.0.0.1:0", **small) as cluster:
        yield cluster


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'spectral-irt\[cluster\]'"):
        connect("local:2")


@pytest.mark.parametrize("where", ["local:x", "local:0", "", 7, "one:two:three"])
def test_no_address(where: Any) -> None:
    with pytest.raises(OptionError, match="dask is"):
        connect(where)


def test_nobody_answers(
    closed_port: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dask, "ANSWERS_WITHIN", 1.0)
    file = tmp_path / "answers.csv"
    file.write_text("who,a,b\nx,1,0\ny,0,1\nz,1,1\n")
    start = time.monotonic()
    assert main(["fit", str(file), "--dask", closed_port, "-o", str(tmp_path / "out")]) == 2
    assert time.monotonic() - start < 10
    assert f"no Dask scheduler answers at {closed_port}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_another_version(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = si.__version__
    monkeypatch.setattr(dask, "__version__", "99.1")
    with pytest.raises(ClusterError, match=f"the workers run spectral-irt {ours}, and this program is 99.1"):
        connect(cluster.scheduler_address)


def test_a_worker_that_joins_with_another_version() -> None:
    call = shards.Call(np.sum, (), version="99.1")
    with pytest.raises(ClusterError, match=r"this program is 99\.1"):
        shards.total(shards.Shard([np.ones(3)]), shards.Own([0], [()]), call)


def test_a_scheduler_without_workers(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "WORKERS_WITHIN", 0.5)
    cluster.scale(0)
    time.sleep(0.3)
    with pytest.raises(ClusterError, match=r"has no workers\. Start some"):
        connect(cluster.scheduler_address)


def test_the_cluster_dies(cluster: Any) -> None:
    answers = si.Responses.from_wide(np.random.default_rng(0).integers(0, 2, (50, 6)))
    engine = connect(cluster.scheduler_address)
    there = answers.using(engine)
    assert there.n_responses == 300
    cluster.close()
    with pytest.raises(ClusterError, match="the connection to the cluster was lost"):
        si.SpectralRasch().fit(there)
    engine.close()


def test_a_checkpoint_resumes_elsewhere(cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cluster dies in the middle of a fit, and this process ends it."""
    answers = si.simulate.rasch(200, 12, seed=2).responses
    expected = si.SpectralRasch().fit(answers)
    engine = connect(cluster.scheduler_address)
    there, usual, sums = answers.using(engine), dask.DaskEngine.sum, []

    def dies(self: Any, *args: Any, **more: Any) -> Any:
        sums.append(args[0])
        if len(sums) == 8:
            cluster.close()
        return usual(self, *args, **more)

    monkeypatch.setattr(dask.DaskEngine, "sum", dies)
    with pytest.raises(ClusterError):
        si.SpectralRasch().fit(there, checkpoint=tmp_path / "kept")
    engine.close()
    assert (tmp_path / "kept").is_dir()
    resumed = si.SpectralRasch().fit(answers, checkpoint=tmp_path / "kept")
    np.testing.assert_allclose(resumed.difficulty_, expected.difficulty_, rtol=0, atol=1e-12)
    assert not (tmp_path / "kept").exists()


def test_the_workers_die(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "WORKERS_WITHIN", 1.0)
    monkeypatch.setattr(dask, "LOOKS_EVERY", 0.3)
    engine = connect(cluster.scheduler_address)
    there = si.Responses.from_wide(np.random.default_rng(0).integers(0, 2, (50, 6))).using(engine)
    cluster.scale(0)
    with pytest.raises(ClusterError, match="has had no worker for 1 second"):
        si.SpectralRasch().fit(there)
    engine.close()


def test_a_file_that_a_worker_cannot_see_or_that_changed(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    order = Order(((str(file), 1, 1),), scoring(), Asked(), "error")
    with pytest.raises(ClusterError, match=r"cannot see .*answers\.csv.*shared file system"):
        load(order)
    file.write_text("who,a,b\nx,1,0\n")
    with pytest.raises(ReadError, match=r"answers\.csv changed"):
        load(order)


def test_labels_of_several_files() -> None:
    """Numbers by size; with a text among them all are text, by their characters."""
    every, places = union([np.array([9, 10]), np.array([10, 2])])
    assert every.tolist() == [2, 9, 10]
    assert [place.tolist() for place in places] == [[1, 2], [2, 0]]
    every, places = union([np.array([9, 10]), np.array(["é", "10", "B"], dtype=object)])
    assert every.tolist() == ["10", "9", "B", "é"]
    assert [place.tolist() for place in places] == [[1, 0], [3, 0, 2]]


def test_sizes_are_those_of_the_arrays() -> None:
    """So that the scheduler does not move a shard as if it were nothing."""
    answers = si.Responses.from_wide(np.ones((1000, 50)))
    assert sys.getsizeof(shards.Shard(answers.blocks)) > 4 * answers.n_responses
