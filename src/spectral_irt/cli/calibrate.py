"""A calibration on the terminal: what came of a fit, and what there is to say about data before one."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import partial

from rich.text import Text

from spectral_irt.analysis.folder import counts_of
from spectral_irt.analysis.summary import show_summary
from spectral_irt.cli.fit_job import FitJob
from spectral_irt.cli.terminal import Mode, Progress
from spectral_irt.data.booklets import booklets_of
from spectral_irt.engine import LocalEngine
from spectral_irt.estimators.spectral_steps import spectral_fit
from spectral_irt.inference.groups.hausman import UNTESTABLE, hausman
from spectral_irt.terminal import console, say, show_findings
from spectral_irt.text import and_list, printable

ROUGH = 1e-6  # enough to measure how well the items are linked; no difficulty is reported


def calibrate(job: FitJob, mode: Mode) -> None:
    """Do the job, and say what came of it."""
    job.run()
    mode.end(partial(show, job), job.record, job.study.findings(job.parts))


def show(job: FitJob) -> None:
    """The summary of the analysis, and where the results are."""
    out, seconds = console(), job.seconds
    times = "Read in {read:.2f} s, fitted in {fit:.2f} s, analyzed in {analysis:.2f} s.".format(**seconds)
    show_summary(out, job.study, job.parts, method="Paper's" if job.method.estimator == "paper" else None, times=times)
    say(out)
    results = job.results
    places = list(map(printable, filter(None, (results.report, results.pupil_pages, results.plots, results.bank))))
    if results.output is None and not places:
        say(out, Text("Nothing was saved; add -o DIR for all items, all people and a record of the fit."))
        return
    sentence = Text()
    if results.output is not None:
        sentence.append("Results are in ").append(printable(results.output), style="bold")
        sentence.append(f": {and_list(job.written)}.")
    for name, rows in job.left_out.items():
        sentence.append(f" {name} has {rows:,} rows, more than a sheet, and was left out; -o DIR writes it as CSV.")
    if places:
        sentence.append(" Also written: " if results.output is not None else "Written: ")
        sentence.append(and_list(places), style="bold").append(".")
    for name, reason in ({} if job.pictures is None else job.pictures.left_out).items():
        sentence.append(f" No picture of {name}: {printable(reason)}")
    say(out, sentence)


def look_at(job: FitJob, mode: Mode) -> None:
    """What there is to say about the data, without a fit."""
    with Progress() as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        responses, test = job.look(progress), None
        method, threads = job.method, job.call.threads
        if threads is not None:
            responses = responses.with_engine(LocalEngine(threads))
        groups = {} if responses.people is None else job.groups(responses.people, responses)
        if responses.facets is not None:  # an item by one rater is no item by itself: what a fit finds is what there is
            about_the_data = job.findings_of_ratings(responses, progress)
        else:
            # Weak links show in how slowly the chain mixes, so a rough solution belongs to the look.
            rough_fit = spectral_fit(responses, weighting="persons", se="none", tol=ROUGH, progress=progress.say)
            about_the_data = list(rough_fit.findings)
            if method.design != "adaptive":  # which would explain what the test finds
                progress.say("conditional against marginal likelihood")
                with suppress(*UNTESTABLE):
                    test = hausman(responses, rough_fit.thresholds, groups.get(method.population_by or ""))
        form = job.results.form
        about_forms = () if form is None else booklets_of(responses, form).findings(responses)
    beside_the_data = {"regularization", "not_converged", "bias_correction"}
    if job.reading.model == "rsm":  # the other items tell where a threshold without answers lies
        beside_the_data.add("empty_categories")
    about_the_data = [finding for finding in about_the_data if finding.code not in beside_the_data]
    findings = [*responses.notes, *about_the_data, *about_forms, *(() if test is None else test.findings)]

    def show_them() -> None:
        show_findings(console(), findings)
        if not any(finding.code not in ("items_taken", "ordered_categories") for finding in findings):
            console().print("No problems found.")

    mode.end(show_them, lambda: {"source": responses.source, "counts": counts_of(responses)}, findings)
