"""What a file was taken for."""

import openpyxl
import pytest

from spectral_irt.app.detect import GROUP, ITEM, PERSON, RESPONSE, UNUSED, detect
from spectral_irt.datasets import quiz_files


def roles(path, **said):
    return {column["name"]: column["role"] for column in detect({"file": str(path), **said})["columns"]}


def test_the_quiz():
    answers, key = quiz_files()
    found = roles(answers, key=str(key))
    assert [found[name] for name in ("person", "region", "booklet")] == [PERSON, GROUP, UNUSED]
    assert sum(role == ITEM for role in found.values()) == 30


@pytest.mark.parametrize(
    ("sex", "role"),
    [
        (lambda k: "fm"[k % 2], GROUP),
        (lambda k: "f", UNUSED),  # one group
        (lambda k: "fm"[k < 29], UNUSED),  # one of them too small
        (lambda k: "fm"[k < 30], GROUP),
        (lambda k: f"sort {k % 7}", UNUSED),  # too many
        (lambda k: "" if k % 3 else "fm"[k % 2], GROUP),  # of some nothing is known
    ],
)
def test_groups_are_offered_where_they_can_be_compared(tmp_path, sex, role):
    wide = [f"s{k},{sex(k)},{k % 2},{k // 2 % 2},{k // 4 % 2}" for k in range(300)]
    (tmp_path / "wide.csv").write_text("\n".join(["student,sex,q1,q2,q3", *wide]) + "\n", encoding="utf-8")
    found = {"student": PERSON, "sex": role, "q1": ITEM, "q2": ITEM, "q3": ITEM}
    assert roles(tmp_path / "wide.csv") == found
    long = [f"s{k},i{j},{(k + j) % 2},{sex(k)}" for k in range(300) for j in range(3)]
    (tmp_path / "long.csv").write_text("\n".join(["student,item,response,sex", *long]) + "\n", encoding="utf-8")
    found = {"student": PERSON, "item": ITEM, "response": RESPONSE, "sex": role}
    assert roles(tmp_path / "long.csv") == found


def test_values_are_shown_as_text(tmp_path):
    (tmp_path / "odd.csv").write_text('name,q1\n"a\x1b[31m",1\n' + "b" * 90 + ",0\n", encoding="utf-8")
    first = detect({"file": str(tmp_path / "odd.csv")})["columns"][0]
    assert first["values"] == ["a\\x1b[31m", "b" * 40]


def test_sheets_of_a_workbook(tmp_path):
    book = openpyxl.Workbook()
    notes, answers = book.active, book.create_sheet("Answers")
    notes.title = "Notes"
    for row in (["about", "this"], ["test", "..."]):
        notes.append(row)
    for row in (["student", "q1", "q2"], ["ann", 1, 0], ["bob", 0, 1]):
        answers.append(row)
    book.save(tmp_path / "test.xlsx")
    seen = detect({"file": str(tmp_path / "test.xlsx")})
    assert seen["sheets"] == ["Notes", "Answers"]
    assert "2 sheets may be meant" in seen["error"]
    assert seen["columns"] == []
    assert roles(tmp_path / "test.xlsx", sheet="Answers") == {"student": PERSON, "q1": ITEM, "q2": ITEM}


def test_labels_of_spss_stand_beside_the_columns(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    import pandas as pd

    table = pd.DataFrame({"sex": [1.0, 2.0, 1.0], "q1": [1.0, 0.0, 1.0], "q2": [0.5, 1.0, 0.0]})
    said = {
        "column_labels": ["Sex <b>", "I felt fearful", ""],
        "variable_value_labels": {"sex": {1: "female", 2: "male"}},
    }
    pyreadstat.write_sav(table, str(tmp_path / "a.sav"), **said)
    sex, first, second = detect({"file": str(tmp_path / "a.sav")})["columns"]
    assert (sex["text"], sex["values"]) == ("Sex <b>", ["1 = female", "2 = male"])
    assert (first["text"], first["values"]) == ("I felt fearful", ["1", "0"])
    assert (second["text"], second["values"]) == ("", ["0.5", "1", "0"])
