"""OrderedAnalysis: a calibration of ordered answers and responses together: people, fit, reliability, files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.ordered_files import ordered_files
from spectral_irt.analysis.record import counts_of, finding_record, persons_record, record_head
from spectral_irt.errors import OptionError
from spectral_irt.inference.item_fit import judged, misfit_findings
from spectral_irt.inference.ordered_fit import (
    AnswerMoments,
    conditional_item_mean_squares,
    cronbach_alpha,
    item_mean_squares,
    moments_at,
    moments_given_score,
    person_mean_squares,
)
from spectral_irt.inference.ordered_strata import ordered_strata
from spectral_irt.inference.reliability import Separation, separation
from spectral_irt.ordered_calibration import OrderedCalibration
from spectral_irt.persons.abilities import Abilities
from spectral_irt.persons.ordered_people import OrderedPeople, align_ordered
from spectral_irt.persons.residuals import MeanSquares
from spectral_irt.persons.table import person_columns
from spectral_irt.responses import Finding
from spectral_irt.responses.block import Ints
from spectral_irt.responses.ordered import OrderedResponses
from spectral_irt.tables import Columns, make_table
from spectral_irt.writing import write_each

if TYPE_CHECKING:
    from spectral_irt.plots.ordered_plots import OrderedPlots

TABLES = ("items", "thresholds", "persons", "item_fit")


class OrderedAnalysis:
    """What a calibration of ordered answers says about people, and what their answers say about it.

    Every question is a method, and is computed once. What `Analysis` has and this has not (tests of the model, groups,
    banks) is for right and wrong answers, and is refused.

    Parameters
    ----------
    calibration : OrderedCalibration
    responses : OrderedResponses
        Those of the calibration, or others; items are matched by label, categories by their codes.
    ability : "wle", "ml" or "eap"
        How abilities are estimated where a method does not say: Warm's weighted likelihood by default.
    population : (mean, sd), optional
        The normal population of "eap"; estimated from the responses unless given.
    ignore_unknown : bool
    progress : callable, optional

    Examples
    --------
    >>> from spectral_irt import SpectralPartialCredit, simulate
    >>> answers = simulate.partial_credit(300, 5, categories=3, seed=1).responses
    >>> study = SpectralPartialCredit().fit(answers).analyse(answers)
    >>> study
    <OrderedAnalysis: 300 people, 5 items, 1,500 responses in up to 3 categories>
    >>> study.score_table()["score"].to_list()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """

    def __init__(
        self,
        calibration: OrderedCalibration,
        responses: Any,
        *,
        ability: str = "wle",
        population: tuple[float, float] | None = None,
        ignore_unknown: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        if not isinstance(responses, OrderedResponses):
            from spectral_irt.estimators.ordered_base import as_ordered

            responses = as_ordered(responses, "keep")
        self.calibration = calibration
        self.responses = align_ordered(calibration, responses, ignore_unknown)
        self.ability, self.population = ability, population
        self.tell = progress or (lambda text: None)
        self._known: dict[Hashable, Any] = {}

    def __repr__(self) -> str:
        r = self.responses
        categories = r.steps.widest + 1
        return (
            f"<OrderedAnalysis: {r.n_users:,} people, {r.n_items:,} items, {r.n_responses:,} responses in up to "
            f"{categories} categories>"
        )

    def __getattr__(self, name: str) -> Any:
        from spectral_irt.analysis.analysis import Analysis

        if not name.startswith("_") and (hasattr(Analysis, name)):
            raise OptionError(
                f"{name} is for right and wrong answers, and these have up to {self.responses.steps.widest + 1} "
                "categories; it is not computed for them."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _once(self, key: Hashable, compute: Callable[[], Any], say: str = "") -> Any:
        if key not in self._known:
            if say:
                self.tell(say)
            self._known[key] = compute()
        return self._known[key]

    def _table(self, columns: Columns) -> Any:
        return make_table(columns, self.responses.frame_kind)

    @property
    def people(self) -> OrderedPeople:
        return self._once("people", lambda: OrderedPeople.of(self.calibration, self.responses))

    # ------------------------------------------------------------------------------------------ people

    def abilities(self, method: str | None = None) -> Abilities:
        """The ability of every person as arrays."""
        method = method or self.ability
        return self._once(
            ("abilities", method),
            lambda: self.people.abilities(method, self.population),
            say=f"abilities ({method})",
        )

    def person_fit(self, method: str | None = None) -> MeanSquares:
        """Infit and outfit of every person as arrays, at the reported abilities."""
        method = method or self.ability

        def compute() -> MeanSquares:
            patterns = self.people.patterns
            theta = np.full(len(patterns.count), np.nan)
            theta[patterns.of_person] = self.abilities(method).ability
            return person_mean_squares(self.people, moments_at(self.people, theta))

        return self._once(("person_fit", method), compute)

    def persons(self, method: str | None = None) -> Any:
        """The persons as a table: `person, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

        `score` adds the categories answered; `extreme`: it is the lowest or the highest that the person could have.
        """
        return self._table(self.person_columns(method))

    def person_columns(self, method: str | None = None) -> Columns:
        """The columns of `persons`."""
        return person_columns(self.responses, self.abilities(method), self.person_fit(method))

    def score_table(self, items: Any = None) -> Any:
        """From total score to ability; see `OrderedCalibration.score_table`."""
        return self.calibration.score_table(items)

    def alpha(self) -> float:
        """Cronbach's alpha, over the people who answered everything; NaN where nobody did."""
        return self._once("alpha", lambda: cronbach_alpha(self.people))

    def separation(self, method: str = "ml") -> Separation:
        """How far people differ beyond their errors; with "ml" the reliability is eRm's `SepRel`."""
        found = self.abilities(method)
        return separation(np.where(found.extreme, np.nan, found.ability), found.se)

    def eap_reliability(self) -> float:
        """The share of the population's variance that the posterior means show: 1 - mean posterior variance / total."""
        found = self.abilities("eap")
        there = found.n > 0
        error = float(np.mean(found.se[there] ** 2))
        spread = float(np.var(found.ability[there]))
        return spread / (spread + error)

    # --------------------------------------------------------------------------------------------- fit

    def item_statistics(self) -> MeanSquares:
        """Conventional infit and outfit of every item as arrays, at maximum likelihood abilities."""

        def compute() -> MeanSquares:
            patterns = self.people.patterns
            theta = np.full(len(patterns.count), np.nan)
            theta[patterns.of_person] = self.abilities("ml").ability
            return self._of_all(item_mean_squares(self.people, moments_at(self.people, theta)))

        return self._once("item_statistics", compute, say="fit of the items")

    def conditional_statistics(self) -> MeanSquares:
        """Infit and outfit of every item given the total scores, without abilities, as arrays."""
        return self._once(
            "conditional",
            lambda: self._of_all(conditional_item_mean_squares(self.people, self._given_score())),
            say="fit of the items given the scores",
        )

    def _given_score(self) -> AnswerMoments:
        return self._once("given_score", lambda: moments_given_score(self.people))

    def strata_columns(self, items: Ints, strata: int) -> Columns:
        """Mean answers to items (by position, with an estimate) by stratum of ability; see `ordered_strata`."""
        place = np.cumsum(self.calibration.known) - 1
        found = ordered_strata(self.people, self.abilities("wle").ability, self._given_score(), place[items], strata)
        return {**found, "item": np.flatnonzero(self.calibration.known)[found["item"]]}

    def _of_all(self, found: MeanSquares) -> MeanSquares:
        """NaN for items without an estimate."""
        known = self.calibration.known
        if known.all():
            return found
        columns = []
        for name in ("n", "infit", "infit_z", "outfit", "outfit_z"):
            full = np.full(len(known), 0.0 if name == "n" else np.nan)
            full[known] = getattr(found, name)
            columns.append(full)
        return MeanSquares(*columns)

    def item_fit(self) -> Any:
        """The fit of every item as a table, and which items misfit; see `Analysis.item_fit`."""
        return self._table(self.item_fit_columns())

    def item_fit_columns(self) -> Columns:
        """The columns of `item_fit`."""

        def compute() -> Columns:
            conventional, given = self.item_statistics(), self.conditional_statistics()
            columns: Columns = {}
            for suffix, squares in (("", conventional), ("_conditional", given)):
                for name in ("infit", "outfit"):
                    columns[f"{name}{suffix}"] = getattr(squares, name)
                    columns[f"{name}{suffix}_z"] = getattr(squares, f"{name}_z")
            for name, values in columns.items():
                columns[name] = np.where(self.calibration.measured, values, np.nan)
            columns |= judged(columns)
            return {"item": self.calibration.labels, "n": conventional.n.astype(np.int64), **columns}

        return self._once("item_fit", compute)

    @property
    def plot(self) -> OrderedPlots:
        """Pictures: `study.plot.wright()`, `study.plot.categories("item 7")`; see `OrderedPlots`."""
        from spectral_irt.plots.ordered_plots import OrderedPlots

        return OrderedPlots(self)

    # ------------------------------------------------------------------------------------------- files

    def findings(self, *, fit: bool = True) -> tuple[Finding, ...]:
        """What its reader should know."""
        return self.calibration.findings + (misfit_findings(self.item_fit_columns()) if fit else ())

    def tables(self, *, persons: bool = True, fit: bool = True) -> dict[str, Columns]:
        """What `write` writes, by name."""
        found = {"items": self.calibration.item_columns(), "thresholds": self.calibration.threshold_columns()}
        if persons:
            found["persons"] = self.person_columns()
        if fit:
            found["item_fit"] = self.item_fit_columns()
        return found

    def record(self, *, persons: bool = True, fit: bool = True) -> dict[str, Any]:
        """What was fitted, how, and what came of it."""
        made, prior = self.calibration.provenance, self.calibration.prior
        counts = counts_of(self.responses)
        del counts["right"]
        found: dict[str, Any] = {
            **record_head(),
            "outputs": [],
            "estimator": made.estimator,
            "settings": dict(made.settings),
            "input": {"source": self.responses.source},
            "counts": {
                **counts,
                "thresholds": self.responses.steps.n_steps,
                "items_with_estimate": int(self.calibration.known.sum()),
            },
            "data_digest": self.responses.digest(),
            "iterations": made.iterations,
            "residual": made.residual,
            "contraction": made.contraction,
            "solver": made.solver,
            "loglik": made.loglik,
            "regularization": None if prior is None else vars(prior),
            "se_method": made.se_method,
            "findings": [finding_record(one) for one in self.findings(fit=fit)],
        }
        if persons:
            columns = self.person_columns()
            found["persons"] = persons_record(columns, self.ability)
            extreme, n, score = columns["extreme"], columns["n"], columns["score"]
            found["persons"] |= {
                "all_right": int(np.sum(extreme & (n > 0) & (score > 0))),
                "all_wrong": int(np.sum(extreme & (score == 0))),
            }
            people = self.separation()
            found["reliability"] = {
                "alpha": _or_none(self.alpha()),
                "eap": _or_none(self.eap_reliability()),
                "separation": _or_none(people.reliability),
            }
        return found

    def write(
        self,
        folder: str | Path,
        *,
        persons: bool = True,
        fit: bool = True,
        parquet: bool = False,
        inputs: Sequence[str] = (),
        further: Mapping[str, Any] | None = None,
    ) -> list[Path]:
        """`items.csv`, `thresholds.csv`, `persons.csv`, `item_fit.csv` and `fit.json`: all of them, or nothing.

        A name that ends in .xlsx is that of a workbook with these as sheets. `inputs` are files that nothing may take
        the place of; `further` goes into the record.
        """
        tables = self.tables(persons=persons, fit=fit)
        record = {**self.record(persons=persons, fit=fit), **(further or {})}
        writers, stale = ordered_files(Path(folder), tables, record, parquet=parquet)
        return write_each(writers, inputs=inputs, stale=stale)

    def report(self, path: str | Path, *, list_persons: bool = False) -> Path:
        """Write everything to one HTML file that needs no network; nobody is named in it unless `list_persons`."""
        from spectral_irt.report.ordered_report import write_ordered_report

        return write_ordered_report(self, Path(path), list_persons=list_persons)


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
