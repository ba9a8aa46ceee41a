"""Tables for other programs: Winsteps' files (IFILE=, PFILE=, SFILE=), and item banks for programs of adaptive tests.

Column names, order, widths and status codes are those of the Winsteps manual (winsteps.com/winman/ifile.htm,
pfile.htm and sfile.htm), so that scripts which read Winsteps' files read these.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data.block import Ints
from spectral_irt.data.labels import readable
from spectral_irt.errors import BankError, check_option
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.tables import Columns, guarded
from spectral_irt.text import listed

STYLES = ("csv", "tab", "fixed")
WINSTEPS_STYLES = {".csv": "csv", ".tsv": "tab", ".tab": "tab", ".txt": "fixed"}

# Width and decimals of each column in a file of fixed columns, and what we call it where it is a statistic of fit. The
# expected correlation (PTME-E) and what stands after it are in the files of Winsteps 3.70 and later.
LAYOUT: dict[str, tuple[int, int, str]] = {
    "ENTRY": (5, 0, ""),
    "MEASURE": (8, 2, ""),
    "STATUS": (3, 0, ""),
    "COUNT": (8, 1, "n"),
    "SCORE": (9, 1, "score"),
    "ERROR": (7, 2, ""),
    "IN.MSQ": (7, 2, "infit"),
    "IN.ZSTD": (7, 2, "infit_z"),
    "OUT.MSQ": (7, 2, "outfit"),
    "OUT.ZSTD": (7, 2, "outfit_z"),
    "DISPLACE": (7, 2, ""),
    "PTME": (7, 2, "point_measure"),
    "WEIGHT": (7, 2, ""),
    "OBSMATCH": (6, 1, "exact_match"),
    "EXPMATCH": (6, 1, "exact_match_expected"),
    "PTME-E": (6, 2, "point_measure_expected"),
    "RMSR": (6, 2, "rmsr"),
    "WMLE": (8, 2, ""),
}
CODES = {"G": "0", "M": "R", "R": "."}  # of items: group, model (R: all items alike), recoding (none)

ANCHORED, ESTIMATED, HIGHEST, LOWEST, NOTHING = 2, 1, 0, -1, -2
ITEM_STATUS = {
    "anchored": ANCHORED,
    "all wrong": HIGHEST,  # the hardest: an extreme minimum of the item's score
    "all right": LOWEST,
    "no responses": NOTHING,
    "no information": NOTHING,
}


def ifile(
    items: Bank | Calibration | RaschEstimator, fit: Columns | None = None, *, scale: Scale | None = None
) -> Columns:
    """The items as the columns of Winsteps' IFILE=.

    Parameters
    ----------
    fit : columns, optional
        Of `study.item_fit()`, item by item: infit, outfit and so on. What is not known is left empty.
    scale : Scale, optional
        How to report; that of the calibration by default.
    """
    made = calibration_of(items)
    own, more = {**made.item_columns(), "score": made.score}, fit or {}
    status = np.array([ITEM_STATUS.get(str(word), ESTIMATED) for word in made.status], dtype=np.int64)
    status = np.where(made.anchored, ANCHORED, status)
    out = _file({**more, **own}, own["difficulty"], status, scale or made.scale)
    out |= {name: np.full(made.n_items, code, dtype=object) for name, code in CODES.items()}
    return {**out, "NAME": np.array(readable(made.labels), dtype=object)}


def pfile(persons: Columns, *, scale: Scale | None = None, wle: bool = True) -> Columns:
    """The persons as the columns of Winsteps' PFILE=.

    Parameters
    ----------
    persons : columns
        Of `study.persons()`: person, n, score, ability, se, extreme, and fit statistics if it has them.
    scale : Scale, optional
        How to report; logits by default. A bank's is `bank.scale`.
    wle : bool
        Whether the abilities are Warm's estimates, which Winsteps repeats in the column WMLE.
    """
    n, score, top = persons["n"], persons["score"], persons["extreme"] & (persons["score"] > 0)
    status = np.select([n == 0, top, score == 0], [NOTHING, HIGHEST, LOWEST], ESTIMATED)
    out = _file(persons, persons["ability"], status, scale or Scale(), wle)
    return {**out, "NAME": np.array(readable(np.asarray(persons["person"])), dtype=object)}


def _file(columns: Columns, logits: NDArray[Any], status: NDArray[Any], scale: Scale, wle: bool = False) -> Columns:
    nothing = np.full(len(logits), np.nan)
    measure = np.where(np.isfinite(logits), scale.measure(logits), np.nan)
    own = {
        "ENTRY": np.arange(1, len(logits) + 1),
        "MEASURE": measure,
        "STATUS": status,
        "ERROR": scale.width(columns["se"]),
        "DISPLACE": scale.width(columns.get("displacement", nothing)),
        "WEIGHT": np.ones(len(logits)),
        "WMLE": measure if wle else nothing,
    }
    return {
        name: np.asarray(own[name] if name in own else columns.get(ours, nothing), dtype=float)
        for name, (_, _, ours) in LAYOUT.items()
    }


def sfile_text(calibration: Calibration, style: str = "fixed", *, scale: Scale | None = None) -> str:
    """Thresholds as Winsteps' SFILE=, for anchoring as SAFILE= with ISGROUPS=0: the number of the item, the category as
    it is in the data, and the threshold below it less the item's measure in IFILE= (0 for the lowest category)."""
    check_option("style", style, STYLES)
    scale, layout = scale or calibration.scale, calibration.layout
    away = calibration.thresholds - calibration.difficulty[layout.item]
    rows: list[tuple[int, str, float]] = []
    for k, (first, count) in enumerate(zip(layout.first.tolist(), layout.max_score.tolist(), strict=True)):
        if calibration.known[k]:
            values = [0.0, *scale.width(away[first : first + count]).tolist()]
            rows += [(k + 1, f"{calibration.codes[k, c]:g}", value) for c, value in enumerate(values)]
    if style == "fixed":
        head = ["; STRUCTURE-THRESHOLD MEASURE ANCHOR FILE", "; ACT CATEGORY  Rasch-Andrich threshold MEASURE"]
        return "\n".join([*head, *(f"{item:>6}{code:>3}{value:>9.2f}" for item, code, value in rows)]) + "\n"
    cells = [(str(item), code, f"{value:.4f}") for item, code, value in rows]
    return _separated(["ITEM", "CATEGORY", "MEASURE"], cells, style)


def winsteps_text(columns: Columns, style: str = "csv", *, title: str = "") -> str:
    """The columns as text: commas with the names in quotation marks (Winsteps' CSV=Y), tabs (CSV=T), or fixed columns
    (CSV=N) after a title, where a line starts with ";" if the item or person has no proper measure."""
    check_option("style", style, STYLES)
    cells = {name: _cells(name, values, style) for name, values in columns.items()}
    if style == "fixed":
        return _fixed(columns, cells, re.sub(r"\s+", " ", title))
    return _separated(list(cells), list(zip(*cells.values(), strict=True)), style)


def _separated(names: list[str], rows: Sequence[Sequence[str]], style: str) -> str:
    separator = "," if style == "csv" else "\t"
    heads = [f'"{name}"' if style == "csv" else name for name in names]
    return "\n".join(separator.join(row) for row in [heads, *rows]) + "\n"


def _cells(name: str, values: NDArray[Any], style: str) -> list[str]:
    """Numbers with two decimals in fixed columns, as Winsteps has them, and four otherwise."""
    if name in LAYOUT:
        decimals = LAYOUT[name][1]
        places = 4 if decimals == 2 and name != "WEIGHT" and style != "fixed" else decimals
        return ["" if not math.isfinite(x) else f"{x:.{places}f}" for x in values.tolist()]
    texts = [re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", str(value)) for value in values.tolist()]
    if style != "fixed":
        texts = [guarded(text) for text in texts]
    return [_quoted(text) for text in texts] if style == "csv" else texts


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _fixed(columns: Columns, cells: Mapping[str, list[str]], title: str) -> str:
    """Fixed columns; one that is too narrow for what it holds is made wider, so that no two run together."""
    widths = {}
    for name, texts in cells.items():
        asked = LAYOUT[name][0] if name in LAYOUT else 2
        widths[name] = max(asked, 1 + max(map(len, texts), default=0)) if name != "NAME" else 0

    def line(first: str, row: Mapping[str, str]) -> str:
        fields = [row[name].rjust(width) if width else f" {row[name]}" for name, width in widths.items()]
        return first + "".join(fields)

    heads = {name: name[: max(width - 1, 5)] if width > 2 else name for name, width in widths.items()}
    heads["STATUS"] = "ST"

    lines = [f"; {title}".rstrip(), line(";", heads)]
    for k, row in enumerate(zip(*cells.values(), strict=True)):
        proper = columns["STATUS"][k] in (ESTIMATED, ANCHORED)
        lines.append(line(" " if proper else ";", dict(zip(cells, row, strict=True))))
    return "\n".join(lines) + "\n"


PROGRAMS = ("catsim", "adaptivetesting", "jscat", "mirtcat")


def adaptive_text(items: Bank | Calibration | RaschEstimator, program: str) -> str:
    """The items as a program for adaptive tests reads them.

    "catsim": CSV item, a, b, c, d. "adaptivetesting": CSV ids, a, b, c, d (`ItemPool.load_from_dataframe`). "jscat": a
    JSON list of stimuli with difficulty, discrimination, guessing and slipping. "mirtcat": CSV item, a1, d, g, u, where
    d = -difficulty; with several thresholds the generalized partial credit model of mirt, item, itemtype, a1, ak0, ...,
    d0, ..., where d_k is minus the sum of the first k thresholds (`generate.mirt_object`, without the first column).
    Items without a difficulty are left out. The first three know right and wrong answers only.
    """
    check_option("program", program, PROGRAMS)
    made = calibration_of(items)
    chosen = np.flatnonzero(made.known)
    names = readable(made.labels[chosen])
    quoted = [_quoted(guarded(name)) for name in names]
    if not made.layout.binary and program == "mirtcat":
        return _for_mirt(made, chosen, quoted)
    several = made.labels[made.layout.max_score > 1]
    if len(several):
        verb = "has" if len(several) == 1 else "have"
        raise BankError(f"{program} knows right and wrong answers only; {listed(several)} {verb} several thresholds.")
    beta = made.difficulty[chosen].tolist()
    if program == "jscat":
        rows = [
            {"id": name, "difficulty": b, "discrimination": 1, "guessing": 0, "slipping": 1}
            for name, b in zip(names, beta, strict=True)
        ]
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
    heads = {"catsim": "item,a,b,c,d", "adaptivetesting": "ids,a,b,c,d", "mirtcat": "item,a1,d,g,u"}
    sign = -1 if program == "mirtcat" else 1
    lines = [f"{name},1.0,{sign * b!r},0.0,1.0" for name, b in zip(quoted, beta, strict=True)]
    return "\n".join([heads[program], *lines]) + "\n"


def _for_mirt(made: Calibration, chosen: Ints, quoted: list[str]) -> str:
    width = made.layout.widest + 1
    sums = made.layout.cumulated(made.thresholds)[chosen]
    lines = [",".join(["item", "itemtype", "a1", *(f"ak{k}" for k in range(width)), *(f"d{k}" for k in range(width))])]
    for name, row, highest in zip(quoted, sums, made.layout.max_score[chosen].tolist(), strict=True):
        there = range(width)
        ak = [str(k) if k <= highest else "NA" for k in there]
        d = [repr(float(0.0 - row[k])) if k <= highest else "NA" for k in there]
        lines.append(",".join([name, "gpcm", "1.0", *ak, *d]))
    return "\n".join(lines) + "\n"
