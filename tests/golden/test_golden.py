"""Every number of the golden results is still what this version gives, to 1e-8; see README.md here."""

import numpy as np
import polars as pl
import pytest

from golden.make import HERE, RUNS, write

CLOSE = 1e-8


@pytest.mark.parametrize("run", RUNS)
def test_no_digit_has_changed(run, tmp_path):
    output = write(run, tmp_path)
    for golden in sorted((HERE / run).glob("*.csv")):
        old, new = (pl.read_csv(folder / golden.name, infer_schema_length=None) for folder in (HERE / run, output))
        assert old.height == new.height, golden.name
        for name in old.columns:
            where = f"{golden.name}, column {name}"
            if old[name].dtype.is_numeric():
                a, b = (table[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for table in (old, new))
                np.testing.assert_allclose(b, a, rtol=CLOSE, atol=CLOSE, err_msg=where)
            else:
                assert new[name].cast(old[name].dtype).to_list() == old[name].to_list(), where
