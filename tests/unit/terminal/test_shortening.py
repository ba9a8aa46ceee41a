"""Labels in little room keep what tells them apart, whatever they are written in."""

import unicodedata

import pytest
from rich.cells import cell_len

from label_families import FAMILIES
from spectral_irt.terminal.labels import LEAST, MARK, in_its_place, room_for, shortened


@pytest.mark.parametrize("labels", FAMILIES.values(), ids=list(FAMILIES))
@pytest.mark.parametrize("width", [LEAST, 9, 12, 20, 33, 200])
def test_no_two_labels_look_alike(labels, width):
    short = shortened(labels, width)
    assert len(set(short)) == len(labels)
    assert max(map(cell_len, short)) <= width
    assert all(new == old for new, old in zip(short, labels, strict=True) if cell_len(old) <= width) or "1:" in short[0]
    assert shortened(labels[:2] * 2, width) == shortened(labels[:2], width) * 2


@pytest.mark.parametrize("width", range(12, 40))
def test_what_tells_them_apart_stays_whole(width):
    """Sizes of models, between a long common start and a long common end: 405b is never 05b."""
    sizes = ["7b", "70b", "8x7b", "405b", "13b", "3b"]
    short = shortened([f"vendor/large-language-model-{size}-instruct-v2" for size in sizes], width)
    for text, size in zip(short, sizes, strict=True):
        before, _, after = text.partition(size)
        assert before[-1:] in ("-", ".")
        assert after[:1] in ("-", ".")
    numbers = [f"very_long_prefix_item_{k:03d}" for k in (1, 2, 10, 11)]
    assert [text[-3:] for text in shortened(numbers, width)] == ["001", "002", "010", "011"]


def test_a_label_is_cut_in_the_middle_where_that_tells_it_from_the_others():
    assert shortened(["physics-2024-item-07", "physics-2025-item-07"], 100)[0] == "physics-2024-item-07"
    assert shortened(["first-aaaaaaaaaaaa-end", "other-aaaaaaaaaaaa-last"], 11) == ["firs...-end", "othe...last"]
    assert room_for(["item-100001", "item-100002"]) <= 9
    assert shortened(["item-100001", "item-100002"], 9) == ["...100001", "...100002"]


@pytest.mark.parametrize("width", range(8, 20))
def test_a_character_is_never_cut_in_two(width):
    accents = ["e\u0301" * 20 + f"-{k}" for k in range(3)]
    families = ["\U0001f468\u200d\U0001f469\u200d\U0001f467" * 12 + f"{k}" for k in range(3)]
    for text in shortened(accents, width) + shortened([label[::-1] for label in accents], width):
        first, _, last = text.partition("...")
        assert not unicodedata.combining((first or "x")[0]) or first[0] == "\u0301" == text[0]
        assert not unicodedata.combining((last or "x")[0]) or text[0] == "\u0301"
    for text in shortened(families, width):
        assert all(not part.startswith("\u200d") and not part.endswith("\u200d") for part in text.split("..."))
        assert cell_len(text) <= width


def test_labels_from_right_to_left_leave_the_numbers_where_they_are():
    assert in_its_place("שאלה 7") == "שאלה 7" + MARK
    assert in_its_place("سؤال").endswith(MARK)
    assert in_its_place("question 7, 漢字") == "question 7, 漢字"
