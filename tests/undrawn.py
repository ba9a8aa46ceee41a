"""Reports without their pictures, which take most of the time."""

from typing import Any

import pytest

from spectral_irt.report.blocks import Picture


def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sections get an empty picture with the right words."""

    def undrawn(display: Any, alt: str, caption: str = "", narrow: Any = None) -> Picture:
        return Picture("data:,", alt=alt, width=1, height=1, caption=caption)

    for module in ("items", "people", "fit", "facets"):
        monkeypatch.setattr(f"spectral_irt.report.{module}.picture", undrawn)
    for sheet in ("curve_sheet", "category_sheet", "distractor_sheet"):
        monkeypatch.setattr(f"spectral_irt.report.items.{sheet}", lambda study: None)
