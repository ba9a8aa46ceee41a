"""Every number of a bank, checked when it is opened: whoever wrote its files, nothing that is computed from them may
fail, or be wrong without a word, because of a number that no bank can have.

Checksums have shown that the files are as they were written; not that what was written makes sense. Each rule is given
a part of the bank and yields what is wrong with it, in words that follow "the bank holds".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, get_args

import numpy as np
import polars as pl

from spectral_irt.data.block import Floats, Thresholds
from spectral_irt.data.packed_file import MOST_THRESHOLDS
from spectral_irt.errors import Severity

LARGEST = 500.0  # logits: exp of more is no number any more
MOST_GROUPS = 1_000_000  # numbers of groups: tables are made for all of them
TINY = 1e-12  # information: nothing, but for a matrix that is to be inverted
ROUNDING = 1e-6  # of the mean of the diagonal: an information matrix has no eigenvalue below zero by more

Wrong = Iterator[str]


class SenselessBank(ValueError):
    """What is wrong, in words that follow "holds"."""


def check_bank(record: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], layout: Thresholds) -> None:
    """An error where a number is none that a bank can have; tables have the right columns, thresholds this layout."""
    items, categories = tables["items"], tables["categories"]
    rules = [
        *(rule(record) for rule in (_scale, _prior, _population, _loads, _findings, _settings)),
        *(rule(items) for rule in (_labels, _counts, _groups, _errors)),
        *(rule(categories.filter(categories["category"] > 0)) for rule in (_errors, _thresholds)),
        _categories(categories, layout),
    ]
    if "information" in tables:
        rules.append(_matrix(tables["information"], layout))
    for wrong in chain.from_iterable(rules):
        raise SenselessBank(wrong)


def _is_number(value: Any, *, least: float = -np.inf, above: float = -np.inf) -> bool:
    """A finite number, at least `least` and larger than `above`; True and False are none."""
    is_finite = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return is_finite and value >= least and value > above


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _scale(record: Mapping[str, Any]) -> Wrong:
    scale = record["scale"]
    if not _is_number(scale["mean"]):
        yield f"a scale with the mean {scale['mean']!r}"
    if not _is_number(scale["unit"], above=0):
        yield f"a scale whose logit is worth {scale['unit']!r}; that is a number above zero"


def _prior(record: Mapping[str, Any]) -> Wrong:
    for name in ("precision", "offsets"):
        value = record["prior"][name]
        if not _is_number(value, least=0):
            yield f"a prior with the precision {value!r}; that is a number from zero"
    fixed = record["prior"].get("fixed", False)
    if not isinstance(fixed, bool):
        yield f"a prior that is fixed {fixed!r}; that is true or false"


def _population(record: Mapping[str, Any]) -> Wrong:
    population = record["population"]
    if population is None:
        return
    if not _is_number(population["mean"]):
        yield f"a population with the mean {population['mean']!r}"
    if not _is_number(population["sd"], above=0):
        yield f"a population with the standard deviation {population['sd']!r}; that is a number above zero"
    if not _is_count(population["persons"]):
        yield f"a population of {population['persons']!r} people"


def _loads(record: Mapping[str, Any]) -> Wrong:
    for load in record["data"]:
        if not all(isinstance(load[name], str) for name in ("digest", "source", "how")):
            yield "a load whose name or checksum is no text"
        if not all(_is_count(load[name]) for name in ("persons", "items", "responses")):
            yield f"the load {str(load['source'])!r} with counts that are no whole numbers from zero"


def _findings(record: Mapping[str, Any]) -> Wrong:
    for finding in record["findings"]:
        texts = [finding[name] for name in ("code", "sentence", "remedy")]
        labels = finding["items"]
        if finding["severity"] not in get_args(Severity) or not all(isinstance(text, str) for text in texts):
            yield f"a finding that is none: {str(finding['code'])!r}"
        if not isinstance(labels, list) or not all(map(_is_label, labels)) or not _is_count(finding.get("number", 0)):
            yield f"the finding {finding['code']!r} about items that are none"


def _settings(record: Mapping[str, Any]) -> Wrong:
    threshold = record["settings"].get("threshold")
    if threshold is not None and not _is_number(threshold):
        yield f"the threshold {threshold!r} above which answers are right"


def _is_label(label: Any) -> bool:
    return label is None or isinstance(label, str) or (isinstance(label, int | float) and math.isfinite(label))


def _labels(items: pl.DataFrame) -> Wrong:
    texts = set()
    for text in items["label"]:
        label = json.loads(text)
        if not _is_label(label):
            yield f"the label {str(text)[:40]}; labels are text or numbers"
        again = json.dumps(label)  # as it is written: 1 and 1.0 are two labels
        if again in texts:
            yield f"two items with the label {str(text)[:40]}"
        texts.add(again)


def _counts(items: pl.DataFrame) -> Wrong:
    for name, what in (("n", "number of responses"), ("score", "sum of responses")):
        below = items.filter(items[name] < 0)
        if len(below):
            yield f"item {below['item'][0]!r} with the {what} {below[name][0]}"
    values = items["information"].to_numpy()
    if not (np.isfinite(values) & (values >= 0)).all():
        yield "information about items that is no number from zero"


def _groups(items: pl.DataFrame) -> Wrong:
    group = items["link_group"].to_numpy()
    if len(group) and not -1 <= group.min() <= group.max() < MOST_GROUPS:
        yield "groups of items with numbers that are none"


def _errors(table: pl.DataFrame) -> Wrong:
    se = table["se"].to_numpy().astype(float)
    if (se < 0).any():  # NaN is unknown, infinite is unlinked
        yield f"the standard error {se[se < 0][0]:g}"


def _thresholds(rows: pl.DataFrame) -> Wrong:
    for name, what in (("threshold", "threshold"), ("prior_mean", "mean of the prior")):
        value = rows[name].to_numpy().astype(float)
        far = np.abs(value) > LARGEST
        if far.any():
            yield f"the {what} {value[far][0]:g}; none is beyond {LARGEST:g} logits"
    information = rows["information"].to_numpy()
    if not (np.isfinite(information) & (information >= 0)).all():
        yield "information about thresholds that is no number from zero"
    if not np.isfinite(rows["prior_gradient"].to_numpy()).all():
        yield "a gradient of the prior that is no number"


def _categories(rows: pl.DataFrame, layout: Thresholds) -> Wrong:
    item, category = rows["item"].to_numpy(), rows["category"].to_numpy()
    expected = np.repeat(np.arange(layout.n_items), layout.max_score + 1)
    number = np.arange(len(expected)) - np.repeat(layout.first + np.arange(layout.n_items), layout.max_score + 1)
    if not np.array_equal(item, expected) or not np.array_equal(category, number):
        yield "categories that are not 0, 1, 2 ... of one item after the other"
        return
    if layout.n_items and layout.max_score.max() > MOST_THRESHOLDS:
        yield f"an item with more than {MOST_THRESHOLDS:,} categories"
    if (rows["n"].to_numpy() < 0).any():
        yield "fewer than no responses in a category"
    # An item that everybody answered alike has one code and no threshold; all others have a code for every category.
    code = rows["code"].to_numpy().astype(float)
    estimated = np.zeros(layout.n_items, dtype=bool)
    estimated[item[np.isfinite(rows["threshold"].to_numpy().astype(float))]] = True
    falls = (np.diff(code) <= 0) & (category[1:] > 0)
    if np.isinf(code).any() or np.isnan(code[estimated[item]]).any() or falls.any():
        yield "codes of categories that do not rise"


def _matrix(entries: pl.DataFrame, layout: Thresholds) -> Wrong:
    row, column, value = (entries[name].to_numpy() for name in ("row", "column", "value"))
    if not len(row):
        return
    if column.min() < 0 or row.max() >= layout.n_entries or (row < column).any():
        yield "information about thresholds that it does not have"
        return
    if (np.diff(row.astype(np.int64) * layout.n_entries + column) <= 0).any():
        yield "information about the same two thresholds twice"
    if not np.isfinite(value).all():
        yield "information that is no number"


def check_information(information: Floats) -> None:
    """An error where an information matrix, or a block of one, has an eigenvalue below zero."""
    blocks = information if information.ndim == 3 else information[None]
    diagonal = np.einsum("ikk->ik", blocks)
    ridge = ROUNDING * diagonal.mean(axis=1) + TINY
    try:
        if (ridge <= 0).any():
            raise np.linalg.LinAlgError
        np.linalg.cholesky(blocks + ridge[:, None, None] * np.eye(blocks.shape[1]))
    except np.linalg.LinAlgError:
        raise SenselessBank("an information matrix with an eigenvalue below zero") from None
