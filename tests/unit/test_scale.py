"""On which scale results are reported: by persons, by items, by a formula; and that of anchors, which stays."""

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import simulate
from spectral_irt.cli.options import asked_scale
from spectral_irt.errors import OptionError


def study_of(seed, **options):
    responses = simulate.rasch(400, 12, seed=seed).responses
    return si.SpectralRasch().fit(responses, **options).analyse(responses)


def ordered_study(seed, **options):
    responses = simulate.partial_credit(400, 6, categories=4, seed=seed).responses
    return si.SpectralPartialCredit().fit(responses, **options).analyse(responses)


@pytest.mark.parametrize("make", [study_of, ordered_study])
def test_a_scale_by_persons_items_or_formula(make):
    study = make(1)
    ability = study.abilities().ability
    by_persons = study.rescale(500, 100).calibration.scale
    measures = by_persons.measure(ability)
    assert (measures.mean(), measures.std(ddof=1)) == pytest.approx((500, 100), rel=2e-3)
    if make is study_of:  # anchored difficulties have another mean than zero
        known = study.calibration
        study = make(1, anchors={known.labels[k]: known.difficulty[k] + 1.5 for k in range(3)})
    by_items = study.rescale(50, 10, by="items").calibration.scale
    items = by_items.measure(study.calibration.difficulty)
    assert items.mean() == pytest.approx(50)
    assert by_items.unit == 10
    formula = study.rescale(478.7, 82.3, by="formula").calibration.scale
    assert (formula.mean, formula.unit) == (478.7, 82.3)


@pytest.mark.parametrize("make", [study_of, ordered_study])
def test_anchors_keep_their_scale(make):
    last_year = make(1).rescale(500, 100)
    bank = last_year.to_bank()
    scale = bank.calibration.scale
    this_year = make(2, anchors=bank)
    assert this_year.calibration.scale == scale
    again = this_year.rescale(round(scale.mean, 2), round(scale.unit, 2), by="formula")
    assert again.calibration.scale == scale
    with pytest.raises(OptionError, match="the anchors carry the scale") as error:
        this_year.rescale(500, 100)
    assert scale.formula in str(error.value)
    assert "the mean 500 and sd 100 of these persons would be" in str(error.value)


def test_a_scale_that_cannot_be():
    study = study_of(1)
    for mean, sd in ((np.nan, 1), (500, 0), (500, -1), (np.inf, 1)):
        with pytest.raises(OptionError, match="above zero"):
            study.rescale(mean, sd)
    with pytest.raises(OptionError, match="persons"):
        study.rescale(500, 100, by="people")


def test_what_the_option_says():
    assert asked_scale("500,100") == (500, 100, "persons")
    assert asked_scale("formula:478.7,82.3") == (478.7, 82.3, "formula")
    assert asked_scale("items:50,10") == (50, 10, "items")
    for text in ("raters:50,10", "items:50", "formula:1,0", "items:,", ":1,2"):
        with pytest.raises(OptionError, match="--scale is"):
            asked_scale(text)


def test_the_summary_says_where_the_scale_comes_from():
    responses = simulate.rasch(300, 8, seed=1).responses
    study = si.SpectralRasch().fit(responses).analyse(responses)
    assert "x logit" not in study.summary()
    scaled = study.rescale(500, 100)
    scale = scaled.calibration.scale
    assert (
        f"scale   {scale.mean:.1f} + {scale.unit:.1f} x logit, by which these persons have the mean 500 and the sd 100"
        in scaled.summary(width=200)
    )
    assert "x logit, by which the items have the mean 50" in study.rescale(50, 10, by="items").summary(width=200)
    assert "scale   50.0 + 10.0 x logit\n" in study.rescale(50, 10, by="formula").summary(width=200)
    anchored = si.SpectralRasch().fit(responses, anchors=scaled.to_bank()).analyse(responses)
    assert "x logit, that of the anchors" in anchored.summary(width=200)


@pytest.mark.parametrize("make", [study_of, ordered_study])
def test_every_table_that_has_measures_has_them_on_the_scale(make):
    study = make(3).rescale(500, 100)
    tables = study.tables(study.parts(writing=True, groups={"half": np.arange(400) % 2}))
    scale = study.calibration.scale
    for name, place in (("items", "difficulty"), ("persons", "ability"), ("scores", "ability"), ("guttman", "ability")):
        finite = np.isfinite(tables[name][place])
        measured = scale.measure(tables[name][place])[finite]
        assert tables[name]["measure"][finite] == pytest.approx(measured), name
