"""What a bank on disk must look like: every value is checked before it is used, whoever wrote it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.bank.evidence import MATRIX_ITEMS
from spectral_irt.errors import listed

if TYPE_CHECKING:
    import polars as pl

LONGEST_STATUS = 40  # characters
FARTHEST = 1e4  # logits: no answers put an item there


class SchemaError(ValueError):
    """What is wrong, in words that follow the name of the bank."""


def _number(low: float = -math.inf, *, above: bool = False) -> Callable[[Any], bool]:
    def good(x: Any) -> bool:
        if isinstance(x, bool) or not isinstance(x, int | float) or abs(x) > 1e300:
            return False
        return math.isfinite(x) and (x > low if above else x >= low)

    return good


def _count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 2**63


def _text(x: Any) -> bool:
    return isinstance(x, str)


def _plain(x: Any) -> bool:
    return x is None or isinstance(x, str | int | float | bool)


def _settings(x: Any) -> bool:
    return isinstance(x, dict) and all(map(_plain, x.values()))


def _labels(x: Any) -> bool:
    return isinstance(x, list) and all(map(_plain, x))


RECORD: dict[str, Any] = {
    "estimator": _text,
    "package_version": _text,
    "settings": _settings,
    "scale": {"mean": _number(), "unit": _number(0, above=True)},
    "counts": {"items": _count, "users": _count, "responses": _count},
    "data": [{"digest": _text, "source": _text, "users": _count, "items": _count, "responses": _count, "how": _text}],
    "findings": [
        {
            "code": _text,
            "severity": lambda x: x in ("note", "warning", "error"),
            "sentence": _text,
            "remedy": _text,
            "items": _labels,
        }
    ],
}
UNTIL_2: dict[str, Any] = {"prior": {"mean": _number(), "precision": _number(0)}}
SINCE_3: dict[str, Any] = {"prior": {"precision": _number(0)}}
SINCE_2: dict[str, Any] = {
    "population": ({"mean": _number(), "sd": _number(0, above=True), "users": _count}, None),
    "salt_check": _text,
}


def check_record(record: Mapping[str, Any], version: int) -> None:
    """The manifest: every entry there, of its kind, finite and within its bounds."""
    prior = SINCE_3 if version > 2 else UNTIL_2
    for name, wanted in {**RECORD, **(SINCE_2 if version > 1 else {}), **prior}.items():
        _check(record.get(name), wanted, name)
    tables = record.get("tables")
    known = {"items", "users", "information"} | ({"categories", "step_information"} if version > 3 else set())
    if not isinstance(tables, dict) or not {"items"} <= set(tables) <= known:
        raise SchemaError(f"names other tables than {', '.join(sorted(known))}")
    for name, entry in tables.items():
        _check(entry, {"file": _text, "sha256": _text}, f"tables.{name}")


def _check(value: Any, wanted: Any, name: str) -> None:
    if isinstance(wanted, tuple):
        if value is None:
            return
        wanted = wanted[0]
    if isinstance(wanted, dict):
        if not isinstance(value, dict) or set(value) != set(wanted):
            raise SchemaError(f"has no {name!r} with {', '.join(wanted)}")
        for key, inner in wanted.items():
            _check(value[key], inner, f"{name}.{key}")
    elif isinstance(wanted, list):
        if not isinstance(value, list):
            raise SchemaError(f"has no list {name!r}")
        for k, one in enumerate(value):
            _check(one, wanted[0], f"{name}[{k}]")
    elif not wanted(value):
        raise SchemaError(f"has {repr(value)[:40]} as {name!r}, which cannot be")


# ------------------------------------------------------------------------------------------------- tables

ITEMS = {"item": "String", "label": "String", "difficulty": "Float64", "se": "Float64", "status": "String"}
ITEMS |= {"n": "Int64", "score": "Int64", "information": "Float64", "anchored": "Boolean"}
ITEMS_2 = {"group": "Int64"}
ITEMS_3 = {"level": "Float64", "pull": "Float64"}
CATEGORIES = {"item": "Int32", "category": "Int32", "code": "Float64", "n": "Int64"}
CATEGORIES |= {"threshold": "Float64", "se": "Float64", "information": "Float64"}
USERS = {"user": "UInt64", "answers": "UInt64"}
INFORMATION = {"row": "Int32", "column": "Int32", "value": "Float64"}


def check_tables(tables: Mapping[str, pl.DataFrame], counts: Mapping[str, int], version: int) -> None:
    """The tables: the columns and kinds they should have, numbers finite and in order, of one length."""
    items = tables["items"]
    _columns("items", items, ITEMS | (ITEMS_2 if version > 1 else {}) | (ITEMS_3 if version > 2 else {}))
    _full("items", items, [name for name in items.columns if name not in ("difficulty", "se", "level")])
    m = len(items)
    if counts["items"] != m or counts["responses"] != int(items["n"].sum()):
        raise SchemaError("says of itself another number of items or responses than its table has")
    difficulty, se = items["difficulty"].to_numpy(), items["se"].to_numpy()
    with np.errstate(invalid="ignore"):
        _all("difficulty", items, np.isnan(difficulty) | (np.abs(difficulty) < FARTHEST))
        _all("se", items, np.isnan(se) | (se >= 0))
        _all("information", items, items["information"].is_finite().to_numpy() & (items["information"] >= 0).to_numpy())
    most = items["n"].to_numpy()
    if "categories" in tables:
        most = most * _check_categories(tables["categories"], items)
    _all("score", items, (items["score"].to_numpy() >= 0) & (items["score"].to_numpy() <= most))
    _all("status", items, items["status"].str.len_chars().is_between(1, LONGEST_STATUS).to_numpy())
    if version > 1:
        _all("group", items, ((items["group"] >= 0) & (items["group"] <= m)).to_numpy())
    if version > 2:
        level = items["level"].to_numpy()
        with np.errstate(invalid="ignore"):
            _all("level", items, np.isnan(level) | (np.abs(level) < FARTHEST))
        _all("pull", items, items["pull"].is_finite().to_numpy())
    if items["label"].n_unique() != m:
        raise SchemaError("has the same item more than once")
    if "users" in tables:
        _columns("users", tables["users"], USERS)
        _full("users", tables["users"], list(USERS))
    if "information" in tables:
        _check_entries("information", tables["information"], m)
    if "step_information" in tables:
        if "categories" not in tables:
            raise SchemaError("has an information matrix of thresholds, and no thresholds")
        _check_entries("step_information", tables["step_information"], len(tables["categories"]) - m)


def _check_entries(name: str, entries: pl.DataFrame, size: int) -> None:
    _columns(name, entries, INFORMATION)
    _full(name, entries, list(INFORMATION))
    row, column = entries["row"].to_numpy(), entries["column"].to_numpy()
    if not (np.all((column >= 0) & (column <= row) & (row < size)) and entries["value"].is_finite().all()):
        raise SchemaError(f"has an information matrix ({name}) with impossible entries")
    if size > 2 * MATRIX_ITEMS or not _is_information(row, column, entries["value"].to_numpy(), size):
        raise SchemaError(f"has an information matrix ({name}) that no answers can have: it is negative, or too large")


def _is_information(row: Any, column: Any, value: Any, size: int) -> bool:
    """Whether the matrix is positive semidefinite, but for a thousandth of its diagonal: it may be an approximation."""
    matrix = np.zeros((size, size))
    matrix[row, column] = matrix[column, row] = value
    own = np.diag(matrix).copy()
    if (own < 0).any() or matrix[own == 0].any():
        return False
    scale = np.sqrt(np.where(own > 0, own, 1.0))
    try:
        np.linalg.cholesky(matrix / scale / scale[:, None] + 1e-3 * np.eye(size))
    except np.linalg.LinAlgError:
        return False
    return True


def _check_categories(rows: pl.DataFrame, items: pl.DataFrame) -> Any:
    """The categories of every item from 0 up, item after item; the highest of each."""
    _columns("categories", rows, CATEGORIES)
    _full("categories", rows, ["item", "category", "n"])
    item, category, m = rows["item"].to_numpy(), rows["category"].to_numpy(), len(items)
    counts = np.bincount(item[(item >= 0) & (item < m)], minlength=m)
    if len(item) != counts.sum() or (counts < 2).any() or not np.array_equal(item, np.repeat(np.arange(m), counts)):
        raise SchemaError("has categories of items that it does not have, or items with fewer than two")
    if not np.array_equal(category, np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)):
        raise SchemaError("has categories that are not numbered from 0 without gaps")
    beta, se, told = (rows[name].to_numpy() for name in ("threshold", "se", "information"))
    with np.errstate(invalid="ignore"):
        good = np.isnan(beta) | (np.abs(beta) < FARTHEST)
        good &= (np.isnan(se) | (se >= 0)) & (np.isnan(told) | (told >= 0)) & (rows["n"].to_numpy() >= 0)
    if not good.all() or np.isnan(told[category > 0]).any():
        raise SchemaError("has impossible thresholds in its table 'categories'")
    if not np.array_equal(np.bincount(item, weights=rows["n"].to_numpy(), minlength=m), items["n"].to_numpy()):
        raise SchemaError("has other numbers of answers in its table 'categories' than in 'items'")
    return counts - 1


def _columns(name: str, table: pl.DataFrame, wanted: Mapping[str, str]) -> None:
    found = {column: str(kind) for column, kind in table.schema.items()}
    if found != dict(wanted):
        raise SchemaError(f"has a table {name!r} with other columns than {', '.join(wanted)}")


def _full(name: str, table: pl.DataFrame, columns: list[str]) -> None:
    empty = [column for column in columns if table[column].null_count()]
    if empty:
        raise SchemaError(f"lacks values in {listed(empty)} of its table {name!r}")


def _all(column: str, items: pl.DataFrame, good: Any) -> None:
    if not good.all():
        bad = items.filter(~np.asarray(good))
        raise SchemaError(f"has an impossible {column} for {listed(bad['item'].to_list())} ({bad[column][0]})")
