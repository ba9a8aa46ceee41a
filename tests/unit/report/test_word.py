"""The report as a Word document: opened again by python-docx, and by LibreOffice where it is installed."""

import io
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.report import word
from spectral_irt.report.blocks import Column, DataTable, Lines, Section, Table, Text

docx = pytest.importorskip("docx")
EPOCH = "1700000000"  # the day of a report


@pytest.fixture(scope="module")
def study():
    data = si.simulate.partial_credit(150, thresholds=[[b - 1, b, b + 1] for b in np.linspace(-1, 1, 10)], seed=4)
    responses = data.responses.with_item_texts({item: f"I felt <item> {item} & more" for item in data.responses.items})
    return si.SpectralPartialCredit().fit(responses).analyse(responses)


@pytest.fixture(scope="module")
def report(study, tmp_path_factory):
    path = tmp_path_factory.mktemp("word") / "study.docx"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        return study.report(path, title="A study", author="N. N.")


def test_the_document_has_the_sections_of_the_page(study, report):
    document = docx.Document(str(report))
    headings = [one.text for one in document.paragraphs if one.style.name == "Heading 1"]
    page = study.report(report.with_name("study.html"), title="A study").read_text(encoding="utf-8")
    titles = [part.split("</h2>")[0] for part in page.split("<h2 ")[1:]]
    assert headings == [title.split(">")[1].replace("&amp;", "&") for title in titles]
    assert (document.core_properties.title, document.core_properties.author) == ("A study", "N. N.")
    text = "\n".join(one.text for one in document.paragraphs)
    assert "Answers of 150 people to 10 items were calibrated under the partial credit model" in text
    assert "Masters, G. N. (1982)" in text


def test_captions_are_numbered_and_pictures_have_words(report):
    document = docx.Document(str(report))
    captions = [one for one in document.paragraphs if one.style.name == "Caption"]
    for kind, number in (("Table", len(document.tables)), ("Figure", len(document.inline_shapes))):
        mine = [one for one in captions if one.text.startswith(kind)]
        fields = [one._p.xpath(".//w:fldSimple") for one in mine]
        assert [one[0].xpath("string(.)") for one in fields] == [str(k) for k in range(1, number + 1)]
    assert len(document.inline_shapes) >= 4
    assert all(shape._inline.docPr.get("descr") for shape in document.inline_shapes)


def test_item_texts_stand_below_the_labels(report):
    document = docx.Document(str(report))
    cells = {cell.text for table in document.tables for cell in table.columns[0].cells}
    assert any("I felt <item>" in text for text in cells)


@pytest.mark.slow
def test_the_same_report_is_the_same_file(study, report, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    again = study.report(tmp_path / "again.docx", title="A study", author="N. N.")
    assert again.read_bytes() == report.read_bytes()


def test_long_tables_are_cut_and_odd_characters_do_no_harm():
    n = word.ROWS + 5
    columns = (Column("item", "Item"), Column("x", "Value", 2), Column("hidden", "Hidden", 2, closed=True))
    values = {"item": np.array([f"q{k}\x07\ud800" for k in range(n)], dtype=object), "x": np.arange(n) / 3}
    table = DataTable("t", "Numbers", columns, {**values, "hidden": values["x"]}, noun="items")
    small = Table("Small", ("", "a"), (("row", "1"),))
    blocks = (Text("seen"), Text("not on paper", screen=True), Lines(("x = 1",), "Code", program=True), small, table)
    content = word.document("T\x00", [Section(blocks, title="S")], "1", "today")
    document = docx.Document(io.BytesIO(content))
    assert "not on paper" not in [one.text for one in document.paragraphs]
    assert [len(one.rows) for one in document.tables] == [2, 1 + word.ROWS]
    assert [cell.text for cell in document.tables[1].rows[0].cells] == ["Item", "Value"]
    assert any(f"the first {word.ROWS} of {n} items" in one.text for one in document.paragraphs)


def test_without_python_docx_and_in_the_place_of_anothers_file(study, tmp_path, monkeypatch):
    foreign = tmp_path / "thesis.docx"
    docx.Document().save(str(foreign))
    with pytest.raises(OutputError, match="no run of spectral-irt wrote it"):
        study.report(foreign)
    with pytest.raises(OptionError, match=r"neither in \.html nor in \.docx"):
        study.report(tmp_path / "report.pdf")
    monkeypatch.setattr(word, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match="needs python-docx"):
        study.report(tmp_path / "new.docx")
    assert not (tmp_path / "new.docx").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_libreoffice_opens_it(report, tmp_path):
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "pdf"]
    subprocess.run([*command, "--outdir", str(tmp_path), str(report)], check=True, capture_output=True, timeout=300)
    pdf = (tmp_path / "study.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type/Page\n") + pdf.count(b"/Type /Page\n") + pdf.count(b"/Type/Page/") >= 5


def test_widths_follow_what_columns_hold():
    head = ["Head"] * 3
    widths = word._widths(head, [["a", "a longer cell", "so many words " * 20]])
    assert all(a < b for a, b in pairwise(widths))
    assert sum(widths) == pytest.approx(word.WIDTH_CM)
    long = "a sentence that takes several lines of its column " * 3
    point, answer, where = word._widths(["Point", "Answer", "Where"], [[long, long, "Summary"]])
    assert point == answer
    letters = (len("Summary") + word.PADDING_LETTERS) / word.LETTERS
    assert where >= word.WIDTH_CM * letters * 0.99  # the word stays whole


def test_only_short_cells_that_begin_with_a_number_are_numbers():
    assert word._mostly_numbers(["0.80", "-1.2", "", "0 of 45 pairs"])
    assert not word._mostly_numbers(["1 underfit and 9 overfit of 10 items", "95% limits of each item", "5"])
    assert not word._mostly_numbers([])
