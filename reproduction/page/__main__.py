"""`python -m reproduction.page RESULTS DOCS`: what `make reproduce` runs after the experiments."""

from __future__ import annotations

import sys
from pathlib import Path

from reproduction.page.page import write_page
from spectral_irt.errors import SpectralIrtError

if len(sys.argv) != 3:
    sys.exit("usage: python -m reproduction.page RESULTS DOCS")
try:
    print(write_page(Path(sys.argv[1]), Path(sys.argv[2])))
except SpectralIrtError as error:
    sys.exit(f"error: {error}")
