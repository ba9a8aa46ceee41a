"""What is an item and what is not: attributes of the people, total scores, columns that a key does not have."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from reading import complaint, notes, read_text, save
from spectral_irt import SpectralRasch
from spectral_irt.data import Responses
from spectral_irt.errors import DuplicateResponseError, OptionError, ResponseValueError, SpectralIrtError, for_shell
from spectral_irt.reading import read

ITEMS = ["q1", "q2", "q3", "q4"]
RNG = np.random.default_rng(11)
ANSWERS = {name: (RNG.random(40) < 0.6).astype(int).tolist() for name in ITEMS}
PEOPLE = [f"p{k}" for k in range(40)]
BINARY = (RNG.random(40) < 0.5).astype(int).tolist()


def table(**attributes):
    return pl.DataFrame({"student": PEOPLE, **attributes, **ANSWERS})


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_attributes_are_not_items(kind, tmp_path):
    frame = table(Gender=BINARY, school_id=BINARY, age=list(range(20, 60)))
    found = read(save(frame, tmp_path / f"a.{kind}"))
    assert found.items.tolist() == ITEMS
    assert found.persons.tolist() == PEOPLE
    np.testing.assert_array_equal(found.to_dense(), frame.select(ITEMS).to_numpy())
    left, taken = notes(found)["attribute_columns"], notes(found)["items_taken"]
    assert (left.severity, left.items) == ("warning", ("Gender", "school_id", "age"))
    assert "3 columns 'Gender', 'school_id', 'age'" in left.sentence
    assert "items='q*,Gender'" in left.remedy
    assert taken.items == tuple(ITEMS)
    assert taken.sentence.startswith("Items: 4 columns 'q1', 'q2', 'q3', 'q4'. People are labeled by")
    assert found.findings()[:2] == found.notes == SpectralRasch().fit(found).findings_[:2]


@pytest.mark.parametrize("name", ["age", "id", "total", "score", "Total Score", "test_date"])
def test_names_of_measures(name):
    """Left out when the values are not those of an item; kept, with a warning, when they are."""
    assert read(table(**{name: list(range(40))})).items.tolist() == ITEMS
    many = dict.fromkeys(("sex", "class", "school", "grade", "region", "country"), BINARY)  # more than items
    assert read(table(**many, **{name: list(range(40))})).items.tolist() == ["region", *ITEMS]
    kept = read(table(**{name: BINARY}))
    assert kept.items.tolist() == [name, *ITEMS]
    assert notes(kept)["suspect_items"].items == (name,)
    assert f"ignore={name!r}" in notes(kept)["suspect_items"].remedy


@pytest.mark.parametrize(
    ("name", "item"),
    [
        *(
            (name, False)
            for name in (
                "sex",
                "GROUP",
                "class",
                "School",
                "form",
                "grade",
                "student_sex",
                "testForm",
                "female",
                "Site",
            )
        ),
        *((name, True) for name in ("score1", "form3_q2", "classic", "aged", "groups", "x", "identity")),
    ],
)
def test_names_that_say_attribute_and_names_that_do_not(name, item):
    found = read(table(**{name: BINARY}))
    assert found.items.tolist() == ([name] if item else []) + ITEMS
    assert set(notes(found)) == {"items_taken"} | (set() if item else {"attribute_columns"})


@pytest.mark.parametrize(
    "names",
    [
        ["score_1", "score_2", "score_3", "score_4"],
        ["class", "school", "form", "grade"],
        ["Group A", "Group B", "Group C", "Group D"],
    ],
)
def test_where_all_items_are_called_so_they_are_items(names):
    found = read(table().select("student", **dict(zip(names, ITEMS, strict=True))))
    assert found.items.tolist() == names
    assert list(notes(found)) == ["items_taken"]


def test_an_attribute_before_the_labels():
    found = read(table().select(pl.Series("school", BINARY), pl.all()))
    assert found.persons.tolist() == PEOPLE
    assert found.items.tolist() == ITEMS


def test_a_total_score_by_its_values():
    frame = table().with_columns(raw=pl.sum_horizontal(ITEMS))
    found = read(frame)
    assert found.items.tolist() == ITEMS
    assert notes(found)["total_columns"].items == ("raw",)
    assert read(frame.with_columns(pl.col(*ITEMS, "raw") * 3), threshold=1).items.tolist() == ITEMS
    frame = frame.with_columns(raw=pl.when(pl.col("student") == "p7").then(0).otherwise(pl.col("raw")))
    with pytest.raises(ResponseValueError, match="column 'raw'"):  # not the sum
        read(frame)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize(
    "asked",
    [
        *({"items": items} for items in ("q*,gender", ["q?", "gender"], ["q1", "q2,q3", "q4", "gender"])),
        *({"ignore": ignore, "items": None} for ignore in ("city, hair", ["city,hair"], ["city", "hair"])),
    ],
)
def test_items_by_name_and_pattern_and_columns_to_ignore(asked, kind, tmp_path):
    found = read(save(table(gender=BINARY, city=["x"] * 40, hair=["y"] * 40), tmp_path / f"a.{kind}"), **asked)
    assert found.items.tolist() == ([] if "ignore" in asked else ["gender"]) + ITEMS
    assert found.persons.tolist() == PEOPLE
    assert set(notes(found)) <= {"items_taken", "attribute_columns"}


def test_a_name_with_a_comma():
    frame = table().rename({"q1": "a,b"}).with_columns(a=pl.lit("?"))
    assert read(frame, items=["a,b", "q2"]).items.tolist() == ["a,b", "q2"]
    assert read(frame, ignore=["a,b", "a"]).items.tolist() == ["q2", "q3", "q4"]


def test_items_of_nested_answers(tmp_path):
    text = '{"id": "x", "responses": {"q1": 1, "q2": 0}}\n{"id": "y", "responses": {}}\n'
    assert read_text(tmp_path, text, "a.jsonl").counts.tolist() == [2, 0]
    with pytest.raises(OptionError, match="has objects of answers"):
        read(tmp_path / "a.jsonl", items="q*")


LONG = pl.DataFrame({"person": ["a", "a"], "item": ["q1", "q2"], "response": [1, 0]})
SEXES = table(sex=["f", "m"] * 20)


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        (table(), {"items": "q1,z*"}, r"no column 'z\*' for `items`"),
        (LONG, {"items": "q1"}, "`items=` names columns of a wide table"),
        (table(), {"items": "q1", "orient": "items"}, "a column is a person"),
        (SEXES, {"ignore": "sec"}, r"no column 'sec' for `ignore`; .* Did you mean 'sex'"),
        (SEXES, {"person": "student", "ignore": ["student", "sex"]}, r"'student' of .* labels the rows"),
        (table(), {"ignore": ITEMS}, "no answers beside the columns to ignore"),
    ],
)
@pytest.mark.parametrize("kind", ["frame", "csv", "jsonl"])
def test_items_that_cannot_be(frame, options, said, kind, tmp_path):
    with pytest.raises(OptionError, match=said):
        read(frame if kind == "frame" else save(frame, tmp_path / f"a.{kind}"), **options)


def test_columns_unlike_the_others_are_left_out_and_named():
    """The culprit is named, not the majority."""
    rng = np.random.default_rng(1)
    items = {f"R{k}": rng.integers(1, 6, 60).tolist() for k in range(8)}
    odd = {
        "zscore": rng.normal(size=60).round(3).tolist(),
        "anger": rng.integers(20, 60, 60).tolist(),
        "land": [36, 158, 752] * 20,
        "comment": ["fine", "no idea", "long"] * 20,
        "age group": [0, 1] * 30,
        "education": [1, 2, 3, 4, 5] * 12,
    }
    found = read(pl.DataFrame({**items, **odd}))
    assert found.items.tolist() == list(items)
    left = notes(found)
    assert set(left["unlike_columns"].items) | set(left["attribute_columns"].items) == set(odd)
    for text in ("'zscore' holds fractions", "'anger' holds", "'land' holds the codes 36", "'comment' holds words"):
        assert text in left["unlike_columns"].sentence
    named = read(pl.DataFrame({**items, **odd}), items="R*,anger", threshold=3)
    assert named.items.tolist() == [*items, "anger"]


def test_too_few_columns_to_say_what_most_are_like():
    answers = {f"q{k}": [1, 0, 1] for k in range(1, 4)}
    said = complaint(
        pl.DataFrame({"name": ["ann", "bob", "eve"], "eyes": list("fmf"), "height": [31, 44, 17], **answers})
    )
    assert for_shell(said).endswith("say --ignore eyes,height.")


def test_stray_values_are_no_reason_to_leave_a_column_out():
    rng = np.random.default_rng(2)
    answers = {f"q{k}": rng.integers(0, 2, 40).tolist() for k in range(6)}
    answers["q3"][5] = 9
    assert "'q3'" in complaint(pl.DataFrame(answers))
    assert read(pl.DataFrame(answers), missing=9).n_items == 6


def test_the_export_of_a_survey_program(tmp_path):
    names = ["StartDate", "Progress", "Duration (in seconds)", "Finished", "ResponseId", *(f"Q{k}" for k in range(6))]
    rng = np.random.default_rng(5)
    people = [[f"2024-03-01 10:0{k % 5}", 100, 300 + k, 1, f"R_{k}x", *rng.integers(1, 6, 6)] for k in range(40)]
    rows = [names, [f"{name}?" for name in names], [f"{{ImportId:{name}}}" for name in names], *people]
    found = read_text(tmp_path, "\n".join(",".join(map(str, row)) for row in rows))
    assert found.items.tolist() == names[5:]
    assert found.persons.tolist() == [row[4] for row in people]


def test_labels_that_differ_in_spaces_and_capitals(tmp_path):
    found = read_text(tmp_path, "person,item,response\nann,q1,1\nann ,Q1,0\nbob,q2,1\nBob,q2,0\n")
    assert (found.n_persons, found.n_items) == (4, 3)
    assert "2 people differ from each other in spaces only: 'ann', 'ann '" in notes(found)["alike_persons"].sentence
    assert notes(found)["alike_items"].items == ("Q1", "q1")


CHOICES = pl.DataFrame(
    {"student": list("abc"), "city": list("xyx"), "q1": list("ABA"), "sex": list("fmf"), "q2": list("BBC")}
)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_columns_that_are_not_in_the_key(kind, tmp_path):
    found = read(save(CHOICES, tmp_path / f"a.{kind}"), key={"q1": "A", "q2": "B", "q9": "C"})
    assert found.items.tolist() == ["q1", "q2"]
    assert found.to_dense().tolist() == [[1, 1], [0, 1], [1, 0]]
    left = notes(found)["not_in_key"]
    assert (left.items, left.severity) == (("city", "sex"), "warning")
    attribute = read(tmp_path / f"a.{kind}", key={"city": "x", "q1": "A", "q2": "B"})
    assert attribute.items.tolist() == ["city", "q1", "q2"]
    assert notes(attribute)["not_in_key"].severity == "note"  # sex is not an item by its name
    assert "the key has no answer for" in complaint(tmp_path / f"a.{kind}", key={"z1": "A"})


def test_a_teachers_total_and_percent_are_no_forgotten_items(tmp_path):
    sheet = CHOICES.drop("city").with_columns(Total=pl.Series([2, 1, 1]), Percent=pl.Series(["100%", "50%", "50%"]))
    left = notes(read(save(sheet, tmp_path / "a.csv"), key={"q1": "A", "q2": "B"}))["not_in_key"]
    assert (left.items, left.severity, left.remedy) == (("sex", "Total", "Percent"), "note", "")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_fit_takes_what_the_readers_take(kind):
    wide = table(gender=BINARY)
    long = wide.select("student", *ITEMS).unpivot(index="student", variable_name="question", value_name="correct")
    expected = SpectralRasch().fit(wide.select(ITEMS).to_numpy()).difficulty_
    for frame in (wide, long):
        native = {"pandas": frame.to_pandas, "polars": frame.clone, "pyarrow": frame.to_arrow}[kind]()
        fit = SpectralRasch().fit(native)
        assert fit.item_labels_.tolist() == ITEMS
        np.testing.assert_allclose(fit.difficulty_, expected, atol=1e-9)
        if frame is wide:
            assert {finding.code for finding in fit.findings_} >= {"items_taken", "attribute_columns"}
        assert fit.analyse(native).persons().shape[0] == 40


def test_fit_keeps_a_wide_frame_as_it_was():
    frame = pd.DataFrame(ANSWERS, index=PEOPLE)
    frame.iloc[3, 1] = np.nan
    explicit = Responses.from_wide(frame)
    assert read(frame).digest() == explicit.digest()
    expected = SpectralRasch().fit(explicit).difficulty_
    np.testing.assert_array_equal(SpectralRasch().fit(frame).difficulty_, expected)
    np.testing.assert_array_equal(SpectralRasch(threshold=2).fit(frame * 4).difficulty_, expected)


def test_what_fit_cannot_be_told_goes_to_the_reader():
    frame = table(city=["x"] * 40)
    with pytest.raises(SpectralIrtError, match=r"ignore='city'.* go to spectral_irt\.read"):
        SpectralRasch().fit(frame)
    assert SpectralRasch().fit(read(frame, ignore="city")).n_features_in_ == 4


def messy(*more):
    """With a mark at its start, semicolons, rows without anything, a column of remarks."""
    last = ["-" if k % 7 == 0 else k % 3 % 2 for k in range(20)]
    rows = [f"Kind {k};{k % 2};{k // 2 % 2};{last[k]};{'krank' if k == 3 else ''}" for k in range(20)]
    rows[5:5] = ["", ";;;;"]
    return b"\xef\xbb\xbf" + "\r\n".join(["Name des Kindes;a;b;c;Bemerkung", *rows, *more, ""]).encode()


def test_people_are_found_though_rows_are_blank_or_one_is_there_twice(tmp_path):
    (tmp_path / "a.csv").write_bytes(messy())
    found = read(tmp_path / "a.csv", missing="-", ignore="Bemerkung")
    assert found.persons.tolist() == [f"Kind {k}" for k in range(20)]
    assert found.items.tolist() == ["a", "b", "c"]
    (tmp_path / "b.csv").write_bytes(messy("Kind 4;1;0;1;"))
    with pytest.raises(DuplicateResponseError, match="1 person has more than one row: 'Kind 4'"):
        read(tmp_path / "b.csv", missing="-", ignore="Bemerkung")


def test_decimal_commas_and_times(tmp_path):
    """As many commas as semicolons in every row but the header, which was taken for a title."""
    rows = [f"{k};{k % 2},00;{k // 2 % 2},00;{k % 3 % 2},00" for k in range(9)]
    (tmp_path / "a.csv").write_text("\n".join(["id;a;b;c", *rows, ""]))
    assert read(tmp_path / "a.csv").to_dense()[:, 0].tolist() == [k % 2 for k in range(9)]
    (tmp_path / "a.csv").write_text("\n".join(["id;a;b;c", *rows, "9;1,50;0,00;0,00", ""]))
    assert "holds 1,50, a fraction" in complaint(tmp_path / "a.csv")
    assert read(tmp_path / "a.csv", threshold=0.5).scores[-1] == 1
    assert np.isnan(read(tmp_path / "a.csv", threshold=0.5, missing="1,50").to_dense()[-1, 0])
    (tmp_path / "c.csv").write_text("a;b;c\n1,00;0,00;1,00\n0,00;1,00;1,00\n1,00;0,00;0,00\n")  # more commas
    assert read(tmp_path / "c.csv").items.tolist() == ["a", "b", "c"]
    (tmp_path / "d.csv").write_text("id;a;b\nx;1,000;0\ny;0;1\nz;1;0\n")
    assert "holds 1,000" in complaint(tmp_path / "d.csv")
    rows = [f"{k},{k % 2},{k // 2 % 2},{k + 0.25},{k + 0.5}" for k in range(9)]
    (tmp_path / "b.csv").write_text("\n".join(["id,a,b,a_time,b_time", *rows, ""]))
    assert "--ignore a_time,b_time" in for_shell(complaint(tmp_path / "b.csv"))


def test_an_item_with_codes_for_missing_is_not_among_the_columns_to_ignore(tmp_path):
    (tmp_path / "a.csv").write_bytes(messy())
    said = for_shell(complaint(tmp_path / "a.csv"))
    assert "If - means 'not answered', say --missing '-'" in said
    assert "If the column is not an item, say --ignore Bemerkung" in said


def test_the_others_are_those_that_are_not_named(tmp_path):
    """Six items, one of them with a single code: there are five others."""
    answers = np.random.default_rng(1).integers(0, 4, (200, 6))
    answers[:, 5] = 3
    path = tmp_path / "answers.csv"
    path.write_text("q1,q2,q3,q4,q5,q6\n" + "\n".join(",".join(map(str, row)) for row in answers.tolist()))
    (note,) = [one for one in read(path, ordered=True).notes if "others hold" in one.sentence]
    assert note.items == ("q6",)
    assert "the 5 others hold" in note.sentence


def test_an_item_of_which_nobody_used_the_lowest_category_is_an_item():
    """Its number stands in the row of the others (Wright & Masters' liking for science has such an item); a column of
    the same codes with another name may be sex, and is left out."""
    rng = np.random.default_rng(2)
    names = [f"i{k}" for k in range(1, 11)]
    table = pl.DataFrame({name: rng.integers(0, 3, 80).tolist() for name in names})
    codes = pl.Series(rng.integers(1, 3, 80).tolist())
    numbered = read(table.with_columns(i7=codes))
    assert numbered.items.tolist() == names
    assert "'i7' holds the codes 1 and 2" in notes(numbered)["doubtful_items"].sentence
    other = read(table.with_columns(eyes=codes))
    assert other.items.tolist() == names
    assert "items='i*,eyes'" in notes(other)["unlike_columns"].remedy


def test_attributes_in_other_languages():
    found = read(table(Geschlecht=BINARY, Klasse=BINARY, Alter=list(range(20, 60))))
    assert found.items.tolist() == ITEMS
    assert notes(found)["attribute_columns"].items == ("Geschlecht", "Klasse", "Alter")


def test_what_the_others_hold_is_all_that_they_hold():
    """Of eight items seven hold 0 and 1 and one holds 0 to 2."""
    answers = {f"q{k}": np.arange(60) % 2 for k in range(1, 8)}
    frame = pl.DataFrame({"weight": np.arange(60) + 0.5, **answers, "q8": np.arange(60) % 3})
    sentence = notes(read(frame, ordered=True))["unlike_columns"].sentence
    assert "'weight' holds fractions, where the 8 others hold 0 to 2" in sentence


WORDS = ["Never", "Often", "Sometimes", "Refused", "Does not apply"]


def test_words_that_say_no_answer_are_no_categories():
    frame = pl.DataFrame({f"q{k}": [WORDS[(k + row) % 5] for row in range(20)] for k in range(4)})
    sentence = complaint(frame)
    assert "`recode='Never,Sometimes,Often'`" in sentence
    assert "(check the order), and `missing=['Refused', 'Does not apply']` for what means 'not answered'" in sentence


@pytest.mark.parametrize("raters", [["Adler", "Brandt", "Celik"], [11, 12, 13], [7, 8, 9]])
def test_a_column_of_raters_that_is_left_out_says_how_it_is_used(raters):
    """Read as answers, ratings look like people without a label: what to do is to say who rated."""
    names = ["content", "structure", "cohesion", "vocabulary", "grammar"]
    frame = pl.DataFrame({name: [(k + row // 2) % 6 for row in range(60)] for k, name in enumerate(names)})
    frame = frame.with_columns(rater=pl.Series([raters[row % 3] for row in range(60)]))
    (left_out,) = (note for note in read(frame, ordered=True).notes if "rater" in note.items)
    assert left_out.remedy.startswith("If these are ratings and 'rater' says who rated, say `facet='rater'`. If ")
    if raters == [7, 8, 9]:  # 9 is no answer that is missing here
        assert "'rater' holds the codes 7 to 9" in left_out.sentence


def test_of_rows_by_raters_the_rater_is_the_advice(tmp_path):
    """A column that says who rated is named alone: names of raters are no ordered categories."""
    rows = [f"e{e},{'Adler' if e % 2 else 'Brandt'},{1 + e % 3},{2 + e % 4}" for e in range(20)]
    with pytest.raises(ResponseValueError, match="If these are ratings and 'rater' says who rated, say") as odd:
        read_text(tmp_path, "\n".join(["essay,rater,style,org", *rows]))
    assert "recode" not in str(odd.value)
    assert "key" not in str(odd.value)
    twice = "\n".join(["person,rater,style,org", *rows, *rows]).replace("Adler", "1").replace("Brandt", "0")
    with pytest.raises(DuplicateResponseError, match=r"say `facet='rater'`\. Else say `duplicates='first'"):
        read_text(tmp_path, twice)


def test_a_pattern_of_an_example_names_a_column_once():
    columns = {f"M{k:02d}": BINARY for k in range(1, 7)} | {"M03A": BINARY, "M03B": BINARY}
    frame = pl.DataFrame({"student": PEOPLE, "country": [36 + 100 * (k % 2) for k in range(40)], **columns})
    assert "`items='M[0-9]*,country'`" in notes(read(frame))["attribute_columns"].remedy
