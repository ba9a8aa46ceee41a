"""The tables people ask for: raw scores, unexpected answers, means of groups, cut scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.analysis.assembled import with_measures
from spectral_irt.analysis.shared_people import SharedPeople
from spectral_irt.inference.scores.cut_scores import Others, cut_columns, raw_cuts, scale_cuts
from spectral_irt.persons.score_tables import score_columns
from spectral_irt.persons.test_form import Form, Forms, find_forms, form_columns
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.analysis.parts import Parts


class ScoreTables(SharedPeople):
    """What an analysis says about people in tables for reports. See `Analysis`."""

    # ------------------------------------------------------------------------------------------ scores

    def forms(self) -> Forms:
        """Sets of items that many people answered, such as booklets; see `persons.test_form.find_forms`."""
        return self._once("forms", lambda: find_forms(self.responses, self.calibration.thresholds))

    def test_form(self) -> Form:
        """The form with all items: what its total scores say."""
        return Form(self.calibration.thresholds, self.responses.thresholds)

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
            lambda: score_columns(self.test_form(), self.forms(), self.abilities()),
            say="tables of scores",
        )
        return with_measures(found, "ability", self.calibration.scale)

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
        test, scale, found = self.test_form(), self.calibration.scale, self.abilities()
        at, given = raw_cuts(cuts, test, self.forms(), found) if raw else scale_cuts(cuts, test, scale)
        columns: Columns = self._once(
            ("cuts", self._estimate(None), tuple(at.tolist())),
            lambda: cut_columns(
                test, Others(self.responses, self.calibration.thresholds), at, found, self.forms(), self._people_from()
            ),
            say="classes of people",
        )
        named = np.concatenate([[np.nan], given, [np.nan]])
        columns = {"class": columns["class"], "cut": named, **{k: v for k, v in columns.items() if k != "class"}}
        return columns if scale.is_logits else {**columns, "measure_se": scale.width(columns["se"])}

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
