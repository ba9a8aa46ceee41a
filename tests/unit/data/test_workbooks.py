"""Workbooks as they are in real life: a right result, or a sentence that says where and what to do."""

import datetime
import io
import zipfile

import numpy as np
import openpyxl
import pytest
import xlsxwriter

from spectral_irt.errors import OptionError, ReadError, SpectralIrtError
from spectral_irt.reading import read, text_pieces

ROWS = [["id", "q1", "q2"], ["ann", 1, 0], ["bob", 0, 1]]


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


def complaint(path, **options):
    with pytest.raises(SpectralIrtError) as error:
        read(path, **options)
    return str(error.value)


def dense(responses):
    """Who answered what, by label."""
    found = {person: {} for person in responses.persons.tolist()}
    names, items, start = responses.persons.tolist(), responses.items.tolist(), 0
    for block in responses.blocks:
        for person in range(len(block.indptr) - 1):
            for k in range(block.indptr[person], block.indptr[person + 1]):
                found[names[start + person]][items[block.items[k]]] = int(k < block.split[person])
        start += len(block.indptr) - 1
    return found


ANSWERS = {"ann": {"q1": 1, "q2": 0}, "bob": {"q1": 0, "q2": 1}}


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
    with xlsxwriter.Workbook(tmp_path / "a.xlsx", {"strings_to_formulas": False}) as made:
        sheet = made.add_worksheet()
        for row, cells in enumerate([["student", "q1", "q2"], [given[0], 1, 0], [given[1], 0, 1]]):
            sheet.write_row(row, 0, cells)
    assert read(tmp_path / "a.xlsx").persons.tolist() == shown


def test_answers_may_be_numbers_texts_and_truths(tmp_path):
    rows = [["id", "q1", "q2", "q3"], ["ann", 1, "0", True], ["bob", "1.0", " 0 ", False], ["eve", 0.0, 1, "NA"]]
    found = dense(read(book(tmp_path / "a.xlsx", rows=rows)))
    assert found["ann"] == {"q1": 1, "q2": 0, "q3": 1}
    assert found["bob"] == {"q1": 1, "q2": 0, "q3": 0}
    assert found["eve"] == {"q1": 0, "q2": 1}


def test_item_names_that_are_numbers(tmp_path):
    path = book(tmp_path / "a.xlsx", rows=[["id", 1, 2.0], ["ann", 1, 0], ["bob", 0, 1]])
    assert read(path).items.tolist() == [1, 2]


def test_empty_rows_and_columns_around_the_table_are_nothing(tmp_path):
    def change(wb, ws):
        ws.insert_rows(1, 2)
        ws.insert_cols(1, 2)
        ws["A30"].number_format = "0.00"
        ws["F30"], ws["I2"] = " ", " "

    assert dense(read(book(tmp_path / "a.xlsx", change))) == ANSWERS


def test_a_title_above_the_header_is_passed_and_said(tmp_path):
    rows = [["Test of May"], [], ["2 people"], *ROWS, ["eve", 1, 7]]
    path = book(tmp_path / "a.xlsx", rows=rows)
    assert "sheet 'Answers': column 'q2', row 7 holds 7" in complaint(path)  # rows as the program counts them
    found = read(path, missing=7)
    note = next(note for note in found.notes if note.code == "title_rows")
    assert "rows 1 to 3 ('Test of May', '2 people')" in note.sentence
    assert "header is row 4" in note.sentence


def test_what_is_above_the_header_and_is_no_title(tmp_path):
    path = book(tmp_path / "a.xlsx", rows=[["Test", "of May"], *ROWS])
    assert "column C hold values without a name" in complaint(path).replace("columns", "column")
    path = book(tmp_path / "b.xlsx", rows=[["id"], ["ann", 1, 0], ["bob", 0, 1]])
    assert "the row below already holds answers" in complaint(path)
    path = book(tmp_path / "c.xlsx", rows=[[1, 0, 1], [0, 0, 1]])
    assert "has no header: row 1 already holds answers" in complaint(path)
    path = book(tmp_path / "d.xlsx", rows=[["id", "q1", "q1"], ["ann", 1, 0]])
    assert "repeated: 'q1'" in complaint(path)


def test_row_labels_without_a_name_as_from_r(tmp_path):
    path = book(tmp_path / "a.xlsx", rows=[[None, "q1", "q2"], ["ann", 1, 0], ["bob", 0, 1]])
    assert dense(read(path)) == ANSWERS


def test_formulas_count_by_their_values(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as made:
        sheet = made.add_worksheet()
        for row, cells in enumerate(ROWS):
            sheet.write_row(row, 0, cells)
        sheet.write_formula("B2", "=3-2", None, 1)
        sheet.write_formula("C3", '=IF(1,"1","")', None, "1")
    assert dense(read(tmp_path / "a.xlsx")) == ANSWERS


def test_a_formula_that_was_never_computed_is_not_an_empty_cell(tmp_path):
    path = book(tmp_path / "a.xlsx", lambda wb, ws: ws.__setitem__("C3", "=2-1"))
    said = complaint(path)
    assert "column 'q2', row 3 holds a formula without a value" in said
    assert "save it" in said
    assert dense(read(path, ignore="q2"))["ann"] == {"q1": 1}


def _error(path, text="#N/A"):
    def change(wb, ws):
        ws["C3"] = text
        ws["C3"].data_type = "e"

    return book(path, change)


@pytest.mark.parametrize("text", ["#N/A", "#DIV/0!", "#REF!"])
def test_error_cells_are_no_answers_unless_said_to_be_missing(tmp_path, text):
    path = _error(tmp_path / "a.xlsx", text)
    said = complaint(path)
    assert f"sheet 'Answers': column 'q2', row 3 holds {text!r}" in said
    assert f"missing={text!r}" in said
    said = complaint(path, key={"q1": 1, "q2": 0})
    assert f"row 3 holds {text!r}, which is an error of the spreadsheet" in said
    for how in ({}, {"key": {"q1": "1", "q2": "1"}}):
        assert dense(read(path, missing=text, **how))["bob"] == {"q1": 0}


def test_errors_in_columns_that_are_not_items_do_not_matter(tmp_path):
    assert dense(read(_error(tmp_path / "a.xlsx"), ignore="q2"))["bob"] == {"q1": 0}


def test_a_cell_error_in_csv_is_no_wrong_answer_either(tmp_path):
    (tmp_path / "a.csv").write_text("id,q1,q2\nann,A,#N/A\nbob,B,A\n")
    assert "an error of the spreadsheet" in complaint(tmp_path / "a.csv", key={"q1": "A", "q2": "A"})


def test_codes_that_became_dates(tmp_path):
    day = datetime.datetime(2024, 1, 2)
    path = book(tmp_path / "a.xlsx", lambda wb, ws: ws.__setitem__("B3", day))
    said = complaint(path, key={"q1": "1-2", "q2": "0"})
    assert "column 'q1', row 3 holds the date 2024-01-02" in said
    assert "Format the column as text" in said
    path = book(tmp_path / "b.xlsx", lambda wb, ws: ws.__setitem__("A2", day))
    assert "column 'id', row 2 holds the date" in complaint(path)
    path = book(tmp_path / "c.xlsx", lambda wb, ws: ws.__setitem__("C1", day))
    assert "row 1 has dates for names of columns ('2024-01-02')" in complaint(path)
    rows = [["id", "date", "q1", "q2"], ["ann", day, 1, 0], ["bob", day, 0, 1]]  # a date that is one
    assert dense(read(book(tmp_path / "d.xlsx", rows=rows))) == ANSWERS


def test_merged_cells(tmp_path):
    path = book(tmp_path / "a.xlsx", lambda wb, ws: ws.merge_cells("B2:B3"))
    assert "column 'q1' has merged cells, B2:B3" in complaint(path)
    assert dense(read(path, ignore="q1"))["ann"] == {"q2": 0}
    rows = [["id", "Part A", None], [None, "q1", "q2"], ["ann", 1, 0]]
    path = book(tmp_path / "b.xlsx", lambda wb, ws: ws.merge_cells("B1:C1"), rows)
    assert "column C hold values without a name" in complaint(path).replace("columns", "column")
    title = [["A test", None, None], *ROWS]
    path = book(tmp_path / "c.xlsx", lambda wb, ws: ws.merge_cells("A1:C1"), title)
    assert dense(read(path)) == ANSWERS


def test_which_sheet(tmp_path):
    def change(wb, ws):
        wb.create_sheet("Empty")
        hidden = wb.create_sheet("Lists")
        hidden.append(["a", "b"])
        hidden.sheet_state = "hidden"

    path = book(tmp_path / "a.xlsx", change)
    assert dense(read(path)) == ANSWERS

    def another(wb, ws):
        change(wb, ws)
        wb.create_sheet("Other", 0).append(["id", "x"])

    path = book(tmp_path / "b.xlsx", another)
    assert "b.xlsx: 2 sheets may be meant, 'Other', 'Answers'. Say which one with `sheet='Other'" in complaint(path)
    for sheet in ("Answers", "answers ", 2, "2"):
        assert dense(read(path, sheet=sheet)) == ANSWERS
    for sheet in ("Answer", 0, 9, -1, True):
        with pytest.raises(OptionError, match="its sheets are 'Other', 'Answers', 'Empty', 'Lists'"):
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
        for row in (["item", "key"], ["q1", "A"], ["q2", 2]):
            wb["Key"].append(row)

    def with_key(wb, ws):
        wb.create_sheet("Key")
        change(wb, ws)

    rows = [["id", "q1", "q2"], ["ann", "A", "1"], ["bob", "B", 2.0]]
    path = book(tmp_path / "a.xlsx", with_key, rows)
    assert dense(read(path, sheet="Answers", key=path)) == ANSWERS
    assert dense(read(path, sheet="Answers", key=path, key_sheet=2)) == ANSWERS
    assert "key_sheet" in complaint(path, sheet="Answers", key=path, key_sheet="Keys")
    assert "`key_sheet` is a sheet of the workbook that `key=` names" in complaint(path, sheet="Answers", key_sheet=2)


def test_what_is_no_workbook(tmp_path):
    good = book(tmp_path / "good.xlsx").read_bytes()
    cases = {
        "cut.xlsx": (good[: len(good) // 2], "cannot be read as a workbook"),
        "text.xls": (b"id\tq1\nann\t1\n", "rename it to .csv"),
        "page.xls": (b"<html><table></table></html>", "is a web page or XML"),
        "zeros.xlsx": (b"PK\x03\x04" + bytes(500), "cannot be read as a workbook"),
        "old.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "cannot be read as a workbook"),
        "secret.xlsx": (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(99),
            "is protected by a password",
        ),
    }
    for name, (data, says) in cases.items():
        (tmp_path / name).write_bytes(data)
        said = complaint(tmp_path / name)
        assert said.startswith(name)
        assert says in said
    (tmp_path / "really.csv").write_bytes(good)  # under a wrong name
    assert dense(read(tmp_path / "really.csv")) == ANSWERS
    (tmp_path / "really.xls").write_bytes(good)
    assert dense(read(tmp_path / "really.xls")) == ANSWERS


def _changed(data, name, change):
    """The archive with one of its parts changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            content = old.read(part)
            new.writestr(part.filename, change(content) if part.filename == name else content)
    return out.getvalue()


def test_damage_inside_the_archive(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "good.xlsx") as made:
        sheet = made.add_worksheet()
        for row, cells in enumerate(ROWS):
            sheet.write_row(row, 0, cells)
    good = (tmp_path / "good.xlsx").read_bytes()
    for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"):
        (tmp_path / "bad.xlsx").write_bytes(_changed(good, name, lambda content: content[: len(content) // 2] + b"<&"))
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
    bomb = _changed(
        book(tmp_path / "a.xlsx").read_bytes(), "xl/worksheets/sheet1.xml", lambda xml: xml + bytes(1 << 24)
    )
    assert len(bomb) < 1 << 16
    (tmp_path / "bomb.xlsx").write_bytes(bomb)
    monkeypatch.setattr(text_pieces, "MAX_UNPACKED", 1 << 23)
    assert "unpacks to more than 0.00839 GB" in complaint(tmp_path / "bomb.xlsx")
    # One that lies about its size in the directory.
    size = (1 << 24) + len(_part(tmp_path / "a.xlsx"))
    lying = bomb.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert lying != bomb
    (tmp_path / "lying.xlsx").write_bytes(lying)
    assert "cannot be read as a workbook" in complaint(tmp_path / "lying.xlsx")


def _part(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("xl/worksheets/sheet1.xml")


def test_a_stray_cell_far_away(tmp_path):
    path = book(tmp_path / "a.xlsx", lambda wb, ws: ws.__setitem__("XFD1048576", "x"))
    said = complaint(path)
    assert "reaches to column XFD and to row 1,048,576" in said
    assert "Delete the stray cells" in said


@pytest.mark.parametrize("place", [b"B99999999999", b"ZZZZZZZ3", b"XFE1048577", b"B4294967295"])
def test_a_cell_beyond_the_sheet(tmp_path, place):
    """Whatever the sheet says of its extent: a reader would ask for the room of all cells before it, and end there."""
    path = book(tmp_path / "a.xlsx", lambda wb, ws: None)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    assert b'r="B3"' in parts[name]
    parts[name] = parts[name].replace(b'r="B3"', b'r="' + place + b'"')
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    assert "more cells than can be read" in complaint(path)


@pytest.mark.slow
def test_no_more_columns_than_a_sheet_has(tmp_path):
    wide = [["id", *(f"q{k}" for k in range(16_383))], *([k, *((k + j) % 2 for j in range(16_383))] for k in range(3))]
    with xlsxwriter.Workbook(tmp_path / "a.xlsx", {"constant_memory": True}) as made:
        sheet = made.add_worksheet()
        for row, cells in enumerate(wide):
            sheet.write_row(row, 0, cells)
    found = read(tmp_path / "a.xlsx")
    assert (found.n_persons, found.n_items, found.n_responses) == (3, 16_383, 3 * 16_383)


def test_several_workbooks_are_one_table(tmp_path):
    book(tmp_path / "a1.xlsx")
    book(tmp_path / "a2.xlsx", rows=[["id", "q2", "q3"], ["eve", 1, 0]])
    assert dense(read(tmp_path / "a*.xlsx")) == {**ANSWERS, "eve": {"q2": 1, "q3": 0}}


def test_two_rows_of_the_same_person_are_told_by_sheet(tmp_path):
    path = book(tmp_path / "a.xlsx", rows=[*ROWS, [None, 1, 1]])
    with pytest.raises(ReadError, match=r"a.xlsx, sheet 'Answers': column 'id' names .*, and row 4 has no name"):
        read(path)


def test_an_opendocument_sheet(tmp_path):
    cells = "".join(
        "<table:table-row>" + "".join(_ods_cell(value) for value in row) + "</table:table-row>" for row in ROWS
    )
    names = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"' for short in ("office", "table", "text")
    )
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        manifest = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
        archive.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{manifest}"/>')
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f"<office:document-content {names}><office:body><office:spreadsheet>"
            f'<table:table table:name="Answers">{cells}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    found = read(tmp_path / "a.ods")
    assert dense(found) == ANSWERS
    assert "blind_cells" in [note.code for note in found.notes]


def _ods_cell(value):
    kind = "string" if isinstance(value, str) else "float"
    number = "" if isinstance(value, str) else f' office:value="{value}"'
    return f'<table:table-cell office:value-type="{kind}"{number}><text:p>{value}</text:p></table:table-cell>'
