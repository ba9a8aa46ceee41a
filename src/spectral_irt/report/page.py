"""The page: one HTML file without anything from elsewhere, whose only program and style are known by their hashes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spectral_irt.errors import OptionError, for_page
from spectral_irt.files import refuse_foreign, write_each
from spectral_irt.report.blocks import DataTable, Lines, ReportData, Section
from spectral_irt.report.change import change
from spectral_irt.report.changes import changes
from spectral_irt.report.checklist import checklist_of
from spectral_irt.report.facets import facets
from spectral_irt.report.fit import differential, dimensions, fit
from spectral_irt.report.items import curves, item_table, wright
from spectral_irt.report.methods import methods
from spectral_irt.report.overview import findings, reading, summary
from spectral_irt.report.people import groups_and_classes, people, scores
from spectral_irt.report.questions import questions
from spectral_irt.report.tree import tree
from spectral_irt.text import printable, within

if TYPE_CHECKING:
    from spectral_irt.analysis import Analysis
    from spectral_irt.analysis.folder import Parts

HERE = Path(__file__).parent
ENDINGS = (".html", ".htm")
WORD = ".docx"
MARK = '<meta name="generator" content="spectral-irt">'  # by which a page is known again as ours
# What could end a script's element, or a line of a program.
UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


# Names, titles, and what gives each: an error says why it is missing.
SECTIONS: dict[str, tuple[str, Callable[[ReportData], Section]]] = {
    "findings": ("Findings", findings),
    "questions": ("Questions to look at", questions),
    "summary": ("Summary", summary),
    "change": ("Change over time", change),
    "wright": ("People and items on one scale", wright),
    "items": ("Items", item_table),
    "facets": ("", facets),
    "curves": ("Curves of the items", curves),
    "people": ("People", people),
    "scores": ("From score to {trait}", scores),
    "groups": ("Groups and classes", groups_and_classes),
    "fit": ("Does the model fit?", fit),
    "dimensions": ("Dimensionality", dimensions),
    "dif": ("Differential item functioning", differential),
    "tree": ("Groups for whom items work differently", tree),
    "changes": ("What was changed", changes),
    "methods": ("Methods", methods),
    "reading": ("How the data were read", reading),
    "checklist": ("Reporting checklist", checklist_of),
}


def write_report(study: Analysis, path: Path, parts: Parts, **words: Any) -> Path:
    """The report of an analysis as an HTML file or a Word document, by its name, complete or not at all; the words are
    those of `page_of`."""
    check_report(path)
    content = report_of(study, parts, path, **words)
    write_each({path: lambda draft: draft.write_bytes(content)})
    return path


def check_place(path: Path) -> None:
    """An error where the page would be no HTML by its name, or take the place of a file that is none of ours."""
    if path.suffix.lower() not in ENDINGS:
        raise OptionError(f"{str(path)!r} does not end in .html; it is an HTML file.")
    refuse_foreign([path], MARK)


def check_report(path: Path) -> None:
    """The same of a report, which may be a Word document."""
    if path.suffix.lower() == WORD:
        from spectral_irt.report.word import check_word

        check_word(path)
    elif path.suffix.lower() in ENDINGS:
        check_place(path)
    else:
        raise OptionError(f"{str(path)!r} ends neither in .html nor in .docx; a report is a page or a Word document.")


def report_of(study: Analysis, parts: Parts, path: Path, record: Any = None, **words: Any) -> bytes:
    """The report as the content of a file of this name; the words are those of `page_of`."""
    if path.suffix.lower() != WORD:
        return page_of(study, parts, record, **words).encode("utf-8")
    from spectral_irt.report.word import document

    report = _contents(study, parts, record, **words)
    return document(report.title, report.sections, report.version, report.byline, report.author)


def page_of(
    study: Analysis,
    parts: Parts,
    record: Mapping[str, Any] | None = None,
    *,
    title: str | None = None,
    author: str | None = None,
    list_persons: bool = False,
    checklist: str | None = None,
) -> str:
    """The report of an analysis as HTML; `record` is that of the analysis where more is known about the files."""
    words: dict[str, Any] = {"list_persons": list_persons, "checklist": checklist}
    report = _contents(study, parts, record, title=title, author=author, **words)
    return rendered(report.title, report.sections, report.version, report.author)


class Contents(NamedTuple):
    """What a report holds, whatever it is written as."""

    title: str
    author: str
    version: str
    sections: list[Section]

    @property
    def byline(self) -> str:
        return byline(self.author)


def _contents(
    study: Analysis,
    parts: Parts,
    record: Mapping[str, Any] | None = None,
    *,
    title: str | None = None,
    author: str | None = None,
    list_persons: bool = False,
    checklist: str | None = None,
) -> Contents:
    study._tell("report")
    data = ReportData.of(study, parts, record, list_persons=list_persons, checklist=checklist)
    return Contents(
        title=title or f"Report: {within(data.record, 'input', 'source') or 'a calibration'}",
        author=author or "",
        version=within(data.record, "versions", "spectral_irt") or "",
        sections=sections_of(data),
    )


def byline(author: str) -> str:
    """Who made it, and when."""
    return ", ".join(filter(None, [printable(author), today()]))


def now() -> float:
    """Seconds since 1970; SOURCE_DATE_EPOCH stands for them where files have to be the same on another day."""
    return float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())


def today() -> str:
    """The date in words."""
    day = datetime.fromtimestamp(now(), UTC)
    return f"{day.day} {day:%B %Y}"


def sections_of(data: ReportData) -> list[Section]:
    """What there is to say about the data; then what there is not, and the long tables."""
    sections = []
    missing = []
    for name, (title, section_of) in SECTIONS.items():
        try:
            section = section_of(data)
        except OptionError as error:
            missing.append(f"{data.words.fill(title)}: {for_page(str(error))}")
        else:
            sections.append(replace(section, name=name, title=section.title or data.words.fill(title)))
    if missing:
        sections.append(Section((Lines(tuple(missing)),), title="Not in this report", name="missing"))
    appendix = tuple(block for section in sections for block in section.appendix)
    sections.append(Section(appendix, title="Appendix: long tables", name="appendix"))
    return [section for section in sections if section.content]


def rendered(title: str, sections: Sequence[Section], version: str, author: str = "") -> str:
    """Sections as a whole page; what no file can hold (half a character) is replaced."""
    blocks = [block for section in sections for block in section.content]
    tables = {block.name: block.data() for block in blocks if isinstance(block, DataTable)}
    program = own_text(HERE / "page.js")
    style = own_text(HERE / "page.css")
    text = templates(HERE).get_template("page.html").render(
        mark=MARK, title=printable(title), byline=byline(author),
        policy=policy(program, style), style=style, program=program, data=data_text(tables), sections=sections,
        version=version,
    )  # fmt: skip
    return text.strip().encode("utf-8", "replace").decode("utf-8") + "\n"


def data_text(tables: Any) -> str:
    r"""Data as JSON that can stand in a script element of a page, whatever it holds.

    >>> data_text(["</script>", "a & b"])
    '["\\u003c/script\\u003e","a \\u0026 b"]'
    """
    return json.dumps(tables, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def policy(program: str, style: str, more: str = "form-action 'none'") -> str:
    """What a page may do: run this one program, use this one style, and nothing from elsewhere."""
    return (
        f"default-src 'none'; script-src '{_hash(program)}'; style-src '{_hash(style)}'; img-src data:; "
        f"base-uri 'none'; {more}"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest())
    return f"sha256-{digest.decode()}"


@cache
def own_text(*paths: Path) -> str:
    """Text of our own files."""
    return "\n".join(path.read_text(encoding="utf-8").strip() for path in paths)


@cache
def templates(folder: Path) -> Any:
    """The templates of a folder: all that is filled in is text, unless it is said to be `ours`."""
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["ours"] = markupsafe.Markup  # text that we wrote ourselves, or made safe
    return environment
