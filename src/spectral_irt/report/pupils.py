"""Pages for pupils: a class list for the teacher, then for each person a page with nothing about anybody else.

A person's points are out of all that could be had on the questions of the test, or of the person's booklet: a question
without an answer gives no point, and is left out of the measure. Each page begins on a sheet of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.analysis.cache import columns_of
from spectral_irt.data.block import Floats, Mask
from spectral_irt.errors import OptionError
from spectral_irt.files import write_each
from spectral_irt.report.page import HERE, MARK, check_place, own_text, policy, templates, today
from spectral_irt.text import count, number, printable, short

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis

MOST_CELLS = 500_000  # persons times questions: a page that a browser still prints
# Share of all cells with an answer from which, without booklets, everybody is taken to have had every item.
MOSTLY = 0.6
INTERVAL = 1.96  # standard errors to either side: 95%
LOGIT = "A logit is its unit: one more turns even chances on a question (50%) into 73%."


class Result(NamedTuple):
    """What stands on a person's page, and in the row of the class list."""

    person: str
    about: tuple[str, ...]  # the columns about persons that were read
    points: str
    most: str
    percent: str
    measure: str
    interval: str
    blanks: int
    answers: tuple[tuple[str, str, str], ...]  # question, result in words, and the same as a class of the style


def write_pupil_pages(study: Analysis, path: Path, title: str | None = None) -> Path:
    """The class list and the pages of all persons as one HTML file, complete or not at all."""
    check_place(path)
    text = pupil_pages(study, title)
    write_each({path: lambda draft: draft.write_text(text, encoding="utf-8", newline="\n")})
    return path


def pupil_pages(study: Analysis, title: str | None = None) -> str:
    """The class list and the pages of all persons as HTML."""
    check_pupils(study)
    results = results_of(study)
    scale = study.calibration.scale
    in_logits = f"{study._words.trait.capitalize()} (logits)" if scale.is_logits else "Measure"
    style = own_text(HERE / "page.css", HERE / "pupils.css")
    text = templates(HERE).get_template("pupils.html").render(
        mark=MARK,
        title=printable(title or study.responses.source or "Test"),
        day=today(),
        policy=policy("", style),
        style=style,
        measure=in_logits,
        unit=LOGIT if scale.is_logits else "",
        about=[short(name, 40) for name in study._about_persons()],
        results=results,
        mean=_mean_percent(results),
    )  # fmt: skip
    return text.strip().encode("utf-8", "replace").decode("utf-8") + "\n"


def check_pupils(study: Analysis) -> None:
    """An error where there are no such pages: of ratings, and of too many persons for a file to print."""
    if study.facets:
        raise OptionError("pages for pupils are for tests and questionnaires; ratings have none. Leave them out.")
    responses = study.responses
    if responses.n_persons * responses.n_items > MOST_CELLS:
        raise OptionError(
            f"pages for {count(responses.n_persons, 'person')} with {count(responses.n_items, 'question')} are too "
            f"many for one file; persons times questions may be up to {MOST_CELLS:,}. Choose some of the people."
        )


def results_of(study: Analysis) -> list[Result]:
    """The result of every person, in the order of the data."""
    responses = study.responses
    answers = responses.to_dense()
    most = responses.thresholds.max_score.astype(float)
    presented = presented_items(study, np.isfinite(answers))
    persons = columns_of(study.persons)
    scale = study.calibration.scale
    digits = 2 if scale.is_logits else 0
    measure = scale.measure(persons["ability"])
    half = INTERVAL * scale.width(persons["se"])
    about = study._about_persons()
    questions = [short(item, 60) for item in responses.items.tolist()]
    results = []
    for k, person in enumerate(persons["person"].tolist()):
        items = np.flatnonzero(presented[k])
        points = float(np.nansum(answers[k, items]))
        possible = float(most[items].sum())
        percent = ""
        if np.isfinite(answers[k]).any():  # the person was there
            percent = f"{np.floor(100 * points / possible + 0.5):.0f}%"  # a half goes up, as in a spreadsheet
        measure_in_words = ""
        interval = ""
        if np.isfinite(measure[k]) and np.isfinite(half[k]):
            measure_in_words = number(measure[k], digits)
            interval = f"{number(measure[k] - half[k], digits)} to {number(measure[k] + half[k], digits)}"
        results.append(
            Result(
                person=short(person, 60),
                about=tuple(_text(values[k]) for values in about.values()),
                points=f"{points:,.0f}",
                most=f"{possible:,.0f}",
                percent=percent,
                measure=measure_in_words,
                interval=interval,
                blanks=int(np.isnan(answers[k, items]).sum()),
                answers=tuple((questions[i], *_in_words(answers[k, i], most[i])) for i in items.tolist()),
            )
        )
    return results


def presented_items(study: Analysis, answered: Mask) -> NDArray[np.bool_]:
    """Which items each person was given, persons x items: those of the booklet, where there are booklets."""
    booklets = study._booklets()
    everything = not booklets.items and answered.mean() >= MOSTLY
    presented = answered.copy()
    if everything:
        presented[:] = answered.any(axis=0)
    members = booklets.members(answered.shape[1])
    for form in range(len(booklets.items)):
        presented[booklets.form == form] |= members[:, form]
    return presented


def _in_words(category: float, most: float) -> tuple[str, str]:
    """An answer in words, and its class in the style of the page."""
    if np.isnan(category):
        return "no answer", "none"
    if most == 1:
        return ("right", "right") if category else ("wrong", "wrong")
    style = "right" if category == most else "part"
    return f"{category:.0f} of {most:.0f}", style


def _mean_percent(results: list[Result]) -> str:
    """The mean of all percentages, for the class list."""
    shares: Floats = np.array([float(result.percent[:-1]) for result in results if result.percent])
    return f"{shares.mean():.0f}%" if len(shares) else ""


def _text(value: Any) -> str:
    """A cell of a column about persons."""
    missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "" if missing else short(value, 40)
