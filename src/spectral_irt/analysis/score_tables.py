"""The tables people ask for: raw scores, unexpected answers, means of groups, cut scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.assembled import group_table, with_measures
from spectral_irt.analysis.of_people import OfPeople
from spectral_irt.inference.cuts import cut_columns, raw_cuts, scale_cuts
from spectral_irt.inference.group_means import group_columns
from spectral_irt.inference.marginal_reliability import Marginal, marginal_reliability
from spectral_irt.persons.forms import Forms, find_forms, form_columns
from spectral_irt.persons.scores import score_columns
from spectral_irt.persons.unexpected import EACH, MOST, people_at, unexpected_columns
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.analysis.parts import Parts


class ScoreTables(OfPeople):
    """What an analysis says about people in tables for reports. See `Analysis`."""

    def marginal(self) -> Marginal | None:
        """The normal population of these people, by marginal maximum likelihood; None where too few people differ."""
        return self._once("eap", lambda: marginal_reliability(self.responses, self.calibration.difficulty))

    # ------------------------------------------------------------------------------------------ scores

    def forms(self) -> Forms:
        """Sets of items that many people answered, such as booklets; see `persons.forms.find_forms`."""
        return self._once("forms", lambda: find_forms(self.responses, self.calibration.difficulty))

    def scores(self) -> Any:
        """From raw score to ability on every form, as a table: `form, n_items, score, ability, se, n, percentile`.

        A form is a set of items that at least ten people answered, or that everybody did; `study.forms()` has them. `n`
        people on the form have the score, and `percentile` is 100 times the share of those with a lower one and half of
        the share with the same (the mid-percentile). `measure` and `measure_se` follow where there is a scale of
        report. Without forms, as in an adaptive test, the table has no rows.
        """
        return self._table(self.score_columns())

    def score_columns(self) -> Columns:
        """The columns of `scores`."""
        found = self._once(
            ("scores", self._estimate(None)),
            lambda: score_columns(self.calibration.difficulty, self.forms(), self.abilities()),
            say="tables of scores",
        )
        return with_measures(found, "ability", self.calibration.scale)

    # -------------------------------------------------------------------------------------- single answers

    def unexpected_answers(
        self, people: Sequence[Any] | None = None, *, per_person: int = EACH, limit: int = MOST
    ) -> Any:
        """The most surprising answers as a table: `person, misfit_z, item, response, expected, z, ability, difficulty`.

        Parameters
        ----------
        people : sequence of labels, optional
            Whose answers; by default of people whose infit or outfit, standardized, is above 2, the worst first.
        per_person, limit : int
            So many answers of each person, and of all; see `persons.unexpected.unexpected_columns`.
        """
        place = None if people is None else people_at(self.responses, people)
        return self._table(self.unexpected_columns(place, per_person=per_person, limit=limit))

    def unexpected_columns(self, people: Any = None, *, per_person: int = EACH, limit: int = MOST) -> Columns:
        """The columns of `unexpected_answers`, of people at these positions."""
        found, fits = self.abilities(), self.person_fit()
        how: dict[str, Any] = {"people": people, "per_person": per_person, "limit": limit}
        return unexpected_columns(self.responses, self.calibration.difficulty, found, fits, **how)

    # -------------------------------------------------------------------------------------------- groups

    def group_means(self, groups: Any) -> Any:
        """Mean ability of every group as a table.

        `grouping, group, n, mean, se, sd, latent_mean, latent_se, latent_sd`: the abilities of these people, and the
        population that they are from, without errors of measurement; see `inference.group_means.group_columns`.

        `groups` has a label for each person, in their order, or maps persons to labels; a dictionary of several such
        has the names of the groupings as keys. With a scale of report, `measure_mean`, `measure_se` and `measure_sd`
        follow.
        """
        several = isinstance(groups, Mapping) and bool(groups) and all(_is_labels(value) for value in groups.values())
        return self._table(self.group_columns(groups if several else {"group": groups}))

    def group_columns(self, groupings: Mapping[str, Any]) -> Columns:
        """The columns of `group_means`, of groupings by name."""
        found, beta = self.abilities("wle"), self.calibration.difficulty
        tables = [group_columns(self.responses, beta, found, labels, name) for name, labels in groupings.items()]
        return group_table(tables, self.calibration.scale)

    def described(self, parts: Parts) -> Columns:
        """`group_columns` of the groupings of the parts."""
        key = ("described", tuple(parts.described), self.calibration.scale)
        return self._once(key, lambda: self.group_columns(parts.described), say="means of groups")

    # ---------------------------------------------------------------------------------------------- cuts

    def cuts(self, cuts: Sequence[float], *, raw: bool = False) -> Any:
        """People in classes: how many are in each, and how sure that is, as a table.

        `class, cut, ability, se, n, share, accuracy, consistency, too_high, too_low`; see `inference.cuts.cut_columns`.

        Parameters
        ----------
        cuts : sequence of numbers
            On the scale of report (logits where there is none). A person at the cut is above it.
        raw : bool
            The cuts are raw scores on the whole test, each standing for the ability that `scores()` gives it.
        """
        return self._table(self.cut_columns(tuple(cuts), raw=raw))

    def cut_columns(self, cuts: Sequence[float], *, raw: bool = False) -> Columns:
        """The columns of `cuts`."""
        beta, scale, found = self.calibration.difficulty, self.calibration.scale, self.abilities()
        at, given = raw_cuts(cuts, beta, self.forms(), found) if raw else scale_cuts(cuts, beta, scale)
        columns: Columns = self._once(
            ("cuts", self._estimate(None), tuple(at.tolist())),
            lambda: cut_columns(self.responses, beta, at, found, self.forms(), self._people_from()),
            say="classes of people",
        )
        named = np.concatenate([[np.nan], given, [np.nan]])
        columns = {"class": columns["class"], "cut": named, **{k: v for k, v in columns.items() if k != "class"}}
        return columns if scale.is_logits else {**columns, "measure_se": scale.width(columns["se"])}

    def _people_from(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the population, given or estimated."""
        if self.population is not None:
            return self.population
        found = self.marginal()
        return None if found is None else (found.mean, found.sd)

    # ---------------------------------------------------------------------------------------------- files

    def people_tables(self, parts: Parts) -> dict[str, Columns]:
        """The tables about people that go to files beside `persons`, by name; one without rows is left out."""
        tables: dict[str, Columns] = {}
        if parts.scores:
            tables["scores"] = self.score_columns()
            forms = self.forms()
            if not (len(forms) == 1 and len(forms.items[0]) == int(self.calibration.known.sum())):
                tables["forms"] = form_columns(forms, self.calibration.labels, self.calibration.difficulty)
            tables["unexpected"] = self._once(("unexpected", self._estimate(None)), self.unexpected_columns)
        if parts.described:
            tables["groups"] = self.described(parts)
        if parts.cuts:
            tables["cuts"] = self.cut_columns(parts.cuts, raw=parts.cut_raw)
        return {name: table for name, table in tables.items() if len(next(iter(table.values())))}


def _is_labels(value: Any) -> bool:
    """Whether this has a label for each person, rather than being one."""
    return isinstance(value, Mapping | Sequence | np.ndarray) and not isinstance(value, str | bytes)
