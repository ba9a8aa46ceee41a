"""The same answers are the same responses, whichever way they come in: scored or as categories, by every door."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spectral_irt as si
from reading import in_sqlite, save
from spectral_irt.errors import ResponseValueError

ORDERED = [
    si.SpectralPartialCredit(),
    si.ConditionalPartialCredit(),
    si.MarginalPartialCredit(),
    si.SpectralRatingScale(),
    si.ConditionalRatingScale(),
]


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """A wide table with a column of names and an attribute beside the answers."""
    drawn = si.simulate.rating_scale(200, 5, categories=3, seed=1).responses.to_dense().astype(int)
    named = {"student": [f"s{k}" for k in range(200)], "sex": ["f", "m"] * 100}
    return pl.DataFrame(named | {f"q{k}": drawn[:, k] for k in range(5)})


@pytest.mark.parametrize("estimator", ORDERED, ids=lambda estimator: type(estimator).__name__)
def test_a_frame_means_the_same_to_estimators_of_ordered_answers(estimator: Any, survey: pl.DataFrame) -> None:
    long = survey.unpivot(index=["student", "sex"], variable_name="item", value_name="response")
    long = long.sample(fraction=1, shuffle=True, seed=2)
    plain = estimator.fit(survey.select(pl.selectors.starts_with("q")).to_numpy()).calibration_.thresholds
    indexed = pd.DataFrame(survey.to_pandas().set_index("student"))
    for frame in (survey, survey.to_pandas(), long, long.to_pandas(), indexed):
        found = estimator.fit(frame).calibration_
        assert found.labels.tolist() == [f"q{k}" for k in range(5)]
        np.testing.assert_allclose(found.thresholds, plain, atol=1e-6)


def test_a_frame_of_labels_says_where_recode_goes(survey: pl.DataFrame) -> None:
    words = survey.with_columns(pl.selectors.starts_with("q").replace_strict({0: "low", 1: "mid", 2: "high"}))
    with pytest.raises(ResponseValueError, match=r"`recode=`.*Such options go to spectral_irt\.read"):
        si.SpectralPartialCredit().fit(words)


def packed(frame: pl.DataFrame, at: Path, **how: Any) -> Path:
    si.read(frame, **how).save(at / "a.packed")
    return at / "a.packed"


def written(frame: pl.DataFrame, at: Path, ending: str) -> Path:
    if ending != "xlsx":
        return save(frame, at / f"a.{ending}")
    frame.write_excel(at / "a.xlsx")
    return at / "a.xlsx"


FRAMES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
}
FILES = ("csv", "parquet", "xlsx", "arrow", "jsonl")
KINDS = {
    "right and wrong": si.simulate.rasch(120, 6, design="sampled", p=0.8, seed=3).responses.to_dense(),
    "ordered": si.simulate.rating_scale(120, 6, categories=4, design="sampled", p=0.8, seed=3).responses.to_dense(),
}


def tables(kind: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    answers = KINDS[kind]
    cells = [[None if np.isnan(x) else int(x) for x in column] for column in answers.T]
    named = {"student": [f"s{k:03}" for k in range(len(answers))]}
    wide = pl.DataFrame(named | {f"q{k}": c for k, c in enumerate(cells)})
    long = wide.unpivot(index="student", variable_name="item", value_name="response").drop_nulls()
    return wide, long.sample(fraction=1, shuffle=True, seed=4)


def same(a: si.Responses, b: si.Responses) -> None:
    """The same items and blocks, to the bit."""
    assert a.items.tolist() == b.items.tolist()
    assert a.thresholds.max_score.tolist() == b.thresholds.max_score.tolist()
    assert len(a.blocks) == len(b.blocks)
    for mine, theirs in zip(a.blocks, b.blocks, strict=True):
        for name in ("indptr", "split", "items"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


def about_the_data(found: si.Responses) -> list[str]:
    told = ("items_taken", "ordered_categories")  # how it came in
    return [str(finding) for finding in found.findings() if finding.code not in told]


@pytest.mark.parametrize("kind", KINDS)
def test_every_door_gives_the_same_blocks_and_findings(kind: str, tmp_path: Path) -> None:
    wide, long = tables(kind)
    ordered = kind == "ordered"
    plain = si.read(KINDS[kind], items=[f"q{k}" for k in range(6)])
    assert plain.thresholds.binary is not ordered
    doors: dict[str, Any] = {"array": KINDS[kind]}
    doors |= {
        f"{library} {shape}": make(table)
        for library, make in FRAMES.items()
        for shape, table in (("wide", wide), ("long", long))
    }
    for shape, table in (("wide", wide), ("long", long)):
        at = tmp_path / shape
        at.mkdir()
        doors |= {f"{shape} {ending}": written(table, at, ending) for ending in FILES}
        doors |= {f"{shape} query": in_sqlite(table, at / "a.db"), f"{shape} packed": packed(table, at)}
    for name, door in doors.items():
        labels = {"items": plain.items.tolist()} if name == "array" else {}
        ways = [{}, {"ordered": ordered}] + ([] if "packed" in name else [{"ordered": True}])
        for how in (way | labels for way in ways):
            found = si.read(**door, **how) if isinstance(door, dict) else si.read(door, **how)
            same(found, plain)
            assert about_the_data(found) == about_the_data(plain), name
            if name != "array":
                assert found.persons.tolist() == wide["student"].to_list(), name
    same(si.Responses.from_long(*zip(*long.rows(), strict=True), ordered=True), plain)


def test_scored_or_as_categories_answers_0_and_1_are_the_same_data() -> None:
    table = np.random.default_rng(20).choice([0.0, 1.0, np.nan], (60, 9), p=[0.35, 0.45, 0.2])
    one, other = (si.read(table, ordered=ordered) for ordered in (False, True))
    same(one, other)
    assert one.persons.tolist() == other.persons.tolist()
    assert all(each.thresholds.binary and each.entries is each for each in (one, other))
    assert (one.digest(), repr(one)) == (other.digest(), repr(other))
    for name in ("n_responses", "n_persons", "n_items"):
        assert getattr(one, name) == getattr(other, name)
    counts = ("counts", "scores", "max_scores", "informative", "kinds_of_people", "item_counts", "item_scores")
    for name in (*counts, "category_counts"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.category_codes(), other.category_codes())
    assert np.array_equal(one.to_dense(), other.to_dense(), equal_nan=True)
    assert [f.code for f in one.findings()] == [f.code for f in other.findings()]
    for part in (
        lambda each: each.take_items([6, 1, 3]),
        lambda each: each.take_persons(np.arange(0, 60, 3)),
        lambda each: each.in_one_block(),
        lambda each: each.largest_component(),
    ):
        same(part(one), part(other))
    for mine, theirs in zip(one.answers(), other.answers(), strict=True):
        assert np.array_equal(mine, theirs)


def test_what_knows_right_and_wrong_only_refuses_more_categories() -> None:
    answers = si.read([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    for ask in (answers.sum, answers.map, answers.gather, answers.prepare):
        with pytest.raises(ResponseValueError, match="right and wrong answers only"):
            ask(len)
    assert not answers.thresholds.binary
    assert answers.entries.thresholds.binary
