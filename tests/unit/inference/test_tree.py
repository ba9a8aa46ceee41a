"""DIF trees: statistics against sums person by person, p-values, who goes where, what is said, what is refused."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import spectral_irt as si
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.calibrations import GroupModel, by_newton
from spectral_irt.inference.groups.fluctuation import (
    ColumnTest,
    best_cut,
    column_test,
    covariate,
    fluctuation,
    log_chi2_tail,
    log_sup_lm_tail,
    walk,
)
from spectral_irt.inference.groups.sampling import SampledPersons, Sampling, person_scores
from spectral_irt.inference.groups.tree import NAMED, DifTree, Node, Sizes, kept

N = 1_200


def drawn(seed, n=N, n_items=7, shift=0.0, categories=2):
    """A frame with answers and columns about persons; the first two items are harder by `shift` for women above 50."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(np.array(["f", "m"]), n)
    age = rng.integers(18, 80, n)
    town = rng.choice(np.array(["a", "b", "c", "d"]), n)
    beta = np.tile(np.linspace(-1, 1, n_items), (n, 1))
    beta[np.ix_((sex == "f") & (age > 50), [0, 1])] += shift
    ability = rng.normal(size=n)[:, None]
    answers = sum(
        (rng.random((n, n_items)) < 1 / (1 + np.exp(beta - ability))).astype(int) for _ in range(categories - 1)
    )
    frame = pl.DataFrame({f"q{k}": answers[:, k] for k in range(n_items)})
    return frame.with_columns(sex=sex, age=age, town=town)


def study_of(frame, **options):
    people = [name for name in frame.columns if not name.startswith("q")]
    responses = si.read(frame, people=people, **options)
    estimator = si.SpectralPartialCredit() if options.get("ordered") else si.SpectralRasch(regularization=0)
    return estimator.fit(responses).analyse(responses)


@pytest.fixture(scope="module")
def study():
    return study_of(drawn(1, n=2_000, shift=1.2))


@pytest.fixture(scope="module")
def tree(study):
    return study.dif_tree(["sex", "age", "town"])


@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("sampled", ["simple", "weights", "clusters"])
def test_statistics_are_sums_over_persons(categories, sampled):
    rng = np.random.default_rng(5)
    study = study_of(drawn(2, n=300, categories=categories), **({"ordered": True} if categories > 2 else {}))
    responses = study.responses
    weights = rng.uniform(0.2, 2, 300) if sampled == "weights" else None
    cluster = rng.integers(60, size=300) if sampled == "clusters" else None
    persons = SampledPersons(responses, Sampling(weights, cluster))
    ages = [None if rng.random() < 0.1 else int(age) for age in responses.people["age"]]
    columns = [covariate(responses, "age", ages), covariate(responses, "town", responses.people["town"].tolist())]
    beta = by_newton(responses, GroupModel(), None, "all", weights).thresholds
    found = fluctuation(persons, beta, columns)

    w = np.ones(300) if weights is None else weights
    u = np.vstack([person_scores(block, responses.thresholds, beta).toarray() for block in responses.entries.blocks])
    u = u * w[:, None]
    of_cluster = u if cluster is None else np.array([u[cluster == c].sum(axis=0) for c in range(60)])
    inverse = np.linalg.pinv(of_cluster.T @ of_cluster, rcond=1e-9)
    assert found.df == responses.thresholds.n_entries - 1

    known = np.array([age is not None for age in ages])
    j = inverse / (np.sum(w[known] ** 2) / np.sum(w**2))
    age = np.array([-1 if age is None else age for age in ages])
    largest = 0.0
    for value in np.unique(age[known])[:-1]:
        below = known & (age <= value)
        t = np.sum(w[below] ** 2) / np.sum(w[known] ** 2)
        if 0.1 <= t <= 0.9:
            s = u[below].sum(axis=0) - t * u[known].sum(axis=0)
            largest = max(largest, s @ j @ s / (t * (1 - t)))
    assert column_test(walk(found, 0), "numbers", found.df).statistic == pytest.approx(largest, rel=1e-8)

    total = 0.0
    for town in "abcd":
        inside = responses.people["town"] == town
        t = np.sum(w[inside] ** 2) / np.sum(w**2)
        s = u[inside].sum(axis=0) - t * u.sum(axis=0)
        total += s @ inverse @ s / t
    test = column_test(walk(found, 1), "categories", found.df)
    assert test.statistic == pytest.approx(total, rel=1e-8)
    assert test.df == 3 * found.df


def test_p_values():
    """Estrella's formula against 30,000 simulated bridges in seven dimensions, of 1,500 steps each."""
    for statistic, simulated in ((25, 0.0235), (30, 0.0034), (34.75, 0.0006)):
        assert np.exp(log_sup_lm_tail(statistic, 7)) == pytest.approx(simulated, abs=0.0025, rel=0.25)
    assert log_sup_lm_tail(5, 7) == 0
    density = chi2.pdf(20, 3) * 2 * (20 / 2)  # (x / 2)^(df / 2) exp(-x / 2) / Gamma(df / 2)
    expected = density * ((1 - 3 / 20) * 2 * np.log(0.9 / 0.1) + 2 / 20)
    assert log_sup_lm_tail(20, 3) == pytest.approx(np.log(expected))
    assert log_chi2_tail(10, 4) == pytest.approx(np.log(0.040428), abs=1e-4)
    assert log_chi2_tail(5_000, 4) == pytest.approx(-2500 + np.log(2501), rel=1e-4)  # exp(-x/2) (1 + x/2)


def test_the_subgroup_is_found_with_its_items(study, tree):
    assert set(tree.leaves) == {"age <= 50", "age > 50 and sex = f", "age > 50 and sex = m"}
    deepest = tree.nodes[max(tree.leaf_nodes, key=lambda leaf: leaf.depth).parent - 1]
    assert {str(tree.items[k]) for k in tree.items_that_differ(deepest)} == {"q0", "q1"}
    warnings = [finding for finding in tree.findings if finding.severity == "warning"]
    assert any(set(finding.items) == {"q0", "q1"} for finding in warnings)
    compared = study.dif(tree.leaves)
    assert set(compared.groups.names) == set(tree.leaves)


def test_sizes_are_of_persons_on_whom_the_tree_was_not_grown(study, tree):
    root = tree.nodes[0]
    first = tree.nodes[root.children[0] - 1]
    inside = np.isin(tree.leaf_of, [leaf.number for leaf in tree.leaf_nodes if tree._is_below(leaf, first.number)])
    labels = np.where(inside, "first", "second")[tree.estimated]
    others = (
        si.SpectralRasch(regularization=0)
        .fit(study.responses.take_persons(tree.estimated))
        .analyse(study.responses.take_persons(tree.estimated))
    )
    contrast = others.dif(labels, nonuniform=False).contrasts
    np.testing.assert_allclose(tree.sizes[1].difference, contrast["contrast"], atol=1e-6)
    np.testing.assert_allclose(tree.sizes[1].se, contrast["se"], atol=1e-6)


def test_a_relevant_size_is_that_in_all_persons(study, tree):
    """Of both halves by how many persons they have; significance is from one of them alone."""
    root = tree.nodes[0]
    first = tree.nodes[root.children[0] - 1]
    inside = np.isin(tree.leaf_of, [leaf.number for leaf in tree.leaf_nodes if tree._is_below(leaf, first.number)])
    labels = np.where(inside, "first", "second")
    everybody = study.dif(labels, nonuniform=False, anchors=study.responses.items[2:].tolist())
    of_anchors = tree.sizes[1].in_all - tree.sizes[1].in_all[2:].mean()
    np.testing.assert_allclose(of_anchors, everybody.contrasts["contrast"], atol=0.03)
    assert np.abs(tree.sizes[1].in_all - tree.sizes[1].difference).max() > 0.03
    for node in tree.inner_nodes:
        sizes = tree.sizes[node.number]
        expected = np.flatnonzero((np.abs(sizes.in_all) >= tree.size) & (sizes.p_holm < 0.05))
        assert sorted(tree.items_that_differ(node)) == expected.tolist()
    whole = study.dif_tree(["sex", "age"], sample="all")
    np.testing.assert_array_equal(whole.sizes[1].in_all, whole.sizes[1].difference)


def test_tables_go_together(tree):
    table = tree.table_columns()
    leaves = table["split"] == ""
    assert table["n"][leaves].sum() == table["n"][0] == 2_000
    assert (table["n_grown"][0], table["n_estimated"][0]) == (1_000, 1_000)
    items = tree.item_columns()
    assert len(items["item"]) == 7 * len(tree.inner_nodes)
    assert tree.to_dict()["leaves"] == {leaf.name: tree.n_of(leaf) for leaf in tree.leaf_nodes}


def test_nothing_is_split_without_a_relevant_size(study):
    whole = study.dif_tree(["sex", "age"], size=3.0)
    assert len(whole.nodes) == 1
    assert "no item differs" in whole.sentence
    assert set(whole.leaves) == {"all persons"}


def test_a_split_stays_for_one_below_it():
    none = {"n_grown": 10, "tests": ()}
    cut = object()
    nodes = [
        Node(1, 0, 0, "", (), cut=cut, children=(2, 3), largest=0.1, **none),
        Node(2, 1, 1, "a", ("a",), cut=cut, children=(4, 5), largest=0.9, **none),
        Node(3, 1, 1, "b", ("b",), cut=cut, children=(6, 7), largest=0.2, **none),
        *[Node(k, (k - 4) // 2 + 2, 2, f"c{k}", (f"c{k}",), **none) for k in (4, 5, 6, 7)],
    ]
    assert [node.rule for node in kept(nodes, 0.43)] == ["", "a", "c4", "c5", "b"]
    assert [node.parent for node in kept(nodes, 0.43)] == [0, 1, 2, 2, 1]
    assert len(kept(nodes, 1.0)) == 1


def test_persons_without_a_value_go_with_the_larger_side(study):
    responses = study.responses
    sex = responses.people["sex"].tolist()
    known = [None if k % 5 == 0 else value for k, value in enumerate(sex)]
    column = covariate(responses, "sex", known)
    persons = SampledPersons(responses, Sampling())
    beta = by_newton(responses, GroupModel(), None, "all").thresholds
    found = walk(fluctuation(persons, beta, [column]), 0)
    cut = best_cut(found, [column], 0, 1)
    first = cut.goes_first([column])
    n_first = int(first[column.code >= 0].sum())
    assert first[column.code < 0].all() == (n_first >= (column.code >= 0).sum() / 2)
    assert len(set(first[column.code < 0])) == 1


def test_kinds_of_columns(study):
    responses = study.responses
    rng = np.random.default_rng(3)
    grade = rng.choice(np.array(["low", "mid", "high"]), 2_000).tolist()
    assert covariate(responses, "grade", grade, ("low", "mid", "high")).labels == ("low", "mid", "high")
    assert covariate(responses, "site", rng.integers(4, size=2_000).tolist(), ("categories",)).kind == "categories"
    income = covariate(responses, "income", rng.lognormal(size=2_000).tolist())
    assert income.n_levels == 512
    assert (income.low[1:] > income.high[:-1]).all()
    with pytest.raises(OptionError, match="lacks 'mid'"):
        covariate(responses, "grade", grade, ("low", "high"))
    with pytest.raises(DesignError, match="a single value"):
        covariate(responses, "one", ["x"] * 2_000)
    with pytest.raises(OptionError, match="nearly every person has a value of their own"):
        covariate(responses, "name", [f"name {k}" for k in range(2_000)])


def test_a_condition_that_a_later_one_implies_is_not_said_twice():
    """Also where labels are of several words: a node has one condition of a column in each direction."""
    rng = np.random.default_rng(5)
    n = 3_000
    grades = np.array(["very bad", "not so good", "quite good", "very good"])
    grade = rng.integers(0, 4, n)
    beta = np.tile(np.linspace(-1, 1, 7), (n, 1))
    beta[:, 0] += np.array([0.0, 1.5, 3.0, 4.5])[grade]
    answers = (rng.random((n, 7)) < 1 / (1 + np.exp(beta - rng.normal(size=n)[:, None]))).astype(int)
    frame = pl.DataFrame({f"q{k}": answers[:, k] for k in range(7)}).with_columns(grade=grades[grade])
    tree = study_of(frame).dif_tree(["grade"], order={"grade": grades.tolist()})
    leaves = {node.name for node in tree.nodes if node.cut is None}
    assert leaves == {
        "grade <= very bad",
        "grade <= not so good and grade > very bad",
        "grade > not so good and grade <= quite good",
        "grade > quite good",
    }


def test_many_categories_are_divided_along_their_mean_scores():
    """Ten towns, of which three differ: these are found together."""
    rng = np.random.default_rng(8)
    n = 4_000
    town = rng.integers(10, size=n)
    beta = np.tile(np.linspace(-1, 1, 6), (n, 1))
    beta[:, 2] += 1.0 * np.isin(town, [1, 4, 7])
    answers = (rng.random((n, 6)) < 1 / (1 + np.exp(beta - rng.normal(size=n)[:, None]))).astype(int)
    frame = pl.DataFrame({f"q{k}": answers[:, k] for k in range(6)}).with_columns(
        town=np.array([f"t{k}" for k in town])
    )
    tree = study_of(frame).dif_tree(["town"])
    assert "town = t1, t4, t7" in [node.rule for node in tree.nodes]


def test_subsamples_are_counted(study):
    tree = study.dif_tree(["sex", "town"], subsamples=4, seed=2)
    assert set(tree.chosen) == {"sex", "town"}
    assert tree.chosen["sex"] >= tree.chosen["town"]
    assert any(finding.code == "dif_tree_stability" for finding in tree.findings)


def a_tree(n_splits, p=0.001, flagged=True):
    """One leaf after the other is split off, by made-up columns; persons are spread evenly over the leaves."""
    tests = (ColumnTest(20.0, 2, np.log(p)), ColumnTest(5.0, 2, np.log(0.5)))
    nodes = []
    for k in range(n_splits):
        number = 2 * k + 1
        path = tuple(f"x{j} > 1" for j in range(1, k + 1))
        rule = path[-1] if path else ""
        children = (number + 1, number + 2)
        nodes.append(Node(number, max(number - 2, 0), k, rule, path, 50, tests, cut=object(), children=children))
        nodes.append(Node(number + 1, number, k + 1, f"x{k + 1} <= 1", (f"x{k + 1} <= 1",), 50))
    last = 2 * n_splits + 1
    nodes.append(Node(last, max(last - 2, 0), n_splits, "", (f"x{n_splits} > 1",) if n_splits else (), 50, tests))
    nodes.sort(key=lambda node: node.number)
    p_items = np.array([1e-5, 1e-6, 1e-4 if flagged else 0.9])
    in_all = np.array([0.3, -0.8, 0.44])
    differences = Sizes(np.array([0.5, -0.9, 0.41]), np.full(3, 0.1), p_items, in_all)
    leaves = [node.number for node in nodes if node.cut is None]
    return DifTree(
        nodes=tuple(nodes),
        columns=("x", "y"),
        items=np.array(["a", "b", "c"], dtype=object),
        sizes={node.number: differences for node in nodes if node.cut is not None},
        leaf_of=np.repeat(leaves, 4),
        estimated=np.arange(4 * len(leaves)) % 2 == 0,
        size=0.43,
        halved=True,
        unknown={"x": 3, "y": 0},
    )


def test_what_is_said_of_a_tree():
    one = a_tree(1)
    assert one.sentence.startswith("2 groups by x and y: ")
    split, note, unknown = one.findings
    assert (split.severity, split.items) == ("warning", ("b", "c"))
    assert "Item 'c' is harder by 0.41 logits" in split.sentence
    assert "Item 'b' is harder by 0.90 logits" in split.sentence
    assert "p = 0.002" in split.sentence  # of two columns
    assert note.code == "dif_tree_halves"
    assert "x (3); they go" in unknown.sentence
    assert one.items_that_differ(one.nodes[0]).tolist() == [1, 2]
    assert a_tree(1, flagged=False).items_that_differ(one.nodes[0]).tolist() == [1]
    table = one.table_columns()
    assert (table["column"][0], table["df"][0], table["largest"][0]) == ("x", 2, -0.9)
    assert table["p_adjusted"][0] == pytest.approx(0.002)
    assert table["n"].tolist() == [8, 4, 4]
    assert table["n_estimated"].tolist() == [4, 2, 2]
    assert table["items"].tolist() == ["b; c", "", ""]
    items = one.item_columns()
    assert items["flagged"].tolist() == [False, True, True]
    assert set(items["reference"]) == {one.nodes[1].name}
    tests = one.tests()
    assert tests["column"].to_list() == ["x", "y"] * 2


def test_very_large_trees_are_told_in_part():
    many = a_tree(NAMED + 2)
    codes = [finding.code for finding in many.findings]
    assert codes.count("dif_tree_split") == NAMED
    (more,) = [finding for finding in many.findings if finding.code == "dif_tree_more"]
    assert "has 2 more splits" in more.sentence
    assert many.sentence.endswith("; ...")
    assert not a_tree(NAMED - 1).sentence.endswith("; ...")


def test_a_tree_without_a_split():
    unlikely = a_tree(0)
    assert "but no item differs by 0.43 logits; on one half of the persons" in unlikely.sentence
    assert "no item differs" not in a_tree(0, p=0.2).sentence
    assert unlikely.findings[0].code == "no_dif_tree"


def test_refusals(study):
    with pytest.raises(OptionError, match="no column 'school'"):
        study.dif_tree(["school"])
    with pytest.raises(OptionError, match="B, C, any"):
        study.dif_tree(["sex"], size="D")
    with pytest.raises(OptionError, match="needs a column"):
        study.dif_tree([])


def test_right_and_wrong_is_the_case_of_two_categories(study, tree):
    responses = si.read(drawn(1, n=2_000, shift=1.2), people=["sex", "age", "town"], ordered=True)
    ordered = si.SpectralPartialCredit().fit(responses).analyse(responses).dif_tree(["sex", "age", "town"])
    assert [node.name for node in ordered.nodes] == [node.name for node in tree.nodes]
    ours, theirs = tree.table_columns(), ordered.table_columns()
    np.testing.assert_allclose(ours["statistic"], theirs["statistic"], rtol=1e-6)
