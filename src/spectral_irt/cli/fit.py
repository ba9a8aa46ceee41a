"""`spectral-irt fit`: from files of answers to calibrated items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spectral_irt.cli.categories import Categories, changed
from spectral_irt.cli.fit_job import FitJob
from spectral_irt.cli.fitting import Fitting
from spectral_irt.cli.in_database import Database, in_database
from spectral_irt.cli.options import Files, Output, Parquet, Reading
from spectral_irt.cli.saying import Saying
from spectral_irt.cli.spread import with_options
from spectral_irt.cli.wanted import Wanted
from spectral_irt.errors import OptionError

if TYPE_CHECKING:
    from rich.console import Console

    from spectral_irt.analysis import Analysis, Parts


@with_options(Reading, Categories, Fitting, Wanted, Database, Saying)
def fit(
    reading: Reading,
    categories: Categories,
    fitting: Fitting,
    wanted: Wanted,
    database: Database,
    saying: Saying,
    context: typer.Context,
    files: Files = [],  # noqa: B006  # typer's way to say that it may be left out
    output: Output = None,
    parquet: Parquet = False,
) -> None:
    """Calibrate: how hard every item is and how sure that is, how able people are, and whether the model holds.

    Prints a short table and what is odd in the data. With -o, all items go to
    DIR/items.csv, people to DIR/persons.csv, what each raw score stands for to
    DIR/scores.csv, the fit of the items to DIR/item_fit.csv, classical statistics
    to DIR/item_analysis.csv (with a key, every option to DIR/distractors.csv), and
    a record of it all to DIR/fit.json; with -o FILE.xlsx to the sheets of a
    workbook. Larger = harder.

    \b
    Examples
    A row for each person, a column for each item:
      spectral-irt fit answers.csv -o results
    A row for each answer, in any number of files:
      spectral-irt fit log/*.parquet --item task --response correct -o results
    From one Excel workbook to another:
      spectral-irt fit test.xlsx --sheet Answers -o results.xlsx
    Multiple choice with an answer key; 9 means 'not answered':
      spectral-irt fit choices.csv --key key.csv --missing 9 -o results
    What was left blank between answers is wrong, the end not reached is missing:
      spectral-irt fit choices.csv --key key.csv --omitted wrong -o results
    Ratings, above the person's own mean or not; larger = better liked:
      spectral-irt fit films.csv --above-mean wrong --rank 9 --rank-by lower -o out
    Are items as hard for one sex as for the other? Height is not an item:
      spectral-irt fit answers.csv --group sex --ignore height -o results
    Reported with a mean of 500; who is above 450, above 550, how sure is that?
      spectral-irt fit answers.csv --scale 500,100 --cut 450,550 -o results
    An adaptive test; abilities differ between grades:
      spectral-irt fit log.csv --design adaptive --population-by grade -o results
    Pictures: people and items on one scale, fit, curves, scores:
      spectral-irt fit answers.csv --plots pictures
    A questionnaire, never to always; q3 asks the other way round:
      spectral-irt fit survey.csv --recode never,sometimes,always --reverse q3
    One page to hand on, with everything in it:
      spectral-irt fit answers.csv --report report.html
    New items on the scale of a bank, kept as a bank in turn:
      spectral-irt fit new.csv --anchors bank2024 --bank bank2025
    A table that stays in its database:
      spectral-irt fit --in-database duckdb:school.duckdb --table answers -o results
    """

    saying.begin()
    if changed(database):
        with in_database(database, files, changed(categories), reading, fitting, wanted, output, parquet) as job:
            job.argv = said(context)
            calibrate(job, saying)
        return
    if not files and reading.sql is None:
        raise OptionError(
            "missing argument 'FILE', or --sql with --database, or --in-database with --table; see spectral-irt fit "
            "--help."
        )
    calibrate(FitJob(files, reading, categories, fitting, wanted, output, parquet, said(context)), saying)


def said(context: typer.Context) -> list[str]:
    """What was said on the command line, without passwords."""
    from spectral_irt.reading.sql import without_password

    return [without_password(word) if "://" in word else word for word in context.obj or ()]


def calibrate(job: FitJob, saying: Saying) -> None:
    """Do the job, and say what came of it."""
    study, parts = job.run()
    saying.end(lambda: show(study, parts, job), lambda: job.record(study, parts), study.findings(parts))


def show(study: Analysis, parts: Parts, job: FitJob) -> None:
    """The summary of the analysis, and where the results are."""
    from spectral_irt.analysis.summary import show_summary
    from spectral_irt.terminal import console, say

    out = console()
    seconds, name = job.seconds, job.fitting.estimator
    method = "Paper's" if name == "paper" else None
    times = (
        f"Read in {seconds['read']:.2f} s, fitted in {seconds['fit']:.2f} s, analyzed in {seconds['analysis']:.2f} s."
    )
    show_summary(out, study, parts, method=method, times=times)
    say(out)
    _say_where(out, job)


def _say_where(out: Console, job: FitJob) -> None:
    from rich.text import Text

    from spectral_irt.errors import printable
    from spectral_irt.terminal import say

    wanted = job.wanted
    further = [wanted.ifile, wanted.sfile, wanted.pfile, wanted.catsim, wanted.report, wanted.plots, wanted.bank]
    places = [printable(path) for path in further if path is not None]
    if job.output is None and not places:
        say(out, Text("Nothing was saved; add -o DIR for all items, all people and a record of the fit."))
        return
    sentence = Text()
    if job.output is not None:
        sentence.append("Results are in ").append(printable(job.output), style="bold").append(f": {_and(job.written)}.")
    for name, rows in job.left_out.items():
        sentence.append(f" {name} has {rows:,} rows, more than a sheet, and was left out; -o DIR writes it as CSV.")
    if places:
        sentence.append(" Also written: " if job.output is not None else "Written: ")
        sentence.append(_and(places), style="bold").append(".")
    for name, reason in ({} if job.pictures is None else job.pictures.left_out).items():
        sentence.append(f" No picture of {name}: {printable(reason)}")
    say(out, sentence)


def _and(names: list[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])
