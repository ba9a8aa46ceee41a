"""A race of models: who can still be the best, whom to run on the next prompts, and when to stop.

Only prompts count that exactly one of two models has right. Each is a fair coin where both are equally able, however
hard the prompt is. With k of n for A, a mixture over P(A) above one half with the density of Beta(a, a),

    e = 2^(n+1) B(k + a, n - k + a) / B(a, a) P(Beta(k + a, n - k + a) > 1/2),

is an e-process: where B is as able as A or better it ever reaches 1 / alpha with a chance of at most alpha (Ville), so
that one may look after every prompt and stop at any time. A model leaves the race when another beats it at
e >= m (m - 1) / alpha: in at least 1 - alpha of all races of m models nobody is left out by a model that is no better.
Which models run on a prompt must be settled before its answers are seen. Nothing is kept: the course of the race
follows from the logs so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from scipy.special import betainc, betaln

from spectral_irt import __version__
from spectral_irt.analysis.folder import finding_record, record_head
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.design import Mask
from spectral_irt.errors import DesignError, OptionError
from spectral_irt.leaderboard.findings import of_the_table
from spectral_irt.leaderboard.ranked_page import PROMPTS, Contents, page_table, write_results
from spectral_irt.leaderboard.source import Source, read_source
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import name_rows
from spectral_irt.plots.style import BLUE, GRAY, dress, note, rows_height
from spectral_irt.report.blocks import Column, DataTable, Section, Text, picture
from spectral_irt.report.overview import finding_blocks
from spectral_irt.report.page import rendered
from spectral_irt.tables import Columns, Table, make_table, rows_of
from spectral_irt.text import count, listed, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECORD = "race.json"
PICTURE = "course.svg"
SHAPE = 1.0  # a: every chance above one half alike; 5 or 20 need no fewer runs
LEVEL = 0.05
LOOK = 10  # prompts between two looks: finer ones end a race hardly earlier
LEAST_CHANCE = 1e-300
MODELS_DRAWN = 60
COLUMNS = [Column("model", "model"), Column("state", "state"), Column("n", "prompts", 0), Column("right", "right", 0)]
COLUMNS += [Column("accuracy", "accuracy", 3), Column("out_after", "out after", 0), Column("beaten_by", "beaten by")]
COLUMNS += [Column("e", "evidence against (e)", 1)]


def log_evidence(won: Floats, lost: Floats) -> Floats:
    """The logarithm of e that A, who alone has `won` prompts right, is better than B, who alone has `lost`.

    >>> np.exp(log_evidence(np.array([0.0, 10.0, 5.0]), np.array([0.0, 0.0, 5.0]))).round(1).tolist()
    [1.0, 186.1, 0.4]
    """
    a = won + SHAPE
    b = lost + SHAPE
    above_half = np.maximum(betainc(b, a, 0.5), LEAST_CHANCE)
    evidence: Floats = (won + lost + 1) * np.log(2) + betaln(a, b) - betaln(SHAPE, SHAPE) + np.log(above_half)
    return evidence


class Course(NamedTuple):
    """How the race went: who is in it, after how many prompts each of the others was out and who beat it (-1: nobody),
    the logarithm of the evidence then, or the largest so far; and how many of the answers a race needed."""

    inside: Mask
    out_after: Ints
    beaten_by: Ints
    log_e: Floats
    runs: int
    wins: Floats  # of prompts up to the end of the race: the row alone is right


def course(right: Floats, answered: Floats, *, level: float = LEVEL, look: int = LOOK) -> Course:
    """The race on prompts in their order: models x prompts, 1 where the answer is right, and where there is one.

    Models that are out count no more, whatever else they answered.
    """
    m, n_prompts = right.shape
    limit = np.log(m * (m - 1) / level)
    inside = np.ones(m, dtype=bool)
    out_after = np.full(m, -1, dtype=np.int64)
    beaten_by = np.full(m, -1, dtype=np.int64)
    log_e = np.zeros(m)
    wins = np.zeros((m, m))
    runs = 0
    for start in range(0, n_prompts, look):
        some = slice(start, start + look)
        running = np.flatnonzero(inside)
        if len(running) < 2:
            break
        of_running = answered[running, some]
        runs += int(of_running.sum())
        correct = right[running, some] * of_running
        wrong = of_running - correct
        among = np.ix_(running, running)
        wins[among] += correct @ wrong.T
        evidence = log_evidence(wins[among], wins[among].T)
        np.fill_diagonal(evidence, -np.inf)
        largest = evidence.max(axis=0)
        log_e[running] = largest
        out = largest >= limit
        inside[running[out]] = False
        out_after[running[out]] = min(start + look, n_prompts)
        beaten_by[running[out]] = running[evidence.argmax(axis=0)[out]]
    return Course(inside, out_after, beaten_by, log_e, runs, wins)


@dataclass(eq=False)
class Race:
    """Models that can still be the best, from the answers so far.

    Parameters
    ----------
    source : Source or Responses
        Models are rows (people) and prompts columns (items), in the order in which they were run.
    level : float
        The chance that a model is ever left out by one that is no better.
    next_prompts : int
        How many prompts to name for the models that are left.

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> data = simulate.rasch(6, 300, seed=1)
    >>> race = Race(data.responses)
    >>> bool(race.inside[data.ability.argmax()])
    True
    """

    source: Source | Responses
    level: float = LEVEL
    next_prompts: int = 0
    all_prompts: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise OptionError(f"`level` is {self.level}; it lies between 0 and 1.")
        if self.answers.n_persons < 2:
            raise DesignError(f"{self.answers.source}: a race needs two models; there is {self.answers.n_persons}.")

    @classmethod
    def read(
        cls, paths: Any, *, level: float = LEVEL, next_prompts: int = 0, all_prompts: Any = (), **options: Any
    ) -> Race:
        """A race from logs of a harness or a table of models and prompts; the options are those of `read_source`.
        `all_prompts` are the labels of the prompts that may be run, in the order in which they are."""
        return cls(read_source(paths, **options), level, next_prompts, tuple(all_prompts))

    @property
    def answers(self) -> Responses:
        return self.source.answers if isinstance(self.source, Source) else self.source

    @cached_property
    def course(self) -> Course:
        """The race so far."""
        answers = self.answers
        shape = (answers.n_persons, answers.n_items)
        answered = np.zeros(shape)
        right = np.zeros(shape)
        model, prompt, correct = answers.answers()
        answered[model, prompt] = 1
        right[model, prompt] = correct
        return course(right, answered, level=self.level)

    @property
    def inside(self) -> Mask:
        """Which models can still be the best."""
        return self.course.inside

    @cached_property
    def leader(self) -> int:
        """The model in the race that is right most often where the others in it are not, less the reverse."""
        inside = np.flatnonzero(self.inside)
        wins = self.course.wins[np.ix_(inside, inside)]
        return int(inside[np.argmax((wins - wins.T).sum(axis=1))])

    @cached_property
    def more_prompts(self) -> float:
        """About how many prompts more would decide between the leader and the nearest of those in the race, if they go
        on as they did; infinite where these are even."""
        inside = np.flatnonzero(self.inside)
        others = inside[inside != self.leader]
        if not len(others):
            return 0.0
        won = self.course.wins[self.leader, others]
        lost = self.course.wins[others, self.leader]
        m = len(self.inside)
        missing = np.log(m * (m - 1) / self.level) - log_evidence(won, lost)
        both = self.answers.counts[others]
        share = (won + 0.5) / (won + lost + 1)
        # What a prompt adds to the logarithm of e: the chance that it counts, times its divergence from a fair coin.
        each = (won + lost) / np.maximum(both, 1) * (share * np.log(2 * share) + (1 - share) * np.log(2 * (1 - share)))
        with np.errstate(divide="ignore"):
            needed = np.where((won > lost) & (each > 0), missing / each, np.inf)
        return float(np.max(np.ceil(np.maximum(needed, 1.0))))

    def next_runs(self) -> Columns:
        """Which models to run on which prompts next: those in the race, on prompts that not all of them answered."""
        answers = self.answers
        inside = np.flatnonzero(self.inside)
        names = answers.items.tolist()
        known = set(names)
        prompts = [*names, *(label for label in self.all_prompts if label not in known)]
        model, prompt, _ = answers.answers()
        done = np.zeros((answers.n_persons, len(prompts)), dtype=bool)
        done[model, prompt] = True
        missing = ~done[inside]
        chosen = np.flatnonzero(missing.any(axis=0))[: self.next_prompts]
        if len(inside) < 2:
            chosen = chosen[:0]
        place, row = np.nonzero(missing[:, chosen].T)
        labels = np.array(prompts, dtype=object)
        return {"prompt": labels[chosen[place]], "model": answers.persons[inside[row]].astype(object)}

    def model_columns(self) -> Columns:
        """The models: those in the race first; see docs/reference/files.md."""
        answers = self.answers
        found = self.course
        names = answers.persons
        beaten = np.array([str(names[k]) if k >= 0 else "" for k in found.beaten_by.tolist()], dtype=object)
        with np.errstate(invalid="ignore"):
            accuracy = answers.scores / answers.counts
        columns: Columns = {
            "model": names,
            "state": np.where(found.inside, "in the race", "out").astype(object),
            "n": answers.counts,
            "right": answers.scores,
            "accuracy": accuracy,
            "out_after": np.where(found.inside, np.nan, found.out_after.astype(float)),
            "beaten_by": beaten,
            "e": np.exp(np.minimum(found.log_e, 700)),
        }
        net = (found.wins - found.wins.T).sum(axis=1)
        order = np.lexsort((-net, -np.where(found.inside, np.inf, found.out_after), ~found.inside))
        return {name: values[order] for name, values in columns.items()}

    def models(self) -> Table:
        """The models as a dataframe."""
        return make_table(self.model_columns(), self.answers.frame_kind)

    @property
    def headline(self) -> str:
        """Who can still be the best, and whether to stop."""
        answers = self.answers
        m = answers.n_persons
        inside = np.flatnonzero(self.inside)
        names = answers.persons[inside].tolist()
        counts = f"{count(m, 'model')}, {count(answers.n_items, 'prompt')}, {count(answers.n_responses, 'answer')}"
        if len(inside) == 1:
            return f"{counts}. Stop: {names[0]} is the best (chance of error at most {percent(self.level)})."
        more = self.more_prompts
        about = f"about {more:,.0f} prompts more would decide, if they go on as they did"
        if not np.isfinite(more):
            about = "the first of them are even so far, and more prompts may not tell them apart"
        first = answers.persons[self.leader]
        return (
            f"{counts}. {count(len(inside), 'model')} can still be the best: {listed(names)}. {first} leads; {about}."
        )

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings())

    def _findings(self) -> Iterator[Finding]:
        yield from of_the_table(self.answers)
        spared = 1 - self.course.runs / max(self.answers.n_responses, 1)
        if spared > 0.01:
            sentence = f"A race from the start would have needed {percent(1 - spared)} of these answers."
            yield Finding("race_spares", "note", sentence, "Run models that are out on no more prompts.")

    @property
    def plot(self) -> CoursePlot:
        """How long each model was in the race."""
        return CoursePlot(table=self.model_columns(), n_prompts=self.answers.n_items)

    def record(self) -> dict[str, Any]:
        """All of it as data: the content of `race.json`."""
        answers = self.answers
        more = self.more_prompts
        return {
            **record_head(),
            "command": "race",
            "outputs": [],
            "input": {"source": answers.source, "level": self.level},
            "counts": {"models": answers.n_persons, "prompts": answers.n_items, "answers": answers.n_responses},
            "stop": bool(self.inside.sum() == 1),
            "in_the_race": [str(name) for name in answers.persons[self.inside].tolist()],
            "leader": str(answers.persons[self.leader]),
            "more_prompts": more if np.isfinite(more) else None,
            "runs_needed": self.course.runs,
            "models": rows_of(self.model_columns()),
            "next": rows_of(self.next_runs()),
            "findings": [finding_record(finding) for finding in self.findings],
        }

    def write(self, folder: str | Path | None, report: str | Path | None = None, inputs: Any = ()) -> list[Path]:
        """Write tables, JSON and the plot to a folder, and the page; their paths."""

        def contents() -> Contents:
            tables = {"race": self.model_columns()}
            if self.next_prompts:
                tables["next"] = self.next_runs()
            return Contents(tables, RECORD, self.record(), {}, cast("Figure", self.plot.plot().figure), PICTURE)

        place = None if folder is None else Path(folder)
        page = None if report is None else Path(report)
        return write_results(
            contents,
            lambda: rendered(f"Race: {self.answers.source}", _sections(self), __version__),
            place,
            page,
            inputs=inputs,
        )


def _sections(race: Race) -> list[Section]:
    """Models, the course of the race, findings."""
    words = (
        "A model is out when another beats it, on prompts that exactly one of the two has right, at evidence that "
        f"{race.answers.n_persons} equally able models would ever show with a chance of at most {percent(race.level)}, "
        "however often one looks. The evidence against a model is the largest of any other at the last look."
    )
    table = DataTable(
        "race", "Models, those in the race first", tuple(COLUMNS), race.model_columns(), filters=("state",)
    )
    found = [Section((Text(race.headline), table, Text(words)), (), "Models", "models")]
    alt = "How many prompts each model was in the race. The table of models has the numbers."
    found.append(Section((picture(race.plot, alt),), (), "The course of the race", "course"))
    if race.next_prompts and len(race.next_runs()["prompt"]):
        runs = page_table(
            "next", "Runs", [Column("prompt", "prompt"), Column("model", "model")], race.next_runs(), PROMPTS
        )
        found.append(Section(runs, (), "What to run next", "next"))
    blocks = finding_blocks([finding_record(one) for one in race.findings], lambda code: "models")
    found.append(Section(blocks, (), "Findings", "findings"))
    return found


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CoursePlot(Display):
    """How many prompts each model was in the race; models that are still in it reach to the end."""

    table: Columns
    n_prompts: int

    def columns(self) -> Columns:
        return self.table

    def size(self) -> tuple[float, float]:
        return 7.2, rows_height(min(MODELS_DRAWN, len(self.table["model"])))

    def draw(self, ax: Axes) -> None:
        rows = min(len(self.table["model"]), MODELS_DRAWN)
        out_after = self.table["out_after"][:rows]
        inside = np.isnan(out_after)
        dress(ax, "Prompts until a model was beaten", "prompts", "", grid="x")
        length = np.where(inside, self.n_prompts, out_after)
        ax.barh(np.arange(rows), length, height=0.6, color=np.where(inside, BLUE, GRAY).tolist())
        name_rows(ax, self.table["model"][:rows].tolist())
        ax.set_xlim(0, self.n_prompts * 1.02)
        note(ax, "blue: can still be the best")
