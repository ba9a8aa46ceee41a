"""What reporting guidelines ask of a Rasch analysis, point by point, each with its answer and where it stands.

`ruler` is about the subject of the RULER statement (Mallinson et al. 2022, Arch. Phys. Med. Rehabil. 103, 1477-1486),
whose 59 recommendations authors should look up. The points are in our words and our order, without its numbers, and
rest on the abstract of the statement and on the guidelines of the Journal of Rehabilitation Medicine: what an analysis
can answer, and what its authors alone know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spectral_irt.errors import OptionError
from spectral_irt.report.blocks import ReportData, Section, Table, Text
from spectral_irt.report.methods import SANDWICH
from spectral_irt.text import count, number, p_value, within

CHECKLISTS = ("ruler",)
AUTHORS = "For the authors to say."
NO_CHANGES = "none"


class Point(NamedTuple):
    """What is asked, where in the report the answer stands, and the answer; None: it was not done."""

    asked: str
    where: str
    answer: Callable[[Mapping[str, Any]], str | None] | None
    not_done: str = ""


def checklist_of(data: ReportData) -> Section:
    """The points as tables, by subject; nothing where no checklist was asked for."""
    if data.checklist is None:
        return Section(())
    if data.checklist not in CHECKLISTS:
        raise OptionError(f"`checklist` is {data.checklist!r}; it can be {' or '.join(CHECKLISTS)}.")
    record = {**data.record, "binary": data.binary, "texts": len(data.study.responses.item_texts)}
    record["disordered"] = [one for one in record["findings"] if one.get("code") == "thresholds_out_of_order"]
    blocks: list[Any] = [
        Text(
            "What the RULER statement (Mallinson et al., 2022, Archives of Physical Medicine and Rehabilitation, 103, "
            "1477-1486) and journals of the field want reported, in words of our own and not by the numbers of its 59 "
            "recommendations, which authors should go through before they submit."
        )
    ]
    for subject, points in SUBJECTS.items():
        rows = tuple((point.asked, *_answered(point, record)) for point in points)
        blocks.append(Table(subject, ("Point", "Answer", "Where"), rows))
    return Section(tuple(blocks))


def _answered(point: Point, record: Mapping[str, Any]) -> tuple[str, str]:
    if point.answer is None:
        return AUTHORS, ""
    answer = point.answer(record)
    if answer is None:
        return f"Not done, because {point.not_done}.", ""
    if answer == NO_CHANGES:  # a section that the report does not have then
        return answer, ""
    return answer, point.where


def _model(record: Mapping[str, Any]) -> str:
    names = {"rasch": "Rasch model for right and wrong answers", "pcm": "partial credit model"}
    return names.get(str(record.get("model")), "rating scale model") + "; the report has it in Methods"


def _counts(record: Mapping[str, Any]) -> str:
    counts = record["counts"]
    return (
        f"{count(counts['persons'], 'person')}, {count(counts['items'], 'item')}, {counts['responses']:,} responses, "
        f"{counts['thresholds']:,} thresholds"
    )


def _missing(record: Mapping[str, Any]) -> str:
    counts = record["counts"]
    if record.get("facets"):
        return "ratings that were not made stay missing, and nothing is imputed"
    cells = counts["persons"] * counts["items"]
    missing = 1 - counts["responses"] / cells if cells else 0.0
    return f"{100 * missing:.1f}% of person-by-item cells without a response; they stay missing, and nothing is imputed"


def _extremes(record: Mapping[str, Any]) -> str | None:
    persons = record.get("persons")
    if not persons or persons.get("floor") is None:
        return None
    return f"floor {100 * persons['floor']:.1f}%, ceiling {100 * persons['ceiling']:.1f}% of the persons"


def _targeting(record: Mapping[str, Any]) -> str | None:
    value = within(record, "reliability", "targeting")
    if value is None:
        return None
    return f"mean measure less mean item location {number(value)} logits"


def _reliability(record: Mapping[str, Any]) -> str | None:
    reliability = record.get("reliability")
    if not reliability:
        return None
    names = {"eap_reliability": "EAP reliability", "kr20": "KR-20", "alpha": "Cronbach's alpha"}
    parts = [f"{name} {number(reliability[key])}" for key, name in names.items() if reliability.get(key) is not None]
    for key, name in (("persons", "PSI without extreme scores"), ("persons_with_extremes", "with them")):
        if within(reliability, key, "reliability") is not None:
            parts.append(f"{name} {number(reliability[key]['reliability'])}")
    return "; ".join(parts)


def _strata(record: Mapping[str, Any]) -> str | None:
    strata = within(record, "reliability", "persons", "strata")
    if strata is None:
        return None
    return f"{number(strata, 1)} levels of persons"


def _item_separation(record: Mapping[str, Any]) -> str | None:
    value = within(record, "reliability", "items", "reliability")
    if value is None:
        return None
    return f"item separation reliability {number(value)}"


def _fit(record: Mapping[str, Any]) -> str | None:
    item_fit = record.get("item_fit")
    if not item_fit:
        return None
    return (
        f"{item_fit['underfit']:,} underfit and {item_fit['overfit']:,} overfit of {count(item_fit['judged'], 'item')}"
    )


def _limits(record: Mapping[str, Any]) -> str | None:
    item_fit = record.get("item_fit")
    if not item_fit:
        return None
    if item_fit.get("draws"):
        return f"95% limits of each item and family-wise p-values from {item_fit['draws']:,} draws given the scores"
    return "no rule of thumb: p-values given the scores, adjusted for all items, below 1% and off 1 by 0.1 or more"


def _item_trait(record: Mapping[str, Any]) -> str | None:
    item_trait = record.get("item_trait")
    if not item_trait:
        return None
    chi2 = f"χ²({item_trait['df']}) = {number(item_trait['chi2'], 1)}, {p_value(item_trait['p'])}"
    return f"{chi2}; {count(len(item_trait['intervals']), 'class interval')}"


def _person_fit(record: Mapping[str, Any]) -> str | None:
    misfit = within(record, "fit_checks", "erratic_people")
    if not misfit:
        return None
    return f"{100 * misfit['share']:.1f}% misfit, {100 * misfit['chance']:.1f}% expected, {p_value(misfit['p'])}"


def _contrast(record: Mapping[str, Any]) -> str | None:
    dimensionality = within(record, "fit_checks", "shared")
    if not dimensionality:
        return None
    return f"first contrast {number(dimensionality['eigenvalue'])} items, {p_value(dimensionality['contrast_p'])}"


def _variance(record: Mapping[str, Any]) -> str | None:
    dimensionality = within(record, "fit_checks", "shared")
    if not dimensionality:
        return None
    return f"{100 * dimensionality['variance_explained']:.1f}% explained by the measures"


def _smith(record: Mapping[str, Any]) -> str | None:
    smith_test = record.get("smith_test")
    if not smith_test:
        return None
    interval = f"{100 * smith_test['ci_low']:.1f}% to {100 * smith_test['ci_high']:.1f}%"
    return f"{100 * smith_test['share']:.1f}% of t-tests significant, exact 95% interval {interval}"


def _dependence(record: Mapping[str, Any]) -> str | None:
    dimensionality = within(record, "fit_checks", "shared")
    if not dimensionality:
        return None
    n_dependent = dimensionality["dependent_pairs"]
    n_pairs = count(dimensionality["n_pairs"], "pair")
    pairs = f"{n_dependent:,} of {n_pairs} dependent ({p_value(dimensionality['pairs_p'])})"
    return f"{pairs}; mean Q3 {number(dimensionality['mean_q3'], 3)}, Q3* {number(dimensionality['q3_star'], 3)}"


def _dif(record: Mapping[str, Any]) -> str | None:
    dif = record.get("dif")
    if not dif:
        return None
    comparisons = dif if isinstance(dif, list) else [dif]
    return "; ".join(
        f"by {one['column']}: {count(one['classes'].get('B', 0), 'item')} in class B, {one['classes'].get('C', 0)} in "
        "class C"
        for one in comparisons
    )


def _thresholds(record: Mapping[str, Any]) -> str | None:
    if record["binary"]:
        return "right and wrong answers have one threshold each"
    if not record["disordered"]:
        return "all in order"
    return str(record["disordered"][0]["sentence"])


def _changes(record: Mapping[str, Any]) -> str:
    moves = record.get("moves") or []
    if not moves:
        return NO_CHANGES
    return f"{count(len(moves), 'change')}, in the order in which they were made"


def _invariance(record: Mapping[str, Any]) -> str | None:
    model_test = record.get("model_test")
    if not model_test:
        return None
    return f"χ²({model_test['df']}) = {number(model_test['statistic'], 1)}, {p_value(model_test['p'])}"


def _errors(record: Mapping[str, Any]) -> str | None:
    method = record.get("se_method")
    return "robust (sandwich over persons)" if method in SANDWICH else method


def _scale(record: Mapping[str, Any]) -> str:
    return "logits" if not record.get("scale") else "logits, and the scale of report"


def _software(record: Mapping[str, Any]) -> str:
    return f"spectral-irt {record['versions'].get('spectral_irt', '')}; {record.get('data_digest') or 'no fingerprint'}"


def _texts(record: Mapping[str, Any]) -> str | None:
    return f"of {count(record['texts'], 'item')}" if record["texts"] else None


NO_PERSONS = "persons were left out of the analysis, or are too few"
NO_FIT = "the fit of items was left out of the analysis, or the data are too few for it"

SUBJECTS: dict[str, tuple[Point, ...]] = {
    "Aim and instrument": (
        Point("Aim of the study, and why Rasch measurement", "", None),
        Point("The construct, and for whom and for what the measure is meant", "", None),
        Point("How the instrument was made, its versions, language and mode", "", None),
        Point("Texts of the items", "Items", _texts, "the data have no texts of the items"),
        Point("Response categories and how they are scored", "How the data were read", lambda record: "as read"),
    ),
    "Persons and data": (
        Point("Setting, recruitment, inclusion, ethics", "", None),
        Point("Description of the persons", "", None),
        Point("Reason for the sample size", "", None),
        Point("Persons, items, responses", "Summary", _counts),
        Point("Missing responses, and what was done about them", "Summary", _missing),
        Point("Persons with extreme scores; floor and ceiling", "Summary", _extremes, NO_PERSONS),
    ),
    "Model and estimation": (
        Point("The model and its reason", "Methods", _model),
        Point("How item and person parameters were estimated", "Methods", lambda record: "in words, with references"),
        Point("Program, version, and what makes the analysis again", "Methods", _software),
        Point("Standard errors of item locations", "Items", _errors, "they were left out of the fit"),
        Point("Unit of the measures", "From score to measure", _scale),
        Point("What was changed before the final fit (items, categories, persons)", "What was changed", _changes),
    ),
    "Categories and thresholds": (
        Point("Thresholds in order", "Items", _thresholds),
        Point(
            "Frequencies and mean measures of categories",
            "Appendix",
            lambda record: None if record["binary"] else "of every category",
            "answers are right or wrong",
        ),
    ),
    "Fit": (
        Point("Fit of items, and what was done about misfit", "Does the model fit?", _fit, NO_FIT),
        Point("Critical values of fit", "Does the model fit?", _limits, NO_FIT),
        Point("Item-trait interaction over class intervals", "Does the model fit?", _item_trait, NO_FIT),
        Point("Fit of persons", "Does the model fit?", _person_fit, NO_FIT),
        Point("Item locations alike for low and high scorers", "Does the model fit?", _invariance, NO_FIT),
    ),
    "Dimensionality and local dependence": (
        Point("Principal components of residuals", "Dimensionality", _contrast, NO_FIT),
        Point("Variance explained", "Dimensionality", _variance, NO_FIT),
        Point(
            "t-tests of measures by two subsets of items (Smith)",
            "Dimensionality",
            _smith,
            "there are too few persons or items on one side of the first contrast",
        ),
        Point("Local dependence (Q3), with its critical value", "Dimensionality", _dependence, NO_FIT),
    ),
    "Invariance": (
        Point(
            "Differential item functioning, by which groups",
            "Differential item functioning",
            _dif,
            "no groups of persons were compared",
        ),
    ),
    "Precision and targeting": (
        Point("Reliability of persons, with and without extreme scores", "Summary", _reliability, NO_PERSONS),
        Point("Levels of persons that can be told apart", "Summary", _strata, NO_PERSONS),
        Point("Separation of items", "Summary", _item_separation, NO_PERSONS),
        Point("Targeting", "Summary", _targeting, NO_PERSONS),
        Point("Map of persons and items", "People and items on one scale", lambda record: "a figure"),
    ),
    "Use of the measure": (
        Point(
            "Table from raw score to measure, with standard errors",
            "From score to measure",
            lambda record: "a table for each form that persons answered",
        ),
        Point("Interpretation, limits, clinical use, what to do next", "", None),
    ),
}
