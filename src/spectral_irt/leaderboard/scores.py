"""Scores that judges gave to models' answers: from a long table, or from logs in which every scorer is a judge.

A row is a score: model, prompt, judge, perhaps a criterion and a run. Prompts become the people and models the items,
so that models are compared on the prompts they share; judges and criteria are facets, and where judge and model are of
one family a number of the combination says so. Scores that were not given or not parsed are missing, and counted.
`JudgedLeaderboard.read` and the command `leaderboard` call `read_scores`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Duplicates, Floats, Ints, Thresholds
from spectral_irt.data.facets import Facets
from spectral_irt.data.labels import positions
from spectral_irt.errors import DuplicateResponseError, OptionError, ReadError, ResponseValueError
from spectral_irt.leaderboard.source import coded, frame_of, open_tables, paths_of, whole_table
from spectral_irt.reading.columns import ITEM_NAMES, NAMES_OF_RATINGS, PERSON_NAMES, RESPONSE_NAMES, plain
from spectral_irt.text import count, listed, share

JUDGE = "judge"
CRITERION = "criterion"
SELF = "self_preference"
SCORER = "scorer"  # what `judge` says of logs: every scorer is one
JUDGE_NAMES = frozenset({"judge", "judges", "judgename", "judgeid", "judgemodel", "grader", "gradermodel"})
RUN_NAMES = frozenset({"run", "epoch", "repeat", "repetition", "trial", "attempt"})
STEPS = (1.0, 0.5, 0.25, 0.2, 0.1)  # between neighboring scores
MOST_CATEGORIES = 51
HUMAN = re.compile(r"humans?\b|human[_\d]|people$|person$", re.IGNORECASE)
MANY_MISSING = 0.01  # of the scores: that may change what the results are about


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores:
    """Scores with prompts as people and combinations of model, judge and criterion as items."""

    by_prompt: Responses
    cluster: Ints | None  # of each person, where prompts were run several times or come in clusters
    cluster_word: str
    humans: tuple[str, ...]
    families: Mapping[str, str]  # of models and judges of which a judge is of a model's family
    missing: Mapping[str, int]  # scores that are not there, by judge
    notes: tuple[Finding, ...]

    @property
    def facets(self) -> Facets:
        assert self.by_prompt.facets is not None
        return self.by_prompt.facets


def judge_column(paths: Sequence[Any]) -> str | None:
    """The column of a table that is called like judges; None in logs of a harness."""
    from spectral_irt.eval_logs.collect import find_logs
    from spectral_irt.reading.formats import find_files, open_table

    if any(os.path.isdir(path) for path in paths) or find_logs(paths) is not None:
        return None
    names = map(str, open_table(find_files(paths)[0]).columns)
    return next((name for name in names if plain(name) in JUDGE_NAMES), None)


def read_scores(
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
    duplicates: Duplicates = "error",
) -> Scores:
    """Scores from tables, a dataframe or logs; the parameters are those of `JudgedLeaderboard.read`."""
    given = _score_table(data, judge, metric)
    frame = given.frame
    columns = given.columns
    if clustered_by is not None:
        columns["cluster"] = _named(frame, clustered_by)
    for role, name in (("model", person), ("prompt", item), ("score", response), (CRITERION, criterion)):
        if name is not None:
            columns[role] = _named(frame, name)
    absent = [role for role in ("model", "prompt", "score", JUDGE) if role not in columns]
    if absent:
        raise OptionError(
            f"{given.source}: no column with the {listed(absent)}; the columns are {listed(frame.columns)}."
        )
    table = frame.select(
        *(pl.col(columns[role]).cast(pl.String).str.strip_chars().alias(role) for role in columns if role != "score"),
        _number_of(frame[columns["score"]]).alias("score"),
    )
    return _scores_of(given, table, human, families, threshold, clustered_by, duplicates)


class ScoreTable(NamedTuple):
    """A table of scores: its columns by role, what it is called, the library that it came in, what was said of it."""

    frame: pl.DataFrame
    columns: dict[str, str]
    source: str
    frame_kind: str | None = None
    notes: tuple[Finding, ...] = ()


def _score_table(data: Any, judge: str, metric: Sequence[str]) -> ScoreTable:
    """Tables or a dataframe as they are, or a row for each sample and scorer of logs."""
    from spectral_irt.eval_logs.collect import find_logs

    paths = paths_of(data)
    logs = None if paths is None else find_logs(paths)
    if logs is None:
        table, kind = open_tables(data if paths is None else paths)
        frame = frame_of(table)
        return ScoreTable(frame, _columns(frame, judge), table.name, kind, table.notes)
    if judge not in (JUDGE, SCORER):
        raise OptionError(f"in logs of a harness every scorer is a judge: say `judge={SCORER!r}`, not {judge!r}.")
    roles = {role: role for role in ("model", "prompt", JUDGE, "score", "run")}
    return ScoreTable(_frame_of_logs(logs, metric), roles, f"{len(logs):,} logs")


def _frame_of_logs(files: Sequence[Any], metric: Sequence[str]) -> pl.DataFrame:
    """A row for each sample and scorer."""
    from spectral_irt.eval_logs.log import read_logs

    parts = []
    for file in files:
        for log in read_logs(file) or []:
            wanted = [name for name in log.scores if not metric or name in metric]
            runs = log.repeat if log.repeat is not None else pl.repeat(1, len(log.sample), eager=True)
            for name in wanted:
                about = {"model": pl.repeat(log.model, len(log.sample), eager=True), "prompt": log.prompts()}
                part = pl.DataFrame({**about, "run": runs, "score": log.scores[name].cast(pl.Float64)})
                parts.append(part.with_columns(pl.lit(name).alias(JUDGE)))
    if not parts:
        raise OptionError(f"none of the logs has the metric {listed(metric)}.")
    return pl.concat(parts)


def _named(frame: pl.DataFrame, name: str) -> str:
    if name not in frame.columns:
        raise OptionError(f"the table has no column {name!r}; its columns are {listed(frame.columns)}.")
    return name


def _columns(frame: pl.DataFrame, judge: str) -> dict[str, str]:
    """Columns by role: as they are called."""
    if judge == JUDGE:
        judge = next((name for name in frame.columns if plain(name) in JUDGE_NAMES), judge)
    columns = {JUDGE: _named(frame, judge)}
    known = {
        "model": PERSON_NAMES,
        "prompt": ITEM_NAMES,
        CRITERION: NAMES_OF_RATINGS["item"],
        "run": RUN_NAMES,
        "score": RESPONSE_NAMES | NAMES_OF_RATINGS["response"],
    }
    for role, names in known.items():
        found = [name for name in frame.columns if plain(name) in names and name not in columns.values()]
        # "score" comes before "response", which may be the text of the answer.
        found.sort(key=lambda name: plain(name) not in ("score", "rating", "grade"))
        if found:
            columns[role] = found[0]
    return columns


def _number_of(column: pl.Series) -> pl.Series:
    """Scores as numbers; null where there is none, or none that was parsed."""
    if column.dtype == pl.Boolean:
        column = column.cast(pl.Int8)
    if column.dtype == pl.String:
        column = column.str.strip_chars()
    numbers = column.cast(pl.Float64, strict=False)
    return numbers.set(~numbers.is_finite().fill_null(True), None)


def _scores_of(
    given: ScoreTable,
    table: pl.DataFrame,
    human: Sequence[str] | str | None,
    families: Mapping[str, str] | None,
    threshold: float | None,
    clustered_by: str | None,
    duplicates: Duplicates,
) -> Scores:
    names = [name for name in ("model", "prompt", JUDGE, CRITERION) if name in table.columns]
    nameless = table.select(pl.any_horizontal(pl.col(names).is_null() | (pl.col(names) == ""))).to_series()
    source = given.source
    notes = [*given.notes]
    if nameless.any():
        sentence = f"{share(int(nameless.sum()), len(table), 'row')} without a {', '.join(names)} left out."
        notes.append(Finding("scores_left_out", "warning", sentence, "Complete them if they should count."))
    table = table.filter(~nameless)
    missing = _missing(table)
    notes += _about_missing(missing, len(table))
    table = table.drop_nulls("score")
    if not len(table):
        raise ReadError(f"{source}: no score is a number.")
    category, codes = _categories(table["score"].to_numpy(), threshold, source)
    prompt = table["prompt"]
    if "run" in table.columns:
        prompt = prompt + "#" + table["run"].fill_null("")
    persons, person = coded(prompt)
    levels = [coded(table[name]) for name in names if name != "prompt"]
    combinations, item = np.unique(np.stack([code for _, code in levels], axis=1), axis=0, return_inverse=True)
    labels = [np.array(label, dtype=object) for label, _ in levels]
    judges = labels[1]
    of_family = _families(labels[0], judges, families)
    own = _own_family(labels[0], judges, of_family)[combinations[:, 0], combinations[:, 1]]
    facet_names = ["item", *(name for name in names if name not in ("model", "prompt"))]
    columns = list(combinations.T)
    if 0 < own.sum() < len(own):
        facet_names.append(SELF)
        labels.append(np.array([0.0, 1.0]))
        columns.append(own.astype(np.int64))
    facets = Facets(tuple(facet_names), tuple(labels), np.stack(columns, axis=1))
    n_items = len(combinations)
    try:
        responses = Responses.from_codes(
            person,
            item.ravel(),
            category,
            persons=np.array(persons, dtype=object),
            items=facets.labels(),
            thresholds=Thresholds(np.full(n_items, len(codes) - 1)),
            duplicates=duplicates,
            codes=np.tile(codes, (n_items, 1)),
            facets=facets,
            source=source,
            frame_kind=given.frame_kind,
            words=("prompts", "models"),
        )
    except DuplicateResponseError as error:
        raise DuplicateResponseError(
            error.problem,
            "Several scores by one judge of one answer are runs, told apart by a column called run or epoch, or "
            "criteria, by `criterion=`; or say `duplicates='first' or 'last'` to keep one.",
        ) from None
    cluster_of_row = None
    word = "prompt"
    if clustered_by is not None:
        cluster_of_row = table["cluster"].fill_null("")
        word = clustered_by
    elif "run" in table.columns:
        cluster_of_row = table["prompt"]
    cluster = None
    if cluster_of_row is not None:
        cluster = np.zeros(len(persons), dtype=np.int64)
        cluster[person] = coded(cluster_of_row)[1]
        cluster = np.unique(cluster, return_inverse=True)[1].ravel()
    return Scores(
        by_prompt=responses,
        cluster=cluster,
        cluster_word=word,
        humans=_humans(judges.tolist(), human),
        families={name: family for name, family in of_family.items() if SELF in facet_names},
        missing=missing,
        notes=tuple(notes),
    )


def _missing(table: pl.DataFrame) -> dict[str, int]:
    counts = table.filter(pl.col("score").is_null()).group_by(JUDGE).len().sort("len", JUDGE, descending=[True, False])
    return dict(counts.iter_rows())


def _about_missing(missing: Mapping[str, int], n_rows: int) -> list[Finding]:
    total = sum(missing.values())
    if not total:
        return []
    by_judge = ", ".join(f"{name} {n:,}" for name, n in list(missing.items())[:5])
    sentence = (
        f"{share(total, n_rows, 'score')} {'is' if total == 1 else 'are'} no number (not given, not parsed, NaN) and "
        f"{'counts' if total == 1 else 'count'} as missing, not as low: {by_judge}."
    )
    remedy = "See whether they are of some models more than of others: a refusal to judge is no low score."
    return [Finding("scores_missing", "warning" if total > MANY_MISSING * n_rows else "note", sentence, remedy)]


def _categories(scores: Floats, threshold: float | None, source: str) -> tuple[Ints, Floats]:
    """The category of each score, and the score of each category."""
    if threshold is not None:
        return (scores > threshold).astype(np.int64), np.array([0.0, 1.0])
    lowest = float(scores.min())
    for step in STEPS:
        steps = (scores - lowest) / step
        category = np.round(steps).astype(np.int64)
        if np.abs(steps - category).max() < 1e-6:
            break
    else:
        odd = scores[np.abs(steps - category) > 1e-6][0]
        raise ResponseValueError(
            f"{source}: scores such as {odd:g} are in too fine steps for categories. Round them to tenths or wholes, "
            "or say `threshold=` to count scores above it as right."
        )
    highest = int(category.max())
    if highest == 0:
        raise ResponseValueError(f"{source}: all scores are {lowest:g}, so that they tell nothing apart.")
    if highest >= MOST_CATEGORIES:
        raise ResponseValueError(
            f"{source}: scores from {lowest:g} to {scores.max():g} have {highest + 1:,} categories; up to "
            f"{MOST_CATEGORIES} are possible. Round them to coarser steps, or say `threshold=`."
        )
    codes: Floats = lowest + step * np.arange(highest + 1, dtype=np.float64)
    return category, codes


def family_of(name: str) -> str:
    """The family of a model by its name: the letters that it begins with, after the name of a provider.

    >>> family_of("openai/gpt-4o"), family_of("claude-3-opus"), family_of("GPT-5 mini")
    ('gpt', 'claude', 'gpt')
    """
    letters = re.match(r"[^\W\d_]+", name.rsplit("/", 1)[-1].strip())
    return letters[0].lower() if letters else name.lower()


def _families(models: NDArray[Any], judges: NDArray[Any], given: Mapping[str, str] | None) -> dict[str, str]:
    """The families in which a judge and a model are: as given, or by their names."""
    names = dict.fromkeys([*models.tolist(), *judges.tolist()])
    if given is not None:
        odd = [name for name in given if name not in names]
        if given and len(odd) == len(given):
            raise OptionError(f"`families` names no model and no judge; it names {listed(odd)}.")
        return {name: given[name] for name in names if name in given}
    families = {name: family_of(name) for name in names}
    of_models = {families[name] for name in models.tolist()}
    if len(of_models) == 1:  # "model-1", "model-2": no families
        return {}
    return families


def names_and_families(path: str) -> dict[str, str]:
    """The table of families: columns name and family, or the first two."""
    frame = whole_table([path])
    if frame.width < 2:
        raise ReadError(f"{path} has one column; a table of families has two, name and family.")
    called = [plain(name) for name in frame.columns]
    name = called.index("name") if "name" in called else 0
    family = called.index("family") if "family" in called else 1
    both = frame.select(pl.nth(name).cast(pl.String), pl.nth(family).cast(pl.String)).drop_nulls()
    return dict(both.iter_rows())


def _own_family(models: NDArray[Any], judges: NDArray[Any], families: Mapping[str, str]) -> NDArray[np.bool_]:
    """Models x judges: of one family, or the same."""
    of_models = np.array([families.get(name, "") for name in models.tolist()])
    of_judges = np.array([families.get(name, "") for name in judges.tolist()])
    same_name = positions(judges.tolist(), models.tolist())
    own = (of_models[:, None] == of_judges) & (of_models[:, None] != "")
    judge = np.flatnonzero(same_name >= 0)
    own[same_name[judge], judge] = True
    return np.asarray(own)


def _humans(judges: list[str], human: Sequence[str] | str | None) -> tuple[str, ...]:
    """The judges who are people: as given, or by their names."""
    if human is None:
        return tuple(name for name in judges if HUMAN.match(name))
    given = [name.strip() for name in human.split(",")] if isinstance(human, str) else list(human)
    absent = [name for name in given if name not in judges]
    if absent:
        raise OptionError(f"`human` names {listed(absent)}, no {JUDGE}; there are {listed(judges)}.")
    return tuple(given)


def about_families(scores: Scores) -> str:
    """Which judges and models are of one family, in words."""
    facets = scores.facets
    judges = facets.levels[1].tolist()
    words = []
    for judge in judges:
        family = scores.families.get(judge)
        models = [
            name for name in facets.levels[0].tolist() if family is not None and scores.families.get(name) == family
        ]
        if models:
            words.append(f"{judge} and {count(len(models), 'model')} ({listed(models[:3])})")
    return "; ".join(words)
