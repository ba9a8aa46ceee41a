"""What the files of a bank hold: the bank as a record for `bank.json` and as tables, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, DataSet, Population
from spectral_irt.bank.components import groups_of_old, parts_before
from spectral_irt.bank.ordered_bank import OrderedBank
from spectral_irt.bank.recognition import NO_RECOGNITION, in_no_order, nobody, trace
from spectral_irt.calibration import Scale
from spectral_irt.conditional.newton import centered_within
from spectral_irt.data import Finding
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import Labels, label_array
from spectral_irt.errors import BankError

if TYPE_CHECKING:
    import polars as pl

OLD_FINGERPRINTS = Finding(
    "old_fingerprints",
    "warning",
    "This bank was written by an earlier version, with fingerprints from which names and answers can be found out.",
    "They are gone when it is saved again; treat older copies of it like the answers themselves.",
)

# ------------------------------------------------------------------------------------------ labels


def encoded(labels: Labels) -> list[str]:
    """Each label as JSON text: numbers stay numbers, and any text comes back to the letter."""
    plain = labels.tolist()
    strange = [label for label in plain if not isinstance(label, str | int | float | None)]
    if strange:
        raise BankError(
            f"the label {strange[0]!r} is a {type(strange[0]).__name__}; a bank keeps labels that are text or numbers. "
            "Name the items by text."
        )
    return [json.dumps(label) for label in plain]


def decoded(texts: list[str]) -> Labels:
    return label_array([json.loads(text) for text in texts])


def readable(labels: Labels) -> list[str]:
    """Each label as text that every reader can show."""
    return [str(label).encode("utf-8", "replace").decode("utf-8") for label in labels.tolist()]


# ---------------------------------------------------------------------------------------- to be written


def record_of(bank: Bank) -> dict[str, Any]:
    """All of the bank that is not in tables, in JSON's own types."""
    record = {
        "package_version": bank.version,
        "estimator": bank.estimator,
        "settings": dict(bank.settings),
        "scale": asdict(bank.scale),
        "prior": {"precision": bank.prior_precision},
        "population": None if bank.population is None else asdict(bank.population),
        "salt_check": bank.salt_check,
        "counts": {"items": bank.n_items, "users": bank.n_persons, "responses": int(bank.n.sum())},
        "data": [asdict(data) for data in bank.data],
        "findings": [finding.to_dict() for finding in bank.findings],
    }
    return _plain(record)


def _plain(value: Any) -> Any:
    """A value in JSON's own types: numbers of numpy as Python's, what JSON cannot say as text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def tables_of(bank: Bank) -> dict[str, pl.DataFrame]:
    import polars as pl

    columns = {
        "item": pl.Series(readable(bank.items), dtype=pl.String),
        "label": pl.Series(encoded(bank.items), dtype=pl.String),
        "difficulty": pl.Series(bank.difficulty, nan_to_null=True, dtype=pl.Float64),
        "se": pl.Series(bank.se, nan_to_null=True, dtype=pl.Float64),
        "status": pl.Series([str(word) for word in bank.status], dtype=pl.String),
        "n": pl.Series(bank.n, dtype=pl.Int64),
        "score": pl.Series(bank.n_right, dtype=pl.Int64),
        "information": pl.Series(bank.information, dtype=pl.Float64),
        "anchored": pl.Series(bank.anchored, dtype=pl.Boolean),
        "group": pl.Series(bank.group, dtype=pl.Int64),
        "level": pl.Series(bank.level, nan_to_null=True, dtype=pl.Float64),
        "pull": pl.Series(bank.pull, dtype=pl.Float64),
    }
    tables = {"items": pl.DataFrame(columns)}
    if bank.salt_check:
        users = np.ascontiguousarray(in_no_order(bank.users))
        tables["users"] = pl.DataFrame({"user": pl.Series(users[:, 0]), "answers": pl.Series(users[:, 1])})
    if bank.matrix is not None:
        tables["information"] = _entries(bank.matrix)
    if isinstance(bank, OrderedBank):
        tables["categories"] = _categories(bank)
        if bank.step_matrix is not None:
            tables["step_information"] = _entries(bank.step_matrix)
    return tables


def _entries(matrix: Floats) -> pl.DataFrame:
    """The lower half of a symmetric matrix, without zeros."""
    import polars as pl

    row, column = np.nonzero(np.tril(matrix))
    return pl.DataFrame({"row": row.astype(np.int32), "column": column.astype(np.int32), "value": matrix[row, column]})


def _categories(bank: OrderedBank) -> pl.DataFrame:
    """A row for every category of every item, with the threshold below it; the lowest one has none."""
    import polars as pl

    there = np.arange(bank.codes.shape[1]) <= bank.steps.max_score[:, None]
    item, category = np.nonzero(there)
    above = category > 0
    step = np.where(above, bank.steps.first[item] + category - 1, 0)

    def of_steps(values: Floats) -> pl.Series:
        return pl.Series(np.where(above, values[step], np.nan), nan_to_null=True, dtype=pl.Float64)

    return pl.DataFrame(
        {
            "item": pl.Series(item, dtype=pl.Int32),
            "category": pl.Series(category, dtype=pl.Int32),
            "code": pl.Series(bank.codes[item, category], nan_to_null=True, dtype=pl.Float64),
            "n": pl.Series(np.nan_to_num(bank.category_n[item, category]), dtype=pl.Int64, strict=False),
            "threshold": of_steps(bank.thresholds),
            "se": of_steps(bank.threshold_se),
            "information": of_steps(bank.step_information),
        }
    )


# ------------------------------------------------------------------------------------------- as it was read


def bank_of(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], origin: tuple[str, str]) -> Bank:
    items, version = tables["items"], record["format_version"]
    old = version == 1
    status = np.empty(len(items), dtype=object)
    status[:] = items["status"].to_list()
    matrix = _matrix(tables.get("information"), len(items))
    data = tuple(DataSet(**data) for data in record["data"])
    findings = tuple(Finding(**{**one, "items": tuple(one["items"])}) for one in record["findings"])
    users = nobody()
    if old:  # what it has about single people is left where it is
        data = tuple(replace(one, digest=trace(one.digest, one.users)) for one in data)
        named = ("known_persons", "repeated_persons")
        findings = (*(one for one in findings if one.code not in named), NO_RECOGNITION, OLD_FINGERPRINTS)
    elif "users" in tables:
        users = np.stack([tables["users"]["user"].to_numpy(), tables["users"]["answers"].to_numpy()], axis=1)
    difficulty = items["difficulty"].to_numpy().astype(float)
    anchored = items["anchored"].to_numpy()
    if version > 2:
        level, pull = items["level"].to_numpy().astype(float), items["pull"].to_numpy()
    else:
        level, pull = _around_one_mean(record["prior"], difficulty, anchored, matrix)
    more: dict[str, Any] = {}
    if "categories" in tables:
        more = _of_categories(tables["categories"], tables.get("step_information"), len(items))
    return (OrderedBank if more else Bank)(
        **more,
        items=decoded(items["label"].to_list()),
        difficulty=difficulty,
        se=items["se"].to_numpy().astype(float),
        status=status,
        n=items["n"].to_numpy(),
        n_right=items["score"].to_numpy(),
        information=items["information"].to_numpy(),
        anchored=anchored,
        group=groups_of_old(status, matrix) if old else items["group"].to_numpy(),
        estimator=record["estimator"],
        settings=record["settings"],
        scale=Scale(**record["scale"]),
        data=data,
        findings=findings,
        level=level,
        pull=pull,
        prior_precision=float(record["prior"]["precision"]),
        population=Population(**record["population"]) if record.get("population") else None,
        matrix=matrix,
        users=users,
        salt_check=record.get("salt_check", ""),
        version=record["package_version"],
        origin=origin,
    )


def _of_categories(rows: pl.DataFrame, entries: pl.DataFrame | None, m: int) -> dict[str, Any]:
    """The fields of a bank of ordered answers; the rows have been checked."""
    item, category = rows["item"].to_numpy(), rows["category"].to_numpy()
    counts = np.bincount(item, minlength=m) - 1
    above = category > 0
    codes, number = (np.full((m, int(counts.max()) + 1), np.nan) for _ in range(2))
    codes[item, category], number[item, category] = rows["code"].to_numpy(), rows["n"].to_numpy()
    return {
        "n_thresholds": counts.astype(np.int64),
        "codes": codes,
        "category_n": number,
        "thresholds": rows["threshold"].to_numpy()[above].astype(float),
        "threshold_se": rows["se"].to_numpy()[above].astype(float),
        "step_information": rows["information"].to_numpy()[above].astype(float),
        "step_matrix": _matrix(entries, int(counts.sum())),
    }


def _around_one_mean(
    prior: Mapping[str, float], difficulty: Floats, anchored: NDArray[np.bool_], matrix: Floats | None
) -> tuple[Floats, Floats]:
    """Level and pull of the items of an older bank, whose prior was normal around one mean for all.

    Where it tied parts that share no people, the tie goes: within such a part the pulls are made to add to zero.
    """
    known = np.isfinite(difficulty)
    mean = prior["mean"] if prior["precision"] or not known.any() else float(difficulty[known].mean())
    pull = np.where(known & ~anchored, prior["precision"] * (np.nan_to_num(difficulty) - mean), 0.0)
    if matrix is not None:
        parts = parts_before(matrix, np.zeros(len(known), dtype=np.int64), known, ~known)
        pull = centered_within(pull, np.where(np.isin(parts, parts[anchored]), -1, parts))
    return np.full(len(known), mean), pull


def _matrix(entries: pl.DataFrame | None, m: int) -> Floats | None:
    if entries is None:
        return None
    full = np.zeros((m, m))
    row, column, value = (entries[name].to_numpy() for name in ("row", "column", "value"))
    full[row, column] = value
    full[column, row] = value
    return full
