"""`spectral-irt check`: what is odd in the design of the data, and nothing else."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from spectral_irt.cli.categories import Categories
from spectral_irt.cli.fit_job import FitJob
from spectral_irt.cli.fitting import Fitting, groups_of
from spectral_irt.cli.options import Files, Output, Parquet, Reading
from spectral_irt.cli.progress import Progress
from spectral_irt.cli.saying import Saying
from spectral_irt.cli.spread import with_options
from spectral_irt.cli.wanted import Wanted

if TYPE_CHECKING:
    from spectral_irt.data import Finding, Responses

    Looked = tuple[Responses, list[Finding]]

# Enough to measure how well the items are connected; no difficulty is reported.
ROUGH = 1e-6


@with_options(Reading, Categories, Fitting, Wanted, Saying)
def check(
    reading: Reading,
    categories: Categories,
    fitting: Fitting,
    wanted: Wanted,
    saying: Saying,
    files: Files = [],  # noqa: B006  # or a query
    output: Output = None,
    parquet: Parquet = False,
) -> None:
    """Look at the data before a fit: is a common scale possible, and what is odd?

    Prints the findings (severity, what, remedy), or a line that there are none. Takes every option of fit, so that
    `fit` in a command can be replaced by `check`; refuses what fit would refuse, calibrates nothing and writes nothing.

    \b
    Examples
      spectral-irt check answers.csv
      spectral-irt check log/*.parquet --item task --response correct
    """
    saying.begin()
    responses, findings = _look(FitJob(files, reading, categories, fitting, wanted, output, parquet))
    saying.end(lambda: _show(findings), lambda: _record(responses, findings), findings)


def _look(job: FitJob) -> Looked:
    from spectral_irt.engine import LocalEngine
    from spectral_irt.estimators.spectral_fit import spectral_fit
    from spectral_irt.inference.groups.hausman import quick_hausman

    with Progress() as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        responses = job.look(progress)
        if job.fitting.threads is not None:
            responses = responses.using(LocalEngine(job.fitting.threads))
        of = groups_of(responses, (job.fitting.clustered_by, job.fitting.weight), job.wanted.group_file is not None)
        # Weak links show in how slowly the chain mixes, so a rough solution belongs to the look.
        found = spectral_fit(responses, weighting="persons", se="none", tol=ROUGH, progress=progress.say)
        test = None
        if job.fitting.design != "adaptive":  # which would explain what the test finds
            progress.say("conditional against marginal likelihood")
            test = quick_hausman(responses, found.thresholds, of.get(job.fitting.population_by or ""))
    about_the_data = [f for f in found.findings if f.code not in ("regularization", "not_converged")]
    about_the_data += [] if test is None else test.findings
    return responses, [*responses.notes, *about_the_data]


def _show(findings: list[Finding]) -> None:
    from spectral_irt.terminal import console, show_findings

    out = console()
    show_findings(out, findings)
    if not any(finding.code not in ("items_taken", "ordered_categories") for finding in findings):
        out.print("Nothing odd.")


def _record(responses: Responses, findings: list[Finding]) -> dict[str, Any]:
    """What was found, in the words of `fit.json`."""
    from spectral_irt.analysis.record import counts_of, finding_record, record_head

    found = [finding_record(finding) for finding in findings]
    return {**record_head(), "source": responses.source, "counts": counts_of(responses), "findings": found}
