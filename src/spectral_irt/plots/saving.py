"""Pictures as files: the same picture gives the same bytes, without date or version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import OptionError, OutputError, listed
from spectral_irt.files import all_or_nothing, naming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150
KINDS = ("svg", "png", "pdf")
PROGRAM = "spectral-irt"  # written into every picture, so that it is known again as ours


def save_figure(figure: Figure, path: Path) -> Path:
    """The figure as .svg, .png or .pdf, complete or not at all."""
    kind_of(path)
    with all_or_nothing([path]) as (draft,), naming(path):
        write_figure(figure, draft, path)
    return path


def kind_of(path: Path) -> str:
    """What the ending of a name says, or an error."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise OptionError(f"{str(path)!r} ends in none of .svg, .png and .pdf, which say what a picture is written as.")
    return kind


def write_figure(figure: Figure, draft: Path, target: Path) -> None:
    """Write the figure to `draft` as what the ending of `target` says."""
    import matplotlib

    kind = kind_of(target)
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Creator": PROGRAM, "Date": None},
        "png": {"Software": PROGRAM},
        "pdf": {"Creator": PROGRAM, "Producer": None, "CreationDate": None},
    }
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # everything has its place now, and keeps it in the next file
    with matplotlib.rc_context({"svg.hashsalt": PROGRAM, "svg.fonttype": "path"}):
        figure.savefig(draft, format=kind, dpi=DPI, metadata=metadata[kind])


def refuse_foreign(targets: list[Path]) -> None:
    """An error when a picture would take the place of a file that we did not write."""
    foreign = [str(path) for path in targets if path.is_file() and not is_ours(path)]
    if foreign:
        raise OutputError(
            f"{listed(foreign)} would be replaced, and {PROGRAM} did not make it; choose another directory, or move it "
            "away. Nothing was written."
        )


def is_ours(path: Path) -> bool:
    """Whether a picture says at its beginning that we made it."""
    with path.open("rb") as file:
        return PROGRAM.encode() in file.read(4_000)
