"""`spectral-irt compare`: a row for each estimator, whatever becomes of it."""

import csv

import numpy as np
import pytest

from spectral_irt import simulate
from spectral_irt.cli.main import main
from spectral_irt.estimators.by_name import METHODS

pytestmark = pytest.mark.slow  # many short runs of whole jobs


@pytest.fixture
def answers(tmp_path):
    table = simulate.rasch(200, 6, design="sampled", p=0.8, seed=1).responses.to_dense()
    path = tmp_path / "answers.csv"
    rows = [",".join("" if np.isnan(x) else str(int(x)) for x in row) for row in table]
    path.write_text("\n".join([",".join(f"q{k}" for k in range(6)), *rows]) + "\n")
    return path


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


def test_a_method_that_fails_says_why(tmp_path, capsys):
    sparse = simulate.rasch(60, 30, design="sampled", p=0.2, seed=2).responses.to_dense()
    path = tmp_path / "sparse.csv"
    rows = [",".join("" if np.isnan(x) else str(int(x)) for x in row) for row in sparse]
    path.write_text("\n".join([",".join(f"q{k}" for k in range(30)), *rows]) + "\n")
    assert main(["compare", str(path), "--estimators", "spectral,choppin"]) == 0
    printed = capsys.readouterr().out
    assert "choppin: sparse.csv:" in printed
    assert "pairs of items lack" in " ".join(printed.split())


def test_unknown_estimator_is_refused(answers, capsys):
    assert main(["compare", str(answers), "--estimators", "spectral,magic"]) == 2
    assert "'magic'" in capsys.readouterr().err
    assert main(["compare", str(answers), "--holdout", "2"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err


def test_it_fails_where_no_method_has_a_result(tmp_path, capsys):
    sparse = simulate.rasch(60, 30, design="sampled", p=0.2, seed=2).responses.to_dense()
    path, out = tmp_path / "sparse.csv", tmp_path / "out.csv"
    rows = [",".join("" if np.isnan(x) else str(int(x)) for x in row) for row in sparse]
    path.write_text("\n".join([",".join(f"q{k}" for k in range(30)), *rows]) + "\n")
    assert main(["compare", str(path), "--estimators", "choppin", "-o", str(out)]) == 2
    assert "no estimator has a result. choppin: sparse.csv:" in " ".join(capsys.readouterr().err.split())
    assert not out.exists()
