"""A short list of prompts, and the score on the whole benchmark that a model's answers to it predict.

The predicted score is what the model got right on the list and what its ability has right on the rest, on average, on a
line through the calibration models. How far predictions err is measured on models left out, a tenth at a time, with
everything made without them; the interval takes the quantile of their errors that holds a new model of the kind in 95%
of cases (conformal prediction, after Vovk).

The commands `shortlist` and `score` call this: `ShortList.choose` and `ShortList.load`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
from spectral_irt.leaderboard.contrasts import dense_block
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
        mean = float(np.nanmean(ability))
        sd = max(float(np.nanstd(ability)), 0.1)
        grid = np.linspace(mean - REACH * sd, mean + REACH * sd, GRID)
        others = np.delete(difficulty, chosen)
        p_of_others = np.zeros(GRID)
        if len(others):
            p_of_others = sigmoid(grid[:, None] - others).mean(axis=1)
        without_line = cls(
            chosen=chosen,
            difficulty=difficulty[chosen],
            grid=grid,
            log_prior=-((grid - mean) ** 2) / (2 * sd**2),
            rest=p_of_others,
            n_all=len(difficulty),
        )
        raw = without_line.raw(table[:, chosen])
        score = table.mean(axis=1)
        variance = float(np.var(raw))
        slope = 1.0
        if variance > 0:
            slope = float(np.cov(raw, score, bias=True)[0, 1] / variance)
        return replace(without_line, line=(slope, float(score.mean() - slope * raw.mean())))

    def ability(self, answers: Floats) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation from answers to the list (models x prompts; NaN: not answered)."""
        p = sigmoid(self.grid - self.difficulty[:, None])
        answered = np.isfinite(answers)
        right = np.where(answered, answers, 0.0)
        wrong = np.where(answered, 1 - answers, 0.0)
        log_weight = right @ np.log(p) + wrong @ np.log1p(-p) + self.log_prior
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        mean = weight @ self.grid
        return mean, np.sqrt(np.maximum(weight @ self.grid**2 - mean**2, 0))

    def raw(self, answers: Floats) -> Floats:
        """The score on everything, before the line."""
        theta = self.ability(answers)[0]
        expected = sigmoid(theta[:, None] - self.difficulty)
        on_list = np.where(np.isfinite(answers), answers, expected).sum(axis=1)
        n_others = self.n_all - len(self.chosen)
        return (on_list + n_others * np.interp(theta, self.grid, self.rest)) / self.n_all

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
        complete = np.flatnonzero(answers.counts == answers.n_items)
        if len(complete) < LEAST:
            raise DesignError(
                f"{answers.source}: {len(complete):,} models answered every prompt, and a short list needs {LEAST} of "
                "them or more: how well it predicts is seen from models that are left out."
            )
        table = dense(answers.take_persons(complete))
        subject = None if by is None else source.attribute(by)
        rng = generator(seed)
        if progress is not None:
            progress("errors of models left out")
        tested = table
        if len(table) > MOST:
            tested = table[np.sort(rng.choice(len(table), MOST, replace=False))]
        score = tested.mean(axis=1)
        predicted, *by_random_lists = left_out(tested, items, subject, rng)
        error = _root_mean_square(predicted - score)
        error_random = _root_mean_square(np.array(by_random_lists) - score)
        calibrated_with = table
        if len(table) > 5 * MOST:
            calibrated_with = table[rng.choice(len(table), 5 * MOST, replace=False)]
        ability, difficulty = calibrated(calibrated_with)
        chosen = spread_out(difficulty, items, subject)
        predictor = Predictor.of(calibrated_with, chosen, ability, difficulty)
        return cls(
            prompts=answers.items[predictor.chosen],
            subject=None if subject is None else subject[predictor.chosen],
            predictor=predictor,
            reach=conformal(np.abs(predicted - score) / _scale(predicted)),
            error=error,
            error_random=error_random,
            n_models=len(tested),
            findings=tuple(_random_is_better(error, error_random)),
        )

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
        half_width = np.where(n >= ENOUGH * len(self.prompts), self.reach * _scale(score), np.nan)
        return {
            "model": answers.persons,
            "n": n,
            "right": np.nansum(x, axis=1).astype(np.int64),
            "ability": ability,
            "se": se,
            "score": score,
            "score_low": np.clip(score - half_width, 0, 1),
            "score_high": np.clip(score + half_width, 0, 1),
        }

    @property
    def sentence(self) -> str:
        """How good it is, beside a random list."""
        gain = 0.0
        if self.error_random > 0:
            gain = 1 - self.error / self.error_random
        less = "less" if gain > 0 else "more"
        beside = f"{abs(gain):.0%} {less} than random lists of the same size"
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
        predictor = self.predictor
        return {
            "kind": KIND,
            "version": VERSION,
            "prompts": self.prompts.tolist(),
            "subject": None if self.subject is None else self.subject.tolist(),
            **{name: getattr(predictor, name).tolist() for name in ARRAYS},
            "n_all": predictor.n_all,
            "line": [*predictor.line],
            **{name: getattr(self, name) for name in NUMBERS},
            "sentence": self.sentence,
        }

    @classmethod
    def load(cls, path: str | Path) -> ShortList:
        """A list that was written."""
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
            kind = record.get("kind")
            version = record.get("version")
            if (kind, version) != (KIND, VERSION):
                raise ValueError(f"version {version!r} of {kind!r}, and what is read is {VERSION}")
            prompts = np.array(record["prompts"], dtype=object)
            subject = record.get("subject")
            if subject is not None:
                subject = np.array(subject, dtype=object)
            predictor = Predictor(
                np.arange(len(prompts)),
                **{name: np.array(record[name], dtype=float) for name in ARRAYS},
                n_all=int(record["n_all"]),
                line=tuple(record["line"]),
            )
            return cls(prompts, subject, predictor, **{name: record[name] for name in NUMBERS})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BankError(f"{str(path)!r} is not a short list that can be read ({error}). Choose it anew.") from None


ARRAYS = ("difficulty", "grid", "log_prior", "rest")  # of a predictor, in a record
NUMBERS = ("reach", "error", "error_random", "n_models")  # of a list


def dense(answers: Responses) -> Floats:
    """People x items, NaN where there is no answer."""
    cells = answers.gather(dense_block, answers.n_items)
    return np.where(cells < 0, np.nan, cells.astype(float))


def calibrated(table: Floats) -> tuple[Floats, Floats]:
    """Abilities of models (rows) and difficulties of prompts (columns), with models as items."""
    by_prompt = Responses.from_wide(table.T)
    difficulty = SpectralRasch(se="none").fit(by_prompt).calibration_.difficulty  # of models
    return -difficulty, -abilities(by_prompt, difficulty, "wle").ability


def spread_out(difficulty: Floats, n: int, subject: NDArray[np.object_] | None = None) -> Ints:
    """`n` prompts spread evenly over subjects and, within them, over difficulties: the middle one of each n-th part.

    >>> spread_out(np.array([0.0, 3.0, 1.0, 2.0]), 2).tolist()
    [2, 1]
    """
    subject_number: NDArray[Any] = np.zeros(len(difficulty))
    if subject is not None:
        subject_number = np.unique(subject.astype(str), return_inverse=True)[1]
    order = np.lexsort((difficulty, subject_number))
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


def _root_mean_square(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _random_is_better(error: float, error_random: float) -> Iterator[Finding]:
    if error > error_random:
        sentence = (
            f"Random lists of the same size predict better ({100 * error_random:.1f} points of error) than this "
            f"one ({100 * error:.1f})."
        )
        remedy = "Take more prompts, give subjects their share, or draw the list at random."
        yield Finding("random_is_better", "warning", sentence, remedy)


def _scale(score: Floats) -> Floats:
    return np.sqrt(np.maximum(score * (1 - score), 0.01))
