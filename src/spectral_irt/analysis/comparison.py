"""Two fits side by side, before and after: items, persons, reliability, findings; `study.compare(other)` and
`spectral-irt compare-fits A B`.

Each fit has an origin of its own. The later one is shifted by the mean difference of the items that both have, unless
both have anchors: abilities move with it. The standard error of a difference knows that both fits have persons and
responses in common (`inference/nested.py`); from files, which have no responses, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.likelihood import conditional_likelihood
from spectral_irt.calibration import LOGITS, Calibration, Scale
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError
from spectral_irt.inference.nested import Calibrated, centered_on, difference_covariance
from spectral_irt.tables import Columns, Table, as_html, make_table
from spectral_irt.text import count, listed, number, within

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis
    from spectral_irt.plots.before_after import BeforeAfter


QUICK = 1_000_000  # responses whose exact likelihood is computed
SMALLEST_SHOWN = 0.005  # logits; what is less is 0.00 in the sentence


class Fitted(NamedTuple):
    """One of two fits: its name, calibration, infit of the items, persons with abilities, and the record."""

    name: str
    calibration: Calibration
    infit: Floats
    persons: Columns | None
    record: Mapping[str, Any]


class Line(NamedTuple):
    """A number of both fits."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two fits side by side.

    Attributes
    ----------
    lines : tuple of Line
        Numbers of both fits.
    items, persons : mappings of columns
        Those of `item_table` and `person_table`.
    sentences : tuple of str
        Items that only one has, how far persons moved, and which findings went and came.
    shift : float
        By how much the later fit was shifted, in logits.
    scale, cuts
        The scale of report of the first fit, and points of it between classes of persons.
    """

    lines: tuple[Line, ...]
    items: Columns
    persons: Columns
    sentences: tuple[str, ...]
    shift: float
    frame_kind: str | None = None
    scale: Scale = LOGITS
    cuts: tuple[float, ...] = ()

    def item_table(self) -> Table:
        """The items of both fits: `item, difficulty_before, difficulty_after, difference, se, z, infit_before,
        infit_after`. The difference is taken on one scale; `se` is its standard error where it is known."""
        return make_table(self.items, self.frame_kind)

    def person_table(self) -> Table:
        """The persons of both fits: `person, ability_before, ability_after, difference`, on one scale."""
        return make_table(self.persons, self.frame_kind)

    def plot(self) -> BeforeAfter:
        """Persons before against after, as a display with `frame()`, `plot()` and `save(path)`; with cuts, those who
        change class are orange."""
        from spectral_irt.plots.before_after import BeforeAfter

        return BeforeAfter.of(self.persons, self.cuts, self.scale, self.frame_kind)

    def _repr_html_(self) -> str:
        """For notebooks: numbers of both fits, and the sentences."""
        columns = {name: np.array([getattr(line, name) for line in self.lines], dtype=object) for name in Line._fields}
        return as_html("Two fits side by side", columns, lines=self.sentences, rows=len(self.lines))

    def __str__(self) -> str:
        width = max(len(line.what) for line in self.lines)
        rows = [f"{line.what:{width}}  {line.before:>10}  {line.after:>10}" for line in self.lines]
        return "\n".join([f"{'':{width}}  {'before':>10}  {'after':>10}", *rows, *self.sentences])


def fitted_analysis(study: Analysis, name: str) -> Fitted:
    parts = study.parts()
    infit = np.full(study.calibration.n_items, np.nan)
    if parts.fit:
        infit = columns_of(study.item_fit)["infit"]
    return Fitted(name, study.calibration, infit, columns_of(study.persons), study.record(parts))


def compare(first: Any, second: Any, cuts: Sequence[float] = ()) -> Comparison:
    """Two fits side by side: items, persons, reliability, findings, and likelihoods where the responses are the same.

    Parameters
    ----------
    first, second : Analysis, fitted estimator, or Calibration
        The earlier and the later one. Without responses, which only an analysis has, items alone are compared, without
        standard errors of the differences.
    cuts : numbers, optional
        Points of the scale of report; how many persons change class there.

    Examples
    --------
    >>> import spectral_irt as si
    >>> lsat = si.datasets.load_lsat()
    >>> comparison = si.compare(si.SpectralRasch().fit(lsat), si.MarginalRasch().fit(lsat))
    >>> bool(abs(comparison.items["difference"]).max() < 0.002)  # conditional against marginal likelihood
    True
    """
    from spectral_irt.analysis.analysis import Analysis

    if isinstance(first, Analysis) and isinstance(second, Analysis):
        return compare_studies(first, second, cuts)
    before, after = _without_responses(first, "before"), _without_responses(second, "after")
    sizes = Line("items", *(f"{each.calibration.n_items:,}" for each in (before, after)))
    return comparison_of(before, after, cuts=cuts, more=[sizes])


def _without_responses(fit: Any, name: str) -> Fitted:
    calibration = fit if isinstance(fit, Calibration) else getattr(fit, "calibration", None)
    if calibration is None:
        calibration = getattr(fit, "calibration_", None)
    if not isinstance(calibration, Calibration):
        raise OptionError(f"only fits are compared, and {type(fit).__name__} is none: fit it first.")
    return Fitted(name, calibration, np.full(calibration.n_items, np.nan), None, {})


def compare_studies(first: Analysis, second: Analysis, cuts: Sequence[float] = ()) -> Comparison:
    """The comparison of two analyses, with standard errors of differences and likelihoods where these are known."""
    if first.facets or second.facets:
        raise OptionError("fits of ratings with facets are not compared yet; compare their tables of items and raters.")
    before, after = fitted_analysis(first, "before"), fitted_analysis(second, "after")
    places = _common_items(before, after)
    covariance = None
    measured = first.calibration.measured[places[0]] & second.calibration.measured[places[1]]
    if measured.all():
        calibrated = [Calibrated(each.calibration, each.responses, each.sampling) for each in (first, second)]
        covariance = difference_covariance(calibrated[0], calibrated[1], places)
    likelihood_lines: tuple[Line, ...] = ()
    small = first.responses.n_responses <= QUICK  # of more, every pattern of responses takes long
    if small and first.responses.digest() == second.responses.digest():
        likelihood_lines = tuple(_likelihood_lines(first, second))
    return comparison_of(before, after, cuts=cuts, covariance=covariance, more=likelihood_lines)


def comparison_of(
    first: Fitted,
    second: Fitted,
    *,
    cuts: Sequence[float] = (),
    covariance: Floats | None = None,
    more: Sequence[Line] = (),
) -> Comparison:
    """The comparison of two fits; `covariance` is that of the differences of the items that both have."""
    places = _common_items(first, second)
    before = first.calibration.difficulty[places[0]]
    after = second.calibration.difficulty[places[1]]
    both_anchored = first.calibration.anchored.any() and second.calibration.anchored.any()
    shift = 0.0 if both_anchored else float(np.mean(before - after))
    difference = after + shift - before
    se = np.full(len(before), np.nan)
    if covariance is not None:
        weights = np.full(len(before), 1 / len(before))
        se = np.sqrt(np.maximum(np.diag(centered_on(covariance, weights)), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(se > 0, difference / se, np.nan)
    items: Columns = {
        "item": first.calibration.labels[places[0]],
        "difficulty_before": before,
        "difficulty_after": after + shift,
        "difference": difference,
        "se": se,
        "z": z,
        "infit_before": first.infit[places[0]],
        "infit_after": second.infit[places[1]],
    }
    persons = _persons(first, second, shift)
    sentences = [*_only_in_one(first, second), *_moved_items(items), *_moved_persons(persons, cuts, first)]
    sentences += _findings_that_changed(first.record, second.record)
    lines = (*_lines(first.record, second.record), *more)
    scale = first.calibration.scale
    cuts = tuple(cuts)
    return Comparison(lines, items, persons, tuple(sentences), shift, first.calibration.frame_kind, scale, cuts)


def _common_items(first: Fitted, second: Fitted) -> tuple[Ints, Ints]:
    """Positions in both of the items that both have a difficulty of, in as many categories."""
    place = positions(first.calibration.labels, second.calibration.labels)
    sizes = second.calibration.layout.max_score[place]
    same = (place >= 0) & (first.calibration.layout.max_score == sizes)
    same &= first.calibration.known & second.calibration.known[place]
    if same.sum() < 2:
        raise OptionError(
            f"the fits have {count(int(same.sum()), 'item')} in common, with as many categories in both; it takes two. "
            f"One has {listed(first.calibration.labels)}, the other {listed(second.calibration.labels)}."
        )
    return np.flatnonzero(same), place[same]


def _persons(first: Fitted, second: Fitted, shift: float) -> Columns:
    if first.persons is None or second.persons is None:
        nothing = np.zeros(0)
        return {"person": nothing, "ability_before": nothing, "ability_after": nothing, "difference": nothing}
    place = positions(first.persons["person"], second.persons["person"])
    both = place >= 0
    before = first.persons["ability"][both]
    after = second.persons["ability"][place[both]] + shift
    return {
        "person": first.persons["person"][both],
        "ability_before": before,
        "ability_after": after,
        "difference": after - before,
    }


def _only_in_one(first: Fitted, second: Fitted) -> list[str]:
    sentences = []
    for one, other in ((first, second), (second, first)):
        absent = one.calibration.labels[positions(one.calibration.labels, other.calibration.labels) < 0]
        if len(absent):
            sentences.append(f"Only in {one.name!r}: {count(len(absent), 'item')}, {listed(absent)}.")
    return sentences


def _moved_items(items: Columns) -> list[str]:
    largest = int(np.argmax(np.abs(items["difference"])))
    name = listed(items["item"][[largest]])
    size = items["difference"][largest]
    if abs(size) < SMALLEST_SHOWN:
        return ["Items: no difficulty changed by 0.01 logits or more."]
    error = "" if np.isnan(items["se"][largest]) else f" (se {items['se'][largest]:.2f})"
    return [f"Items: the difficulty that changed most is that of {name}, by {size:z.2f} logits{error}."]


def _moved_persons(persons: Columns, cuts: Sequence[float], first: Fitted) -> list[str]:
    in_both = np.isfinite(persons["difference"])
    if in_both.sum() < 2:
        return []
    before, after = persons["ability_before"][in_both], persons["ability_after"][in_both]
    largest = int(np.argmax(np.abs(after - before)))
    correlation = np.corrcoef(before, after)[0, 1]
    sentences = [
        f"Persons: correlation {correlation:.3f}; the largest shift is {abs(after - before)[largest]:.2f} logits."
    ]
    if cuts:
        scale = first.calibration.scale
        classes = [np.searchsorted(np.sort(cuts), scale.measure(each), side="right") for each in (before, after)]
        changed = int(np.sum(classes[0] != classes[1]))
        at = ", ".join(f"{cut:g}" for cut in cuts)
        sentences.append(f"{changed:,} of {count(len(before), 'person')} change class at {at}.")
    return sentences


def _findings_that_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    codes = [_warnings_of(record) for record in (before, after)]
    sentences = []
    for what, some in (("Warnings that went", codes[0] - codes[1]), ("Warnings that came", codes[1] - codes[0])):
        if some:
            sentences.append(f"{what}: {', '.join(sorted(some)).replace('_', ' ')}.")
    return sentences


def _warnings_of(record: Mapping[str, Any]) -> set[str]:
    """The codes of the findings that are more than notes."""
    return {one["code"] for one in record.get("findings", ()) if one.get("severity") != "note"}


# What is compared of two records: its name, where it is, and digits.
NUMBERS = (
    ("persons", ("counts", "persons"), 0),
    ("items", ("counts", "items"), 0),
    ("responses", ("counts", "responses"), 0),
    ("EAP reliability", ("reliability", "eap_reliability"), 3),
    ("separation reliability (PSI)", ("reliability", "persons", "reliability"), 3),
    ("mean ability", ("persons", "mean"), 2),
    ("targeting", ("reliability", "targeting"), 2),
    ("sd of abilities", ("persons", "sd"), 2),
    ("items that underfit", ("item_fit", "underfit"), 0),
    ("items that overfit", ("item_fit", "overfit"), 0),
)


def _lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Line]:
    lines = []
    for what, path, digits in NUMBERS:
        values = [within(record, *path) for record in (before, after)]
        if any(value is not None for value in values):
            lines.append(Line(what, *(number(value, digits) for value in values)))
    if "findings" not in before or "findings" not in after:
        return lines
    for severity in ("warning", "note"):
        counts = [
            sum(one.get("severity") == severity for one in record.get("findings", ())) for record in (before, after)
        ]
        lines.append(Line(f"findings: {severity}s", *(f"{each:,}" for each in counts)))
    return lines


def _likelihood_lines(first: Analysis, second: Analysis) -> list[Line]:
    """Conditional likelihood, AIC and BIC of two fits of the same responses."""
    if not (first.calibration.known.all() and second.calibration.known.all()):
        return []
    values = [conditional_likelihood(each) for each in (first, second)]
    return [
        Line("conditional log-likelihood", *(f"{value.loglik:,.1f}" for value in values)),
        Line("parameters", *(f"{value.n_parameters:,}" for value in values)),
        Line("AIC (conditional)", *(f"{value.aic:,.1f}" for value in values)),
        Line("BIC (conditional)", *(f"{value.bic:,.1f}" for value in values)),
    ]
