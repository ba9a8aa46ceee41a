"""Every dataset that can be opened by name: what it is, where its publisher keeps it, and what others did to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spectral_irt.errors import OptionError


@dataclass(frozen=True)
class Source:
    """A dataset by name.

    Attributes
    ----------
    name, title : str
        `name` opens it; `title` is for tables.
    kind : "ratings" or "answers"
        What its responses are called. Ratings are compared with the mean of the person's own; answers are 1 = right (or
        good) and 0 = wrong.
    paper : str or None
        The row of the paper's tables that it stands for.
    download, page, license : str
        What the person must fetch, from which project page, under which terms as far as known.
    rows, persons, items : int or None
        Sizes of the published file.
    files : tuple of str
        The file that is read, as its publisher names it; with a folder where the name alone says too little.
    archives : tuple of str
        Zip files in which that file comes.
    layout : str
        How the file is to be read: a name in `publishers.LAYOUTS`; "neutral" for Parquet only, "bundled" for ours.
    least_item, least_user : int
        The authors' cutoffs: items and people with fewer ratings are dropped.
    first_users : int
        How many people the authors have, the first ones of the file, where it has more; 0 for all.
    remarks : tuple of str
        What to know before comparing numbers.
    found : path or None
        Where it was found; set by `available`.
    """

    name: str
    title: str
    kind: str
    page: str
    license: str
    download: str
    paper: str | None = None
    rows: int | None = None
    persons: int | None = None
    items: int | None = None
    files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    layout: str = "neutral"
    least_item: int = 0
    least_user: int = 0
    first_users: int = 0
    remarks: tuple[str, ...] = ()
    found: Path | None = None


@cache
def sources() -> tuple[Source, ...]:
    """All of them, in the order of catalog.toml."""
    import tomllib

    text = Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8")
    return tuple(_source(name, entry) for name, entry in tomllib.loads(text).items())


def _source(name: str, entry: dict[str, Any]) -> Source:
    value = "rating" if entry["kind"] == "ratings" else "response"
    fields = {"download": f"{name}.parquet with columns person, item and {value}", **entry.pop("published"), **entry}
    arguments: dict[str, Any] = {key: tuple(it) if isinstance(it, list) else it for key, it in fields.items()}
    return Source(name, **arguments)


def source_named(name: str) -> Source:
    """The dataset of this name; "ML-1M" and "ml-1m" mean ml_1m."""
    wanted = str(name).lower().replace("-", "_").replace(" ", "_")
    for source in sources():
        if source.name == wanted:
            return source
    raise OptionError(f"there is no dataset {name!r}; choose from {', '.join(source.name for source in sources())}.")
