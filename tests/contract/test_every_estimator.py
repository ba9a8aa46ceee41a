"""One contract that every estimator passes, on one block and on several. A new estimator is one line in `MAKERS`."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse

import spectral_irt
from spectral_irt import (
    AnchoredRasch,
    ChoppinRasch,
    ConditionalRasch,
    EigenvectorRasch,
    JointRasch,
    MarginalRasch,
    PairwiseRasch,
    Responses,
    SpectralRasch,
    VariationalRasch,
    simulate,
)
from spectral_irt.data import arrays, packing

pytestmark = pytest.mark.slow  # many short runs of whole jobs

# How to build each estimator so that its answer is exact enough to compare, and what it cannot take.
MAKERS = {
    "spectral": lambda: SpectralRasch(regularization=0),
    "spectral, prior": lambda: SpectralRasch(regularization=1.5),
    "persons": lambda: SpectralRasch(weighting="persons", regularization=0),
    "pairs": lambda: SpectralRasch(weighting="pairs", regularization=0),
    "paper": lambda: SpectralRasch.paper(),
    "cml": lambda: ConditionalRasch(),
    "cml, sandwich": lambda: ConditionalRasch(se="sandwich"),
    "mml": lambda: MarginalRasch(tol=1e-10),
    "jml": lambda: JointRasch(tol=1e-11),
    "pml": lambda: PairwiseRasch(tol=1e-11),
    "pml, persons": lambda: PairwiseRasch(weighting="persons", tol=1e-11),
    "vb": lambda: VariationalRasch(tol=1e-11),
    "choppin": lambda: ChoppinRasch(),
    "eigenvector": lambda: EigenvectorRasch(),
    "anchored": lambda: AnchoredRasch(ANCHORS, regularization=0),
}
ANCHORS = {0: -0.7}  # of one item, so that any data agree with it: the others follow
PRIORS = {"spectral, prior", "paper", "vb"}  # what they add to the data weighs less against more data
TOLERANCE = 1e-6  # in logits: between two orders of the same sums


@cache
def data(missing=True):
    options = {"design": "sampled", "p": 0.7} if missing else {}
    return simulate.rasch(400, 9, seed=21, **options)


@pytest.fixture(params=["one block", pytest.param("several blocks", marks=pytest.mark.slow)], autouse=True)
def layout(request, monkeypatch):
    """What a million responses look like, in small: every table of the suite also comes in blocks of 200 responses."""
    data.cache_clear()
    if request.param == "several blocks":
        monkeypatch.setattr(packing.person_chunks, "__defaults__", (200,))
        monkeypatch.setattr(arrays, "BLOCK_RESPONSES", 200)
        assert len(data().responses.blocks) > 5
        assert len(Responses.from_wide(data().responses.to_dense()).blocks) > 5
    yield request.param
    data.cache_clear()


QUICK = ("spectral", "spectral, prior", "cml", "jml", "anchored")


@pytest.fixture(params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MAKERS])
def make(request):
    return MAKERS[request.param]


def fitted(make, table):
    return make().fit(table)


def free(fit):
    """Items whose difficulty was estimated, not given."""
    return ~fit.calibration_.anchored


def same(a, b, rtol_se=1e-4):
    np.testing.assert_allclose(a.difficulty_, b.difficulty_, atol=TOLERANCE)
    np.testing.assert_allclose(a.se_, b.se_, rtol=rtol_se)


def test_what_is_learned(make):
    fit = fitted(make, data().responses)
    assert fit.difficulty_.shape == fit.se_.shape == fit.status_.shape == (9,)
    assert np.corrcoef(fit.difficulty_, data().difficulty)[0, 1] > 0.95  # larger = harder
    if isinstance(fit, AnchoredRasch):
        assert (fit.difficulty_[0], fit.se_[0], fit.status_[0]) == (ANCHORS[0], 0, "anchored")
    else:
        assert abs(fit.difficulty_.mean()) < 1e-10
    assert np.all(fit.se_[free(fit)] > 0)
    assert set(fit.status_[free(fit)]) == {"ok"}
    assert isinstance(fit.findings_, tuple)
    assert fit.n_iter_ >= 1
    assert fit.items().columns[:3] == ["item", "difficulty", "se"]


def test_abilities_may_shift(make):
    """Difficulties are relative: the same test taken by a stronger group gives the same difficulties within error."""
    strong = simulate.rasch(4000, 8, difficulty=np.linspace(-1, 1, 8), ability_mean=0.7, seed=3)
    weak = simulate.rasch(4000, 8, difficulty=np.linspace(-1, 1, 8), ability_mean=-0.7, seed=4)
    a, b = fitted(make, strong.responses), fitted(make, weak.responses)
    z = (a.difficulty_ - b.difficulty_)[free(a)] / np.hypot(a.se_, b.se_)[free(a)]
    assert len(z) >= 7
    assert np.abs(z).max() < 4


def test_order_of_users_does_not_matter(make):
    table = data().responses.to_dense()
    order = np.random.default_rng(0).permutation(len(table))
    same(fitted(make, table), fitted(make, table[order]))


def test_items_may_be_relabeled(make):
    table = data().responses.to_dense()
    order = np.random.default_rng(1).permutation(table.shape[1])
    a, b = fitted(make, table), fitted(make, Responses.from_wide(table[:, order], items=order.tolist()))
    np.testing.assert_allclose(a.difficulty_[order], b.difficulty_, atol=TOLERANCE)


def test_one_block_or_many(make, monkeypatch):
    table = data().responses.to_dense()
    persons, items = np.nonzero(~np.isnan(table))
    long = (persons, items, table[persons, items])
    a = fitted(make, Responses.from_long(*long))
    monkeypatch.setattr(packing.person_chunks, "__defaults__", (200,))
    many = Responses.from_long(*long)
    assert len(many.blocks) > 5
    same(a, fitted(make, many))


def test_threads_give_the_same_bits(make, monkeypatch):
    monkeypatch.setattr(packing.person_chunks, "__defaults__", (200,))
    table = data().responses.to_dense()
    persons, items = np.nonzero(~np.isnan(table))
    many = Responses.from_long(persons, items, table[persons, items])
    a, b = make().set_params(threads=1).fit(many), make().set_params(threads=3).fit(many)
    assert np.array_equal(a.difficulty_, b.difficulty_)
    assert np.array_equal(a.se_, b.se_, equal_nan=True)


def test_missing_is_absent(make):
    table = data().responses.to_dense()
    persons, items = np.nonzero(~np.isnan(table))
    long = Responses.from_long(persons, items, table[persons, items])
    stored = sparse.coo_array((table[persons, items], (persons, items)), shape=table.shape)
    nothing = [[None if np.isnan(x) else int(x) for x in row] for row in table]
    masked = np.ma.masked_invalid(table)
    first = fitted(make, table)
    for other in (long, stored, nothing, masked):
        same(first, fitted(make, other))


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in PRIORS])
def test_twice_the_data_same_difficulty_smaller_error(name):
    """Every estimate is a sum over people: doubling each person leaves difficulties, and divides variances by two."""
    table = data().responses.to_dense()
    once, twice = fitted(MAKERS[name], table), fitted(MAKERS[name], np.vstack([table, table]))
    np.testing.assert_allclose(once.difficulty_, twice.difficulty_, atol=1e-5)
    np.testing.assert_allclose(once.se_, twice.se_ * np.sqrt(2), rtol=0.02)


def test_the_callers_table_is_not_touched(make):
    table = data().responses.to_dense()
    before = table.copy()
    fitted(make, table)
    np.testing.assert_array_equal(table, before)


def test_clone_and_parameters(make):
    from sklearn.base import clone

    model = fitted(make, data().responses)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "difficulty_")
    with pytest.raises(spectral_irt.errors.OptionError, match="no parameter 'color'"):
        again.set_params(color="red")


def test_pickle_and_deep_copy(make):
    fit = make().set_params(threads=2).fit(data().responses)
    for again in (pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert np.array_equal(again.difficulty_, fit.difficulty_)
        assert np.array_equal(again.se_, fit.se_)
        assert again.items().equals(fit.items())
        assert repr(again) == repr(fit)


def test_a_fit_keeps_no_answers(make):
    """With ten times the people it is larger by an ability and its error each at most; answers: 25 bytes a person."""
    size = [len(pickle.dumps(make().fit(simulate.rasch(n, 9, seed=5).responses))) for n in (400, 4000)]
    assert size[1] - size[0] <= 16 * 3600 + 500


def test_refusals(make):
    for bad in ([[1, 1], [1, 1]], [[1], [0]], [[1, 0]]):
        with pytest.raises(spectral_irt.errors.DesignError):
            fitted(make, bad)
    with pytest.raises(spectral_irt.errors.ResponseValueError, match="holds 7"):
        fitted(make, [[1, 0], [0, 7]])
