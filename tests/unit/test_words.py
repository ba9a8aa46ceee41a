"""The field's words in everything that a user can read: phrases that are not to come back."""

import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mean ability -0.07", "mean anxiety -0.07"),
        ("Abilities were estimated", "Measures were estimated"),
        ("the 9 people who chose 'C' are abler", "the 9 people who chose 'C' are higher"),
        ("'hard work' is harder for 'the able' by 0.3", "'hard work' is higher for 'the able' by 0.3"),
        ("everybody's ability, or --ability pv", "everybody's anxiety, or --ability pv"),
        ("say `weighting='ability'`; see ability.csv", "say `weighting='ability'`; see ability.csv"),
        ("reliability, harden, easily", "reliability, harden, easily"),
    ],
)
def test_another_trait_in_its_own_words_and_names_as_they_are(text: str, said: str) -> None:
    assert Words("anxiety")(text) == said
    assert Words()(text) == text


def test_a_neutral_word_leaves_the_items_as_they_are() -> None:
    words = Words("person measure", items=False)
    assert words("Able people and hard items") == "People with a high person measure and hard items"
    assert words("mean ability, larger = harder") == "mean person measure, larger = harder"
