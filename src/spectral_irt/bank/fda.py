"""Items and scores as tables for a dossier on an outcome measure, from a folder of results.

The FDA asks sponsors whose outcome is scored by item response theory for a dataset of the items with their parameters
and one of the scores. Its names of columns could not be checked against the guidance; these are plain words, so that
they can be renamed in one step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from spectral_irt.bank.results_folder import is_results, results_in
from spectral_irt.errors import OptionError
from spectral_irt.tables import Columns, cell_text
from spectral_irt.text import within

ITEMS = "fda_items.csv"
SCORES = "fda_scores.csv"
RULES = {
    "wle": "weighted likelihood (Warm) of the items answered; missing responses are left out, nothing is imputed",
    "ml": "maximum likelihood of the items answered; missing responses are left out, nothing is imputed",
    "eap": "posterior mean given the items answered; missing responses are left out, nothing is imputed",
    "pv": "posterior mean given the items answered; missing responses are left out, nothing is imputed",
}


def fda_tables(folder: Path) -> dict[str, Columns]:
    """The tables by the names of their files: `item, text, category, threshold, se, model, program, version, digest`, a
    row for each threshold; and `person, n, score, measure, se, extreme, missing_data_rule, digest`."""
    if not is_results(folder):
        raise OptionError(f"{str(folder)!r} is not the results of a fit, and only these have scores; fit with -o.")
    calibration, tables, record = results_in(folder)
    if "persons" not in tables:
        raise OptionError(f"{str(folder)!r} has no persons.csv; fit with -o, and without --skip persons.")
    of_items = pl.read_csv(folder / "items.csv", infer_schema=False)
    texts: dict[str, Any] = {}
    if "text" in of_items.columns:
        texts = {cell_text(item): cell_text(text or "") for item, text in of_items.select("item", "text").iter_rows()}
    layout = calibration.layout
    labels = calibration.labels[layout.item]
    category = 1 + np.arange(layout.n_entries) - layout.first[layout.item]
    file = folder / "thresholds.csv"
    if file.is_file() and not layout.binary:
        in_file = pl.read_csv(file, infer_schema=False)
        if "category" in in_file.columns:
            category = in_file["category"].to_numpy()
    head = {
        "model": record.get("model"),
        "program": record.get("program"),
        "version": within(record, "versions", "spectral_irt"),
        "digest": record.get("data_digest"),
    }
    items: Columns = {
        "item": labels,
        "text": np.array([texts.get(label, "") for label in labels.tolist()], dtype=object),
        "category": category,
        "threshold": calibration.thresholds,
        "se": calibration.threshold_se,
        **{name: _column_of(value, len(labels)) for name, value in head.items()},
    }
    persons = tables["persons"]
    n = len(persons["person"])
    rule = RULES.get(str(within(record, "persons", "ability")), "")
    scale = calibration.scale
    scores: Columns = {name: persons[name] for name in ("person", "n", "score")}
    scores |= {"measure": scale.measure(persons["ability"]), "se": scale.width(persons["se"])}
    scores |= {"extreme": persons["extreme"], "missing_data_rule": _column_of(rule, n)}
    return {ITEMS: items, SCORES: scores | {"digest": _column_of(head["digest"], n)}}


def _column_of(value: Any, n: int) -> Any:
    return np.full(n, "" if value is None else str(value), dtype=object)
