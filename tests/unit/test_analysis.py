"""Analysis: everything from the same numbers, each computed once; its text and files are those of the command."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import spectral_irt as si
from drawn import drawn
from spectral_irt.analysis.cache import columns_of
from spectral_irt.cli.main import main
from spectral_irt.data import Responses
from spectral_irt.engine import LocalEngine
from spectral_irt.inference.groups.model_tests import score_split
from split import in_blocks

pytestmark = pytest.mark.slow  # many short runs of whole jobs


def content(value):
    """What a value holds, for telling whether two are the same."""
    if isinstance(value, np.ndarray):
        plain = repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes()
        return value.shape, hashlib.sha1(plain).hexdigest()
    if sparse.issparse(value):
        return "sparse", value.shape, *map(content, (value.data, value.indices, value.indptr))
    if is_dataclass(value):
        return type(value).__name__, *(content(getattr(value, one.name)) for one in fields(value) if one.name[0] != "_")
    if isinstance(value, tuple | list):
        return tuple(map(content, value))
    if value is None or isinstance(value, str | int | float | np.dtype):
        return value
    if isinstance(value, np.random.SeedSequence | slice):
        return repr(value)
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    raise TypeError(f"{type(value).__name__} cannot be compared")


class CountingEngine(LocalEngine):
    def __init__(self):
        super().__init__(threads=1)
        self.runs: Counter[Any] = Counter()

    def map(self, kernel, parts, *args, each=()):
        name = getattr(kernel, "__qualname__", repr(kernel))
        self.runs[name, content(tuple(parts)), content(args), content(tuple(each))] += 1
        return super().map(kernel, parts, *args, each=each)

    def times(self, kernel):
        return sum(number for (name, *_), number in self.runs.items() if name == kernel)


@pytest.fixture
def counted():
    engine = CountingEngine()
    answers = si.simulate.rasch(700, 12, seed=3).responses.with_engine(engine)
    responses = in_blocks(answers, 100).with_engine(engine)
    fit = si.SpectralRasch().fit(responses)
    engine.runs.clear()
    return fit.analyse(responses), engine


def test_every_kernel_runs_once(counted):
    study, engine = counted
    for name in 2 * ("persons", "item_fit", "reliability", "model_test", "summary", "record", "tables", "ranking"):
        getattr(study, name)()
    runs = engine.runs.copy()
    assert len(runs) > 20
    # Warm's and maximum likelihood; Warm's of four data sets drawn to see how many people are erratic by chance.
    # And the steps to the population of EAP reliability.
    assert 2 + 4 + 3 < engine.times("_estimates") < 2 + 4 + 15
    own = content(study.responses.blocks)
    # Both tests between halves divide people; alpha is asked by the reliability and item by item; Hausman's test and
    # the reliability each begin with a population; patterns of answers are looked for by those who look at pairs, too.
    # Who answered a whole form is counted for tables of scores and for the reliability within forms.
    patterns = {"row_keys", "_rows_of_some"}
    twice = {
        "ability_and_level",
        "_sums_with_score",
        "expected_counts",
        "_passed_last",
        "Block.take",
        "_within",
        *patterns,
    }
    # The others are light, as are the answers one by one, for residuals, unexpected answers and the scalogram.
    light = {
        *("answers", "of_people", "rows_of", "exact_cells"),
        *(f"operator.attrgetter({name!r})" for name in ("n_persons", "items", "options")),
    }
    assert {name for (name, parts, *_), n in runs.items() if parts == own and n > 1} <= twice | light
    # The comparison of two halves fits each of them, and a fit looks at the design of its data more than once.
    engine.runs.clear()
    score_split(study.calibration, study.responses, "ability")
    alone = engine.runs
    again = {key[0]: number for key, number in runs.items() if number > max(1, alone[key])}
    # The halves are made by both tests, and each half looks for people who share their items.
    of_halves = {"sampled_sets", "set_keys", "item_counts"}
    assert again.keys() <= twice | of_halves | light


def test_the_counting_engine_counts(counted):
    study, engine = counted
    study.persons()
    si.Analysis(study.calibration, study.responses).persons()
    assert engine.times("_estimates") == 2
    assert max(engine.runs.values()) == 2


def test_another_scale_computes_nothing_anew(counted):
    study, engine = counted
    study.persons()
    before = sum(engine.runs.values())
    scaled = columns_of(study.rescale(500, 100).persons)
    assert sum(engine.runs.values()) == before
    assert (scaled["measure"].mean(), scaled["measure"].std()) == pytest.approx((500, 100))
    assert "measure" not in columns_of(study.persons)


def test_another_way_to_estimate_abilities_takes_effect():
    answers = si.datasets.load_lsat()
    study = si.SpectralRasch().fit(answers).analyse(answers)
    study.persons(), study.scores(), study.reliability()
    study.ability = "ml"
    anew = si.SpectralRasch().fit(answers).analyse(answers, ability="ml")
    for ask in ("persons", "scores"):
        assert getattr(study, ask)().equals(getattr(anew, ask)())
    assert study.reliability() == anew.reliability()
    study.ability, study.population = "eap", (1.0, 0.5)
    other = si.SpectralRasch().fit(answers).analyse(answers, ability="eap", population=(1.0, 0.5))
    assert study.persons().equals(other.persons())


def test_labels_are_matched_once():
    lsat = si.datasets.load_lsat()
    fit = si.SpectralRasch().fit(lsat)
    order = [3, 1, 0, 4, 2]
    other = Responses.from_wide(lsat.to_dense()[:, order], items=lsat.items[order].tolist())
    assert fit.analyse(other).responses.items.tolist() == lsat.items.tolist()
    for ask in (lambda study: study.item_fit(), lambda study: study.reliability().to_dict()):
        assert str(ask(fit.analyse(other))) == str(ask(fit.analyse(lsat)))


def test_residuals_are_answers_minus_expectations():
    lsat = si.datasets.load_lsat()
    study = si.SpectralRasch().fit(lsat).analyse(lsat)
    table = study.residuals()
    assert table.columns == ["person", "item", "response", "expected", "residual", "z"]
    assert len(table) == lsat.n_responses
    ability = dict(study.persons().select("person", "ability").iter_rows())
    difficulty = dict(study.calibration.items().select("item", "difficulty").iter_rows())
    for row in table.sample(50, seed=1).iter_rows(named=True):
        p = 1 / (1 + np.exp(difficulty[row["item"]] - ability[row["person"]]))
        away = row["response"] - p
        expected = (p, away, away / np.sqrt(p * (1 - p)))
        assert (row["expected"], row["residual"], row["z"]) == pytest.approx(expected)
    assert table["response"].sum() == lsat.item_scores.sum()


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """A test in which two items misfit and one was got right by all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(1)
    slope = np.where(np.arange(14) == 3, 0.3, np.where(np.arange(14) == 7, 3.0, 1.0))
    table = drawn(rng, slope * (rng.normal(0, 1.2, (600, 1)) - np.linspace(-1.5, 1.5, 14))).astype(int)
    table[:, 13] = 1
    frame = pl.DataFrame(table, schema=[f"q{k}" for k in range(14)])
    frame.insert_column(0, pl.Series("student", [f"s{k}" for k in range(600)])).write_csv("answers.csv")
    return "answers.csv"


def paragraphs(text):
    return [part for part in re.split(r"\n\n+", text.strip("\n")) if part]


def without_times(paragraph):
    return re.sub(r" Read in [\d.]+ s, fitted in [\d.]+ s, analyzed in [\d.]+ s\.", "", " ".join(paragraph.split()))


@pytest.mark.parametrize("options", [[], ["-o", "results"]])
def test_the_summary_is_what_the_command_prints(answers, options, capsys):
    assert main(["fit", answers, *options]) == 0
    *printed, places = paragraphs(capsys.readouterr().out)
    assert places.startswith("Results are in" if options else "Nothing was saved")
    responses = si.read(answers)
    study = si.SpectralRasch().fit(responses).analyse(responses)
    said = paragraphs(study.summary(study.parts(writing=bool(options))))
    assert len(said) == len(printed)
    how = next(k for k, part in enumerate(printed) if "passes over the data" in " ".join(part.split()))
    assert "analyzed in" in " ".join(printed[how].split())
    assert without_times(printed.pop(how)) == " ".join(said.pop(how).split())
    assert printed == said
    assert re.search(r"\d of 1\d items misfit beyond chance", " ".join(study.summary().split()))


def test_the_record_counts_what_reading_left_out(tmp_path):
    def counts(answers):
        return si.SpectralRasch().fit(answers).analyse(answers).record()["counts"]

    rows = [(person, item, (person + item) % 2) for person in range(40) for item in range(4) if person % 4 != item]
    columns = zip(*rows, rows[0], rows[5], strict=True)
    assert counts(Responses.from_long(*columns, duplicates="first"))["repeats_left_out"] == 2
    rows = [f"{k},A,{'AB'[k % 2]},{'B9'[k // 20]},{k}" for k in range(40)]
    (tmp_path / "wide.csv").write_text("\n".join(["id,q1,q2,q3,age", *rows]) + "\n")
    found = counts(si.read(tmp_path / "wide.csv", key=dict.fromkeys(["q1", "q2", "q3"], "A")))
    assert (found["columns_left_out"], found["counted_as_wrong"]) == (1, 20)


def test_write_writes_what_the_command_writes(answers):
    assert main(["fit", answers, "-o", "command", "--rank", "3", "--parquet", "--all"]) == 0
    responses = si.read(answers)
    study = si.SpectralRasch().fit(responses).analyse(responses)
    paths = study.write("python", study.parts(writing=True, top=3), parquet=True, every=True)
    names = sorted(path.name for path in Path("command").iterdir())
    assert sorted(path.name for path in paths) == sorted(path.name for path in Path("python").iterdir()) == names
    assert {"items.csv", "persons.csv", "item_fit.csv", "ranking.csv", "items.parquet", "fit.json"} <= set(names)
    for name in names:
        if name != "fit.json":
            assert Path("python", name).read_bytes() == Path("command", name).read_bytes(), name
    command, python = (json.loads(Path(folder, "fit.json").read_text()) for folder in ("command", "python"))
    assert command.pop("seconds")  # what only the command knows: how long it took, its own words for what was asked
    assert command.pop("argv")[0] == "fit"
    assert command["input"].pop("files") == [answers]
    assert command["input"].pop("reading") == {}
    assert list(command["input"].pop("digests")) == [answers]
    assert python == command


def test_nothing_is_written_over_somebody_elses_file(answers):
    Path("results").mkdir()
    Path("results/items.csv").write_text("mine")
    responses = si.read(answers)
    with pytest.raises(si.errors.OutputError, match=r"'items.csv', which no run of spectral-irt wrote"):
        si.SpectralRasch().fit(responses).analyse(responses).write("results")
    assert [path.name for path in Path("results").iterdir()] == ["items.csv"]
    assert Path("results/items.csv").read_text() == "mine"


def test_no_word_of_a_test_that_is_left_out(monkeypatch):
    responses = si.datasets.load_lsat()
    for most, expected in ((5, True), (4, False)):
        monkeypatch.setattr("spectral_irt.analysis.analysis.TEST_ITEMS", most)
        said: list[str] = []
        study = si.Analysis(si.SpectralRasch().fit(responses).calibration_, responses, progress=said.append)
        assert (study.quick_model_test() is not None) == expected
        assert any("more able half" in text for text in said) == expected
