"""Files of psychologists: a hundred columns, several tests, two occasions, imputed answers."""

import numpy as np
import polars as pl
import pytest

from reading import complaint, notes
from spectral_irt.errors import OptionError
from spectral_irt.reading import read
from spectral_irt.reading.families import families_of, same_on_two_occasions

RNG = np.random.default_rng(5)
N = 120


def ratings(n, low, high):
    return np.clip(np.round(RNG.normal((low + high) / 2, 1.5, (N, n))), low, high).astype(int)


def columns(names, values):
    return {name: values[:, k].tolist() for k, name in enumerate(names)}


def named(pattern, n):
    return [pattern.replace("#", f"{k + 1:02d}") for k in range(n)]


def study():
    """Demographic columns, a questionnaire before and after, another one, reaction times."""
    table = {"ID": [f"S{k}" for k in range(N)], "Age": RNG.integers(18, 60, N).tolist()}
    table |= {"Education123": RNG.integers(1, 4, N).tolist(), "smoker": RNG.integers(0, 2, N).tolist()}
    for when in ("Pre", "Post"):
        table |= columns(named(f"{when}PANAS_#", 20), ratings(20, 1, 5))
    table |= columns(named("Att_#", 12), ratings(12, 1, 7))
    return table | columns(named("RT_#", 8), RNG.gamma(3, 400, (N, 8)).round(1))


def test_families_of_names():
    names = [
        "id",
        *named("PrePANAS_#", 4),
        "Att_1",
        "Att_2",
        "Att_3",
        "Att_sum",
        *named("anx#_t1", 3),
        "x[1]",
        "x[2]",
        "x[3]",
    ]
    families = families_of(names)
    assert [family.pattern for family in families] == ["PrePANAS_*", "Att_[0-9]*", "anx*_t1", "x[[]*]"]
    assert families[0].span == "'PrePANAS_01' to 'PrePANAS_04'"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        *(("Pre#", "Post#", True), ("q#_pre", "q#_post", True), ("prepanas#", "postpanas#", True)),
        *(("anx#_t1", "anx#_t2", True), ("Y6_item#", "Y9_item#", True), ("wave1_q#", "wave2_q#", True)),
        *(("A#", "B#", False), ("prefer#", "postal#", False), ("e1_#", "e2_#", False), ("preA#", "postB#", False)),
    ],
)
def test_the_same_items_on_two_occasions(first, second, same):
    assert (same_on_two_occasions(families_of(named(first, 6) + named(second, 6))) is not None) == same


def test_two_occasions_are_not_pooled():
    table = pl.DataFrame(study())
    said = complaint(table)
    assert (
        "the same items on two occasions, 'PrePANAS_01' to 'PrePANAS_20' and 'PostPANAS_01' to 'PostPANAS_20'" in said
    )
    assert "'Att_01' to 'Att_12' (1 to 7)" in said
    assert "items='PrePANAS_*'" in said
    before = read(table, items="PrePANAS_*")
    assert before.items.tolist() == named("PrePANAS_#", 20)
    assert read(table, items="PrePANAS_*,PostPANAS_*").n_items == 40
    # Forms of different people are one test, whatever they are called.
    forms = {name: [None if (k < N // 2) == name.startswith("t2") else v for k, v in enumerate(values)]
             for name, values in columns(named("t1_q#", 6) + named("t2_q#", 6), ratings(12, 0, 1)).items()}  # fmt: skip
    common = columns(named("c#", 6), ratings(6, 0, 1))
    assert read(pl.DataFrame(forms | common)).n_items == 18


def test_no_real_item_is_named_to_be_left_out():
    table = {name: values for name, values in study().items() if not name.startswith("Post")}
    found = read(pl.DataFrame(table))
    assert found.items.tolist() == named("PrePANAS_#", 20) + named("Att_#", 12)
    assert (
        "'PrePANAS_01' to 'PrePANAS_20' (1 to 5), 'Att_01' to 'Att_12' (1 to 7)"
        in notes(found)["column_families"].sentence
    )
    assert notes(found)["column_families"].severity == "warning"
    left = notes(found)["unlike_columns"]
    assert "'RT_01' to 'RT_08' hold fractions" in left.sentence
    assert "items='PrePANAS_*,Att_*,RT_*'" in left.remedy
    assert "Education123" in notes(found)["attribute_columns"].items
    many = columns(named("PANAS_#", 12), ratings(12, 0, 1)) | columns(named("EPIA_#", 12), ratings(12, 30, 111))
    said = complaint(pl.DataFrame(many))
    assert "ignore" not in said
    assert "'PANAS_01' to 'PANAS_12' (0 and 1), 'EPIA_01' to 'EPIA_12'" in said


def test_two_tests_and_columns_without_a_number_are_said():
    tests = columns(named("verbal#", 12), ratings(12, 0, 1)) | columns(named("number#", 12), ratings(12, 0, 1))
    found = read(pl.DataFrame({"smoker": RNG.integers(0, 2, N).tolist(), **tests}))
    assert found.n_items == 25
    assert (
        "'verbal01' to 'verbal12' (0 and 1), 'number01' to 'number12' (0 and 1)"
        in notes(found)["column_families"].sentence
    )
    assert notes(found)["unnumbered_items"].items == ("smoker",)
    assert not {"column_families", "unnumbered_items"} & set(notes(read(pl.DataFrame(tests), items="verbal*")))


def test_fractions_are_counted_and_rounded():
    values = ratings(10, 1, 7).astype(float)
    for row, column, value in ((3, 1, 5.69), (7, 1, 2.5), (9, 4, 3.2)):
        values[row, column] = value
    table = pl.DataFrame(columns(named("g#", 10), values))
    said = complaint(table)
    assert "3 values are fractions, in 2 columns ('g02', 'g05'); the first is 5.69 in column 'g02', row 4" in said
    rounded = read(table, round_fractions=True)
    assert notes(rounded)["fractions_rounded"].number == 3
    np.testing.assert_array_equal(
        rounded.category_codes()[1][rounded.to_dense()[:, 1].astype(int)], np.floor(values[:, 1] + 0.5)
    )
    zero_one = np.where(values > 4, 1.0, 0.0)
    zero_one[0, 0] = 0.5
    assert "neither 0/1 nor missing (1 such value: 0.5)" in complaint(pl.DataFrame(columns(named("g#", 10), zero_one)))


def test_points_up_to_111_are_to_be_cut():
    said = complaint(pl.DataFrame(columns(named("EPIA#", 8), RNG.integers(0, 112, (N, 8)))))
    assert "different whole numbers, too many for the categories of an answer: cut them into about 5" in said
    assert "0 to 22, 23 to 45" in said


def test_items_of_a_key_are_one_test():
    """An exam whose new and anchor items are called differently; its key names all of them."""
    tests = columns(named("new#", 12), ratings(12, 1, 4)) | columns(named("anchor#", 12), ratings(12, 1, 4))
    found = read(pl.DataFrame(tests), key=dict.fromkeys(tests, 2))
    assert found.n_items == 24
    assert "column_families" not in notes(found)
    assert "column_families" in notes(read(pl.DataFrame(tests), ordered=True))


def test_ignored_columns_may_be_a_pattern():
    pre, post = columns(named("pre#", 12), ratings(12, 1, 5)), columns(named("post#", 12), ratings(12, 1, 5))
    found = read(pl.DataFrame(pre | post), ignore="post*", ordered=True)
    assert list(found.items) == list(pre)
    starred = {"a*": pre["pre01"], **pre}
    assert list(read(pl.DataFrame(starred), ignore="a*", ordered=True).items) == list(pre)
    with pytest.raises(OptionError, match="no column 'wave\\*'"):
        read(pl.DataFrame(pre | post), ignore="wave*", ordered=True)


def test_a_column_of_ids_with_an_empty_cell_labels_the_people():
    ids = [f"R_{k:03d}x" for k in range(N)]
    items = columns(named("q#", 12), ratings(12, 1, 5))
    found = read(pl.DataFrame({"ResponseId": [None if k == 7 else one for k, one in enumerate(ids)], **items}))
    assert found.persons[6] == "R_006x"
    assert found.persons[7] == "row 8"
    many = [None if k % 3 == 0 else one for k, one in enumerate(ids)]
    assert "R_001x" not in set(read(pl.DataFrame({"ResponseId": many, **items}), items="q*").persons.tolist())


@pytest.mark.parametrize(("items", "others"), [(12, ["smoker"]), (14, ["treated", "passed"])])
def test_a_word_among_few_numbered_items_is_said(items, others):
    answers = columns(named("q#", items), ratings(items, 0, 1))
    table = pl.DataFrame(answers | {name: RNG.integers(0, 2, N).tolist() for name in others})
    assert notes(read(table))["unnumbered_items"].items == tuple(others)
    assert "unnumbered_items" not in notes(read(pl.DataFrame(answers)))


def test_two_columns_in_the_place_of_one_are_named_one_by_one():
    answers = columns(named("q#", 6), ratings(6, 0, 1)) | {"sex": ["f", "m"] * (N // 2), "age": [30, 40] * (N // 2)}
    with pytest.raises(OptionError) as refused:
        read(pl.DataFrame(answers), facets="sex,age")
    assert "'sex', 'age' are two columns. Name each by itself" in str(refused.value)
