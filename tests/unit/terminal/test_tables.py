"""Tables on the terminal: labels in little room keep what tells them apart, whatever they are written in."""

import itertools
import unicodedata

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from label_families import FAMILIES
from spectral_irt.inference.ranks.intervals import person_ranks
from spectral_irt.terminal import item_table, person_table, plain_table
from spectral_irt.terminal.labels import LEAST, MARK, in_its_place, room_for, shorten
from spectral_irt.terminal.tables import SHOW_ALL, SHOW_EACH, SHOW_MISFITS, choose_people


@pytest.mark.parametrize("labels", FAMILIES.values(), ids=list(FAMILIES))
@pytest.mark.parametrize("width", [LEAST, 9, 12, 20, 33, 200])
def test_no_two_labels_look_alike(labels, width):
    short = shorten(labels, width)
    assert len(set(short)) == len(labels)
    assert max(map(cell_len, short)) <= width
    assert all(new == old for new, old in zip(short, labels, strict=True) if cell_len(old) <= width) or "1:" in short[0]
    assert shorten(labels[:2] * 2, width) == shorten(labels[:2], width) * 2


@pytest.mark.parametrize("width", range(12, 40))
def test_what_tells_them_apart_stays_whole(width):
    """Sizes of models, between a long common start and a long common end: 405b is never 05b."""
    sizes = ["7b", "70b", "8x7b", "405b", "13b", "3b"]
    short = shorten([f"vendor/large-language-model-{size}-instruct-v2" for size in sizes], width)
    for text, size in zip(short, sizes, strict=True):
        before, _, after = text.partition(size)
        assert before[-1:] in ("-", ".")
        assert after[:1] in ("-", ".")
    numbers = [f"very_long_prefix_item_{k:03d}" for k in (1, 2, 10, 11)]
    assert [text[-3:] for text in shorten(numbers, width)] == ["001", "002", "010", "011"]


def test_a_label_is_cut_in_the_middle_where_that_tells_it_from_the_others():
    assert shorten(["physics-2024-item-07", "physics-2025-item-07"], 100)[0] == "physics-2024-item-07"
    assert shorten(["first-aaaaaaaaaaaa-end", "other-aaaaaaaaaaaa-last"], 11) == ["firs...-end", "othe...last"]
    assert room_for(["item-100001", "item-100002"]) <= 9
    assert shorten(["item-100001", "item-100002"], 9) == ["...100001", "...100002"]


@pytest.mark.parametrize("width", range(8, 20))
def test_a_character_is_never_cut_in_two(width):
    accents = ["e\u0301" * 20 + f"-{k}" for k in range(3)]
    families = ["\U0001f468\u200d\U0001f469\u200d\U0001f467" * 12 + f"{k}" for k in range(3)]
    for text in shorten(accents, width) + shorten([label[::-1] for label in accents], width):
        first, _, last = text.partition("...")
        assert not unicodedata.combining((first or "x")[0]) or first[0] == "\u0301" == text[0]
        assert not unicodedata.combining((last or "x")[0]) or text[0] == "\u0301"
    for text in shorten(families, width):
        assert all(not part.startswith("\u200d") and not part.endswith("\u200d") for part in text.split("..."))
        assert cell_len(text) <= width


def test_labels_from_right_to_left_leave_the_numbers_where_they_are():
    assert in_its_place("שאלה 7") == "שאלה 7" + MARK
    assert in_its_place("سؤال").endswith(MARK)
    assert in_its_place("question 7, 漢字") == "question 7, 漢字"


def printed(table, width, **how):
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(table, **how)
    return [line.rstrip() for line in captured.get().split("\n")]


def columns_of(labels):
    n = len(labels)
    values = np.linspace(-2, 2, n)
    columns = {"difficulty": values, "se": np.linspace(0.1, 0.2, n), "ci_low": values - 0.2, "ci_high": values + 0.2}
    columns |= {"n": np.full(n, 123456), "p_correct": np.full(n, 0.5), "status": np.full(n, "ok", dtype=object)}
    return {"item": np.array(labels, dtype=object), **columns}


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_items_differ_and_use_the_room_there_is(family, width):
    labels = FAMILIES[family]
    lines = printed(item_table(columns_of(labels), width), width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    names = [line.split("  ")[0] for line in lines[1:] if line]
    shown = {label for label in labels if any(name == label for name in names)}
    if len(shown) < len(names):  # something was cut: then there was no room
        assert max(map(cell_len, lines)) >= width - 2, text
    assert len(set(names)) == len(names) == len(labels), text


def test_labels_that_fit_are_whole_at_eighty_columns():
    labels = [f"item-{k}-physics" for k in range(1000, 1020)]
    text = "\n".join(printed(item_table(columns_of(labels), 80), 80))
    assert all(label in text for label in labels[-5:] + labels[:5])


def test_people_and_other_tables_likewise():
    labels = [f"a-long-family-name-{k}-and-a-given-name" for k in range(12)]
    n = len(labels)
    persons = {name: np.linspace(-1, 1, n) for name in ("ability", "se", "outfit", "outfit_z")}
    persons |= {"person": np.array(labels, dtype=object), "score": np.arange(n), "n": np.full(n, 20)}
    persons |= {"extreme": np.zeros(n, dtype=bool)}
    others = [["0.123"] * n] * 5
    for table in (person_table(persons, 60), plain_table(["item", *"abcde"], [labels, *others], 60)):
        lines = printed(table, 60)[1:]
        for one, other in itertools.combinations([line for line in lines if line], 2):
            assert one[:20] != other[:20]


def fit_of(columns, misfits):
    n = len(columns["item"])
    fit = {name: np.full(n, 1.01) for name in ("infit", "outfit")}
    fit |= {"point_measure": np.full(n, 0.44), "misfit": np.full(n, "", dtype=object), "misfit_p": np.full(n, 0.5)}
    for k, (place, word) in enumerate(misfits.items()):
        fit["infit"][place], fit["misfit"][place], fit["misfit_p"][place] = 1.62, word, 1e-9 * (k + 1)
    return fit


def test_every_item_of_an_ordinary_test_with_its_fit():
    columns = columns_of([f"q{k:02d}" for k in range(SHOW_ALL)])
    lines = printed(item_table(columns, 80, fit_of(columns, {7: "underfit", 9: "overfit"})), 80)
    assert lines[0].split() == ["point"]
    assert lines[1].split()[-4:] == ["right", "infit", "outfit", "measure"]
    assert [line.split()[0] for line in lines[2:] if line] == [f"q{k:02d}" for k in range(SHOW_ALL)][::-1]
    marked = {line.split()[0]: line.split()[-5:] for line in lines if line.endswith("fit")}
    numbers = ["50.0%", "1.62", "1.01", "0.44"]
    assert marked == {"q07": [*numbers, "underfit"], "q09": [*numbers, "overfit"]}


def test_of_a_long_test_the_ends_and_the_misfits():
    columns = columns_of([f"q{k:03d}" for k in range(SHOW_ALL + 40)])
    lines = printed(item_table(columns, 80, fit_of(columns, dict.fromkeys(range(50, 63), "underfit"))), 80)
    heads = ["hardest", "easiest", "misfit (10 of 13)", "largest se"]
    places = [lines.index(head) for head in heads]
    assert places == sorted(places)
    first = [[line.split()[0] for line in lines[k + 1 : k + 1 + SHOW_EACH]] for k in places]
    assert first[0] == [f"q{k:03d}" for k in range(99, 94, -1)]
    assert first[1] == [f"q{k:03d}" for k in range(5)]
    assert first[2] == [f"q{k:03d}" for k in range(50, 55)]  # the least likely first
    assert first[3] == [f"q{k:03d}" for k in range(94, 89, -1)]  # of those not shown as hardest
    assert sum(line.endswith("underfit") for line in lines) == SHOW_MISFITS


def test_the_picture_goes_before_a_label_is_cut():
    columns = columns_of([f"a-label-of-thirty-columns-or-so-{k:02d}" for k in range(20)])
    fit = fit_of(columns, {})
    for width in (40, 60, 80, 100, 120, 124, 160):
        text = "\n".join(printed(item_table(columns, width, fit), width))
        assert "●" not in text or all(label in text for label in columns["item"]), width
        assert "…" not in text, width  # no number is cut either
    assert "●" in text


def test_without_a_width_no_label_is_cut():
    labels = [f"{'a-very-long-beginning-' * 3}{k}" for k in range(20)]
    text = "\n".join(printed(item_table(columns_of(labels), 80, whole=True), 80, crop=False))
    assert all(f"{label} " in text for label in labels)
    assert "●" not in text


def test_wide_characters_keep_the_columns_straight():
    labels = [f"{name}{k}" for name in ("漢字の設問", "e\u0301te\u0301-", "q") for k in range(5)]
    lines = printed(item_table(columns_of(labels), 80), 80)
    assert len({cell_len(line) for line in lines[1:] if line}) == 1


def test_ranks_and_intervals_of_a_few_people():
    n = 20
    persons = {name: np.linspace(1, -1, n) for name in ("ability", "outfit", "outfit_z", "ci_low", "ci_high")}
    persons |= {"person": np.array([f"m{k}" for k in range(n)], dtype=object), "se": np.full(n, 0.1)}
    persons |= {"score": np.arange(n), "n": np.full(n, 3000), "extreme": np.zeros(n, dtype=bool)}
    persons |= {"rank": np.arange(1, n + 1), "rank_low": np.arange(1, n + 1), "rank_high": np.arange(1, n + 1)}
    persons["rank_high"][0], persons["rank"][-1] = 3, 0
    lines = printed(person_table(persons, 80, name="model"), 80)
    assert lines[1].split()[:5] == ["model", "rank", "interval", "ability", "se"]
    assert lines[2].split()[:6] == ["m0", "1", "1", "to", "3", "1.00"]
    assert lines[3].split()[:4] == ["m1", "2", "2", "0.89"]
    assert lines[21].split()[:2] == ["m19", "-1.00"]


def test_the_same_score_is_the_same_place_whatever_the_last_bits():
    ability = np.array([1.0, 2.0, 1.0 + 1e-14, 1.0 - 1e-14])
    ranks = person_ranks(ability, np.full(4, 0.1))
    assert ranks["rank"].tolist() == [2, 1, 2, 2]
    many = np.tile(ability, 10)
    persons = {"ability": many, "outfit_z": np.zeros(40)}
    shown = dict(choose_people(persons))
    assert shown["highest"] == [1, 5, 9, 13, 17]
    assert shown["lowest"] == [39, 38, 36, 35, 34]
