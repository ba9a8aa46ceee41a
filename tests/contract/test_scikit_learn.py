"""scikit-learn's own checks. Values above 0.5 count as right, so that its random tables are responses."""

import pytest

from spectral_irt import SpectralRasch

REASONS = {
    "predict_proba takes abilities, not a table of responses": """dict_unchanged dtype_object estimators_dtypes
        fit2d_predict1d methods_sample_order_invariance methods_subset_invariance n_features_in_after_fitting""",
    "the check's table has every value above 0.5: all answers right, which is refused": """estimators_pickle
        pipeline_consistency estimator_sparse_tag estimator_sparse_array estimator_sparse_matrix fit_idempotent
        fit_check_is_fitted n_features_in transformer_data_not_an_array
        transformer_general transformer_preserve_dtypes transformer_n_iter""",
    "refused, in words of our own": "estimators_empty_data_messages fit2d_1feature fit2d_1sample",
}
NOT_OURS = {f"check_{name}": reason for reason, names in REASONS.items() for name in names.split()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # that we do not inherit from scikit-learn's base class, which we do not import
def test_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator  # here: two seconds that the quick tests do not need

    done = check_estimator(SpectralRasch(threshold=0.5), expected_failed_checks=NOT_OURS, on_fail=None)
    failed = {one["check_name"]: one["exception"] for one in done if one["status"] == "failed"}
    assert not failed
    assert sum(one["status"] == "passed" for one in done) >= 20
