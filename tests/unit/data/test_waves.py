"""A wide table with columns for each wave, as a row for each person and wave."""

import polars as pl
import pytest

from spectral_irt.errors import OptionError
from spectral_irt.reading.waves import by_waves, patterns_by_ends


@pytest.fixture
def file(tmp_path):
    frame = pl.DataFrame(
        {"id": ["a", "b"], "arm": ["x", "y"], "q1_t1": [1, 0], "q2_t1": [0, 1], "q1_t2": [1, None], "q2_t2": [1, 1]}
    )
    frame.write_csv(tmp_path / "trial.csv")
    return str(tmp_path / "trial.csv")


@pytest.mark.parametrize("patterns", [["q*_t1", "q*_t2"], ["auto"]])
def test_waves_stand_below_each_other(file, patterns):
    table = by_waves([file], patterns, sheet=None, encoding=None)
    assert table.waves == ["t1", "t2"]
    assert table.frame.columns == ["id", "arm", "wave", "q1", "q2"]
    assert table.frame["q1"].to_list() == ["1", "0", "1", None]
    assert table.frame["wave"].to_list() == ["t1", "t1", "t2", "t2"]


def test_names_that_begin_with_the_wave(tmp_path):
    pl.DataFrame({"pre_a": [1, 0], "pre_b": [1, 1], "post_a": [0, 1], "post_b": [1, 1]}).write_csv(tmp_path / "x.csv")
    table = by_waves([str(tmp_path / "x.csv")], ["pre_*", "post_*"], sheet=None, encoding=None)
    assert table.frame.columns == ["person", "wave", "a", "b"]
    assert table.waves == ["pre", "post"]


def test_ends_in_order():
    names = [f"q{k}_{end}" for end in ("w10", "w2", "pre") for k in range(3)]
    assert patterns_by_ends(["id", *names]) == ["*_pre", "*_w2", "*_w10"]
    with pytest.raises(OptionError, match="no names of columns end alike"):
        patterns_by_ends(["id", "q1", "q2"])


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["q*_t1", "q*_t9"], "no column is called like 'q\\*_t9'"),
        (["q_t1", "q*_t2"], "needs one \\*"),
        (["q*_t1"], "a single wave"),
    ],
)
def test_refusals(file, patterns, message):
    with pytest.raises(Exception, match=message):
        by_waves([file], patterns, sheet=None, encoding=None)
