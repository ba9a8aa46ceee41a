"""The same 0/1 data as right and wrong answers and as categories of partial credit: one bank in everything it does."""

from dataclasses import replace

import numpy as np
import pytest

from spectral_irt import Bank, SpectralPartialCredit, SpectralRasch, next_item, simulate
from spectral_irt.bank import equate, link, to_bank
from spectral_irt.bank.export import PROGRAMS, adaptive_text, ifile, pfile, sfile_text, winsteps_text
from spectral_irt.bank.score import score
from spectral_irt.bank.storage import record_of, tables_of


def data(seed, labels):
    found = simulate.rasch(300, len(labels), design="sampled", p=0.6, seed=seed).responses
    return replace(found, items=np.array(labels, dtype=object))


OLD, NEW = [f"q{k}" for k in range(12)], [f"q{k}" for k in range(3, 15)]


def banks(responses):
    return [to_bank(kind().fit(responses), responses) for kind in (SpectralRasch, SpectralPartialCredit)]


@pytest.fixture(scope="module")
def pair():
    return banks(data(1, OLD))


@pytest.fixture(scope="module")
def other():
    return banks(data(2, NEW))


def assert_same_banks(one, two):
    """Every table and every entry of the record but the name, the settings and the model of the estimator."""
    tables = tables_of(one), tables_of(two)
    assert tables[0].keys() == tables[1].keys()
    for name, table in tables[0].items():
        assert table.equals(tables[1][name]), name
    records = [record_of(each) for each in (one, two)]
    for record in records:
        del record["estimator"], record["settings"], record["model"]
    assert records[0] == records[1]
    assert one.table().equals(two.table())


def same_columns(one, two):
    assert one.keys() == two.keys()
    for name, values in one.items():
        assert np.array_equal(values, two[name], equal_nan=np.asarray(values).dtype.kind == "f"), name


def test_kept_saved_and_rescaled(pair, tmp_path):
    assert_same_banks(*pair)
    assert_same_banks(*(Bank.load(bank.save(tmp_path / str(k))) for k, bank in enumerate(pair)))
    assert_same_banks(*(bank.rescale(500, 100) for bank in pair))
    fits = (kind(regularization=4.0).fit(data(1, OLD)) for kind in (SpectralRasch, SpectralPartialCredit))
    assert_same_banks(*(Bank.load(fit.calibration_.save(tmp_path / f"alone{k}")) for k, fit in enumerate(fits)))


@pytest.mark.parametrize("ability", ["wle", "ml", "eap", "pv"])
def test_scored(pair, ability):
    found = [score(bank, data(3, OLD), ability) for bank in pair]
    same_columns(found[0].persons, found[1].persons)
    assert found[0].findings == found[1].findings
    assert found[0].reliability == found[1].reliability


def test_updated(pair):
    assert_same_banks(*(bank.update(data(4, NEW)) for bank in pair))
    assert all(bank.update(data(1, OLD), repeats="skip") is bank for bank in pair)


def test_linked_and_equated(pair, other):
    for method in ("robust", "mean"):
        found = [link(a, b, method) for a, b in zip(pair, other, strict=True)]
        same_columns(found[0].columns(), found[1].columns())
        assert found[0].finding == found[1].finding
        assert_same_banks(*(each.apply(b) for each, b in zip(found, other, strict=True)))
        same_columns(*(equate(a, b, method).columns() for a, b in zip(pair, other, strict=True)))


def test_asked_and_exported(pair):
    answers = {"q1": 1, "q5": 0}
    assert next_item(pair[0], answers) == next_item(pair[1], answers)
    for program in PROGRAMS:
        assert adaptive_text(pair[0], program) == adaptive_text(pair[1], program)
    assert winsteps_text(ifile(pair[0])) == winsteps_text(ifile(pair[1]))
    assert sfile_text(pair[0].calibration) == sfile_text(pair[1].calibration)
    persons = [winsteps_text(pfile(score(bank, data(3, OLD)).persons)) for bank in pair]
    assert persons[0] == persons[1]
