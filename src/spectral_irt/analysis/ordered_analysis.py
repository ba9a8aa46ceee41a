"""OrderedAnalysis: a calibration of ordered answers and responses together: people, fit, groups, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.analysis.assembled import contrast_columns, with_measures
from spectral_irt.analysis.folder import may_be_parted
from spectral_irt.analysis.ordered_checks import OfOrderedItems
from spectral_irt.analysis.ordered_files import ordered_files
from spectral_irt.analysis.parts import Parts
from spectral_irt.analysis.record import (
    counts_of,
    cuts_record,
    dif_record,
    finding_record,
    forms_record,
    hausman_record,
    item_fit_record,
    one_or_all,
    people_record,
    record_head,
    test_record,
)
from spectral_irt.data import Finding
from spectral_irt.estimators.base import ADAPTIVE, FIXED
from spectral_irt.estimators.marginal import is_adaptive
from spectral_irt.files import write_each
from spectral_irt.inference.items.classical import reversed_findings
from spectral_irt.inference.joint_errors import known_errors
from spectral_irt.inference.scores.equating import Equating, equate_forms
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.plots.all import Plots

TABLES = (
    "items",
    "thresholds",
    "persons",
    "scores",
    "forms",
    "unexpected",
    "groups",
    "cuts",
    "item_fit",
    "curves",
    "item_analysis",
    "dif",
    "dif_thresholds",
    "ranking",
)


class OrderedAnalysis(OfOrderedItems):
    """What a calibration of ordered answers says about people, and what their answers say about it.

    Every question is a method, and is computed once. What `Analysis` has and this has not (clusters, options of
    multiple choice) is for right and wrong answers, and is refused.

    Parameters
    ----------
    calibration : Calibration
    responses : Responses
        Those of the calibration, or others; items are matched by label, categories by their codes.
    ability : "wle", "ml", "eap" or "pv"
        How abilities are estimated where a method does not say: Warm's weighted likelihood by default.
    population : (mean, sd), optional
        The normal population of "eap" and "pv"; estimated from the responses unless given.
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

    @property
    def plot(self) -> Plots:
        """Pictures: `study.plot.wright()`, `study.plot.categories("item 7")`; see `Plots`."""
        from spectral_irt.plots.all import Plots

        return Plots(self)  # type: ignore[arg-type]

    def equate(self, first: str | Sequence[Any], second: str | Sequence[Any]) -> Equating:
        """Total scores on one form, and what they are on another of the same analysis; see `inference.equating`.

        A form is named as in `scores()` ("form 1"), or given by the labels of its items. Two calibrations: `si.equate`.
        """
        steps, forms = self.calibration.layout, self.forms()
        one, other = (
            forms.items[forms.position(form)] if isinstance(form, str) else self.calibration.positions(form)
            for form in (first, second)
        )
        names = tuple(form if isinstance(form, str) else letter for form, letter in ((first, "A"), (second, "B")))
        errors = known_errors(self.calibration.thresholds, self.calibration.threshold_se, None, steps.averaging())[0]
        return equate_forms(
            self.calibration.thresholds,
            errors,
            steps.of_items(one),
            steps.of_items(other),
            (names[0], names[1]),
            self.responses.frame_kind,
            (steps.max_score[one], steps.max_score[other]),
        )

    # ------------------------------------------------------------------------------------------- files

    def findings(self, parts: Parts | None = None) -> tuple[Finding, ...]:
        """What its reader should know."""
        parts = parts or self.parts()
        found = [*self.calibration.findings, *parts.notes, *(self.forms().findings if parts.scores else ())]
        if parts.fit:
            found += self.checks(parts).findings
            test = self.quick_hausman()
            found += [] if test is None else test.findings
        found += reversed_findings(self.calibration, self.classical()) if parts.item_analysis else ()
        for one in self.grouped(parts).values():
            found += one.findings
        return tuple(found)

    def tables(self, parts: Parts | None = None) -> dict[str, Columns]:
        """What `write` writes, by name."""
        parts = parts or self.parts(writing=True)
        scale = self.calibration.scale
        found = {
            "items": with_measures(self.calibration.item_columns(), "difficulty", scale),
            "thresholds": with_measures(self.calibration.threshold_columns(), "threshold", scale),
        }
        if parts.persons:
            given = parts.groups or None
            found["persons"] = self.person_columns(draws=parts.draws, seed=parts.seed, given=given)
            found |= self.people_tables(parts)
        if parts.fit:
            found["item_fit"] = self.item_fit_columns(bootstrap=parts.bootstrap, sample=parts.sample)
            found["curves"] = self.curve_columns()
        if parts.item_analysis:
            found["item_analysis"] = self.item_analysis_columns(discrimination=parts.fit)
        if parts.groups:
            grouped = self.grouped(parts)
            found["dif"] = contrast_columns(grouped)
            found["dif_thresholds"] = contrast_columns({k: one for k, one in grouped.items() if one.steps}, "steps")
        if parts.top is not None:
            found["ranking"] = self.ranking_columns(parts.rank_by, parts.top)
        return {name: table for name, table in found.items() if table and len(next(iter(table.values())))}

    def record(self, parts: Parts | None = None) -> dict[str, Any]:
        """What was fitted, how, and what came of it."""
        parts = parts or self.parts(writing=True)
        made, prior, scale = self.calibration.provenance, self.calibration.prior, self.calibration.scale
        test = self.quick_model_test() if parts.fit else None
        found: dict[str, Any] = {
            **record_head(),
            "outputs": [],
            "estimator": made.estimator,
            "settings": dict(made.settings),
            "design": ADAPTIVE if is_adaptive(self.calibration) else FIXED,
            "input": {"source": self.responses.source},
            "counts": {
                **counts_of(self.responses),
                "items_with_estimate": int(self.calibration.known.sum()),
                "items_anchored": int(self.calibration.anchored.sum()),
            },
            "data_digest": self.responses.digest(),
            "iterations": made.iterations,
            "residual": made.residual,
            "contraction": made.contraction,
            "solver": made.solver,
            "loglik": made.loglik,
            "regularization": None if prior is None else vars(prior),
            "se_method": made.se_method,
            "scale": None if scale.is_logits else asdict(scale),
            "item_fit": item_fit_record(self, parts) if parts.fit else None,
            "model_test": None if test is None else test_record(test),
            "conditional_against_marginal": hausman_record(self.quick_hausman()) if parts.fit else None,
            "fit_checks": self.checks(parts).to_dict() if parts.fit else None,
            "dif": one_or_all([dif_record(dif, column) for column, dif in self.grouped(parts).items()]),
            "findings": [finding_record(one) for one in self.findings(parts)],
        }
        if parts.persons:
            found["persons"] = people_record(self, parts)
            found["reliability"] = self.reliability().to_dict()
            found["forms"] = forms_record(self) if parts.scores else None
            found["cuts"] = cuts_record(self, parts) if parts.cuts else None
        return found

    def write(
        self,
        folder: str | Path,
        parts: Parts | None = None,
        *,
        parquet: bool = False,
        inputs: Sequence[str] = (),
        further: Mapping[str, Any] | None = None,
    ) -> list[Path]:
        """`items.csv`, `thresholds.csv`, `persons.csv` and the other tables, and `fit.json`: all of them, or nothing.

        A name that ends in .xlsx is that of a workbook with these as sheets. `inputs` are files that nothing may take
        the place of; `further` goes into the record.
        """
        parts = parts or self.parts(writing=True)
        record = {**self.record(parts), **(further or {})}
        writers, stale = ordered_files(Path(folder), self.tables(parts), record, self.responses.engine, parquet=parquet)
        return write_each(writers, inputs=inputs, stale=stale, parted=may_be_parted(Path(folder)))

    def report(self, path: str | Path, parts: Parts | None = None, *, list_persons: bool = False) -> Path:
        """Write everything to one HTML file that needs no network; nobody is named in it unless `list_persons`."""
        from spectral_irt.report.ordered_report import write_ordered_report

        return write_ordered_report(self, Path(path), parts, list_persons=list_persons)
