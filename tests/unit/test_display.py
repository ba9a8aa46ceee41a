"""Tables on the terminal: labels keep what tells them apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from spectral_irt.cli.people_table import person_table
from spectral_irt.display import LEAST_LABEL, item_table, plain_table, room_for, shortened

FAMILIES = {
    "numbered": [f"item-{k}" for k in range(100001, 100021)],
    "same ends": [f"physics-section-{k:02d}-of-the-final-examination-2024" for k in range(20)],
    "same start": [f"the-very-same-long-beginning-of-a-label-{k}" for k in range(20)],
    "same end": [f"{k}-the-very-same-long-end-of-a-label-for-all" for k in range(20)],
    "wide": [f"物理学入門試験問題その{k}番目の設問です" for k in range(20)],
    "one is the start of the other": ["a" * k for k in range(10, 30)],
    "different lengths": ["x", "form-A-item-1-revised-edition", "form-A-item-2-revised-edition", *map(str, range(17))],
}


@pytest.mark.parametrize("labels", FAMILIES.values(), ids=list(FAMILIES))
@pytest.mark.parametrize("width", [LEAST_LABEL, 9, 12, 20, 33, 200])
def test_no_two_labels_look_alike(labels: list[str], width: int) -> None:
    short = shortened(labels, width)
    assert len(set(short)) == len(labels)
    assert max(map(cell_len, short)) <= width
    assert all(new == old for new, old in zip(short, labels, strict=True) if cell_len(old) <= width) or "1:" in short[0]
    assert shortened(labels[:2] * 2, width) == shortened(labels[:2], width) * 2


def test_a_label_is_cut_in_the_middle_where_that_tells_it_from_the_others() -> None:
    assert shortened(["physics-2024-item-07", "physics-2025-item-07"], 100)[0] == "physics-2024-item-07"
    assert shortened(["first-aaaaaaaaaaaa-end", "other-aaaaaaaaaaaa-last"], 11) == [
        "firs...-end",
        "othe...last",
    ]
    assert room_for(["item-100001", "item-100002"]) == LEAST_LABEL


def printed(table: object, width: int) -> list[str]:
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().split("\n")]


def columns_of(labels: list[str]) -> dict[str, np.ndarray]:
    n = len(labels)
    values = np.linspace(-2, 2, n)
    return {
        "item": np.array(labels, dtype=object),
        "difficulty": values,
        "se": np.linspace(0.1, 0.2, n),
        "ci_low": values - 0.2,
        "ci_high": values + 0.2,
        "n": np.full(n, 123456),
        "p_correct": np.full(n, 0.5),
        "status": np.array(["ok"] * n, dtype=object),
    }


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_items_differ_and_use_the_room_there_is(family: str, width: int) -> None:
    labels = FAMILIES[family]
    lines = printed(item_table(columns_of(labels), width), width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    rows = [line.split("  ") for line in lines if "." in line]
    names = [[part for part in row if part.strip()][0 if row[0] == "" else 1].strip() for row in rows]
    shown = {label for label in labels if any(name == label for name in names)}
    if len(shown) < len(set(names)):  # something was cut: then there was no room
        assert max(map(cell_len, lines)) >= width - 2, text
    hardest = names[:5]
    assert len(set(hardest)) == 5, text


def test_labels_that_fit_are_whole_at_eighty_columns() -> None:
    labels = [f"item-{k}-physics" for k in range(1000, 1020)]
    text = "\n".join(printed(item_table(columns_of(labels), 80), 80))
    assert all(label in text for label in labels[-5:] + labels[:5])


def test_people_and_other_tables_likewise() -> None:
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
