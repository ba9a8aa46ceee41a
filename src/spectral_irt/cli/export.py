"""`spectral-irt export`: a calibration for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from spectral_irt.cli.help import argument
from spectral_irt.cli.options import output_at, own
from spectral_irt.cli.terminal import Mode, say_written
from spectral_irt.errors import OptionError
from spectral_irt.files import all_or_nothing, errors_with_target


def export(
    mode: Mode,
    source: Path = argument("DIR", "A bank, or what 'fit -o DIR' wrote."),
    to: Literal["ifile", "sfile", "pfile", "catsim", "jscat", "mirtcat", "adaptivetesting", "fda"] = own(
        "FORMAT", "ifile, sfile, pfile, catsim, adaptivetesting, jscat, mirtcat or fda.", required=True
    ),
    output: Path = output_at("FILE|DIR", "Where to write it.", required=True),
) -> None:
    """Write a calibration as a file for another program: Winsteps, catsim, jsCAT, mirtCAT or adaptivetesting.

    DIR is a bank or a results folder. A bank holds no persons and no item fit; use a results folder for pfile, and for
    fit columns in ifile.

    \b
    Formats
      ifile, sfile, pfile      items, thresholds, persons for Winsteps, .csv or .txt
      catsim, adaptivetesting  items as CSV
      jscat                    items as JSON, for jsCAT
      mirtcat                  items as CSV, for mirtCAT
      fda                      items and scores with model and missing-data rule,
                               as two CSV files in a folder, for a dossier

    \b
    Examples
      spectral-irt export results --to ifile -o items.txt
      spectral-irt export mybank --to catsim -o items.csv
    """
    from spectral_irt.bank.export import (
        PROGRAMS,
        WINSTEPS_STYLES,
        adaptive_text,
        ifile,
        pfile,
        sfile_text,
        winsteps_text,
    )
    from spectral_irt.bank.results_folder import calibration_in

    if to == "fda":
        _export_tables(mode, source, output)
        return
    style = WINSTEPS_STYLES.get(output.suffix.lower(), "")
    if to not in PROGRAMS and not style:
        raise OptionError(
            f"{str(output)!r} ends in none of {', '.join(WINSTEPS_STYLES)}; they mean commas, tabs (.tsv, .tab) or "
            "fixed columns (.txt)."
        )
    calibration, about = calibration_in(source, to)
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
    with all_or_nothing([output], inputs=read) as (draft,), errors_with_target(output):
        draft.write_text(text, encoding="utf-8", newline="")
    mode.end(lambda: say_written([output]), lambda: {"format": to, "outputs": [str(output)]})


def _export_tables(mode: Mode, source: Path, output: Path) -> None:
    """Items and scores as two files in a folder."""
    from spectral_irt.bank.fda import fda_tables
    from spectral_irt.tables import write_csv

    if output.suffix or output.is_file():
        raise OptionError(f"--to fda writes two files to a folder, and {str(output)!r} names a file; name a folder.")
    tables = fda_tables(source)
    places = {output / name: columns for name, columns in tables.items()}
    read = [path for path in source.iterdir() if path.is_file()]
    with all_or_nothing(list(places), inputs=read) as drafts:
        for draft, (place, columns) in zip(drafts, places.items(), strict=True):
            with errors_with_target(place):
                write_csv(draft, columns)
    mode.end(lambda: say_written(list(places)), lambda: {"format": "fda", "outputs": list(map(str, places))})
