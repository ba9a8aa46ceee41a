"""`spectral-irt compare`: a row for each estimator, whatever becomes of it."""

import csv

import numpy as np
import pytest

from spectral_irt import simulate
from spectral_irt.cli.main import main
from spectral_irt.estimators.by_name import METHODS

pytestmark = pytest.mark.slow  # many short runs of whole jobs


def written(path, people, items, p, seed):
    table = simulate.rasch(people, items, design="sampled", p=p, seed=seed).responses.to_dense()
    rows = [",".join("" if np.isnan(x) else str(int(x)) for x in row) for row in table]
    path.write_text("\n".join([",".join(f"q{k}" for k in range(items)), *rows]) + "\n")
    return path


@pytest.fixture
def answers(tmp_path):
    return written(tmp_path / "answers.csv", 200, 6, 0.8, 1)


@pytest.fixture
def sparse(tmp_path):
    return written(tmp_path / "sparse.csv", 60, 30, 0.2, 2)


def test_every_estimator_has_its_row(answers, tmp_path, capsys):
    out = tmp_path / "compared.csv"
    assert main(["compare", str(answers), "--seed", "3", "-o", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [row["method"] for row in rows] == list(METHODS)
    assert all(row["problem"] == "" for row in rows)
    assert {row["method"]: float(row["distance_to_cml"]) for row in rows}["cml"] == 0
    printed = capsys.readouterr().out
    assert "from CML" in printed
    assert "eigenvector" in printed


def test_a_method_that_fails_says_why(sparse, tmp_path, capsys):
    assert main(["compare", str(sparse), "--estimators", "spectral,choppin"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "choppin: sparse.csv:" in printed
    assert "pairs of items lack" in printed
    assert main(["compare", str(sparse), "--estimators", "choppin", "-o", str(tmp_path / "out.csv")]) == 2
    assert "no estimator has a result. choppin: sparse.csv:" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out.csv").exists()


def test_unknown_estimator_is_refused(answers, capsys):
    assert main(["compare", str(answers), "--estimators", "spectral,magic"]) == 2
    assert "'magic'" in capsys.readouterr().err
    assert main(["compare", str(answers), "--holdout", "2"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err
