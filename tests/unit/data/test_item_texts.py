"""Texts of items: from a table, a mapping, labels of variables or a row below the header; where they are shown."""

import json
import re

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from reading import complaint
from spectral_irt.errors import OptionError
from spectral_irt.report.blocks import ReportData, item_text
from spectral_irt.report.page import page_of

TABLE = "id,q1,q2,q3\nann,1,0,1\nbob,0,1,1\ncy,1,1,0\ndi,0,0,1\n"
MARKUP = '<script>alert("q2")</script> & so on'


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(TABLE)
    return path


def texts_file(tmp_path, text):
    path = tmp_path / "texts.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "table",
    [
        "item,text\nq1,One\nq3,Three  \nq2,\n",
        "nr,Item text,item,remark\n1,One,q1,x\n2,Three,q3,y\n",  # by the names of two of several columns
        "item,question\nq1,One\nq3,Three\n",  # the only other column
        "q1,One\nq3,Three\n",  # without a header
        "Variable,Label\nq1,One\nq3,Three\n",  # the only two
    ],
)
def test_a_table_of_texts(tmp_path, answers, table):
    responses = si.read(answers, item_texts=texts_file(tmp_path, table))
    assert responses.item_texts == {"q1": "One", "q3": "Three"}
    assert not [note for note in responses.notes if note.code == "texts_of_no_items"]


def test_texts_of_no_items_are_named(tmp_path, answers):
    responses = si.read(answers, item_texts=texts_file(tmp_path, "item,text\nq1,One\nq9,Nine\n"))
    (note,) = [note for note in responses.notes if note.code == "texts_of_no_items"]
    assert note.sentence == "texts.csv has texts for 'q9', which is no item of answers.csv."
    said = complaint(answers, item_texts={"x": "One"})
    assert "no item of answers.csv ('q1', 'q2', 'q3') is among those with a text ('x')" in said


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("item,text\nq1,One\nq1,Two\n", "gives item 'q1' two texts, 'One' and 'Two'; keep one"),
        ("item,a,b\nq1,One,1\n", "it needs the columns item and text; its columns are 'item', 'a', 'b'"),
        ("item\nq1\n", "it needs the columns item and text; its columns are 'item'"),
    ],
)
def test_what_is_no_table_of_texts(tmp_path, answers, table, said):
    assert said in complaint(answers, item_texts=texts_file(tmp_path, table))


def test_other_sources(tmp_path, answers):
    frame = pl.DataFrame({"item": ["q2"], "text": ["Two"]})
    responses = si.read(answers, item_texts=frame)
    assert responses.item_texts == {"q2": "Two"}
    assert responses.with_item_texts({"q1": "One"}).item_texts == {"q2": "Two", "q1": "One"}
    numbered = si.read(np.array([[1, 0], [0, 1], [1, 1]]), item_texts={"1": "The second"})
    assert numbered.item_texts == {1: "The second"}
    with pytest.raises(OptionError, match="texts of items are a file"):
        si.read(answers, item_texts=3)
    assert "`item_texts_sheet` is a sheet of the workbook" in complaint(answers, item_texts_sheet="Items")


def test_a_sheet_of_texts(tmp_path, answers):
    pytest.importorskip("xlsxwriter")
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "test.xlsx") as book:
        pl.read_csv(answers).write_excel(book, "Answers")
        pl.DataFrame({"item": ["q1"], "text": ["One"]}).write_excel(book, "Items")
    path = tmp_path / "test.xlsx"
    responses = si.read(path, sheet="Answers", item_texts=path, item_texts_sheet="Items")
    assert responses.item_texts == {"q1": "One"}
    assert "Say which one with --item-texts FILE#Answers." in si.errors.for_shell(
        complaint(path, sheet="Answers", item_texts=path)
    )


def test_questions_below_the_header(tmp_path):
    people = "".join(f"p{k},{k % 2},{k // 2 % 2},{k // 4 % 2}\n" for k in range(12))
    ids = '"{""ImportId"":""QID1""}"'
    header = f'id,q1,q2,q3\nResponse ID,How are you?,Where to, exactly,q3 q3\n{ids},{ids[:-1]}2",{ids[:-1]}3",x\n'
    header = header.replace("Where to, exactly", '"Where to, exactly"')
    path = tmp_path / "qualtrics.csv"
    path.write_text(header + people)
    responses = si.read(path)
    assert responses.n_persons == 12
    assert responses.item_texts["q1"] == "How are you?"
    assert responses.item_texts["q2"] == "Where to, exactly"


def test_texts_of_ratings(tmp_path):
    rows = [f"e{e},{r},{(e + r) % 4},{(e * r) % 4}" for e in range(12) for r in range(3)]
    path = tmp_path / "ratings.csv"
    path.write_text("essay,rater,content,style\n" + "\n".join(rows) + "\n")
    responses = si.read(path, facets=["rater"], item_texts={"content": "What is said"})
    assert responses.item_texts == {"content": "What is said"}
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    assert study.tables()["items"]["text"].tolist() == ["What is said", None]


def test_split_and_joined_items_have_texts():
    responses = si.datasets.load_quiz()
    first, second, third = responses.items[:3].tolist()
    responses = responses.with_item_texts({first: "First", second: "Second", third: "Third"})
    study = si.SpectralRasch().fit(responses).analyse(responses)
    texts = study.split(first, "region").join(second, third, name="pair").responses.item_texts
    assert texts["pair"] == "Second / Third"
    assert [text for item, text in texts.items() if str(item).startswith(f"{first}[")] == ["First", "First"]


def test_where_texts_are_shown(tmp_path):
    responses = si.datasets.load_quiz()
    labels = responses.items.tolist()
    long = "A question of many words, " * 20
    responses = responses.with_item_texts({labels[0]: MARKUP, **dict.fromkeys(labels[1:], long)})
    study = si.SpectralRasch().fit(responses).analyse(responses)
    assert study.tables()["items"]["text"][0] == MARKUP
    page = page_of(study, study.parts(writing=True, groups={"region": responses.people["region"]}))
    assert "<script>alert" not in page.partition('<script type="application/json"')[0]
    tables = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    for name in ("items", "dif", "residual_loadings"):
        column = tables[name]["columns"][1]
        assert column["name"] == "text"
        assert column["below"]
        assert MARKUP in column["values"]
        assert item_text(long) in column["shown"].values()
    assert page.count('<bdi class="below">') >= len(labels)
    data = ReportData.of(study, study.parts())
    assert data.label_and_text(labels[1]) == f"{labels[1]}: {item_text(long)}"


def test_no_column_without_texts():
    responses = si.datasets.load_lsat()
    study = si.SpectralRasch().fit(responses).analyse(responses)
    assert "text" not in study.tables()["items"]
    assert '<bdi class="below">' not in page_of(study, study.parts())
