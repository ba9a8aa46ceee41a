"""A folder of results as a workbook. Run in a process of its own: `python -m spectral_irt.app.workbook DIR FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from spectral_irt.errors import SpectralIrtError, for_shell, printable
from spectral_irt.tables import Columns


def main(folder: Path, target: Path) -> int:
    """The tables that `fit -o DIR` wrote, as `fit -o FILE.xlsx` writes them."""
    from spectral_irt.analysis.folder import TABLES
    from spectral_irt.files import all_or_nothing
    from spectral_irt.report.data import read_record, read_table
    from spectral_irt.xlsx import write_workbook

    try:
        there = [name for name in TABLES if (folder / f"{name}.csv").is_file()]
        tables = {name: counted(read_table(folder / f"{name}.csv", ())) for name in there}
        with all_or_nothing([target]) as (draft,):
            write_workbook(draft, tables, read_record(folder))
    except SpectralIrtError as error:
        print(f"error: {printable(for_shell(str(error)))}", file=sys.stderr)
        return 2
    return 0


def counted(columns: Columns) -> Columns:
    """With whole numbers for what was counted, which a CSV file does not tell."""
    return {name: values.astype(np.int64) if _whole(values) else values for name, values in columns.items()}


def _whole(values: np.ndarray) -> bool:
    return values.dtype.kind == "f" and bool(np.isfinite(values).all() and (values == np.round(values)).all())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
