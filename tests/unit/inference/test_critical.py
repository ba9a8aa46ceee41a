"""Critical values from draws given the score: each draw against the statistics of a data set, p-values against
counting, the level by simulation."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.analysis.cache import columns_of
from spectral_irt.conditional.draw import draws_given_score
from spectral_irt.data import Responses
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit import critical
from spectral_irt.inference.fit.critical import _FitTable, against_draws, critical_fit
from spectral_irt.inference.fit.mean_squares import sums_given_score, used_by_parameters
from spectral_irt.inference.fit.person_fit import misfit_against_draws
from spectral_irt.inference.groups.martin_loef import _p_by_draws, _ScoreTables, _statistic, martin_loef
from spectral_irt.inference.items.classical import item_analysis
from spectral_irt.persons import abilities
from spectral_irt.persons.residuals import ERRATIC, person_mean_squares

DRAWS = 7


def data_sets(responses, thresholds, draws=DRAWS):
    """The observed responses, and those of each draw, as responses with the same categories."""
    person, item, x = responses.answers()
    tables = np.zeros((draws, responses.n_persons, responses.n_items), dtype=int)
    for block in draws_given_score(responses, thresholds, draws=range(draws)):
        tables[:, block.persons[:, None], block.items] = block.categories
    labels = {"persons": responses.persons, "items": responses.items, "thresholds": responses.thresholds}
    return [Responses.from_codes(person, item, y, **labels) for y in (x, *tables[:, person, item])]


def awkward(ordered):
    """Missing responses, extreme scores, a person with one response; items of one to three thresholds."""
    rng = np.random.default_rng(5)
    steps = [3, 1, 2, 3, 2] if ordered else [1] * 5
    x = np.array([[rng.integers(0, k + 1) for k in steps] for _ in range(40)], dtype=float)
    x[:3] = 0
    x[3:5] = steps
    x[rng.random(x.shape) < 0.2] = np.nan
    x[5] = np.nan
    x[5, 0] = 1
    responses = Responses.from_wide(x, ordered=ordered)
    return responses, np.concatenate([np.sort(rng.normal(size=k)) for k in steps])


@pytest.mark.parametrize("scale", [None, [0, 1, 2, 0, 2]], ids=["partial credit", "rating scales"])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("cells", [critical.CELLS, 50])
def test_each_draw_has_the_statistics_of_its_data_set(ordered, scale, cells, monkeypatch):
    monkeypatch.setattr(critical, "CELLS", cells)
    responses, beta = awkward(ordered)
    scale = None if scale is None or not ordered else np.array(scale)
    theta = abilities(responses, beta).ability
    table = _FitTable.of(responses.in_one_block(), beta, theta, (responses.scores, responses.max_scores))
    found = table.statistics(DRAWS, 0, scale, None)
    infits, outfits, item_rests, offs = [], [], [], []
    for k, data in enumerate(data_sets(responses, beta)):
        sums = sums_given_score(data, beta)
        used = used_by_parameters(sums, scale)
        np.testing.assert_allclose(found.infit[k], (sums.square - used.infit) / sums.v, atol=1e-9)
        np.testing.assert_allclose(found.outfit[k], (sums.z2 - used.outfit) / sums.n, atol=1e-9)
        item_rests.append(item_analysis(data, beta).item_rest)
        offs.append(sums.off if scale is None else sums.off.sum(axis=1, keepdims=True))
        fit = person_mean_squares(data, beta, theta)
        infits.append(fit.infit)
        outfits.append(fit.outfit)
        z = np.fmax(fit.infit_z, fit.outfit_z)
        assert found.misfitting.number[k] == np.sum(z > ERRATIC)
        assert found.misfitting.excess[k] == pytest.approx(np.sum(z[z > ERRATIC] - ERRATIC))
    np.testing.assert_allclose(found.observed[2], item_rests[0], atol=1e-9)
    for item, (values, off) in enumerate(zip(np.transpose(item_rests), np.swapaxes(offs, 0, 1), strict=True)):
        drawn = np.where(np.isnan(values[1:]), np.nanmean(values[1:]), values[1:])
        design = np.column_stack([np.ones(DRAWS), off[1:]])
        slopes = np.linalg.lstsq(design, drawn, rcond=1e-10)[0][1:]
        np.testing.assert_allclose(found.item_rest[:, item], values - off @ slopes, atol=1e-9)
    known = np.isfinite(infits[0])
    for as_large, values in zip(found.as_large, (infits, outfits), strict=True):
        counted = 1 + np.sum(np.array(values)[1:] >= values[0] * (1 - 1e-9), axis=0)
        np.testing.assert_array_equal(as_large[known], counted[known])


def test_as_many_misfits_that_exceed_the_limit_by_more_count_as_more():
    number = np.array([5.0] + [5.0] * 60 + [6.0] * 20 + [2.0] * 119)
    excess = np.array([1.0] + [0.5] * 40 + [1.5] * 20 + [0.1] * 20 + [9.0] * 119)
    assert misfit_against_draws(number, excess, 150).p == (1 + 20 + 20) / 200
    assert misfit_against_draws(number, excess, 20) is None


def test_ranks():
    drawn = np.tile(np.arange(1.0, 200.0), (4, 1)).T  # 1 to 199: the 5% limits are the values of rank 5 and 195
    drawn[:, 2] = np.nan
    drawn[:, 3] = 0.7  # all alike: no p
    found = against_draws(np.vstack([[100.0, 196.0, 1.0, 0.7], drawn]))
    np.testing.assert_allclose(found.low[:2], 5)
    np.testing.assert_allclose(found.high[:2], 195)
    np.testing.assert_allclose(found.p[:2], [1.0, 2 * 5 / 200])
    assert np.isnan([each[2:] for each in found]).all()


def test_family_wise_p_is_the_share_of_data_sets_with_as_large_a_deviation_of_any_item():
    rng = np.random.default_rng(3)
    statistics = rng.gamma(2, size=(300, 6))
    z = np.abs(statistics - statistics.mean(axis=0)) / statistics.std(axis=0)
    wanted = [np.mean([one.max() >= value for one in [np.array([value]), *z[1:]]]) for value in z[0]]
    np.testing.assert_allclose(against_draws(statistics).p_family, wanted)


def test_items_and_persons_that_misfit_are_found():
    slopes = np.ones(8)
    slopes[2], slopes[5] = 4.0, 0.1
    data = si.simulate.rasch(400, 8, slopes=slopes, seed=2)
    x = data.responses.to_dense()
    x[0] = np.where(data.difficulty > np.median(data.difficulty), 1, 0)  # the hard half right, the easy half wrong
    responses = Responses.from_wide(x)
    study = si.SpectralRasch().fit(responses).analyse(responses)
    table = columns_of(study.item_fit, critical=199)
    assert (table["misfit"][2], table["misfit"][5]) == ("overfit", "underfit")
    np.testing.assert_array_equal(table["misfit_p"], table["infit_conditional_p_family"])
    persons = study._critical(199).persons
    assert persons["infit_p"][0] == 1 / 200
    assert np.isnan(persons["infit_p"][responses.scores == 8]).all()
    written = study.tables(study.parts(writing=True, fit=True, critical=199))["persons"]
    assert list(written)[-2:] == ["infit_p", "outfit_p"]


def test_items_without_an_estimate_and_few_people():
    x = si.simulate.rasch(60, 6, seed=1).responses.to_dense()
    x[:, 3] = 1  # everybody right
    responses = Responses.from_wide(x)
    study = si.SpectralRasch().fit(responses).analyse(responses)
    table = columns_of(study.item_fit, critical=199)
    assert all(np.isnan(table[name][3]) for name in table if name.endswith(("_low", "_p", "_p_family")))
    assert study._critical(199).misfit is None  # too few persons to count


@pytest.mark.parametrize(("options", "complaint"), [({"draws": 198}, "takes 199"), ({"sample": 1}, "at least 2")])
def test_too_few_draws_or_people(options, complaint):
    data = si.simulate.rasch(30, 4, seed=1)
    theta = abilities(data.responses, data.difficulty).ability
    with pytest.raises(OptionError, match=complaint):
        critical_fit(data.responses, data.difficulty, theta, **{"draws": 199, **options})


def test_adaptive_designs_are_refused():
    data = si.simulate.rasch(80, 6, seed=1).responses
    study = si.MarginalRasch().fit(data, design="adaptive").analyse(data)
    with pytest.raises(OptionError, match="chose the items"):
        study.item_fit(critical=199)


def test_pairs_have_their_own_p_and_critical_value():
    data = si.simulate.rasch(150, 6, seed=3).responses
    found = si.SpectralRasch().fit(data).analyse(data).local_dependence(draws=499)
    columns = found.columns
    assert np.all(columns["p"] <= columns["p_adjusted"])
    significant = columns["q3"] >= columns["q3_critical"]
    np.testing.assert_array_equal(significant, columns["z"] >= found.test.z_critical)


def test_martin_loef_of_a_draw_is_nearly_that_of_a_new_fit():
    """One Newton step instead of three fits."""
    data = si.simulate.rasch(120, 6, seed=4).responses
    beta = si.ConditionalRasch(se="none").fit(data).thresholds_
    sets = [np.array([0, 1, 2]), np.array([3, 4, 5])]
    whole = _ScoreTables.of(data, beta, np.arange(6))
    tables = [_ScoreTables.of(data, beta, items) for items in sets]
    for one in data_sets(data, beta, 5):
        wanted = martin_loef(one, [0, 0, 0, 1, 1, 1]).statistic
        assert _statistic(one.to_dense().astype(np.uint8), one.scores, whole, tables) == pytest.approx(wanted, rel=0.1)
    assert _p_by_draws(data, beta, sets, 199, 1) == martin_loef(data, [0, 0, 0, 1, 1, 1], draws=199, seed=1).p


@pytest.mark.slow
def test_martin_loef_keeps_its_level_by_draws():
    """100 data sets of 100 x 8, where chi-squared rejects none: 5%, with a standard error of 2.2%, of which three are
    allowed upwards."""
    p = [martin_loef(si.simulate.rasch(100, 8, seed=900 + k).responses, draws=199) for k in range(100)]
    assert 0.01 <= np.mean([each.p < 0.05 for each in p]) <= 0.115


@pytest.mark.slow
def test_good_items_are_flagged_at_the_level():
    """8 tests of 40 items, 250 people, 30% missing: 320 items, of which 5% should be outside."""
    outside = {"infit_conditional": [], "outfit_conditional": [], "item_rest": []}
    for seed in range(8):
        responses = si.simulate.rasch(250, 40, design="sampled", p=0.7, seed=500 + seed).responses
        table = columns_of(si.SpectralRasch(se="none").fit(responses).analyse(responses).item_fit, critical=199)
        for name, flags in outside.items():
            flags.append(table[f"{name}_p"] < 0.05)
    for flags in outside.values():
        assert 0.03 <= np.mean(np.concatenate(flags)) <= 0.075
