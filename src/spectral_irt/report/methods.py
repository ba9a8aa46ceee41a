"""What was done to these data: a paragraph with references to paste into a paper, and how to do it again."""

from __future__ import annotations

import inspect
import shlex
import tomllib
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from spectral_irt.analysis.summary import LIKELIHOOD
from spectral_irt.calibration import ADAPTIVE_DESIGN, FREE_SHAPE
from spectral_irt.conditional.newton import LINEAR_DESIGN, NEWTON
from spectral_irt.estimators.by_name import ABILITIES, ESTIMATORS, METHODS, MODELS, ORDERED, Method, Named
from spectral_irt.report.blocks import Lines, ReportData, Section, Table, Text
from spectral_irt.report.changes import sentences_on_changes
from spectral_irt.report.fit import groupings
from spectral_irt.text import TEST, Words, count, listed, number, one_or_many, printable, sentence_case, within

ANSWERS = "answers.csv"  # where the files are not known
HOW_IT_RUNS = ("threads", "unused")  # parameters that change nothing, or were said when reading
# Options whose value is a file or a folder: a report says its name alone.
PLACES = (*("-o", "--output", "--key", "--group-file", "--anchors", "--bank", "--spill", "--plots"), "--report",
          "--pupil-pages")  # fmt: skip
SANDWICH = ("dense", "one-pass", "multiplier")
# The spectral method with items of several thresholds.
OF_THRESHOLDS = "by a spectral method with a chain on all thresholds (Nguyen & Zhang, 2022, 2024)"
# Contrasts and statistics of comparisons of groups, for right and wrong answers and for ordered ones.
OF_GROUPS = (
    ("difficulties", "Mantel-Haenszel statistics (Mantel & Haenszel, 1959)", "mantel"),
    ("locations", "Mantel's statistic (Mantel, 1963)", "mantel63"),
)


class Passage(NamedTuple):
    """Sentences of the paragraph, and the keys of the references that they cite."""

    sentences: Sequence[str] = ()
    cited: Collection[str] = ()


def methods(data: ReportData) -> Section:
    """The paragraph and its references; how the calibration was made, and how to do it again."""
    record = data.record
    text = paragraph(record, data.words)
    references = tomllib.loads((Path(__file__).parent / "references.toml").read_text(encoding="utf-8"))
    blocks: list[Any] = [
        Text("A Methods paragraph for a paper: what was done to these data."),
        Lines((" ".join(text.sentences),)),
        Lines(tuple(sorted(references[key] for key in text.cited)), "References"),
        Table("How the calibration was made", ("", "Value"), tuple(calibration_rows(data))),
    ]
    command = fit_command(record)
    if command:
        blocks.append(Lines((command,), "The same on the command line", program=True))
    blocks.append(Lines(python_lines(record), "The same in Python", program=True))
    return Section(tuple(blocks))


def calibration_rows(data: ReportData) -> list[tuple[str, str]]:
    """How the calibration was made, name by name."""
    record = data.record
    rows = [
        ("Model", MODELS[record.get("model") or "rasch"].long),
        ("Difficulties" if data.binary else "Thresholds", _method(record)),
        ("Standard errors", _errors_in_words(record)),
        ("Prior", _prior_in_words(record)),
    ]
    if not data.scale.is_logits:
        rows.append(("Scale", _scale_in_words(data)))
    ability = str(within(record, "persons", "ability"))
    ability_method = "not computed"
    if ability in ABILITIES:
        ability_method = ABILITIES[ability].long
    rows.append((data.words.fill("{Traits}"), ability_method))
    rows += [("Groups compared", printable(str(comparison.get("column")))) for comparison in groupings(record)]
    rows.append(("Program", f"spectral-irt {record['versions'].get('spectral_irt', '')}"))
    rows.append(("Fingerprint of the data", str(record.get("data_digest", "–"))))
    return rows


def _errors_in_words(record: Mapping[str, Any]) -> str:
    method = record.get("se_method") or "none"
    return f"sandwich ({method})" if method in SANDWICH else method


def _prior_in_words(record: Mapping[str, Any]) -> str:
    sentences = sentences_of(record, "regularization")
    if not sentences:
        return "none"
    return sentences[0].removeprefix("Prior: ").removeprefix("Regularization: ").rstrip(".")


def _scale_in_words(data: ReportData) -> str:
    text = f"{number(data.scale.mean, 3)} + {number(data.scale.unit, 3)} × logits, beside logits"
    asked = data.record.get("scale") or {}
    if asked.get("people_mean") is not None:
        text += f"; these persons have the mean {asked['people_mean']:g} and the sd {asked['people_sd']:g}"
    return text


def sentences_of(record: Mapping[str, Any], code: str) -> list[str]:
    """What the findings with this code say."""
    return [str(finding["sentence"]) for finding in record["findings"] if finding.get("code") == code]


def _method(record: Mapping[str, Any]) -> str:
    """How difficulties were estimated."""
    name = str(record.get("estimator"))
    solver = str(record.get("solver") or "")
    text = ESTIMATORS[name].long if name in ESTIMATORS else name
    if record.get("facets") or solver.startswith(LINEAR_DESIGN):
        text = "Conditional maximum likelihood"
    elif solver.endswith(NEWTON):
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


def paragraph(record: Mapping[str, Any], words: Words = TEST) -> Passage:
    """Sentences on what was done, and the keys of the references that they cite."""
    passages = (
        _calibration(record),
        _bias_correction(record),
        Passage(sentences_on_changes(record)),
        _design(record, words),
        _weights(record),
        _errors(record),
        _people(record, words),
        _item_fit(record),
        _dimensionality(record),
        _population(record),
        _groups(record),
        _tree(record),
        _change(record),
        Passage([f"The computations were done with spectral-irt {record['versions'].get('spectral_irt', '')}."]),
    )
    return Passage(
        sentences=[sentence for passage in passages for sentence in passage.sentences],
        cited={key for passage in passages for key in passage.cited},
    )


def _calibration(record: Mapping[str, Any]) -> Passage:
    """Who answered what, under which model, and how the difficulties were estimated."""
    counts = record["counts"]
    model = MODELS[record.get("model") or "rasch"]
    people = count(counts.get("persons") or 0, "person", "people")
    waves = within(record, "change", "waves")
    if waves:
        people = f"{count(within(record, 'change', 'n_persons'), 'person', 'people')} in {len(waves)} waves"
    text = f"Answers of {people} to {count(counts.get('items') or 0, 'item')} were calibrated under the {model.paper}"
    cited = {*model.cites}
    facets = record.get("facets")
    if facets:
        levels = " and ".join(count(facet["levels"], name) for name, facet in facets.items())
        text += f" with severities of {levels} (Linacre, 1989)"
        cited.add("linacre89")
    what = "Thresholds" if in_categories(record) else "Difficulties"
    estimation = _estimation(record)
    cited.update(estimation.cited)
    text += f". {what} were estimated {estimation.sentences[0]}{_prior(record)}"
    anchored = counts.get("items_anchored")
    if anchored:
        text += f", with {count(anchored, 'item')} anchored at known difficulties"
    free = within(record, "anchors", "free") or []
    if free:
        text += f" and the {one_or_many(len(free), 'anchor', 'anchors')} of {listed(free)} set free"
    return Passage([f"{text}."], cited)


def _estimation(record: Mapping[str, Any]) -> Passage:
    """How difficulties were estimated: the end of a sentence."""
    solver = str(record.get("solver") or "")
    if record.get("facets") or solver.startswith(LINEAR_DESIGN):
        return Passage(["by conditional maximum likelihood (Andersen, 1972)"], {"andersen"})
    name = str(record.get("estimator"))
    if in_categories(record) and name == "spectral":
        text = OF_THRESHOLDS
        cited = {"nguyen", "nguyen24"}
    else:
        estimator = ESTIMATORS.get(name, Named(name, name, f"with {name}"))
        text = estimator.paper
        cited = {*estimator.cites}
    if solver.endswith(NEWTON):
        text += " and taken to the maximum of the conditional likelihood (Andersen, 1972)"
        cited.add("andersen")
    return Passage([text], cited)


def _prior(record: Mapping[str, Any]) -> str:
    """The prior that acted on the difficulties, "" if none did."""
    prior = record.get("regularization") or {}
    if prior.get("kind") not in ("neighbors", "virtual item", "terms"):
        return ""
    origin = "chosen by empirical Bayes" if prior.get("estimated") else "set by hand"
    if prior.get("kind") == "terms":
        terms = [
            f"(sd {number(term['sd'])} logits) {origin} on {term['acts_on']:,} of {term['of']:,} {term['noun']}"
            for term in prior["terms"]
        ]
        return f", with a normal prior {' and one '.join(terms)}"
    sds = [sd for sd in (prior.get("sd"), prior.get("offset_sd")) if sd]
    if not sds:
        return f", with a normal prior (sd {number(prior['alpha'] ** -0.5)} logits) {origin}"
    noun = "threshold" if prior.get("offsets") else "item"
    acts_on = f"{prior['items']:,} of {count(prior['of'], noun)}"
    weak = ""
    if prior.get("estimated"):
        acts_on += " with few responses"
        weak = "weak "
    if len(sds) > 1:
        kind = f"{weak}normal priors (sd of locations and of offsets {number(sds[0])} and {number(sds[1])} logits)"
    else:
        kind = f"a {weak}normal prior (sd {number(sds[0])} logits)"
    return f", with {kind} {origin} on {acts_on}"


def _bias_correction(record: Mapping[str, Any]) -> Passage:
    sentences = [f"{text.removesuffix('.')} (Firth, 1993)." for text in sentences_of(record, "bias_correction")]
    return Passage(sentences, {"firth"} if sentences else ())


def _design(record: Mapping[str, Any], words: Words) -> Passage:
    """Why the likelihood is marginal, where answers decided what came next."""
    if record.get("design") != "adaptive":
        return Passage()
    about_design = " ".join(sentences_of(record, ADAPTIVE_DESIGN))
    shape = "came from a distribution of free shape" if FREE_SHAPE in about_design else "were taken as normal"
    if "in each group" in about_design:
        shape += " in each group"
    sentence = (
        "Marginal likelihood was chosen because earlier answers decided which items came next (Eggen & Verhelst, "
        f"2011); {words.traits} {shape}."
    )
    return Passage([sentence], {"eggen"})


def _weights(record: Mapping[str, Any]) -> Passage:
    if not sentences_of(record, "weights"):
        return Passage()
    return Passage(["Persons were weighted by survey weights."])


def _errors(record: Mapping[str, Any]) -> Passage:
    if within(record, "input", "clustered_by"):
        return Passage(["Standard errors allow for clusters of people (Liang & Zeger, 1986)."], {"liang"})
    if record.get("se_method") in SANDWICH:
        return Passage(["Standard errors are robust (sandwich) ones."])
    return Passage()


def _people(record: Mapping[str, Any], words: Words) -> Passage:
    """How abilities were estimated, and how reliable they are."""
    reliability = record.get("reliability")
    if not reliability:
        return Passage()
    sentences = []
    cited: set[str] = set()
    ability = ABILITIES.get(str(within(record, "persons", "ability")))
    if ability is not None:
        sentences.append(f"{words.fill('{Traits}')} were estimated by {ability.paper}.")
        cited.update(ability.cites)
    coefficients = []
    if reliability.get("eap_reliability") is not None:
        coefficients.append(f"the EAP reliability was {number(reliability['eap_reliability'])}")
    if reliability.get("kr20") is not None:
        coefficients.append(f"KR-20 (Kuder & Richardson, 1937) was {number(reliability['kr20'])}")
        cited.add("kuder")
    if reliability.get("alpha") is not None:
        coefficients.append(f"Cronbach's alpha (Cronbach, 1951) was {number(reliability['alpha'])}")
        cited.add("cronbach")
    if coefficients:
        sentences.append(sentence_case(f"{' and '.join(coefficients)}."))
    return Passage(sentences, cited)


def _item_fit(record: Mapping[str, Any]) -> Passage:
    fit = record.get("item_fit")
    if not fit:
        return Passage()
    n_misfits = (fit.get("underfit") or 0) + (fit.get("overfit") or 0)
    cited = {"masters", "muller", "christensen"}
    draws = fit.get("draws")
    if draws:
        against = f" against {draws:,} data sets drawn given the scores"
        adjusted_by = "Westfall & Young, 1993"
        cited.add("westfall")
    else:
        against = ""
        adjusted_by = "Benjamini & Hochberg, 1995"
        cited.add("benjamini")
    sentence = (
        "The fit of items was judged by infit (Wright & Masters, 1982) conditional on the score (Christensen et al., "
        f"2013; Müller, 2020){against}, with p-values adjusted for all items ({adjusted_by}); {n_misfits:,} of "
        f"{count(fit.get('judged') or 0, 'item')} misfitted."
    )
    return Passage([sentence, *sentences_of(record, "misfit_not_visible")], cited)


def _dimensionality(record: Mapping[str, Any]) -> Passage:
    """Local dependence and the first contrast, where the fit of items was looked at."""
    shared = within(record, "fit_checks", "shared")
    if not record.get("item_fit") or not shared:
        return Passage()
    draws = shared.get("draws")
    if draws:
        sentence = (
            "Local dependence was judged by Q3, the correlation of residuals (Yen, 1984), and dimensionality by "
            f"the first contrast of the residuals (Linacre, 1998), both against {draws:,} data sets drawn given "
            "the scores, with p-values adjusted for all pairs (Westfall & Young, 1993)."
        )
        return Passage([sentence], {"yen", "linacre", "westfall"})
    sentence = (
        "Local dependence is described by Q3 (Yen, 1984); pairs of items were tested given the score (Van den "
        "Wollenberg, 1982; Bonferroni), and dimensionality by the first contrast of the residuals (Linacre, "
        "1998)."
    )
    return Passage([sentence], {"yen", "linacre", "wollenberg"})


def _population(record: Mapping[str, Any]) -> Passage:
    if not record.get("item_fit") or not record.get("conditional_against_marginal"):
        return Passage()
    return Passage(["Conditional and marginal estimates were compared (Hausman, 1978)."], {"hausman"})


def _groups(record: Mapping[str, Any]) -> Passage:
    comparisons = groupings(record)
    if not comparisons:
        return Passage()
    columns = " and ".join(str(comparison.get("column")) for comparison in comparisons)
    contrasts, statistic, origin = OF_GROUPS[in_categories(record)]
    sentence = (
        f"Differential item functioning by {columns} was assessed by contrasts of {contrasts}, centered on the items "
        "that agree, in the classes of the Educational Testing Service (Zwick, 2012)"
    )
    cited = {"zwick", "benjamini"}
    if any(comparison.get("mantel_haenszel", True) for comparison in comparisons):
        sentence += f", with {statistic} beside them"
        cited.add(origin)
    return Passage([f"{sentence}."], cited)


def _change(record: Mapping[str, Any]) -> Passage:
    change = record.get("change")
    if not change:
        return Passage()
    of_arms = " and its differences between arms" if len(change["arms"]) > 1 else ""
    sentences = [
        f"Change between waves{of_arms} was estimated by conditional maximum likelihood given each person's total over "
        "all items and waves (Fischer, 1989), with errors of the sandwich over persons, p-values adjusted for the "
        "waves (Holm, 1979), and score tests of response shift for each item and wave."
    ]
    if change.get("each_item"):
        sentences.append("The linear logistic model with relaxed assumptions (LLRA) took each item by itself.")
    sentences.append(
        "Changes of single persons count as reliable beyond 1.96 standard errors (Jacobson & Truax, 1991)."
    )
    return Passage(sentences, {"fischer", "holm", "jacobson"})


def _tree(record: Mapping[str, Any]) -> Passage:
    tree = record.get("dif_tree")
    if not tree:
        return Passage()
    basis = "on all persons"
    if tree["halved"]:
        basis = "on one half of the persons, and differences estimated on the other"
    sentence = (
        f"Groups for whom items work differently were searched for along {listed(tree['columns'])} by a tree of score "
        f"tests of the conditional likelihood (Strobl et al., 2015; p-values by Estrella, 2003), grown {basis}; splits "
        f"count from {number(tree['size'])} logits."
    )
    return Passage([sentence], {"strobl", "estrella"})


def fit_command(record: Mapping[str, Any]) -> str:
    """The command as it was given, names of files without their folders; "" for what was made in Python."""
    argv: Sequence[str] = record.get("argv") or []
    if not argv:
        return ""
    files = set(within(record, "input", "files") or [])
    database = within(record, "input", "reading", "database")  # an address, not a file
    words = ["spectral-irt"]
    for before, word in zip(["", *argv], argv, strict=False):
        flag, equals, value = word.partition("=")
        if before in PLACES or (word in files and word != database):
            word = PurePath(word).name
        elif equals and flag in PLACES:
            word = f"{flag}={PurePath(value).name}"
        words.append(word)
    return shlex.join(words)


def python_lines(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines of Python that make the analysis, `study`."""
    change = record.get("change")
    if change:
        arguments = ["answers", repr(change["wave"]), *_keywords({"arm": within(record, "input", "arm")})]
        if change.get("each_item"):
            arguments.append("each_item=True")
        if within(record, "input", "waves"):
            return ()  # a wide table, which the command makes long
        return (
            "import spectral_irt as si",
            f"answers = {_read_call(record)}",
            f"study = si.change({', '.join(arguments)})",
        )
    return (
        "import spectral_irt as si",
        f"answers = {_read_call(record)}",
        f"fit = {_estimator_call(record)}.fit({', '.join(['answers', *_fit_arguments(record)])})",
        f"study = {_analysis_call(record)}",
        *_changes_call(record),
    )


def _read_call(record: Mapping[str, Any]) -> str:
    """The call that reads the answers, and what is put beside them."""
    source = within(record, "input") or {}
    options = {name: value for name, value in (source.get("reading") or {}).items() if value not in ([], None)}
    if in_categories(record):
        options["ordered"] = True
        unused = within(record, "settings", "unused")
        if unused not in (None, "collapse"):  # a rating scale keeps categories that nobody used; reading does not
            options.setdefault("unused", unused)
    if "reverse" in options:
        options["reverse"] = [name for names in options["reverse"] for name in str(names).split(",")]
    for file in ("key", "item_texts"):
        if file in options:
            options[file] = PurePath(str(options[file])).name
    further_calls = ""
    if options.pop("largest_component", False):
        further_calls += ".largest_component()"
    if source.get("people"):
        further_calls += _people_call(source["people"])
    arguments = _keywords(options)
    if "database" not in options:
        files = [PurePath(file).name for file in source.get("files") or [ANSWERS]]
        arguments.insert(0, repr(files if len(files) > 1 else files[0]))
    return f"si.read({', '.join(arguments)}){further_calls}"


def _people_call(table: Mapping[str, Any]) -> str:
    """The call that adds columns about persons from a table of their own."""
    options = {name: table.get(name) for name in ("person", "sheet")}
    arguments = [repr(PurePath(table["file"]).name), repr(list(table["columns"])), *_keywords(options)]
    return f".with_people({', '.join(arguments)})"


def _fit_arguments(record: Mapping[str, Any]) -> list[str]:
    """What `fit` takes besides the answers: how persons were drawn, and whether answers decided what came next."""
    source = within(record, "input") or {}
    arguments = _keywords({"weights": source.get("weight"), "groups": source.get("population_by")})
    if record.get("design") == "adaptive":
        arguments.append("design='adaptive'")
    return arguments


def _analysis_call(record: Mapping[str, Any]) -> str:
    """The call that makes the analysis, on its scale."""
    source = within(record, "input") or {}
    ability = within(record, "persons", "ability")
    if ability == "wle":
        ability = None
    options = {"ability": ability, "trait": record.get("trait"), "form": source.get("form")}
    call = f"fit.analyse({', '.join(['answers', *_keywords(options)])})"
    if source.get("clustered_by") is not None:
        columns = [source["clustered_by"]]
        if source.get("population_by") is not None:
            columns.append(source["population_by"])
        call += f".clustered({', '.join(map(repr, columns))})"
    scale = record.get("scale") or {}
    if scale.get("people_mean") is not None:
        call += f".rescale({scale['people_mean']:g}, {scale['people_sd']:g})"
    elif scale.get("by") is not None:
        call += f".rescale({scale['mean']:.9g}, {scale['unit']:.9g}, by='formula')"
    return call


def _keywords(options: Mapping[str, Any]) -> list[str]:
    """Options as arguments of a call; those that are None were not asked for."""
    return [f"{name}={value!r}" for name, value in options.items() if value is not None]


def _changes_call(record: Mapping[str, Any]) -> list[str]:
    """The line that makes the changes of a fit."""
    if record.get("moves"):
        return ["study = study.with_moves('moves.toml')"]
    held_out = record.get("hold_out")
    if held_out:
        return [f"study = study.hold_out({held_out['share']}, seed={held_out['seed']}).for_choice"]
    return []


def _estimator_call(record: Mapping[str, Any]) -> str:
    """The call that makes the estimator, with the parameters that are not at their defaults."""
    arguments = [f"{parameter}={value!r}" for parameter, value in settings(record).items()]
    anchors = within(record, "input", "anchors")
    if anchors is not None:
        places = [repr(PurePath(str(anchors)).name)]
        free = within(record, "anchors", "free")
        if free:
            places.append(f"free={free!r}")
        return f"si.AnchoredRasch({', '.join([*places, *arguments])})"
    method = method_of(record) or METHODS["spectral"]
    return f"si.{method.where.partition(':')[2]}({', '.join(arguments)})"


def method_of(record: Mapping[str, Any]) -> Method | None:
    """The method by which the calibration was made; None if that has no name on the command line."""
    methods = {"rasch": METHODS, **ORDERED}.get(record.get("model") or "rasch", {})
    return methods.get(str(record.get("estimator")))


def in_categories(record: Mapping[str, Any]) -> bool:
    """Whether the model is one of ordered categories."""
    return record.get("model") in ORDERED


def settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """The estimator's parameters that are not at their defaults."""
    method = method_of(record)
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
