"""The page: one HTML file without anything from elsewhere, whose only program and style are known by their hashes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectral_irt.errors import OptionError, OutputError, printable
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.report.blocks import DataTable, Section, within
from spectral_irt.report.data import Material, of_study
from spectral_irt.report.sections import sections_of

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis
    from spectral_irt.analysis.plan import Parts

HERE = Path(__file__).parent
ENDINGS = (".html", ".htm")
MARK = '<meta name="generator" content="spectral-irt">'  # by which a page is known again as ours
# What could end a script's element, or a line of a program.
UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def write_report(study: Analysis, path: Path, parts: Parts, *, list_persons: bool = False) -> Path:
    """The report of an analysis as an HTML file, complete or not at all."""
    check_place(path)
    with all_or_nothing([path]) as (draft,):
        text = page_of(study, parts, list_persons=list_persons)
        with naming(path):
            draft.write_text(text, encoding="utf-8", newline="\n")
    return path


def page_of(
    study: Analysis, parts: Parts, record: Mapping[str, Any] | None = None, *, list_persons: bool = False
) -> str:
    """The report of an analysis as HTML; `record` is that of the analysis where more is known about the files."""
    study._tell("report")
    return page(of_study(study, parts, record=record, list_persons=list_persons))


def check_place(path: Path) -> None:
    """An error where the report would be no HTML by its name, or take the place of a file that is none of ours."""
    if path.suffix.lower() not in ENDINGS:
        raise OptionError(f"{str(path)!r} does not end in .html; a report is an HTML file.")
    if path.is_file() and path.stat().st_size and not is_ours(path):
        raise OutputError(
            f"{str(path)!r} exists, and spectral-irt did not make it; choose another name, or move it away. Nothing "
            "was written."
        )


def is_ours(path: Path) -> bool:
    """Whether a file is a report."""
    with naming(path), path.open("rb") as file:
        return MARK.encode() in file.read(4_000)


def page(material: Material) -> str:
    """The report as HTML."""
    title = f"Report: {printable(within(material.record, 'input', 'source') or 'a calibration')}"
    return rendered(title, sections_of(material), within(material.record, "versions", "spectral_irt") or "")


def rendered(title: str, sections: Sequence[Section], version: str) -> str:
    """Sections as a whole page; what no file can hold (half a character) is replaced."""
    tables = {block.name: block.data() for one in sections for block in one.content if isinstance(block, DataTable)}
    program, style = _text("page.js"), _text("page.css")
    text = (
        _template()
        .render(
            mark=MARK,
            title=title,
            policy=f"default-src 'none'; script-src {_hash(program)}; style-src {_hash(style)}; img-src data:; "
            "base-uri 'none'; form-action 'none'",
            style=style,
            program=program,
            data=data_text(tables),
            sections=sections,
            version=version,
        )
        .strip()
    )
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def data_text(tables: Any) -> str:
    r"""Data as JSON that can stand in a script element of a page, whatever it holds.

    >>> data_text(["</script>", "a & b"])
    '["\\u003c/script\\u003e","a \\u0026 b"]'
    """
    return json.dumps(tables, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8").strip()


@cache
def _template() -> Any:
    import jinja2
    import markupsafe

    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["ours"] = markupsafe.Markup  # text that we wrote ourselves, or made safe
    return environment.get_template("page.html")
