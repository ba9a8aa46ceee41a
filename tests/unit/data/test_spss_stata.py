"""Files of SPSS and Stata: codes, not their labels; what they declare missing is missing."""

import sys

import numpy as np
import pandas as pd
import pytest

import spectral_irt as si
from reading import complaint
from spectral_irt.data.item_changes import split_item
from spectral_irt.reading import read
from spectral_irt.report.blocks import ReportData
from spectral_irt.report.items import category_values

pyreadstat = pytest.importorskip("pyreadstat")

TABLE = pd.DataFrame({"id": ["ann  ", "bob", "eve"], "q1": [1.0, 0.0, 9.0], "q2": [0.0, None, 1.0]})
DECLARED = {
    "variable_value_labels": {"q1": {1: "right", 0: "wrong"}},
    "column_labels": {"q1": "What is the capital of Peru?"},
    "missing_ranges": {"q1": [9]},
}


def saved(tmp_path, table=TABLE, name="a.sav", **how):
    write = pyreadstat.write_sav if name.endswith("sav") else pyreadstat.write_dta
    write(table, str(tmp_path / name), **how)
    return tmp_path / name


@pytest.mark.parametrize(("name", "how", "missing"), [("a.sav", DECLARED, None), ("a.sav", {}, 9), ("a.dta", {}, 9)])
def test_codes_labels_and_missing_values(tmp_path, name, how, missing):
    found = read(saved(tmp_path, name=name, **how), missing=missing)
    assert found.persons.tolist() == ["ann", "bob", "eve"]
    assert found.items.tolist() == ["q1", "q2"]
    assert found.item_counts.tolist() == [2, 2]
    assert found.item_scores.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["a.sav", "a.dta"])
def test_labels_of_variables_are_texts_of_the_items(tmp_path, name):
    texts = {"q1": "What is the\ncapital of Peru?", "q2": "Q2", "id": "Number of the person"}
    labels = [texts[column] for column in TABLE]
    responses = read(saved(tmp_path, TABLE.replace(9, 1), name, column_labels=labels))
    assert responses.item_texts == {"q1": "What is the capital of Peru?"}  # q2's label is its name; id is no item
    responses.save(tmp_path / "a.packed")
    assert read(tmp_path / "a.packed").item_texts == responses.item_texts
    assert responses.take_items([0]).item_texts == responses.item_texts


def test_a_split_item_keeps_its_text(tmp_path):
    table = pd.DataFrame({"id": range(8), "q1": [1, 0] * 4, "q2": [0, 1, 1, 0] * 2, "sex": ["f", "m"] * 4})
    path = saved(tmp_path, table, column_labels=["", "First question", "Second question", ""])
    responses = read(path, people=["sex"])
    halves = split_item(responses, 0, ["q1 (f)", "q1 (m)"], np.array([0, 1] * 4))
    assert halves.item_texts["q1 (f)"] == halves.item_texts["q1 (m)"] == "First question"
    assert read(path, ignore=["q1", "sex"]).item_texts == {"q2": "Second question"}


def test_a_code_that_is_not_declared_missing_is_odd(tmp_path):
    assert "a.sav: column 'q1', row 3 holds 9" in complaint(saved(tmp_path))


def test_multiple_choice_by_a_key_of_codes_and_texts(tmp_path):
    table = pd.DataFrame({"id": [1.0, 2.0], "q1": ["A ", "B"], "q2": [3.0, 4.0]})
    found = read(saved(tmp_path, table), key={"q1": "A", "q2": 4})
    assert found.persons.tolist() == [1, 2]
    assert found.item_scores.tolist() == [1, 1]


def test_long_tables_and_accents(tmp_path):
    table = pd.DataFrame({"student": ["Zoë", "Zoë", "José"], "item": [1.0, 2.0, 1.0], "correct": [1.0, 0.0, 1.0]})
    found = read(saved(tmp_path, table))
    assert found.persons.tolist() == ["José", "Zoë"]
    assert found.items.tolist() == [1, 2]


def test_damaged_files(tmp_path):
    path = saved(tmp_path, pd.DataFrame({"q0": [1, 0, 1], "q1": [0, 1, 1]}))
    data = path.read_bytes()
    for name, content in {
        "cut.sav": data[: len(data) // 2],
        "short.sav": b"$FL2",
        "text.sav": b"id,q1\n",
        "text.dta": b"id,q1\n",
        # a variable whose name is damaged
        **{f"name{value}.sav": data.replace(b"Q0  ", bytes([value]) + b"0  ", 1) for value in (0, 128, 255)},
    }.items():
        (tmp_path / name).write_bytes(content)
        assert complaint(tmp_path / name).startswith(f"{name} cannot be read")


def test_what_to_install(tmp_path, monkeypatch):
    path = saved(tmp_path)
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    said = complaint(path)
    assert "a.sav: what reads files of SPSS" in said
    assert 'pip install ".[formats]"' in said


def test_labels_of_categories_go_with_their_codes(tmp_path):
    labels = {1: "never", 2: "sometimes", 3: "always"}
    table = pd.DataFrame(np.random.default_rng(0).integers(1, 4, (60, 3)), columns=["q1", "q2", "q3"])
    path = saved(tmp_path, table, variable_value_labels={"q1": labels, "q2": labels})
    found = read(path, reverse=["q2"])
    assert found.answer_names("q1", [1.0, 3.0]) == ["1 = never", "3 = always"]
    assert found.answer_names("q2", [1.0, 3.0]) == ["1 = always", "3 = never"]  # turned round
    assert found.answer_names("q3", [1.0, 3.0]) == ["1", "3"]
    study = si.SpectralPartialCredit().fit(found).analyse(found)
    legend = study.plot.categories("q2").plot().get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["1 = always", "2 = sometimes", "3 = never"]
    shown = category_values(ReportData.of(study, study.parts(writing=True)))
    assert shown["answer"].tolist()[:3] == ["1 = never", "2 = sometimes", "3 = always"]
    assert not read(path, threshold=1).answer_labels  # right and wrong have no categories


@pytest.mark.parametrize("name", ["a.sav", "a.dta"])
def test_a_code_labeled_as_no_answer_is_missing_and_no_category(tmp_path, name):
    answers = np.random.default_rng(1).integers(1, 6, (80, 10))
    answers[answers[:, 6] == 4, 6] = 5  # nobody is in the fourth category of one item
    answers[0, :3] = 99
    table = pd.DataFrame(answers, columns=[f"anx{k}" for k in range(10)])
    labels = {1: "Never", 2: "Rarely", 3: "Sometimes", 4: "Often", 5: "Always", 99: "No answer"}
    found = read(saved(tmp_path, table, name=name, variable_value_labels=dict.fromkeys(table, labels)))
    assert found.n_responses == 797
    notes = {note.code: note for note in found.notes}
    assert notes["labeled_missing"].number == 3
    assert "3 values are missing because of the label in the file, in 3 columns of it: '99 No answer'" in str(
        notes["labeled_missing"].sentence
    )
    assert notes["categories_collapsed"].items == ("anx6",)
    assert 99.0 not in found.answer_labels["anx0"]
    assert "No answer" not in notes["category_labels"].sentence


def test_values_that_the_file_declares_missing_are_counted_and_are_no_categories(tmp_path):
    answers = np.random.default_rng(1).integers(1, 6, (80, 6)).astype(float)
    answers[0, :3] = 8
    answers[1, :2] = 9
    table = pd.DataFrame(answers, columns=[f"anx{k}" for k in range(6)])
    labels = {1: "Never", 2: "Rarely", 3: "Sometimes", 4: "Often", 5: "Always", 8: "Form torn", 9: "No answer"}
    found = read(
        saved(
            tmp_path,
            table,
            variable_value_labels=dict.fromkeys(table, labels),
            missing_ranges={name: [8, {"lo": 9, "hi": 99}] for name in table},
        )
    )
    assert found.n_responses == 475
    notes = {note.code: note for note in found.notes}
    assert notes["declared_missing"].number == 5
    assert "in 3 columns: '8 Form torn', '9 No answer'" in notes["declared_missing"].sentence
    assert "labeled_missing" not in notes
    assert sorted(found.answer_labels["anx0"]) == [1, 2, 3, 4, 5]


def test_the_label_of_a_code_named_with_missing_is_no_category(tmp_path):
    table = pd.DataFrame(np.random.default_rng(2).integers(1, 4, (60, 3)), columns=["q1", "q2", "q3"])
    labels = {1: "never", 2: "sometimes", 3: "always", 9: "illegible"}
    found = read(saved(tmp_path, table, variable_value_labels=dict.fromkeys(table, labels)), missing=9)
    assert set(found.answer_labels["q1"]) == {1.0, 2.0, 3.0}


def test_dont_know_between_other_categories_is_a_category(tmp_path):
    table = pd.DataFrame(np.random.default_rng(3).integers(1, 4, (60, 3)), columns=["q1", "q2", "q3"])
    labels = {1: "disagree", 2: "don't know", 3: "agree"}
    found = read(saved(tmp_path, table, variable_value_labels=dict.fromkeys(table, labels)))
    assert found.n_responses == 180
    assert found.answer_labels["q1"][2.0] == "don't know"


def test_does_not_apply_is_an_answer_where_others_apply(tmp_path):
    table = pd.DataFrame({"id": ["ann", "bob", "eve", "joe"], "q1": [0.0, 1, 2, 9], "q2": [2.0, 1, 0, 0]})
    labels = {0: "Does not apply", 1: "Applies in part", 2: "Applies", 9: "Refused"}
    responses = read(saved(tmp_path, table, variable_value_labels={"q1": labels, "q2": labels}))
    assert responses.to_dense()[:, 1].tolist() == [2, 1, 0, 0]
    assert np.isnan(responses.to_dense()[3, 0])
    note = next(note for note in responses.notes if note.code == "labeled_missing")
    assert note.sentence == "1 value is missing because of the label in the file, in 1 column of it: '9 Refused'."
