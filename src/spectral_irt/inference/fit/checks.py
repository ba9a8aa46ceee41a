"""The checks of model fit that are made by default, and the sentences about them.

Five checks, each at 1%, so that a good data set has any alarm in 5% of cases: misfitting items, items harder for the
less able than for the more able, dependent items, a second dimension, misfitting people. (`findings` has more, which
alarm on good data far more rarely.) When one of the five alarms, `causes.py` names likely causes. `Analysis.checks`
puts them together; summary and report say `Checks.sentence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.dimensions.dimensionality import Dimensionality
from spectral_irt.inference.dimensions.findings import only_above
from spectral_irt.inference.fit.item_fit import LEVEL, MATERIAL
from spectral_irt.inference.fit.person_fit import PersonMisfit, misfit_sentence
from spectral_irt.inference.groups.score_test import RaoTest, size_in_words
from spectral_irt.inference.results import EACH, TOGETHER
from spectral_irt.tables import Columns, as_html
from spectral_irt.text import count, p_value

VISIBLE = 0.5  # off 1: an item that could only be seen to misfit beyond an infit of 1.5 was not checked
WANTED = 0.3  # off 1: what a check should be able to see (the usual rule: 0.7 to 1.3)


def not_significant(what: str, p: float, beside: str = "") -> str:
    """A check that gave no alarm, with the level at which it would have and its p-value.

    >>> not_significant("second dimension", 0.033)
    'no second dimension significant at 1% (p = 0.033)'
    """
    return f"no {what} significant at {EACH:.0%} ({p_value(p)}{beside})"


@dataclass(frozen=True, eq=False, repr=False)
class Checks:
    """What the checks found: the fit of the items (`columns`), the less against the more able half, dependent items and
    a second dimension (`shared`), people who misfit, each None where data are too few or too many; and how far off 1
    the infit of each item must be to be found with 80% probability (`limits`)."""

    columns: Columns
    halves: RaoTest | None
    shared: Dimensionality | None
    people: PersonMisfit | None
    limits: Floats
    critical: int
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        return f"<Checks: {self.sentence()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, the findings, and the fit of the first items."""
        return as_html(self.sentence(), self.columns, lines=map(str, self.findings))

    @property
    def alarmed(self) -> bool:
        """Whether any check says that something is wrong."""
        return "warning" in map(attrgetter("severity"), self.findings)

    def sentence(self) -> str:
        """Everything in one line."""
        parts = [self._items_sentence(), *self._halves_sentences(), *self._dimension_sentences()]
        if self.people is not None:
            parts.append(misfit_sentence(self.people))
        return "; ".join(parts)

    def _items_sentence(self) -> str:
        infit = self.columns["infit_conditional"]
        has_fit = np.isfinite(infit) & np.isfinite(self.limits)
        judged = has_fit & np.isfinite(self.columns["misfit_p"])
        if not judged.any():
            return "no item has answers that could misfit"
        for finding in self.findings:
            if finding.code == "misfitting_items":
                return finding.sentence.rstrip(".")
        blind = self.limits > VISIBLE
        n_blind = int(blind.sum())
        if 2 * n_blind > np.isfinite(self.limits).sum():
            return f"with {np.median(self.columns['n'][blind]):,.0f} answers per item, misfit could not be seen"
        items = "single items" if self.alarmed else "items"
        text = f"no misfit of {items} seen (conditional infit {infit[judged].min():.2f} to {infit[judged].max():.2f}"
        n_displaced = int(np.sum(has_fit & ~judged))
        if n_displaced:
            text += f"; {count(n_displaced, 'displaced anchor')} not judged"
        if n_blind:
            text += f"; {n_blind:,} of {judged.sum():,} have too few answers to tell"
        if self.critical:
            return f"{text}){self._outside_limits()}"
        return f"{text}{self._slight_misfit()})"

    def _slight_misfit(self) -> str:
        """Items whose infit differs from 1 significantly, by less than matters."""
        size = np.abs(self.columns["infit_conditional"] - 1)
        slight = int(np.sum((self.columns["misfit_p"] < EACH) & (size < MATERIAL)))
        if not slight:
            return ""
        return f"; {count(slight, 'item')} significantly off 1, by less than {MATERIAL:g}"

    def _outside_limits(self) -> str:
        """How many items are outside the limits of the draws, and how many would be by chance."""
        infit = self.columns["infit_conditional"]
        low = self.columns["infit_conditional_low"]
        high = self.columns["infit_conditional_high"]
        judged = np.isfinite(infit + low + high)
        outside = judged & ((infit < low) | (infit > high))
        by_chance = LEVEL * judged.sum()
        return f", {np.sum(outside):,} outside their own 95% limits, where chance puts {by_chance:.1f}"

    def _halves_sentences(self) -> list[str]:
        if self.halves is None:
            return []
        if self.halves.p >= EACH:
            return [not_significant("difference between low and high scorers", self.halves.p)]
        size = size_in_words(self.halves.spread)
        return [f"item difficulties differ between low and high scorers ({size}, {p_value(self.halves.p)})"]

    def _dimension_sentences(self) -> list[str]:
        """About a second dimension, and about dependent items."""
        shared = self.shared
        if shared is None:
            return ["too few people or items to see a second dimension or dependent items"]
        slopes = " once slopes may differ" if shared.by_slopes else ""
        parts = []
        if shared.two_dimensions:
            contrast = "more than one dimension"
            if shared.weak_contrast:
                contrast = f"a weak contrast of {shared.strength:.1f} items"
            parts.append(f"{contrast} ({p_value(shared.contrast_p)})")
        elif not shared.contrast:  # else it is a contrast of the dependent items, which are named next
            parts.append(not_significant(f"second dimension{slopes}", shared.contrast_p))
        if shared.dependent:
            pairs = count(int(shared.dependence.dependent.sum()), "pair")
            parts.append(f"{'weak ' if shared.weak_pairs else ''}local dependence in {pairs} of items")
        else:
            beside = only_above(shared.dependence.detectable)
            parts.append(not_significant(f"local dependence{slopes}", shared.pairs_p, beside))
        if shared.sampled:
            parts[-1] += f" in a sample of {shared.n_people:,} people and {len(shared.items):,} items"
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The checks as data, but for the items and the halves, which have places of their own."""
        limits = self.limits[np.isfinite(self.limits)]
        return {
            "level": TOGETHER,
            "level_each": EACH,
            "detectable_infit": float(np.median(limits)) if len(limits) else None,
            "shared": None if self.shared is None else self.shared.to_dict(),
            "erratic_people": None if self.people is None else self.people.to_dict(),
        }


def not_visible(columns: Columns, limits: Floats, blind: Ints) -> Finding:
    """A note on items whose misfit could not have been seen."""
    n_items = int(np.isfinite(limits).sum())
    answers = float(np.median(columns["n"][blind]))
    limit = float(np.median(limits[blind]))
    needed = float(np.median(columns["n"][blind] * (limits[blind] / WANTED) ** 2))
    who = "" if len(blind) == n_items else f" of {len(blind):,} of {n_items:,} items"
    return Finding(
        "misfit_not_visible",
        "note",
        f"With {answers:,.0f} answers per item, misfit{who} could not be seen: only an infit beyond "
        f"{1 + limit:.1f} (1 fits the model) would be found.",
        f"About {float(f'{needed:.1g}'):,.0f} answers per item would show an infit of {1 + WANTED:g}.",
        tuple(columns["item"][blind].tolist()),
    )
