"""One contract that every estimator passes, on one block and on several; a new estimator is one line in `MAKERS`.

And that of the house: where answers are right or wrong, an estimator of partial credit gives the numbers of its
counterpart for the Rasch model.
"""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse

import spectral_irt as si
from spectral_irt import Responses, simulate
from spectral_irt.data import builder

# How to build each estimator so that its answer is exact enough to compare, and what it cannot take.
MAKERS = {
    "spectral": lambda: si.SpectralRasch(regularization=0),
    "spectral, prior": lambda: si.SpectralRasch(regularization=1.5),
    "persons": lambda: si.SpectralRasch(weighting="persons", regularization=0),
    "pairs": lambda: si.SpectralRasch(weighting="pairs", regularization=0),
    "paper": lambda: si.SpectralRasch.paper(),
    "cml": lambda: si.ConditionalRasch(),
    "cml, sandwich": lambda: si.ConditionalRasch(se="sandwich"),
    "mml": lambda: si.MarginalRasch(tol=1e-10),
    "jml": lambda: si.JointRasch(tol=1e-11),
    "pml": lambda: si.PairwiseRasch(tol=1e-11),
    "pml, persons": lambda: si.PairwiseRasch(weighting="persons", tol=1e-11),
    "vb": lambda: si.VariationalRasch(tol=1e-11),
    "choppin": lambda: si.ChoppinRasch(),
    "eigenvector": lambda: si.EigenvectorRasch(),
    "anchored": lambda: si.AnchoredRasch(ANCHORS, regularization=0),
    "pcm": lambda: si.SpectralPartialCredit(regularization=0),
    "pcm, prior": lambda: si.SpectralPartialCredit(regularization=1.5),
    "pcm, persons": lambda: si.SpectralPartialCredit(weighting="persons", regularization=0),
    "pcm, cml": lambda: si.ConditionalPartialCredit(),
    "pcm, mml": lambda: si.MarginalPartialCredit(tol=1e-10),
    "rsm": lambda: si.SpectralRatingScale(),
    "rsm, cml": lambda: si.ConditionalRatingScale(),
    "rsm, mml": lambda: si.MarginalRatingScale(tol=1e-10),
}
ANCHORS = {0: -0.7}  # of one item, so that any data agree with it: the others follow
PRIORS = {"spectral, prior", "paper", "vb", "pcm, prior"}  # what they add to the data weighs less against more data
NO_ERRORS = {"choppin", "eigenvector"}
TOLERANCE = 1e-6  # in logits: between two orders of the same sums
SETTLED = {"rsm": 0.01}  # the bias of first order, which it takes off, is half as large with twice the data


@cache
def data(several, blocks):
    """Complete enough for every item to have every category; `blocks` as the fixture of that name has it."""
    if several:
        return simulate.rating_scale(300, 5, categories=3, design="sampled", p=0.8, seed=21)
    return simulate.rasch(400, 9, seed=21, design="sampled", p=0.7)


@pytest.fixture(params=["one block", pytest.param("several blocks", marks=pytest.mark.slow)], autouse=True)
def blocks(request, monkeypatch):
    """What a million responses look like, in small: every table of the suite also comes in blocks of 200 responses."""
    if request.param == "several blocks":
        monkeypatch.setattr(builder.person_chunks, "__defaults__", (200,))
        monkeypatch.setattr(builder, "BLOCK_RESPONSES", 200)
        assert len(data(False, request.param).responses.blocks) > 5
    return request.param


@pytest.fixture(params=MAKERS)
def name(request):
    return request.param


@pytest.fixture
def make(name):
    return MAKERS[name]


@pytest.fixture
def given(make, blocks):
    return data(make().several, blocks)


@cache
def fitted(name, blocks):
    model = MAKERS[name]().set_params(threads=2)
    return model.fit(data(model.several, blocks).responses)


@pytest.fixture
def fit(name, blocks):
    """What the estimator makes of the data, once for all tests that look at it or compare with it."""
    return fitted(name, blocks)


def long(table):
    persons, items = np.nonzero(~np.isnan(table))
    return persons, items, table[persons, items].astype(int)


def free(fit):
    """Items whose difficulty was estimated, not given."""
    return ~fit.calibration_.anchored


def same(a, b, rtol_se=1e-4):
    for one in ("thresholds_", "difficulty_"):
        np.testing.assert_allclose(getattr(a, one), getattr(b, one), atol=TOLERANCE)
    for one in ("threshold_se_", "se_"):
        np.testing.assert_allclose(getattr(a, one), getattr(b, one), rtol=rtol_se)


def test_what_is_learned(name, fit, given):
    m = given.responses.n_items
    assert fit.difficulty_.shape == fit.se_.shape == fit.status_.shape == fit.information_.shape == (m,)
    assert fit.thresholds_.shape == fit.threshold_se_.shape == (given.responses.thresholds.n_entries,)
    truth = given.thresholds if fit.several else given.difficulty
    assert np.corrcoef(fit.thresholds_, truth)[0, 1] > (0.9 if fit.several else 0.95)  # larger = harder
    np.testing.assert_allclose(fit.difficulty_, given.responses.thresholds.mean(fit.thresholds_), atol=1e-12)
    if name == "anchored":
        assert (fit.difficulty_[0], fit.se_[0], fit.status_[0]) == (ANCHORS[0], 0, "anchored")
    else:
        assert abs(fit.difficulty_.mean()) < 1e-10
    assert name in NO_ERRORS or np.all(fit.se_[free(fit)] > 0)
    assert set(fit.status_[free(fit)]) == {"ok"}
    assert isinstance(fit.findings_, tuple)
    assert fit.n_iter_ >= 1
    assert fit.items().columns[:3] == ["item", "difficulty", "se"]
    assert fit.predict_score([0.0, 1.0]).shape == (2, m)
    if fit.covariance_ is not None:
        layout, c = given.responses.thresholds, fit.covariance()
        np.testing.assert_allclose(np.sqrt(np.diag(c)), fit.threshold_se_, rtol=1e-8, atol=1e-12)
        location = [np.sqrt(c[np.ix_(own, own)].mean()) for own in map(layout.of_items, np.arange(m)[:, None])]
        np.testing.assert_allclose(location, fit.se_, rtol=1e-8, atol=1e-12)


def test_abilities_may_shift(name, make, blocks):
    """Difficulties are relative: the same test taken by a stronger group gives the same difficulties within error."""
    several = make().several
    beta = [[d - 0.6, d + 0.6] if several else [d] for d in np.linspace(-0.8, 0.8, 5 if several else 8)]
    n = 1000 if several or blocks == "several blocks" else 4000
    a, b = (
        make().fit(simulate.partial_credit(n, thresholds=beta, ability_mean=mean, seed=seed).responses)
        for mean, seed in ((0.6, 3), (-0.6, 4))
    )
    some = np.repeat(free(a), a.n_thresholds_)
    away = (a.thresholds_ - b.thresholds_)[some]
    error = 0.1 if name in NO_ERRORS else np.hypot(a.threshold_se_, b.threshold_se_)[some]
    assert len(away) >= 7
    assert np.abs(away / error).max() < 4


def test_order_of_people_does_not_matter_and_the_callers_table_is_not_touched(make, given, fit, blocks):
    table = given.responses.to_dense()
    table = table[np.random.default_rng(0).permutation(len(table))]
    before = table.copy()
    assert blocks == "one block" or len(Responses.from_wide(table, ordered=True).blocks) > 5
    same(fit, make().fit(table))
    np.testing.assert_array_equal(table, before)


def test_items_may_be_relabeled(make, given, fit):
    table, layout = given.responses.to_dense(), given.responses.thresholds
    order = np.random.default_rng(1).permutation(table.shape[1])
    other = Responses.from_wide(table[:, order], items=order.tolist(), ordered=make().several)
    again = make().fit(other)
    np.testing.assert_allclose(fit.thresholds_[layout.of_items(order)], again.thresholds_, atol=TOLERANCE)


@pytest.mark.parametrize("blocks", ["one block"], indirect=True)
def test_one_block_or_many_and_threads(make, given, fit, monkeypatch):
    monkeypatch.setattr(builder.person_chunks, "__defaults__", (200,))
    many = Responses.from_long(*long(given.responses.to_dense()), ordered=make().several)
    assert len(many.blocks) > 5
    a, b = make().set_params(threads=1).fit(many), make().set_params(threads=3).fit(many)
    same(fit, a)
    assert np.array_equal(a.thresholds_, b.thresholds_)
    assert np.array_equal(a.se_, b.se_, equal_nan=True)


def test_missing_is_absent(make, given, fit):
    table = given.responses.to_dense()
    persons, items, values = long(table)
    stored = sparse.coo_array((values, (persons, items)), shape=table.shape)
    nothing = [[None if np.isnan(x) else int(x) for x in row] for row in table]
    columns = Responses.from_long(persons, items, values, ordered=make().several)
    for other in (columns, stored, nothing, np.ma.masked_invalid(table)):
        same(fit, make().fit(other))


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in PRIORS])
def test_twice_the_data_same_difficulty_smaller_error(name, make, given, fit):
    """Every estimate is a sum over people: doubling each person leaves difficulties, and divides variances by two."""
    table = given.responses.to_dense()
    twice = make().fit(np.vstack([table, table]))
    np.testing.assert_allclose(fit.thresholds_, twice.thresholds_, atol=SETTLED.get(name, 1e-5))
    np.testing.assert_allclose(fit.threshold_se_, twice.threshold_se_ * np.sqrt(2), rtol=0.02)


def test_clone_and_parameters(fit):
    from sklearn.base import clone

    again = clone(fit)
    assert again.get_params() == fit.get_params()
    assert not hasattr(again, "difficulty_")
    with pytest.raises(si.errors.OptionError, match="no parameter 'color'"):
        again.set_params(color="red")


def test_pickle_and_deep_copy(fit):
    for again in (pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert np.array_equal(again.thresholds_, fit.thresholds_)
        assert np.array_equal(again.se_, fit.se_, equal_nan=True)
        assert again.items().equals(fit.items())
        assert repr(again) == repr(fit)


def test_a_fit_keeps_no_answers(make):
    """With more people it is larger by an ability and its error each at most; answers: 25 bytes a person."""
    draw = simulate.rating_scale if make().several else simulate.rasch
    size = [len(pickle.dumps(make().fit(draw(n, 6, seed=5).responses))) for n in (200, 800)]
    assert size[1] - size[0] <= 16 * 600 + 500


@pytest.mark.parametrize("blocks", ["one block"], indirect=True)
def test_refusals(make):
    for bad in ([[1, 1], [1, 1]], [[1], [0]], [[1, 0]]):
        with pytest.raises(si.errors.DesignError):
            make().fit(bad)
    for bad in (0.5, -2) if make().several else (7,):
        with pytest.raises(si.errors.ResponseValueError, match=f"holds {bad}"):
            make().fit([[1, 0], [0, bad]])


WITHOUT_PRIOR = [name for name in MAKERS if name not in PRIORS | NO_ERRORS | {"anchored"}]


@pytest.mark.parametrize("name", WITHOUT_PRIOR)
def test_items_that_nobody_can_place_are_left_out_and_named(make, given, fit):
    table, most = given.responses.to_dense(), 2.0 if make().several else 1.0
    n, m = table.shape
    more = make().fit(np.column_stack([table, np.full(n, most), np.zeros(n), np.full(n, np.nan)]))
    assert more.status_.tolist() == ["ok"] * m + ["all right", "all wrong", "no responses"]
    assert np.isnan(more.difficulty_[m:]).all()
    assert np.isnan(more.se_[m:]).all()
    (left,) = [one for one in more.findings_ if one.code == "items_left_out"]
    assert set(left.items) - {m + 2} == {m, m + 1}
    assert "extreme_items" not in [one.code for one in more.findings_]
    np.testing.assert_allclose(more.difficulty_[:m], fit.difficulty_, atol=1e-3)
    np.testing.assert_allclose(more.se_[:m], fit.se_, rtol=1e-3)


@pytest.mark.parametrize("name", [name for name in WITHOUT_PRIOR if "mml" not in name and "rsm" not in name])
def test_groups_without_a_link_are_refused(make, given):
    table = given.responses.to_dense()
    both = np.full((2 * len(table), 2 * table.shape[1]), np.nan)
    both[: len(table), : table.shape[1]], both[len(table) :, table.shape[1] :] = table, table
    with pytest.raises(si.errors.DisconnectedDesignError):
        make().fit(both)


@pytest.mark.parametrize("name", ["cml", "mml", "jml", "pml", "vb", "pcm, cml", "pcm, mml", "rsm, cml", "rsm, mml"])
def test_too_few_iterations_are_said(make, given):
    with pytest.warns(UserWarning, match="stopped after"):
        fit = make().set_params(max_iter=1).fit(given.responses)
    assert "not_converged" in [one.code for one in fit.findings_]


THIN = simulate.rasch(250, 20, design="sampled", p=0.3, seed=22).responses  # some items with few answers: a prior acts
WEIGHTS = np.random.default_rng(5).uniform(0.5, 2.0, 250)
GROUPS = np.arange(250) % 2
COUNTERPARTS = {
    "default": (si.SpectralPartialCredit(), si.SpectralRasch(), {}),
    "weights": (si.SpectralPartialCredit(), si.SpectralRasch(), {"weights": WEIGHTS}),
    "chain": (si.SpectralPartialCredit(weighting="persons"), si.SpectralRasch(weighting="persons"), {}),
    "pairs": (si.SpectralPartialCredit(weighting="pairs"), si.SpectralRasch(weighting="pairs"), {}),
    "chain, ability": (si.SpectralPartialCredit(refine=False), si.SpectralRasch(refine=False), {}),
    "adaptive": (si.SpectralPartialCredit(), si.SpectralRasch(), {"design": "adaptive", "groups": GROUPS}),
    "conditional": (si.ConditionalPartialCredit(), si.ConditionalRasch(), {}),
    "marginal": (si.MarginalPartialCredit(), si.MarginalRasch(), {"groups": GROUPS, "weights": WEIGHTS}),
    "marginal, adaptive": (si.MarginalPartialCredit(), si.MarginalRasch(), {"design": "adaptive"}),
    "prior": (si.SpectralPartialCredit(regularization=2.0), si.SpectralRasch(regularization=2.0), {}),
    "no prior": (si.SpectralPartialCredit(regularization=0), si.SpectralRasch(regularization=0), {}),
}


@pytest.mark.parametrize("blocks", ["one block"], indirect=True)
@pytest.mark.parametrize("pair", COUNTERPARTS)
def test_partial_credit_on_right_and_wrong_is_rasch(pair):
    credit, rasch, how = COUNTERPARTS[pair]
    a, b = credit.fit(THIN, **how).calibration_, rasch.fit(THIN, **how).calibration_
    for one in ("thresholds", "threshold_se", "difficulty", "se", "item_information", "category_n", "codes"):
        np.testing.assert_allclose(getattr(a, one), getattr(b, one), rtol=1e-6, atol=1e-8, err_msg=one)
    assert a.status.tolist() == b.status.tolist()
    assert [one.code for one in a.findings] == [one.code for one in b.findings]
    for one, column in getattr(rasch, "population_", {}).items():
        np.testing.assert_array_equal(credit.population_[one], column)
    np.testing.assert_allclose(credit.covariance(), rasch.covariance(), rtol=1e-5, atol=1e-8)
    for table in ("items", "threshold_table", "score_table", "information"):
        mine, theirs = getattr(a, table)(), getattr(b, table)()
        assert mine.columns == theirs.columns
        for column in mine.select("^(difficulty|se|ability|information|threshold)$").columns:
            np.testing.assert_allclose(mine[column], theirs[column], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(a.probability([0.3]), b.expected_score([0.3]), atol=1e-8)
