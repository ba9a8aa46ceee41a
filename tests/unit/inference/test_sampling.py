"""Weights and clusters of persons, in the errors of items and wherever groups are compared.

Persons of whole-number weight w, in clusters, are the same as w copies of each in the same clusters: that holds for
every estimate, error, statistic and p-value that allows for both.
"""

from itertools import product

import numpy as np
import pytest

import spectral_irt as si
from drawn import drawn
from spectral_irt.calibration import t_quantile
from spectral_irt.errors import DesignError
from spectral_irt.inference.groups import dif_details, score_test
from spectral_irt.inference.groups.calibrations import calibrate_groups, locations_like
from spectral_irt.inference.groups.cluster_errors import cluster_covariance
from spectral_irt.inference.groups.grouping import Split, by_label
from spectral_irt.inference.groups.model_tests import rao_scott
from spectral_irt.inference.groups.sampling import SampledPersons, Sampling, degrees_of_freedom, sandwiches
from spectral_irt.inference.results import two_sided, wald_tail


def thresholds_passed(x, most):
    return np.concatenate([x[i] >= np.arange(1, k + 1) for i, k in enumerate(most)]) * 1.0


def scores_and_information(X, thresholds, weights):
    """w (1{X >= k} - P(X >= k | s)) of every person, and the sum of w Cov, from all answers of the same score to the
    same items."""
    most = [len(one) for one in thresholds]
    owner = np.repeat(np.arange(len(most)), most)
    beta = np.concatenate(thresholds)
    scores, information = np.zeros((len(X), len(beta))), np.zeros((len(beta), len(beta)))
    for person, (row, w) in enumerate(zip(X, weights, strict=True)):
        seen = ~np.isnan(row)
        total = np.nansum(row)
        every = product(*(range(k + 1) if there else (0,) for k, there in zip(most, seen, strict=True)))
        same = np.array([thresholds_passed(answers, most) for answers in every if sum(answers) == total])
        p = np.exp(-same @ beta)
        p /= p.sum()
        mean = p @ same
        inside = seen[owner]
        scores[person] = w * np.where(inside, thresholds_passed(np.nan_to_num(row), most) - mean, 0.0)
        information += w * ((same * p[:, None]).T @ same - np.outer(mean, mean))
    return scores, information


def centered_inverse(information, most, design=None):
    A = np.eye(len(information)) if design is None else design
    inverse = A @ np.linalg.pinv(A.T @ information @ A, rcond=1e-10, hermitian=True) @ A.T
    mean = np.concatenate([np.full(k, 1 / (k * len(most))) for k in most])
    return inverse - mean @ inverse


def weighted_sandwich(X, thresholds, cluster, weights, design=None):
    scores, information = scores_and_information(X, thresholds, weights)
    inverse = centered_inverse(information, [len(one) for one in thresholds], design)
    sums = np.array([scores[cluster == c].sum(axis=0) for c in np.unique(cluster)])
    n = len(sums)
    return n / (n - 1) * inverse @ sums.T @ sums @ inverse.T


@pytest.mark.parametrize("kind", ["right or wrong", "missing", "categories", "rating scale"])
def test_weighted_cluster_errors_against_a_loop(kind):
    rng = np.random.default_rng(4)
    room, weights = np.arange(160) // 10, rng.choice([0.2, 1.0, 5.0], 160)
    design = None
    if kind in ("right or wrong", "missing"):
        X = drawn(rng, rng.normal(size=(160, 1)) - np.linspace(-1, 1, 5))
        if kind == "missing":
            X[rng.random(X.shape) < 0.3] = np.nan
        fit = si.SpectralRasch(regularization=0).fit(X, weights=weights)
    elif kind == "categories":
        X = si.simulate.partial_credit(160, 4, categories=[2, 3, 4, 3], seed=6).responses.to_dense()
        fit = si.SpectralPartialCredit(regularization=0).fit(X, weights=weights)
    else:
        X = si.simulate.rating_scale(160, 4, categories=3, seed=6).responses.to_dense()
        fit = si.SpectralRatingScale().fit(X, weights=weights)
        design = np.concatenate([np.repeat(np.eye(4), 2, axis=0), np.tile([[1.0], [-1.0]], (4, 1))], axis=1)
    made = fit.analyse(X).clustered(room.tolist()).calibration
    thresholds = np.split(made.thresholds, made.layout.first[1:])
    expected = weighted_sandwich(X, thresholds, room, weights, design)
    np.testing.assert_allclose(made.threshold_se, np.sqrt(np.diag(expected)), rtol=1e-6)
    unweighted = weighted_sandwich(X, thresholds, room, np.ones(160), design)
    assert np.abs(made.threshold_se / np.sqrt(np.diag(unweighted)) - 1).max() > 0.1  # and the weights do matter


def whole_weights(seed=0, n_classes=24, size=12, n_items=8, ordered=False):
    """Answers of classes, whole weights, and the place of each copy of a person."""
    rng = np.random.default_rng(seed)
    room = np.repeat(np.arange(n_classes), size)
    harder = 0.5 * rng.normal(size=(n_classes, n_items))
    logit = rng.normal(size=(len(room), 1)) + 0.5 * rng.normal(size=n_classes)[room][:, None] - harder[room]
    if ordered:
        step = np.linspace(-1, 1, 2)
        p = np.exp(np.concatenate([np.zeros((*logit.shape, 1)), np.cumsum(logit[..., None] - step, axis=-1)], axis=-1))
        X = (rng.random(logit.shape)[..., None] > np.cumsum(p / p.sum(-1, keepdims=True), -1)[..., :-1]).sum(-1) * 1.0
    else:
        X = drawn(rng, logit - np.linspace(-1, 1, n_items))
    weights = rng.integers(1, 4, len(room))
    return X, room, weights, np.repeat(np.arange(len(room)), weights)


def both(estimator, ordered=False, seed=0, **how):
    """The clustered analyses of weighted persons, and of as many copies of each."""
    X, room, weights, copies = whole_weights(seed, ordered=ordered)
    weighted = estimator().fit(X, weights=weights, **how).analyse(X).clustered(room.tolist())
    copied = estimator().fit(X[copies], **how).analyse(X[copies]).clustered(room[copies].tolist())
    return weighted, copied, room, copies


@pytest.mark.parametrize(
    ("estimator", "ordered", "how"),
    [
        (si.MarginalRasch, False, {}),
        (si.MarginalPartialCredit, True, {}),
        (si.SpectralRasch, False, {"design": "adaptive"}),
    ],
    ids=["marginal", "marginal, ordered", "adaptive"],
)
def test_marginal_errors_of_weights_are_those_of_copies(estimator, ordered, how):
    weighted, copied, *_ = both(estimator, ordered, **how)
    np.testing.assert_allclose(weighted.calibration.threshold_se, copied.calibration.threshold_se, rtol=2e-3)
    assert weighted.calibration.provenance.se_df == pytest.approx(copied.calibration.provenance.se_df)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("across", [False, True], ids=["whole classes", "classes divided"])
def test_comparisons_of_weights_are_those_of_copies(ordered, across, monkeypatch):
    def halves(responses, difficulty):  # at a fixed score, as copies of people would move the median
        return Split(("less able half", "more able half"), (responses.scores > (7 if ordered else 4)).astype(int))

    for module in (dif_details, score_test):
        monkeypatch.setattr(module, "by_ability", halves)
    estimator = si.SpectralPartialCredit if ordered else si.SpectralRasch
    weighted, copied, room, copies = both(lambda: estimator(regularization=0), ordered)
    group = np.arange(len(room)) % 2 if across else room % 2
    one, other = weighted.dif(group.tolist()), copied.dif(group[copies].tolist())
    for name in ("contrast", "se", "p", "interaction", "interaction_se", "interaction_p", "df"):
        np.testing.assert_allclose(one.contrasts[name], other.contrasts[name], rtol=0.02, atol=2e-3, err_msg=name)
    assert one.test.p == pytest.approx(other.test.p, abs=2e-3)
    if ordered:
        np.testing.assert_allclose(one.contrasts["threshold_dif_p"], other.contrasts["threshold_dif_p"], atol=0.01)
    assert np.isnan(one.contrasts["mh_p"]).all()  # which does not allow for either
    for study, split in ((weighted, group), (copied, group[copies])):
        study.tests = [study.model_test(split.tolist()), study.quick_model_test(), study.hausman()]
    for one, other in zip(weighted.tests, copied.tests, strict=True):
        assert (one.p, one.df2) == pytest.approx((other.p, other.df2), rel=0.02, abs=5e-3)


def test_people_of_weights_are_those_of_copies():
    weighted, copied, room, copies = both(lambda: si.SpectralRasch(regularization=0))
    group = (room % 3).tolist()
    one, other = weighted.group_means(group), copied.group_means([group[k] for k in copies])
    for name in ("mean", "se", "latent_mean", "latent_se", "latent_sd", "clusters", "df"):
        np.testing.assert_allclose(one[name], other[name], rtol=2e-3, err_msg=name)
    assert weighted.abilities("eap").prior == pytest.approx(copied.abilities("eap").prior, abs=1e-3)
    given = np.arange(len(room)) % 2
    pv = weighted.plausible_values(1, given=given), copied.plausible_values(1, given=given[copies])
    assert pv[0].sd == pytest.approx(pv[1].sd, abs=2e-3)
    np.testing.assert_allclose(pv[0].mean[copies], pv[1].mean, atol=5e-3)
    classes = weighted.cuts([-0.5, 0.5]), copied.cuts([-0.5, 0.5])
    for name in ("share", "accuracy", "consistency"):
        np.testing.assert_allclose(classes[0][name], classes[1][name], atol=2e-3)
    np.testing.assert_allclose(weighted.scores()["percentile"], copied.scores()["percentile"], atol=1e-9)
    assert weighted.reliability().eap_reliability == pytest.approx(copied.reliability().eap_reliability, abs=1e-3)
    assert weighted.to_bank().population.sd == pytest.approx(copied.to_bank().population.sd, abs=2e-3)


@pytest.mark.parametrize("across", [False, True], ids=["whole classes", "classes divided"])
def test_errors_of_contrasts_against_a_loop(across):
    """V = f sum_c psi_c psi_c' with psi_c the difference of what a cluster adds to the thresholds of the two groups."""
    X, room, weights, _ = whole_weights(3, n_classes=12, n_items=5)
    group = np.arange(len(room)) % 2 if across else room % 2
    calibration = si.SpectralRasch(regularization=0).fit(X).calibration_
    responses = si.Responses.from_wide(X)
    sampling = Sampling(weights / weights.mean(), room)
    split = by_label(responses, group.tolist())
    found = calibrate_groups(responses, split, locations_like(calibration), sampling)
    psi = np.zeros((12, 5))
    for g, sign in ((0, -1), (1, 1)):
        mine = group == g
        scores, information = scores_and_information(X[mine], found.difficulty[g][:, None], weights[mine])
        inverse = centered_inverse(information, [1] * 5)
        n = len(np.unique(room[mine]))
        for person, c in enumerate(room[mine]):
            psi[c] += sign * np.sqrt(n / (n - 1)) * inverse @ scores[person]
    pair = found.combine(np.array([-1.0, 1.0]))
    np.testing.assert_allclose(pair.se, np.sqrt(np.diag(psi.T @ psi)), rtol=1e-5)
    assert (pair.df <= 11).all()


def test_errors_of_group_means_against_a_loop():
    X, room, weights, _ = whole_weights(5)
    study = si.SpectralRasch().fit(X, weights=weights).analyse(X).clustered(room.tolist())
    table = study.group_means((room % 2).tolist())
    ability = study.abilities("wle").ability
    for g in (0, 1):
        mine = room % 2 == g
        w, x, c = weights[mine], ability[mine], room[mine]
        mean = np.sum(w * x) / w.sum()
        sums = np.array([np.sum((w * (x - mean))[c == one]) for one in np.unique(c)])
        n = len(sums)
        assert table["se"][g] == pytest.approx(np.sqrt(n / (n - 1) * np.sum(sums**2)) / w.sum())
        assert table["clusters"][g] == n
    alone = si.SpectralRasch().fit(X).analyse(X).clustered(room.tolist()).group_means((room == 3).tolist())
    assert np.isnan(alone["se"][1])  # a single class does not tell how classes differ


def test_errors_of_latent_means_against_derivatives_of_the_marginal_likelihood():
    """f sum over clusters of squared scores, over the squared information, both on the mean of a normal population."""
    X, room, weights, _ = whole_weights(5)
    study = si.SpectralRasch().fit(X, weights=weights).analyse(X).clustered(room.tolist())
    table = study.group_means((room % 2).tolist())
    beta = study.calibration.difficulty
    theta = np.linspace(-8, 8, 801)
    log_p = X @ (theta - beta[:, None]) - np.log1p(np.exp(theta - beta[:, None])).sum(axis=0)
    for g in (0, 1):
        mine = room % 2 == g
        mean, sd = table["latent_mean"][g], table["latent_sd"][g]
        step = 1e-3
        lower, here, upper = (
            np.log(np.exp(log_p[mine] - (theta - mean - move) ** 2 / (2 * sd**2)).sum(axis=1))
            for move in (-step, 0, step)
        )
        w = weights[mine]
        score = (upper - lower) / (2 * step)
        information = -np.sum(w * (upper - 2 * here + lower)) / step**2
        sums = np.array([np.sum((w * score)[room[mine] == one]) for one in np.unique(room[mine])])
        n = len(sums)
        expected = np.sqrt(n / (n - 1) * np.sum(sums**2)) / information
        assert table["latent_se"][g] == pytest.approx(expected, rel=0.01)


def test_degrees_of_freedom_count_clusters_of_equal_size():
    assert degrees_of_freedom(np.repeat(np.arange(7), 5), np.ones(35)) == pytest.approx(6)
    assert degrees_of_freedom(np.array([0, 1, 2]), np.array([1.0, 1e-9, 1e-9])) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("across", [False, True], ids=["clusters of their own", "clusters divided"])
def test_degrees_of_freedom_of_groups_go_by_what_each_cluster_tells(across):
    """A cluster tells as much as its persons have answers, by weight; those with an extreme score tell nothing."""
    rng = np.random.default_rng(7)
    X = drawn(rng, rng.normal(size=(90, 1)) - np.linspace(-1, 1, 5))
    X[rng.random(X.shape) < 0.2] = np.nan
    weights, cluster = rng.uniform(0.2, 3.0, 90), np.arange(90) % 12
    members = [np.arange(90) < 40, np.arange(90) >= 40] if across else [cluster < 7, cluster >= 7]
    groups = []
    for some in members:
        groups.append(SampledPersons(si.Responses.from_wide(X[some]), Sampling(weights[some], cluster[some])))
    found = sandwiches(groups, np.tile(np.linspace(-1, 1, 5), (2, 1)), None)

    def worth(some):
        told = dict.fromkeys(range(12), 0.0)
        for person in np.flatnonzero(some):
            n = np.sum(~np.isnan(X[person]))
            if 0 < np.nansum(X[person]) < n:
                told[cluster[person]] += weights[person] * n
        total = np.array(list(told.values()))
        return total.sum() ** 2 / np.sum(total**2) - 1

    each = [worth(some) for some in members]
    np.testing.assert_allclose(found.df, each)
    assert found.shared == across
    assert found.df_joint == pytest.approx(worth(np.ones(90, dtype=bool)) if across else sum(each))
    variances = np.array([[0.3, 1.0], [0.1, 2.0]])
    if across:
        np.testing.assert_allclose(found.df_of(variances), [found.df_joint] * 2)
    else:
        welch = [(a + b) ** 2 / (a**2 / each[0] + b**2 / each[1]) for a, b in variances.T]
        np.testing.assert_allclose(found.df_of(variances), welch)


def test_intervals_of_few_clusters_are_those_of_t():
    from scipy.stats import t

    X, room, *_ = whole_weights(1, n_classes=6)
    study = si.SpectralRasch().fit(X).analyse(X).clustered(room.tolist())
    made = study.calibration
    assert made.provenance.se_df == pytest.approx(5, abs=0.1)
    half = t.ppf(0.975, made.provenance.se_df) * made.se
    np.testing.assert_allclose(made.item_columns()["ci_high"] - made.difficulty, half)
    np.testing.assert_allclose(made.threshold_columns()["ci_low"], made.thresholds - half)
    picture = study.plot.items().columns()
    np.testing.assert_allclose(picture["ci_high"] - picture["ci_low"], 2 * half[np.argsort(-made.difficulty)])
    ranked = study.ranking(by="lower")
    np.testing.assert_allclose(ranked["difficulty"] - ranked["lower"], ranked["se"] * t.ppf(0.975, 5), rtol=0.02)
    warning = next(one for one in study.findings() if one.code == "few_clusters")
    assert f"{t_quantile(made.provenance.se_df):.2f}" in warning.sentence


def test_tails_are_those_of_t_and_of_hotelling():
    from scipy.stats import f, t

    both_tails = two_sided(np.array([0.5, 2.0]), np.array([4.0, np.inf]))
    np.testing.assert_allclose(both_tails, [2 * t.sf(0.5, 4), 0.0455003], rtol=1e-5)
    assert wald_tail(7.0, 3, 11.0) == pytest.approx(f.sf(7.0 * 9 / 33, 3, 9))
    assert wald_tail(2.1**2, 1, 8.0) == pytest.approx(2 * t.sf(2.1, 8))
    assert np.isnan(wald_tail(7.0, 5, 3.0))


def test_rao_scott_is_chi_square_where_persons_come_one_by_one():
    test = rao_scott(12.3, np.eye(6), np.inf)
    assert (test.statistic, test.df) == pytest.approx((12.3, 6))
    doubled = rao_scott(24.6, 2 * np.eye(6), np.inf)
    assert doubled.p == pytest.approx(test.p)


@pytest.mark.slow
def test_a_joint_test_of_few_clusters_keeps_its_level():
    """b'b of b ~ N(0, S) with S known from 12 draws: 4,000 replicates have a standard error of .0035."""
    rng = np.random.default_rng(8)
    root = np.diag([2.0, 1.0, 1.0, 0.5, 0.5])
    p = []
    for _ in range(4000):
        b, draws = root @ rng.normal(size=5), rng.normal(size=(12, 5)) @ root
        p.append(rao_scott(float(b @ b), draws.T @ draws / 12, 12).p)
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.012)


def test_many_groups_of_whole_classes_are_compared_at_once():
    X, room, *_ = whole_weights(2)
    study = si.SpectralRasch().fit(X).analyse(X)
    plain, robust = study.dif((room % 3).tolist()), study.clustered(room.tolist()).dif((room % 3).tolist())
    assert np.median(robust.items["p"] - plain.items["p"]) > 0
    assert robust.test.p > plain.test.p
    two = study.clustered(room.tolist()).dif((room % 2).tolist())
    np.testing.assert_allclose(two.items["p"], two.contrasts["p"])
    assert any(one.code == "groups_sampled" for one in two.findings)
    assert not any(one.code == "groups_sampled" for one in plain.findings)


def test_what_cannot_be_done_is_refused():
    X, room, weights, _ = whole_weights()
    anchored = si.SpectralRasch().fit(X, anchors={0: -1.0, 7: 1.0}, weights=weights).analyse(X)
    with pytest.raises(DesignError, match="anchored"):
        anchored.clustered(room.tolist())
    few = np.minimum(room, 3)
    assert si.SpectralRasch().fit(X).analyse(X).clustered(few.tolist())._quick_hausman() is None
    found = cluster_covariance(anchored.calibration.replace(further={}), si.Responses.from_wide(X), room)
    assert found.n_clusters == 24
