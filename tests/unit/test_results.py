"""The methods of a fit are the functions that they call: the same parameters, defaults and answers."""

from __future__ import annotations

import inspect

import pytest

from spectral_irt import SpectralRasch, datasets
from spectral_irt.bank.bank import to_bank
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference import dependence, differential, item_fit, ranking, reliability, restscore, wald
from spectral_irt.persons import table
from spectral_irt.results import Results

FUNCTIONS = {
    "persons": table.persons,
    "score_table": table.score_table,
    "reliability": reliability.reliability,
    "test_information": reliability.test_information,
    "item_fit": item_fit.item_fit,
    "item_restscore": restscore.item_restscore,
    "local_dependence": dependence.local_dependence,
    "score_split": wald.score_split,
    "dif": differential.differential,
    "ranking": ranking.ranking,
    "to_bank": to_bank,
}


def test_every_method_is_declared_with_its_function() -> None:
    assert {name for name in vars(Results) if not name.startswith("_")} == set(FUNCTIONS)
    for name in FUNCTIONS:
        assert getattr(RaschEstimator, name) is vars(Results)[name]
        assert vars(Results)[name].__doc__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_method_takes_what_its_function_takes(name: str) -> None:
    method, function = (inspect.signature(one).parameters.values() for one in (vars(Results)[name], FUNCTIONS[name]))
    told = [[(one.name, one.kind, one.default, str(one.annotation)) for one in some][1:] for some in (method, function)]
    assert told[0] == told[1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_method_passes_everything_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every parameter gets a value of its own, and the function hears each under its own name."""
    function = FUNCTIONS[name]
    heard = {}

    def listen(*args: object, **more: object) -> None:
        heard.update(inspect.signature(function).bind(*args, **more).arguments)

    monkeypatch.setattr(inspect.getmodule(function), function.__name__, listen)
    fit = SpectralRasch()
    parameters = list(inspect.signature(function).parameters)
    given = {parameter: f"value of {parameter}" for parameter in parameters[1:]}
    getattr(fit, name)(**given)
    assert heard == {parameters[0]: fit, **given}


def test_answers_agree() -> None:
    lsat = datasets.load_lsat()
    fit = SpectralRasch().fit(lsat)
    assert fit.persons(lsat).equals(table.persons(fit, lsat))
    assert fit.score_table(["item1", "item2"]).equals(table.score_table(fit, ["item1", "item2"]))
