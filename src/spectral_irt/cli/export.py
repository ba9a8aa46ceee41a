"""`spectral-irt export`: a calibration for other programs."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from spectral_irt.analysis.folder import PROGRAM, RECORD
from spectral_irt.bank import Bank
from spectral_irt.bank.export import PROGRAMS, WINSTEPS_STYLES, adaptive_text, ifile, pfile, sfile_text, winsteps_text
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.cli.help import argument
from spectral_irt.cli.options import output_at, own
from spectral_irt.cli.terminal import Mode, say_written
from spectral_irt.data.block import Thresholds
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.tables import unguarded

LABELS = {"item": pl.String, "person": pl.String, "status": pl.String}


def export(
    mode: Mode,
    source: Path = argument("DIR", "A bank, or what 'fit -o DIR' wrote."),
    to: Literal["ifile", "sfile", "pfile", "catsim", "jscat", "mirtcat", "adaptivetesting"] = own(
        "FORMAT", "ifile, sfile, pfile, catsim, adaptivetesting, jscat or mirtcat.", required=True
    ),
    output: Path = output_at("FILE", "Where to write it.", required=True),
) -> None:
    """Write a calibration as a file for another program: Winsteps, catsim, jsCAT, mirtCAT or adaptivetesting.

    DIR is a bank, or the results of a fit; of people (pfile) and of the fit of items (in ifile) only the results know.

    \b
    Formats
      ifile, sfile, pfile      items, thresholds, people for Winsteps, .csv or .txt
      catsim, adaptivetesting  items as CSV
      jscat                    items as JSON, for jsCAT
      mirtcat                  items as CSV, for mirtCAT

    \b
    Examples
      spectral-irt export results --to ifile -o items.txt
      spectral-irt export mybank --to catsim -o items.csv
    """
    style = WINSTEPS_STYLES.get(output.suffix.lower(), "")
    if to not in PROGRAMS and not style:
        raise OptionError(
            f"{str(output)!r} ends in none of {', '.join(WINSTEPS_STYLES)}; they mean commas, tabs (.tsv, .tab) or "
            "fixed columns (.txt)."
        )
    calibration, about = _calibration_in(source, to)
    if to in PROGRAMS:
        text = adaptive_text(calibration, to)
    elif to == "sfile":
        text = sfile_text(calibration, style)
    else:
        fit = about.get("fit")
        people = pfile(about["persons"], scale=calibration.scale, wle=about["wle"]) if to == "pfile" else None
        columns = ifile(calibration, fit, scale=calibration.scale) if people is None else people
        text = winsteps_text(columns, style, title=f"spectral-irt, {source}" if style == "fixed" else "")
    read = [path for path in source.iterdir() if path.is_file()]  # exports may well stand in folders below
    with all_or_nothing([output], inputs=read) as (draft,), naming(output):
        draft.write_text(text, encoding="utf-8", newline="")
    mode.end(lambda: say_written([output]), lambda: {"format": to, "outputs": [str(output)]})


def _calibration_in(folder: Path, to: str) -> tuple[Calibration, dict[str, Any]]:
    """The calibration in a folder, and what else of it an export needs."""
    if not (folder / RECORD).is_file():
        if to == "pfile":
            raise OptionError(f"{str(folder)!r} is not the results of a fit, and only these have people; fit with -o.")
        return Bank.load(folder).calibration, {}
    if to == "sfile":
        raise OptionError(
            f"{str(folder)!r} does not say what categories are called in the data; keep a bank (fit --bank DIR), and "
            "export that."
        )
    record, tables = _read_results(folder)
    if to == "pfile" and "persons" not in tables:
        raise OptionError(f"{str(folder)!r} has no persons.csv; fit with -o, and without --skip persons.")
    ability = (record.get("persons") or {}).get("ability")
    about = {"fit": tables.get("item_fit", tables["items"]), "persons": tables.get("persons"), "wle": ability == "wle"}
    return _of_tables(record, tables), about


def _read_results(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The record and the tables that a fit wrote to a folder."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if record["program"] != PROGRAM:
            raise ValueError(f"not by {PROGRAM}")
        tables = {}
        for name in ("items", "thresholds", "item_fit", "persons"):
            if f"{name}.csv" in record["outputs"]:
                frame = pl.read_csv(folder / f"{name}.csv", infer_schema_length=None, schema_overrides=LABELS)
                tables[name] = {column.name: column.to_numpy() for column in frame}
                for label in LABELS.keys() & tables[name].keys():
                    texts = [unguarded(text or "") for text in tables[name][label]]
                    tables[name][label] = np.array(texts, dtype=object)
        if "items" not in tables:
            raise ValueError("without items.csv")
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise ReadError(f"{str(folder)!r} does not hold the results of a fit as it wrote them ({error}).") from None
    return record, tables


def _of_tables(record: Any, tables: Any) -> Calibration:
    """The calibration that results tell of."""
    items, steps = tables["items"], tables.get("thresholds")
    said = record.get("scale") or {}
    known = {one.name for one in fields(Scale)}
    more: dict[str, Any] = {"thresholds": items["difficulty"], "threshold_se": items["se"]}
    if steps is not None:
        layout = Thresholds(np.asarray(items["max_score"], dtype=np.int64))
        more = {"thresholds": steps["threshold"], "threshold_se": steps["se"]}
        more |= {"layout": layout, "location_se": items["se"]}
    return Calibration(
        labels=items["item"],
        status=items["status"],
        n=items["n"],
        score=items["n_correct" if steps is None else "score"],
        item_information=np.zeros(len(items["item"])),
        scale=Scale(**{name: value for name, value in said.items() if name in known}),
        further={"anchored": items["status"] == "anchored"},
        **more,
    )
