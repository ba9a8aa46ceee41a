"""What the files of a bank hold: a record for `bank.json` and tables.

`items` has a row for every item, `categories` one for every category of every item (with the threshold below it, which
the lowest has not), `information` the entries of the information matrix of all thresholds, or of its blocks,
`persons` keyed hashes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl

from spectral_irt.bank.bank import Bank, DataSet, Population
from spectral_irt.bank.evidence import Evidence
from spectral_irt.bank.recognition import KnownPeople, in_no_order
from spectral_irt.calibration import Calibration, Provenance, Scale
from spectral_irt.conditional.information import block_diagonal
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import Labels, label_array, readable
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import BankError, listed
from spectral_irt.tables import plain

T = TypeVar("T")

VERSION = 5
OLDEST = 4  # had `users`, `level`, `pull` and "apart", and no categories for right and wrong answers


class SchemaError(ValueError):
    """What is wrong, in words that follow the name of the bank."""


# -------------------------------------------------------------------------------------- what must be there


TABLES: dict[str, dict[str, Any]] = {
    "items": {
        **dict.fromkeys(("item", "label", "status"), pl.String),
        **dict.fromkeys(("difficulty", "se", "information"), pl.Float64),
        **dict.fromkeys(("n", "score", "link_group"), pl.Int64),
        "anchored": pl.Boolean,
    },
    "categories": {
        **dict.fromkeys(("item", "category"), pl.Int32),
        "n": pl.Int64,
        **dict.fromkeys(("code", "threshold", "se", "information", "prior_mean", "prior_gradient"), pl.Float64),
    },
    "persons": {"person": pl.UInt64, "answers": pl.UInt64},
    "information": {"row": pl.Int32, "column": pl.Int32, "value": pl.Float64},
}
KINDS: dict[str, Any] = {"str": str, "int": int, "float": int | float}  # of what the record holds
MAY_BE_EMPTY = ("difficulty", "se", "code", "threshold", "prior_mean")
OF_THRESHOLDS = ("threshold", "se", "information", "prior_mean", "prior_gradient")  # empty in the lowest category


# ---------------------------------------------------------------------------------------- to be written


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


def record_of(bank: Bank) -> dict[str, Any]:
    """All of the bank that is not in tables, in JSON's own types."""
    source, kept = bank.calibration.provenance, bank.evidence
    record = {
        "package_version": source.version,
        "estimator": source.estimator,
        "settings": dict(source.settings),
        "scale": asdict(bank.scale),
        "prior": {"precision": kept.prior_precision, "offsets": kept.offset_precision},
        "population": None if bank.population is None else asdict(bank.population),
        "salt_check": bank.people.salt_check,
        "counts": {"items": bank.n_items, "persons": bank.n_persons, "responses": int(bank.n.sum())},
        "data": [asdict(data) for data in bank.data],
        "findings": [finding.to_dict() for finding in bank.findings],
    }
    return plain(record)


def tables_of(bank: Bank) -> dict[str, pl.DataFrame]:
    made, kept, layout = bank.calibration, bank.evidence, bank.calibration.layout
    item = np.repeat(np.arange(made.n_items), layout.max_score + 1)
    category = np.arange(len(item)) - (layout.first + np.arange(made.n_items))[item]
    values = (made.thresholds, made.threshold_se, kept.information, kept.prior_mean, kept.prior_gradient)
    of_thresholds = {name: np.full(len(item), np.nan) for name in OF_THRESHOLDS}
    for column, each in zip(of_thresholds.values(), values, strict=True):
        column[category > 0] = each
    tables: dict[str, dict[str, Any]] = {
        "items": {
            "item": readable(made.labels),
            "label": encoded(made.labels),
            "difficulty": made.difficulty,
            "se": made.se,
            "status": [str(word) for word in made.status],
            "n": made.n,
            "score": made.score,
            "information": made.item_information,
            "anchored": made.anchored,
            "link_group": kept.link_group,
        },
        "categories": {
            "item": item,
            "category": category,
            "code": made.codes[item, category],
            "n": np.nan_to_num(made.category_n[item, category]).astype(np.int64),
            **of_thresholds,
        },
    }
    if bank.people.salt_check:
        hashes = in_no_order(bank.people.hashes)
        tables["persons"] = {"person": hashes[:, 0].copy(), "answers": hashes[:, 1].copy()}
    matrix = kept.matrix if kept.blocks is None else block_diagonal(layout, kept.blocks)
    if matrix is not None:  # its lower half, without zeros
        row, column = matrix.nonzero()
        lower = row >= column
        row, column = row[lower], column[lower]
        tables["information"] = {"row": row, "column": column, "value": np.asarray(matrix[row, column])}
    return {name: _frame(TABLES[name], columns) for name, columns in tables.items()}


def _frame(kinds: Mapping[str, Any], columns: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame({name: pl.Series(columns[name], dtype=kind, nan_to_null=True) for name, kind in kinds.items()})


# ------------------------------------------------------------------------------------------- as it was read


def _check(tables: Mapping[str, pl.DataFrame]) -> None:
    """Columns, their kinds, empty cells. That nothing was changed since it was written the checksums have shown."""
    for name, table in tables.items():
        if dict(sorted(table.schema.items())) != dict(sorted(TABLES[name].items())):
            raise SchemaError(f"has a table {name!r} with other columns than {', '.join(TABLES[name])}")
        rows = table.filter(table["category"] > 0) if name == "categories" else table
        empty = [column for column in TABLES[name] if column not in MAY_BE_EMPTY and rows[column].null_count()]
        if empty:
            raise SchemaError(f"lacks values in {listed(empty)} of its table {name!r}")


def _made(cls: type[T], given: Mapping[str, Any]) -> T:
    """What was written as a mapping, if all is of the kinds that its fields have."""
    for field in fields(cast(Any, cls)):
        if not isinstance(given[field.name], KINDS.get(str(field.type), object)):
            raise SchemaError(f"has {repr(given[field.name])[:40]} as {field.name!r}, which cannot be")
    return cls(**given)


def _information(entries: pl.DataFrame, layout: Thresholds) -> tuple[Floats | None, Floats | None]:
    """The information matrix; or the items' blocks of it, where there is nothing between items."""
    row, column, value = (entries[name].to_numpy() for name in ("row", "column", "value"))
    if not layout.binary and (layout.item[row] == layout.item[column]).all():
        blocks = np.zeros((layout.n_items, layout.widest, layout.widest))
        item, one, other = layout.item[row], layout.level[row] - 1, layout.level[column] - 1
        blocks[item, one, other] = blocks[item, other, one] = value
        return None, blocks
    matrix = np.zeros((layout.n_entries, layout.n_entries))
    matrix[row, column] = matrix[column, row] = value
    return matrix, None


def bank_of(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], origin: tuple[str, str]) -> Bank:
    """The bank of a record and tables."""
    _check(tables)
    people = record["population"]
    number_of = np.bincount(tables["categories"]["item"].to_numpy())
    layout = Thresholds.ones(len(number_of)) if (number_of == 2).all() else Thresholds(number_of.astype(np.int64) - 1)
    matrix, blocks = _information(tables["information"], layout) if "information" in tables else (None, None)
    items = {name: tables["items"][name].to_numpy() for name in TABLES["items"]}
    rows = {name: tables["categories"][name].to_numpy() for name in TABLES["categories"]}
    codes, number = (np.full((layout.n_items, layout.widest + 1), np.nan) for _ in range(2))
    codes[rows["item"], rows["category"]], number[rows["item"], rows["category"]] = rows["code"], rows["n"]
    per_threshold = {name: rows[name][rows["category"] > 0].astype(float) for name in OF_THRESHOLDS}
    status = np.array(tables["items"]["status"].to_list(), dtype=object)
    persons = tables.get("persons")
    hashes = {} if persons is None else {"hashes": np.ascontiguousarray(persons.to_numpy())}
    anchored, se = items["anchored"], items["se"].astype(float)
    return Bank(
        calibration=Calibration(
            labels=decoded(tables["items"]["label"].to_list()),
            thresholds=per_threshold["threshold"],
            threshold_se=per_threshold["se"],
            layout=layout,
            location_se=None if layout.binary else se,
            category_n=number,
            codes=codes,
            status=status,
            n=items["n"],
            score=items["score"],
            item_information=items["information"],
            scale=_made(Scale, record["scale"]),
            findings=tuple(_made(Finding, {**one, "items": tuple(one["items"])}) for one in record["findings"]),
            provenance=Provenance(record["estimator"], record["settings"], version=record["package_version"]),
            further={"anchored": anchored} if anchored.any() else {},
        ),
        evidence=Evidence(
            per_threshold["information"],
            per_threshold["prior_mean"],
            per_threshold["prior_gradient"],
            items["link_group"],
            float(record["prior"]["precision"]),
            float(record["prior"]["offsets"]),
            matrix,
            blocks,
        ),
        data=tuple(_made(DataSet, data) for data in record["data"]),
        population=None if people is None else _made(Population, people),
        people=KnownPeople(**hashes, salt_check=record["salt_check"]),
        origin=origin,
    )


# -------------------------------------------------------------------------------------- the format before


def record_from_4(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a bank of format 4 under today's names; whatever is not as it should be is left for the check."""

    def renamed(old: Any) -> Any:
        return {"persons" if name == "users" else name: value for name, value in old.items()}

    names = {"users": "persons", "step_information": "information"}
    return {
        **record,
        "prior": {"offsets": 0.0, **record["prior"]},
        "counts": renamed(record["counts"]),
        "population": renamed(record["population"]) if record["population"] else None,
        "data": [renamed(one) for one in record["data"]],
        "tables": {names.get(name, name): entry for name, entry in record["tables"].items()},
    }


def tables_from_4(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of a bank of format 4 as today's."""
    items, rows, out = tables["items"], tables.get("categories"), dict(tables)
    if rows is None:  # answers were right or wrong
        none, wrong = pl.lit(None, pl.Float64), pl.col("n") - pl.col("score")
        lists = {"category": pl.lit([0, 1]), "code": pl.lit([0.0, 1.0]), "n": pl.concat_list(wrong, "score")}
        of_thresholds = {"threshold": "difficulty", "se": "se", "information": "information"}
        lists |= {name: pl.concat_list(none, of_item) for name, of_item in of_thresholds.items()}
        rows = items.select(item=pl.int_range(pl.len()), **lists).explode(*lists)
    priors = {"prior_mean": "level", "prior_gradient": "pull"}
    place = rows["item"]
    rows = rows.with_columns(
        pl.when(pl.col("category") > 0).then(items[old].gather(place)).alias(new) for new, old in priors.items()
    )
    out["categories"] = rows.select(pl.col(name).cast(kind) for name, kind in TABLES["categories"].items())
    words = pl.col("status").replace("apart", "unlinked")
    out["items"] = items.rename({"group": "link_group"}).drop("level", "pull").with_columns(words)
    if "persons" in tables:
        out["persons"] = tables["persons"].rename({"user": "person"})
    return out
