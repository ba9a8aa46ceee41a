"""Every number that version 0.1 wrote is still what the chain alone gives, to 1e-10; see README.md here."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from spectral_irt.cli.main import main

HERE = Path(__file__).parent
REFERENCE = HERE.parent / "reference"
RUNS = {
    "lsat": [str(REFERENCE / "lsat6.csv"), "--rank", "3:lower", "--set", "refine=false"],
    "booklets": [str(REFERENCE / "booklets24.csv"), "--rank", "5:lower", "--set", "refine=false"],
    "sparse": [str(HERE / "sparse.csv"), "--rank", "5:lower", "--set", "refine=false"],
}
CLOSE = 1e-10
LATER = ("eap_reliability",)  # 0.1 had it only for --ability eap
LEARNED = ("rank_low", "rank_high", "p_top")  # of ranking: 0.1 took difficulties as normal
RENAMED: dict[str, str] = {"p_value": "p_correct", "user": "person"}  # columns that have another name today


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    out = tmp_path_factory.mktemp(request.param)
    assert main(["fit", *RUNS[request.param], "--all", "-o", str(out / "results")]) == 0
    return HERE / request.param, out / "results"


@pytest.mark.parametrize("table", ["items", "persons", "item_fit", "ranking"])
def test_tables(run: tuple[Path, Path], table: str) -> None:
    before, after = (folder / f"{table}.csv" for folder in run)
    if not before.exists():
        assert not after.exists()
        return
    old, new = pl.read_csv(before, infer_schema_length=None), pl.read_csv(after, infer_schema_length=None)
    assert old.height == new.height
    for name in old.columns:
        if table == "ranking" and name in LEARNED:
            continue
        column = new["n_correct" if (table, name) == ("items", "score") else RENAMED.get(name, name)]
        if old[name].dtype.is_float():
            a, b = old[name].to_numpy(), column.cast(pl.Float64).to_numpy()
            np.testing.assert_allclose(b, a, rtol=CLOSE, atol=CLOSE, err_msg=name)
        else:
            assert column.to_list() == old[name].to_list(), name


def test_record(run: tuple[Path, Path]) -> None:
    """Reliability, the prior: the numbers of `fit.json`. The test of the model in it is another today."""
    old, new = (json.loads((folder / "fit.json").read_text(encoding="utf-8")) for folder in run)
    for part in ("regularization", "reliability"):
        if part in old:
            _same(old[part], new[part], part)


def _same(old: object, new: object, where: str) -> None:
    if isinstance(old, dict):
        assert isinstance(new, dict), where
        for name, value in old.items():
            if value is None and name in LATER:
                continue
            _same(value, new[RENAMED.get(name, name)], f"{where}.{name}")
    elif isinstance(old, float):
        assert new == pytest.approx(old, rel=CLOSE, abs=CLOSE), where
    elif not isinstance(old, str):  # sentences may be said better
        assert new == old, where
