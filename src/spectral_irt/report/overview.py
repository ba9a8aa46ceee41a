"""The beginning of a report: what is odd, and the numbers that everybody asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spectral_irt.inference.scores.reliability import NOT_DEFINED
from spectral_irt.report.blocks import FindingList, ReportData, Section, Table, Text
from spectral_irt.text import Words, count, number, one_or_many, plural, printable, short, whole_percent, within

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
    about_reading = notes_on_reading(data)
    first = in_a_sentence(data)
    if about_reading:
        first += " How they were read is said after the methods."
    results = {}
    for finding in data.record["findings"]:
        sentence = str(finding.get("sentence", ""))
        if finding not in about_reading and not sentence.startswith(NO_PRIOR):
            results[sentence] = finding  # once: two groupings may have the same to say
    return Section((Text(first), *finding_blocks(list(results.values()), words_of_codes(data))))


def reading(data: ReportData) -> Section:
    """What was taken for what in the files: to be checked once."""
    notes = notes_on_reading(data)
    if not notes:
        return Section(())
    return Section((FindingList(findings_of_page(notes, words_of_codes(data))),))


def notes_on_reading(data: ReportData) -> list[Mapping[str, Any]]:
    """Findings of the record that say how the data were read, but for warnings."""
    codes = {"cut_at_median", *(note.code for note in data.study.responses.notes if note.severity == "note")}
    notes = [finding for finding in data.record["findings"] if finding.get("severity") == "note"]
    return [note for note in notes if note.get("code") in codes]


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
    people = count(counts.get("persons", 0), "person")
    items = count(counts.get("items", 0), "item")
    if data.study.facets:
        facets = " and ".join(count(facet["levels"], name) for name, facet in data.record["facets"].items())
        return f"{people} have {count(answers, 'rating')} on {items} by {facets}. The data: {source}."
    text = f"{people} gave {count(answers, 'answer')} to {items}"
    if not data.binary:
        text += f" with {count(counts.get('thresholds') or 0, 'threshold')}"
    elif answers:
        text += f", {100 * (counts.get('right') or 0) / answers:.1f}% of them right"
    return f"{text}. The data: {source}."


def finding_blocks(
    every: Sequence[Mapping[str, Any]], word: Callable[[str], str] = lambda code: "items"
) -> tuple[Any, ...]:
    """Findings as records have them, in words; `word` says what those of a code are about."""
    findings = sorted(every, key=lambda finding: ORDER.get(str(finding.get("severity")), 2))
    if not findings:
        return (Text("No problems were found."),)
    n_warnings = sum(finding.get("severity") != "note" for finding in findings)
    if not n_warnings:
        first = "Nothing that would change how the results are read. For the record:"
    else:
        first = f"{count(n_warnings, 'warning')} that may change how the results are read, and what to do"
        first += "; then notes." if n_warnings < len(findings) else "."
    return Text(first), FindingList(findings_of_page(findings, word))


def findings_of_page(
    findings: Sequence[Mapping[str, Any]], word: Callable[[str], str]
) -> tuple[Mapping[str, Any], ...]:
    """Findings as the page has them."""
    return tuple(
        {
            "severity": str(finding.get("severity", "note")),
            "sentence": printable(finding.get("sentence", "")),
            "remedy": printable(finding.get("remedy") or ""),
            "items": tuple(short(item) for item in (finding.get("items") or [])[:NAMED]),
            "more": max(int(finding.get("n_items") or 0) - NAMED, 0),
            "word": word(str(finding.get("code"))),
        }
        for finding in findings
    )


def summary(data: ReportData) -> Section:
    """Counts, reliability, targeting."""
    rows = count_rows(data)
    reliability = data.record.get("reliability")
    remarks: list[Text] = []
    if reliability:
        kinds = ("persons",) if data.study.facets else ("persons", "items")  # facets have sections of their own
        rows += reliability_rows(reliability, kinds, data.words, binary=data.binary)
        rows += floor_and_ceiling(reliability)
        if reliability.get("eap_reliability") is not None:
            remarks.append(Text(good_enough(reliability["eap_reliability"])))
        subset = in_first_subset(data)
        if subset:
            remarks.append(Text(f"Reliability, targeting and extreme scores are those of {subset}."))
    else:
        remarks.append(Text("Reliability and targeting are not here: people were left out of the analysis."))
    table = Table("Counts, reliability and targeting", ("", "Value", "What it says"), tuple(rows))
    return Section((table, *remarks))


def count_rows(data: ReportData) -> list[tuple[str, str, str]]:
    """How many people, items, thresholds and answers there are."""
    counts = data.record["counts"]
    estimated = counts.get("items_with_estimate", counts.get("items"))
    rows = [
        ("People", number(counts.get("persons"), 0), ""),
        ("Items", number(counts.get("items"), 0), f"{number(estimated, 0)} of them with an estimate"),
    ]
    if not data.binary and not data.study.facets:
        rows.append(("Thresholds", number(counts.get("thresholds"), 0), "between neighboring categories"))
    answers = "Ratings" if data.study.facets else "Answers"
    n_forms = within(data.record, "forms", "forms") or 0
    rows.append((answers, number(counts.get("responses"), 0), share_missing(counts, n_forms)))
    return rows


def in_first_subset(data: ReportData) -> str:
    """Of ratings in subsets that nothing links, whose measures are described; "" where all can be compared."""
    comparable = data.study._comparable()
    if comparable is None:
        return ""
    return f"subset 1, {int(comparable.sum()):,} of {count(len(comparable), 'person')}"


def floor_and_ceiling(reliability: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """How many persons have the lowest and the highest possible score."""
    n_persons = int(reliability.get("n_persons") or 0)
    rows = []
    for name, field, which in (("Floor", "n_lowest", "lowest"), ("Ceiling", "n_highest", "highest")):
        n_at_end = int(reliability.get(field) or 0)
        have = one_or_many(n_at_end, "has", "have")
        meaning = f"{n_at_end:,} of {count(n_persons, 'person')} {have} the {which} possible score"
        rows.append((name, whole_percent(n_at_end, n_persons), meaning))
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
    reliability: Mapping[str, Any], kinds: Sequence[str], words: Words, *, binary: bool
) -> list[tuple[str, str, str]]:
    """The reliabilities, each under its name with what it says."""
    rows = []
    eap = reliability.get("eap_reliability")
    if eap is not None:
        meaning = f"of the {words.traits}: {100 * eap:.0f}% of their variance is true variance"
        rows.append(("EAP reliability", number(eap), f"{meaning}; the coefficient to report"))
    if reliability.get("kr20") is not None:
        meaning = "of the number right, over the people who answered every item"
        rows.append(("KR-20 (Cronbach's alpha)", number(reliability["kr20"]), meaning))
    if reliability.get("alpha") is not None:
        meaning = "of the total score, over complete answers"
        rows.append(("Cronbach's alpha", number(reliability["alpha"]), meaning))
    if "persons" in kinds and reliability.get("method") != "eap":
        meaning = "person separation reliability without extreme scores"
        everybody = within(reliability, "persons_with_extremes", "reliability")
        if everybody is not None and everybody >= 0:
            meaning += f"; {number(everybody)} with them"
        rows += separation_row("Person separation index (PSI)", reliability.get("persons"), meaning, "people")
    if "items" in kinds:
        meaning = "how precisely the items are ordered"
        rows += separation_row("Item separation reliability", reliability.get("items"), meaning, "items")
    target = reliability.get("targeting")
    if target is not None:
        rows.append(("Targeting", f"{target:+z.2f}", targeting(target, words, binary=binary)))
    return rows


def separation_row(
    name: str, separation: Mapping[str, Any] | None, meaning: str, whose: str
) -> list[tuple[str, str, str]]:
    """The reliability that goes with a separation, and the separation itself; no row where it is not known."""
    if not separation or separation.get("separation") is None:
        return []
    value = separation.get("reliability")
    sizes = (
        f"separation {number(separation['separation'])} (true spread in standard errors), strata "
        f"{number(separation.get('strata'), 1)} (levels of {whose} that can be told apart)"
    )
    if value is not None and value < 0:
        return [(name, number(None), f"{meaning}; {NOT_DEFINED}; {sizes}")]
    return [(name, number(value), f"{meaning}; {sizes}")]


def good_enough(reliability: float) -> str:
    """What a reliability is usually held to be good for."""
    reliability = round(reliability, 2)  # as it is shown
    it_is = f"A reliability of {number(reliability)} is"
    if reliability >= FOR_PERSONS:
        return f"{it_is} enough for decisions about single persons ({FOR_PERSONS:.2f} is usually asked for)."
    if reliability >= FOR_GROUPS:
        return (
            f"{it_is} enough to compare groups ({FOR_GROUPS:.2f} is usually asked for), not for decisions about single "
            f"persons ({FOR_PERSONS:.2f})."
        )
    return (
        f"{it_is} too low for decisions about single persons, and low for comparing groups ({FOR_GROUPS:.2f} is "
        "usually asked for)."
    )


def targeting(logits: float, words: Words, *, binary: bool) -> str:
    """Mean ability minus mean difficulty in words."""
    if abs(logits) < NEAR:
        meaning = "the items are about where the people are"
    elif binary:
        easy = "easy" if logits > 0 else "hard"
        meaning = f"the items are {easy} for these people"
    else:
        less = "less" if logits > 0 else "more"
        meaning = f"most items ask for {less} of it than these people have"
    return f"mean {words.trait}, without extreme scores, minus mean difficulty, in logits: {meaning}"
