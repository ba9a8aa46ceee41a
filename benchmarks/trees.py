"""DIF trees: how often a tree splits where no item differs, how often it finds a subgroup, and what it costs.

Level: columns that have nothing to do with the items; persons of equal ability, or abilities that differ by a standard
deviation along the columns (impact); columns with equal groups, or with a group of a tenth and a skewed number. Power:
two items are harder in a subgroup of 15% that takes two columns to see.
"""

from __future__ import annotations

import numpy as np

import spectral_irt as si
from harness import arguments, cost, show, study
from spectral_irt.inference.groups.fluctuation import covariate
from spectral_irt.inference.groups.tree import dif_tree

KINDS = ("right or wrong", "ordered")


def thresholds(kind: str, n_items: int) -> np.ndarray:
    """Items x thresholds."""
    location = np.linspace(-1.5, 1.5, n_items)[:, None]
    return location if kind == "right or wrong" else location + np.array([-0.7, 0.7])


def draw(
    rng: np.random.Generator, ability: np.ndarray, beta: np.ndarray, shift: np.ndarray | float = 0.0
) -> np.ndarray:
    """Answers, persons x items, in the partial credit model; `shift` (persons x items) is added to difficulties."""
    steps = ability[:, None, None] - beta - np.atleast_2d(shift)[:, :, None]
    cumulated = np.cumsum(steps, axis=2)
    p = np.exp(np.concatenate([np.zeros((*cumulated.shape[:2], 1)), cumulated], axis=2))
    p = np.cumsum(p / p.sum(axis=2, keepdims=True), axis=2)
    u = rng.random((len(ability), beta.shape[0], 1))
    return np.minimum((u > p).sum(axis=2), beta.shape[1]).astype(np.int8)


def columns(rng: np.random.Generator, n: int, unequal: bool) -> dict[str, np.ndarray]:
    """Three columns: a number, two groups, five groups."""
    if unequal:
        return {
            "number": np.round(rng.lognormal(size=n), 2),
            "two": rng.random(n) < 0.1,
            "five": rng.choice(5, size=n, p=[0.6, 0.2, 0.1, 0.05, 0.05]),
        }
    return {"number": rng.normal(size=n), "two": rng.random(n) < 0.5, "five": rng.integers(5, size=n)}


def tree_of(kind: str, answers: np.ndarray, about: dict[str, np.ndarray], **options: object):
    """The tree of some answers; groups are categories by name."""
    responses = si.read(answers, ordered=True) if kind == "ordered" else si.read(answers)
    estimator = si.SpectralPartialCredit() if kind == "ordered" else si.SpectralRasch(regularization=0)
    fit = estimator.fit(responses)
    found = []
    for name, values in about.items():
        labels = values.tolist() if values.dtype.kind in "fU" else [f"{name}{value}" for value in values]
        found.append(covariate(responses, name, labels))
    return dif_tree(fit.calibration_, responses, found, **options)


def level(kind: str, impact: bool, unequal: bool, asked):
    def one(seed: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, 46])
        about = columns(rng, asked.persons, unequal)
        ability = rng.normal(size=asked.persons)
        if impact:
            number = about["number"]
            ability += (number - np.mean(number)) / np.std(number) + 1.0 * about["two"] + 0.5 * about["five"]
            ability -= ability.mean()
        answers = draw(rng, ability, thresholds(kind, asked.items))
        tree = tree_of(kind, answers, about, size="any", sample="all")
        return {"significant": float(tree.nodes[0].p_adjusted < 0.05), "any split": float(len(tree.nodes) > 1)}

    return one


def power(kind: str, asked):
    def one(seed: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, 47])
        n = asked.power_persons
        about = {"sex": rng.choice(np.array(["f", "m"]), n), "age": rng.integers(18, 90, n).astype(float)}
        about |= {"region": rng.integers(5, size=n)}
        subgroup = (about["sex"] == "f") & (about["age"] > np.quantile(about["age"], 0.7))
        shift = np.zeros((n, asked.items))
        shift[np.ix_(subgroup, [3, 4])] = 0.6
        answers = draw(rng, rng.normal(size=n), thresholds(kind, asked.items), shift)
        tree = tree_of(kind, answers, about)
        flagged = {int(k) for node in tree.inner_nodes for k in tree.items_that_differ(node)}
        leaves = [leaf for leaf in tree.leaf_nodes if "sex = f" in leaf.name and "age >" in leaf.name]
        size = [abs(tree.sizes[leaf.parent].difference[[3, 4]]).mean() for leaf in leaves[:1]]
        return {
            "group found": float(bool(leaves)),
            "an item named": float(bool(leaves) and bool(flagged & {3, 4})),
            "found": float(bool(leaves) and flagged >= {3, 4}),
            "other items": float(bool(flagged - {3, 4})),
            "leaves": float(len(tree.leaf_nodes)),
            "size": size[0] if size else np.nan,
        }

    return one


def speed(asked):
    """One tree of a million persons, with DIF along several columns so that it grows deep."""
    rng = np.random.default_rng(48)
    n = asked.speed_persons
    about = {f"number{k}": rng.normal(size=n) for k in range(5)}
    about |= {f"groups{k}": rng.integers(2 + 3 * k, size=n) for k in range(5)}
    shift = np.zeros((n, 20))
    for k in range(5):
        shift[:, 2 * k] += 0.3 * (about[f"number{k}"] > 0)
        shift[:, 2 * k + 1] += 0.3 * (about[f"groups{k}"] == 1)
    answers = draw(rng, rng.normal(size=n), thresholds("right or wrong", 20), shift)
    responses = si.read(answers)
    fit = si.SpectralRasch().fit(responses)
    found = []
    for name, values in about.items():
        labels = values.tolist() if values.dtype.kind in "fU" else [f"{name}{value}" for value in values]
        found.append(covariate(responses, name, labels))
    del answers, shift, about
    trees = []
    spent = cost(lambda: trees.append(dif_tree(fit.calibration_, responses, found, size=0.2)), repeats=1)
    yield {
        "persons": n, "items": 20, "columns": 10, "nodes": len(trees[0].nodes), "CPU seconds": spent.cpu,
        "seconds": spent.wall, "memory above the data (GB)": spent.memory / 1e9,
    }  # fmt: skip


def main() -> None:
    asked = arguments(
        __doc__, replicates=500, persons=1000, items=10, power_replicates=60, power_persons=20_000,
        speed_persons=1_000_000, parts=("level", "power", "speed"),
    )  # fmt: skip
    if "level" in asked.parts:
        study(
            f"Level: {asked.persons:,} persons, {asked.items} items, 3 columns, any split at 5%",
            [
                ({"responses": kind, "impact": "yes" if impact else "no", "columns": "unequal" if unequal else "equal"},
                 level(kind, impact, unequal, asked))
                for kind in KINDS for impact in (False, True) for unequal in (False, True)
            ],
            asked,
        )  # fmt: skip
    if "power" in asked.parts:
        asked.seeds = range(asked.seed, asked.seed + asked.power_replicates)
        asked.replicates = asked.power_replicates
        study(
            f"Power: two items of .6 logits in 15% of {asked.power_persons:,} persons",
            [({"responses": kind}, power(kind, asked)) for kind in KINDS],
            asked,
        )
    if "speed" in asked.parts:
        show("Cost of a tree", speed(asked), asked)


if __name__ == "__main__":
    main()
