"""Tables for other programs: Winsteps' files (IFILE=, PFILE=, SFILE=), and item banks for programs of adaptive tests.

Column names, order, widths and status codes are those of the Winsteps manual (winsteps.com/winman/ifile.htm,
pfile.htm and sfile.htm), so that scripts which read Winsteps' files read these. Those for adaptive tests are what the
readers of these programs take.

The command `export` calls this: first the columns (`ifile`, `pfile`, `sfile_text`), then their text (`winsteps_text`);
`adaptive_text` for the others.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data.block import Ints
from spectral_irt.data.labels import readable
from spectral_irt.errors import BankError, check_option
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.tables import Columns, guard_cell
from spectral_irt.text import listed, one_or_many

STYLES = ("csv", "tab", "fixed")
WINSTEPS_STYLES = {".csv": "csv", ".tsv": "tab", ".tab": "tab", ".txt": "fixed"}


class ColumnFormat(NamedTuple):
    """Width and decimals of a column in a file of fixed columns, and what we call it where it is a statistic of fit."""

    width: int
    decimals: int
    statistic: str = ""


# The expected correlation (PTME-E) and what stands after it are in the files of Winsteps 3.70 and later.
FORMATS: dict[str, ColumnFormat] = {
    "ENTRY": ColumnFormat(5, 0),
    "MEASURE": ColumnFormat(8, 2),
    "STATUS": ColumnFormat(3, 0),
    "COUNT": ColumnFormat(8, 1, "n"),
    "SCORE": ColumnFormat(9, 1, "score"),
    "ERROR": ColumnFormat(7, 2),
    "IN.MSQ": ColumnFormat(7, 2, "infit"),
    "IN.ZSTD": ColumnFormat(7, 2, "infit_z"),
    "OUT.MSQ": ColumnFormat(7, 2, "outfit"),
    "OUT.ZSTD": ColumnFormat(7, 2, "outfit_z"),
    "DISPLACE": ColumnFormat(7, 2),
    "PTME": ColumnFormat(7, 2, "point_measure"),
    "WEIGHT": ColumnFormat(7, 2),
    "OBSMATCH": ColumnFormat(6, 1, "exact_match"),
    "EXPMATCH": ColumnFormat(6, 1, "exact_match_expected"),
    "PTME-E": ColumnFormat(6, 2, "point_measure_expected"),
    "RMSR": ColumnFormat(6, 2, "rmsr"),
    "WMLE": ColumnFormat(8, 2),
}
CODE_WIDTH = 2  # of a column of codes
CODES = {"G": "0", "M": "R", "R": "."}  # of items: group, model (R: all items alike), recoding (none)

ODD_SPACES = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")  # in a label, what would end a cell or a line

# The column STATUS.
ANCHORED = 2
ESTIMATED = 1
HIGHEST = 0
LOWEST = -1
NOTHING = -2
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
    calibration = calibration_of(items)
    columns = {**(fit or {}), **calibration.item_columns(), "score": calibration.score}
    status = np.array([ITEM_STATUS.get(str(word), ESTIMATED) for word in calibration.status], dtype=np.int64)
    status = np.where(calibration.anchored, ANCHORED, status)
    codes = {name: np.full(calibration.n_items, code, dtype=object) for name, code in CODES.items()}
    return {
        **_file(columns, columns["difficulty"], status, scale or calibration.scale),
        **codes,
        "NAME": np.array(readable(calibration.labels), dtype=object),
    }


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
    score = persons["score"]
    highest = persons["extreme"] & (score > 0)
    status = np.select([persons["n"] == 0, highest, score == 0], [NOTHING, HIGHEST, LOWEST], ESTIMATED)
    return {
        **_file(persons, persons["ability"], status, scale or Scale(), wle),
        "NAME": np.array(readable(np.asarray(persons["person"])), dtype=object),
    }


def _file(columns: Columns, logits: NDArray[Any], status: NDArray[Any], scale: Scale, wle: bool = False) -> Columns:
    """All columns of `FORMATS`, those that are not known empty."""
    nothing = np.full(len(logits), np.nan)
    measure = np.where(np.isfinite(logits), scale.measure(logits), np.nan)
    computed = {
        "ENTRY": np.arange(1, len(logits) + 1),
        "MEASURE": measure,
        "STATUS": status,
        "ERROR": scale.width(columns["se"]),
        "DISPLACE": scale.width(columns.get("displacement", nothing)),
        "WEIGHT": np.ones(len(logits)),
        "WMLE": measure if wle else nothing,
    }
    out: Columns = {}
    for name, column_format in FORMATS.items():
        values = computed.get(name)
        if values is None:
            values = columns.get(column_format.statistic, nothing)
        out[name] = np.asarray(values, dtype=float)
    return out


class StructureRow(NamedTuple):
    """A line of an SFILE=: the number of an item, a category as it is in the data, and the threshold below it."""

    item: int
    code: str
    threshold: float


def sfile_text(calibration: Calibration, style: str = "fixed", *, scale: Scale | None = None) -> str:
    """Thresholds as Winsteps' SFILE=, for anchoring as SAFILE= with ISGROUPS=0: the number of the item, the category as
    it is in the data, and the threshold below it less the item's measure in IFILE= (0 for the lowest category)."""
    check_option("style", style, STYLES)
    scale = scale or calibration.scale
    layout = calibration.layout
    offsets = scale.width(calibration.thresholds - calibration.difficulty[layout.item])
    offsets_of_items = np.split(offsets, layout.first[1:])
    rows: list[StructureRow] = []
    for item in np.flatnonzero(calibration.known).tolist():
        for category, threshold in enumerate([0.0, *offsets_of_items[item].tolist()]):
            rows.append(StructureRow(item + 1, f"{calibration.codes[item, category]:g}", threshold))
    if style == "fixed":
        lines = [
            "; STRUCTURE-THRESHOLD MEASURE ANCHOR FILE",
            "; ACT CATEGORY  Rasch-Andrich threshold MEASURE",
            *(f"{row.item:>6}{row.code:>3}{row.threshold:>9.2f}" for row in rows),
        ]
        return "\n".join(lines) + "\n"
    cells = [(str(row.item), row.code, f"{row.threshold:.4f}") for row in rows]
    return _separated_text(["ITEM", "CATEGORY", "MEASURE"], cells, style)


def winsteps_text(columns: Columns, style: str = "csv", *, title: str = "") -> str:
    """The columns as text: commas with the names in quotation marks (Winsteps' CSV=Y), tabs (CSV=T), or fixed columns
    (CSV=N) after a title, where a line starts with ";" if the item or person has no proper measure."""
    check_option("style", style, STYLES)
    cells = {name: _cells(name, values, style) for name, values in columns.items()}
    if style == "fixed":
        return _fixed_columns(columns, cells, re.sub(r"\s+", " ", title))
    return _separated_text(list(cells), list(zip(*cells.values(), strict=True)), style)


def _separated_text(names: list[str], rows: Sequence[Sequence[str]], style: str) -> str:
    separator = "\t"
    heads = names
    if style == "csv":
        separator = ","
        heads = [f'"{name}"' for name in names]
    return "\n".join(separator.join(row) for row in [heads, *rows]) + "\n"


def _cells(name: str, values: NDArray[Any], style: str) -> list[str]:
    """The cells of a column, as text."""
    if name in FORMATS:
        decimals = _decimals(name, style)
        return [f"{x:.{decimals}f}" if math.isfinite(x) else "" for x in values.tolist()]
    texts = [ODD_SPACES.sub(" ", str(value)) for value in values.tolist()]
    if style == "fixed":
        return texts
    texts = [guard_cell(text) for text in texts]
    if style == "csv":
        return [_in_quotes(text) for text in texts]
    return texts


def _decimals(name: str, style: str) -> int:
    """Numbers with two decimals in fixed columns, as Winsteps has them, and four otherwise."""
    decimals = FORMATS[name].decimals
    if decimals == 2 and name != "WEIGHT" and style != "fixed":
        return 4
    return decimals


def _in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _fixed_columns(columns: Columns, cells: Mapping[str, list[str]], title: str) -> str:
    """Fixed columns; one that is too narrow for what it holds is made wider, so that no two run together."""
    widths = {name: _width(name, texts) for name, texts in cells.items()}

    def line(begin: str, row: Mapping[str, str]) -> str:
        fields = [row[name].rjust(width) if width else f" {row[name]}" for name, width in widths.items()]
        return begin + "".join(fields)

    heads = {name: _cut(name, width) for name, width in widths.items()}
    heads["STATUS"] = "ST"
    lines = [f"; {title}".rstrip(), line(";", heads)]
    for status, row in zip(columns["STATUS"], zip(*cells.values(), strict=True), strict=True):
        begin = " " if status in (ESTIMATED, ANCHORED) else ";"
        lines.append(line(begin, dict(zip(cells, row, strict=True))))
    return "\n".join(lines) + "\n"


def _width(name: str, texts: Sequence[str]) -> int:
    """Of a fixed column: that of Winsteps, or of the longest cell and a space. 0 for the name, which ends the line."""
    if name == "NAME":
        return 0
    width = FORMATS[name].width if name in FORMATS else CODE_WIDTH
    return max(width, 1 + max(map(len, texts), default=0))


def _cut(head: str, width: int) -> str:
    """The head of a column, cut to what is seen of it; of the narrow columns of codes, and of the name, as it is."""
    if width <= CODE_WIDTH:
        return head
    return head[: max(width - 1, 5)]


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
    calibration = calibration_of(items)
    exported = np.flatnonzero(calibration.known)
    names = readable(calibration.labels[exported])
    if program == "mirtcat" and not calibration.layout.binary:
        return _partial_credit_for_mirt(calibration, exported, names)
    several = calibration.labels[calibration.layout.max_score > 1]
    if len(several):
        verb = one_or_many(len(several), "has", "have")
        raise BankError(f"{program} knows right and wrong answers only; {listed(several)} {verb} several thresholds.")
    difficulty = calibration.difficulty[exported].tolist()
    if program == "jscat":
        return _for_jscat(names, difficulty)
    heads = {"catsim": "item,a,b,c,d", "adaptivetesting": "ids,a,b,c,d", "mirtcat": "item,a1,d,g,u"}
    sign = -1 if program == "mirtcat" else 1
    lines = [f"{_csv_name(name)},1.0,{sign * b!r},0.0,1.0" for name, b in zip(names, difficulty, strict=True)]
    return "\n".join([heads[program], *lines]) + "\n"


def _csv_name(name: str) -> str:
    return _in_quotes(guard_cell(name))


def _for_jscat(names: Sequence[str], difficulty: Sequence[float]) -> str:
    stimuli = [
        {"id": name, "difficulty": b, "discrimination": 1, "guessing": 0, "slipping": 1}
        for name, b in zip(names, difficulty, strict=True)
    ]
    return json.dumps(stimuli, ensure_ascii=False, indent=1) + "\n"


def _partial_credit_for_mirt(calibration: Calibration, items: Ints, names: Sequence[str]) -> str:
    """Slopes ak (0, 1, 2, ...) and intercepts d (minus the sums of thresholds) for each category; NA beyond the highest
    one of an item."""
    layout = calibration.layout
    categories = range(layout.widest + 1)
    sums = layout.cumulated(calibration.thresholds)[items]
    heads = ["item", "itemtype", "a1", *(f"ak{k}" for k in categories), *(f"d{k}" for k in categories)]
    lines = [",".join(heads)]
    for name, sums_of_item, max_score in zip(names, sums, layout.max_score[items].tolist(), strict=True):
        slopes = [str(k) if k <= max_score else "NA" for k in categories]
        intercepts = [repr(float(0.0 - sums_of_item[k])) if k <= max_score else "NA" for k in categories]
        lines.append(",".join([_csv_name(name), "gpcm", "1.0", *slopes, *intercepts]))
    return "\n".join(lines) + "\n"
