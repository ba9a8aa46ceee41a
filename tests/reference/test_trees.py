"""Trees of psychotree 0.16 (`raschtree`, `pctree`): statistics in every node, splits, difficulties in the leaves."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.inference.groups.calibrations import by_newton, model_like
from spectral_irt.inference.groups.fluctuation import column_test, covariate, fluctuation, walk
from spectral_irt.inference.groups.sampling import SIMPLE, SampledPersons

HERE = Path(__file__).parent
GOLD = json.loads((HERE / "trees.json").read_text())
COLUMNS = ["age", "sex", "region"]
STATISTIC = 1e-3  # psychotree stops its Newton steps at about 1e-4 of the statistic
DIFFICULTY = 1e-4


@pytest.fixture(scope="module", params=["binary", "ordered"])
def grown(request):
    kind = request.param
    frame = pl.read_csv(HERE / f"tree_{kind}.csv")
    responses = si.read(frame, people=COLUMNS, **({"ordered": True} if kind == "ordered" else {}))
    estimator = si.SpectralPartialCredit() if kind == "ordered" else si.SpectralRasch()
    study = estimator.fit(responses).analyse(responses)
    return GOLD[kind], study, study.dif_tree(COLUMNS, sample="all")


def test_nodes_have_psychotrees_persons_and_splits(grown):
    gold, _, tree = grown
    assert [tree.n_of(node) for node in tree.nodes] == [node["n"] for node in gold["nodes"]]
    for node, expected in zip(tree.nodes, gold["nodes"], strict=True):
        column = None if node.cut is None else tree.columns[node.cut.column]
        assert column == (expected["split"] and expected["split"]["variable"])
        if column == "age":
            assert tree.nodes[node.children[0] - 1].rule == f"age <= {expected['split']['breaks']}"


def test_statistics_are_psychotrees(grown):
    """psychotree cuts between persons of one age, in the order of the file; ours keeps them together."""
    gold, study, tree = grown
    responses = study.responses
    age = np.asarray(responses.people["age"].tolist(), dtype=float)
    rank = np.argsort(np.argsort(age, kind="stable"), kind="stable")
    of_columns = [covariate(responses, name, responses.people[name].tolist()) for name in COLUMNS]
    without_ties = replace(of_columns[0], code=rank, low=np.sort(age), high=np.sort(age))
    for node, expected in zip(tree.nodes, gold["nodes"], strict=True):
        inside = np.isin(tree.leaf_of, [leaf.number for leaf in tree.leaf_nodes if tree._is_below(leaf, node.number)])
        persons = SampledPersons(responses, SIMPLE).take(inside)
        fit = by_newton(persons.responses, model_like(study.calibration), None, "node")
        columns = [each.take(inside) for each in (without_ties, *of_columns[1:])]
        found = fluctuation(persons, fit.thresholds, columns)
        statistic = [column_test(walk(found, k), each.kind, found.df).statistic for k, each in enumerate(columns)]
        np.testing.assert_allclose(np.nan_to_num(statistic), expected["test"]["statistic"], atol=STATISTIC)
        # What the tree itself says of columns without ties.
        assert [test.statistic for test in node.tests[1:]] == pytest.approx(statistic[1:], abs=1e-6, nan_ok=True)


def test_difficulties_of_the_leaves_are_psychotrees(grown):
    gold, _, tree = grown
    for leaf, expected in zip(tree.leaf_nodes, gold["itempar"], strict=True):
        np.testing.assert_allclose(leaf.difficulty, expected, atol=DIFFICULTY)


def test_log_likelihood_is_psychotrees(grown):
    gold, study, tree = grown
    total = 0.0
    for leaf in tree.leaf_nodes:
        some = study.responses.take_persons(tree.leaf_of == leaf.number)
        total += by_newton(some, model_like(study.calibration), None, "leaf").loglik
    assert total == pytest.approx(gold["loglik"], abs=1e-3)
