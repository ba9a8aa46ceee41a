"""Contestants with abilities, ranks and tiers, from votes about two of them at a time.

A vote is a person with two responses, conditioned on their sum. That is the likelihood of Bradley and Terry (1952),

    log P(a wins) / P(b wins) = ability_a - ability_b + position + sum of effect x covariate,

and with ties, one point for each of both, that of Davidson (1970): P(tie) = nu sqrt(P(a wins) P(b wins)), a rating
scale of three categories. Position and covariates are numbers of whoever stands first (`LinearDesign.numbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectral_irt.calibration import Calibration, Provenance
from spectral_irt.conditional.two_responses import TwoResponses
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints, Thresholds
from spectral_irt.data.facets import Facets
from spectral_irt.errors import DesignError, OptionError, check_option
from spectral_irt.estimators.linear_design import ITEMS, LinearDesign
from spectral_irt.estimators.linear_fit import OPEN, DesignResult, design_fit
from spectral_irt.inference.groups.sampling import degrees_of_freedom
from spectral_irt.inference.results import two_sided
from spectral_irt.leaderboard.ranked import RankedBoard
from spectral_irt.leaderboard.scale import LOGIT
from spectral_irt.pairs import fit
from spectral_irt.pairs.findings import findings_of
from spectral_irt.pairs.source import Votes, read_votes
from spectral_irt.tables import Columns, Table

if TYPE_CHECKING:
    from spectral_irt.pairs.page import PairsPage

POSITION = "position"
TIE = "tie"
TAKEN = (ITEMS, "item", POSITION, TIE)  # names of effects and terms that a covariate cannot have
# Precision of the prior where votes between some contestants all went one way, so that likelihood alone puts them
# infinitely far apart: a normal with sd 2 logits, wider than abilities are as a rule.
ONE_WAY_PRECISION = 0.25
SE = ("auto", "information")


class Effect(NamedTuple):
    """What adds to the log odds that the first contestant wins."""

    name: str
    estimate: float
    se: float
    p: float


class Pairs(RankedBoard):
    """Contestants with abilities, intervals, ranks and tiers, from votes.

    Parameters
    ----------
    votes : Votes
        As `read_votes` makes them; usually `Pairs.read` does.
    scale : "logit" or "elo"
        In logits with mean 0, or in Elo points with mean 1000.
    anchor : mapping from a contestant to a value, optional
        The value of one contestant on that scale, in the place of the mean.
    se : "auto" or "information"
        "auto" (default): the sandwich over votes, or over clusters of them, not below the model's own errors;
        "information": the model's own.
    seed : int
        Of the draws behind ranks and triples.

    Examples
    --------
    >>> import polars as pl
    >>> votes = pl.DataFrame({"model_a": ["m", "m", "k", "k"], "model_b": ["k", "k", "m", "m"], "winner": [1, 1, 2, 1]})
    >>> board = Pairs.read(votes)
    >>> board
    <Pairs: 2 contestants, 4 votes>
    >>> [round(x, 3) for x in board.ability.tolist()]  # m won 3 of 4: log 3 apart
    [-0.549, 0.549]
    """

    noun = "contestant"

    def __init__(
        self,
        votes: Votes,
        *,
        scale: str = LOGIT,
        anchor: Mapping[Any, float] | None = None,
        se: str = "auto",
        seed: int = 0,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        check_option("se", se, SE)
        super().__init__(scale, anchor, seed, progress)
        self.votes = votes
        self._se = se
        wrong = [name for name in votes.covariate_names if name in TAKEN]
        if wrong:
            raise OptionError(f"the covariate {wrong[0]!r} has the name of another effect; rename the column.")

    @classmethod
    def read(
        cls,
        data: Any,
        *,
        contestants: Sequence[str] | str | None = None,
        winner: str | None = None,
        position: bool = False,
        covariates: Sequence[str] | str = (),
        judge: str | None = None,
        clustered_by: str | None = None,
        count: str | None = None,
        scale: str = LOGIT,
        anchor: Mapping[Any, float] | None = None,
        se: str = "auto",
        seed: int = 0,
        progress: Callable[[float, str], None] | None = None,
    ) -> Pairs:
        """Contestants from a table with a row for each vote: files or a dataframe.

        Parameters
        ----------
        contestants : two column names, optional
            As a list, or with a comma between; by default columns such as model_a and model_b, first and second,
            player1 and player2.
        winner : column name, optional
            It holds the name of the winner, first or second, model_a or model_b, 1 or 2; or tie, draw, both_bad.
        position : bool
            Whether to estimate the advantage of standing first.
        covariates : column names
            Numbers, by how much the first contestant has more of something than the second, such as length.
        judge : column name, optional
            Who judged; `judges()` says how well each agrees with all. Recognized when it is called judge.
        clustered_by : column name, optional
            Votes of one cluster (voter, prompt) may be alike: errors allow for it.
        count : column name, optional
            How many votes a row stands for.
        """
        votes = read_votes(
            data,
            contestants=contestants,
            winner=winner,
            position=position,
            covariates=covariates,
            judge=judge,
            clustered_by=clustered_by,
            count=count,
            progress=progress,
        )
        tell = None if progress is None else (lambda text: progress(0.0, text))
        return cls(votes, scale=scale, anchor=anchor, se=se, seed=seed, progress=tell)

    def __repr__(self) -> str:
        return f"<Pairs: {len(self.labels):,} contestants, {self.votes.n:,} votes>"

    @property
    def labels(self) -> NDArray[Any]:
        return np.array(self.votes.contestants, dtype=object)

    @property
    def frame_kind(self) -> str | None:
        return self.votes.frame_kind

    @cached_property
    def responses(self) -> Responses:
        """Votes as persons with two responses: that of the contestant who stands first, and that of the other."""
        votes = self.votes
        m = len(votes.contestants)
        names = (*((POSITION,) if votes.position else ()), *votes.covariate_names)
        place = np.full(votes.n, 0)
        if len(votes.covariate_names):
            place = m + np.arange(votes.n)  # numbers of its own
        elif votes.position:
            place = m + votes.first
        else:
            place = votes.first
        used, item = np.unique(np.concatenate([place, votes.second]), return_inverse=True)
        highest = 2 if votes.has_ties else 1
        points = np.concatenate([votes.points, 2 - votes.points])
        about: dict[str, Any] = {"source": votes.source, "words": ("votes", "contestants")}
        if names:
            about["facets"] = self._facets(names, used)
        else:
            used = used.astype(np.int64)
        persons = np.arange(votes.n)
        return Responses.from_codes(
            np.concatenate([persons, persons]),
            item.ravel(),
            points if votes.has_ties else points // 2,
            persons=persons,
            items=self.labels[used] if not names else np.arange(len(used)),
            thresholds=Thresholds(np.full(len(used), highest)),
            **about,
        )

    def _facets(self, names: tuple[str, ...], used: Ints) -> Facets:
        """The contestant of each combination, and the numbers that it has where it stands first."""
        votes = self.votes
        m = len(votes.contestants)
        stands_first = used >= m
        contestant = np.where(stands_first, 0, used)
        numbers = np.zeros((len(used), len(names)))
        if votes.covariate_names:
            contestant[stands_first] = votes.first[used[stands_first] - m]
            numbers[stands_first, len(names) - len(votes.covariate_names) :] = votes.covariates[used[stands_first] - m]
        else:
            contestant[stands_first] = used[stands_first] - m
        if votes.position:
            numbers[stands_first, 0] = 1.0
        columns = [np.unique(column, return_inverse=True) for column in numbers.T]
        levels = (self.labels, *(values for values, _ in columns))
        codes = np.stack([contestant, *(code.ravel() for _, code in columns)], axis=1)
        return Facets(("item", *names), levels, codes)

    @cached_property
    def subset(self) -> Ints:
        """Contestants with the same number met each other, directly or through others; 0 is the largest part."""
        return self._components("weak")

    @cached_property
    def one_way(self) -> Ints:
        """Contestants with the same number also lost to each other, directly or through others."""
        return self._components("strong")

    def _components(self, connection: str) -> Ints:
        from scipy.sparse.csgraph import connected_components

        from spectral_irt.chain.stationary import by_size

        votes = self.votes
        points = votes.points.astype(np.float64)
        graph = votes.table(points) + votes.table(2 - points).T
        return by_size(connected_components(sparse.csr_array(graph), connection=connection)[1])

    @property
    def needs_prior(self) -> bool:
        """Whether votes between some contestants who met all went one way."""
        return int(self.one_way.max()) > int(self.subset.max())

    @cached_property
    def _result(self) -> DesignResult:
        votes = self.votes
        self.tell("abilities of the contestants")
        if len(votes.contestants) < 2:
            raise DesignError(
                f"{votes.source}: there is one contestant, {votes.contestants[0]!r}, and nothing to compare."
            )
        responses = self.responses
        names = () if responses.facets is None else responses.facets.facet_names
        design = LinearDesign(numbers=names).of(responses, scale=votes.has_ties)
        clusters = None
        if votes.cluster is not None:
            clusters = np.unique(votes.cluster, return_inverse=True)[1].ravel()
        result = design_fit(
            responses,
            design,
            regularization=ONE_WAY_PRECISION if self.needs_prior else 0,
            se=self._se,
            clusters=clusters,
            likelihood=TwoResponses(responses),
            tell=self.tell,
        )
        for term in design.terms:
            if term.name in names and np.abs(result.optimum.open_directions[term.columns]).max(initial=0) > OPEN:
                raise OptionError(
                    f"{votes.source}: the votes do not tell the effect of {term.name!r} apart from the others, or from "
                    "the contestants: it is the same in all votes, or a sum of others. Leave it out."
                )
        return result

    @property
    def _unit(self) -> float:
        """Log odds of winning to losing are so many logits of a response: with ties the winner has two points."""
        return 2.0 if self.votes.has_ties else 1.0

    @cached_property
    def calibration(self) -> Calibration:
        """The contestants as items, in logits of a response: difficulty is minus ability, or minus half of it where
        there are ties."""
        result = self._result
        calibration = result.items(self.responses)
        provenance = Provenance(
            estimator="Pairs",
            iterations=result.optimum.evaluations,
            residual=result.optimum.move,
            loglik=float(result.optimum.point.loglik),
            se_method=result.se_method,
            se_df=self.df,
        )
        return calibration.replace(provenance=provenance)

    @cached_property
    def df(self) -> float:
        if self.votes.cluster is None:
            return np.inf
        return degrees_of_freedom(self.votes.cluster, np.ones(self.votes.n))

    @cached_property
    def ability(self) -> Floats:
        """Of each contestant, in logits; their mean is zero within each part."""
        return -self._unit * self._result.eta[self._items]

    @cached_property
    def se(self) -> Floats:
        return np.where(self.subset > 0, np.inf, self._unit * self._result.se[self._items])

    @property
    def _items(self) -> slice:
        return self._result.design.term(ITEMS).columns

    @cached_property
    def covariance(self) -> Floats | None:
        """Of the abilities, where they are not too many."""
        covariance = self._result.covariance
        return None if covariance is None else self._unit**2 * covariance[self._items, self._items]

    @cached_property
    def effects_found(self) -> list[Effect]:
        """Position, covariates, and the logarithm of nu where there are ties."""
        found = []
        result = self._result
        for term in result.design.terms:
            if term.name == ITEMS:
                continue
            estimate = -self._unit * float(result.effect[term.columns][0])
            se = self._unit * float(result.effect_se[term.columns][0])
            if not term.factors:  # offsets of the rating scale
                found.append(Effect(TIE, estimate, se, np.nan))
            else:
                found.append(Effect(term.name, estimate, se, float(two_sided(estimate / se, self.df))))
        return found

    @cached_property
    def chances(self) -> fit.Chances:
        """Of each vote, that the first contestant lost, that it was a tie, and that the first won."""
        votes = self.votes
        log_odds = self.ability[votes.first] - self.ability[votes.second]
        tie = -np.inf
        weights = dict(zip(votes.covariate_names, votes.covariates.T, strict=True))
        for effect in self.effects_found:
            if effect.name == TIE:
                tie = effect.estimate
            else:
                log_odds = log_odds + effect.estimate * weights.get(effect.name, 1.0)
        return fit.Chances.of(log_odds, tie)

    @cached_property
    def status(self) -> NDArray[Any]:
        """ "ok"; "extreme": votes against the others all went one way, so that the prior says how far away they are;
        "unlinked": no vote links them with the largest part."""
        status = np.full(len(self.ability), "ok", dtype=object)
        for part in range(int(self.subset.max()) + 1):
            members = self.subset == part
            strong = self.one_way[members]
            status[np.flatnonzero(members)[strong != strong.min()]] = "extreme"
        status[self.subset > 0] = "unlinked"
        return status

    def contestant_columns(self) -> Columns:
        """Contestants from the best down; see docs/reference/files.md."""
        votes = self.votes
        won = votes.of(votes.first[votes.points == 2]) + votes.of(votes.second[votes.points == 0])
        tied = votes.of(np.concatenate([votes.first, votes.second])[np.tile(votes.points == 1, 2)])
        columns = self.ranked_columns() | {
            "n": votes.of(votes.first) + votes.of(votes.second),
            "wins": won,
            "ties": tied,
            "status": self.status,
        }
        return self._from_the_best(columns)

    def main_columns(self) -> Columns:
        return self.contestant_columns()

    def effect_columns(self) -> Columns:
        """What else moves the log odds of winning; see docs/reference/files.md."""
        rows = self.effects_found
        columns: Columns = {"effect": np.array([row.name for row in rows], dtype=object)}
        for name in ("estimate", "se", "p"):
            columns[name] = np.array([getattr(row, name) for row in rows], dtype=float)
        return columns

    @cached_property
    def judge_columns(self) -> Columns | None:
        """How well each judge agrees with the board, or None; see docs/reference/files.md."""
        if self.votes.judge is None:
            return None
        return fit.judge_columns(self.votes, self.chances)

    @cached_property
    def pair_columns(self) -> Columns:
        """Every two contestants who met, or who are not yet told apart; see docs/reference/files.md."""
        self.tell("pairs of contestants")
        return fit.pair_columns(
            self.votes, self.chances, self.order, self.ability, self.tests, self.covariance, self.se
        )

    @cached_property
    def triples(self) -> fit.Triples | None:
        """Triples in which every contestant beat one of the others more often than not."""
        return fit.triples(self.votes, self.chances, self.seed)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is odd about votes, contestants and judges."""
        return tuple(findings_of(self))

    def table(self) -> Table:
        """The contestants as a dataframe."""
        return self._as_table(self.contestant_columns())

    def effects(self) -> Table:
        """Position, covariates and ties as a dataframe."""
        return self._as_table(self.effect_columns())

    def judges(self) -> Table | None:
        """The judges as a dataframe, or None."""
        return None if self.judge_columns is None else self._as_table(self.judge_columns)

    def contrasts(self) -> Table:
        """The pairs as a dataframe."""
        return self._as_table(self.pair_columns)

    @property
    def page(self) -> PairsPage:
        from spectral_irt.pairs.page import PairsPage

        return PairsPage(self)
