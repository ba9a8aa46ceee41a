"""A table given as text, read as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spectral_irt.data import Responses
from spectral_irt.reading import read


def read_text(tmp_path: Path, text: str, **options: Any) -> Responses:
    file = tmp_path / "answers.csv"
    file.write_text(text)
    return read(file, **options)
