"""The report as a Word document, from the same sections as the page: Word's own tables, figures with captions that are
numbered by fields, so that Word numbers them anew when something is moved.

What is of use on a screen only is left out, and long tables have their first rows. python-docx is an extra.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spectral_irt.errors import OptionError
from spectral_irt.installation import install_extra
from spectral_irt.report.blocks import DataTable, FindingList, Lines, Picture, Section, Table, Text
from spectral_irt.text import printable
from spectral_irt.xlsx import MARK, refuse_foreign

ROWS = 200  # of a long table: some five pages; the files have all
WIDTH_CM = 16.6  # of the text on A4
MARGIN_CM = 2.2
FONT = "Calibri"
TABLE_POINTS = 8.5
NARROW_POINTS = 7.0  # of tables with more columns than this:
MANY_COLUMNS = 8
WIDEST_LETTERS = 40  # of a column beside others: longer cells have several lines
PADDING_LETTERS = 4  # beside the letters of a column
LETTERS = 85  # of a line of a table, also where another font takes the place of ours
LONGEST_WORD = 18  # that is kept whole; a fingerprint of the data is not
LONGEST_NUMBER = 16  # with what stands beside it, as in "0 of 45"
SEVERITIES = {"error": "Error", "warning": "Warning", "note": "Note"}


def check_word(path: Path) -> None:
    """An error where no document could be written, or where it would take the place of a file that is none of ours."""
    if find_spec("docx") is None:
        raise OptionError(f"a report in Word needs python-docx: {install_extra('word')}, or name a file.html.")
    refuse_foreign(path)


def document(title: str, sections: Sequence[Section], version: str, byline: str, author: str = "") -> bytes:
    """Sections as a document."""
    return _Writer(title, author).write(sections, byline, version)


class _Writer:
    """A document while it is written; it counts tables and figures."""

    def __init__(self, title: str, author: str) -> None:
        import docx

        self.doc: Any = docx.Document()
        self.title = _clean(title)
        self.numbers = {"Table": 0, "Figure": 0}
        self._set_up(author)

    def _set_up(self, author: str) -> None:
        from docx.shared import Cm, Pt, RGBColor

        properties = self.doc.core_properties
        properties.title = self.title
        properties.author = _clean(author)
        properties.comments = MARK
        page = self.doc.sections[0]
        page.page_width, page.page_height = Cm(21.0), Cm(29.7)
        for side in ("left_margin", "right_margin", "top_margin", "bottom_margin"):
            setattr(page, side, Cm(MARGIN_CM))
        for name, points in (("Normal", 10.5), ("Caption", 9.5), ("Heading 1", 15), ("Heading 2", 12), ("Title", 22)):
            style = self.doc.styles[name]
            style.font.name = FONT
            style.font.size = Pt(points)
            style.font.color.rgb = RGBColor(0x22, 0x22, 0x22)
            fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
            for kind in list(fonts.attrib):
                if kind.endswith("Theme"):  # which would overrule the name
                    del fonts.attrib[kind]
        self.doc.styles["Normal"].paragraph_format.space_after = Pt(6)
        self.doc.styles["Caption"].font.bold = False
        footer = page.footer.paragraphs[0]
        footer.alignment = 1
        _field(footer, "PAGE", "1")

    def write(self, sections: Sequence[Section], byline: str, version: str) -> bytes:
        self.doc.add_paragraph(self.title, style="Title")
        self.doc.add_paragraph(_clean(byline))
        writers: dict[type, Any] = {
            Text: self._text,
            Lines: self._lines,
            Table: self._table,
            DataTable: self._data,
            Picture: self._picture,
            FindingList: self._findings,
        }
        for section in sections:
            self.doc.add_heading(_clean(section.title), level=1)
            for block in section.content:
                writers[type(block)](block)
        self.doc.add_paragraph(_clean(f"Made by spectral-irt {version}."))
        buffer = io.BytesIO()
        self.doc.save(buffer)
        return _same_every_day(buffer.getvalue())

    def _text(self, block: Text) -> None:
        if not block.screen:
            self.doc.add_paragraph(_clean(block.text))

    def _lines(self, block: Lines) -> None:
        from docx.shared import Pt

        if block.title:
            self.doc.add_heading(_clean(block.title), level=2)
        for line in block.lines:
            paragraph = self.doc.add_paragraph()
            run = paragraph.add_run(_clean(line))
            if block.program:
                run.font.name = "Consolas"
                run.font.size = Pt(8.5)
                paragraph.paragraph_format.space_after = Pt(0)

    def _findings(self, block: FindingList) -> None:
        for finding in block.findings:
            paragraph = self.doc.add_paragraph(style="List Bullet")
            severity = SEVERITIES.get(str(finding.get("severity")), "Note")
            paragraph.add_run(f"{severity}. ").bold = True
            paragraph.add_run(_clean(str(finding.get("sentence") or "")))
            if finding.get("remedy"):
                paragraph.add_run(f" {_clean(str(finding['remedy']))}").italic = True

    def _table(self, block: Table) -> None:
        if not block.folded:
            numeric = [False, *(_mostly_numbers([row[k] for row in block.rows]) for k in range(1, len(block.head)))]
            self._grid(block.caption, block.head, block.rows, numeric)

    def _data(self, block: DataTable) -> None:
        columns = [column for column in block.columns if not column.closed]
        rows = block.first(ROWS)
        texts = block.texts_below(ROWS)
        for row, text in zip(rows, texts, strict=True):
            if text:
                row[0] = f"{row[0]}\n{text}"
        caption = block.caption
        if block.n_rows > len(rows):
            caption += f" (the first {len(rows):,} of {block.n_rows:,} {block.noun})"
        numeric = [column.digits is not None for column in columns]
        self._grid(caption, [column.head for column in columns], rows, numeric)

    def _caption(self, kind: str, text: str, *, keep_with_next: bool) -> None:
        self.numbers[kind] += 1
        paragraph = self.doc.add_paragraph(style="Caption")
        paragraph.paragraph_format.keep_with_next = keep_with_next
        paragraph.add_run(f"{kind} ").bold = True
        _field(paragraph, f"SEQ {kind} \\* ARABIC", str(self.numbers[kind]), bold=True)
        paragraph.add_run(f". {_clean(text)}")

    def _grid(self, caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
        """A table with lines above, below, and under its head, which is repeated on every page."""
        from docx.enum.table import WD_TABLE_ALIGNMENT
        from docx.shared import Cm, Pt

        self._caption("Table", caption, keep_with_next=True)
        table = self.doc.add_table(rows=0, cols=len(head))
        table.alignment = WD_TABLE_ALIGNMENT.LEFT
        table.autofit = False
        widths = [Cm(width) for width in _widths(head, rows)]
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
        points = NARROW_POINTS if len(head) > MANY_COLUMNS else TABLE_POINTS
        for place, row in enumerate([head, *rows]):
            cells = table.add_row().cells
            for k, (cell, text) in enumerate(zip(cells, row, strict=True)):
                cell.width = widths[k]
                paragraph = cell.paragraphs[0]
                paragraph.paragraph_format.space_before = Pt(1.5)
                paragraph.paragraph_format.space_after = Pt(1.5)
                paragraph.paragraph_format.line_spacing = 1.0
                paragraph.paragraph_format.keep_with_next = place == 0
                if numeric[k]:
                    paragraph.alignment = 2
                run = paragraph.add_run(_clean(text))
                run.font.size = Pt(points)
                run.bold = place == 0
        _lines_of(table)
        self.doc.add_paragraph().paragraph_format.space_after = Pt(2)

    def _picture(self, block: Picture) -> None:
        from docx.shared import Cm

        width = min(WIDTH_CM, block.width / 96 * 2.54)
        paragraph = self.doc.add_paragraph()
        paragraph.paragraph_format.keep_with_next = True
        shape = paragraph.add_run().add_picture(io.BytesIO(block.png()), width=Cm(width))
        shape._inline.docPr.set("descr", _clean(block.alt))
        first_sentence = block.alt.split(". ")[0].removesuffix(".")
        self._caption("Figure", block.caption or f"{first_sentence}.", keep_with_next=False)


def _clean(text: str) -> str:
    """Text that a document can hold: no control characters, no halves of characters."""
    return "\n".join(map(printable, text.split("\n"))).encode("utf-8", "replace").decode("utf-8")


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[float]:
    """How wide each column is, in cm: its longest word stays whole, and what is left goes to those with long cells."""
    needed = []
    more = []
    for k, name in enumerate(head):
        cells = [row[k] for row in rows]
        words = max((len(word) for cell in (name, *cells) for word in cell.split()), default=0)
        longest_cell = max((len(line) for cell in cells for line in cell.split("\n")), default=0)
        needed.append(PADDING_LETTERS + min(words, LONGEST_WORD))
        more.append(max(0, min(longest_cell, WIDEST_LETTERS) - words))
    left = max(0.0, LETTERS - sum(needed))
    share = min(1.0, left / max(1, sum(more)))
    letters = [least + share * further for least, further in zip(needed, more, strict=True)]
    return [WIDTH_CM * each / sum(letters) for each in letters]


def _mostly_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    numbers = [cell for cell in filled if cell[0] in "-−+.0123456789–" and len(cell) <= LONGEST_NUMBER]
    return len(numbers) * 2 > len(cells)


def _field(paragraph: Any, instruction: str, shown: str, *, bold: bool = False) -> None:
    """A number that Word keeps."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    field = OxmlElement("w:fldSimple")
    field.set(qn("w:instr"), instruction)
    run = paragraph.add_run(shown)
    run.bold = bold
    field.append(run._r)
    paragraph._p.append(field)


def _lines_of(table: Any) -> None:
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    def borders(kind: str, sides: Mapping[str, str]) -> Any:
        element = OxmlElement(kind)
        for side, size in sides.items():
            line = OxmlElement(f"w:{side}")
            line.set(qn("w:val"), "single")
            line.set(qn("w:sz"), size)
            line.set(qn("w:color"), "444444")
            element.append(line)
        return element

    table._tbl.tblPr.append(borders("w:tblBorders", {"top": "8", "bottom": "8"}))
    head = table.rows[0]
    for cell in head.cells:
        cell._tc.get_or_add_tcPr().append(borders("w:tcBorders", {"bottom": "4"}))
    repeated = OxmlElement("w:tblHeader")
    repeated.set(qn("w:val"), "true")
    head._tr.get_or_add_trPr().append(repeated)
    for row in table.rows:
        row._tr.get_or_add_trPr().append(OxmlElement("w:cantSplit"))


def _same_every_day(content: bytes) -> bytes:
    """The archive with no times of its own: the same report is the same file."""
    from spectral_irt.report.page import now

    moment = datetime.fromtimestamp(now(), UTC)
    source = zipfile.ZipFile(io.BytesIO(content))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            entry = zipfile.ZipInfo(name, moment.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read(name))
    return buffer.getvalue()
