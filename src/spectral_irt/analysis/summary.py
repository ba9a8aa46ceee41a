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
        given: dict[str, Any] = {"name": word, "whole": out.whole, "words": study._words}
        points = not study.responses.thresholds.binary
        say(out, person_table(columns_of(study.person_ranking), out.width, points=points, **given))
        say(out)
    _show_items(out, study, parts)
    lines = part_lines(study, parts)
    if lines:
        show_lines(out, lines)
        say(out)
    if parts.described or parts.cuts:
        for table in people_tables(study, parts, out.width):
            say(out, table)
            say(out)
    say(out, Text(printable(" ".join([how(study.calibration, method), *([times] if times else [])]))))
    shown = []
    for finding in study.findings(parts):
        shown += [] if finding.code in SAID else [finding]
    if shown:
        say(out)
        show_findings(out, shown)


def _show_items(out: Screen, study: Analysis, parts: Parts) -> None:
    """The items, and the levels of every facet from the most severe down."""
    made, rated = study.calibration.own_items, study.calibration.facets is not None
    columns = study._rated_items() if rated else made.item_columns()
    if not rated and "mean_score" in columns:  # as the questionnaire counts
        columns = columns | {"mean_score": made.mean_in_codes(columns["mean_score"])}
    if rated:  # beside the averages of raters, which are in the codes of the data as well
        columns = columns | {"mean_score": columns["observed_average"]}
    fit = given_totals(columns) if rated else study.checks(parts).columns if parts.fit else None
    how: dict[str, Any] = {"unicode": (out.encoding or "").lower().startswith("utf"), "whole": out.whole}
    if not made.layout.binary:
        how["thresholds"] = [each.tolist() for each in np.split(made.thresholds, made.layout.first[1:])]
    say(out, Text(DIRECTION if fit is None else f"{DIRECTION}; {FIT}", style="dim"))
    if made.moved_by_prior.any():
        how["moved_by_prior"] = [each.tolist() for each in np.split(made.moved_by_prior, made.layout.first[1:])]
        say(out, Text(BY_PRIOR, style="dim"))
    word = "item" if rated else one(study.responses.words[1])
    say(out, item_table(columns, out.width, fit, name=word, **how))
    say(out)
    for name in study.facets:
        table = columns_of(study.facet, name)
        order = severest_first(table)
        some = order if len(order) <= 2 * SHOWN else np.concatenate([order[:SHOWN], order[-SHOWN:]])
        heads = [name, "severity", "se", "n", "infit", "outfit", "average", "fair"]
        keys = ["severity", "se", "n", "infit_conditional", "outfit_conditional", "observed_average", "fair_average"]
        if table["subset"].max(initial=1) > 1:
            heads.insert(1, "subset")
            keys.insert(0, "subset")
        form = {"n": ",", "subset": "d"}
        cells = [[f"{value:{form.get(key, 'z.2f')}}" for value in table[key][some].tolist()] for key in keys]
        marks = ["" if status == "ok" else str(status) for status in table["status"][some]]
        if any(marks):
            heads.append("")
            cells.append(marks)
        say(out, plain_table(heads, [[str(label) for label in table[name][some]], *cells], out.width, whole=out.whole))
        if len(some) < len(order):
            say(out, Text(f"{count(len(order) - len(some), name)} in between are not shown.", style="dim"))
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
    if not study.calibration.scale.is_logits:
        lines.append(("scale", scale_sentence(study)))
    if parts.fit:
        lines.append(("fit", study.checks(parts).sentence()))
    if study.facets:
        lines += facet_lines(study)
    if parts.covariates is not None:
        lines.append(("covariates", study._explained(parts.covariates).sentence))
    for column, dif in study._grouped(parts).items():
        sentences = [found.sentence for found in dif.findings if found.code in GROUPS]
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
    scale, asked = study.calibration.scale, study._asked_scale
    formula = f"{scale.mean:.1f} + {scale.unit:.1f} x logit"
    if "people_mean" in asked:
        mean, sd = asked["people_mean"], asked["people_sd"]
        return f"{formula}, by which these persons have the mean {mean:g} and the sd {sd:g}"
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
        more = len(means["n"]) - SHOWN
        if more > 0:
            columns = [[*cells, ""] for cells in columns]
            columns[0][-1] = f"and {more:,} more"
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
    made = calibration.provenance
    model = calibration.model
    name = estimator_name(made.estimator)
    short = method or (ESTIMATORS[name].short if name in ESTIMATORS else name)
    if model != "rasch":
        short = f"{MODELS[model].short}, {short if short.isupper() else short.lower()}"
    newton = (made.solver or "").endswith(NEWTON)
    weighting = made.settings.get("weighting")
    if calibration.facets is not None:
        text = (
            f"{MODELS[model].short} of items and {' and '.join(calibration.facets.of)}, conditional maximum likelihood"
        )
    elif newton and (made.solver or "").startswith(LINEAR_DESIGN):
        text = f"{MODELS[model].short}, conditional maximum likelihood"
    elif newton:
        text = LIKELIHOOD if model == "rasch" else f"{MODELS[model].short}, {LIKELIHOOD[0].lower()}{LIKELIHOOD[1:]}"
    else:
        text = f"{short} estimate" + (f", {weighting} weights" if weighting else "")
    anchored = int(calibration.anchored.sum())
    if anchored:
        text += f", anchored to {count(anchored, 'item')}"
    left = f"last step {made.residual:.1g} SE" if newton else f"residual {made.residual:.0e}"
    sentences = [f"{text} ({count(made.iterations, 'pass', 'passes')} over the data, {left})."]
    if calibration.prior is not None:
        sentences.append(str(calibration.prior))
    sentences += [finding.sentence for finding in calibration.findings if finding.code == "bias_correction"]
    if made.se_method == "none":
        sentences.append("No standard errors, as asked.")
    elif made.se_method is not None:
        sandwich = "sandwich, " if made.se_method in ("dense", "one-pass", "multiplier") else ""
        sentences.append(f"Standard errors: {sandwich}{made.se_method}.")
    return " ".join(sentences)


def people(found: Reliability, words: Words = TEST) -> str:
    """Reliability, where the people are, and how many are off the scale."""
    everyone = found.persons_with_extremes
    sd = found.population_sd if found.method == "eap" and found.population_sd is not None else everyone.sd
    where = f"mean {words.trait} {everyone.mean:z.2f}, sd {sd:.2f}, " if np.isfinite(everyone.mean) else ""
    where += found.extremes()
    return "; ".join(filter(None, (found.text(), where)))
