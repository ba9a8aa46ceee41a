"""Rao's score test between low and high scorers, and Hausman's test, against plain computations from all patterns.

The plain ones are written from the formulas at the heads of `score_test.py` and `hausman.py`, with `tests/oracle.py`.
"""

from typing import NamedTuple

import numpy as np
import pytest

import spectral_irt as si
from drawn import drawn_categories
from oracle import NODES, averaging, centering, conditional_point, middle_of, posterior_on_nodes, thresholds_passed
from spectral_irt.inference.groups import hausman as hausman_test
from spectral_irt.inference.groups.sampling import SIMPLE, Sampling
from spectral_irt.inference.groups.score_test import NOTABLE, ability_split

stats = pytest.importorskip("scipy.stats")

N = 400
WEIGHT = np.random.default_rng(3).choice([0.4, 1.0, 2.5], N)
WEIGHT /= WEIGHT.mean()
CLUSTER = np.random.default_rng(4).integers(0, 40, N)
SAMPLINGS = {
    "simple": SIMPLE,
    "weights": Sampling(weights=WEIGHT),
    "clusters": Sampling(cluster=CLUSTER),
    "weights and clusters": Sampling(weights=WEIGHT, cluster=CLUSTER),
}


def unequal_answers(n_items, categories, *, missing=0.0, seed=1):
    """Slopes differ, so that no test is about nothing; some persons may have met one of three sets of items."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.2, 1.2, N)
    slope = np.exp(np.linspace(-0.8, 0.8, n_items))
    step = np.linspace(-0.7, 0.7, categories - 1) * (categories > 2)
    beta = np.linspace(-1.2, 1, n_items)[rng.permutation(n_items), None] + step
    logit = np.cumsum(slope[:, None] * (theta[:, None, None] - beta), axis=2)
    x = drawn_categories(rng, np.concatenate([np.zeros((*logit.shape[:2], 1)), logit], axis=2))
    masks = rng.random((3, n_items)) < missing
    masks[:, :2] = False
    x[masks[np.arange(N) % 3]] = np.nan
    return si.read(x, ordered=categories > 2)


class Halves(NamedTuple):
    """The test between the halves: one number for the whole, and z of each item."""

    statistic: float
    df: float
    df2: float
    p: float
    z: np.ndarray
    spread: float


def shared_offsets(most):
    """Thresholds from locations of items and offsets that all items share."""
    k = most[0]
    offsets = np.vstack([np.eye(k - 1), -np.ones(k - 1)])
    return np.column_stack([np.repeat(np.eye(len(most)), most, axis=0), np.tile(offsets, (len(most), 1))])


def halves_by_hand(table, most, beta, high, sampling, design=None):
    """u = g_1 - I_1 (I_1 + I_2)^+ (g_1 + g_2) from all patterns, and p-values of the items.

    Parameters on which either half has an information below 5 are not compared, nor items that have none but these.
    """
    weights = np.ones(len(table)) if sampling.weights is None else sampling.weights
    a = np.eye(sum(most)) if design is None else design
    scores, information = [], []
    for half in (~high, high):
        g, i = conditional_point(table[half], most, beta, weights[half])
        scores.append(-g @ a)  # the oracle has expected less observed
        information.append(a.T @ i @ a)
    part = information[0] @ np.linalg.pinv(information[0] + information[1], rcond=1e-9, hermitian=True)
    u = scores[0].sum(axis=0) - part @ (scores[0].sum(axis=0) + scores[1].sum(axis=0))
    w = information[0] - part @ information[0]
    kept = np.minimum(np.diag(information[0]), np.diag(information[1])) >= 5
    compared = w[np.ix_(kept, kept)]
    pseudo = np.linalg.pinv(compared, rcond=1e-8, hermitian=True)
    statistic = u[kept] @ pseudo @ u[kept]
    df = float(np.linalg.matrix_rank(compared, tol=1e-6))
    df2 = np.inf
    spread_of_u = w
    p = stats.chi2.sf(statistic, df)
    if not sampling.simple:
        of_person = np.zeros((len(table), a.shape[1]))
        of_person[~high] = scores[0] - scores[0] @ part.T
        of_person[high] = -scores[1] @ part.T
        spread_of_u = middle_of(of_person, sampling.cluster)
        df = np.inf
        if sampling.cluster is not None:
            total = table.sum(axis=1)
            tells = (total > 0) & (total < sum(most))
            told = np.bincount(sampling.cluster[tells], weights[tells] * table.shape[1])
            df = told.sum() ** 2 / np.sum(told**2) - 1
        # Rao and Scott: the mean of the eigenvalues of W^+ S, and how far they differ.
        effects = np.linalg.eigvals(pseudo @ spread_of_u[np.ix_(kept, kept)]).real
        trace, square = effects.sum(), np.sum(effects**2)
        t_of_items = df
        if np.isfinite(df):
            square = df**2 / ((df - 1) * (df + 2)) * (square - trace**2 / df)
        f = trace**2 / square
        ratio = statistic / trace
        statistic, df2 = ratio * f, df * f
        p = stats.chi2.sf(statistic, f) if np.isinf(df) else stats.f.sf(ratio, f, df2)
        df = f
    total = averaging(most) * np.asarray(most)[:, None] if design is None else np.eye(len(most), a.shape[1])
    total = total[(total[:, kept] != 0).any(axis=1)]
    told = np.diag(total @ w @ total.T)
    varies = np.diag(total @ spread_of_u @ total.T)
    z = total @ u / np.sqrt(varies)
    apart = (total @ u / told) ** 2 - varies / told**2
    item_p = 2 * (stats.norm.sf(np.abs(z)) if np.isinf(df2) else stats.t.sf(np.abs(z), t_of_items))
    return Halves(statistic, df, df2, p, z, np.sqrt(max(apart.mean(), 0))), item_p


@pytest.mark.parametrize("how", SAMPLINGS)
@pytest.mark.parametrize("model", ["right or wrong", "partial credit", "rating scale"])
def test_halves_by_hand(model, how):
    responses = unequal_answers(6 if model == "right or wrong" else 4, 2 if model == "right or wrong" else 3)
    estimator = {
        "right or wrong": si.SpectralRasch(),
        "partial credit": si.SpectralPartialCredit(),
        "rating scale": si.SpectralRatingScale(),
    }[model]
    calibration = estimator.fit(responses).calibration_
    table = responses.to_dense()
    most = responses.thresholds.max_score.tolist()
    design = shared_offsets(most) if model == "rating scale" else None
    found = ability_split(calibration, responses, SAMPLINGS[how])
    high = high_scorers(found, table, most)
    expected, item_p = halves_by_hand(table, most, calibration.thresholds, high, SAMPLINGS[how], design)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-5)
    assert found.df == pytest.approx(expected.df, rel=1e-5)
    assert found.df2 == pytest.approx(expected.df2, rel=1e-5)
    assert found.p == pytest.approx(expected.p, rel=1e-4)
    np.testing.assert_allclose(found.z, expected.z, rtol=1e-5)
    np.testing.assert_allclose(found.columns["p"], item_p, rtol=1e-4)
    assert found.spread == pytest.approx(expected.spread, rel=1e-5)
    assert expected.spread > 0.05


def high_scorers(found, table, most):
    """Everybody met the same items, so that halves go by score; those with an extreme one tell nothing."""
    score = table.sum(axis=1)
    tells = (score > 0) & (score < sum(most))
    (cut,) = (cut for cut in range(1, sum(most)) if np.sum(tells & (score <= cut)) == found.sizes[0])
    assert found.sizes[1] == np.sum(tells & (score > cut))
    return score > cut


def test_only_what_both_halves_tell_about_is_compared():
    """An item of which one half has too little information stays out of the statistic; others keep their z."""
    rng = np.random.default_rng(5)
    theta = rng.normal(0, 1, N)
    beta = np.array([-1.0, -0.5, 0.0, 0.4, 0.9, 3.8])
    table = (rng.random((N, 6)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    responses = si.read(table)
    calibration = si.SpectralRasch().fit(responses).calibration_
    found = ability_split(calibration, responses)
    expected, _ = halves_by_hand(table, [1] * 6, calibration.thresholds, high_scorers(found, table, [1] * 6), SIMPLE)
    assert found.columns["item"].tolist() == responses.items[:5].tolist()
    np.testing.assert_allclose(found.z, expected.z, rtol=1e-5)
    assert found.df == expected.df == 5  # the five are no longer tied to each other
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-5)


@pytest.mark.parametrize("strong", [False, True])
def test_the_size_decides_how_loudly_halves_are_told_apart(strong):
    rng = np.random.default_rng(2)
    slopes = np.exp(np.linspace(-1, 1, 8) * (0.8 if strong else 0.2))
    n = 800 if strong else 20_000
    responses = si.simulate.rasch(n, 8, slopes=rng.permutation(slopes), seed=3).responses
    found = ability_split(si.SpectralRasch().fit(responses).calibration_, responses)
    assert found.p < 0.01
    (finding,) = found.findings
    assert finding.severity == ("warning" if strong else "note")
    assert (found.spread >= NOTABLE) == strong
    surest = np.argsort(-np.abs(found.z))
    named = [responses.items[k] for k in surest if found.columns["p_holm"][k] < 0.01]
    assert sorted(finding.items) == sorted(named)
    assert f"{found.spread:.2f} logits" in finding.sentence
    assert f"above all {named[0]}" in finding.sentence.replace("'", "")


def directions_by_hand(table, most, beta):
    """The columns of W, one after the other, each without what those before it say."""
    location = averaging(most) @ beta
    seen = ~np.isnan(table)
    level_of_person = np.array([location[mask].mean() for mask in seen])
    level_of_item = np.array([level_of_person[seen[:, item]].mean() for item in range(len(most))])
    z = np.clip((location - location.mean()) / location.std(), -3, 3)
    columns = {"difficulty": location - location.mean()}
    further = {
        "its square": z**2,
        "its cube": z**3,
        "items met with it": level_of_item,
        "number of answers": np.log(seen.sum(axis=0)),
    }
    for name, values in further.items():
        before = np.column_stack([np.ones(len(most)), *columns.values()])
        rest = values - before @ np.linalg.pinv(before) @ values
        if rest.std() > 1e-6 and len(columns) < len(most) - 2:
            columns[name] = rest / rest.std()
    of_thresholds = {name: np.repeat(values, most) for name, values in columns.items()}
    away = beta - np.repeat(location, most)
    if away.std() > 1e-12:
        of_thresholds["distance of thresholds"] = away / away.std()
    return list(of_thresholds), np.column_stack(list(of_thresholds.values()))


def normal_populations(table, most, weights, group):
    """Thresholds beside a mean of zero in the first population, scores of persons, and observed information.

    The parameters are the thresholds, the means of further populations and the logarithms of all standard deviations.
    """
    m, n_groups = sum(most), group.max() + 1
    seen = np.repeat(~np.isnan(table), most, axis=1)

    def scores(parameters):
        means = np.concatenate([[0.0], parameters[m : m + n_groups - 1]])
        sds = np.exp(parameters[m + n_groups - 1 :])
        each = np.zeros((len(table), m + 2 * n_groups))
        for g in range(n_groups):
            own = group == g
            posterior, passing, _ = posterior_on_nodes(table[own], most, parameters[:m], means[g], sds[g])
            each[own, :m] = np.where(seen[own], posterior @ passing.T, 0) - thresholds_passed(table[own], most)
            each[own, m + g] = posterior @ NODES / sds[g]
            each[own, m + n_groups + g] = posterior @ NODES**2 - 1
        return weights[:, None] * np.delete(each, m, axis=1)

    here = np.zeros(m + 2 * n_groups - 1)
    for _ in range(50):
        information = np.array(
            [(scores(here - 1e-5 * one) - scores(here + 1e-5 * one)).sum(axis=0) / 2e-5 for one in np.eye(len(here))]
        )
        step = np.linalg.solve(information, scores(here).sum(axis=0))
        here = here + step * min(1.0, 1.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-9:
            break
    return here[:m], scores(here), information


@pytest.mark.parametrize(
    ("categories", "how", "n_groups"),
    [(2, "simple", 1), (2, "weights and clusters", 2), (3, "weights", 1), (3, "clusters", 1), (3, "simple", 2)],
)
def test_hausman_by_hand(categories, how, n_groups, monkeypatch):
    monkeypatch.setattr(
        hausman_test, "MARGINAL_TOLERANCE", 1e-10
    )  # else a thousandth before the maximum, for which it allows
    monkeypatch.setattr(hausman_test, "MARGINAL_STEPS", 2000)
    sampling = SAMPLINGS[how]
    responses = unequal_answers(7 if categories == 2 else 5, categories, missing=0.3, seed=6)
    table, most = responses.to_dense(), responses.thresholds.max_score.tolist()
    weights = np.ones(N) if sampling.weights is None else sampling.weights
    group = np.arange(N) // 7 % n_groups
    thresholds, marginal, observed = normal_populations(table, most, weights, group)
    m = len(thresholds)
    beta = centering(most) @ thresholds
    names, w = directions_by_hand(table, most, beta)
    conditional, information = conditional_point(table, most, beta, weights)
    k = len(names)
    inverse = np.linalg.inv(observed)
    r = conditional @ w - marginal @ inverse[:, :m] @ information @ w
    seen = ~np.isnan(table)
    score = np.nansum(table, axis=1)
    tells = (score > 0) & (score < seen @ np.asarray(most))
    units = int(tells.sum())
    total = r.sum(axis=0)
    around = r
    if sampling.cluster is not None:
        sums = np.array([r[sampling.cluster == c].sum(axis=0) for c in np.unique(sampling.cluster)])
        units = len(np.unique(sampling.cluster[tells]))
        around = (sums - sums.mean(axis=0)) * np.sqrt(units / (units - 1))
    v = around.T @ around
    statistic = total @ np.linalg.solve(v, total)
    size = np.diag(w.T @ information @ w)
    found = hausman_test.hausman(responses, np.zeros(m), group if n_groups > 1 else None, sampling=sampling)
    assert found.columns["direction"].tolist() == names
    # What is compared is the rest of two terms that nearly cancel, and integrals are over other nodes.
    assert found.statistic == pytest.approx(statistic, rel=5e-3)
    assert found.df == k
    assert found.df2 == units - k
    assert found.p == pytest.approx(stats.f.sf(statistic * (units - k) / (k * (units - 1)), k, units - k), rel=1e-2)
    np.testing.assert_allclose(found.columns["difference"], total / size, rtol=5e-3, atol=2e-4)
    np.testing.assert_allclose(found.columns["se"], np.sqrt(np.diag(v)) / size, rtol=5e-3)
    z = found.columns["difference"] / found.columns["se"]
    np.testing.assert_allclose(found.columns["z"], z)
    np.testing.assert_allclose(found.columns["p"], 2 * stats.norm.sf(np.abs(z)))
    step = averaging(most) @ w @ np.linalg.solve(w.T @ information @ w, total)
    location = averaging(most) @ beta
    center = averaging(most) @ centering(most)
    variance = np.diag(center @ inverse[:m, :m] @ center.T)
    assert found.size == pytest.approx(np.sqrt(np.mean(step**2)), rel=1e-2)
    assert found.stretch == pytest.approx(1 + location @ step / (location @ location), abs=2e-4)
    assert found.in_errors == pytest.approx(np.sqrt(np.mean(step**2 / variance)), rel=1e-2)
    assert (found.n_people, found.n_items) == (tells.sum(), len(most))
