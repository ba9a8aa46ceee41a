"""Forms: named by a column or found in the responses; what they do not have was not presented."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.data.booklets import blanks_by_item, booklets_of, with_blanks_as_wrong
from spectral_irt.errors import OptionError
from split import in_blocks

SETS = {"A": range(15), "B": range(10, 25), "C": [*range(5), *range(20, 30)]}


def booklet_table(skip=0.03, people=240, seed=1):
    """Three booklets of 15 items of 30, with responses left out; the labels, and what was presented."""
    rng = np.random.default_rng(seed)
    label = np.array(list("ABC") * (people // 3))
    presented = np.zeros((people, 30), dtype=bool)
    for row, name in enumerate(label):
        presented[row, list(SETS[name])] = True
    right = rng.random((people, 30)) < 1 / (1 + np.exp(np.linspace(-1, 1, 30) - rng.normal(size=(people, 1))))
    table = np.where(presented & (rng.random((people, 30)) >= skip), right, np.nan)
    return table, label, presented


def blanks_by_hand(table, presented):
    """Left out and not reached, person by person."""
    counts = np.zeros((2, table.shape[1]), dtype=int)
    for row, on_form in zip(table, presented, strict=True):
        given = np.flatnonzero(np.isfinite(row))
        for item in np.flatnonzero(on_form & np.isnan(row)) if len(given) else ():
            counts[int(item > given[-1]), item] += 1
    return counts


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("skip", [0.0, 0.03, 0.15])
def test_items_that_a_form_does_not_have_are_neither_left_out_nor_not_reached(named, skip):
    table, label, presented = booklet_table(skip)
    responses = si.read(table)
    booklets = booklets_of(responses, label if named else None)
    assert sorted(map(tuple, booklets.items)) == sorted(tuple(items) for items in SETS.values())
    assert booklets.names == (("A", "B", "C") if named else ("form 1", "form 2", "form 3"))
    np.testing.assert_array_equal(blanks_by_item(responses, booklets), blanks_by_hand(table, presented))


def test_item_analysis_counts_people_whose_form_has_the_item():
    table, _, presented = booklet_table()
    responses = si.read(table)
    columns = si.SpectralRasch().fit(responses).analyse(responses).item_analysis()
    by_hand = blanks_by_hand(table, presented)
    np.testing.assert_array_equal(np.asarray(columns["omitted"]), by_hand[0])
    np.testing.assert_array_equal(np.asarray(columns["not_reached"]), by_hand[1])


def test_skips_on_one_form_make_no_other_form():
    rng = np.random.default_rng(2)
    table = (rng.random((300, 12)) < 0.5).astype(float)
    table[rng.random(table.shape) < 0.05] = np.nan
    table[:20, 10:] = np.nan  # twenty people ran out of time
    booklets = booklets_of(si.read(table))
    assert [items.tolist() for items in booklets.items] == [list(range(12))]
    assert (booklets.form == 0).all()


def test_items_at_random_have_no_forms():
    rng = np.random.default_rng(3)
    table = (rng.random((300, 60)) < 0.5).astype(float)
    table[rng.random(table.shape) < 0.7] = np.nan
    booklets = booklets_of(si.read(table))
    assert booklets.items == ()
    assert not blanks_by_item(si.read(table), booklets).any()


def test_sixty_forms_are_told_apart():
    rng = np.random.default_rng(4)
    table = np.full((1200, 125), np.nan)
    for person in range(1200):
        first = 2 * (person % 60)
        table[person, first : first + 7] = rng.random(7) < 0.5
    booklets = booklets_of(si.read(table))
    assert len(booklets.items) == 60
    assert (np.bincount(booklets.form) == 20).all()


def test_a_column_that_the_responses_contradict_is_named():
    table, label, _ = booklet_table()
    table[0, 28] = 1  # A does not have it
    responses = si.read(table)
    study = si.SpectralRasch().fit(responses).analyse(responses, form=label)
    (finding,) = [one for one in study.findings(study.parts(writing=True)) if one.code == "responses_off_form"]
    assert finding.items == (responses.items[28],)
    assert " (A): " in finding.sentence
    assert set(np.asarray(study.scores()["form"])) == {"A", "B", "C"}


def test_a_column_with_a_value_for_everybody_is_no_form():
    table, _, _ = booklet_table()
    with pytest.raises(si.errors.OptionError, match="at most 100 forms"):
        booklets_of(si.read(table), np.arange(len(table)))


def test_the_column_of_forms_is_looked_at_wherever_it_is_named():
    table, label, _ = booklet_table()
    table[0, 28] = 1  # A does not have it
    responses = si.read(table)
    fit = si.SpectralRasch().fit(responses)
    assert "responses_off_form" in {one.code for one in fit.analyse(responses, form=label).findings()}
    assert "responses_off_form" not in {one.code for one in fit.analyse(responses).findings()}
    with pytest.raises(si.errors.OptionError, match="at most 100 forms"):
        fit.analyse(responses, form=np.arange(len(table))).findings()


def filled_by_hand(table, presented, omitted, not_reached):
    """The table with blanks on a person's form as wrong responses, person by person."""
    filled = table.copy()
    for row, on_form in zip(filled, presented, strict=True):
        given = np.flatnonzero(np.isfinite(row))
        for item in np.flatnonzero(on_form & np.isnan(row)) if len(given) else ():
            if not_reached if item > given[-1] else omitted:
                row[item] = 0
    return filled


def frame_of(table, label, *, letters=False):
    """A column for each item, and one with the booklet; as letters, of which A is right and B wrong."""
    columns = {}
    for item, values in enumerate(table.T):
        cells = [None if np.isnan(value) else int(value) for value in values]
        columns[f"q{item:02}"] = [None if cell is None else "BA"[cell] for cell in cells] if letters else cells
    return pl.DataFrame({"person": [f"p{k}" for k in range(len(table))], "booklet": label.tolist(), **columns})


@pytest.mark.parametrize("form", ["booklet", None])
@pytest.mark.parametrize(("omitted", "not_reached"), [("wrong", "wrong"), ("wrong", "missing"), ("missing", "wrong")])
def test_blanks_are_wrong_on_the_form_of_the_person_alone(form, omitted, not_reached, tmp_path):
    table, label, presented = booklet_table(0.06)
    frame = frame_of(table, label)
    frame.write_csv(tmp_path / "answers.csv")
    expected = filled_by_hand(table, presented, omitted == "wrong", not_reached == "wrong")
    for source in (frame, tmp_path / "answers.csv", [tmp_path / "answers.csv"]):
        how = {"omitted": omitted, "not_reached": not_reached, "form": form, "ignore": [] if form else ["booklet"]}
        responses = si.read(source, **how)
        np.testing.assert_array_equal(responses.to_dense(), expected)
        (note,) = [note for note in responses.notes if note.code == "blanks_count_as_wrong"]
        assert note.number == np.isfinite(expected).sum() - np.isfinite(table).sum()
        assert "3 forms" in note.sentence
        counted = np.array(list(responses.raw.blanks.values())).T
        np.testing.assert_array_equal(counted, blanks_by_hand(table, presented))


def test_blanks_of_a_key_are_no_option_and_blocks_do_not_matter():
    table, label, presented = booklet_table(0.06)
    frame = frame_of(table, label, letters=True)
    key = dict.fromkeys(frame.columns[2:], "A")
    responses = si.read(frame, key=key, omitted="wrong", not_reached="wrong", form="booklet")
    expected = filled_by_hand(table, presented, omitted=True, not_reached=True)
    np.testing.assert_array_equal(responses.to_dense(), expected)
    columns = si.SpectralRasch().fit(responses).analyse(responses).distractors()
    blank = np.asarray(columns["option"]) == responses.raw.options[0]
    assert np.asarray(columns["n"])[blank].sum() == blanks_by_hand(table, presented).sum()
    plain = in_blocks(si.read(frame, key=key, people=["booklet"]), 17)
    again = with_blanks_as_wrong(plain, "booklet", omitted=True, not_reached=True)
    np.testing.assert_array_equal(again.to_dense(), expected)


def test_people_who_stop_early_had_the_same_form(tmp_path):
    """Forty percent end at item 6 of 12: a part of the form that the others answered, and no booklet."""
    rng = np.random.default_rng(3)
    table = (rng.random((200, 12)) < 0.5).astype(float)
    table[:80, 6:] = np.nan
    frame = frame_of(table, np.repeat("one", 200)).drop("booklet")
    responses = si.read(frame, omitted="wrong", not_reached="wrong")
    np.testing.assert_array_equal(responses.to_dense(), np.nan_to_num(table))


def test_people_without_a_form_keep_their_blanks_and_ordered_responses_have_no_wrong_one():
    table, label, presented = booklet_table(0.06)
    label = label.astype(object)
    label[:3] = None
    responses = si.read(frame_of(table, label), omitted="wrong", not_reached="wrong", form="booklet")
    expected = filled_by_hand(table, presented, omitted=True, not_reached=True)
    expected[:3] = table[:3]
    np.testing.assert_array_equal(responses.to_dense(), expected)
    assert "the blanks of 3 people whose form is not known" in responses.notes[-1].sentence
    rng = np.random.default_rng(1)
    ordered = np.where(np.isnan(table), np.nan, table + rng.integers(0, 3, table.shape))
    with pytest.raises(OptionError, match="in ordered categories, of which none is wrong"):
        si.read(frame_of(ordered, label), omitted="wrong", form="booklet")
