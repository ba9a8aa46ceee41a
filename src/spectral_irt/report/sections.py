"""The sections of a report in their order. A section is a function of the material; a new one is one more line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spectral_irt.report.about import findings, summary, what_was_fitted
from spectral_irt.report.blocks import Lines, Missing, Section
from spectral_irt.report.data import Material
from spectral_irt.report.fit import dimensions, fit
from spectral_irt.report.groups import groups
from spectral_irt.report.items import curves, item_table, thresholds, wright
from spectral_irt.report.methods import methods
from spectral_irt.report.people import groups_and_classes, people, scores

# Each gives a section; or says what is missing, and why; or None where there is nothing to say.
SECTIONS: tuple[Callable[[Material], Section | Missing | None], ...] = (
    what_was_fitted,
    findings,
    summary,
    wright,
    item_table,
    curves,
    thresholds,
    people,
    scores,
    groups_and_classes,
    fit,
    dimensions,
    groups,
    methods,
)


def sections_of(material: Material) -> list[Section]:
    """What there is to say about this material, and at the end what there is not."""
    return with_missing([section(material) for section in SECTIONS])


def with_missing(found: Sequence[Section | Missing | None]) -> list[Section]:
    """The sections that there are, and one that says what is missing."""
    missing = tuple(f"{one.title}: {one.why}" for one in found if isinstance(one, Missing))
    shown = [one for one in found if isinstance(one, Section)]
    return [*shown, Section("missing", "Not in this report", (Lines(missing),))] if missing else shown
