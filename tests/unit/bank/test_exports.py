"""Files for other programs: names, codes, columns; and adaptive testing with a bank."""

import csv
import io
import json
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from changed_bank import bank_of
from spectral_irt import SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.bank import Bank, anchored_fit
from spectral_irt.bank.adaptive import next_item
from spectral_irt.bank.export import CODES, adaptive_text, ifile, pfile, winsteps_text
from spectral_irt.calibration import Scale
from spectral_irt.data import Responses
from spectral_irt.errors import BankError, OptionError

NAMES = [
    *("ENTRY", "MEASURE", "STATUS", "COUNT", "SCORE", "ERROR", "IN.MSQ", "IN.ZSTD", "OUT.MSQ", "OUT.ZSTD"),
    *("DISPLACE", "PTME", "WEIGHT", "OBSMATCH", "EXPMATCH", "PTME-E", "RMSR", "WMLE"),
]
# Widths of Winsteps' own files (r2Winsteps reads them with these).
WIDTHS = [1, 5, 8, 3, 8, 9, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 8, 2, 2, 2]


@pytest.fixture(scope="module")
def data():
    table = simulate.rasch(200, 6, seed=1).responses.to_dense()
    table[:, 4], table[:, 5] = 1, np.nan
    return Responses.from_wide(table, items=['q"1', "q,2", "q\n3", "q4", "easy", "unseen"])


def test_items(data):
    fit = SpectralRasch().fit(data)
    columns = ifile(fit, columns_of(fit.analyse(data).item_fit))
    assert list(columns) == [*NAMES, *CODES, "NAME"]
    assert columns["STATUS"].tolist() == [1, 1, 1, 1, -1, -2]
    assert columns["COUNT"].tolist() == [200.0] * 5 + [0.0]
    table = list(csv.DictReader(io.StringIO(winsteps_text(columns))))
    assert [row["NAME"] for row in table] == ['q"1', "q,2", "q 3", "q4", "easy", "unseen"]
    assert float(table[0]["MEASURE"]) == pytest.approx(fit.difficulty_[0], abs=5e-5)
    assert float(table[0]["ERROR"]) == pytest.approx(fit.se_[0], abs=5e-5)
    assert 0.5 < float(table[0]["IN.MSQ"]) < 1.5
    assert table[5]["MEASURE"] == ""
    assert winsteps_text(columns).splitlines()[0].startswith('"ENTRY","MEASURE","STATUS"')


def test_fixed_columns_stand_where_winsteps_has_them(data):
    columns = ifile(SpectralRasch().fit(data))
    text = winsteps_text(columns, "fixed", title="ITEM file")
    title, head, *_ = text.splitlines()
    assert title == "; ITEM file"
    assert head.split()[:6] == [";ENTRY", "MEASURE", "ST", "COUNT", "SCORE", "ERROR"]
    limits = [*np.cumsum([0, *WIDTHS]), None]
    rows = [[line[a:b].strip() for a, b in pairwise(limits)] for line in text.splitlines()[2:]]
    assert [row[0] for row in rows] == ["", "", "", "", ";", ";"]  # a comment for items without a proper measure
    assert [int(row[1]) for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [float(row[2]) for row in rows[:5]] == pytest.approx(columns["MEASURE"][:5], abs=0.005)
    assert [float(row[4]) for row in rows] == columns["COUNT"].tolist()
    assert [row[-1] for row in rows] == ['q"1', "q,2", "q 3", "q4", "easy", "unseen"]
    assert winsteps_text(columns, "fixed", title="two\nlines").startswith("; two lines\n")
    assert winsteps_text(columns, "tab").splitlines()[0].split("\t")[:3] == NAMES[:3]
    with pytest.raises(OptionError, match="'csv', 'tab', 'fixed'"):
        winsteps_text({}, "xls")
    wide = ifile(SpectralRasch().fit(data), scale=Scale(5_000_000, 1_000_000))  # more than the columns hold
    row = winsteps_text(wide, "fixed").splitlines()[2].split()
    assert (float(row[1]), row[2]) == (pytest.approx(wide["MEASURE"][0], abs=0.01), "1")


def test_scale_and_displacement(data):
    fit = anchored_fit(data, {"q4": 1.0, "q,2": 0.5, "easy": -2.0})
    columns = ifile(fit, scale=Scale(500, 100))
    assert columns["STATUS"].tolist() == [1, 2, 1, 2, 2, -2]
    assert columns["MEASURE"][3] == 600
    assert columns["DISPLACE"][3] == pytest.approx(100 * fit.displacement_[3])
    bank = Bank.from_fit(fit, data).rescale(mean=50, unit=10)
    assert ifile(bank)["MEASURE"][3] == 60
    assert ifile(bank)["STATUS"].tolist() == [1, 2, 1, 2, 2, -2]


def test_persons(data):
    names, nan = ("person", "n", "score", "ability", "se", "infit", "extreme"), np.nan
    rows = [
        ("a", 5, 5, 3.0, 1.5, nan, True),
        ("b", 5, 0, -3.0, 1.5, nan, True),
        ("c", 5, 3, 0.5, 0.9, 1.1, False),
        ("d", 0, 0, nan, nan, nan, False),
    ]
    persons = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    columns = pfile(persons, scale=Scale(500, 100))
    assert list(columns) == [*NAMES, "NAME"]
    assert columns["STATUS"].tolist() == [0, -1, 1, -2]
    assert columns["MEASURE"][:3].tolist() == [800, 200, 550]
    assert columns["WMLE"][2] == 550
    assert np.isnan(pfile(persons, wle=False)["WMLE"]).all()
    table = pl.read_csv(io.StringIO(winsteps_text(columns)))
    assert table.columns == [*NAMES, "NAME"]
    assert table["MEASURE"].to_list() == [800, 200, 550, None]
    assert table["IN.MSQ"].to_list() == [None, None, 1.1, None]


def test_catsim(data):
    bank = bank_of(data).rescale(mean=500, sd=100)
    rows = list(csv.reader(io.StringIO(adaptive_text(bank, "catsim"))))
    assert rows[0] == ["item", "a", "b", "c", "d"]
    assert [row[0] for row in rows[1:]] == data.items.tolist()[:5]
    assert [float(row[2]) for row in rows[1:]] == bank.difficulty[:5].tolist()  # logits: catsim has no other scale
    assert {(row[1], *row[3:]) for row in rows[1:]} == {("1.0", "0.0", "1.0")}


def test_an_infinite_error_is_left_empty():
    table = simulate.rasch(300, 8, seed=3).responses.to_dense()
    table[:200, 5:], table[200:, :5] = np.nan, np.nan
    bank = bank_of(Responses.from_wide(table))
    assert np.isinf(bank.se[5:]).all()
    rows = list(csv.DictReader(io.StringIO(winsteps_text(ifile(bank)))))
    assert [row["ERROR"] == "" for row in rows] == [False] * 5 + [True] * 3
    assert all(row["MEASURE"] for row in rows)
    assert "inf" not in winsteps_text(ifile(bank), "fixed").casefold()


@pytest.fixture(scope="module")
def bank():
    data = si.simulate.rasch(400, 60, seed=1)
    return si.SpectralRasch().fit(data.responses).analyse(data.responses).to_bank()


@pytest.fixture(scope="module")
def ordered():
    answers = si.simulate.partial_credit(800, 12, categories=4, seed=1).responses
    return si.SpectralPartialCredit().fit(answers).analyse(answers).to_bank()


def test_nothing_is_left_and_answers_that_mean_nothing(bank, ordered):
    assert next_item(bank, dict.fromkeys(bank.items.tolist(), 1)).item is None
    with pytest.raises(BankError, match="no difficulty for 'nowhere'"):
        next_item(bank, {"nowhere": 1})
    with pytest.raises(OptionError, match="an answer is 2"):
        next_item(bank, {bank.items[0]: 2})
    with pytest.raises(OptionError, match="an answer is 4; it is one of 0, 1, 2, 3"):
        next_item(ordered, {ordered.items[0]: 4})
    for population in ((0, 0), (0, -1), (np.nan, 1), (0, np.inf)):
        with pytest.raises(OptionError, match="standard deviation above zero"):
            next_item(bank, {}, population=population)
    numbered = bank_of(simulate.rasch(200, 5, seed=1).responses)
    assert json.loads(json.dumps(next_item(numbered, {}).item)) in range(5)


def test_the_items_for_other_programs(bank, ordered):
    rows = json.loads(adaptive_text(bank, "jscat"))
    assert rows[0]["difficulty"] == pytest.approx(bank.difficulty[0])
    assert set(rows[0]) == {"id", "difficulty", "discrimination", "guessing", "slipping"}
    head, first, *_ = adaptive_text(bank, "mirtcat").splitlines()
    assert head == "item,a1,d,g,u"
    assert float(first.split(",")[2]) == pytest.approx(-bank.difficulty[0])
    assert adaptive_text(bank, "adaptivetesting").splitlines()[0] == "ids,a,b,c,d"
    for program in ("catsim", "adaptivetesting", "jscat"):
        with pytest.raises(BankError, match=f"{program} knows right and wrong answers only; 0, 1, .* several thresh"):
            adaptive_text(ordered, program)
    head, first, *_ = adaptive_text(ordered, "mirtcat").splitlines()
    assert head == "item,itemtype,a1,ak0,ak1,ak2,ak3,d0,d1,d2,d3"
    assert [float(d) for d in first.split(",")[-3:]] == pytest.approx(-np.cumsum(ordered.calibration.thresholds[:3]))


@pytest.mark.parametrize(("kind", "given"), [("bank", (1, 0, 1)), ("ordered", (2, 3, 1))])
def test_the_next_item_is_where_the_answer_varies_most_by_enumeration(kind, given, request):
    bank = request.getfixturevalue(kind)
    made, answers = bank.calibration, dict(zip(bank.items[[3, 7, 10]].tolist(), given, strict=True))
    found = next_item(bank, answers, population=(0.2, 1.1))
    theta = np.linspace(-6, 6, 4001)
    log = -((theta - 0.2) ** 2) / (2 * 1.1**2)
    for item, value in answers.items():
        log += np.log(made.category_probability(theta, item)[:, value])
    weight = np.exp(log - log.max())
    mean = np.sum(weight * theta) / weight.sum()
    assert found.ability == pytest.approx(mean, abs=1e-3)
    assert found.se == pytest.approx(np.sqrt(np.sum(weight * (theta - mean) ** 2) / weight.sum()), abs=1e-3)
    variance = {}
    for item in set(bank.items.tolist()) - set(answers):
        p = made.category_probability([found.ability], item)[0]
        k = np.arange(len(p))
        variance[item] = p @ k**2 - (p @ k) ** 2
    assert found.item == max(variance, key=lambda item: variance[item])


def test_items_on_another_scale_are_not_asked():
    rng = np.random.default_rng(3)
    table = np.full((500, 10), np.nan)
    table[:300, :6], table[300:, 6:] = rng.random((300, 6)) < 0.6, rng.random((200, 4)) < 0.4
    answers = si.Responses.from_wide(table)
    bank = si.SpectralRasch().fit(answers).analyse(answers).to_bank()
    first = next_item(bank, {})
    assert first.item in range(6)
    assert [finding.code for finding in first.findings] == ["several_scales"]
    assert next_item(bank, dict.fromkeys(range(6), 1)).item is None
    assert next_item(bank, {8: 1}).item in (6, 7, 9)
    both = next_item(bank, {7: 1, 8: 0, 0: 1})
    assert "Answers to 0 do not count" in both.findings[0].sentence
    assert both.ability == next_item(bank, {7: 1, 8: 0}).ability
