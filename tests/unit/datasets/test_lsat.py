"""The bundled table is the published one."""

from pathlib import Path

import numpy as np

from spectral_irt.datasets import load_lsat

REFERENCE = Path(__file__).parents[2] / "reference" / "lsat6.csv"


def test_is_the_reference_table():
    expected = np.loadtxt(REFERENCE, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(load_lsat().to_dense(), expected)


def test_labels():
    lsat = load_lsat()
    assert lsat.items.tolist() == ["item1", "item2", "item3", "item4", "item5"]
    assert lsat.persons.tolist() == list(range(1, 1001))
    assert "LSAT" in lsat.source


def test_published_totals():
    """Right answers per item and frequencies of the raw scores 0 to 5, as printed wherever the data are discussed."""
    lsat = load_lsat()
    assert lsat.item_scores.tolist() == [924, 709, 553, 763, 870]
    assert np.bincount(lsat.scores).tolist() == [3, 20, 85, 237, 357, 298]
