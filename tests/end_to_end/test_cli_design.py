"""The design of a test on the command line: adaptive administration, populations, clusters of people."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectral_irt import MarginalRasch, SpectralRasch, simulate
from spectral_irt.inference.groups.cluster_errors import cluster_covariance

pytestmark = pytest.mark.slow  # whole runs of commands or checks, seconds each


@pytest.fixture
def adaptive(tmp_path: Path) -> tuple[Path, Any, Any, Any]:
    """An adaptive test in two grades, in classes of thirty; a row for each answer."""
    rng = np.random.default_rng(2)
    grade = np.repeat([3, 4], 300)
    data = simulate.rasch(
        600, 40, design="adaptive", length=12, ability=(grade - 3.5) * 1.2 + rng.normal(size=600), seed=1
    )
    person, item, right = data.responses.answers()
    path = tmp_path / "cat.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["person", "item", "response", "school_year", "room"])
        for u, i, x in zip(person, item, right, strict=True):
            out.writerow([u, i, int(x), grade[u], u // 30])
    return path, data.responses, grade, np.arange(600) // 30


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_plain_fits_and_checks_say_that_something_is_wrong(cli: Callable[..., Any], adaptive: Any) -> None:
    for command in ("fit", "check"):
        done = cli(command, adaptive[0])
        assert done.code == 0, done.err
        said = one_line(done.out)
        assert "items were chosen by the answers (adaptive test" in said
        assert "not from one normal population" in said
        assert "--design adaptive" in said
        assert "--population-by" in said
    assert "chosen by the answers" not in cli("check", adaptive[0], "--design", "adaptive").out


def test_adaptive_with_populations_and_clusters(cli: Callable[..., Any], adaptive: Any, tmp_path: Path) -> None:
    path, responses, grade, room = adaptive
    done = cli(
        "fit", path, "--design", "adaptive", "--population-by", "school_year", "--clustered-by", "room", "-o", "x"
    )
    assert done.code == 0, done.err
    said = one_line(done.out)
    assert "MML estimate" in said
    assert "Ability in the 2 groups, mean and standard deviation: 3: " in said
    assert "Standard errors allow for 20 clusters by room" in said
    assert "takes abilities as normal in each group" in said
    assert "fit of the items was left out" in said
    fit = MarginalRasch().fit(responses, groups=grade)
    with (tmp_path / "x" / "items.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_allclose([float(row["difficulty"]) for row in rows], fit.difficulty_, atol=1e-4)
    robust = cluster_covariance(fit.calibration_, responses, room, grade)
    np.testing.assert_allclose([float(row["se"]) for row in rows], robust.se, rtol=1e-3)
    record = json.loads((tmp_path / "x" / "fit.json").read_text())
    assert record["design"] == "adaptive"
    assert record["estimator"] == "mml"
    assert [one["group"] for one in record["populations"]] == ["3", "4"]
    assert record["populations"][1]["mean"] == pytest.approx(fit.population_["mean"][1], abs=1e-3)
    assert record["input"]["population_by"] == "school_year"
    assert record["item_fit"] is None
    assert not (tmp_path / "x" / "dif.csv").exists()


def test_columns_from_a_table_of_people(cli: Callable[..., Any], adaptive: Any, tmp_path: Path) -> None:
    path, _, grade, room = adaptive
    bare, people = tmp_path / "bare.csv", tmp_path / "people.csv"
    with path.open(newline="") as file, bare.open("w", newline="") as out:
        csv.writer(out).writerows(row[:3] for row in csv.reader(file))
    with people.open("w", newline="") as file:
        rows = zip(range(600), grade, room, strict=True)
        csv.writer(file).writerows([["person", "school_year", "room"], *rows])
    how = ("--design", "adaptive", "--population-by", "school_year", "--clustered-by", "room")
    apart, together = cli("fit", bare, *how, "--group-file", people, "-o", "a"), cli("fit", path, *how, "-o", "b")
    assert (apart.code, together.code) == (0, 0), apart.err
    assert (tmp_path / "a" / "items.csv").read_bytes() == (tmp_path / "b" / "items.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--design", "adaptive", "--estimator", "cml"], "leave out --estimator cml"),
        (["--population-by", "school_year"], "add --estimator mml, or --design adaptive"),
        (["--design", "random"], "it can be 'fixed', 'adaptive'"),
        (["--design", "adaptive", "--chain-weights", "pairs"], "has no --chain-weights"),
        (["--clustered-by", "nowhere"], "nowhere"),
        (["--design", "adaptive", "--population-by", "room", "--anchors", "bank"], "leave out --design"),
        (["--clustered-by", "room", "--anchors", "bank"], "leave out --anchors"),
        (["--survey-weight", "room", "--anchors", "bank"], "leave out --anchors"),
        (["--survey-weight", "room", "--estimator", "cml"], "--survey-weight goes with the spectral estimator"),
    ],
)
def test_what_does_not_go_together(cli: Callable[..., Any], adaptive: Any, options: list[str], said: str) -> None:
    for more in ([], ["--dry-run"]):
        done = cli("fit", adaptive[0], *options, *more)
        assert done.code == 2
        assert said in one_line(done.err)


def test_weights_in_a_column(cli: Callable[..., Any], tmp_path: Path) -> None:
    data = simulate.rasch(200, 6, seed=4).responses
    table, weight = data.to_dense().astype(int), np.random.default_rng(3).uniform(0.2, 5, 200).round(2)
    path = tmp_path / "survey.csv"

    def write(weights: list[Any]) -> None:
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["name", "wt", *(f"q{k}" for k in range(6))])
            out.writerows([f"p{k}", w, *row] for k, (w, row) in enumerate(zip(weights, table.tolist(), strict=True)))

    write(weight.tolist())
    done = cli("fit", path, "--survey-weight", "wt", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert "People count by their weights" in one_line(done.out)
    expected = SpectralRasch().fit(data, weights=weight)
    with (tmp_path / "out" / "items.csv").open() as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_allclose([float(row["difficulty"]) for row in rows], expected.difficulty_, atol=1e-9)
    np.testing.assert_allclose([float(row["se"]) for row in rows], expected.se_, rtol=1e-6)
    for bad, said in (("much", "'much' is not a number"), (-1, "1 person has no weight above zero: 'p7'")):
        write([*weight[:7].tolist(), bad, *weight[8:].tolist()])
        done = cli("fit", path, "--survey-weight", "wt", "-o", tmp_path / "not")
        assert done.code == 2
        assert said in one_line(done.err)
        assert not (tmp_path / "not").exists()
