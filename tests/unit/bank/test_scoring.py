"""Scoring with a bank: its own population, its own scales, and only what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from changed_bank import changed
from spectral_irt import Analysis, SpectralRasch, simulate
from spectral_irt.bank import Bank
from spectral_irt.bank.bank import Population
from spectral_irt.bank.score import score
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError

EIGHT = np.linspace(-1.5, 1.5, 8)
ONE = Responses.from_wide([[1, 1, 1, 1, 1, 1, 0, 0]])  # 6 of 8


@pytest.fixture(scope="module")
def bank() -> Bank:
    data = simulate.rasch(1000, 8, difficulty=EIGHT, seed=1).responses
    return Bank.from_fit(SpectralRasch().fit(data), data)


def test_the_verb_gives_a_table_of_people(bank: Bank) -> None:
    table = bank.score(ONE)
    assert table.columns[:5] == ["person", "n", "score", "ability", "se"]
    assert table["n"].to_list() == [8]
    assert bank.score(np.array([[1.0, 0, 1, 0, 1, 0, 1, 0]]))["score"].to_list() == [4]
    scaled = bank.rescale(mean=500, unit=100).score(ONE)
    assert scaled["measure"][0] == pytest.approx(500 + 100 * table["ability"][0])
    assert np.array_equal(bank.item_columns()["n_correct"], bank.calibration.score)


@pytest.mark.slow
def test_one_person_is_scored_under_the_population_of_the_bank(bank: Bank, tmp_path: Path) -> None:
    assert bank.population is not None
    assert bank.population.mean == pytest.approx(0, abs=0.15)  # 1,000 people: standard error 0.04
    assert bank.population.sd == pytest.approx(1, abs=0.15)
    table = Bank.load(bank.save(tmp_path / "bank")).score(ONE, "eap")
    ability, se = table["ability"][0], table["se"][0]
    assert 0.6 < se < 0.8  # sd 1, and eight items
    assert 0.4 < ability < 1.0  # drawn from 1.3 towards the mean
    assert bank.score(ONE, "eap", population=(2.0, 0.5))["ability"][0] > 1.3
    narrow = bank.score(ONE, "eap", population=(0.0, 0.1))
    assert abs(narrow["ability"][0]) < 0.1
    with pytest.raises(OptionError, match="which has no population"):
        bank.score(ONE, population=(0, 1))
    with pytest.raises(OptionError, match="a standard deviation above zero"):
        bank.score(ONE, "eap", population=(0, 0))


@pytest.mark.slow
def test_without_a_population_few_people_are_an_error_and_many_are_enough(bank: Bank) -> None:
    old = replace(bank, population=None)
    with pytest.raises(OptionError, match="from 1 person it cannot be estimated"):
        old.score(ONE, "eap")
    with pytest.raises(OptionError, match="1 person is too few to estimate the population"):
        Analysis(old.calibration, ONE).persons("eap")
    with pytest.raises(OptionError, match="from 40 people it cannot be estimated"):
        old.score(np.repeat(ONE.to_dense(), 40, axis=0), "eap")  # they do not differ
    many = simulate.rasch(500, 8, difficulty=EIGHT, seed=2).responses
    found = score(old, many, "eap")
    assert found.population is not None
    assert found.population.persons == 500
    assert found.population.sd == pytest.approx(1, abs=0.2)
    assert old.score(ONE, "eap", population=(0, 1))["se"][0] > 0.5
    tiny = Responses.from_wide((np.random.default_rng(0).random((20, 8)) < 0.5).astype(float))
    assert Bank.from_fit(SpectralRasch().fit(tiny), tiny).population is None


@pytest.mark.slow
def test_plausible_values_come_from_the_population_of_the_bank(bank: Bank) -> None:
    assert bank.population is not None
    people = np.repeat(ONE.to_dense(), 2000, axis=0)
    table = bank.score(people, "pv", draws=2, seed=4)
    assert [name for name in table.columns if name.startswith("pv")] == ["pv1", "pv2"]
    eap = bank.score(ONE, "eap")
    drawn = np.asarray(table["pv1"])
    assert abs(drawn.mean() - eap["ability"][0]) < 4 * eap["se"][0] / np.sqrt(2000)
    assert abs(drawn.std() / eap["se"][0] - 1) < 4 / np.sqrt(4000)
    np.testing.assert_array_equal(drawn, bank.score(people, "pv", seed=4)["pv1"])
    assert abs(bank.score(people, "pv", population=(5.0, 0.01))["pv1"].mean() - 5) < 0.01
    with pytest.raises(OptionError, match="'pv'"):
        bank.score(ONE, "vp")


def test_a_link_takes_the_population_along(bank: Bank) -> None:
    moved = changed(bank, thresholds=bank.difficulty - 2)
    assert bank.population is not None
    linked = bank.link(moved).apply(replace(moved, population=Population(-2.0, 1.5, 10)))
    assert linked.population is not None
    assert (linked.population.mean, linked.population.sd) == (pytest.approx(0), pytest.approx(1.5))


# --------------------------------------------------------------------------------- several scales


@pytest.fixture(scope="module")
def two() -> Bank:
    """Items 0 to 5 and 6 to 9 have no person in common; 10 is everybody's of the first."""
    rng = np.random.default_rng(3)
    table = np.full((500, 11), np.nan)
    table[:300, :6] = rng.random((300, 6)) < 0.6
    table[300:, 6:10] = rng.random((200, 4)) < 0.4
    table[:300, 10] = 1
    data = Responses.from_wide(table)
    return Bank.from_fit(SpectralRasch().fit(data), data)


def test_people_on_scales_that_nothing_links_are_told_apart(two: Bank, tmp_path: Path) -> None:
    assert two.evidence.link_group.tolist() == [0] * 6 + [1] * 4 + [0]
    assert two.status.tolist() == ["ok"] * 6 + ["unlinked"] * 4 + ["all right"]
    assert Bank.load(two.save(tmp_path / "bank")).evidence.link_group.tolist() == two.evidence.link_group.tolist()
    new = np.full((5, 11), np.nan)
    new[0, :6] = [1, 1, 1, 0, 0, 0]
    new[1, 6:10] = [1, 1, 0, 0]
    new[2, [0, 1, 2, 3, 6]] = [1, 0, 1, 0, 1]  # one answer on the other scale, which does not count
    new[3, :6] = [1, 1, 1, 0, 0, 0]
    new[3, 10] = 0  # the item that everybody got right, which does not count
    found = score(two, new)
    assert found.persons["scale"].tolist() == ["1", "2", "1", "1", ""]
    assert found.persons["n"].tolist() == [6, 4, 4, 6, 0]
    assert found.persons["ability"][3] == found.persons["ability"][0]
    codes = {finding.code: finding for finding in found.findings}
    assert "3 on scale 1, 1 on scale 2" in codes["several_scales"].sentence
    assert "1 person has answered items on more than one scale: 2" in codes["answers_on_several_scales"].sentence
    assert codes["prior_only_items"].items == (10,)
    assert found.reliability is None
    with pytest.raises(OptionError, match="several scales that no answers link"):
        two.score(new, "eap")
    assert two.population is None
    drawn = two.score(new, "pv", population=(0.0, 1.0))
    assert np.isfinite(drawn["pv5"].to_numpy()).all()
    assert drawn["scale"].to_list() == ["1", "2", "1", "1", ""]
