"""Where anchors put the scale, ordered responses stay: the origin is theirs, not the mean of the items."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si


@pytest.mark.parametrize("categories", [2, 4])
def test_anchors_moved_by_three_logits_move_all_items_by_three(categories, tmp_path):
    data = si.simulate.partial_credit(600, 6, categories=categories, seed=8)
    free = si.SpectralPartialCredit(regularization=0).fit(data.responses)
    thresholds = pl.DataFrame(
        {
            "item": np.repeat(free.items()["item"].to_numpy(), categories - 1),
            "category": np.tile(np.arange(1, categories), 6),
            "threshold": free.thresholds_ + 3.0,
        }
    )
    anchors = tmp_path / "anchors.csv"
    thresholds.head(2 * (categories - 1)).write_csv(anchors)
    fit = si.AnchoredRasch(anchors, regularization=0).fit(data.responses)
    np.testing.assert_allclose(fit.thresholds_, free.thresholds_ + 3.0, atol=2e-3)
