"""Ratings as they are read: facets of any name, repeated rows, and what can be compared at all."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from reading import complaint
from spectral_irt import SpectralPartialCredit, SpectralRatingScale
from spectral_irt.data.facets import TAKEN_NAMES
from spectral_irt.errors import OptionError, ResponseValueError


def drawn(n_persons, n_items, n_raters, n_categories, per_person, seed):
    """A row for each rating: every person is rated by some raters on all items."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.2, n_persons)
    severity = rng.normal(0, 0.6, n_raters)
    thresholds = np.sort(rng.normal(0, 1, (n_items, n_categories - 1)), axis=1)
    rows = []
    for person in range(n_persons):
        for rater in rng.choice(n_raters, per_person, replace=False):
            for item in range(n_items):
                logit = np.concatenate([[0], np.cumsum(ability[person] - severity[rater] - thresholds[item])])
                p = np.exp(logit) / np.exp(logit).sum()
                rows.append((f"p{person:03}", f"q{item}", f"r{rater}", int(rng.choice(n_categories, p=p))))
    return pl.DataFrame(rows, schema=["person", "item", "rater", "response"], orient="row")


def wide_of(table):
    return table.pivot("item", index=["person", "rater"], values="response")


def measured(table, facets="rater", estimator=SpectralPartialCredit, **options):
    """Severities of every facet and thresholds of the items."""
    responses = si.read(table, person="person", facets=facets, ordered=True, **options)
    measures = estimator().fit(responses).calibration_.facets
    severities = [measures.of[name]["severity"] for name in responses.facets.facet_names]
    return np.concatenate([*severities, measures.items.thresholds])


@pytest.fixture(scope="module")
def table():
    return drawn(40, 3, 4, 3, 2, seed=1)


# Names.


@pytest.mark.parametrize("name", ["scores", "offsets", "Persons", "a:b", "a + b", "row", "answer", "Item"])
@pytest.mark.parametrize("estimator", [SpectralPartialCredit, SpectralRatingScale])
def test_a_facet_is_what_it_is_whatever_it_is_called(table, name, estimator):
    unused = "keep" if estimator is SpectralRatingScale else "collapse"
    expected = measured(table, estimator=estimator, unused=unused)
    renamed = table.rename({"rater": name})
    np.testing.assert_array_equal(measured(renamed, name, estimator, item="item", unused=unused), expected)
    np.testing.assert_array_equal(
        measured(wide_of(table).rename({"rater": name}), name, estimator, unused=unused), expected
    )


def test_two_facets_and_one_that_is_called_like_their_interaction(table):
    rng = np.random.default_rng(5)
    more = table.with_columns(
        pl.Series("hour", rng.integers(0, 3, table.height)), pl.Series("day", rng.integers(0, 2, table.height))
    )
    expected = measured(more, ["rater", "hour", "day"])
    renamed = more.rename({"hour": "b", "day": "rater:b"})
    np.testing.assert_array_equal(measured(renamed, ["rater", "b", "rater:b"]), expected)


@pytest.mark.parametrize("name", ["item", "items", "persons", "thresholds", "severity", "group"])
def test_a_facet_that_would_be_two_columns_of_the_results_is_to_be_renamed(table, name):
    wide = wide_of(table).rename({"rater": name})
    with pytest.raises(OptionError, match=rf"facet '{name}'.*rename it"):
        si.read(wide, person="person", facets=name)


def test_every_column_of_a_table_about_facets_is_a_name_that_is_taken(table):
    responses = si.read(table, person="person", facets="rater", ordered=True)
    study = SpectralPartialCredit().fit(responses).analyse(responses)
    columns = [*study.facet().columns, *study.interactions().columns, *study.plot.wright().columns()]
    groups = np.arange(responses.n_persons) % 2
    columns += study.interactions(groups=groups).columns
    assert set(columns) - {"rater"} <= TAKEN_NAMES


def test_columns_that_say_the_same_are_refused(table):
    with pytest.raises(OptionError, match="names the column 'rater' twice"):
        si.read(table, person="person", facets=["rater", "rater"])
    copied = table.with_columns(judge=pl.col("rater").str.replace("r", "judge "), task=pl.col("item") + "!")
    with pytest.raises(OptionError, match="column 'judge' says the same as column 'rater'"):
        si.read(copied, person="person", item="item", facets=["rater", "judge"])
    with pytest.raises(OptionError, match="column 'task' says the same as the item"):
        si.read(copied, person="person", item="item", facets=["rater", "task"])


def test_items_of_a_wide_table_are_called_as_they_like(table):
    names = {"q0": "row", "q1": "answer", "q2": "item"}
    wide = wide_of(table)
    responses = si.read(wide.rename(names), person="person", facets="rater", format="wide")
    assert set(responses.facets.items) == set(names.values())
    expected = si.read(wide, person="person", facets="rater", format="wide")
    columns = [
        expected.facets.items.tolist().index(old)
        for new in responses.facets.items
        for old in names
        if names[old] == new
    ]
    by_item = expected.facets.by_item(expected.item_scores)[columns]
    np.testing.assert_array_equal(responses.facets.by_item(responses.item_scores), by_item)


# Repeated rows.


@pytest.mark.parametrize("seed", range(16))
def test_repeated_ratings_that_are_left_out_change_nothing(seed):
    clean = drawn(24, 2, 3, 4, 2, seed=seed)
    rng = np.random.default_rng(100 + seed)
    n_again = int(rng.integers(1, 17))
    again = clean[rng.integers(0, clean.height, n_again).tolist()]
    again = again.with_columns(pl.Series("response", rng.integers(0, 4, n_again)))
    first = pl.concat([clean, again])
    expected = measured(clean)
    np.testing.assert_allclose(measured(first, duplicates="first"), expected, atol=1e-9)
    np.testing.assert_allclose(measured(pl.concat([again, clean]), duplicates="last"), expected, atol=1e-9)
    timed = first.with_columns(pl.Series("time", -np.arange(first.height)))
    np.testing.assert_allclose(measured(timed, duplicates="last", order_by="time"), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_repeated_rows_of_a_wide_table_of_ratings_change_nothing(seed):
    clean = wide_of(drawn(24, 2, 3, 4, 2, seed=seed))
    rng = np.random.default_rng(100 + seed)
    again = clean[rng.integers(0, clean.height, 4).tolist()].with_columns(pl.Series("q0", rng.integers(0, 4, 4)))
    np.testing.assert_allclose(measured(pl.concat([clean, again]), duplicates="first"), measured(clean), atol=1e-9)


# What can be compared.


def groups_by_rank(responses):
    """Combinations that can be compared, by the rank of every pair of columns of the dense design: slow and obvious."""
    facets = responses.facets
    person, item, _ = responses.answers()
    some = responses.informative[person]
    part = np.arange(responses.n_items)
    for who in np.unique(person[some]):
        met = item[some & (person == who)]
        part[np.isin(part, part[met])] = part[met[0]]
    blocks = [np.eye(len(levels))[codes] for levels, codes in zip(facets.levels, facets.codes.T, strict=True)]
    effects = np.concatenate(blocks, axis=1)
    within = [effects[a] - effects[b] for a, b in combinations(range(len(part)), 2) if part[a] == part[b]]
    known = np.array(within).reshape(-1, effects.shape[1])
    rank = np.linalg.matrix_rank(known) if len(known) else 0
    group = np.arange(len(part))
    for a, b in combinations(range(len(part)), 2):
        if np.linalg.matrix_rank(np.vstack([known, effects[a] - effects[b]])) == rank:
            group[group == group[b]] = group[a]
    return group


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_component_of_linked_ratings_is_all_of_them(seed):
    responses = si.read(drawn(50, 3, 4, 3 + seed % 2, 2, 100 + seed), person="person", facets="rater", ordered=True)
    assert responses.largest_component() is responses


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_component_is_what_the_design_can_compare(seed):
    rng = np.random.default_rng(seed)
    parts = [drawn(int(rng.integers(6, 14)), 2, 2, 3, 2, 200 + 3 * seed + k) for k in range(3)]
    shared = bool(seed % 2)  # the same items under other raters, or other items under the same raters
    apart = [
        part.with_columns(pl.col("person") + f"/{k}", (pl.col("rater") if shared else pl.col("item")) + f"/{k}")
        for k, part in enumerate(parts)
    ]
    responses = si.read(pl.concat(apart), person="person", facets="rater", ordered=True)
    group = groups_by_rank(responses)
    ratings = {g: int(responses.item_counts[group == g].sum()) for g in np.unique(group).tolist()}
    largest = responses.largest_component()
    assert largest.n_responses == max(ratings.values()) < responses.n_responses
    assert len(np.unique(group[np.isin(responses.items, largest.items)])) == 1
    (note,) = (one for one in largest.notes if one.code == "largest_component")
    assert f"{responses.n_responses - largest.n_responses:,} of {responses.n_responses:,} ratings" in note.sentence


def test_two_halves_of_a_design_that_only_items_and_raters_link_are_one_scale():
    rows = []
    rng = np.random.default_rng(4)
    for person in range(60):  # half are rated by r0 on q0 and r1 on q1, half the other way round
        for item in range(2):
            rater = (item + person) % 2
            rows.append((person, f"q{item}", f"r{rater}", int(rng.integers(0, 3))))
    crossed = pl.DataFrame(rows, schema=["person", "item", "rater", "response"], orient="row")
    responses = si.read(crossed, person="person", facets="rater", ordered=True)
    assert len(np.unique(groups_by_rank(responses))) == 1
    assert responses.largest_component() is responses


WIDE = """essay,rater,language,Content,Grammar
E1,Ann,L1,4,5
E1,Bob,L1,6,5
E2,Ann,L2,7,4
E2,Bob,L2,5,6
E3,Ann,L1,6,7
E3,Bob,L1,4,4
"""
LONG = """essay,rater,criterion,band
E1,Ann,Content,4
E1,Bob,Content,6
E1,Ann,Grammar,5
E2,Ann,Content,7
E2,Bob,Grammar,5
"""


@pytest.mark.parametrize(("text", "people", "items"), [(WIDE, 3, 2), (LONG, 2, 2)])
def test_essays_criteria_and_bands_are_known_by_name_among_ratings(tmp_path, text, people, items):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    beside = ["language"] if "language" in text else []
    responses = si.read(path, facets=["rater"], people=beside)
    assert responses.n_persons == people
    assert responses.n_items == items * 2  # combinations with two raters


def test_without_raters_an_essay_is_an_item(tmp_path):
    path = tmp_path / "exam.csv"
    path.write_text("id,q1,essay,q2\n1,1,0,1\n2,0,1,1\n3,1,1,0\n4,0,0,1\n")
    assert "essay" in si.read(path).items.tolist()


def test_a_table_of_essays_with_criteria_is_read_as_it_is(tmp_path):
    """An essay names the person, "Task" is a criterion and no column of items, and words are no ratings."""
    rng = np.random.default_rng(3)
    rows = ["Essay;L1;Rater;Date;Task;Grammar;Style;Comment"]
    for essay in range(20):
        for rater in ("Adams", "Baker"):
            bands = ";".join(map(str, rng.integers(1, 7, 3)))
            rows.append(
                f"E{essay:02};{'Arabic' if essay % 2 else 'Thai'};{rater};0{1 + essay % 9}/06/2025;{bands};off topic?"
            )
    path = tmp_path / "essays.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    responses = si.read(path, facets="Rater", ordered=True)
    assert responses.n_responses == 120
    assert sorted(responses.facets.items.tolist()) == ["Grammar", "Style", "Task"]
    assert responses.n_persons == 20
    notes = {note.code: note for note in responses.notes}
    assert notes["unlike_columns"].items == ("L1", "Comment")
    assert "`items='Task,Grammar,Style,L1'`" in notes["unlike_columns"].remedy
    assert notes["attribute_columns"].items == ("Date",)
    with pytest.raises(ResponseValueError, match="'Rater' says who rated, say `facet='Rater'`"):
        si.read(path)


def test_the_only_column_left_holds_the_ratings(tmp_path):
    rows = [f"e{e},{item},r{r},{(e + r) % 4},m" for e in range(8) for r in range(2) for item in ("style", "org")]
    path = tmp_path / "long.csv"
    path.write_text("student,item,rater,x,sex\n" + "\n".join(rows) + "\n")
    responses = si.read(path, facets=["rater"], people=["sex"])
    assert responses.facets.items.tolist() == ["org", "style"]
    assert responses.n_responses == len(rows)
    assert "holds the responses" in complaint(path, facets=["rater"])  # x or sex?


def test_a_column_for_each_rater_is_named_where_a_column_of_raters_is_asked_for():
    wide = pl.DataFrame({"essay": ["a", "b", "c"], **{f"rater_{k}": [0, 1, 2] for k in range(1, 4)}})
    with pytest.raises(OptionError, match="Each rater has a column of its own here: leave out `facet=`"):
        si.read(wide, facets="rater", ordered=True)
    with pytest.raises(OptionError, match="Did you mean 'rater_"):
        si.read(wide, facets="raters", ordered=True)
