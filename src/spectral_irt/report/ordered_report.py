"""The report of answers in ordered categories, made with the analysis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.files import write_each
from spectral_irt.report.material import Material
from spectral_irt.report.page import check_place, page
from spectral_irt.tables import plain

if TYPE_CHECKING:
    from spectral_irt.analysis.ordered_analysis import OrderedAnalysis
    from spectral_irt.analysis.parts import Parts


def ordered_page(
    study: OrderedAnalysis,
    parts: Parts | None = None,
    record: Mapping[str, Any] | None = None,
    *,
    list_persons: bool = False,
) -> str:
    """The report as HTML; `record` is that of the analysis where more is known about the files."""
    study.tell("report")
    parts = parts or study.parts(writing=True)
    said = plain(record or study.record(parts))
    return page(Material(said, study.tables(parts), list_persons=list_persons))


def write_ordered_report(
    study: OrderedAnalysis, path: Path, parts: Parts | None = None, *, list_persons: bool = False
) -> Path:
    """The report as an HTML file, complete or not at all."""
    check_place(path)
    text = ordered_page(study, parts, list_persons=list_persons)
    write_each({path: lambda draft: draft.write_text(text, encoding="utf-8", newline="\n")})
    return path
