"""The analysis of ratings: tables of items, raters and other facets, a record, and lines for the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from spectral_irt.analysis.cache import once, tabled
from spectral_irt.analysis.people import AnalysisOfPeople, with_measures
from spectral_irt.data import Finding
from spectral_irt.errors import OptionError
from spectral_irt.inference.facets import (
    agreement,
    facet_findings,
    facet_table,
    fair_average,
    interaction_findings,
    interactions,
    item_facet_fit,
    one_only,
)
from spectral_irt.inference.scores.reliability import separation
from spectral_irt.tables import Columns
from spectral_irt.text import count

if TYPE_CHECKING:
    from spectral_irt.analysis.folder import Parts

P = ParamSpec("P")
R = TypeVar("R")


def file_name(facet: str) -> str:
    """The table of a facet as a file is called.

    >>> file_name("Rater / Judge")
    'rater_judge'
    """
    return re.sub(r"\W+", "_", facet.strip().lower()).strip("_") or "facet"


class AnalysisOfRatings(AnalysisOfPeople):
    """What an analysis says about raters and other facets, where answers are ratings."""

    @property
    def facets(self) -> tuple[str, ...]:
        """The facets of ratings beside the items, such as "rater"; none where answers are answers."""
        found = self.calibration.facets
        return () if found is None else tuple(found.of)

    def _facet(self, name: str | None) -> str:
        """This facet, or the only one."""
        if name is None and len(self.facets) == 1:
            return self.facets[0]
        if name is None or name not in self.facets:
            said = ", ".join(map(repr, self.facets)) or "none: name their columns when reading, `facets=['rater']`"
            raise OptionError(f"{name!r} is no facet of these answers; there are {said}.")
        return name

    @tabled
    def facet(self, name: str | None = None) -> Columns:
        """The levels of a facet as a table, by default of the only one: raters with their severity.

        `severity` (larger = more severe), `se, n, infit, infit_z, outfit, outfit_z, discrimination, discrimination_se`
        (the slope of ratings on what is expected; below 1: they crowd in the middle, above: at the ends),
        `observed_average, fair_average` (the mean rating, and that of the average person on all items), `subset`
        (levels of one can be compared), `status`, and the agreement with others where they met.
        """
        return self._facet_columns(self._facet(name))

    @tabled
    def interactions(self, name: str | None = None, groups: Any = None) -> Columns:
        """Score tests of the levels of a facet with items, or with groups of people; the most certain first.

        `bias` in logits (more severe there than elsewhere), `se, z, p`, and `p_holm` over all of them.
        """
        return self._interactions(self._facet(name), None if groups is None else list(self._labels(groups)))

    @once
    def _facet_columns(self, name: str) -> Columns:
        found = facet_table(self.calibration, self.responses, self.abilities().ability, name)
        met = self._agreement(name)
        return found | {"agreement": met["agreement"], "agreement_expected": met["expected"]}

    @once
    def _agreement(self, name: str) -> Columns:
        return agreement(self.calibration, self.responses, self.abilities().ability, name)

    @once
    def _interactions(self, name: str, groups: Any) -> Columns:
        labels = None if groups is None else np.array(groups, dtype=object)
        return interactions(self.calibration, self.responses, name, labels)

    @once
    def _rated_items(self) -> Columns:
        """The items themselves, with their fit."""
        assert self.calibration.facets is not None
        items = self.calibration.facets.items.item_columns()
        return items | item_facet_fit(self.calibration, self.responses, self.abilities().ability)

    @once
    def _facet_findings(self) -> list[Finding]:
        """What is odd about every facet."""
        found: list[Finding] = []
        for name in self.facets:
            found += facet_findings(self._facet_columns(name), name)
            found += one_only(self.responses, name)
            found += interaction_findings(self._interactions(name, None), name)
        return found

    @once
    def _facet_record(self) -> dict[str, Any]:
        """Of fit.json: how well the levels of each facet are told apart, and how far they agree."""
        found = {}
        for name in self.facets:
            table, met = self._facet_columns(name), self._agreement(name)
            pairs, apart = met["pairs"].sum(), separation(table["severity"], table["se"])
            kinds = {"reliability": max(apart.reliability, 0.0), "separation": apart.separation, "strata": apart.strata}
            found[name] = {
                "levels": len(table["n"]),
                "subsets": int(table["subset"].max()),
                "sd": float(np.std(table["severity"], ddof=1)) if len(table["n"]) > 1 else None,
                **{key: value if np.isfinite(value) else None for key, value in kinds.items()},
                "pairs": int(pairs) // 2,
            }
            if pairs:
                shares = {key: met["pairs"] @ np.nan_to_num(met[key]) / pairs for key in ("agreement", "expected")}
                found[name] |= {key: float(share) for key, share in shares.items()}
        return found


def of_items(method: Callable[P, R]) -> Callable[P, R]:
    """The method, with an error where items are combinations with raters, of which it would say nothing."""

    @wraps(method)
    def asked(*args: P.args, **options: P.kwargs) -> R:
        if args[0].facets:  # type: ignore[attr-defined]
            raise OptionError(
                f"{method.__name__} is about answers to items, and these are ratings: see `study.facet()`, and "
                "`study.interactions()` by item or, with `groups=`, by group of people."
            )
        return method(*args, **options)

    return asked


def facet_tables(study: AnalysisOfRatings, parts: Parts, every: bool) -> dict[str, Columns]:
    """The tables of ratings by the names of their files."""
    found, scale = study.calibration.facets, study.calibration.scale
    assert found is not None
    tables = {"items": with_measures(study._rated_items(), "difficulty", scale)}
    if not found.items.layout.binary:
        tables["thresholds"] = with_measures(found.items.threshold_columns(), "threshold", scale)
    if parts.persons:
        people = study._people_tables(parts, every)
        persons = people["persons"]
        persons["fair_average"] = fair_average(study.calibration, np.asarray(persons["ability"], dtype=float))
        tables |= {name: table for name, table in people.items() if name not in ("scores", "forms")}
    for name in study.facets:
        tables[file_name(name)] = study._facet_columns(name)
        tables[f"{file_name(name)}_interactions"] = study._interactions(name, None)
        for column, labels in parts.groups.items():
            key = f"{file_name(name)}_{file_name(column)}"
            tables[key] = study._interactions(name, list(labels))
    return tables


def facet_lines(study: AnalysisOfRatings) -> list[tuple[str, str]]:
    """A line for each facet."""
    said = []
    for name, found in study._facet_record().items():
        table = study._facet_columns(name)
        low, high = np.nanmin(table["severity"]), np.nanmax(table["severity"])
        text = f"{count(found['levels'], name)}, severity {low:z.2f} to {high:z.2f} logits"
        if found["reliability"] is not None:
            text += f", reliability {found['reliability']:.2f}, separation {found['separation']:.2f}"
        if "agreement" in found:
            text += f"; exact agreement {found['agreement']:.0%}, expected {found['expected']:.0%}"
        said.append((name, text))
    return said
