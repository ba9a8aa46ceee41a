"""What a fit is followed by: people, reliability, the fit of items, differences between groups, ranks, the scale."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.errors import DesignError, OptionError, listed
from spectral_irt.responses import Finding

if TYPE_CHECKING:
    from pathlib import Path

    from spectral_irt.bank import Scale
    from spectral_irt.cli.groups import Groups
    from spectral_irt.cli.options import Analysis
    from spectral_irt.estimators.base import RaschEstimator
    from spectral_irt.inference.differential import Differential
    from spectral_irt.inference.reliability import Reliability
    from spectral_irt.inference.wald import WaldTest
    from spectral_irt.responses import Responses

Columns = dict[str, NDArray[Any]]
Tell = Callable[[str], None]

QUICK = 1_000_000  # responses up to which people and fit are computed even when nothing is written
LONG = 2e11  # sum over users of squared answers; beyond, conditional fit takes minutes and must be asked for
TEST_ITEMS, TEST_RESPONSES = 300, 2_000_000  # up to here the test of the model takes a second or less
LEVEL = 0.05
MATERIAL = 0.1  # infit closer to 1 than this is no misfit that matters, however sure it is


@dataclass
class Results:
    """A fit and everything computed after it; None where it was not wanted."""

    responses: Responses
    fit: RaschEstimator
    persons: Columns | None = None
    reliability: Reliability | None = None
    item_fit: Columns | None = None
    model_test: WaldTest | None = None
    dif: dict[str, Differential] = field(default_factory=dict)  # by the column of the groups
    ranking: Columns | None = None
    error_over_floor: float | None = None
    scale: Scale | None = None
    bootstrap: int = 0
    findings: list[Finding] = field(default_factory=list)

    def tables(self) -> dict[str, Columns | None]:
        """The tables that are written, by the names of their files."""
        return {
            "items": self._with_measures(self.fit.item_columns(), "difficulty"),
            "persons": None if self.persons is None else self._with_measures(self.persons, "ability"),
            "item_fit": self.item_fit,
            "dif": self._contrasts() if self.dif else None,
            "ranking": self.ranking,
        }

    def _contrasts(self) -> Columns:
        """The rows of every grouping, with the column that it goes by."""
        tables = [
            {"grouping": np.full(len(one.contrasts["item"]), column, dtype=object), **one.contrasts}
            for column, one in self.dif.items()
        ]
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}

    def _with_measures(self, columns: Columns, name: str) -> Columns:
        return columns if self.scale is None else with_measures(columns, name, self.scale)


def with_measures(columns: Columns, name: str, scale: Scale) -> Columns:
    """The columns with what is reported on another scale after them; logits stay."""
    return {**columns, "measure": scale.measure(columns[name]), "measure_se": scale.width(columns["se"])}


def analyse(
    responses: Responses, fit: RaschEstimator, wanted: Analysis, output: Path | None, groups: list[Groups], tell: Tell
) -> Results:
    """Everything that is wanted after a fit."""
    results = Results(responses, fit, findings=list(fit.findings_))
    quick = responses.n_responses <= QUICK
    if _either(wanted.persons, quick or output is not None or wanted.pfile is not None):
        _add_persons(results, wanted, tell)
    _add_scale(results, wanted)
    if _fit_is_wanted(results, wanted, quick or output is not None):
        _add_item_fit(results, wanted, tell)
        _add_model_test(results, tell)
    for grouping in groups:
        tell(f"comparing groups by {grouping.column}")
        found = fit.dif(responses, grouping.of(responses))
        results.dif[grouping.column] = found
        results.findings += found.findings
    if wanted.rank is not None:
        from spectral_irt.inference.ranking import ranking_columns

        tell("ranking the items")
        by = "lower" if np.isfinite(fit.se_).any() else "difficulty"
        results.ranking = ranking_columns(fit, by, wanted.rank)
    return results


def _either(said: bool | None, otherwise: bool) -> bool:
    return otherwise if said is None else said


# ------------------------------------------------------------------------------------------ people


def _add_persons(results: Results, wanted: Analysis, tell: Tell) -> None:
    from spectral_irt.inference.bounds import error_estimate_over_floor
    from spectral_irt.inference.reliability import reliability
    from spectral_irt.persons.table import person_columns

    tell("abilities")
    results.persons = person_columns(results.fit, results.responses, wanted.ability)
    tell("reliability")
    results.reliability = reliability(results.fit, results.responses, wanted.ability)
    if wanted.anchors is None:  # with anchors there is no common error to compare
        tell("error against its floor")
        results.error_over_floor = error_estimate_over_floor(results.fit, results.responses)


def _add_scale(results: Results, wanted: Analysis) -> None:
    """The scale of report: as asked, or that of the bank whose items are anchors."""
    from spectral_irt.bank import Scale

    asked = wanted.mean_and_sd()
    if asked is None:
        inherited = getattr(results.fit, "scale_", None)
        results.scale = None if inherited is None or inherited.is_logits else inherited
        return
    if results.persons is not None:
        ability = results.persons["ability"]
    else:
        from spectral_irt.persons.abilities import abilities

        ability = abilities(results.responses, results.fit.difficulty_, wanted.ability).ability
    known = ability[np.isfinite(ability)]
    spread = float(known.std()) if len(known) else 0.0
    if spread == 0:
        raise OptionError(f"the people do not differ in ability, so that none can have the scale {wanted.scale!r}.")
    mean, sd = asked
    unit = sd / spread
    results.scale = Scale(mean - unit * float(known.mean()), unit)


# --------------------------------------------------------------------------------------------- fit


def _fit_is_wanted(results: Results, wanted: Analysis, by_default: bool) -> bool:
    if wanted.fit is not None:
        return wanted.fit
    if wanted.bootstrap is not None or wanted.ifile is not None:
        return True
    if by_default and float((results.responses.counts.astype(float) ** 2).sum()) > LONG:
        results.findings.append(
            Finding(
                "fit_left_out",
                "note",
                "The fit of the items was left out, because with so many answers a user it takes long.",
                "Say --fit to have it all the same.",
            )
        )
        return False
    return by_default


def _add_item_fit(results: Results, wanted: Analysis, tell: Tell) -> None:
    from spectral_irt.inference.item_fit import item_fit_columns

    results.bootstrap = wanted.bootstrap or 0
    tell(f"fit of the items{f', {results.bootstrap:,} bootstrap replicates' if results.bootstrap else ''}")
    columns = item_fit_columns(
        results.fit, results.responses, bootstrap=results.bootstrap, sample=wanted.sample, level=LEVEL
    )
    if not results.bootstrap:
        columns |= judged(columns)
    results.item_fit = columns
    misfit = columns["misfit"] != ""
    if misfit.any():
        results.findings.append(_misfit_finding(results.fit.item_labels_, columns, results.bootstrap))


def judged(columns: Columns) -> Columns:
    """Which items misfit, by the standardised conditional infit: `misfit_p`, `misfit`.

    `misfit_p` is its two-sided p, adjusted for asking of every item (Benjamini & Hochberg). Below 5 % the item is
    noisier than the model says ("underfit") or steeper ("overfit"), provided that the infit is off by a tenth or more:
    with very many answers the slightest misfit is sure, and matters no more for that. Outfit has no say: a few
    surprises by chance give an item off target a standardised outfit beyond 5 (15 of 27,000 good items, simulated).
    """
    from spectral_irt.inference.tails import benjamini_hochberg, two_sided

    infit, z = columns["infit_conditional"], columns["infit_conditional_z"]
    p = benjamini_hochberg(two_sided(z))
    misfit = np.full(len(p), "", dtype=object)
    flagged = (p < LEVEL) & (np.abs(infit - 1) >= MATERIAL)
    misfit[flagged & (z > 0)] = "underfit"
    misfit[flagged & (z < 0)] = "overfit"
    return {"misfit_p": p, "misfit": misfit}


def _misfit_finding(labels: NDArray[Any], columns: Columns, bootstrap: int) -> Finding:
    parts = []
    for word, what in (("underfit", "noisier"), ("overfit", "steeper")):
        chosen = np.flatnonzero(columns["misfit"] == word)
        if len(chosen):
            first = np.argsort(-np.abs(columns["infit_conditional_z"][chosen]), kind="stable")
            parts.append(f"{what} than the model {listed(labels[chosen[first]])}")
    flagged = columns["misfit"] != ""
    number, known = int(flagged.sum()), int(np.isfinite(columns["infit_conditional"]).sum())
    by = f"by limits of {bootstrap:,} simulated data sets, of which 5 % are chance" if bootstrap else "beyond chance"
    verb = "misfits" if number == 1 else "misfit"
    return Finding(
        "misfitting_items",
        "warning",
        f"{number:,} of {known:,} items {verb} {by}: {'; '.join(parts)}.",
        "Read these items; item_fit.csv has the numbers.",
        tuple(labels[flagged].tolist()),
    )


def _add_model_test(results: Results, tell: Tell) -> None:
    """The score-split Wald test, where it is cheap and the halves can be calibrated."""
    from spectral_irt.inference.wald import score_split

    responses = results.responses
    if responses.n_items > TEST_ITEMS or responses.n_responses > TEST_RESPONSES:
        return
    tell("less able against more able half")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for split in ("ability", "mean"):  # a short test may have only perfect scores above the median
            try:
                results.model_test = score_split(results.fit, responses, split)
                return
            except DesignError:
                pass  # the halves are too thin to be calibrated on their own
