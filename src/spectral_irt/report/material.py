"""What a report is written from: a record and tables, of an analysis or of a folder that a fit wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spectral_irt.analysis.cache import columns_of
from spectral_irt.calibration import LOGITS, Scale
from spectral_irt.inference.fit.strata import curved
from spectral_irt.tables import Columns, plain

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis
    from spectral_irt.analysis.plan import Parts

MANY = 1_000  # items beyond which a curve has fewer marks
STRATA, FEW_STRATA = 8, 6
NO_FIT = "The curves come with the fit of the items, which was left out."
FROM_FOLDER = "Curves need the answers, which the folder does not have: spectral-irt fit ... --report report.html."


@dataclass(frozen=True, eq=False)
class Material:
    """All that sections look at.

    Attributes
    ----------
    record : mapping
        What `fit.json` holds.
    tables : mapping of names to columns
        Those of the files: "items", and where there are such "persons", "item_fit", "dif", and so on.
    curves : columns, optional
        `item` (its row), `n, observed, expected`: strata of ability; see `inference.strata`.
    missing : mapping of names to sentences
        Why a table, or the curves, is not there.
    list_persons : bool
        Whether single people may be named.
    """

    record: Mapping[str, Any]
    tables: Mapping[str, Columns]
    curves: Columns | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    list_persons: bool = False

    @property
    def scale(self) -> Scale:
        """How measures are reported."""
        scale = self.record.get("scale")
        return LOGITS if not scale else Scale(float(scale["mean"]), float(scale["unit"]))


def of_study(
    study: Analysis, parts: Parts, *, record: Mapping[str, Any] | None = None, list_persons: bool = False
) -> Material:
    """What an analysis has to say; `record` is its record where more is known about the files."""
    curves, missing = None, {}
    if not study.responses.thresholds.binary:
        pass  # they are among the tables
    elif not study.responses.n_responses:
        missing["curves"] = "Curves need answers, and the analysis has none."
    elif not parts.fit:
        missing["curves"] = NO_FIT
    else:
        study._tell("curves of the items")
        items = curved(study.calibration, columns_of(study.item_fit, bootstrap=parts.bootstrap, sample=parts.sample))
        if len(items):
            curves = study._strata(items, STRATA if len(items) <= MANY else FEW_STRATA)
    return Material(
        record=plain(record or study.record(parts)),
        tables=study.tables(parts),
        curves=curves,
        missing=missing,
        list_persons=list_persons,
    )
