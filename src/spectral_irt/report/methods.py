"""What was done to these data: a paragraph with references to paste into a paper, and how to do it again."""

from __future__ import annotations

import inspect
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

from spectral_irt.analysis.summary import LIKELIHOOD
from spectral_irt.calibration import ADAPTIVE_DESIGN, FREE_SHAPE
from spectral_irt.conditional.newton import LINEAR_DESIGN, NEWTON
from spectral_irt.estimators.by_name import ABILITIES, ESTIMATORS, METHODS, MODELS, ORDERED, Method, Named
from spectral_irt.report.blocks import Lines, ReportData, Section, Table, Text
from spectral_irt.report.changes import sentences_on_changes
from spectral_irt.report.fit import groupings
from spectral_irt.text import TEST, Words, count, listed, number, printable, within

ANSWERS = "answers.csv"  # where the files are not known
HOW_IT_RUNS = ("threads", "unused")  # parameters that change nothing, or were said when reading
# Options whose value is a file or a folder: a report says its name alone.
PLACES = (*("-o", "--output", "--key", "--group-file", "--anchors", "--bank", "--spill", "--plots"), "--report")
SANDWICH = ("dense", "one-pass", "multiplier")
# The spectral method with items of several thresholds.
OF_THRESHOLDS = (
    "by a spectral method with a chain on all thresholds (Nguyen & Zhang, 2022, 2024)",
    ("nguyen", "nguyen24"),
)
# Contrasts and statistics of comparisons of groups, for right and wrong answers and for ordered ones.
OF_GROUPS = (
    ("difficulties", "Mantel-Haenszel statistics (Mantel & Haenszel, 1959)", "mantel"),
    ("locations", "Mantel's statistic (Mantel, 1963)", "mantel63"),
)


def methods(data: ReportData) -> Section:
    """The paragraph and its references; how the calibration was made, and how to do it again."""
    record = data.record
    sentences, cited = paragraph(record, data.words)
    known = tomllib.loads((Path(__file__).parent / "references.toml").read_text(encoding="utf-8"))
    said = fit_command(record)
    command = (Lines((said,), "The same on the command line", program=True),) if said else ()
    return Section(
        (
            Text("A Methods paragraph for a paper: what was done to these data."),
            Lines((" ".join(sentences),)),
            Lines(tuple(sorted(known[name] for name in cited)), "References"),
            Table("How the calibration was made", ("", "Value"), tuple(made_rows(data))),
            *command,
            Lines(python_lines(record), "The same in Python", program=True),
        )
    )


def made_rows(data: ReportData) -> list[tuple[str, str]]:
    """How the calibration was made, name by name."""
    record, ability = data.record, str(within(data.record, "persons", "ability"))
    se = record.get("se_method") or "none"
    said = [one["sentence"] for one in record["findings"] if one.get("code") == "regularization"]
    scale = f"{number(data.scale.mean, 3)} + {number(data.scale.unit, 3)} × logits, beside logits"
    asked = record.get("scale") or {}
    if asked.get("people_mean") is not None:
        scale += f"; these persons have the mean {asked['people_mean']:g} and the sd {asked['people_sd']:g}"
    return [
        ("Model", MODELS[record.get("model") or "rasch"].long),
        ("Difficulties" if data.binary else "Thresholds", _method(record)),
        ("Standard errors", f"sandwich ({se})" if se in SANDWICH else se),
        ("Prior", said[0].removeprefix("Prior: ").removeprefix("Regularization: ").rstrip(".") if said else "none"),
        *([] if data.scale.is_logits else [("Scale", scale)]),
        (data.words.fill("{Traits}"), ABILITIES[ability].long if ability in ABILITIES else "not computed"),
        *[("Groups compared", printable(str(one.get("column")))) for one in groupings(record)],
        ("Program", f"spectral-irt {record['versions'].get('spectral_irt', '')}"),
        ("Fingerprint of the data", str(record.get("data_digest", "–"))),
    ]


def _method(record: Mapping[str, Any]) -> str:
    """How difficulties were estimated."""
    name = str(record.get("estimator"))
    text = ESTIMATORS[name].long if name in ESTIMATORS else name
    if record.get("facets") or str(record.get("solver") or "").startswith(LINEAR_DESIGN):
        text = "Conditional maximum likelihood"
    elif str(record.get("solver") or "").endswith(NEWTON):
        text = LIKELIHOOD
        if within(record, "regularization", "kind") == "neighbors":
            noun = "thresholds" if in_categories(record) else "items"
            text += f"; a weak prior on {noun} with few responses"
    elif name == "spectral" and within(record, "settings", "weighting"):
        text += f", {within(record, 'settings', 'weighting')} weights"
    if record.get("design") == "adaptive":
        text += ", for a design in which answers decided what came next"
    anchored = within(record, "counts", "items_anchored")
    if anchored:
        text += f", anchored to {count(anchored, 'item')}"
        free = within(record, "anchors", "free")
        if free:
            text += f" (set free: {listed(free)})"
    return f"{text}; {count(record.get('iterations') or 0, 'pass', 'passes')} over the data"


def paragraph(record: Mapping[str, Any], words: Words = TEST) -> tuple[list[str], set[str]]:
    """Sentences on what was done, and the keys of the references that they cite."""
    counts = record["counts"]
    name, model = str(record.get("estimator")), MODELS[record.get("model") or "rasch"]
    called = ESTIMATORS.get(name, Named(name, name, f"with {name}"))
    how, cites = called.paper, called.cites
    if in_categories(record) and name == "spectral":
        how, cites = OF_THRESHOLDS
    what = "Thresholds" if in_categories(record) else "Difficulties"
    cited = {*model.cites, *cites}
    people, items = count(counts.get("persons") or 0, "person", "people"), count(counts.get("items") or 0, "item")
    first = f"Answers of {people} to {items} were calibrated under the {model.paper}"
    if facets := record.get("facets"):
        levels = " and ".join(count(one["levels"], name) for name, one in facets.items())
        first += f" with severities of {levels} (Linacre, 1989)"
        how = "by conditional maximum likelihood (Andersen, 1972)"
        cited = {*model.cites, "linacre89", "andersen"}
    solver = str(record.get("solver") or "")
    linear_design = solver.startswith(LINEAR_DESIGN)
    if linear_design and not facets:
        how = "by conditional maximum likelihood (Andersen, 1972)"
        cited = {*model.cites, "andersen"}
    first += f". {what} were estimated {how}"
    if solver.endswith(NEWTON) and not linear_design:
        first += " and taken to the maximum of the conditional likelihood (Andersen, 1972)"
        cited.add("andersen")
    first += _prior(record)
    anchored = counts.get("items_anchored")
    first += f", with {count(anchored, 'item')} anchored at known difficulties" if anchored else ""
    free = within(record, "anchors", "free") or []
    first += f" and the {'anchor' if len(free) == 1 else 'anchors'} of {listed(free)} set free" if free else ""
    sentences = [first + "."]
    for one in record["findings"]:
        if one.get("code") == "bias_correction":
            sentences.append(one["sentence"].removesuffix(".") + " (Firth, 1993).")
            cited.add("firth")
    sentences += sentences_on_changes(record)
    if record.get("design") == "adaptive":
        said = " ".join(one["sentence"] for one in record["findings"] if one.get("code") == ADAPTIVE_DESIGN)
        shape = "came from a distribution of free shape" if FREE_SHAPE in said else "were taken as normal"
        shape += " in each group" if "in each group" in said else ""
        sentences.append(
            "Marginal likelihood was chosen because earlier answers decided which items came next (Eggen & Verhelst, "
            f"2011); {words.traits} {shape}."
        )
        cited.add("eggen")
    if any(one.get("code") == "weights" for one in record["findings"]):
        sentences.append("Persons were weighted by survey weights.")
    sentences += _errors(record, cited)
    sentences += _people(record, cited, words)
    sentences += _fit(record, cited)
    sentences += _groups(record, cited)
    sentences.append(f"The computations were done with spectral-irt {record['versions'].get('spectral_irt', '')}.")
    return sentences, cited


def _prior(record: Mapping[str, Any]) -> str:
    """The prior that acted on the difficulties, "" if none did."""
    used = record.get("regularization") or {}
    if used.get("kind") not in ("neighbors", "virtual item", "terms"):
        return ""
    how = "chosen by empirical Bayes" if used.get("estimated") else "set by hand"
    if used.get("kind") == "terms":
        each = [
            f"(sd {number(term['sd'])} logits) {how} on {term['acts_on']:,} of {term['of']:,} {term['noun']}"
            for term in used["terms"]
        ]
        return f", with a normal prior {' and one '.join(each)}"
    sds = [sd for sd in (used.get("sd"), used.get("offset_sd")) if sd]
    sd = " and ".join(number(sd) for sd in sds or [used["alpha"] ** -0.5])
    which = "normal priors (sd of locations and of offsets" if len(sds) > 1 else "normal prior (sd"
    on = f" on {used['items']:,} of {count(used['of'], 'threshold' if used.get('offsets') else 'item')}" if sds else ""
    if sds and used.get("estimated"):
        on += " with few responses"
        which = which.replace("normal", "weak normal")
    article = "" if len(sds) > 1 else "a "
    return f", with {article}{which} {sd} logits) {how}{on}"


def _errors(record: Mapping[str, Any], cited: set[str]) -> list[str]:
    how = record.get("se_method")
    clusters = within(record, "input", "clustered_by")
    if clusters:
        cited.add("liang")
        return ["Standard errors allow for clusters of people (Liang & Zeger, 1986)."]
    if how in SANDWICH:
        return ["Standard errors are robust (sandwich) ones."]
    return []


def _people(record: Mapping[str, Any], cited: set[str], words: Words) -> list[str]:
    found = record.get("reliability")
    if not found:
        return []
    called = ABILITIES.get(str(within(record, "persons", "ability")))
    cited.update(called.cites if called else ())
    sentences = [words.fill("{Traits} were estimated by ") + f"{called.paper}."] if called else []
    quoted = []
    if found.get("eap_reliability") is not None:
        quoted.append(f"the EAP reliability was {number(found['eap_reliability'])}")
    if found.get("kr20") is not None:
        quoted.append(f"KR-20 (Kuder & Richardson, 1937) was {number(found['kr20'])}")
        cited.add("kuder")
    if found.get("alpha") is not None:
        quoted.append(f"Cronbach's alpha (Cronbach, 1951) was {number(found['alpha'])}")
        cited.add("cronbach")
    text = " and ".join(quoted)
    return [*sentences, f"{text[0].upper()}{text[1:]}."] if text else sentences


def _fit(record: Mapping[str, Any], cited: set[str]) -> list[str]:
    found = record.get("item_fit")
    if not found:
        return []
    cited |= {"masters", "muller", "christensen"}
    if not found.get("draws"):
        cited.add("benjamini")
    bad = (found.get("underfit") or 0) + (found.get("overfit") or 0)
    against, adjusted_by = "", "Benjamini & Hochberg, 1995"
    draws = found.get("draws")
    if draws:
        against = f" against {draws:,} data sets drawn given the scores"
        adjusted_by = "Westfall & Young, 1993"
        cited.add("westfall")
    sentences = [
        "The fit of items was judged by infit (Wright & Masters, 1982) conditional on the score (Christensen et al., "
        f"2013; Müller, 2020){against}, with p-values adjusted for all items ({adjusted_by}); {bad:,} of "
        f"{count(found.get('judged') or 0, 'item')} misfitted."
    ]
    blind = [one["sentence"] for one in record["findings"] if one.get("code") == "misfit_not_visible"]
    sentences += [str(sentence) for sentence in blind]
    if within(record, "fit_checks", "shared"):
        cited |= {"yen", "linacre"}
        shared = record["fit_checks"]["shared"]
        draws = shared.get("draws")
        if draws:
            cited.add("westfall")
            sentences.append(
                "Local dependence was judged by Q3, the correlation of residuals (Yen, 1984), and dimensionality by "
                f"the first contrast of the residuals (Linacre, 1998), both against {draws:,} data sets drawn given "
                "the scores, with p-values adjusted for all pairs (Westfall & Young, 1993)."
            )
        else:
            cited.add("wollenberg")
            sentences.append(
                "Local dependence is described by Q3 (Yen, 1984); pairs of items were tested given the score (Van den "
                "Wollenberg, 1982; Bonferroni), and dimensionality by the first contrast of the residuals (Linacre, "
                "1998)."
            )
    if record.get("conditional_against_marginal"):
        cited.add("hausman")
        sentences.append("Conditional and marginal estimates were compared (Hausman, 1978).")
    return sentences


def _groups(record: Mapping[str, Any], cited: set[str]) -> list[str]:
    said = groupings(record)
    if not said:
        return []
    cited |= {"zwick", "benjamini"}
    columns = " and ".join(str(one.get("column")) for one in said)
    contrasts, statistic, origin = OF_GROUPS[in_categories(record)]
    cited.add(origin)
    return [
        f"Differential item functioning by {columns} was assessed by contrasts of {contrasts}, centered on the items "
        f"that agree, in the classes of the Educational Testing Service (Zwick, 2012), with {statistic} beside them."
    ]


def fit_command(record: Mapping[str, Any]) -> str:
    """The command as it was given, names of files without their folders; "" for what was made in Python."""
    said: Sequence[str] = record.get("argv") or []
    files = set(within(record, "input", "files") or [])
    database = within(record, "input", "reading", "database")  # an address, not a file
    words = ["spectral-irt"]
    for before, word in zip(["", *said], said, strict=False):
        flag, equals, value = word.partition("=")
        if before in PLACES or (word in files and word != database):
            word = PurePath(word).name
        elif equals and flag in PLACES:
            word = f"{flag}={PurePath(value).name}"
        words.append(word)
    return shlex.join(words) if said else ""


def python_lines(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines of Python that make the analysis, `study`."""
    said = within(record, "input") or {}
    files = [PurePath(file).name for file in said.get("files") or [ANSWERS]]
    options = {name: value for name, value in (said.get("reading") or {}).items() if value not in ([], None)}
    if in_categories(record):
        options["ordered"] = True
        unused = within(record, "settings", "unused")
        if unused not in (None, "collapse"):  # a rating scale keeps categories that nobody used; reading does not
            options.setdefault("unused", unused)
    if "reverse" in options:
        options["reverse"] = [name for names in options["reverse"] for name in str(names).split(",")]
    after = ".largest_component()" if options.pop("largest_component", False) else ""
    for file in ("key", "item_texts"):
        if file in options:
            options[file] = PurePath(str(options[file])).name
    if said.get("people"):
        beside = said["people"]
        given = "".join(f", {name}={beside[name]!r}" for name in ("person", "sheet") if beside.get(name) is not None)
        after += f".with_people({PurePath(beside['file']).name!r}, {list(beside['columns'])!r}{given})"
    source = [] if "database" in options else [repr(files if len(files) > 1 else files[0])]
    reading = ", ".join([*source, *(f"{name}={value!r}" for name, value in options.items())])
    design = {"weights": said.get("weight"), "groups": said.get("population_by")}
    fitted = [f"{name}={column!r}" for name, column in design.items() if column is not None]
    fitted += ["design='adaptive'"] if record.get("design") == "adaptive" else []
    ability = within(record, "persons", "ability")
    asked = {"ability": None if ability == "wle" else ability, "trait": record.get("trait"), "form": said.get("form")}
    analysed = ["answers", *(f"{name}={value!r}" for name, value in asked.items() if value is not None)]
    study = f"fit.analyse({', '.join(analysed)})"
    if said.get("clustered_by") is not None:
        by = [said["clustered_by"], *([design["groups"]] if design["groups"] is not None else [])]
        study += f".clustered({', '.join(map(repr, by))})"
    scale = record.get("scale") or {}
    if scale.get("people_mean") is not None:
        study += f".rescale({scale['people_mean']:g}, {scale['people_sd']:g})"
    elif scale.get("by") is not None:
        study += f".rescale({scale['mean']:.9g}, {scale['unit']:.9g}, by='formula')"
    return (
        "import spectral_irt as si",
        f"answers = si.read({reading}){after}",
        f"fit = {_maker(record)}.fit({', '.join(['answers', *fitted])})",
        f"study = {study}",
        *_again(record),
    )


def _again(record: Mapping[str, Any]) -> list[str]:
    """The line that makes the changes of a fit."""
    if record.get("moves"):
        return ["study = study.with_moves('moves.toml')"]
    held_out = record.get("hold_out")
    if held_out:
        return [f"study = study.hold_out({held_out['share']}, seed={held_out['seed']}).for_choice"]
    return []


def _maker(record: Mapping[str, Any]) -> str:
    method = made(record)
    given = ", ".join(f"{parameter}={value!r}" for parameter, value in settings(record).items())
    anchors = within(record, "input", "anchors")
    if anchors is not None:
        place = PurePath(str(anchors)).name
        free = within(record, "anchors", "free")
        parameters = [repr(place), *([f"free={free!r}"] if free else []), *([given] if given else [])]
        return f"si.AnchoredRasch({', '.join(parameters)})"
    return f"si.{(method or METHODS['spectral']).where.partition(':')[2]}({given})"


def made(record: Mapping[str, Any]) -> Method | None:
    """By what the calibration was made; None if that has no name on the command line."""
    methods = {"rasch": METHODS, **ORDERED}.get(record.get("model") or "rasch", {})
    return methods.get(str(record.get("estimator")))


def in_categories(record: Mapping[str, Any]) -> bool:
    """Whether the model is one of ordered categories."""
    return record.get("model") in ORDERED


def settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """The estimator's parameters that are not at their defaults."""
    method = made(record)
    if method is None:
        return {}
    module, _, maker_name = method.where.partition(":")
    maker: Any = import_module(f"spectral_irt.estimators.{module}")
    for part in maker_name.split("."):
        maker = getattr(maker, part)
    defaults = inspect.signature(maker).parameters
    return {
        parameter: value
        for parameter, value in (record.get("settings") or {}).items()
        if parameter in defaults and parameter not in HOW_IT_RUNS and value != defaults[parameter].default
    }
