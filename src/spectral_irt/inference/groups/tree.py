"""A tree of groups for whom items work differently, found along any columns about persons.

The difficulties of a node are tested along every column (`fluctuation.py`), in one pass over its responses; the node is
split where the statistic is largest, and its children are fitted. p is adjusted for the columns (Bonferroni).

In large samples everything is significant. So a split stays only if some item differs between its two sides by a
relevant size, or if a split below it stays. The tree is grown on one half of the persons; sizes, their errors and their
significance are from the other. An item is named if it differs significantly there, and by a relevant size in both
halves together: a size is judged better by more persons, and chance by those who had no part in the split.

`study.dif_tree` calls `dif_tree`; `plots/tree.py` draws it, `report/tree.py` has its section.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.errors import location_covariance
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.design import Mask
from spectral_irt.data.labels import Split
from spectral_irt.engine import one_blas_thread
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.inference.groups.calibrations import (
    DENSE_ITEMS,
    GroupModel,
    by_newton,
    calibrate_groups,
    contrast,
    estimable_items,
    locations_like,
    model_like,
)
from spectral_irt.inference.groups.dif import DELTA, LARGE, SMALL, purified_anchors
from spectral_irt.inference.groups.fluctuation import (
    EQUALS,
    ColumnTest,
    Covariate,
    Cut,
    best_cut,
    column_test,
    fluctuation,
    walk,
)
from spectral_irt.inference.groups.sampling import SIMPLE, SampledPersons, Sampling
from spectral_irt.inference.results import adjust_p
from spectral_irt.inference.robust_center import robust_center
from spectral_irt.joint_errors import JointErrors
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import NAMED, and_list, first_of, listed, p_value

LEVEL = 0.05
WHOLE = 1_000  # persons below which all are used twice, to grow and to estimate
MIN_LEAF = 200
DEPTH = 5
SIZES = {"B": SMALL / DELTA, "C": LARGE / DELTA, "any": 0.0}  # logits from which a difference is of an ETS class


@dataclass(frozen=True, eq=False)
class Node:
    """A group of persons that was found, and how it was split, if it was."""

    number: int
    parent: int
    depth: int
    rule: str  # the last condition
    path: tuple[str, ...]
    n_grown: int
    tests: tuple[ColumnTest, ...] = ()
    cut: Cut | None = None
    children: tuple[int, int] = (0, 0)
    largest: float = 0.0  # difference of an item between the children, in the persons it was grown on
    difficulty: Floats = field(default_factory=lambda: np.empty(0))  # of the items there, NaN without an estimate
    sides: tuple[tuple[str, str], ...] = ()  # of each condition of the path: the column, and the sign

    @property
    def name(self) -> str:
        return " and ".join(self.path) or "all persons"

    @property
    def p_adjusted(self) -> float:
        """Of the smallest p, for all columns that were tested; NaN where none was."""
        log_p = np.array([test.log_p for test in self.tests])
        n_tested = int(np.isfinite(log_p).sum())
        if not n_tested:
            return np.nan
        return float(min(1.0, n_tested * np.exp(np.nanmin(log_p))))


class Sizes(NamedTuple):
    """How much harder each item is on the second side of a split than on the first; NaN without an estimate. `in_all`
    is the difference in all persons, the others are from those on whom the tree was not grown."""

    difference: Floats
    se: Floats
    p: Floats
    in_all: Floats

    @property
    def p_holm(self) -> Floats:
        return adjust_p(self.p, "holm")


@dataclass(frozen=True)
class Growth:
    """How a tree is grown: logits of a relevant difference, persons of a leaf, how many splits one below the other."""

    size: float
    fewest: float
    depth: int
    level: float


class NodeFit(NamedTuple):
    """The items with an estimate in a node, their thresholds; and of all items difficulties with the mean zero, and
    standard errors, NaN without an estimate."""

    items: Ints
    thresholds: Floats
    difficulty: Floats
    se: Floats


class _Grower:
    """Grows a tree on some persons, node by node, depth first."""

    def __init__(self, calibration: Calibration, growth: Growth) -> None:
        self.model = model_like(calibration)
        self.growth = growth
        self.nodes: list[Node] = []
        self.source = ""

    def grow(self, persons: SampledPersons, covariates: Sequence[Covariate]) -> list[Node]:
        self.source = persons.responses.source
        fit = self.fit(persons, "all persons", None)
        if fit is None:
            raise DesignError(f"{self.source}: no two items can be compared, so that there is no tree.")
        root = Node(1, 0, 0, "", (), persons.responses.n_persons, difficulty=fit.difficulty)
        self.nodes.append(root)
        self._grow(root, persons, covariates, fit)
        return kept(self.nodes, self.growth.size)

    def fit(self, persons: SampledPersons, name: str, start: NodeFit | None) -> NodeFit | None:
        """The thresholds of a node, from those of its parent; None where items cannot be compared."""
        responses = persons.responses
        try:
            items = np.flatnonzero(estimable_items(responses, name, responses.n_items, self.model))
            some = responses.take_items(items)
            begin = None
            if start is not None and np.isin(items, start.items).all():
                layout = Thresholds(responses.thresholds.max_score[start.items])
                begin = start.thresholds[layout.of_items(np.searchsorted(start.items, items))]
            design = self.model.design(some)
            fit = by_newton(some, self.model, design, name, persons.sampling.weights, begin)
        except DesignError:
            return None
        assert fit.covariance is not None
        difficulty = np.full(responses.n_items, np.nan)
        se = difficulty.copy()
        difficulty[items] = some.thresholds.mean(fit.thresholds)
        se[items] = np.sqrt(np.diag(location_covariance(some.thresholds, fit.covariance)))
        return NodeFit(items, fit.thresholds, difficulty, se)

    def _grow(self, node: Node, persons: SampledPersons, covariates: Sequence[Covariate], fit: NodeFit) -> None:
        growth = self.growth
        some = persons.take_items(fit.items)
        found = fluctuation(some, fit.thresholds, covariates, self.model.design(some.responses))
        walks = [walk(found, k) for k in range(len(covariates))]
        tests = tuple(column_test(each, column.kind, found.df) for each, column in zip(walks, covariates, strict=True))
        node = replace(node, tests=tests)
        self.nodes[node.number - 1] = node
        if node.depth >= growth.depth or not node.p_adjusted < growth.level:
            return
        column = int(np.nanargmin([test.log_p for test in tests]))
        cut = best_cut(walks[column], covariates, column, growth.fewest)
        if cut is None:
            return
        goes_first = cut.goes_first(covariates)
        present = np.isin(np.arange(covariates[column].n_levels), walks[column].level)
        sides = [persons.take(goes_first), persons.take(~goes_first)]
        fits = [self.fit(side, f"node {node.number}", fit) for side in sides]
        if fits[0] is None or fits[1] is None:
            return
        split_by = covariates[column]
        rules = [split_by.side(cut.first, present), split_by.side(~cut.first, present)]
        signs = [split_by.sign(cut.first, present), split_by.sign(~cut.first, present)]
        numbers = []
        of_sides = zip(sides, fits, rules, signs, (goes_first, ~goes_first), strict=True)
        for side, side_fit, rule, sign, members in of_sides:
            assert side_fit is not None
            # age <= 46 goes without saying beside age <= 30; of categories each condition stays.
            this_side = (split_by.name, sign)
            stays = [sign == EQUALS or earlier != this_side for earlier in node.sides]
            child = Node(
                number=len(self.nodes) + 1,
                parent=node.number,
                depth=node.depth + 1,
                rule=rule,
                path=(*compress(node.path, stays), rule),
                sides=(*compress(node.sides, stays), this_side),
                n_grown=side.responses.n_persons,
                difficulty=side_fit.difficulty,
            )
            self.nodes.append(child)
            numbers.append(child.number)
            self._grow(child, side, [each.take(members) for each in covariates], side_fit)
        largest = largest_difference(fits[0], fits[1])
        self.nodes[node.number - 1] = replace(node, cut=cut, children=(numbers[0], numbers[1]), largest=largest)


def largest_difference(one: NodeFit, other: NodeFit) -> float:
    """The largest difference of an item between two groups, beyond the shift on which most items agree."""
    difference = other.difficulty - one.difficulty
    compared = np.isfinite(difference)
    if compared.sum() < 2:
        return 0.0
    errors = JointErrors.independent(np.hypot(one.se, other.se)[compared])
    center = robust_center(difference[compared], errors, excess=False).center
    return float(np.abs(difference[compared] - center).max())


def kept(nodes: Sequence[Node], size: float) -> list[Node]:
    """The nodes that stay, with new numbers: a split goes where neither it nor one below it is of a relevant size."""
    of_number = {node.number: node for node in nodes}

    def stays(number: int) -> bool:
        node = of_number[number]
        if node.cut is None:
            return False
        return node.largest >= size or any(map(stays, node.children))

    out: list[Node] = []

    def add(number: int, parent: int) -> int:
        node = of_number[number]
        place = len(out)
        out.append(replace(node, number=place + 1, parent=parent))
        if not stays(number):
            out[place] = replace(out[place], cut=None, children=(0, 0))
            return place + 1
        children = tuple(add(child, place + 1) for child in node.children)
        out[place] = replace(out[place], children=(children[0], children[1]))
        return place + 1

    add(1, 0)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class DifTree:
    """What `dif_tree` found.

    Attributes
    ----------
    nodes : tuple of Node
        The root first; `leaf_of` has the number of each person's leaf.
    columns : tuple of str
        Those that were looked at.
    sizes : mapping from node to Sizes
        Differences of the items between the two sides of each split, from persons on whom the tree was not grown if
        `halved`.
    chosen : mapping from column to share
        Of subsamples in whose trees the column splits; empty where that was not asked.
    """

    nodes: tuple[Node, ...]
    columns: tuple[str, ...]
    items: NDArray[Any]
    sizes: Mapping[int, Sizes]
    leaf_of: Ints
    estimated: NDArray[np.bool_]  # persons from whom the sizes are
    size: float
    halved: bool
    unknown: Mapping[str, int]  # persons without a value, by column
    chosen: Mapping[str, float] = field(default_factory=dict)
    subsamples: int = 0
    frame_kind: str | None = None

    @property
    def leaf_nodes(self) -> list[Node]:
        return [node for node in self.nodes if node.cut is None]

    @property
    def inner_nodes(self) -> list[Node]:
        return [node for node in self.nodes if node.cut is not None]

    @cached_property
    def leaves(self) -> NDArray[Any]:
        """The leaf of each person in words: groups for `study.dif(tree.leaves)`."""
        names = np.array([node.name for node in self.nodes], dtype=object)
        return np.asarray(names[self.leaf_of - 1])

    def n_of(self, node: Node, among: NDArray[np.bool_] | None = None) -> int:
        """How many persons are in a node."""
        leaves = [leaf.number for leaf in self.leaf_nodes if self._is_below(leaf, node.number)]
        inside = np.isin(self.leaf_of, leaves)
        return int(np.sum(inside if among is None else inside & among))

    def _is_below(self, node: Node, number: int) -> bool:
        while node.number != number and node.parent:
            node = self.nodes[node.parent - 1]
        return node.number == number

    def items_that_differ(self, node: Node) -> Ints:
        """Of the two sides of a split: by a relevant size in all, and significantly (Holm); the largest first."""
        sizes = self.sizes[node.number]
        differs = (np.abs(sizes.in_all) >= self.size) & (sizes.p_holm < LEVEL)
        order = np.argsort(-np.abs(np.nan_to_num(sizes.difference)), kind="stable")
        return order[differs[order]]

    def table_columns(self) -> Columns:
        rows: list[dict[str, Any]] = []
        for node in self.nodes:
            tested = np.isfinite([test.log_p for test in node.tests]).any()
            best = ColumnTest()
            column = ""
            if tested:
                k = int(np.nanargmin([test.log_p for test in node.tests]))
                best, column = node.tests[k], self.columns[k]
            items: list[str] = []
            largest = se = np.nan
            if node.cut is not None:
                differ = self.items_that_differ(node)
                items = [str(item) for item in self.items[differ]]
                if items:
                    largest = float(self.sizes[node.number].difference[differ[0]])
                    se = float(self.sizes[node.number].se[differ[0]])
            rows.append({
                "node": node.number, "parent": node.parent, "depth": node.depth, "group": node.name,
                "n": self.n_of(node), "n_grown": node.n_grown, "n_estimated": self.n_of(node, self.estimated),
                "column": column, "statistic": best.statistic, "df": best.df, "p": best.p,
                "p_adjusted": node.p_adjusted, "split": " | ".join(self.nodes[k - 1].rule for k in node.children if k),
                "items": "; ".join(items), "largest": largest, "se": se,
            })  # fmt: skip
        return {name: np.array([row[name] for row in rows], dtype=_kind(rows[0][name])) for name in rows[0]}

    def item_columns(self) -> Columns:
        parts = []
        for node in self.inner_nodes:
            sizes = self.sizes[node.number]
            n = len(self.items)
            first, second = (self.nodes[k - 1].name for k in node.children)
            flagged = np.isin(np.arange(n), self.items_that_differ(node))
            parts.append({
                "node": np.full(n, node.number), "item": self.items,
                "group": np.full(n, second, dtype=object), "reference": np.full(n, first, dtype=object),
                "difference": sizes.difference, "se": sizes.se, "p": sizes.p, "p_holm": sizes.p_holm,
                "difference_all": sizes.in_all, "flagged": flagged,
            })  # fmt: skip
        if not parts:
            return {}
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def table(self) -> Table:
        """A row for each node: `node, parent, depth, group, n, n_grown, n_estimated, column, statistic, df, p,
        p_adjusted, split, items, largest, se`.

        `column` is the one with the smallest p, `p_adjusted` that p for all columns; `items` are those that differ
        between the two sides by a relevant size and significantly, and `largest` is how much harder the first of them
        is on the second side, in logits.
        """
        return make_table(self.table_columns(), self.frame_kind)

    def item_table(self) -> Table:
        """Every item at every split: `node, item, group, reference, difference, se, p, p_holm, difference_all,
        flagged`; the difference in all persons says whether it is of a relevant size."""
        return make_table(self.item_columns(), self.frame_kind)

    def tests(self) -> Table:
        """Every column in every node: `node, column, statistic, df, p`, not adjusted."""
        rows = [(node.number, name, *test[:2], test.p) for node in self.nodes for name, test in self._named(node)]
        names = ("node", "column", "statistic", "df", "p")
        return make_table(
            {name: np.array(each) for name, each in zip(names, zip(*rows, strict=True), strict=True)}, None
        )

    def _named(self, node: Node) -> Iterator[tuple[str, ColumnTest]]:
        return zip(self.columns, node.tests, strict=False)

    @property
    def sentence(self) -> str:
        """What was found, in short."""
        looked = f"by {and_list([*self.columns])}"
        if not self.inner_nodes:
            return f"no groups found {looked} for whom items work differently ({self._smallest}{self._basis})"
        n_leaves = len(self.leaf_nodes)
        names = [leaf.name for leaf in self.leaf_nodes][:NAMED]
        more = "; ..." if n_leaves > NAMED else ""
        return f"{n_leaves} groups {looked}: {'; '.join(names)}{more}"

    @property
    def _smallest(self) -> str:
        p = self.nodes[0].p_adjusted
        if p < LEVEL:
            return f"{p_value(p)}, but no item differs by {self.size:.2f} logits"
        return p_value(p)

    @property
    def _basis(self) -> str:
        return "; on one half of the persons" if self.halved else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """For whom which items are harder; how sizes were estimated; who has no value."""
        differences = sorted(self._differences(), key=lambda finding: finding.severity != "warning")
        findings = differences[:NAMED]
        if len(differences) > NAMED:
            sentence = f"The DIF tree has {len(differences) - NAMED:,} more splits, which its table has."
            findings.append(Finding("dif_tree_more", "note", sentence))
        if not findings:
            findings.append(Finding("no_dif_tree", "note", f"DIF tree: {self.sentence}."))
        elif self.halved:
            sentence = "The DIF tree was grown on one half of the persons, drawn at random; sizes are from the other."
            findings.append(Finding("dif_tree_halves", "note", sentence))
        else:
            sentence = (
                "The DIF tree was grown on all persons, from whom its sizes are too: they are somewhat too large."
            )
            findings.append(Finding("dif_tree_all", "note", sentence))
        without = {name: n for name, n in self.unknown.items() if n}
        if without:
            said = first_of([f"{name} ({n:,})" for name, n in without.items()])
            sentence = f"Persons without a value in a column of the DIF tree: {said}; they go with the larger group."
            findings.append(Finding("dif_tree_unknown", "note", sentence))
        if self.chosen:
            said = ", ".join(f"{name} {share:.0%}" for name, share in self.chosen.items())
            sentence = f"Columns by which {self.subsamples} trees of half as many persons split: {said}."
            findings.append(Finding("dif_tree_stability", "note", sentence))
        return tuple(findings)

    def _differences(self) -> Iterator[Finding]:
        """A finding for each split with items that differ; one on the sizes for those without."""
        for node in self.inner_nodes:
            differ = self.items_that_differ(node)
            size = self.sizes[node.number].difference
            sides = [self.nodes[k - 1] for k in node.children]
            if not len(differ):
                sentence = (
                    f"Items work differently for {sides[0].name} and {sides[1].name} "
                    f"({p_value(node.p_adjusted)}), though none differs significantly by {self.size:.2f} logits."
                )
                yield Finding("dif_tree_split", "note", sentence)
                continue
            clauses = []
            for harder_for, other, some in (
                (sides[1], sides[0], differ[size[differ] > 0]),
                (sides[0], sides[1], differ[size[differ] < 0]),
            ):
                if len(some):
                    clauses.append(_harder(self.items[some], np.abs(size[some]), harder_for, other))
            yield Finding(
                code="dif_tree_split",
                severity="warning",
                sentence=f"{'; '.join(clauses)} ({p_value(node.p_adjusted)}).",
                remedy="Review these items.",
                items=tuple(self.items[differ].tolist()),
            )

    def to_dict(self) -> dict[str, Any]:
        """The result as data."""
        return {
            "columns": list(self.columns),
            "size": self.size,
            "halved": self.halved,
            "leaves": {leaf.name: self.n_of(leaf) for leaf in self.leaf_nodes},
            "splits": [
                {"node": node.number, "group": node.name, "column": self.columns[node.cut.column],
                 "p_adjusted": node.p_adjusted, "items": self.items[self.items_that_differ(node)].tolist()}
                for node in self.inner_nodes if node.cut is not None
            ],
            "chosen": dict(self.chosen),
            "subsamples": self.subsamples,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<DIF tree: {self.sentence}>"


def _kind(value: Any) -> Any:
    return object if isinstance(value, str) else type(value)


def _harder(items: NDArray[Any], sizes: Floats, group: Node, other: Node) -> str:
    """Items 'i2' and 'i3' are harder by 0.92 and 0.87 logits for sex = f, age > 46 than for sex = f, age <= 46."""
    size = and_list([f"{each:.2f}" for each in sizes[:5].tolist()])
    verb = "is" if len(items) == 1 else "are"
    word = "Item" if len(items) == 1 else "Items"
    where = " and ".join(group.path[:-1])
    among = f" among {where}" if where else ""
    return f"{word} {listed(items)} {verb} harder by {size} logits for {group.rule} than for {other.rule}{among}"


@one_blas_thread()  # the matrices are small
def dif_tree(
    calibration: Calibration,
    responses: Responses,
    covariates: Sequence[Covariate],
    *,
    size: str | float = "B",
    min_leaf: int = MIN_LEAF,
    depth: int = DEPTH,
    sample: str = "auto",
    subsamples: int = 0,
    seed: int = 0,
    sampling: Sampling = SIMPLE,
    level: float = LEVEL,
) -> DifTree:
    """Groups of persons, by any columns about them, for whom items work differently; see the head of this module.

    Parameters
    ----------
    calibration, responses
        Nodes are calibrated by the model of the calibration, without a prior.
    covariates : sequence of Covariate
        Columns about persons.
    size : "B", "C", "any" or float
        The difference of an item, in logits, from which a split counts: that of ETS class B (0.43) by default.
    min_leaf : int
        Fewest persons of a group.
    depth : int
        Most splits one below the other.
    sample : "half", "all" or "auto"
        "half": grow on one half of the persons, and take the sizes from the other. "all": use all for both; "auto"
        does so below 1,000 persons.
    subsamples : int
        So many further trees, each on half of the persons, to see how stable the choice of columns is.
    seed : int
        Of halves and subsamples.
    sampling : Sampling
        Weights and clusters of the persons.

    References
    ----------
    Strobl, Kopf & Zeileis (2015), Psychometrika 80; Zeileis & Hornik (2007); Estrella (2003).
    """
    if responses.thresholds.n_entries > DENSE_ITEMS:
        raise OptionError(
            f"a DIF tree takes up to {DENSE_ITEMS:,} thresholds, and there are {responses.thresholds.n_entries:,}; "
            "choose some of the items."
        )
    persons = SampledPersons(responses, sampling)
    rng = np.random.default_rng(seed)
    halves = _halves(persons, sample, rng)
    growth = Growth(_logits(size), min_leaf * halves.grown.mean(), depth, level)
    nodes = _grown_on(halves.grown, calibration, growth, persons, covariates)
    leaf_of, sizes = _leaves_and_sizes(calibration, persons, covariates, nodes, halves)
    return DifTree(
        nodes=tuple(nodes),
        columns=tuple(column.name for column in covariates),
        items=responses.items,
        sizes=sizes,
        leaf_of=leaf_of,
        estimated=halves.estimated,
        size=growth.size,
        halved=halves.differ,
        unknown={column.name: int((column.code < 0).sum()) for column in covariates},
        chosen=_stability(halves.grown, calibration, growth, persons, covariates, subsamples, rng),
        subsamples=subsamples,
        frame_kind=responses.frame_kind,
    )


def _logits(size: str | float) -> float:
    """The relevant size in logits."""
    if isinstance(size, str) and size in SIZES:
        return SIZES[size]
    if not isinstance(size, str) and size >= 0:
        return float(size)
    raise OptionError(f"`size` is {size!r}; it is B, C, any, or a difference in logits, such as 0.5.")


class Halves(NamedTuple):
    """The persons on whom a tree is grown, and those from whom sizes are."""

    grown: Mask
    estimated: Mask

    @property
    def differ(self) -> bool:
        return not self.estimated.all()


def _halves(persons: SampledPersons, sample: str, rng: np.random.Generator) -> Halves:
    """One half for each; everybody for both in small samples, and where it is asked."""
    n_persons = persons.responses.n_persons
    if sample == "half" or (sample == "auto" and n_persons >= WHOLE):
        grown = _random_half(persons, rng)
        return Halves(grown, ~grown)
    everybody = np.ones(n_persons, dtype=bool)
    return Halves(everybody, everybody)


def _random_half(persons: SampledPersons, rng: np.random.Generator) -> Mask:
    """Half of the persons; those of a cluster stay together."""
    n_clusters = int(persons.cluster.max(initial=0)) + 1
    half = np.zeros(n_clusters, dtype=bool)
    half[rng.permutation(n_clusters)[: (n_clusters + 1) // 2]] = True
    return np.asarray(half[persons.cluster])


def _grown_on(
    some: Mask, calibration: Calibration, growth: Growth, persons: SampledPersons, covariates: Sequence[Covariate]
) -> list[Node]:
    return _Grower(calibration, growth).grow(persons.take(some), [column.take(some) for column in covariates])


def _stability(
    grown: Mask,
    calibration: Calibration,
    growth: Growth,
    persons: SampledPersons,
    covariates: Sequence[Covariate],
    subsamples: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """In which share of trees, grown on half as many persons, each column splits; nothing where no trees are asked."""
    if not subsamples:
        return {}
    chosen = dict.fromkeys([column.name for column in covariates], 0.0)
    smaller = replace(growth, fewest=growth.fewest / 2)
    for _ in range(subsamples):
        nodes = _grown_on(grown & _random_half(persons, rng), calibration, smaller, persons, covariates)
        for column in {node.cut.column for node in nodes if node.cut is not None}:
            chosen[covariates[column].name] += 1 / subsamples
    return chosen


def _leaves_and_sizes(
    calibration: Calibration,
    persons: SampledPersons,
    covariates: Sequence[Covariate],
    nodes: Sequence[Node],
    halves: Halves,
) -> tuple[Ints, dict[int, Sizes]]:
    """The leaf of every person, and how much items differ between the sides of each split."""
    n_persons = persons.responses.n_persons
    node_of = np.ones(n_persons, dtype=np.int64)
    sizes = {}
    model = locations_like(calibration)
    for node in nodes:
        if node.cut is None:
            continue
        inside = node_of == node.number
        first = inside & node.cut.goes_first(covariates)
        node_of[inside] = np.where(first[inside], *node.children)
        members = inside & halves.estimated
        sides = [nodes[number - 1] for number in node.children]
        split = Split((sides[0].name, sides[1].name), np.where(first[members], 0, 1))
        share = 1.0
        if halves.differ:
            share = members.sum() / max(inside.sum(), 1)
        in_grown = sides[1].difficulty - sides[0].difficulty
        sizes[node.number] = _sizes(persons.take(members), split, model, in_grown, share)
    return node_of, sizes


def _sizes(some: SampledPersons, split: Split, model: GroupModel, in_grown: Floats, share: float) -> Sizes:
    """Differences of the items between two sides, from these persons, who are so large a `share` of all; `in_grown` are
    the differences in the others."""
    items = some.responses.items
    sizes = Sizes(*np.full((4, len(items)), np.nan))
    try:
        groups = calibrate_groups(some.responses, split, model, some.sampling)
    except DesignError:  # hardly anyone is left on one side: the split has no sizes
        return sizes
    anchors = purified_anchors(groups)
    of_sides = groups.centered_on(anchors).combine(contrast(2, 1, 0))
    place = np.flatnonzero(np.isin(items, groups.items))
    for target, values in zip(sizes, (of_sides.value, of_sides.se, of_sides.p, of_sides.value), strict=True):
        target[place] = values
    others = in_grown[place]
    known = np.isfinite(others)
    if share < 1 and known[anchors].any():
        others = others - others[anchors & known].mean()
        sizes.in_all[place[known]] = share * of_sides.value[known] + (1 - share) * others[known]
    return sizes
