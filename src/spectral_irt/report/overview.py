"""The beginning of a report: what is odd, and the numbers that everybody asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spectral_irt.inference.scores.reliability import NOT_DEFINED
from spectral_irt.report.blocks import FindingList, ReportData, Section, Table, Text
from spectral_irt.text import Words, count, number, plural, printable, short, whole_percent, within

ORDER = {"error": 0, "warning": 1, "note": 2}
NAMED = 20  # items of a finding that are listed
NEAR = 0.5  # logits between the means of people and items that hardly matter
# Reliabilities that Nunnally and Bernstein (1994) ask for, for research on groups and for decisions about persons.
FOR_GROUPS = 0.70
FOR_PERSONS = 0.90
# Findings about ratings that name raters, or levels of another facet.
OF_LEVELS = ("severe_levels", "erratic_levels", "regular_levels", "central_levels", "extreme_levels", "few_ratings",
             "disjoint_subsets")  # fmt: skip
NO_PRIOR = "Prior: none"  # how the finding begins that says so; the table of the methods has it


def findings(data: ReportData) -> Section:
    """The data in a sentence; what is odd, the most serious first, and what to do about it."""
    every = [one for one in data.record["findings"] if not str(one.get("sentence", "")).startswith(NO_PRIOR)]
    about_reading = notes_on_reading(data)
    first = in_a_sentence(data)
    if about_reading:
        first += " How they were read is said after the methods."
    # Two groupings may have the same to say.
    results = {str(one.get("sentence")): one for one in every if one not in about_reading}
    return Section((Text(first), *finding_blocks(list(results.values()), words_of_codes(data))))


def reading(data: ReportData) -> Section:
    """What was taken for what in the files: to be checked once."""
    notes = notes_on_reading(data)
    if not notes:
        return Section(())
    return Section((FindingList(shown_findings(notes, words_of_codes(data))),))


def notes_on_reading(data: ReportData) -> list[Mapping[str, Any]]:
    """Findings of the record that say how the data were read, but for warnings."""
    codes = {"cut_at_median", *(note.code for note in data.study.responses.notes if note.severity == "note")}
    return [one for one in data.record["findings"] if one.get("code") in codes and one.get("severity") == "note"]


def words_of_codes(data: ReportData) -> Callable[[str], str]:
    """What the findings of a code name: items, or raters and the like."""
    facets = data.study.facets
    levels = plural(facets[0]) if len(facets) == 1 else "levels"

    def word(code: str) -> str:
        return levels if code in OF_LEVELS else "items"

    return word


def in_a_sentence(data: ReportData) -> str:
    """Who answered what."""
    counts = data.record["counts"]
    answers = counts.get("responses") or 0
    source = printable(within(data.record, "input", "source") or "the data given")
    people, items = count(counts.get("persons", 0), "person"), count(counts.get("items", 0), "item")
    if data.study.facets:
        facets = " and ".join(count(one["levels"], name) for name, one in data.record["facets"].items())
        return f"{people} have {count(answers, 'rating')} on {items} by {facets}. The data: {source}."
    if not data.binary:
        more = f" with {count(counts.get('thresholds') or 0, 'threshold')}"
    else:
        more = f", {100 * (counts.get('right') or 0) / answers:.1f}% of them right" if answers else ""
    return f"{people} gave {count(answers, 'answer')} to {items}{more}. The data: {source}."


def finding_blocks(
    every: Sequence[Mapping[str, Any]], word: Callable[[str], str] = lambda code: "items"
) -> tuple[Any, ...]:
    """Findings as records have them, in words; `word` says what those of a code are about."""
    found = sorted(every, key=lambda one: ORDER.get(str(one.get("severity")), 2))
    if not found:
        return (Text("No problems were found."),)
    warnings = sum(one.get("severity") != "note" for one in found)
    if warnings:
        first = f"{count(warnings, 'warning')} that may change how the results are read, and what to do"
        first += "." if warnings == len(found) else "; then notes."
    else:
        first = "Nothing that would change how the results are read. For the record:"
    return Text(first), FindingList(shown_findings(found, word))


def shown_findings(found: Sequence[Mapping[str, Any]], word: Callable[[str], str]) -> tuple[Mapping[str, Any], ...]:
    """Findings as the page has them."""
    return tuple(
        {
            "severity": str(one.get("severity", "note")),
            "sentence": printable(one.get("sentence", "")),
            "remedy": printable(one.get("remedy") or ""),
            "items": tuple(short(item) for item in (one.get("items") or [])[:NAMED]),
            "more": max(int(one.get("n_items") or 0) - NAMED, 0),
            "word": word(str(one.get("code"))),
        }
        for one in found
    )


def summary(data: ReportData) -> Section:
    """Counts, reliability, targeting."""
    counts, found = data.record["counts"], data.record.get("reliability")
    forms = within(data.record, "forms", "forms") or 0
    estimated = counts.get("items_with_estimate", counts.get("items"))
    rows = [
        ("People", number(counts.get("persons"), 0), ""),
        ("Items", number(counts.get("items"), 0), f"{number(estimated, 0)} of them with an estimate"),
        ("Thresholds", number(counts.get("thresholds"), 0), "between neighboring categories"),
        (
            "Ratings" if data.study.facets else "Answers",
            number(counts.get("responses"), 0),
            share_missing(counts, forms),
        ),
    ]
    if data.binary or data.study.facets:
        del rows[2]
    if found:
        kinds = ("persons",) if data.study.facets else ("persons", "items")  # facets have sections of their own
        rows += reliability_rows(found, kinds, data.words, binary=data.binary)
        rows += floor_and_ceiling(found)
    blocks: list[Any] = [Table("Counts, reliability and targeting", ("", "Value", "What it says"), tuple(rows))]
    if found and found.get("eap_reliability") is not None:
        blocks.append(Text(good_enough(found["eap_reliability"])))
    if found and (subset := in_first_subset(data)):
        blocks.append(Text(f"Reliability, targeting and extreme scores are those of {subset}."))
    if not found:
        blocks.append(Text("Reliability and targeting are not here: people were left out of the analysis."))
    return Section(tuple(blocks))


def in_first_subset(data: ReportData) -> str:
    """Of ratings in subsets that nothing links, whose measures are described; "" where all can be compared."""
    some = data.study._comparable()
    return "" if some is None else f"subset 1, {int(some.sum()):,} of {count(len(some), 'person')}"


def floor_and_ceiling(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """How many persons have the lowest and the highest possible score."""
    n = int(found.get("n_persons") or 0)
    rows = []
    for name, field, which in (("Floor", "n_lowest", "lowest"), ("Ceiling", "n_highest", "highest")):
        number_of = int(found.get(field) or 0)
        have = "has" if number_of == 1 else "have"
        said = f"{number_of:,} of {count(n, 'person')} {have} the {which} possible score"
        rows.append((name, whole_percent(number_of, n), said))
    return rows


def share_missing(counts: Mapping[str, Any], forms: int = 0) -> str:
    """Which part of all answers there is, in words, where people were given so many forms."""
    cells = (counts.get("persons") or 0) * (counts.get("combinations") or counts.get("items") or 0)
    if not cells:
        return ""
    share = (counts.get("responses") or 0) / cells
    if "combinations" in counts:
        return f"{100 * share:.3g}% of all person-by-item-by-rater cells"
    if share == 1:
        return "everybody answered every item"
    design = " (booklet design)" if forms > 1 else ""
    return f"{100 * share:.3g}% of all person-by-item cells{design}"


def reliability_rows(
    found: Mapping[str, Any], kinds: Sequence[str], words: Words, *, binary: bool
) -> list[tuple[str, str, str]]:
    """The reliabilities, each under its name with what it says."""
    rows = []
    eap, kr20 = found.get("eap_reliability"), found.get("kr20")
    if eap is not None:
        said = f"of the {words.traits}: {100 * eap:.0f}% of their variance is true variance; the coefficient to report"
        rows.append(("EAP reliability", number(eap), said))
    if kr20 is not None:
        rows.append(("KR-20 (Cronbach's alpha)", number(kr20), "reliability of the raw score"))
    if found.get("alpha") is not None:
        rows.append(("Cronbach's alpha", number(found["alpha"]), "of the total score, over complete answers"))
    names = {"persons": "Person separation index (PSI)", "items": "Item separation reliability"}
    everybody = within(found, "persons_with_extremes", "reliability")
    with_extremes = "" if everybody is None or everybody < 0 else f"; {number(everybody)} with them"
    about = {
        "persons": f"person separation reliability without extreme scores{with_extremes}",
        "items": "how precisely the items are ordered",
    }
    for kind in kinds:
        name, said, one = names[kind], about[kind], found.get(kind) or {}
        if one.get("separation") is not None and (kind == "items" or found.get("method") != "eap"):
            more = f"separation {number(one['separation'])}, strata {number(one.get('strata'), 1)}"
            reliable = one.get("reliability")
            if reliable is not None and reliable < 0:
                reliable = None
                more = f"{NOT_DEFINED}; {more}"
            rows.append((name, number(reliable), f"{said}; {more}"))
    target = found.get("targeting")
    if target is not None:
        rows.append(("Targeting", f"{target:+z.2f}", targeting(target, words, binary=binary)))
    return rows


def good_enough(reliability: float) -> str:
    """What a reliability is usually held to be good for."""
    reliability = round(reliability, 2)  # as it is shown
    said = f"A reliability of {number(reliability)} is"
    if reliability >= FOR_PERSONS:
        return f"{said} enough for decisions about single persons ({FOR_PERSONS:.2f} is usually asked for)."
    if reliability >= FOR_GROUPS:
        rest = f"not for decisions about single persons ({FOR_PERSONS:.2f})"
        return f"{said} enough to compare groups ({FOR_GROUPS:.2f} is usually asked for), {rest}."
    rest = f"and low for comparing groups ({FOR_GROUPS:.2f} is usually asked for)"
    return f"{said} too low for decisions about single persons, {rest}."


def targeting(logits: float, words: Words, *, binary: bool) -> str:
    """Mean ability minus mean difficulty in words."""
    if not binary:
        side = "less" if logits > 0 else "more"
        said = f"most items ask for {side} of it than these people have"
        if abs(logits) < NEAR:
            said = "the items are about where the people are"
    elif abs(logits) < NEAR:
        said = "the items are about where the people are"
    else:
        said = f"the items are {'easy' if logits > 0 else 'hard'} for these people"
    return f"mean {words.trait}, without extreme scores, minus mean difficulty, in logits: {said}"
