"""Does it fit? The checks that are made by default, what they found, and what to say.

Five checks, each at 1%, so that a good data set has any alarm in 5% of cases: misfitting items, items harder for the
less able than for the more able, dependent items, a second dimension, misfitting people. (`findings` has more, which
alarm on good data far more rarely.) When one of the five alarms, likely causes are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from spectral_irt.data import Finding
from spectral_irt.data.block import Floats, Ints
from spectral_irt.inference.dimensions.dimensionality import Dimensionality, unseen_dependence
from spectral_irt.inference.fit.item_fit import LEVEL, MATERIAL
from spectral_irt.inference.fit.person_fit import PersonMisfit, misfit_sentence
from spectral_irt.inference.groups.score_test import RaoTest
from spectral_irt.inference.results import EACH, TOGETHER
from spectral_irt.tables import Columns
from spectral_irt.text import count, p_value

VISIBLE = 0.5  # off 1: an item that could only be seen to misfit beyond an infit of 1.5 was not checked
WANTED = 0.3  # off 1: what a check should be able to see (the usual rule: 0.7 to 1.3)


@dataclass(frozen=True, eq=False)
class Checks:
    """What the checks found: the fit of the items (`columns`), the less against the more able half, dependent items and
    a second dimension (`shared`), people who misfit, each None where data are too few or too many; and how far off 1
    the infit of each item must be to be found with 80% probability (`limits`)."""

    columns: Columns
    halves: RaoTest | None
    shared: Dimensionality | None
    people: PersonMisfit | None
    limits: Floats
    bootstrap: int
    findings: tuple[Finding, ...]

    @property
    def alarmed(self) -> bool:
        """Whether any check says that something is wrong."""
        return "warning" in map(attrgetter("severity"), self.findings)

    def sentence(self) -> str:
        """Everything in one line."""
        parts = [self._items_said()]
        if self.halves is not None and self.halves.p < EACH:
            off = f"by {self.halves.spread:.2f} logits, {p_value(self.halves.p)}"
            parts.append(f"item difficulties differ between low and high scorers ({off})")
        elif self.halves is not None:
            parts.append(f"no difference between low and high scorers seen ({p_value(self.halves.p)})")
        parts += self._shared_said()
        if self.people is not None:
            parts.append(misfit_sentence(self.people.share, self.people.chance, self.people.p))
        return "; ".join(parts)

    def _items_said(self) -> str:
        infit = self.columns["infit_conditional"]
        known = np.isfinite(infit) & np.isfinite(self.limits)
        if not known.any():
            return "no item has answers that could misfit"
        for found in self.findings:
            if found.code == "misfitting_items":
                return found.sentence.rstrip(".")
        unseen = self.limits > VISIBLE
        blind = int(unseen.sum())
        if 2 * blind > np.isfinite(self.limits).sum():
            return f"with {np.median(self.columns['n'][unseen]):,.0f} answers per item, misfit could not be seen"
        text = f"no misfit of {'single ' if self.alarmed else ''}items seen"
        text += f" (conditional infit {infit[known].min():.2f} to {infit[known].max():.2f}"
        text += f"; {blind:,} of {known.sum():,} have too few answers to tell)" if blind else ")"
        slight = int(np.sum((self.columns["misfit_p"] < EACH) & (np.abs(infit - 1) < MATERIAL)))
        if slight and not self.bootstrap:
            text += f", though {slight:,} {'is' if slight == 1 else 'are'} off by less than {MATERIAL:g} beyond chance"
        if self.bootstrap:
            low, high = self.columns["infit_conditional_low"], self.columns["infit_conditional_high"]
            outside, judged = (infit < low) | (infit > high), np.isfinite(infit + low + high)
            by_chance = LEVEL * judged.sum()
            text += f", {np.sum(outside & judged):,} outside their own 95% limits, where chance puts {by_chance:.1f}"
        return text

    def _shared_said(self) -> list[str]:
        found = self.shared
        if found is None:
            return ["too few people or items to see a second dimension or dependent items"]
        some = f" in a sample of {found.n_people:,} people and {len(found.items):,} items" if found.sampled else ""
        if found.two_dimensions:
            weak = f"a weak contrast of {found.strength:.1f} items"
            parts = [f"{weak if found.weak_contrast else 'more than one dimension'} ({p_value(found.contrast_p)})"]
        elif found.contrast:
            parts = []  # a contrast of the dependent items, which are named next
        else:
            slopes = " once slopes may differ" if found.by_slopes else ""
            parts = [f"no second dimension seen{slopes} ({p_value(found.contrast_p)})"]
        if found.dependent:
            weak = "weak " if found.weak_pairs else ""
            parts.append(f"{weak}local dependence in {count(len(found.first), 'pair')} of items")
        else:
            parts.append(unseen_dependence(found.detectable))
        parts[-1] += some
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
    known = int(np.isfinite(limits).sum())
    answers, limit = float(np.median(columns["n"][blind])), float(np.median(limits[blind]))
    needed = float(np.median(columns["n"][blind] * (limits[blind] / WANTED) ** 2))
    who = "" if 2 * len(blind) > known else f" of {len(blind):,} of {known:,} items"
    return Finding(
        "misfit_not_visible",
        "note",
        f"With {answers:,.0f} answers per item, misfit{who} could not be seen: only an infit beyond "
        f"{1 + limit:.1f} would be found.",
        f"About {float(f'{needed:.1g}'):,.0f} answers per item would show an infit of {1 + WANTED:g}.",
        tuple(columns["item"][blind].tolist()),
    )
