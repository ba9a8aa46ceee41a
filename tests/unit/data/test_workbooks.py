"""Workbooks as they are in real life: a right result, or a sentence that says where and what to do."""

import datetime
import io
import zipfile

import numpy as np
import openpyxl
import pytest
import xlsxwriter

from reading import complaint, notes
from spectral_irt.errors import OptionError, SpectralIrtError
from spectral_irt.reading import excel, read, text_pieces
from spectral_irt.reading.excel import HiddenCells

ROWS = [["id", "q1", "q2"], ["ann", 1, 0], ["bob", 0, 1]]
ANSWERS = {"ann": {"q1": 1, "q2": 0}, "bob": {"q1": 0, "q2": 1}}
SHEET = "xl/worksheets/sheet1.xml"


def book(path, change=lambda wb, ws: None, rows=ROWS):
    """A workbook with these rows in the sheet "Answers", then changed."""
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Answers"
    for row in rows:
        sheet.append(row)
    change(made, sheet)
    made.save(path)
    return path


def plain_book(path, rows=ROWS, change=lambda sheet: None, **options):
    """The same by xlsxwriter, which computes nothing and keeps texts as they are."""
    with xlsxwriter.Workbook(path, options) as made:
        sheet = made.add_worksheet()
        for row, cells in enumerate(rows):
            sheet.write_row(row, 0, cells)
        change(sheet)
    return path


def cell(place, value):
    """A change of one cell."""
    return lambda wb, ws: ws.__setitem__(place, value)


def dense(responses):
    """Who answered what, by label."""
    found = {person: {} for person in responses.persons.tolist()}
    for person, item, category in zip(*responses.answers(), strict=True):
        found[responses.persons[person]][responses.items[item]] = int(category)
    return found


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["00123", "00124"], ["00123", "00124"]),
        ([1, 2.0], [1, 2]),
        (["1", 2], [1, 2]),
        (["1.0", "1"], ["1.0", "1"]),
        (["001", 1], ["001", "1"]),
        ([10**15 + 1, 3], [10**15 + 1, 3]),
        (["a ", "a"], ["a ", "a"]),
        ([True, "x"], ["true", "x"]),
        ([1.5, 2], ["1.5", "2"]),
        (["=1+1", "'x"], ["=1+1", "'x"]),
    ],
)
def test_labels_are_what_the_cells_show(tmp_path, given, shown):
    rows = [["student", "q1", "q2"], [given[0], 1, 0], [given[1], 0, 1]]
    assert read(plain_book(tmp_path / "a.xlsx", rows, strings_to_formulas=False)).persons.tolist() == shown


def test_answers_may_be_numbers_texts_and_truths_and_names_of_items_numbers(tmp_path):
    rows = [["id", "q1", 2, 3.0], ["ann", 1, "0", True], ["bob", "1.0", " 0 ", False], ["eve", 0.0, 1, "NA"]]
    found = dense(read(book(tmp_path / "a.xlsx", rows=rows)))
    assert found == {"ann": {"q1": 1, "2": 0, "3": 1}, "bob": {"q1": 1, "2": 0, "3": 0}, "eve": {"q1": 0, "2": 1}}
    path = book(tmp_path / "b.xlsx", rows=[["id", 1, 2.0], ["ann", 1, 0], ["bob", 0, 1]])
    assert read(path).items.tolist() == [1, 2]


def around(wb, ws):
    """Empty rows and columns around the table, and formats beyond it."""
    ws.insert_rows(1, 2)
    ws.insert_cols(1, 2)
    ws["A30"].number_format = "0.00"
    ws["F30"], ws["I2"] = " ", " "


def hidden(wb, ws):
    sheet = wb.create_sheet("Lists")
    sheet.append(["a", "b"])
    sheet.sheet_state = "hidden"


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (around, ROWS),
        (lambda wb, ws: None, [[None, "q1", "q2"], *ROWS[1:]]),  # as from R
        (lambda wb, ws: ws.merge_cells("A1:C1"), [["A test", None, None], *ROWS]),
        (lambda wb, ws: wb.create_sheet("Empty"), ROWS),
        (hidden, ROWS),
    ],
)
def test_what_does_no_harm(tmp_path, change, rows):
    assert dense(read(book(tmp_path / "a.xlsx", change, rows))) == ANSWERS


def test_a_title_above_the_header_is_passed_and_said(tmp_path):
    rows = [["Test of May"], [], ["2 people"], *ROWS, ["eve", 1, 7]]
    path = book(tmp_path / "a.xlsx", rows=rows)
    assert "sheet 'Answers': column 'q2', row 7 holds 7" in complaint(path)  # rows as the program counts them
    said = notes(read(path, missing=7))["title_rows"].sentence
    assert "rows 1 to 3 ('Test of May', '2 people')" in said
    assert "header is row 4" in said


def test_a_title_may_have_little_beside_it(tmp_path):
    """Of a class of pupils: what the test was, the date and beside it the teacher, an empty row, the header."""
    header = ["No.", "Name", *(f"Q{k}" for k in range(1, 6))]
    pupils = [[1, "ann", 1, 0, 1, 0, 1], [2, "bob", 0, 1, 0, 1, 0]]
    rows = [["Geography"], ["Date: 14 May", None, "Ms. Turner"], [], header, *pupils]
    responses = read(book(tmp_path / "a.xlsx", rows=rows))
    assert responses.items.tolist() == header[2:]
    sentence = notes(responses)["title_rows"].sentence
    assert "rows 1 to 2 ('Geography', 'Date: 14 May') were treated as titles; the header is row 4" in sentence


def test_a_sheet_with_a_header_alone_is_not_meant(tmp_path):
    path = book(tmp_path / "a.xlsx", lambda wb, ws: wb.create_sheet("Grades").append(["Name", "Oral", "Written"]))
    assert dense(read(path)) == ANSWERS


@pytest.mark.parametrize(
    ("change", "rows", "said"),
    [
        (lambda wb, ws: None, [["Test", "of May"], *ROWS], ["column C", "hold values without a name"]),
        (lambda wb, ws: None, [["id"], *ROWS[1:]], ["the row below already holds answers"]),
        (lambda wb, ws: None, [[1, 0, 1], [0, 0, 1]], ["has no header: row 1 already holds answers"]),
        (lambda wb, ws: None, [["id", "q1", "q1"], ["ann", 1, 0]], ["repeated: 'q1'"]),
        (lambda wb, ws: ws.merge_cells("B2:B3"), ROWS, ["column 'q1' has merged cells, B2:B3"]),
        (
            lambda wb, ws: ws.merge_cells("B1:C1"),
            [["id", "Part A", None], [None, "q1", "q2"], ["ann", 1, 0]],
            ["column C", "hold values without a name"],
        ),
        (cell("C3", "=2-1"), ROWS, ["column 'q2', row 3 holds a formula without a value", "save it"]),
        (cell("XFD1048576", "x"), ROWS, ["reaches to column XFD and to row 1,048,576", "Delete the stray cells"]),
    ],
)
def test_what_is_no_table(tmp_path, change, rows, said):
    message = complaint(book(tmp_path / "a.xlsx", change, rows)).replace("columns C", "column C")
    assert all(words in message for words in said), message


def test_formulas_count_by_their_values(tmp_path):
    def change(sheet):
        sheet.write_formula("B2", "=3-2", None, 1)
        sheet.write_formula("C3", '=IF(1,"1","")', None, "1")

    assert dense(read(plain_book(tmp_path / "a.xlsx", change=change))) == ANSWERS


@pytest.mark.parametrize(
    "change", [cell("B2", "=2-1"), cell("B2", "#N/A"), lambda wb, ws: ws.merge_cells("B2:B3"), cell("B3", "x")]
)
def test_columns_that_are_not_items_do_not_matter(tmp_path, change):
    assert dense(read(book(tmp_path / "a.xlsx", change), ignore="q1")) == {"ann": {"q2": 0}, "bob": {"q2": 1}}


@pytest.mark.parametrize("text", ["#N/A", "#DIV/0!", "#REF!"])
def test_error_cells_are_no_answers_unless_said_to_be_missing(tmp_path, text):
    def change(wb, ws):
        ws["C3"] = text
        ws["C3"].data_type = "e"

    path = book(tmp_path / "a.xlsx", change)
    said = complaint(path)
    assert f"sheet 'Answers': column 'q2', row 3 holds {text!r}" in said
    assert f"missing={text!r}" in said
    assert f"row 3 holds {text!r}, which is an error of the spreadsheet" in complaint(path, key={"q1": 1, "q2": 0})
    for how in ({}, {"key": {"q1": "1", "q2": "1"}}):
        assert dense(read(path, missing=text, **how))["bob"] == {"q1": 0}
    (tmp_path / "a.csv").write_text(f"id,q1,q2\nann,A,{text}\nbob,B,A\n")
    assert "an error of the spreadsheet" in complaint(tmp_path / "a.csv", key={"q1": "A", "q2": "A"})


def test_codes_that_became_dates(tmp_path):
    day = datetime.datetime(2024, 1, 2)
    said = complaint(book(tmp_path / "a.xlsx", cell("B3", day)), key={"q1": "1-2", "q2": "0"})
    assert "column 'q1', row 3 holds the date 2024-01-02" in said
    assert "Format the column as text" in said
    assert "column 'id', row 2 holds the date" in complaint(book(tmp_path / "b.xlsx", cell("A2", day)))
    said = complaint(book(tmp_path / "c.xlsx", cell("C1", day)))
    assert "row 1 has dates for names of columns ('2024-01-02')" in said
    rows = [["id", "date", "q1", "q2"], ["ann", day, 1, 0], ["bob", day, 0, 1]]  # a date that is one
    assert dense(read(book(tmp_path / "d.xlsx", rows=rows))) == ANSWERS


def test_which_sheet(tmp_path):
    def change(wb, ws):
        wb.create_sheet("Empty")
        other = wb.create_sheet("Other", 0)
        other.append(["id", "x"])
        other.append(["ann", 3])

    path = book(tmp_path / "b.xlsx", change)
    assert "b.xlsx: 2 sheets may be meant, 'Other', 'Answers'. Say which one with `sheet='Other'" in complaint(path)
    for sheet in ("Answers", "answers ", 2, "2"):
        assert dense(read(path, sheet=sheet)) == ANSWERS
    for sheet in ("Answer", 0, 9, -1, True):
        with pytest.raises(OptionError, match="its sheets are 'Other', 'Answers', 'Empty'"):
            read(path, sheet=sheet)
    assert "Did you mean 'Answers'?" in complaint(path, sheet="Answer")
    assert "sheet 'Empty' is empty" in complaint(path, sheet="Empty")
    (tmp_path / "a.csv").write_text("id,q1\na,1\n")
    assert "is not a workbook, so it has no sheets" in complaint(tmp_path / "a.csv", sheet="x")


def test_a_sheet_whose_name_is_a_number_is_meant_by_it(tmp_path):
    def change(wb, ws):
        ws.title = "2"
        wb.create_sheet("B").append(["id", "x"])

    assert dense(read(book(tmp_path / "a.xlsx", change), sheet="2")) == ANSWERS


def test_the_key_in_the_same_workbook(tmp_path):
    def change(wb, ws):
        sheet = wb.create_sheet("Key")
        for row in (["item", "key"], ["q1", "A"], ["q2", 2]):
            sheet.append(row)

    path = book(tmp_path / "a.xlsx", change, [["id", "q1", "q2"], ["ann", "A", "1"], ["bob", "B", 2.0]])
    for how in ({}, {"key_sheet": 2}):
        assert dense(read(path, sheet="Answers", key=path, **how)) == ANSWERS
    assert "key_sheet" in complaint(path, sheet="Answers", key=path, key_sheet="Keys")
    assert "`key_sheet` is a sheet of the workbook that `key=` names" in complaint(path, sheet="Answers", key_sheet=2)


OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("cut.xlsx", None, "cannot be read as a workbook"),
        ("text.xls", b"id\tq1\nann\t1\n", "rename it to .csv"),
        ("page.xls", b"<html><table></table></html>", "is a web page or XML"),
        ("zeros.xlsx", b"PK\x03\x04" + bytes(500), "cannot be read as a workbook"),
        ("old.xls", OLD, "cannot be read as a workbook"),
        ("secret.xlsx", OLD + "EncryptedPackage".encode("utf-16-le") + bytes(99), "is protected by a password"),
    ],
)
def test_what_is_no_workbook(tmp_path, name, data, says):
    good = book(tmp_path / "good.xlsx").read_bytes()
    (tmp_path / name).write_bytes(good[: len(good) // 2] if data is None else data)
    said = complaint(tmp_path / name)
    assert said.startswith(name)
    assert says in said


@pytest.mark.parametrize("name", ["really.csv", "really.xls"])
def test_a_workbook_under_a_wrong_name(tmp_path, name):
    (tmp_path / name).write_bytes(book(tmp_path / "good.xlsx").read_bytes())
    assert dense(read(tmp_path / name)) == ANSWERS


def changed(data, name, change):
    """The archive with one of its parts changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            content = old.read(part)
            new.writestr(part.filename, change(content) if part.filename == name else content)
    return out.getvalue()


def test_damage_inside_the_archive(tmp_path):
    good = plain_book(tmp_path / "good.xlsx").read_bytes()
    for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels", SHEET, "xl/sharedStrings.xml"):
        (tmp_path / "bad.xlsx").write_bytes(changed(good, name, lambda content: content[: len(content) // 2] + b"<&"))
        assert complaint(tmp_path / "bad.xlsx").startswith("bad.xlsx"), name
    rng = np.random.default_rng(3)
    for _ in range(60):  # whatever is hit, no other exception comes out
        data = bytearray(good)
        for at in rng.integers(0, len(data), 8):
            data[at] = rng.integers(256)
        (tmp_path / "hit.xlsx").write_bytes(bytes(data))
        try:
            read(tmp_path / "hit.xlsx")
        except SpectralIrtError as error:
            assert "hit.xlsx" in str(error)  # noqa: PT017


def test_an_archive_that_unpacks_to_too_much_is_not_opened(tmp_path, monkeypatch):
    good = book(tmp_path / "a.xlsx").read_bytes()
    bomb = changed(good, SHEET, lambda xml: xml + bytes(1 << 24))
    assert len(bomb) < 1 << 16
    (tmp_path / "bomb.xlsx").write_bytes(bomb)
    monkeypatch.setattr(text_pieces, "MAX_UNPACKED", 1 << 23)
    assert "unpacks to more than 0.00839 GB" in complaint(tmp_path / "bomb.xlsx")
    # One that lies about its size in the directory.
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        size = (1 << 24) + len(archive.read(SHEET))
    lying = bomb.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert lying != bomb
    (tmp_path / "lying.xlsx").write_bytes(lying)
    assert "cannot be read as a workbook" in complaint(tmp_path / "lying.xlsx")


@pytest.mark.parametrize("place", [b"B99999999999", b"ZZZZZZZ3", b"XFE1048577", b"B4294967295"])
def test_a_cell_beyond_the_sheet(tmp_path, place):
    """Whatever the sheet says of its extent: a reader would ask for the room of all cells before it, and end there."""
    path = book(tmp_path / "a.xlsx")
    moved = changed(path.read_bytes(), SHEET, lambda xml: xml.replace(b'r="B3"', b'r="' + place + b'"'))
    path.write_bytes(moved)
    assert "more cells than can be read" in complaint(path)


@pytest.mark.parametrize("filling", [b'<c r="A1" t="e">', b"<c ", b"<c r='A1'><f>", b'<mergeCell ref="A', b"<x:c t=x"])
def test_tags_that_are_not_closed_are_passed_over_once(filling):
    """Looking for the end of each anew would take hours for a few megabytes."""
    data = b'<c r="B2" t="e"><v>#REF!</v></c>' + filling * 200_000
    cells = HiddenCells()
    excel._look(data, cells)
    assert cells.errors == {1: [(1, "#REF!")]}
    assert excel._MERGED.findall(data) == []


def test_the_letters_of_a_column_without_end():
    assert excel._column(b"A" * 4_000_000) == excel._column(b"A" * 9)
    assert [excel._column(letters) for letters in (b"A", b"Z", b"AA", b"XFD")] == [0, 25, 26, 16383]


@pytest.mark.slow
def test_no_more_columns_than_a_sheet_has(tmp_path):
    rows = [["id", *(f"q{k}" for k in range(16_383))], *([k, *((k + j) % 2 for j in range(16_383))] for k in range(2))]
    found = read(plain_book(tmp_path / "a.xlsx", rows, constant_memory=True))
    assert (found.n_persons, found.n_items, found.n_responses) == (2, 16_383, 2 * 16_383)


def test_several_workbooks_are_one_table(tmp_path):
    book(tmp_path / "a1.xlsx")
    book(tmp_path / "a2.xlsx", rows=[["id", "q2", "q3"], ["eve", 1, 0]])
    assert dense(read(tmp_path / "a*.xlsx")) == {**ANSWERS, "eve": {"q2": 1, "q3": 0}}


def ods_cell(value):
    kind = "string" if isinstance(value, str) else "float"
    number = "" if isinstance(value, str) else f' office:value="{value}"'
    return f'<table:table-cell office:value-type="{kind}"{number}><text:p>{value}</text:p></table:table-cell>'


def test_an_opendocument_sheet(tmp_path):
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    rows = "".join(f"<table:table-row>{''.join(map(ods_cell, row))}</table:table-row>" for row in ROWS)
    names = " ".join(f'xmlns:{short}="{urn}:{short}:1.0"' for short in ("office", "table", "text"))
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{urn}:manifest:1.0"/>')
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f"<office:document-content {names}><office:body><office:spreadsheet>"
            f'<table:table table:name="Answers">{rows}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    found = read(tmp_path / "a.ods")
    assert dense(found) == ANSWERS
    assert "blind_cells" in notes(found)


def test_what_is_written_below_the_table_is_no_person(tmp_path):
    """After an empty row, in one cell; a last person without an answer stands in the next row, or has a class."""
    rows = [[*row, "8a"] for row in ROWS[1:]]
    header = [*ROWS[0], "class"]
    path = book(tmp_path / "a.xlsx", rows=[header, *rows, [], ["Marks: see sheet 2"], ["Retest in June"]])
    responses = read(path)
    assert dense(responses) == ANSWERS
    sentence = notes(responses)["remark_rows"].sentence
    assert (
        "rows 5 to 6 ('Marks: see sheet 2', 'Retest in June'), below an empty row, were taken for remarks" in sentence
    )
    absent = book(tmp_path / "b.xlsx", rows=[header, *rows, ["eve"], [], ["joe", None, None, "8b"]])
    assert read(absent).persons.tolist() == ["ann", "bob", "eve", "joe"]


def test_a_sheet_of_one_column_is_not_meant(tmp_path):
    def with_remarks(wb, ws):
        remarks = wb.create_sheet("Info")
        remarks.append(["Remark"])
        remarks.append(["for the staff only"])

    assert dense(read(book(tmp_path / "a.xlsx", with_remarks))) == ANSWERS
