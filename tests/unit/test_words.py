"""The field's words in everything that a user can read: phrases that are not to come back."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ("*.py", "*.html", "*.js", "*.md")
TEXTS = {path: path.read_text(encoding="utf-8") for kind in KINDS for path in (ROOT / "src").rglob(kind)}
TEXTS |= {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}


@pytest.mark.parametrize(
    "phrase",
    [
        *("landed on", "Taken for items", "how sure that is", "surely worse", "answer erratically", "look surer"),
        *("numbered anew", "by more than chance allows", "when looked at alone", "Nothing odd", "to hand on"),
        *("stands beside cannot", "where chance has", "shares more than the ability", "drown"),
    ],
)
def test_phrases_that_nobody_in_the_field_would_say(phrase: str) -> None:
    found = [str(path.relative_to(ROOT)) for path, text in TEXTS.items() if phrase in " ".join(text.split())]
    assert not found
