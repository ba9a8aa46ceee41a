"""The sheet of category curves has one legend, also where items lack a category, and a code has one color."""

import numpy as np

import spectral_irt as si
from spectral_irt.plots.all import category_sheet
from spectral_irt.plots.curves import category_curves


def answers():
    rng = np.random.default_rng(2)
    x = rng.integers(1, 6, size=(120, 5)).astype(float)
    x[x[:, 2] == 4, 2] = 5  # nobody answers 4 there
    return si.Responses.from_wide(x, ordered=True)


def test_one_legend_for_all_items():
    responses = answers()
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    (legend,) = category_sheet(study).legends
    assert sorted(text.get_text() for text in legend.get_texts()) == ["1", "2", "3", "4", "5"]


def test_a_code_has_one_color_on_the_sheet():
    responses = answers()
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    colors = {}
    for ax in category_sheet(study).axes:
        for line in ax.lines:
            colors.setdefault(line.get_label(), set()).add(tuple(np.round(line.get_color(), 6)))
    assert len(colors) == 5
    assert all(len(found) == 1 for found in colors.values())


def test_a_picture_of_its_own_has_the_items_codes():
    responses = answers()
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    (curve,) = category_curves(study, [responses.items[2]])
    assert curve.palette.tolist() == [1, 2, 3, 5]
