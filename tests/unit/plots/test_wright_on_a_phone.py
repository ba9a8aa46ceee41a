"""The Wright map of a narrow screen: every label is written, near its height, and within the picture."""

from dataclasses import replace

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.plots.wright import PHONE


def texts(ax):
    """Words of the labels with their heights; a line may hold several."""
    return {word: text.get_position()[1] for text in ax.texts for word in text.get_text().split()}


@pytest.mark.parametrize("what", ["items", "raters"])
def test_all_labels_are_there_at_their_heights(what):
    if what == "raters":
        ratings = si.datasets.load_writing()
        study = si.SpectralPartialCredit().fit(ratings).analyse(ratings)
    else:
        data = si.simulate.rasch(400, 40, seed=3).responses
        study = si.SpectralRasch().fit(data).analyse(data)
    display = study.plot.wright()
    ax = display.on_a_phone()
    figure = ax.figure
    assert figure.get_size_inches()[0] == PHONE
    figure.draw_without_rendering()
    written = texts(ax)
    low, high = sorted(ax.get_ylim())
    line = (high - low) / (ax.get_window_extent().height / figure.dpi * 72 / 9)  # a line of 9 points
    for labels, heights in display.beside.values():
        for label, height in zip(labels.tolist(), heights.tolist(), strict=True):
            word = str(label).split()[0]
            if list(map(str, labels)).count(str(label)) == 1 and sum(str(one).startswith(word) for one in labels) == 1:
                assert abs(written[word] - height) < line, label
    renderer = figure.canvas.get_renderer()
    right = figure.bbox.x1
    assert all(text.get_window_extent(renderer).x1 <= right + 1 for text in ax.texts)


def test_people_beyond_the_ends_are_counted():
    data = si.simulate.rasch(400, 12, seed=3).responses
    study = si.SpectralRasch().fit(data).analyse(data)
    narrower = replace(study.plot.wright(), outer=0.1)
    table = narrower.columns()
    assert np.sum(table["persons"]) == 400
    assert np.sum((narrower.ability > table["high"][0]) | (narrower.ability < table["low"][-1])) > 10
