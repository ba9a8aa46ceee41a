"""Banks whose files hold numbers that no bank can have, with every checksum right: opening them says so."""

import numpy as np
import polars as pl
import pytest

from changed_bank import bank_of, resealed
from end_to_end.tables import wide
from spectral_irt import SpectralPartialCredit, simulate
from spectral_irt.bank import Bank
from spectral_irt.cli.main import main
from spectral_irt.errors import BankError

NAN, INF = float("nan"), float("inf")
FINDING = {"code": "a", "severity": "note", "sentence": "b", "remedy": "c", "items": [], "number": 0}


@pytest.fixture(scope="module")
def banks():
    binary = bank_of(simulate.rasch(200, 8, seed=1).responses)
    ordered = simulate.partial_credit(200, 6, categories=4, seed=1).responses
    return {"binary": binary, "ordered": Bank.from_fit(SpectralPartialCredit().fit(ordered), ordered)}


def of_record(*path):
    """A change of one field of the record: the path to it, and its new value."""
    *names, last, value = path

    def change(record, tables):
        for name in names:
            record = record[name]
        record[last] = value

    return change


def of_table(name, column, value, row=2):
    """A change of one cell of a table, or with `row=None` of all."""

    def change(record, tables):
        table = tables[name]
        values = table[column].to_list()
        for k in range(len(values)) if row is None else [row]:
            values[k] = value
        tables[name] = table.with_columns(pl.Series(column, values, dtype=table[column].dtype, strict=False))

    return change


def negative_matrix(record, tables):
    tables["information"] = tables["information"].with_columns(value=-pl.col("value"))


def indefinite_matrix(record, tables):
    """The diagonal as it was, and more shared by two thresholds than either has."""
    entries = tables["information"]
    off = (entries["row"] != entries["column"]).to_numpy()
    value = entries["value"].to_numpy().copy()
    value[np.flatnonzero(off)[0]] = 100 * value.max()
    tables["information"] = entries.with_columns(value=pl.Series(value))


def without_the_last(name):
    def change(record, tables):
        tables[name] = tables[name][:-1]

    return change


def without_table(name):
    def change(record, tables):
        del record["tables"][name]
        del tables[name]

    return change


def twice(name):
    def change(record, tables):
        tables[name] = pl.concat([tables[name], tables[name][-1:]])

    return change


CHANGES = {
    "scale unit 0": of_record("scale", "unit", 0),
    "scale unit below zero": of_record("scale", "unit", -3.0),
    "scale unit text": of_record("scale", "unit", "10"),
    "scale unit true": of_record("scale", "unit", True),
    "scale mean null": of_record("scale", "mean", None),
    "population sd below zero": of_record("population", "sd", -1.0),
    "population sd 0": of_record("population", "sd", 0),
    "population mean text": of_record("population", "mean", "0.5"),
    "population of -1": of_record("population", "persons", -1),
    "population without sd": of_record("population", {"mean": 0.0}),
    "prior below zero": of_record("prior", "precision", -5),
    "prior of offsets text": of_record("prior", "offsets", "1"),
    "load of -1 people": of_record("data", 0, "persons", -1),
    "load of half a person": of_record("data", 0, "persons", 0.5),
    "load without a name": of_record("data", 0, "source", None),
    "data a number": of_record("data", 7),
    "finding of no kind": of_record("findings", [{**FINDING, "severity": "loud"}]),
    "finding about objects": of_record("findings", [{**FINDING, "items": [{}]}]),
    "threshold of right answers": of_record("settings", "threshold", "x"),
    "no categories": without_table("categories"),
    "no items": without_table("items"),
    "label an object": of_table("items", "label", '{"a": 1}'),
    "label a list": of_table("items", "label", "[1]"),
    "label NaN": of_table("items", "label", "NaN"),
    "label no JSON": of_table("items", "label", "q1"),
    "one label for all": of_table("items", "label", '"q"', row=None),
    "two equal labels": of_table("items", "label", "1", row=2),
    "n below zero": of_table("items", "n", -1),
    "score below zero": of_table("items", "score", -1),
    "item information NaN": of_table("items", "information", NAN),
    "item information below zero": of_table("items", "information", -1.0),
    "se below zero": of_table("items", "se", -0.1),
    "group far out": of_table("items", "link_group", 10**12),
    "difficulty without an item": without_the_last("items"),
    "threshold 1e308": of_table("categories", "threshold", 1e308, row=3),
    "threshold inf": of_table("categories", "threshold", INF, row=3),
    "threshold se below zero": of_table("categories", "se", -0.1, row=3),
    "information NaN": of_table("categories", "information", NAN, row=3),
    "information below zero": of_table("categories", "information", -2.0, row=3),
    "information inf": of_table("categories", "information", INF, row=3),
    "prior mean 1e308": of_table("categories", "prior_mean", 1e308, row=3),
    "gradient NaN": of_table("categories", "prior_gradient", NAN, row=3),
    "code NaN": of_table("categories", "code", NAN),
    "all codes NaN": of_table("categories", "code", NAN, row=None),
    "equal codes": of_table("categories", "code", 0.0, row=None),
    "responses below zero": of_table("categories", "n", -1),
    "category of no item": of_table("categories", "item", 99),
    "category number": of_table("categories", "category", 7),
    "a category missing": without_the_last("categories"),
    "a category twice": twice("categories"),
    "matrix NaN": of_table("information", "value", NAN),
    "matrix outside": of_table("information", "row", 10**6),
    "matrix below zero": of_table("information", "column", -1),
    "matrix twice": twice("information"),
    "negative matrix": negative_matrix,
    "indefinite matrix": indefinite_matrix,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["binary", "ordered"])
def test_a_number_that_no_bank_has_is_refused(banks, tmp_path, kind, change):
    folder = banks[kind].save(tmp_path / "bank")
    resealed(folder, lambda record, tables: None)
    Bank.load(folder)  # checksums alone are no reason
    resealed(folder, CHANGES[change])
    with pytest.raises(BankError, match=r"(holds|cannot be understood).*(Restore|calibrate)"):
        Bank.load(folder)


@pytest.mark.parametrize("change", ["scale unit 0", "label an object", "negative matrix"])
def test_every_command_refuses_such_a_bank_in_a_sentence(banks, tmp_path, change, capsys):
    folder, other = banks["binary"].save(tmp_path / "bank"), banks["binary"].save(tmp_path / "other")
    wide(tmp_path / "new.csv", simulate.rasch(50, 8, seed=2).responses.to_dense())
    resealed(folder, CHANGES[change])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    new = str(tmp_path / "new.csv")
    for line in (
        ["score", new, "--bank", folder],
        ["update", folder, new],
        ["update", folder, "--history"],
        ["update", folder, "--undo"],
        ["link", folder, other],
        ["link", other, folder],
        ["fit", new, "--anchors", folder],
        ["export", folder, "--to", "catsim", "-o", tmp_path / "items.csv"],
    ):
        assert main([str(word) for word in line]) == 2, line
        assert "internal error" not in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_numbers_at_the_edge_are_taken(banks, tmp_path):
    """Unknown and infinite standard errors, items without an estimate, and thresholds far out are in honest banks."""
    folder = banks["binary"].save(tmp_path / "bank")
    for change in (
        of_table("items", "se", None),
        of_table("categories", "se", INF, row=3),
        of_table("categories", "threshold", None, row=3),
        of_table("categories", "threshold", 40.0, row=5),
        of_record("population", None),
    ):
        resealed(folder, change)
        Bank.load(folder)
