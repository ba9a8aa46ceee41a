"""What a report is written from: an analysis, its record and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spectral_irt.calibration import Scale
from spectral_irt.data.labels import positions
from spectral_irt.tables import Columns, plain

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis
    from spectral_irt.analysis.folder import Parts


@dataclass(frozen=True, eq=False)
class ReportData:
    """All that sections look at.

    Attributes
    ----------
    study : Analysis
    parts : Parts
        What of it is in the report.
    record : mapping
        What `fit.json` holds.
    tables : mapping of names to columns
        Those of the files: "items", and where there are such "persons", "item_fit", "dif", and so on.
    list_persons : bool
        Whether single people may be named.
    """

    study: Analysis
    parts: Parts
    record: Mapping[str, Any]
    tables: Mapping[str, Columns]
    list_persons: bool = False

    @classmethod
    def of(
        cls, study: Analysis, parts: Parts, record: Mapping[str, Any] | None = None, *, list_persons: bool = False
    ) -> ReportData:
        """Of an analysis; `record` is its record where more is known about the files."""
        return cls(study, parts, plain(record or study.record(parts)), study.tables(parts), list_persons)

    @property
    def scale(self) -> Scale:
        """How measures are reported."""
        return self.study.calibration.scale

    @property
    def binary(self) -> bool:
        """Whether every answer is right or wrong."""
        return self.study.calibration.layout.binary

    @cached_property
    def strata(self) -> Columns | None:
        """Mean answers by stratum of ability and those expected, of items by position; None without their fit."""
        if not self.parts.fit or not (found := self.study._curves()):
            return None
        return {**found, "item": positions(found["item"].tolist(), self.study.calibration.labels)}
