"""`spectral-irt fit`: from files of answers to calibrated items; and `check`, which looks at them and fits nothing.

Help reads this file, which declares the commands; what they need to do the work is loaded when they do it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from spectral_irt.cli.fit_options import Method, Results
from spectral_irt.cli.options import Answers, Call, Files, is_database
from spectral_irt.cli.terminal import Mode

if TYPE_CHECKING:
    from spectral_irt.cli.fit_job import FitJob


def fit(reading: Answers, method: Method, results: Results, mode: Mode, call: Call, files: Files) -> None:
    """Estimate item difficulties with standard errors, person abilities, and model fit.

    FILE is CSV, Excel, SPSS, Stata, Parquet, Arrow or JSON lines, with a row for each person or for each response.
    Columns are recognized by their names; spectral-irt check FILE shows how. Larger difficulty = harder.

    \b
    Examples
      spectral-irt fit answers.csv -o results
      spectral-irt fit quiz.csv --key key.csv --missing 9 --report quiz.html
      spectral-irt fit log/*.parquet --item task --response correct -o results
      spectral-irt fit survey.csv --recode never,sometimes,always --reverse q3
      spectral-irt fit new.csv --anchors bank2024 --bank bank2025
    """
    from spectral_irt.cli.calibrate import calibrate, look_at
    from spectral_irt.cli.fit_job import FitJob

    job = FitJob(files, reading, method, results, call)
    opened: AbstractContextManager[FitJob] = nullcontext(job)
    for file in files:
        if "#" in file and reading.sql is None and is_database(file):
            from spectral_irt.cli.data import in_database

            opened = in_database(job, file)
    with opened as job:
        if results.dry_run:
            look_at(job, mode)
        else:
            calibrate(job, mode)


def check(reading: Answers, mode: Mode, call: Call, files: Files) -> None:
    """Check a file before a fit: what was recognized, whether a common scale is possible, and what looks odd.

    Prints findings (severity, what, remedy), or a line that there are none. Nothing is fitted or written. spectral-irt
    fit --dry-run does the same with all options of fit.

    \b
    Examples
      spectral-irt check answers.csv
      spectral-irt check log/*.parquet --item task --response correct
    """
    from spectral_irt.cli.calibrate import look_at
    from spectral_irt.cli.fit_job import FitJob

    look_at(FitJob(files, reading, Method(), Results(), call), mode)
