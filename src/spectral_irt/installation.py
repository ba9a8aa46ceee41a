"""How this copy of the program was installed: the command that adds an extra to it, and where a mistake is reported.

Messages about a package that is not there ask `install_extra`, those about a mistake of ours `please_report`."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname

PACKAGE = "spectral-irt"


def install_extra(extra: str) -> str:
    """The command that installs an extra, such as "app", in the way in which this copy was installed.

    From a package index that is `pip install "spectral-irt[app]"`, from a wheel the same with the path of the wheel,
    and from a checkout `pip install ".[app]"`, which is typed there.
    """
    source = _source()
    if "dir_info" in source:
        return f'pip install ".[{extra}]" in the folder with its pyproject.toml'
    if "archive_info" in source:
        return f'pip install "{_path(source["url"])}[{extra}]"'
    return f'pip install "{PACKAGE}[{extra}]"'


def please_report() -> str:
    """What to do about a mistake of ours: "please report it", and where, if whoever published this copy said so."""
    distribution = _distribution()
    for line in (distribution.metadata.get_all("Project-URL") or []) if distribution else []:
        name, _, address = line.partition(", ")
        if name == "Issues":
            return f"please report it at {address}"
    return "please report it to those from whom you have the program"


def _distribution() -> Distribution | None:
    try:
        return distribution(PACKAGE)
    except PackageNotFoundError:  # run from its source without being installed
        return None


def _source() -> dict[str, str]:
    """Where pip says that this copy came from (PEP 610); empty if it came from a package index."""
    distribution = _distribution()
    if distribution is None:
        return {"dir_info": ""}
    text = distribution.read_text("direct_url.json")
    source: dict[str, str] = json.loads(text) if text else {}
    return source


def _path(url: str) -> str:
    """The path of a file:// address; another address as it is."""
    parts = urlsplit(url)
    return url2pathname(parts.path) if parts.scheme == "file" else url
