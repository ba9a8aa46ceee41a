"""What goes wrong with a cluster is said in a sentence, and soon."""

import gc
import socket
import sys
import time

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.cli.main import main
from spectral_irt.data.packed_file import mapped_blocks
from spectral_irt.engine import dask
from spectral_irt.engine.dask import connect
from spectral_irt.errors import ClusterError, OptionError, ReadError

pytestmark = pytest.mark.slow  # many short runs of whole jobs

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster():
    """A cluster of threads in this process: what it does wrong is the same, and it starts at once."""
    small = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "silence_logs": 50}
    with distributed.LocalCluster(protocol="tcp://", dashboard_address="127.0.0.1:0", **small) as cluster:
        yield cluster


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install \"\.\[cluster\]\""):
        connect("tcp://127.0.0.1:8786")


@pytest.mark.parametrize(
    "where", ["", 7, "one:two:three", "ucx://x:1", "http://127.0.0.1:80", "xyz://ann:SECRET@h:1", "inproc://x"]
)
def test_no_address(where):
    with pytest.raises(OptionError, match="`dask` is") as caught:
        connect(where)
    assert "SECRET" not in str(caught.value)


def test_a_client_that_did_not_come_about_leaves_no_traceback(capsys):
    with pytest.raises(ClusterError, match="no connection"):
        connect("tls://127.0.0.1:1")  # without certificates
    gc.collect()
    assert capsys.readouterr().err == ""


def test_nobody_answers(monkeypatch, tmp_path, capsys):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        closed = f"tcp://127.0.0.1:{one.getsockname()[1]}"
    monkeypatch.setattr(dask, "ANSWERS_WITHIN", 1.0)
    file = tmp_path / "answers.csv"
    file.write_text("who,a,b\nx,1,0\ny,0,1\nz,1,1\n")
    assert main(["fit", str(file), "--dask", closed, "-o", str(tmp_path / "out")]) == 2
    assert f"no Dask scheduler answers at {closed}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_another_version(cluster, monkeypatch):
    ours = si.__version__
    monkeypatch.setattr(dask, "__version__", "99.1")
    with pytest.raises(ClusterError, match=f"the workers run spectral-irt {ours}, and this program is 99.1"):
        connect(cluster.scheduler_address)


def test_a_worker_that_joins_with_another_version():
    call = dask.KernelCall(np.sum, (), version="99.1")
    with pytest.raises(ClusterError, match=r"this program is 99\.1"):
        dask.task(list, dask.Shard([np.ones(3)]), dask.PartArgs([0], [()]), call)


def test_a_scheduler_without_workers(cluster, monkeypatch):
    monkeypatch.setattr(dask, "WORKERS_WITHIN", 0.5)
    cluster.scale(0)
    while cluster.scheduler.workers:
        time.sleep(0.01)
    with pytest.raises(ClusterError, match=r"has no workers\. Start some"):
        connect(cluster.scheduler_address)


@pytest.mark.parametrize("dies", ["cluster", "workers"])
def test_it_dies(cluster, dies, monkeypatch):
    monkeypatch.setattr(dask, "WORKERS_WITHIN", 1.0)
    monkeypatch.setattr(dask, "LOOKS_EVERY", 0.3)
    engine = connect(cluster.scheduler_address)
    there = si.simulate.rasch(50, 6, seed=0).responses.with_engine(engine)
    assert there.n_responses == 300
    said = "the connection to the cluster was lost" if dies == "cluster" else "has had no worker for 1 second"
    cluster.close() if dies == "cluster" else cluster.scale(0)
    with pytest.raises(ClusterError, match=said):
        si.SpectralRasch().fit(there)
    engine.close()


def test_a_packed_file_that_changed(tmp_path):
    file = tmp_path / "answers.packed"
    si.Responses.from_wide([[1, 0], [0, 1], [1, 1]]).save(file)
    assert len(mapped_blocks(str(file), file.stat().st_mtime_ns, 0, 1).parts) == 1
    with pytest.raises(ReadError, match=r"answers\.packed changed"):
        mapped_blocks(str(file), 1, 0, 1)


def test_sizes_are_those_of_the_arrays():
    """So that the scheduler does not move a shard as if it were nothing."""
    answers = si.Responses.from_wide(np.ones((1000, 50)))
    assert sys.getsizeof(dask.Shard(answers.blocks)) > 4 * answers.n_responses
