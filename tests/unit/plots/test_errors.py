"""What cannot be shown is an error with a remedy, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError

pytestmark = pytest.mark.slow  # pictures, or whole runs of commands


def test_an_item_that_is_not_there(study: si.Analysis) -> None:
    with pytest.raises(OptionError, match=r"there is no item 'Itm 9'. Did you mean 'Item 9'"):
        study.plot.icc("Itm 9")
    with pytest.raises(OptionError, match=r"Did you mean 'Item 7'"):
        study.plot.icc("item 7")
    with pytest.raises(OptionError, match=r"there is no item 'qqq'. The items are '\$x\^2\$'.* and 15 more"):
        study.plot.icc("qqq")
    with pytest.raises(OptionError, match=r"`strata` is 1; it takes two"):
        study.plot.icc("Item 9", strata=1)


def test_labels_that_are_numbers() -> None:
    answers = si.simulate.rasch(200, 6, seed=1).responses
    study = si.SpectralRasch().fit(answers).analyse(answers)
    assert study.plot.icc("3").label == study.plot.icc(3).label == 3
    with pytest.raises(OptionError, match="there is no item 33"):
        study.plot.icc(33)


def test_an_analysis_without_people(study: si.Analysis) -> None:
    nobody = si.Analysis(study.calibration, study.responses.take_persons(np.zeros(0, dtype=int)))
    for ask in (nobody.plot.wright, nobody.plot.scores, lambda: nobody.plot.icc("Item 9"), nobody.plot.fit):
        with pytest.raises(OptionError, match=r"no people|no item has a fit"):
            ask()
    assert len(nobody.plot.items().frame()) == 20
    assert len(nobody.plot.information().frame()) == 201
    nobody.plot.information().plot()


def test_only_extreme_scores_by_maximum_likelihood() -> None:
    lsat = si.datasets.load_lsat()
    fit = si.SpectralRasch().fit(lsat)
    all_right = lsat.take_persons(lsat.scores == 5)
    study = fit.analyse(all_right, ability="ml")
    with pytest.raises(OptionError, match=r"nobody has a finite ability.*'wle' gives finite ones"):
        study.plot.wright()
    with pytest.raises(OptionError, match=r"no item has a fit to show"):
        study.plot.fit()
    some = fit.analyse(lsat, ability="ml").plot.wright()
    assert some.left_out == int(((lsat.scores == 0) | (lsat.scores == 5)).sum())
    assert f"{some.left_out:,} without" in some.plot().get_xticklabels()[0].get_text()


def test_no_difficulties_and_no_standard_errors(study: si.Analysis, tmp_path: Path) -> None:
    known = study.calibration
    nothing = si.Analysis(known.replace(thresholds=np.full(20, np.nan)), study.responses)
    for ask in (nothing.plot.items, nothing.plot.information, lambda: nothing.plot.icc("Item 9")):
        with pytest.raises(OptionError, match=r"no item has a finite difficulty|no place on the common scale"):
            ask()
    unsure = si.Analysis(known.replace(threshold_se=np.full(20, np.inf), covariance=None), study.responses)
    for ask in (unsure.plot.items, unsure.plot.ranks):
        with pytest.raises(OptionError, match=r"no item has a finite standard error.*Fit with standard errors"):
            ask()
    with pytest.raises(OptionError):
        unsure.plot.items().save(tmp_path / "items.svg")
    assert not list(tmp_path.iterdir())


def test_items_off_the_common_scale_are_left_out_and_counted(study: si.Analysis) -> None:
    status = study.calibration.status.copy()
    status[[2, 6]] = "unlinked"
    se = study.calibration.threshold_se.copy()
    se[[2, 6]] = np.inf
    partly = si.Analysis(study.calibration.replace(status=status, threshold_se=se), study.responses)
    display = partly.plot.items()
    assert len(display.frame()) == 18
    assert any("2 items without a standard error left out" in text.get_text() for text in display.plot().texts)
    assert partly.plot.wright().frame()["items"].sum() == 18
    with pytest.raises(OptionError, match=r"no place on the common scale, and so no curve: '_a_' \(unlinked\)"):
        partly.plot.icc("_a_")
