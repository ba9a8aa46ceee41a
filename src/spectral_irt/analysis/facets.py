"""The analysis of linear designs: tables of items, raters and other facets, a record, and lines for the terminal; and
what properties of items add to their difficulty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from spectral_irt.analysis.cache import as_table, columns_of, once
from spectral_irt.analysis.folder import TABLES
from spectral_irt.analysis.people import AnalysisOfPeople
from spectral_irt.calibration import RATING_SCALE
from spectral_irt.data import Finding
from spectral_irt.data.block import Ints
from spectral_irt.errors import OptionError
from spectral_irt.inference.agreement import agreement
from spectral_irt.inference.facet_findings import are_no_cause_of_halo, facet_findings, is_significant
from spectral_irt.inference.facets import CERTAIN, facet_table, fit_by_level
from spectral_irt.inference.fit.halo import halo_of_facet
from spectral_irt.inference.fit.item_fit import verdict
from spectral_irt.inference.fit.moments import GivenScore
from spectral_irt.inference.interactions import interactions, item_contrasts
from spectral_irt.inference.rating_tables import all_same, category_use, unexpected_ratings
from spectral_irt.inference.results import two_sided
from spectral_irt.inference.scores.reliability import separation
from spectral_irt.persons.residuals import UNEXPECTED_OF_ALL
from spectral_irt.tables import Columns
from spectral_irt.text import and_list, count, p_value
from spectral_irt.xlsx import ABOUT, FINDINGS, LONGEST_SHEET_NAME

if TYPE_CHECKING:
    from spectral_irt.analysis.folder import Parts
    from spectral_irt.estimators.linear_fit import Explained

M = TypeVar("M", bound=Callable[..., Any])


class FacetTables(NamedTuple):
    """Names of the tables about a facet: files, sheets, and places of a report are called so."""

    levels: str  # a row for each rater
    interactions: str  # with items
    categories: str  # how often each rater used each category
    contrasts: str  # of two items each, by rater
    groups: Mapping[str, str]  # interactions with groups of persons, by the column of the groups


def facet_tables(facets: Sequence[str], groups: Iterable[str] = ()) -> dict[str, FacetTables]:
    """The names of the tables about each facet, all different from each other and from those of other results.

    >>> facet_tables(["Rater / Judge", "scores"], ["sex"])["Rater / Judge"]
    FacetTables(levels='rater_judge', interactions='rater_judge_interactions', categories='rater_judge_categories', \
contrasts='rater_judge_contrasts', groups={'sex': 'rater_judge_sex'})
    >>> facet_tables(["Persons"])["Persons"].levels
    'facet_persons'
    """
    used_names = {*TABLES, ABOUT, FINDINGS}
    columns = list(groups)

    def free_name(*parts: str) -> str:
        name = _short_name(*parts)
        number = 1
        while name in used_names:
            number += 1
            name = _short_name(*parts, str(number))
        used_names.add(name)
        return name

    levels = {}
    for facet in facets:
        plain = _in_file_name(facet)
        levels[facet] = free_name("facet", plain) if plain in used_names else free_name(plain)
    return {
        facet: FacetTables(
            levels=name,
            interactions=free_name(name, "interactions"),
            categories=free_name(name, "categories"),
            contrasts=free_name(name, "contrasts"),
            groups={column: free_name(name, _in_file_name(column)) for column in columns},
        )
        for facet, name in levels.items()
    }


def _in_file_name(label: str) -> str:
    return re.sub(r"\W+", "_", label.strip().lower()).strip("_") or "facet"


def _short_name(*parts: str) -> str:
    """The parts as one name that a sheet can have; the longest part gives way."""
    shortened = list(parts)
    while len(name := "_".join(shortened)) > LONGEST_SHEET_NAME:
        longest = max(range(len(shortened)), key=lambda k: len(shortened[k]))
        excess = len(name) - LONGEST_SHEET_NAME
        shortened[longest] = shortened[longest][: max(len(shortened[longest]) - excess, 1)]
    return name


def of_items(method: M) -> M:
    """The method, with an error where items are combinations with raters, of which it would say nothing."""

    @wraps(method)
    def ask_or_refuse(self: AnalysisOfRatings, *args: Any, **options: Any) -> Any:
        if self.facets:
            raise OptionError(
                f"{method.__name__} is about answers to items, and these are ratings: see `study.facet()`, and "
                "`study.interactions()` by item or, with `groups=`, by group of people."
            )
        return method(self, *args, **options)

    return cast("M", ask_or_refuse)


class AnalysisOfRatings(AnalysisOfPeople):
    """What an analysis says about raters and other facets, where answers are ratings."""

    def _facet(self, name: str | None) -> str:
        """This facet, or the only one."""
        if name is None and len(self.facets) == 1:
            return self.facets[0]
        if name is None or name not in self.facets:
            facets = ", ".join(map(repr, self.facets)) or "none: name their columns when reading, `facets=['rater']`"
            raise OptionError(f"{name!r} is no facet of these answers; there are {facets}.")
        return name

    @as_table
    @once
    def facet(self, name: str | None = None) -> Columns:
        """The levels of a facet as a table, by default of the only one: raters with their severity.

        `severity` (larger = more severe), `se, n`; `infit, infit_z, outfit, outfit_z` at the estimated abilities, below
        1 where people have few ratings; the same given the totals (`infit_conditional, ...`), 1 expected; given the
        totals too, `discrimination, discrimination_se`, the slope of ratings on ability (below 1: middle categories
        overused, above: lowest and highest); `point_measure, point_measure_expected`, the correlation of ratings with
        measures, and what the model expects of it; `halo, halo_z`: how much the sums of a rater's ratings of one person
        vary, 1 expected; `observed_average, fair_average` in the codes of the data (the mean rating, and that of
        the average person on all items); `subset` (levels of one can be compared); the verdict `misfit` ("underfit",
        "overfit", "central", "extreme ratings" or ""), and `status`, which has it in the place of "ok"; and the
        agreement with others where they met, with what is expected given the totals.

        Parameters
        ----------
        name : str, optional
            The facet; by default the only one.
        """
        if name != self._facet(name):
            return columns_of(self.facet, self._facet(name))
        self._tell(f"fit of every {name}")
        levels = facet_table(
            self.calibration,
            self.responses,
            self.abilities("wle").ability,
            name,
            given=self._given_total(),
            impressions=self._halo(name),
        )
        meetings = self._agreement(name)
        return levels | {"agreement": meetings["agreement"], "agreement_expected": meetings["expected"]}

    @once
    def _agreement(self, name: str) -> Columns:
        return agreement(self.calibration, self.responses, name)

    @once
    def _given_total(self) -> GivenScore:
        """Ratings given the totals, where their likelihood is largest."""
        assert self.calibration.facets is not None
        return GivenScore.of(self.responses, self.calibration.facets.likeliest)

    @as_table
    @once
    def interactions(self, name: str | None = None, groups: Any = None) -> Columns:
        """Score tests of the levels of a facet with items, or with groups of people; the most certain first.

        `n` ratings, `observed_average` and `expected_average` (given the totals) in the codes of the data; `bias` in
        logits (more severe there than elsewhere), `se, z, p`, and `p_holm` over all of them.

        Parameters
        ----------
        name : str, optional
            The facet; by default the only one.
        groups : column or labels, optional
            Groups of people in the place of items.
        """
        if name != self._facet(name):
            return columns_of(self.interactions, self._facet(name), groups)
        return interactions(self.calibration, self.responses, name, groups)

    @as_table
    @once
    def contrasts(self, name: str | None = None) -> Columns:
        """Is a rater more severe on one item than on another? Of every level of a facet each two items, the most
        certain first: `item, other_item`; `contrast` in logits, by how much more severe on `item` than severity and
        difficulties explain, less the same on `other_item`; `se, z, p`, and `p_holm` over all of them.

        Parameters
        ----------
        name : str, optional
            The facet; by default the only one.
        """
        if name != self._facet(name):
            return columns_of(self.contrasts, self._facet(name))
        return item_contrasts(self.calibration, self.responses, name)

    @as_table
    @once
    def category_use(self, name: str | None = None) -> Columns:
        """How often each level of a facet used each category, by default of the only facet; or each "item".

        `category` (as in the data), `n, share`; `expected`, the number that the model expects given the totals;
        `mean_measure` and `expected_measure`, the mean over these ratings of ability less location and severity, in
        logits, and what the model expects of it: both should rise with the category; `outfit`, 1 expected.

        Parameters
        ----------
        name : str, optional
            The facet; by default the only one; or "item".
        """
        if name != "item" and name != self._facet(name):
            return columns_of(self.category_use, self._facet(name))
        assert self.calibration.facets is not None
        ability = self.abilities("wle").ability
        return category_use(self.calibration.facets, self.responses, self.calibration.thresholds, ability, name)

    @as_table
    @once
    def unexpected_ratings(self, limit: int = UNEXPECTED_OF_ALL) -> Columns:
        """Ratings three or more standard deviations from what the model expects, the farthest first, at most so many:
        `person, item, rater` (and other facets), `response, expected` in the codes of the data, `z, ability`.

        Parameters
        ----------
        limit : int
            Rows at most (default 1,000).
        """
        self._facet(next(iter(self.facets), None))
        assert self.calibration.facets is not None
        ability = self.abilities("wle").ability
        return unexpected_ratings(self.calibration.facets, self.responses, self.calibration.thresholds, ability, limit)

    def _unexpected(self) -> Columns:
        if not self.facets:
            return super()._unexpected()
        return columns_of(self.unexpected_ratings)

    @once
    def _rated_items(self) -> Columns:
        """The items themselves, with their fit."""
        assert self.calibration.facets is not None
        facets = self.calibration.facets.facets
        levels = (facets.item, len(facets.items))
        ability = self.abilities("wle").ability
        fit = fit_by_level(self.calibration, self.responses, ability, *levels, given=self._given_total())
        z = fit["infit_conditional_z"]
        items = self.calibration.own_items
        with np.errstate(invalid="ignore"):
            average = (np.nan_to_num(items.category_n) * np.nan_to_num(items.codes)).sum(axis=1) / items.n
        columns = items.item_columns() | {"observed_average": average} | fit
        return columns | verdict(two_sided(z), z, fit["infit_conditional"], CERTAIN)

    @once
    def _facet_findings(self) -> list[Finding]:
        """What is odd about every facet."""
        findings: list[Finding] = []
        for name in self.facets:
            levels = columns_of(self.facet, name)
            interactions = columns_of(self.interactions, name)
            halo = self._halo(name)
            without_misfits = None
            no_cause = are_no_cause_of_halo(levels)
            if is_significant(halo) and not no_cause.all():
                without_misfits = halo_of_facet(self.calibration, self.responses, name, among=no_cause)
            findings += facet_findings(self.responses, name, levels, interactions, halo, without_misfits)
        return findings

    @once
    def _facet_record(self) -> dict[str, Any]:
        """Of fit.json: how well the levels of each facet are told apart, and how far they agree."""
        return {name: self._record_of_facet(name) for name in self.facets}

    def _record_of_facet(self, name: str) -> dict[str, Any]:
        table = columns_of(self.facet, name)
        comparable = table["subset"] == 1  # severities of others are not on the same scale
        severity = table["severity"][comparable]
        se = table["se"][comparable]
        record: dict[str, Any] = {
            "levels": len(table["n"]),
            "subsets": int(table["subset"].max()),
            "levels_compared": int(comparable.sum()),
            "sd": float(np.std(severity, ddof=1)) if len(severity) > 1 else None,
        }
        spread = separation(severity, se)
        reliability = 0.0 if spread.unseen else spread.reliability
        if not (se > 0).any():  # anchored severities have no errors
            reliability = np.nan
        numbers = {"reliability": reliability, "separation": spread.separation, "strata": spread.strata}
        record |= {key: value if np.isfinite(value) else None for key, value in numbers.items()}
        record |= dict.fromkeys(("chi2", "df", "p"))
        equal_severities = all_same(severity, se)
        if equal_severities is not None:
            record |= {"chi2": equal_severities.chi2, "df": equal_severities.df, "p": equal_severities.p}
        meetings = self._agreement(name)
        n_pairs = meetings["pairs"].sum()
        record["pairs"] = int(n_pairs) // 2
        record |= dict.fromkeys(("halo", "halo_z", "halo_sd"))
        halo = self._halo(name)
        if halo is not None:
            record |= {"halo": halo.ratio, "halo_z": halo.z, "halo_sd": halo.variance**0.5}
        if n_pairs:
            for key in ("agreement", "expected"):
                record[key] = float(meetings["pairs"] @ np.nan_to_num(meetings[key]) / n_pairs)
            if record["expected"] < 1:
                record["kappa"] = (record["agreement"] - record["expected"]) / (1 - record["expected"])
        return record

    def _facet_tables(self, parts: Parts, every: bool) -> dict[str, Columns]:
        """The tables of all facets by the names of their files; `every` one, or those of a default run."""
        tables = {}
        for name, called in facet_tables(self.facets, parts.groups).items():
            tables[called.levels] = columns_of(self.facet, name)
            tables[called.interactions] = columns_of(self.interactions, name, None)
            tables[called.categories] = columns_of(self.category_use, name)
            if every:
                with suppress(OptionError):  # too many of them
                    tables[called.contrasts] = columns_of(self.contrasts, name)
            for column, table in called.groups.items():
                tables[table] = columns_of(self.interactions, name, parts.groups[column])
        return tables

    @of_items
    @as_table
    def item_covariates(self, properties: Any) -> Columns:
        """What properties of items add to their difficulty: the linear logistic test model, `property, level, effect`,
        `se, z, p`.

        `properties` is a file with a row for each item and a column `item`, or maps each property to a mapping from
        item to value. Numbers have an effect for one unit, words one each, with mean zero. The standard errors assume
        that nothing else makes items differ; `summary()` has the test against free items.
        """
        return self._explain_severities(properties).effects

    @once
    def _explain_severities(self, properties: Any) -> Explained:
        self._tell("properties of items")
        obstacles = {
            "a rating scale model": self.calibration.model == RATING_SCALE,
            "an adaptive design": self.calibration.adaptive,
            "weights of people": self.sampling.weights is not None,
            "clusters": self.sampling.cluster is not None,
        }
        unfit = list(filter(obstacles.get, obstacles))
        if unfit:
            raise OptionError(
                f"effects of properties of items do not go with {and_list(unfit)}; leave out one of them."
            )
        if isinstance(properties, str | Path):
            from spectral_irt.reading.side_tables import read_item_properties

            about = read_item_properties(str(properties))
            properties = {name: dict(zip(about.labels, values, strict=True)) for name, values in about.items()}
        from spectral_irt.estimators.linear_fit import explain_items

        return explain_items(self.responses, properties)


def severest_first(table: Columns) -> Ints:
    """The order of the levels of a facet: the most severe first, within subsets that can be compared."""
    return np.lexsort((-np.nan_to_num(table["severity"]), table["subset"]))


def facet_lines(study: AnalysisOfRatings) -> list[tuple[str, str]]:
    """A line for each facet."""
    return [(name, _facet_line(study, name, record)) for name, record in study._facet_record().items()]


def _facet_line(study: AnalysisOfRatings, name: str, record: Mapping[str, Any]) -> str:
    parts = []
    levels = count(record["levels"], name)
    if record["levels_compared"] == 1 < record["levels"]:
        parts.append(f"{levels}, none of which can be compared with another")
    else:
        table = columns_of(study.facet, name)
        severity = table["severity"][table["subset"] == 1]
        some = f"{record['levels_compared']:,} in subset 1: " if record["subsets"] > 1 else ""
        text = f"{levels}, {some}severity {np.nanmin(severity):z.2f} to {np.nanmax(severity):z.2f} logits"
        if record["reliability"] is not None:
            text += f", reliability {record['reliability']:.2f}, separation {record['separation']:.2f}"
            text += f", strata {record['strata']:.2f}"
        parts.append(text)
    if record["p"] is not None:
        parts.append(f"equal severities: chi-square {record['chi2']:.1f}, df {record['df']:,}, {p_value(record['p'])}")
    if "agreement" in record:
        agreement_of_all = f"exact agreement {record['agreement']:.0%}, expected {record['expected']:.0%}"
        if "kappa" in record:
            agreement_of_all += f" (Rasch-kappa {record['kappa']:z.2f})"
        parts.append(agreement_of_all)
    if record["halo"] is not None:
        parts.append(f"halo {record['halo']:.2f} (1 expected)")
    return "; ".join(parts)
