"""The beginning of a report: what was fitted, what is odd, and the numbers that everybody asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectral_irt import __version__
from spectral_irt.analysis.summary import LIKELIHOOD
from spectral_irt.conditional.newton import NEWTON
from spectral_irt.errors import printable
from spectral_irt.estimators.by_name import ABILITIES, ESTIMATORS, MODELS
from spectral_irt.report.blocks import FindingList, How, Lines, Section, Table, Text, short, within
from spectral_irt.report.commands import fit_command, groupings, python_lines
from spectral_irt.report.data import Material
from spectral_irt.text import count, number

ORDER = {"error": 0, "warning": 1, "note": 2}
NAMED = 20  # items of a finding that are listed
NEAR = 0.5  # logits between the means of people and items that hardly matter


def what_was_fitted(material: Material) -> Section:
    """The data, the method, and how to do it again."""
    record = material.record
    counts = record["counts"]
    people, items = count(counts.get("persons", 0), "person", "people"), count(counts.get("items", 0), "item")
    source = printable(within(record, "input", "source") or "the data given")
    answers = counts.get("responses") or 0
    if not material.binary:
        more = f" with {count(counts.get('thresholds') or 0, 'threshold')}"
    else:
        more = f", {100 * (counts.get('right') or 0) / answers:.1f}% of them right" if answers else ""
    sentence = f"{people} gave {count(answers, 'answer')} to {items}{more}. The data: {source}."
    ability = str(within(record, "persons", "ability"))
    rows = [
        ("Model", MODELS[record.get("model") or "rasch"].long),
        ("Difficulties" if material.binary else "Thresholds", method(record)),
        ("Standard errors", errors(record)),
        ("Regularization", regularization(record)),
        *([("Scale", scale(material))] if record.get("scale") else []),
        ("Abilities", ABILITIES[ability].long if ability in ABILITIES else "not computed"),
        *[("Groups compared", printable(str(one.get("column")))) for one in groupings(record)],
        ("Program", f"spectral-irt {record['versions'].get('spectral_irt', '')}{_other_version(record)}"),
        ("Fingerprint of the data", str(record.get("data_digest", "–"))),
    ]
    again = fit_command(record, "-o", "results")
    command = (Lines((again,), "The same on the command line", program=True),) if again else ()
    return Section(
        "fitted",
        "What was fitted",
        (
            Text(sentence),
            Table("How the calibration was made", ("", "Value"), tuple((name, value) for name, value in rows)),
            *command,
            Lines(python_lines(record), "The same in Python", program=True),
        ),
    )


def method(record: Mapping[str, Any]) -> str:
    """How difficulties were estimated."""
    name = str(record.get("estimator"))
    text = ESTIMATORS[name].long if name in ESTIMATORS else name
    if str(record.get("solver") or "").endswith(NEWTON):
        text = LIKELIHOOD
    elif name == "spectral" and within(record, "settings", "weighting"):
        text += f", {within(record, 'settings', 'weighting')} weights"
    if record.get("design") == "adaptive":
        text += ", for a design in which answers decided what came next"
    anchored = within(record, "counts", "items_anchored")
    if anchored:
        text += f", anchored to {count(anchored, 'item')}"
    return f"{text}; {count(record.get('iterations') or 0, 'pass', 'passes')} over the data"


def errors(record: Mapping[str, Any]) -> str:
    """How standard errors were found."""
    how = record.get("se_method")
    if how in (None, "none"):
        return "none"
    return f"sandwich ({how})" if how in ("dense", "one-pass", "multiplier") else str(how)


def regularization(record: Mapping[str, Any]) -> str:
    """What was added to the data."""
    said = [one["sentence"] for one in record["findings"] if one.get("code") == "regularization"]
    return said[0].removeprefix("Prior: ").removeprefix("Regularization: ").rstrip(".") if said else "none"


def scale(material: Material) -> str:
    """How logits are reported."""
    return f"{number(material.scale.mean, 3)} + {number(material.scale.unit, 3)} × logits, beside logits"


def _other_version(record: Mapping[str, Any]) -> str:
    version = record["versions"].get("spectral_irt")
    return "" if version == __version__ else f"; this report was made by version {__version__}"


# ----------------------------------------------------------------------------------------------- findings


def findings(material: Material) -> Section:
    """What is odd, the most serious first, and what to do about it."""
    how = How(fit_command(material.record), "study.findings()")
    return Section("findings", "Findings", finding_blocks(material.record["findings"], how))


def finding_blocks(every: Sequence[Mapping[str, Any]], how: How) -> tuple[Any, ...]:
    """These findings in words, and how to have them again."""
    found = sorted(every, key=lambda one: ORDER.get(str(one.get("severity")), 2))
    if not found:
        return (Text("Nothing odd was found."),)
    warnings = sum(one.get("severity") != "note" for one in found)
    if warnings:
        first = f"{count(warnings, 'warning')} that may change how the results are read, and what to do; then notes."
    else:
        first = "Nothing that would change how the results are read. For the record:"
    shown = tuple(
        {
            "severity": str(one.get("severity", "note")),
            "sentence": printable(one.get("sentence", "")),
            "remedy": printable(one.get("remedy") or ""),
            "items": tuple(short(item) for item in (one.get("items") or [])[:NAMED]),
            "more": max(int(one.get("n_items") or 0) - NAMED, 0),
        }
        for one in found
    )
    return Text(first), FindingList(shown), how


# ------------------------------------------------------------------------------------------------ summary


def summary(material: Material) -> Section:
    """Counts, reliability, targeting."""
    record = material.record
    counts, found = record["counts"], record.get("reliability")
    estimated = counts.get("items_with_estimate", counts.get("items"))
    rows = [
        ("People", number(counts.get("persons"), 0), ""),
        ("Items", number(counts.get("items"), 0), f"{number(estimated, 0)} of them with an estimate"),
        ("Thresholds", number(counts.get("thresholds"), 0), "between neighboring categories"),
        ("Answers", number(counts.get("responses"), 0), share_missing(counts)),
    ]
    if material.binary:
        del rows[2]
    if found:
        lowest, highest = found.get("n_lowest") or 0, found.get("n_highest") or 0
        ends = ("everything right", "wrong") if material.binary else ("the highest score possible", "the lowest")
        said = f"{number(highest, 0)} with {ends[0]}, {number(lowest, 0)} {ends[1]}"
        rows += [*reliability_rows(found), ("Extreme scores", number(lowest + highest, 0), said)]
    source = How(fit_command(record), "study.reliability()")
    blocks: list[Any] = [Table("Counts, reliability and targeting", ("", "Value", "What it says"), tuple(rows), source)]
    if not found:
        blocks.append(Text("Reliability and targeting are not here: people were left out of the analysis."))
    return Section("summary", "Summary", tuple(blocks))


def share_missing(counts: Mapping[str, Any]) -> str:
    """Which part of all answers there is, in words."""
    cells = (counts.get("persons") or 0) * (counts.get("items") or 0)
    if not cells:
        return ""
    share = (counts.get("responses") or 0) / cells
    return "everybody answered every item" if share == 1 else f"{100 * share:.3g}% of people times items"


def reliability_rows(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The reliabilities, each under its name with what it says."""
    rows = []
    eap, kr20 = found.get("eap_reliability"), found.get("kr20")
    if eap is not None:
        said = f"of the spread in abilities, {100 * eap:.0f}% is seen by the test and the rest is error; quote this one"
        rows.append(("EAP reliability", number(eap), said))
    if kr20 is not None:
        rows.append(("KR-20 (Cronbach's alpha)", number(kr20), "reliability of the raw score"))
    if found.get("alpha") is not None:
        rows.append(("Cronbach's alpha", number(found["alpha"]), "of the total score, over complete answers"))
    people = found.get("persons") or {}
    if people.get("separation") is not None and found.get("method") != "eap":
        rows.append(
            (
                "Person separation reliability",
                number(people.get("reliability")),
                f"without extreme scores; {number(people.get('strata'), 1)} levels of ability can be told apart",
            )
        )
    items = found.get("items") or {}
    if items.get("reliability") is not None:
        rows.append(("Item separation reliability", number(items["reliability"]), "how surely the items are ordered"))
    target = found.get("targeting")
    if target is not None:
        rows.append(("Targeting", f"{target:+z.2f}", targeting(target)))
    return rows


def targeting(logits: float) -> str:
    """Mean ability minus mean difficulty in words."""
    if abs(logits) < NEAR:
        return "mean ability minus mean difficulty, in logits: the items are about as hard as the people are able"
    side = "easy" if logits > 0 else "hard"
    return f"mean ability minus mean difficulty, in logits: the items are {side} for these people"
