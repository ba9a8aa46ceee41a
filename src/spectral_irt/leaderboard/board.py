"""Leaderboard: models ranked by what they answered, with how sure that ranking is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses, as_responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.responses import transpose
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.inference.groups.cluster_errors import with_cluster_errors
from spectral_irt.inference.items.slopes import Slopes, slopes
from spectral_irt.leaderboard import contrasts
from spectral_irt.leaderboard.cohorts import (
    Cohorts,
    against_columns,
    against_findings,
    cohort_columns,
    cohort_findings,
    cohorts_of,
)
from spectral_irt.leaderboard.findings import of_models, of_the_fit, of_the_table
from spectral_irt.leaderboard.prompts import model_families, prompt_columns, prompt_findings, subject_columns
from spectral_irt.leaderboard.ranked import RankedBoard, Tell
from spectral_irt.leaderboard.scale import LOGIT
from spectral_irt.leaderboard.source import BENCHMARK, Source, labels_of, read_source
from spectral_irt.numerics import safe_divide
from spectral_irt.persons.abilities import abilities
from spectral_irt.tables import Columns, Table
from spectral_irt.text import listed

if TYPE_CHECKING:
    from spectral_irt.leaderboard.page import LeaderboardPage


class AlikeModels(NamedTuple):
    """Two numbers for each model: the same for those right equally often on the same prompts, and for copies."""

    score: Ints
    answers: Ints


class ModelFit(NamedTuple):
    """Models as items, and the covariance of their difficulties, if they are few enough."""

    calibration: Calibration
    covariance: Floats | None


class Leaderboard(RankedBoard):
    """Models with abilities, intervals, ranks and tiers, from who answered which prompt right.

    The table is turned round: models are the items of a Rasch model and prompts its people, so that models are compared
    on the prompts they share and errors are over the sampling of prompts.

    Parameters
    ----------
    answers : Source, Responses, array or dataframe
        Models are rows (people), prompts columns (items).
    clustered_by : str or labels, optional
        Prompts of the same cluster (passage, subject) may be answered alike: an attribute of the prompts, or a label
        for each. Runs of the same prompt are a cluster by themselves.
    by : str or labels, optional
        Subjects for tables of their own; by default the benchmarks where there are several.
    cohort : str or labels, optional
        Two sets of prompts, or dates or numbers that `since` cuts: which models do better or worse on the new ones than
        models of the same ability.
    since : str, optional
        The date (2026-05-01) or number from which on prompts are new.
    against : path, optional
        The folder of an older leaderboard: which models rose or fell among those that both have.
    scale : "logit" or "elo"
        Abilities in logits with mean 0, or in Elo points with mean 1000.
    anchor : mapping from a model to a value, optional
        The value of one model on that scale, in the place of the mean.
    seed : int
        Of the draws behind ranks and adjusted p-values.
    progress : callable, optional
        Told in a few words what is being computed.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> data = simulate.rasch(6, 300, seed=1)  # six models, 300 prompts
    >>> board = Leaderboard(data.responses)
    >>> board
    <Leaderboard: 6 models, 300 prompts, 1,800 answers>
    >>> best = board.models()["model"][0]
    >>> bool(best == data.responses.persons[data.ability.argmax()])
    True
    """

    def __init__(
        self,
        answers: Any,
        *,
        clustered_by: Any = None,
        by: Any = None,
        cohort: Any = None,
        since: str | None = None,
        against: str | Path | None = None,
        scale: str = LOGIT,
        anchor: Mapping[Any, float] | None = None,
        seed: int = 0,
        progress: Tell | None = None,
    ) -> None:
        super().__init__(scale, anchor, seed, progress)
        self.source = answers if isinstance(answers, Source) else Source.of(as_responses(answers))
        self.answers: Responses = self.source.answers
        if self.answers.n_persons < 2:
            raise DesignError(
                f"{self.answers.source}: a leaderboard compares models, and there is "
                f"{'only ' + listed(self.answers.persons) if self.answers.n_persons else 'none'}. Read the answers of "
                "two models or more."
            )
        self._clusters = self._labels("clustered_by", clustered_by)
        benchmarks = self.source.attributes.get(BENCHMARK)
        if by is None and benchmarks is not None and len(set(benchmarks.tolist())) > 1:
            by = BENCHMARK
        self._subjects = self._labels("by", by)
        cohort_labels = self._labels("cohort", cohort)
        self.cohorts: Cohorts | None = None
        if cohort_labels is not None:
            self.cohorts = cohorts_of(cohort_labels, cohort if isinstance(cohort, str) else "cohort", since)
        elif since is not None:
            raise OptionError("`since` cuts a column of the prompts; name it with `cohort=`.")
        self._against = None if against is None else Path(against)
        self.cluster_word = clustered_by if isinstance(clustered_by, str) else "cluster"
        self.subject_word = by if isinstance(by, str) else "subject"

    @classmethod
    def read(
        cls,
        paths: Any,
        *,
        clustered_by: str | None = None,
        by: str | None = None,
        cohort: str | None = None,
        since: str | None = None,
        against: str | Path | None = None,
        scale: str = LOGIT,
        anchor: Mapping[Any, float] | None = None,
        seed: int = 0,
        progress: Callable[[float, str], None] | None = None,
        **options: Any,
    ) -> Leaderboard:
        """A leaderboard from logs of a harness, from folders of them, or from a table of models and prompts.

        The options are those of `leaderboard.source.read_source`: `metric`, `threshold`, `duplicates`, `prompts` ...

        Parameters
        ----------
        paths : path, folder, or several
            Logs, or a table.
        clustered_by : str, optional
            A field of the prompts; standard errors allow for dependence among those that share it.
        by : str, optional
            A field of the prompts with their subject.
        cohort, since : str, optional
            A field of the prompts that says which are new: a label, or a date cut at `since`.
        against : path, optional
            The folder of an older leaderboard: which models rose or fell.
        scale : "logit" or "elo"
            Of abilities.
        anchor : mapping, optional
            The value of one model on that scale, instead of the mean.
        seed : int
            Random seed of the rank intervals (default 0).
        progress : callable, optional
            Called with a share and a few words.
        """
        wanted = [name for name in dict.fromkeys((clustered_by, by, cohort)) if name is not None]
        source = read_source(paths, wanted=wanted, progress=progress, **options)
        tell = None if progress is None else (lambda text: progress(0.0, text))
        return cls(
            source,
            clustered_by=clustered_by,
            by=by,
            cohort=cohort,
            since=since,
            against=against,
            scale=scale,
            anchor=anchor,
            seed=seed,
            progress=tell,
        )

    def _labels(self, name: str, given: Any) -> NDArray[Any] | None:
        """A label for each prompt, from the name of an attribute or as they are given."""
        if given is None:
            return None
        if isinstance(given, str):
            return self.source.attribute(given)
        return labels_of(self.answers, f"`{name}`", given)

    def __repr__(self) -> str:
        n = self.answers
        return f"<Leaderboard: {n.n_persons:,} models, {n.n_items:,} prompts, {n.n_responses:,} answers>"

    @cached_property
    def by_prompt(self) -> Responses:
        """The same answers with prompts as people and models as items."""
        return transpose(self.answers)

    @cached_property
    def _alike(self) -> AlikeModels:
        answered, right = self.answers.gather(contrasts.answer_marks, self.answers.n_items)
        return AlikeModels(
            score=contrasts.numbered(answered, self.answers.scores), answers=contrasts.numbered(answered, right)
        )

    @cached_property
    def copies(self) -> list[list[int]]:
        """Groups of models with the same answers to the same prompts."""
        same = self._alike.answers
        several = np.flatnonzero(np.bincount(same) > 1)
        return [np.flatnonzero(same == k).tolist() for k in several if self.answers.counts[same == k][0]]

    @cached_property
    def _model_fit(self) -> ModelFit:
        self.tell("abilities of the models")
        if self.by_prompt.counts.max(initial=0) < 2:
            raise DesignError(
                f"{self.answers.source}: no prompt was answered by two models, so that no two models can be compared. "
                f"Prompts are {listed(self.answers.items)}. Read logs of the same benchmark, in the same version."
            )
        dense = self.answers.n_persons <= KEEP_COVARIANCE
        estimator = _fit(self.by_prompt, "dense" if dense else "auto")
        calibration = contrasts.made_equal(estimator.calibration_, self._alike.score, self._alike.answers)
        clusters = self._clusters
        name = f"clusters ({self.cluster_word})"
        if clusters is None and self.source.repeated:
            clusters = self.source.prompt
            name = "prompts, some of them run several times"
        if clusters is None:
            return ModelFit(calibration, estimator.covariance() if dense else None)
        self.tell("errors for clusters of prompts")
        labels = np.array([None if label == "" else label for label in clusters.tolist()], dtype=object)
        calibration, errors = with_cluster_errors(calibration, self.by_prompt, labels, name=name)
        return ModelFit(calibration, errors.covariance)

    @property
    def calibration(self) -> Calibration:
        """The models as items: difficulty is minus ability."""
        return self._model_fit.calibration

    @property
    def labels(self) -> NDArray[Any]:
        return self.answers.persons

    @property
    def frame_kind(self) -> str | None:
        return self.answers.frame_kind

    @property
    def ability(self) -> Floats:
        """Of each model, in the order of the answers; their mean is zero."""
        return -self.calibration.difficulty

    @property
    def se(self) -> Floats:
        return self.calibration.se

    @property
    def covariance(self) -> Floats | None:
        return self._model_fit.covariance

    @property
    def df(self) -> float:
        return self.calibration.provenance.se_df

    @property
    def subset(self) -> Ints:
        """All are placed by their estimate, those that nothing links too; their errors are infinite."""
        return np.zeros(len(self.labels), dtype=np.int64)

    @cached_property
    def contrasts_found(self) -> contrasts.Contrasts:
        """All pairs of models: differences in ability with p adjusted for all, and exact McNemar."""
        return contrasts.compare_pairs(self.tests, self.has_estimate, self.by_prompt)

    @cached_property
    def easiness(self) -> Floats:
        """Of each prompt, on the scale of the abilities."""
        return abilities(self.by_prompt, self.calibration.difficulty, "wle").ability

    @cached_property
    def slopes(self) -> Slopes:
        """How steeply each prompt rises with the ability of models; see `inference.items.slopes`."""
        self.tell("slopes of the prompts")
        return slopes(self.answers, self.ability)

    def model_columns(self) -> Columns:
        """Models from the best down; see docs/reference/files.md."""
        n = self.answers.counts
        right = self.answers.scores
        columns = self.ranked_columns() | {
            "n": n,
            "right": right,
            "accuracy": safe_divide(right, n, otherwise=np.nan),
            "status": self.calibration.status,
        }
        return self._from_the_best(columns)

    def main_columns(self) -> Columns:
        return self.model_columns()

    def contrast_columns(self) -> Columns:
        """Pairs of models, the better first; see docs/reference/files.md."""
        prompt = self.source.prompt
        return contrasts.contrast_columns(self.contrasts_found, self.order, self.answers, prompt, self.ability)

    @cached_property
    def prompt_columns(self) -> Columns:
        """Every prompt; see docs/reference/files.md."""
        columns = prompt_columns(self.answers, -self.easiness, self.slopes)
        attributes = sorted(self.source.attributes.items(), key=lambda pair: pair[0] != BENCHMARK)  # it comes first
        return {"prompt": columns.pop("prompt"), **dict(attributes), **columns}

    @cached_property
    def subject_columns(self) -> Columns | None:
        """Every subject and model, or None where there are no subjects."""
        if self._subjects is None:
            return None
        self.tell(f"tables by {self.subject_word}")
        return subject_columns(self.by_prompt, self._subjects, self.answers.persons)

    @cached_property
    def cohort_columns(self) -> Columns | None:
        """Each model's own change on the new prompts, or None without cohorts; see docs/reference/files.md."""
        if self.cohorts is None:
            return None
        self.tell("old and new prompts")
        return cohort_columns(self, self.cohorts)

    @cached_property
    def against_columns(self) -> Columns | None:
        """Ranks on this board and on an older one, or None; see docs/reference/files.md."""
        return None if self._against is None else against_columns(self, self._against)

    @cached_property
    def families(self) -> list[list[int]]:
        """Groups of models whose answers go together beyond their abilities."""
        self.tell("families of models")
        return model_families(self.by_prompt, self.ability, self.easiness)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is odd, in the logs, the models and the prompts."""
        return (
            *of_the_table(self.answers),
            *of_the_fit(finding for finding in self.calibration.findings if finding not in self.answers.notes),
            *of_models(self),
            *cohort_findings(self),
            *against_findings(self),
            *prompt_findings(self.prompt_columns),
        )

    def models(self) -> Table:
        """The models as a dataframe."""
        return self._as_table(self.model_columns())

    def contrasts(self) -> Table:
        """The pairs as a dataframe."""
        return self._as_table(self.contrast_columns())

    def prompts(self) -> Table:
        """The prompts as a dataframe."""
        return self._as_table(self.prompt_columns)

    def changes(self) -> Table:
        """Models on old and new prompts as a dataframe."""
        columns = self.cohort_columns
        if columns is None:
            raise OptionError("old and new prompts are compared where `cohort=` says which are which.")
        return self._as_table(columns)

    def subjects(self) -> Table | None:
        """Subjects and models as a dataframe, or None."""
        columns = self.subject_columns
        return None if columns is None else self._as_table(columns)

    @property
    def page(self) -> LeaderboardPage:
        from spectral_irt.leaderboard.page import LeaderboardPage

        return LeaderboardPage(self)

    def markdown(self, most: int | None = None) -> str:
        """The leaderboard as a Markdown table with what is to be said about it.

        Parameters
        ----------
        most : int, optional
            Models at most.
        """
        from spectral_irt.leaderboard.findings import markdown

        return markdown(self, most)

    def every_eval_ever(self, organization: str, *, relationship: str = "third_party") -> list[dict[str, Any]]:
        """A record of Every Eval Ever for each model: ability with its error and interval, and accuracy.

        Parameters
        ----------
        organization : str
            Who ran the models.
        relationship : "first_party", "third_party", "collaborative" or "other"
            Theirs to whoever made the models.
        """
        from spectral_irt.leaderboard.every_eval_ever import records_of

        return records_of(self, organization, relationship)


def _fit(by_prompt: Responses, se: str) -> SpectralRasch:
    """Without a prior where every model has an estimate of its own: a prior draws models with few prompts together."""
    try:
        fit = SpectralRasch(se=se, regularization=0).fit(by_prompt)
        if np.all(fit.status_ == "ok"):
            return fit
    except DesignError:
        pass
    return SpectralRasch(se=se).fit(by_prompt)
