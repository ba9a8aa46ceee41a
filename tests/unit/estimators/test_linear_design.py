"""Linear designs: facets and properties of items, against numbers of other programs and against enumeration."""

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import gold
import spectral_irt as si
from ratings import ratings, simulated
from spectral_irt import simulate
from spectral_irt.chain.prior import prior_precision
from spectral_irt.chain.stationary import linked_items
from spectral_irt.conditional.exact_likelihood import ExactLikelihood
from spectral_irt.conditional.linear import Ridge, subsets, unidentified_directions
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.linear_design import LinearDesign
from spectral_irt.estimators.linear_fit import design_fit, explain_items


def fitted(responses, design=None, **options):
    found = design_fit(responses, (design or LinearDesign()).of(responses), **options)
    return found.estimate(responses), found


@pytest.mark.parametrize("name", ["facets_complete", "facets_sparse"])
def test_raters_are_those_of_conditional_likelihood_elsewhere(name):
    theirs, table = gold.said(name), gold.table(name)
    responses = ratings(table["student"], table["item"], {"rater": table["rater"]}, table["x"])
    for se, key in (("dense", "severity_se_sandwich"), ("information", "severity_se")):
        estimate, found = fitted(responses, se=se)
        rater, items = found.facet("rater"), found.design.facets.items
        beta, errors = estimate.facets.items.thresholds, estimate.facets.items.threshold_se
        labels = [str(one) for one in found.design.term("rater").labels]
        np.testing.assert_allclose(beta, np.concatenate([theirs["thresholds"][i] for i in items]), atol=1e-6)
        np.testing.assert_allclose(rater["severity"], [theirs["severity"][one] for one in labels], atol=1e-6)
        np.testing.assert_allclose(rater["se"], [theirs[key][one] for one in labels], atol=1e-4)
        assert estimate.loglik == pytest.approx(theirs["loglik"], abs=1e-6)
        assert estimate.se_method == se
    without = fitted(responses, se="none")[0]
    assert (without.se_method, np.isnan(without.se).all()) == ("none", True)
    np.testing.assert_allclose(errors, np.concatenate([theirs["thresholds_se"][i] for i in items]), atol=1e-4)
    assert set(rater["status"]) == {"ok"}


def test_properties_of_items_are_those_of_erm():
    theirs, responses = gold.said("lltm12"), si.read(gold.HERE / "lltm12.csv")
    properties = {name: dict(zip(responses.items, values, strict=True)) for name, values in theirs["design"].items()}
    estimate, found = fitted(responses, LinearDesign("a + b + c", properties), se="information")
    np.testing.assert_allclose(found.effect, theirs["eta"], atol=1e-5)
    np.testing.assert_allclose(found.effect_se, theirs["se"], atol=1e-5)
    assert estimate.loglik == pytest.approx(theirs["loglik"], abs=1e-5)
    explained = explain_items(responses, properties)
    assert explained.effects["property"].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(explained.effects["effect"], theirs["eta"], atol=1e-5)
    np.testing.assert_allclose(explained.effects["se"], theirs["se"], atol=1e-5)
    test = explained.to_dict()
    assert (test["chi2"], test["df"]) == (pytest.approx(theirs["lr"], abs=1e-4), theirs["df"])


def test_words_have_effects_of_mean_zero_and_what_cannot_be_told_apart_is_named():
    responses = simulate.partial_credit(300, 8, categories=3, seed=1).responses
    kind = {item: "ab"[k % 2] for k, item in enumerate(responses.items)}
    length = {item: k // 2 for k, item in enumerate(responses.items)}
    found = explain_items(responses, {"kind": kind, "length + 1": length})
    assert found.effects["level"].tolist() == ["a", "b", ""]
    assert found.effects["effect"][:2].sum() == pytest.approx(0, abs=1e-9)
    assert found.df == 6 - 1  # of 16 thresholds, 8 offsets are free in both
    for properties, message in (
        ({"kind": kind, "same": dict.fromkeys(kind, 1)}, "'same' cannot be told apart"),
        ({"kind": kind, "again": kind}, "cannot be told apart"),
        ({"kind": {**kind, responses.items[0]: None}}, "'kind' is not known of 1 items"),
    ):
        with pytest.raises(OptionError, match=message):
            explain_items(responses, properties)


def random_design(seed):
    """A few people, items and raters: crossed, nested, disjoint or by chance."""
    rng = np.random.default_rng(seed)
    n_items, n_raters, n = rng.integers(1, 4), rng.integers(2, 5), 14
    kind = ["crossed", "nested", "disjoint", "chance"][seed % 4]
    person, item, rater = np.indices((n, n_items, n_raters)).reshape(3, -1)
    seen = {
        "crossed": person >= 0,
        "nested": rater % n_items == item,
        "disjoint": (person < n // 2) == (rater < n_raters // 2),
        "chance": rng.random(len(person)) < 0.35,
    }[kind]
    return ratings(person[seen], item[seen], {"rater": rater[seen]}, rng.integers(0, 3, seen.sum()))


def threshold_never_in_doubt(information):
    """Given the scores of all, some threshold is certain to be passed, or to be failed: a prior's business."""
    return np.diag(information).min() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_what_is_left_open_is_what_the_exact_information_does_not_see(seed):
    responses = random_design(seed)
    if not responses.kinds_of_people[-1]:
        pytest.skip("nobody tells anything apart")
    made = LinearDesign().of(responses)
    layout = responses.thresholds
    parts = linked_items(responses, mixed=True)[0][layout.item]
    beta = np.random.default_rng(seed).normal(size=layout.n_entries)
    met = responses.take_items(responses.item_counts > 0)
    information = ExactLikelihood(met).information(beta)
    matrix = made.matrix.toarray().T @ information @ made.matrix.toarray()
    values, vectors = np.linalg.eigh(matrix)
    blind = vectors[:, values < 1e-9 * values.max()]
    rater = made.term("rater").columns
    for term in (None, rater):
        ours = unidentified_directions(made.matrix, parts, term=term)
        np.testing.assert_allclose(blind @ (blind.T @ ours), ours, atol=1e-7)
        assert ours.shape == blind.shape or threshold_never_in_doubt(information)
    if ours.shape != blind.shape:
        return
    compare = subsets(ours[rater])
    for a, b in itertools.combinations(range(len(compare)), 2):
        difference = np.zeros(len(matrix))
        difference[[rater.start + a, rater.start + b]] = 1, -1
        assert (compare[a] == compare[b]) == (np.abs(blind.T @ difference).max(initial=0) < 1e-7)


def test_anchored_levels_are_directions_that_do_not_move():
    responses = random_design(2)
    made = LinearDesign(anchors={"rater": {0: 0.5}}).of(responses)
    parts = linked_items(responses, mixed=True)[0][responses.thresholds.item]
    rater = made.term("rater").columns
    dense = unidentified_directions(made.matrix, parts, made.fixed)
    tree = unidentified_directions(made.matrix, parts, made.fixed, rater)
    np.testing.assert_allclose(dense @ dense.T, tree @ tree.T, atol=1e-9)
    assert np.abs(dense[rater.start]).max(initial=0) < 1e-12


def test_disjoint_raters_are_named_and_not_compared():
    responses, *_ = simulated([[0, 1]] * 40 + [[2, 3]] * 30 + [[3, 4]] * 30, 3, 3, seed=1)
    estimate, found = fitted(responses)
    assert found.subset["rater"].tolist() == [1, 1, 0, 0, 0]
    rater = found.facet("rater")
    assert np.isinf(rater["se"][:2]).all()
    assert np.isfinite(rater["se"][2:]).all()
    assert rater["status"].tolist() == ["unlinked"] * 2 + ["ok"] * 3
    (said,) = (finding for finding in estimate.findings if finding.code == "disjoint_subsets")
    assert said.items == (0, 1)
    np.testing.assert_allclose([rater["severity"][:2].sum(), rater["severity"][2:].sum()], 0, atol=1e-8)


def test_a_known_severity_gives_the_scale():
    responses, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 60, 4, 3, seed=2)
    _, free = fitted(responses, regularization=0)
    _, known = fitted(responses, LinearDesign(anchors={"rater": {1: 0.7}}), regularization=0)
    shift = 0.7 - free.facet("rater")["severity"][1]
    np.testing.assert_allclose(known.facet("rater")["severity"], free.facet("rater")["severity"] + shift, atol=1e-6)
    assert known.facet("rater")["status"].tolist() == ["ok", "anchored", "ok"]
    assert known.facet("rater")["se"][1] == 0


def test_interactions_are_zero_in_sum_and_leave_main_effects_as_they_are_compared():
    meets = [[0, 1], [1, 2], [0, 2]] * 60
    responses, *_ = simulated(meets, 3, 2, seed=3)
    estimate, found = fitted(responses, LinearDesign("items + rater + items:rater"), regularization=0)
    effects = estimate.extra["effects"]
    table = effects["effect"][effects["term"] == "items:rater"].reshape(3, 3)
    np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(table.sum(axis=1), 0, atol=1e-8)
    assert found.subset["rater"].max() == 0
    beta = found.design.matrix @ found.eta  # as free as the virtual items themselves
    free = si.ConditionalRasch().fit(replace(responses, facets=None)).difficulty_
    np.testing.assert_allclose(beta - beta.mean(), free, atol=1e-6)


@pytest.mark.parametrize("side", [1, -1])
def test_a_rater_with_few_ratings_is_drawn_towards_the_others_and_an_extreme_one_has_a_value(side):
    meets = [[0, 1], [1, 2], [0, 2]] * 50 + [[3, 0]] * 2
    responses, *_ = simulated(meets, 3, 4, seed=5, severity=[0.3, -0.3, 0.0, 6.0 * side])
    estimate, found = fitted(responses)
    rater = found.facet("rater")
    assert rater["status"][3] == "extreme"
    assert 0.5 < side * rater["severity"][3] < 4
    assert rater["se"][3] > 2 * rater["se"][0]
    assert estimate.residual < 0.04
    assert [one for one in estimate.findings if "on 1 of 4 rater severities" in one.sentence]
    with pytest.raises(DesignError, match="without a prior"):
        fitted(responses, regularization=0)


@pytest.mark.parametrize("categories", [2, 4])
def test_a_prior_on_many_raters_leaves_their_severities_as_far_apart_as_they_are(categories):
    """Empirical Bayes settles: its precision swung between 18 and 200, and severities came out at a seventh."""
    rng = np.random.default_rng(5)
    meets = [rng.choice(150, 4, replace=False).tolist() for _ in range(900)]
    data, severity, *_ = simulated(meets, 5, categories, seed=5)
    effects = si.SpectralPartialCredit().fit(data).effects_
    found = effects["effect"][effects["term"] == "rater"]
    assert np.polyfit(severity, found, 1)[0] == pytest.approx(1, abs=0.1)
    assert np.corrcoef(severity, found)[0, 1] > 0.8


def test_the_spread_of_severities_is_learned_from_raters_on_whom_the_prior_acts():
    """A lenient rater of few ratings among nine alike who are known well, against the formula of one rater."""
    severity = np.array([-2.5, *np.linspace(-0.4, 0.4, 9)])
    information = np.array([2.0, *np.full(9, 60.0)])
    ridge = Ridge.of(np.zeros(10, dtype=np.int64), np.ones(10, dtype=bool))
    for _ in range(30):
        ridge = ridge.with_new_precision(severity, information, information)
    np.testing.assert_array_equal(ridge.fade, [1, *np.zeros(9)])
    mean = ridge.weight @ severity
    alone = prior_precision(np.array([-2.5 - mean]), np.array([2.0]), ridge.alpha[0])
    assert ridge.alpha[0] == pytest.approx(alone, rel=1e-6)
    assert ridge.alpha[0] ** -0.5 > 1.2
    assert ridge.of_all[0] ** -0.5 < 0.9


@pytest.mark.slow
def test_small_rating_scales_are_as_wide_as_they_are():
    """Twenty people: conditional likelihood spreads thresholds by 10%; a mean slope has a standard error of 2%."""
    slopes, likeliest = [], []
    offsets = np.array([-1.2, 0.0, 1.2])
    for seed in range(60):
        rng = np.random.default_rng([seed, 3])
        beta = np.linspace(-1, 1, 6)[:, None] + offsets
        logit = np.cumsum(rng.normal(0, 1.2, 20)[:, None, None] - beta, axis=2)
        logit = np.concatenate([np.zeros((20, 6, 1)), logit], axis=2)
        table = np.argmax(logit + rng.gumbel(size=logit.shape), axis=2).astype(float)
        slopes.append(np.polyfit(beta.ravel(), si.SpectralRatingScale().fit(table).thresholds_, 1)[0])
        likeliest.append(np.polyfit(beta.ravel(), si.ConditionalRatingScale().fit(table).thresholds_, 1)[0])
    assert np.mean(slopes) == pytest.approx(1, abs=0.05)
    assert np.mean(likeliest) > 1.05


@pytest.mark.slow
def test_many_raters_of_few_ratings_leave_thresholds_as_far_apart_as_they_are(monkeypatch):
    """Maximum likelihood spreads them by 6% or so; of that 3% are taken off. A mean slope has a s.e. of .011."""
    slopes = {True: [], False: []}
    for seed in range(2):
        rng = np.random.default_rng([seed, 1])
        data, _, beta, _ = simulated([rng.choice(600, 2, replace=False) for _ in range(2100)], 5, 4, seed)
        for corrected, of_seeds in slopes.items():
            with monkeypatch.context() as patch:
                if not corrected:
                    patch.setattr("spectral_irt.estimators.linear_fit.bias_factors", lambda *given: np.ones(2))
                fit = si.SpectralPartialCredit().fit(data)
            assert ("bias_correction" in [finding.code for finding in fit.findings_]) == corrected
            of_seeds.append(np.polyfit(beta.ravel(), fit.calibration_.facets.items.thresholds, 1)[0])
    assert 0.97 < np.mean(slopes[True]) < 1.04
    # Of the same data: what the correction takes off is known better than either slope.
    assert 1.025 < np.mean(slopes[False]) / np.mean(slopes[True]) < 1.04


def test_more_parameters_than_are_solved_directly_give_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    meets = [rng.choice(12, 2, replace=False).tolist() for _ in range(400)]
    responses, *_ = simulated(meets, 3, 3, seed=6)
    _, dense = fitted(responses)
    _, model = fitted(responses, se="information")
    assert (dense.se >= model.se - 1e-12).all()
    for module in ("linear_design", "linear_fit"):
        monkeypatch.setattr(f"spectral_irt.estimators.{module}.DENSE_PARAMETERS", 0)
    monkeypatch.setattr("spectral_irt.conditional.penalized.DENSE_PARAMETERS", 0)
    _, steps = fitted(responses)
    assert steps.covariance is None
    np.testing.assert_allclose(steps.eta, dense.eta, atol=1e-4)
    np.testing.assert_allclose(np.maximum(steps.se, model.se), dense.se, rtol=0.12)  # which are not below the model's


def test_names_that_are_not_there():
    responses, *_ = simulated([[0, 1]] * 20, 2, 3, seed=7)
    for design, message in (
        (LinearDesign("items + judge"), "no column of the answers"),
        (LinearDesign(anchors={"rater": {9: 0.0}}), "levels that the answers do not have"),
        (LinearDesign("length", {"length": {0: 1.0}}), "not known of 1 items"),
    ):
        with pytest.raises(OptionError, match=message):
            fitted(responses, design)


def test_estimators_take_facets_and_rivals_say_that_they_do_not():
    theirs, table = gold.said("facets_sparse"), gold.table("facets_sparse")
    responses = si.read(table, person="student", response="x", facets="rater")
    fit = si.SpectralPartialCredit(regularization=0).fit(responses)
    found = fit.calibration_.facets
    assert found.facets.names == ("item", "rater")
    severity = [theirs["severity"][str(one)] for one in found.facets.levels[1]]
    np.testing.assert_allclose(found.of["rater"]["severity"], severity, atol=1e-6)
    items = found.items
    np.testing.assert_allclose(
        items.thresholds, np.concatenate([theirs["thresholds"][i] for i in items.labels]), atol=1e-6
    )
    assert items.n.sum() == items.category_n.sum() == table.height
    with pytest.raises(OptionError, match="take a spectral estimator"):
        si.ConditionalPartialCredit().fit(responses)
    scale = si.SpectralRatingScale().fit(responses).calibration_.facets.items
    offsets = scale.thresholds.reshape(4, 3) - scale.difficulty[:, None]
    np.testing.assert_allclose(offsets, np.broadcast_to(offsets[0], offsets.shape), atol=1e-9)
    right = si.read(table.with_columns(x=(pl.col("x") > 1).cast(int)), person="student", response="x", facets="rater")
    binary = si.SpectralRasch().fit(right).calibration_.facets
    assert len(binary.items.thresholds) == 4
    assert np.corrcoef(binary.of["rater"]["severity"], severity)[0, 1] > 0.8


def test_a_wide_table_of_ratings_has_a_row_for_each_person_and_rater():
    table = gold.table("facets_sparse")
    long = si.read(table, person="student", response="x", facets="rater")
    wide = si.read(table.pivot("item", index=["student", "rater"], values="x"), facets="rater")
    assert sorted(wide.facets.items.tolist()) == long.facets.items.tolist()
    order = [list(wide.items).index(label) for label in long.items]
    np.testing.assert_array_equal(wide.to_dense()[:, order], long.to_dense())


@pytest.mark.parametrize(
    ("kind", "categories", "options", "fit"),
    [
        (si.SpectralRasch, 2, {}, {}),
        (si.SpectralRasch, 2, {}, {"design": LinearDesign(anchors={"items": {0: 0.4}, "rater": {1: 0.2}})}),
        (si.SpectralPartialCredit, 3, {}, {"weights": np.tile([1.0, 2.0, 3.0], 40)}),
        (si.SpectralPartialCredit, 3, {}, {"design": LinearDesign(anchors={"rater": {1: 0.2}})}),
        (si.SpectralRatingScale, 3, {"groups": ["a", "a", "b"]}, {}),
    ],
)
def test_what_goes_with_raters(kind, categories, options, fit):
    responses, severity, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 40, 3, categories, seed=2)
    found = kind(**options).fit(responses, **fit).calibration_.facets.of["rater"]
    assert np.isfinite(found["severity"]).all()
    assert np.corrcoef(found["severity"], severity)[0, 1] > 0.7
    if "design" in fit:
        assert (found["severity"][1], found["status"][1]) == (0.2, "anchored")


@pytest.mark.parametrize(
    ("options", "fit", "says"),
    [
        ({}, {"anchors": {"a": [0.0, 1.0]}}, "anchors of a linear design, as of raters, go with it"),
        ({}, {"design": LinearDesign(anchors={"items": {0: 0.4}})}, "anchors are for facets, and for items with one"),
        ({}, {"groups": ["a", "b"] * 60}, "groups are for `design='adaptive'`"),
        ({}, {"design": "adaptive"}, "take a spectral estimator, with a fixed design"),
        ({"weighting": "pairs"}, {}, "leave out `weighting`"),
        ({"refine": False, "assume_equal_means": True}, {}, "leave out `assume_equal_means`, `refine`"),
    ],
)
def test_what_does_not_go_with_raters_is_refused_in_a_sentence(options, fit, says):
    responses, *_ = simulated([[0, 1], [1, 2], [0, 2]] * 40, 3, 3, seed=2)
    with pytest.raises(OptionError, match=says):
        si.SpectralPartialCredit(**options).fit(responses, **fit)


def test_thresholds_of_unlinked_items_are_as_unknown_as_their_locations():
    """Two panels of raters, each with items and persons of its own."""
    rng = np.random.default_rng(3)
    rows = [
        (person, f"i{item + 2 * (person % 2)}", f"r{rater + 2 * (person % 2)}", int(rng.integers(0, 3)))
        for person in range(80)
        for rater in range(2)
        for item in range(2)
    ]
    person, item, rater, score = zip(*rows, strict=True)
    items = fitted(ratings(person, item, {"rater": rater}, score))[0].facets.items
    unlinked = items.status == "unlinked"
    assert unlinked.sum() == 2
    np.testing.assert_array_equal(np.isinf(items.se), unlinked)
    np.testing.assert_array_equal(np.isinf(items.threshold_se), unlinked[items.layout.item])
