"""Tables of scores of several booklets stand side by side in the report."""

import numpy as np

import spectral_irt as si
from spectral_irt.report.people import _side_by_side
from spectral_irt.text import TEST


def test_each_form_has_its_columns_and_shorter_forms_end_earlier():
    rng = np.random.default_rng(5)
    table = (rng.random((200, 14)) < 0.5).astype(float)
    label = np.array(["short", "long"] * 100)
    table[np.ix_(label == "short", np.arange(6, 14))] = np.nan
    table[np.ix_(label == "long", np.arange(3))] = np.nan
    responses = si.read(table)
    study = si.SpectralRasch().fit(responses).analyse(responses, form=label)
    scores = {name: np.asarray(study.scores()[name]) for name in ("form", "score", "ability", "se", "percentile")}
    columns, values = _side_by_side(scores, scale=False)
    assert [TEST.fill(column.head) for column in columns][:2] == ["Score", "long: Ability"]
    assert values["score"].tolist() == list(range(12))
    np.testing.assert_array_equal(values["ability_1"], scores["ability"][scores["form"] == "long"])
    np.testing.assert_array_equal(values["ability_2"][:7], scores["ability"][scores["form"] == "short"])
    assert np.isnan(values["ability_2"][7:]).all()


def test_the_report_has_them(tmp_path):
    rng = np.random.default_rng(6)
    table = (rng.random((300, 14)) < 0.5).astype(float)
    table[::2, 10:] = np.nan
    table[1::2, :4] = np.nan
    responses = si.read(table)
    study = si.SpectralRasch().fit(responses).analyse(responses)
    page = study.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "form 2: %ile" in page
    assert "of all person-by-item cells (booklet design)" in page
    assert "From 0 to 100" not in page  # side by side there is no room for it
