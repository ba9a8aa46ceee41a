"""Files for other programs: names, codes, columns, and readers that know nothing of us."""

from __future__ import annotations

import csv
import io

import numpy as np
import polars as pl
import pytest

from spectral_irt import SpectralRasch, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.bank import Bank, anchored_fit
from spectral_irt.bank.export import CODES, LAYOUT, adaptive_text, ifile, pfile, winsteps_text
from spectral_irt.calibration import Scale
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError

NAMES = [
    *("ENTRY", "MEASURE", "STATUS", "COUNT", "SCORE", "ERROR", "IN.MSQ", "IN.ZSTD", "OUT.MSQ", "OUT.ZSTD"),
    *("DISPLACE", "PTME", "WEIGHT", "OBSMATCH", "EXPMATCH", "PTME-E", "RMSR", "WMLE"),
]
# Widths of Winsteps' own files (r2Winsteps reads them with these).
WIDTHS = [1, 5, 8, 3, 8, 9, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 8, 2, 2, 2]


@pytest.fixture(scope="module")
def data() -> Responses:
    table = simulate.rasch(200, 6, seed=1).responses.to_dense()
    table[:, 4], table[:, 5] = 1, np.nan
    return Responses.from_wide(table, items=['q"1', "q,2", "q\n3", "q4", "easy", "unseen"])


def read_fixed(text: str, widths: list[int]) -> list[list[str]]:
    limits = np.cumsum([0, *widths])
    lines = text.splitlines()[2:]
    return [[line[a:b].strip() for a, b in zip(limits, [*limits[1:], None], strict=True)] for line in lines]


def test_items(data: Responses) -> None:
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


def test_fixed_columns_stand_where_winsteps_has_them(data: Responses) -> None:
    columns = ifile(SpectralRasch().fit(data))
    text = winsteps_text(columns, "fixed", title="ITEM file")
    lines = text.splitlines()
    assert lines[0] == "; ITEM file"
    assert lines[1].startswith(";")
    assert lines[1].split()[:6] == [";ENTRY", "MEASURE", "ST", "COUNT", "SCORE", "ERROR"]
    rows = read_fixed(text, WIDTHS)
    assert [row[0] for row in rows] == ["", "", "", "", ";", ";"]  # a comment for items without a proper measure
    assert [int(row[1]) for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [float(row[2]) for row in rows[:5]] == pytest.approx(columns["MEASURE"][:5], abs=0.005)
    assert [float(row[4]) for row in rows] == columns["COUNT"].tolist()
    assert [row[-1] for row in rows] == ['q"1', "q,2", "q 3", "q4", "easy", "unseen"]


def test_columns_that_overflow_are_widened() -> None:
    data = simulate.rasch(50, 3, seed=2).responses
    columns = ifile(SpectralRasch().fit(data), scale=Scale(5_000_000, 1_000_000))
    row = winsteps_text(columns, "fixed").splitlines()[2].split()
    assert float(row[1]) == pytest.approx(columns["MEASURE"][0], abs=0.01)
    assert row[2] == "1"


def test_tabs_and_titles(data: Responses) -> None:
    text = winsteps_text(ifile(SpectralRasch().fit(data)), "tab")
    assert text.splitlines()[0].split("\t")[:3] == NAMES[:3]
    assert winsteps_text(ifile(SpectralRasch().fit(data)), "fixed", title="two\nlines").startswith("; two lines\n")
    with pytest.raises(OptionError, match="'csv', 'tab', 'fixed'"):
        winsteps_text({}, "xls")


def test_scale_and_displacement(data: Responses) -> None:
    fit = anchored_fit(data, {"q4": 1.0, "q,2": 0.5, "easy": -2.0})
    columns = ifile(fit, scale=Scale(500, 100))
    assert columns["STATUS"].tolist() == [1, 2, 1, 2, 2, -2]
    assert columns["MEASURE"][3] == 600
    assert columns["DISPLACE"][3] == pytest.approx(100 * fit.displacement_[3])
    bank = Bank.from_fit(fit, data).rescale(mean=50, unit=10)
    assert ifile(bank)["MEASURE"][3] == 60
    assert ifile(bank)["STATUS"].tolist() == [1, 2, 1, 2, 2, -2]


def test_persons(data: Responses) -> None:
    persons = {
        "person": np.array(["a", "b", "c", "d"], dtype=object),
        "n": np.array([5, 5, 5, 0]),
        "score": np.array([5, 0, 3, 0]),
        "ability": np.array([3.0, -3.0, 0.5, np.nan]),
        "se": np.array([1.5, 1.5, 0.9, np.nan]),
        "infit": np.array([np.nan, np.nan, 1.1, np.nan]),
        "extreme": np.array([True, True, False, False]),
    }
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


def test_catsim(data: Responses) -> None:
    bank = Bank.from_fit(SpectralRasch().fit(data), data).rescale(mean=500, sd=100)
    rows = list(csv.reader(io.StringIO(adaptive_text(bank, "catsim"))))
    assert rows[0] == ["item", "a", "b", "c", "d"]
    assert [row[0] for row in rows[1:]] == data.items.tolist()[:5]
    assert [float(row[2]) for row in rows[1:]] == bank.difficulty[:5].tolist()  # logits: catsim has no other scale
    assert {(row[1], *row[3:]) for row in rows[1:]} == {("1.0", "0.0", "1.0")}


def test_the_layout_is_the_one_of_the_manual() -> None:
    assert [1, *(width for width, *_ in LAYOUT.values()), 2, 2, 2] == WIDTHS


def test_an_infinite_error_is_left_empty() -> None:
    """Items that share no people with the others have a difficulty within their group and no error that says more."""
    table = simulate.rasch(300, 8, seed=3).responses.to_dense()
    table[:200, 5:], table[200:, :5] = np.nan, np.nan
    responses = Responses.from_wide(table)
    bank = Bank.from_fit(SpectralRasch().fit(responses), responses)
    assert np.isinf(bank.se[5:]).all()
    rows = list(csv.DictReader(io.StringIO(winsteps_text(ifile(bank)))))
    assert [row["ERROR"] == "" for row in rows] == [False] * 5 + [True] * 3
    assert all(row["MEASURE"] for row in rows)
    assert "inf" not in winsteps_text(ifile(bank), "fixed").casefold()
