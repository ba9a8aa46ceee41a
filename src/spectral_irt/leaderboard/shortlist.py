"""A short list of prompts, and the score on the whole benchmark that a model's answers to it predict: what it got right
on the list and what its ability has right on the rest, on average, on a line through the calibration models. How far
predictions err is measured on models left out, a tenth at a time, with everything made without them; the interval takes
the quantile of their errors that holds a new model of the kind in 95% of cases (conformal prediction, after Vovk)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import BankError, DesignError, OptionError
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.leaderboard.pairs import dense_block
from spectral_irt.leaderboard.source import Source
from spectral_irt.model import sigmoid
from spectral_irt.numerics import generator
from spectral_irt.persons.abilities import abilities
from spectral_irt.tables import Columns
from spectral_irt.text import listed

KIND = "spectral-irt short list"
VERSION = 1
LEVEL = 0.95
FOLDS = 10
LEAST = 20  # models: with fewer than 19 no quantile of their errors holds 95%
MOST = 400  # models whose errors are looked at; a quantile needs no more
RANDOM = 5  # random lists for comparison
GRID = 81  # abilities, within five standard deviations
REACH = 5.0
ENOUGH = 0.9  # of the list that a model has to have answered for an interval

Tell = Callable[[str], None] | None


@dataclass(frozen=True, eq=False)
class Predictor:
    """From answers to a list to the score on everything."""

    chosen: Ints  # positions of the prompts
    difficulty: Floats  # of the chosen ones
    grid: Floats  # abilities
    log_prior: Floats  # their distribution
    rest: Floats  # the mean chance of a right answer to the other prompts at each
    n_all: int
    line: tuple[float, float] = (1.0, 0.0)  # slope and height of the line through the calibration models

    @classmethod
    def of(cls, table: Floats, chosen: Ints, ability: Floats, difficulty: Floats) -> Predictor:
        """The predictor of a list, with the line through these models (rows of the table)."""
        mean, sd = float(np.nanmean(ability)), max(float(np.nanstd(ability)), 0.1)
        grid = np.linspace(mean - REACH * sd, mean + REACH * sd, GRID)
        others = np.delete(difficulty, chosen)
        rest = sigmoid(grid[:, None] - others).mean(axis=1) if len(others) else np.zeros(GRID)
        made = cls(chosen, difficulty[chosen], grid, -((grid - mean) ** 2) / (2 * sd**2), rest, len(difficulty))
        raw, whole = made.raw(table[:, chosen]), table.mean(axis=1)
        spread = float(np.var(raw))
        slope = float(np.cov(raw, whole, bias=True)[0, 1] / spread) if spread > 0 else 1.0
        return replace(made, line=(slope, float(whole.mean() - slope * raw.mean())))

    def ability(self, answers: Floats) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation from answers to the list (models x prompts; NaN: not answered)."""
        p = sigmoid(self.grid - self.difficulty[:, None])
        there = np.isfinite(answers)
        right, wrong = np.where(there, answers, 0.0), np.where(there, 1 - answers, 0.0)
        log = right @ np.log(p) + wrong @ np.log1p(-p) + self.log_prior
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = weight @ self.grid
        return mean, np.sqrt(np.maximum(weight @ self.grid**2 - mean**2, 0))

    def raw(self, answers: Floats) -> Floats:
        """The score on everything, before the line."""
        theta = self.ability(answers)[0]
        at = sigmoid(theta[:, None] - self.difficulty)
        on_list = np.where(np.isfinite(answers), answers, at).sum(axis=1)
        others = self.n_all - len(self.chosen)
        return (on_list + others * np.interp(theta, self.grid, self.rest)) / self.n_all

    def score(self, answers: Floats) -> Floats:
        slope, height = self.line
        return np.clip(slope * self.raw(answers) + height, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class ShortList:
    """Prompts to ask, and what answers to them say of the whole; `ShortList.choose(source, 100)` makes one.

    `error` and `error_random` are the root mean square errors of the score of models that were left out: of this list,
    and of random ones of its size. Half the width of the 95% interval is `reach` times sqrt(score (1 - score)).

    Examples
    --------
    >>> from spectral_irt import simulate
    >>> models = simulate.rasch(40, 150, seed=1).responses
    >>> short = ShortList.choose(models, 20)
    >>> len(short.prompts), short.n_models
    (20, 40)
    """

    prompts: NDArray[np.object_]
    subject: NDArray[np.object_] | None
    predictor: Predictor
    reach: float
    error: float
    error_random: float
    n_models: int
    findings: tuple[Finding, ...] = field(default=())

    @classmethod
    def choose(
        cls,
        source: Source | Responses,
        items: int = 100,
        *,
        by: str | None = None,
        seed: int = 0,
        progress: Tell = None,
    ) -> ShortList:
        """A list of so many prompts, evenly over subjects and difficulties.

        Parameters
        ----------
        source : Source or Responses
            Models as people, prompts as items. Only models that answered every prompt count.
        by : str, optional
            Subjects that have their share of the list: an attribute of the prompts.
        seed : int
            Of random lists, and of who is left out together.
        """
        source = source if isinstance(source, Source) else Source.of(source)
        answers = source.answers
        most = answers.n_items - 1
        if isinstance(items, bool) or items != int(items) or not 2 <= items <= most:
            raise OptionError(f"a short list has from 2 to {most:,} prompts, all but one at most, and not {items!r}.")
        whole = np.flatnonzero(answers.counts == answers.n_items)
        if len(whole) < LEAST:
            raise DesignError(
                f"{answers.source}: {len(whole):,} models answered every prompt, and a short list needs {LEAST} of "
                "them or more: how well it predicts is seen from models that are left out."
            )
        table = dense(answers.take_persons(whole))
        subject = None if by is None else source.attribute(by)
        rng = generator(seed)
        if progress is not None:
            progress("errors of models left out")
        looked = table if len(table) <= MOST else table[np.sort(rng.choice(len(table), MOST, replace=False))]
        truth, (guess, *random) = looked.mean(axis=1), left_out(looked, items, subject, rng)
        error, error_random = (float(np.sqrt(np.mean((one - truth) ** 2))) for one in (guess, np.array(random)))
        findings = []
        if error > error_random:
            said = (
                f"Random lists of the same size predict better ({100 * error_random:.1f} points of error) than this "
                f"one ({100 * error:.1f})."
            )
            remedy = "Take more prompts, give subjects their share, or draw the list at random."
            findings = [Finding("random_is_better", "warning", said, remedy)]
        some = table if len(table) <= 5 * MOST else table[rng.choice(len(table), 5 * MOST, replace=False)]
        ability, difficulty = calibrated(some)
        made = Predictor.of(some, spread_out(difficulty, items, subject), ability, difficulty)
        prompts, subject = answers.items[made.chosen], None if subject is None else subject[made.chosen]
        reach = conformal(np.abs(guess - truth) / _scale(guess))
        return cls(prompts, subject, made, reach, error, error_random, len(looked), tuple(findings))

    def score_columns(self, answers: Responses) -> Columns:
        """Each model: `model, n, right, ability, se, score, score_low, score_high`; the score is that on all
        prompts."""
        place = positions(self.prompts.tolist(), answers.items.tolist())
        if not (place >= 0).any():
            raise BankError(
                f"{answers.source}: none of the prompts of the short list is there, such as {listed(self.prompts[:3])}."
            )
        x = np.full((answers.n_persons, len(self.prompts)), np.nan)
        x[:, place >= 0] = dense(answers.take_items(place[place >= 0]))
        n = np.isfinite(x).sum(axis=1)
        ability, se = self.predictor.ability(x)
        score = self.predictor.score(x)
        half = np.where(n >= ENOUGH * len(self.prompts), self.reach * _scale(score), np.nan)
        low, high = np.clip(score - half, 0, 1), np.clip(score + half, 0, 1)
        columns: Columns = {"model": answers.persons, "n": n, "right": np.nansum(x, axis=1).astype(np.int64)}
        columns |= {"ability": ability, "se": se, "score": score, "score_low": low, "score_high": high}
        return columns

    @property
    def sentence(self) -> str:
        """How good it is, beside a random list."""
        gain = 1 - self.error / self.error_random if self.error_random > 0 else 0.0
        beside = f"{abs(gain):.0%} {'less' if gain > 0 else 'more'} than random lists of the same size"
        return (
            f"{len(self.prompts):,} of {self.predictor.n_all:,} prompts: the score on all of them is predicted with a "
            f"root mean square error of {100 * self.error:.1f} points, {beside} ({100 * self.error_random:.1f}); "
            f"measured on {self.n_models:,} models left out."
        )

    def columns(self) -> Columns:
        """The list."""
        columns: Columns = {"place": np.arange(1, len(self.prompts) + 1), "prompt": self.prompts}
        if self.subject is not None:
            columns["subject"] = self.subject
        return {**columns, "difficulty": self.predictor.difficulty}

    def record(self) -> dict[str, Any]:
        """All of it as data; `ShortList.load` reads it again from a file."""
        made, subject = self.predictor, None if self.subject is None else self.subject.tolist()
        head = {"kind": KIND, "version": VERSION, "prompts": self.prompts.tolist(), "subject": subject}
        arrays = {name: getattr(made, name).tolist() for name in ARRAYS}
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return {**head, **arrays, "n_all": made.n_all, "line": [*made.line], **numbers, "sentence": self.sentence}

    @classmethod
    def load(cls, path: str | Path) -> ShortList:
        """A list that was written."""
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
            kind, version = record.get("kind"), record.get("version")
            if (kind, version) != (KIND, VERSION):
                raise ValueError(f"version {version!r} of {kind!r}, and what is read is {VERSION}")
            arrays = {name: np.array(record[name], dtype=float) for name in ARRAYS}
            prompts = np.array(record["prompts"], dtype=object)
            subject = None if record.get("subject") is None else np.array(record["subject"], dtype=object)
            n_all, line = int(record["n_all"]), tuple(record["line"])
            made = Predictor(np.arange(len(prompts)), **arrays, n_all=n_all, line=line)
            return cls(prompts, subject, made, **{name: record[name] for name in NUMBERS})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BankError(f"{str(path)!r} is not a short list that can be read ({error}). Choose it anew.") from None


ARRAYS = ("difficulty", "grid", "log_prior", "rest")  # of a predictor, in a record
NUMBERS = ("reach", "error", "error_random", "n_models")  # of a list


def dense(answers: Responses) -> Floats:
    """People x items, NaN where there is no answer."""
    found = answers.gather(dense_block, answers.n_items)
    return np.where(found < 0, np.nan, found.astype(float))


def calibrated(table: Floats) -> tuple[Floats, Floats]:
    """Abilities of models (rows) and difficulties of prompts (columns), with models as items."""
    by_prompt = Responses.from_wide(table.T)
    made = SpectralRasch(se="none").fit(by_prompt).calibration_
    return -made.difficulty, -abilities(by_prompt, made.difficulty, "wle").ability


def spread_out(difficulty: Floats, n: int, subject: NDArray[np.object_] | None = None) -> Ints:
    """`n` prompts spread evenly over subjects and, within them, over difficulties: the middle one of each n-th part.

    >>> spread_out(np.array([0.0, 3.0, 1.0, 2.0]), 2).tolist()
    [2, 1]
    """
    first = np.zeros(len(difficulty)) if subject is None else np.unique(subject.astype(str), return_inverse=True)[1]
    order = np.lexsort((difficulty, first))
    ends = np.linspace(0, len(order), min(n, len(order)) + 1).astype(int)
    return order[(ends[:-1] + ends[1:]) // 2]


def left_out(table: Floats, n: int, subject: NDArray[np.object_] | None, rng: np.random.Generator) -> Floats:
    """Scores of all models (columns), each predicted without the model, by a list that is spread out (the first row)
    and by random ones."""
    guess = np.empty((1 + RANDOM, len(table)))
    for some in np.array_split(rng.permutation(len(table)), FOLDS):
        others = np.delete(table, some, axis=0)
        ability, difficulty = calibrated(others)
        lists = [spread_out(difficulty, n, subject)]
        lists += [rng.choice(len(difficulty), n, replace=False) for _ in range(RANDOM)]
        for row, chosen in enumerate(lists):
            guess[row, some] = Predictor.of(others, chosen, ability, difficulty).score(table[some][:, chosen])
    return guess


def conformal(sizes: Floats, level: float = LEVEL) -> float:
    """The size that a further one of the same kind does not exceed with this chance: the ceil((n + 1) level)-th.

    >>> conformal(np.arange(1.0, 40.0))
    38.0
    """
    rank = min(int(np.ceil((len(sizes) + 1) * level)), len(sizes))
    return float(np.sort(sizes)[rank - 1])


def _scale(score: Floats) -> Floats:
    return np.sqrt(np.maximum(score * (1 - score), 0.01))
