"""Questions of a multiple-choice test that its author should look at, in a teacher's words."""

from __future__ import annotations

from spectral_irt.inference.items.review import EASY, HARD, USUAL, Look
from spectral_irt.report.blocks import ReportData, Section, Table, Text
from spectral_irt.text import count, number, one_or_many, short

FEW = 100  # people below which a few answers more or less change such numbers


def questions(data: ReportData) -> Section:
    """A row for each question to look at, with the reasons; nothing where answers were not scored with a key."""
    if not data.parts.item_analysis or not data.study._multiple_choice:
        return Section(())
    looks = data.study._to_look_at()
    n_items = data.record["counts"]["items"]
    if not looks:
        text = (
            f"No question stands out: no key looks wrong, no wrong option misleads, and on every question more than "
            f"{100 * HARD:.0f}% and fewer than {100 * EASY:.0f}% are right."
        )
        return Section((Text(text),))
    are = one_or_many(len(looks), "is", "are")
    text = f"{len(looks):,} of {count(n_items, 'question')} {are} worth reading again before points are given."
    n_people = data.record["counts"]["persons"]
    if n_people < FEW:
        text += f" These are hints: with {count(n_people, 'person')}, a few answers more or less change them."
    rows = tuple((data.label_and_text(look.item), " ".join(sentences(look))) for look in looks)
    return Section((Text(text), Table("The most serious first", ("Question", "What to look at"), rows)))


def sentences(look: Look) -> list[str]:
    """Each reason of a question in a sentence."""
    option = short(look.option, 40)
    key = short(look.key, 40)
    chose = count(look.chose, "person")
    often = "hardly more often"
    if look.correlation < 0:
        often = "not more often" if look.correlation > -USUAL else "less often"
    in_words = {
        "key": f"Wrong key? The {chose} who chose {option!r} did better on the other questions than everybody else; "
        f"the key {key!r} was chosen by {look.chose_key:,}.",
        "swapped": f"Wrong key? The {chose} who chose {option!r} did better on the other questions than the "
        f"{look.chose_key:,} who chose the key {key!r}.",
        "most": f"Wrong key? {look.chose:,} of {count(look.n, 'person')} chose {option!r}, and {look.chose_key:,} the "
        f"key {key!r}.",
        "more": f"Misleading option? {chose} chose {option!r}, and {look.chose_key:,} the key {key!r}.",
        "higher": f"Misleading option? The {chose} who chose {option!r} did better on the other questions than the "
        f"{look.chose_key:,} who chose the key {key!r}.",
        "flat": f"Unclear? Those who did well on the other questions are {often} right (correlation "
        f"{number(look.correlation)}).",
        "hard": _too_hard(look),
        "easy": _too_easy(look),
    }
    return [in_words[reason] for reason in look.reasons]


def _how_many_are_right(look: Look) -> str:
    are = one_or_many(look.right, "is", "are")
    share = f"{100 * look.right / look.n:.0f}%" if look.n else ""
    return f"{look.right:,} of {count(look.n, 'person')} {are} right ({share})"


def _too_hard(look: Look) -> str:
    text = f"Too hard? {_how_many_are_right(look)}"
    if look.n_options > 1 and look.right * look.n_options <= look.n:
        text += f", no more than by guessing among {look.n_options} options"
    return f"{text}."


def _too_easy(look: Look) -> str:
    if look.right < look.n:
        return f"Too easy? {_how_many_are_right(look)}."
    return "Everybody is right: too easy to tell people apart?"
