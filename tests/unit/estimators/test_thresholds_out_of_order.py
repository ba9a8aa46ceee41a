"""Which thresholds are out of order, whether that is sure, and what a prior has to do with it."""

from types import SimpleNamespace

import numpy as np

from spectral_irt.data.block import Thresholds
from spectral_irt.estimators.base import out_of_order

LAYOUT = Thresholds(np.array([2, 3, 1, 2]))
LABELS = np.array(["a", "b", "c", "d"], dtype=object)


def finding_of(thresholds, se, covariance=None, without_prior=None, notes=(), codes=None):
    responses = SimpleNamespace(
        thresholds=LAYOUT, items=LABELS, notes=notes, n_items=4, category_codes=lambda: np.array(codes)
    )
    found = SimpleNamespace(
        thresholds=np.array(thresholds),
        se=np.array(se),
        covariance=covariance,
        facets=None,
        without_prior=None if without_prior is None else np.array(without_prior),
    )
    return out_of_order(responses, found)


def test_thresholds_in_order_are_not_told():
    assert finding_of([0.0, 0.1, -1.0, 0.0, 0.0, 0.4, 0.2, 0.2], np.full(8, 0.1)) == ()


def test_a_threshold_below_the_one_before_is_told_and_is_sure_beyond_its_error():
    thresholds = [0.5, 0.0, -1.0, 0.0, 1.0, 0.4, 0.2, 0.1]
    (finding,) = finding_of(thresholds, np.full(8, 0.2))  # differences have an error of .28, 1.96 times which is .55
    assert (finding.severity, finding.items) == ("note", ("a", "d"))
    (finding,) = finding_of(thresholds, np.full(8, 0.17))  # .47
    assert (finding.severity, finding.items) == ("warning", ("a", "d"))
    together = 0.04 * np.eye(8)
    together[1, 0] = together[0, 1] = 0.02
    (finding,) = finding_of(thresholds, np.full(8, 0.2), together)  # errors that go together: .2
    assert finding.severity == "warning"
    together[1, 0] = together[0, 1] = -0.02
    (finding,) = finding_of(thresholds, np.full(8, 0.17), together)
    assert finding.severity == "note"


def test_what_a_prior_put_in_order_is_told():
    ordered = [0.0, 0.1, -1.0, 0.0, 0.0, 0.4, 0.2, 0.2]
    (finding,) = finding_of(ordered, np.full(8, 0.1), without_prior=[0.0, 0.1, -1.0, 0.0, -0.2, 0.4, np.nan, 0.2])
    assert (finding.severity, finding.items) == ("note", ("b",))


def test_numbers_of_options_are_suspected():
    thresholds = [0.5, -0.5, 1.0, 0.0, -1.0, 0.4, 0.2, 0.3]  # two of four items, surely
    codes = np.array([[1, 2, 3, np.nan], [1, 2, 3, 4], [1, 2, np.nan, np.nan], [1, 2, 3, np.nan]], dtype=float)
    note = SimpleNamespace(code="ordered_categories")
    (finding,) = finding_of(thresholds, np.full(8, 0.1), notes=(note,), codes=codes)
    assert "multiple choice" in finding.remedy
    (finding,) = finding_of(thresholds, np.full(8, 0.1), notes=(note,), codes=codes - 1)  # points begin with 0
    assert "multiple choice" not in finding.remedy
    (finding,) = finding_of(thresholds, np.full(8, 0.1), codes=codes)
    assert "multiple choice" not in finding.remedy
