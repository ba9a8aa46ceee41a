"""The field's words in everything that a user can read: phrases that are not to come back."""

import re
from pathlib import Path

import pytest

from spectral_irt import SpectralPartialCredit, SpectralRasch, datasets, read
from spectral_irt.text import Words

ROOT = Path(__file__).parents[2]
KINDS = ("*.py", "*.html", "*.js", "*.md")
TEXTS = {path: path.read_text(encoding="utf-8") for kind in KINDS for path in (ROOT / "src").rglob(kind)}
TEXTS |= {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}


@pytest.mark.parametrize(
    "phrase",
    [
        *("landed on", "Taken for items", "how sure that is", "surely worse", "answer erratically", "look surer"),
        *("numbered anew", "by more than chance allows", "when looked at alone", "Nothing odd", "to hand on"),
        *("stands beside cannot", "where chance has", "shares more than the ability", "drown", "a twentieth of its"),
    ],
)
def test_phrases_that_nobody_in_the_field_would_say(phrase):
    found = [str(path.relative_to(ROOT)) for path, text in TEXTS.items() if phrase in " ".join(text.split())]
    assert not found


def test_no_sentence_is_cut_where_a_line_had_room():
    cut = re.compile(r'\n *"[^"\n]{1,20} "\n *f?"\w|""".* "\n *"\w')
    assert not [str(path.relative_to(ROOT)) for path, text in TEXTS.items() if cut.search(text)]


@pytest.mark.parametrize("kind", ["keyed", "ordered"])
def test_a_trait_changes_labels_and_no_sentence(kind):
    if kind == "keyed":
        responses = datasets.load_quiz()
        fit = SpectralRasch().fit(responses)
        group = "region"
    else:
        answers = {"recode": ["never", "rarely", "sometimes", "often", "always"], "people": "sex", "ordered": True}
        responses = read(datasets.survey_file(), **answers)
        fit = SpectralPartialCredit().fit(responses)
        group = "sex"
    plain = fit.analyse(responses)
    named = fit.analyse(responses, trait="knowledge")
    parts = plain.parts(groups={group: group}, writing=True)
    findings = plain.findings(parts)
    assert ("wrong_key" if kind == "keyed" else "reversed_items") in {one.code for one in findings}
    assert named.findings(parts) == findings
    for one in findings:
        assert not re.search(r"\b(abler|ablest|able|ability|abilities)\b", f"{one.sentence} {one.remedy}")
    before = plain.summary(parts).split()
    after = named.summary(parts).split()
    label = "ability" if kind == "keyed" else "person measure"
    assert " ".join(before).replace(f"mean {label}", "mean knowledge") == " ".join(after)


def test_fields_of_labels():
    assert Words("anxiety", "measures").fill("{Trait} on {trait}, {Traits} of {traits}") == (
        "Anxiety on anxiety, Measures of measures"
    )
    assert Words().fill("{Trait}, {traits}, {other}") == "Ability, abilities, {other}"
