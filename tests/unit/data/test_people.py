"""Columns about people come along with the answers, whatever holds them, and are asked for by name."""

import json

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from reading import complaint, in_sqlite, save
from spectral_irt.errors import OptionError
from spectral_irt.reading import side_tables

N = 150
ABOUT = {"sex": ["f", "m", None] * (N // 3), "class": [k // 10 for k in range(N)]}
ABOUT["weight"] = [1.0 + k % 4 / 4 for k in range(N)]
SEX = ABOUT["sex"]
ANSWERS = si.simulate.rasch(N, 6, seed=3).responses.to_dense().astype(int)
ITEMS = {f"q{k}": ANSWERS[:, k] for k in range(6)}
WIDE = pl.DataFrame({"student": [f"s{k:03}" for k in range(N)], **ABOUT, **ITEMS})
LONG = WIDE.unpivot(index=["student", *ABOUT], variable_name="item", value_name="response")
LONG = LONG.sample(fraction=1, shuffle=True, seed=1)


def nested(file):
    """A line for each person, whose answers are an object."""
    people = WIDE.select("student", *ABOUT, responses=pl.struct(*ITEMS)).to_dicts()
    file.write_text("".join(json.dumps(one) + "\n" for one in people))
    return file


DOORS = {
    "wide csv": lambda at: save(WIDE, at / "a.csv"),
    "long csv": lambda at: save(LONG, at / "a.csv"),
    "long parquet": lambda at: save(LONG, at / "a.parquet"),
    "wide parquet": lambda at: save(WIDE, at / "a.parquet"),
    "excel": lambda at: (WIDE.write_excel(at / "a.xlsx"), at / "a.xlsx")[1],
    "json": lambda at: save(LONG, at / "a.jsonl"),
    "nested json": lambda at: nested(at / "a.jsonl"),
    "query": lambda at: in_sqlite(LONG, at / "a.db"),
    "polars": lambda at: WIDE,
    "pandas": lambda at: WIDE.to_pandas(),
    "pandas index": lambda at: WIDE.to_pandas().set_index("student"),
}


@pytest.mark.parametrize("door", DOORS)
def test_columns_come_along(door, tmp_path):
    given = DOORS[door](tmp_path)
    found = si.read(**(given if isinstance(given, dict) else {"source": given}), people=list(ABOUT))
    assert found.persons.tolist() == WIDE["student"].to_list()
    assert found.items.tolist() == list(ITEMS)
    assert {name: values.tolist() for name, values in found.people.items()} == ABOUT


def test_rows_without_names():
    found = si.read(WIDE.drop("student"), people=list(ABOUT))
    assert found.people["sex"].tolist() == SEX
    assert found.take_persons([5, 0, 8]).people["sex"].tolist() == ["f", None, None]


def test_they_are_asked_for_by_name():
    data = si.read(WIDE, people=list(ABOUT))
    by_name = si.SpectralRasch().fit(data, weights="weight").difficulty_
    np.testing.assert_array_equal(by_name, si.SpectralRasch().fit(data, weights=ABOUT["weight"]).difficulty_)
    study = si.SpectralRasch().fit(data).analyse(data)
    for ask in (
        lambda sex, school: study.dif(sex).items,
        lambda sex, school: {"se": study.clustered(school).calibration.threshold_se},
        lambda sex, school: {"p": study.model_test(sex).p},
        lambda sex, school: {"mean": study.group_means(school)["mean"]},
        lambda sex, school: {"b": si.MarginalRasch().fit(data, groups=sex).difficulty_},
    ):
        named, given = ask("sex", "class"), ask(SEX, ABOUT["class"])
        for column in given:
            np.testing.assert_array_equal(np.asarray(named[column]), np.asarray(given[column]))
    with pytest.raises(OptionError, match=r"no column 'age' about people was read; there are 'sex', 'class', 'weight'"):
        study.dif("age")


def test_what_contradicts_itself_is_named(monkeypatch):
    twice = LONG.with_columns(sex=pl.when(pl.col("item") == "q0").then(pl.lit("x")).otherwise("sex"))
    monkeypatch.setattr(side_tables, "KEPT", 100)  # rows of a person are made one on the way
    monkeypatch.setattr("spectral_irt.reading.frame.PIECE_ROWS", 50)
    assert "100 people have more than one value in the column 'sex': 's" in complaint(twice, people="sex")
    assert si.read(twice, people="class").people["class"].tolist() == ABOUT["class"]


def test_packed_files_keep_them_and_what_cannot_be(tmp_path):
    si.read(WIDE, people=["sex", "weight"]).save(tmp_path / "a.packed")
    found = si.read(tmp_path / "a.packed", people="sex").people
    assert {name: values.tolist() for name, values in found.items()} == {"sex": SEX, "weight": ABOUT["weight"]}
    si.read(WIDE, ignore="weight").save(tmp_path / "b.packed")
    for source, options, said in (
        (tmp_path / "a.packed", {"people": "class"}, "without a column 'class' about people"),
        (tmp_path / "b.packed", {"people": "sex"}, "about people"),
        (WIDE, {"people": "zex"}, "no column 'zex'; its columns are"),
        (WIDE, {"people": "zex"}, "Did you mean 'sex'"),
        (WIDE, {"people": "sex", "orient": "items"}, "with `orient='items'` a column is a person"),
    ):
        assert said in complaint(source, **options)


@pytest.mark.parametrize(("cells", "odd"), [(["1", "x", "3", "4"], "x"), (["1", "2", "n/k", "4"], "n/k")])
def test_words_among_the_numbers_of_a_property_of_items_are_refused(tmp_path, cells, odd):
    """As words, each number would have an effect of its own."""
    path = tmp_path / "covariates.csv"
    path.write_text("item,length\n" + "".join(f"q{k},{cell}\n" for k, cell in enumerate(cells)))
    with pytest.raises(OptionError, match=rf"'length' holds numbers, and also '{odd}'"):
        side_tables.read_item_properties(str(path))
    path.write_text("item,length,topic\nq0,1,a\nq1,2,b\nq2,2.5,1\nq3,4,b\n")
    properties = side_tables.read_item_properties(str(path))
    assert properties["length"].tolist() == [1, 2, 2.5, 4]
    assert properties["topic"].tolist() == ["a", "b", "1", "b"]
