"""A killed fit goes on at the same numbers."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.engines import LocalEngine
from spectral_irt.engines.checkpoint import JOURNAL, Checkpoint, CheckpointEngine, _decoded, _encoded
from spectral_irt.engines.engine import Each, Kernel
from spectral_irt.errors import CheckpointError, OutputError
from spectral_irt.responses.responses import Responses


class Killed(BaseException):
    pass


class Dying(LocalEngine):
    """An engine that ends after so many kernels."""

    def __init__(self, left: int) -> None:
        super().__init__(1)
        self.left = left

    def map(self, kernel: Kernel, parts: Any, *args: Any, each: Each = ()) -> Iterator[Any]:
        self.left -= 1
        if self.left < 0:
            raise Killed
        return super().map(kernel, parts, *args, each=each)


def answers(items: int = 12, users: int = 200, seed: int = 0) -> Responses:
    rng = np.random.default_rng(seed)
    theta, beta = rng.normal(size=users), rng.normal(size=items)
    table = (rng.random((users, items)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    table[rng.random(table.shape) < 0.3] = np.nan
    return Responses.from_wide(table)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [si.SpectralRasch, lambda: si.SpectralRasch(refine=False), si.ConditionalRasch, si.JointRasch, si.PairwiseRasch],
    ids=["landed", "chain", "conditional", "joint", "pairwise"],
)
def test_the_same_bits_wherever_it_is_killed(make: Any, tmp_path: Path) -> None:
    data = answers()
    whole = make().fit(data)
    rng = np.random.default_rng(1)
    for left in [1, 2, 5, *rng.integers(6, 60, size=4).tolist()]:
        for more in (left, left + 7, left + 11):  # three times in a row
            with contextlib.suppress(Killed):
                make().fit(data.using(Dying(more)), checkpoint=tmp_path / "kept")
        again = make().fit(data, checkpoint=tmp_path / "kept")
        assert np.array_equal(whole.difficulty_, again.difficulty_, equal_nan=True)
        assert np.array_equal(whole.se_, again.se_, equal_nan=True)
        assert whole.n_iter_ == again.n_iter_
        assert not (tmp_path / "kept").exists()


def test_what_is_known_is_not_computed_again(tmp_path: Path) -> None:
    data = answers()
    engine = Dying(10_000)
    of = {"data": "d", "options": {}}
    with Checkpoint(tmp_path, of) as kept:
        si.SpectralRasch().fit(data.using(CheckpointEngine(engine, kept)))
    used = 10_000 - engine.left
    engine.left = 10_000
    with Checkpoint(tmp_path, of) as kept:
        si.SpectralRasch().fit(data.using(CheckpointEngine(engine, kept)))
        assert kept.resumed > 10
    assert 10_000 - engine.left < used / 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_sigkill(tmp_path: Path, seed: int) -> None:
    """A process that is killed at a random moment of its fit; the next ends where an unbroken one does."""
    program = (
        "import sys, time; import numpy as np; sys.path.insert(0, sys.argv[2]); import test_checkpoint as t\n"
        "import spectral_irt as si\n"
        "from spectral_irt.engines.checkpoint import Checkpoint\n"
        "add = Checkpoint.add\n"
        "def slowly(self, *a):\n    add(self, *a); time.sleep(0.02)\n"
        "Checkpoint.add = slowly\n"
        "si.SpectralRasch().fit(t.answers(), checkpoint=sys.argv[1])\n"
    )
    folder = tmp_path / "kept"
    here = str(Path(__file__).parent)
    process = subprocess.Popen([sys.executable, "-c", program, str(folder), here])
    journal, size = folder / JOURNAL, int(np.random.default_rng(seed).integers(500, 4_000))
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size > size) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -9
    assert journal.exists()
    again = si.SpectralRasch().fit(answers(), checkpoint=folder)
    whole = si.SpectralRasch().fit(answers())
    assert np.array_equal(whole.difficulty_, again.difficulty_)
    assert np.array_equal(whole.se_, again.se_)


def test_a_torn_entry_is_left_out(tmp_path: Path) -> None:
    data = answers()
    with pytest.raises(Killed):
        si.SpectralRasch().fit(data.using(Dying(25)), checkpoint=tmp_path)
    journal = tmp_path / JOURNAL
    whole = journal.read_bytes()
    for damaged in (whole[:-3], whole[:-40] + b"\xff" + whole[-39:], whole + b"rest of something"):
        tmp_path.mkdir(exist_ok=True)  # it was removed when the fit was complete
        journal.write_bytes(damaged)
        again = si.SpectralRasch().fit(data, checkpoint=tmp_path)
        assert np.array_equal(again.difficulty_, si.SpectralRasch().fit(data).difficulty_)


def test_of_other_data_options_or_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Killed):
        si.SpectralRasch().fit(answers().using(Dying(25)), checkpoint=tmp_path)
    before = (tmp_path / JOURNAL).read_bytes()
    with pytest.raises(CheckpointError, match=r"is of other data\. Remove the folder .* It is unchanged"):
        si.SpectralRasch().fit(answers(seed=1), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="is of a fit with other options"):
        si.SpectralRasch(se="none").fit(answers(), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="is of a fit with other options"):
        si.SpectralRasch().fit(answers(), weights=np.arange(1.0, 201), checkpoint=tmp_path)
    monkeypatch.setattr("spectral_irt.engines.checkpoint.__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"is of version \d"):
        si.SpectralRasch().fit(answers(), checkpoint=tmp_path)
    assert (tmp_path / JOURNAL).read_bytes() == before
    monkeypatch.undo()
    si.SpectralRasch(threads=2).fit(answers(), checkpoint=tmp_path)  # threads make no difference


def test_two_fits_cannot_share_one(tmp_path: Path) -> None:
    with (
        Checkpoint(tmp_path, {"data": "d"}),
        pytest.raises(CheckpointError, match="another fit is using the checkpoint"),
    ):
        si.SpectralRasch().fit(answers(), checkpoint=tmp_path)


def test_places_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"):
        si.SpectralRasch().fit(answers(), checkpoint=tmp_path / "file")
    (tmp_path / JOURNAL).write_text("my diary\n")
    with pytest.raises(CheckpointError, match="not a checkpoint of this program"):
        si.SpectralRasch().fit(answers(), checkpoint=tmp_path)
    assert (tmp_path / JOURNAL).read_text() == "my diary\n"


@pytest.mark.parametrize(
    "result", [np.arange(3), (np.ones((2, 3)), np.float64(2)), 3, 2.5, (1, np.array(4, dtype=np.int32)), np.empty(0)]
)
def test_sums_come_back_as_they_were(result: Any) -> None:
    back = _decoded(_encoded(result))
    assert type(back) is type(result)
    for a, b in zip(*((one if isinstance(one, tuple) else (one,)) for one in (result, back)), strict=True):
        assert type(a) is type(b)
        assert np.array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
