"""scikit-learn's own checks. Values above 0.5 count as right, so that its random tables are responses."""

import pytest

from spectral_irt import SpectralRasch

ABILITIES = "predict_proba takes abilities, not a table of responses"
ALL_RIGHT = "the check's table has every value above 0.5: all answers right, which is refused"
OUR_WORDS = "refused, in words of our own"

NOT_OURS = {
    "check_dict_unchanged": ABILITIES,
    "check_dtype_object": ABILITIES,
    "check_estimators_dtypes": ABILITIES,
    "check_fit2d_predict1d": ABILITIES,
    "check_methods_sample_order_invariance": ABILITIES,
    "check_methods_subset_invariance": ABILITIES,
    "check_n_features_in_after_fitting": ABILITIES,
    "check_estimators_pickle": ALL_RIGHT,
    "check_pipeline_consistency": ALL_RIGHT,
    "check_estimator_sparse_tag": ALL_RIGHT,
    "check_estimator_sparse_array": ALL_RIGHT,
    "check_estimator_sparse_matrix": ALL_RIGHT,
    "check_fit_idempotent": ALL_RIGHT,
    "check_fit_check_is_fitted": ALL_RIGHT,
    "check_n_features_in": ALL_RIGHT,
    "check_estimators_empty_data_messages": OUR_WORDS,
    "check_fit2d_1feature": OUR_WORDS,
    "check_fit2d_1sample": OUR_WORDS,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # that we do not inherit from scikit-learn's base class, which we do not import
def test_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator  # here: two seconds that the quick tests do not need

    done = check_estimator(SpectralRasch(threshold=0.5), expected_failed_checks=NOT_OURS, on_fail=None)
    failed = {one["check_name"]: one["exception"] for one in done if one["status"] == "failed"}
    assert not failed
    assert sum(one["status"] == "passed" for one in done) >= 20
