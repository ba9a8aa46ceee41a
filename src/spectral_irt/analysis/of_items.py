"""What an analysis says about single items by counting: the classical statistics, and who chose which option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spectral_irt.analysis.of_people import OfPeople
from spectral_irt.data import Finding
from spectral_irt.errors import OptionError
from spectral_irt.inference.fit.mean_squares import ItemStatistics, item_statistics
from spectral_irt.inference.items.classical import (
    ItemAnalysis,
    item_analysis,
    item_analysis_columns,
    reversed_findings,
)
from spectral_irt.inference.items.distractors import Distractors, distractors, has_options
from spectral_irt.inference.items.slopes import Slopes, slopes
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.analysis.parts import Parts
    from spectral_irt.data.block import Ints


class OfItems(OfPeople):
    """The classical analysis of the items, with or without an answer key. See `Analysis`."""

    def item_statistics(self) -> ItemStatistics:
        """Conventional fit statistics of every item as arrays, at maximum likelihood abilities."""
        ml = self.abilities("ml").ability
        return self._once(
            "item_statistics",
            lambda: item_statistics(self.responses, self.calibration.difficulty, ml),
            say="fit of the items",
        )

    def slopes(self) -> Slopes:
        """How steeply each item rises with ability, and whether one slope is enough: see `inference.slopes`."""
        return self._once("slopes", lambda: slopes(self.responses, self.abilities("wle").ability), say="slopes")

    def classical(self) -> ItemAnalysis:
        """The classical statistics of every item as arrays."""
        return self._once(
            "classical", lambda: item_analysis(self.responses, self.calibration.thresholds), say="item analysis"
        )

    def item_analysis(self) -> Any:
        """The classical analysis of every item as a table.

        `item, n, p_correct`; `item_rest`, the correlation of the answers with the share right of each person's
        other answers; `alpha_if_deleted`, KR-20 of the test without the item, where everybody answered every item;
        `discrimination`, the slope of the item where 1 is the model's, as in Winsteps; and for tables with a row for
        each person `omitted` and `not_reached`: blanks before a later answer of the person, and after the last one.
        """
        return self._table(self.item_analysis_columns())

    def item_analysis_columns(self, *, discrimination: bool = True) -> Columns:
        """The columns of `item_analysis`; the discrimination needs abilities."""
        slopes = self.item_statistics().discrimination if discrimination else None
        return item_analysis_columns(self.calibration, self.responses, self.classical(), slopes)

    def distractors(self) -> Any:
        """Who chose which option, as a table; for answers that were scored with a key.

        `item, option, key, n, share, mean_ability` (as in `persons`), `rest_ability` and `rest_ability_se` (the mean
        ability by the other items alone, and its standard error), `point_biserial` (correlation of choosing it with the
        share right of the other answers). See `inference.distractors.distractors`.
        """
        return self._table(self.chosen().columns)

    def chosen(self) -> Distractors:
        """`distractors` as arrays, with the options that may be the right ones."""
        ability = self.abilities().ability
        return self._once(
            "distractors",
            lambda: distractors(self.calibration, self.responses, ability, self.classical()),
            say="options",
        )

    def option_curves(self, items: Ints, strata: int) -> list[Columns]:
        """Which option people of each ability choose; see `inference.option_curves.option_curves`."""
        from spectral_irt.inference.items.option_curves import option_curves

        ability = self.abilities("wle").ability
        return option_curves(self.responses, self.calibration.difficulty, ability, items, strata)

    def item_findings(self) -> tuple[Finding, ...]:
        """Items whose key is probably wrong, and items that abler people fail."""
        found: tuple[Finding, ...] = ()
        if has_options(self.responses):
            try:
                found = self.chosen().findings
            except OptionError as error:
                found = (Finding("distractors_left_out", "note", f"The options were not compared: {error}"),)
        explained = {item for finding in found for item in finding.items}
        return found + reversed_findings(self.calibration, self.classical(), explained)

    def item_tables(self, parts: Parts) -> dict[str, Columns]:
        """The tables that are written, by the names of their files."""
        tables = {"item_analysis": self.item_analysis_columns(discrimination=parts.fit)}
        if has_options(self.responses) and not any(f.code == "distractors_left_out" for f in self.item_findings()):
            tables["distractors"] = self.chosen().columns
        return tables
