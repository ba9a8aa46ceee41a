"""Columns about people come along with the answers, whatever holds them, and are asked for by name."""

import json
import sqlite3

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError
from spectral_irt.reading import side_tables

N = 300
SEX = ["f", "m", None] * (N // 3)
CLASS = [k // 10 for k in range(N)]
WEIGHT = [1.0 + k % 4 / 4 for k in range(N)]


@pytest.fixture(scope="module")
def wide():
    answers = si.simulate.rasch(N, 6, seed=3).responses.to_dense().astype(int)
    about = {"student": [f"s{k:03}" for k in range(N)], "sex": SEX, "class": CLASS, "weight": WEIGHT}
    return pl.DataFrame(about | {f"q{k}": answers[:, k] for k in range(6)})


@pytest.fixture(scope="module")
def long(wide):
    index = ["student", "sex", "class", "weight"]
    rows = wide.unpivot(index=index, variable_name="item", value_name="response")
    return rows.sample(fraction=1, shuffle=True, seed=1)


def nested(wide, file):
    """A line for each person, whose answers are an object."""
    people = (
        {k: v for k, v in row.items() if k[0] != "q"} | {"responses": {k: row[k] for k in row if k[0] == "q"}}
        for row in wide.iter_rows(named=True)
    )
    file.write_text("".join(json.dumps(one) + "\n" for one in people))
    return file


def database(long, file):
    with sqlite3.connect(file) as opened:
        opened.execute("CREATE TABLE a (student, sex, class, weight, item, response)")
        opened.executemany("INSERT INTO a VALUES (?, ?, ?, ?, ?, ?)", long.rows())
    return {"sql": "SELECT * FROM a", "database": f"sqlite:{file}"}


DOORS = {
    "wide csv": lambda wide, long, at: (wide.write_csv(at / "a.csv"), at / "a.csv")[1],
    "long csv": lambda wide, long, at: (long.write_csv(at / "a.csv"), at / "a.csv")[1],
    "parquet": lambda wide, long, at: (long.write_parquet(at / "a.parquet"), at / "a.parquet")[1],
    "wide parquet": lambda wide, long, at: (wide.write_parquet(at / "a.parquet"), at / "a.parquet")[1],
    "excel": lambda wide, long, at: (wide.write_excel(at / "a.xlsx"), at / "a.xlsx")[1],
    "json": lambda wide, long, at: (long.write_ndjson(at / "a.jsonl"), at / "a.jsonl")[1],
    "nested json": lambda wide, long, at: nested(wide, at / "a.jsonl"),
    "query": lambda wide, long, at: database(long, at / "a.db"),
}


@pytest.mark.parametrize("door", DOORS)
def test_columns_come_along(door, wide, long, tmp_path):
    given = DOORS[door](wide, long, tmp_path)
    how = given if isinstance(given, dict) else {"source": given}
    found = si.read(**how, people=["sex", "class", "weight"])
    assert found.persons.tolist() == wide["student"].to_list()
    assert found.items.tolist() == [f"q{k}" for k in range(6)]
    assert found.people is not None
    assert {name: values.tolist() for name, values in found.people.items()} == {
        "sex": SEX,
        "class": CLASS,
        "weight": WEIGHT,
    }


def test_frames_and_rows_without_names(wide):
    for frame in (wide, wide.to_pandas(), wide.drop("student"), wide.to_pandas().set_index("student")):
        found = si.read(frame, people=["sex", "class", "weight"])
        assert found.people is not None
        assert found.people["sex"].tolist() == SEX
    some = found.take_persons([5, 0, 8])
    assert some.people is not None
    assert some.people["sex"].tolist() == ["f", None, None]


def test_they_are_asked_for_by_name(wide):
    data = si.read(wide, people=["sex", "class", "weight"])
    by_name = si.SpectralRasch().fit(data, weights="weight").difficulty_
    np.testing.assert_array_equal(by_name, si.SpectralRasch().fit(data, weights=WEIGHT).difficulty_)
    study = si.SpectralRasch().fit(data).analyse(data)
    for ask in (
        lambda sex, school: study.dif(sex).items,
        lambda sex, school: {"se": study.clustered(school).calibration.threshold_se},
        lambda sex, school: {"p": study.model_test(sex).p},
        lambda sex, school: {"b": si.MarginalRasch().fit(data, groups=sex).difficulty_},
    ):
        named, given = ask("sex", "class"), ask(SEX, CLASS)
        for column in given:
            np.testing.assert_array_equal(np.asarray(named[column]), np.asarray(given[column]))
    with pytest.raises(OptionError, match=r"no column 'age' about people was read; there are 'sex', 'class', 'weight'"):
        study.dif("age")


def test_what_contradicts_itself_is_named(long, monkeypatch):
    twice = long.with_columns(pl.when(pl.col("item") == "q0").then(pl.lit("x")).otherwise("sex").alias("sex"))
    monkeypatch.setattr(side_tables, "KEPT", 100)  # rows of a person are made one on the way
    monkeypatch.setattr("spectral_irt.reading.frame.PIECE_ROWS", 200)
    with pytest.raises(OptionError, match="200 people have more than one value in the column 'sex': 's"):
        si.read(twice, people="sex")
    assert si.read(twice, people="class").people["class"].tolist() == CLASS


def test_what_cannot_be(wide, tmp_path):
    with pytest.raises(OptionError, match=r"no column 'zex' for `people`.*Did you mean 'sex'"):
        si.read(wide, people="zex")
    with pytest.raises(OptionError, match="with `orient='items'` a column is a person"):
        si.read(wide, people="sex", orient="items")
    si.read(wide, ignore="weight").save(tmp_path / "a.packed")
    with pytest.raises(OptionError, match="about people"):
        si.read(tmp_path / "a.packed", people="sex")


def test_a_packed_file_keeps_columns_about_people(tmp_path):
    import polars as pl

    from spectral_irt.errors import OptionError

    frame = pl.DataFrame(
        {"id": ["a", "b", "c"], "sex": ["f", None, "m"], "w": [1.5, 2, 1], "x": [1, 0, 1], "y": [0, 1, 1]}
    )
    file = tmp_path / "a.packed"
    si.read(frame, people=["sex", "w"]).save(file)
    found = si.read(file, people="sex").people
    assert {name: values.tolist() for name, values in found.items()} == {"sex": ["f", None, "m"], "w": [1.5, 2.0, 1.0]}
    with pytest.raises(OptionError, match="without a column 'class' about people"):
        si.read(file, people="class")
