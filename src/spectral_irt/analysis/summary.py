"""The analysis as text: the items that say most, a line for each part, how it was done, what is odd."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from spectral_irt.analysis.cache import columns_of
from spectral_irt.analysis.facets import facet_lines, severest_first
from spectral_irt.conditional.newton import LINEAR_DESIGN, NEWTON
from spectral_irt.estimators.by_name import ESTIMATORS, MODELS, estimator_name
from spectral_irt.inference.fit.item_fit import SQUARES
from spectral_irt.inference.groups.grouping import mean_sentences
from spectral_irt.terminal import (
    BY_PRIOR,
    DIRECTION,
    FIT,
    PEOPLE,
    Screen,
    item_table,
    numbers,
    person_table,
    plain_table,
    say,
    show_findings,
    show_lines,
    show_source,
)
from spectral_irt.text import TEST, Words, count, printable

if TYPE_CHECKING:
    from rich.table import Table

    from spectral_irt.analysis.analysis import Analysis
    from spectral_irt.analysis.folder import Parts
    from spectral_irt.calibration import Calibration
    from spectral_irt.inference.scores.reliability import Reliability
    from spectral_irt.tables import Columns

LIKELIHOOD = "Conditional maximum likelihood, started from the spectral estimate"
SHOWN = 12  # groups, or classes, that are shown; the files have all

# Findings that the lines say already.
GROUPS = (
    *("differential_items", "no_differential_items", "differences_by_slope"),
    *("nonuniform_items", "nonuniform_not_tested"),
)
SAID = ("regularization", "bias_correction", "misfitting_items", *GROUPS)
RANKED = 1_000  # people who are ranked on the terminal, where they are fewer than the items: within a second


def summary_text(study: Analysis, parts: Parts, width: int = 80) -> str:
    """What `show_summary` shows, as plain text."""
    # In a notebook rich would display every line as a cell of HTML, and nothing would be left for the text.
    quiet: dict[str, Any] = {"force_jupyter": False, "color_system": None}
    out = Screen(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False, **quiet)
    show_summary(out, study, parts)
    return out.file.getvalue()  # type: ignore[attr-defined]


def show_summary(out: Screen, study: Analysis, parts: Parts, *, method: str | None = None, times: str = "") -> None:
    """Items (and people, where they are the fewer), a line for each part, how it was done, and the findings."""
    show_source(out, study.responses)
    if parts.persons and study.responses.n_persons < min(study.responses.n_items, RANKED):
        say(out, Text(study._words.fill(PEOPLE), style="dim"))
        word = one(study.responses.words[0])
        table = person_table(
            columns_of(study.person_ranking),
            out.width,
            points=not study.responses.thresholds.binary,
            name=word,
            whole=out.whole,
            words=study._words,
        )
        say(out, table)
        say(out)
    _show_items(out, study, parts)
    for facet in study.facets:
        _show_facet(out, study, facet)
    lines = part_lines(study, parts)
    if lines:
        show_lines(out, lines)
        say(out)
    if parts.described or parts.cuts:
        for table in people_tables(study, parts, out.width):
            say(out, table)
            say(out)
    say(out, Text(printable(f"{how(study.calibration, method)} {times}".rstrip())))
    findings = [finding for finding in study.findings(parts) if finding.code not in SAID]
    if findings:
        say(out)
        show_findings(out, findings)


def _show_items(out: Screen, study: Analysis, parts: Parts) -> None:
    """The items, with how they fit where that is known."""
    items = study.calibration.own_items
    fit: Columns | None = None
    if study.calibration.facets is not None:
        noun = "item"
        columns = study._rated_items()
        # Beside the averages of raters, which are in the codes of the data as well.
        columns = columns | {"mean_score": columns["observed_average"]}
        fit = given_totals(columns)
    else:
        noun = one(study.responses.words[1])
        columns = items.item_columns()
        if "mean_score" in columns:  # as the questionnaire counts
            columns = columns | {"mean_score": items.mean_in_codes(columns["mean_score"])}
        if parts.fit:
            fit = study.checks(parts).columns
    direction = DIRECTION
    if fit is not None:
        direction += f"; {FIT}"
    say(out, Text(direction, style="dim"))
    thresholds: list[list[float]] = []
    if not items.layout.binary:
        thresholds = [values.tolist() for values in np.split(items.thresholds, items.layout.first[1:])]
    moved_by_prior: list[list[bool]] = []
    if items.moved_by_prior.any():
        moved_by_prior = [moved.tolist() for moved in np.split(items.moved_by_prior, items.layout.first[1:])]
        say(out, Text(BY_PRIOR, style="dim"))
    table = item_table(
        columns,
        out.width,
        fit,
        name=noun,
        unicode=(out.encoding or "").lower().startswith("utf"),
        whole=out.whole,
        thresholds=thresholds,
        moved_by_prior=moved_by_prior,
    )
    say(out, table)
    say(out)


def _show_facet(out: Screen, study: Analysis, name: str) -> None:
    """The levels of a facet from the most severe down; of many, those at both ends."""
    levels = columns_of(study.facet, name)
    order = severest_first(levels)
    chosen = order
    if len(order) > 2 * SHOWN:
        chosen = np.concatenate([order[:SHOWN], order[-SHOWN:]])
    heads = ["severity", "se", "n", "infit", "outfit", "average", "fair"]
    keys = ["severity", "se", "n", "infit_conditional", "outfit_conditional", "observed_average", "fair_average"]
    if levels["subset"].max(initial=1) > 1:
        heads.insert(0, "subset")
        keys.insert(0, "subset")
    form = {"n": ",", "subset": "d"}
    cells = [[f"{value:{form.get(key, 'z.2f')}}" for value in levels[key][chosen].tolist()] for key in keys]
    marks = ["" if status == "ok" else str(status) for status in levels["status"][chosen]]
    if any(marks):
        heads.append("")
        cells.append(marks)
    labels = [str(label) for label in levels[name][chosen]]
    say(out, plain_table([name, *heads], [labels, *cells], out.width, whole=out.whole))
    n_between = len(order) - len(chosen)
    if n_between:
        say(out, Text(f"{count(n_between, name)} in between are not shown.", style="dim"))
    say(out)


def given_totals(columns: Columns) -> Columns:
    """The columns with the fit given the totals in the place of the conventional one: 1 is expected of it, whatever the
    number of ratings a person has."""
    return columns | {name: columns[name.replace("fit", "fit_conditional")] for name in SQUARES}


def one(words: str) -> str:
    """A word for several as the word for one of them.

    >>> one("people"), one("stimuli"), one("test takers"), one("items")
    ('person', 'stimulus', 'test taker', 'item')
    """
    return {"people": "person", "stimuli": "stimulus"}.get(words, words.removesuffix("s"))


def part_lines(study: Analysis, parts: Parts) -> list[tuple[str, str]]:
    """What there is to say, under the name of each part."""
    lines = []
    if study.moves:
        lines.append(("changes", f"{'; '.join(move.words for move in study.moves)}."))
    if study.held_out is not None:
        lines.append(("held out", study.held_out.sentence))
    if parts.persons:
        some = study._comparable()
        which = "" if some is None else f"subset 1, {int(some.sum()):,} of {count(len(some), 'person', 'people')}: "
        lines.append(("people", which + people(study.reliability(), study._words)))
    if study._change is not None:
        lines += [("change", sentence) for sentence in study._change.sentences]
    if not study.calibration.scale.is_logits:
        lines.append(("scale", scale_sentence(study)))
    if parts.fit:
        lines.append(("fit", study.checks(parts).sentence()))
    if study.facets:
        lines += facet_lines(study)
    if parts.covariates is not None:
        lines.append(("covariates", study._explain_severities(parts.covariates).sentence))
    for column, dif in study._comparisons_of_groups(parts).items():
        sentences = [finding.sentence for finding in dif.findings if finding.code in GROUPS]
        lines.append(("groups", f"{column}: {' '.join(sentences)}"))
    tree = study._tree(parts)
    if tree is not None:
        lines.append(("DIF tree", f"{tree.sentence}."))
    if parts.described:
        unit, places = ("", 2) if study.calibration.scale.is_logits else ("measure_", 1)
        means = columns_of(study.group_means, parts.described)
        linked = study._comparable() is None
        lines += [("means", sentence) for sentence in mean_sentences(means, unit, places, linked=linked)]
    return lines


def scale_sentence(study: Analysis) -> str:
    """The scale of report, and where it comes from."""
    scale = study.calibration.scale
    asked = study._asked_scale
    formula = f"{scale.mean:.1f} + {scale.unit:.1f} x logit"
    if "people_mean" in asked:
        moments = f"the mean {asked['people_mean']:g} and the sd {asked['people_sd']:g}"
        return f"{formula}, by which these persons have {moments}"
    if asked.get("by") == "items":
        items = study.calibration.own_items
        mean = scale.measure(items.difficulty[items.known]).mean()
        return f"{formula}, by which the items have the mean {mean:g}"
    if study.calibration.anchored.any() and not asked:
        return f"{formula}, that of the anchors"
    return formula


def people_tables(study: Analysis, parts: Parts, width: int) -> list[Table]:
    """Means of groups and classes of people, where they were asked for: in the unit of report."""
    unit = "" if study.calibration.scale.is_logits else "measure_"
    places = 2 if not unit else 1
    tables = []
    if parts.described:
        means = columns_of(study.group_means, parts.described)
        labels = [f"{a}: {b}" for a, b in zip(means["grouping"][:SHOWN], means["group"][:SHOWN], strict=True)]
        cells = [numbers(means[f"{unit}{name}"][:SHOWN], places) for name in ("mean", "se", "sd", "latent_sd")]
        columns = [labels, [f"{n:,}" for n in means["n"][:SHOWN].tolist()], *cells]
        heads = ["group", "people", "mean", "se", "sd", "latent sd"]
        n_others = len(means["n"]) - SHOWN
        if n_others > 0:
            columns = [[*cells, ""] for cells in columns]
            columns[0][-1] = f"and {n_others:,} more"
        tables.append(plain_table(heads, columns, width))
    if parts.cuts:
        classes = columns_of(study.cuts, parts.cuts, raw=parts.cut_raw)
        of_everybody = classes["form"] == ""
        at_a_cut = ~of_everybody & np.isfinite(classes["cut"])  # of each form
        for head, rows in (("class", of_everybody), ("form", at_a_cut)):
            if rows.any():
                tables.append(_class_table(head, {name: values[rows] for name, values in classes.items()}, width))
    return tables


def _class_table(head: str, classes: Columns, width: int) -> Table:
    """Classes of people: where each begins on the scale and in raw scores, how many are in it, and how surely."""
    shown = {name: values[:SHOWN] for name, values in classes.items()}
    labels = ["all classes" if name == "all" else f"class {name}" for name in shown["class"]]
    if head == "form":
        labels = [f"{form}, {label}" for form, label in zip(shown["form"], labels, strict=True)]
    columns = {"from": [f"{cut:g}" if np.isfinite(cut) else "" for cut in shown["cut"].tolist()]}
    if np.isfinite(shown["score"]).any():
        columns["raw score"] = numbers(shown["score"], 0)
    columns["people"] = [f"{n:,}" for n in shown["n"].tolist()]
    columns |= {name: numbers(shown[name], 2) for name in ("share", "accuracy", "consistency")}
    return plain_table([head, *columns], [labels, *columns.values()], width)


def how(calibration: Calibration, method: str | None = None) -> str:
    """How the calibration came about, in a few sentences."""
    provenance = calibration.provenance
    text = _estimator_in_words(calibration, method)
    anchored = int(calibration.anchored.sum())
    if anchored:
        text += f", anchored to {count(anchored, 'item')}"
    if (provenance.solver or "").endswith(NEWTON):
        change = f"last step {provenance.residual:.1g} SE"
    else:
        change = f"residual {provenance.residual:.0e}"
    sentences = [f"{text} ({count(provenance.iterations, 'pass', 'passes')} over the data, {change})."]
    if calibration.prior is not None:
        sentences.append(str(calibration.prior))
    sentences += [finding.sentence for finding in calibration.findings if finding.code == "bias_correction"]
    if provenance.se_method == "none":
        sentences.append("No standard errors, as asked.")
    elif provenance.se_method is not None:
        sandwich = "sandwich, " if provenance.se_method in ("dense", "one-pass", "multiplier") else ""
        sentences.append(f"Standard errors: {sandwich}{provenance.se_method}.")
    return " ".join(sentences)


def _estimator_in_words(calibration: Calibration, method: str | None) -> str:
    """The model and how its items were estimated; `method` is a word for the estimator, by default its own."""
    model = calibration.model
    provenance = calibration.provenance
    solver = provenance.solver or ""
    if calibration.facets is not None:
        facets = " and ".join(calibration.facets.of)
        return f"{MODELS[model].short} of items and {facets}, conditional maximum likelihood"
    if solver.endswith(NEWTON):
        if solver.startswith(LINEAR_DESIGN):
            return f"{MODELS[model].short}, conditional maximum likelihood"
        if model == "rasch":
            return LIKELIHOOD
        return f"{MODELS[model].short}, {LIKELIHOOD[0].lower()}{LIKELIHOOD[1:]}"
    name = estimator_name(provenance.estimator)
    if method is None and name in ESTIMATORS:
        method = ESTIMATORS[name].short
    text = method or name
    if model != "rasch":
        text = f"{MODELS[model].short}, {text if text.isupper() else text.lower()}"
    text += " estimate"
    weighting = provenance.settings.get("weighting")
    if weighting:
        text += f", {weighting} weights"
    return text


def people(reliability: Reliability, words: Words = TEST) -> str:
    """Reliability, where the people are, and how many are off the scale."""
    everyone = reliability.persons_with_extremes
    sd = everyone.sd
    if reliability.method == "eap" and reliability.population_sd is not None:
        sd = reliability.population_sd
    place = reliability.extremes()
    if np.isfinite(everyone.mean):
        place = f"mean {words.trait} {everyone.mean:z.2f}, sd {sd:.2f}, {place}"
    return "; ".join(filter(None, (reliability.text(), place)))
