"""Files as people have them: the right items, or one sentence that names the culprit and the one option to add."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openpyxl
import polars as pl
import pytest

from spectral_irt import simulate
from spectral_irt.app.detect import detect

N, ITEMS = 240, [f"v{k}" for k in range(1, 13)]
LIKERT = ("never", "rarely", "sometimes", "often", "always")


def answers(categories: int, seed: int = 1) -> np.ndarray[Any, Any]:
    model = simulate.partial_credit if categories > 2 else simulate.rasch
    made = model(N, len(ITEMS), seed=seed, **({"categories": categories} if categories > 2 else {}))
    return made.responses.to_dense().astype(int)


def frame(categories: int = 2, low: int = 0, **more: Any) -> pl.DataFrame:
    table = pl.DataFrame(answers(categories) + low, schema=ITEMS)
    return table.select(pl.Series("pupil", [f"P{k:03d}" for k in range(N)]), pl.all()).with_columns(
        **{name: pl.Series(values) for name, values in more.items()}
    )


def coin(seed: int, *values: Any) -> list[Any]:
    return np.random.default_rng(seed).choice(np.array(values, dtype=object), N).tolist()


def csv(
    table: pl.DataFrame, path: Path, *, above: str = "", below: str = "", encoding: str = "utf-8", **how: Any
) -> None:
    path.write_bytes((above + table.write_csv(**how) + below).encode(encoding))


class Messy(NamedTuple):
    """How to make a file, what to add to the command, codes of findings that name the culprits; or the error."""

    make: Callable[[Path], None]
    name: str = "answers.csv"
    options: tuple[str, ...] = ()
    culprits: dict[str, set[str]] = {}  # noqa: RUF012
    error: tuple[str, ...] = ()


def odd_columns(path: Path) -> None:
    """A weight, a cluster number and a booklet that is sorted: the first rows show one value."""
    more = {"w": coin(1, 0.5, 1.0, 2.0), "c": [k % 40 for k in range(N)], "b": [1] * (N // 2) + [14] * (N // 2)}
    csv(frame(2, **more), path)


def demographics(path: Path) -> None:
    csv(frame(5, 1, schooling=coin(2, 0, 1), couple=coin(3, 1, 2), yearsold=coin(4, 0, 1)), path)


def spss(path: Path) -> None:
    import pyreadstat

    table = frame(5, 1, sx=coin(5, 0, 1), couple=coin(6, 1, 2, 3)).to_pandas()
    table.loc[3, "v2"] = 99
    labels = {name: dict(enumerate(LIKERT, start=1)) for name in ITEMS}
    labels |= {"sx": {0: "female", 1: "male"}, "couple": {1: "single", 2: "married", 3: "divorced"}}
    pyreadstat.write_sav(table, str(path), variable_value_labels=labels, missing_ranges={"v2": [99]})


def workbook(path: Path) -> None:
    """Letters, and the key on a second sheet."""
    book = openpyxl.Workbook()
    sheet, key = book.active, book.create_sheet("Answer key")
    sheet.title = "Spring"
    rng = np.random.default_rng(7)
    right = answers(2)
    sheet.append(["pupil", *ITEMS])
    for k, row in enumerate(right):
        sheet.append([f"P{k:03d}", *("A" if one else "BCD"[rng.integers(3)] for one in row)])
    for row in (["item", "key"], *([item, "A"] for item in ITEMS)):
        key.append(row)
    book.save(path)


def options(path: Path) -> None:
    """Options of multiple choice: the number of the right one says nothing about the others."""
    rng = np.random.default_rng(8)
    keys = rng.integers(1, 6, len(ITEMS))
    wrong = (keys + rng.integers(1, 5, (N, len(ITEMS))) - 1) % 5 + 1
    table = pl.DataFrame(np.where(answers(2) == 1, keys, wrong), schema=ITEMS)
    csv(table, path)


def reversed_items(path: Path) -> None:
    table = frame(5, 1)
    csv(table.with_columns([(6 - pl.col(name)).alias(name) for name in ITEMS[:4]]), path)


def words(path: Path) -> None:
    table = frame(5)
    csv(table.with_columns(pl.col(ITEMS).replace_strict(dict(enumerate(LIKERT)), return_dtype=pl.String)), path)


def comma(path: Path) -> None:
    csv(frame(2, weight=coin(9, "0,5", "1,25", "2,0")), path, separator=";")


def letters(path: Path) -> None:
    table = frame(2)
    csv(table.with_columns(pl.col(ITEMS).replace_strict({0: "B", 1: "A"}, return_dtype=pl.String)), path)


def points(path: Path) -> None:
    """Points from 0 to 2, of which few people have 1: the thresholds of the items are out of order."""
    half = np.random.default_rng(3).random((N, len(ITEMS))) < 0.08
    csv(pl.DataFrame(np.where(half, 1, 2 * answers(2)), schema=ITEMS), path)


def row_below(label: str, of: str) -> Callable[[Path], None]:
    """A last row that is no person, such as the sums of the columns."""
    numbers = ",".join(f"{value:g}" for value in getattr(answers(2), of)(axis=0))
    return lambda path: csv(frame(2), path, below=f"{label},{numbers}\n")


QUESTIONS = ",".join(["Your code", *(f"How well did you do task {k}?" for k in range(12))])
MESSY = {
    "odd columns": Messy(odd_columns, culprits={"unlike_columns": {"w", "c", "b"}}),
    "demographics": Messy(
        demographics, culprits={"unlike_columns": {"schooling", "yearsold"}, "doubtful_items": {"couple"}}
    ),
    "value labels": Messy(spss, "answers.sav", culprits={"unlike_columns": {"sx", "couple"}, "category_labels": set()}),
    "key on a second sheet": Messy(workbook, "answers.xlsx", culprits={"key_sheet": set()}),
    "title": Messy(lambda path: csv(frame(2), path, above="Spring, 2026\n\n"), culprits={"title_rows": set()}),
    "decimal commas": Messy(comma, culprits={"unlike_columns": {"weight"}}),
    "cp1252": Messy(
        lambda path: csv(frame(2).with_columns(pupil="Zoé " + pl.col("pupil")), path, encoding="cp1252"),
        culprits={"encoding": set()},
    ),
    "options without key": Messy(options, culprits={"thresholds_out_of_order": set()}),
    "points": Messy(points, culprits={"thresholds_out_of_order": set(ITEMS)}),
    "reversed items": Messy(reversed_items, culprits={"reversed_items": set(ITEMS[:4])}),
    "words": Messy(words, error=("--recode never,rarely,sometimes,often,always",)),
    "words, recoded": Messy(words, options=("--recode", ",".join(LIKERT))),
    "two header rows": Messy(
        lambda path: csv(frame(2), path, above=",".join(["pupil", *ITEMS]) + f"\n{QUESTIONS}\n", include_header=False),
        culprits={"second_header": set()},
    ),
    "letters": Messy(letters, error=("options of multiple choice", "--key")),
    **{
        f"row {label}": Messy(row_below(label, of), culprits={"total_rows": set()})
        for label, of in {"Total": "sum", "sum": "sum", " Mean": "mean", "AVERAGE": "mean"}.items()
    },
}


@pytest.mark.parametrize("kind", MESSY)
def test_a_messy_file(kind: str, cli: Callable[..., Any], tmp_path: Path) -> None:
    messy = MESSY[kind]
    if messy.name.endswith(".sav"):
        pytest.importorskip("pyreadstat")
    messy.make(tmp_path / messy.name)
    seen = detect({"file": messy.name})  # as the app does
    roles = [column["name"] for column in seen["columns"] if column["role"] == "item"]
    checked = cli("check", messy.name, *messy.options)
    fitted = cli("fit", messy.name, *messy.options, "-o", "results")
    if messy.error:
        for done in (checked, fitted):
            assert done.code == 2
            assert all(part in done.err for part in messy.error)
            assert "--ignore" not in done.err
        return
    assert (checked.code, fitted.code) == (0, 0), checked.err + fitted.err
    record = json.loads(Path("results", "fit.json").read_text(encoding="utf-8"))
    found = {finding["code"]: set(finding["items"]) for finding in record["findings"]}
    for code, culprits in messy.culprits.items():
        assert culprits <= found[code]
        assert not found[code] & set(ITEMS) or code in ("thresholds_out_of_order", "reversed_items")
    doubtful = found.get("doubtful_items", set())
    items = pl.read_csv(Path("results", "items.csv"))["item"].to_list()
    assert set(items) - doubtful == set(roles) - doubtful == set(ITEMS)
    assert not seen["error"]
    assert record["counts"]["persons"] == N
    said = " ".join(fitted.out.split())
    assert ("typical of multiple choice: if the numbers are options, say --key" in said) == (
        kind == "options without key"
    )
