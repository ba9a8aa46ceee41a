"""Means of groups: the numbers of the persons table, and the population behind them."""

from __future__ import annotations

import numpy as np
import pytest

from spectral_irt import SpectralRasch
from spectral_irt.errors import OptionError
from spectral_irt.inference.groups.grouping import NO_LABEL


def drawn(theta, beta, rng):
    return (rng.random((len(theta), len(beta))) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)


@pytest.fixture(scope="module")
def two_groups():
    rng = np.random.default_rng(3)
    group = np.repeat(["low", "high"], [1200, 800])
    theta = np.where(group == "low", rng.normal(-0.5, 0.8, 2000), rng.normal(1.5, 1.2, 2000))
    table = drawn(theta, np.linspace(-1.5, 1.5, 8), rng)
    return group, theta, SpectralRasch().fit(table).analyse(table)


def test_observed_means_are_those_of_the_persons(two_groups):
    group, _, study = two_groups
    found = study.group_means(group.tolist())
    assert found["grouping"].to_list() == ["group", "group"]
    assert found["group"].to_list() == ["high", "low"]
    ability = study.persons()["ability"].to_numpy()
    for label, n, mean, se, sd in found.select("group", "n", "mean", "se", "sd").iter_rows():
        theirs = ability[group == label]
        assert n == len(theirs)
        assert (mean, sd, se) == pytest.approx((theirs.mean(), theirs.std(ddof=1), theirs.std(ddof=1) / np.sqrt(n)))


def test_the_population_is_without_errors_of_measurement(two_groups):
    """On eight items measures are pulled in and spread out; the population is within three standard errors."""
    group, theta, study = two_groups
    shift = -study.calibration.difficulty.mean()
    for label, mean, se, sd in (
        study.group_means(group.tolist()).select("group", "latent_mean", "latent_se", "latent_sd").iter_rows()
    ):
        own = theta[group == label]
        n = len(own)
        assert abs(mean + shift - own.mean()) < 3 * se
        assert own.std() / np.sqrt(n) < se < 1.5 * own.std() / np.sqrt(n)
        assert abs(sd - own.std()) < 3 * 1.5 * own.std() / np.sqrt(2 * n)
    observed = study.group_means(group.tolist())
    assert (observed["sd"] > observed["latent_sd"]).all()


@pytest.mark.slow
def test_the_errors_of_the_means_are_right():
    """Standard errors of both means against 100 samples; the ratio of two standard deviations has an error of 7%."""
    beta, found = np.linspace(-1.5, 1.5, 10), []
    from spectral_irt.data import Responses
    from spectral_irt.inference.groups.grouping import group_columns
    from spectral_irt.persons import abilities

    for seed in range(100):
        rng = np.random.default_rng([8, seed])
        answers = Responses.from_wide(drawn(rng.normal(0.4, 1, 150), beta, rng))
        row = group_columns(answers, beta, abilities(answers, beta), ["a"] * 150, "g")
        found.append([row[name][0] for name in ("mean", "se", "latent_mean", "latent_se", "latent_sd")])
    mean, se, latent, latent_se, sd = np.array(found).T
    assert se.mean() / mean.std() == pytest.approx(1, abs=0.21)
    assert latent_se.mean() / latent.std() == pytest.approx(1, abs=0.21)
    assert abs(latent.mean() - 0.4) < 3 * latent.std() / np.sqrt(100) + 0.01
    assert sd.mean() == pytest.approx(1, abs=0.03)


def test_small_groups_and_people_without_a_label():
    rng = np.random.default_rng(0)
    table = drawn(rng.normal(size=60), np.linspace(-1, 1, 10), rng)
    table[5] = np.nan  # has no ability, and counts nowhere
    study = SpectralRasch().fit(table).analyse(table)
    labels = ["one", *["many"] * 40, *[None] * 10, *[""] * 9]
    found = study.group_means({"class": labels})
    assert found["grouping"].unique().to_list() == ["class"]
    assert found["group"].to_list() == ["many", "one", NO_LABEL]
    assert found["n"].to_list() == [39, 1, 19]
    alone = found.row(1, named=True)
    assert alone["mean"] == study.persons()["ability"][0]
    assert np.isnan([alone[name] for name in ("se", "sd", "latent_mean", "latent_se", "latent_sd")]).all()
    scaled = study.rescale(100, 15).group_means({"class": labels})
    scale = study.rescale(100, 15).calibration.scale
    np.testing.assert_allclose(scaled["measure_mean"], scale.mean + scale.unit * found["mean"].to_numpy())
    np.testing.assert_allclose(scaled["measure_se"], scale.unit * found["se"].to_numpy())
    with pytest.raises(OptionError, match="3 labels"):
        study.group_means(["a", "b", "c"])
    by_person = study.group_means(dict(enumerate(labels)))
    assert by_person["n"].to_list() == [39, 1, 19]


def test_people_count_by_their_weights() -> None:
    """One stratum drawn ten times too often: weighted mean, sd and reliability are those of a sample without that."""
    rng = np.random.default_rng(31)
    beta = rng.normal(size=15)
    often = np.repeat([True, False], [2000, 200])
    theta = np.where(often, rng.normal(-1, 0.8, 2200), rng.normal(1, 0.8, 2200))
    x = (rng.random((2200, 15)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    weights = np.where(often, 0.1, 1.0)
    study = SpectralRasch().fit(x, weights=weights).analyse(x)
    found = study.reliability()
    thinned = np.concatenate([np.arange(0, 2000, 10), np.arange(2000, 2200)])
    even = SpectralRasch().fit(x[thinned]).analyse(x[thinned]).reliability()
    assert even.population_mean is not None
    for mine, other, allowed in (
        (found.population_mean, -beta.mean(), 0.15),
        (found.population_sd, np.sqrt(0.64 + 1), 0.12),
        (found.persons_with_extremes.mean, -beta.mean(), 0.15),
        (found.eap_reliability, even.eap_reliability, 0.03),
        (found.persons.reliability, even.persons.reliability, 0.04),
        (found.kr20, even.kr20, 0.03),
    ):
        assert mine == pytest.approx(other, abs=allowed)
    record = study.record()["persons"]
    assert record["mean"] == pytest.approx(found.persons_with_extremes.mean)
    assert record["sd"] == pytest.approx(found.persons_with_extremes.sd)
    assert f"mean ability {found.persons_with_extremes.mean:.2f}" in " ".join(study.summary().split())
    groups = study.group_means(np.arange(2200) % 2)
    assert np.abs(groups["latent_mean"] + beta.mean()).max() < 0.3
    assert (groups["latent_sd"] < groups["sd"]).all()
    # other people than those of the fit have no weights
    assert SpectralRasch().fit(x, weights=weights).analyse(x[:500]).weights is None
