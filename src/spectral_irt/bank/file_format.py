"""What the files of a bank hold: a record for `bank.json` and tables; every value is checked before it is used.

`items` has a row for every item, `categories` one for every category of every item (with the threshold below it, which
the lowest has not), `information` the entries of the information matrix of all thresholds, `persons` keyed hashes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.bank.bank import Bank, DataSet, Population
from spectral_irt.bank.evidence import MATRIX_SIZE, Evidence
from spectral_irt.bank.recognition import KnownPeople, in_no_order
from spectral_irt.calibration import Calibration, Provenance, Scale
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import BankError, listed
from spectral_irt.tables import plain

if TYPE_CHECKING:
    import polars as pl

VERSION = 5
OLDEST = 4  # had `users`, `level`, `pull` and "apart", and no categories for right and wrong answers
LONGEST_STATUS = 40  # characters
FARTHEST = 1e4  # logits: no answers put an item there
CLOSE = 1e-6  # logits: an item's difficulty is the mean of its thresholds


class SchemaError(ValueError):
    """What is wrong, in words that follow the name of the bank."""


# ------------------------------------------------------------------------------------------ labels


def encoded(labels: Labels) -> list[str]:
    """Each label as JSON text: numbers stay numbers, and any text comes back to the letter."""
    names = labels.tolist()
    strange = [label for label in names if not isinstance(label, str | int | float | None)]
    if strange:
        raise BankError(
            f"the label {strange[0]!r} is a {type(strange[0]).__name__}; a bank keeps labels that are text or numbers. "
            "Name the items by text."
        )
    return [json.dumps(label) for label in names]


def decoded(texts: list[str]) -> Labels:
    return label_array([json.loads(text) for text in texts])


def readable(labels: Labels) -> list[str]:
    """Each label as text that every reader can show."""
    return [str(label).encode("utf-8", "replace").decode("utf-8") for label in labels.tolist()]


# ---------------------------------------------------------------------------------------- to be written


def record_of(bank: Bank) -> dict[str, Any]:
    """All of the bank that is not in tables, in JSON's own types."""
    source = bank.calibration.provenance
    record = {
        "package_version": source.version,
        "estimator": source.estimator,
        "settings": dict(source.settings),
        "scale": asdict(bank.scale),
        "prior": {"precision": bank.evidence.prior_precision},
        "population": None if bank.population is None else asdict(bank.population),
        "salt_check": bank.people.salt_check,
        "counts": {"items": bank.n_items, "persons": bank.n_persons, "responses": int(bank.n.sum())},
        "data": [asdict(data) for data in bank.data],
        "findings": [finding.to_dict() for finding in bank.findings],
    }
    return plain(record)


def tables_of(bank: Bank) -> dict[str, pl.DataFrame]:
    import polars as pl

    made, kept, layout = bank.calibration, bank.evidence, bank.calibration.layout

    def numbers(values: Floats) -> pl.Series:
        return pl.Series(values, nan_to_null=True, dtype=pl.Float64)

    items = {
        "item": pl.Series(readable(made.labels), dtype=pl.String),
        "label": pl.Series(encoded(made.labels), dtype=pl.String),
        "difficulty": numbers(made.difficulty),
        "se": numbers(made.se),
        "status": pl.Series([str(word) for word in made.status], dtype=pl.String),
        "n": pl.Series(made.n, dtype=pl.Int64),
        "score": pl.Series(made.score, dtype=pl.Int64),
        "information": pl.Series(made.item_information, dtype=pl.Float64),
        "anchored": pl.Series(made.anchored, dtype=pl.Boolean),
        "link_group": pl.Series(kept.link_group, dtype=pl.Int64),
    }
    item = np.repeat(np.arange(made.n_items), layout.max_score + 1)
    category = np.arange(len(item)) - (layout.first + np.arange(made.n_items))[item]
    above = category > 0

    def of_thresholds(values: Floats) -> pl.Series:
        out = np.full(len(item), np.nan)
        out[above] = values
        return numbers(out)

    categories = {
        "item": pl.Series(item, dtype=pl.Int32),
        "category": pl.Series(category, dtype=pl.Int32),
        "code": numbers(made.codes[item, category]),
        "n": pl.Series(np.nan_to_num(made.category_n[item, category]), dtype=pl.Int64, strict=False),
        "threshold": of_thresholds(made.thresholds),
        "se": of_thresholds(made.threshold_se),
        "information": of_thresholds(kept.information),
        "prior_mean": of_thresholds(kept.prior_mean),
        "prior_gradient": of_thresholds(kept.prior_gradient),
    }
    tables = {"items": pl.DataFrame(items), "categories": pl.DataFrame(categories)}
    if bank.people.salt_check:
        hashes = np.ascontiguousarray(in_no_order(bank.people.hashes))
        tables["persons"] = pl.DataFrame({"person": pl.Series(hashes[:, 0]), "answers": pl.Series(hashes[:, 1])})
    if kept.matrix is not None:  # its lower half, without zeros
        row, column = np.nonzero(np.tril(kept.matrix))
        cells = {"row": row.astype(np.int32), "column": column.astype(np.int32), "value": kept.matrix[row, column]}
        tables["information"] = pl.DataFrame(cells)
    return tables


# ------------------------------------------------------------------------------------------- as it was read


def bank_of(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], origin: tuple[str, str]) -> Bank:
    """The bank of a record and tables that have been checked."""
    items, rows = tables["items"], tables["categories"]
    m = len(items)
    item, category = rows["item"].to_numpy(), rows["category"].to_numpy()
    counts = np.bincount(item, minlength=m) - 1
    above, binary = category > 0, bool((counts == 1).all())
    codes, number = (np.full((m, int(counts.max(initial=1)) + 1), np.nan) for _ in range(2))
    codes[item, category], number[item, category] = rows["code"].to_numpy(), rows["n"].to_numpy()
    status = np.empty(m, dtype=object)
    status[:] = items["status"].to_list()
    anchored, se = items["anchored"].to_numpy(), items["se"].to_numpy().astype(float)
    per_threshold = {
        name: rows[name].to_numpy()[above].astype(float)
        for name in ("threshold", "se", "information", "prior_mean", "prior_gradient")
    }
    layout = Thresholds.ones(m) if binary else Thresholds(counts.astype(np.int64))
    hashes = {}
    if "persons" in tables:
        persons = tables["persons"]
        hashes["hashes"] = np.stack([persons["person"].to_numpy(), persons["answers"].to_numpy()], axis=1)
    return Bank(
        calibration=Calibration(
            labels=decoded(items["label"].to_list()),
            thresholds=per_threshold["threshold"],
            threshold_se=per_threshold["se"],
            layout=layout,
            location_se=None if binary else se,
            category_n=number,
            codes=codes,
            status=status,
            n=items["n"].to_numpy(),
            score=items["score"].to_numpy(),
            item_information=items["information"].to_numpy(),
            scale=Scale(**record["scale"]),
            findings=tuple(Finding(**{**one, "items": tuple(one["items"])}) for one in record["findings"]),
            provenance=Provenance(record["estimator"], record["settings"], version=record["package_version"]),
            further={"anchored": anchored} if anchored.any() else {},
        ),
        evidence=Evidence(
            per_threshold["information"],
            per_threshold["prior_mean"],
            per_threshold["prior_gradient"],
            items["link_group"].to_numpy(),
            float(record["prior"]["precision"]),
            _matrix(tables["information"], layout.n_entries) if "information" in tables else None,
        ),
        data=tuple(DataSet(**data) for data in record["data"]),
        population=Population(**record["population"]) if record["population"] else None,
        people=KnownPeople(**hashes, salt_check=record["salt_check"]),
        origin=origin,
    )


def _matrix(entries: pl.DataFrame, size: int) -> Floats:
    full = np.zeros((size, size))
    row, column, value = (entries[name].to_numpy() for name in ("row", "column", "value"))
    full[row, column] = value
    full[column, row] = value
    return full


def record_from_4(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a bank of format 4 under today's names; whatever is not as it should be is left for the check."""

    def renamed(old: Any) -> Any:
        return {"persons" if name == "users" else name: value for name, value in old.items()}

    names = {"users": "persons", "step_information": "information"}
    return {
        **record,
        "counts": renamed(record["counts"]),
        "population": renamed(record["population"]) if record["population"] else None,
        "data": [renamed(one) for one in record["data"]],
        "tables": {names.get(name, name): entry for name, entry in record["tables"].items()},
    }


def tables_from_4(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of a bank of format 4 as today's."""
    import polars as pl

    items, out = tables["items"], dict(tables)
    of_item = items.select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("item"),
        pl.col("level").alias("prior_mean"),
        pl.col("pull").alias("prior_gradient"),
        "n",
        "score",
        "information",
        threshold="difficulty",
        se="se",
    )
    rows = tables.get("categories")
    if rows is None:
        upper = of_item.with_columns(n="score", category=pl.lit(1, pl.Int32), code=pl.lit(1.0))
        none = pl.lit(None, pl.Float64)
        lower = of_item.select(
            "item",
            n=pl.col("n") - pl.col("score"),
            category=pl.lit(0, pl.Int32),
            code=pl.lit(0.0),
            **dict.fromkeys(("threshold", "se", "information", "prior_mean", "prior_gradient"), none),
        )
        rows = pl.concat([lower.select(*CATEGORIES), upper.select(*CATEGORIES)]).sort("item", "category")
    else:
        priors = of_item.select("item", "prior_mean", "prior_gradient")
        rows = rows.join(priors, on="item", how="left", maintain_order="left").with_columns(
            pl.when(pl.col("category") > 0).then(name).alias(name) for name in ("prior_mean", "prior_gradient")
        )
    out["categories"] = rows.select(*CATEGORIES)
    words = pl.col("status").replace("apart", "unlinked")
    out["items"] = items.rename({"group": "link_group"}).drop("level", "pull").with_columns(words)
    if "persons" in tables:
        out["persons"] = tables["persons"].rename({"user": "person"})
    return out


# ------------------------------------------------------------------------------------------ what must be there


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


RECORD: dict[str, Any] = {
    "estimator": _text,
    "package_version": _text,
    "settings": lambda x: isinstance(x, dict) and all(map(_plain, x.values())),
    "scale": {"mean": _number(), "unit": _number(0, above=True)},
    "prior": {"precision": _number(0)},
    "population": ({"mean": _number(), "sd": _number(0, above=True), "persons": _count}, None),
    "salt_check": _text,
    "counts": {"items": _count, "persons": _count, "responses": _count},
    "data": [{"digest": _text, "source": _text, "persons": _count, "items": _count, "responses": _count, "how": _text}],
    "findings": [
        {
            "code": _text,
            "severity": lambda x: x in ("note", "warning", "error"),
            "sentence": _text,
            "remedy": _text,
            "items": lambda x: isinstance(x, list) and all(map(_plain, x)),
        }
    ],
}
ITEMS = {"item": "String", "label": "String", "difficulty": "Float64", "se": "Float64", "status": "String"}
ITEMS |= {"n": "Int64", "score": "Int64", "information": "Float64", "anchored": "Boolean", "link_group": "Int64"}
CATEGORIES = {"item": "Int32", "category": "Int32", "code": "Float64", "n": "Int64", "threshold": "Float64"}
CATEGORIES |= {"se": "Float64", "information": "Float64", "prior_mean": "Float64", "prior_gradient": "Float64"}
TABLES = {
    "items": ITEMS,
    "categories": CATEGORIES,
    "persons": {"person": "UInt64", "answers": "UInt64"},
    "information": {"row": "Int32", "column": "Int32", "value": "Float64"},
}


def check_record(record: Mapping[str, Any], needed: set[str]) -> None:
    """The manifest: every entry there, of its kind, finite and within its bounds."""
    for name, wanted in RECORD.items():
        _check(record.get(name), wanted, name)
    tables = record.get("tables")
    if not isinstance(tables, dict) or not needed <= set(tables) <= set(TABLES):
        raise SchemaError(f"names other tables than {', '.join(sorted(TABLES))}")
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


def check_tables(tables: Mapping[str, pl.DataFrame], counts: Mapping[str, int]) -> None:
    """The tables: the columns and kinds they should have, numbers finite and in order, of one length."""
    optional = {"difficulty", "se", "code", "threshold", "prior_mean"}
    for name, table in tables.items():
        if {column: str(kind) for column, kind in table.schema.items()} != TABLES[name]:
            raise SchemaError(f"has a table {name!r} with other columns than {', '.join(TABLES[name])}")
        rows = table.filter(table["category"] > 0) if name == "categories" else table
        empty = [column for column in TABLES[name] if column not in optional and rows[column].null_count()]
        if empty:
            raise SchemaError(f"lacks values in {listed(empty)} of its table {name!r}")
    items, m = tables["items"], len(tables["items"])
    if counts["items"] != m or counts["responses"] != int(items["n"].sum()):
        raise SchemaError("says of itself another number of items or responses than its table has")
    difficulty, se, told = (items[name].to_numpy() for name in ("difficulty", "se", "information"))
    with np.errstate(invalid="ignore"):
        _all("difficulty", items, np.isnan(difficulty) | (np.abs(difficulty) < FARTHEST))
        _all("se", items, np.isnan(se) | (se >= 0))
        _all("information", items, np.isfinite(told) & (told >= 0))
    highest = items["n"].to_numpy() * _check_categories(tables["categories"], items)
    _all("score", items, (items["score"].to_numpy() >= 0) & (items["score"].to_numpy() <= highest))
    _all("status", items, items["status"].str.len_chars().is_between(1, LONGEST_STATUS).to_numpy())
    _all("link_group", items, ((items["link_group"] >= 0) & (items["link_group"] <= m)).to_numpy())
    if items["label"].n_unique() != m:
        raise SchemaError("has the same item more than once")
    if "information" in tables:
        _check_information(tables["information"], len(tables["categories"]) - m)


def _check_information(entries: pl.DataFrame, size: int) -> None:
    """A matrix that answers can have: positive semidefinite, but for a thousandth of its diagonal, as it may be an
    approximation."""
    row, column = entries["row"].to_numpy(), entries["column"].to_numpy()
    if not (np.all((column >= 0) & (column <= row) & (row < size)) and entries["value"].is_finite().all()):
        raise SchemaError("has an information matrix with impossible entries")
    good = size <= MATRIX_SIZE
    if good:
        matrix = _matrix(entries, size)
        own = np.diag(matrix).copy()
        good = not ((own < 0).any() or matrix[own == 0].any())
    if good:
        scale = np.sqrt(np.where(own > 0, own, 1.0))
        try:
            np.linalg.cholesky(matrix / scale / scale[:, None] + 1e-3 * np.eye(size))
        except np.linalg.LinAlgError:
            good = False
    if not good:
        raise SchemaError("has an information matrix that no answers can have: it is negative, or too large")


def _check_categories(rows: pl.DataFrame, items: pl.DataFrame) -> Any:
    """The categories of every item from 0 up, item after item; the highest of each."""
    item, category, m = rows["item"].to_numpy(), rows["category"].to_numpy(), len(items)
    counts = np.bincount(item[(item >= 0) & (item < m)], minlength=m)
    if len(item) != counts.sum() or (counts < 2).any() or not np.array_equal(item, np.repeat(np.arange(m), counts)):
        raise SchemaError("has categories of items that it does not have, or items with fewer than two")
    if not np.array_equal(category, np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)):
        raise SchemaError("has categories that are not numbered from 0 without gaps")
    upper = rows.filter(category > 0)
    named = upper.with_columns(item=items["item"].gather(upper["item"]))
    values = {name: upper[name].to_numpy() for name in ("threshold", "se", "information", "prior_mean")}
    with np.errstate(invalid="ignore"):
        for name in ("threshold", "prior_mean"):
            _all(name, named, np.isnan(values[name]) | (np.abs(values[name]) < FARTHEST))
        _all("se", named, np.isnan(values["se"]) | (values["se"] >= 0))
        _all("information", named, np.isfinite(values["information"]) & (values["information"] >= 0))
        _all("prior_gradient", named, upper["prior_gradient"].is_finite().to_numpy())
        mean = np.bincount(upper["item"], weights=values["threshold"], minlength=m) / np.maximum(counts - 1, 1)
        off = np.abs(items["difficulty"].to_numpy() - mean)
        _all("difficulty", items, np.isnan(off) & np.isnan(mean) | (off < CLOSE))
    if (rows["n"] < 0).any() or rows["n"].null_count():
        raise SchemaError("has impossible numbers of answers in its table 'categories'")
    if not np.array_equal(np.bincount(item, weights=rows["n"].to_numpy(), minlength=m), items["n"].to_numpy()):
        raise SchemaError("has other numbers of answers in its table 'categories' than in 'items'")
    return counts - 1


def _all(column: str, rows: pl.DataFrame, good: Any) -> None:
    if not good.all():
        bad = rows.filter(~np.asarray(good))
        raise SchemaError(f"has an impossible {column} for {listed(bad['item'].to_list())} ({bad[column][0]})")
