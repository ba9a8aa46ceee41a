"""The contract of `test_every_estimator.py` on the estimators of ordered answers. A new one is one line in `MAKERS`."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse

import spectral_irt
from spectral_irt import (
    ConditionalPartialCredit,
    ConditionalRatingScale,
    MarginalPartialCredit,
    SpectralPartialCredit,
    SpectralRatingScale,
    simulate,
)
from spectral_irt.data import Responses
from spectral_irt.data import packing as pack

pytestmark = pytest.mark.slow  # many short runs of whole jobs

MAKERS = {
    "pcm": lambda: SpectralPartialCredit(regularization=0),
    "pcm, prior": lambda: SpectralPartialCredit(regularization=1.5),
    "pcm, persons": lambda: SpectralPartialCredit(weighting="persons", regularization=0),
    "pcm, cml": lambda: ConditionalPartialCredit(),
    "pcm, mml": lambda: MarginalPartialCredit(tol=1e-10),
    "rsm": lambda: SpectralRatingScale(),
    "rsm, cml": lambda: ConditionalRatingScale(),
}
PRIORS = {"pcm, prior"}  # what it adds to the data weighs less against more data
TOLERANCE = 1e-6  # in logits: between two orders of the same sums
SETTLED = {"rsm": 5e-5}  # its rounds begin where a prior leads, and end within a thousandth of a standard error
QUICK = ("pcm", "pcm, cml")


@cache
def data():
    """Complete enough for every item to have every category."""
    return simulate.rating_scale(300, 5, categories=3, design="sampled", p=0.8, seed=21)


# Every estimator on one block, a few on several: what a million responses look like, in small.
CASES = [(name, "one block") for name in MAKERS] + [(name, "several blocks") for name in (*QUICK, "rsm")]


@pytest.fixture(
    params=[
        case if case in [(one, "one block") for one in QUICK] else pytest.param(case, marks=pytest.mark.slow)
        for case in CASES
    ],
    ids=", ".join,
)
def name(request, monkeypatch):
    name, layout = request.param
    data.cache_clear()
    if layout == "several blocks":
        monkeypatch.setattr(pack.person_chunks, "__defaults__", (200,))
        assert len(data().responses.blocks) > 5
    yield name
    data.cache_clear()


@pytest.fixture
def make(name):
    return MAKERS[name]


def same(a, b, rtol_se=1e-4):
    np.testing.assert_allclose(a.thresholds_, b.thresholds_, atol=TOLERANCE)
    np.testing.assert_allclose(a.threshold_se_, b.threshold_se_, rtol=rtol_se)
    np.testing.assert_allclose(a.difficulty_, b.difficulty_, atol=TOLERANCE)
    np.testing.assert_allclose(a.se_, b.se_, rtol=rtol_se)


def entries():
    table = data().responses.to_dense()
    persons, items = np.nonzero(~np.isnan(table))
    return persons, items, table[persons, items].astype(int)


def test_what_is_learned(name, make):
    fit = make().fit(data().responses)
    assert fit.thresholds_.shape == fit.threshold_se_.shape == (10,)
    assert fit.difficulty_.shape == fit.se_.shape == fit.status_.shape == (5,)
    assert np.corrcoef(fit.thresholds_, data().thresholds)[0, 1] > 0.9  # larger = harder
    np.testing.assert_allclose(fit.difficulty_, fit.thresholds_.reshape(5, 2).mean(axis=1), atol=1e-12)
    assert abs(fit.difficulty_.mean()) < 1e-10
    assert np.all(fit.threshold_se_ > 0)
    assert np.all(fit.se_ > 0)
    assert set(fit.status_) == {"ok"}
    assert isinstance(fit.findings_, tuple)
    assert fit.n_iter_ >= 1
    assert fit.items().columns[:3] == ["item", "difficulty", "se"]


def test_abilities_may_shift(name, make):
    """Thresholds are relative: the same test taken by a stronger group gives the same ones within error."""
    beta = [[d - 0.6, d + 0.6] for d in np.linspace(-0.8, 0.8, 5)]
    strong, weak = (
        make().fit(simulate.partial_credit(1000, thresholds=beta, ability_mean=mean, seed=seed).responses)
        for mean, seed in ((0.6, 3), (-0.6, 4))
    )
    z = (strong.thresholds_ - weak.thresholds_) / np.hypot(strong.threshold_se_, weak.threshold_se_)
    assert np.abs(z).max() < 4


def test_order_of_users_does_not_matter(make):
    table = data().responses.to_dense()
    order = np.random.default_rng(0).permutation(len(table))
    same(make().fit(table), make().fit(table[order]))


def test_items_may_be_relabeled(make):
    table = data().responses.to_dense()
    order = np.random.default_rng(1).permutation(table.shape[1])
    a, b = make().fit(table), make().fit(Responses.from_wide(table[:, order], items=order.tolist(), ordered=True))
    np.testing.assert_allclose(a.thresholds_.reshape(5, 2)[order], b.thresholds_.reshape(5, 2), atol=TOLERANCE)


def test_one_block_or_many(make, monkeypatch):
    a = make().fit(Responses.from_long(*entries(), ordered=True))
    monkeypatch.setattr(pack.person_chunks, "__defaults__", (200,))
    many = Responses.from_long(*entries(), ordered=True)
    assert len(many.blocks) > 5
    same(a, make().fit(many))


def test_threads_give_the_same_bits(make, monkeypatch):
    monkeypatch.setattr(pack.person_chunks, "__defaults__", (200,))
    many = Responses.from_long(*entries(), ordered=True)
    a, b = make().set_params(threads=1).fit(many), make().set_params(threads=3).fit(many)
    assert np.array_equal(a.thresholds_, b.thresholds_)
    assert np.array_equal(a.threshold_se_, b.threshold_se_, equal_nan=True)


def test_missing_is_absent(make):
    table = data().responses.to_dense()
    persons, items, values = entries()
    stored = sparse.coo_array((values, (persons, items)), shape=table.shape)
    nothing = [[None if np.isnan(x) else int(x) for x in row] for row in table]
    first = make().fit(table)
    for other in (
        Responses.from_long(persons, items, values, ordered=True),
        stored,
        nothing,
        np.ma.masked_invalid(table),
    ):
        same(first, make().fit(other))


def test_twice_the_data_same_thresholds_smaller_error(name, make):
    """Halves add up: doubling each person leaves thresholds, and divides variances by two."""
    if name in PRIORS:
        return
    table = data().responses.to_dense()
    once, twice = make().fit(table), make().fit(np.vstack([table, table]))
    np.testing.assert_allclose(once.thresholds_, twice.thresholds_, atol=SETTLED.get(name, 1e-5))
    np.testing.assert_allclose(once.threshold_se_, twice.threshold_se_ * np.sqrt(2), rtol=0.02)


def test_the_callers_table_is_not_touched(make):
    table = data().responses.to_dense()
    before = table.copy()
    make().fit(table)
    np.testing.assert_array_equal(table, before)


def test_clone_and_parameters(make):
    from sklearn.base import clone

    model = make().fit(data().responses)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "thresholds_")
    with pytest.raises(spectral_irt.errors.OptionError, match="no parameter 'color'"):
        again.set_params(color="red")


def test_pickle_and_deep_copy(make):
    fit = make().set_params(threads=2).fit(data().responses)
    for again in (pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert np.array_equal(again.thresholds_, fit.thresholds_)
        assert np.array_equal(again.se_, fit.se_, equal_nan=True)
        assert again.items().equals(fit.items())
        assert repr(again) == repr(fit)


def test_a_fit_keeps_no_answers(make):
    size = [
        len(pickle.dumps(make().fit(simulate.rating_scale(n, 5, categories=3, seed=5).responses))) for n in (300, 1500)
    ]
    assert size[1] - size[0] <= 16 * 1200 + 500


def test_refusals(make):
    for bad in ([[2, 2], [2, 2]], [[1], [0]], [[1, 0]]):
        with pytest.raises(spectral_irt.errors.DesignError):
            make().fit(bad)
    for bad in (0.5, -2):
        with pytest.raises(spectral_irt.errors.ResponseValueError, match=f"holds {bad}, which is not a category"):
            make().fit([[1, 0], [0, bad]])
