"""People as parts that the workers of a cluster write: the same table, complete or not at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import spectral_irt as si
from spectral_irt import tables
from spectral_irt.analysis import folder as result_files
from spectral_irt.analysis.record import file_digests
from spectral_irt.cli.main import main
from spectral_irt.engine.dask import DaskEngine, connect
from spectral_irt.errors import ClusterError

pytestmark = pytest.mark.slow
distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster() -> Iterator[Any]:
    small: Any = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "silence_logs": 50}
    with distributed.LocalCluster(protocol="tcp://", dashboard_address="127.0.0.1:0", **small) as cluster:
        yield cluster


@pytest.fixture
def engine(cluster: Any) -> Iterator[DaskEngine]:
    engine = connect(cluster.scheduler_address)
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PIECE", 30)


def answers() -> si.Responses:
    table = np.random.default_rng(4).integers(0, 2, (200, 8)).astype(float)
    frame = pl.DataFrame(table, schema=[f"q{k}" for k in range(8)])
    people = pl.Series("person", [f"p{k:03d}" for k in range(200)])
    return si.Responses.from_wide(frame.with_columns(people), person="person")


def study_of(responses: si.Responses) -> Any:
    return si.SpectralRasch().fit(responses).analyse(responses)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_same_table_in_parts(engine: DaskEngine, tmp_path: Path) -> None:
    here, there = study_of(answers()), study_of(answers().using(engine))
    here.write(tmp_path / "here", parquet=True)
    written = there.write(tmp_path / "there", parquet=True)
    folder = tmp_path / "there" / "persons.parquet"
    assert names(folder) == [f"part-{k:05d}.parquet" for k in range(7)]
    assert sorted(path.name for path in written) == names(tmp_path / "there")
    assert "persons.csv" not in names(tmp_path / "there")
    one, other = (pl.read_parquet(tmp_path / name / "persons.parquet") for name in ("here", "there"))
    assert_frame_equal(one, other, abs_tol=1e-12, rel_tol=1e-12)


def test_one_after_the_other_in_the_same_place(engine: DaskEngine, tmp_path: Path) -> None:
    """A folder replaces a file, a file a folder, and a folder a folder."""
    here, there = study_of(answers()), study_of(answers().using(engine))
    for study, is_folder in ((here, False), (there, True), (there, True), (here, False)):
        study.write(tmp_path / "results", parquet=True)
        people = tmp_path / "results" / "persons.parquet"
        assert people.is_dir() == is_folder
        assert len(pl.read_parquet(people)) == 200
        assert (tmp_path / "results" / "persons.csv").exists() != is_folder
        assert not [name for name in names(tmp_path / "results") if name.endswith(".partial")]
    there.write(tmp_path / "results")  # without --parquet: as usual
    assert not (tmp_path / "results" / "persons.parquet").exists()
    assert (tmp_path / "results" / "persons.csv").is_file()


def test_workers_that_do_not_see_the_folder(
    engine: DaskEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.sees(tmp_path)
    assert not engine.sees(tmp_path / "nowhere")
    there = study_of(answers().using(engine))
    monkeypatch.setattr(DaskEngine, "sees", lambda self, path: False)
    there.write(tmp_path / "results", parquet=True)
    assert (tmp_path / "results" / "persons.csv").is_file()
    assert (tmp_path / "results" / "persons.parquet").is_file()
    with pytest.raises(ClusterError, match=r"does not see '.*nowhere', where the people are to be written"):
        result_files.write_part(pl.DataFrame({"a": [1]}), str(tmp_path / "nowhere" / "draft" / "part-00000.parquet"))


@pytest.mark.parametrize("before", [False, True])
def test_a_cluster_that_dies_leaves_what_was_there(
    cluster: Any, engine: DaskEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    there = study_of(answers().using(engine))
    results = tmp_path / "results"
    if before:
        there.write(results, parquet=True)
    old = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    usual, batches = DaskEngine.submit_all, []

    def dies(self: DaskEngine, function: Any, *arguments: Any) -> Any:
        if function is result_files.write_part:
            batches.append(len(arguments[0]))
            if len(batches) == 2:
                cluster.close()
        return usual(self, function, *arguments)

    monkeypatch.setattr(DaskEngine, "submit_all", dies)
    with pytest.raises(ClusterError, match="the connection to the cluster was lost"):
        there.write(results, parquet=True)
    assert batches == [4, 3]
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == old
    assert results.exists() == before


def test_ordered_answers(engine: DaskEngine, tmp_path: Path) -> None:
    table = np.random.default_rng(5).integers(0, 3, (100, 6)).astype(float)
    there = si.Responses.from_wide(table, ordered=True).using(engine)
    study = si.SpectralPartialCredit().fit(there).analyse(there)
    written = study.write(tmp_path / "results", parquet=True)
    assert len(pl.read_parquet(tmp_path / "results" / "persons.parquet")) == 100
    assert sorted(path.name for path in written) == names(tmp_path / "results")
    assert "persons.csv" not in names(tmp_path / "results")


def test_digests_by_workers(engine: DaskEngine, tmp_path: Path) -> None:
    files = [tmp_path / f"{k}.txt" for k in range(3)]
    for k, file in enumerate(files):
        file.write_text(str(k) * 1000)
    found = file_digests([*files, tmp_path / "*.txt"], engine)
    again = [tmp_path / f"again{k}.txt" for k in range(3)]
    for file, copy in zip(files, again, strict=True):
        copy.write_bytes(file.read_bytes())
    assert list(found.values()) == list(file_digests(again).values())
    assert list(found) == list(map(str, files))


def test_a_worker_is_killed_while_people_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is typed, with worker processes; what the dead one had is written by the other."""
    lines = [f"{k},{i},{(k * 7 + i * 3) % 11 % 2}" for k in range(200) for i in range(6)]
    (tmp_path / "answers.csv").write_text("person,item,response\n" + "\n".join(lines))
    usual, killed = DaskEngine.submit_all, []

    def kills(self: DaskEngine, function: Any, *arguments: Any) -> Any:
        futures = usual(self, function, *arguments)
        if function is result_files.write_part and not killed:
            killed.extend(self.client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)
        return futures

    monkeypatch.setattr(DaskEngine, "submit_all", kills)
    results = tmp_path / "results"
    command = ["fit", str(tmp_path / "answers.csv"), "--skip", "fit", "-q", "--parquet", "-o"]
    assert main([*command, str(results), "--dask", "local:2"]) == 0
    assert killed
    assert main([*command, str(tmp_path / "here")]) == 0
    assert names(results / "persons.parquet") == [f"part-{k:05d}.parquet" for k in range(7)]
    one, other = (pl.read_parquet(folder / "persons.parquet") for folder in (tmp_path / "here", results))
    assert_frame_equal(one, other, abs_tol=1e-12, rel_tol=1e-12)
