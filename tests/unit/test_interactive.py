"""What somebody meets who works in Python by hand: names to complete, copies, notebooks, arguments of another kind."""

import copy
import dataclasses
import json
import pickle
import sys
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spectral_irt as si
from ratings import simulated
from spectral_irt import datasets, paper, simulate
from spectral_irt.analysis.cache import columns_of
from spectral_irt.errors import OptionError


@pytest.fixture(scope="module")
def lsat():
    return datasets.load_lsat()


@pytest.fixture(scope="module")
def study(lsat):
    return si.SpectralRasch().fit(lsat).analyse(lsat)


# Names.


@pytest.mark.parametrize("module", [si, paper])
def test_only_public_names_are_offered(module):
    offered = {name for name in dir(module) if not name.startswith("__")}
    assert offered == set(module.__all__)


def test_results_that_a_method_does_not_have_are_not_offered(lsat):
    spectral = si.SpectralRasch().fit(lsat)
    conditional = si.ConditionalRasch().fit(lsat)
    pairwise = si.ChoppinRasch().fit(lsat)
    assert "loglik_" not in dir(pairwise)
    assert "loglik_" in dir(conditional)
    for fit in (spectral, conditional, pairwise):
        for name in dir(fit):
            getattr(fit, name)
    with pytest.raises(AttributeError, match="ChoppinRasch has no loglik_"):
        pairwise.loglik_  # noqa: B018


# Copies.


@pytest.mark.parametrize("kind", ["right or wrong", "clustered", "ordered", "ratings"])
@pytest.mark.parametrize(
    "copied", [lambda study: pickle.loads(pickle.dumps(study)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_an_analysis_can_be_copied(kind, copied, lsat):
    said = []
    if kind == "ratings":
        responses = simulated([[k % 3, (k + 1) % 3] for k in range(60)], 3, 3, seed=2)[0]
        fit = si.SpectralPartialCredit().fit(responses)
    elif kind == "ordered":
        responses = simulate.partial_credit(200, 5, categories=3, seed=1).responses
        fit = si.SpectralPartialCredit().fit(responses)
    else:
        responses = lsat
        fit = si.SpectralRasch().fit(lsat)
    study = fit.analyse(responses, progress=said.append)
    if kind == "clustered":
        study = study.clustered(np.arange(responses.n_persons) % 40)
    persons = columns_of(study.persons)
    other = copied(study)
    said.clear()
    for name, values in columns_of(other.persons).items():
        np.testing.assert_array_equal(values, persons[name])
    assert not said  # who listens to the first is not told about the work of its copy
    assert other.summary() == study.summary()


# Notebooks.


def test_a_summary_is_a_text_in_a_notebook_too(study, monkeypatch):
    expected = study.summary()
    shown = []

    class ZMQInteractiveShell:
        """What rich takes for a sign of Jupyter."""

    display = types.ModuleType("IPython.display")
    display.display = lambda *what, **how: shown.append(what)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("builtins.get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr("rich.console.get_ipython", ZMQInteractiveShell, raising=False)
    from rich.console import Console

    assert Console().is_jupyter
    assert study.summary() == expected
    assert not shown


# Arguments of another kind.


def test_the_algorithms_of_the_paper_take_responses(lsat):
    x = lsat.to_dense()
    y = paper.pair_counts(lsat)
    for algorithm in (paper.algorithm_1, paper.algorithm_2):
        expected = algorithm(y).difficulty
        for responses in (x, x.astype(int), x.tolist(), pl.DataFrame(x), lsat):
            np.testing.assert_allclose(algorithm(responses).difficulty, expected, atol=1e-8)
        with pytest.raises(OptionError, match="square matrix"):
            algorithm(np.ones((5, 5)))


def test_a_dataframe_says_more_about_people():
    responses = si.read(
        pl.DataFrame({"person": ["ann", "bob", "cy"], "sex": ["f", "m", "f"], "q1": [1, 0, 1]}), people="sex"
    )
    for frame in (pl.DataFrame, pd.DataFrame):
        people = responses.with_people(frame({"person": ["cy", "ann", "zoe"], "class": [7, 8, 9]})).people
        assert people["class"].tolist() == [8, None, 7]
        assert people["sex"].tolist() == ["f", "m", "f"]
        with pytest.raises(OptionError, match=r"none of the people in the dataframe \('zoe'\)"):
            responses.with_people(frame({"person": ["zoe"], "class": [7]}))
        with pytest.raises(OptionError, match="has one column, 'class'"):
            responses.with_people(frame({"class": [7, 8, 9]}))
    with pytest.raises(OptionError, match="a file or a dataframe with a row for each person, not dict"):
        responses.with_people({"class": [7, 8, 9]})


def test_the_next_item_is_of_a_bank(study, lsat):
    for other in (study, study.calibration, si.SpectralRasch().fit(lsat)):
        with pytest.raises(OptionError, match=f"is a bank, not {type(other).__name__}"):
            si.next_item(other, {})


def test_the_next_item_can_be_written_as_json(lsat):
    numbered = si.SpectralRasch().fit(lsat.to_dense()).analyse(lsat.to_dense()).to_bank()
    asked = si.next_item(numbered, {numbered.items[2]: np.int64(1)})
    assert json.loads(json.dumps(dataclasses.asdict(asked)))["item"] in numbered.items.tolist()
