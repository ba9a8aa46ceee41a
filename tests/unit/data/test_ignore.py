"""Columns that are about persons, not answers, left out of a wide table."""

import gzip
import json

import polars as pl
import pytest

from spectral_irt.errors import OptionError, ResponseValueError, for_shell
from spectral_irt.reading import read

TABLE = pl.DataFrame(
    {"sex": ["f", "m", "f"], "name": ["ann", "bob", "eve"], "q1": [1, 0, 1], "age": [31, 44, 17], "q2": [0, 1, None]}
)


def written(kind, folder):
    path = folder / f"answers.{kind}"
    if kind == "csv":
        TABLE.write_csv(path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(TABLE.write_csv().encode()))
    elif kind == "parquet":
        TABLE.write_parquet(path)
    else:
        path.write_text("\n".join(json.dumps(row) for row in TABLE.to_dicts()))
    return path


def test_what_cannot_be_ignored(tmp_path):
    path = written("csv", tmp_path)
    with pytest.raises(OptionError, match=r"no column 'sec' for `ignore`; .* Did you mean 'sex'"):
        read(path, ignore="sec")
    with pytest.raises(OptionError, match=r"'name' of answers\.csv labels the rows"):
        read(path, person="name", ignore=["name", "sex", "age"])
    with pytest.raises(OptionError, match="no answers beside the columns to ignore"):
        read(path, ignore=["sex", "age", "q1", "q2"])
    with pytest.raises(OptionError, match="no column 'sec' for `ignore`"):
        read(written("jsonl", tmp_path), ignore="sec")


def test_columns_that_look_like_no_items_are_named(tmp_path):
    table = TABLE.with_columns(q3=pl.Series([1, 1, 0]), q4=pl.Series([0, 1, 0]), q5=pl.Series([0, 1, 1]))
    table = table.rename({"age": "height", "sex": "eyes"})
    table.select("name", pl.exclude("name")).write_csv(tmp_path / "people.csv")
    found = read(tmp_path / "people.csv")
    assert found.items.tolist() == ["q1", "q2", "q3", "q4", "q5"]
    (said,) = (finding for finding in found.notes if finding.code == "unlike_columns")
    assert set(said.items) == {"eyes", "height"}
    few = table.select("name", "eyes", "height", "q1", "q2", "q3")  # too few to say what most are like
    few.write_csv(tmp_path / "people.csv")
    with pytest.raises(ResponseValueError, match=r"ignore='eyes,height'`\.$") as raised:
        read(tmp_path / "people.csv")
    assert for_shell(str(raised.value)).endswith("say --ignore eyes,height.")
