"""Known thresholds for a calibration of ordered answers: of a bank, or of a table like thresholds.csv."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank
from spectral_irt.bank.components import on_scale
from spectral_irt.bank.covariance import errors_of
from spectral_irt.bank.ordered_bank import OrderedBank
from spectral_irt.data.block import Floats
from spectral_irt.data.labels import label_array
from spectral_irt.data.responses import Responses
from spectral_irt.errors import OptionError, ReadError, listed
from spectral_irt.estimators.anchored import Anchors
from spectral_irt.inference.joint_errors import known_errors
from spectral_irt.persons.align import Coded, in_categories_of
from spectral_irt.tables import unguarded

NEEDED = ("item", "category", "threshold")


@dataclass(frozen=True, eq=False)
class StepAnchors(Coded):
    """Items with their thresholds, by label, and what is known of the errors of these."""

    known: Anchors


def read_step_anchors(place: str | Path) -> StepAnchors:
    """The anchors in this place: a bank (a folder), or a CSV file with the columns item, category and threshold."""
    path = Path(place).expanduser()
    if path.is_dir() or not path.exists():
        return _of_bank(Bank.load(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise ReadError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReadError(f"{str(path)!r} is not a CSV file in UTF-8: {error}.") from error
    if not rows or not set(NEEDED) <= set(rows[0]):
        has = f"it has {listed(rows[0])}" if rows else "it is empty"
        raise ReadError(f"{str(path)!r} needs a heading with the columns {', '.join(NEEDED)}; {has}.")
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for number, row in enumerate(rows, start=2):
        if not (row["threshold"] or "").strip():
            continue  # without an estimate it anchors nothing
        try:
            category, value = int(row["category"]), (float(row["threshold"]), float(row.get("se") or "nan"))
        except ValueError:
            raise ReadError(
                f"{str(path)!r}, line {number}: item {row['item']!r} has category {row['category']!r} and threshold "
                f"{row['threshold']!r}, which are not both numbers."
            ) from None
        found.setdefault(unguarded(row["item"] or ""), {})[category] = value
    odd = [label for label, each in found.items() if sorted(each) != list(range(1, len(each) + 1))]
    if odd:
        raise OptionError(f"{str(path)!r}: the categories of {listed(odd)} are not 1, 2, ... without gaps.")
    pairs = np.array([each[k] for each in found.values() for k in sorted(each)]).reshape(-1, 2)
    errors = known_errors(pairs[:, 0], pairs[:, 1], None)[0].full() if np.nansum(pairs[:, 1]) > 0 else None
    return _made({label: [each[k][0] for k in sorted(each)] for label, each in found.items()}, None, errors)


def anchored_to(responses: Responses, place: str | Path) -> tuple[Responses, Anchors]:
    """The responses in the categories of the anchors in this place, and these."""
    anchors = read_step_anchors(place)
    return in_categories_of(anchors, responses), anchors.known


def _of_bank(bank: Bank) -> StepAnchors:
    good = bank.known & on_scale(bank.status)
    errors = errors_of(bank)[0]
    if not isinstance(bank, OrderedBank):
        pairs = zip(bank.items[good].tolist(), bank.difficulty[good].tolist(), strict=True)
        return _made({label: [value] for label, value in pairs}, None, errors.take(good).full())
    steps, own = bank.steps, {}
    for k in np.flatnonzero(good):
        own[bank.items[k]] = bank.thresholds[steps.first[k] : steps.first[k] + steps.max_score[k]].tolist()
    return _made(own, bank.codes[good], errors.take(good[steps.item]).full())


def _made(thresholds: dict[Any, list[float]], codes: Any, errors: Floats | None) -> StepAnchors:
    counts = np.array([len(each) for each in thresholds.values()], dtype=np.int64)
    if not len(counts):
        raise OptionError("the anchors have no item with thresholds of its own on the scale.")
    if codes is None:
        number = np.arange(int(counts.max()) + 1, dtype=float)
        codes = np.where(number <= counts[:, None], number, np.nan)
    known = Anchors.of(thresholds, errors if errors is not None and errors.any() else None)
    return StepAnchors(label_array(list(thresholds)), counts, codes, known)
