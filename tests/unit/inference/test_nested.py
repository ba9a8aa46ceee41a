"""Errors of differences of two fits, of which one has some of the responses of the other."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.inference.nested import Calibrated, centered_on, nested_covariance


@pytest.mark.parametrize("categories", [2, 4])
def test_the_error_of_a_difference_is_what_the_model_says(categories):
    """Sums over persons beside Var(b2) - Var(b1), of the locations of items in so many categories."""
    responses = si.simulate.partial_credit(600, 6, categories=categories, seed=11).responses
    estimator = si.SpectralRasch if categories == 2 else si.SpectralPartialCredit
    study = estimator().fit(responses).analyse(responses)
    half = study.drop_persons(responses.persons[:300].tolist())
    se = study.compare(half).items["se"]
    places = (np.arange(6), np.arange(6))
    calibrated = [Calibrated(one.calibration, one.responses, one.sampling) for one in (study, half)]
    by_model = centered_on(nested_covariance(*calibrated, places), np.full(6, 1 / 6))
    np.testing.assert_allclose(se, np.sqrt(np.diag(by_model)), rtol=0.15)
    # A half has twice the variance of all, so that the difference has that of all.
    own = study.location_covariance()
    centered = centered_on(own, np.full(6, 1 / 6))
    np.testing.assert_allclose(se, np.sqrt(np.diag(centered)), rtol=0.2)


def test_items_with_other_categories_are_left_out_of_the_comparison():
    responses = si.simulate.partial_credit(300, 6, categories=4, seed=12).responses
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    merged = study.collapse(responses.items.tolist()[2], [0, 1, 1, 2])
    items = study.compare(merged).items
    assert items["item"].tolist() == [label for k, label in enumerate(responses.items.tolist()) if k != 2]
    assert np.isfinite(items["se"]).all()
