"""An analysis of ordered answers as text: items with their thresholds, people, fit, how it was done, what is odd."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
from spectral_irt.analysis.parts import Parts
from spectral_irt.analysis.summary import SAID, how, part_lines, people_tables
from spectral_irt.errors import printable
from spectral_irt.terminal import plain_table, say, show_findings, show_lines, show_source

MOST_ITEMS = 60  # shown on a terminal; of more, the hardest and the easiest
ENDS = 10
MODELS = {"PartialCredit": "Partial credit model", "RatingScale": "Rating scale model"}
METHODS = {"Spectral": "spectral", "Conditional": "CML", "Marginal": "MML"}


def show_ordered(out: Console, study: OrderedAnalysis, parts: Parts, *, times: str = "") -> None:
    """The items, a line for each part of the analysis, how it was done, and the findings."""
    calibration = study.calibration
    show_source(out, study.responses)
    say(out, _items(study, out.width, fit=parts.fit))
    if calibration.n_items > MOST_ITEMS:
        say(out, Text(f"The {ENDS} hardest and the {ENDS} easiest of {calibration.n_items:,} items.", style="dim"))
    say(out)
    lines = part_lines(study, parts)
    if lines:
        show_lines(out, lines)
        say(out)
    for table in people_tables(study, parts, out.width):
        say(out, table)
        say(out)
    say(out, Text(printable(" ".join([_how(study), *([times] if times else [])]))))
    shown = [finding for finding in study.findings(parts) if finding.code not in SAID]
    if shown:
        say(out)
        show_findings(out, shown)


def _items(study: OrderedAnalysis, width: int, *, fit: bool) -> Table:
    calibration, steps = study.calibration, study.calibration.layout
    difficulty = calibration.difficulty
    order = np.argsort(np.where(np.isfinite(difficulty), -difficulty, np.inf), kind="stable")
    if len(order) > MOST_ITEMS:
        known = order[np.isfinite(difficulty[order])]
        order = np.concatenate([known[:ENDS], known[-ENDS:]])
    columns = calibration.item_columns()
    heads = ["item", "difficulty", "se", "n", "mean", "thresholds"]
    texts = [
        [str(calibration.labels[i]) for i in order],
        [_number(difficulty[i]) for i in order],
        [_number(calibration.se[i]) for i in order],
        [f"{calibration.n[i]:,}" for i in order],
        [_number(columns["mean_score"][i]) for i in order],
        [
            " ".join(_number(beta, 1) for beta in calibration.thresholds[steps.first[i] :][: steps.max_score[i]])
            for i in order
        ],
    ]
    if fit:
        heads.insert(5, "infit")
        infit = study.conditional_statistics().mean_squares.infit
        texts.insert(5, [_number(infit[i]) for i in order])
    if np.any(calibration.status != "ok"):
        heads.append("")
        texts.append([" " if calibration.status[i] == "ok" else str(calibration.status[i]) for i in order])
    return plain_table(heads, texts, width)


def _number(value: float, digits: int = 2) -> str:
    return f"{value:z.{digits}f}" if np.isfinite(value) else "-"


def _how(study: OrderedAnalysis) -> str:
    name = study.calibration.provenance.estimator
    model = next((text for end, text in MODELS.items() if name.endswith(end)), name)
    method = next((text for start, text in METHODS.items() if name.startswith(start)), "")
    return how(study.calibration, f"{model}, {method}")
