"""The analysis after a fit in a few lines: people, fit, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectral_irt.cli.analysis import LEVEL, Results

if TYPE_CHECKING:
    from rich.console import Console

    from spectral_irt.inference.reliability import Reliability

SAID = ("misfitting_items", "differential_items", "no_differential_items")  # findings that the lines say


def show_summary(out: Console, results: Results) -> None:
    """A line or two for each part of the analysis that was done; nothing otherwise."""
    from spectral_irt.cli.display import say, show_lines

    lines = summary(results)
    if lines:
        show_lines(out, lines)
        say(out)


def summary(results: Results) -> list[tuple[str, str]]:
    """What there is to say, under the name of each part."""
    lines = []
    if results.reliability is not None:
        lines.append(("people", people(results.reliability)))
    if results.item_fit is not None:
        lines.append(("fit", _fit(results)))
    for column, dif in results.dif.items():
        sentences = [found.sentence for found in dif.findings if found.code in SAID]
        lines.append(("groups", f"{column}: {' '.join(sentences)}"))
    return lines


def people(found: Reliability) -> str:
    """Reliability, where the people are, and how many are off the scale."""
    persons, everyone = found.persons, found.persons_with_extremes
    parts = []
    if persons.reliability > 0:
        parts.append(f"reliability {persons.reliability:.2f} (separation {persons.separation:.2f})")
    elif np.isfinite(persons.reliability):
        parts.append("reliability 0 (errors exceed the spread)")
    if found.kr20 is not None:
        parts.append(f"KR-20 {found.kr20:.2f}")
    if np.isfinite(everyone.mean):
        parts.append(f"mean ability {everyone.mean:z.2f}, sd {everyone.sd:.2f}")
    extreme = found.n_lowest + found.n_highest
    parts.append(f"{extreme:,} extreme score{'' if extreme == 1 else 's'}")
    return ", ".join(parts)


def _fit(results: Results) -> str:
    columns = results.item_fit
    assert columns is not None
    infit = columns["infit_conditional"]
    known = np.isfinite(infit)
    if not known.any():
        return "no item has answers that could misfit"
    flagged = [found.sentence for found in results.findings if found.code == "misfitting_items"]
    if flagged:
        text = flagged[0].rstrip(".")
    else:
        text = f"no item misfits (conditional infit {infit[known].min():.2f} to {infit[known].max():.2f})"
    test = results.model_test
    if test is not None and np.isfinite(test.p):
        same = "as hard for the less able as for" if test.p >= LEVEL else "not equally hard for the less and"
        text += f"; items are {same} the more able (p {_p(test.p)})"
    return text


def _p(p: float) -> str:
    return f"= {p:.2f}" if p >= 0.095 else f"= {p:.3f}" if p >= 0.001 else "< 0.001"
