"""Models by the scores that judges gave to their answers: fair abilities, and the judges themselves.

Models are items, prompts people, judges and criteria facets of a rating scale in the codes of the scores:

    threshold of (model, judge) = - ability + severity - self-preference x (both of one family) + offset,

with prompts conditioned out, so that a model is compared with others on the prompts they share, and a judge with others
on the answers they both saw. Errors are over prompts. Where some judges are people their severity is 0, and that of the
others is against people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Finding
from spectral_irt.data.block import Block, Floats, Ints, Thresholds, answered_items
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.linear_design import ITEMS, LinearDesign
from spectral_irt.estimators.linear_fit import OPEN, DesignResult, design_fit
from spectral_irt.inference.fit.mean_squares import item_statistics
from spectral_irt.inference.groups.sampling import degrees_of_freedom
from spectral_irt.inference.results import adjust_p, two_sided
from spectral_irt.leaderboard.contrasts import LEVEL
from spectral_irt.leaderboard.prompts import places
from spectral_irt.leaderboard.ranked import RankedBoard
from spectral_irt.leaderboard.scale import LOGIT
from spectral_irt.leaderboard.scores import CRITERION, JUDGE, SELF, Scores, about_families, read_scores
from spectral_irt.model import category_probabilities
from spectral_irt.persons.abilities import abilities
from spectral_irt.tables import Columns, Table
from spectral_irt.text import count, listed, p_value

if TYPE_CHECKING:
    from spectral_irt.leaderboard.judged_page import JudgedPage

LARGE_SLOPE = (0.8, 1.25)  # sensitivities within are of no matter, however many scores tell them from 1


class SelfPreference(NamedTuple):
    """How many logits more a judge gives to models of its own family."""

    estimate: float
    se: float
    low: float
    high: float
    p: float


class JudgedLeaderboard(RankedBoard):
    """Models with abilities, fair scores, ranks and tiers, and judges with severities, from scores by several judges.

    Examples
    --------
    >>> import polars as pl
    >>> rows = [(m, f"p{k}", j, (3 * k + 2 * i + s) % 4) for k in range(9) for i, m in enumerate("ab") for s, j in
    ...     enumerate(["x", "y"])]
    >>> board = JudgedLeaderboard.read(pl.DataFrame(rows, schema=["model", "prompt", "judge", "score"], orient="row"))
    >>> board
    <JudgedLeaderboard: 2 models, 2 judges, 9 prompts, 36 scores>
    """

    def __init__(
        self,
        scores: Scores,
        *,
        scale: str = LOGIT,
        anchor: Mapping[Any, float] | None = None,
        seed: int = 0,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(scale, anchor, seed, progress)
        self.scores = scores
        self.answers = scores.by_prompt
        if len(self.labels) < 2:
            raise DesignError(f"{self.answers.source}: a leaderboard compares models, and there is {len(self.labels)}.")

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        judge: str = JUDGE,
        criterion: str | None = None,
        person: str | None = None,
        item: str | None = None,
        response: str | None = None,
        human: Sequence[str] | str | None = None,
        families: Mapping[str, str] | None = None,
        metric: Sequence[str] = (),
        threshold: float | None = None,
        clustered_by: str | None = None,
        duplicates: Any = "error",
        scale: str = LOGIT,
        anchor: Mapping[Any, float] | None = None,
        seed: int = 0,
        progress: Callable[[float, str], None] | None = None,
    ) -> JudgedLeaderboard:
        """A leaderboard from a long table with a row for each score, or from logs whose scorers are the judges.

        Parameters
        ----------
        judge, criterion, person, item, response : column names
            Of judges, criteria, models, prompts and scores; recognized when they are called so. In logs `judge` is
            "scorer".
        human : names of judges, optional
            Their severity is 0. By default those whose names begin with "human".
        families : mapping from a name to a family, optional
            Of models and judges; by default the word that a name begins with, as gpt of openai/gpt-4o.
        metric : names of scorers
            Of logs: those that count, by default all.
        threshold : float, optional
            Scores above it are right, the others wrong; by default scores are ordered categories.
        clustered_by : column name, optional
            Prompts of one cluster may be alike: errors allow for it. Runs of a prompt are a cluster by themselves.
        """
        if progress is not None:
            progress(0.0, "reading scores")
        scores = read_scores(
            data,
            judge=judge,
            criterion=criterion,
            person=person,
            item=item,
            response=response,
            human=human,
            families=families,
            metric=metric,
            threshold=threshold,
            clustered_by=clustered_by,
            duplicates=duplicates,
        )
        tell = None if progress is None else (lambda text: progress(0.0, text))
        return cls(scores, scale=scale, anchor=anchor, seed=seed, progress=tell)

    def __repr__(self) -> str:
        n = self.answers
        models = f"{count(len(self.labels), 'model')}, {count(len(self.judges_found), 'judge')}"
        return f"<JudgedLeaderboard: {models}, {count(n.n_persons, 'prompt')}, {count(n.n_responses, 'score')}>"

    @property
    def labels(self) -> NDArray[Any]:
        return self.scores.facets.levels[0]

    @property
    def frame_kind(self) -> str | None:
        return self.answers.frame_kind

    @property
    def judges_found(self) -> NDArray[Any]:
        return self.scores.facets.levels[1]

    @property
    def has_self(self) -> bool:
        return SELF in self.scores.facets.names

    def _fitted(self, without: int | None = None) -> DesignResult:
        """The fit; or quickly that without a judge, for abilities alone."""
        scores = self.scores
        responses = self.answers
        humans = scores.humans
        clusters = scores.cluster
        if without is not None:
            _, judge = scores.facets.column(JUDGE)
            responses = responses.take_items(judge != without)
            humans = tuple(name for name in humans if name != self.judges_found[without])
            clusters = None
        facets = responses.facets
        assert facets is not None
        levels = dict(zip(facets.names, facets.levels, strict=True))
        names = [name for name in facets.facet_names if len(levels[name]) > 1]
        known = {JUDGE: dict.fromkeys(humans, 0.0)} if humans and JUDGE in names else {}
        design = LinearDesign(" + ".join([ITEMS, *names]), anchors=known, numbers=(SELF,)).of(
            responses, scale=not responses.thresholds.binary
        )
        return design_fit(
            responses,
            design,
            clusters=clusters,
            unbiased=without is None,
            se="auto" if without is None else "none",
            tell=self.tell,
        )

    @cached_property
    def _result(self) -> DesignResult:
        self.tell("abilities of the models, severities of the judges")
        result = self._fitted()
        for term in result.design.terms:
            if term.name == SELF and np.abs(result.optimum.open_directions[term.columns]).max(initial=0) > OPEN:
                raise OptionError(
                    f"{self.answers.source}: self-preference cannot be told apart from the severity of judges, since "
                    "no judge scored models of its own and of other families. Say `families={}` to leave it out."
                )
        return result

    @cached_property
    def df(self) -> float:
        """Degrees of freedom of the standard errors."""
        if self.scores.cluster is None:
            return np.inf
        return degrees_of_freedom(self.scores.cluster, self.answers.counts.astype(float))

    @cached_property
    def thresholds(self) -> Floats:
        """Of every combination of model and judge."""
        return np.asarray(self._result.design.matrix @ self._result.eta)

    @property
    def _items(self) -> slice:
        return self._result.design.term(ITEMS).columns

    @cached_property
    def subset(self) -> Ints:
        """Models with the same number can be compared; 0 is the largest set."""
        return np.asarray(self._result.subset[ITEMS])

    @cached_property
    def ability(self) -> Floats:
        """Of each model, in logits; their mean is zero."""
        return -self._result.eta[self._items]

    @cached_property
    def se(self) -> Floats:
        return np.where(self.subset > 0, np.inf, self._result.se[self._items])

    @cached_property
    def covariance(self) -> Floats | None:
        covariance = self._result.covariance
        return None if covariance is None else covariance[self._items, self._items]

    @cached_property
    def easiness(self) -> Floats:
        """Of each prompt, on the scale of the abilities."""
        return abilities(self.answers, self.thresholds, "wle").ability

    @property
    def _scores_of_categories(self) -> Floats:
        codes = self.answers.codes
        assert codes is not None
        return codes[0]

    def expected_score(self, ability: Floats) -> Floats:
        """The mean score of a model of this ability over these prompts under the average judge (a person, if there are
        people among the judges)."""
        offsets = np.zeros(self.answers.thresholds.widest)
        for term in self._result.design.terms:
            if not term.factors:
                first = self.answers.thresholds.of_items(np.array([0]))
                offsets = self._result.design.matrix[first][:, term.columns] @ self._result.eta[term.columns]
        easiness = self.easiness[np.isfinite(self.easiness)]
        layout = Thresholds(np.array([len(offsets)]))
        expected = []
        for value in ability.tolist():
            p = category_probabilities(easiness, layout.cumulated(offsets - value)[0])
            expected.append(float(np.mean(p @ self._scores_of_categories)) if np.isfinite(value) else np.nan)
        return np.array(expected)

    def _means(self, codes: Ints, n: int) -> tuple[Ints, Floats]:
        """How many scores each level of a facet has, and their mean."""
        of_items = np.nan_to_num(self.answers.category_counts) @ self._scores_of_categories
        number = np.bincount(codes, weights=self.answers.item_counts, minlength=n)
        with np.errstate(invalid="ignore"):
            return number.astype(np.int64), np.bincount(codes, weights=of_items, minlength=n) / number

    def model_columns(self) -> Columns:
        """Models from the best down; see docs/reference/files.md."""
        n, score = self._means(self.scores.facets.item, len(self.ability))
        width = self.half_width * np.where(np.isfinite(self.se), self.se, np.nan)
        columns = self.ranked_columns() | {
            "n": n,
            "score": score,
            "fair_score": self.expected_score(self.ability),
            "fair_low": self.expected_score(self.ability - width),
            "fair_high": self.expected_score(self.ability + width),
            "status": np.where(self.subset == 0, "ok", "unlinked").astype(object),
        }
        return self._from_the_best(columns)

    def main_columns(self) -> Columns:
        return self.model_columns()

    @cached_property
    def judge_columns(self) -> Columns:
        """A row for each judge; see docs/reference/files.md."""
        return self._facet_columns(JUDGE)

    @cached_property
    def criterion_columns(self) -> Columns | None:
        """A row for each criterion, or None."""
        return self._facet_columns(CRITERION) if CRITERION in self.scores.facets.names else None

    def _facet_columns(self, name: str) -> Columns:
        self.tell(f"fit of every {name}")
        labels, level = self.scores.facets.column(name)
        n_levels = len(labels)
        n, score = self._means(level, n_levels)
        severity = np.zeros(n_levels)
        se = np.zeros(n_levels)
        status = np.full(n_levels, "ok", dtype=object)
        if n_levels > 1:
            found = self._result.facet(name)
            severity = found["severity"]
            se = found["se"]
            status = found["status"]
        fit = item_statistics(self.answers, self.thresholds, self.easiness, level, n_levels)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope_z = (fit["discrimination"] - 1) / fit["discrimination_se"]
        width = self.half_width
        columns: Columns = {
            name: labels,
            "severity": severity,
            "se": se,
            "ci_low": severity - width * se,
            "ci_high": severity + width * se,
            "n": n,
            "score": score,
            **{key: fit[key] for key in ("infit", "infit_z", "outfit", "outfit_z")},
            "sensitivity": fit["discrimination"],
            "sensitivity_se": fit["discrimination_se"],
            "p_holm": adjust_p(two_sided(slope_z), "holm"),
        }
        if name == JUDGE:
            met = self._agreement
            columns |= {"agreement": met.observed, "agreement_expected": met.expected}
            missing = [self.scores.missing.get(label, 0) for label in labels.tolist()]
            columns["missing"] = np.array(missing, dtype=np.int64)
        return columns | {"status": status}

    @cached_property
    def _agreement(self) -> Agreement:
        """Of each judge, over the answers that it and another scored: the share of equal scores."""
        facets = self.scores.facets
        labels, judge = facets.column(JUDGE)
        others = [k for k, name in enumerate(facets.names) if name not in (JUDGE, SELF)]
        thing = np.unique(facets.codes[:, others], axis=0, return_inverse=True)[1].ravel()
        cumulated = self.answers.thresholds.cumulated(self.thresholds)
        arguments = (self.answers.thresholds, cumulated, thing, judge, len(labels))
        pairs, alike, expected = self.answers.entries.sum(_agreements, *arguments, persons=(self.easiness,))
        with np.errstate(invalid="ignore"):
            return Agreement(alike / pairs, expected / pairs)

    @cached_property
    def self_preference(self) -> SelfPreference | None:
        """What judges add for models of their own family, in logits; None where there are no families."""
        result = self._result
        term = next((term for term in result.design.terms if term.name == SELF), None)
        if term is None:
            return None
        estimate = -float(result.effect[term.columns][0])
        se = float(result.effect_se[term.columns][0])
        width = self.half_width
        p = float(two_sided(estimate / se, self.df))
        return SelfPreference(estimate, se, estimate - width * se, estimate + width * se, p)

    @cached_property
    def without_columns(self) -> Columns:
        """The ranks of the models on boards without each judge; see docs/reference/files.md."""
        rows: dict[str, list[Any]] = {"without": [], "model": [], "rank": [], "rank_change": [], "ability": []}
        rank = places(self.ability)
        for k, judge in enumerate(self.judges_found.tolist() if len(self.judges_found) > 1 else []):
            self.tell(f"the board without {judge}")
            result = self._fitted(without=k)
            assert self.answers.facets is not None
            models = result.design.facets.items
            ability = -result.eta[result.design.term(ITEMS).columns]
            for model, value, place in zip(models.tolist(), ability.tolist(), places(ability).tolist(), strict=True):
                before = int(rank[int(np.flatnonzero(self.labels == model)[0])])
                for name, cell in zip(rows, (judge, model, place, place - before, value), strict=True):
                    rows[name].append(cell)
        texts = ("without", "model")
        return {name: np.array(cells, dtype=object if name in texts else None) for name, cells in rows.items()}

    def contrast_columns(self) -> Columns:
        """Every two models, the better first."""
        first, second = np.triu_indices(len(self.order), 1)
        a = self.order[first]
        b = self.order[second]
        tests = self.tests
        return {
            "model": self.labels[a],
            "other": self.labels[b],
            "difference": self.ability[a] - self.ability[b],
            "se": tests.se[a, b],
            "z": tests.z[a, b],
            "p_adjusted": tests.p[a, b],
        }

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is odd about scores, models and judges."""
        return tuple(_findings(self))

    def models(self) -> Table:
        """The models as a dataframe."""
        return self._as_table(self.model_columns())

    def judges(self) -> Table:
        """The judges as a dataframe."""
        return self._as_table(self.judge_columns)

    def without(self) -> Table:
        """The ranks without each judge as a dataframe."""
        return self._as_table(self.without_columns)

    def contrasts(self) -> Table:
        """The pairs of models as a dataframe."""
        return self._as_table(self.contrast_columns())

    @property
    def page(self) -> JudgedPage:
        from spectral_irt.leaderboard.judged_page import JudgedPage

        return JudgedPage(self)


class Agreement(NamedTuple):
    """Of each judge: how often another gave the same score to an answer, and what the model expects."""

    observed: Floats
    expected: Floats


def _agreements(
    block: Block, easiness: Floats, layout: Thresholds, cumulated: Floats, thing: Ints, judge: Ints, n_judges: int
) -> Floats:
    """Pairs of scores of one answer by two judges, by judge: how many, how many alike, and how many are expected."""
    indptr, items, x = answered_items(block, layout)
    person = np.repeat(np.arange(block.n_persons), np.diff(indptr))
    theta = np.nan_to_num(easiness)[person]
    p = category_probabilities(theta, cumulated[items])
    _, answer = np.unique(person * np.int64(thing.max(initial=0) + 1) + thing[items], return_inverse=True)
    answer = answer.ravel()
    pairs = np.bincount(answer)[answer] - 1.0
    rating = np.unique(answer * np.int64(layout.widest + 1) + x, return_inverse=True)[1].ravel()
    alike = np.bincount(rating)[rating] - 1.0
    expected = np.zeros(len(p))
    for of_category in p.T:
        expected += of_category * (np.bincount(answer, of_category)[answer] - of_category)
    return np.array([np.bincount(judge[items], each, n_judges) for each in (pairs, alike, expected)])


def _findings(board: JudgedLeaderboard) -> Iterator[Finding]:
    """Each rule with its sentence."""
    yield from board.scores.notes
    for rule in (_unlinked, _self_preference, _insensitive, _without_changes_first, _clusters):
        yield from rule(board)
    for finding in board._result.findings():
        if finding.code not in ("disjoint_subsets", "bias_correction"):
            sentence = str(finding.sentence)
            for of_items in ("thresholds of items", "locations of items"):
                sentence = sentence.replace(of_items, "models")
            yield replace(finding, sentence=sentence)


def _unlinked(board: JudgedLeaderboard) -> Iterator[Finding]:
    for name, labels in ((ITEMS, board.labels), (JUDGE, board.judges_found)):
        subset = board._result.subset.get(name, np.zeros(1, dtype=np.int64))
        n_sets = int(subset.max()) + 1
        if n_sets > 1:
            what = "model" if name == ITEMS else name
            outside = labels[subset > 0].tolist()
            sentence = (
                f"The {what}s fall into {n_sets:,} groups that no common prompt, judge or model links, so that those "
                f"of different groups cannot be compared. Outside the largest: {listed(outside)}."
            )
            remedy = "Have some answers of both groups scored by one judge."
            yield Finding("disconnected", "warning", sentence, remedy, tuple(outside))


def _self_preference(board: JudgedLeaderboard) -> Iterator[Finding]:
    found = board.self_preference
    if found is None:
        return
    interval = f"95% from {found.low:+.2f} to {found.high:+.2f}, {p_value(found.p)}"
    by_names = f"Of one family: {about_families(board.scores)}."
    if found.p >= LEVEL:
        sentence = (
            f"No self-preference seen: judges give {found.estimate:+.2f} logits to models of their family ({interval})."
        )
        yield Finding("self_preference", "note", f"{sentence} {by_names}")
        return
    more = "more" if found.estimate > 0 else "less"
    sentence = (
        f"Judges give {abs(found.estimate):.2f} logits {more} to models of their own family than to others "
        f"({interval}); abilities and fair scores are without it. {by_names}"
    )
    yield Finding("self_preference", "warning", sentence, "Have models judged by other families, or by several.")


def _insensitive(board: JudgedLeaderboard) -> Iterator[Finding]:
    judges = board.judge_columns
    slope = judges["sensitivity"]
    for less, odd in (("less", slope < LARGE_SLOPE[0]), ("more", slope > LARGE_SLOPE[1])):
        named = judges[JUDGE][odd & (judges["p_holm"] < LEVEL)].tolist()
        if named and len(judges[JUDGE]) > 1:
            tell = "tells" if len(named) == 1 else "tell"
            sentence = f"{count(len(named), 'judge')} {tell} answers apart {less} than all together: {listed(named)}."
            yield Finding("judge_sensitivity", "note", sentence, "The board weighs all judges alike.", tuple(named))


def _without_changes_first(board: JudgedLeaderboard) -> Iterator[Finding]:
    table = board.without_columns
    best = board.labels[board.order[0]]
    first = (table["model"] == best) & (table["rank_change"] > 0)
    if first.any():
        judges = table["without"][first].tolist()
        sentence = f"Without {listed(judges)} {best} would not be first."
        yield Finding("judge_decides", "note", sentence, "without.csv has the board without each judge.", tuple(judges))


def _clusters(board: JudgedLeaderboard) -> Iterator[Finding]:
    if board.scores.cluster is not None:
        n = int(board.scores.cluster.max()) + 1
        sentence = f"Standard errors allow for {count(n, board.scores.cluster_word)}, within which scores may be alike."
        yield Finding("clustered", "note", sentence)
