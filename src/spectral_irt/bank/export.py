"""Tables for other programs: Winsteps' files (IFILE=, PFILE=, SFILE=), and item banks for programs of adaptive tests.

Column names, order, widths and status codes are those of the Winsteps manual (winsteps.com/winman/ifile.htm,
pfile.htm and sfile.htm), so that scripts which read Winsteps' files read these. All functions take plain columns,
arrays by name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.bank import Bank, calibration_of
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data.block import Ints
from spectral_irt.data.labels import positions, readable
from spectral_irt.errors import BankError, OptionError, check_option, listed
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.tables import guarded

Columns = Mapping[str, NDArray[Any]]
STYLES = ("csv", "tab", "fixed")
WINSTEPS_STYLES = {".csv": "csv", ".tsv": "tab", ".tab": "tab", ".txt": "fixed"}

# Name, width and decimals of each column in a file of fixed columns. The expected correlation (PTME-E) and what stands
# after it are in the files of Winsteps 3.70 and later.
LAYOUT: dict[str, tuple[int, int]] = {
    "ENTRY": (5, 0),
    "MEASURE": (8, 2),
    "STATUS": (3, 0),
    "COUNT": (8, 1),
    "SCORE": (9, 1),
    "ERROR": (7, 2),
    "IN.MSQ": (7, 2),
    "IN.ZSTD": (7, 2),
    "OUT.MSQ": (7, 2),
    "OUT.ZSTD": (7, 2),
    "DISPLACE": (7, 2),
    "PTME": (7, 2),
    "WEIGHT": (7, 2),
    "OBSMATCH": (6, 1),
    "EXPMATCH": (6, 1),
    "PTME-E": (6, 2),
    "RMSR": (6, 2),
    "WMLE": (8, 2),
}
CODES = {"G": "0", "M": "R", "R": "."}  # of items: group, model (R: all items alike), recoding (none)
FIT_COLUMNS = {
    "IN.MSQ": "infit",
    "IN.ZSTD": "infit_z",
    "OUT.MSQ": "outfit",
    "OUT.ZSTD": "outfit_z",
    "PTME": "point_measure",
    "OBSMATCH": "exact_match",
    "EXPMATCH": "exact_match_expected",
    "PTME-E": "point_measure_expected",
    "RMSR": "rmsr",
}

ANCHORED, ESTIMATED, HIGHEST, LOWEST, NOTHING = 2, 1, 0, -1, -2
ITEM_STATUS = {
    "anchored": ANCHORED,
    "all wrong": HIGHEST,  # the hardest: an extreme minimum of the item's score
    "all right": LOWEST,
    "no responses": NOTHING,
    "no information": NOTHING,
}


def ifile(
    items: Bank | Calibration | RaschEstimator | Columns, fit: Any = None, *, scale: Scale | None = None
) -> dict[str, NDArray[Any]]:
    """The items as the columns of Winsteps' IFILE=.

    Parameters
    ----------
    items : Bank, Calibration, fitted estimator, or columns
        Columns are those of `fit.items()`: item, difficulty, se, n, score, status, in logits.
    fit : columns or table, optional
        What `study.item_fit()` gives: infit, outfit and so on. What is not known is left empty.
    scale : Scale, optional
        How to report; a bank's own by default, logits otherwise.
    """
    if isinstance(items, Mapping):
        return _file(items, fit, scale or Scale())
    made = calibration_of(items)
    return _file(made.item_columns(), fit, scale or made.scale, anchored=made.anchored)


def pfile(persons: Any, fit: Any = None, *, scale: Scale | None = None, wle: bool = True) -> dict[str, NDArray[Any]]:
    """The persons as the columns of Winsteps' PFILE=.

    Parameters
    ----------
    persons : columns or table
        What `study.persons()` gives: person, n, score, ability, se, and fit statistics if it has them.
    fit : columns or table, optional
        Further fit statistics.
    scale : Scale, optional
        How to report; logits by default. A bank's is `bank.scale`.
    wle : bool
        Whether the abilities are Warm's estimates, which Winsteps repeats in the column WMLE.
    """
    own = columns_of(persons)
    n, score = own["n"], own["score"]
    top = own["extreme"] & (score > 0) if "extreme" in own else score == n
    status = np.select([n == 0, top, score == 0], [NOTHING, HIGHEST, LOWEST], ESTIMATED)
    renamed = {**own, "item": own["person"], "difficulty": own["ability"], "status": status}
    return _file(renamed, fit, scale or Scale(), person=True, wle=wle)


def _file(
    own: Columns, fit: Any, scale: Scale, *, anchored: Any = None, person: bool = False, wle: bool = False
) -> dict[str, NDArray[Any]]:
    m = len(own["item"])
    more = _in_order(columns_of(fit), own["item"], "person" if person else "item") if fit is not None else {}
    every: Columns = {**more, **own}
    measure = np.where(np.isfinite(own["difficulty"]), scale.measure(own["difficulty"]), np.nan)
    if person:
        status = np.asarray(own["status"])
    else:
        status = np.array([ITEM_STATUS.get(str(word), ESTIMATED) for word in own["status"]], dtype=np.int64)
        if anchored is not None:
            status = np.where(anchored, ANCHORED, status)
    displacement = every.get("displacement", np.full(m, np.nan))
    if np.any(status == ANCHORED) and "displacement" in more:  # of anchored items; that of the data comes second
        displacement = np.where(np.isnan(displacement), more["displacement"], displacement)
    out: dict[str, NDArray[Any]] = {
        "ENTRY": np.arange(1, m + 1),
        "MEASURE": measure,
        "STATUS": status,
        "COUNT": np.asarray(own["n"], dtype=float),
        "SCORE": np.asarray(own["score"], dtype=float),
        "ERROR": scale.width(own["se"]),
    }
    for name in LAYOUT:
        if name in out:
            continue
        if name == "DISPLACE":
            out[name] = scale.width(displacement)
        elif name == "WEIGHT":
            out[name] = np.ones(m)
        elif name == "WMLE":
            out[name] = measure if wle else np.full(m, np.nan)
        else:
            out[name] = np.asarray(every.get(FIT_COLUMNS[name], np.full(m, np.nan)), dtype=float)
    if not person:
        out |= {name: np.full(m, code, dtype=object) for name, code in CODES.items()}
    out["NAME"] = np.array(readable(np.asarray(own["item"])), dtype=object)
    return out


def sfile_text(calibration: Calibration, style: str = "fixed", *, scale: Scale | None = None) -> str:
    """Thresholds as Winsteps' SFILE=, for anchoring as SAFILE= with ISGROUPS=0.

    A line for each category of each item: the item's number, the category as it stands in the data, and the threshold
    below it less the item's measure in IFILE=; 0 for the lowest category, which has none.
    """
    check_option("style", style, STYLES)
    scale, layout = scale or calibration.scale, calibration.layout
    away = calibration.thresholds - calibration.difficulty[layout.item]
    rows: list[tuple[int, str, float]] = []
    for k, (first, count) in enumerate(zip(layout.first.tolist(), layout.max_score.tolist(), strict=True)):
        if not calibration.known[k]:
            continue
        values = [0.0, *scale.width(away[first : first + count]).tolist()]
        rows += [(k + 1, f"{calibration.codes[k, c]:g}", value) for c, value in enumerate(values)]
    if style == "fixed":
        head = ["; STRUCTURE-THRESHOLD MEASURE ANCHOR FILE", "; ACT CATEGORY  Rasch-Andrich threshold MEASURE"]
        return "\n".join([*head, *(f"{item:>6}{code:>3}{value:>9.2f}" for item, code, value in rows)]) + "\n"
    separator = "," if style == "csv" else "\t"
    names = ("ITEM", "CATEGORY", "MEASURE")
    lines = [separator.join(f'"{name}"' if style == "csv" else name for name in names)]
    lines += [separator.join((str(item), code, f"{value:.4f}")) for item, code, value in rows]
    return "\n".join(lines) + "\n"


def columns_of(table: Any) -> Columns:
    """A table as arrays by name: a mapping as it is, any dataframe by way of narwhals."""
    if isinstance(table, Mapping):
        return {name: np.asarray(values) for name, values in table.items()}
    import narwhals.stable.v1 as nw

    frame = nw.from_native(table, eager_only=True)
    return {name: frame[name].to_numpy() for name in frame.columns}


def _in_order(table: Columns, labels: NDArray[Any], key: str) -> Columns:
    """The rows of a table in the order of these labels, where it says which row is whose."""
    if key not in table:
        if any(len(values) != len(labels) for values in table.values()):
            raise OptionError(
                f"the fit statistics have no column {key!r}, and not one row for each {key}; say which row is whose."
            )
        return table
    place = positions(labels, table[key])
    missing = labels[place < 0]
    if len(missing):
        raise OptionError(f"the fit statistics lack {len(missing):,} of the {key}s: {listed(missing)}.")
    return {name: values[place] for name, values in table.items()}


# ------------------------------------------------------------------------------------------------ as text


def winsteps_text(columns: Columns, style: str = "csv", *, title: str = "", decimals: int | None = None) -> str:
    """The columns as text.

    Parameters
    ----------
    style : "csv", "tab" or "fixed"
        Commas with the names in quotation marks (Winsteps' CSV=Y), tabs (CSV=T), or fixed columns (CSV=N), where a
        line starts with ";" if the item or person has no proper measure.
    title : str, optional
        A first line, after ";"; in fixed columns there is always one.
    decimals : int, optional
        Of measures and their errors. Default: 2 in fixed columns, as Winsteps has it, and 4 otherwise.
    """
    check_option("style", style, STYLES)
    digits = (2 if style == "fixed" else 4) if decimals is None else decimals
    cells = {name: _cells(name, values, digits, style) for name, values in columns.items()}
    title = re.sub(r"\s+", " ", title)
    if style == "fixed":
        return _fixed(columns, cells, title)
    separator = "," if style == "csv" else "\t"
    quoted = [f'"{name}"' if style == "csv" else name for name in cells]
    lines = [f";{title}"] if title else []
    lines.append(separator.join(quoted))
    lines += [separator.join(row) for row in zip(*cells.values(), strict=True)]
    return "\n".join(lines) + "\n"


def _cells(name: str, values: NDArray[Any], digits: int, style: str) -> list[str]:
    if name in LAYOUT:
        decimals = LAYOUT[name][1]
        places = digits if decimals == 2 and name != "WEIGHT" else decimals
        return ["" if not math.isfinite(x) else f"{x:.{places}f}" for x in np.asarray(values, dtype=float).tolist()]
    texts = [re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", str(value)) for value in values.tolist()]
    if style != "fixed":
        texts = [guarded(text) for text in texts]
    if style == "csv":
        texts = ['"' + text.replace('"', '""') + '"' for text in texts]
    return texts


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


# -------------------------------------------------------------------------------------------- adaptive tests

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
    quoted = ['"' + guarded(name).replace('"', '""') + '"' for name in names]
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
