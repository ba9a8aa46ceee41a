"""Numbers of programs that share no code with ours: eRm, psychotools, sirt, pairwise, TAM, mirt, a Newton solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import spectral_irt as si
from spectral_irt.chain.paper import pair_counts
from spectral_irt.estimators.linear_fit import design_fit, explain_items
from spectral_irt.estimators.pairwise import choppin_difficulty, eigenvector_difficulty, reciprocal_matrix
from spectral_irt.inference.dimensions.residual_table import ResidualTable
from spectral_irt.inference.groups.martin_loef import martin_loef
from spectral_irt.inference.groups.model_tests import andersen
from spectral_irt.persons import abilities
from validation.lab import Lab, by_label, number
from validation.rows import Case, Compute, Values

RIGHT_WRONG = "Right and wrong answers"
ORDERED = "Ordered answers"
RATERS = "Raters and properties of items"
SETS = ("lsat6", "test15", "missing12", "booklets24")
COMPLETE = ("lsat6", "test15")
ERM, PSYCHOTOOLS, GOLD = "eRm 1.0-10", "psychotools 0.7-4", "Newton solver, gradient below 1e-12"
TAM, MIRT, SIRT = "TAM 4.4-2", "mirt 1.47", "sirt 4.3-21"

EXACT = "both are at the maximum to the last digits"
OPTIMIZER = "eRm's optimizer stops up to 3.3e-5 from the maximum, which is known to 1e-12"
HESSIAN = "eRm's standard errors are from a numerical Hessian"
QUADRATURE = "TAM and mirt integrate on grids and stop early: they are up to 1e-5 apart"
GIVEN = "a formula without iteration"


# What a file says


def in_file(file: str, *path: str) -> Compute:
    """What is under this path of a JSON file: numbers by label, a list in the order of the items, or one number."""

    def values(lab: Lab, data: str) -> Values:
        found = lab.said(file.format(data=data))
        for key in path:
            found = found[key.format(data=data)]
        if isinstance(found, dict):
            return by_label(found, list(found.values()))
        if not isinstance(found, list):
            return number(found)
        labels = lab.responses(data).items if len(found) == lab.responses(data).n_items else range(len(found))
        return by_label(labels, found)

    return values


def of_scores(file: str, *path: str) -> Compute:
    """A list of numbers for the total scores from 0; what is absent is left out."""

    def values(lab: Lab, data: str) -> Values:
        found = lab.said(file)
        for key in path:
            found = found[key.format(data=data)]
        return {f"score {score}": float(value) for score, value in enumerate(found) if value is not None}

    return values


def in_table(file: str, label: str, column: str, known_by: str = "") -> Compute:
    """A column of a CSV file, by the label in another; the rows in which a column, or another one, has a number."""

    def values(lab: Lab, data: str) -> Values:
        table = lab.table(file.format(data=data))
        known = table.filter(table[known_by or column].cast(float, strict=False).is_finite())
        return by_label(known[label], known[column].cast(float))

    return values


# What we say


def of_items(estimator: str, name: str) -> Compute:
    """A field of a calibration with a number for each item."""

    def values(lab: Lab, data: str) -> Values:
        calibration = lab.study(estimator, data).calibration
        return by_label(calibration.labels, getattr(calibration, name))

    return values


def of_item_table(estimator: str, table: str, column: str) -> Compute:
    """A column of a table of items."""

    def values(lab: Lab, data: str) -> Values:
        columns = getattr(lab.study(estimator, data), table)()
        return by_label(columns["item"], columns[column])

    return values


def loglik(estimator: str) -> Compute:
    return lambda lab, data: number(lab.study(estimator, data)._estimator.loglik_)  # type: ignore[union-attr]


def score_table(column: str) -> Compute:
    """A column of the table of abilities by total score, of the items at conditional estimates."""

    def values(lab: Lab, data: str) -> Values:
        table = lab.study("conditional", data).calibration.score_table()
        return {f"score {int(score)}": float(value) for score, value in zip(table["score"], table[column], strict=True)}

    return values


def person_table(column: str) -> Compute:
    """A column of maximum likelihood abilities or person fit, by the number of the person."""

    def values(lab: Lab, data: str) -> Values:
        study = lab.study("conditional", data)
        if column in ("theta", "se"):
            found = abilities(study.responses, study.calibration.thresholds, "ml")
            chosen = found.ability if column == "theta" else found.se
        else:
            chosen = getattr(study._person_fit("ml"), column)
        if column in ("theta", "se"):
            return by_label(range(1, len(chosen) + 1), chosen)
        return {f"P{k + 1}": float(value) for k, value in enumerate(chosen)}

    return values


def of_reliability(estimator: str, pick: Callable[[Any], float]) -> Compute:
    return lambda lab, data: number(pick(lab.study(estimator, data).reliability()))


def test_of(test: Callable[[Lab, str], Any]) -> Compute:
    """Statistic, degrees of freedom and p of a test."""

    def values(lab: Lab, data: str) -> Values:
        found = test(lab, data)
        return {"statistic": float(found.statistic), "df": float(found.df), "p": float(found.p)}

    return values


def andersens_test(split: str) -> Compute:
    return test_of(lambda lab, data: andersen(lab.responses(data), split))


def said_test(file: str, block: str) -> Compute:
    def values(lab: Lab, data: str) -> Values:
        found = lab.said(file.format(data=data))[block]
        return {"statistic": found["LR"], "df": found["df"], "p": found["p"]}

    return values


def upper_triangle(matrix: Any, labels: Any) -> Values:
    """The pairs of a symmetric matrix."""
    matrix = np.asarray(matrix, dtype=float)
    rows, columns = np.triu_indices(len(matrix), 1)
    return {f"{labels[i]}, {labels[j]}": float(matrix[i, j]) for i, j in zip(rows, columns, strict=True)}


def pairs_in(block: str, key: str) -> Compute:
    """The pairs of a symmetric matrix in a JSON file."""
    return lambda lab, data: upper_triangle(lab.said(data)[block][key], lab.responses(data).items)


def q3(lab: Lab, data: str) -> Values:
    responses = lab.responses(data)
    theirs = lab.said(data)["psychotools_raschmodel"]["difficulty_sum0"]
    difficulty = np.array([theirs[item] for item in responses.items])
    return upper_triangle(ResidualTable.of(responses, difficulty).correlations(4).q3, responses.items)


def covariance(lab: Lab, data: str) -> Values:
    study = lab.study("conditional", data)
    return upper_triangle(study._estimator.covariance(), study.calibration.labels)  # type: ignore[union-attr]


def marginal(lab: Lab, data: str) -> Values:
    """Difficulties where the mean ability is zero, and the variance of abilities."""
    fit: Any = lab.study("marginal", data)._estimator
    return {**by_label(fit.item_labels_, fit.difficulty_ - fit.mu_), "variance": float(fit.sigma_**2)}


def said_marginal(program: str) -> Compute:
    def values(lab: Lab, data: str) -> Values:
        found = lab.said(data)[program]
        return {**found["difficulty"], "variance": found["variance"]}

    return values


def reciprocal(power: int, solve: Callable[[Any], Any]) -> Compute:
    """Difficulties by the ratios of the counts of pairs, of a power of that matrix (Choppin)."""

    def values(lab: Lab, data: str) -> Values:
        responses = lab.responses(data)
        counts = np.linalg.matrix_power(pair_counts(responses, dense=True), power)
        return by_label(responses.items, solve(reciprocal_matrix(counts)))

    return values


def right_wrong() -> Iterator[Case]:
    case = partial(Case, RIGHT_WRONG)
    for data in SETS:
        own, gold = f"{data}.json", "cml_gold.json"
        for program, key, tolerance, reason, file in (
            (GOLD, in_file("cml_gold", "{data}", "difficulty_sum0"), 1e-8, EXACT, gold),
            (PSYCHOTOOLS, in_file("{data}", "psychotools_raschmodel", "difficulty_sum0"), 1e-7, EXACT, own),
            (ERM, in_file("{data}", "eRm_RM", "difficulty_sum0"), 1e-4, OPTIMIZER, own),
        ):
            yield case("difficulty", data, program, key, of_items("conditional", "difficulty"), tolerance, reason, file)
        ours = of_items("conditional", "se")
        yield case("standard error", data, GOLD, in_file("cml_gold", "{data}", "se_sum0"), ours, 1e-6, EXACT, gold)
        yield case("standard error", data, ERM, in_file("{data}", "eRm_RM", "se_beta"), ours, 1e-4, HESSIAN, own)
        for program, key, tolerance, reason, file in (
            (GOLD, in_file("cml_gold", "{data}", "loglik_conditional"), 1e-8, EXACT, gold),
            (ERM, in_file("{data}", "eRm_RM", "loglik_conditional"), 1e-4, OPTIMIZER, own),
        ):
            name = "conditional log-likelihood"
            yield case(name, data, program, key, loglik("conditional"), tolerance, reason, file)
        spectral = of_items("spectral", "difficulty")
        key = in_file("cml_gold", "{data}", "difficulty_sum0")
        reason = "the default stops a hundredth of a standard error from the maximum, or nearer"
        yield case("difficulty (default estimator)", data, GOLD, key, spectral, 2e-3, reason, gold)

        for name, column, path in (
            ("Warm's ability", "ability", "theta_wle"),
            ("ML ability", "ability_ml", "theta_ml"),
            ("error of Warm's ability", "se", "se_information_at_wle"),
        ):
            theirs = of_scores("cml_gold", "{data}", path)
            yield case(name, data, GOLD, theirs, score_table(column), 1e-6, EXACT, gold)

        for column in ("outfit", "infit", "outfit_z", "infit_z"):
            theirs = in_table(
                "{data}_erm_itemfit", "item", column.replace("_z", "_t") if "_z" in column else f"{column}_msq"
            )
            ours = of_item_table("conditional", "item_fit", column)
            file = f"{data}_erm_itemfit.csv"
            yield case(f"item {column}", data, ERM, theirs, ours, 1e-4, OPTIMIZER, file, 1e-4)
        rel = of_reliability("conditional", lambda found: found.sep_rel)
        yield case(
            "reliability (SepRel)", data, ERM, in_file("{data}", "eRm_SepRel", "sep_rel"), rel, 1e-4, OPTIMIZER, own
        )
        for program, block in ((TAM, "TAM_mml"), (MIRT, "mirt_Rasch")):
            yield case("marginal difficulty", data, program, said_marginal(block), marginal, 1e-4, QUADRATURE, own)
        eap = of_reliability("marginal", lambda found: found.eap_reliability)
        reason = "TAM stops at 1e-8 of its deviance, on 81 nodes"
        yield case(
            "EAP reliability", data, TAM, in_file("{data}", "TAM_mml", "EAP_reliability"), eap, 1e-3, reason, own
        )
        wle = of_reliability("marginal", lambda found: found.persons_with_extremes.reliability)
        yield case(
            "WLE reliability", data, TAM, in_file("{data}", "TAM_wle_reliability", "value"), wle, 1e-3, reason, own
        )

    for data in COMPLETE:
        theirs = pairs_in("psychotools_raschmodel", "vcov_sum0")
        yield case("covariance of two items", data, PSYCHOTOOLS, theirs, covariance, 1e-6, EXACT, f"{data}.json")
        theirs = pairs_in("sirt_Q3_wle", "Q3_matrix")
        yield case("Q3", data, SIRT, theirs, q3, 1e-9, GIVEN, f"{data}.json")
        ours = test_of(lambda lab, data: martin_loef(lab.responses(data)))
        yield case(
            "Martin-Löf test", data, ERM, said_test("{data}", "eRm_MLoef_median"), ours, 1e-5, OPTIMIZER, f"{data}.json"
        )
    for column, theirs_column in (("theta", "theta"), ("se", "se")):
        name = "ability of a person" if column == "theta" else "error of a person"
        theirs = in_table("{data}_erm_persons", "person", theirs_column, known_by="se")
        file, reason = "missing12_erm_persons.csv", OPTIMIZER if column == "theta" else HESSIAN
        yield case(name, "missing12", ERM, theirs, person_table(column), 2e-4, reason, file)
    for column in ("outfit", "infit"):
        theirs = in_table("{data}_erm_personfit", "person", f"{column}_msq")
        file = "missing12_erm_personfit.csv"
        yield case(f"person {column}", "missing12", ERM, theirs, person_table(column), 1e-4, OPTIMIZER, file, 1e-4)

    for data, split, block in (
        ("lsat6", "mean", "eRm_LRtest_mean"),
        ("lsat6", "scores", "eRm_LRtest_all.r"),
        *((data, split, f"eRm_LRtest_{split}") for data in SETS[1:] for split in ("median", "mean")),
    ):
        ours = andersens_test(split)
        yield case(
            f"Andersen's test by {split}", data, ERM, said_test("{data}", block), ours, 1e-5, OPTIMIZER, f"{data}.json"
        )

    lsat = partial(case, data="lsat6", reason=GIVEN, file="lsat6.json", tolerance=1e-8)
    pairwise = "pairwise 0.6.1"
    first = reciprocal(1, choppin_difficulty)
    yield lsat(
        "Choppin's difficulty",
        source=pairwise,
        outside=in_file("lsat6", "pairwise_pair_nopow", "difficulty"),
        ours=first,
    )
    cube = reciprocal(3, choppin_difficulty)
    yield lsat(
        "Choppin's difficulty, cubed",
        source=pairwise,
        outside=in_file("lsat6", "pairwise_pair", "difficulty"),
        ours=cube,
    )
    square = reciprocal(2, lambda matrix: eigenvector_difficulty(matrix)[0])
    yield lsat(
        "eigenvector difficulty", source=SIRT, outside=in_file("lsat6", "sirt_rasch.evm.pcm", "difficulty"), ours=square
    )


# Ordered answers


def thresholds(estimator: str, field: str) -> Compute:
    def values(lab: Lab, data: str) -> Values:
        calibration = lab.study(estimator, data).calibration
        return dict(enumerate_thresholds(calibration, getattr(calibration, field)))

    return values


def enumerate_thresholds(calibration: Any, values: Any) -> Iterator[tuple[str, float]]:
    layout = calibration.layout
    for item, level, value in zip(layout.item, layout.level, values, strict=True):
        yield f"{calibration.labels[item]}.{level}", float(value)


def said_thresholds(file: str, key: str) -> Compute:
    """psychotools' thresholds, or their errors, in the order of items and levels."""

    def values(lab: Lab, data: str) -> Values:
        found = lab.said(file)["psychotools"]
        labels = [f"{item}.{level + 1}" for item, own in found["threshpar_mode"].items() for level in range(len(own))]
        flat = found[key]
        if isinstance(flat, dict):
            flat = np.concatenate(list(flat.values()))
        return by_label(labels, flat)

    return values


def ordered() -> Iterator[Case]:
    case = partial(Case, ORDERED)
    near = "psychotools stops within 2e-7 of the maximum"
    for file, data, estimator, erm in (
        ("credit6_pcm", "credit6", "partial credit", "eRm_PCM_sum0"),
        ("scale8_pcm", "scale8", "partial credit", "eRm_PCM_sum0"),
        ("scale8_rsm", "scale8", "rating scale", "eRm_RSM_sum0"),
    ):
        own = f"{file}.json"
        model = f"{estimator} model"
        theirs, ours = said_thresholds(file, "threshpar_mode"), thresholds(estimator, "thresholds")
        yield case(f"threshold, {model}", data, PSYCHOTOOLS, theirs, ours, 1e-6, near, own)
        theirs, ours = said_thresholds(file, "se_threshpar"), thresholds(estimator, "threshold_se")
        yield case(f"error of a threshold, {model}", data, PSYCHOTOOLS, theirs, ours, 1e-6, near, own)
        theirs = in_file(file, "psychotools", "itempar_sum0")
        yield case(
            f"difficulty, {model}", data, PSYCHOTOOLS, theirs, of_items(estimator, "difficulty"), 1e-6, near, own
        )
        theirs = in_file(file, "psychotools", "loglik_conditional")
        yield case(f"log-likelihood, {model}", data, PSYCHOTOOLS, theirs, loglik(estimator), 1e-6, near, own)
        theirs = in_file(file, erm, "loglik_conditional")
        yield case(f"log-likelihood, {model}", data, ERM, theirs, loglik(estimator), 1e-4, OPTIMIZER, own)
        for column in ("outfit", "infit", "outfit_z", "infit_z"):
            key = column.replace("_z", "_t") if "_z" in column else f"{column}_msq"
            theirs = in_file(file, "eRm_itemfit", key)

            def ours_of_fit(lab: Lab, data: str, estimator: str = estimator, column: str = column) -> Values:
                study = lab.study(estimator, data)
                return by_label(study.calibration.labels, study._item_statistics()[column])

            yield case(f"item {column}, {model}", data, ERM, theirs, ours_of_fit, 1e-4, OPTIMIZER, own)

        def sep_rel(lab: Lab, data: str, estimator: str = estimator) -> Values:
            return number(lab.study(estimator, data).reliability("ml").sep_rel)

        theirs = in_file(file, "eRm_SepRel")
        yield case(f"reliability (SepRel), {model}", data, ERM, theirs, sep_rel, 1e-4, OPTIMIZER, own)
    for file, data in (("credit6_pcm", "credit6"), ("scale8_pcm", "scale8")):
        ours = test_of(lambda lab, data: andersen(lab.responses(data)))
        theirs = said_test(file, "eRm_LRtest_median")
        yield case("Andersen's test by median", data, ERM, theirs, ours, 1e-4, OPTIMIZER, f"{file}.json")


# Raters, properties of items


def of_raters(lab: Lab, data: str) -> Values:
    """Severities, thresholds of items, and the log-likelihood, of ratings in a long table."""
    path = lab.path(f"{data}.csv")
    responses = si.read(path, person="student", item="item", response="x", facets=["rater"], ordered=True)
    fit = design_fit(responses, si.LinearDesign().of(responses), se="information")  # before the bias is taken off
    estimate = fit.estimate(responses)
    table = fit.facet("rater")
    found = by_label([f"rater {rater}" for rater in fit.design.term("rater").labels], table["severity"])
    items = fit.design.facets.items
    assert estimate.facets is not None
    thresholds = np.split(estimate.facets.items.thresholds, len(items))
    for item, values in zip(items, thresholds, strict=True):
        found |= {f"{item}.{level + 1}": float(value) for level, value in enumerate(values)}
    return {**found, "log-likelihood": float(estimate.loglik)}


def said_of_raters(lab: Lab, data: str) -> Values:
    said = lab.said(data)
    found = {f"rater {rater}": value for rater, value in said["severity"].items()}
    for item, values in said["thresholds"].items():
        found |= {f"{item}.{level + 1}": value for level, value in enumerate(values)}
    return {**found, "log-likelihood": said["loglik"]}


def of_properties(lab: Lab, data: str) -> Values:
    said = lab.said(data)
    responses = si.read(lab.path(f"{data}.csv"))
    properties = {name: dict(zip(responses.items, values, strict=True)) for name, values in said["design"].items()}
    explained = explain_items(responses, properties)
    effects = explained.effects
    found = by_label([f"effect {name}" for name in effects["property"]], effects["effect"])
    found |= by_label([f"error {name}" for name in effects["property"]], effects["se"])
    test = explained.to_dict()
    return {**found, "likelihood ratio": test["chi2"], "df": test["df"]}


def said_of_properties(lab: Lab, data: str) -> Values:
    said = lab.said(data)
    found = {f"effect {name}": value for name, value in zip(said["design"], said["eta"], strict=True)}
    found |= {f"error {name}": value for name, value in zip(said["design"], said["se"], strict=True)}
    return {**found, "likelihood ratio": said["lr"], "df": said["df"]}


def raters() -> Iterator[Case]:
    case = partial(Case, RATERS)
    for data, source in (
        ("facets_complete", "separate exact CML; eRm::LPCM to its digits"),
        ("facets_sparse", "separate exact CML, gradient below 1e-9"),
    ):
        reason = "the default stops when a step is small beside the standard errors"
        yield case("ratings", data, source, said_of_raters, of_raters, 1e-5, reason, f"{data}.json")
    reason = "eRm's optimizer; likelihood ratio to 1e-4"
    yield case("properties", "lltm12", "eRm 1.0-2 LLTM", said_of_properties, of_properties, 1e-4, reason, "lltm12.json")


# Groups of people that are found


def grown(lab: Lab, data: str) -> Any:
    """The tree of these data by age, sex and region."""
    several = data == "tree_ordered"
    responses = si.read(lab.path(f"{data}.csv"), people=["age", "sex", "region"], ordered=several or None)
    estimator: Any = si.SpectralPartialCredit() if several else si.SpectralRasch()
    return estimator.fit(responses).analyse(responses).dif_tree(["age", "sex", "region"], sample="all")


def tree_in_words(persons: list[int], leaves: list[Any]) -> Values:
    """Persons in every node, and difficulties in every leaf."""
    found = {f"persons of node {node + 1}": float(n) for node, n in enumerate(persons)}
    for leaf, difficulty in enumerate(leaves, start=1):
        found |= {f"leaf {leaf}, item {item + 1}": float(value) for item, value in enumerate(difficulty)}
    return found


def tree(lab: Lab, data: str) -> Values:
    found = grown(lab, data)
    return tree_in_words([found.n_of(node) for node in found.nodes], [leaf.difficulty for leaf in found.leaf_nodes])


def said_tree(lab: Lab, data: str) -> Values:
    said = lab.said("trees")[data.removeprefix("tree_")]
    return tree_in_words([node["n"] for node in said["nodes"]], said["itempar"])


def statistics_of_labels(lab: Lab, data: str) -> Values:
    """The tests of sex and region in every node; psychotree cuts between persons of one age, ours does not."""
    found = {}
    for node in grown(lab, data).nodes:
        for name, test in zip(("sex", "region"), node.tests[1:], strict=True):
            found[f"node {node.number}, {name}"] = float(np.nan_to_num(test.statistic))
    return found


def said_statistics_of_labels(lab: Lab, data: str) -> Values:
    found = {}
    for node in lab.said("trees")[data.removeprefix("tree_")]["nodes"]:
        for name, statistic in zip(("sex", "region"), node["test"]["statistic"][1:], strict=True):
            found[f"node {node['id']}, {name}"] = float(statistic)
    return found


def trees() -> Iterator[Case]:
    case = partial(Case, "DIF trees", source="psychotree 0.16", file="trees.json")
    for data in ("tree_binary", "tree_ordered"):
        reason = "psychotools stops at about 1e-5"
        yield case(
            quantity="persons and difficulties", data=data, outside=said_tree, ours=tree, tolerance=1e-4, reason=reason
        )
        yield case(
            quantity="statistic of a column",
            data=data,
            outside=said_statistics_of_labels,
            ours=statistics_of_labels,
            tolerance=1e-3,
            reason="psychotree stops its Newton steps at about 1e-4 of the statistic",
        )


# Change between waves

CHANGE = ("trend.t2", "trend.t3", "treated.t2", "treated.t3")
KEYS = ((0, 1, -1), (0, 2, -1), (1, 1, 0), (1, 2, 0))  # arm, wave, and against which arm


def changed(lab: Lab, data: str) -> Any:
    responses = si.read(lab.path(f"{data}.csv"), facets=["wave"], people=["arm"])
    return si.change(responses, "wave", arm="arm", each_item=True).change


def effects_of_change(model: str) -> Compute:
    """Effects, errors by the model and by the sandwich, and the log-likelihood."""

    def values(lab: Lab, data: str) -> Values:
        fit = getattr(changed(lab, data), model)
        places = [(each.arm, each.wave, each.against) for each in fit.contrasts]
        found = {"log-likelihood": float(fit.loglik)}
        for name, key in zip(CHANGE, KEYS, strict=True):
            place = places.index(key)
            found[name] = float(fit.value[place])
            found[f"{name}, error"] = float(fit.se_model[place])
            found[f"{name}, sandwich error"] = float(fit.se[place])
        return found

    return values


def said_of_change(model: str) -> Compute:
    def values(lab: Lab, data: str) -> Values:
        said = lab.said("change_gold")[model]
        found = {"log-likelihood": said["loglik"]}
        for name in CHANGE:
            place = said["names"].index(name)
            found[name] = said["eta"][place]
            found[f"{name}, error"] = said["se_model"][place]
            found[f"{name}, sandwich error"] = said["se_sandwich"][place]
        return found

    return values


def effects_of_items(lab: Lab, data: str) -> Values:
    """Fischer's LLRA with effects for each item."""
    fit = changed(lab, data).item_effects
    found = {}
    for place, each in enumerate(fit.contrasts):
        kind = {(0, -1): "trend", (1, 0): "treated"}.get((each.arm, each.against))
        if kind is not None:
            found[f"{kind}.I{each.item + 1}.t{each.wave + 1}"] = float(fit.value[place])
    return found


def said_of_items(lab: Lab, data: str) -> Values:
    said = lab.said("change")["item_specific"]
    return by_label(said["names"], said["eta"])


def likelihood_ratio_of_change(lab: Lab, data: str) -> Values:
    statistic, df, _ = changed(lab, data).likelihood_ratio
    return {"statistic": float(statistic), "df": float(df)}


def change() -> Iterator[Case]:
    case = partial(Case, "Change between waves", data="change")
    exact = partial(case, source="separate exact CML", file="change_gold.json", tolerance=1e-6, reason=EXACT)
    for model in ("one_ability", "each_item"):
        name = f"effects, {model.replace('_', ' ')}"
        yield exact(quantity=name, outside=said_of_change(model), ours=effects_of_change(model))
    erm = partial(case, source="eRm 1.0-2 LLRA", file="change.json", reason="eRm stops 1e-7 below the maximum")
    yield erm(quantity="effects for each item", outside=said_of_items, ours=effects_of_items, tolerance=2e-4)
    ratio = lambda lab, data: {"statistic": lab.said("change")["lr"], "df": lab.said("change")["lr_df"]}  # noqa: E731
    yield erm(quantity="likelihood ratio", outside=ratio, ours=likelihood_ratio_of_change, tolerance=1e-4)


def cases() -> Iterator[Case]:
    yield from right_wrong()
    yield from change()
    yield from ordered()
    yield from raters()
    yield from trees()
