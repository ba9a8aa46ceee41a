"""Simulation studies: coverage of intervals, level of tests, bias; fresh data sets, and what chance alone allows.

A study is a function of a seed that draws a data set, and says of it what is counted: whether the interval held the
truth, whether the test rejected. Rows compare the mean over data sets with the nominal value; the tolerance is three
Monte Carlo errors of one count in a data set, fixed before anything is drawn. Of some hundred rows about one in 370 is
beyond that by chance alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spectral_irt as si
from spectral_irt import simulate
from spectral_irt.analysis.analysis import Analysis
from spectral_irt.analysis.moves import Move
from spectral_irt.errors import DesignError
from spectral_irt.estimators.linear_fit import explain_items
from spectral_irt.inference.groups.martin_loef import martin_loef
from spectral_irt.inference.groups.model_tests import andersen
from validation.boards import BOARDS
from validation.lab import Lab
from validation.rows import Case, Values
from validation.study import COVERED, ERRORS, LEVEL, NORMAL, Study, covered

PART = "Simulation studies"
FIRST_SEED = 4_800_000


def of_items(study: Analysis, difficulty: NDArray[np.float64]) -> float:
    return covered(study.calibration.difficulty, study.calibration.se, difficulty - difficulty.mean())


def halves(n_persons: int, seed: int) -> list[str]:
    """Two groups by a coin."""
    return np.random.default_rng(seed).choice(["a", "b"], n_persons).tolist()


def right_and_wrong(seed: int) -> Mapping[str, float]:
    """Everything that is asked of a complete test of right and wrong answers where the model holds."""
    data = simulate.rasch(400, 10, seed=seed)
    study = si.SpectralRasch().fit(data.responses).analyse(data.responses)
    coin = halves(400, seed)
    found = {"difficulty": of_items(study, data.difficulty)}
    found["Wald test by score"] = study.model_test().p < LEVEL
    found["Andersen's test by mean"] = andersen(data.responses, "mean").p < LEVEL
    found["Martin-Löf test"] = martin_loef(data.responses).p < LEVEL
    quick = study.quick_model_test()
    found["score test by ability"] = quick is not None and quick.p < LEVEL
    found["Hausman test"] = study.hausman().p < LEVEL
    dif = study.dif(coin, nonuniform=False).items
    found["DIF, any item (Holm)"] = bool((np.asarray(dif["p_holm"]) < LEVEL).any())
    found["DIF, single items"] = float(np.mean(np.asarray(dif["p"]) < LEVEL))
    means = study.group_means(coin)
    found["difference of group means"] = float(np.asarray(means["difference_p"], dtype=float)[1] < LEVEL)
    misfit = study.item_fit()
    z = np.asarray(misfit["infit_conditional_z"], dtype=float)
    found["conditional infit"] = float(np.mean(np.abs(z) > NORMAL))
    return {name: float(value) for name, value in found.items()}


RIGHT_AND_WRONG = {
    "difficulty": COVERED,
    **dict.fromkeys(
        (
            "Wald test by score",
            "Andersen's test by mean",
            "Martin-Löf test",
            "score test by ability",
            "Hausman test",
            "DIF, any item (Holm)",
            "DIF, single items",
            "difference of group means",
            "conditional infit",
        ),
        LEVEL,
    ),
}


def dimensions(seed: int) -> Mapping[str, float]:
    data = simulate.rasch(400, 10, seed=seed)
    found = si.SpectralRasch().fit(data.responses).analyse(data.responses).dimensionality()
    return {"first contrast": float(found.contrast_p < LEVEL), "dependent pairs, any": float(found.pairs_p < LEVEL)}


def design(name: str, n_persons: int, n_items: int, **options: Any) -> Callable[[int], Mapping[str, float]]:
    """Coverage of difficulties in a design."""

    def draw(seed: int) -> Mapping[str, float]:
        data = simulate.rasch(n_persons, n_items, design=name, seed=seed, **options)
        study = si.SpectralRasch().fit(data.responses).analyse(data.responses)
        return {"difficulty": of_items(study, data.difficulty)}

    return draw


def adaptive(seed: int) -> Mapping[str, float]:
    """Marginal likelihood of an adaptive test, which conditional likelihood does not allow."""
    data = simulate.rasch(500, 20, design="adaptive", length=8, seed=seed)
    fit = si.MarginalRasch().fit(data.responses)
    truth = data.difficulty - data.difficulty.mean()
    return {"difficulty": covered(fit.difficulty_, fit.se_, truth)}


def andersens_rejects(responses: si.Responses) -> float:
    """NaN where too few items have answers in all their categories in both groups."""
    try:
        return float(andersen(responses).p < LEVEL)
    except DesignError:
        return np.nan


def partial_credit(seed: int) -> Mapping[str, float]:
    data = simulate.partial_credit(400, 8, categories=4, seed=seed)
    study = si.SpectralPartialCredit().fit(data.responses).analyse(data.responses)
    truth = data.thresholds - data.thresholds.mean()
    calibration = study.calibration
    return {
        "threshold": covered(calibration.thresholds, calibration.threshold_se, truth),
        "Andersen's test by median": andersens_rejects(data.responses),
    }


def rating_scale(seed: int) -> Mapping[str, float]:
    data = simulate.rating_scale(400, 8, categories=4, seed=seed)
    study = si.SpectralRatingScale().fit(data.responses).analyse(data.responses)
    truth = data.thresholds - data.thresholds.mean()
    return {"threshold": covered(study.calibration.thresholds, study.calibration.threshold_se, truth)}


def marginal(seed: int) -> Mapping[str, float]:
    """Difficulties less the mean of the population, its spread, and the reliability beside the truth."""
    data = simulate.rasch(500, 12, ability_sd=1.2, seed=seed)
    fit = si.MarginalRasch().fit(data.responses)
    study = fit.analyse(data.responses)
    truth = data.difficulty - data.difficulty.mean()
    ability = study.abilities("eap").ability
    true_reliability = np.corrcoef(ability, data.ability)[0, 1] ** 2
    return {
        "difficulty": covered(fit.difficulty_, fit.se_, truth),
        "EAP reliability less the truth": float(study.reliability().eap_reliability or np.nan) - true_reliability,
    }


def clusters(seed: int) -> Mapping[str, float]:
    """Classes in which items are harder or easier for all: errors go by classes."""
    rng = np.random.default_rng(seed)
    n_classes, size, n_items = 50, 12, 8
    school_class = np.repeat(np.arange(n_classes), size)
    difficulty = np.linspace(-1.5, 1.5, n_items)
    shifts = rng.normal(0, 0.5, (n_classes, n_items))
    ability = rng.normal(0, 1, n_classes * size)
    chance = 1 / (1 + np.exp(difficulty + shifts[school_class] - ability[:, None]))
    responses = si.Responses.from_wide((rng.random(chance.shape) < chance).astype(float))
    study = si.SpectralRasch().fit(responses).analyse(responses).clustered(school_class.tolist())
    # With shifts the log-odds of the mean class are nearer to zero; what the estimate tends to is known by symmetry of
    # a long simulation only for the middle of the items, so that the outer pairs are left out.
    middle = slice(3, 5)
    return {
        "difficulty": covered(study.calibration.difficulty[middle], study.calibration.se[middle], difficulty[middle])
    }


def coin_split(seed: int) -> Mapping[str, float]:
    """An item split by a coin: the difference of its halves covers zero."""
    data = simulate.rasch(300, 8, seed=seed)
    study = si.SpectralRasch().fit(data.responses).analyse(data.responses)
    frame = study.responses.to_dense()
    names = [f"q{k + 1}" for k in range(8)]
    table = {
        "person": [f"p{k}" for k in range(300)],
        "coin": halves(300, seed),
        **dict(zip(names, frame.T, strict=True)),
    }
    responses = si.read(pl.DataFrame(table), people=["coin"])
    first = si.SpectralRasch().fit(responses).analyse(responses)
    changed = first.with_moves([Move("split", {"item": "q4", "by": "coin"}, "a coin")])
    one, other = changed.calibration.positions(["q4[coin=a]", "q4[coin=b]"])
    covariance = changed.threshold_covariance()
    assert covariance is not None
    se = np.sqrt(covariance[one, one] + covariance[other, other] - 2 * covariance[one, other])
    difference = changed.calibration.difficulty[one] - changed.calibration.difficulty[other]
    return {"difference of the halves": float(abs(difference) < NORMAL * se)}


def properties(seed: int) -> Mapping[str, float]:
    """Difficulties that follow two properties of the items exactly."""
    rng = np.random.default_rng(seed)
    words, steps = np.arange(10) % 3, np.arange(10) // 4
    effect = np.array([0.5, -0.4])
    difficulty = effect[0] * words + effect[1] * steps
    chance = 1 / (1 + np.exp(difficulty - rng.normal(0, 1, (400, 1))))
    responses = si.Responses.from_wide((rng.random(chance.shape) < chance).astype(float))
    own = {
        name: dict(zip(responses.items, values, strict=True)) for name, values in (("words", words), ("steps", steps))
    }
    explained = explain_items(responses, own)
    table = explained.effects
    return {
        "effect": covered(table["effect"], table["se"], effect),
        "likelihood ratio against free items": float(explained.p is not None and explained.p < LEVEL),
    }


def raters(seed: int) -> Mapping[str, float]:
    """Each of six raters rates a third of 150 persons on four criteria."""
    rng = np.random.default_rng(seed)
    severity = np.array([-0.8, -0.3, 0.0, 0.1, 0.4, 0.6])
    thresholds = np.array([-1.0, 0.2, 1.1])[None, :] + np.array([-0.4, 0.0, 0.1, 0.3])[:, None]
    rows: dict[str, list[Any]] = {"person": [], "item": [], "rater": [], "x": []}
    for person, ability in enumerate(rng.normal(0, 1.3, 150)):
        for rater in rng.choice(6, 2, replace=False):
            for item, own in enumerate(thresholds):
                weight = np.exp(np.concatenate([[0.0], np.cumsum(ability - severity[rater] - own)]))
                rows["person"].append(person)
                rows["item"].append(f"c{item}")
                rows["rater"].append(f"r{rater}")
                rows["x"].append(int(rng.choice(4, p=weight / weight.sum())))
    responses = si.read(pl.DataFrame(rows), person="person", item="item", response="x", facets=["rater"], ordered=True)
    table = si.SpectralPartialCredit().fit(responses).analyse(responses).facet("rater")
    return {"severity": covered(table["severity"], table["se"], severity - severity.mean())}


def trees(seed: int) -> Mapping[str, float]:
    """A tree grows where no item differs."""
    data = simulate.rasch(600, 8, seed=seed)
    rng = np.random.default_rng(seed)
    names = [f"q{k + 1}" for k in range(8)]
    people = {"age": rng.integers(20, 70, 600), "sex": rng.choice(["f", "m"], 600)}
    table = {"person": [f"p{k}" for k in range(600)], **people}
    table |= dict(zip(names, data.responses.to_dense().T, strict=True))
    responses = si.read(pl.DataFrame(table), people=["age", "sex"])
    tree = si.SpectralRasch().fit(responses).analyse(responses).dif_tree(["age", "sex"], sample="all")
    return {"a split": float(len(tree.nodes) > 1)}


def critical_values(seed: int) -> Mapping[str, float]:
    """Fit beside draws given the score, adjusted for all items (Westfall and Young)."""
    data = simulate.rasch(200, 8, seed=seed)
    study = si.SpectralRasch().fit(data.responses).analyse(data.responses)
    table = study.item_fit(critical=200)
    return {"any item": float((np.asarray(table["infit_conditional_p_family"]) < LEVEL).any())}


def votes(seed: int) -> Mapping[str, float]:
    """Six contestants, 400 votes between two of them each."""
    rng = np.random.default_rng(seed)
    ability = np.linspace(-1, 1, 6)
    first, second = np.array([rng.choice(6, 2, replace=False) for _ in range(400)]).T
    first_wins = rng.random(400) < 1 / (1 + np.exp(ability[second] - ability[first]))
    names = np.array([f"m{k}" for k in range(6)], dtype=object)
    winner = names[np.where(first_wins, first, second)]
    board = si.Pairs.read(pl.DataFrame({"first": names[first], "second": names[second], "winner": winner}))
    table = board.table()
    order = np.argsort(np.asarray(table["contestant"]).astype(str))
    estimate, se = (np.asarray(table[name], dtype=float)[order] for name in ("ability", "se"))
    return {"ability": covered(estimate - estimate.mean(), se, ability)}


def exact_tests(seed: int) -> Mapping[str, float]:
    """Tests given both margins are exact in samples of any size, by 199 tables each."""
    responses = simulate.rasch(60, 6, seed=seed).responses
    items = {"T2": list(responses.items[:3])}
    return {
        test: float(si.exact_test(responses, test, items=items.get(test), draws=199, seed=seed).p <= LEVEL)
        for test in ("T1", "T2", "T10", "T11")
    }


WAVES = {"change": COVERED, "difference of the arms": COVERED, "response shift, single items": LEVEL}


def waves(seed: int) -> Mapping[str, float]:
    """Two waves and two arms; a fifth of the persons miss the second wave. No item shifts."""
    rng = np.random.default_rng(seed)
    trend, effect = 0.3, 0.5
    treated = rng.integers(2, size=200) == 1
    ability = rng.normal(0, 1, 200) + 0.4 * treated
    difficulty = np.linspace(-1, 1, 6)
    names = [f"q{k + 1}" for k in range(6)]
    tables = []
    for wave in (0, 1):
        level = ability + wave * (trend + effect * treated)
        right = (rng.random((200, 6)) < 1 / (1 + np.exp(difficulty - level[:, None]))).astype(int)
        people = {"person": np.arange(200), "wave": np.full(200, wave), "arm": np.where(treated, "new", "control")}
        table = pl.DataFrame({**people, **dict(zip(names, right.T, strict=True))})
        tables.append(table.filter(pl.Series(rng.random(200) >= 0.2 * wave)))
    responses = si.read(pl.concat(tables), person="person", facets=["wave"], people=["arm"], items=names)
    found = si.change(responses, "wave", arm="arm").change
    assert found is not None
    columns = found.table_columns
    of_arms = np.asarray(columns["against"]) != ""
    is_new = np.asarray(columns["arm"]) == "new"
    truth = np.where(of_arms, effect, trend + effect * is_new)
    held = np.abs(np.asarray(columns["change"], float) - truth) < NORMAL * np.asarray(columns["se"], float)
    return {
        "change": float(held[~of_arms].mean()),
        "difference of the arms": float(held[of_arms].mean()),
        "response shift, single items": float((np.asarray(found.shifts["p"], float) < LEVEL).mean()),
    }


STUDIES = (
    Study("right and wrong, 400 x 10", RIGHT_AND_WRONG, right_and_wrong),
    Study("dimensions, 400 x 10", dict.fromkeys(("first contrast", "dependent pairs, any"), LEVEL), dimensions),
    Study("booklets, 400 x 18", {"difficulty": COVERED}, design("booklets", 400, 18, booklets=3)),
    Study("30% shown at random, 400 x 20", {"difficulty": COVERED}, design("sampled", 400, 20, p=0.3)),
    Study("small sample, 60 x 10", {"difficulty": COVERED}, design("complete", 60, 10)),
    Study("adaptive test, 500 x 20", {"difficulty": COVERED}, adaptive),
    Study("partial credit, 400 x 8", {"threshold": COVERED, "Andersen's test by median": LEVEL}, partial_credit),
    Study("rating scale, 400 x 8", {"threshold": COVERED}, rating_scale),
    Study("marginal likelihood, 500 x 12", {"difficulty": COVERED, "EAP reliability less the truth": 0.0}, marginal),
    Study("classes, 50 x 12", {"difficulty": COVERED}, clusters),
    Study("item split by a coin, 300 x 8", {"difference of the halves": COVERED}, coin_split),
    Study(
        "properties of items, 400 x 10", {"effect": COVERED, "likelihood ratio against free items": LEVEL}, properties
    ),
    Study("raters, 150 persons, 2 of 6 raters", {"severity": COVERED}, raters, share=0.5),
    Study("DIF tree, 600 x 8", {"a split": LEVEL}, trees),
    Study("critical values, 200 x 8", {"any item": LEVEL}, critical_values, share=0.5),
    Study("votes, 6 contestants, 400 votes", {"ability": COVERED}, votes),
    Study("exact tests, 60 x 6", dict.fromkeys(("T1", "T2", "T10", "T11"), LEVEL), exact_tests),
    Study("two waves, 200 x 6", WAVES, waves),
    *BOARDS,
)
CLOSE = 0.01  # of a number that is no count


def tolerance_of(nominal: float, draws: int) -> float:
    if nominal == 0:
        return CLOSE
    return float(ERRORS * np.sqrt(nominal * (1 - nominal) / draws))


def cases() -> Iterator[Case]:
    """A case for each count of a study; a study is drawn once."""
    kept: dict[tuple[str, int], dict[str, float]] = {}

    def means(study: Study, draws: int) -> dict[str, float]:
        if (study.name, draws) not in kept:
            first = FIRST_SEED + 10_000 * STUDIES.index(study)
            found = [study.draw(first + k) for k in range(draws)]
            kept[study.name, draws] = {key: float(np.nanmean([each[key] for each in found])) for key in study.nominal}
        return kept[study.name, draws]

    for study in STUDIES:
        for key, nominal in study.nominal.items():

            def ours(lab: Lab, data: str, study: Study = study, key: str = key) -> Values:
                mean = means(study, int(study.share * lab.draws))[key]
                if study.at_most:
                    mean = max(mean, study.nominal[key])
                return {"": mean}

            def outside(lab: Lab, data: str, nominal: float = nominal) -> Values:
                return {"": nominal}

            def tolerance(lab: Lab, study: Study = study, nominal: float = nominal) -> float:
                return tolerance_of(nominal, int(study.share * lab.draws))

            kind = {COVERED: "coverage", LEVEL: "level"}.get(nominal, "bias")
            if study.at_most:
                kind = "promise (what is below it is shown as it)"
            reason = f"{ERRORS} Monte Carlo errors" if nominal else "a hundredth"
            yield Case(
                PART, f"{kind}: {key}", study.name, "the nominal value", outside, ours, tolerance, reason, slow=True
            )
