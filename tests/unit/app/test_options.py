"""What is said on the page about columns is what a command understands."""

import json

import pytest

from spectral_irt.app.detect import GROUP, ITEM, PERSON, RESPONSE, UNUSED, detect
from spectral_irt.app.options import Choice
from spectral_irt.cli.main import main
from spectral_irt.errors import OptionError

NAMES = ["student", "sex", "total", "q*", "q1", "q2", "a,b", "[1]", "-x", "q?,r", " spaced "]


def table(path, names):
    """A wide table with these columns, the first of them with labels."""
    rows = [[f"s{k}", *((k >> j) % 2 for j in range(1, len(names)))] for k in range(1, 60)]
    quoted = ",".join(f'"{name}"' for name in names)
    path.write_text("\n".join([quoted, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


def checked(path, words, capsys):
    capsys.readouterr()
    assert main(["check", str(path), *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("left_out", [[], ["q*"], ["q1", "a,b"], ["sex", "-x", "[1]"], ["student", "q2"]])
def test_columns_that_are_chosen_are_the_items(tmp_path, capsys, left_out):
    path = table(tmp_path / "t.csv", NAMES)
    columns = detect({"file": str(path)})["columns"]
    roles = {k: UNUSED if name in left_out else ITEM for k, name in enumerate(NAMES)}
    roles[0] = UNUSED if "student" in left_out else PERSON
    words = Choice(roles=roles).fit_words(columns, "wide")
    (taken,) = [one for one in checked(path, words, capsys)["findings"] if one["code"] == "items_taken"]
    assert taken["items"] == [NAMES[k] for k, role in roles.items() if role == ITEM]


def test_what_was_recognized_needs_no_words(tmp_path):
    columns = detect({"file": str(table(tmp_path / "t.csv", NAMES))})["columns"]
    assert [column["role"] for column in columns[:4]] == [PERSON, UNUSED, ITEM, ITEM]
    assert Choice().fit_words(columns, "wide") == []
    assert Choice(roles={1: GROUP}).fit_words(columns, "wide") == ["--group", "sex"]
    words = Choice(missing="9, -1", largest_component=True).fit_words(columns, "wide")
    assert words == ["--missing", "9", "--missing=-1", "--largest-component"]
    assert Choice().with_form({"scale": " 500, 100 "}).fit_words(columns, "wide") == ["--scale", "500,100"]
    assert Choice(scale="formula:50,10").fit_words(columns, "wide") == ["--scale", "formula:50,10"]


def test_a_long_table(tmp_path, capsys):
    path = tmp_path / "long.csv"
    lines = [f"{k},i{j},{(k + j) % 2}" for k in range(30) for j in range(3)]
    path.write_text("\n".join(["wer,was,-wie", *lines]) + "\n", encoding="utf-8")
    seen = detect({"file": str(path), "format": "long"})
    assert "no column seems to hold the person" in seen["error"]
    choice = Choice(format="long", roles={0: PERSON, 1: ITEM, 2: RESPONSE})
    words = choice.fit_words(seen["columns"], seen["format"])
    assert words == ["--layout", "long", "--person", "wer", "--item", "was", "--response=-wie"]
    counts = checked(path, words, capsys)["counts"]
    assert [counts[name] for name in ("persons", "items", "responses", "right")] == [30, 3, 90, 45]
    with pytest.raises(OptionError, match="no columns are marked as response"):
        Choice(roles={0: PERSON, 1: ITEM, 2: UNUSED}).fit_words(seen["columns"], "long")


def test_roles_that_cannot_be():
    columns = [{"name": name, "role": ITEM} for name in ("a", "b", "c")]
    with pytest.raises(OptionError, match="'a' and 'b' cannot both name the people"):
        Choice(roles={0: PERSON, 1: PERSON}).fit_words(columns, "wide")
    with pytest.raises(OptionError, match="fewer than two columns are items"):
        Choice(roles={0: UNUSED, 1: UNUSED}).fit_words(columns, "wide")


def test_a_form_says_only_what_it_can():
    said = Choice(key="key.csv").with_form(
        {"format": "sideways", "orient": "items", "role-1": "item", "role-2": "king", "role-x": "item", "adaptive": ""}
    )
    assert (said.format, said.orient, said.key, said.adaptive) == ("auto", "items", "key.csv", True)
    assert said.roles == {1: ITEM}


@pytest.mark.parametrize(
    "more",
    [
        "-o/elsewhere/x", "-o /elsewhere", "-o=x", "-qo/x", "--output=/x", "--report x.html", "--bank=b", "--plots p",
        "--help", "-h", "--help-all", "--version", "--strict", "--quiet", "-q", "--json", "--dry-run",
        "--rank 3 -o/x", "-- other.csv", "other.csv",
    ],
)  # fmt: skip
def test_the_page_says_itself_where_results_go_and_what_is_printed(more):
    with pytest.raises(OptionError, match="no option for this page"):
        Choice(more=more).more_words()


def test_other_further_options_are_taken():
    more = "--trait 'social anxiety' --missing -1 --set se=none --scale 500,100"
    assert Choice(more="--reverse 'q 1,q2' --model rsm").more_words() == ["--reverse", "q 1,q2", "--model", "rsm"]
    with pytest.raises(OptionError, match="cannot be read"):
        Choice(more="--model 'rsm").more_words()
    words = ["--trait", "social anxiety", "--missing", "-1", "--set", "se=none", "--scale", "500,100"]
    assert Choice(more=more).more_words() == words
